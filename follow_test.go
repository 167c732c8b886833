package sitemap

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/discover"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

// discovering is a bench whose sites discover pages.
func discovering(t *testing.T, h *Handler, d discovery) *bench {
	t.Helper()
	b := newBench(t, h)
	d.expire, d.maxPaths = defaultExpire, defaultMaxPaths
	b.handler.discovery = &d
	return b
}

// siteIn makes the site of a host in a folder that is stripped before the handler.
func (b *bench) siteIn(host, folder string) *site {
	b.t.Helper()
	s, err := b.app.site(b.handler, siteID{b.handler, address{scheme: "http", host: host, folder: folder}}, folder, atOnce)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// TestSpared: when a page is asked for again that visitors had.
func TestSpared(t *testing.T) {
	const (
		hour  = int64(3600)
		asked = int64(1_700_000_000)
		due   = asked + 100*hour
	)
	known := state.Record{Asked: asked, ETag: `"a"`, Answer: uint8(verdict.Good), Flags: verdict.FlagDiscovered | verdict.FlagListed}
	for name, test := range map[string]struct {
		change func(*state.Record)
		etag   string
		at     int64 // of the visit; 0: none
		want   int64
	}{
		"no visit":                         {func(*state.Record) {}, "", 0, due},
		"the same":                         {func(*state.Record) {}, `W/"a-gzip"`, asked + 10*hour, due + 10*hour},
		"the same, before it was asked":    {func(*state.Record) {}, `"a"`, asked - hour, due},
		"the same, at that second":         {func(*state.Record) {}, `"a"`, asked, due},
		"the same, of a suspect":           {func(r *state.Record) { r.Suspect = uint8(verdict.Gone) }, `"a"`, asked + 10*hour, due},
		"the same, of one not good":        {func(r *state.Record) { r.Answer = uint8(verdict.NoIndex) }, `"a"`, asked + 10*hour, due},
		"the same, of one to be asked":     {func(r *state.Record) { r.Flags |= verdict.FlagDue }, `"a"`, asked + 10*hour, due},
		"another, after a day":             {func(*state.Record) {}, `"b"`, asked + 30*hour, asked + 30*hour},
		"another, within a day":            {func(*state.Record) {}, `"b"`, asked + hour, asked + 24*hour},
		"another, when it is due":          {func(*state.Record) {}, `"b"`, due + hour, due},
		"another, before it was asked":     {func(*state.Record) {}, `"b"`, asked - hour, due},
		"another, of one not good":         {func(r *state.Record) { r.Answer = uint8(verdict.NoIndex) }, `"b"`, asked + 30*hour, asked + 30*hour},
		"nothing known":                    {func(r *state.Record) { r.ETag = "" }, `"b"`, asked + 30*hour, due},
		"a page of another source":         {func(r *state.Record) { r.Flags = verdict.FlagListed }, `"b"`, asked + 30*hour, due},
		"a page that was never asked for":  {func(r *state.Record) { r.Asked = 0 }, `"b"`, asked + 30*hour, due},
		"a date, where an ETag was before": {func(r *state.Record) { r.ETag, r.Modified = "", "Sun, 01 Jun 2025 12:00:00 GMT" }, `"a"`, asked + 30*hour, asked + 30*hour},
	} {
		t.Run(name, func(t *testing.T) {
			b := discovering(t, &Handler{}, discovery{from: discover.FromTraffic})
			s := b.site("named.example")
			if test.at != 0 {
				s.visited(t.Context(), discover.FromTraffic, "/a", &accesslog.Visit{Time: test.at, ETag: test.etag})
			}
			r := known
			r.Page.Path = "/a"
			test.change(&r)
			if got := s.spared(t.Context(), &r, due); got != test.want {
				t.Errorf("got %d hours after it was asked, want %d", (got-asked)/hour, (test.want-asked)/hour)
			}
		})
	}
	b := newBench(t, &Handler{})
	r := known
	if got := b.site("named.example").spared(t.Context(), &r, due); got != due {
		t.Errorf("where nothing discovers: got %d, want %d", got, due)
	}
}

// TestRedirect: where an answer leads to on the site.
func TestRedirect(t *testing.T) {
	b := newBench(t, &Handler{BaseURL: "https://example.com"})
	b.handler.seats = seats{{hosts: []string{"named.example"}}}
	s := b.site("named.example")
	if s.base != "https://example.com" || s.askBase != "http://named.example" {
		t.Fatalf("the site is %s, and asked at %s", s.base, s.askBase)
	}
	for _, test := range []struct {
		status   int
		location string
		want     string // "": nowhere
	}{
		{301, "https://example.com/b", "/b"},
		{302, "/b?x=1", "/b?x=1"},
		{307, "b", "/a/b"},
		{308, "../b", "/b"},
		{301, "?page=2", "/a/index?page=2"},
		{301, "//example.com/b", "/b"},
		{301, "HTTPS://EXAMPLE.com/b", "/b"},
		{301, "https://example.com:443/b", "/b"},
		{301, "http://named.example:80/b", "/b"},
		{301, "https://example.com", "/"},
		{301, "/b#part", "/b"},
		{301, "/ü b", "/%C3%BC%20b"},
		{301, "/%c3%bc/%7Eb", "/%C3%BC/~b"},
		{301, "http://named.example/b", "/b"},
		{301, "http://example.com/b", ""},
		{301, "https://named.example/b", ""},
		{301, "https://example.com:8443/b", ""},
		{301, "https://other.example/b", ""},
		{301, "//other.example/b", ""},
		{301, "https://example.com.other.example/b", ""},
		{301, "/a/index", ""},
		{301, "index", ""},
		{301, "https://example.com/a/%69ndex#top", ""},
		{301, "", ""},
		{301, "/%zz", ""},
		{301, "mailto:a@example.com", ""},
		{301, "https://[::1/", ""},
		{200, "/b", ""},
		{201, "/b", ""},
		{404, "/b", ""},
	} {
		header := make(http.Header)
		if test.location != "" {
			header.Set("Location", test.location)
		}
		got, ok := s.redirect("/a/index", &Answer{Status: test.status, Header: header})
		if ok != (test.want != "") || ok && got != test.want {
			t.Errorf("%d %s: got %q, %t, want %q", test.status, test.location, got, ok, test.want)
		}
	}
}

// TestFollow: which pages' links count, and how far away they are.
func TestFollow(t *testing.T) {
	const listed, discovered = verdict.FlagListed, verdict.FlagDiscovered
	links := func(paths ...string) *state.Details { return &state.Details{Links: paths} }
	for name, test := range map[string]struct {
		path    string
		flags   uint16
		answer  verdict.Reason
		details *state.Details
		depths  map[string]int // of what is linked to; 0: it is not
	}{
		"a listed page of another source": {"/a", listed, verdict.Good, links("/b"), map[string]int{"/b": 1}},
		"the front page":                  {"/", listed | discovered, verdict.Good, links("/b"), map[string]int{"/b": 1}},
		"a discovered page":               {"/two", listed | discovered, verdict.Good, links("/b"), map[string]int{"/b": 3}},
		"a page that is not listed":       {"/a", 0, verdict.NoIndex, links("/b"), map[string]int{"/b": 0}},
		"a redirect":                      {"/a", 0, verdict.Redirects, links("/b"), map[string]int{"/b": 1}},
		"a redirect is a step":            {"/two", discovered, verdict.Redirects, links("/b"), map[string]int{"/b": 3}},
		"no details":                      {"/a", listed, verdict.Good, nil, map[string]int{"/b": 0}},
		"itself":                          {"/a", listed, verdict.Good, links("/a"), map[string]int{"/a": 0}},
		"assets":                          {"/a", listed, verdict.Good, links("/b.css", "/c.PNG", "/d.html"), map[string]int{"/b.css": 0, "/c.PNG": 0, "/d.html": 1}},
		"queries":                         {"/a", listed, verdict.Good, links("/b?utm_source=x&page=2&id=1", "/c?id=1"), map[string]int{"/b?page=2": 1, "/c": 1}},
		"sessions":                        {"/a", listed, verdict.Good, links("/b;jsessionid=1"), map[string]int{"/b": 1}},
		"odd paths":                       {"/a", listed, verdict.Good, links("//b", "/c/../d", ""), map[string]int{"/b": 0, "/d": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			b := discovering(t, &Handler{}, discovery{from: discover.FromLinks, depth: 20, query: []string{"page"}})
			s, ctx := b.site("named.example"), context.Background()
			round := s.paths(ctx).Round(20, true)
			round.Page(0, "/", []string{"/one"})
			round.Page(1, "/one", []string{"/two"})
			round.End(1)
			tracks := s.openTracks(ctx, s.newRefresh(s.app.now()))
			tracks.follow(&state.Record{Page: page.Page{Path: test.path}, Flags: test.flags, Answer: uint8(test.answer)}, test.details)
			tracks.ended().End(2)
			for path, want := range test.depths {
				if got, ok := s.paths(ctx).DepthOf(path); got != want || ok != (want != 0) {
					t.Errorf("%s: got depth %d, %t, want %d", path, got, ok, want)
				}
			}
		})
	}
	t.Run("what is listed is told", func(t *testing.T) {
		b := discovering(t, &Handler{}, discovery{from: discover.FromTraffic})
		s, ctx := b.site("named.example"), context.Background()
		s.visited(ctx, discover.FromTraffic, "/a", &accesslog.Visit{Time: 1})
		for _, flags := range []uint16{discovered | listed, discovered, discovered | listed} {
			s.openTracks(ctx, nil).follow(&state.Record{Page: page.Page{Path: "/a"}, Flags: flags}, nil)
			if got, want := s.paths(ctx).Stats().Listed == 1, flags&listed != 0; got != want {
				t.Errorf("listed: got %t, want %t", got, want)
			}
		}
	})
	t.Run("nothing discovers", func(t *testing.T) {
		s := newBench(t, &Handler{}).site("named.example")
		tracks := s.openTracks(context.Background(), nil)
		tracks.follow(&state.Record{Page: page.Page{Path: "/a"}, Flags: listed}, links("/b"))
		if tracks != nil || tracks.ended() != nil {
			t.Error("links are followed all the same")
		}
	})
}

// TestCrowds: of new pages of one folder, an upstream is asked for so many at a time.
func TestCrowds(t *testing.T) {
	const discovered = verdict.FlagDiscovered
	of := func(folder string, n int, change func(*state.Record)) (crowding int, v *verification) {
		v = &verification{kind: answersUpstream}
		for i := range n {
			r := &state.Record{Page: page.Page{Path: fmt.Sprintf("%s%d", folder, i)}, Flags: discovered}
			change(r)
			if v.crowds(r) {
				crowding++
			}
		}
		return crowding, v
	}
	got, v := of("/calendar/", maxFirsts+30, func(*state.Record) {})
	if got != 30 {
		t.Errorf("%d crowd, want 30", got)
	}
	if v.crowds(&state.Record{Page: page.Page{Path: "/other/1"}, Flags: discovered}) {
		t.Error("a page of another folder crowds")
	}
	v.kind = answersHere
	if v.crowds(&state.Record{Page: page.Page{Path: "/calendar/x"}, Flags: discovered}) {
		t.Error("a page crowds that the server answers for itself")
	}
	for name, change := range map[string]func(*state.Record){
		"asked for before":  func(r *state.Record) { r.Asked = 1 },
		"of another source": func(r *state.Record) { r.Flags = 0 },
	} {
		if got, _ := of("/calendar/", 2*maxFirsts, change); got != 0 {
			t.Errorf("%s: %d crowd", name, got)
		}
	}
}

// TestGoneTwice: a discovered page is off once it answered 404 twice, an hour apart,
// and one of another source at once.
func TestGoneTwice(t *testing.T) {
	begun := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		flags    uint16
		status   int
		after    []time.Duration // of asks
		believes bool            // few pages turned bad
		want     verdict.Reason
	}{
		"once":                      {verdict.FlagDiscovered, 404, []time.Duration{0}, true, verdict.Good},
		"twice at a time":           {verdict.FlagDiscovered, 404, []time.Duration{0, time.Minute}, true, verdict.Good},
		"twice":                     {verdict.FlagDiscovered, 404, []time.Duration{0, time.Hour}, true, verdict.Gone},
		"twice, as many others":     {verdict.FlagDiscovered, 404, []time.Duration{0, time.Hour}, false, verdict.Gone},
		"410 once":                  {verdict.FlagDiscovered, 410, []time.Duration{0}, true, verdict.Good},
		"410 twice":                 {verdict.FlagDiscovered, 410, []time.Duration{0, time.Hour}, true, verdict.Gone},
		"a redirect":                {verdict.FlagDiscovered, 301, []time.Duration{0}, true, verdict.Redirects},
		"a redirect, as many":       {verdict.FlagDiscovered, 301, []time.Duration{0}, false, verdict.Good},
		"of another source":         {0, 404, []time.Duration{0}, true, verdict.Gone},
		"of another source, as all": {0, 404, []time.Duration{0}, false, verdict.Good},
	} {
		t.Run(name, func(t *testing.T) {
			r := &state.Record{Page: page.Page{Path: "/a"}, Asked: begun.Unix() - 1, Answer: uint8(verdict.Good), Flags: test.flags | verdict.FlagListed}
			for _, after := range test.after {
				verdict.Answer(r, verdict.Answered{Status: test.status}, "https://example.com", begun.Add(after))
			}
			(&lister{believes: test.believes}).believe(r)
			if got := verdict.Reason(r.Answer); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestCandidates: the front page comes by itself.
func TestCandidates(t *testing.T) {
	for _, at := range []string{"", "/docs"} {
		b := discovering(t, &Handler{}, discovery{from: discover.FromLinks, depth: 20})
		s, ctx := b.siteIn("named.example", at), context.Background()
		round := s.paths(ctx).Round(20, true)
		round.Page(0, s.front(), []string{at + "/a"})
		round.End(1)
		var got []string
		err := s.candidates(ctx, discover.FromLinks, func(p Page) error {
			if !p.Discovered {
				t.Errorf("%s is not said to be discovered", p.Path)
			}
			got = append(got, p.Path)
			return nil
		})
		if want := []string{at + "/", at + "/a"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}
