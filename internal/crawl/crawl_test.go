package crawl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// static is a site, and remembers what was fetched. Its pages are of words: links, and what else there is in
// the HTML. One that begins with a status is a redirect or an error, one that is a type is of that type.
type static struct {
	pages map[string]string
	made  bool
	hangs string // a part of the paths that do not answer

	mu    sync.Mutex
	order []string
}

func (s *static) Fetch(ctx context.Context, r Request) (*Response, error) {
	if s.hangs != "" && strings.Contains(r.Path, s.hangs) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = append(s.order, r.Path)
	text, ok := s.pages[r.Path]
	resp := &Response{Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Made: s.made}
	switch words := strings.Fields(text); {
	case text == "500", !ok && s.pages["*"] == "500":
		resp.Status = 500
	case !ok && s.pages["*"] != "":
		resp.Body = []byte(s.pages["*"])
	case !ok:
		resp.Status = 404
	case strings.HasPrefix(text, "30"):
		resp.Status = 302
		resp.Header.Set("Location", words[1])
	case strings.HasPrefix(text, "image/"):
		resp.Header.Set("Content-Type", text)
	default:
		resp.Body = []byte("<!DOCTYPE html>")
		for _, word := range words {
			if word[0] == '/' {
				word = `<a href="` + word + `">the page ` + word + `</a>`
			}
			resp.Body = append(append(resp.Body, word...), ' ')
		}
		resp.Body = append(resp.Body, r.Path...)
	}
	return resp, nil
}

// fetched are the site's own paths that were fetched.
func (s *static) fetched() []string {
	return slices.DeleteFunc(s.order, func(path string) bool { return strings.Contains(path, "no-such-page") })
}

var plain = Policy{
	Base: base, Scope: "/", Filter: func(*page.Page) string { return "" },
	Disallow: func(string) bool { return false }, Allowed: func(string) bool { return true },
}

// with is a policy that is plain but for a change.
func with(change func(p *Policy)) Policy {
	p := plain
	change(&p)
	return p
}

func named(paths ...string) (cands []page.Page) {
	for _, path := range paths {
		cands = append(cands, page.Page{Path: path, Version: 1})
	}
	return cands
}

// update goes on with a crawl for a time.
func update(t *testing.T, run *Run, gen *record.Generation, d time.Duration) Result {
	t.Helper()
	result, err := run.Update(t.Context(), gen, TimeLimit{Until: run.c.o.Now().Add(d), Patience: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// crawlAll crawls until nothing is due.
func crawlAll(t *testing.T, c *Crawler, gen *record.Generation, p Policy, cands ...page.Page) Result {
	t.Helper()
	run := c.Start(&list{pages: slices.Clone(cands)}, p)
	for range 10_000 {
		result := update(t, run, gen, time.Minute)
		if gen = result.Generation; result.Done {
			return result
		}
	}
	t.Fatal("the crawl does not end")
	return Result{}
}

// describe joins what is said of each record, if there is something to say.
func describe(t *testing.T, gen *record.Generation, say func(rec *record.Record) string) string {
	t.Helper()
	var all []string
	for rec, err := range gen.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if said := say(rec); said != "" {
			all = append(all, said)
		}
	}
	return strings.Join(all, " ")
}

// paths are the records' paths; those not fetched have a "-" before.
func paths(t *testing.T, gen *record.Generation) string {
	t.Helper()
	return describe(t, gen, func(rec *record.Record) string { return strings.Repeat("-", 1-int(min(rec.Fetched, 1))) + rec.Path })
}

// pathsIf are those of the records that are so.
func pathsIf(t *testing.T, gen *record.Generation, is func(rec *record.Record) bool) string {
	t.Helper()
	return describe(t, gen, func(rec *record.Record) string {
		if is(rec) {
			return rec.Path
		}
		return ""
	})
}

// statuses are the paths, statuses and whether they are of images.
func statuses(t *testing.T, gen *record.Generation) string {
	t.Helper()
	return describe(t, gen, func(rec *record.Record) string {
		return fmt.Sprint(rec.Path, " ", rec.Status, " ", rec.Flags&record.Image != 0)
	})
}

func TestPolicies(t *testing.T) {
	site := map[string]string{
		"/": "/a /x.js /logout /out/b /filtered", "/a": "/b /a", "/b": "/c", "/c": "", "/v": "", "/x.js": "",
		"/listed": "/c", "/logout": "", "/filtered": "", "/secret": "",
		"/in/hidden": "<meta name=robots content=noindex> /in/behind", "/in/copy": "<link rel=canonical href=/in/?x=1>", "/in/": "",
	}
	cands := []page.Page{
		{Path: "/a", Visited: true}, {Path: "/listed"}, {Path: "/logout", Visited: true}, {Path: "/secret"}, {Path: "/v", Visited: true},
	}
	is := func(paths ...string) func(string) bool {
		return func(p string) bool { return slices.Contains(paths, p) }
	}
	p := Policy{
		Base: base, Scope: "/", Disallow: is("/logout", "/listed"), Allowed: func(p string) bool { return p != "/secret" },
		Filter: func(p *page.Page) string { return strings.Repeat("filtered", strings.Count(p.Path, "/filtered")) },
	}
	with := func(change func(p *Policy)) Policy { p := p; change(&p); return p }
	for name, test := range map[string]struct {
		Policy
		cands []page.Page
		want  string
	}{
		"sources alone":      {p, cands, "/listed -/secret"},
		"links":              {with(func(p *Policy) { p.Links = true }), cands, "/ /a /b /c /listed -/logout /out/b -/secret /x.js"},
		"depth":              {with(func(p *Policy) { p.Links, p.Depth = true, 1 }), cands, "/ /a -/b /c /listed -/logout /out/b -/secret /x.js"},
		"scope":              {with(func(p *Policy) { p.Links, p.Scope = true, "/out/" }), cands, "/listed /out/ -/secret"},
		"visits":             {with(func(p *Policy) { p.Discover = true }), cands, "/ /a -/b -/c /listed -/logout -/out/b -/secret -/x.js"},
		"unlinked":           {with(func(p *Policy) { p.Unlinked = is("/v", "/logout") }), cands, "/listed -/logout -/secret /v"},
		"closed":             {with(func(p *Policy) { p.Closed, p.Links = true, true }), cands, "-/ -/listed -/secret"},
		"max_paths":          {with(func(p *Policy) { p.Links, p.MaxPaths = true, 2 }), cands, "/ /a /listed -/secret"},
		"noindex":            {with(func(p *Policy) { p.Links, p.Scope = true, "/in/" }), named("/in/hidden"), "/in/ /in/hidden"},
		"canonical":          {with(func(p *Policy) { p.Links, p.Scope = true, "/in/" }), named("/in/copy"), "/in/ /in/?x=1 /in/copy"},
		"ignored canonicals": {with(func(p *Policy) { p.Links, p.Scope, p.IgnoreCanonicals = true, "/in/", true }), named("/in/copy"), "/in/ /in/copy"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &static{pages: site}
			c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)})
			gen := empty(t)
			for range 3 { // visits count once a link has made a record
				gen = crawlAll(t, c, gen, test.Policy, test.cands...).Generation
			}
			if got := paths(t, gen); got != test.want {
				t.Errorf("%s: got %s, want %s", name, got, test.want)
			}
			if i := slices.Index(s.order, "/x.js"); i >= 0 && slices.ContainsFunc(s.order[i+1:], func(p string) bool { _, isPage := site[p]; return isPage }) {
				t.Errorf("%s: what looks like an asset was not fetched last: %s", name, s.order)
			}
		})
	}
}

// TestAgain changes something after a crawl, and looks at what is fetched then.
func TestAgain(t *testing.T) {
	cands := func() []page.Page {
		return []page.Page{{Path: "/a", Version: 1}, {Path: "/b", LastMod: 1}, {Path: "/c", Version: 1}}
	}
	type change = func(p *Policy, cands []page.Page)
	for name, test := range map[string]struct {
		change
		after time.Duration
		want  string
		same  bool // nothing is touched
	}{
		"nothing":        {nil, 23 * time.Hour, "", true},
		"a day":          {nil, 25 * time.Hour, "/b", false}, // which no file tells of
		"a fortnight":    {nil, 14 * 24 * time.Hour, "/a /b /c", false},
		"clock":          {nil, -365 * 24 * time.Hour, "/a /b /c", false},
		"file":           {func(_ *Policy, cands []page.Page) { cands[0].Version++ }, 0, "/a", false},
		"touched file":   {func(_ *Policy, cands []page.Page) { cands[0].FileTime++ }, 0, "", false},
		"list of a file": {func(_ *Policy, cands []page.Page) { cands[0].LastMod++ }, 0, "", false},
		"list":           {func(_ *Policy, cands []page.Page) { cands[1].LastMod++ }, 0, "/b", false},
		"hints":          {func(_ *Policy, cands []page.Page) { cands[1].Priority++ }, 0, "", false},
		"settings":       {func(p *Policy, _ []page.Page) { p.Settings++ }, 0, "", true},
		"routes":         {func(p *Policy, _ []page.Page) { p.Routes++ }, 0, "/a /b /c", false},
		"a page is new":  {func(_ *Policy, cands []page.Page) { cands[2].Path = "/d" }, 0, "/d", false},
		"a page is gone": {func(_ *Policy, cands []page.Page) { cands[2].Visited = true }, 0, "", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &static{pages: map[string]string{"/a": "", "/b": "", "/c": "", "/d": ""}}
			var shift time.Duration
			c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1), Now: func() time.Time { return time.Now().Add(shift) }})
			p := plain
			crawl := func(cands []page.Page, gen *record.Generation) Result {
				result := update(t, c.Start(&list{pages: cands}, p), gen, time.Hour)
				if !result.Done || !result.Gathered || result.Pending != 0 {
					t.Fatalf("%s: got %+v", name, result)
				}
				return result
			}
			first := crawl(cands(), empty(t))
			s.order, shift = nil, test.after
			changed := cands()
			if test.change != nil {
				test.change(&p, changed)
			}
			second := crawl(slices.Clone(changed), first.Generation)
			slices.Sort(s.order)
			if got := strings.Join(s.fetched(), " "); got != test.want || Same(first.Generation, second.Generation) != test.same {
				t.Errorf("%s: fetched %s, want %s, touched %t", name, got, test.want, !test.same)
			}
			if third := crawl(changed, second.Generation); !Same(second.Generation, third.Generation) || !slices.Equal(third.Generation.Chunks(), second.Generation.Chunks()) {
				t.Errorf("%s: touched again", name)
			}
		})
	}
}

// TestAbsent: a page that no source names any more is dropped after two days, but not
// while it is listed, and not because a source failed.
func TestAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Fetcher: &static{pages: map[string]string{"/a": "", "/b": ""}}})
		gen := crawlAll(t, c, empty(t), plain, named("/a", "/b")...).Generation
		for _, listed := range []bool{true, false} {
			records, err := gen.Load(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			records[len(records)-1].Selected.Listed = listed
			w := gen.Writer()
			w.Put("", records, nil, nil)
			if gen, err = w.Generation(); err != nil {
				t.Fatal(err)
			}
			want := map[bool]string{true: "/a /b", false: "/a"}[listed]
			for day := range 4 {
				gen = update(t, c.Start(&list{pages: named("/a"), failed: true}, plain), gen, time.Minute).Generation
				if got := paths(t, gen); listed && day == 0 && got != "/a /b" {
					t.Fatalf("got %s", got)
				}
				gen = crawlAll(t, c, gen, plain, named("/a")...).Generation
				if got := paths(t, gen); got != want {
					t.Fatalf("listed %t, day %d: got %s", listed, day, got)
				}
				time.Sleep(24 * time.Hour)
			}
		}
	})
}

// endlessRedirects redirects each page to the next.
type endlessRedirects struct{}

func (endlessRedirects) Fetch(_ context.Context, r Request) (*Response, error) {
	header := http.Header{"Location": {r.Path + "x"}}
	return &Response{Status: http.StatusFound, Header: header}, nil
}

// TestSeedsAreBounded: the site begins where its front page redirects to, but not for ever.
func TestSeedsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Fetcher: endlessRedirects{}, Limiter: NewLimiter(1000, 1)})
		gen := crawlAll(t, c, empty(t), with(func(p *Policy) { p.Links = true })).Generation
		if got := gen.Len(); got != maxSeeds+1 {
			t.Errorf("got %d pages, want %d", got, maxSeeds+1)
		}
	})
}

// TestNamedVisited: a page that visitors have requested stays named as well while a source fails.
func TestNamedVisited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Fetcher: &static{pages: map[string]string{"/a": ""}}})
		gen := crawlAll(t, c, empty(t), plain, named("/a")...).Generation
		visited := []page.Page{{Path: "/a", Visited: true}}
		isNamed := func(rec *record.Record) bool { return rec.Flags&record.Named != 0 && rec.Absent == 0 }
		for _, test := range []struct {
			failed bool
			want   string
		}{{true, "/a"}, {false, ""}} {
			gen = update(t, c.Start(&list{pages: slices.Clone(visited), failed: test.failed}, plain), gen, time.Minute).Generation
			if got := pathsIf(t, gen, isNamed); got != test.want {
				t.Errorf("a source has failed: %t; got %q named, want %q", test.failed, got, test.want)
			}
		}
	})
}

// TestAbsentOfChunk: that no source names any page of a chunk is noticed, also when a link has added a page to it.
func TestAbsentOfChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Fetcher: &static{pages: map[string]string{"/": "", "/a": ""}}})
		p := with(func(p *Policy) { p.Links = true })
		gen := crawlAll(t, c, empty(t), p, named("/a")...).Generation
		gen = crawlAll(t, c, gen, p).Generation
		if got := pathsIf(t, gen, func(rec *record.Record) bool { return rec.Absent != 0 }); got != "/a" {
			t.Errorf("got %q absent, want /a of %s", got, paths(t, gen))
		}
	})
}

// endless is a site in which each page links to thousands of others.
type endless struct{}

func (endless) Fetch(_ context.Context, r Request) (*Response, error) {
	body := []byte("<!DOCTYPE html>" + r.Path)
	for i := range 5000 {
		body = fmt.Appendf(body, `<a href="%s%c%c/">x</a><a href="/day/%d%d">x</a>`, r.Path, 'a'+i%26, 'a'+i/26%26, len(r.Path), i)
	}
	return &Response{Status: 200, Header: htmlHeader, Body: body}, nil
}

func TestEndless(t *testing.T) {
	if testing.Short() {
		t.Skip("finds 10,000 pages")
	}
	const maxPaths = 10_000
	c := New(Options{Fetcher: endless{}, Limiter: NewLimiter(1e9, 1)})
	run := c.Start(new(list), with(func(p *Policy) { p.Links, p.MaxPaths = true, maxPaths }))
	gen := empty(t)
	for i := 0; i < 4 || gen.Len() < 1000; i++ {
		gen = update(t, run, gen, 100*time.Millisecond).Generation
		days := strings.Count(paths(t, gen), "/day/")
		if n := gen.Len(); n > maxPaths+1+maxPaths/4 || days > maxPerPattern+1 || len(run.links.seen) > html.MaxLinks {
			t.Fatalf("got %d records, %d of which differ in digits alone, and %d targets", n, days, len(run.links.seen))
		}
	}
}

// TestSlots: a fetch that lasts gives up its slot, and a hung one keeps nobody up but its
// own Update.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := wait.NewSlots(1)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		gen := empty(t)
		go func() {
			_, err := New(Options{Fetcher: &static{hangs: "/"}, Slots: slots}).Start(&list{pages: named("/a")}, plain).
				Update(ctx, gen, TimeLimit{Until: time.Now().Add(time.Minute)})
			ended <- err
		}()
		synctest.Wait()
		begun := time.Now()
		crawlAll(t, New(Options{Fetcher: new(static), Slots: slots}), empty(t), plain, named("/b")...)
		if took := time.Since(begun); took != slotTime {
			t.Errorf("another site waited for %s", took)
		}
		cancel()
		if err := <-ended; err != context.Canceled || len(slots) != 0 {
			t.Errorf("got %v, %d slots are taken", err, len(slots))
		}
	})
}

// TestLater: what a limiter has no time for is due, and said to be.
func TestLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/a /b", "/a": "", "/b": ""}}
		run := New(Options{Fetcher: s, Limiter: NewLimiter(1./60, 1)}).Start(new(list), with(func(p *Policy) { p.Links = true }))
		gen, counts := empty(t), map[int]int{}
		time.Sleep(300 * time.Millisecond) // a time between seconds
		for range 10 {
			result := update(t, run, gen, time.Second)
			gen = result.Generation
			counts[result.Pending]++
			if next := time.Unix(result.Next, 0); !result.Done {
				if wait := time.Until(next); wait < 50*time.Second || wait > 61*time.Second || next.Before(run.c.o.Limiter.Next()) {
					t.Errorf("the next is in %s", wait)
				}
				time.Sleep(time.Until(next) + time.Second)
			}
		}
		// The front page, a page for which there is no time to see what a missing one returns,
		// the missing one, that page again, the last page.
		if want := (map[int]int{2: 3, 1: 1, 0: 6}); !maps.Equal(counts, want) {
			t.Errorf("pending: got %v, want %v", counts, want)
		}
	})
}

// TestPatience: fetches that hang are left for later once the time and the patience have passed, or when the
// crawl is stopped; what was fetched counts.
func TestPatience(t *testing.T) {
	for stopped, want := range map[time.Duration]time.Duration{
		time.Hour: 62 * time.Second, time.Second: 1300 * time.Millisecond, 61 * time.Second: 61300 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			stop, cancel := context.WithTimeout(t.Context(), stopped)
			defer cancel()
			c := New(Options{Fetcher: &static{pages: map[string]string{"/a": ""}, hangs: "/hangs"}, Workers: 2})
			begun := time.Now()
			result, err := c.Start(&list{pages: named("/a", "/hangs")}, plain).
				Update(t.Context(), empty(t), TimeLimit{Until: begun.Add(time.Minute), Patience: 2 * time.Second, Stop: stop})
			if took := time.Since(begun); err != nil || took != want {
				t.Fatalf("stopped after %s: it took %s, want %s, %v", stopped, took, want, err)
			}
			if got := paths(t, result.Generation); got != "/a -/hangs" || result.Done {
				t.Errorf("stopped after %s: got %s, done %t", stopped, got, result.Done)
			}
		})
	}
}

// TestOtherSources: a page that only links named is absent once links do not suffice, and back when they do.
func TestOtherSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, gen := New(Options{Fetcher: &static{pages: map[string]string{"/": "/a", "/a": ""}}}), empty(t)
		for i, want := range []string{"", "/a", ""} {
			p := with(func(p *Policy) { p.Links, p.Discover, p.Settings = want == "", true, uint64(i+1) })
			gen = crawlAll(t, c, gen, p).Generation
			if got := pathsIf(t, gen, func(rec *record.Record) bool { return rec.Absent != 0 }); got != want {
				t.Errorf("with links %t: got %s absent", p.Links, got)
			}
		}
	})
}

// TestDamaged: what is damaged is learnt again.
func TestDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := record.NewMemory()
		s := &static{pages: map[string]string{"/": "/a", "/a": "", "/b": ""}}
		c := New(Options{Fetcher: s})
		for i := range 3 {
			st := record.New(storage, "x")
			if err := st.Open(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if i == 2 { // another stage may find it first
				if _, err := st.Last().Load(t.Context(), 0); !errors.Is(err, record.ErrDamaged) {
					t.Errorf("got %v", err)
				}
			}
			s.order = nil
			result := crawlAll(t, c, st.Last(), with(func(p *Policy) { p.Links, p.Settings = true, 1 }), named("/b")...)
			gen := result.Generation
			if result.Lost != (i > 0) || gen.Lost() {
				t.Errorf("%d: lost: %t, the next generation: %t", i, result.Lost, gen.Lost())
			}
			if got := paths(t, gen); got != "/ /a /b" || !slices.Contains(s.order, "/a") || !slices.Contains(s.order, "/b") {
				t.Errorf("got %s, fetched %s", got, s.order)
			}
			if err := st.Commit(t.Context(), gen); err != nil {
				t.Fatal(err)
			}
			for _, chunk := range gen.Chunks() {
				if err := storage.Store(t.Context(), "x/"+chunk.Object.Name, []byte("damaged")); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestImages: the site's images that pages show are fetched, whatever their names, and again
// while a page shows them; none is fetched where images are not listed.
func TestImages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{pages: map[string]string{
			"/":           `<img src=cart/a.png><img src=/b?c=1><img src=//cdn.example/d.png><img src=/e.png> /f`,
			"/cart/a.png": "image/png", "/b?c=1": "image/png", "/f": "",
		}}
		c := New(Options{Own: true, Fetcher: s})
		p := with(func(p *Policy) {
			p.Disallow, p.Filter = func(string) bool { return true }, func(*page.Page) string { return "excluded" }
		})
		front := page.Page{Path: "/"}
		gen := crawlAll(t, c, empty(t), p, front).Generation
		if got := paths(t, gen); got != "/" {
			t.Errorf("got %s, want no images", got)
		}
		p.Extract.Images, p.Routes = true, 1
		for _, want := range []string{"/ 200 false /b?c=1 200 true /cart/a.png 200 true /e.png 404 true", "/ 200 false /b?c=1 200 true /cart/a.png 404 true /e.png 404 true"} {
			result := crawlAll(t, c, gen, p, front)
			if gen = result.Generation; statuses(t, gen) != want || result.Pending != 0 {
				t.Errorf("got %s with %d pending, want %s", statuses(t, gen), result.Pending, want)
			}
			delete(s.pages, "/cart/a.png")
			time.Sleep(25 * time.Hour)
		}
		p.MaxPaths = 1
		if got := crawlAll(t, c, empty(t), p, front); got.DroppedPaths != 0 || got.Generation.Len() != 4 {
			t.Errorf("max_paths 1: got %d records and %d dropped, want 4 and 0", got.Generation.Len(), got.DroppedPaths)
		}
	})
}

// TestMarkdown: the versions in Markdown that pages of the site name are fetched as images are, where they are wanted.
func TestMarkdown(t *testing.T) {
	twin := func(url string) string { return "<link rel=alternate type=text/markdown href=" + url + ">" }
	synctest.Test(t, func(t *testing.T) {
		s := &static{pages: map[string]string{
			"/in/": twin("/in/a.md"), "/in/b": twin("/in/gone.md"), "/in/c": twin("/out/c.md"), "/in/d": twin("//other.example/in/d.md"),
			"/in/a.md": "image/markdown", "/out/c.md": "image/markdown",
		}}
		c := New(Options{Own: true, Fetcher: s})
		p := with(func(p *Policy) { p.Scope = "/in/" })
		pages := named("/in/", "/in/b", "/in/c", "/in/d")
		const without = "/in/ 200 false /in/b 200 false /in/c 200 false /in/d 200 false"
		const wanted = "/in/ 200 false /in/a.md 200 true /in/b 200 false /in/c 200 false /in/d 200 false /in/gone.md 404 true"
		gen := crawlAll(t, c, empty(t), p, pages...).Generation
		if got := statuses(t, gen); got != without {
			t.Errorf("got %s, want %s", got, without)
		}
		p.Extract.Markdown = true
		p.Routes = 1
		gen = crawlAll(t, c, gen, p, pages...).Generation
		if got := statuses(t, gen); got != wanted {
			t.Errorf("got %s, want %s", got, wanted)
		}
	})
}

var htmlHeader = http.Header{"Content-Type": {"text/html"}}

func empty(tb testing.TB) *record.Generation {
	s := record.New(record.NewMemory(), "")
	return s.Last()
}
