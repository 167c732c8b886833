package caddytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/caddytest/sitemaps"
)

func init() {
	caddy.RegisterModule(new(failing))
	caddy.RegisterModule(new(hanging))
	httpcaddyfile.RegisterHandlerDirective("test_hang", func(httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return new(hanging), nil
	})
	httpcaddyfile.RegisterDirectiveOrder("test_hang", httpcaddyfile.Before, "respond")
}

// failing is an app that fails where it is told to: provision or start.
type failing struct {
	Where string `json:"where,omitempty"`
}

var errFailing = errors.New("told to fail")

func (*failing) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "test_failing", New: func() caddy.Module { return new(failing) }}
}

func (f *failing) Provision(ctx caddy.Context) error {
	if _, err := ctx.App("http"); err != nil { // after all handlers
		return err
	}
	if f.Where == "provision" {
		return errFailing
	}
	return nil
}

func (f *failing) Start() error {
	if f.Where == "start" {
		return errFailing
	}
	return nil
}

func (*failing) Stop() error { return nil }

// hanging is a handler that, while hangs is set, answers nobody before the request is
// cancelled.
type hanging struct{}

var (
	hangs atomic.Bool
	hung  atomic.Int64 // how many requests hang now
)

func (*hanging) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_hang", New: func() caddy.Module { return new(hanging) }}
}

func (*hanging) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if hangs.Load() {
		hung.Add(1)
		defer hung.Add(-1)
	}
	for hangs.Load() {
		if err := r.Context().Err(); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return next.ServeHTTP(w, r)
}

// loadFailing loads a Caddyfile together with an app that fails.
func (s *server) loadFailing(caddyfile, where string) error {
	s.T.Helper()
	adapted, err := s.Adapt(caddyfile)
	harness.Must(s.T, err)
	var config map[string]any
	harness.Must(s.T, json.Unmarshal(adapted, &config))
	config["apps"].(map[string]any)["test_failing"] = map[string]any{"where": where}
	if adapted, err = json.Marshal(config); err != nil {
		s.T.Fatal(err)
	}
	return caddy.Load(adapted, true)
}

// manyHosts are more than are looked up at the start.
func manyHosts() []string {
	var hosts []string
	for i := range 130 {
		hosts = append(hosts, fmt.Sprintf("http://h%d.localhost:{port}", i))
	}
	return hosts
}

// TestReloadKeepsSnapshots: named, visited and late sites are served on without a
// new scan, with their entity tags and dates.
func TestReloadKeepsSnapshots(t *testing.T) {
	script := newScript(t, "/a", "/b")
	sitemap := " {\n\tsitemap {\n\t\trefresh 1h\n\t\tscripted " + t.Name() + "\n\t}\n\t" + aPage + "\n}\n"
	caddyfile := strings.Join(manyHosts(), ", ") + sitemap +
		"http://*.wild.localhost:{port}" + sitemap +
		"http://*.other.localhost:{port}" + sitemap +
		"http://based.localhost:{port} {\n\tsitemap {\n\t\tbase_url https://example.com\n\t\trefresh 1h\n\t\tscripted " + t.Name() + "\n\t}\n\t" + aPage + "\n}\n" +
		"http://:{port}" + sitemap + "http://:{more}" + sitemap
	s := start(t, caddyfile, nil)
	urls := append(manyHosts(),
		"http://based.localhost:{port}", "http://x.wild.localhost:{port}",
		"http://x.other.localhost:{port}", "http://any.localhost:{port}", "http://127.0.0.1:{port}", "http://any.localhost:{more}")
	type seen struct{ etag, modified, body string }
	fetch := func(url string) seen {
		r := s.mustGet(url + "/sitemap.xml")
		if r.StatusCode != http.StatusOK || strings.Count(r.Text, "<loc>") != 2 {
			t.Fatalf("%s: status %d, %.200q\n%s", url, r.StatusCode, r.Text, s.SitemapLog())
		}
		return seen{r.Header.Get("Etag"), r.Header.Get("Last-Modified"), r.Text}
	}
	for _, url := range urls {
		s.mustGet(url + "/sitemap.xml") // which makes the site
	}
	s.Eventually(func() bool { return script.total() >= len(urls) }, func() string {
		return fmt.Sprintf("%d scans of %d sites\n%s", script.total(), len(urls), s.SitemapLog())
	})
	if scans := script.total(); scans != len(urls) {
		t.Errorf("%d scans of %d sites", scans, len(urls))
	}
	s.Crawled() // a refresh that a reload interrupts begins anew
	scans := script.total()
	before := make(map[string]seen)
	for _, url := range urls {
		before[url] = fetch(url)
	}
	for range 3 {
		s.Reload(caddyfile)
		for _, url := range urls {
			if after := fetch(url); after != before[url] {
				t.Errorf("%s: got %v after a reload, want %v", url, after, before[url])
			}
		}
	}
	if n := script.total(); n != scans {
		t.Errorf("%d scans after reloads that changed nothing", n-scans)
	}
	for _, words := range []string{"do not reach", "too many sites"} {
		if lines := s.LogLines(words); len(lines) != 0 {
			t.Errorf("after a reload the log says: %s", lines[0])
		}
	}
}

// TestReloadWithOtherSettings: where what shapes the sitemap has changed, it is made anew; how
// often it is made is no reason to do so.
func TestReloadWithOtherSettings(t *testing.T) {
	script := newScript(t, "/a", "/b")
	site := func(settings string) string {
		return "http://localhost:{port} {\n\tsitemap {\n\t\tscripted " + t.Name() + "\n" + settings + "\n\t}\n\t" + aPage + "\n}\n"
	}
	s := start(t, site(""), nil)
	s.WantLocs("http://localhost:{port}/sitemap.xml", "http://localhost:{port}/a", "http://localhost:{port}/b")
	s.Crawled() // a refresh that a reload interrupts begins anew
	scans := script.total()
	for _, settings := range []string{"refresh 1h", "robots_txt off", "refresh 2h"} {
		s.Reload(site(settings))
		s.WantLocs("http://localhost:{port}/sitemap.xml", "http://localhost:{port}/a", "http://localhost:{port}/b")
	}
	s.Passed(200 * time.Millisecond)
	if n := script.total(); n != scans {
		t.Errorf("%d scans after reloads that change no page", n-scans)
	}
	for _, test := range []struct{ settings, path, want string }{
		{"path /map.xml", "/map.xml", "<loc>{base}/b</loc>"},
		{"base_url https://example.com", "/sitemap.xml", "https://example.com/a"},
	} {
		s.Reload(site(test.settings))
		want := strings.ReplaceAll(test.want, "{base}", s.Expand("http://localhost:{port}"))
		var r harness.Response
		s.Eventually(func() bool {
			r = s.mustGet("http://localhost:{port}" + test.path)
			if r.StatusCode != http.StatusOK {
				t.Errorf("%s: status %d, %s", test.settings, r.StatusCode, r.Text)
			}
			return strings.Contains(strings.Join(strings.Fields(r.Text), ""), want) && script.total() > scans
		}, func() string { return fmt.Sprintf("%s: %d new scans, %s", test.settings, script.total()-scans, r.Text) })
		scans = script.total()
	}
	// The same text, but the placeholder in it says something else.
	for _, name := range []string{"one", "two"} {
		s.Write(map[string]string{"name": name})
		s.Reload(site("base_url https://{file.{dir}/name}.example"))
		s.WantLocs("http://localhost:{port}/sitemap.xml", "https://"+name+".example/a", "https://"+name+".example/b")
	}
}

// TestReloadServesOn: until there is a sitemap of the new settings, the last one is
// served, and its shards are found by their names afterwards.
func TestReloadServesOn(t *testing.T) {
	newScript(t, "/a", "/b", "/c", "/d")
	site := func(settings string) string {
		sitemap := " {\n\tsitemap {\n\t\tscripted " + t.Name() + "\n\t\t" + settings + "\n\t}\n\ttest_hang\n\t" + aPage + "\n}\n"
		return "http://localhost:{port}" + sitemap + "http://:{port}" + sitemap
	}
	s := start(t, site("shard_urls 1"), nil)
	origins := []string{"http://localhost:{port}", "http://visited.example:{port}"}
	shards := make(map[string][]string)
	for _, origin := range origins {
		s.Eventually(func() (ok bool) {
			var err error
			shards[origin], err = s.fetch(origin + "/sitemap.xml")
			return err == nil && len(shards[origin]) == 4
		}, func() string { return fmt.Sprintf("got %q", shards[origin]) })
	}
	s.Crawled()
	hangs.Store(true) // no probe ends for twenty seconds, for the front page and robots.txt
	defer hangs.Store(false)
	for _, settings := range []string{"shard_urls 1\n\t\texclude /a", "exclude /a /b"} {
		s.Reload(site(settings))
		for _, origin := range origins {
			if locs, err := s.fetch(origin + "/sitemap.xml"); err != nil || !slices.Equal(locs, shards[origin]) {
				t.Errorf("%s, before it was refreshed: got %q, %v", origin, locs, err)
			}
		}
	}
	hangs.Store(false)
	for _, origin := range origins {
		s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, []string{"/c", "/d"})...)
		for _, shard := range shards[origin] {
			if r := s.mustGet(shard); r.StatusCode != http.StatusOK {
				t.Errorf("%s, a shard of before: status %d", shard, r.StatusCode)
			}
		}
	}
}

// TestFailedReload: whatever keeps a configuration from serving, the one before it
// serves and refreshes on.
func TestFailedReload(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	portInUse := everySecond + "\nhttp://localhost:" + port + " {\n\tbind 127.0.0.1\n\tsitemap\n\trespond hello\n}\n"

	s := start(t, everySecond, map[string]string{"site/index.html": "home"})
	want := []string{"http://localhost:{port}/"}
	s.WantLocs("http://localhost:{port}/sitemap.xml", want...)
	for i, test := range []struct {
		name string
		load func() error
	}{
		{"an app fails to provision", func() error { return s.loadFailing(everySecond, "provision") }},
		{"an app fails to start", func() error { return s.loadFailing(everySecond, "start") }},
		{"an app fails to start, with other settings", func() error {
			return s.loadFailing(strings.Replace(everySecond, "refresh 1s", "refresh 2s", 1), "start")
		}},
		{"a port is in use", func() error { return s.TryLoad(portInUse) }},
		{"a setting is wrong", func() error { return s.TryLoad(strings.Replace(everySecond, "refresh 1s", "refresh 1ms", 1)) }},
	} {
		s.Crawled()
		before := s.mustGet("http://localhost:{port}/sitemap.xml")
		if err := test.load(); err == nil {
			t.Fatalf("%s: it was loaded", test.name)
		}
		after := s.mustGet("http://localhost:{port}/sitemap.xml")
		for _, name := range []string{"Etag", "Last-Modified"} {
			if after.Header.Get(name) != before.Header.Get(name) {
				t.Errorf("%s: %s is %q, was %q", test.name, name, after.Header.Get(name), before.Header.Get(name))
			}
		}
		s.Write(map[string]string{fmt.Sprintf("site/%d.html", i): "new"})
		want = append(want, fmt.Sprintf("http://localhost:{port}/%d.html", i))
		s.WantLocs("http://localhost:{port}/sitemap.xml", want...)
	}
}

// TestReloadUnderLoad: index and shards agree at every moment.
func TestReloadUnderLoad(t *testing.T) {
	files := map[string]string{"site/index.html": "x"}
	for i := range 399 {
		files[fmt.Sprintf("site/%d/index.html", i)] = "x"
	}
	const caddyfile = `
(site) {
	root * {dir}/site
	sitemap {
		refresh 1s
		shard_urls 40
	}
	file_server
}
http://localhost:{port} {
	import site
}
http://:{port} {
	import site
}`
	s := start(t, caddyfile, files)
	hosts := []string{"localhost", "visited.example"}
	for _, host := range hosts {
		s.Eventually(func() bool {
			locs, err := s.TryLocs("http://" + host + ":{port}/sitemap.xml")
			return err == nil && len(locs) == 400
		}, s.SitemapLog)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	rounds := make([]atomic.Int64, len(hosts))
	for i, host := range hosts {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := s.agree("http://" + host + ":" + s.Port); err != nil {
					t.Errorf("%s, round %d: %v", host, rounds[i].Load(), err)
					return
				}
				rounds[i].Add(1)
			}
		})
	}
	more := func(rounds []atomic.Int64) {
		for i := range rounds {
			want := rounds[i].Load() + 2
			s.Eventually(func() bool { return rounds[i].Load() >= want || t.Failed() }, s.SitemapLog)
		}
	}
	settings := []string{"refresh 1s", "refresh 2s"}
	for i := range 30 {
		s.Write(map[string]string{fmt.Sprintf("site/new%d/index.html", i): "x"})
		if i%3 == 0 {
			harness.Must(t, os.RemoveAll(filepath.Join(s.Dir, "site", fmt.Sprint(i))))
		}
		s.Reload(strings.Replace(caddyfile, "refresh 1s", settings[i/5%2], 1))
		if i%5 == 0 {
			// Whoever waits for the first scan that new settings take is told to come
			// again if yet another configuration takes their place meanwhile.
			more(rounds)
		}
	}
	more(rounds)
	s.Eventually(func() bool {
		locs, err := s.TryLocs("http://localhost:{port}/sitemap.xml")
		return err == nil && len(locs) == 420
	}, s.SitemapLog)
	cancel()
	group.Wait()
}

// agree fetches an index and all its shards: each is there and well formed, and where
// the index stayed the same meanwhile, all pages are in order, and each comes once.
func (s *server) agree(base string) error {
	index, err := s.fetch(base + "/sitemap.xml")
	if err != nil {
		return err
	}
	var pages []string
	for _, child := range index {
		locs, err := s.fetch(child)
		if err != nil {
			return err
		}
		if len(locs) == 0 || len(locs) > 40 {
			return fmt.Errorf("%s: %d pages", child, len(locs))
		}
		pages = append(pages, locs...)
	}
	again, err := s.fetch(base + "/sitemap.xml")
	if err != nil || !slices.Equal(again, index) {
		return err
	}
	for i := 1; i < len(pages); i++ {
		if pages[i] <= pages[i-1] {
			return fmt.Errorf("%s comes after %s", pages[i], pages[i-1])
		}
	}
	if len(pages) < 390 || len(pages) > 430 {
		return fmt.Errorf("%d pages in %d shards", len(pages), len(index))
	}
	return nil
}

// mustGet is Get beside reloads.
func (s *server) mustGet(url string) harness.Response {
	s.T.Helper()
	r, err := s.Again(url)
	harness.Must(s.T, err)
	return r
}

// fetch is the Locs of one document.
func (s *server) fetch(url string) ([]string, error) {
	r, err := s.Again(url)
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %d, Retry-After %q", url, r.StatusCode, r.Header.Get("Retry-After"))
	}
	d, err := sitemaps.Read(r.Text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return append(sitemaps.Locs(d.Pages), sitemaps.Locs(d.Children)...), nil
}

// awaitHanging waits until an ask for the front page hangs.
func (s *server) awaitHanging() {
	s.T.Helper()
	s.Eventually(func() bool { return hung.Load() > 0 }, func() string { return "the front page is not asked" })
}

// TestReloadWhileBusy: neither a refresh nor an ask that hangs keeps a new
// configuration from serving.
func TestReloadWhileBusy(t *testing.T) {
	script := newScript(t, "/a", "/b")
	caddyfile := scriptedSites(t, 1, "")
	s := start(t, caddyfile, nil)
	const url, base = "http://s0.localhost:{port}/sitemap.xml", "http://s0.localhost:{port}"
	s.WantLocs(url, base+"/a", base+"/b")
	script.with(func() { script.hold = make(chan struct{}) })
	s.Eventually(func() (held bool) {
		script.with(func() { held = script.atOnce() == 1 })
		return held
	}, func() string { return "no further refresh began" })
	for range 3 {
		s.Reload(caddyfile)
		if locs, err := s.fetch(url); err != nil || len(locs) != 2 {
			t.Errorf("got %q, %v", locs, err)
		}
	}
	script.with(func() {
		close(script.hold)
		script.hold, script.pages = nil, []string{"/a", "/b", "/c"}
	})
	s.WantLocs(url, base+"/a", base+"/b", base+"/c")
	if script.overlap {
		t.Error("two configurations refreshed one site at a time")
	}
}
