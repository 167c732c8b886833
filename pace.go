package sitemap

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	firstBackoff  = time.Minute
	maxBackoff    = time.Hour
	maxRetryAfter = 24 * time.Hour
	slownessPart  = 2 // an upstream rests twice as long as it took to answer
)

// pace keeps what asking sends to a site's upstreams to a rate, to a number at a
// time, and lower than that while they are slow or say that it is too much.
type pace struct {
	interval time.Duration // between two asks
	slots    chan struct{}

	*rests
}

// rests is how long upstreams are left alone. It outlives a configuration.
type rests struct {
	mu      sync.Mutex
	next    time.Time     // no ask begins before
	backoff time.Duration // after the next refusal; 0: the last ask was answered
}

func newPace(a manners) *pace {
	return &pace{
		interval: time.Duration(float64(time.Second) / a.rate),
		slots:    make(chan struct{}, a.concurrency),
		rests:    new(rests),
	}
}

// begin waits until an ask may begin; the error is ctx's. done is to be called with
// what came of it.
func (p *pace) begin(ctx context.Context, now func() time.Time) (done func(*Answer), err error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := p.turn(ctx, now); err != nil {
		<-p.slots
		return nil, err
	}
	begun := now()
	return func(answer *Answer) {
		p.end(begun, now(), answer)
		<-p.slots
	}, nil
}

// turn waits for the next turn of who may ask already; the error is ctx's.
func (p *pace) turn(ctx context.Context, now func() time.Time) error {
	for {
		wait := p.take(now())
		if wait <= 0 {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// take takes the next turn, or says how long it is until then.
func (p *pace) take(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := p.next.Sub(now); wait > 0 {
		return min(wait, maxRetryAfter)
	}
	p.next = now.Add(p.interval)
	return 0
}

// end notes how an ask went; nil: nothing answered.
func (p *pace) end(begun, now time.Time, answer *Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slow := slownessPart * now.Sub(begun) / time.Duration(cap(p.slots))
	rest, most := slow, maxBackoff
	switch {
	case answer != nil && (answer.Status == http.StatusTooManyRequests || answer.Status == http.StatusServiceUnavailable):
		p.backoff = min(max(2*p.backoff, firstBackoff), maxBackoff)
		rest = max(rest, p.backoff)
		if d, ok := retryAfterOf(answer.Header, now); ok {
			rest, most = max(slow, d), maxRetryAfter
		}
	case answer == nil:
		p.backoff = min(max(2*p.backoff, p.interval), maxBackoff)
		rest = max(rest, p.backoff)
	default:
		p.backoff = 0
	}
	if next := now.Add(min(rest, most)); next.After(p.next) {
		p.next = next
	}
}

// retryAfterOf reads Retry-After (RFC 9110, section 10.2.3).
func retryAfterOf(header http.Header, now time.Time) (time.Duration, bool) {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now), true
	}
	return 0, false
}
