package announce

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Begin returns the job that is due, and notes it; nil: none is due before next, or before the next [Queue.Update] if
// that is zero. The note is to be stored before the job is sent, and [Queue.End] to be called after that. A job without
// End, as after a restart, is due again, once, after its target's interval. A queue has one job at a time.
func (q *Queue) Begin(now time.Time) (job *Job, next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now = now.UTC()
	q.correct(now)
	_, next = q.state.unchecked()
	for _, t := range q.state.Targets {
		due, isNoted := q.begin(t, now)
		if isNoted {
			return q.newJob(t), time.Time{}
		}
		if !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return nil, next
}

// begin notes what a target is to be sent now, if there is something, or returns when something may be due; zero: that
// depends on what happens.
func (q *Queue) begin(t *target, now time.Time) (due time.Time, isNoted bool) {
	p := q.plan(t, now)
	if p.due.After(now) {
		return p.due, false
	}
	isUnanswered := p.waits == ForResponse
	if isUnanswered && t.Resent {
		// Its outcome is not known a second time. It is taken for received: an endpoint is not to be sent the same over
		// and over.
		t.Dropped += t.noted()
		t.received(now)
		return now, false // what else there is comes next
	}
	isNothing := len(p.added)+len(p.others) == 0
	if !isUnanswered && isNothing {
		return p.due, false
	}
	if isUnanswered {
		t.Resent = true
	} else {
		t.note(p)
	}
	t.Last = now
	t.Next = now.Add(Gap)
	t.Sent += t.noted()
	return now, true
}

// note notes what is sent now, which does not wait any more.
func (t *target) note(p plan) {
	t.NotedNew = slices.Clone(p.added)
	t.Noted = slices.Clone(p.others)
	t.Added.remove(p.added)
	t.Queued.remove(p.others)
}

// received counts what was noted as received, and forgets the note.
func (t *target) received(now time.Time) {
	t.Recent = t.Recent.with(now, t.NotedNew, t.Noted)
	t.Spent = t.Spent.with(now.Unix()/3600, t.noted(), len(t.NotedNew))
	t.forget()
}

// forget forgets what was noted.
func (t *target) forget() {
	t.NotedNew = nil
	t.Noted = nil
	t.Resent = false
}

// End says what came of a job, and returns the status of its target. After the zero Outcome, the job is due at once.
func (q *Queue) End(job *Job, o Outcome, now time.Time) Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := job.target
	now = now.UTC()
	t.Last = now
	t.Reason = o.Reason
	if !o.Requested {
		t.Sent -= job.URLs // which Begin has counted
	}
	switch {
	case o == (Outcome{}):
		// Nobody has tried to send it.
		t.queueAgain()
		t.Next = now
	case o.Status/100 == 2: // 202 means that the key is still to be checked
		t.Next = now.Add(Gap)
		t.Accepted += job.URLs
		t.Failures = 0
		t.Forbidden = 0
		t.received(now)
	case slices.Contains(protocols[t.Kind].final, o.Status):
		t.Next = now.Add(Gap)
		t.Refused += job.URLs
		t.Stopped = true
		t.forget()
	default:
		mayBeReceived := o.Requested && o.Status == 0
		if mayBeReceived {
			t.Recent = t.Recent.with(now, t.NotedNew, t.Noted)
		}
		t.queueAgain()
		t.Next = now.Add(t.backOff(o))
	}
	if t.Stopped {
		t.Reason += "; nothing is sent until the configuration is reloaded"
	}
	return t.Status
}

// queueAgain queues what was noted, which is to be sent later.
func (t *target) queueAgain() {
	t.Dropped += t.add(t.NotedNew, t.Noted) // which were the newest
	t.forget()
}

// backOff counts a failure, and returns the time until the next request.
func (t *target) backOff(o Outcome) time.Duration {
	// A key may be refused for over a day before nothing is sent any more. Counted and not timed, as clocks jump.
	if o.Status == http.StatusForbidden && t.Kind == IndexNow {
		t.Forbidden++
		t.Stopped = t.Forbidden >= maxRefused
	}
	least := time.Duration(0)
	if o.Status == http.StatusTooManyRequests && o.RetryAfter == 0 {
		least = tooMany
	}
	t.Failures++
	doublings := min(max(t.Failures-1, 0), 9) // more have no room in a Duration, and what is stored may be negative
	return max(min(firstBackOff<<doublings, maxBackOff), least, o.RetryAfter)
}

// Runner is what sends the jobs of a queue: the part of a site in one configuration.
type Runner struct {
	Config Config
	Client *Client
	Now    func() time.Time
	Paused func() bool // another configuration has the site, or it is an alias of another one
	Fetch  Fetch

	// Gone reports whether a removed page is gone: it fails, leads elsewhere, or asks not to be indexed.
	Gone func(ctx context.Context, path string) (bool, error)

	// Save stores the queue. What cannot be stored is not sent.
	Save func(ctx context.Context) error

	// Done is called after each job, with the status of its target.
	Done func(job *Job, o Outcome, s Status)
}

// Run sends what is due until ctx ends or the runner is paused. Around a reload, it waits until another runner has
// left.
func (q *Queue) Run(ctx context.Context, r *Runner) {
	if r.Paused() || !q.slot.Take(ctx) {
		return
	}
	defer q.slot.Release()
	q.configure(r.Config)
	for ctx.Err() == nil && !r.Paused() {
		pause := q.send(ctx, r)
		select {
		case <-q.changed:
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// send sends the job that is due, and returns the time until the next one: at most a minute, as clocks jump.
func (q *Queue) send(ctx context.Context, r *Runner) time.Duration {
	q.check(ctx, r)
	job, next := q.Begin(r.Now())

	// The note is stored before the request, so that a process that is killed sends the job once more at most. Also
	// without a job: what is queued has changed.
	saving, cancel := context.WithTimeout(ctx, savePatience)
	err := r.Save(saving)
	cancel()
	if job == nil && next.IsZero() {
		return time.Minute
	}
	if job == nil {
		return min(max(next.Sub(r.Now()), time.Second), time.Minute)
	}

	// Storing may have taken seconds, in which another process has stored a queue of its own: it sends what was noted.
	if err == nil && r.Paused() {
		q.End(job, Outcome{}, r.Now())
		return 0
	}

	var o Outcome
	if err != nil {
		o.Reason = excerpt(fmt.Sprintf("nothing was sent: storing the queue: %v", err))
	} else {
		o = r.Client.Send(ctx, job, r.Fetch)
	}
	if ctx.Err() == nil {
		status := q.End(job, o, r.Now())
		r.Done(job, o, status)
		return 0
	}

	// Stopped in the middle, as by a reload. If the request was made, the note stays: the job may have been received.
	if !o.Requested {
		q.End(job, Outcome{}, r.Now())
	}
	return 0
}
