package sitemap

import (
	"errors"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
)

// TestReplan: after a change of a file, the site is due at once, or when the last refresh has taken its share of the time.
func TestReplan(t *testing.T) {
	s := newBench(t, nil).site("named.example")
	now := s.app.now()
	out := report.Refresh{Outcome: outcome.Outcome{Result: outcome.Unchanged}, Cost: time.Second}
	s.conclude(&out, now)
	if got := s.schedule.Due().Sub(now); got != time.Minute {
		t.Errorf("a site is due after %s", got)
	}
	s.noteChange()
	if got := s.schedule.Due().Sub(now); got != shareOfTime*time.Second {
		t.Errorf("after a change, it is due after %s", got)
	}

	s.prospected = nil // a refresh is under way
	s.plan(prospects{now: now, begun: now, interval: time.Minute})
	s.noteChange()
	if got := s.schedule.Due().Sub(now); got != time.Minute {
		t.Errorf("while a refresh is under way, the next one is due after %s", got)
	}
}

// TestToldBeforeReload: a change that was told, and not refreshed for before the configuration is another one, is not lost.
func TestToldBeforeReload(t *testing.T) {
	s := newBench(t, nil).site("named.example")
	s.serve(listing(1))
	out := report.Refresh{Outcome: outcome.Outcome{Result: outcome.Unchanged}, Cost: time.Millisecond}
	s.conclude(&out, s.app.now())
	s.state.isChanged.Store(true)
	s.cancel()
	clear(s.app.sites)
	next := newSite(s.app, s.identity)
	defer next.drop()
	if left := next.schedule.Due().Sub(s.app.now()); left > 0 {
		t.Errorf("the next configuration is due after %s", left)
	}
}

// TestWatchOf: who has no next refresh of its own watches nothing.
func TestWatchOf(t *testing.T) {
	b := newBench(t, nil)
	if s := b.site("named.example"); s.watch == nil {
		t.Error("a site is not watched")
	}
	s := b.site("visited.example")
	s.onDemand = true
	if s.watchOf() != nil {
		t.Error("a host that visitors named is watched")
	}
}

// TestLogWatch: that not all files are watched is said once, for all sites.
func TestLogWatch(t *testing.T) {
	b := newBench(t, nil)
	for _, host := range []string{"a.example", "b.example"} {
		s := b.site(host)
		s.logWatch(nil)
		if n := b.logged(notWatched); n > 1 {
			t.Errorf("got %d lines", n)
		}
		s.logWatch(errors.New("50000 folders are watched"))
	}
	if n := b.logged(notWatched); n != 1 {
		t.Errorf("got %d lines, want 1", n)
	}
}
