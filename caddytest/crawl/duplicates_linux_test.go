package crawl

import (
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestDuplicates needs names that differ in case alone.
func TestDuplicates(t *testing.T) {
	same := func(head string) string { return harness.Whole(head, "the very same text") }
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"the first":     {map[string]string{"About.html": same(""), "about.html": same("")}, []string{"/About.html"}},
		"the linked":    {map[string]string{"About.html": same(""), "about.html": same(""), "x.html": harness.Whole("", `<a href="/about.html">about</a>`)}, []string{"/about.html", "/x.html"}},
		"the canonical": {map[string]string{"About.html": same(""), "about.html": same(""), "ABOUT.html": same(`<link rel="canonical" href="/about.html">`), "x.html": harness.Whole("", `<a href="/About.html">about</a>`)}, []string{"/about.html", "/x.html"}},
		"name and folder": {map[string]string{"a.html": same(""), "a/index.html": same(""), "b.html": harness.Whole("", "b"), "b/index.html": harness.Whole("", "b"), "x.html": harness.Whole("", `<a href="/b/">b</a>`)},
			[]string{"/a.html", "/b/", "/x.html"}},
		"not with another text":            {map[string]string{"About.html": same(""), "about.html": harness.Whole("", "another text")}, []string{"/About.html", "/about.html"}},
		"not with another name":            {map[string]string{"a.html": same(""), "b.html": same(""), "c/d.html": same("")}, []string{"/a.html", "/b.html", "/c/d.html"}},
		"not of one that is not listed":    {map[string]string{"About.html": same(`<meta name=robots content=noindex>`), "about.html": same("")}, []string{"/about.html"}},
		"a canonical in another case":      {map[string]string{"about.html": harness.Whole(`<link rel="canonical" href="/About.html">`, "text")}, []string{"/about.html"}},
		"no text is not the very same one": {map[string]string{"About.html": "<!doctype html><img src=a.png>", "about.html": "<!doctype html><img src=b.png>"}, []string{"/About.html", "/about.html"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, harness.Local+" {\n root * {dir}\n sitemap\n file_server\n}", test.files)
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, test.want)...)
		})
	}
}
