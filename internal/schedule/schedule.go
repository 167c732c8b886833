// Package schedule says when something that is done again and again is due, such as the
// refresh of a site.
package schedule

import (
	"context"
	"sync"
	"time"
)

// Schedule says when the next run is due. It is safe for concurrent use; one goroutine alone
// waits, begins and ends the runs.
type Schedule struct {
	wake chan struct{} // of size 1: somebody wants the result, or a run

	mu        sync.Mutex
	due       time.Time     // of the next run
	next      chan struct{} // closed when the run that begins next has ended
	now       chan struct{} // the same of the one under way; nil: none is
	requested bool          // by somebody who waits for next
}

// New returns a schedule whose first run is due at a time, and wanted.
func New(due time.Time) *Schedule {
	s := &Schedule{wake: make(chan struct{}, 1), next: make(chan struct{}), due: due}
	s.Notify()
	return s
}

// Notify says that somebody wants the result, which matters to [Schedule.Wait].
func (s *Schedule) Notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Wait waits until a run is due, and before that, where it is done on demand only, for
// Notify or Request. False: ctx has ended.
func (s *Schedule) Wait(ctx context.Context, now func() time.Time, onDemand bool) bool {
	for wanted := !onDemand; ctx.Err() == nil; {
		var timer <-chan time.Time
		if wanted {
			due, _, _ := s.State()
			wait := due.Sub(now())
			if wait <= 0 {
				return true
			}
			timer = time.After(wait)
		}
		select {
		case <-s.wake:
			wanted = true
		case <-timer:
		case <-ctx.Done():
		}
	}
	return false
}

// State is when the next run is due, whether one is under way, and whether somebody waits
// for one that has not begun.
func (s *Schedule) State() (due time.Time, running, requested bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.due, s.now != nil, s.requested
}

// At plans the next run, unless somebody waits for it.
func (s *Schedule) At(due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.requested {
		s.due = due
	}
}

// Request asks for a run at once. The channel is closed when that has ended.
func (s *Schedule) Request(now time.Time) <-chan struct{} {
	defer s.Notify()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due, s.requested = now, true
	return s.next
}

// Begin notes that a run begins, and reports whether somebody waits for it.
func (s *Schedule) Begin() (demanded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	demanded, s.requested = s.requested, false
	s.now, s.next = s.next, make(chan struct{})
	return demanded
}

// End notes that the run has ended.
func (s *Schedule) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.now)
	s.now = nil
}
