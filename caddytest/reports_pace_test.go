package caddytest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

const localSitemap = harness.Local + "/sitemap.xml"

// requestLog has the requests of an application, in their order.
type requestLog struct {
	mu    sync.Mutex
	paths []string
	times []time.Time
}

func (l *requestLog) add(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paths = append(l.paths, path)
	l.times = append(l.times, time.Now())
}

// since returns the paths of the requests after the first n.
func (l *requestLog) since(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.paths[n:]...)
}

// count returns how many requests there were for a path; "": for any.
func (l *requestLog) count(path string) (n int) {
	for _, got := range l.since(0) {
		if path == "" || got == path {
			n++
		}
	}
	return n
}

// wantRate wants the requests so far to have been no faster than a rate.
func (l *requestLog) wantRate(t *testing.T, perSecond int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	took := l.times[len(l.times)-1].Sub(l.times[0])
	least := time.Duration(len(l.times)-1) * time.Second / time.Duration(perSecond)
	if took < least*9/10 {
		t.Errorf("%d requests in %s, want %d a second at most: %q", len(l.times), took, perSecond, l.paths)
	}
}

// catalog returns the HTML of a small site with so many products; false: it has no such page.
func catalog(path string, products int) (html string, ok bool) {
	if path == "/" {
		var links []string
		for i := range products {
			links = append(links, fmt.Sprint("/product/", i))
		}
		return linking("home", links...), true
	}
	number, isProduct := strings.CutPrefix(path, "/product/")
	if !isProduct || len(number) > 2 {
		return linking("There is no such page."), false
	}
	return linking("product "+number, "/"), true
}

func catalogURLs(products int) []string {
	urls := []string{harness.Local + "/"}
	for i := range products {
		urls = append(urls, fmt.Sprint(harness.Local, "/product/", i))
	}
	slices.Sort(urls)
	return urls
}

func respondHTML(w http.ResponseWriter, html string, isFound bool) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if !isFound {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = io.WriteString(w, html)
}

// sentPath is the path that a visitor sent, before rewrites.
func sentPath(r *http.Request) string {
	return r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request).URL.Path
}

// TestMadeByHandlers: where a handler that is no proxy makes the pages, these are found by links, at the rate.
func TestMadeByHandlers(t *testing.T) {
	const products = 20
	files := map[string]string{
		"site/index.php":   "<?php",
		"site/readme.html": harness.HTML("what no page links to"),
		"site/logo.png":    "png",
	}
	isPHP := "@php path *.php\ntest_middleware @php shop\nfile_server\n"
	for name, test := range map[string]struct {
		routes string
		front  string // to which the front page redirects; "": it does not
	}{
		"by index.php": {routes: "sitemap {\nrefresh 1s\ncrawl {\nrate 20/s\n}\n}\ntry_files {path} {path}/index.php index.php\n" + isPHP},
		"by a plugin":  {routes: "sitemap {\nrefresh 1s\ncrawl {\nrate 20/s\n}\n}\n@files path *.png *.html\nfile_server @files\ntest_middleware shop\n"},
		"a front page": {routes: "sitemap {\nrefresh 1s\ncrawl {\nrate 20/s\n}\n}\ntry_files {path} {path}/index.php index.php\n" + isPHP, front: "/product/0"},
	} {
		t.Run(name, func(t *testing.T) {
			var requests requestLog
			handleBy(t, "shop", func(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
				path := sentPath(r)
				requests.add(path)
				if path == "/" && test.front != "" {
					http.Redirect(w, r, test.front, http.StatusFound)
					return nil
				}
				if path == test.front {
					path = "/"
				}
				html, isFound := catalog(path, products)
				respondHTML(w, html, isFound)
				return nil
			})
			s := start(t, harness.Local+" {\nroot {dir}/site\nroute {\n"+test.routes+"}\n}", files)
			want := catalogURLs(products)
			if test.front != "" {
				want = want[1:]
			}
			s.WantLocs(localSitemap, want...)
			requests.wantRate(t, 20)
		})
	}
}

// TestMadeFromMarkdown: pages that templates make from Markdown are found by links.
func TestMadeFromMarkdown(t *testing.T) {
	s := start(t, harness.Local+` {
		root {dir}/site
		sitemap {
			refresh 1s
		}
		@page file {path}.md {path}/index.md
		rewrite @page /layout/page.html
		templates
		file_server
	}`, map[string]string{
		"site/layout/page.html": `{{$path := .OriginalReq.URL.Path}}{{if eq $path "/"}}{{$path = "/index"}}{{end}}` +
			`<!doctype html><title>{{$path}}</title>{{markdown (include (printf "%s.md" $path))}}`,
		"site/index.md":      "home [about](/about) [news](/news/today)",
		"site/about.md":      "about us",
		"site/news/today.md": "today",
	})
	s.WantLocs(localSitemap, harness.Below(harness.Local, []string{"/", "/about", "/news/today"})...)
}

// switched is an application that is a shop, or responds otherwise while it is down.
type switched struct {
	requestLog
	products atomic.Int64
	isDown   atomic.Bool
	down     http.HandlerFunc
}

func (app *switched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	app.add(r.URL.Path)
	if app.isDown.Load() {
		app.down(w, r)
		return
	}
	html, isFound := catalog(r.URL.Path, int(app.products.Load()))
	respondHTML(w, html, isFound)
}

// statusText is what caddy sitemap status says of the only site.
func (s *server) statusText() string {
	return s.Get("http://localhost:{admin}/sitemap/sites").Text
}

// TestPauseEndsWithMaintenance: an application that returned 503 and asked for a long pause is crawled on once its front page is
// there again. Until then, status and explain name the pause.
func TestPauseEndsWithMaintenance(t *testing.T) {
	for name, retryAfter := range map[string]string{"asked for": "600", "by ourselves": ""} {
		t.Run(name, func(t *testing.T) {
			app := &switched{down: func(w http.ResponseWriter, _ *http.Request) {
				if retryAfter != "" {
					w.Header().Set("Retry-After", retryAfter)
				}
				w.WriteHeader(http.StatusServiceUnavailable)
			}}
			app.products.Store(2)
			s := prepare(t, nil)
			s.OpenAdmin()
			s.LoadApp(behind(""), app.ServeHTTP)
			s.WantLocs(localSitemap, catalogURLs(2)...)

			app.isDown.Store(true)
			s.Eventually(func() bool { return strings.Contains(s.statusText(), `"paused"`) }, s.statusText)
			for what, got := range map[string]string{
				"status":  s.statusText(),
				"explain": s.Get("http://localhost:{admin}/sitemap/explain?url=" + s.Expand(harness.Local) + "/product/1").Text,
			} {
				if !strings.Contains(got, `"paused":{"until":"2`) || !strings.Contains(got, "503") {
					t.Errorf("%s does not name the pause: %s", what, got)
				}
			}
			n := len(app.since(0))
			s.Eventually(func() bool { return len(app.since(n)) > 2 }, s.SitemapLog)
			for _, path := range app.since(n) {
				if path != "/" && path != "/product/1" { // which explain has requested
					t.Errorf("%s was requested amid the pause", path)
				}
			}

			app.products.Store(3)
			app.isDown.Store(false)
			s.WantLocs(localSitemap, catalogURLs(3)...)
			s.Eventually(func() bool { return !strings.Contains(s.statusText(), `"paused"`) }, s.statusText)
		})
	}
}

// TestFrontPageOnceAnInterval: while the pages of a slow application are left to be fetched, its front page is requested once an
// interval.
func TestFrontPageOnceAnInterval(t *testing.T) {
	const interval = 3 * time.Second
	var requests requestLog
	s := prepare(t, nil)
	begun := time.Now()
	s.LoadApp(harness.Local+" {\nsitemap {\nrefresh 3s\ncrawl {\nrate 1000/s\n}\n}\nreverse_proxy {app}\n}", func(w http.ResponseWriter, r *http.Request) {
		requests.add(r.URL.Path)
		wait := time.NewTimer(20 * time.Millisecond)
		<-wait.C
		html, isFound := catalog(r.URL.Path, 40)
		respondHTML(w, html, isFound)
	})
	s.WantLocs(localSitemap, catalogURLs(40)...)
	most := 1 + int(time.Since(begun)/interval)
	if got := requests.count("/"); got > most {
		t.Errorf("the front page was requested %d times, want %d at most: %q", got, most, requests.since(0))
	}
}

// TestOnePace: what an application refuses if it comes faster than 'crawl rate' is never sent, whether a page or a probe.
func TestOnePace(t *testing.T) {
	var mu sync.Mutex
	var last time.Time
	var tooSoon []string
	s := prepare(t, nil)
	s.LoadApp(harness.Local+" {\nsitemap {\nrefresh 1s\nllms\ncrawl {\nrate 5/s\n}\n}\nreverse_proxy {app}\n}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now := time.Now()
		if now.Sub(last) < 100*time.Millisecond {
			tooSoon = append(tooSoon, r.URL.Path)
		}
		last = now
		mu.Unlock()
		html, isFound := catalog(r.URL.Path, 5)
		respondHTML(w, html, isFound)
	})
	s.WantLocs(localSitemap, catalogURLs(5)...)
	s.Refreshes(2)
	mu.Lock()
	defer mu.Unlock()
	// A machine that stands still for a moment brings two requests close together, now and then.
	if len(tooSoon) > 2 {
		t.Errorf("too soon came %q", tooSoon)
	}
}

// TestFrontPageAfterRedirect: a front page that redirects no more is there again at the next look, also where the page to which
// it led still is one.
func TestFrontPageAfterRedirect(t *testing.T) {
	for name, to := range map[string]string{"maintenance": "/maintenance", "a language": "/product/0"} {
		t.Run(name, func(t *testing.T) {
			app := new(switched)
			app.products.Store(2)
			app.down = func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					http.Redirect(w, r, to, http.StatusFound)
					return
				}
				html, isFound := catalog(r.URL.Path, 2)
				respondHTML(w, html, isFound || r.URL.Path == "/maintenance")
			}
			app.isDown.Store(to == "/product/0")
			s := prepare(t, nil)
			s.LoadApp(behind(""), app.ServeHTTP)
			if app.isDown.Load() {
				s.WantLocs(localSitemap, catalogURLs(1)[1:]...)
			} else {
				s.WantLocs(localSitemap, catalogURLs(2)...)
			}
			app.isDown.Store(true)
			count := app.count(to)
			s.Eventually(func() bool { return app.count(to) >= count+3 }, s.SitemapLog)

			n := len(app.since(0))
			app.isDown.Store(false)
			front := func() bool { return slices.Contains(app.since(n), "/") }
			s.Eventually(front, s.SitemapLog)
			s.Eventually(func() bool { return slices.Contains(s.Locs(localSitemap), s.Expand(harness.Local)+"/") }, s.SitemapLog)
			looks := 0
			for _, path := range app.since(n) {
				if path == "/" {
					break
				}
				if path == to {
					looks++
				}
			}
			if looks > 1 {
				t.Errorf("the page to which it led was requested %d times before the front page", looks)
			}
		})
	}
}
