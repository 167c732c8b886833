package crawl

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// pagesFetched are the module's requests so far, without those of each probe.
func (a *web) pagesFetched() map[string]int {
	fetched := a.requests()
	for _, path := range []string{"/", "/robots.txt", "/sitemap.xml", "/docs/sitemap.xml"} {
		delete(fetched, path)
	}
	return fetched
}

// TestCanonicalThatIsNotListed: a page stays listed whose canonical is excluded, lies
// outside of what is listed or does not exist, and is not fetched again for that.
func TestCanonicalThatIsNotListed(t *testing.T) {
	app := newWeb(map[string]string{
		"/docs/":  linking("docs", "/docs/a", "/docs/b", "/docs/c"),
		"/docs/a": naming("/docs/excluded", linking("a")), "/docs/b": naming("/outside", linking("b")), "/docs/c": naming("/docs/missing", linking("c")),
		"/docs/excluded": linking("excluded"), "/outside": linking("outside"),
	})
	s := prepare(t, nil)
	s.LoadApp(behind("path /docs/sitemap.xml\nexclude /docs/excluded\nlinks"), app.ServeHTTP)
	want := harness.Below(harness.Local, []string{"/docs/", "/docs/a", "/docs/b", "/docs/c"})
	s.WantLocs(harness.Local+"/docs/sitemap.xml", want...)
	s.Quietly(1)
	before := app.pagesFetched()
	s.Quietly(3)
	if now := app.pagesFetched(); !maps.Equal(now, before) || now["/outside"]+now["/docs/excluded"] > 0 || now["/docs/a"] != 1 {
		t.Errorf("pages were requested: %v, and before %v", now, before)
	}
	s.WantLocs(harness.Local+"/docs/sitemap.xml", want...)
}

// TestHostsOfAnApplication: many hosts of one application get requests at one pace.
func TestHostsOfAnApplication(t *testing.T) {
	const hosts, rate = 10, 40
	var mu sync.Mutex
	var pages []time.Time
	underway, most := 0, 0
	var names []string
	for i := range hosts {
		names = append(names, fmt.Sprintf("http://h%d.localhost:{port}", i))
	}
	s := prepare(t, nil)
	s.LoadApp(strings.Join(names, ", ")+fmt.Sprintf(" {\n sitemap {\n refresh 1s\n crawl {\n rate %d/s\n concurrency 2\n }\n urls {\n/p/1\n/p/2\n/p/3\n}\n }\n reverse_proxy {app}\n}", rate),
		func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/p/") {
				http.NotFound(w, r)
				return
			}
			mu.Lock()
			pages = append(pages, time.Now())
			underway++
			most = max(most, underway)
			mu.Unlock()
			time.Sleep(60 * time.Millisecond) // more than two come in
			mu.Lock()
			underway--
			mu.Unlock()
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, linking(r.Host+r.URL.Path))
		})
	for _, name := range names {
		s.WantLocs(name+"/sitemap.xml", harness.Below(name, []string{"/p/1", "/p/2", "/p/3"})...)
	}
	mu.Lock()
	defer mu.Unlock()
	if took, least := pages[len(pages)-1].Sub(pages[0]), time.Second*(3*hosts-1)/rate; len(pages) != 3*hosts || took < least*9/10 {
		t.Errorf("%d requests took %s, want %d in %s at least", len(pages), took, 3*hosts, least)
	}
	if most > 2 {
		t.Errorf("%d requests at a time, want 2", most)
	}
}

// TestWWWAtEachProbe: which of www and apex lists the pages follows what the front page
// says now.
func TestWWWAtEachProbe(t *testing.T) {
	home := func(host string) string { return naming("http://"+host+"/", linking("home")) }
	app := newWeb(nil)
	s := prepare(t, nil)
	const apex, www = "shop.example:{port}", "www.shop.example:{port}"
	app.responses = map[string]string{"/": home(s.Expand(apex))}
	s.LoadApp("http://"+apex+", http://"+www+strings.TrimPrefix(behind("links"), harness.Local), app.ServeHTTP)
	for i := range 3 {
		main, other := apex, www
		if i%2 == 1 {
			main, other = www, apex
		}
		app.respond("/", home(s.Expand(main)))
		s.Eventually(func() bool {
			r := s.Get("http://" + other + "/sitemap.xml")
			return r.StatusCode == http.StatusPermanentRedirect && s.Get("http://"+main+"/sitemap.xml").StatusCode == http.StatusOK
		}, s.SitemapLog)
	}
}

// TestListsOfSitemaps: the lists that 'urls' takes may be sitemaps, and indexes of them,
// that the site serves.
func TestListsOfSitemaps(t *testing.T) {
	app := newWeb(map[string]string{"/a": linking("a"), "/b": linking("b"), "/c": linking("c")})
	s := prepare(t, nil)
	origin := s.Expand(harness.Local)
	app.respond("/made.xml", "Content-Type: application/xml\n\n<urlset><url><loc>"+origin+"/a</loc><lastmod>2021-02-03</lastmod></url></urlset>")
	app.respond("/index.xml", "Content-Type: application/xml\n\n<sitemapindex><sitemap><loc>"+origin+"/made.xml</loc></sitemap><sitemap><loc>"+origin+"/made.txt</loc></sitemap></sitemapindex>")
	app.respond("/made.txt", "Content-Type: text/plain\n\n"+origin+"/b\n")
	s.LoadApp(behind("urls /index.xml /made.txt\nurls {\n/c\n}"), app.ServeHTTP)
	s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, []string{"/a", "/b", "/c"})...)
	if date := s.Dates(origin)["/a"]; !strings.HasPrefix(date, "2021-02-03") {
		t.Errorf("/a has the date %q", date)
	}
}

// TestReloadLeavesUpstreamsAlone: how long an upstream is to be left alone outlives a reload.
func TestReloadLeavesUpstreamsAlone(t *testing.T) {
	app := newWeb(map[string]string{"/a": linking("a"), "/b": "503\nRetry-After: 3600\n\n", "/c": linking("c")})
	s := prepare(t, nil)
	caddyfile := strings.ReplaceAll(strings.Replace(behind("urls {\n/a\n/b\n/c\n}"), "concurrency 8", "concurrency 1", 1), "{app}", harness.Backend(t, app.ServeHTTP))
	s.Load(caddyfile)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/a")
	s.Eventually(func() bool { return app.pagesFetched()["/b"] == 1 }, s.SitemapLog)
	s.Refreshes(1) // so the response has arrived
	for i := range 2 {
		s.Reload(strings.Replace(caddyfile, "refresh 1s", fmt.Sprintf("refresh 1s\nshard_urls %d", 100+i), 1))
		s.Quietly(2)
		if pages := app.pagesFetched(); pages["/b"] != 1 || pages["/c"] != 0 {
			t.Fatalf("after reload %d, got requests %v", i, pages)
		}
	}
}
