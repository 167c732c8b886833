package wait

import (
	"context"
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
