package sitemap

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
)

// given are sections as in a Caddyfile: a name and its patterns.
func given(lines ...string) (all []Section) {
	for _, line := range lines {
		words := strings.Fields(line)
		all = append(all, Section{Name: words[0], Match: words[1:]})
	}
	return all
}

func compiledSections(t testing.TB, lines ...string) sections {
	t.Helper()
	c := new(option.Checker)
	all := compileSections(c, given(lines...))
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	return all
}

func TestSectionOf(t *testing.T) {
	for name, test := range map[string]struct {
		sections []string
		want     string // by path
	}{
		"none":                  {nil, "/= /a="},
		"a folder":              {[]string{"blog /blog/*"}, "/blog/=blog /blog/a=blog /blog= /blogs/a= /a/blog/b="},
		"a query plays no part": {[]string{"blog /blog/*"}, "/blog/a?b=/c=blog /a?/blog/="},
		"the first wins":        {[]string{"a /x/a/*", "x /x/*", "b /x/b/*"}, "/x/a/1=a /x/b/1=x /y="},
		"several patterns":      {[]string{"a /x/* /y /z/*.html"}, "/x/1=a /y=a /y/1= /z/1.html=a /z/1.txt="},
		"one of many":           {[]string{"a /a/*", "b /b/*", "c /c/*", "d /d/*", "e /a/* /e/*"}, "/a/1=a /b/1=b /c/1=c /d/1=d /e/1=e /f/1="},
		"everything else":       {[]string{"a /a/*", "b /*"}, "/a/1=a /=b /b=b"},
	} {
		all := compiledSections(t, test.sections...)
		for _, pair := range strings.Fields(test.want) {
			at := strings.LastIndexByte(pair, '=')
			path, want := pair[:at], pair[at+1:]
			if got := all.of(path); got != want {
				t.Errorf("%s: %s is in '%s', want '%s'", name, path, got, want)
			}
		}
	}
}

// TestUnknownSections: a name that the configuration does not know is the next handler's. It makes no site, and waits for nothing.
func TestUnknownSections(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.Sections, h.IndexNow = given("blog /blog/*"), new(IndexNow) })
	b.lists("/", "/blog/a", "/blog/b")
	reaches := func(target string) bool {
		t.Helper()
		header, _, err := b.get(target)
		if err != nil {
			t.Fatal(err)
		}
		return header.Get("X-Next") != ""
	}
	const made = "http://named.example/sitemap-made-up.xml"
	if !reaches(made) || len(b.app.sites) != 0 {
		t.Error("a name that is not known does not reach the next handler, or makes a site")
	}
	s := b.site("named.example")
	if !reaches(made) {
		t.Error("it waits for the first refresh")
	}
	b.refresh(s)
	for _, target := range []string{"/sitemap-blog.xml", "/sitemap-blog.txt", "/sitemap-blog.xml.gz", "/sitemap-000000000000.xml"} {
		if reaches("http://named.example" + target) {
			t.Errorf("%s reaches the next handler", target)
		}
	}
	for _, target := range []string{"/sitemap-news.xml", "/sitemap-blog-000000000000.xml", "/sitemap-blog.html"} {
		if !reaches("http://named.example" + target) {
			t.Errorf("%s does not reach the next handler", target)
		}
	}
	b.handler.settings.sections = compiledSections(t, "news /blog/*")
	b.handler.settings.digest++
	b.refresh(s)
	for _, target := range []string{"/sitemap-blog.xml", "/sitemap-blog.txt"} {
		if !reaches("http://named.example" + target) {
			t.Errorf("%s does not reach the next handler, although its section is gone", target)
		}
	}
}

// TestOwnSitemapsOfSections: what the application lists at the path of a section, which ours hides, is merged.
func TestOwnSitemapsOfSections(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.Sections = given("blog /blog/*") })
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		upstream(r)
		if r.URL.Path != "/sitemap-blog.xml" {
			w.WriteHeader(http.StatusNotFound)
			return nil
		}
		_, _ = fmt.Fprint(w, "/blog/a\n")
		return nil
	}
	s := b.site("named.example")
	if got, err := b.readOwn(s, probeResult{}, b.clock); got != "/blog/a" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestExplainSections: an explanation names the section and its document by what is served, also where the configuration has
// other sections meanwhile.
func TestExplainSections(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.Sections = given("blog /blog/*", "docs /docs/*", "none /none/*") })
	b.lists("/", "/blog/a", "/blog/b", "/docs/a")
	s := b.site("named.example")
	b.refresh(s)
	check := func(want map[string]string) {
		t.Helper()
		for path, want := range want {
			x, err := s.explain(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if got := x.Section + " " + strings.TrimPrefix(x.Document, s.origin); got != want || x.Listed != strings.Contains(want, "/") {
				t.Errorf("%s: got %q, listed %t, want %q", path, got, x.Listed, want)
			}
		}
	}
	before := map[string]string{
		"/":       " /sitemap-000000000000.xml",
		"/blog/a": "blog /sitemap-blog.xml",
		"/docs/a": "docs /sitemap-docs.xml",
		"/blog/c": "blog ",
		"/none/a": "none ",
		"/x":      " ",
	}
	check(before)
	b.handler.settings.sections = compiledSections(t, "all *")
	b.handler.settings.digest++
	check(before)
	b.refresh(s)
	check(map[string]string{"/": "all /sitemap-all.xml", "/docs/a": "all /sitemap-all.xml", "/x": "all "})
}

// TestStatusOfSections: those without pages are there, too, in the order of the configuration.
func TestStatusOfSections(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.Sections = given("docs /docs/*", "none /none/*", "blog /blog/*") })
	s := b.site("named.example")
	if got := s.status().Sections; got != nil {
		t.Errorf("before the first refresh: got %+v", got)
	}
	b.lists("/", "/blog/a", "/blog/b", "/docs/a")
	b.refresh(s)
	want := []sectionStatus{
		{document.Section{Name: "docs", Pages: 1, Shards: 1}, s.origin + "/sitemap-docs.xml"},
		{document.Section{Name: "none"}, ""},
		{document.Section{Name: "blog", Pages: 2, Shards: 1}, s.origin + "/sitemap-blog.xml"},
	}
	if got := s.status().Sections; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
