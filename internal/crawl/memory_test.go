package crawl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// TestSoftNotFound: the routes of an application that runs in the browser all return the same page. Those that a
// list names are no soft 404s, nor is the front page.
func TestSoftNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shell := &static{pages: map[string]string{"*": `<!DOCTYPE html>shell<a href="/linked">x</a><a href="/listed">x</a>`}}
		c := New(Options{Fetcher: shell, Limiter: NewLimiter(1000, 1)})
		gen := empty(t)
		for cand, want := range map[string]string{"/listed": "/linked", "/linked": "/listed"} {
			gen = crawlAll(t, c, gen, with(func(p *Policy) { p.Links = true }), page.Page{Path: cand}).Generation
			soft := pathsIf(t, gen, func(rec *record.Record) bool { return rec.Flags&record.SoftNotFound != 0 })
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
			p.Scope = "/docs/"
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
			if got := run.soft404Path(&record.Record{Path: path}); got != want {
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

// TestSoft404Hangs: while a path that cannot exist hangs, the page beside it is not fetched again. Then it is fetched at once.
func TestSoft404Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{pages: map[string]string{"/": "/a", "/a": "text"}}
		run, gen := New(Options{Fetcher: s}).Start(&list{pages: named("/")}, with(func(p *Policy) { p.Links = true })), empty(t)
		absent := run.soft404Path(&record.Record{Path: "/a"})
		s.hangs = absent
		for range 3 {
			gen = update(t, run, gen, time.Second).Generation
		}
		if got := strings.Join(s.order, " "); got != "/ /a" {
			t.Errorf("while it hangs: got %q, want /a once", got)
		}
		s.hangs = ""
		s.order = nil
		update(t, run, gen, time.Second)
		if got := strings.Join(s.order, " "); got != absent+" /a" {
			t.Errorf("got %q, want %s and /a", got, absent)
		}
	})
}

// TestPrefixRouter: a page whose router responds alike to all paths below it is no soft 404.
func TestPrefixRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &prefixes{static{pages: map[string]string{"/": "/about/ /contact/", "/about/": "us", "/contact/": "write"}}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)})
		gen := crawlAll(t, c, empty(t), with(func(p *Policy) { p.Links = true })).Generation
		if soft := pathsIf(t, gen, func(rec *record.Record) bool { return rec.Flags&record.SoftNotFound != 0 }); soft != "" {
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
			if got := pathsIf(t, gen, func(rec *record.Record) bool { return rec.Status == 200 }); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestPrecedence: pages that come last wait until nothing else is due, are fetched then, and wait again thereafter.
func TestPrecedence(t *testing.T) {
	// What the calls of admits and next return: "first" is a page that is fetched at once, "last" one that comes last.
	type call struct {
		name string
		want bool
	}
	for name, calls := range map[string][]call{
		"none waits":        {{"first", true}, {"next", false}, {"first", true}},
		"one waits":         {{"last", false}, {"first", true}, {"next", true}, {"last", true}, {"first", true}},
		"several wait":      {{"last", false}, {"last", false}, {"next", true}, {"last", true}, {"last", true}},
		"they wait once":    {{"last", false}, {"next", true}, {"last", true}, {"next", false}, {"last", false}},
		"none was left":     {{"last", false}, {"next", true}, {"next", false}, {"next", false}},
		"one waits anew":    {{"last", false}, {"next", true}, {"next", false}, {"last", false}, {"next", true}, {"last", true}},
		"none has been due": {{"next", false}, {"last", false}, {"next", true}},
	} {
		var p precedence
		for i, call := range calls {
			var got bool
			switch call.name {
			case "first":
				got = p.admits(false)
			case "last":
				got = p.admits(true)
			case "next":
				got = p.next()
			}
			if got != call.want {
				t.Errorf("%s: call %d, of %s, returned %t", name, i, call.name, got)
			}
		}
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

// TestTurns: a folder of very many pages lets others have their turn, from one crawl to the next, and assets come last.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/z /aa.png", "/z": "", "/aa.png": ""}}
		for i := range 1500 {
			path := fmt.Sprintf("/a/%d", i)
			s.pages["/"] += " " + path
			s.pages[path] = ""
		}
		c, gen := New(Options{Fetcher: s, Limiter: NewLimiter(100, 1)}), empty(t)
		for range 20 {
			gen = update(t, c.Start(new(list), with(func(p *Policy) { p.Links = true })), gen, time.Second).Generation
		}
		pages := s.fetched()
		if last := pages[len(pages)-1]; len(pages) < 1500 || slices.Index(pages, "/z") > 10 || last != "/aa.png" {
			t.Errorf("/z was fetched as number %d, /aa.png as number %d, %s as the last of %d",
				slices.Index(pages, "/z"), slices.Index(pages, "/aa.png"), last, len(pages))
		}
	})
}

// TestProper404s: once enough paths of a group that do not exist are no soft 404s, few others are requested. One soft 404 has
// all requested again.
func TestProper404s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, soft := range []string{"", "/shop/f-0/"} {
			s := &static{made: true, pages: map[string]string{"/": ""}}
			for i := range 200 {
				path := fmt.Sprintf("/shop/f-%d/item", i)
				s.pages["/"] += " " + path
				s.pages[path] = ""
			}
			c := New(Options{Fetcher: s, Limiter: NewLimiter(1000, 1)})
			if soft != "" {
				s.pages[soft+c.soft404Name] = ""
			}
			crawlBlog(t, c, s, empty(t), 2*time.Minute, true)
			probes := 0
			for _, path := range s.order {
				if strings.HasSuffix(path, c.soft404Name) {
					probes++
				}
			}
			if soft == "" && (probes < enough404s || probes > 60) || soft != "" && probes < 150 {
				t.Errorf("%q: %d paths that do not exist were requested", soft, probes)
			}
		}
	})
}

func TestSoft404Group(t *testing.T) {
	for path, want := range map[string]string{
		"/x": "", "/a/x": "a", "/a/b/c/x": "a", "/x?page=1": "?page", "/a/?page=1": "a?page", "/a/b?q=1&page=x": "a?page", "/a/b?x": "a?x",
	} {
		if got := soft404Group(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
