package schedule

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWait: a run is due when it is planned, or when somebody asks for one, and on demand only
// after somebody wanted the result.
func TestWait(t *testing.T) {
	for name, test := range map[string]struct {
		onDemand bool
		then     func(s *Schedule) // after a second
		want     time.Duration     // 0: no run is due
	}{
		"planned":                {false, func(*Schedule) {}, time.Minute},
		"wanted":                 {false, func(s *Schedule) { s.Notify() }, time.Minute},
		"asked for":              {false, func(s *Schedule) { s.Request(time.Now()) }, time.Second},
		"on demand":              {true, func(*Schedule) {}, 0},
		"on demand, wanted":      {true, func(s *Schedule) { s.Notify() }, time.Minute},
		"on demand, asked for":   {true, func(s *Schedule) { s.Request(time.Now()) }, time.Second},
		"planned anew, not told": {false, func(s *Schedule) { s.At(time.Now().Add(time.Hour)) }, time.Hour + time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(time.Now().Add(time.Minute))
			<-s.wake // it is wanted when it is new
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
			defer cancel()
			begun := time.Now()
			time.AfterFunc(time.Second, func() { test.then(s) })
			if due := s.Wait(ctx, time.Now, test.onDemand); due != (test.want > 0) || due && time.Since(begun) != test.want {
				t.Errorf("%s: due %t after %s, want %s", name, due, time.Since(begun), test.want)
			}
		})
	}
}

// TestClockSetBack: a run is due after as long as it was planned for, though the clock says that it is due in years. The
// clock has no monotonic reading, as that of Go after 2157.
func TestClockSetBack(t *testing.T) {
	for name, test := range map[string]struct {
		onDemand bool
		setBack  time.Duration // after so long, by years
		wanted   time.Duration // after so long, on demand
		often    time.Duration // so often it is wanted again; 0: it is not
		anew     time.Duration // after so long, the run is planned for an hour later; 0: it is not
		want     time.Duration
	}{
		"at once":                       {setBack: 0, want: 90 * time.Minute},
		"while it waits":                {setBack: 30 * time.Minute, want: 90 * time.Minute},
		"while nobody wants it":         {onDemand: true, setBack: 10 * time.Minute, wanted: 20 * time.Minute, want: 110 * time.Minute},
		"while many want it":            {setBack: 10 * time.Minute, often: 25 * time.Second, want: 90 * time.Minute},
		"and it is planned anew":        {setBack: 10 * time.Minute, anew: 20 * time.Minute, want: 80 * time.Minute},
		"after it was planned anew":     {setBack: 50 * time.Minute, anew: 40 * time.Minute, want: 100 * time.Minute},
		"but then nobody would wait on": {setBack: 3 * time.Hour, want: 90 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ahead := 135 * 365 * 24 * time.Hour
			now := func() time.Time {
				clock := time.Now().Round(0).Add(ahead)
				if time.Since(begun) > test.setBack {
					return clock.Add(-ahead)
				}
				return clock
			}
			s := New(now().Add(90 * time.Minute))
			<-s.wake
			if test.onDemand {
				time.AfterFunc(test.wanted, s.Notify)
			}
			if test.anew > 0 {
				time.AfterFunc(test.anew, func() { s.At(now().Add(time.Hour)) })
			}
			ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
			defer cancel()
			if test.often > 0 {
				go func() {
					for ctx.Err() == nil {
						time.Sleep(test.often)
						s.Notify()
					}
				}()
				defer time.Sleep(test.often) // until that has ended
				defer cancel()
			}
			if due := s.Wait(ctx, now, test.onDemand); !due || time.Since(begun) != test.want {
				t.Errorf("%s: due %t after %s, want %s", name, due, time.Since(begun), test.want)
			}
		})
	}
}

// TestClockSetForward: a run is due within a minute of the time for which it was planned, whatever the timer says, and
// at once if somebody wants it then. One that is planned earlier than before need not be told.
func TestClockSetForward(t *testing.T) {
	for name, test := range map[string]struct {
		then func(s *Schedule, shift *atomic.Int64) // after 90 seconds
		want time.Duration
	}{
		"set forward": {func(_ *Schedule, shift *atomic.Int64) { shift.Store(int64(time.Hour)) }, 2 * time.Minute},
		"set forward, and wanted": {func(s *Schedule, shift *atomic.Int64) {
			shift.Store(int64(time.Hour))
			s.Notify()
		}, 90 * time.Second},
		"planned earlier": {func(s *Schedule, _ *atomic.Int64) { s.At(time.Now()) }, 2 * time.Minute},
		"planned earlier, and told": {func(s *Schedule, _ *atomic.Int64) {
			s.At(time.Now().Add(10 * time.Second))
			s.Notify()
		}, 100 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			shift := new(atomic.Int64)
			now := func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }
			s := New(now().Add(time.Hour))
			<-s.wake
			begun := time.Now()
			time.AfterFunc(90*time.Second, func() { test.then(s, shift) })
			if due := s.Wait(t.Context(), now, false); !due || time.Since(begun) != test.want {
				t.Errorf("%s: due %t after %s, want %s", name, due, time.Since(begun), test.want)
			}
		})
	}
}

// TestRequest: a run that is requested while another one is under way comes after that, and nothing puts it off.
func TestRequest(t *testing.T) {
	now := time.Unix(1e9, 0)
	later := now.Add(time.Hour)
	hasEnded := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	s := New(later)
	if s.IsRunning() || s.IsRequested() {
		t.Error("a new schedule has a run")
	}
	if s.Begin() || !s.IsRunning() {
		t.Error("the first run was not requested, and it is under way")
	}
	second := s.Request(now)
	if !s.IsRequested() || !s.Due().Equal(now) {
		t.Errorf("the second run is due at %s, want %s", s.Due(), now)
	}
	s.At(later)
	if !s.Due().Equal(now) {
		t.Errorf("the second run was put off to %s", s.Due())
	}
	s.End()
	if s.IsRunning() || hasEnded(second) {
		t.Error("the end of the first run is not that of the second")
	}
	if !s.Begin() || s.IsRequested() {
		t.Error("the second run was requested, and it has begun")
	}
	third := s.Request(now)
	s.End()
	if !hasEnded(second) || hasEnded(third) {
		t.Error("the end of the second run is not that of the third")
	}
	s.Begin()
	s.At(later)
	if !s.Due().Equal(later) {
		t.Errorf("the next run is due at %s, want %s", s.Due(), later)
	}
	s.End()
	if !hasEnded(third) {
		t.Error("who requested the third run was not told of its end")
	}
}
