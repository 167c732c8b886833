package record

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// slow is a storage whose calls take their time, whatever their context says.
type slow struct {
	Storage
	pause atomic.Int64 // nanoseconds
	calls atomic.Int32 // of any kind
}

func newSlow(pause time.Duration) *slow {
	s := &slow{Storage: NewMemory()}
	s.pause.Store(int64(pause))
	return s
}

func (s *slow) wait() {
	s.calls.Add(1)
	time.Sleep(time.Duration(s.pause.Load()))
}

func (s *slow) Load(ctx context.Context, key string) ([]byte, error) {
	s.wait()
	return s.Storage.Load(ctx, key)
}

func (s *slow) Store(ctx context.Context, key string, value []byte) error {
	s.wait()
	return s.Storage.Store(ctx, key, value)
}

func (s *slow) Delete(ctx context.Context, key string) error {
	s.wait()
	return s.Storage.Delete(ctx, key)
}

func (s *slow) List(ctx context.Context, folder string, recursive bool) ([]string, error) {
	s.wait()
	return s.Storage.List(ctx, folder, recursive)
}

// TestBounded: each call ends after ten seconds, or with its context.
func TestBounded(t *testing.T) {
	for name, call := range map[string]func(context.Context, Storage) error{
		"load":   func(ctx context.Context, s Storage) error { _, err := s.Load(ctx, "a"); return err },
		"store":  func(ctx context.Context, s Storage) error { return s.Store(ctx, "a", nil) },
		"delete": func(ctx context.Context, s Storage) error { return s.Delete(ctx, "a") },
		"list":   func(ctx context.Context, s Storage) error { _, err := s.List(ctx, "a", true); return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			storage := newSlow(patience - 1)
			bounded := Bounded(storage)
			if err := call(t.Context(), bounded); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: slow: %v", name, err)
			}
			storage.pause.Store(int64(time.Minute))
			begun := time.Now()
			if err := call(t.Context(), bounded); !errors.Is(err, ErrHung) || time.Since(begun) != patience {
				t.Errorf("%s: got %v after %s", name, err, time.Since(begun))
			}
			// While it hangs, another one fails at once.
			time.Sleep(time.Nanosecond)
			begun = time.Now()
			calls := storage.calls.Load()
			if err := call(t.Context(), bounded); !errors.Is(err, ErrHung) || time.Since(begun) > 0 || storage.calls.Load() != calls {
				t.Errorf("%s: got %v after %s, %d calls", name, err, time.Since(begun), storage.calls.Load()-calls)
			}
			time.Sleep(time.Minute)
		})
	}
}

// TestOvertaken: what is older never overwrites what is newer.
func TestOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := newSlow(time.Minute)
		bounded := Bounded(storage)
		if err := bounded.Store(t.Context(), "a", []byte("old")); !errors.Is(err, ErrHung) {
			t.Errorf("got %v", err)
		}
		storage.pause.Store(0)
		if err := bounded.Store(t.Context(), "a", []byte("new")); !errors.Is(err, ErrHung) {
			t.Errorf("it was overtaken: %v", err)
		}
		time.Sleep(time.Minute)
		if data, err := bounded.Load(t.Context(), "a"); err != nil || string(data) != "old" {
			t.Errorf("got %q, %v", data, err)
		}
		if err := bounded.Store(t.Context(), "a", []byte("newest")); err != nil {
			t.Error(err)
		}
		if data, err := bounded.Load(t.Context(), "a"); err != nil || string(data) != "newest" {
			t.Errorf("got %q, %v", data, err)
		}
	})
}

// TestOneAtATime: calls wait for each other, also for one whose caller has left, which has not hung yet.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := newSlow(3 * time.Second)
		bounded := Bounded(storage)
		canceled, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := bounded.Load(canceled, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		begun := time.Now()
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- bounded.Store(t.Context(), "a", nil) }()
		}
		for _, want := range []time.Duration{5 * time.Second, 8 * time.Second} {
			if err := <-done; err != nil || time.Since(begun) != want {
				t.Errorf("got %v after %s, want it after %s", err, time.Since(begun), want)
			}
		}
	})
}

// TestSharedSlots: the calls of several owners of a disk go on at the same time up to a number.
func TestSharedSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := wait.NewSlots(2)
		begun := time.Now()
		done := make(chan error, 3)
		for range 3 {
			owner := BoundedBy(shared, newSlow(3*time.Second))
			go func() { done <- owner.Store(t.Context(), "a", nil) }()
		}
		for _, want := range []time.Duration{3 * time.Second, 3 * time.Second, 6 * time.Second} {
			if err := <-done; err != nil || time.Since(begun) != want {
				t.Errorf("got %v after %s, want it after %s", err, time.Since(begun), want)
			}
		}
		synctest.Wait()
		if len(shared) > 0 {
			t.Errorf("%d slots are taken", len(shared))
		}
	})
}

// TestSelfBounded: bounds are not laid on bounds.
func TestSelfBounded(t *testing.T) {
	bounded := Bounded(newSlow(0))
	if Bounded(bounded) != bounded {
		t.Error("it is bounded twice")
	}
}

// panicking is a storage that panics.
type panicking struct{ Storage }

func (panicking) Load(context.Context, string) ([]byte, error) { panic("broken") }

// TestStoragePanics: a storage that panics fails its call, and the next one goes on.
func TestStoragePanics(t *testing.T) {
	bounded := Bounded(panicking{NewMemory()})
	for range 2 {
		_, err := bounded.Load(t.Context(), "a")
		if err == nil || err.Error() != "the storage panicked: broken" {
			t.Errorf("got %v", err)
		}
	}
}
