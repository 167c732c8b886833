package caddytest

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// newsEntry is an entry of a news sitemap.
type newsEntry struct {
	Loc      string `xml:"loc"`
	Name     string `xml:"news>publication>name"`
	Language string `xml:"news>publication>language"`
	Date     string `xml:"news>publication_date"`
	Title    string `xml:"news>title"`
}

// news returns the entries of a news sitemap; nil: there is none.
func (s *server) news(url string) []newsEntry {
	s.T.Helper()
	r := s.Get(url)
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "application/xml; charset=utf-8" {
		return nil
	}
	var set struct {
		Entries []newsEntry `xml:"http://www.sitemaps.org/schemas/sitemap/0.9 url"`
	}
	if err := xml.Unmarshal([]byte(r.Text), &set); err != nil {
		s.T.Fatalf("%v in\n%s", err, r.Text)
	}
	return set.Entries
}

// articleOf is a file of an article, with further fields of JSON-LD.
func articleOf(language, title, published, fields string) string {
	return fmt.Sprintf(`<!doctype html><html%s><title>%s</title><script type="application/ld+json">{"@context":"https://schema.org","@type":"NewsArticle","datePublished":"%s"%s}</script><p>%[2]s`,
		language, title, published, fields)
}

// TestNews: a site of articles of different ages, declared in different ways and in different time zones, with a file of the
// same name and Caddy's templates around.
func TestNews(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	ago := func(d time.Duration) time.Time { return now.Add(-d).UTC() }
	at := func(d time.Duration) string { return ago(d).Format(time.RFC3339) }
	tokyo := time.FixedZone("", 9*60*60)
	yesterday := ago(24 * time.Hour).Format(time.DateOnly)
	files := map[string]string{
		"site/index.html":          `<!doctype html><html lang=zh-TW><title>Example :: home</title>`,
		"site/news/new.html":       articleOf(" lang=en-GB", "New - The Example Times", at(time.Minute), ""),
		"site/news/tokyo.html":     articleOf(" lang=ja", "x", ago(2*time.Hour).In(tokyo).Format(time.RFC3339), `,"headline":"東京 & <b>{{env \"HOME\"}}</b> | The Example Times"`),
		"site/news/yesterday.html": articleOf("", "שלום 👩‍👧 – Example :: home", yesterday, ""),
		"site/news/meta.html": `<!doctype html><html lang=de><title>Long</title><meta property=article:published_time content="` + at(30*time.Hour) + `">` +
			`<meta property=og:title content="` + strings.Repeat("é", 10_000) + `"><p lang=fr>Two languages`,
		"site/news/old.html":      articleOf(" lang=en", "Old", at(72*time.Hour), ""),
		"site/news/tomorrow.html": articleOf(" lang=en", "Tomorrow", at(-23*time.Hour), ""),
		"site/news/index.html":    `<!doctype html><html lang=en><title>News</title>`,
		"site/about.html":         articleOf(" lang=en", "Elsewhere", at(time.Minute), ""),
		"site/sitemap-news.xml":   "its own",
	}
	const caddyfile = `{
		sitemap {
			state {dir}/state
		}
	}
	` + harness.Local + ` {
		root {dir}/site
		route {
			templates {
				mime application/xml
			}
			sitemap {
				OPTION
			}
			file_server
		}
	}`
	const url = harness.Local + "/sitemap-news.xml"
	s := prepare(t, files)
	with := strings.Replace(caddyfile, "OPTION", `news "The Example Times" /news/*`, 1)
	s.Load(with)
	s.Crawled()
	const name = "The Example Times"
	path := func(name string) string { return s.Expand(harness.Local) + "/news/" + name + ".html" }
	want := []newsEntry{
		{path("new"), name, "en", at(time.Minute), "New"},
		{path("tokyo"), name, "ja", at(2 * time.Hour), `東京 & <b>{{env "HOME"}}</b>`},
		{path("yesterday"), name, "zh-tw", yesterday, "שלום 👩‍👧"},
		{path("meta"), name, "de", at(30 * time.Hour), strings.Repeat("é", 199) + "…"},
	}
	// That of a day is ordered by its beginning.
	published := func(e newsEntry) string { return e.Date + "T00:00:00Z"[min(len(e.Date)-10, 10):] }
	slices.SortStableFunc(want, func(a, b newsEntry) int { return strings.Compare(published(b), published(a)) })
	check := func(when string) {
		t.Helper()
		if got := s.news(url); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%q\nwant\n%q", when, got, want)
		}
	}
	check("at first")
	r := s.Get(url)
	if !strings.Contains(r.Text, `href="sitemap.css"?>`) || r.Header.Get("X-Robots-Tag") != "noindex" {
		t.Errorf("got %v and\n%s", r.Header, r.Text)
	}
	if packed := s.Get(url + ".gz"); harness.Gunzip(t, packed.Text) != r.Text {
		t.Errorf("compressed, got status %d", packed.StatusCode)
	}
	s.WantStatus(harness.Local+"/sitemap-news.txt", http.StatusNotFound)
	line := s.Expand("\nSitemap: " + url + "\n")
	if got := s.Get(harness.Local + "/robots.txt").Text; !strings.Contains(got, line) {
		t.Errorf("robots.txt is %q", got)
	}
	if got := s.Get(harness.Local + "/sitemap.xml").Text; strings.Contains(got, "news:news") || !strings.Contains(got, "/news/old.html<") {
		t.Errorf("the sitemap is %s", got)
	}

	s.Restart(with)
	check("after a restart")

	s.Write(map[string]string{"site/maps/a.html": articleOf(" lang=en", "A", at(time.Hour), "")})
	s.Load(strings.Replace(caddyfile, "OPTION", "path /maps/site.xml\nnews Times /maps/*", 1))
	s.Eventually(func() bool { return len(s.news(harness.Local+"/maps/site-news.xml")) == 1 }, s.SitemapLog)
	if got := s.Get(url).Text; got != "its own" {
		t.Errorf("with another path: got %q", got)
	}
	s.Load(strings.Replace(caddyfile, "OPTION", "", 1))
	s.Eventually(func() bool {
		return s.Get(url).Text == "its own" && !strings.Contains(s.Get(harness.Local+"/robots.txt").Text, "news")
	}, s.SitemapLog)
}
