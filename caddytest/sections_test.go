package caddytest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/caddytest/sitemaps"
)

const sectioned = `http://localhost:{port} {
	root * {dir}/a
	sitemap {
		refresh 1h
		shard_urls 20
		{sections}
	}
	file_server
}
`

// sectionedBy is a Caddyfile with these sections.
func sectionedBy(sections ...string) string {
	return strings.Replace(sectioned, "{sections}", strings.Join(sections, "\n\t\t"), 1)
}

// manual are pages of three folders: a blog of fifty, two of documentation, and the front page.
func manual() map[string]string {
	files := map[string]string{
		"a/index.html":        harness.Whole("", "front"),
		"a/docs/install.html": harness.Whole("", "install"),
		"a/docs/use.html":     harness.Whole("", "use"),
	}
	for i := range 50 {
		files["a/blog/"+harness.DayOf(i).Format("2006-01-02")+".html"] = harness.Whole("", harness.DayOf(i).String())
	}
	return files
}

// children are the documents that an index names, as paths.
func children(s *server, path string) (paths []string) {
	s.T.Helper()
	r := s.Get(harness.Local + path)
	d, err := sitemaps.Read(r.Text)
	if err != nil {
		s.T.Fatalf("%s: status %d, %v", path, r.StatusCode, err)
	}
	for _, child := range d.Children {
		paths = append(paths, strings.TrimPrefix(child.Loc, s.Expand(harness.Local)))
	}
	return paths
}

// TestSections: sections have sitemaps of their own, in all forms; a reload with other ones shows them, and fetches no page;
// old names are the next handler's.
func TestSections(t *testing.T) {
	s := start(t, sectionedBy("section blog /blog/*", "section docs /docs/*", "section none /none/*"), manual())
	s.Eventually(func() bool { return len(s.Locs(harness.Local+"/sitemap.xml")) == 53 }, s.SitemapLog)

	all := children(s, "/sitemap.xml")
	shards := children(s, "/sitemap-blog.xml")
	if len(shards) < 3 || len(all) != len(shards)+2 || all[0] != "/sitemap-000000000000.xml" || all[len(all)-1] != "/sitemap-docs.xml" {
		t.Fatalf("the index has %q, that of the blog %q", all, shards)
	}
	for path, want := range map[string]int{
		"/sitemap-blog.xml": 50, "/sitemap-docs.xml": 2, "/sitemap-000000000000.xml": 1,
	} {
		if got := s.Locs(harness.Local + path); len(got) != want {
			t.Errorf("%s lists %q", path, got)
		}
	}
	for path, want := range map[string]string{
		"/sitemap-docs.txt":            "text/plain; charset=utf-8",
		"/sitemap-docs.xml.gz":         "application/gzip",
		"/sitemap-blog.xml.gz":         "application/gzip",
		"/sitemap-docs.xml":            "application/xml; charset=utf-8",
		shards[1]:                      "application/xml; charset=utf-8",
		"/sitemap-blog.txt":            "", // an index has no list
		"/sitemap-none.xml":            "",
		"/sitemap-made-up.xml":         "",
		"/sitemap-docs.html":           "",
		"/sitemap-news.xml":            "",
		"/sitemap-blog-0123456789.xml": "",
	} {
		r := s.Get(harness.Local + path)
		if isThere := r.StatusCode == http.StatusOK; isThere != (want != "") || isThere && ""+r.Header.Get("Content-Type") != want {
			t.Errorf("%s: status %d, %s", path, r.StatusCode, r.Header.Get("Content-Type"))
		}
	}

	renamed := sectionedBy("section news /blog/*", "section docs /docs/*")
	isRenamed := func(t *testing.T) {
		t.Helper()
		s.Eventually(func() bool { return s.Get(harness.Local+"/sitemap-news.xml").StatusCode == http.StatusOK }, s.SitemapLog)
		for _, old := range []string{"/sitemap-blog.xml", shards[0]} {
			s.WantStatus(harness.Local+old, http.StatusNotFound)
		}
		if n := len(s.Locs(harness.Local + "/sitemap.xml")); n != 53 {
			t.Errorf("%d pages are left", n)
		}
	}
	s.Reload(renamed)
	isRenamed(t)
	s.Restart(renamed)
	isRenamed(t)
	// What the site has itself comes first, where the configuration does not name it.
	s.Put("a/sitemap-blog.xml", "<urlset/>", harness.DayOf(1))
	if got := s.Get(harness.Local + "/sitemap-blog.xml"); got.Text != "<urlset/>" {
		t.Errorf("got %s", got.Text)
	}
	s.Reload(sectionedBy("section blog /blog/*"))
	s.Eventually(func() bool { return strings.Contains(s.Get(harness.Local+"/sitemap-blog.xml").Text, "<sitemapindex") }, s.SitemapLog)
}

// TestSectionsElsewhere: the documents of sections lie beside the sitemap, and check finds nothing wrong with them.
func TestSectionsElsewhere(t *testing.T) {
	files := map[string]string{"a/maps/blog/a.html": harness.Whole("", "a"), "a/maps/b.html": harness.Whole("", "b")}
	s := start(t, sectionedBy("path /maps/site.xml", "schema 0.84", "section blog *"), files)
	s.WantLocs(harness.Local+"/maps/site-blog.xml", harness.Local+"/maps/b.html", harness.Local+"/maps/blog/a.html")
	if got := children(s, "/maps/site.xml"); len(got) != 1 || got[0] != "/maps/site-blog.xml" {
		t.Errorf("got %q", got)
	}
	if r := s.Get(harness.Local + "/sitemap-blog.xml"); r.StatusCode != http.StatusNotFound {
		t.Errorf("got status %d", r.StatusCode)
	}
}
