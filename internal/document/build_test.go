package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func TestOnlyURLSet(t *testing.T) {
	s := build(t, goldenPages()[:3], nil, Options{})
	d := s.Index
	if got := read(t, d.Open); int64(len(got)) != d.Size || !IsOwn([]byte(got)) {
		t.Errorf("got %d bytes, %d expected:\n%s", len(got), d.Size, got)
	}
	if got := read(t, d.Text); int64(len(got)) != d.TextSize || strings.Count(got, "\n") != 3 {
		t.Errorf("got %d bytes, %d expected:\n%s", len(got), d.TextSize, got)
	}
	if isIndex(d) || s.Shards != nil || s.Pages != 3 || d.Name != ".xml" || s.Bytes != int64(len(d.Gzip)) || s.Holding("", "/z") != d {
		t.Errorf("got %+v", s)
	}
	if s := build(t, nil, s, beside); s != nil || s.Find(".xml") != nil || !s.Equal(nil) {
		t.Errorf("without pages: got %+v", s)
	}
}

// TestTextCanBeClosedEarly: nothing goes on thereafter.
func TestTextCanBeClosedEarly(t *testing.T) {
	r, err := build(t, numbered(10_000), nil, Options{}).Index.Text()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Error(err)
	}
	r.Close()
	r.Close()
}

func TestShards(t *testing.T) {
	pages := numbered(1000)
	pages[999].LastModDay = true
	o := Options{ShardURLs: 50, Schema: Schema084}
	s := build(t, pages, nil, o)
	if !isIndex(s.Index) || s.Pages != 1000 || len(s.Shards) < 20 || s.Shards[0].Name != "-000000000000.xml" {
		t.Fatalf("got %d shards of %d pages, index %+v", len(s.Shards), s.Pages, s.Index)
	}
	checkSections(t, s, pages, o)
	index := read(t, s.Index.Open)
	if !strings.Contains(index, `xmlns="http://www.google.com/schemas/sitemap/0.84"`) {
		t.Errorf("got the index\n%.200s", index)
	}
	i, size := 0, len(s.Index.Gzip)
	for _, d := range s.Shards {
		last := pages[i+d.Pages-1]
		text := read(t, d.Text)
		if d.LastMod != last.LastMod || d.LastModDay != last.LastModDay || d.First != pages[i].Path || s.Holding("", last.Path+"x") != d || strings.Count(text, "\n") != d.Pages || int64(len(text)) != d.TextSize {
			t.Errorf("got %+v from %s to %s", d, pages[i].Path, last.Path)
		}
		i += d.Pages
		size += len(d.Gzip)
	}
	if int64(size) != s.Bytes || s.Holding("", "/") != s.Shards[0] || s.Find("-0000000000ff.xml") != nil {
		t.Errorf("the set has %d bytes, it says %d", size, s.Bytes)
	}
}

// TestSameBytes: equal pages give equal documents, whenever and however they are built.
func TestSameBytes(t *testing.T) {
	var pages []page.Page
	for i := range 3000 {
		p := titled(fmt.Sprintf("/%c/%04d", 'a'+i/500, i), int64(i), fmt.Sprint("Page ", i%7))
		p.Extensions.Depth = uint8(i % 5)
		p.Extensions.Published = testTime.Unix() + int64(i%100)
		p.Extensions.Lang = "en"
		pages = append(pages, p)
	}
	// Two pages that may introduce one group.
	pages = append(pages, pagesOf("/a", "/a/", "/b")...)
	slices.SortFunc(pages, page.Compare)
	o := inFolders(beside, "x:b", "y:c")
	o.ShardURLs = 100
	o.News = &NewsOf{Publication: "The Example Times"}
	one := build(t, pages, nil, o)
	for workers := range 20 {
		o.Workers = workers
		o.Now = testTime.Add(time.Hour)
		other := build(t, slices.Clone(pages), nil, o)
		if !one.Equal(other) {
			t.Error("the sets differ")
		}
		for i, d := range one.All() {
			if o := other.All()[i]; !bytes.Equal(d.Gzip, o.Gzip) || d.Name != o.Name || d.ETag != o.ETag {
				t.Errorf("%s differs from %s", d.Name, o.Name)
			}
		}
	}
}

// changed are the names of the documents that a set did not take from the one before.
func changed(before, after *Set) (names []string) {
	for _, d := range after.All() {
		old := before.Find(d.Name)
		if old == nil || &old.Gzip[0] != &d.Gzip[0] || old.ETag != d.ETag || !old.Modified.Equal(d.Modified) {
			names = append(names, d.Name)
		}
	}
	return names
}

// TestCarriedOver changes one page in each way there is: the shards that change are counted, and other documents named.
func TestCarriedOver(t *testing.T) {
	const front, middle, latest = 0, 1234, 1999
	pages := numbered(2000)
	o := beside
	o.ShardURLs = 100
	o.Extended = true
	before := build(t, pages, nil, o)
	title := func(p *page.Page) { p.Extensions = &page.Extensions{Title: "Another"} }
	for _, test := range []struct {
		name   string
		at     int
		change func(p *page.Page)
		want   string
	}{
		{"nothing", 0, func(*page.Page) {}, "0"},
		{"what no document shows", middle, func(p *page.Page) {
			*p = page.Page{Path: p.Path, LastMod: p.LastMod, Version: 5, Extensions: new(page.Extensions)}
		}, "0"},
		{"an older lastmod of that day", middle, func(p *page.Page) { p.LastMod-- }, "1"},
		{"the newest lastmod", middle, func(p *page.Page) { p.LastMod += 1e6 }, "1 .atom .html .xml"},
		{"only the day", middle, func(p *page.Page) { p.LastModDay = true }, "1"},
		{"the first changefreq", middle, func(p *page.Page) { p.ChangeFreq = 1 }, "1 .css"}, // there is a column more
		{"the first priority", middle, func(p *page.Page) { p.Priority = 1 }, "1 .css"},
		{"images", middle, func(p *page.Page) { p.Extensions = &page.Extensions{Images: []string{"/i.png"}} }, "1"},
		{"a path", middle, func(p *page.Page) { p.Path += "x" }, "1 .html"},
		{"a title", middle, title, "0 .html"},
		{"the title of the latest page", latest, title, "0 .atom .html"},
		{"the title of the nearest page", front, title, "0 .html /llms.txt"},
		{"a description", latest, func(p *page.Page) { p.Extensions = &page.Extensions{Description: "Another"} }, "0 .atom"},
	} {
		o.Now = testTime.Add(time.Hour)
		pages := slices.Clone(pages)
		test.change(&pages[test.at])
		after := build(t, pages, before, o)
		shards := 0
		others := ""
		for _, name := range changed(before, after) {
			d := after.Find(name)
			if !d.Modified.Equal(o.Now.Truncate(time.Second)) || d.ETag == before.Find(name).ETag {
				t.Errorf("%s: %s is of %s", test.name, name, d.Modified)
			}
			if d.Pages > 0 {
				shards++
			} else {
				others += " " + name
			}
		}
		if got := fmt.Sprint(shards) + others; got != test.want {
			t.Errorf("%s: %q changed, want %q", test.name, got, test.want)
		}
		if before.Equal(after) != (test.want == "0") || (before.XMLDigest() == after.XMLDigest()) != (shards == 0) {
			t.Errorf("%s: the sets do not say what changed", test.name)
		}
	}
}

// TestModified: a version is later than the one before it, also where the clock was set back.
func TestModified(t *testing.T) {
	first := build(t, numbered(1), nil, Options{})
	for now, want := range map[time.Time]time.Time{
		testTime:                    first.Index.Modified.Add(time.Second),
		testTime.Add(-time.Hour):    first.Index.Modified.Add(time.Second),
		testTime.Add(2 * time.Hour): testTime.Add(2 * time.Hour).Truncate(time.Second),
	} {
		if got := build(t, numbered(2), first, Options{Now: now}).Index.Modified; !got.Equal(want) {
			t.Errorf("at %s: got %s, want %s", now, got, want)
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
		t.Error("the shards are others")
	}
	// The first one has always the same name.
	if earlier := build(t, slices.Concat(numberedBy(500, "/a/%d"), pages), after, o); earlier.Find(earlier.Shards[0].Name) != earlier.Shards[0] {
		t.Error("the name of the first shard leads to another one")
	}
}

// TestBeside: there is what is turned on, and a feed only of pages with dates.
func TestBeside(t *testing.T) {
	dated := []page.Page{{Path: "/", LastMod: -1}}
	for _, test := range []struct {
		name   string
		pages  []page.Page
		beside Beside
		want   string
	}{
		{"all", dated, beside.Beside, "-html.css -html.js .atom .css .html /llms.txt"},
		{"nothing", dated, Beside{}, ""},
		{"no dates", pagesOf("/"), Beside{Feed: true, LLMs: true}, "/llms.txt"},
	} {
		var got []string
		for _, d := range build(t, test.pages, nil, Options{Beside: test.beside}).Others {
			got = append(got, d.Name)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestExtensions: documents with extensions name their namespaces, and no others do.
func TestExtensions(t *testing.T) {
	pages := numbered(2000)
	pages[1234].Extensions = &page.Extensions{Images: []string{base + "/i.png"}}
	for _, test := range []struct {
		o    Options
		want int
	}{{Options{Extended: true}, 1}, {Options{}, 0}, {Options{Extended: true, Schema: Schema084}, 0}} {
		test.o.ShardURLs = 100
		got := 0
		for _, d := range build(t, pages, nil, test.o).Shards {
			xml := read(t, d.Open)
			images := strings.Count(xml, "<image:loc>https://example.com/i.png</image:loc>")
			if images != strings.Count(xml, "xmlns:image") {
				t.Errorf("%s has elements without their namespace, or the other way round", d.Name)
			}
			got += images
		}
		if got != test.want {
			t.Errorf("%+v: images of %d pages, want %d", test.o, got, test.want)
		}
	}
}

// TestLimits: no document is too large, and what fits into none is left out. A section has a document by its name, also where one
// of two pages fits into none.
func TestLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 150 MB")
	}
	huge := &page.Extensions{Images: []string{"/" + strings.Repeat("a", maxBytes)}}
	large := &page.Extensions{Images: []string{"/" + strings.Repeat("a", maxEntryBytes-200)}}
	pages := []page.Page{{Path: "/a/1", Extensions: large}, {Path: "/a/2", Extensions: huge}, {Path: "/b/1", Extensions: huge}}
	s := build(t, pages, nil, inFolders(Options{Extended: true}, "x:a", "y:b"))
	if got := shape(s); got != "index:sitemap sitemap-x=1" || s.LeftOut[TooLarge] != 2 || s.Shards[0].Size > maxBytes {
		t.Errorf("got %s, left out %v", got, s.LeftOut)
	}

	s = build(t, numbered(maxShards+3), nil, Options{ShardURLs: 1, Workers: 4})
	if len(s.Shards) != maxShards || s.Pages != maxShards || s.LeftOut[NoRoom] != 3 || s.Index.Size > maxBytes {
		t.Errorf("got %d shards, left out %v", len(s.Shards), s.LeftOut)
	}
}

func TestBuildFails(t *testing.T) {
	errOwn := errors.New("own")
	o := options(Options{ShardURLs: 100, Workers: 4})
	if s, err := Build(t.Context(), sequence(numbered(1000), errOwn), nil, o); s != nil || !errors.Is(err, errOwn) {
		t.Errorf("got %v, %v", s, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	s, err := Build(ctx, func(yield func(page.Page, error) bool) {
		for yield(page.Page{Path: fmt.Sprintf("/%04d", n)}, nil) {
			n++
			if n == 500 {
				cancel()
			}
		}
	}, nil, o)
	if s != nil || err != context.Canceled || n != 500 {
		t.Errorf("cancelled: got %v, %v after %d pages", s, err, n)
	}
}

// BenchmarkBuild is for a page, of the XML alone and with each kind of documents beside it.
func BenchmarkBuild(b *testing.B) {
	for name, kind := range map[string]Beside{
		"xml": {}, "people": {People: new(People)}, "feed": {Feed: true}, "llms": {LLMs: true},
	} {
		b.Run(name, func(b *testing.B) {
			pages := numberedBy(b.N, "/folder/page-%09d.html")
			for i := range pages {
				pages[i].Extensions = &page.Extensions{Title: "A page"}
			}
			b.ReportAllocs()
			b.ResetTimer()
			build(b, pages, nil, Options{Beside: kind})
		})
	}
}
