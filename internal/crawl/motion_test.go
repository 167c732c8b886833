package crawl

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// TestQuietSite: of 1,000 pages that rarely change, each is fetched again within a day, at no more than 130 requests in any
// hour, those of the probes included. A page that is removed is known to be gone within a day.
func TestQuietSite(t *testing.T) {
	if testing.Short() {
		t.Skip("two days of crawling")
	}
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: make(map[string]string)}
		for list := range 10 {
			s.pages["/"] += fmt.Sprintf(" /list-%d", list)
			for i := range 100 {
				path := fmt.Sprintf("/p-%d-%d", list, i)
				s.pages[fmt.Sprintf("/list-%d", list)] += " " + path
				s.pages[path] = ""
			}
		}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), 30*time.Minute, true)
		most := 0
		last := make(map[string]time.Time) // when each page was fetched
		for range 27 {
			s.order = nil
			gen = crawlEvery(t, 15*time.Minute, c, s, gen, time.Hour, true)
			most = max(most, len(s.order)+60)
			for _, path := range s.fetched() {
				last[path] = time.Now()
			}
		}
		for path := range s.pages {
			if path != "/" && time.Since(last[path]) > 26*time.Hour {
				t.Errorf("%s was not fetched again", path)
			}
		}
		if most > 130 {
			t.Errorf("%d requests in an hour", most)
		}
		delete(s.pages, "/p-3-7")
		removed := time.Now()
		for strings.Contains(statuses(t, gen), "/p-3-7 200") && time.Since(removed) < 30*time.Hour {
			gen = crawlBlog(t, c, s, gen, time.Hour, true)
		}
		if took := time.Since(removed); took > 25*time.Hour {
			t.Errorf("the removal was known after %s", took)
		}
	})
}

// TestRareCrawls: where crawls are a day apart, one fetches all pages again that are due, although it is done in parts, as what it
// finds is published meanwhile.
func TestRareCrawls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": ""}}
		for i := range 600 {
			path := fmt.Sprint("/p-", i)
			s.pages["/"] += " " + path
			s.pages[path] = ""
		}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := empty(t)
		for range 2 {
			s.order = nil
			begun := time.Now()
			run := c.Start(new(list), with(func(p *Policy) { p.Links = true }))
			isDone := false
			for step := time.Second; !isDone; step *= 2 {
				result := update(t, run, gen, step)
				gen = list200(t, result.Generation)
				isDone = result.Done
			}
			time.Sleep(24*time.Hour - time.Since(begun))
		}
		if n := len(s.order); n < len(s.pages) {
			t.Errorf("%d of %d pages were fetched again", n, len(s.pages))
		}
	})
}

// TestFailedDeployment: a page that is gone for two minutes is back soon after.
func TestFailedDeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/a", "/a": ""}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), time.Minute, true)
		delete(s.pages, "/a")
		c.Signal("/a", record.ByVisitor)
		gen = crawlBlog(t, c, s, gen, 2*time.Minute, true)
		if got := statuses(t, gen); !strings.Contains(got, "/a 404") {
			t.Errorf("while it is gone: got %s", got)
		}
		s.pages["/a"] = ""
		gen = crawlBlog(t, c, s, gen, 4*time.Minute, true)
		if got := statuses(t, gen); !strings.Contains(got, "/a 200") {
			t.Errorf("once it is back: got %s", got)
		}
	})
}

// TestSlowCycle: while it takes weeks to fetch all pages again, none expires after three days because the pages that link to
// it have not had their turn. One to which nothing links any more does, in the end.
func TestSlowCycle(t *testing.T) {
	if testing.Short() {
		t.Skip("75 days of crawling")
	}
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/list", "/list": ""}}
		for i := range 40 {
			path := fmt.Sprint("/p-", i)
			s.pages["/list"] += " " + path
			s.pages[path] = ""
		}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(0.001, 1)}) // of which known pages get four a day
		p := with(func(p *Policy) { p.Links = true; p.Expire = 3 * 24 * time.Hour })
		gen := empty(t)
		crawl := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Hour) {
				gen = list200(t, update(t, c.Start(new(list), p), gen, 50*time.Minute).Generation)
			}
		}
		crawl(15 * 24 * time.Hour)
		if n := len(strings.Fields(paths(t, gen))); n != len(s.pages) {
			t.Errorf("%d of %d pages are left", n, len(s.pages))
		}
		s.pages["/list"] = strings.TrimSuffix(s.pages["/list"], " /p-39")
		crawl(60 * 24 * time.Hour)
		for rec := range gen.Records(t.Context()) {
			if rec.Path == "/p-39" && rec.IsLinked(time.Now().Unix(), 3*day, record.Sum(gen.Chunks()).Followed) {
				t.Errorf("a page without links stays: %+v", rec)
			}
		}
	})
}

// TestHugeHub: the links of a page that has very many are followed, and not kept.
func TestHugeHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": ""}}
		var links []string
		for i := range 2001 {
			letters := func(r rune) rune { return r - '0' + 'a' } // paths that differ in digits alone have a bound of their own
			links = append(links, "/"+strings.Map(letters, fmt.Sprint(i)))
		}
		s.pages["/"] = strings.Join(links, " ")
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), 2*time.Minute, true)
		if gen.Len() != 2002 {
			t.Errorf("%d pages are known", gen.Len())
		}
		records, err := gen.Load(t.Context(), 0)
		if i, ok := record.Search(records, "/"); err != nil || !ok || len(records[i].Links) != 0 {
			t.Error("the links are kept")
		}
	})
}

// TestOtherLinksEachTime: an application whose links differ on each request makes no hubs, and loses nothing.
func TestOtherLinksEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/a", "/a": ""}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), time.Minute, true)
		for i := range 80 {
			s.pages["/"] = fmt.Sprintf("/a /session-%d/", i)
			gen = crawlBlog(t, c, s, gen, time.Minute, true)
		}
		n := 0
		for _, path := range s.fetched() {
			if path == "/a" {
				n++
			}
		}
		if n > 2 || !slices.Contains(s.fetched(), "/session-79/") {
			t.Errorf("/a was fetched %d times", n)
		}
	})
}

// lying is an application that answers 304 to each conditional request.
type lying struct{ static }

func (l *lying) Fetch(ctx context.Context, r Request) (*Response, error) {
	resp, err := l.static.Fetch(ctx, r)
	if err == nil && resp.Status == 200 {
		resp.Header.Set("Etag", `"always"`)
	}
	if err == nil && r.Header.Get("If-None-Match") != "" {
		resp = &Response{Status: 304, Header: resp.Header, Made: true}
	}
	return resp, err
}

// TestAlwaysUnchanged: a change is seen within a day although the application answers 304 to all.
func TestAlwaysUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lying{static{made: true, pages: map[string]string{"/": "/a", "/a": ""}}}
		c := New(Options{Fetcher: l, Limiter: NewLimiter(2, 1)})
		gen := empty(t)
		crawl := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Minute) {
				gen = update(t, c.Start(new(list), with(func(p *Policy) { p.Links = true })), gen, 50*time.Second).Generation
			}
		}
		crawl(30 * time.Hour)
		l.pages["/a"] = "/b"
		l.pages["/b"] = ""
		crawl(26 * time.Hour)
		if got := statuses(t, gen); !strings.Contains(got, "/b 200") {
			t.Errorf("got %s", got)
		}
	})
}

// TestClockJumps: a clock that is a year ahead or behind for a while loses no page, and pages are fetched again after it.
func TestClockJumps(t *testing.T) {
	if testing.Short() {
		t.Skip("twelve days of crawling")
	}
	for _, shift := range []time.Duration{365 * 24 * time.Hour, -365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := &static{made: true, pages: map[string]string{"/": "/a /b", "/a": "/c", "/b": "", "/c": ""}}
			var by time.Duration
			c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1), Now: func() time.Time { return time.Now().Add(by) }})
			gen := empty(t)
			crawl := func(d time.Duration) {
				s.order = nil
				for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Minute) {
					result := update(t, c.Start(new(list), with(func(p *Policy) { p.Links = true })), gen, time.Minute)
					gen = list200(t, result.Generation)
				}
			}
			crawl(48 * time.Hour)
			for _, by = range []time.Duration{shift, 0} {
				crawl(48 * time.Hour)
				if got := statuses(t, gen); got != "/ 200 false /a 200 false /b 200 false /c 200 false" {
					t.Errorf("shifted by %s: got %s", by, got)
				}
				for path := range s.pages {
					if !slices.Contains(s.fetched(), path) {
						t.Errorf("shifted by %s: %s was not fetched", by, path)
					}
				}
			}
		})
	}
}

// TestSpentBudget: known pages for which the budget is spent are no reason for another refresh at once, however many they are.
func TestSpentBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": ""}}
		for i := range 8 * minQueue {
			path := fmt.Sprint("/p-", i)
			s.pages["/"] += " " + path
			s.pages[path] = ""
		}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), 5*time.Minute, true)
		time.Sleep(5 * 24 * time.Hour) // all are due
		p := with(func(p *Policy) { p.Links = true })
		result := update(t, c.Start(new(list), p), gen, time.Hour)
		result = update(t, c.Start(new(list), p), result.Generation, 50*time.Second)
		if !result.Done {
			t.Errorf("pages that wait for the budget are left: %+v", result)
		}
	})
}

// TestNoFrontRecord: the response for a front page that has no record, or is not fetched, is looked at once.
func TestNoFrontRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "", "/a": ""}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := empty(t)
		var run *Run
		for range 3 {
			p := plain
			p.Front, _ = s.Fetch(t.Context(), Request{Path: "/"})
			run = c.Start(&list{pages: named("/a")}, p)
			gen = update(t, run, gen, time.Minute).Generation
		}
		p := plain
		p.Front, _ = s.Fetch(t.Context(), Request{Path: "/"})
		if run = c.Start(nil, p); run.frontDiffers() {
			t.Error("the same response differs again")
		}
	})
}

// clocks is a site of which each page has a clock in its text.
type clocks struct{ *static }

func (c clocks) Fetch(ctx context.Context, r Request) (*Response, error) {
	resp, err := c.static.Fetch(ctx, r)
	if resp != nil && resp.Status == http.StatusOK {
		resp.Body = fmt.Append(resp.Body, time.Now().Unix())
	}
	return resp, err
}

// TestClocksInAllPages: where an operator has a large site fetched again of which each page has a clock, its pages are noise
// in the end, however late it was when they were to be confirmed.
func TestClocksInAllPages(t *testing.T) {
	if testing.Short() {
		t.Skip("ten hours of refreshes")
	}
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": ""}}
		for i := range 60 {
			path := fmt.Sprint("/p-", i)
			s.pages["/"] += " " + path
			s.pages[path] = ""
		}
		c := New(Options{Fetcher: clocks{s}, Limiter: NewLimiter(0.2, 1)})
		crawl := func(gen *record.Generation, d time.Duration, all bool) *record.Generation {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Minute) {
				p := with(func(p *Policy) { p.Links = true; p.RefetchAll = all })
				all = false
				gen = list200(t, update(t, c.Start(new(list), p), gen, 50*time.Second).Generation)
			}
			return gen
		}
		gen := crawl(empty(t), 10*time.Minute, false)
		gen = crawl(gen, 10*time.Hour, true)
		inDoubt := 0
		for rec := range gen.Records(t.Context()) {
			if rec.Steadiness.IsInDoubt() {
				inDoubt++
			}
		}
		if inDoubt > 3 {
			t.Errorf("%d pages are in doubt", inDoubt)
		}
	})
}

// TestOwnFrontPage: what the site itself makes of its front page is seen within two minutes, although no probe tells of it.
func TestOwnFrontPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{pages: map[string]string{"/": "/a", "/a": "", "/b": ""}}
		c := New(Options{Fetcher: s, Own: true})
		gen := crawlBlog(t, c, s, empty(t), 10*time.Minute, true)
		s.pages["/"] = "/a /b"
		gen = crawlBlog(t, c, s, gen, 3*time.Minute, true)
		if got := statuses(t, gen); !strings.Contains(got, "/b 200") {
			t.Errorf("got %s", got)
		}
	})
}

// TestFrontRedirects: the response that the caller has may be that of the page to which the front page redirects. The crawl
// requests neither again.
func TestFrontRedirects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "302 /blog/", "/blog/": "/a", "/a": "", "/b": ""}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), time.Minute, true)
		crawl := func(minutes int) {
			for range minutes {
				front, err := s.Fetch(t.Context(), Request{Path: "/blog/"})
				if err != nil {
					t.Fatal(err)
				}
				s.order = s.order[:len(s.order)-1]
				p := with(func(p *Policy) {
					p.Links = true
					p.Front = front
					p.FrontPath = "/blog/"
				})
				result := update(t, c.Start(new(list), p), gen, 50*time.Second)
				if !Same(result.Generation, gen) {
					gen = list200(t, result.Generation)
				}
				time.Sleep(time.Minute)
			}
		}
		crawl(2)
		if got := strings.Join(s.fetched(), " "); got != "/blog/ /a" {
			t.Errorf("got %s", got)
		}
		before := gen
		crawl(30)
		if !Same(gen, before) {
			t.Error("a page that stays as it is changes a record")
		}
		s.order = nil
		s.pages["/blog/"] += " /b"
		crawl(1)
		if got := strings.Join(s.fetched(), " "); got != "/b" {
			t.Errorf("after a change: got %s", got)
		}
	})
}

// TestFrontRedirectsElsewhere: pages to which the front page once redirected are pages as others, and are not fetched every few
// minutes for ever.
func TestFrontRedirectsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "302 /issue-0/", "/issue-0/": ""}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), time.Hour, true)
		for i := range 5 {
			path := fmt.Sprintf("/issue-%d/", i+1)
			s.pages[path] = ""
			s.pages["/"] = "302 " + path
			gen = crawlBlog(t, c, s, gen, time.Hour, true)
		}
		s.pages["/"] = "/issue-0/"
		gen = crawlBlog(t, c, s, gen, 2*time.Hour, true)
		s.order = nil
		crawlBlog(t, c, s, gen, 6*time.Hour, true)
		if n := len(s.order); n > 30 {
			t.Errorf("%d requests in six hours", n)
		}
	})
}

// TestLinkBeforePage: where a link comes minutes before the page to which it leads, the page is found soon after it is there.
func TestLinkBeforePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/a", "/a": ""}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), time.Hour, true)
		s.pages["/"] = "/a /new"
		gen = crawlBlog(t, c, s, gen, 5*time.Minute, true)
		s.pages["/new"] = ""
		gen = crawlBlog(t, c, s, gen, 5*time.Minute, true)
		if got := statuses(t, gen); !strings.Contains(got, "/new 200") {
			t.Errorf("got %s", got)
		}
	})
}

// TestLinkAgain: a page that was gone for days is requested at once if the front page links to it again; one that stays away
// while links to it come and go, once an hour at most.
func TestLinkAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/a /b /c", "/a": "", "/b": ""}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), time.Hour, true)
		delete(s.pages, "/b")
		s.pages["/"] = "/a"
		gen = crawlBlog(t, c, s, gen, 72*time.Hour, true)
		s.pages["/b"] = ""
		s.pages["/"] = "/a /b"
		gen = crawlBlog(t, c, s, gen, 2*time.Minute, true)
		if got := statuses(t, gen); !strings.Contains(got, "/b 200") {
			t.Errorf("got %s", got)
		}
		s.order = nil
		for i := range 180 {
			s.pages["/"] = "/a /b"
			if i%2 == 0 {
				s.pages["/"] += " /c"
			}
			gen = crawlBlog(t, c, s, gen, time.Minute, true)
		}
		n := 0
		for _, path := range s.order {
			if path == "/c" {
				n++
			}
		}
		if n < 1 || n > 4 {
			t.Errorf("/c was requested %d times in three hours", n)
		}
	})
}

// TestTokenInFrontPage: a front page that has a token in each response has its record written once an hour, not each time.
func TestTokenInFrontPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/a", "/a": ""}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), 3*time.Minute, true)
		for i := range 20 {
			front, err := s.Fetch(t.Context(), Request{Path: "/"})
			if err != nil {
				t.Fatal(err)
			}
			front.Body = append(front.Body, fmt.Sprintf("<input type=hidden value=%d>", i)...)
			time.Sleep(time.Minute)
			next := update(t, c.Start(new(list), with(func(p *Policy) { p.Links = true; p.Front = front })), gen, 50*time.Second).Generation
			if !Same(gen, next) {
				t.Errorf("response %d: the record is another one", i)
			}
			gen = next
		}
	})
}

// TestOnce: where no crawl follows, all pages that are due are fetched, and a change counts at once.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": ""}}
		for i := range 200 {
			path := fmt.Sprint("/p-", i)
			s.pages["/"] += " " + path
			s.pages[path] = ""
		}
		crawl := func(gen *record.Generation) *record.Generation {
			c := New(Options{Fetcher: s, Limiter: NewLimiter(10, 1), Once: true})
			return update(t, c.Start(new(list), with(func(p *Policy) { p.Links = true })), gen, time.Hour).Generation
		}
		gen := crawl(empty(t))
		time.Sleep(48 * time.Hour)
		s.order = nil
		s.pages["/p-7"] = "other words"
		gen = crawl(gen)
		if n := len(s.fetched()); n < 201 {
			t.Errorf("%d pages were fetched again", n)
		}
		records, err := gen.Load(t.Context(), 0)
		if i, ok := record.Search(records, "/p-7"); err != nil || !ok || records[i].Changed == 0 {
			t.Error("the change does not count")
		}
	})
}
