package caddytest

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestSitesNotPublic: nothing is listed of a site that refuses anonymous visitors.
func TestSitesNotPublic(t *testing.T) {
	for name, test := range map[string]struct {
		caddyfile string
		log       string
	}{
		"basic_auth":              {"basic_auth {\n user " + password + "\n }\n root {dir}/a\n sitemap\n file_server", "the site refuses anonymous visitors"},
		"remote_ip, else nothing": {"@inside remote_ip 127.0.0.1 private_ranges\nhandle @inside {\n root {dir}/a\n sitemap\n file_server\n}\nrespond 404", "requests for the sitemap do not reach its handler: another one returns status 404"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, "http://localhost:{port} {\n"+test.caddyfile+"\n}", harness.TwoRoots)
			s.Logged(test.log)
			s.wantNone("http://localhost:{port}", "Authorization: Basic dXNlcjpwYXNz")
			s.wantNone("http://localhost:{port}")
		})
	}
}

// TestSitesNotPublicOnce is that the log does not fill with it.
func TestSitesNotPublicOnce(t *testing.T) {
	var probes atomic.Int64
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			probes.Add(1)
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	s := prepare(t, harness.TwoRoots)
	s.LoadApp(`http://localhost:{port} {
		sitemap {
			refresh 1s
			files {dir}/a
		}
		reverse_proxy {app}
	}`, app)
	s.Eventually(func() bool { return probes.Load() >= 3 }, func() string { return "the site is not probed again" })
	if lines := s.LogLines("the site refuses anonymous visitors", `"level":"info"`, `"status":401`); len(lines) != 1 {
		t.Errorf("%d log lines say so, want one", len(lines))
	}
}

// TestSitesOwnSitemap is that nothing is taken away from a site.
func TestSitesOwnSitemap(t *testing.T) {
	const own = `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://app.example/own</loc></url></urlset>`
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/sitemap.xml":
			_, _ = w.Write([]byte(own))
		case "/robots.txt":
			_, _ = w.Write([]byte("User-agent: *\n"))
		default:
			_, _ = w.Write([]byte("the application"))
		}
	})
	for name, test := range map[string]struct{ caddyfile, log string }{
		"of an application, beside a root without pages": {"root {dir}/empty\nsitemap\nreverse_proxy {app}", "no 'file_server' serves its root"},
		"in the root": {"root {dir}/own\nsitemap\nfile_server", harness.NoPage},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, map[string]string{
				"empty/":          "",
				"own/sitemap.xml": own,
				"own/robots.txt":  "User-agent: *\n",
			})
			s.LoadApp("http://localhost:{port} {\n"+test.caddyfile+"\n}", app)
			s.Logged(test.log)
			if r := s.Get("http://localhost:{port}/sitemap.xml"); r.Text != own {
				t.Errorf("the sitemap is %q, want the site's own", r.Text)
			}
			if r := s.Get("http://localhost:{port}/robots.txt"); r.Text != "User-agent: *\n" {
				t.Errorf("robots.txt is %q, want the site's own", r.Text)
			}
			if r := s.Get("http://localhost:{port}/sitemap-000000000000.xml"); r.StatusCode == http.StatusOK && strings.Contains(r.Text, "<urlset") {
				t.Errorf("a shard's name gets %q", r.Text)
			}
		})
	}
}

// TestSitesBrokenUpstream: lists that are aborted, break off or never end.
func TestSitesBrokenUpstream(t *testing.T) {
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/partial":
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("/from-a-list-that-broke-off\n"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/dropped":
			panic(http.ErrAbortHandler)
		default:
			// Without an end, but for those that hang up.
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}
	})
	s := prepare(t, harness.TwoRoots)
	s.LoadApp(`http://localhost:{port} {
		sitemap {
			crawl off
			refresh 1s
			files {dir}/a
			urls /aborted /partial /dropped /refused /gone
			urls /endless
		}
		abort /aborted
		respond /gone 410
		reverse_proxy /refused 127.0.0.1:1
		reverse_proxy {app}
	}`, app)
	// The endless list is too long, or takes too long where many tests run.
	failed := s.Logged(harness.GatheringFails, "/aborted", "/partial", "/dropped", "/refused", "status 410")
	if !strings.Contains(failed, "/endless has more than") && !strings.Contains(failed, "timed out waiting for a page") {
		t.Errorf("got %s", failed)
	}
	s.Eventually(func() bool {
		locs, err := s.TryLocs("http://localhost:{port}/sitemap.xml")
		return err == nil && slices.Contains(locs, s.Expand("http://localhost:{port}/one.html"))
	}, func() string {
		return fmt.Sprint("no sitemap: ", s.Get("http://localhost:{port}/sitemap.xml").Text, "\n", s.SitemapLog())
	})
	if locs := s.Locs("http://localhost:{port}/sitemap.xml"); slices.Contains(locs, s.Expand("http://localhost:{port}/from-a-list-that-broke-off")) {
		t.Errorf("%q has a page of a list that broke off", locs)
	}
}

// TestSitesAsAnonymous is what an application sees of a fetch, and the access log does
// not.
func TestSitesAsAnonymous(t *testing.T) {
	var mu sync.Mutex
	var seen []*http.Request
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Clone(r.Context()))
		if r.URL.Path == "/listed" {
			_, _ = w.Write([]byte(harness.HTML("listed")))
			return
		}
		_, _ = w.Write([]byte("/listed\n"))
	})
	s := prepare(t, map[string]string{"x/": ""})
	s.LoadApp(`https://localhost:{tls} {
		log {
			output file {dir}/access.log {
				roll_disabled
			}
			format json
		}
		sitemap {
			urls /list?all=1
		}
		reverse_proxy {app}
	}`, app)
	s.WantLocs("https://localhost:{tls}/sitemap.xml", "https://localhost:{tls}/listed")
	mu.Lock()
	defer mu.Unlock()
	lists := 0
	for _, r := range seen {
		if r.URL.RequestURI() == "/list?all=1" {
			lists++
		}
		if got := r.Header.Get("X-Forwarded-For"); got != "192.0.2.1" {
			t.Errorf("%s comes from %q, want 192.0.2.1", r.URL, got)
		}
		if got := r.Header.Get("X-Forwarded-Proto"); got != "https" {
			t.Errorf("%s comes by %q, want https", r.URL, got)
		}
		if got := r.Header.Get("X-Forwarded-Host"); got != s.Expand("localhost:{tls}") {
			t.Errorf("%s comes for %q, want %q", r.URL, got, s.Expand("localhost:{tls}"))
		}
		if got := r.UserAgent(); !strings.Contains(got, "bot") || !strings.Contains(got, "caddy-sitemap") {
			t.Errorf("%s comes with User-Agent %q", r.URL, got)
		}
		if r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s comes with credentials: %v", r.URL, r.Header)
		}
	}
	if lists == 0 {
		t.Errorf("the list was not fetched: %v", seen)
	}
	log, err := os.ReadFile(filepath.Join(s.Dir, "access.log"))
	if err != nil || !strings.Contains(string(log), "/sitemap.xml") {
		t.Fatalf("the access log is %q (%v), want the test's own requests", log, err)
	}
	for line := range strings.Lines(string(log)) {
		if !strings.Contains(line, `"remote_ip":"127.0.0.1"`) || !strings.Contains(line, `"uri":"/sitemap.xml"`) {
			t.Errorf("the access log has %s", line)
		}
	}
}

// TestSitesWarnings is one configuration after the other whose owner should know
// something, and one line that says what.
func TestSitesWarnings(t *testing.T) {
	for name, test := range map[string]struct {
		caddyfile string
		want      []string            // words of the warning
		never     string              // words that no line has
		locs      map[string][]string // by the URL of the sitemap
	}{
		"no root": {caddyfile: "{origin} {\n sitemap\n file_server\n}", want: []string{"no file root", "'root'", "'files <root>'"}, never: harness.NoPage},
		"a root that nothing serves": {
			caddyfile: "{origin} {\n root {dir}/a\n sitemap\n respond /sitemap.xml 404\n respond \"an application\"\n}",
			want:      []string{"no 'file_server' serves its root", "{dir}/a", "file_server"},
		},
		"client certificates": {
			caddyfile: "https://localhost:{tls} {\n tls internal {\n client_auth {\n mode require\n }\n }\n root {dir}/a\n sitemap {\n ping http://127.0.0.1:9/{sitemap}\n }\n file_server\n}\n{origin} {\n respond other\n}",
			want:      []string{"changes are not announced", "client certificate", "'trusted_proxies'"},
		},
		"a file system that is missing": {caddyfile: "{origin} {\n root {dir}/a\n sitemap {\n files {\n fs none\n }\n }\n file_server\n}", want: []string{harness.GatheringFails, "there is no file system 'none'"}},
		"a site that aborts connections": {
			caddyfile: "{origin} {\n root {dir}/a\n route {\n @anonymous remote_ip 192.0.2.1\n abort @anonymous\n sitemap\n file_server\n }\n}",
			want:      []string{"the site refuses anonymous visitors", "192.0.2.1"},
		},
		"a matcher that hides the sitemap": {caddyfile: "{origin} {\n root {dir}/a\n sitemap /docs/*\n file_server\n}", want: []string{"requests for the sitemap do not reach its handler: another one returns status 404", `"remedy":"Usual causes: a matcher on the directive`, "/sitemap.xml"}},
		"two sitemaps of one path": {
			caddyfile: "{origin} {\n root {dir}/a\n sitemap\n sitemap\n file_server\n}", want: []string{"another sitemap handler before this one has the same path"},
			locs: map[string][]string{"http://localhost:{port}/sitemap.xml": harness.Below(harness.Local, harness.PagesOfA)},
		},
		"a matcher that hides robots.txt": {
			caddyfile: "{origin} {\n root {dir}/a\n sitemap /sitemap* {\n feed\n lastmod mtime\n }\n file_server\n}",
			want:      []string{"requests for /robots.txt do not reach", `"line":"Sitemap: http://localhost:{port}/sitemap.xml\nSitemap: http://localhost:{port}/sitemap.atom"`},
			locs:      map[string][]string{"http://localhost:{port}/sitemap.xml": harness.Below(harness.Local, harness.PagesOfA)},
		},
		"a public name on plain http": {
			caddyfile: "http://shop.com:{port} {\n root {dir}/a\n sitemap\n file_server\n}",
			want:      []string{"public host", "base_url", "trusted_proxies", "http://shop.com:{port}"}, locs: map[string][]string{"http://shop.com:{port}/sitemap.xml": harness.Below("http://shop.com:{port}", harness.PagesOfA)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, harness.TwoRoots)
			s.Write(map[string]string{"empty/": ""})
			// A file server without a root falls back to the working directory.
			t.Chdir(filepath.Join(s.Dir, "a"))
			s.LoadApp(strings.ReplaceAll(test.caddyfile, "{origin}", harness.Local), func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					http.NotFound(w, r)
					return
				}
				_, _ = io.WriteString(w, "home")
			})
			for url, want := range test.locs {
				s.WantLocs(url, want...)
			}
			if len(test.want) > 0 {
				s.Logged(append(test.want, `"logger":"http.handlers.sitemap"`)...)
			}
			if lines := s.LogLines(test.never, `"logger":"http.handlers.sitemap"`); test.never != "" && len(lines) > 0 {
				t.Errorf("the log has %s", lines[0])
			}
			if len(test.locs) == 0 {
				s.wantNone("http://localhost:{port}")
			}
		})
	}
}

// wantNone waits until the first refresh has ended, and wants no sitemap and no
// line in robots.txt: the request went on to the next handler.
func (s *server) wantNone(origin string, headers ...string) {
	s.T.Helper()
	if r := s.Get(origin+"/sitemap.xml", headers...); r.StatusCode == http.StatusOK && strings.Contains(r.Text, "<urlset") {
		s.T.Errorf("%s has a sitemap: %s", s.Expand(origin), r.Text)
	}
	if r := s.Get(origin+"/robots.txt", headers...); strings.Contains(r.Text, "Sitemap:") {
		s.T.Errorf("%s has a line in robots.txt: %s", s.Expand(origin), r.Text)
	}
}
