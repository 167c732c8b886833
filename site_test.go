package sitemap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdentity: what a site's URLs are, what it may list, and how the server knows it.
func TestIdentity(t *testing.T) {
	for name, test := range map[string]struct {
		handler *Handler
		at      address
		prefix  string
		want    string // URL of the sitemap, prefix of pages, scope, internal origin and prefix
	}{
		"a host":                        {&Handler{}, address{scheme: "http", host: "a.example"}, "", "http://a.example/sitemap.xml  / http://a.example "},
		"a port":                        {&Handler{}, address{scheme: "https", host: "a.example", port: "8443"}, "", "https://a.example:8443/sitemap.xml  / https://a.example:8443 "},
		"a prefix":                      {&Handler{}, address{scheme: "http", host: "a.example", prefix: "/docs"}, "/docs", "http://a.example/docs/sitemap.xml /docs /docs/ http://a.example /docs"},
		"a path":                        {&Handler{Path: "/blog/map.xml"}, address{scheme: "http", host: "a.example"}, "", "http://a.example/blog/map.xml  /blog/ http://a.example "},
		"a path in a prefix":            {&Handler{Path: "/blog/map.xml"}, address{scheme: "http", host: "a.example", prefix: "/docs"}, "/docs", "http://a.example/docs/blog/map.xml /docs /docs/blog/ http://a.example /docs"},
		"a base URL":                    {&Handler{BaseURL: "https://Shop.example:443"}, address{}, "", "https://shop.example/sitemap.xml  / http://named.example:9080 "},
		"a base URL that matchers name": {&Handler{BaseURL: "https://named.example:8443"}, address{}, "", "https://named.example:8443/sitemap.xml  / http://named.example:9080 "},
		"a base URL and a prefix":       {&Handler{BaseURL: "https://shop.example"}, address{}, "/docs", "https://shop.example/docs/sitemap.xml /docs /docs/ http://shop.example:9080 /docs"},
		"a folder":                      {&Handler{BaseURL: "https://shop.example/b/"}, address{}, "", "https://shop.example/b/sitemap.xml  /b/ http://named.example:9080 "},
		"a folder for a prefix":         {&Handler{BaseURL: "https://shop.example/b"}, address{}, "/docs", "https://shop.example/b/sitemap.xml /b /b/ http://shop.example:9080 /docs"},
		"a path in the folder":          {&Handler{BaseURL: "https://shop.example/b", Path: "/b/c/map.xml"}, address{}, "", "https://shop.example/b/c/map.xml  /b/c/ http://named.example:9080 "},
	} {
		b := newBench(t, func(h *Handler) {
			h.Path, h.BaseURL, h.listener = test.handler.Path, test.handler.BaseURL, listener{"http", "9080"}
			h.mounts = mounts{{hosts: []string{"named.example"}}, {prefix: "/docs"}}
			if test.at.host != "" {
				h.mounts = mounts{{}, {prefix: "/docs"}}
			}
		})
		i := newIdentity(b.handler, siteID{b.handler, test.at}, test.prefix, false)
		if got := fmt.Sprint(i.sitemapURL(), " ", i.prefix, " ", i.scope, " ", i.internal.origin, " ", i.internal.prefix); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		if !i.isDocument(i.docPath("-0123456789ab", ".xml.gz")) || i.isDocument(i.scope+"a.xml") {
			t.Errorf("%s: the site does not know its documents", name)
		}
	}
}

// TestSchedule: who asks for a refresh waits until one has ended that began later, whatever
// else is planned.
func TestSchedule(t *testing.T) {
	now := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	later := now.Add(time.Minute)
	var s schedule
	if _, ok := s.next(); ok {
		t.Error("nothing was planned, and a refresh is due")
	}
	s.at(later)
	if _, ok := s.begin(now); ok {
		t.Error("a refresh begins before it is due")
	}
	first := s.request(now)
	if demanded, ok := s.begin(now); !ok || !demanded {
		t.Fatalf("asked for: began %t, demanded %t", ok, demanded)
	}
	if _, ok := s.begin(now); ok || !s.isRunning() {
		t.Error("two refreshes run at a time")
	}
	if _, ok := s.next(); ok {
		t.Error("while one runs, another is due")
	}
	second := s.request(now)
	s.end(later, now, false)
	if !isDone(first) || isDone(second) {
		t.Errorf("after the first refresh: done %t and %t", isDone(first), isDone(second))
	}
	if due, ok := s.next(); !ok || !due.Equal(now) {
		t.Errorf("asked for while one ran: due at %s, %t", due, ok)
	}
	if demanded, ok := s.begin(now); !ok || !demanded {
		t.Fatalf("the second: began %t, demanded %t", ok, demanded)
	}
	s.end(later, now, false)
	if due, _ := s.next(); !isDone(second) || !due.Equal(later) {
		t.Errorf("after the second refresh: done %t, due at %s", isDone(second), due)
	}
	if demanded, ok := s.begin(later); !ok || demanded {
		t.Errorf("as planned: began %t, demanded %t", ok, demanded)
	}

	s.end(now, now, true)
	if _, ok := s.next(); ok {
		t.Error("an idle site is due")
	}
	if _, ok := s.begin(later); ok {
		t.Error("an idle site is refreshed")
	}
	if s.resume(now.Add(-1)) || !s.resume(now) {
		t.Error("a site that resumes is due too early, or not at all")
	}
	if _, ok := s.begin(now); !ok {
		t.Error("a site that resumes is not refreshed")
	}
	s.end(time.Time{}, now, true)
	if s.resume(now) {
		t.Error("a site without a plan is due")
	}
}

// TestScheduleForward: those who wait for a site wait for the one whose documents stand for
// its own.
func TestScheduleForward(t *testing.T) {
	now := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	var from, to schedule
	to.at(now.Add(time.Hour))
	to.end(now.Add(time.Hour), now, true)
	from.forward(&to)
	if _, ok := to.next(); ok {
		t.Error("nobody waits, and the other site is due")
	}
	running := from.request(now)
	from.begin(now)
	waiting := from.request(now)
	from.forward(&to)
	if demanded, ok := to.begin(now); !ok || !demanded {
		t.Errorf("began %t, demanded %t", ok, demanded)
	}
	from.end(now, now, false)
	if !isDone(running) || isDone(waiting) {
		t.Errorf("of the site itself: done %t and %t", isDone(running), isDone(waiting))
	}
	to.end(now, now, false)
	if !isDone(waiting) {
		t.Error("the other site's refresh does not count")
	}
	last, next := to.request(now), from.request(now)
	to.begin(now)
	to.close()
	from.close()
	if !isDone(last) || !isDone(next) {
		t.Error("who waits is not let go")
	}
	to.end(now, now, false) // of a refresh that ends late
}

// TestRefreshNow ends with the refresh, the one who waits, or the site.
func TestRefreshNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		s, alias := b.site("named.example"), b.site("alias.example")
		alias.main.Store(s)
		ended := make(chan error, 1)
		for _, of := range []*site{s, alias} {
			go func() { ended <- of.refreshNow(t.Context()) }()
			synctest.Wait()
			if _, ok := s.schedule.begin(b.clock); !ok || len(ended) > 0 {
				t.Fatalf("%s: the refresh is due: %t, %d have ended", of.url(), ok, len(ended))
			}
			s.schedule.end(b.clock.Add(time.Hour), b.clock, false)
			if err := <-ended; err != nil {
				t.Errorf("%s: got %v", of.url(), err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.refreshNow(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		go func() { ended <- s.refreshNow(t.Context()) }()
		synctest.Wait()
		s.cancel()
		if err := <-ended; err != errStopping {
			t.Errorf("got %v, want %v", err, errStopping)
		}
	})
}

func TestRequestRate(t *testing.T) {
	begun := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	var r requestRate
	for i, test := range []struct {
		after    time.Duration // since the beginning
		adds     int
		hour     int
		inMinute int
	}{
		{0, 0, 0, 0},
		{0, 3, 3, 3},
		{59 * time.Second, 1, 4, 4},
		{time.Minute, 2, 6, 6},
		{2 * time.Minute, 0, 6, 2},
		{3 * time.Minute, 0, 6, 0},
		{30 * time.Minute, 5, 11, 5},
		{60 * time.Minute, 0, 7, 0}, // the first minute has left
		{61 * time.Minute, 0, 5, 0},
		{90 * time.Minute, 0, 0, 0},
		{91 * time.Minute, 2, 2, 2},
		{-24 * time.Hour, 0, 0, 0}, // the clock is set back
		{-24 * time.Hour, 1, 1, 1},
		{24 * time.Hour, 0, 0, 0},
	} {
		now := begun.Add(test.after)
		for range test.adds {
			r.add(now)
		}
		if hour, minute := r.counts(now); hour != test.hour || minute != test.inMinute {
			t.Errorf("step %d: got %d in the hour, %d in the minute, want %d and %d", i, hour, minute, test.hour, test.inMinute)
		}
	}
	r = requestRate{}
	if r.since(begun) {
		t.Error("without a request there was one")
	}
	r.add(begun)
	if r.since(begun) || !r.since(begun.Add(-1)) {
		t.Error("the last request is at another time")
	}
}

func TestVisitedPaths(t *testing.T) {
	var v visited
	v.limit(3)
	for i, path := range []string{"/c", "/a", "/b"} {
		v.add(path, int64(100+i))
	}
	v.add("/a", 50) // later, of an earlier log file
	v.add("/d", 99) // older than all there are
	if got := v.sorted(0); !slices.Equal(got, []string{"/a", "/b", "/c"}) {
		t.Errorf("got %q", got)
	}
	v.add("/e", 200)
	if got := v.sorted(0); !slices.Equal(got, []string{"/a", "/b", "/e"}) {
		t.Errorf("with a new path in the place of the oldest: got %q", got)
	}
	if got := v.sorted(102); !slices.Equal(got, []string{"/b", "/e"}) {
		t.Errorf("since 102: got %q", got)
	}
	if paths, dropped := v.count(); paths != 2 || dropped != 2 {
		t.Errorf("got %d paths, %d dropped, want 2 and 2", paths, dropped)
	}
}
