package sitemap

import (
	"context"
	"errors"
	"sync"
)

// errStopping is the error of waiting for a refresh of a site that is going.
var errStopping = errors.New("the site is being stopped")

// refreshNow has the site refreshed at once, or the one whose documents stand for its
// own, from looking at it on, and waits until a refresh has ended that began after the
// call. It does not wait for one that is not to be: of a site that only visitors named,
// while such sites take all the memory that they may. The error is ctx's, or errStopping;
// the refresh goes on all the same.
func (s *site) refreshNow(ctx context.Context) error {
	done := s.wanted.add()
	if main := s.main.Load(); main != nil {
		s.handOver(main)
		s = main
	}
	now := s.app.now()
	s.used.Store(now.Unix())
	s.due.Store(now.UnixNano())
	s.app.rouse()
	select {
	case <-done:
		if s.ctx.Err() != nil {
			return errStopping // and it came to nothing
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return errStopping
	}
}

// handOver leaves it to the site whose documents stand for this one's to be refreshed for
// those who wait.
func (s *site) handOver(main *site) {
	if waiting := s.wanted.take(); len(waiting) > 0 {
		main.wanted.putBack(waiting)
		main.due.Store(s.app.now().UnixNano())
		s.app.rouse()
	}
}

// wishes are those of who waits for a refresh.
type wishes struct {
	mu      sync.Mutex
	waiting granted
}

// granted are wishes that one refresh will fulfil.
type granted []chan struct{}

func (w *wishes) add() <-chan struct{} {
	done := make(chan struct{})
	w.putBack(granted{done})
	return done
}

// take takes the wishes there are, for a refresh that begins now.
func (w *wishes) take() granted {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.waiting
	w.waiting = nil
	return taken
}

// putBack is for a refresh that did not come to anything.
func (w *wishes) putBack(g granted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, g...)
}

func (w *wishes) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) > 0
}

func (g granted) grant() {
	for _, done := range g {
		close(done)
	}
}
