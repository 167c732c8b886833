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
		due := q.begin(t, now)
		if !due.After(now) && t.noted() > 0 {
			return q.newJob(t), time.Time{}
		}
		if !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return nil, next
}

// begin notes what a target is to be sent now, or returns when something may be due.
func (q *Queue) begin(t *target, now time.Time) (due time.Time) {
	p := q.plan(t, now)
	if p.due.After(now) {
		return p.due
	}
	switch {
	case p.waits == ForResponse && t.Resent: // and its outcome is not known a second time
		t.Dropped += t.noted()
		t.received(now)
		return q.begin(t, now)
	case p.waits == ForResponse:
		t.Resent = true
	case len(p.added)+len(p.others) == 0:
		return p.due
	default:
		t.NotedNew = slices.Clone(p.added)
		t.Noted = slices.Clone(p.others)
		t.Added.remove(p.added)
		t.Queued.remove(p.others)
	}
	t.Last = now
	t.Next = now.Add(gap)
	t.Sent += t.noted()
	return now
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
	t.Next = now.Add(gap)
	t.Reason = o.Reason
	if !o.Requested {
		t.Sent -= job.URLs
	}
	switch {
	case o.Status/100 == 2: // 202 means that the key is still to be checked
		t.Accepted += job.URLs
		t.Failures = 0
		t.Forbidden = 0
		t.received(now)
	case slices.Contains(final[t.Kind], o.Status):
		t.Refused += job.URLs
		t.Stopped = true
		t.forget()
	default:
		if o.Requested && o.Status == 0 { // it may have been received
			t.Recent = t.Recent.with(now, t.NotedNew, t.Noted)
		}
		t.Dropped += t.add(t.NotedNew, t.Noted) // which were the newest
		t.Next = now.Add(t.backOff(o))
		t.forget()
	}
	if t.Stopped {
		t.Reason += "; nothing is sent until the configuration is reloaded"
	}
	return t.Status
}

// backOff counts a failure, and returns the time until the next request.
func (t *target) backOff(o Outcome) time.Duration {
	least := time.Duration(0)
	switch {
	case o == (Outcome{}):
		return 0
	case o.Status == http.StatusForbidden && t.Kind == IndexNow:
		t.Forbidden++
		t.Stopped = t.Forbidden >= maxRefused
	case o.Status == http.StatusTooManyRequests && o.RetryAfter == 0:
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
	Gone   func(ctx context.Context, path string) (bool, error) // whether a removed page is: it fails, leads elsewhere, or asks not to be indexed
	Save   func(ctx context.Context) error                      // stores the queue; what cannot be stored is not sent
	Done   func(job *Job, o Outcome, s Status)                  // called after each job, with the status of its target
}

// Run sends what is due until ctx ends or the runner is paused. Around a reload, it waits until another runner has left.
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
	// Also without a job: what is queued has changed.
	saving, cancel := context.WithTimeout(ctx, savePatience)
	err := r.Save(saving)
	cancel()
	if job == nil && next.IsZero() {
		return time.Minute
	}
	if job == nil {
		return min(max(next.Sub(r.Now()), time.Second), time.Minute)
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
	if !o.Requested { // else the note stays: the job may have been received
		q.End(job, Outcome{}, r.Now())
	}
	return 0
}
