package document

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// inFolders are options with a section for each of these folders, given as name:folder.
func inFolders(o Options, sections ...string) Options {
	folders := make(map[string]string)
	for _, section := range sections {
		name, folder, _ := strings.Cut(section, ":")
		o.Sections = append(o.Sections, name)
		folders["/"+folder] = name
	}
	o.SectionOf = func(path string) string {
		folder := path[:strings.LastIndexByte(path, '/')]
		return folders[folder]
	}
	return o
}

// foldersOf are pages of folders, given as folder:count.
func foldersOf(folders ...string) (pages []page.Page) {
	for _, folder := range folders {
		var n int
		name, count, _ := strings.Cut(folder, ":")
		_, _ = fmt.Sscan(count, &n)
		for i := range n {
			pages = append(pages, page.Page{Path: fmt.Sprintf("/%s/%06d", name, i), LastMod: 1_700_000_000 + int64(i)})
		}
	}
	slices.SortFunc(pages, page.Compare)
	return pages
}

// shape is what a set consists of: each document with its pages, shards with a hash as one.
func shape(s *Set) string {
	if s == nil {
		return ""
	}
	pages := make(map[string]int)
	var order []string
	add := func(kind string, d *Document) {
		name := kind + "sitemap"
		if section := d.Section; section != "" {
			name += "-" + section
		}
		if d.Name != NameOfSection(d.Section) {
			name += "-#"
		}
		if _, known := pages[name]; !known {
			order = append(order, name)
		}
		pages[name] += d.Pages
	}
	indexed := func(d *Document) string {
		if d.Index {
			return "index:"
		}
		return ""
	}
	add(indexed(s.Index), s.Index)
	for _, d := range slices.Concat(s.Others, s.Shards) {
		add(indexed(d), d)
	}
	for i, name := range order {
		if n := pages[name]; n > 0 {
			order[i] = fmt.Sprintf("%s=%d", name, n)
		}
	}
	return strings.Join(order, " ")
}

func TestSections(t *testing.T) {
	for _, test := range []struct {
		name     string
		pages    []page.Page
		sections string
		want     string
	}{
		{"off", foldersOf("a:3", "b:3"), "", "sitemap=6"},
		{"one", foldersOf("a:3", "b:4"), "x:a", "index:sitemap sitemap-#=4 sitemap-x=3"},
		{"two", foldersOf("a:3", "b:4", "c:5"), "x:a y:b", "index:sitemap sitemap-#=5 sitemap-x=3 sitemap-y=4"},
		{"nothing", foldersOf("a:3"), "x:b", "sitemap=3"},
		{"everything", foldersOf("a:3"), "x:a", "index:sitemap sitemap-x=3"},
		{"no pages", nil, "x:a", ""},
		{"shards of a section", foldersOf("a:300", "b:4"), "x:a", "index:sitemap index:sitemap-x sitemap-#=4 sitemap-x-#=300"},
		{"shards of the rest", foldersOf("a:3", "b:300"), "x:a", "index:sitemap sitemap-#=300 sitemap-x=3"},
		{"shards of all", foldersOf("a:300", "b:300", "c:400"), "x:a y:b", "index:sitemap index:sitemap-x index:sitemap-y sitemap-#=400 sitemap-x-#=300 sitemap-y-#=300"},
	} {
		var first *Set
		for _, workers := range []int{1, 4} {
			o := Options{ShardURLs: 100, Workers: workers}
			if test.sections != "" {
				o = inFolders(o, strings.Fields(test.sections)...)
			}
			s := build(t, test.pages, nil, o)
			if got := shape(s); got != test.want {
				t.Errorf("%s: got %s, want %s", test.name, got, test.want)
			}
			if s == nil {
				continue
			}
			checkSections(t, s, test.pages, o)
			if first != nil && !first.Equal(s) {
				t.Errorf("%s: the documents depend on the number of workers", test.name)
			}
			first = s
		}
	}
}

// checkSections checks what must hold of any set: each page is in one document, of its section; the index lists all
// urlsets and nothing else, and that of a section those of the section.
func checkSections(t *testing.T, s *Set, pages []page.Page, o Options) {
	t.Helper()
	if s.Pages != len(pages) {
		t.Errorf("got %d pages, want %d", s.Pages, len(pages))
	}
	for _, p := range pages {
		section := ""
		if o.SectionOf != nil {
			section = o.SectionOf(p.Path)
		}
		d := s.Holding(section, p.Path)
		if d.Index || d.Section != section || !strings.Contains(read(t, d.Text), p.Path+"\n") {
			t.Fatalf("%s is not in %s", p.Path, d.Name)
		}
	}
	for _, d := range append(slices.Clone(s.Others), s.Index) {
		if !d.Index {
			continue
		}
		index := read(t, d.Open)
		n := 0
		for _, shard := range s.Shards {
			isOf := d.Name == ".xml" || shard.Section == d.Section
			if isOf {
				n++
			}
			if strings.Contains(index, "/sitemap"+shard.Name+"</loc>") != isOf {
				t.Errorf("%s in the index of '%s': want %t", shard.Name, d.Section, isOf)
			}
		}
		if n != strings.Count(index, "<loc>") {
			t.Errorf("the index of '%s' lists other documents:\n%s", d.Section, index)
		}
	}
	all := s.All()
	for i, d := range all {
		if s.Find(d.Name) != d {
			t.Errorf("%s is not found", d.Name)
		}
		isShard := func(other *Document) bool { return other.Pages > 0 }
		if d.Index && slices.ContainsFunc(all[i:], isShard) {
			t.Errorf("%s comes before what it lists", d.Name)
		}
	}
}

// TestSectionsComeInTurns: the pages of sections need not be next to each other.
func TestSectionsComeInTurns(t *testing.T) {
	pages := numbered(3000)
	o := Options{ShardURLs: 100, Sections: []string{"s0", "s1", "s2"}}
	o.SectionOf = func(path string) string {
		name := "s" + path[len(path)-6:len(path)-5] // the last digit
		if slices.Contains(o.Sections, name) {
			return name
		}
		return ""
	}
	s := build(t, pages, nil, o)
	checkSections(t, s, pages, o)
	want := []Section{{"s0", 300, 0}, {"s1", 300, 0}, {"s2", 300, 0}}
	for i, got := range s.Sections() {
		if got.Shards < 2 || got.Name != want[i].Name || got.Pages != want[i].Pages {
			t.Errorf("got %+v, want %+v", got, want[i])
		}
	}
	// Each section has the shards that it would have alone.
	alone := slices.DeleteFunc(slices.Clone(pages), func(p page.Page) bool { return o.SectionOf(p.Path) != "s1" })
	other := build(t, alone, nil, o)
	for _, d := range other.Shards {
		if same := s.Find(d.Name); same == nil || same.ETag != d.ETag {
			t.Errorf("%s depends on other sections", d.Name)
		}
	}
}

// TestAddingSection: it changes the shards of its pages, and the indexes.
func TestAddingSection(t *testing.T) {
	pages := foldersOf("a:1000", "b:1000", "c:1000", "d:5")
	before := build(t, pages, nil, inFolders(Options{ShardURLs: 50}, "x:b"))
	after := build(t, pages, before, inFolders(Options{ShardURLs: 50, Now: testTime.Add(time.Hour)}, "x:b", "y:d"))
	last := before.Shards[slices.IndexFunc(before.Shards, func(d *Document) bool { return d.Section == "x" })-1]
	for _, suffix := range changed(before, after) {
		if suffix != ".xml" && suffix != "-y.xml" && suffix != last.Name {
			t.Errorf("%s has changed", suffix)
		}
	}
	if d := after.Find("-y.xml"); d == nil || d.Pages != 5 {
		t.Errorf("got %+v", d)
	}
	// In another order, and with sections that match nothing, the documents are the same.
	again := build(t, pages, after, inFolders(Options{ShardURLs: 50, Now: testTime.Add(2 * time.Hour)}, "z:z", "y:d", "x:b"))
	if !after.Equal(again) {
		t.Errorf("changed: %q", changed(after, again))
	}
}

// TestHoldingInSection: what sorts before the first page of a section would be in its first shard.
func TestHoldingInSection(t *testing.T) {
	s := build(t, foldersOf("a:300", "b:300"), nil, inFolders(Options{ShardURLs: 100}, "x:b"))
	for path, want := range map[string]string{"/": "-x-000000000000.xml", "/b/000000": "-x-000000000000.xml", "/a/000000": "-x-000000000000.xml"} {
		if got := s.Holding("x", path).Name; got != want {
			t.Errorf("%s is in %s, want %s", path, got, want)
		}
	}
	if got := s.Holding("x", "/z"); got != s.Shards[len(s.Shards)-1] {
		t.Errorf("the last page would be in %s", got.Name)
	}
}

// TestTooLargeInSection: a section has a document by its name, also where a page of two fits into none.
func TestTooLargeInSection(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 150 MB")
	}
	huge := &page.Extensions{Images: []string{"/" + strings.Repeat("a", maxBytes)}}
	pages := []page.Page{{Path: "/a/1"}, {Path: "/a/2", Extensions: huge}, {Path: "/b/1", Extensions: huge}}
	s := build(t, pages, nil, inFolders(Options{Extended: true}, "x:a", "y:b"))
	if got := shape(s); got != "index:sitemap sitemap-x=1" || s.LeftOut[TooLarge] != 2 {
		t.Errorf("got %s, left out %v", got, s.LeftOut)
	}
}

func TestSectionURLs(t *testing.T) {
	for _, test := range []struct{ sections, shardURLs, want int }{
		{1, 0, 50_000}, {1, 100, 100}, {20, 0, 50_000}, {21, 0, 10_000}, {100, 50_000, 10_000}, {100, 9_999, 9_999},
	} {
		o := options(Options{ShardURLs: test.shardURLs, Sections: make([]string, test.sections)})
		got := newBuilder(nil, o).newCutter("a").most
		if got != test.want || got*min(test.sections, MaxSections) > maxHeld {
			t.Errorf("%+v: got %d", test, got)
		}
	}
}

// TestRetiredSections: names of shards of sections lead on; those of sections are gone with them.
func TestRetiredSections(t *testing.T) {
	pages := foldersOf("a:300", "b:3", "c:300")
	opts := func(sections ...string) Options { return inFolders(Options{ShardURLs: 100}, sections...) }
	before := build(t, pages, nil, opts("old:a", "small:b"))
	shards := make(map[string]string) // first pages, by suffix
	for _, d := range before.Shards {
		if d.Name == NameOfSection(d.Section) {
			continue
		}
		shards[d.Name] = d.First
	}
	for _, test := range []struct {
		name     string
		pages    []page.Page
		sections []string
		want     string // which of the names of the sections are still there
	}{
		{"as before", pages, []string{"old:a", "small:b"}, "-old -small"},
		{"renamed", pages, []string{"new:a", "small:b"}, "-small"},
		{"both renamed", pages, []string{"new:a", "tiny:b"}, ""},
		{"exchanged", pages, []string{"small:a", "old:b"}, "-old -small"},
		{"removed", pages, nil, ""},
		{"removed, without pages", foldersOf("c:3"), nil, ""},
		{"removed, all else in a section", foldersOf("c:3"), []string{"c:c"}, ""},
		{"without pages", foldersOf("b:3", "c:300"), []string{"old:a", "small:b"}, "-small"},
		{"renamed, without pages", foldersOf("b:3", "c:300"), []string{"new:a", "small:b"}, "-small"},
		{"in one document", foldersOf("a:30", "b:3", "c:300"), []string{"old:a", "small:b"}, "-old -small"},
	} {
		o := opts(test.sections...)
		o.Now = testTime.Add(time.Hour)
		after := build(t, test.pages, before, o)
		meta, g := kept(t, after)
		restored, err := Restore(t.Context(), meta, g, nil)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if !after.Equal(restored) {
			t.Errorf("%s: it is not restored as it was", test.name)
		}
		for _, s := range []*Set{after, restored} {
			var got []string
			for _, suffix := range []string{"-old", "-small"} {
				if s.Find(suffix+".xml") != nil {
					got = append(got, suffix)
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%s: there are %q, want %q", test.name, got, test.want)
			}
			for suffix, first := range shards {
				d := s.Find(suffix)
				holds := s.Holding(o.SectionOf(first), first)
				if d == nil || d.Name != suffix && d != holds {
					t.Errorf("%s: %s leads to %+v, want %s", test.name, suffix, d, holds.Name)
				}
			}
		}
	}
}

// TestRestoreSections: what follows a restart carries over.
func TestRestoreSections(t *testing.T) {
	pages := foldersOf("a:300", "b:3", "c:300")
	o := inFolders(Options{ShardURLs: 100, Beside: Beside{People: new(People)}}, "x:a", "y:b")
	s := build(t, pages, nil, o)
	meta, g := kept(t, s)
	restored, err := Restore(t.Context(), meta, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(restored.Sections(), s.Sections()) || restored.Find("-x.xml").First != s.Find("-x.xml").First {
		t.Errorf("got %+v, want %+v", restored.Sections(), s.Sections())
	}
	o.Now = testTime.Add(time.Hour)
	if got := changed(restored, build(t, pages, restored, o)); got != nil {
		t.Errorf("%q changed", got)
	}
	for i, d := range s.All() {
		if got := restored.All()[i]; got.Name != d.Name || !bytes.Equal(got.Gzip, d.Gzip) {
			t.Errorf("got %s, want %s", got.Name, d.Name)
		}
	}
}

// TestFilesWithSections: what is beside the XML does not depend on sections, but for llms.txt and the pages for people.
func TestFilesWithSections(t *testing.T) {
	pages := foldersOf("a:300", "b:3", "c:300")
	o := Options{ShardURLs: 100, Beside: Beside{Feed: true, Stylesheet: true}}
	without := build(t, pages, nil, o)
	with := build(t, pages, nil, inFolders(o, "x:a", "y:b"))
	isIndex := func(d *Document) bool { return d.Index }
	if !slices.EqualFunc(without.Others, slices.DeleteFunc(with.Others, isIndex), isSame) {
		t.Error("they differ")
	}
}

func BenchmarkSections(b *testing.B) {
	pages := numbered(200_000)
	o := options(Options{})
	for name, o := range map[string]Options{"off": o, "sections": inFolders(o, "x:p")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Build(b.Context(), sequence(pages, nil), nil, o); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pages)), "ns/page")
		})
	}
}

func BenchmarkNames(b *testing.B) {
	names := Names([]string{"blog", "docs", "a-longer-name-of-a-section"}, Beside{})
	for _, name := range []string{".xml", "-0123456789ab.xml", "-a-longer-name-of-a-section.xml"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				names.MatchString(name)
			}
		})
	}
}
