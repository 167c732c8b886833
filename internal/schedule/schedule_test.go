package schedule

import (
	"context"
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
