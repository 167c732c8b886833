package sitemap

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// schedule says when a site is refreshed next. It is safe for concurrent use.
type schedule struct {
	mu        sync.Mutex
	due       time.Time // of the next refresh; zero: not before somebody asks
	running   bool
	idle      bool            // it is not refreshed before somebody asks for its documents
	requested []chan struct{} // by those who wait for a refresh that has not begun
	serving   []chan struct{} // by those who wait for the refresh that runs
}

// at plans the next refresh.
func (s *schedule) at(due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = due
}

// next is when the next refresh is due; false: none is planned, or one runs.
func (s *schedule) next() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.due, !s.running && !s.idle && !s.due.IsZero()
}

// request asks for a refresh at once. What it returns is closed when that has ended.
func (s *schedule) request(now time.Time) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := make(chan struct{})
	s.requested = append(s.requested, done)
	s.due, s.idle = now, false
	return done
}

// resume lets an idle site be refreshed again, and reports whether one is due.
func (s *schedule) resume(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = false
	return !s.running && !s.due.IsZero() && !s.due.After(now)
}

// begin takes the refresh that is due; false: none is. demanded says that somebody waits
// for it.
func (s *schedule) begin(now time.Time) (demanded, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running || s.idle || s.due.IsZero() || s.due.After(now) {
		return false, false
	}
	s.running, s.serving, s.requested = true, s.requested, nil
	return len(s.serving) > 0, true
}

// end notes that a refresh has ended and plans the next one, or at once where somebody has
// asked for one meanwhile.
func (s *schedule) end(next, now time.Time, idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	for _, done := range s.serving {
		close(done)
	}
	s.serving = nil
	s.due, s.idle = next, idle
	if len(s.requested) > 0 {
		s.due, s.idle = now, false
	}
}

// forward leaves those who wait for a refresh to another site's schedule.
func (s *schedule) forward(to *schedule) {
	s.mu.Lock()
	requested := s.requested
	s.requested = nil
	s.mu.Unlock()
	if len(requested) == 0 {
		return
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	to.requested = append(to.requested, requested...)
	to.due, to.idle = time.Unix(0, 1), false
}

// close lets everybody go who waits.
func (s *schedule) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, done := range append(s.requested, s.serving...) {
		close(done)
	}
	s.requested, s.serving = nil, nil
}

// isRequested reports whether somebody waits for a refresh that has not begun.
func (s *schedule) isRequested() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requested) > 0
}

// isRunning reports whether a refresh runs.
func (s *schedule) isRunning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// run refreshes the site and plans the next refresh. A source or handler that does not heed
// that ctx has ended is left to itself: Stop shall not wait for it.
func (s *site) run(ctx context.Context, demanded bool) {
	defer func() {
		s.endTurn()
		s.app.notify() // others may wait for the turn
	}()
	begun := s.app.now()
	ended := make(chan result, 1)
	// The refresh has a moment to keep what it has found when the site is stopped.
	running, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer func() {
			if v := recover(); v != nil {
				s.logger.Error("a refresh panicked", zap.Any("panic", v), zap.Stack("stack"))
				ended <- result{err: fmt.Errorf("panic: %v", v)}
			}
		}()
		ended <- s.refresh(running, demanded)
	}()
	var out result
	select {
	case out = <-ended:
	case <-ctx.Done():
		if !endsSoon(ended, keepGrace) {
			cancel()
			if !endsSoon(ended, stopGrace) {
				s.logger.Warn("a refresh goes on although it was told to end")
			}
		}
		return
	}
	if ctx.Err() != nil {
		return
	}
	now := s.app.now()
	if out.crawled.Generation == nil {
		s.report(out, begun, now.Sub(begun)) // else it was, as it went on
	}
	if out.outcome != refreshSuperseded {
		s.markReady()
	}
	if s.onDemand {
		s.app.shrink(s)
	}
	s.schedule.end(s.nextRefresh(out, begun, now), now, s.onDemand && !s.traffic.since(begun))
	s.app.notify()
	endsSoon(async(func() { s.checkSetup(ctx) }), stopGrace) // the disk may hang
}

// async runs f in a goroutine. What it returns is closed when f has returned.
func async(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

// orLeave runs f and waits for it, but only a little longer once ctx has ended. False: f
// was abandoned, as nothing can end it.
func orLeave(ctx context.Context, f func()) bool {
	done := async(f)
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return endsSoon(done, stopGrace)
	}
}

// endsSoon waits until something has ended, up to a time, and reports whether it has.
func endsSoon[T any](ended <-chan T, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}

const (
	keepGrace  = time.Second            // for a refresh to keep what it has found when it is stopped
	retryEmpty = 5 * time.Second        // of a site that has nothing to serve yet
	soon       = 200 * time.Millisecond // while pages are left to be fetched
)

// shareOfTime bounds what refreshing costs: gathering, selecting and building take a
// twentieth of the time at most.
const shareOfTime = 20

// next is when the refresh is due that follows one of a cost.
func (set *settings) next(begun time.Time, cost time.Duration) time.Time {
	if set.fixed {
		return begun.Add(set.refresh)
	}
	return begun.Add(max(set.refresh, shareOfTime*cost))
}

// rest notes whether a refresh left nothing to do before the next one is due.
func (s *site) rest(out *result, begun time.Time) {
	if out.err == nil && out.reason == "" && !out.partial && (out.crawled.Generation == nil || out.crawled.Done) {
		s.state.rested.Store(&rest{begun, out.cost, s.fetcher.digest()})
		return
	}
	s.state.rested.Store(nil)
}

// nextRefresh is when the site is to be refreshed after a refresh that began at begun.
func (s *site) nextRefresh(out result, begun, now time.Time) time.Time {
	due := s.handler.settings.next(begun, out.cost)
	crawled, probed := &out.crawled, s.probed.Load()
	switch {
	case s.state.Index.Load() == nil && (out.err != nil || probed != nil && probed.robots.closed):
		due = earlier(due, now.Add(retryEmpty)) // an application may start with the server
	case out.err != nil:
	case crawled.Generation != nil && !crawled.Done:
		due = earlier(due, later(now.Add(soon), time.Unix(crawled.Next, 0)))
	case crawled.Next > now.Unix():
		due = earlier(due, time.Unix(crawled.Next, 0))
	}
	return later(due, now)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
