// Package schedule plans recurring runs of one job, such as the refreshes of a site, and lets others request one.
package schedule

import (
	"context"
	"sync"
	"time"
)

// Schedule plans the runs of one job. It is safe for concurrent use; Wait, Begin and End are for
// the one goroutine that runs the job.
type Schedule struct {
	wake chan struct{} // of size 1: see Notify

	mu        sync.Mutex
	due       time.Time     // of the next run
	next      chan struct{} // closed when the run that begins next has ended
	running   chan struct{} // closed when the run under way has ended; nil: none is
	requested bool          // somebody waits for next
	interrupt func()        // called by Request; nil: nothing is
}

// New returns a schedule whose first run is due at a time, also on demand.
func New(due time.Time) *Schedule {
	s := &Schedule{wake: make(chan struct{}, 1), next: make(chan struct{}), due: due}
	s.Notify()
	return s
}

// Notify demands the next run, once it is due: see [Schedule.Wait].
func (s *Schedule) Notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// lookEvery is the longest that Wait relies on a timer: the clock may be set meanwhile.
const lookEvery = time.Minute

// Wait waits until a run is due; with onDemand, it waits first for Notify or Request. False: ctx has ended.
//
// A clock that is set forward makes it due within a minute. One that is set back does not put it off: it is due after
// as long as it was when Wait first saw the plan, less the time that Wait has slept since.
func (s *Schedule) Wait(ctx context.Context, now func() time.Time, onDemand bool) bool {
	var seen time.Time         // the plan,
	var left time.Duration     // and how long it was until then when the timer was set
	var timer <-chan time.Time // nil: it is not set
	var sleep time.Duration    // until it fires
	wanted := !onDemand
	for ctx.Err() == nil {
		// There is another plan since the last look, perhaps: it counts from now.
		due := s.Due()
		byClock := due.Sub(now())
		if !due.Equal(seen) {
			seen = due
			left = byClock
			timer = nil
		}
		// Go's times have no monotonic reading after 2157: where the clock was ahead of that, it alone would have a
		// refresh wait for 130 years once it is right.
		if wanted && min(left, byClock) <= 0 {
			return true
		}
		if wanted && timer == nil {
			left = min(left, byClock)
			sleep = min(left, lookEvery)
			timer = time.After(sleep)
		}
		select {
		case <-s.wake:
			wanted = true
		case <-timer:
			left -= sleep
			timer = nil
		case <-ctx.Done():
		}
	}
	return false
}

// Due returns when the next run is due.
func (s *Schedule) Due() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.due
}

// IsRunning reports whether a run is under way.
func (s *Schedule) IsRunning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running != nil
}

// IsRequested reports whether a run was requested that has not begun.
func (s *Schedule) IsRequested() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requested
}

// UntilRequested returns a context that ends with ctx, and when a run is requested from now on. Only the last one does.
func (s *Schedule) UntilRequested(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupt = cancel
	return ctx, cancel
}

// At plans the next run, unless one was requested, which is due at once.
func (s *Schedule) At(due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.requested {
		s.due = due
	}
}

// Request plans a run at once, after the one under way. The channel is closed when it has ended.
func (s *Schedule) Request(now time.Time) <-chan struct{} {
	defer s.Notify()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = now
	s.requested = true
	if s.interrupt != nil {
		s.interrupt()
	}
	return s.next
}

// Interrupt ends the context of UntilRequested as Request does.
func (s *Schedule) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupt != nil {
		s.interrupt()
	}
}

// Begin begins a run, and reports whether it was requested.
func (s *Schedule) Begin() (demanded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	demanded = s.requested
	s.requested = false
	s.running = s.next
	s.next = make(chan struct{})
	return demanded
}

// End ends the run.
func (s *Schedule) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.running)
	s.running = nil
}
