package caddytest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sitemap "github.com/seed3295b519/caddy-sitemap"
	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/caddytest/sitemaps"
)

// The protocol's bounds of a document.
const (
	mostPages = 50_000
	mostBytes = 52_428_800
)

// documentsSite is a site whose pages are given under the name, and these settings.
// Nothing serves the pages, so they are listed by name.
func documentsSite(name, settings string) string {
	return `
http://localhost:{port} {
	sitemap {
		source given ` + name + `
		crawl off
		` + settings + `
	}
}`
}

// answeringSite is documentsSite where all pages are there, and asked for.
func answeringSite(name, settings string) string {
	return `
http://localhost:{port} {
	sitemap {
		source given ` + name + `
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
	seen  int // how often it was asked for whole
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
	l.seen++
	return nil
}

func (l *pageList) asked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// refreshed waits until the pages as they are now have been seen and published: what
// a refresh publishes stands when the next one begins, so a second one is waited for.
func (s *server) refreshed(l *pageList) {
	s.T.Helper()
	from := l.asked()
	s.Eventually(func() bool { return l.asked() >= from+2 }, func() string { return "no refresh comes\n" + s.SitemapLog() })
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

// document requests one, which must be there and keep to the protocol's bounds.
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
	if n := len(d.locs) + len(d.children); n > mostPages || n == 0 || len(d.Text) > mostBytes {
		s.T.Errorf("%s: %d entries, %d bytes", s.Expand(url), n, len(d.Text))
	}
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

// wantCut wants shards that list all n pages, each once and in order.
func (s *server) wantCut(shards []document, n int) {
	s.T.Helper()
	var all []string
	for _, d := range shards {
		all = append(all, d.locs...)
	}
	if len(all) != n || !slices.IsSorted(all) || len(slices.Compact(all)) != n {
		s.T.Errorf("%d shards list %d pages, want %d", len(shards), len(all), n)
	}
}

// TestDocumentsMostPages is the bound of pages, and one page more.
func TestDocumentsMostPages(t *testing.T) {
	t.Run("50000", func(t *testing.T) {
		give(t, "most", paged(mostPages))
		s := start(t, documentsSite("most", ""), nil)
		if d := s.document("http://localhost:{port}/sitemap.xml"); len(d.locs) != mostPages {
			t.Errorf("the only document lists %d pages and %d shards", len(d.locs), len(d.children))
		}
		if r := s.Get("http://localhost:{port}/sitemap-000000000000.xml"); r.StatusCode != http.StatusOK || r.Text != "" {
			t.Errorf("a shard of a sitemap without shards: got status %d, %.100q", r.StatusCode, r.Text)
		}
		if n := strings.Count(s.Get("http://localhost:{port}/sitemap.txt").Text, "\n"); n != mostPages {
			t.Errorf("the text has %d lines", n)
		}
	})
	t.Run("50001", func(t *testing.T) {
		give(t, "most", paged(mostPages+1))
		s := start(t, documentsSite("most", ""), nil)
		shards := s.shards()
		if len(shards) < 2 {
			t.Errorf("got %d shards", len(shards))
		}
		s.wantCut(shards, mostPages+1)
		wantNamed(t, s, shards)
	})
}

// wantNamed wants shards to be named as the design says, and to lie beside the index.
func wantNamed(t *testing.T, s *server, shards []document) {
	t.Helper()
	prefix := s.Expand("http://localhost:{port}/sitemap-")
	for i, d := range shards {
		digits, ok := strings.CutPrefix(strings.TrimSuffix(d.url, ".xml"), prefix)
		if n, err := strconv.ParseUint(digits, 16, 64); !ok || err != nil || len(digits) != 12 || (n == 0) != (i == 0) || strings.ToLower(digits) != digits {
			t.Errorf("shard %d is %s", i, d.url)
		}
	}
}

func TestDocumentsShardURLs(t *testing.T) {
	for _, test := range []struct{ most, pages, shards int }{{1, 10, 10}, {2, 100, 50}, {100, 100, 1}, {100, 101, 2}, {100, 5000, 50}} {
		t.Run(fmt.Sprintf("%d in %ds", test.pages, test.most), func(t *testing.T) {
			give(t, "sharded", paged(test.pages))
			s := start(t, documentsSite("sharded", fmt.Sprintf("shard_urls %d", test.most)), nil)
			if test.shards == 1 {
				s.wantCut([]document{s.document("http://localhost:{port}/sitemap.xml")}, test.pages)
				return
			}
			shards := s.shards()
			s.wantCut(shards, test.pages)
			wantNamed(t, s, shards)
			if len(shards) < test.shards {
				t.Errorf("got %d shards, want %d at least", len(shards), test.shards)
			}
			for _, d := range shards {
				if len(d.locs) > test.most {
					t.Errorf("%s lists %d pages", d.url, len(d.locs))
				}
			}
		})
	}
}

// TestDocumentsMostBytes has pages of long URLs, few enough for one document by their
// number.
func TestDocumentsMostBytes(t *testing.T) {
	// An entry is <url><loc>…</loc></url> and a line end, and "&" takes five bytes.
	path := func(i, n int) string { return fmt.Sprintf("/%06d?", i) + strings.Repeat("&", n-8) }
	const n = 1000
	entry := func(base string) int {
		return len("<url><loc></loc></url>\n") + len(base) + len(path(0, n)) + 4*strings.Count(path(0, n), "&")
	}
	frame := len("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n</urlset>\n")
	for _, over := range []int{0, 1} {
		t.Run(fmt.Sprintf("%d over", over), func(t *testing.T) {
			s := prepare(t, nil)
			base := s.Expand("http://localhost:{port}")
			pages := (mostBytes - frame) / entry(base)
			rest := mostBytes - frame - pages*entry(base) + over
			give(t, "long", func(_ context.Context, yield func(sitemap.Page) error) error {
				for i := range pages {
					p := path(i, n)
					if i == pages-1 {
						p += strings.Repeat("a", rest%5) // the others' number of entities stays
						p += strings.Repeat("&", min(rest/5, 800))
					}
					if i == 0 && rest/5 > 800 {
						p += strings.Repeat("&", rest/5-800)
					}
					if err := yield(sitemap.Page{Path: p}); err != nil {
						return err
					}
				}
				return nil
			})
			if err := s.Load(documentsSite("long", "")); err != nil {
				t.Fatal(err)
			}
			s.Logged("sitemap refreshed")
			sitemap := harness.Gunzip(t, s.Get("http://localhost:{port}/sitemap.xml.gz").Text)
			if over == 0 {
				if n := strings.Count(sitemap, "<url>"); n != pages || len(sitemap) != mostBytes {
					t.Errorf("got %d pages in %d bytes, want %d in %d", n, len(sitemap), pages, mostBytes)
				}
				return
			}
			children := s.document("http://localhost:{port}/sitemap.xml").children
			n := 0
			for _, child := range children {
				shard := harness.Gunzip(t, s.Get(child.Loc+".gz").Text)
				if len(shard) > mostBytes {
					t.Errorf("%s has %d bytes", child.Loc, len(shard))
				}
				n += strings.Count(shard, "<url>")
			}
			if len(children) < 2 || n != pages {
				t.Errorf("%d shards list %d pages, want %d", len(children), n, pages)
			}
		})
	}
}

// TestDocumentsLongestURL is the bound of a loc, and one character more.
func TestDocumentsLongestURL(t *testing.T) {
	s := prepare(t, nil)
	base := s.Expand("http://localhost:{port}")
	path := func(n int) string { return "/" + strings.Repeat("a", n-len(base)-1) }
	entities := func(n int) string { return "/" + strings.Repeat("&", n-len(base)-1) }
	give(t, "longest", func(_ context.Context, yield func(sitemap.Page) error) error {
		for _, p := range []string{path(2046), path(2047), path(2048), path(5000), entities(2047), entities(2048)} {
			if err := yield(sitemap.Page{Path: p}); err != nil {
				return err
			}
		}
		return nil
	})
	if err := s.Load(documentsSite("longest", "")); err != nil {
		t.Fatal(err)
	}
	s.WantLocs("http://localhost:{port}/sitemap.xml", base+entities(2047), base+path(2046), base+path(2047))
	s.Logged("sitemap refreshed", `"pages":3`, "URL too long: 3")
}

func TestDocumentsMaxURLs(t *testing.T) {
	for _, test := range []struct{ most, listed int }{{9, 9}, {10, 10}, {11, 10}} {
		t.Run(fmt.Sprint(test.most), func(t *testing.T) {
			give(t, "max", paged(10))
			s := start(t, documentsSite("max", fmt.Sprintf("max_urls %d", test.most)), nil)
			if d := s.document("http://localhost:{port}/sitemap.xml"); len(d.locs) != test.listed || d.locs[0] != s.Expand("http://localhost:{port}/p/0000000.html") {
				t.Errorf("got %q", d.locs)
			}
			refreshed := s.Logged("sitemap refreshed")
			if over := 10 - test.listed; over > 0 {
				s.Logged("not all pages fit", fmt.Sprintf(`"left_out":%d`, over), fmt.Sprintf(`"max_urls":%d`, test.most))
				if want := fmt.Sprintf("over max_urls: %d", over); !strings.Contains(refreshed, want) {
					t.Errorf("got the log line %s, want in it %q", refreshed, want)
				}
				return
			}
			if strings.Contains(refreshed, "left_out") || len(s.LogLines("not all pages fit")) > 0 {
				t.Errorf("got the log line %s", refreshed)
			}
		})
	}
}

// TestDocumentsOmitAndRules has pages that settings leave out, and say something of.
func TestDocumentsOmitAndRules(t *testing.T) {
	list := new(pageList)
	for _, p := range []string{"/", "/blog/", "/blog/a.html", "/blog/b.html", "/docs/x.pdf", "/private/a", "/z"} {
		page := sitemap.Page{Path: p}
		if p == "/blog/b.html" {
			page.ChangeFreq, page.Priority = 1, 101 // always, 1.0
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
	s.Logged("sitemap refreshed", "excluded: 2")
}

func TestDocumentsSchema(t *testing.T) {
	for _, test := range []struct{ schema, namespace string }{
		{"0.9", "http://www.sitemaps.org/schemas/sitemap/0.9"}, {"0.84", "http://www.google.com/schemas/sitemap/0.84"},
	} {
		t.Run(test.schema, func(t *testing.T) {
			give(t, "schema", paged(10))
			s := start(t, documentsSite("schema", "shard_urls 5\n\t\tschema "+test.schema), nil)
			index := s.document("http://localhost:{port}/sitemap.xml")
			for _, d := range append(s.shards(), index) {
				if !strings.Contains(d.Text, `set xmlns="`+test.namespace+`">`) && !strings.Contains(d.Text, `index xmlns="`+test.namespace+`">`) {
					t.Errorf("%s: got %.200q", d.url, d.Text)
				}
			}
		})
	}
}

// TestDocumentsLastMod says what the index says of its shards.
func TestDocumentsLastMod(t *testing.T) {
	list := &pageList{pages: pagesFrom(0, 3000)}
	newest := make(map[string]int64) // by loc
	s := prepare(t, nil)
	for i := range list.pages {
		if p := &list.pages[i]; i < 1500 {
			p.LastMod = 1_600_000_000 + int64(i*7919%3000)
			newest[s.Expand("http://localhost:{port}")+p.Path] = p.LastMod
		}
	}
	give(t, "dated", list.yield)
	if err := s.Load(documentsSite("dated", "shard_urls 100")); err != nil {
		t.Fatal(err)
	}
	dated, undated := 0, 0
	index := s.document("http://localhost:{port}/sitemap.xml")
	for i, shard := range s.shards() {
		var latest int64
		for _, loc := range shard.locs {
			latest = max(latest, newest[loc])
		}
		want := "<loc>" + shard.url + "</loc>"
		if latest != 0 {
			dated++
			want += "<lastmod>" + time.Unix(latest, 0).UTC().Format(time.RFC3339) + "</lastmod>"
		} else {
			undated++
		}
		if entry := strings.Split(index.Text, "\n")[i+2]; entry != "<sitemap>"+want+"</sitemap>" {
			t.Errorf("got the entry %s, want %s", entry, want)
		}
	}
	if dated == 0 || undated == 0 {
		t.Errorf("%d shards have a date, %d have none", dated, undated)
	}
}

// sitesOfDocuments are the ways to list pages that are there.
var sitesOfDocuments = map[string]func(name, settings string) string{"by name": documentsSite, "asked for": answeringSite}

// TestDocumentsCarriedOver changes a page and wants all other shards to be as they
// were.
func TestDocumentsCarriedOver(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func([]sitemap.Page) []sitemap.Page
		index  bool // stays
	}{
		{"nothing", func(p []sitemap.Page) []sitemap.Page { return p }, true},
		{"one more", func(p []sitemap.Page) []sitemap.Page {
			return slices.Insert(p, 1000, sitemap.Page{Path: p[999].Path + "x"})
		}, true},
		{"one less", func(p []sitemap.Page) []sitemap.Page { return slices.Delete(p, 1000, 1001) }, true},
		{"a date", func(p []sitemap.Page) []sitemap.Page { p[1000].LastMod = 1_700_000_000; return p }, false},
	} {
		for kind, site := range sitesOfDocuments {
			t.Run(test.name+", "+kind, func(t *testing.T) {
				list := &pageList{pages: pagesFrom(0, 3000)}
				give(t, "carried", list.yield)
				s := start(t, site("carried", "shard_urls 100\n\t\trefresh 1s"), nil)
				before, index := s.shards(), s.document("http://localhost:{port}/sitemap.xml")
				list.set(test.change(pagesFrom(0, 3000)))
				s.refreshed(list)
				var changed []string
				for i, d := range s.shards() {
					if i >= len(before) || d.url != before[i].url {
						t.Fatalf("shard %d is %s", i, d.url)
					}
					same := d.Header.Get("Etag") == before[i].Header.Get("Etag")
					if same != (d.Text == before[i].Text) {
						t.Errorf("%s: its ETag says that it stayed: %t", d.url, same)
					}
					if same && d.Header.Get("Last-Modified") != before[i].Header.Get("Last-Modified") {
						t.Errorf("%s: it is of %s, it was of %s", d.url, d.Header.Get("Last-Modified"), before[i].Header.Get("Last-Modified"))
					}
					if same {
						for _, condition := range []string{"If-None-Match: " + before[i].Header.Get("Etag"), "If-Modified-Since: " + before[i].Header.Get("Last-Modified")} {
							if r := s.Get(d.url, condition); r.StatusCode != http.StatusNotModified {
								t.Errorf("%s, %s: got status %d", d.url, condition, r.StatusCode)
							}
						}
						continue
					}
					changed = append(changed, d.url)
					then, _ := http.ParseTime(before[i].Header.Get("Last-Modified"))
					if now, _ := http.ParseTime(d.Header.Get("Last-Modified")); !now.After(then) {
						t.Errorf("%s: it is of %s, as before", d.url, now)
					}
				}
				want := 1
				if test.name == "nothing" {
					want = 0
				}
				if len(changed) != want {
					t.Errorf("changed: %q, want %d", changed, want)
				}
				after := s.document("http://localhost:{port}/sitemap.xml")
				if stays := after.Header.Get("Etag") == index.Header.Get("Etag") && after.Header.Get("Last-Modified") == index.Header.Get("Last-Modified"); stays != test.index {
					t.Errorf("the index stays: %t, want %t", stays, test.index)
				}
			})
		}
	}
}

// TestDocumentsRetired takes shards away and asks for their names.
func TestDocumentsRetired(t *testing.T) {
	for kind, site := range sitesOfDocuments {
		t.Run(kind, func(t *testing.T) { testRetired(t, site) })
	}
}

func testRetired(t *testing.T, site func(name, settings string) string) {
	list := &pageList{pages: pagesFrom(0, 1000)}
	give(t, "retired", list.yield)
	s := start(t, site("retired", "shard_urls 100\n\t\trefresh 1s"), nil)
	old := s.shards()

	// holds says which document an old shard's name now leads to.
	holds := func(d document, where string, path string) {
		t.Helper()
		want := s.document(where)
		if got := s.document(d.url); got.Text != want.Text || got.Header.Get("Etag") != want.Header.Get("Etag") || !slices.Contains(got.locs, s.Expand("http://localhost:{port}")+path) {
			t.Errorf("%s has %d pages from %s on, want %s", d.url, len(got.locs), got.locs[0], where)
		}
		stem := strings.TrimSuffix(d.url, ".xml")
		if r := s.Get(stem + ".xml.gz"); r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "application/gzip" || harness.Gunzip(t, r.Text) != want.Text {
			t.Errorf("%s.xml.gz: got status %d, headers %v", stem, r.StatusCode, r.Header)
		}
		if r := s.Get(stem + ".txt"); r.StatusCode != http.StatusOK || r.Text != strings.Join(want.locs, "\n")+"\n" {
			t.Errorf("%s.txt: got status %d, %.100q", stem, r.StatusCode, r.Text)
		}
	}

	// The page that the third shard begins with goes: its pages join the second one's,
	// or are cut elsewhere.
	first := strings.TrimPrefix(old[2].locs[0], s.Expand("http://localhost:{port}"))
	list.set(slices.DeleteFunc(pagesFrom(0, 1000), func(p sitemap.Page) bool { return p.Path == first }))
	s.refreshed(list)
	now := s.shards()
	if slices.ContainsFunc(now, func(d document) bool { return d.url == old[2].url }) {
		t.Fatalf("%s is still there", old[2].url)
	}
	i := slices.IndexFunc(now, func(d document) bool { return d.locs[0] > old[2].locs[0] })
	if i < 0 {
		i = len(now)
	}
	before := now[i-1]
	holds(old[2], before.url, strings.TrimPrefix(before.locs[0], s.Expand("http://localhost:{port}")))
	if _, listed := slices.BinarySearch(before.locs, old[2].locs[1]); !listed && !slices.ContainsFunc(now, func(d document) bool { return slices.Contains(d.locs, old[2].locs[1]) }) {
		t.Errorf("%s is listed nowhere", old[2].locs[1])
	}

	// All that is left fits into one urlset; every name leads there. Never more than half
	// of the pages go at once, which would have to be confirmed.
	for _, n := range []int{600, 350, 190, 100, 90} {
		list.set(pagesFrom(0, n))
		s.refreshed(list)
	}
	s.Eventually(func() bool {
		return strings.Contains(s.Get("http://localhost:{port}/sitemap.xml").Text, "<urlset")
	}, func() string { return "there is still an index\n" + s.SitemapLog() })
	for _, d := range append(old, now...) {
		holds(d, "http://localhost:{port}/sitemap.xml", "/p/0000000.html")
	}

	// And back: the names that are used again are no others' any more.
	list.set(pagesFrom(0, 1000))
	s.Eventually(func() bool {
		return strings.Contains(s.Get("http://localhost:{port}/sitemap.xml").Text, "<sitemapindex")
	}, func() string { return "there is no index\n" + s.SitemapLog() })
	for i, d := range s.shards() {
		if d.url != old[i].url || d.Text != old[i].Text || d.Header.Get("Etag") != old[i].Header.Get("Etag") {
			t.Errorf("shard %d is %s, was %s", i, d.url, old[i].url)
		}
	}
}

// TestDocumentsSameEverywhere has two servers with equal pages in another order.
func TestDocumentsSameEverywhere(t *testing.T) {
	var seen [2][]string
	for i := range seen {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			give(t, "same", func(_ context.Context, yield func(sitemap.Page) error) error {
				pages := pagesFrom(0, 5000)
				if i == 1 {
					slices.Reverse(pages)
				}
				for _, p := range pages {
					if err := yield(p); err != nil {
						return err
					}
				}
				return nil
			})
			s := start(t, documentsSite("same", "base_url https://example.com\n\t\tshard_urls 500"), nil)
			for _, accept := range []string{"identity", "gzip"} {
				index := s.Get("http://localhost:{port}/sitemap.xml", "Accept-Encoding: "+accept)
				seen[i] = append(seen[i], index.Header.Get("Etag"), index.Text)
				for _, child := range s.document("http://localhost:{port}/sitemap.xml").children {
					shard := s.Get(strings.Replace(child.Loc, "https://example.com", "http://localhost:{port}", 1), "Accept-Encoding: "+accept)
					seen[i] = append(seen[i], child.Loc, shard.Header.Get("Etag"), shard.Text)
				}
			}
		})
	}
	if !slices.Equal(seen[0], seen[1]) || len(seen[0]) < 20 {
		t.Errorf("two servers differ: %d and %d parts", len(seen[0]), len(seen[1]))
	}
}

// TestDocumentsBesideTheIndex has an index with another name, in a folder.
func TestDocumentsBesideTheIndex(t *testing.T) {
	give(t, "folder", func(_ context.Context, yield func(sitemap.Page) error) error {
		for i := range 1000 {
			if err := yield(sitemap.Page{Path: fmt.Sprintf("/docs/%04d", i)}); err != nil {
				return err
			}
		}
		return yield(sitemap.Page{Path: "/elsewhere"})
	})
	s := start(t, documentsSite("folder", "path /docs/map.xml\n\t\tshard_urls 100"), nil)
	index := s.document("http://localhost:{port}/docs/map.xml")
	var locs []string
	for _, child := range index.children {
		if !strings.HasPrefix(child.Loc, s.Expand("http://localhost:{port}/docs/map-")) {
			t.Errorf("a shard is %s", child.Loc)
		}
		locs = append(locs, s.document(child.Loc).locs...)
	}
	if len(locs) != 1000 {
		t.Errorf("%d pages are listed, want 1000", len(locs))
	}
	if r := s.Get("http://localhost:{port}/sitemap.xml"); r.Text != "" {
		t.Errorf("the default name answers %.100q", r.Text)
	}
	s.Logged("sitemap refreshed", "outside the sitemap's folder: 1")
}
