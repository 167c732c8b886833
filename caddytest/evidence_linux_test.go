package caddytest

import "testing"

// TestDuplicates needs names that differ in case alone.
func TestDuplicates(t *testing.T) {
	same := func(head string) string { return whole(head, "the very same text") }
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"the first":     {map[string]string{"About.html": same(""), "about.html": same("")}, []string{"/About.html"}},
		"the linked":    {map[string]string{"About.html": same(""), "about.html": same(""), "x.html": whole("", `<a href="/about.html">about</a>`)}, []string{"/about.html", "/x.html"}},
		"the canonical": {map[string]string{"About.html": same(""), "about.html": same(""), "ABOUT.html": same(`<link rel="canonical" href="/about.html">`), "x.html": whole("", `<a href="/About.html">about</a>`)}, []string{"/about.html", "/x.html"}},
		"name and folder": {map[string]string{"a.html": same(""), "a/index.html": same(""), "b.html": whole("", "b"), "b/index.html": whole("", "b"), "x.html": whole("", `<a href="/b/">b</a>`)},
			[]string{"/a.html", "/b/", "/x.html"}},
		"not with another text":            {map[string]string{"About.html": same(""), "about.html": whole("", "another text")}, []string{"/About.html", "/about.html"}},
		"not with another name":            {map[string]string{"a.html": same(""), "b.html": same(""), "c/d.html": same("")}, []string{"/a.html", "/b.html", "/c/d.html"}},
		"not of one that is not listed":    {map[string]string{"About.html": same(`<meta name=robots content=noindex>`), "about.html": same("")}, []string{"/about.html"}},
		"a canonical in another case":      {map[string]string{"about.html": whole(`<link rel="canonical" href="/About.html">`, "text")}, []string{"/about.html"}},
		"no text is not the very same one": {map[string]string{"About.html": "<!doctype html><img src=a.png>", "about.html": "<!doctype html><img src=b.png>"}, []string{"/About.html", "/about.html"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, local+" {\n root * {dir}\n sitemap\n file_server\n}", test.files)
			s.wantLocs(local+"/sitemap.xml", below(local, test.want)...)
		})
	}
}
