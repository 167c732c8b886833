package crawl

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
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
// slow, refuse, or do not respond. All sites of a handler share one, by their ranks: see [schedule.Line]. It is safe
// for concurrent use.
type Limiter struct {
	rate     float64 // requests a second
	interval time.Duration
	most     int // requests at a time, of each side

	mu       sync.Mutex
	budget   budget        // of known pages
	writes   *rate.Limiter // the budget of writes: requests
	next     time.Time     // no request begins before
	cooldown cooldown      // of what the configuration names, and of upstreams that ask for it
	pause    Pause         // the last one
	free     [sides]int
	line     schedule.Line[*waiter]
	begins   bool        // a turn was granted, and its request waits for a computing slot
	timer    *time.Timer // grants the next turn; nil: it was never set
}

// side is whose requests at a time are counted together. A host that visitors named may have an upstream of its own,
// which hangs: sites that the configuration names do not wait for that.
type side uint8

const (
	bySettings side = iota
	byVisitors
	sides
)

func sideOf(of schedule.Rank) side {
	if of == schedule.Named {
		return bySettings
	}
	return byVisitors
}

// waiter waits for a turn.
type waiter struct {
	until   time.Time // no turn is wanted later; zero: there is no such time
	granted chan bool // false: the turn comes too late
}

// NewLimiter returns a Limiter for so many requests a second, so many at a time.
func NewLimiter(perSecond float64, concurrency int) *Limiter {
	return &Limiter{
		rate:     perSecond,
		interval: time.Duration(float64(time.Second) / perSecond),
		most:     concurrency,
		writes:   rate.NewLimiter(rate.Limit(perSecond/10), int(min(30*perSecond, mostWrites))),
		free:     [sides]int{bySettings: concurrency, byVisitors: concurrency},
	}
}

// PayForWrites takes requests from the budget of writes, though that has fewer.
func (l *Limiter) PayForWrites(requests int) { l.writes.ReserveN(time.Now(), requests) }

// Rate is how many requests a second it lets pass at most.
func (l *Limiter) Rate() float64 { return l.rate }

// Pause is how long nothing is requested, because of a response, or as there was none.
type Pause struct {
	Until  time.Time
	Status int // of the response; 0: there was none
}

// isFor429 reports whether requests are limited: then each one counts, also for the front page, and for a file.
func (p *Pause) isFor429() bool { return p.Status == http.StatusTooManyRequests }

// isAskedFor reports whether the site asked for the pause.
func (p *Pause) isAskedFor() bool { return p.isFor429() || p.Status == http.StatusServiceUnavailable }

// Paused returns the pause that has not ended; nil: there is none.
func (l *Limiter) Paused() *Pause {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkClock()
	// The clock may have been set back.
	if time.Now().Before(l.pause.Until) && !l.pause.Until.After(l.next) {
		p := l.pause
		return &p
	}
	return nil
}

// Resume leaves upstreams alone for as long as the Limiter before this one would have.
func (l *Limiter) Resume(before *Limiter) {
	// One after the other: both may be the same, as of a site that comes back while two configurations run.
	before.mu.Lock()
	backoff := before.cooldown.backoff
	next := before.next
	pause := before.pause
	before.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if pause.Until.After(l.pause.Until) {
		l.pause = pause
	}
	l.cooldown.backoff = max(l.cooldown.backoff, backoff)
	l.postpone(next)
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

// Take waits for a turn, and then for a computing slot; false: ctx ended, or its deadline is before the turn. Who has
// taken the turn calls Release with the same rank after the request, and gives the slot back.
func (l *Limiter) Take(ctx context.Context, of schedule.Rank, slots wait.Slots) bool {
	if ctx.Err() != nil {
		return false
	}
	w := &waiter{granted: make(chan bool, 1)}
	w.until, _ = ctx.Deadline()
	l.mu.Lock()
	l.line.Add(of, w)
	l.grant()
	l.mu.Unlock()
	select {
	case ok := <-w.granted:
		if !ok {
			return false
		}
	case <-ctx.Done():
		l.leave(of, w)
		return false
	}
	// Others compute for as long as they like: the next turn comes an interval after this one is used. Otherwise
	// several requests would go to an upstream at once when slots come free.
	hasSlot := slots.Take(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begins = false
	if hasSlot {
		l.next = time.Now().Add(l.interval)
	} else {
		l.free[sideOf(of)]++
	}
	l.grant()
	return hasSlot
}

// leave leaves the line, or gives back a turn that was granted meanwhile.
func (l *Limiter) leave(of schedule.Rank, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.line.Remove(of, w) {
		return
	}
	hasTurn := <-w.granted // who is no longer in the line was told already
	if !hasTurn {
		return
	}
	l.begins = false
	l.free[sideOf(of)]++
	l.grant()
}

// Release ends the request of a turn.
func (l *Limiter) Release(of schedule.Rank) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free[sideOf(of)]++
	l.grant()
}

// Single is a request besides those of a crawl.
type Single struct {
	Path   string
	Knocks bool // it is for the front page: it is made although the site pauses, and ends the pause if that is there again
	IsLong bool // it is for a list, which may take long: that says nothing of how long pages take
	Waits  bool // its response is known to be made, and it waits for its turn until ctx ends, whatever the pause
}

// admission says when a single request is made.
type admission uint8

const (
	atOnce admission = iota
	inTurn           // it waits for the limiter
	notNow           // the site pauses, and there is a later look
)

// admission decides when a request is made whose response is likely to be made. pause is the one that has not ended; nil:
// there is none. isLast: there is no later look, as in a build.
func (s *Single) admission(pause *Pause, isLast bool) admission {
	if pause == nil {
		return inTurn
	}
	// After a failure, only pages wait: of other documents, such as lists, each fails or not by itself.
	goesOn := !pause.isAskedFor() || s.Knocks && !pause.isFor429()
	if goesOn {
		return atOnce
	}
	if s.Waits || isLast {
		return inTurn
	}
	return notNow
}

// Do makes a single request, and notes the response. Where that is likely to be made, the request waits for its turn. ok is false
// if no request was made: the site pauses, or ctx ended, or its deadline is before the turn.
func (c *Crawler) Do(ctx context.Context, s Single, request func() (*Response, error)) (resp *Response, ok bool, err error) {
	l := c.o.Limiter
	pause := l.Paused()
	isPaced := s.Waits || c.likelyMade(&record.Record{Path: s.Path}) || pause != nil && pause.isFor429()
	when := atOnce
	if isPaced {
		when = s.admission(pause, c.o.Once)
	}
	if when == notNow {
		return nil, false, nil
	}
	// What other sources request would wait until the list has come.
	if when == inTurn && !s.IsLong {
		of := c.o.Rank()
		if !l.Take(ctx, of, nil) {
			return nil, false, nil
		}
		defer l.Release(of)
	}
	begun := time.Now()
	resp, err = request()
	if err != nil {
		resp = nil
	}
	// A request that was given up says nothing of the site.
	if resp != nil || ctx.Err() == nil {
		c.noteSingle(&s, resp, time.Since(begun), isPaced)
	}
	return resp, true, err
}

// noteSingle notes what a single request took, and its response; nil: there was none.
func (c *Crawler) noteSingle(s *Single, resp *Response, took time.Duration, isPaced bool) {
	// Pages would wait for twice as long as each refresh waits for the list, and never be fetched.
	if s.IsLong && resp != nil {
		took = 0
	}
	if isPaced || resp.isMade() {
		c.record(took, resp)
	}
	if resp == nil {
		return
	}
	c.made.put(backendOf(&record.Record{Path: s.Path}), resp.Made)
	if s.Knocks && resp.Status < http.StatusBadRequest {
		c.o.Limiter.resume(&c.cooldown)
	}
}

// record notes how long a request took, and its response; nil: there was none.
func (c *Crawler) record(took time.Duration, resp *Response) {
	if resp.isRefused() {
		c.refused.Store(c.now())
	}
	c.o.Limiter.record(c.o.Rank(), &c.cooldown, took, resp)
}

// AwaitTurn waits for a turn, as Take does, and gives it back at once: for a request that is made before or after. False:
// ctx ended, or its deadline is before the turn.
func (l *Limiter) AwaitTurn(ctx context.Context, of schedule.Rank) bool {
	if !l.Take(ctx, of, nil) {
		return false
	}
	l.Release(of)
	return true
}

// grant grants the next turn if it is due, or has it granted in time. Under mu.
func (l *Limiter) grant() {
	if l.begins {
		return // Take grants the next one, once it is known when this request begins
	}
	l.checkClock()
	if pause := time.Until(l.next); pause > 0 {
		l.grantAfter(pause)
		return
	}
	hasRoom := func(of schedule.Rank) bool { return l.free[sideOf(of)] > 0 }
	w, of, ok := l.line.Next(hasRoom)
	if !ok {
		return // until a request has ended, or somebody comes
	}
	l.free[sideOf(of)]--
	l.begins = true
	w.granted <- true
}

// grantAfter sets the timer, and sends those away for whom the next turn comes too late. Under mu.
func (l *Limiter) grantAfter(pause time.Duration) {
	isLate := func(w *waiter) bool { return !w.until.IsZero() && w.until.Before(l.next) }
	for _, w := range l.line.Reject(isLate) {
		w.granted <- false
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.line.IsEmpty() {
		return
	}
	l.timer = time.AfterFunc(pause, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.grant()
	})
}

// postpone lets no request begin before a time. Under mu.
func (l *Limiter) postpone(next time.Time) {
	if next.After(l.next) {
		l.next = next
		l.grant()
	}
}

// record notes how long a request took, and its response; nil: there was none. own is how long the site itself leaves
// its upstream alone: what that of a made-up host does says nothing about those of others.
func (l *Limiter) record(of schedule.Rank, own *cooldown, took time.Duration, resp *Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// An upstream that asks for a cooldown gets it from all sites, whoever was told.
	cooling := own
	if of == schedule.Named || isOverloaded(resp) {
		cooling = &l.cooldown
	}
	now := time.Now()
	pause := cooling.after(took, l.interval, l.most, now, resp)
	if cooling == own {
		own.until = now.Add(pause)
		pause = 0
	} else if cooling.backoff != 0 {
		l.pauseUntil(now.Add(pause), resp)
	}
	l.postpone(now.Add(max(pause, l.interval-took))) // also if it took no turn
}

// pauseUntil notes a pause because of a response; nil: there was none. One that is longer goes on. Under mu.
func (l *Limiter) pauseUntil(until time.Time, resp *Response) {
	if until.Before(l.pause.Until) {
		return
	}
	l.pause = Pause{Until: until}
	if resp != nil {
		l.pause.Status = resp.Status
	}
}

// resume ends a pause that no 429 asks for, as the site is there again.
func (l *Limiter) resume(own *cooldown) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own.until = time.Time{}
	if l.pause.isFor429() || time.Now().After(l.pause.Until) {
		return
	}
	l.pause = Pause{}
	l.cooldown.backoff = 0
	l.next = time.Now().Add(l.interval)
	l.grant()
}

// awaitAdmission waits until a 429 allows another request, be it for a file; false: ctx ended, or its deadline is before
// that.
func (l *Limiter) awaitAdmission(ctx context.Context) bool {
	p := l.Paused()
	if p == nil || !p.isFor429() {
		return ctx.Err() == nil
	}
	return awaitUntil(ctx, p.Until)
}

// isRefused reports whether a response is a 429; nil: there was none.
func (r *Response) isRefused() bool { return r != nil && r.Status == http.StatusTooManyRequests }

// isMade reports whether a response was made; nil: there was none.
func (r *Response) isMade() bool { return r != nil && r.Made }

// isOverloaded reports whether a response asks for fewer requests (RFC 6585, section 4; RFC 9110, section 15.6.4); nil:
// there was none.
func isOverloaded(resp *Response) bool {
	if resp == nil {
		return false
	}
	return resp.isRefused() || resp.Status == http.StatusServiceUnavailable
}

// cooldown is for how long upstreams are left alone.
type cooldown struct {
	backoff time.Duration // after the last response; 0: it was no refusal
	until   time.Time     // of a site's own upstream
}

// after returns for how long upstreams are left alone after a response; nil: there was none.
func (c *cooldown) after(took, interval time.Duration, most int, now time.Time, resp *Response) time.Duration {
	// With several requests at a time, each leaves its part of the upstream alone.
	pause := min(slowness*took/time.Duration(most), maxBackoff)
	if resp == nil {
		c.backoff = min(max(2*c.backoff, interval), maxBackoff)
		return max(pause, c.backoff)
	}
	if isOverloaded(resp) {
		c.backoff = min(max(2*c.backoff, firstBackoff), maxBackoff)
		return max(pause, wait.RetryAfter(resp.Header, now, c.backoff))
	}
	c.backoff = 0
	return pause
}

// awaitCooldown waits until the site's own upstream may be requested again; false: ctx ended, or its deadline is before
// that.
func (l *Limiter) awaitCooldown(ctx context.Context, own *cooldown) bool {
	l.mu.Lock()
	until := own.until
	l.mu.Unlock()
	return awaitUntil(ctx, until)
}

// awaitUntil waits for a time; false: ctx ended, or its deadline is before that.
func awaitUntil(ctx context.Context, until time.Time) bool {
	pause := min(time.Until(until), maxBackoff) // it is longer where the clock was set back
	if pause <= 0 {
		return ctx.Err() == nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < pause {
		return false
	}
	wait.Within(pause, ctx.Done())
	return ctx.Err() == nil
}

// nextOf is Next for a site that leaves its own upstream alone.
func (l *Limiter) nextOf(own *cooldown) time.Time {
	next := l.Next()
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.until.After(next) {
		return own.until
	}
	return next
}
