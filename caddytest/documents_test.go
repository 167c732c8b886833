package caddytest

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	sitemap "github.com/seed3295b519/caddy-sitemap"
	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/caddytest/sitemaps"
)

// documentsSite is a site whose pages are given under the name, and these settings.
// Nothing serves the pages, so they are listed by name.
func documentsSite(name, settings string) string {
	return `
http://localhost:{port} {
	sitemap {
		given ` + name + `
		crawl off
		` + settings + `
	}
}`
}

// fetchedSite is documentsSite where all pages are there, and fetched.
func fetchedSite(name, settings string) string {
	return `
http://localhost:{port} {
	sitemap {
		given ` + name + `
		` + settings + `
	}
	` + aPage + `
}`
}

// aPage is what answers everything with a whole page.
const aPage = `header Content-Type text/html
	respond "<!doctype html><title>a page</title><p>The text of a page."`

// pageList is a list of pages that a test changes.
type pageList struct {
	mu    sync.Mutex
	pages []sitemap.Page
}

func (l *pageList) set(pages []sitemap.Page) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages = pages
}

func (l *pageList) yield(_ context.Context, yield func(sitemap.Page) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.pages {
		if err := yield(p); err != nil {
			return err
		}
	}
	return nil
}

// pagesFrom are n pages as paged yields them, from a number on.
func pagesFrom(from, n int) []sitemap.Page {
	pages := make([]sitemap.Page, n)
	for i := range pages {
		pages[i].Path = fmt.Sprintf("/p/%07d.html", from+i)
	}
	return pages
}

// document is a document that was read, and what was said of it.
type document struct {
	harness.Response
	url      string
	locs     []string
	children []sitemaps.Entry
}

// document requests one, which must be there and valid.
func (s *server) document(url string, headers ...string) document {
	s.T.Helper()
	d := document{Response: s.Get(url, headers...), url: url}
	if d.StatusCode != http.StatusOK {
		s.T.Fatalf("%s: got status %d\n%s", s.Expand(url), d.StatusCode, s.SitemapLog())
	}
	read, err := sitemaps.Read(d.Text)
	if err != nil {
		s.T.Fatalf("%s: %v", s.Expand(url), err)
	}
	d.locs, d.children = sitemaps.Locs(read.Pages), read.Children
	return d
}

// shards requests all shards of the site's index.
func (s *server) shards() []document {
	s.T.Helper()
	var all []document
	for _, child := range s.document("http://localhost:{port}/sitemap.xml").children {
		all = append(all, s.document(child.Loc))
	}
	return all
}

// TestDocumentsMostPages is one page more than a document may list.
func TestDocumentsMostPages(t *testing.T) {
	const pages = 50_001
	give(t, "most", paged(pages))
	s := start(t, documentsSite("most", ""), nil)
	var all []string
	name := regexp.MustCompile("^" + s.Expand("http://localhost:{port}") + "/sitemap-[0-9a-f]{12}.xml$")
	for i, d := range s.shards() {
		all = append(all, d.locs...)
		if !name.MatchString(d.url) || strings.Contains(d.url, "-000000000000.xml") != (i == 0) {
			t.Errorf("shard %d is %s", i, d.url)
		}
	}
	if len(all) != pages || !slices.IsSorted(all) || len(slices.Compact(all)) != pages {
		t.Errorf("%d pages are listed, want %d, each once", len(all), pages)
	}
}

// TestDocumentsCarriedOver: one page more changes one shard, and the others stay as they are.
func TestDocumentsCarriedOver(t *testing.T) {
	list := &pageList{pages: pagesFrom(0, 3000)}
	give(t, "carried", list.yield)
	s := start(t, fetchedSite("carried", "shard_urls 100\n\t\trefresh 1s"), nil)
	said := func(d document) string {
		return d.url + d.Header.Get("Etag") + d.Header.Get("Last-Modified") + fmt.Sprint(len(d.Text))
	}
	s.Crawled()
	before, index := s.shards(), s.document("http://localhost:{port}/sitemap.xml")
	list.set(slices.Insert(pagesFrom(0, 3000), 1000, sitemap.Page{Path: list.pages[999].Path + "x"}))
	s.Crawled()
	var changed []string
	for i, d := range s.shards() {
		if said(d) != said(before[i]) {
			changed = append(changed, d.url)
			continue
		}
		for _, condition := range []string{"If-None-Match: " + before[i].Header.Get("Etag"), "If-Modified-Since: " + before[i].Header.Get("Last-Modified")} {
			if r := s.Get(d.url, condition); r.StatusCode != http.StatusNotModified {
				t.Errorf("%s, %s: got status %d", d.url, condition, r.StatusCode)
			}
		}
	}
	if now := s.document("http://localhost:{port}/sitemap.xml"); len(changed) != 1 || said(now) != said(index) {
		t.Errorf("changed: %q; the index is %s, was %s", changed, said(now), said(index))
	}
}

// TestDocumentsRetired: the names of shards that there are no longer lead to the document
// that has their pages.
func TestDocumentsRetired(t *testing.T) {
	const index = "http://localhost:{port}/sitemap.xml"
	list := &pageList{pages: pagesFrom(0, 190)}
	give(t, "retired", list.yield)
	s := start(t, fetchedSite("retired", "shard_urls 100\n\t\trefresh 1s"), nil)
	s.Crawled()
	old := s.shards()
	becomes := func(root string) {
		t.Helper()
		s.Eventually(func() bool { return strings.Contains(s.Get(index).Text, root) }, func() string { return "there is no " + root + "\n" + s.SitemapLog() })
		s.Crawled()
	}
	list.set(pagesFrom(0, 100)) // not less than half, which would have to be confirmed
	becomes("<urlset")
	want := s.document(index)
	for _, d := range old {
		if got := s.document(d.url); got.Text != want.Text || got.Header.Get("Etag") != want.Header.Get("Etag") {
			t.Errorf("%s has %d pages, want all", d.url, len(got.locs))
		}
		stem := strings.TrimSuffix(d.url, ".xml")
		if r := s.Get(stem + ".xml.gz"); r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "application/gzip" || harness.Gunzip(t, r.Text) != want.Text {
			t.Errorf("%s.xml.gz: got status %d, headers %v", stem, r.StatusCode, r.Header)
		}
		if r := s.Get(stem + ".txt"); r.StatusCode != http.StatusOK || r.Text != strings.Join(want.locs, "\n")+"\n" {
			t.Errorf("%s.txt: got status %d, %.100q", stem, r.StatusCode, r.Text)
		}
	}

	// And back: the names that are used again are no others' any more.
	list.set(pagesFrom(0, 190))
	becomes("<sitemapindex")
	for i, d := range s.shards() {
		if d.url != old[i].url || d.Text != old[i].Text || d.Header.Get("Etag") != old[i].Header.Get("Etag") {
			t.Errorf("shard %d is %s, was %s", i, d.url, old[i].url)
		}
	}
}

// TestDocumentsOmitAndRules has pages that settings leave out, and say something of.
func TestDocumentsOmitAndRules(t *testing.T) {
	list := new(pageList)
	for _, p := range []string{"/", "/blog/", "/blog/a.html", "/blog/b.html", "/docs/x.pdf", "/private/a", "/z"} {
		page := sitemap.Page{Path: p}
		if p == "/blog/b.html" {
			page.ChangeFreq, page.Priority = "always", new(1.0)
		}
		list.pages = append(list.pages, page)
	}
	give(t, "ruled", list.yield)
	s := start(t, documentsSite("ruled", `exclude /private/* *.pdf
		rule /blog/a.html {
			priority 0.9
		}
		rule /blog/* / {
			changefreq daily
			priority 0.25
		}
		rule * {
			changefreq never
		}`), nil)
	want := s.Expand(`<url><loc>http://localhost:{port}/</loc><changefreq>daily</changefreq><priority>0.25</priority></url>
<url><loc>http://localhost:{port}/blog/</loc><changefreq>daily</changefreq><priority>0.25</priority></url>
<url><loc>http://localhost:{port}/blog/a.html</loc><priority>0.9</priority></url>
<url><loc>http://localhost:{port}/blog/b.html</loc><changefreq>always</changefreq><priority>1.0</priority></url>
<url><loc>http://localhost:{port}/z</loc><changefreq>never</changefreq></url>
</urlset>
`)
	if d := s.document("http://localhost:{port}/sitemap.xml"); !strings.HasSuffix(d.Text, want) {
		t.Errorf("got\n%s\nwant it to end in\n%s", d.Text, want)
	}
	s.Logged(harness.Refreshed, `"excluded":2`)
}

// TestDocumentsBesideTheIndex has an index with another name, in a folder.
func TestDocumentsBesideTheIndex(t *testing.T) {
	list := &pageList{pages: []sitemap.Page{{Path: "/elsewhere"}}}
	for i := range 1000 {
		list.pages = append(list.pages, sitemap.Page{Path: fmt.Sprintf("/docs/%04d", i)})
	}
	give(t, "folder", list.yield)
	s := start(t, documentsSite("folder", "path /docs/map.xml\n\t\tshard_urls 100"), nil)
	const index = "http://localhost:{port}/docs/map.xml"
	for _, child := range s.document(index).children {
		if !strings.HasPrefix(child.Loc, s.Expand("http://localhost:{port}/docs/map-")) {
			t.Errorf("a shard is %s", child.Loc)
		}
	}
	if n := len(s.Locs(index)); n != 1000 {
		t.Errorf("%d pages are listed, want 1000", n)
	}
	if r := s.Get("http://localhost:{port}/sitemap.xml"); r.Text != "" {
		t.Errorf("the default name answers %.100q", r.Text)
	}
	s.Logged(harness.Refreshed, `"outside the sitemap's folder":1`)
}
