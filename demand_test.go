package sitemap

import (
	"context"
	"errors"
	"testing"
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
