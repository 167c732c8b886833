package crawl

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// linkedSite is a site whose front page links to /few and n others, all of which link to /many/ in one of several spellings.
func linkedSite(n int) (pages map[string]string) {
	pages = map[string]string{"/few": "", "/few/others": "", "/many/": "/few/others /few/others", "/alone": "/alone", "/copy": "<link rel=canonical href=/alone>"}
	front := "/few"
	for i := range n {
		path := fmt.Sprintf("/%c/%03d", 'a'+i%26, i)
		front += " " + path
		pages[path] = []string{"/many/", "/many/index.html", "/many"}[i%3]
	}
	pages["/"] = front
	return pages
}

// magnitudes are those of how many pages link to the pages of a path's beginning.
func magnitudes(t *testing.T, gen *store.Generation, prefix string) string {
	return describe(t, gen, func(rec *store.Record) string {
		if !strings.HasPrefix(rec.Path, prefix) {
			return ""
		}
		return fmt.Sprint(rec.Path, " ", rec.Linkers.Magnitude())
	})
}

// TestLinkers: pages are counted that link to another, however it is spelled, and only where that is wanted. What is fetched
// again makes no difference.
func TestLinkers(t *testing.T) {
	for name, policy := range map[string]Policy{"files": plain, "links": with(func(p *Policy) { p.Links = true })} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := &static{pages: linkedSite(300)}
				if policy.Links {
					site.pages["/many"] = "302 /many/"
					site.pages["/many/index.html"] = "302 /many/"
				}
				var cands []page.Page
				if !policy.Links {
					for path := range site.pages {
						cands = append(cands, named(path)...)
					}
				} else {
					cands = named("/alone", "/copy")
				}
				sortPages(cands)
				c := New(Options{Own: true, Fetcher: site})
				p := policy
				gen := crawlAll(t, c, empty(t), p, cands...).Generation
				if got := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Linkers != 0 }); got != "" {
					t.Errorf("counted, and not wanted: %s", got)
				}
				p.CountLinkers = true
				p.Routes = 1
				var before string
				for i := range 3 {
					gen = crawlAll(t, c, gen, p, cands...).Generation
					counts := describe(t, gen, func(rec *store.Record) string { return fmt.Sprintf("%s %x", rec.Path, rec.Linkers) })
					if i == 2 && counts != before {
						t.Errorf("fetched again: got %s, want %s", counts, before)
					}
					before = counts
					p.RefetchAll = true
					time.Sleep(time.Hour)
				}
				for _, want := range []string{"/many/ 9", "/few 1 /few/others 1", "/alone 0"} {
					got := magnitudes(t, gen, want[:strings.IndexByte(want, ' ')])
					if !strings.HasPrefix(got, want) {
						t.Errorf("got %s, want %s", got, want)
					}
				}
				p.CountLinkers = false
				p.Routes = 2
				gen = crawlAll(t, c, gen, p, cands...).Generation
				if got := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Linkers != 0 }); got != "" {
					t.Errorf("kept, and not wanted: %s", got)
				}
			})
		})
	}
}

// TestLateLinkers: a page that is known from the first one that links to it has those that are found later, too.
func TestLateLinkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 60
		pages := map[string]string{"/": "/page/00 /target", "/target": ""}
		var want store.Linkers
		want = want.With(hashOf("/"))
		for i := range n {
			path := fmt.Sprintf("/page/%02d", i)
			pages[path] = fmt.Sprintf("/target /page/%02d", i+1) // each is found in a round of its own
			want = want.With(hashOf(path))
		}
		c := New(Options{Own: true, Fetcher: &static{pages: pages}})
		p := with(func(p *Policy) {
			p.Links = true
			p.CountLinkers = true
		})
		gen := crawlAll(t, c, empty(t), p).Generation
		rec, err := gen.Find(t.Context(), "/target")
		if err != nil || rec == nil || rec.Linkers.Magnitude() != want.Magnitude() {
			t.Errorf("got %+v, %v, want magnitude %d", rec, err, want.Magnitude())
		}
	})
}

// TestLinkersOfRandomSites: the records have what counting each link would, or half of it.
func TestLinkersOfRandomSites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(5, 6))
		for range 10 {
			const n = 400
			pages := make(map[string]string)
			exact := make(map[string]store.Linkers)
			at := func(i int) string { return fmt.Sprintf("/%c/%d", 'a'+i%20, i) }
			for from := range n {
				var text strings.Builder
				for range random.IntN(30) {
					where := random.Float64()
					to := at(int(where * where * n))
					text.WriteString(" " + to)
					if to != at(from) {
						exact[to] = exact[to].With(hashOf(at(from)))
					}
				}
				pages[at(from)] = text.String()
			}
			var cands []page.Page
			for path := range pages {
				cands = append(cands, named(path)...)
			}
			sortPages(cands)
			c := New(Options{Own: true, Fetcher: &static{pages: pages}, Workers: 2})
			p := with(func(p *Policy) { p.CountLinkers = true })
			gen := crawlAll(t, c, empty(t), p, cands...).Generation
			for rec, err := range gen.Records(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				want := exact[rec.Path]
				isPart := rec.Linkers.Merge(want) == want
				if !isPart || rec.Linkers.Magnitude()+1 < want.Magnitude() {
					t.Errorf("%s: got %x, %d, want %x, %d", rec.Path, rec.Linkers, rec.Linkers.Count(), want, want.Count())
				}
			}
		}
	})
}

func sortPages(pages []page.Page) { slices.SortFunc(pages, page.Compare) }

func hashOf(path string) uint64 { return xxhash.Sum64String(path) }

// BenchmarkLinkers is for a page of a site of files, with 30 links, to be fetched for the first time.
func BenchmarkLinkers(b *testing.B) {
	for name, p := range map[string]Policy{"off": plain, "on": with(func(p *Policy) { p.CountLinkers = true })} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			pages := make(map[string]string)
			var cands []page.Page
			at := func(i int) string { return fmt.Sprintf("/folder-%05d/page-%07d.html", i/100, i) }
			for i := range b.N {
				var text strings.Builder
				for k := range 30 {
					to := (i + k) % b.N // nearby
					if k%3 == 0 {
						to = k // a menu
					}
					text.WriteString(" " + at(to))
				}
				pages[at(i)] = text.String()
				cands = append(cands, named(at(i))...)
			}
			sortPages(cands)
			c := New(Options{Own: true, Fetcher: &static{pages: pages}})
			b.ResetTimer()
			run := c.Start(&list{pages: cands}, p)
			gen := empty(b)
			for {
				result, err := run.Update(b.Context(), gen, TimeLimit{Until: time.Now().Add(time.Minute)})
				if err != nil {
					b.Fatal(err)
				}
				gen = result.Generation
				if result.Done {
					break
				}
			}
		})
	}
}
