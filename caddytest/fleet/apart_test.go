//go:build unix

package fleet

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestApart has nodes that share nothing: they differ, which is seen, but the load balancer hides that they are killed.
func TestApart(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := prepare(t, setup{nodes: 3, apart: true, site: "shard_urls 40"})
	now := time.Now()
	for i := range 200 {
		f.put(fmt.Sprintf("%03d.html", i), fmt.Sprint("page ", i), now) // a deployment: no page has a date
	}
	for i, n := range f.nodes {
		n.start()
		n.first()
		f.eventually(patience, func() bool { return n.lists("/199.html", "") })
		if i == 0 { // later nodes do not know that it changed
			at := time.Now()
			f.put("000.html", "another text", at)
			f.eventually(patience, func() bool { return n.lists("/000.html", harness.Stamp(at)) })
		}
	}
	f.balance()
	a := f.balancer.ask(2, 0)
	found := strings.Join(f.differences(), "\n")
	for _, want := range []string{"identity: ETag", "gzip: ETag", "identity: body", "gzip: body", "Last-Modified"} {
		if !strings.Contains(found, want) {
			t.Errorf("no difference in %s is found:\n%s", want, found)
		}
	}
	f.chaos(3*kills, func(int) {})
	faults := a.end()
	if faults[dateGone] == "" {
		t.Error("no date is gone from node to node")
	}
	delete(faults, dateGone)
	if len(faults) > 0 || a.rounds == 0 {
		t.Errorf("got %q\n%s", faults, f.logs())
	}
}

// TestAsker shows documents with faults to an asker.
func TestAsker(t *testing.T) {
	const head = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	urlset := func(date string) string {
		return head + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://HOST/</loc><lastmod>` + date + "</lastmod></url></urlset>\n"
	}
	index := head + `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>http://HOST/sitemap-1.xml</loc></sitemap></sitemapindex>` + "\n"
	for name, test := range map[string]struct {
		index  string
		shards []string // by request; the last one stays; "": 404
		want   string   // kind of fault
	}{
		"right":            {index, []string{urlset("2026-01-01T00:00:00Z"), urlset("2026-01-02T00:00:00Z")}, ""},
		"no shard":         {index, []string{urlset("2026-01-01T00:00:00Z"), ""}, "status 404"},
		"date":             {index, []string{urlset("2026-01-02T00:00:00Z"), urlset("2026-01-01T00:00:00Z")}, "a date goes back"},
		"date gone":        {index, []string{urlset("2026-01-02T00:00:00Z"), urlset("")}, dateGone},
		"torn":             {index, []string{urlset("2026-01-01T00:00:00Z")[:120]}, "torn"},
		"not well-formed":  {index, []string{strings.ReplaceAll(urlset("2026-01-01T00:00:00Z"), "</url>", "")}, "not well-formed"},
		"torn index":       {index[:100], nil, "torn"},
		"robots.txt":       {urlset("2026-01-01T00:00:00Z"), nil, "robots.txt without the line"},
		"other namespaces": {strings.ReplaceAll(urlset(""), "sitemaps.org", "example.com"), nil, "not well-formed"},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text := test.index
				switch {
				case r.URL.Path == "/robots.txt":
					if text = "User-agent: *\nSitemap: http://HOST/sitemap.xml\n"; test.want == "robots.txt without the line" {
						text = "User-agent: *\n"
					}
				case r.URL.Path != "/sitemap.xml":
					text = test.shards[min(requests, len(test.shards)-1)]
					requests++
				}
				if text == "" {
					http.NotFound(w, r)
					return
				}
				_, _ = io.WriteString(w, strings.ReplaceAll(text, "HOST", r.Host))
			}))
			defer server.Close()
			address, port, _ := net.SplitHostPort(server.Listener.Addr().String())
			a := (&node{fleet: &fleet{t: t, host: "www.example.com:" + port}, name: "balancer", address: address}).ask(0, 0)
			for range 3 {
				a.round()
			}
			got := slices.Sorted(maps.Keys(a.end()))
			if test.want == "" && len(got) > 0 || test.want != "" && !slices.Equal(got, []string{test.want}) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestEngine(t *testing.T) {
	e := newEngine()
	defer e.Close()
	for _, test := range []struct {
		urls string
		want int
	}{{`["a","b"]`, 200}, {`["b","a"]`, 200}, {`["b","c"]`, 200}, {`[`, 400}} {
		resp, err := http.Post(e.URL, "application/json", strings.NewReader(`{"host":"h","key":"k","urlList":`+test.urls+"}"))
		harness.Must(t, err)
		resp.Body.Close()
		if resp.StatusCode != test.want {
			t.Errorf("%s: got status %d", test.urls, resp.StatusCode)
		}
	}
	if got := e.again(map[string]int{"a": 1, "b": 1, "c": 2}); !slices.Equal(got, []string{"b"}) || e.repeated != 1 {
		t.Errorf("got %q, %d repeated", got, e.repeated)
	}
}
