package caddytest

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestDiscoverTraffic lists what is linked to and was visited, without a log.
func TestDiscoverTraffic(t *testing.T) {
	s, app := startProxy(t, discovering("traffic"), nil)
	s.wantPages("/")
	s.browse("203.0.113.9", visited...)
	s.otherVisits()
	s.wantPages(visitedListed...)
	s.scan(1000)
	s.Do(http.MethodHead, harness.Local+"/tags/fir", browser)
	s.browse("203.0.113.9", "/tags/oak")
	if r := s.Get(harness.Local+"/articles/10", browser, `If-None-Match: "article-10"`); r.StatusCode != http.StatusNotModified {
		t.Errorf("status %d, want 304", r.StatusCode)
	}
	want := append(slices.Clone(visitedListed), "/articles/10", "/tags/fir", "/tags/oak")
	slices.Sort(want)
	s.wantPages(want...)
	s.stay(want...)
	never := slices.DeleteFunc(slices.Clone(neverVisited), func(prefix string) bool { return prefix == "/tags" })
	app.neverAsked(t, append(never, "/tags/ash", "/tags/elm", "/tags/yew", "/wiki/scan", "/scan", "/.env", "/wp-", "/%")...)
}

// TestDiscoverHosts is that a visit to one site of a handler is none to another.
func TestDiscoverHosts(t *testing.T) {
	const log = "log {\n output file {dir}/access.log\n format json\n }\n"
	s, app := startProxy(t, strings.Replace(discovering("access_log {dir}/access.log"), harness.Local+" {\n", "http://a.localhost:{port}, http://b.localhost:{port} {\n"+log, 1), nil)
	const a, b = "http://a.localhost:{port}", "http://b.localhost:{port}"
	s.WantLocs(a+"/sitemap.xml", a+"/")
	s.WantLocs(b+"/sitemap.xml", b+"/")
	s.Get(a+"/about", browser)
	s.Get(b+"/news", browser)
	s.Get(b+"/articles", browser)
	s.WantLocs(a+"/sitemap.xml", a+"/", a+"/about")
	s.WantLocs(b+"/sitemap.xml", b+"/", b+"/articles", b+"/news")
	s.Refreshes(4)
	s.WantLocs(a+"/sitemap.xml", a+"/", a+"/about")
	s.WantLocs(b+"/sitemap.xml", b+"/", b+"/articles", b+"/news")
	if got := app.asks("/news"); got != 1 {
		t.Errorf("/news was asked for %d times", got)
	}
}

// TestTrafficAmongHandlers is visits where other handlers have a say in what is answered.
func TestTrafficAmongHandlers(t *testing.T) {
	caddyfile := strings.Replace(discovering("traffic"), "reverse_proxy {app}", `encode gzip zstd
	basic_auth /tags/* {
		user $2a$04$aPZhuYXBWNJlPRSWPfCZFegvKwmNlOEz6SpV1vpOSgLLGWPTqRZhW
	}
	header /news X-Robots-Tag noindex
	header /shop >Cache-Control private
	rewrite /nice /articles/3
	error /wiki/* 404
	handle_errors {
		header Content-Type text/html
		respond "<!doctype html><title>sorry</title>" 200
	}
	respond /plain "no page"
	redir /away /about
	reverse_proxy {app}`, 1)
	s := prepare(t, nil)
	app := startApplication(t)
	front := app.pages["/"]
	front.links = append(slices.Clone(front.links), "/nice", "/plain", "/away", "/long")
	app.pages["/"] = front
	app.pages["/long"] = appPage{text: strings.Repeat("A long story. ", 100), header: []string{`Etag: "long"`}}
	s.Load(app.in(caddyfile))
	s.wantPages("/")
	for _, path := range []string{"/nice", "/plain", "/away", "/news", "/shop", "/wiki/", "/tags/oak"} {
		s.Get(harness.Local+path, browser, "Authorization: Basic dXNlcjpwYXNz")
		s.Get(harness.Local+path, browser)
	}
	s.browse("203.0.113.9", "/about")
	r := s.Get(harness.Local+"/long", browser, "Accept-Encoding: gzip")
	if r.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(harness.Gunzip(t, r.Text), "A long story.") {
		t.Errorf("got %v, want it compressed", r.Header)
	}
	tag := r.Header.Get("Etag")
	if r := s.Get(harness.Local+"/long", browser, "Accept-Encoding: gzip", "If-None-Match: "+tag); tag == "" || r.StatusCode != http.StatusNotModified {
		t.Errorf("status %d for the ETag %q", r.StatusCode, tag)
	}
	s.wantPages("/", "/about", "/long", "/nice", "/shop")
	s.stay("/", "/about", "/long", "/nice", "/shop")
	app.neverAsked(t, "/tags", "/wiki")
}
