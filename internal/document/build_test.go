package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const base = "https://example.com"

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 890, time.UTC)

func options(o Options) Options {
	if o.Now.IsZero() {
		o.Now = testTime
	}
	o.Base, o.Sitemap = base, base+"/sitemap"
	return o
}

func build(t testing.TB, pages []page.Page, previous *Set, o Options) *Set {
	t.Helper()
	s, err := Build(t.Context(), sequence(pages, nil), previous, options(o))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sequence yields pages, and an error at the end if there is one.
func sequence(pages []page.Page, err error) iter.Seq2[page.Page, error] {
	return func(yield func(page.Page, error) bool) {
		for _, p := range pages {
			if !yield(p, nil) {
				return
			}
		}
		if err != nil {
			yield(page.Page{}, err)
		}
	}
}

func pagesOf(paths ...string) (pages []page.Page) {
	for _, path := range paths {
		pages = append(pages, page.Page{Path: path})
	}
	return pages
}

// numbered are n pages whose paths sort as they are numbered.
func numbered(n int) []page.Page {
	pages := make([]page.Page, n)
	for i := range pages {
		pages[i] = page.Page{Path: fmt.Sprintf("/p/%07d.html", i), LastMod: 1_700_000_000 + int64(i)}
	}
	return pages
}

func read(t testing.TB, open func() (io.ReadCloser, error)) string {
	t.Helper()
	r, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestOnlyURLSet(t *testing.T) {
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><!-- caddy-sitemap -->
<url><loc>https://example.com/?a&amp;b=&apos;c&apos;</loc></url>
<url><loc>https://example.com/a</loc><lastmod>2023-11-14T22:13:20Z</lastmod><changefreq>daily</changefreq><priority>0.5</priority></url>
</urlset>
`
	const wantText = "https://example.com/?a&b='c'\nhttps://example.com/a\n"
	s := build(t, []page.Page{{Path: "/?a&b='c'"}, {Path: "/a", LastMod: 1_700_000_000, ChangeFreq: 3, Priority: 51}}, nil, Options{})
	d := s.Index
	if got := read(t, d.Open); got != want || int64(len(got)) != d.Size {
		t.Errorf("got %d bytes, %d expected:\n%s\nwant\n%s", len(got), d.Size, got, want)
	}
	if got := read(t, d.Text); got != wantText || int64(len(got)) != d.TextSize {
		t.Errorf("got %d bytes, %d expected:\n%s", len(got), d.TextSize, got)
	}
	if d.Index || s.Shards != nil || s.Pages != 2 || d.Name != ".xml" || d.First != "/?a&b='c'" || s.Bytes != int64(len(d.Gzip)) || s.Holding("", "/z") != d {
		t.Errorf("got %+v", s)
	}
	for form, want := range []string{d.ETag, d.ETag + ".z", d.ETag + ".f", d.ETag + ".t"} {
		if got := d.ETagOf(Form(form)); got != `"`+want+`"` {
			t.Errorf("form %d: got %s, want %s", form, got, want)
		}
	}
	if s := build(t, nil, s, Options{}); s != nil || s.Find(".xml") != nil || !s.Equal(nil) {
		t.Errorf("without pages: got %+v", s)
	}
}

func TestReadersCanBeClosedEarly(t *testing.T) {
	d := build(t, numbered(10_000), nil, Options{}).Index
	for _, open := range []func() (io.ReadCloser, error){d.Open, d.Text} {
		for range 2 {
			r, err := open()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
				t.Error(err)
			}
			r.Close()
			r.Close()
		}
		if got := read(t, open); !strings.Contains(got, "/p/0009999.html") {
			t.Error("the last page is missing")
		}
	}
}

func TestShards(t *testing.T) {
	pages := numbered(1000)
	s := build(t, pages, nil, Options{ShardURLs: 50, Schema: Schema084})
	if !s.Index.Index || s.Pages != 1000 || len(s.Shards) < 20 || s.Shards[0].Name != "-000000000000.xml" {
		t.Fatalf("got %d shards of %d pages, index %+v", len(s.Shards), s.Pages, s.Index)
	}
	index := read(t, s.Index.Open)
	if !strings.Contains(index, `xmlns="http://www.google.com/schemas/sitemap/0.84"`) {
		t.Errorf("got the index\n%.200s", index)
	}
	i, size := 0, len(s.Index.Gzip)
	for _, d := range s.Shards {
		last := pages[i+d.Pages-1]
		entry := fmt.Sprintf("<sitemap><loc>https://example.com/sitemap%s</loc><lastmod>%s</lastmod></sitemap>\n",
			d.Name, time.Unix(last.LastMod, 0).UTC().Format(time.RFC3339))
		if !strings.Contains(index, entry) || d.LastMod != last.LastMod {
			t.Errorf("the index lacks %s", entry)
		}
		if text := read(t, d.Text); d.First != pages[i].Path || strings.Count(text, "\n") != d.Pages || !strings.HasPrefix(text, base+d.First+"\n") {
			t.Errorf("%s begins with %s, want %s", d.Name, d.First, pages[i].Path)
		}
		if s.Find(d.Name) != d || s.Holding("", pages[i].Path) != d || s.Holding("", last.Path+"x") != d {
			t.Errorf("%s is not found", d.Name)
		}
		i, size = i+d.Pages, size+len(d.Gzip)
	}
	if int64(size) != s.Bytes || s.Find(".xml") != s.Index || s.Holding("", "/") != s.Shards[0] || s.Find("-0000000000ff.xml") != nil {
		t.Errorf("the set has %d bytes, it says %d", size, s.Bytes)
	}
}

func TestIndexLastMod(t *testing.T) {
	for _, test := range []struct {
		name  string
		pages []page.Page
		want  string
	}{
		{"none known", pagesOf("/a", "/b"), ""},
		{"one known", []page.Page{{Path: "/a"}, {Path: "/b", LastMod: 1_700_000_000}}, "<lastmod>2023-11-14T22:13:20Z</lastmod>"},
		{"the newest", []page.Page{{Path: "/a", LastMod: 1_700_000_001}, {Path: "/b", LastMod: 1_700_000_000}}, "<lastmod>2023-11-14T22:13:21Z</lastmod>"},
		{"a day", []page.Page{{Path: "/a", LastMod: 1_700_000_000}, {Path: "/b", LastMod: 1_700_006_400, LastModDay: true}}, "<lastmod>2023-11-15</lastmod>"},
	} {
		o := Options{SectionOf: func(string) string { return "a" }}
		if got := read(t, build(t, test.pages, nil, o).Index.Open); !strings.Contains(got, "-a.xml</loc>"+test.want+"</sitemap>\n") {
			t.Errorf("%s: got\n%s\nwant in it\n%s", test.name, got, test.want)
		}
	}
}

// TestSameBytes: equal pages give equal documents, whenever and however they are built.
func TestSameBytes(t *testing.T) {
	pages := numbered(2000)
	one := build(t, pages, nil, Options{ShardURLs: 100})
	other := build(t, slices.Clone(pages), nil, Options{ShardURLs: 100, Workers: 4, Now: testTime.Add(time.Hour)})
	if !one.Equal(other) {
		t.Error("the sets differ")
	}
	for i, d := range one.All() {
		if o := other.All()[i]; !bytes.Equal(d.Gzip, o.Gzip) || d.Name != o.Name || d.ETag != o.ETag {
			t.Errorf("%s differs from %s", d.Name, o.Name)
		}
	}
}

// changed are the names of the documents that a set did not take from the one before.
func changed(before, after *Set) (suffixes []string) {
	for _, d := range after.All() {
		old := before.Find(d.Name)
		if old == nil || &old.Gzip[0] != &d.Gzip[0] || old.ETag != d.ETag || !old.Modified.Equal(d.Modified) {
			suffixes = append(suffixes, d.Name)
		}
	}
	return suffixes
}

// TestCarriedOver changes one page in each way there is.
func TestCarriedOver(t *testing.T) {
	const at = 1234
	pages := numbered(2000)
	before := build(t, pages, nil, Options{ShardURLs: 100, Extended: true})
	image := func(url string) *page.Extensions { return &page.Extensions{Images: []string{url}} }
	for _, test := range []struct {
		name   string
		change func([]page.Page) []page.Page
		shards int
		index  bool
	}{
		{"nothing", func(p []page.Page) []page.Page { return p }, 0, false},
		{"another version of the file", func(p []page.Page) []page.Page { p[at].Version++; return p }, 0, false},
		{"visited", func(p []page.Page) []page.Page { p[at].Visited = true; return p }, 0, false},
		{"extensions that say nothing", func(p []page.Page) []page.Page { p[at].Extensions = &page.Extensions{}; return p }, 0, false},
		{"an older lastmod", func(p []page.Page) []page.Page { p[at].LastMod--; return p }, 1, false},
		{"the newest lastmod", func(p []page.Page) []page.Page { p[at].LastMod += 1e6; return p }, 1, true},
		{"only the day", func(p []page.Page) []page.Page { p[at].LastModDay = true; return p }, 1, false},
		{"changefreq", func(p []page.Page) []page.Page { p[at].ChangeFreq = 1; return p }, 1, false},
		{"priority", func(p []page.Page) []page.Page { p[at].Priority = 1; return p }, 1, false},
		{"images", func(p []page.Page) []page.Page { p[at].Extensions = image("/i.png"); return p }, 1, false},
		{"one less", func(p []page.Page) []page.Page { return slices.Delete(p, at, at+1) }, 1, false},
		{"one more", func(p []page.Page) []page.Page { return slices.Insert(p, at, page.Page{Path: p[at-1].Path + "x"}) }, 1, false},
	} {
		now := testTime.Add(time.Hour)
		after := build(t, test.change(slices.Clone(pages)), before, Options{ShardURLs: 100, Extended: true, Workers: 2, Now: now})
		want := test.shards
		if test.index {
			want++
		}
		got := changed(before, after)
		if len(got) != want || slices.Contains(got, ".xml") != test.index || before.Equal(after) != (want == 0) {
			t.Errorf("%s: %q changed, want %d", test.name, got, want)
		}
		for _, suffix := range got {
			if d := after.Find(suffix); !d.Modified.Equal(now.Truncate(time.Second)) || d.ETag == before.Find(suffix).ETag {
				t.Errorf("%s: %s is of %s", test.name, suffix, d.Modified)
			}
		}
	}
	for _, o := range []Options{{ShardURLs: 100, Schema: Schema084}, {ShardURLs: 100, Beside: Beside{Stylesheet: true}}} {
		other := build(t, pages, before, o)
		if len(changed(before, other)) != len(other.All()) {
			t.Error("documents of another schema or stylesheet were carried over")
		}
		for _, d := range append(slices.Clone(other.Shards), other.Index) {
			if strings.Contains(read(t, d.Open), "?>\n<?xml-stylesheet type=\"text/css\" href=\"sitemap.css\"?>\n<") != o.Stylesheet {
				t.Errorf("%+v: the stylesheet of %s is missing or unexpected", o, d.Name)
			}
		}
	}
}

// TestNameComesBack: a name that was retired belongs to another document meanwhile. A shard that gets it back has it,
// even where its bytes are those of that document.
func TestNameComesBack(t *testing.T) {
	pages := numbered(1000)
	o := Options{ShardURLs: 50}
	before := build(t, pages, nil, o)
	last := before.Shards[len(before.Shards)-1]

	only := build(t, pages[len(pages)-last.Pages:], before, o)
	if only.Find(last.Name) != only.Index || only.Index.ETag != last.ETag {
		t.Fatalf("%s is not the only document, with the same bytes", last.Name)
	}

	after := build(t, pages, only, o)
	if after.XMLDigest() != before.XMLDigest() {
		t.Errorf("got the shards %q, want %q", suffixes(after.Shards), suffixes(before.Shards))
	}
}

func suffixes(documents []*Document) (all []string) {
	for _, d := range documents {
		all = append(all, d.Name)
	}
	return all
}

// TestFiles changes what is beside the XML.
func TestFiles(t *testing.T) {
	const at = 1234
	pages := numbered(2000)
	all := Options{ShardURLs: 100, Beside: Beside{People: new(People), Feed: true, Stylesheet: true, LLMs: true}}
	before := build(t, pages, nil, all)
	if n := len(before.Others); n < 5 || before.Others[n-2].Name != ".html" || before.Pages != 2000 || before.Equal(build(t, pages, nil, Options{ShardURLs: 100})) {
		t.Fatalf("got %d files of %d pages", n, before.Pages)
	}
	for suffix, want := range map[string]string{".html": "<title>Sitemap – example.com</title>", ".atom": "<id>https://example.com/p/0001999.html</id>", ".css": "urlset", "/llms.txt": "/p/0000000.html)"} {
		d := before.Find(suffix)
		if text := read(t, d.Open); !strings.Contains(text, want) || int64(len(text)) != d.Size || d.Type == "" {
			t.Errorf("%s: got %s, %d bytes:\n%.1000s", suffix, d.Type, d.Size, text)
		}
	}
	titled := func(at int) func(p []page.Page) {
		return func(p []page.Page) { p[at].Extensions = &page.Extensions{Title: "Another"} }
	}
	for _, test := range []struct {
		name   string
		change func(p []page.Page)
		xml    int    // documents that change
		files  string // kinds of those that change
	}{
		{"nothing", func([]page.Page) {}, 0, ""},
		{"a title", titled(at), 0, ".html"},
		{"the title of a new page", titled(1999), 0, ".atom .html"},
		{"the title of the first page", titled(0), 0, ".html /llms.txt"},
		{"a time of that day", func(p []page.Page) { p[at].LastMod++ }, 1, ""},
		{"a date", func(p []page.Page) { p[at].LastMod += 1e6 }, 2, ".atom .html"},
		{"the first priority", func(p []page.Page) { p[at].Priority = 1 }, 1, ".css"}, // there is a column more
	} {
		for _, workers := range []int{1, 3} {
			o, pages := all, slices.Clone(pages)
			o.Workers, o.Now = workers, testTime.Add(time.Hour)
			test.change(pages)
			xml, files := 0, []string(nil)
			after := build(t, pages, before, o)
			for _, suffix := range changed(before, after) {
				if after.Find(suffix).Type == "" {
					xml++
				} else {
					files = append(files, suffix)
				}
			}
			slices.Sort(files)
			if got := strings.Join(files, " "); xml != test.xml || got != test.files || before.Equal(after) != (xml == 0 && got == "") || (before.XMLDigest() == after.XMLDigest()) != (xml == 0) {
				t.Errorf("%s: %d documents and %q change, want %d and %q", test.name, xml, got, test.xml, test.files)
			}
		}
	}
}

func TestExtensions(t *testing.T) {
	pages := numbered(2000)
	pages[1234].Extensions = &page.Extensions{Alternates: []page.Alternate{{Lang: "de", URL: base + "/de"}}, Images: []string{base + "/i.png"}}
	const elements = `<xhtml:link rel="alternate" hreflang="de" href="https://example.com/de"/><image:image><image:loc>https://example.com/i.png</image:loc></image:image></url>`
	for _, test := range []struct {
		o    Options
		want int
	}{{Options{Extended: true}, 1}, {Options{}, 0}, {Options{Extended: true, Schema: Schema084}, 0}} {
		test.o.ShardURLs = 100
		got := 0
		for _, d := range build(t, pages, nil, test.o).Shards {
			xml := read(t, d.Open)
			if strings.Contains(xml, elements) != strings.Contains(xml, "xmlns:image") {
				t.Errorf("%s has elements without their namespace, or the other way round", d.Name)
			}
			got += strings.Count(xml, elements)
		}
		if got != test.want {
			t.Errorf("%+v: extensions of %d pages, want %d", test.o, got, test.want)
		}
	}
}

// TestLongPaths: a shard of long paths is cut before it has too many bytes.
func TestLongPaths(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 108 MB")
	}
	long := numbered(36_000)
	for i := range long {
		long[i].Path += strings.Repeat("x", 1480)
	}
	for _, extended := range []bool{false, true} {
		s := build(t, long, nil, Options{Extended: extended})
		if slices.ContainsFunc(s.Shards, func(d *Document) bool { return d.Size > maxBytes }) || len(s.Shards) < 2 || s.Pages != len(long) {
			t.Errorf("got %d shards of long paths: %+v", len(s.Shards), s)
		}
	}
}

func TestLimits(t *testing.T) {
	huge := &page.Extensions{Images: []string{"/" + strings.Repeat("a", maxBytes)}}
	s := build(t, []page.Page{{Path: "/a"}, {Path: "/b", Extensions: huge}, {Path: "/c"}}, nil, Options{Extended: true})
	if s.Pages != 2 || s.LeftOut[TooLarge] != 1 || len(s.LeftOut) != 1 {
		t.Errorf("got %d pages, left out %v", s.Pages, s.LeftOut)
	}

	s = build(t, numbered(maxShards+3), nil, Options{ShardURLs: 1, Workers: 4})
	if len(s.Shards) != maxShards || s.Pages != maxShards || s.LeftOut[NoRoom] != 3 || s.Index.Size > maxBytes {
		t.Errorf("got %d shards, left out %v", len(s.Shards), s.LeftOut)
	}
}

func TestBuildFails(t *testing.T) {
	errOwn := errors.New("own")
	for _, workers := range []int{1, 4} {
		o := options(Options{ShardURLs: 100, Workers: workers})
		for name, test := range map[string]struct {
			pages iter.Seq2[page.Page, error]
			want  error
		}{
			"error":      {sequence(numbered(1000), errOwn), errOwn},
			"error only": {sequence(nil, errOwn), errOwn},
		} {
			if s, err := Build(t.Context(), test.pages, nil, o); s != nil || !errors.Is(err, test.want) {
				t.Errorf("%s: got %v, %v", name, s, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		if s, err := Build(ctx, func(yield func(page.Page, error) bool) {
			for _, p := range numbered(1000) {
				if n++; n == 500 {
					cancel()
				}
				if !yield(p, nil) {
					return
				}
			}
		}, nil, o); s != nil || err != context.Canceled || n != 500 {
			t.Errorf("cancelled: got %v, %v after %d pages", s, err, n)
		}
	}
}

// withNews has the first page be an article that was published at testTime.
func withNews(pages []page.Page) []page.Page {
	pages[0].Extensions = &page.Extensions{Published: testTime.Unix(), Title: "title", Lang: "en"}
	return pages
}

func withNewsAt(now time.Time) Options {
	beside := Beside{News: &NewsOf{Publication: "The Example Times"}}
	return Options{Beside: beside, Now: now, ShardURLs: 100}
}

// TestNews: the news sitemap is beside the index and its shards, and only it changes as articles age.
func TestNews(t *testing.T) {
	pages := withNews(numbered(1000))
	s := build(t, pages, nil, withNewsAt(testTime))
	d := s.Find(NewsSitemap)
	if d == nil || len(s.Others) != 1 || s.Others[0] != d || s.Pages != 1000 || s.News.Pages != 1 {
		t.Fatalf("got %+v of %+v", d, s)
	}
	if xml := read(t, d.Open); !strings.Contains(xml, "<news:title>title</news:title>") || int64(len(xml)) != d.Size {
		t.Errorf("got %s", xml)
	}
	if index := read(t, s.Index.Open); strings.Contains(index, "news") {
		t.Errorf("got the index %s", index)
	}
	later := build(t, pages, s, withNewsAt(testTime.Add(47*time.Hour)))
	if !s.Equal(later) || changed(s, later) != nil {
		t.Error("another document after 47 hours")
	}
	later = build(t, pages, s, withNewsAt(testTime.Add(48*time.Hour)))
	if got := changed(s, later); !slices.Equal(got, []string{NewsSitemap}) || s.Equal(later) || s.XMLDigest() != later.XMLDigest() {
		t.Errorf("after 48 hours, %q have changed", got)
	}
	if s := build(t, pages, later, Options{ShardURLs: 100}); s.News != nil || s.Find(NewsSitemap) != nil {
		t.Errorf("turned off: got %+v", s)
	}
}
