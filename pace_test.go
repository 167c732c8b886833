package sitemap

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// asks runs n asks, each of which takes as long as told, and returns when they began,
// from the first one on.
func asks(t *testing.T, p *pace, n int, took time.Duration, answer *Answer) []time.Duration {
	t.Helper()
	var began []time.Duration
	var first time.Time
	for range n {
		done, err := p.begin(t.Context(), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if first.IsZero() {
			first = time.Now()
		}
		began = append(began, time.Since(first))
		time.Sleep(took)
		done(answer)
	}
	return began
}

func status(code int, retryAfter string) *Answer {
	header := make(http.Header)
	if retryAfter != "" {
		header.Set("Retry-After", retryAfter)
	}
	return &Answer{Status: code, Header: header}
}

func TestPace(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	ok := status(http.StatusOK, "")
	for _, test := range []struct {
		name   string
		rate   float64
		took   time.Duration
		answer *Answer
		want   []time.Duration // when asks began
	}{
		{"quick answers", 2, 0, ok, []time.Duration{0, 500 * ms, s, 1500 * ms}},
		{"as quick as the rate allows", 2, 100 * ms, ok, []time.Duration{0, 500 * ms, s}},
		{"slow answers", 2, s, ok, []time.Duration{0, 3 * s, 6 * s}},
		{"a high rate", 1000, 0, ok, []time.Duration{0, ms, 2 * ms}},
		{"the lowest rate", 1.0 / 3600, 0, ok, []time.Duration{0, time.Hour, 2 * time.Hour}},
		{"not found is an answer", 2, 0, status(http.StatusNotFound, "10"), []time.Duration{0, 500 * ms, s}},
		{"no answers", 2, 0, nil, []time.Duration{0, 500 * ms, 1500 * ms, 3500 * ms, 7500 * ms}},
		{"too many", 2, 0, status(http.StatusTooManyRequests, ""), []time.Duration{0, 60 * s, 180 * s, 420 * s}},
		{"unavailable", 2, 0, status(http.StatusServiceUnavailable, ""), []time.Duration{0, 60 * s, 180 * s}},
		{"told when", 2, 0, status(http.StatusTooManyRequests, "7"), []time.Duration{0, 7 * s, 14 * s}},
		{"told at once", 2, 0, status(http.StatusServiceUnavailable, "0"), []time.Duration{0, 500 * ms, s}},
		{"told at once, and slow", 2, 2 * s, status(http.StatusServiceUnavailable, "0"), []time.Duration{0, 6 * s, 12 * s}},
		{"told a day", 2, 0, status(http.StatusTooManyRequests, "86400"), []time.Duration{0, 24 * time.Hour, 48 * time.Hour}},
		{"told ages", 2, 0, status(http.StatusTooManyRequests, "99999999999999999999"), []time.Duration{0, 24 * time.Hour}},
		{"told nonsense", 2, 0, status(http.StatusTooManyRequests, "soon"), []time.Duration{0, 60 * s}},
		{"told a negative", 2, 0, status(http.StatusTooManyRequests, "-5"), []time.Duration{0, 60 * s}},
		{"a very slow answer", 2, 5 * time.Hour, ok, []time.Duration{0, 6 * time.Hour}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPace(manners{rate: test.rate, concurrency: 1})
				for i, got := range asks(t, p, len(test.want), test.took, test.answer) {
					if got.Round(ms) != test.want[i] {
						t.Errorf("ask %d: got %s, want %s", i, got, test.want[i])
					}
				}
			})
		})
	}
}

func TestPaceRetryAfterDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(manners{rate: 2, concurrency: 1})
		at := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
		if got := asks(t, p, 2, 0, status(http.StatusTooManyRequests, at)); got[1] != 90*time.Second {
			t.Errorf("got %s, want 1m30s", got[1])
		}
		// It is a time ago by now.
		if got := asks(t, p, 2, 0, status(http.StatusTooManyRequests, at)); got[1] < time.Minute {
			t.Errorf("a date ago: got %s, want a minute at least", got[1])
		}
	})
}

func TestPaceBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(manners{rate: 2, concurrency: 1})
		busy, ok := status(http.StatusTooManyRequests, ""), status(http.StatusOK, "")
		began := asks(t, p, 10, 0, busy)
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
			if got := began[i+1] - began[i]; got != want*time.Minute {
				t.Errorf("refusal %d: got %s, want %dm", i+1, got, want)
			}
		}
		if time.Until(p.next) <= 2*p.interval {
			t.Error("a refused pace does not rest")
		}
		asks(t, p, 1, 0, ok)
		if time.Until(p.next) > 2*p.interval {
			t.Error("a pace rests that was answered")
		}
		if got := asks(t, p, 2, 0, busy); got[1] != time.Minute {
			t.Errorf("after an answer: got %s, want 1m", got[1])
		}
	})
}

func TestPaceConcurrency(t *testing.T) {
	for _, concurrency := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			p := newPace(manners{rate: 1000, concurrency: concurrency})
			var mu sync.Mutex
			var group sync.WaitGroup
			underWay, most := 0, 0
			begun := time.Now()
			for range 30 {
				group.Go(func() {
					done, err := p.begin(t.Context(), time.Now)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					underWay++
					most = max(most, underWay)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					underWay--
					mu.Unlock()
					done(status(http.StatusOK, ""))
				})
			}
			group.Wait()
			if most != concurrency {
				t.Errorf("concurrency %d: %d were under way", concurrency, most)
			}
			// Upstreams rest for twice the time that they are busy.
			if took, least := time.Since(begun), 30*time.Second/time.Duration(concurrency); took < least {
				t.Errorf("concurrency %d: got %s, want at least %s", concurrency, took, least)
			}
		})
	}
}

func TestPaceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(manners{rate: 0.01, concurrency: 1})
		done, err := p.begin(t.Context(), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		end := func(what string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			before := time.Now()
			if _, err := p.begin(ctx, time.Now); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("waiting for %s: got %v", what, err)
			}
			if got := time.Since(before); got != time.Second {
				t.Errorf("waiting for %s: it took %s, want 1s", what, got)
			}
		}
		end("a slot")
		done(status(http.StatusOK, ""))
		end("a turn")
		// Who gave up holds no slot.
		asks(t, p, 1, 0, status(http.StatusOK, ""))
	})
}
