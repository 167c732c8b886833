package crawl

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// static is a site, and remembers what was fetched. Its pages are of words: links, and what else there is in
// the HTML. One that begins with a status is a redirect or an error, one that is a type is of that type.
type static struct {
	pages   map[string]string
	proxied bool
	hangs   string // a part of the paths that do not answer

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
	resp := &Response{Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Proxied: s.proxied}
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
				word = `<a href="` + word + `">x</a>`
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
	Base: base, Scope: "/", Front: "/", Filter: func(*page.Page) string { return "" },
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
func update(t *testing.T, run *Run, gen *store.Generation, d time.Duration) Result {
	t.Helper()
	result, err := run.Update(t.Context(), gen, Budget{Until: run.c.o.Now().Add(d), Patience: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// crawlAll crawls until nothing is due.
func crawlAll(t *testing.T, c *Crawler, gen *store.Generation, p Policy, cands ...page.Page) Result {
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
func describe(t *testing.T, gen *store.Generation, say func(rec *store.Record) string) string {
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
func paths(t *testing.T, gen *store.Generation) string {
	t.Helper()
	return describe(t, gen, func(rec *store.Record) string { return strings.Repeat("-", 1-int(min(rec.Fetched, 1))) + rec.Path })
}

// pathsIf are those of the records that are so.
func pathsIf(t *testing.T, gen *store.Generation, is func(rec *store.Record) bool) string {
	t.Helper()
	return describe(t, gen, func(rec *store.Record) string {
		if is(rec) {
			return rec.Path
		}
		return ""
	})
}

// statuses are the paths, statuses and whether they are of images.
func statuses(t *testing.T, gen *store.Generation) string {
	t.Helper()
	return describe(t, gen, func(rec *store.Record) string {
		return fmt.Sprint(rec.Path, " ", rec.Status, " ", rec.Flags&store.Image != 0)
	})
}

func TestPolicies(t *testing.T) {
	site := map[string]string{
		"/": "/a /x.js /logout /out/b /filtered", "/a": "/b /a", "/b": "/c", "/c": "", "/v": "", "/x.js": "",
		"/listed": "/c", "/logout": "", "/filtered": "", "/secret": "",
		"/hidden": "<meta name=robots content=noindex> /behind", "/copy": "<link rel=canonical href=/c?x=1>",
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
	with := func(change func(p *Policy)) Policy { p := p; change(&p); return p }
	for name, test := range map[string]struct {
		Policy
		cands []page.Page
		want  string
	}{
		"sources alone":      {p, cands, "/listed -/secret"},
		"links":              {with(func(p *Policy) { p.Links = true }), cands, "/ /a /b /c /listed -/logout /out/b -/secret /x.js"},
		"depth":              {with(func(p *Policy) { p.Links, p.Depth = true, 1 }), cands, "/ /a -/b /c /listed -/logout /out/b -/secret /x.js"},
		"scope":              {with(func(p *Policy) { p.Links, p.Scope, p.Front = true, "/out/", "/out/" }), cands, "/listed /out/ -/secret"},
		"visits":             {with(func(p *Policy) { p.Discover = true }), cands, "/ /a -/b -/c /listed -/logout -/out/b -/secret -/x.js"},
		"unlinked":           {with(func(p *Policy) { p.Unlinked = is("/v", "/logout") }), cands, "/listed -/logout -/secret /v"},
		"closed":             {with(func(p *Policy) { p.Closed, p.Links = true, true }), cands, "-/ -/listed -/secret"},
		"max_paths":          {with(func(p *Policy) { p.Links, p.MaxPaths = true, 2 }), cands, "/ /a /listed -/secret"},
		"noindex":            {with(func(p *Policy) { p.Links, p.Front = true, "/c" }), named("/hidden"), "/c /hidden"},
		"canonical":          {with(func(p *Policy) { p.Links, p.Front = true, "/c" }), named("/copy"), "/c /c?x=1 /copy"},
		"ignored canonicals": {with(func(p *Policy) { p.Links, p.Front, p.IgnoreCanonicals = true, "/c", true }), named("/copy"), "/c /copy"},
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

// TestSpellings: a link to the page of a file counts for the name of the file, however it spells that. Other paths stay
// as they are spelled.
func TestSpellings(t *testing.T) {
	files := named("/", "/a,b.html", "/c;d/", "/p/q.html")
	site := map[string]string{
		"/": "/a%2Cb.html /c%3Bd /p%2Fq.html /x%2Cy /x,y /u%2Fv", "/a,b.html": "/a%2Cb.html", "/c;d/": "<link rel=canonical href=/c%3Bd/>", "/p/q.html": "",
		"/x%2Cy": "encoded", "/x,y": "bare", "/u%2Fv": "",
		"/list": "<link rel=canonical href=/a%2Cb.html>", "/moved": "301 /x%2Cy", "/x%2Cz": "301 /x,z", "/x,z": "",
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
		{"out of scope as it is spelled", with(func(p *Policy) { p.Links, p.Front, p.Scope = true, "/u/", "/u/" }), named("/"), "/ /u/ linked"},
		{"a redirect", with(func(p *Policy) { p.Links, p.Front = true, "/moved" }), named("/x,z"), "/moved linked /x%2Cy linked /x,z"},
		{"scope", with(func(p *Policy) { p.Links, p.Front, p.Scope = true, "/p/", "/p/" }), named("/", "/p/q.html"), "/ /p/ linked /p/q.html linked"},
		{"a redirect to another spelling", with(func(p *Policy) { p.Links, p.Front = true, "/x%2Cz" }), nil, "/x%2Cz linked /x,z linked"},
		{"a canonical", with(func(p *Policy) { p.Front = "/list" }), append(named("/a,b.html"), page.Page{Path: "/list"}), "/a,b.html linked /list"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &static{pages: site}
			c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1), Own: true})
			gen := crawlAll(t, c, empty(t), test.policy, test.cands...).Generation
			got := describe(t, gen, func(rec *store.Record) string {
				if rec.Linked != 0 {
					return rec.Path + " linked"
				}
				return rec.Path
			})
			if got != test.want {
				t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
			}
			canonical := describe(t, gen, func(rec *store.Record) string { return rec.Canonical })
			if want := strings.Repeat("/a%2Cb.html", strings.Count(test.want, "/list")); canonical != want {
				t.Errorf("%s: got the canonical %q, want %q: a file is its own", test.name, canonical, want)
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
		"nothing":        {nil, 5 * 24 * time.Hour, "", true},
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
			crawl := func(cands []page.Page, gen *store.Generation) Result {
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

// TestAbsentOfChunk: that no source names any page of a chunk is noticed, also when a link has added a page to it.
func TestAbsentOfChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Fetcher: &static{pages: map[string]string{"/": "", "/a": ""}}})
		p := with(func(p *Policy) { p.Links = true })
		gen := crawlAll(t, c, empty(t), p, named("/a")...).Generation
		gen = crawlAll(t, c, gen, p).Generation
		if got := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Absent != 0 }); got != "/a" {
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
	const maxPaths = 20_000
	c := New(Options{Fetcher: endless{}, Limiter: NewLimiter(1e9, 1)})
	run := c.Start(new(list), with(func(p *Policy) { p.Links, p.MaxPaths = true, maxPaths }))
	gen := empty(t)
	for i := 0; i < 4 || gen.Len() < 1000; i++ {
		gen = update(t, run, gen, 500*time.Millisecond).Generation
		days := strings.Count(paths(t, gen), "/day/")
		if n := gen.Len(); n > maxPaths+1 || days > maxPerPattern+1 || len(run.links.seen) > maxPaths {
			t.Fatalf("got %d records, %d of which differ in digits alone, and %d targets", n, days, len(run.links.seen))
		}
	}
}

// TestSoftNotFound: the routes of an application that runs in the browser all return the same page. Those that a
// list names are no soft 404s, nor is the front page.
func TestSoftNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shell := &static{pages: map[string]string{"*": `<!DOCTYPE html>shell<a href="/linked">x</a><a href="/listed">x</a>`}}
		c := New(Options{Fetcher: shell, Limiter: NewLimiter(1000, 1)})
		gen := empty(t)
		for cand, want := range map[string]string{"/listed": "/linked", "/linked": "/listed"} {
			gen = crawlAll(t, c, gen, with(func(p *Policy) { p.Links = true }), page.Page{Path: cand}).Generation
			soft := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Flags&store.SoftNotFound != 0 })
			if got := paths(t, gen); soft != want || got != "/ /linked /listed" {
				t.Errorf("with %s listed: %s are soft 404s, want %s, of %s", cand, soft, want, got)
			}
		}
	})
}

// TestSoft404Path: the path that cannot exist is a sibling of the page, not a page below it. A router that matches by
// prefix responds to /about/anything as it does to /about/.
func TestSoft404Path(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := with(func(p *Policy) {
			p.Scope, p.Front = "/docs/", "/docs/"
			p.Allowed = func(path string) bool { return !strings.HasPrefix(path, "/docs/closed/no-such") }
			p.Disallow = func(path string) bool { return strings.HasPrefix(path, "/docs/cart/no-such") }
		})
		run := New(Options{}).Start(new(list), p)
		run.c.soft404Name = "no-such-page"
		for path, want := range map[string]string{
			"/docs/about":          "/docs/no-such-page",
			"/docs/about/":         "/docs/no-such-page",
			"/docs/about/team":     "/docs/about/no-such-page",
			"/docs/about/team/":    "/docs/about/no-such-page",
			"/docs/item?id=7":      "/docs/item?id=no-such-page",
			"/docs/item/?a=1&id=7": "/docs/item/?a=1&id=no-such-page",
			"/docs/item?id=7&b":    "/docs/item?id=7&no-such-page",
			"/docs/item?overview":  "/docs/item?no-such-page",
			"/docs/a=b/c?overview": "/docs/a=b/c?no-such-page",
			"/docs/":               "", // the front page
			"/docs/closed/a/":      "", // robots.txt
			"/docs/closed/":        "/docs/no-such-page",
			"/docs/cart/a":         "", // crawl disallow
			"/docs/cart/a/":        "",
		} {
			if got := run.soft404Path(&store.Record{Path: path}); got != want {
				t.Errorf("%s: got %q, want %q", path, got, want)
			}
		}
	})
}

// TestSoft404Once: one request a day and folder tells soft 404s, also where the paths of pages end in a slash.
func TestSoft404Once(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{pages: map[string]string{"/": ""}}
		for i := range 400 {
			path := fmt.Sprintf("/posts/%c%c/", 'a'+i/26, 'a'+i%26)
			s.pages["/"] += " " + path
			s.pages[path] = ""
		}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(1e6, 1)})
		gen := crawlAll(t, c, empty(t), with(func(p *Policy) { p.Links = true })).Generation
		if probes := len(s.order) - 401; gen.Len() != 401 || probes != 1 {
			t.Errorf("%d records were made with %d requests for paths that cannot exist, want 401 with 1", gen.Len(), probes)
		}
	})
}

// TestPrefixRouter: a page whose router responds alike to all paths below it is no soft 404.
func TestPrefixRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &prefixes{static{pages: map[string]string{"/": "/about/ /contact/", "/about/": "us", "/contact/": "write"}}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)})
		gen := crawlAll(t, c, empty(t), with(func(p *Policy) { p.Links = true })).Generation
		if soft := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Flags&store.SoftNotFound != 0 }); soft != "" {
			t.Errorf("%s are soft 404s, want none", soft)
		}
	})
}

// prefixes is a site whose pages respond for all paths below them.
type prefixes struct{ static }

func (s *prefixes) Fetch(ctx context.Context, r Request) (*Response, error) {
	if _, ok := s.pages[page.Folder(r.Path)]; ok && page.Folder(r.Path) != "/" {
		r.Path = page.Folder(r.Path)
	}
	return s.static.Fetch(ctx, r)
}

// TestFailsInsteadOf404: an application may fail at a path or query that does not exist. Its pages are listed once it
// has failed twice, a minute apart.
func TestFailsInsteadOf404(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Fetcher: &static{pages: map[string]string{"*": "500", "/": "/item?id=1", "/item?id=1": "text"}}, Limiter: NewLimiter(1000, 1)})
		p := with(func(p *Policy) { p.Links, p.Query = true, []string{"id"} })
		gen := empty(t)
		for _, want := range []string{"/", "/ /item?id=1"} {
			gen = crawlAll(t, c, gen, p).Generation
			if got := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Status == 200 }); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestAliases: a link counts for the page that has another form of its path.
func TestAliases(t *testing.T) {
	cands := named("/", "/b/", "/c", "/c?x=1", "/d.html", "/d/x", "/e", "/f.html", "/f", "/folder00.htm")
	s := &static{pages: make(map[string]string)}
	for _, p := range cands {
		s.pages[p.Path] = ""
	}
	s.pages["/"] = "/b/index.html /c.php?x=1 /d /e/ /f.html /folder00/"
	for i := range 20_000 { // in several chunks
		cands = append(cands, page.Page{Path: fmt.Sprintf("/folder%02d/%05d", i%20, i), Version: 1})
	}
	slices.SortFunc(cands, page.Compare)
	for _, change := range []func(p *Policy){func(*Policy) {}, func(p *Policy) { p.Discover = true }, func(p *Policy) { p.Links = true }} {
		synctest.Test(t, func(t *testing.T) {
			p := with(change)
			p.Query = []string{"x"}
			gen := crawlAll(t, New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)}), empty(t), p, cands...).Generation
			linked := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Linked != 0 && rec.Flags&store.Named != 0 && rec.Path != "/" })
			if want := "/b/ /c?x=1 /d.html /e /f.html /folder00.htm"; linked != want || len(gen.Chunks()) < 3 {
				t.Errorf("got %s, want %s", linked, want)
			}
		})
	}
}

// needsLink reports, for tests, whether a page is listed only while another links to it.
func needsLink(rec *store.Record) bool {
	return rec.Path != "/" && (rec.Flags&store.Named == 0 || strings.Contains(rec.Path, "/_"))
}

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
				p.Counts = func(rec *store.Record) bool { return rec.Linked != 0 || !needsLink(rec) }
			})
			c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)})
			gen := crawlAll(t, c, empty(t), p, named(strings.Fields(test.named)...)...).Generation
			got := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Linked != 0 && rec.Path != "/" })
			if got != test.want {
				t.Errorf("%s: linked are %s, want %s", test.name, got, test.want)
			}
			targets := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Flags&store.Target != 0 && rec.Linked == 0 })
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

// TestLinkLater: once a page has the link that it needs, its own links count, in the same crawl.
func TestLinkLater(t *testing.T) {
	for name, change := range map[string]func(s *static, p *Policy, gen *store.Generation) *store.Generation{
		"a link": func(s *static, _ *Policy, gen *store.Generation) *store.Generation {
			s.pages["/new"] = "/_a"
			return gen
		},
		"a setting": func(_ *static, p *Policy, gen *store.Generation) *store.Generation {
			p.Settings++
			p.Counts = func(*store.Record) bool { return true }
			return gen
		},
		"a list": func(_ *static, p *Policy, gen *store.Generation) *store.Generation {
			p.Routes++ // all pages are fetched again
			counts := p.Counts
			p.Counts = func(rec *store.Record) bool { return rec.Path == "/_a" || counts(rec) }
			return gen
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &static{pages: map[string]string{"/": "", "/_a": "/_b /c", "/_b": "/_c", "/_c": "", "/c": "/d", "/d": "", "/new": ""}}
			p := with(func(p *Policy) {
				p.Links = true
				p.Counts = func(rec *store.Record) bool { return rec.Linked != 0 || !needsLink(rec) }
			})
			cands := named("/", "/_a", "/_b", "/_c")
			c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)})
			linked := func(gen *store.Generation) string {
				return pathsIf(t, gen, func(rec *store.Record) bool { return rec.Linked != 0 && rec.Path != "/" && rec.Path != "/_a" })
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
			p.Counts = func(rec *store.Record) bool { return rec.Linked != 0 || !needsLink(rec) }
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
			p.Counts = func(rec *store.Record) bool { return rec.Linked != 0 || !needsLink(rec) }
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
		if got := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Linked != 0 }); got != "/_a /_b" {
			t.Errorf("linked are %s, want /_a /_b", got)
		}
	})
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
				Update(ctx, gen, Budget{Until: time.Now().Add(time.Minute)})
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

// TestSeedChain: the front page may lead to others by redirects.
func TestSeedChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{proxied: true, pages: map[string]string{"/x": "302 /x/x", "/x/x": "302 /x/x/x", "/x/x/x": "302 /x/y", "/x/y": ""}}
		p := with(func(p *Policy) { p.Scope, p.Front, p.Discover = "/x", "/x", true })
		gen := crawlAll(t, New(Options{Fetcher: s, Limiter: NewLimiter(1, 1)}), empty(t), p).Generation
		seeds := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Fetched != 0 && rec.Flags&store.Seed != 0 && rec.Depth == 0 })
		if seeds != "/x /x/x /x/x/x /x/y" {
			t.Errorf("got %s of %s", seeds, paths(t, gen))
		}
	})
}

// TestLater: what a limiter has no time for is due, and said to be.
func TestLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{proxied: true, pages: map[string]string{"/": "/a /b", "/a": "", "/b": ""}}
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

// TestNearestFirst: pages with fewer links from the front page come first, also once a crawl goes on: a page that was
// found to be nearer after it was fetched would be fetched again.
func TestNearestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{proxied: true, pages: map[string]string{"/": "/b /z", "/b": "/c", "/c": "/d", "/d": "", "/z": "/d"}}
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
		s := &static{proxied: true, pages: map[string]string{"/": "/1", "/1": "/2 /2b", "/2": "/3", "/2b": "", "/3": "/4", "/4": ""}}
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

// TestPatience: fetches that hang are left for later once the budget and the patience have passed, or when the
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
				Update(t.Context(), empty(t), Budget{Until: begun.Add(time.Minute), Patience: 2 * time.Second, Stop: stop})
			if took := time.Since(begun); err != nil || took != want {
				t.Fatalf("stopped after %s: it took %s, want %s, %v", stopped, took, want, err)
			}
			if got := paths(t, result.Generation); got != "/a -/hangs" || result.Done {
				t.Errorf("stopped after %s: got %s, done %t", stopped, got, result.Done)
			}
		})
	}
}

// TestHangingComeLast: pages that hang are left for later, so that the others need not wait for one after
// the other of them.
func TestHangingComeLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{hangs: "/0"}
		cands := named("/01", "/02", "/03")
		for i := range 47 {
			cands = append(cands, named(fmt.Sprint("/", 10+i))...)
		}
		run, gen := New(Options{Own: true, Fetcher: s}).Start(&list{pages: cands}, plain), empty(t)
		for range 4 {
			gen = update(t, run, gen, time.Second).Generation
		}
		if len(s.order) != 47 {
			t.Errorf("%d of 47 pages were fetched", len(s.order))
		}
	})
}

// TestOtherSources: a page that only links named is absent once links do not suffice, and back when they do.
func TestOtherSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, gen := New(Options{Fetcher: &static{pages: map[string]string{"/": "/a", "/a": ""}}}), empty(t)
		for i, want := range []string{"", "/a", ""} {
			p := with(func(p *Policy) { p.Links, p.Discover, p.Settings = want == "", true, uint64(i+1) })
			gen = crawlAll(t, c, gen, p).Generation
			if got := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Absent != 0 }); got != want {
				t.Errorf("with links %t: got %s absent", p.Links, got)
			}
		}
	})
}

// TestTurns: a folder of very many pages lets others have their turn, from one crawl to the next, and assets come last.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{proxied: true, pages: map[string]string{"/": "/z /aa.png", "/z": "", "/aa.png": ""}}
		for i := range 3 * maxTurn {
			path := fmt.Sprintf("/a/%d", i)
			s.pages["/"] += " " + path
			s.pages[path] = ""
		}
		c, gen := New(Options{Fetcher: s, Limiter: NewLimiter(100, 1)}), empty(t)
		for range 20 {
			gen = update(t, c.Start(new(list), with(func(p *Policy) { p.Links = true })), gen, time.Second).Generation
		}
		pages := s.fetched()
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
		s := &static{pages: map[string]string{"/": "/a", "/a": "", "/b": ""}}
		c := New(Options{Fetcher: s})
		for range 2 {
			st, err := store.Open(t.Context(), storage, store.Options{Prefix: "x"})
			if err != nil {
				t.Fatal(err)
			}
			s.order = nil
			gen := crawlAll(t, c, st.Last(), with(func(p *Policy) { p.Links, p.Settings = true, 1 }), named("/b")...).Generation
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

// validated responds 304 to conditional requests.
type validated struct {
	static
	notModified int
	always      bool // also to others
}

func (v *validated) Fetch(ctx context.Context, r Request) (*Response, error) {
	resp, err := v.static.Fetch(ctx, r)
	if resp.Header.Set("Etag", `"1"`); r.Header.Get("If-None-Match") != "" || v.always {
		resp.Status, resp.Body = http.StatusNotModified, nil
		v.notModified++
	}
	return resp, err
}

// slow takes three seconds to make a page for each request.
type slow struct{ static }

func (s *slow) Fetch(ctx context.Context, r Request) (*Response, error) {
	resp, err := s.static.Fetch(ctx, r)
	resp.Header.Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	time.Sleep(3 * time.Second)
	return resp, err
}

// TestFetchedAt: a record has the time at which the request began. Compared with the end of a slow response, the time at
// which the page was made would seem to be its date.
func TestFetchedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Own: true, Fetcher: &slow{static{pages: map[string]string{"/": "x"}}}})
		gen := crawlAll(t, c, empty(t), plain, page.Page{Path: "/"}).Generation
		if got := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Fetched > rec.Modified }); got != "" {
			t.Errorf("%s was fetched after it was made", got)
		}
	})
}

// TestTitles: titles are fetched when they are wanted, kept while the page stays, and dropped when they are not
// wanted any more.
func TestTitles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &validated{static: static{pages: map[string]string{"/": "<title>One</title>"}}}
		c, gen := New(Options{Own: true, Fetcher: site}), empty(t)
		for i, test := range []struct {
			titles bool
			routes uint64
			want   string
		}{{false, 1, ""}, {true, 2, "One"}, {true, 2, "One"}, {false, 3, ""}, {true, 4, "One"}} {
			p := with(func(p *Policy) { p.Extract.Titles, p.Routes, p.Expire = test.titles, test.routes, 90*365*24*time.Hour })
			gen = crawlAll(t, c, gen, p, page.Page{Path: "/"}).Generation
			got := describe(t, gen, func(rec *store.Record) string { return rec.Path + rec.Title })
			if got != "/"+test.want || len(site.order) != i+1 || site.notModified != min(i/2, 1) {
				t.Errorf("crawl %d: got %s after %d fetches, %d not modified, want the title %q", i, got, len(site.order), site.notModified, test.want)
			}
			time.Sleep(30 * 24 * time.Hour)
		}
	})
}

// headed is a site with one more header field, which its 304s may leave out.
type headed struct {
	validated
	name, value string
	brief       bool // a 304 has no such field, as those of Apache
}

func (h *headed) Fetch(ctx context.Context, r Request) (*Response, error) {
	resp, err := h.validated.Fetch(ctx, r)
	isBrief := h.brief && resp.Status == http.StatusNotModified
	if h.value != "" && !isBrief {
		resp.Header.Set(h.name, h.value)
	}
	return resp, err
}

// TestNotModifiedHeader: what the header of a 304 says of a page is seen (RFC 9111, section 3.2), and that it is not
// said any more is, too.
func TestNotModifiedHeader(t *testing.T) {
	said := func(rec *store.Record) string {
		if rec.Path != "/a" {
			return "" // the canonical, which is not there
		}
		return fmt.Sprint(rec.NoIndexTag, rec.Flags&store.NoIndex != 0, " ", rec.Canonical, rec.Target, len(rec.Alternates))
	}
	const nothing = "false false 0"
	for _, test := range []struct {
		name, body   string
		field, value string
		want         string // with the field
	}{
		{"noindex", "text", "X-Robots-Tag", "noindex", "true true 0"},
		{"noindex for Google", "text", "X-Robots-Tag", "googlebot: noindex", "true true 0"},
		{"noindex for another", "text", "X-Robots-Tag", "bingbot: noindex", nothing},
		{"a canonical", "text", "Link", `</b>; rel="canonical"`, "false false /b0"},
		{"itself as canonical", "text", "Link", `</a>; rel="canonical"`, nothing},
		{"a refresh", "text", "Refresh", "5; url=/b", "false false /b0"},
		{"alternates", "text", "Link", `</de>; rel="alternate"; hreflang="de"`, "false false 1"},
		{"a style sheet", "text", "Link", "</x.css>; rel=preload", nothing},
	} {
		for _, brief := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, ", brief ", brief), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &headed{validated: validated{static: static{pages: map[string]string{"/a": test.body}}}, name: test.field, brief: brief}
					c, gen := New(Options{Own: true, Fetcher: s}), empty(t)
					p := with(func(p *Policy) { p.Expire, p.Extract.Alternates = 90*365*24*time.Hour, true })
					crawl := func(value, want string) {
						t.Helper()
						s.value = value
						s.order, s.notModified = nil, 0
						gen = crawlAll(t, c, gen, p, page.Page{Path: "/a"}).Generation
						if got := describe(t, gen, said); got != want {
							t.Errorf("with %q: got %s, want %s", value, got, want)
						}
						time.Sleep(100 * 24 * time.Hour)
					}
					wantRequests := func(want int) {
						t.Helper()
						requests := slices.DeleteFunc(s.order, func(path string) bool { return path != "/a" })
						if len(requests) != want {
							t.Errorf("%d requests, want %d", len(requests), want)
						}
					}
					crawl("", nothing)
					crawl("", nothing)
					wantRequests(1)
					if s.notModified != 1 {
						t.Errorf("%d responses are 304, want one", s.notModified)
					}
					if test.name == "alternates" {
						p.Extract.Alternates = false // what is not listed is not looked for
						crawl(test.value, nothing)
						wantRequests(1)
						p.Extract.Alternates = true
					}
					if !brief {
						crawl(test.value, test.want)
						if test.want == nothing {
							wantRequests(1)
						} else {
							wantRequests(2)
						}
					}
					p.Routes++ // fetched in full
					crawl(test.value, test.want)
					crawl(test.value, test.want)
					wantRequests(1)
					if test.field != "Link" || strings.Contains(test.value, "canonical") { // that an alternate went away shows with the next full fetch
						crawl("", nothing)
					}
				})
			})
		}
	}
}

// TestAlwaysNotModified: a 304 to a request without conditions says nothing, also where a conditional one came before.
func TestAlwaysNotModified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &headed{validated: validated{static: static{pages: map[string]string{"/a": "text"}}}, name: "X-Robots-Tag"}
		c := New(Options{Own: true, Fetcher: s})
		p := with(func(p *Policy) { p.Expire = 90 * 365 * 24 * time.Hour })
		gen := crawlAll(t, c, empty(t), p, page.Page{Path: "/a"}).Generation
		time.Sleep(30 * 24 * time.Hour)
		s.value, s.always = "noindex", true
		gen = crawlAll(t, c, gen, p, page.Page{Path: "/a"}).Generation
		if got := pathsIf(t, gen, func(rec *store.Record) bool { return rec.Failing != 0 }); got != "/a" {
			t.Errorf("%q is failing, want /a", got)
		}
	})
}

// TestPanic: a page whose parsing panics counts as one that did not respond, and the next one is
// parsed.
func TestPanic(t *testing.T) {
	c := New(Options{Fetcher: &static{pages: map[string]string{"/a": "", "/b": ""}}, Own: true})
	run := c.Start(&list{pages: []page.Page{{Path: "/a"}, {Path: "/b"}}}, plain)
	run.workers = append(run.workers, &worker{run: run}) // without a parser
	result := update(t, run, empty(t), time.Minute)
	if result.Fetched != 2 || result.Panic == nil || !strings.HasPrefix(result.Panic.Error(), "parsing /a: panic: ") {
		t.Fatalf("got %+v", result)
	}
	failing := pathsIf(t, result.Generation, func(rec *store.Record) bool { return rec.Failing != 0 })
	if got, want := statuses(t, result.Generation), "/a 0 false /b 200 false"; got != want || failing != "/a" || len(c.o.Slots) != 0 {
		t.Errorf("got %s with %s failing, want %s, %d slots are taken", got, failing, want, len(c.o.Slots))
	}
}

var htmlHeader = http.Header{"Content-Type": {"text/html"}}

func empty(tb testing.TB) *store.Generation {
	s, err := store.Open(tb.Context(), store.NewMemory(), store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return s.Last()
}
