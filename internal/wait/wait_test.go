package wait

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestOrLeave(t *testing.T) {
	for name, test := range map[string]struct {
		takes, ends time.Duration // f, and ctx
		want        bool
		after       time.Duration
	}{
		"in time":       {time.Second, time.Hour, true, time.Second},
		"in the grace":  {3 * time.Second, 2 * time.Second, true, 3 * time.Second},
		"after it":      {time.Minute, 2 * time.Second, false, 7 * time.Second},
		"already ended": {time.Second, 0, true, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), test.ends)
			defer cancel()
			begun := time.Now()
			if got := OrLeave(ctx, 5*time.Second, func() { time.Sleep(test.takes) }); got != test.want || time.Since(begun) != test.after {
				t.Errorf("%s: got %t after %v, want %t after %v", name, got, time.Since(begun), test.want, test.after)
			}
			time.Sleep(test.takes) // f comes to its end
		})
	}
}

// TestWithin: without patience, too, a value that is there is taken, and not by chance.
func TestWithin(t *testing.T) {
	for name, test := range map[string]struct {
		patience time.Duration
		isThere  bool
		want     bool
		after    time.Duration
	}{
		"there":                   {time.Second, true, true, 0},
		"too late":                {time.Second, false, false, time.Second},
		"there, without patience": {0, true, true, 0},
		"none, without patience":  {0, false, false, 0},
		"too late by then":        {-time.Second, false, false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			for range 50 {
				values := make(chan int, 1)
				want := 0
				if test.isThere {
					want = 7
					values <- want
				}
				begun := time.Now()
				value, ok := Within(test.patience, values)
				if ok != test.want || value != want || time.Since(begun) != test.after {
					t.Fatalf("%s: got %d, %t after %v", name, value, ok, time.Since(begun))
				}
			}
		})
	}
}

// TestAbandoned: what was abandoned is counted until it ends.
func TestAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var abandoned atomic.Int32
		for range 2 {
			Workers(nil).OrLeave(ctx, time.Second, &abandoned, func() { time.Sleep(time.Minute) })
		}
		if got := abandoned.Load(); got != 2 {
			t.Errorf("got %d, want 2", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := abandoned.Load(); got != 0 {
			t.Errorf("after they have ended, got %d", got)
		}
	})
}

// TestWorkers: each worker runs a function at a time, and they end with their context.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := NewWorkers(ctx, 2)
		isFree := func() bool {
			synctest.Wait()
			select {
			case w <- func() { time.Sleep(time.Minute) }:
				return true
			default:
				return false
			}
		}
		got := []bool{isFree(), isFree(), isFree()}
		time.Sleep(time.Minute)
		got = append(got, isFree())
		cancel()
		time.Sleep(time.Minute)
		got = append(got, isFree())
		if want := []bool{true, true, false, true, false}; !slices.Equal(got, want) {
			t.Errorf("got %t, want %t", got, want)
		}
		// All are gone, and it runs all the same.
		if !w.OrLeave(t.Context(), 0, new(atomic.Int32), func() {}) {
			t.Error("it was abandoned")
		}
	})
}

// TestSlots: no more are taken than there are, unless there is no bound.
func TestSlots(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(1)
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if !s.Take(t.Context()) || s.Take(brief) {
			t.Error("of one slot, not one was given")
		}
		s.Release()
		if s.Take(ended) {
			t.Error("a slot was given after the end")
		}
		if !s.Take(t.Context()) {
			t.Error("the slot was not given back")
		}
	})
	var none Slots
	if !none.Take(t.Context()) || !none.Take(t.Context()) || none.Take(ended) {
		t.Error("without a bound, a slot is given until the end")
	}
	none.Release()
}

func TestIsDone(t *testing.T) {
	c := make(chan struct{})
	if IsDone(c) {
		t.Error("an open channel is done")
	}
	close(c)
	if !IsDone(c) {
		t.Error("a closed channel is not done")
	}
}
