package crawl

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	firstBackoff = time.Minute
	maxBackoff   = time.Hour
	slowness     = 2                      // an upstream is left alone for twice as long as it took to respond
	stopPatience = 300 * time.Millisecond // with fetches under way when a crawl is stopped
	slotTime     = 100 * time.Millisecond // for which a fetch may hold a computing slot
)

// Limiter limits what fetches send to upstreams: to a rate, to a number at a time, and to less than that while they are
// slow, refuse, or do not respond. All sites of a handler share one. It is safe for concurrent use.
type Limiter struct {
	rate     float64 // requests a second
	interval time.Duration
	slots    wait.Slots

	mu      sync.Mutex
	budget  budget        // of known pages
	next    time.Time     // no request begins before
	backoff time.Duration // after the last response; 0: it was no refusal
}

// NewLimiter returns a Limiter for so many requests a second, so many at a time.
func NewLimiter(rate float64, concurrency int) *Limiter {
	return &Limiter{
		rate:     rate,
		interval: time.Duration(float64(time.Second) / rate),
		slots:    wait.NewSlots(concurrency),
	}
}

// Rate is how many requests a second it lets pass at most.
func (l *Limiter) Rate() float64 { return l.rate }

// Resume leaves upstreams alone for as long as the Limiter before this one would have.
func (l *Limiter) Resume(before *Limiter) {
	before.mu.Lock()
	backoff := before.backoff
	next := before.next
	before.mu.Unlock() // it may be l, as of a site that comes back while two configurations run
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backoff = max(l.backoff, backoff)
	if next.After(l.next) {
		l.next = next
	}
}

// Next is when the next request may begin, as far as it is known.
func (l *Limiter) Next() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkClock()
	return l.next
}

// checkClock lets the next request begin if it would have to wait for longer than any limit is: then the clock was set
// back. Go's monotonic clock prevents that only where the clock was before 2157. Under mu.
func (l *Limiter) checkClock() {
	longest := max(l.interval, wait.MaxRetryAfter)
	now := time.Now()
	if l.next.Sub(now) > longest {
		l.next = now
	}
}

// Wait waits for a turn and for a slot, and takes both at once; false: ctx ended, or its deadline is before the turn.
func (l *Limiter) Wait(ctx context.Context, slots wait.Slots) bool {
	for slots.Take(ctx) {
		pause := l.turn()
		if pause <= 0 {
			return true
		}
		slots.Release() // others compute meanwhile
		deadline, ok := ctx.Deadline()
		if ok && time.Until(deadline) < pause {
			return false
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return false
}

// Do makes one request to an upstream in its turn, and notes the response, for requests besides those of a crawl. ok is
// false if ctx ended before, or its deadline is before the turn: then no request was made.
func (l *Limiter) Do(ctx context.Context, request func() (*Response, error)) (resp *Response, ok bool, err error) {
	if !l.slots.Take(ctx) {
		return nil, false, nil
	}
	defer l.slots.Release()
	if !l.Wait(ctx, nil) {
		return nil, false, nil
	}
	begun := time.Now()
	resp, err = request()
	if err != nil {
		resp = nil
	}
	l.record(time.Since(begun), resp)
	return resp, true, err
}

// turn takes the next turn, or returns the time until then.
func (l *Limiter) turn() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkClock()
	if pause := time.Until(l.next); pause > 0 {
		return pause
	}
	l.next = time.Now().Add(l.interval)
	return 0
}

// record notes how long a request took, and its response; nil: there was none.
func (l *Limiter) record(took time.Duration, resp *Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	pause := min(slowness*took/time.Duration(cap(l.slots)), maxBackoff)
	pause = max(pause, l.interval-took) // also if it took no turn
	switch {
	case resp == nil:
		l.backoff = min(max(2*l.backoff, l.interval), maxBackoff)
		pause = max(pause, l.backoff)
	case resp.Status == http.StatusTooManyRequests || resp.Status == http.StatusServiceUnavailable:
		l.backoff = min(max(2*l.backoff, firstBackoff), maxBackoff)
		pause = max(pause, wait.RetryAfter(resp.Header, now, l.backoff))
	default:
		l.backoff = 0
	}
	if next := now.Add(pause); next.After(l.next) {
		l.next = next
	}
}
