package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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

// inBubble has a test count its own calls: slots of one bubble of fake time are none of another.
func inBubble(t *testing.T, test func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		was := disks
		disks = NewLimit()
		defer func() { disks = was }()
		test(t)
		if n := disks.hung.Load(); n != 0 || len(disks.slots) != 0 {
			t.Errorf("%d calls hang, %d slots are held", n, len(disks.slots))
		}
	})
}

// TestBounded: each call ends after ten seconds, or with its context.
func TestBounded(t *testing.T) {
	for name, call := range map[string]func(context.Context, Storage) error{
		"load":   func(ctx context.Context, s Storage) error { _, err := s.Load(ctx, "a"); return err },
		"store":  func(ctx context.Context, s Storage) error { return s.Store(ctx, "a", nil) },
		"delete": func(ctx context.Context, s Storage) error { return s.Delete(ctx, "a") },
		"list":   func(ctx context.Context, s Storage) error { _, err := s.List(ctx, "a", true); return err },
	} {
		inBubble(t, func(t *testing.T) {
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
			// One call of a kind is abandoned: another waits for it.
			calls := storage.calls.Load()
			canceled, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := call(canceled, bounded); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != patience+time.Second || storage.calls.Load() != calls {
				t.Errorf("%s: got %v after %s, %d calls", name, err, time.Since(begun), storage.calls.Load()-calls)
			}
			time.Sleep(time.Minute)
		})
	}
}

// TestOvertaken: what is older never overwrites what is newer.
func TestOvertaken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		storage := newSlow(time.Minute)
		bounded := Bounded(storage)
		if err := bounded.Store(t.Context(), "a", []byte("old")); !errors.Is(err, ErrHung) {
			t.Errorf("got %v", err)
		}
		storage.pause.Store(0)
		if err := bounded.Store(t.Context(), "a", []byte("new")); !errors.Is(err, ErrHung) {
			t.Errorf("it was overtaken: %v", err)
		}
		if data, err := bounded.Load(t.Context(), "a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %q, %v", data, err)
		}
		time.Sleep(time.Minute)
		if err := bounded.Store(t.Context(), "a", []byte("newest")); err != nil {
			t.Error(err)
		}
		if data, err := bounded.Load(t.Context(), "a"); err != nil || string(data) != "newest" {
			t.Errorf("got %q, %v", data, err)
		}
	})
}

// TestManyHang: while many calls hang, others fail at once. Those that were canceled do not count before they hang.
func TestManyHang(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		storage := newSlow(time.Minute)
		bounded := Bounded(storage)
		canceled, cancel := context.WithCancel(t.Context())
		for i := range maxHung {
			go func() { _, _ = bounded.Load(canceled, fmt.Sprint(i)) }()
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		storage.pause.Store(0)
		if _, err := bounded.Load(t.Context(), "a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		time.Sleep(patience + 1)
		begun := time.Now()
		other := Bounded(newSlow(0))
		if _, err := other.Load(t.Context(), "a"); !errors.Is(err, ErrHung) || time.Since(begun) > 0 {
			t.Errorf("got %v after %s", err, time.Since(begun))
		}
		time.Sleep(time.Minute)
		if _, err := other.Load(t.Context(), "a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

// TestSlots: the calls under way are bounded, and wait for each other.
func TestSlots(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		storage := newSlow(time.Second)
		bounded := Bounded(storage)
		errs := make(chan error, 2*maxCalls)
		begun := time.Now()
		for i := range 2 * maxCalls {
			go func() { _, err := bounded.Load(t.Context(), fmt.Sprint(i)); errs <- err }()
		}
		synctest.Wait()
		if len(disks.slots) != maxCalls {
			t.Errorf("%d calls at a time", len(disks.slots))
		}
		for range 2 * maxCalls {
			if err := <-errs; !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got %v", err)
			}
		}
		if time.Since(begun) != 2*time.Second {
			t.Errorf("they took %s", time.Since(begun))
		}
	})
}

// TestSelfBounded: bounds are not laid on bounds.
func TestSelfBounded(t *testing.T) {
	storage := NewMemory()
	if Bounded(storage) != storage {
		t.Error("memory cannot hang")
	}
	bounded := Bounded(newSlow(0))
	if Bounded(bounded) != bounded {
		t.Error("it is bounded twice")
	}
}

// TestStoragePanics: a storage that panics fails its call, and gives its slot back.
func TestStoragePanics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		_, err := Call(t.Context(), NewCalls(disks), "", func(context.Context) (int, error) { panic("broken") })
		if err == nil || err.Error() != "the storage panicked: broken" {
			t.Errorf("got %v", err)
		}
	})
}
