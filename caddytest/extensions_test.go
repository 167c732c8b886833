package caddytest

import (
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// entry is what a sitemap says of a page with its extensions, as another reader of XML
// sees it.
type entry struct {
	Loc        string      `xml:"http://www.sitemaps.org/schemas/sitemap/0.9 loc"`
	Alternates []alternate `xml:"http://www.w3.org/1999/xhtml link"`
	Images     []string    `xml:"http://www.google.com/schemas/sitemap-image/1.1 image>loc"`
}

type alternate struct {
	Rel  string `xml:"rel,attr"`
	Lang string `xml:"hreflang,attr"`
	URL  string `xml:"href,attr"`
}

// entries are those of a document, and what is said of languages and images of each,
// by path.
func (s *server) entries(d document) (languages map[string]map[string]string, images map[string][]string) {
	s.T.Helper()
	var parsed struct {
		URLs []entry `xml:"http://www.sitemaps.org/schemas/sitemap/0.9 url"`
	}
	harness.Must(s.T, xml.Unmarshal([]byte(d.Text), &parsed))
	if len(parsed.URLs) != len(d.locs) {
		s.T.Errorf("%s: %d entries, want %d", d.url, len(parsed.URLs), len(d.locs))
	}
	origin := s.Expand(harness.Local)
	languages, images = make(map[string]map[string]string), make(map[string][]string)
	for _, e := range parsed.URLs {
		path := strings.TrimPrefix(e.Loc, origin)
		for _, a := range e.Alternates {
			if a.Rel != "alternate" {
				s.T.Errorf("%s: got rel %q", path, a.Rel)
			}
			if languages[path] == nil {
				languages[path] = make(map[string]string)
			}
			languages[path][a.Lang] = strings.TrimPrefix(a.URL, origin)
		}
		for _, image := range e.Images {
			images[path] = append(images[path], strings.TrimPrefix(image, origin))
		}
	}
	return languages, images
}

// speaking is a page with its versions in other languages: pairs of language and URL.
func speaking(text string, pairs ...string) string {
	var head strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&head, `<link rel="alternate" hreflang="%s" href="%s">`, pairs[i], pairs[i+1])
	}
	return harness.Whole(head.String(), text)
}

func TestExtensions(t *testing.T) {
	pictures := `<meta property="og:image" content="/og.png?a=1&amp;b='2'">`
	body := `<nav><img src="/menu.png"></nav><main><img src="one.png" alt="one"><img src='https://cdn.example.net/two.png'><img src="one.png#again"><img src="gone.png"><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="></main><footer><img src="/foot.png"></footer>`
	complete := []string{"en", "/en/", "de", "http://localhost:{port}/de/", "x-default", "/"}
	backwards := []string{"x-default", "/", "de", "/de/", "en", "../en/"}
	files := map[string]string{
		"index.html":    speaking("home", complete...),
		"en/index.html": speaking("english", complete...),
		"de/index.html": speaking("deutsch", backwards...),
		// One of a set is missing, at first.
		"fr/b.html":           speaking("b français", "fr", "/fr/b.html", "it", "/it/b.html"),
		"pictures/index.html": "<!doctype html><title>pictures</title>" + pictures + body,
	}
	// One image of the page is missing.
	others := map[string]string{"og.png": "an image", "pictures/one.png": "an image", "menu.png": "an image"}
	wantLanguages := make(map[string]map[string]string)
	for _, path := range []string{"/", "/de/", "/en/"} {
		wantLanguages[path] = map[string]string{"en": "/en/", "de": "/de/", "x-default": "/"}
	}
	wantLanguages["/fr/b.html"] = map[string]string{"fr": "/fr/b.html"}
	wantImages := map[string][]string{"/pictures/": {"/og.png?a=1&b='2'", "/pictures/one.png", "https://cdn.example.net/two.png"}}
	s := prepare(t, nil)
	for name, content := range files {
		s.Write(map[string]string{"site/" + name: s.Expand(content)})
	}
	for name, content := range others {
		s.Write(map[string]string{"site/" + name: content})
	}
	caddyfile := stateIn("{dir}/state", "extensions alternates images")
	countFetches(t)
	s.Load(caddyfile)
	s.Crawled()
	d := s.document(harness.Local + "/sitemap.xml")
	if len(d.locs) != len(files) {
		t.Errorf("got %q", d.locs)
	}
	languages, images := s.entries(d)
	if !maps.EqualFunc(languages, wantLanguages, maps.Equal) {
		t.Errorf("got the languages %v, want %v", languages, wantLanguages)
	}
	if !maps.EqualFunc(images, wantImages, slices.Equal) {
		t.Errorf("got the images %v, want %v", images, wantImages)
	}
	s.WantLeftOut(map[string]int{"alternates left out": 1, "not included": 3})
	if lines := s.LogLines(`"level":"warn"`, "sitemap"); len(lines) > 0 {
		t.Errorf("the log warns: %s", lines)
	}
	s.Restart(caddyfile)
	s.Quietly(1)
	if after := s.document(harness.Local + "/sitemap.xml"); after.Text != d.Text || after.Header.Get("ETag") != d.Header.Get("ETag") {
		t.Errorf("after a restart, it is\n%s\nit was\n%s", after.Text, d.Text)
	}
	// The missing half of a set comes, and with it the whole.
	s.Write(map[string]string{"site/it/b.html": speaking("b italiano", "fr", "/fr/b.html", "it", "/it/b.html")})
	s.WantLeftOut(map[string]int{"not included": 3})
	languages, _ = s.entries(s.document(harness.Local + "/sitemap.xml"))
	for _, path := range []string{"/fr/b.html", "/it/b.html"} {
		if want := map[string]string{"fr": "/fr/b.html", "it": "/it/b.html"}; !maps.Equal(languages[path], want) {
			t.Errorf("%s: got %v, want %v", path, languages[path], want)
		}
	}
}
