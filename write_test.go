package sitemap

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/shard"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

const testBase = "https://example.com"

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 890, time.UTC)

// writing is how a test's snapshot is made.
type writing struct {
	schema   sitemapxml.Schema
	maxPages int // in a shard; 0: 50,000
	workers  int
	previous *Snapshot
	now      time.Time
}

// snapshot cuts and writes sorted pages.
func (o writing) snapshot(t testing.TB, pages []Page) *Snapshot {
	t.Helper()
	if o.now.IsZero() {
		o.now = testTime
	}
	w := newWriter(testBase, "/sitemap", o.schema, o.previous, o.now, o.workers)
	only := false
	cutter := shard.NewCutter(shard.Options{MaxPages: o.maxPages}, func(s shard.Shard) error {
		only = s.Only
		return w.add(s)
	})
	for _, p := range pages {
		if err := cutter.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := cutter.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := w.finish(only)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// snapshotOf is a snapshot of one urlset.
func snapshotOf(t testing.TB, paths ...string) *Snapshot {
	t.Helper()
	return writing{}.snapshot(t, pagesOf(paths...))
}

func pagesOf(paths ...string) []Page {
	pages := make([]Page, len(paths))
	for i, path := range paths {
		pages[i].Path = path
	}
	return pages
}

// numbered are n pages whose paths sort as they are numbered.
func numbered(n int) []Page {
	pages := make([]Page, n)
	for i := range pages {
		pages[i] = Page{Path: fmt.Sprintf("/p/%07d.html", i), LastMod: 1_700_000_000 + int64(i)}
	}
	return pages
}

func text(t testing.TB, d *document) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(d.gzip))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(plain)) != d.size {
		t.Errorf("%s has %d bytes, its size is %d", d.suffix, len(plain), d.size)
	}
	return string(plain)
}

// names are the suffixes of a snapshot's shards and their ETags.
func names(s *Snapshot) []string {
	var all []string
	for _, d := range s.shards {
		all = append(all, d.suffix+" "+d.etag)
	}
	return append(all, s.index.suffix+" "+s.index.etag)
}

func TestWriteOnlyShard(t *testing.T) {
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>https://example.com/?a&amp;b=&apos;c&apos;</loc></url>
<url><loc>https://example.com/a</loc><lastmod>2023-11-14T22:13:20Z</lastmod><changefreq>daily</changefreq><priority>0.5</priority></url>
</urlset>
`
	s := writing{}.snapshot(t, []Page{{Path: "/?a&b='c'"}, {Path: "/a", LastMod: 1_700_000_000, ChangeFreq: 3, Priority: 51}})
	if got := text(t, s.index); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if s.index.kind != kindURLSet || len(s.shards) != 0 || s.pages != 2 || s.index.suffix != "" || s.bytes != int64(len(s.index.gzip)) {
		t.Errorf("got %+v", s)
	}
}

func TestWriteNothing(t *testing.T) {
	if s := (writing{}).snapshot(t, nil); s != nil {
		t.Errorf("got %+v, want none", s)
	}
}

func TestWriteShards(t *testing.T) {
	pages := numbered(1000)
	s := writing{maxPages: 50, schema: sitemapxml.Schema084}.snapshot(t, pages)
	if s.index.kind != kindIndex || s.pages != 1000 || len(s.shards) < 20 {
		t.Fatalf("got %d shards of %d pages, index %+v", len(s.shards), s.pages, s.index)
	}
	if s.shards[0].suffix != "-000000000000" {
		t.Errorf("the first shard is %s", s.shards[0].suffix)
	}
	index := text(t, s.index)
	if !strings.Contains(index, `xmlns="http://www.google.com/schemas/sitemap/0.84"`) {
		t.Errorf("got the index\n%.200s", index)
	}
	i, bytes := 0, int64(len(s.index.gzip))
	for _, d := range s.shards {
		entry := fmt.Sprintf("<sitemap><loc>https://example.com/sitemap%s.xml</loc><lastmod>%s</lastmod></sitemap>\n",
			d.suffix, time.Unix(pages[i+d.pages-1].LastMod, 0).UTC().Format(time.RFC3339))
		if !strings.Contains(index, entry) {
			t.Errorf("the index lacks %s", entry)
		}
		if d.first != pages[i].Path || !strings.Contains(text(t, d), pages[i].Path) {
			t.Errorf("%s begins with %s, want %s", d.suffix, d.first, pages[i].Path)
		}
		i += d.pages
		bytes += int64(len(d.gzip))
	}
	if bytes != s.bytes {
		t.Errorf("the snapshot has %d bytes, it says %d", bytes, s.bytes)
	}
}

func TestIndexLastMod(t *testing.T) {
	for _, test := range []struct {
		name  string
		pages []Page
		want  string
	}{
		{"none known", pagesOf("/a", "/b"), ""},
		{"one known", []Page{{Path: "/a"}, {Path: "/b", LastMod: 1_700_000_000}}, "<lastmod>2023-11-14T22:13:20Z</lastmod>"},
		{"the newest", []Page{{Path: "/a", LastMod: 1_700_000_001}, {Path: "/b", LastMod: 1_700_000_000}}, "<lastmod>2023-11-14T22:13:21Z</lastmod>"},
		{"a day", []Page{{Path: "/a", LastMod: 1_700_000_000}, {Path: "/b", LastMod: 1_700_006_400, LastModDay: true}}, "<lastmod>2023-11-15</lastmod>"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWriter(testBase, "/sitemap", sitemapxml.Schema09, nil, testTime, 1)
			if err := w.add(shard.Shard{Pages: test.pages}); err != nil {
				t.Fatal(err)
			}
			s, err := w.finish(false)
			if err != nil {
				t.Fatal(err)
			}
			want := "<sitemap><loc>https://example.com/sitemap-000000000000.xml</loc>" + test.want + "</sitemap>\n"
			if got := text(t, s.index); !strings.Contains(got, want) {
				t.Errorf("got\n%s\nwant in it\n%s", got, want)
			}
		})
	}
}

// TestSameBytes is the promise that equal pages give equal shards, names and ETags,
// whoever writes them, and however many do.
func TestSameBytes(t *testing.T) {
	pages := numbered(2000)
	one := writing{maxPages: 100, workers: 1}.snapshot(t, pages)
	many := writing{maxPages: 100, workers: 4, now: testTime.Add(time.Hour)}.snapshot(t, slices.Clone(pages))
	if a, b := names(one), names(many); !slices.Equal(a, b) {
		t.Errorf("got %q and %q", a, b)
	}
	for i, d := range one.shards {
		if !bytes.Equal(d.gzip, many.shards[i].gzip) {
			t.Errorf("%s differs", d.suffix)
		}
	}
}

// TestCarriedOver changes one page in each way there is.
func TestCarriedOver(t *testing.T) {
	pages := numbered(2000)
	before := writing{maxPages: 100}.snapshot(t, pages)
	const at = 1234
	for _, test := range []struct {
		name   string
		change func([]Page) []Page
		index  bool // changes
		same   bool // nothing does
	}{
		{"nothing", func(p []Page) []Page { return p }, false, true},
		{"an older lastmod", func(p []Page) []Page { p[at].LastMod--; return p }, false, false},
		{"the newest lastmod", func(p []Page) []Page { p[at].LastMod += 1e6; return p }, true, false},
		{"only the day", func(p []Page) []Page { p[at].LastModDay = true; return p }, false, false},
		{"changefreq", func(p []Page) []Page { p[at].ChangeFreq = 1; return p }, false, false},
		{"priority", func(p []Page) []Page { p[at].Priority = 1; return p }, false, false},
		{"images", func(p []Page) []Page { p[at].Extensions = &page.Extensions{Images: []string{"/i.png"}}; return p }, false, false},
		{"another version of the file", func(p []Page) []Page { p[at].Version++; return p }, false, true},
		{"extensions that say nothing", func(p []Page) []Page { p[at].Extensions = &page.Extensions{}; return p }, false, true},
		{"one less", func(p []Page) []Page { return slices.Delete(p, at, at+1) }, false, false},
		{"one more", func(p []Page) []Page { return slices.Insert(p, at, Page{Path: p[at-1].Path + "x"}) }, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			after := writing{maxPages: 100, previous: before, now: testTime.Add(time.Hour)}.snapshot(t, test.change(slices.Clone(pages)))
			var changed []*document
			for _, d := range after.shards {
				if !slices.Contains(before.shards, d) {
					changed = append(changed, d)
				}
			}
			if test.same {
				if len(changed) != 0 || !before.equal(after) {
					t.Errorf("%d shards changed", len(changed))
				}
				return
			}
			if len(changed) != 1 || before.equal(after) {
				t.Fatalf("%d shards changed, want 1", len(changed))
			}
			if want := testTime.Add(time.Hour).Truncate(time.Second); !changed[0].modified.Equal(want) {
				t.Errorf("the shard is of %s, want %s", changed[0].modified, want)
			}
			if old := before.bySuffix[changed[0].suffix]; old == nil || old.etag == changed[0].etag {
				t.Error("the shard has another name or the same ETag")
			}
			if got := after.index != before.index; got != test.index {
				t.Errorf("the index changed: %t, want %t", got, test.index)
			}
		})
	}
}

func TestOtherSettingsAreNotCarriedOver(t *testing.T) {
	before := snapshotOf(t, "/a")
	after := writing{schema: sitemapxml.Schema084, previous: before}.snapshot(t, pagesOf("/a"))
	if after.index == before.index || after.index.etag == before.index.etag {
		t.Error("the document of another schema was carried over")
	}
}

// TestExtensionsAreWritten has one shard with extensions, and others without.
func TestExtensionsAreWritten(t *testing.T) {
	const at = 1234
	pages := numbered(2000)
	before := writing{maxPages: 100}.snapshot(t, pages)
	extended := slices.Clone(pages)
	extended[at].Extensions = &page.Extensions{Alternates: []page.Alternate{{Lang: "de", URL: testBase + "/de"}}, Images: []string{testBase + "/i.png"}}
	after := writing{maxPages: 100, previous: before}.snapshot(t, extended)
	const elements = `<xhtml:link rel="alternate" hreflang="de" href="https://example.com/de"/><image:image><image:loc>https://example.com/i.png</image:loc></image:image></url>`
	for _, d := range after.shards {
		document, is := text(t, d), before.bySuffix[d.suffix] != d
		if strings.Contains(document, elements) != is || strings.Contains(document, "xmlns:image") != is {
			t.Errorf("%s: it changed %t, and has %d bytes", d.suffix, is, len(document))
		}
	}
	again := writing{maxPages: 100, previous: after, now: testTime.Add(time.Hour)}.snapshot(t, slices.Clone(extended))
	if !after.equal(again) {
		t.Error("equal extensions are not carried over")
	}
	// 0.84 has none, whatever pages have.
	old := writing{schema: sitemapxml.Schema084}.snapshot(t, pages[:10])
	extended[5].Extensions = extended[at].Extensions
	if !old.equal(writing{schema: sitemapxml.Schema084, previous: old, now: testTime.Add(time.Hour)}.snapshot(t, extended[:10])) {
		t.Error("schema 0.84: the document changed")
	}
}

func TestLongPathsAreSummed(t *testing.T) {
	long := "/" + strings.Repeat("a", 5000)
	w := newWriter(testBase, "/sitemap", sitemapxml.Schema09, nil, testTime, 1)
	sums := make(map[uint64]bool)
	for _, pages := range [][]Page{
		pagesOf(long), pagesOf(long + "b"), pagesOf("/a", long), pagesOf(long, "/a"), pagesOf("/a"), pagesOf("/a", "/a"), nil,
		{{Path: long, LastMod: 1}}, {{Path: long, Priority: 1}},
		{{Path: "/a", Extensions: &page.Extensions{Images: []string{"a"}}}}, {{Path: "/a", Extensions: &page.Extensions{Images: []string{"b"}}}},
		{{Path: "/a", Extensions: &page.Extensions{Images: []string{"a", ""}}}}, {{Path: "/a", Extensions: &page.Extensions{Images: []string{"", "a"}}}},
		{{Path: "/a", Extensions: &page.Extensions{Alternates: []page.Alternate{{Lang: "a", URL: "b"}}}}},
		{{Path: "/a", Extensions: &page.Extensions{Alternates: []page.Alternate{{Lang: "ab"}}}}},
		{{Path: "/a", Extensions: &page.Extensions{Images: []string{"a"}}}, {Path: "/a"}},
		{{Path: "/a"}, {Path: "/a", Extensions: &page.Extensions{Images: []string{"a"}}}},
	} {
		sum := w.sum(pages)
		if sums[sum] {
			t.Errorf("a sum comes twice, with %d pages", len(pages))
		}
		sums[sum] = true
	}
}
