package document

import (
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// TestStylesheet looks for what must never be in it. How it looks, only a browser tells.
func TestStylesheet(t *testing.T) {
	css := bodyOf(t, Stylesheet, beside, pagesOf("/")...)
	if len(css) > 5000 || strings.Count(css, "{") != strings.Count(css, "}") {
		t.Errorf("got %d bytes", len(css))
	}
	for _, s := range []string{"url(", "@import", "</", ":has("} { // :has takes seconds for 50,000 rows
		if strings.Contains(css, s) {
			t.Errorf("it has %s", s)
		}
	}
}

// TestStylesheetColumns: there is no column of what no page has, and the way to the page for people if there is one.
func TestStylesheetColumns(t *testing.T) {
	const (
		dates  = `--lastmod: 11.5ch; --dates: " Last\2005 change";` + "\n"
		people = `--people: "\00000aFor people: https://example.com/sitemap.html";` + "\n"
	)
	for _, test := range []struct {
		name  string
		pages []page.Page
		html  bool
		want  string
	}{
		{"paths", pagesOf("/"), false, ""},
		{"a date that is written in no form", []page.Page{{Path: "/", LastMod: 1 << 40}}, false, ""},
		{"all", []page.Page{{Path: "/", LastMod: 1, ChangeFreq: 1}, {Path: "/a", Priority: 1}}, false,
			dates + "--changefreq: 6rem;\n--priority: 7rem;\n"},
		{"pages for people", pagesOf("/"), true, people},
	} {
		o := Options{Beside: Beside{Stylesheet: true}}
		if test.html {
			o.People = new(People)
		}
		css := bodyOf(t, Stylesheet, o, test.pages...)
		want := "\n:root {\n" + test.want + "}\n"
		if !strings.HasSuffix(css, want) {
			t.Errorf("%s: got %s, want %s", test.name, css[strings.LastIndex(css, ":root"):], want)
		}
	}
}
