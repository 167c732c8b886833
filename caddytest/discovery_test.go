package caddytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// discovering is a site in front of the application, with sources of pages. It trusts
// who forwards requests from this machine, and asks quickly.
func discovering(sources string) string {
	return `{
	servers {
		trusted_proxies static 127.0.0.1/8
	}
}
` + harness.Local + ` {
	sitemap {
		refresh 1s
		crawl {
			rate 200/s
			concurrency 4
		}
		` + sources + `
	}
	reverse_proxy {app}
}`
}

const threeLinks = "links {\n depth 3\n}"

// TestDiscoverLinks is an application's sitemap, with no log at all: all that a reader
// can come to, and nothing else.
func TestDiscoverLinks(t *testing.T) {
	s, app := startProxy(t, discovering(threeLinks), nil)
	want := app.expected(3)
	s.wantPages(want...)
	s.stay(want...)
	app.neverAsked(t, "/logout", "/internal/", "/share/", "/orders/", "/calendar/2026/08", "/calendar/2027/02", "/drafts/behind", "/members/list", "/articles?", "/shop?")
	for _, uri := range app.asked() {
		if strings.ContainsAny(uri, "?;") && !strings.HasPrefix(uri, "/login?") {
			t.Errorf("%s was asked for", uri)
		}
	}
	// A publication while pages are pending interrupts up to four fetches, which begin again.
	const publication = harness.Refreshed
	again := 4 * (len(s.LogLines(publication)) - len(s.LogLines(publication, `"pending":0`)))
	for _, uri := range want {
		n := app.asks(uri)
		if uri == "/" {
			continue
		}
		if again -= n - 1; n == 0 || again < 0 {
			t.Errorf("%s was asked for %d times", uri, n)
		}
	}
	for _, loc := range s.Locs(harness.Local + "/sitemap.xml") {
		if r := s.Get(loc); r.StatusCode != http.StatusOK {
			t.Errorf("%s is listed and answers %d", loc, r.StatusCode)
		}
	}
	if r := s.Get(harness.Local + "/robots.txt"); r.Text != s.Expand("User-agent: *\nDisallow: /internal/\n\nSitemap: "+harness.Local+"/sitemap.xml\n") {
		t.Errorf("robots.txt is %q", r.Text)
	}
}

// TestDiscoverAgain is that what was discovered is listed at once after a restart and
// after a reload, and not asked for again.
func TestDiscoverAgain(t *testing.T) {
	const changed = "links {\n depth 3\n}\n exclude /nothing/*"
	for name, test := range map[string]struct {
		sources string
		visit   bool
		want    func(*application) []string
	}{
		"links": {sources: threeLinks, want: func(a *application) []string { return a.expected(3) }},
		"traffic": {sources: "traffic", visit: true, want: func(*application) []string {
			return []string{"/", "/about", "/articles", "/articles/1"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, app := startProxy(t, discovering(test.sources), nil)
			if test.visit {
				s.Locs(harness.Local + "/sitemap.xml") // now there is a site to have visits
				s.browse("203.0.113.5", "/", "/about", "/articles", "/articles/1")
			}
			want := harness.Below(s.Expand(harness.Local), test.want(app))
			s.wantPages(test.want(app)...)
			s.crawled(app)
			wantAtOnce := func(after string) {
				t.Helper()
				if got := s.Locs(harness.Local + "/sitemap.xml"); !slices.Equal(got, want) {
					t.Errorf("after %s the sitemap lists %q, want %q", after, got, want)
				}
				s.Refreshes(2)
				if got := s.Locs(harness.Local + "/sitemap.xml"); !slices.Equal(got, want) {
					t.Errorf("some refreshes after %s the sitemap lists %q, want %q\n%s", after, got, want, s.SitemapLog())
				}
				for _, uri := range app.asked() {
					// The front page is looked at each time, beside a page that cannot be.
					if n := app.asks(uri); uri != "/" && n > 0 {
						t.Errorf("after %s, %s was asked for %d times", after, uri, n)
					}
				}
			}
			s.Stop()
			app.forget()
			s.Begin(app.in(discovering(test.sources)))
			app.mu.Lock()
			app.requests = slices.DeleteFunc(app.requests, func(r appRequest) bool { return r.uri == "/nothing-there" })
			app.mu.Unlock()
			wantAtOnce("a restart")
			app.forget()
			s.Reload(app.in(discovering(test.sources)))
			wantAtOnce("a reload")
			if test.visit {
				return
			}
			app.forget()
			s.Load(app.in(discovering(changed)))
			wantAtOnce("a reload with another setting")
		})
	}
}

// TestDiscoverTogether is one site with files, a log, traffic and links: one page is one
// entry, and nobody's visit is a date.
func TestDiscoverTogether(t *testing.T) {
	s := prepare(t, map[string]string{"site/": ""})
	s.Put("site/guide.html", "<!doctype html><title>guide</title><p>A guide.<a href=/guide-2.html>next</a> <a href=/tags/oak>oak</a>", harness.DayOf(100))
	s.Put("site/guide-2.html", "<!doctype html><title>guide, part two</title><p>Part two.<a href=/guide.html>back</a>", harness.DayOf(140))
	s.Put("site/alone.html", "<!doctype html><title>alone</title><p>Nothing links here.", harness.DayOf(180))
	s.Put("site/about.html", "<!doctype html><title>about</title><p>About the files.<a href=/about>about</a>", harness.DayOf(220))
	app := startApplication(t)
	caddyfile := strings.Replace(app.in(logging("files {dir}/site {\n clean_urls off\n }\n access_log {dir}/access.log\n traffic\n "+threeLinks)),
		"reverse_proxy", "root {dir}/site\n\t@file file\n\thandle @file {\n\t\tfile_server\n\t}\n\treverse_proxy", 1)
	s.Load(caddyfile)
	want := append(app.expected(3), "/about.html", "/alone.html", "/guide-2.html", "/guide.html")
	slices.Sort(want)
	s.wantPages(want...)
	dates := map[string]string{
		"/guide.html": harness.Stamp(harness.DayOf(100)), "/guide-2.html": harness.Stamp(harness.DayOf(140)), "/alone.html": harness.Stamp(harness.DayOf(180)), "/about.html": harness.Stamp(harness.DayOf(220)),
		"/about": "", "/articles/1": "", "/": "", "/tags/oak": "",
	}
	check := func() {
		t.Helper()
		var got map[string]string
		s.Eventually(func() bool { // once all pages were fetched
			got = s.Dates(harness.Local)
			maps.DeleteFunc(got, func(path, _ string) bool { _, known := dates[path]; return !known })
			return maps.Equal(got, dates)
		}, func() string { return fmt.Sprintf("got %v, want %v\n%s", got, dates, s.SitemapLog()) })
	}
	check()
	s.browse("203.0.113.77", "/guide.html", "/alone.html", "/", "/about", "/articles/1", "/tags/oak", "/share/secret", "/orders/12")
	s.browse("198.51.100.2", "/guide.html", "/share/secret", "/orders/12")
	s.Logged(harness.LogRead)
	s.stay(want...)
	check()
	app.neverAsked(t, "/share", "/orders")
}

// visitAt is a line of Caddy's access log: a browser's GET of the site's page.
func (s *server) visitAt(at time.Time, client, uri string) string {
	s.T.Helper()
	name, agent, _ := strings.Cut(browser, ": ")
	line, err := json.Marshal(map[string]any{
		"level": "info", "ts": float64(at.UnixMicro()) / 1e6, "logger": "http.log.access.log0", "msg": "handled request",
		"request": map[string]any{
			"remote_ip": "127.0.0.1", "remote_port": "40000", "client_ip": client, "proto": "HTTP/1.1", "method": "GET", "host": s.Expand("localhost:{port}"), "uri": uri,
			"headers": map[string][]string{name: {agent}, "Accept": {"text/html"}},
		},
		"bytes_read": 0, "user_id": "", "duration": 0.001, "size": 1234, "status": 200,
		"resp_headers": map[string][]string{"Server": {"Caddy"}, "Content-Type": {"text/html; charset=utf-8"}},
	})
	harness.Must(s.T, err)
	return string(line) + "\n"
}

// TestDiscoverCrash is that a server that is killed loses none of the pages that it
// listed: not at its start, and not with any refresh after it.
func TestDiscoverCrash(t *testing.T) {
	for name, test := range map[string]struct {
		sources string
		visit   bool
	}{
		"links":   {threeLinks, false},
		"traffic": {"traffic", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			s.OpenAdmin()
			app := startApplication(t)
			caddyfile := app.in("{\n sitemap {\n state {dir}/state\n }\n" + logging(test.sources)[1:])
			c := s.Child(caddyfile)
			s.First(c)
			want := app.expected(3)
			if test.visit {
				want = visitedListed
				s.browse("203.0.113.9", visited...)
			}
			s.wantPages(want...)
			s.crawled(app)
			s.Eventually(func() bool { // a commit to a busy disk goes on beside the refreshes
				documents, err := tryCommitted(s.Dir)
				return err == nil && strings.Count(documents["sitemap.xml.gz"], "<loc>") == len(want)
			}, s.SitemapLog)
			c.Kill()
			lines := len(s.RefreshLines())
			c = s.Child(caddyfile)
			defer c.Kill()
			s.First(c)
			s.Refreshes(3)
			for _, line := range s.RefreshLines()[lines:] {
				if line.Pages != len(want) {
					t.Errorf("after a crash %d pages are listed, want %d: %+v", line.Pages, len(want), line)
				}
			}
			s.wantPages(want...)
			c.Kill()
		})
	}
}

// TestDiscoverLater is an application that starts after the server, and one whose front
// page leads elsewhere.
func TestDiscoverLater(t *testing.T) {
	s := prepare(t, nil)
	app := startApplication(t)
	app.answer("/", redirectTo("/about", http.StatusFound))
	s.Load(strings.ReplaceAll(discovering(threeLinks), "{app}", "127.0.0.1:{more}"))
	s.Eventually(func() bool {
		return s.Get(harness.Local+"/about").StatusCode == http.StatusBadGateway && s.Get(harness.Local+"/sitemap.xml").StatusCode == http.StatusBadGateway
	}, s.SitemapLog)
	l, err := net.Listen("tcp", "127.0.0.1:"+s.More)
	harness.Must(t, err)
	server := &http.Server{Handler: app}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	// The front page's redirect leads to where links begin to count.
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, []string{"/about", "/articles", "/articles/1", "/articles/10", "/articles/12", "/articles/17", "/articles/2", "/articles/22", "/articles/3",
		"/articles/4", "/articles/5", "/articles/6", "/articles/7", "/articles/8", "/articles/9", "/news", "/tags/" + tags[2]})...)
}

// TestDiscoverFolders is a site that is a folder of another: pages outside of it are not
// its own, and its own are known by what visitors see.
func TestDiscoverFolders(t *testing.T) {
	const origin = "http://localhost:{port}/site"
	for name, test := range map[string]struct{ sources, origin string }{
		"links and base_url": {"base_url https://example.com/site\n" + threeLinks, "https://example.com/site"},
		"traffic":            {"traffic", origin},
	} {
		t.Run(name, func(t *testing.T) {
			caddyfile := logging(test.sources)
			inner := caddyfile[strings.Index(caddyfile, "\tsitemap {"):strings.Index(caddyfile, "\treverse_proxy {app}")]
			s := prepare(t, nil)
			app := startApplication(t)
			app.answer("/", func(w http.ResponseWriter, r *http.Request) {
				links := []string{"about", "./news?utm_source=x", "articles/1", "/site/shop", "/tags/oak", "../greeting", "http://localhost:" + s.Port + "/site/wiki/", "http://localhost:" + s.Port + "/login"}
				writeHTML(w, r, "In a folder.", "", links, time.Time{})
			})
			s.Begin(app.in(strings.Replace(caddyfile, inner, "handle_path /site/* {\n"+inner+"\treverse_proxy {app}\n}\n", 1)))
			s.Eventually(func() bool { return s.Get(origin+"/sitemap.xml").StatusCode == http.StatusOK }, s.SitemapLog)
			s.browse("203.0.113.9", "/site/", "/site/about", "/site/news", "/site/articles/1", "/site/shop", "/site/wiki/", "/site/tags/oak", "/site/greeting", "/site/login", "/tags/oak", "/greeting", "/login", "/wiki/start")
			want := []string{"/", "/about", "/articles/1", "/news", "/shop", "/wiki/"}
			if strings.HasPrefix(test.origin, "https:") {
				want = slices.DeleteFunc(want, func(path string) bool { return strings.HasPrefix(path, "/wiki/") }) // of another site
			}
			s.WantLocs(origin+"/sitemap.xml", harness.Below(test.origin, want)...)
			s.Refreshes(2)
			s.WantLocs(origin+"/sitemap.xml", harness.Below(test.origin, want)...)
		})
	}
}

// TestDiscoverScope is a sitemap of a site whose base URL has a folder: it begins at the folder's own front page.
func TestDiscoverScope(t *testing.T) {
	s, app := startProxy(t, discovering("base_url https://example.com/wiki\n"+threeLinks), nil)
	want := harness.Below("https://example.com", []string{"/wiki/", "/wiki/rules", "/wiki/start"})
	s.WantLocs(harness.Local+"/wiki/sitemap.xml", want...)
	s.Refreshes(2)
	s.WantLocs(harness.Local+"/wiki/sitemap.xml", want...)
	app.neverAsked(t, "/about", "/logout", "/articles")
}
