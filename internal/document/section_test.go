package document

import (
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

// isIndex reports whether a document lists shards.
func isIndex(d *Document) bool { return d.Type == "" && d.Pages == 0 && d.Name != NewsSitemap }

// shape is what a set lists: each index, and each urlset with its pages, those with a hash as one.
func shape(s *Set) string {
	var order []string
	pages := make(map[string]int)
	for _, d := range s.All() {
		name := "sitemap" + strings.TrimSuffix(d.Name, extension)
		switch {
		case isIndex(d):
			name = "index:" + name
		case d.Pages == 0:
			continue
		case IsHashed(d.Name):
			name = name[:len(name)-12] + "#"
		}
		if _, isKnown := pages[name]; !isKnown {
			order = append(order, name)
		}
		pages[name] += d.Pages
	}
	slices.Sort(order)
	for i, name := range order {
		if n := pages[name]; n > 0 {
			order[i] = fmt.Sprintf("%s=%d", name, n)
		}
	}
	return strings.Join(order, " ")
}

// TestSections: each section with pages has its own document, or an index and shards, whatever other sections there are.
func TestSections(t *testing.T) {
	all := foldersOf("a:300", "b:4", "c:300")
	turns := numbered(900)
	for _, test := range []struct {
		name     string
		pages    []page.Page
		sections string
		want     string
	}{
		{"off", foldersOf("a:3", "b:3"), "", "sitemap=6"},
		{"two", foldersOf("a:3", "b:4", "c:5"), "x:a y:b", "index:sitemap sitemap-#=5 sitemap-x=3 sitemap-y=4"},
		{"everything", foldersOf("a:3"), "x:a", "index:sitemap sitemap-x=3"},
		{"shards of a section", all[:304], "x:a", "index:sitemap index:sitemap-x sitemap-#=4 sitemap-x-#=300"},
		{"shards of the rest", all[300:], "x:b", "index:sitemap sitemap-#=300 sitemap-x=4"},
		{"shards of all", all, "x:a y:c", "index:sitemap index:sitemap-x index:sitemap-y sitemap-#=4 sitemap-x-#=300 sitemap-y-#=300"},
		{"in turns", turns, "x:0 y:1", "index:sitemap index:sitemap-x index:sitemap-y sitemap-#=720 sitemap-x-#=90 sitemap-y-#=90"},
	} {
		o := Options{ShardURLs: 100, Beside: Beside{Feed: true, Stylesheet: true}}
		without := build(t, test.pages, nil, o)
		if test.sections != "" {
			o = inFolders(o, strings.Fields(test.sections)...)
		}
		if test.name == "in turns" {
			o.ShardURLs = 30
			o.SectionOf = func(path string) string { return map[byte]string{'0': "x", '1': "y"}[path[len(path)-6]] }
		}
		s := build(t, test.pages, nil, o)
		if got := shape(s); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
		checkSections(t, s, test.pages, o)
		// The feed and the stylesheet do not depend on sections.
		for _, name := range []string{Feed, Stylesheet} {
			if s.Find(name).ETag != without.Find(name).ETag {
				t.Errorf("%s: %s is another one", test.name, name)
			}
		}
		// Each section has the shards that it would have alone.
		alone := slices.DeleteFunc(slices.Clone(test.pages), func(p page.Page) bool { return o.SectionOf == nil || o.SectionOf(p.Path) != "x" })
		if other := build(t, alone, nil, o); other != nil {
			for _, d := range other.Shards {
				if same := s.Find(d.Name); same == nil || same.ETag != d.ETag {
					t.Errorf("%s: %s depends on other sections", test.name, d.Name)
				}
			}
		}
	}
}

// checkSections checks what must hold of any set: each page is in one document, of its section; the index lists all
// urlsets and nothing else, and that of a section those of the section.
func checkSections(t *testing.T, s *Set, pages []page.Page, o Options) {
	t.Helper()
	counts := make(map[string]int)
	for _, p := range pages {
		section := ""
		if o.SectionOf != nil {
			section = o.SectionOf(p.Path)
		}
		counts[section]++
		d := s.Holding(section, p.Path)
		isListed, err := d.Lists(base + p.Path)
		if isIndex(d) || d.Section != section || !isListed || err != nil {
			t.Fatalf("%s is not in %s: %v", p.Path, d.Name, err)
		}
	}
	for _, section := range s.Sections() {
		if section.Pages != counts[section.Name] || section.Shards == 0 {
			t.Errorf("got %+v, want %d pages", section, counts[section.Name])
		}
	}
	all := s.All()
	for i, d := range all {
		if s.Find(d.Name) != d {
			t.Errorf("%s is not found", d.Name)
		}
		if !isIndex(d) {
			continue
		}
		var want []string
		for _, shard := range s.Shards {
			if d == s.Index || shard.Section == SectionOf(d.Name) {
				want = append(want, shard.Name)
			}
			if slices.Contains(all[i:], shard) {
				t.Errorf("%s comes before what it lists", d.Name)
			}
		}
		var got []string
		for _, entry := range strings.Split(read(t, d.Open), "<loc>https://example.com/sitemap")[1:] {
			name, _, _ := strings.Cut(entry, "</loc>")
			got = append(got, name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the index of '%s' lists %q, want %q", SectionOf(d.Name), got, want)
		}
	}
}

// TestSectionURLs: documents of many sections are smaller, as each is held.
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

// TestRetiredSections: names of shards of sections lead on, also after a restart; those of sections are gone with them.
func TestRetiredSections(t *testing.T) {
	pages := foldersOf("a:300", "b:3", "c:300")
	o := Options{ShardURLs: 100}
	before := build(t, pages, nil, inFolders(o, "old:a", "small:b"))
	for _, test := range []struct {
		name     string
		pages    []page.Page
		sections string
		want     string // which of the names of the sections are still there
	}{
		{"as before", pages, "old:a small:b", "-old -small"},
		{"both renamed", pages, "new:a tiny:b", ""},
		{"removed, all else in a section", foldersOf("c:3"), "c:c", ""},
		{"renamed, without pages", foldersOf("b:3", "c:300"), "new:a small:b", "-small"},
		{"in one document", foldersOf("a:30", "b:3", "c:300"), "old:a small:b", "-old -small"},
	} {
		o := inFolders(o, strings.Fields(test.sections)...)
		o.Now = testTime.Add(time.Hour)
		after := build(t, test.pages, before, o)
		for _, s := range []*Set{after, restored(t, after)} {
			var got []string
			for _, name := range []string{"-old", "-small"} {
				if s.Find(name+".xml") != nil {
					got = append(got, name)
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%s: there are %q, want %q", test.name, got, test.want)
			}
			for _, shard := range before.Shards {
				if !IsHashed(shard.Name) {
					continue
				}
				d := s.Find(shard.Name)
				holds := s.Holding(o.SectionOf(shard.First), shard.First)
				if d == nil || d.Name != shard.Name && d != holds {
					t.Errorf("%s: %s leads to %+v, want %s", test.name, shard.Name, d, holds.Name)
				}
			}
		}
	}
}
