package sitemap

import (
	"context"
	"errors"
	"testing"
	"time"
)

// isGranted reports whether what a wish waits for has come.
func isGranted(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// TestWishes: a refresh that was asked for runs although none is due, and whoever asked
// while one ran waits for the next.
func TestWishes(t *testing.T) {
	b := newBench(t, &Handler{})
	s := b.site("named.example")
	b.source = lists("/a")
	b.refresh(s)

	b.source = lists("/a", "/b")
	s.looked = true
	s.refresh(t.Context())
	if got := s.current().pages; got != 1 {
		t.Fatalf("a refresh that is not due: got %d pages, want 1", got)
	}
	done := s.wanted.add()
	s.looked = true
	s.refresh(t.Context())
	if got := s.current().pages; got != 2 || !isGranted(done) {
		t.Fatalf("a refresh that was asked for: got %d pages, granted %v", got, isGranted(done))
	}

	var later <-chan struct{}
	b.source = func(ctx context.Context, r *Refresh, yield func(Page) error) error {
		later = s.wanted.add()
		return lists("/a", "/b")(ctx, r, yield)
	}
	b.refresh(s)
	if due := s.due.Load(); isGranted(later) || due > b.clock.Load() {
		t.Fatalf("asked for while one ran: granted %v, due in %d ns", isGranted(later), due-b.clock.Load())
	}
	b.source = lists("/a")
	s.looked = true
	s.refresh(t.Context())
	if !isGranted(later) {
		t.Error("the next refresh grants nothing")
	}
}

// TestWishesStay where another configuration's refresh of the same pages is under way.
func TestWishesStay(t *testing.T) {
	b := newBench(t, &Handler{})
	s := b.site("named.example")
	b.source = lists("/a")
	held := s.held.Load()
	held.mu.Lock()
	done := s.wanted.add()
	s.looked = true
	s.refresh(t.Context())
	if isGranted(done) {
		t.Error("granted by a refresh that did not run")
	}
	held.mu.Unlock()
	s.refresh(t.Context())
	if !isGranted(done) {
		t.Error("not granted")
	}
}

// TestRefreshNowEnds with the one who waits, or the site.
func TestRefreshNowEnds(t *testing.T) {
	b := newBench(t, &Handler{})
	s := b.site("named.example")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.refreshNow(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if s.due.Load() != b.clock.Load() {
		t.Error("it is not due")
	}
	s.cancel()
	if err := s.refreshNow(t.Context()); err != errStopping {
		t.Errorf("got %v, want %v", err, errStopping)
	}
}

// TestWishesOfTwins go to the site whose documents stand for the other's, whenever that is
// found out.
func TestWishesOfTwins(t *testing.T) {
	b := newBench(t, &Handler{})
	main, twin := b.site("named.example"), b.site("other.example")
	b.source = lists("/a")
	early := twin.wanted.add()
	twin.main.Store(main)
	twin.handOver(main)
	if main.due.Load() > b.clock.Load() {
		t.Error("the main site is not due")
	}
	late := make(chan error, 1)
	go func() { late <- twin.refreshNow(t.Context()) }()
	for len(main.snapshotOfWishes()) < 2 {
		time.Sleep(time.Millisecond)
	}
	main.looked = true
	main.refresh(t.Context())
	if !isGranted(early) {
		t.Error("who waited before is not granted")
	}
	if err := <-late; err != nil {
		t.Errorf("who came after: %v", err)
	}
}

func (s *site) snapshotOfWishes() granted {
	s.wanted.mu.Lock()
	defer s.wanted.mu.Unlock()
	return s.wanted.waiting
}

// TestWishesThatAreNotToBe: a visitors' site that there is no memory for is not waited for.
func TestWishesThatAreNotToBe(t *testing.T) {
	b := newBench(t, &Handler{})
	s := b.site("visitor.example")
	b.app.visitorBytes.Store(maxVisitorBytes)
	done := s.wanted.add()
	s.used.Store(b.clock.now().Unix())
	s.due.Store(b.clock.Load())
	wait := longestScheduled
	if due := b.app.due(b.clock.now(), &wait); len(due) != 0 || !isGranted(done) {
		t.Errorf("%d sites are due, granted %v", len(due), isGranted(done))
	}
}
