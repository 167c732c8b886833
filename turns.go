package sitemap

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
)

const (
	// maxRefreshes are of all sites at a time, save those that take longer than turnTime: each has a few goroutines and open
	// files.
	maxRefreshes = 32
	turnTime     = 2 * time.Second // for which a refresh may hold its turn: one that hangs holds up nobody

	freshSlice = time.Second     // of a crawl of a host that visitors named, until it is another one's turn
	knownSlice = 5 * time.Second // the same, of a known one: between two slices, it makes no use of its share of the rate
	knownAfter = firstWait       // a host is known that is requested again so long after its first pages were listed

	// The first look at a host that visitors named has up to three requests of upstreams, which the rate does not bound: whoever
	// requests the sitemap could as well request the front page. Else a burst of made-up hosts would take all turns.
	firstLooksRate   = 20 // a second
	firstLooksAtOnce = 16
)

// rank returns the rank of the site among those that share turns, and the rate of upstreams.
func (s *site) rank() schedule.Rank {
	switch {
	case !s.onDemand:
		return schedule.Named
	case s.state.isKnown.Load():
		return schedule.Known
	}
	return schedule.Fresh
}

// noteRequest notes that a visitor has requested a document of a site on demand. A made-up host may have pages, too, as an
// application may return the same ones for any host: only who is requested again is known.
func (s *site) noteRequest(now time.Time) {
	s.requested.Store(now.UnixNano())
	listed := s.state.listed.Load()
	if listed != 0 && now.Sub(time.Unix(0, listed)).Abs() >= knownAfter {
		s.becomeKnown()
	}
}

// becomeKnown makes the site a known one, which is stored. If it waits for a turn among the fresh ones, of which there may be a thousand, it
// waits among the known ones instead.
func (s *site) becomeKnown() {
	if s.state.isKnown.Swap(true) {
		return
	}
	if stopWaiting := s.stopWaiting.Load(); stopWaiting != nil {
		(*stopWaiting)()
	}
}

// noteListed notes when a site on demand first has pages.
func (s *site) noteListed() {
	if s.onDemand && s.published().snapshot != nil {
		s.state.listed.CompareAndSwap(0, s.app.now().UnixNano())
	}
}

// isFirstLook reports whether nothing is known yet of a host that visitors named. A first look has few requests, and waits
// for no crawl.
func (s *site) isFirstLook() bool {
	return s.onDemand && s.runs == 0 && s.probed.Load() == nil && s.published().probed == nil
}

// takeTurn waits for the turn of the site's next refresh; false: the site was stopped before. release may be called twice.
func (s *site) takeTurn() (release func(), ok bool) {
	if s.isFirstLook() {
		of := s.rank()
		looks := s.handler.firstLooks
		ok = looks.Take(s.ctx, of, nil)
		release = sync.OnceFunc(func() { looks.Release(of) })
	} else {
		var of schedule.Rank
		of, ok = s.awaitTurn()
		release = sync.OnceFunc(func() { s.app.turns.Release(of) })
	}
	if ok {
		time.AfterFunc(turnTime, release)
	}
	return release, ok
}

// awaitTurn waits for a turn among all sites, and returns the rank by which it was granted; false: the site was stopped
// before. Once the site has another rank, it waits by that one.
func (s *site) awaitTurn() (of schedule.Rank, ok bool) {
	for {
		ctx, cancel := context.WithCancel(s.ctx)
		// Before the rank is read: else becomeKnown could change that unnoticed, and a tenant that is requested again would wait
		// behind up to a thousand made-up hosts.
		s.stopWaiting.Store(&cancel)
		of = s.rank()
		s.paceProbe(ctx, of)
		ok = s.app.turns.Take(ctx, of)
		cancel()
		if ok || s.ctx.Err() != nil {
			return of, ok
		}
	}
}

// paceProbe waits until the rate of upstreams allows the requests of a probe, for ten seconds at most. Those of named sites are
// so few that they need not wait: see probesTake.
func (s *site) paceProbe(ctx context.Context, of schedule.Rank) {
	last := s.lastProbe()
	if !s.onDemand || !last.made || s.goesOnWith(&last, s.app.now()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if !s.handler.limiter.AwaitTurn(ctx, of) {
		<-ctx.Done()
	}
}

// goesOnWith reports whether a refresh that begins at a time goes on with what the last probe has found, so that a front page
// that is made is requested once an interval. On demand, the next slice of a crawl does.
func (s *site) goesOnWith(probed *probeResult, at time.Time) bool {
	isRecent := at.Sub(s.probedAt).Abs() < s.handler.settings.interval
	if !isRecent || s.look.IsSince(s.probedAt) || probed.blocked != "" {
		return false
	}
	if s.onDemand {
		return s.hasLeft
	}
	return probed.made
}

// sliceTime is how long the site's crawl goes on until it is another one's turn.
func (s *site) sliceTime() time.Duration {
	switch s.rank() {
	case schedule.Fresh:
		return freshSlice
	case schedule.Known:
		return knownSlice
	}
	return s.handler.settings.interval
}

// isAbsent reports whether the host has no front page for visitors, as far as is known: then it may be made up.
func (s *site) isAbsent() bool {
	probed := s.probed.Load()
	if !s.onDemand || probed == nil {
		return false
	}
	return probed.blocked == reasonAbsent || probed.blocked == reasonRefused
}

// isSilent reports whether the front page of a host that visitors named did not respond. Nothing is known of what it lists, and
// a request that went on to its application would hang, too.
func (s *site) isSilent() bool {
	return s.isAbsent() && s.probed.Load().status == http.StatusGatewayTimeout
}

// noteAbsence counts the refreshes that found no front page.
func (s *site) noteAbsence(out *report.Refresh) {
	switch {
	case !s.isAbsent():
		s.absences = 0
	case out.Result != outcome.Failed:
		s.absences++
	}
}
