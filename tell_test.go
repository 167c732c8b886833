package sitemap

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/discover"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// visit lets visitors of n networks have paths, each in its turn.
func (s *site) visit(now time.Time, n int, paths ...string) {
	for i, path := range paths {
		client := fmt.Sprintf("198.51.%d.7", i%n)
		s.visited(context.Background(), discover.FromTraffic, path, &accesslog.Visit{Time: now.Unix(), Client: client})
	}
}

// counted are n paths of a pattern.
func counted(pattern string, n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(pattern, i))
	}
	return all
}

// TestTellPaths: what the log says of where visitors went, once.
func TestTellPaths(t *testing.T) {
	everything, err := page.CompilePatterns([]string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	unlinked := []discover.Unlinked{{Match: everything, MinVisitors: 3}}
	const (
		few     = "nearly all visits come from a handful of clients: if a proxy is in front, name it in trusted_proxies, so that visitors can be told apart"
		pattern = "too many paths differ in their numbers alone: no more of them are followed"
		most    = "more paths are visited or linked to than are remembered: the ones seen longest ago are forgotten"
	)
	for _, test := range []struct {
		name     string
		unlinked []discover.Unlinked
		maxPaths int
		clients  int
		paths    []string
		want     string
	}{
		{"few clients", unlinked, 100, 3, make([]string, enoughVisits), few},
		{"few visits", unlinked, 100, 3, make([]string, enoughVisits-1), ""},
		{"many clients", unlinked, 100, 10, make([]string, enoughVisits), ""},
		{"clients do not matter", nil, 100, 1, make([]string, enoughVisits), ""},
		{"a pattern", nil, 2 * maxPerPattern, 200, counted("/calendar/%d", maxPerPattern+1), pattern},
		{"as many as may be", nil, 2 * maxPerPattern, 200, counted("/calendar/%d", maxPerPattern), ""},
		{"many paths", nil, 100, 200, counted("/%d", 200), most},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := discovering(t, &Handler{}, discovery{from: discover.FromTraffic, unlinked: test.unlinked})
			b.handler.discovery.maxPaths = test.maxPaths
			s := b.site("named.example")
			for i, path := range test.paths {
				if path == "" {
					test.paths[i] = "/a"
				}
			}
			s.visit(b.app.now(), test.clients, test.paths...)
			s.tellPaths()
			s.tellPaths()
			for _, message := range []string{few, pattern, most} {
				want := 0
				if message == test.want {
					want = 1
				}
				if got := b.logs.FilterMessage(message).Len(); got != want {
					t.Errorf("got %q %d times, want %d", message, got, want)
				}
			}
		})
	}
}

// TestPathsExpire: a path is forgotten that nobody visits and nothing links to.
func TestPathsExpire(t *testing.T) {
	b := discovering(t, &Handler{}, discovery{from: discover.FromTraffic})
	s := b.site("named.example")
	s.visit(b.app.now(), 1, "/linked", "/visited")
	for _, test := range []struct{ days, want int }{{89, 2}, {91, 1}} {
		b.clock.Store(time.Date(2025, 6, 1+test.days, 12, 0, 0, 0, time.UTC).UnixNano())
		round := s.paths(t.Context()).Round(0, false)
		round.Page(0, "/", []string{"/linked"})
		s.endRound(t.Context(), round)
		if got := s.paths(t.Context()).Stats().Paths; got != test.want {
			t.Errorf("after %d days: got %d paths, want %d", test.days, got, test.want)
		}
	}
}

// TestPathsOfVisitorsSite: what only visitors named remembers little.
func TestPathsOfVisitorsSite(t *testing.T) {
	b := discovering(t, &Handler{}, discovery{from: discover.FromTraffic})
	s := b.site("named.example")
	s.visitors = true
	s.visit(b.app.now(), 1, counted("/a%d", 2*maxVisitorsPaths)...)
	if got := s.paths(t.Context()).Stats().Paths; got > maxVisitorsPaths {
		t.Errorf("got %d paths, want %d at most", got, maxVisitorsPaths)
	}
}

// TestPathsSetUpAgain: a configuration that failed to start after it had set the
// memory of paths up leaves no trace.
func TestPathsSetUpAgain(t *testing.T) {
	b := discovering(t, &Handler{}, discovery{from: discover.FromTraffic})
	s := b.site("named.example")
	s.visit(b.app.now(), 1, counted("/a%d", 20)...)
	o := s.discoverOptions()
	o.MaxPaths = 5
	s.paths(t.Context()).Configure(o)
	s.tellPaths()
	s.endRound(t.Context(), s.paths(t.Context()).Round(0, false)) // where bounds take effect
	if got := s.paths(t.Context()).Stats().Paths; got != 20 {
		t.Errorf("got %d paths, want 20", got)
	}
}
