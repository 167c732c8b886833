package caddytest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestWhatSitesHave: what real sites and applications were found to have, and is listed.
func TestWhatSitesHave(t *testing.T) {
	const origin = "http://localhost:{port}"
	page := linking
	for name, test := range map[string]struct {
		sources string
		files   map[string]string
		want    []string
	}{
		"drafts that link to each other": {
			"", map[string]string{
				"site/index.html": page("home", "/a.html"), "site/a.html": page("a", "/_shown/a.html"),
				"site/_shown/a.html": page("shown", "/_shown/b.html"), "site/_shown/b.html": page("also shown", "/"),
				"site/_drafts/a.html": page("draft a", "/_drafts/b.html"), "site/_drafts/b.html": page("draft b", "/_drafts/a.html", "/_drafts/c.html"), "site/_drafts/c.html": page("draft c"),
			},
			[]string{"/", "/_shown/a.html", "/_shown/b.html", "/a.html"},
		},
		"a front page of frames": {
			"links", map[string]string{
				"site/index.html": `<html><head><title>home</title></head><frameset cols="20%,80%"><frame src="menu.html"><frame src="start.html"></frameset></html>`,
				"site/menu.html":  page("menu", "/a.html"), "site/start.html": page("start"), "site/a.html": page("a") + `<iframe src="/b.html"></iframe>`, "site/b.html": page("b"),
			},
			[]string{"/", "/a.html", "/b.html", "/menu.html", "/start.html"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, static("", test.sources), test.files)
			s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, test.want)...)
			s.Quietly(1)
			s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, test.want)...)
			if lines := s.LogLines(`"level":"warn"`, "http.handlers.sitemap"); len(lines) > 0 {
				t.Errorf("the log warns: %s", lines)
			}
			if test.sources == "links" && len(s.LogLines("some listed pages have no incoming links")) > 0 {
				t.Error("a page is taken for one without incoming links")
			}
			if text := s.Get(origin + "/robots.txt").Text; strings.Count(text, "Sitemap:") != 1 {
				t.Errorf("robots.txt is %q", text)
			}
		})
	}
}

// TestOwnSitemaps: what an application's own sitemaps name is merged, whether they are at
// the sitemap's own path or named in robots.txt.
func TestOwnSitemaps(t *testing.T) {
	s := prepare(t, nil)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write([]byte("<urlset><url><loc>" + s.Expand("http://localhost:{port}") + "/deep/b</loc></url></urlset>"))
	_ = w.Close()
	origin := s.Expand("http://localhost:{port}")
	pages := map[string]string{
		"/": "home", "/deep/a": `a <a href="/deep/d">d</a>`, "/deep/b": "b", "/deep/c": "c", "/deep/d": "d",
		"/sitemap.xml": "<sitemapindex><sitemap><loc>" + origin + "/one.xml</loc></sitemap><sitemap><loc>" + origin + "/two.xml.gz</loc></sitemap></sitemapindex>",
		"/one.xml":     "<urlset><url><loc>" + origin + "/deep/a</loc><lastmod>2021-02-03</lastmod></url></urlset>",
		"/two.xml.gz":  z.String(),
		"/news.txt":    origin + "/deep/c\nhttps://other.example/d\n",
		"/robots.txt":  "User-agent: *\nDisallow:\nSitemap: " + origin + "/news.txt\n",
	}
	s.LoadApp("http://localhost:{port} {\n sitemap {\n refresh 1s\n links\n crawl {\n rate 500/s\n concurrency 4\n }\n }\n reverse_proxy {app}\n}", func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
		case r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/deep/"):
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!doctype html><title>x</title><p>the page %s", body)
		default:
			w.Header().Set("Content-Type", http.DetectContentType([]byte(body)))
			_, _ = w.Write([]byte(body))
		}
	})
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, []string{"/", "/deep/a", "/deep/b", "/deep/c", "/deep/d"})...)
	s.Eventually(func() bool { return strings.HasPrefix(s.Dates(harness.Local)["/deep/a"], "2021-02-03") },
		func() string { return fmt.Sprint("/deep/a has no date: ", s.Dates(harness.Local)) })
	s.Quietly(2)
	s.Logged("own sitemap", `"count":1`, "https://other.example/d")
	// What is served is ours, though the application has one at the same path.
	if text := s.Get(harness.Local + "/sitemap.xml").Text; !strings.Contains(text, "/deep/d") || strings.Contains(text, "/one.xml") {
		t.Errorf("got %s", text)
	}
	if text := s.Get(harness.Local + "/robots.txt").Text; !strings.Contains(text, "/news.txt") || !strings.Contains(text, s.Expand("Sitemap: "+harness.Local+"/sitemap.xml")) {
		t.Errorf("robots.txt is %q", text)
	}
}
