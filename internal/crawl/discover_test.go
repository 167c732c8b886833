package crawl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// TestSpellings: a link to the page of a file counts for the name of the file, however it spells that. Other paths stay
// as they are spelled.
func TestSpellings(t *testing.T) {
	files := named("/", "/a,b.html", "/c;d/", "/p/q.html")
	site := map[string]string{
		"/": "/a%2Cb.html /c%3Bd /p%2Fq.html /x%2Cy /x,y /u%2Fv", "/a,b.html": "/a%2Cb.html", "/c;d/": "<link rel=canonical href=/c%3Bd/>", "/p/q.html": "",
		"/x%2Cy": "encoded", "/x,y": "bare", "/u%2Fv": "",
		"/list": "<link rel=canonical href=/a%2Cb.html>", "/moved/": "301 /moved/x%2Cy", "/moved/x%2Cy": "", "/moved/x,z": "",
		"/again/": "301 /again/x%2Cz", "/again/x%2Cz": "301 /again/x,z", "/again/x,z": "",
	}
	links := with(func(p *Policy) { p.Links = true })
	for _, test := range []struct {
		name   string
		policy Policy
		cands  []page.Page
		want   string // "linked" marks those that a page links to
	}{
		{"files", links, files, "/ linked /a,b.html linked /c%3Bd linked /c;d/ linked /p/q.html linked /u%2Fv linked /x%2Cy linked /x,y linked"},
		{"files alone", plain, files, "/ /a,b.html linked /c;d/ linked /p/q.html linked"},
		{"no files", links, nil, "/ linked /a%2Cb.html linked /c%3Bd linked /p%2Fq.html linked /u%2Fv linked /x%2Cy linked /x,y linked"},
		{"a list", links, []page.Page{{Path: "/a,b.html"}}, "/ linked /a%2Cb.html linked /a,b.html linked /c%3Bd linked /p%2Fq.html linked /u%2Fv linked /x%2Cy linked /x,y linked"},
		{"a list beside files", links, append(named("/"), page.Page{Path: "/a,b.html"}), "/ linked /a%2Cb.html linked /a,b.html linked /c%3Bd linked /p%2Fq.html linked /u%2Fv linked /x%2Cy linked /x,y linked"},
		{"itself", plain, named("/a,b.html"), "/a,b.html"},
		{"out of scope as it is spelled", with(func(p *Policy) { p.Links, p.Scope = true, "/u/" }), named("/"), "/ /u/ linked"},
		{"a redirect", with(func(p *Policy) { p.Links, p.Scope = true, "/moved/" }), named("/moved/x,z"), "/moved/ linked /moved/x%2Cy linked /moved/x,z"},
		{"scope", with(func(p *Policy) { p.Links, p.Scope = true, "/p/" }), named("/", "/p/q.html"), "/ /p/ linked /p/q.html linked"},
		{"a redirect to another spelling", with(func(p *Policy) { p.Links, p.Scope = true, "/again/" }), nil, "/again/ linked /again/x%2Cz linked /again/x,z linked"},
		{"a canonical", plain, append(named("/a,b.html"), page.Page{Path: "/list"}), "/a,b.html linked /list"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &static{pages: site}
			c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1), Own: true})
			gen := crawlAll(t, c, empty(t), test.policy, test.cands...).Generation
			got := describe(t, gen, func(rec *record.Record) string {
				if rec.Linked != 0 {
					return rec.Path + " linked"
				}
				return rec.Path
			})
			if got != test.want {
				t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
			}
			canonical := describe(t, gen, func(rec *record.Record) string { return rec.Canonical })
			if want := strings.Repeat("/a%2Cb.html", strings.Count(test.want, "/list")); canonical != want {
				t.Errorf("%s: got the canonical %q, want %q: a file is its own", test.name, canonical, want)
			}
		})
	}
}

// TestAliases: a link counts for the page that has another form of its path.
func TestAliases(t *testing.T) {
	cands := named("/", "/b/", "/c", "/c?x=1", "/d.html", "/d/x", "/e", "/f.html", "/f", "/folder00.htm")
	s := &static{pages: make(map[string]string)}
	for _, p := range cands {
		s.pages[p.Path] = ""
	}
	s.pages["/"] = "/b/index.html /c.php?x=1 /d /e/ /f.html /folder00/"
	for i := range 8000 { // in several chunks
		cands = append(cands, page.Page{Path: fmt.Sprintf("/folder%02d/%05d", i%20, i), Version: 1})
	}
	slices.SortFunc(cands, page.Compare)
	for _, change := range []func(p *Policy){func(*Policy) {}, func(p *Policy) { p.Discover = true }, func(p *Policy) { p.Links = true }} {
		synctest.Test(t, func(t *testing.T) {
			p := with(change)
			p.Query = []string{"x"}
			gen := crawlAll(t, New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)}), empty(t), p, cands...).Generation
			linked := pathsIf(t, gen, func(rec *record.Record) bool {
				return rec.Linked != 0 && rec.Flags&record.Named != 0 && rec.Path != "/"
			})
			if want := "/b/ /c?x=1 /d.html /e /f.html /folder00.htm"; linked != want || len(gen.Chunks()) < 3 {
				t.Errorf("got %s, want %s", linked, want)
			}
		})
	}
}

// needsLink reports, for tests, whether a page is listed only while another links to it.
func needsLink(rec *record.Record) bool {
	return rec.Path != "/" && (rec.Flags&record.Named == 0 || strings.Contains(rec.Path, "/_"))
}

// linksCount is a policy's, for tests: the links of a page that needs one itself count once it has one.
func linksCount(rec *record.Record) bool { return rec.Linked != 0 || !needsLink(rec) }

// TestLinksThatCount: the links of a page that needs a link itself count only once it has one, so that pages that link
// to each other alone do not have each other listed.
func TestLinksThatCount(t *testing.T) {
	for _, test := range []struct {
		name  string
		links bool // a policy with Links
		pages map[string]string
		named string
		want  string // pages with a link that counts
	}{
		{"two drafts", false, map[string]string{"/": "", "/_a": "/_b", "/_b": "/_a"}, "/ /_a /_b", ""},
		{"two drafts, links", true, map[string]string{"/": "", "/_a": "/_b", "/_b": "/_a"}, "/ /_a /_b", ""},
		{"a draft links to pages", true, map[string]string{"/": "", "/_a": "/_b /c", "/_b": "", "/c": "", "/d": ""}, "/ /_a /_b /d", ""},
		{"a page links to drafts", false, map[string]string{"/": "/a", "/a": "/_a", "/_a": "/_b", "/_b": "/_a"}, "/ /_a /_b /a", "/_a /_b /a"},
		{"a page that needs no link", false, map[string]string{"/": "", "/a": "/_a", "/_a": ""}, "/ /_a /a", "/_a"},
		{"a page without response", false, map[string]string{"/": "", "/_a": ""}, "/ /_a /a", ""},
		{"against the order of paths", false, map[string]string{"/": "/_z", "/_z": "/_y", "/_y": "/_x", "/_x": "/_a", "/_a": ""}, "/ /_a /_x /_y /_z", "/_a /_x /_y /_z"},
		{"discovered", true, map[string]string{"/": "/a", "/a": "/_z", "/_z": "/b", "/b": "/_y", "/_y": ""}, "/ /_y /_z", "/_y /_z /a /b"},
		{"a redirect", true, map[string]string{"/": "/_a", "/_a": "302 /b", "/b": "", "/_c": "302 /d", "/d": ""}, "/ /_a /_c", "/_a /b"},
		{"a redirect that a source names", true, map[string]string{"/": "", "/a": "302 /b", "/b": ""}, "/ /a", "/b"},
		{"a canonical", true, map[string]string{"/": "/_a", "/_a": "<link rel=canonical href=/b>", "/b": "", "/_c": "<link rel=canonical href=/d>", "/d": ""}, "/ /_a /_c", "/_a /b"},
		{"an alias", false, map[string]string{"/": "/_a.html", "/_a": "", "/_b": "/_c.html", "/_c": ""}, "/ /_a /_b /_c", "/_a"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &static{pages: test.pages}
			p := with(func(p *Policy) {
				p.Links = test.links
				p.Counts = linksCount
			})
			c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)})
			gen := crawlAll(t, c, empty(t), p, named(strings.Fields(test.named)...)...).Generation
			got := pathsIf(t, gen, func(rec *record.Record) bool { return rec.Linked != 0 && rec.Path != "/" })
			if got != test.want {
				t.Errorf("%s: linked are %s, want %s", test.name, got, test.want)
			}
			targets := pathsIf(t, gen, func(rec *record.Record) bool { return rec.Flags&record.Target != 0 && rec.Linked == 0 })
			if targets != "" {
				t.Errorf("%s: %s are canonicals, without a link", test.name, targets)
			}
			pages := s.fetched()
			slices.Sort(pages)
			if once := slices.Compact(slices.Clone(pages)); len(once) != len(pages) {
				t.Errorf("%s: fetched %s, want each page once", test.name, pages)
			}
		})
	}
}

// TestTooDeepLeaveRoom: pages that are recorded only to be named take no place of those that are fetched.
func TestTooDeepLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{pages: map[string]string{"/": "/hub", "/hub": "/x/a /x/b /x/c /x/d /x/e"}}
		p := with(func(p *Policy) { p.Links, p.Depth, p.MaxPaths = true, 1, 4 })
		c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)})
		gen := crawlAll(t, c, empty(t), p).Generation
		s.pages["/"] += " /new"
		s.pages["/new"] = ""
		p.Routes++ // all pages are fetched again
		gen = crawlAll(t, c, gen, p).Generation
		if got, want := paths(t, gen), "/ /hub /new -/x/a -/x/b -/x/c -/x/d"; got != want {
			t.Errorf("recorded are %s, want %s", got, want)
		}
	})
}

// TestLargestGroupGivesWay: what is over max_paths is dropped from the largest group of pages that were never fetched.
func TestLargestGroupGivesWay(t *testing.T) {
	const days, products = 300, 20
	for _, test := range []struct {
		name         string
		isOwn        bool   // no upstream returns the pages
		finder       string // of the list
		maxPaths     int
		then         int // max_paths after some seconds
		wantProducts int
		wantDropped  int
	}{
		{name: "room for all", finder: "/", maxPaths: 400, then: 400, wantProducts: products},
		{name: "room for some", finder: "/", maxPaths: 100, then: 100, wantProducts: products, wantDropped: 2 + days + products - 100},
		{name: "less room than before", finder: "/", maxPaths: 200, then: 100, wantProducts: products},
		{name: "none waits", finder: "/days/du", maxPaths: 100, then: 100},
		{name: "none waits of the site's own", isOwn: true, finder: "/", maxPaths: 100, then: 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &static{made: !test.isOwn, pages: map[string]string{"*": "a page"}}
			for i := range days {
				s.pages["/"] += fmt.Sprintf(" /days/%c%c", 'a'+i/26, 'a'+i%26)
			}
			for i := range products {
				s.pages["/all"] += fmt.Sprintf(" /products/%c", 'a'+i)
			}
			s.pages[test.finder] += " /all"
			p := with(func(p *Policy) { p.Links, p.MaxPaths = true, test.maxPaths })
			c := New(Options{Fetcher: s, Limiter: NewLimiter(1, 1)})
			run := c.Start(new(list), p)
			gen := update(t, run, empty(t), 10*time.Second).Generation
			if test.then != test.maxPaths {
				p.MaxPaths = test.then
				p.Routes++ // the front page is fetched again, and has a new link
				s.pages["/"] += " /new"
				run = c.Start(new(list), p)
			}
			var result Result
			for !result.Done {
				result = update(t, run, gen, time.Minute)
				gen = result.Generation
			}
			got := strings.Count(paths(t, gen), "/products/")
			if got != test.wantProducts || gen.Len() > test.then {
				t.Errorf("%s: got %d products of %d pages, want %d of %d", test.name, got, gen.Len(), test.wantProducts, test.then)
			}
			if test.wantDropped > 0 && result.DroppedPaths != test.wantDropped {
				t.Errorf("%s: got %d pages dropped, want %d", test.name, result.DroppedPaths, test.wantDropped)
			}
			if strings.Contains(paths(t, gen), "-") {
				t.Errorf("%s: some pages were not fetched: %s", test.name, paths(t, gen))
			}
		})
	}
}

// TestGivenUpIsDropped: a page that is given up is dropped, also where nothing else was found.
func TestGivenUpIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/a /b /c", "*": "a page"}}
		run := New(Options{Fetcher: s, Limiter: NewLimiter(0.001, 1)}).Start(new(list), with(func(p *Policy) { p.Links = true }))
		gen := update(t, run, empty(t), time.Second).Generation
		before := gen.Len()
		run.census.waiting.GiveUp()
		gen = update(t, run, gen, time.Second).Generation
		if got := gen.Len(); got != before-1 {
			t.Errorf("got %d pages, want %d", got, before-1)
		}
	})
}

// TestLinksAreBounded: what is found after very many targets is found nevertheless.
func TestLinksAreBounded(t *testing.T) {
	l := links{max: 3, seen: make(map[uint64]uint8)}
	for round := range 3 {
		for i := range 5 {
			l.add(link{path: fmt.Sprintf("/%d/%d", round, i)})
		}
		if got := len(l.take()); got != 3 || len(l.seen) > 3 {
			t.Errorf("round %d: got %d links and %d targets, want 3", round, got, len(l.seen))
		}
	}
	if l.dropped != 6 {
		t.Errorf("got %d dropped, want 6", l.dropped)
	}
}

// TestLinkLater: once a page has the link that it needs, its own links count, in the same crawl.
func TestLinkLater(t *testing.T) {
	for name, change := range map[string]func(s *static, p *Policy, gen *record.Generation) *record.Generation{
		"a link": func(s *static, _ *Policy, gen *record.Generation) *record.Generation {
			s.pages["/new"] = "/_a"
			return gen
		},
		"a setting": func(_ *static, p *Policy, gen *record.Generation) *record.Generation {
			p.Settings++
			p.Counts = func(*record.Record) bool { return true }
			return gen
		},
		"a list": func(_ *static, p *Policy, gen *record.Generation) *record.Generation {
			p.Routes++ // all pages are fetched again
			counts := p.Counts
			p.Counts = func(rec *record.Record) bool { return rec.Path == "/_a" || counts(rec) }
			return gen
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &static{pages: map[string]string{"/": "", "/_a": "/_b /c", "/_b": "/_c", "/_c": "", "/c": "/d", "/d": "", "/new": ""}}
			p := with(func(p *Policy) {
				p.Links = true
				p.Counts = linksCount
			})
			cands := named("/", "/_a", "/_b", "/_c")
			c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)})
			linked := func(gen *record.Generation) string {
				return pathsIf(t, gen, func(rec *record.Record) bool { return rec.Linked != 0 && rec.Path != "/" && rec.Path != "/_a" })
			}
			gen := crawlAll(t, c, empty(t), p, cands...).Generation
			if got := linked(gen); got != "" {
				t.Fatalf("linked are %s at first", got)
			}
			time.Sleep(time.Minute)
			gen = change(s, &p, gen)
			gen = crawlAll(t, c, gen, p, append(cands, named("/new")...)...).Generation
			if got, want := linked(gen), "/_b /_c /c /d"; got != want {
				t.Errorf("%s: linked are %s, want %s", name, got, want)
			}
		})
	}
}

// TestLinksWhileFailing: further links to a page that fails when it has got its first one do not have it fetched before
// its time.
func TestLinksWhileFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{pages: map[string]string{"/": "", "/_a": "/_b"}}
		p := with(func(p *Policy) {
			p.Links = true
			p.Counts = linksCount
		})
		c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)})
		gen := crawlAll(t, c, empty(t), p, named("/", "/_a")...).Generation
		s.pages = map[string]string{"/new": "/_a /new2", "/new2": "/_a /new3", "/new3": "/_a", "/_a": "500"}
		s.order = nil
		crawlAll(t, c, gen, p, named("/", "/_a", "/new")...)
		if got := strings.Count(strings.Join(s.fetched(), " ")+" ", "/_a "); got != 1 {
			t.Errorf("/_a was fetched %d times of %s, want once", got, s.fetched())
		}
	})
}

// TestLinkWhileFailing: a page that fails when it has got its link is not fetched again and again.
func TestLinkWhileFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{pages: map[string]string{"/": "", "/_a": "/_b", "/_b": "", "*": "500"}}
		p := with(func(p *Policy) {
			p.Counts = linksCount
		})
		c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)})
		gen := crawlAll(t, c, empty(t), p, named("/", "/_a", "/_b")...).Generation
		delete(s.pages, "/_a")
		s.pages["/new"] = "/_a"
		s.order = nil
		cands := named("/", "/_a", "/_b", "/new")
		gen = crawlAll(t, c, gen, p, cands...).Generation
		if got := strings.Join(s.fetched(), " "); got != "/new /_a" {
			t.Errorf("fetched %s, want each page once", got)
		}
		s.pages["/_a"] = "/_b"
		time.Sleep(2 * time.Hour)
		gen = crawlAll(t, c, gen, p, cands...).Generation
		if got := pathsIf(t, gen, func(rec *record.Record) bool { return rec.Linked != 0 }); got != "/_a /_b" {
			t.Errorf("linked are %s, want /_a /_b", got)
		}
	})
}

// TestSeedChain: the front page may lead to others by redirects.
func TestSeedChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/x/": "302 /x/x", "/x/x": "302 /x/x/x", "/x/x/x": "302 /x/y", "/x/y": ""}}
		p := with(func(p *Policy) { p.Scope, p.Discover = "/x/", true })
		gen := crawlAll(t, New(Options{Fetcher: s, Limiter: NewLimiter(1, 1)}), empty(t), p).Generation
		seeds := pathsIf(t, gen, func(rec *record.Record) bool { return rec.Fetched != 0 && rec.Flags&record.Seed != 0 && rec.Depth == 0 })
		if seeds != "/x/ /x/x /x/x/x /x/y" {
			t.Errorf("got %s of %s", seeds, paths(t, gen))
		}
	})
}

// TestLongSeedChain: no more than ten redirects from the front page are followed.
func TestLongSeedChain(t *testing.T) {
	for redirects, want := range map[int]bool{maxSeeds: true, maxSeeds + 1: false} {
		synctest.Test(t, func(t *testing.T) {
			s := &static{made: true, pages: map[string]string{"/": "302 /1"}}
			for i := 1; i < redirects; i++ {
				s.pages[fmt.Sprint("/", i)] = fmt.Sprint("302 /", i+1)
			}
			end := fmt.Sprint("/", redirects)
			s.pages[end] = "the end"
			p := with(func(p *Policy) { p.Links = true })
			gen := crawlAll(t, New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)}), empty(t), p).Generation
			seeds := pathsIf(t, gen, func(rec *record.Record) bool { return rec.Flags&record.Seed != 0 && rec.Status == 200 })
			if got := seeds == end; got != want || maxSeeds != 10 {
				t.Errorf("%d redirects: got %q of %s", redirects, seeds, paths(t, gen))
			}
		})
	}
}

// TestNearestFirst: pages with fewer links from the front page come first, also once a crawl goes on: a page that was
// found to be nearer after it was fetched would be fetched again.
func TestNearestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/b /z", "/b": "/c", "/c": "/d", "/d": "", "/z": "/d"}}
		run := New(Options{Fetcher: s, Limiter: NewLimiter(1, 1)}).Start(new(list), with(func(p *Policy) {
			p.Links, p.Disallow = true, func(path string) bool { return strings.Contains(path, "no-such-page") }
		}))
		for gen, done := empty(t), false; !done; time.Sleep(time.Second) {
			result := update(t, run, gen, time.Second/2)
			gen, done = result.Generation, result.Done
		}
		if got := strings.Join(s.fetched(), " "); got != "/ /b /z /c /d" {
			t.Errorf("fetched %s", got)
		}
	})
}

// TestDepth: pages with too many links before them are remembered, but not fetched, until that many are allowed.
func TestDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/1", "/1": "/2 /2b", "/2": "/3", "/2b": "", "/3": "/4", "/4": ""}}
		c, gen := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)}), empty(t)
		for i, test := range []struct {
			depth int
			want  string
		}{
			{1, "/ /1 -/2 -/2b"},
			{1, "/ /1 -/2 -/2b"},
			{3, "/ /1 /2 /2b /3 -/4"},
			{100, "/ /1 /2 /2b /3 /4"},
		} {
			s.order = nil
			p := with(func(p *Policy) { p.Links, p.Depth, p.Settings = true, test.depth, uint64(test.depth) })
			result := crawlAll(t, c, gen, p)
			gen = result.Generation
			if got := paths(t, gen); got != test.want || result.Pending != 0 {
				t.Errorf("crawl %d, depth %d: got %s with %d pending, want %s", i, test.depth, got, result.Pending, test.want)
			}
			time.Sleep(time.Minute)
		}
		// All are fetched again, with a smaller depth and one more link.
		s.pages["/"] = "/1 /4"
		s.order = nil
		crawlAll(t, c, gen, with(func(p *Policy) { p.Links, p.Depth, p.Settings, p.Routes = true, 1, 1, 1 }))
		if got := strings.Join(s.fetched(), " "); got != "/ /1 /4" {
			t.Errorf("with a smaller depth, fetched %s, want / /1 /4", got)
		}
	})
}
