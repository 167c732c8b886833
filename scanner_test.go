package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/export"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// TestConfirm: of few pages, or lost for several reasons, [TestDecide] says nothing.
func TestConfirm(t *testing.T) {
	const few, broken = "less than half of the pages would be left", "more than a fifth of the pages would go at once: server error"
	for name, test := range map[string]struct {
		published, selected int // pages
		regressed           map[indexing.Status]int
		want                string
	}{
		"half of an even number":  {2, 1, nil, ""},
		"half of an odd number":   {3, 1, nil, few},
		"nothing is left":         {1, 0, nil, few},
		"a fifth":                 {5, 4, map[indexing.Status]int{indexing.ServerError: 1}, ""},
		"over a fifth":            {4, 3, map[indexing.Status]int{indexing.ServerError: 1}, broken},
		"a fifth of each of many": {10, 5, map[indexing.Status]int{indexing.ServerError: 2, indexing.NoIndex: 2, indexing.Duplicate: 1}, ""},
	} {
		before := &publication{snapshot: listing(test.published), selectedBy: 1}
		var sel selection
		if test.selected > 0 {
			sel.snapshot = listing(test.selected)
		}
		sel.result.Generation = new(record.Generation)
		sel.result.Before = test.published
		for status, n := range test.regressed {
			sel.result.Regressed[status] = n
		}
		got := decide(before, sel, circumstances{gathered: true, now: batch, selectedBy: 1})
		if got.reason != test.want || (got.verdict == hold) != (test.want != "") {
			t.Errorf("%s: got %+v, want %q", name, got, test.want)
		}
	}
}

// inBubble runs a test in a bubble of fake time, with a bench that has this time.
func inBubble(t *testing.T, test func(t *testing.T, b *bench)) {
	first := newBench(t, nil)
	first.lists("/")
	first.wantPages(first.site("visited.example"), 1) // compressors are made once, outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.app.now = time.Now
		test(t, b)
	})
}

// TestCostOfGathering: reading the sources counts, be a page fetched meanwhile or not. Waiting for pages, or for other sites that
// compute, does not.
func TestCostOfGathering(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		named := []string{"/a"}
		b.handler.sources = []input{sortedFunc{func(yield func(page.Page) error) error {
			time.Sleep(3 * time.Second)
			for _, path := range named {
				if err := yield(page.Page{Path: path}); err != nil {
					return err
				}
			}
			return nil
		}}}
		pages := b.pages
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			if r.URL.Path != "/" {
				time.Sleep(2 * time.Second)
			}
			return pages(w, r)
		}
		s := b.site("named.example")
		for i, paths := range [][]string{{"/a"}, {"/a"}, {"/a", "/b"}} {
			named = paths
			isLast := i == 2
			if isLast {
				b.app.compute <- struct{}{} // another site computes
				time.AfterFunc(20*time.Second, func() { <-b.app.compute })
			}
			out := s.refresh(t.Context(), false)
			hasFetched := out.Crawled.Fetched > 0
			hasWaited := out.Took > 10*time.Second
			hasCost := out.Cost >= 3*time.Second && out.Cost < 4*time.Second // the sources are looked at again after a while
			if !hasCost || hasFetched != (i != 1) || hasWaited != isLast {
				t.Errorf("refresh %d: %s of %s count, %d pages were fetched", i, out.Cost, out.Took, out.Crawled.Fetched)
			}
			time.Sleep(time.Hour)
		}
	})
}

// TestSlowSource: a source that takes long before its first page has a minute once no request
// waits any more, although nothing is served.
func TestSlowSource(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		source := b.source
		b.source = func(ctx context.Context, r *Refresh, yield func(Page) error) error {
			time.Sleep(2 * firstPatience)
			r.Warn("late", "a late warning")
			return source(ctx, r, yield)
		}
		s := b.site("named.example")
		for i := range 3 {
			begun := time.Now()
			s.run()
			b.app.group.Wait()
			if took := time.Since(begun); i == 0 && took > firstPatience+2*time.Second {
				t.Errorf("the first request waits for %s", took)
			}
		}
		if got, warned := pagesOf(s.published().snapshot), b.logged("a late warning"); got != 1 || warned != 1 {
			t.Errorf("got %d pages, and %d warnings", got, warned)
		}
	})
}

// TestPartialPublication: a change that is published before all pages are gathered has its date in the end, although
// nothing else changes: when it is known that no deployment is under way. If nothing changed at all, nothing is selected, and
// all time was spent gathering.
func TestPartialPublication(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		text, modified := "", int64(0)
		b.handler.sources = []input{sortedFunc{func(yield func(page.Page) error) error {
			first := cmp.Or(yield(page.Page{Path: "/a", LastMod: modified, Version: uint32(modified)}), yield(page.Page{Path: "/b"}))
			time.Sleep(3*firstPublication + firstPublication/2) // between two publications, and before a source is left out
			return cmp.Or(first, yield(page.Page{Path: "/c"}))
		}}}
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Type", contentHTML)
			_, err := fmt.Fprintf(w, "<!doctype html><title>%s</title><p>%s of %s", r.URL.Path, text, r.URL.Path)
			return err
		}
		s := b.site("named.example")
		for i, test := range []struct {
			text   string
			isSame bool // nothing is selected
		}{{"first", false}, {"first", true}, {"second", false}, {"second", false}, {"second", true}, {"third", false}} {
			time.Sleep(time.Hour)
			isSame := test.isSame
			if text != test.text {
				text, modified = test.text, time.Now().Unix()
			}
			begun := time.Now()
			out := s.refresh(t.Context(), false)
			if took := time.Since(begun); isSame && out.Cost != took {
				t.Errorf("refresh %d: %s of %s count", i, out.Cost, took)
			}
			records, err := s.published().generation.Load(t.Context(), 0)
			if err != nil || len(records) != 3 || records[0].Selected.LastMod != modified || isSame != (out.Selected.Generation == nil) {
				t.Errorf("refresh %d: got %v, %+v, want the date %d; %+v", i, err, records, modified, out)
			}
		}
	})
}

// TestSlowLoss: pages that go are held back, and that is logged once, although parts of each refresh are published.
func TestSlowLoss(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		named, isClosed := numbered(20), false
		b.handler.sources = []input{sortedFunc{func(yield func(page.Page) error) error {
			for _, path := range named {
				time.Sleep(firstPublication * 3 / 2)
				if err := yield(page.Page{Path: path}); err != nil {
					return err
				}
			}
			if isClosed {
				return fs.ErrPermission
			}
			return nil
		}}}
		b.lists(named...)
		s := b.site("named.example")
		s.run()
		lose := func(after time.Duration, pages int) {
			t.Helper()
			for begun := time.Now(); time.Since(begun) < after; time.Sleep(time.Minute) {
				if s.run(); pagesOf(s.published().snapshot) != pages {
					t.Fatalf("after %s, %d pages are listed, want %d", time.Since(begun), pagesOf(s.published().snapshot), pages)
				}
			}
		}
		lose(1, 20)
		isClosed = true
		lose(confirmAfter, 20)
		if held, failed := b.logged("sitemap change held back until later refreshes confirm it"), b.logged("gathering pages failed"); held != 1 || failed != 1 {
			t.Errorf("it is logged %d and %d times", held, failed)
		}
		isClosed = false
		lose(1, 20)
		named = []string{named[0], named[4], named[8], named[12], named[16]}
		lose(confirmAfter-time.Minute, 20)
		time.Sleep(time.Minute)
		if lose(1, 5); b.logged("sitemap change held back until later refreshes confirm it") != 2 {
			t.Error("it is not logged once")
		}
	})
}

// TestTemplateOfUpstream: that all texts change is a change of the template, which changes no date, although some pages are
// published before the others are fetched.
func TestTemplateOfUpstream(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		text, version := "one", uint32(1)
		b.handler.sources = []input{sourceFunc(func(yield func(page.Page) error) (err error) {
			for _, path := range numbered(12) {
				err = cmp.Or(err, yield(page.Page{Path: path, Version: version}))
			}
			return err
		})}
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			upstream(r)
			time.Sleep(300 * time.Millisecond)
			w.Header().Set("Content-Type", contentHTML)
			_, err := fmt.Fprintf(w, "<!doctype html><title>x</title><p>%s %s", r.URL.Path, text)
			return err
		}
		s := b.site("named.example")
		for _, pause := range []time.Duration{time.Hour, time.Minute, 0} { // the last refresh confirms the change
			s.refresh(t.Context(), false)
			time.Sleep(pause)
			text, version = "two", 2
		}
		records, err := s.published().generation.Load(t.Context(), 0)
		if err != nil || len(records) != 12 {
			t.Errorf("got %d records, %v", len(records), err)
		}
		for _, rec := range records {
			if rec.Changed == 0 || rec.Selected.LastMod != 0 {
				t.Errorf("%s has the date %d, and changed at %d", rec.Path, rec.Selected.LastMod, rec.Changed)
			}
		}
	})
}

// refused has a page's upstream refuse requests for some seconds.
func (b *bench) refused(path string, retryAfter int) {
	front := b.pages
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Path != path {
			return front(w, r)
		}
		time.Sleep(100 * time.Millisecond)
		upstream(r)
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		return caddyhttp.Error(http.StatusServiceUnavailable, nil)
	}
}

// TestLimiterStays: how long an upstream is to be left alone outlives a reload.
func TestLimiterStays(t *testing.T) {
	b := newBench(t, nil)
	before := b.site("named.example")
	defer before.drop()
	_, _, err := before.crawler.Do(t.Context(), crawl.Single{Path: "/page"}, func() (*crawl.Response, error) {
		return &crawl.Response{Status: http.StatusServiceUnavailable, Made: true, Header: http.Header{"Retry-After": {"3600"}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.handler.limiter = crawl.NewLimiter(maxCrawlRate, 1)
	b.app.sites = make(map[siteID]*site) // those of another configuration
	b.app.keys = make(map[string]bool)
	b.site("named.example")
	if left := time.Until(b.handler.limiter.Next()); left < 50*time.Minute {
		t.Errorf("the next request may begin in %s, want an hour", left)
	}
}

// TestIdleCrawl: a refresh waits for no upstream for longer than another refresh would take to come.
func TestIdleCrawl(t *testing.T) {
	for name, test := range map[string]struct {
		interval   time.Duration
		retryAfter int
	}{"over two seconds": {time.Minute, 10}, "over an interval": {time.Second, 1}} {
		inBubble(t, func(t *testing.T, b *bench) {
			b.handler.settings.interval = test.interval
			b.lists("/a", "/up", "/wp") // whether the last one has the same upstream is not known
			b.refused("/up", test.retryAfter)
			s := b.site("named.example")
			begun := time.Now()
			out := s.refresh(t.Context(), false)
			took := time.Since(begun)
			if out.Partial || out.Crawled.Done || pagesOf(out.Snapshot) != 1 || took > time.Second {
				t.Errorf("%s: %d pages after %s: %+v", name, pagesOf(out.Snapshot), took, out.Crawled)
			}
		})
	}
}

// TestFilesBesideUpstream: while an upstream is left alone, the pages of files are fetched in the same refresh, also if they
// take longer than its first part.
func TestFilesBesideUpstream(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		paths := append([]string{"/0up"}, numbered(20)...)
		version := uint32(1)
		b.handler.sources = []input{sourceFunc(func(yield func(page.Page) error) (err error) {
			for _, path := range paths {
				err = cmp.Or(err, yield(page.Page{Path: path, Version: version}))
			}
			return err
		})}
		b.lists(paths...)
		s := b.site("named.example")
		front := b.pages
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			if r.URL.Path == "/0up" {
				upstream(r)
			}
			return front(w, r)
		}
		s.refresh(t.Context(), false) // which learns what is a file
		time.Sleep(time.Hour)

		version = 2
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			if strings.HasPrefix(r.URL.Path, "/page") {
				time.Sleep(time.Second)
			}
			return front(w, r)
		}
		b.refused("/0up", 3600)
		out := s.refresh(t.Context(), false)
		if out.Crawled.Fetched != 21 || out.Partial {
			t.Errorf("got %+v", out.Crawled)
		}

		// The upstream is left alone already when the next refresh begins.
		time.Sleep(time.Minute)
		version = 3
		out = s.refresh(t.Context(), false)
		if out.Crawled.Fetched != 20 || out.Partial {
			t.Errorf("got %+v from the next refresh", out.Crawled)
		}
	})
}

// TestStoppedBuild: a build that is stopped waits for no upstream.
func TestStoppedBuild(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.app.building = new(export.Progress)
		b.lists("/up", "/wp")
		b.refused("/up", 24*3600)
		s := b.site("named.example")
		time.AfterFunc(50*time.Millisecond, s.cancel) // while the page is fetched
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begun := time.Now()
		out := s.refresh(ctx, false)
		if took := time.Since(begun); !errors.Is(out.Err, errStopping) || took > time.Minute {
			t.Errorf("it takes %s: %v", took, out.Err)
		}
	})
}

// TestLongBuild: a build ends that takes many times the interval between refreshes.
func TestLongBuild(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.app.building = new(export.Progress)
		b.handler.limiter = crawl.NewLimiter(1, 1)
		b.handler.settings.interval = time.Second
		paths := []string{"/"}
		for i := range 100 {
			paths = append(paths, fmt.Sprint("/", i))
		}
		b.lists(paths...)
		pages := b.pages
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			upstream(r)
			return pages(w, r)
		}
		s := b.site("named.example")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		out := s.refresh(ctx, false)
		if got := pagesOf(out.Snapshot); out.Err != nil || got != len(paths) {
			t.Errorf("got %d pages of %d: %v", got, len(paths), out.Err)
		}
	})
}

// TestDatesOfFirstPages: where all pages have the same Last-Modified, none has it as its date, also if a refresh ends before
// the others are fetched.
func TestDatesOfFirstPages(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.lists(numbered(20)...)
		front := b.pages
		started := time.Now().Add(-24 * time.Hour)
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			if strings.HasPrefix(r.URL.Path, "/page") {
				time.Sleep(600 * time.Millisecond)
			}
			w.Header().Set("Last-Modified", started.UTC().Format(http.TimeFormat))
			return front(w, r)
		}
		s := b.site("named.example")
		s.schedule.Request(time.Now()) // which ends the refresh after its first part
		out := s.refresh(t.Context(), false)
		if out.Partial || out.Crawled.Pending == 0 || pagesOf(out.Snapshot) == 0 {
			t.Errorf("got %+v", out.Crawled)
		}
		for range 2 {
			records, err := s.published().generation.Load(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, rec := range records {
				if rec.Selected.LastMod != 0 {
					t.Errorf("%s has the date %d", rec.Path, rec.Selected.LastMod)
				}
			}
			s.run()
		}
		if got := pagesOf(s.published().snapshot); got != 20 {
			t.Errorf("got %d pages", got)
		}
	})
}

// TestPaceOfUpstreams: the pause between two requests to an upstream ends no refresh.
func TestPaceOfUpstreams(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		time.Sleep(300 * time.Millisecond) // the next request is due in another second then
		b.handler.limiter = crawl.NewLimiter(1.9, 1)
		b.lists(numbered(20)...)
		front := b.pages
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			upstream(r)
			time.Sleep(2 * time.Millisecond)
			return front(w, r)
		}
		s := b.site("named.example")
		if out := s.refresh(t.Context(), false); out.Err != nil || pagesOf(s.published().snapshot) != 20 {
			t.Errorf("%d pages are listed; got %+v", pagesOf(s.published().snapshot), out)
		}
	})
}

// wantPages checks how many pages are served.
func (b *bench) wantPages(s *site, want int) *document.Set {
	b.Helper()
	got := b.refresh(s)
	if pagesOf(got) != want {
		b.Fatalf("%d pages are served, want %d; logs %v", pagesOf(got), want, b.logs.All())
	}
	return got
}

// TestLook: after an upgrade by which documents look different, they are made again, although no page has changed.
func TestLook(t *testing.T) {
	b := newBench(t, nil)
	b.lists("/")
	s := b.site("named.example")
	madeBy := func() uint64 {
		b.wantPages(s, 1)
		return s.published().selectedBy
	}
	first := madeBy()
	if again := madeBy(); again != first {
		t.Fatal("documents are made again although nothing has changed")
	}
	look := document.Look
	t.Cleanup(func() { document.Look = look })
	document.Look += "another"
	if again := madeBy(); again == first {
		t.Error("documents are not made again")
	}
}

// TestLoss: pages that go are held back where they are many at once, and come back at once.
func TestLoss(t *testing.T) {
	all := numbered(20)
	for name, test := range map[string]struct {
		lose  func(b *bench)
		first int // pages after the first refresh that sees the loss
		last  int // after ten minutes
	}{
		"a few files are deleted":                             {func(b *bench) { b.lists(all[:18]...) }, 18, 18},
		"many names are gone, and the pages still return 200": {func(b *bench) { b.names(all[:5]...) }, 20, 5},
		"the root is gone":                                    {func(b *bench) { b.names(); b.pages = status(http.StatusNotFound) }, 20, 0},
		"the application is broken":                           {func(b *bench) { b.pages = status(http.StatusInternalServerError) }, 20, 20},
		"the source fails":                                    {func(b *bench) { b.source = failingSource }, 20, 20},
		"the site refuses its visitors":                       {func(b *bench) { b.pages = status(http.StatusForbidden) }, 0, 0},
		"the source fails, and pages go":                      {func(b *bench) { b.lists(all[:5]...); b.source = failingSource }, 20, 20},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.lists(all...)
			s := b.site("named.example")
			b.wantPages(s, 20)
			test.lose(b)
			b.wantPages(s, test.first)
			begun := b.clock
			for b.clock.Sub(begun) < confirmAfter-s.handler.settings.interval {
				b.wantPages(s, test.first)
			}
			b.refresh(s)
			b.wantPages(s, test.last)
			b.lists(all...)
			b.wantPages(s, 20)
		})
	}
}

// TestStages: the status says what a refresh is at, and since when.
func TestStages(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.lists(numbered(20)...)
		s := b.site("named.example")
		fast := b.pages
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			time.Sleep(2 * fetchTimeout)
			return fast(w, r)
		}
		begun := time.Now()
		go s.run()
		for _, want := range []struct {
			after time.Duration
			stage string
		}{{time.Second, stageProbe}, {fetchTimeout - time.Second, stageProbe}, {fetchTimeout + time.Second, stageHangs}} {
			time.Sleep(want.after - time.Since(begun))
			got := s.status().Refreshing
			if got == nil || got.Stage != want.stage || got.Since.IsZero() {
				t.Errorf("after %s: got %+v, want %q", want.after, got, want.stage)
			}
		}
		time.Sleep(30 * fetchTimeout)
		if got := s.status().Refreshing; got != nil {
			t.Errorf("in the end: got %+v, want that nothing runs", got)
		}
	})
}

// TestStageOfCrawl: a refresh that fetches pages says so.
func TestStageOfCrawl(t *testing.T) {
	b := newBench(t, nil)
	b.lists(numbered(1)...)
	s := b.site("named.example")
	fast := b.pages
	var stages []string
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		stages = append(stages, s.status().Refreshing.Stage)
		return fast(w, r)
	}
	b.wantPages(s, 1)
	if len(stages) < 2 || stages[0] != stageProbe || stages[len(stages)-1] != stageGather {
		t.Errorf("got %q", stages)
	}
}

// status is a handler that fails with a status.
func status(code int) caddyhttp.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(code, nil) }
}

func failingSource(context.Context, *Refresh, func(Page) error) error { return errors.New("gone") }

// TestSupersededMeanwhile: the next configuration starts while a refresh of the one before waits for the records or to
// compute, and waits no longer than three seconds for it. What is published, and planned, is its own, until it is given up, as when
// another of its apps cannot be started.
func TestSupersededMeanwhile(t *testing.T) {
	for _, computes := range []bool{true, false} {
		inBubble(t, func(t *testing.T, before *bench) {
			next := newBench(t, nil)
			next.app.now = time.Now
			before.app.number, next.app.number = configurations.Add(1), configurations.Add(1)
			old := before.site("named.example")
			before.wantPages(old, 1)
			records, err := old.state.records.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before.lists(numbered(3)...)
			var fetched atomic.Int32
			pages, lines := before.pages, before.logs.Len()
			before.pages = func(w http.ResponseWriter, r *http.Request) error {
				fetched.Add(1)
				return pages(w, r)
			}
			if computes {
				before.app.compute <- struct{}{}
				records.Release()
			}
			go old.run()
			time.Sleep(time.Second)
			next.app.before = latest.Swap(next.app.number)
			if !computes {
				records.Release()
			}
			next.lists(numbered(5)...)
			s := next.site("named.example")
			want := next.wantPages(s, 5)
			if computes {
				<-before.app.compute
			}
			if synctest.Wait(); s.published().snapshot != want || (fetched.Load() > 0) != computes || before.logs.Len() != lines {
				t.Errorf("computes %t: %d pages are served, want 5; %d fetched before, logs %v", computes, pagesOf(s.published().snapshot), fetched.Load(), before.logs.All())
			}
			if s.published().next.due.IsZero() {
				t.Error("it has no plan")
			}
			_ = next.app.Cleanup()
			before.wantPages(old, 3)
		})
	}
}

// TestRefreshOnceStarted: what the configuration before has published stays until all apps have started, as the next one
// may fail to start. Where nothing is served, the first refresh does not wait.
func TestRefreshOnceStarted(t *testing.T) {
	for _, serves := range []bool{true, false} {
		inBubble(t, func(t *testing.T, b *bench) {
			s := b.site("named.example")
			if serves {
				b.wantPages(s, 1)
				b.lists("/a", "/b")
				s.schedule.At(time.Now())
			}
			b.app.serving = make(chan struct{})
			b.app.group.Go(s.refreshWhenDue)
			time.Sleep(firstWait / 2)
			if got := pagesOf(s.published().snapshot); got != 1 {
				t.Errorf("it serves %t: %d pages are served before all apps have started", serves, got)
			}
			close(b.app.serving)
			time.Sleep(firstWait / 4)
			if got := pagesOf(s.published().snapshot); serves && got != 2 {
				t.Errorf("%d pages are served after that", got)
			}
			_ = b.app.Stop()
		})
	}
}

// TestBriefFailures: what was published stays while a server error keeps the probe from finding
// out what the routes say.
func TestBriefFailures(t *testing.T) {
	for name, test := range map[string]struct {
		host string
		fail func(b *bench)
	}{
		"before the handler": {"named.example", func(b *bench) {
			b.app.fetchers[b.handler.server].routes = status(http.StatusBadGateway)
		}},
		"too many requests": {"named.example", func(b *bench) {
			b.app.fetchers[b.handler.server].routes = status(http.StatusTooManyRequests)
		}},
		"the front page of a host that only visitors named": {"visited.example", func(b *bench) { b.pages = status(http.StatusBadGateway) }},
	} {
		b := newBench(t, nil)
		b.lists("/", "/a")
		s := b.site(test.host)
		b.wantPages(s, 2)
		routes, pages := b.app.fetchers[b.handler.server].routes, b.pages
		test.fail(b)
		if got := pagesOf(b.refresh(s)); got != 2 {
			t.Errorf("%s: %d pages are served", name, got)
		}
		b.app.fetchers[b.handler.server].routes, b.pages = routes, pages
		b.wantPages(s, 2)
		s.drop()
		delete(b.app.sites, s.id)
	}
}

// TestFailuresOfEqualNames: of two sources of the same kind, one that fails for long says nothing of
// the other.
func TestFailuresOfEqualNames(t *testing.T) {
	b := newBench(t, nil)
	gone := sourceFunc(func(func(page.Page) error) error { return fs.ErrNotExist })
	closed := sourceFunc(func(func(page.Page) error) error { return fs.ErrPermission })
	b.handler.sources = []input{gone, gone, closed}
	s := b.site("named.example")
	for _, test := range []struct {
		source int
		after  time.Duration
		want   error
	}{{0, 0, fs.ErrNotExist}, {0, confirmAfter, nil}, {1, confirmAfter, fs.ErrNotExist}, {0, confirmAfter + time.Minute, nil}} {
		r, _ := newRefresh(s, probeResult{}, b.clock.Add(test.after))
		if err := r.inputs()[test.source].Pages(t.Context(), nil); !errors.Is(err, test.want) {
			t.Errorf("source %d after %s: got %v, want %v", test.source, test.after, err, test.want)
		}
	}
	r, _ := newRefresh(s, probeResult{}, b.clock)
	if err := r.inputs()[2].Pages(t.Context(), nil); !strings.HasSuffix(err.Error(), asUser()) {
		t.Errorf("got %v, which does not name the user that runs Caddy", err)
	}
}

// sourceFunc is a source of this package.
type sourceFunc func(yield func(page.Page) error) error

func (sourceFunc) CaddyModule() (m caddy.ModuleInfo) { return m }
func (sourceFunc) sorted() bool                      { return false }

func (f sourceFunc) pages(_ context.Context, _ *Refresh, yield func(page.Page) error) error {
	return f(yield)
}

// sortedFunc is one that yields its pages in order.
type sortedFunc struct{ sourceFunc }

func (sortedFunc) sorted() bool { return true }

// TestStopDoesNotWait for a source that ignores its context, and what that yields at last
// changes nothing.
func TestStopDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(h *Handler) { h.Crawl = &Crawl{Off: true} })
		release := make(chan struct{})
		b.source = func(_ context.Context, _ *Refresh, yield func(Page) error) error {
			<-release
			return yield(Page{Path: "/a"})
		}
		s := b.site("named.example")
		b.app.group.Go(s.run)
		synctest.Wait()
		begun := time.Now()
		if err := b.app.Stop(); err != nil || time.Since(begun) > keepGrace+stopGrace {
			t.Errorf("got %v after %s", err, time.Since(begun))
		}
		close(release)
		synctest.Wait()
		if s.published().snapshot != nil {
			t.Error("what came after Stop is published")
		}
	})
}

// TestCrawlOff: all names are listed, and no page is fetched.
func TestCrawlOff(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.Crawl, h.MaxURLs, h.LastMod = &Crawl{Off: true}, 10, "mtime" })
	b.lists(numbered(12)...)
	front := b.pages
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		if strings.HasPrefix(r.URL.Path, "/page") {
			t.Errorf("%s is fetched", r.URL.Path)
		}
		return front(w, r)
	}
	s := b.site("named.example")
	first := b.wantPages(s, 10)
	over := s.published().report.LeftOut["over max_urls"]
	if n := b.logged("more pages than the sitemap may list: raise 'max_urls' or 'shard_urls'"); over != 2 || n != 1 {
		t.Errorf("%d pages are over max_urls, and the log says so %d times", over, n)
	}
	if b.wantPages(s, 10) != first {
		t.Error("an unchanged refresh made another snapshot")
	}
	b.source = failingSource
	if b.wantPages(s, 10) != first || s.published().report.Result != outcome.HeldBack {
		t.Errorf("a source that fails: got %+v", s.published().report)
	}
	b.names(numbered(4)...)
	b.wantPages(s, 10)
	b.clock = b.clock.Add(confirmAfter)
	b.wantPages(s, 4)
}

// TestFilter: what a guest module yields is checked, and what is no candidate is counted.
func TestFilter(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.Crawl, h.Exclude = &Crawl{Off: true}, []string{"/private/*"} })
	long := "/" + strings.Repeat("x", page.MaxLoc-len("http://named.example")-1)
	b.names("/ok", "", "no-slash", "/a b", "/%zz", "/\x00", "/é", long, long+"x", "/sitemap.xml", "/sitemap-0123456789ab.xml.gz", "/private/a")
	s := b.site("named.example")
	b.wantPages(s, 5)
	got := s.published().report.LeftOut
	for reason, want := range map[string]int{"malformed path": 3, "URL too long": 1, "a document of the sitemap": 2, "excluded": 1} {
		if got[reason] != want {
			t.Errorf("%s: got %d, want %d", reason, got[reason], want)
		}
	}
}

// TestGuestPage: the fields of a page of a guest module are checked and converted.
func TestGuestPage(t *testing.T) {
	at := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		p         Page
		want      page.Page
		malformed string
	}{
		{Page{Path: "/é?a b"}, page.Page{Path: "/%C3%A9?a%20b"}, ""},
		{Page{Path: "/a", ChangeFreq: "daily", Priority: new(0.0)}, page.Page{Path: "/a", ChangeFreq: 3, Priority: 1}, ""},
		{Page{Path: "/a", LastMod: at}, page.Page{Path: "/a", LastMod: at.Unix()}, ""},
		{Page{Path: "/a", LastMod: at.Truncate(24 * time.Hour)}, page.Page{Path: "/a", LastMod: at.Unix() - 12*60*60, LastModDay: true}, ""},
		{Page{Path: "/a", LastMod: at.Add(time.Second)}, page.Page{Path: "/a"}, ""},
		{Page{Path: "a"}, page.Page{}, "path"},
		{Page{Path: "/a", ChangeFreq: "Daily"}, page.Page{}, "changefreq"},
		{Page{Path: "/a", Priority: new(1.1)}, page.Page{}, "priority"},
	} {
		if got, malformed := test.p.candidate(at.Unix()); malformed != test.malformed || malformed == "" && got != test.want {
			t.Errorf("%+v: got %+v, malformed %q", test.p, got, malformed)
		}
	}
	if _, err := inputOf(new(Handler)); err == nil || err.Error() != "http.handlers.sitemap does not implement sitemap.Source" {
		t.Errorf("a module that is no source: got %v", err)
	}
}

// TestOnDemandLogs: whatever is wrong with the hosts that visitors make up, the log says so
// a few times; of a named site it has every line.
func TestOnDemandLogs(t *testing.T) {
	const hosts = 200
	for name, source := range map[string]func(context.Context, *Refresh, func(Page) error) error{
		"warnings": func(_ context.Context, r *Refresh, _ func(Page) error) error {
			r.Warn("no root", "the root is missing")
			return fmt.Errorf("%s: gone", r.BaseURL)
		},
		"panics": func(_ context.Context, r *Refresh, _ func(Page) error) error { panic(r.BaseURL) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(h *Handler) { h.Crawl = &Crawl{Off: true} })
			b.source = source
			loud := func() int {
				return b.logs.Filter(func(e observer.LoggedEntry) bool { return e.Level > zapcore.DebugLevel }).Len()
			}
			for i := range hosts {
				s := b.site(fmt.Sprintf("%d.example", i))
				for range 3 {
					b.refresh(s)
				}
			}
			if got := loud(); got == 0 || got > 80 {
				t.Errorf("the log has %d lines of %d hosts", got, hosts)
			}
			before := loud()
			b.refresh(b.site("named.example"))
			if loud() == before {
				t.Error("the log has none of the named site")
			}
		})
	}
}

// TestWarnOnce: what stays the same is not logged at each refresh, and what comes back is.
func TestWarnOnce(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.Crawl = &Crawl{Off: true} })
	s := b.site("named.example")
	for i, step := range []struct {
		message string
		want    int
	}{{"one", 1}, {"one", 1}, {"two", 2}, {"two", 2}, {"", 2}, {"two", 3}, {"two", 3}} {
		b.source = func(_ context.Context, r *Refresh, yield func(Page) error) error {
			if step.message != "" {
				r.Warn("kind", "a warning: "+step.message)
			}
			return yield(Page{Path: "/a"})
		}
		b.refresh(s)
		if got := b.logs.FilterMessageSnippet("a warning").Len(); got != step.want {
			t.Errorf("refresh %d: %d lines, want %d", i+1, got, step.want)
		}
	}
}
