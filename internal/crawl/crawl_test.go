package crawl

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// fetcherFunc is a function that fetches a path.
type fetcherFunc func(ctx context.Context, path string) (*Response, error)

func (f fetcherFunc) Fetch(ctx context.Context, r Request) (*Response, error) { return f(ctx, r.Path) }

// static is a site of documents that link to others, and remembers what was fetched.
type static struct {
	mu    sync.Mutex
	links map[string][]string
	order []string
}

func (s *static) Fetch(_ context.Context, r Request) (*Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = append(s.order, r.Path)
	links, ok := s.links[r.Path]
	if !ok {
		return &Response{Status: 404, Header: http.Header{}}, nil
	}
	body := "<!DOCTYPE html>" + r.Path
	for _, link := range links {
		body += `<a href="` + link + `">x</a>`
	}
	return &Response{Status: 200, Header: htmlHeader, Body: []byte(body)}, nil
}

// crawlAll crawls until nothing is due.
func crawlAll(t *testing.T, c *Crawler, gen *store.Generation, p Policy, cands ...page.Page) Result {
	t.Helper()
	run := c.Start(&list{pages: slices.Clone(cands)}, p)
	for range 10_000 {
		result, err := run.Update(t.Context(), gen, Budget{Until: time.Now().Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		if gen = result.Generation; result.Done {
			return result
		}
	}
	t.Fatal("the crawl does not end")
	return Result{}
}

// paths are the records' paths; those not fetched have a "-" before.
func paths(t *testing.T, gen *store.Generation) string {
	t.Helper()
	var all []string
	for rec, err := range gen.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Repeat("-", 1-int(min(rec.Fetched, 1)))+rec.Path)
	}
	return strings.Join(all, " ")
}

func TestPolicies(t *testing.T) {
	site := map[string][]string{
		"/": {"/a", "/x.js", "/logout", "/out/b", "/filtered"}, "/a": {"/b", "/a"}, "/b": {"/c"}, "/c": nil, "/v": nil, "/x.js": nil,
		"/listed": {"/c"}, "/logout": nil, "/filtered": nil, "/secret": nil,
	}
	cands := []page.Page{
		{Path: "/a", Visited: true}, {Path: "/listed"}, {Path: "/logout", Visited: true}, {Path: "/secret"}, {Path: "/v", Visited: true},
	}
	is := func(paths ...string) func(string) bool {
		return func(p string) bool { return slices.Contains(paths, p) }
	}
	p := Policy{
		Base: base, Scope: "/", Front: "/", Disallow: is("/logout", "/listed"), Allowed: func(p string) bool { return p != "/secret" },
		Filter: func(p *page.Page) string { return strings.Repeat("filtered", strings.Count(p.Path, "/filtered")) },
	}
	with := func(change func(p *Policy)) Policy {
		p := p
		change(&p)
		return p
	}
	for name, test := range map[string]struct {
		Policy
		want string
	}{
		"sources alone": {p, "/listed -/secret"},
		"links":         {with(func(p *Policy) { p.Links = true }), "/ /a /b /c /listed -/logout /out/b -/secret /x.js"},
		"depth":         {with(func(p *Policy) { p.Links, p.Depth = true, 1 }), "/ /a /c /listed -/logout /out/b -/secret /x.js"},
		"scope":         {with(func(p *Policy) { p.Links, p.Scope, p.Front = true, "/out/", "/out/" }), "/listed /out/ -/secret"},
		"visits":        {with(func(p *Policy) { p.Discover = true }), "/ /a -/b -/c /listed -/logout -/out/b -/secret -/x.js"},
		"unlinked":      {with(func(p *Policy) { p.Unlinked = is("/v", "/logout") }), "/listed -/logout -/secret /v"},
		"closed":        {with(func(p *Policy) { p.Closed, p.Links = true, true }), "-/ -/listed -/secret"},
		"max_paths":     {with(func(p *Policy) { p.Links, p.MaxPaths = true, 2 }), "/ /a /listed -/secret"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &static{links: site}
			c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)})
			gen := empty(t)
			for range 3 { // visits count once a link has made a record
				gen = crawlAll(t, c, gen, test.Policy, cands...).Generation
			}
			if got := paths(t, gen); got != test.want {
				t.Errorf("%s: got %s, want %s", name, got, test.want)
			}
			if i := slices.Index(s.order, "/x.js"); i >= 0 && slices.ContainsFunc(s.order[i:], func(p string) bool { return site[p] != nil && p != "/x.js" }) {
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
	for name, test := range map[string]struct {
		change func(p *Policy, cands []page.Page) []page.Page
		after  time.Duration
		want   string
	}{
		"nothing":      {func(p *Policy, cands []page.Page) []page.Page { return cands }, 5 * 24 * time.Hour, ""},
		"a fortnight":  {func(p *Policy, cands []page.Page) []page.Page { return cands }, 14 * 24 * time.Hour, "/a /b /c"},
		"clock":        {func(p *Policy, cands []page.Page) []page.Page { return cands }, -365 * 24 * time.Hour, "/a /b /c"},
		"file":         {func(p *Policy, cands []page.Page) []page.Page { cands[0].Version++; return cands }, 0, "/a"},
		"touched file": {func(p *Policy, cands []page.Page) []page.Page { cands[0].LastMod++; return cands }, 0, ""},
		"list":         {func(p *Policy, cands []page.Page) []page.Page { cands[1].LastMod++; return cands }, 0, "/b"},
		"hints":        {func(p *Policy, cands []page.Page) []page.Page { cands[1].Priority++; return cands }, 0, ""},
		"settings":     {func(p *Policy, cands []page.Page) []page.Page { p.Settings++; return cands }, 0, ""},
		"routes":       {func(p *Policy, cands []page.Page) []page.Page { p.Routes++; return cands }, 0, "/a /b /c"},
		"a page is new": {func(p *Policy, cands []page.Page) []page.Page {
			return append(cands, page.Page{Path: "/d", Version: 1})
		}, 0, "/d"},
		"a page is gone": {func(p *Policy, cands []page.Page) []page.Page { return cands[1:] }, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &static{links: map[string][]string{"/a": nil, "/b": nil, "/c": nil, "/d": nil}}
			var shift time.Duration
			c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1), Now: func() time.Time { return time.Now().Add(shift) }})
			p := Policy{Base: base, Scope: "/", Front: "/"}
			crawl := func(cands []page.Page, gen *store.Generation) Result {
				result, err := c.Start(&list{pages: cands}, p).Update(t.Context(), gen, Budget{Until: time.Now().Add(shift + time.Hour)})
				if err != nil || !result.Done || !result.Gathered || result.Pending != 0 {
					t.Fatalf("%s: got %+v and %v", name, result, err)
				}
				return result
			}
			first := crawl(cands(), empty(t))
			s.order, shift = nil, test.after
			changed := test.change(&p, cands())
			second := crawl(slices.Clone(changed), first.Generation)
			slices.Sort(s.order)
			fetched := slices.DeleteFunc(s.order, func(path string) bool { return strings.Contains(path, "no-such-page") })
			if got := strings.Join(fetched, " "); got != test.want {
				t.Errorf("%s: fetched %s, want %s", name, got, test.want)
			}
			if !slices.Equal(changed, cands()) || test.want != "" {
				if !second.Touched {
					t.Errorf("%s: nothing was touched", name)
				}
			} else if second.Touched {
				t.Errorf("%s: touched", name)
			}
			if third := crawl(changed, second.Generation); third.Touched || !slices.Equal(third.Generation.Chunks(), second.Generation.Chunks()) {
				t.Errorf("%s: touched again", name)
			}
		})
	}
}

// TestAbsent: a page that no source names any more is dropped after two days, but not
// while it is listed, and not because a source failed.
func TestAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Fetcher: &static{links: map[string][]string{"/a": nil, "/b": nil}}})
		p := Policy{Base: base, Scope: "/", Front: "/"}
		a, b := page.Page{Path: "/a", Version: 1}, page.Page{Path: "/b", Version: 1}
		gen := crawlAll(t, c, empty(t), p, a, b).Generation
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
			for day := range 4 {
				failed := &list{pages: []page.Page{a}, failed: true}
				result, err := c.Start(failed, p).Update(t.Context(), gen, Budget{Until: time.Now().Add(time.Minute)})
				if err != nil || listed && day == 0 && paths(t, result.Generation) != "/a /b" {
					t.Fatalf("got %s and %v", paths(t, result.Generation), err)
				}
				gen = crawlAll(t, c, gen, p, a).Generation
				want := "/a /b"
				if !listed {
					want = "/a"
				}
				if got := paths(t, gen); got != want {
					t.Fatalf("listed %t, day %d: got %s", listed, day, got)
				}
				time.Sleep(24 * time.Hour)
			}
		}
		if got := paths(t, crawlAll(t, c, gen, p, a, b).Generation); got != "/a /b" {
			t.Errorf("got %s", got)
		}
	})
}

// TestEndless crawls a site in which each page links to thousands of others.
func TestEndless(t *testing.T) {
	const maxPaths = 20_000
	fetch := func(_ context.Context, path string) (*Response, error) {
		body := []byte("<!DOCTYPE html>" + path)
		for i := range 5000 {
			body = fmt.Appendf(body, `<a href="%s%c%c/">x</a><a href="/day/%d%d">x</a>`, path, 'a'+i%26, 'a'+i/26%26, len(path), i)
		}
		return &Response{Status: 200, Header: htmlHeader, Body: body}, nil
	}
	c := New(Options{Fetcher: fetcherFunc(fetch), Limiter: NewLimiter(1e9, 1)})
	run := c.Start(new(list), Policy{Base: base, Scope: "/", Front: "/", Links: true, MaxPaths: maxPaths})
	gen := empty(t)
	for range 4 {
		result, err := run.Update(t.Context(), gen, Budget{Until: time.Now().Add(500 * time.Millisecond)})
		if err != nil {
			t.Fatal(err)
		}
		gen = result.Generation
		if n := gen.Len(); n > maxPaths+1 || n < 1000 {
			t.Fatalf("got %d records", n)
		}
		if days := strings.Count(paths(t, gen), "/day/"); days > maxPerPattern+1 {
			t.Fatalf("%d pages differ in digits alone", days)
		}
		if len(run.links.seen) > maxPaths {
			t.Fatalf("%d targets are remembered", len(run.links.seen))
		}
	}
	runtime.KeepAlive(run)
}

// TestSoftNotFound: the routes of an application that runs in the browser all return the same page. Those that a
// list names are no soft 404s, nor is the front page.
func TestSoftNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shell := fetcherFunc(func(context.Context, string) (*Response, error) {
			return &Response{Status: 200, Header: htmlHeader, Body: []byte(`<!DOCTYPE html>shell<a href="/linked">x</a><a href="/listed">x</a>`)}, nil
		})
		c := New(Options{Fetcher: shell, Limiter: NewLimiter(1000, 1)})
		p := Policy{Base: base, Scope: "/", Front: "/", Links: true}
		gen := empty(t)
		for _, test := range []struct {
			cands []page.Page
			soft  string
		}{
			{[]page.Page{{Path: "/listed"}}, "/linked"},
			{[]page.Page{{Path: "/linked"}}, "/listed"},
		} {
			gen = crawlAll(t, c, gen, p, test.cands...).Generation
			soft := ""
			for rec, err := range gen.Records(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if rec.Flags&store.SoftNotFound != 0 {
					soft += rec.Path
				}
			}
			if got := paths(t, gen); soft != test.soft || !strings.HasPrefix(got, "/ /linked") {
				t.Errorf("%v: %s are soft 404s, want %s, of %s", test.cands, soft, test.soft, got)
			}
		}
	})
}

// TestAliases: a link counts for the page that has another form of its path.
func TestAliases(t *testing.T) {
	for _, p := range []Policy{{}, {Discover: true}, {Links: true}} {
		synctest.Test(t, func(t *testing.T) {
			s := &static{links: map[string][]string{
				"/": {"/b/index.html", "/c.php?x=1", "/d", "/e/", "/f.html", "/folder00/"}, "/b/": nil, "/c": nil, "/c?x=1": nil, "/d.html": nil, "/d/x": nil, "/e": nil,
				"/f.html": nil, "/f": nil,
			}}
			cands := []page.Page{{Path: "/", Version: 1}}
			for path := range s.links {
				cands = append(cands, page.Page{Path: path, Version: 1})
			}
			for i := range 20_000 { // in several chunks
				cands = append(cands, page.Page{Path: fmt.Sprintf("/folder%02d/%05d", i%20, i), Version: 1})
			}
			cands = append(cands, page.Page{Path: "/folder00.htm", Version: 1})
			slices.SortFunc(cands, page.Compare)
			p.Base, p.Scope, p.Front, p.Query = base, "/", "/", []string{"x"}
			c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)})
			gen := crawlAll(t, c, empty(t), p, slices.CompactFunc(cands, func(a, b page.Page) bool { return a.Path == b.Path })...).Generation
			linked := ""
			for rec, err := range gen.Records(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if rec.Linked != 0 && rec.Flags&store.Named != 0 && rec.Path != "/" {
					linked += rec.Path + " "
				}
			}
			if want := "/b/ /c?x=1 /d.html /e /f.html /folder00.htm "; linked != want || len(gen.Chunks()) < 3 {
				t.Errorf("got %s, want %s", linked, want)
			}
		})
	}
}

// TestSlots: a fetch that lasts gives up its slot, and a hung one keeps nobody up but its
// own Update.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := NewSlots(1)
		hang := fetcherFunc(func(ctx context.Context, path string) (*Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		gen := empty(t)
		go func() {
			_, err := New(Options{Fetcher: hang, Slots: slots}).Start(&list{pages: []page.Page{{Path: "/a", Version: 1}}}, Policy{}).
				Update(ctx, gen, Budget{Until: time.Now().Add(time.Minute)})
			ended <- err
		}()
		synctest.Wait()
		healthy := New(Options{Fetcher: &static{links: map[string][]string{"/b": nil}}, Slots: slots})
		begun := time.Now()
		crawlAll(t, healthy, empty(t), Policy{Base: base, Scope: "/", Front: "/"}, page.Page{Path: "/b", Version: 1})
		if took := time.Since(begun); took != slotTime {
			t.Errorf("another site waited for %s", took)
		}
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("got %v", err)
		}
		if len(slots) != 0 {
			t.Error("a slot is still taken")
		}
	})
}

// TestSeedChain: the front page may lead to others by redirects.
func TestSeedChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetch := func(_ context.Context, path string) (*Response, error) {
			if n := len(path) / 2; n < 5 {
				return &Response{Status: 302, Header: http.Header{"Location": {path + "/x"}}, Proxied: true}, nil
			}
			return &Response{Status: 200, Header: htmlHeader, Body: []byte("<!DOCTYPE html>" + path), Proxied: true}, nil
		}
		c := New(Options{Fetcher: fetcherFunc(fetch), Limiter: NewLimiter(1, 1)})
		gen := crawlAll(t, c, empty(t), Policy{Base: base, Scope: "/x", Front: "/x", Discover: true}).Generation
		for rec, err := range gen.Records(t.Context()) {
			if err != nil || rec.Fetched == 0 || rec.Flags&store.Seed == 0 || rec.Depth != 0 {
				t.Errorf("got %+v and %v", rec, err)
			}
		}
		if gen.Len() != 5 {
			t.Errorf("got %s", paths(t, gen))
		}
	})
}

// TestLater: what a limiter has no time for is due, and said to be.
func TestLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{links: map[string][]string{"/": {"/a", "/b"}, "/a": nil, "/b": nil}}
		fetch := func(ctx context.Context, path string) (*Response, error) {
			resp, err := s.Fetch(ctx, Request{Path: path})
			resp.Proxied = true
			return resp, err
		}
		c := New(Options{Fetcher: fetcherFunc(fetch), Limiter: NewLimiter(1./60, 1)})
		run := c.Start(new(list), Policy{Base: base, Scope: "/", Front: "/", Links: true})
		gen, counts := empty(t), map[int]int{}
		for range 10 {
			result, err := run.Update(t.Context(), gen, Budget{Until: time.Now().Add(time.Second)})
			if err != nil {
				t.Fatal(err)
			}
			gen = result.Generation
			counts[result.Pending]++
			if next := time.Unix(result.Next, 0); !result.Done {
				if wait := time.Until(next); wait < 50*time.Second || wait > 60*time.Second {
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

// TestPatience: fetches that hang are left for later once the budget and the patience have passed, or when the
// crawl is stopped; what was fetched counts.
func TestPatience(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fetcher := fetcherFunc(func(ctx context.Context, path string) (*Response, error) {
				if path == "/hangs" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return &Response{Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<!doctype html>" + path)}, nil
			})
			stop, cancel := context.WithCancel(t.Context())
			budget := Budget{Until: time.Now().Add(time.Minute), Patience: 2 * time.Second, Stop: stop}
			if stopped {
				time.AfterFunc(time.Second, cancel)
			}
			defer cancel()
			c := New(Options{Fetcher: fetcher, Workers: 2})
			begun := time.Now()
			result, err := c.Start(&list{pages: []page.Page{{Path: "/a", Version: 1}, {Path: "/hangs", Version: 1}}}, Policy{Base: base, Scope: "/", Front: "/"}).Update(t.Context(), empty(t), budget)
			if err != nil {
				t.Fatal(err)
			}
			want := 62 * time.Second
			if stopped {
				want = 1300 * time.Millisecond
			}
			if took := time.Since(begun); took != want {
				t.Errorf("stopped %t: it took %s, want %s", stopped, took, want)
			}
			got := ""
			for rec, err := range result.Generation.Records(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				got += fmt.Sprint(rec.Path, " ", rec.Status, " ", rec.Fetched != 0, "; ")
			}
			if want := "/a 200 true; /hangs 0 false; "; got != want || result.Done {
				t.Errorf("stopped %t: got %sdone %t, want %s", stopped, got, result.Done, want)
			}
		})
	}
}

// TestHangingComeLast: pages that hang are left for later, so that the others need not wait for one after
// the other of them.
func TestHangingComeLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{links: make(map[string][]string)}
		var cands []page.Page
		for i := range 50 {
			cands = append(cands, page.Page{Path: fmt.Sprintf("/%02d", i), Version: 1})
			s.links[cands[i].Path] = nil
		}
		c := New(Options{Own: true, Fetcher: fetcherFunc(func(ctx context.Context, path string) (*Response, error) {
			if "/01" <= path && path <= "/03" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return s.Fetch(ctx, Request{Path: path})
		})})
		run, gen := c.Start(&list{pages: cands}, Policy{Base: base, Scope: "/", Front: "/"}), empty(t)
		for range 4 {
			result, err := run.Update(t.Context(), gen, Budget{Until: time.Now().Add(time.Second), Patience: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			gen = result.Generation
		}
		if len(s.order) != 47 {
			t.Errorf("%d of 47 pages were fetched", len(s.order))
		}
	})
}

// TestLinksThatCount: a page that asks not to be indexed names no pages, and canonicals name none where they are
// ignored; their queries are part of them.
func TestLinksThatCount(t *testing.T) {
	pages := map[string]string{
		"/a": `<!doctype html><meta name=robots content=noindex><a href="/behind">x</a>`,
		"/b": `<!doctype html><link rel=canonical href="/c?x=1">text`,
	}
	for _, ignore := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fetcher := fetcherFunc(func(_ context.Context, path string) (*Response, error) {
				return &Response{Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte(pages[path] + "<!doctype html>" + path)}, nil
			})
			p := Policy{Base: base, Scope: "/", Front: "/", Links: true, IgnoreCanonicals: ignore}
			result := crawlAll(t, New(Options{Fetcher: fetcher}), empty(t), p, page.Page{Path: "/a", Version: 1}, page.Page{Path: "/b", Version: 1})
			want := "/ /a /b /c?x=1"
			if ignore {
				want = "/ /a /b"
			}
			var got []string
			for rec, err := range result.Generation.Records(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, rec.Path)
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("ignored %t: got %s, want %s", ignore, s, want)
			}
		})
	}
}

// TestOtherSources: a page that only links named is absent once links do not suffice, and back when they do.
func TestOtherSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{links: map[string][]string{"/": {"/a"}, "/a": nil}}
		c, gen := New(Options{Fetcher: s}), empty(t)
		for i, links := range []bool{true, false, true} {
			p := Policy{Base: base, Scope: "/", Front: "/", Links: links, Discover: true, Settings: uint64(i + 1)}
			gen = crawlAll(t, c, gen, p).Generation
			for rec, err := range gen.Records(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if absent := rec.Absent != 0; absent != (rec.Path == "/a" && !links) {
					t.Errorf("%s with links %t: absent %t", rec.Path, links, absent)
				}
			}
		}
	})
}

// TestTurns: a folder of very many pages lets others have their turn, from one crawl to the next, and assets come last.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{links: map[string][]string{"/": {"/z", "/aa.png"}, "/z": nil, "/aa.png": nil}}
		for i := range 3 * maxTurn {
			path := fmt.Sprintf("/a/%d", i)
			s.links["/"], s.links[path] = append(s.links["/"], path), nil
		}
		fetch := func(ctx context.Context, path string) (*Response, error) {
			resp, err := s.Fetch(ctx, Request{Path: path})
			resp.Proxied = true
			return resp, err
		}
		c := New(Options{Fetcher: fetcherFunc(fetch), Limiter: NewLimiter(100, 1)})
		gen := empty(t)
		for range 20 {
			run := c.Start(new(list), Policy{Base: base, Scope: "/", Front: "/", Links: true})
			result, err := run.Update(t.Context(), gen, Budget{Until: time.Now().Add(time.Second)})
			if err != nil {
				t.Fatal(err)
			}
			gen = result.Generation
		}
		pages := slices.DeleteFunc(s.order, func(path string) bool { return strings.Contains(path, "no-such-page") })
		if last := pages[len(pages)-1]; len(pages) < 3*maxTurn || slices.Index(pages, "/z") > maxTurn+1 || last != "/aa.png" {
			t.Errorf("/z was fetched as number %d, /aa.png as number %d, %s as the last of %d",
				slices.Index(pages, "/z"), slices.Index(pages, "/aa.png"), last, len(pages))
		}
	})
}

// TestDamaged: what is damaged is learnt again.
func TestDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := store.NewMemory()
		s := &static{links: map[string][]string{"/": {"/a"}, "/a": nil, "/b": nil}}
		c := New(Options{Fetcher: s})
		p := Policy{Base: base, Scope: "/", Front: "/", Links: true, Settings: 1}
		for range 2 {
			st, err := store.Open(t.Context(), storage, store.Options{Prefix: "x"})
			if err != nil {
				t.Fatal(err)
			}
			gen := st.Last()
			s.order = nil
			gen = crawlAll(t, c, gen, p, page.Page{Path: "/b", Version: 1}).Generation
			if got := paths(t, gen); got != "/ /a /b" || !slices.Contains(s.order, "/a") || !slices.Contains(s.order, "/b") {
				t.Errorf("got %s, fetched %s", got, s.order)
			}
			if err := st.Commit(t.Context(), gen); err != nil {
				t.Fatal(err)
			}
			keys, err := storage.List(t.Context(), "x", true)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				if value, _ := storage.Load(t.Context(), key); value != nil && value[0] != '{' {
					_ = storage.Store(t.Context(), key, []byte("damaged"))
				}
			}
		}
	})
}

// TestImages: the site's images that pages show are fetched, whatever their names, and again
// while a page shows them; none is fetched where images are not listed.
func TestImages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := false
		c := New(Options{Own: true, Fetcher: fetcherFunc(func(_ context.Context, path string) (*Response, error) {
			switch {
			case path == "/":
				return &Response{Status: 200, Header: htmlHeader, Body: []byte(`<!DOCTYPE html>text<img src=cart/a.png><img src=/b?c=1><img src=//cdn.example/d.png><img src=/e.png><a href=/f>`)}, nil
			case path == "/e.png" || path == "/cart/a.png" && gone:
				return &Response{Status: 404}, nil
			}
			return &Response{Status: 200, Header: http.Header{"Content-Type": {"image/png"}}}, nil
		})})
		never := func(string) bool { return true }
		p := Policy{Base: base, Scope: "/", Front: "/", Disallow: never, Filter: func(*page.Page) string { return "excluded" }}
		gen := crawlAll(t, c, empty(t), p, page.Page{Path: "/"}).Generation
		if got := paths(t, gen); got != "/" {
			t.Errorf("got %s, want no images", got)
		}
		p.Extract.Images, p.Routes = true, 1
		statuses := func(want string) {
			t.Helper()
			result := crawlAll(t, c, gen, p, page.Page{Path: "/"})
			gen = result.Generation
			got := ""
			for rec := range gen.Records(t.Context()) {
				got += fmt.Sprintf("%s %d %t ", rec.Path, rec.Status, rec.Flags&store.Image != 0)
			}
			if got != want || result.Pending != 0 {
				t.Errorf("got %s with %d pending, want %s", got, result.Pending, want)
			}
		}
		statuses("/ 200 false /b?c=1 200 true /cart/a.png 200 true /e.png 404 true ")
		gone = true
		time.Sleep(14 * 24 * time.Hour)
		statuses("/ 200 false /b?c=1 200 true /cart/a.png 404 true /e.png 404 true ")
		p.MaxPaths = 1
		if got := crawlAll(t, c, empty(t), p, page.Page{Path: "/"}); got.DroppedPaths != 0 || got.Generation.Len() != 4 {
			t.Errorf("max_paths 1: got %d records and %d dropped, want 4 and 0", got.Generation.Len(), got.DroppedPaths)
		}
	})
}

// TestPanic: a page whose parsing panics counts as one that did not respond, and the next one is
// parsed.
func TestPanic(t *testing.T) {
	s := &static{links: map[string][]string{"/a": nil, "/b": nil}}
	c := New(Options{Fetcher: s, Own: true})
	run := c.Start(&list{pages: []page.Page{{Path: "/a"}, {Path: "/b"}}}, Policy{Base: base, Scope: "/", Front: "/"})
	run.workers = append(run.workers, &worker{run: run}) // without a parser
	result, err := run.Update(t.Context(), empty(t), Budget{Until: time.Now().Add(time.Minute)})
	if err != nil || result.Fetched != 2 || result.Panic == nil || !strings.HasPrefix(result.Panic.Error(), "parsing /a: panic: ") {
		t.Fatalf("got %+v, %v", result, err)
	}
	got := ""
	for rec := range result.Generation.Records(t.Context()) {
		got += fmt.Sprintf("%s %d %t ", rec.Path, rec.Status, rec.Failing != 0)
	}
	if want := "/a 0 true /b 200 false "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(c.o.Slots) != 0 {
		t.Errorf("%d slots are taken", len(c.o.Slots))
	}
}
