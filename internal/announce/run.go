package announce

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Begin returns the job that is due, and notes it; nil: none is due before next, or before the next [Queue.Update] if
// that is zero. The note is to be stored before the job is sent, and [Queue.End] to be called after that. A job without
// End, as after a restart, is due again, once, after its target's interval. A queue has one job at a time.
func (q *Queue) Begin(now time.Time) (job *Job, next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.state.Absent) > 0 { // which are to be checked
		next = now
	}
	for _, t := range q.state.Targets {
		job, due := q.begin(t, now.UTC())
		if job != nil {
			return job, time.Time{}
		}
		if due.IsZero() {
			continue
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return nil, next
}

// begin is Begin for one target. A zero due: there is nothing to send.
func (q *Queue) begin(t *target, now time.Time) (job *Job, due time.Time) {
	longest := wait.MaxRetryAfter
	if t.Failures <= 0 {
		longest = intervals[t.Kind]
	}
	// Counted from Last, which is corrected below, and bounded, as what is stored may be damaged.
	pause := min(max(t.Next.Sub(t.Last), 0), longest)
	for _, at := range []*time.Time{&t.Last, &t.Day} {
		if at.After(now) {
			*at = now // the clock was set back
		}
	}
	t.Next = t.Last.Add(pause)
	if t.Stopped || len(t.Queued)+len(t.Noted) == 0 {
		return nil, time.Time{}
	}
	if t.Next.After(now) {
		return nil, t.Next
	}
	if t.Resent { // and its outcome is not known a second time
		t.Dropped += len(t.Noted)
		t.Noted = nil
		t.Resent = false
		return q.begin(t, now)
	}
	if len(t.Noted) > 0 {
		t.Resent = true
	} else if !q.note(t, now) {
		return nil, t.Day.Add(day)
	}
	t.Last = now
	t.Next = now.Add(intervals[t.Kind])
	t.Sent += len(t.Noted)
	return q.newJob(t), now
}

// note notes the newest of what is queued, as much as a request and the day have room for; false: the day has none.
func (q *Queue) note(t *target, now time.Time) bool {
	if now.Sub(t.Day) >= day {
		t.Day = now
		t.Used = 0
	}
	n := cmp.Or(q.config.Daily, max(q.state.Listed/10, leastDay)) - t.Used
	if t.Kind != IndexNow {
		n = 1
	}
	if n <= 0 {
		return false
	}
	first := max(len(t.Queued)-min(n, maxBatch), 0)
	t.Noted = slices.Clone(t.Queued[first:])
	t.Queued = t.Queued[:first]
	t.Used += len(t.Noted)
	return true
}

// End says what came of a job, and returns the status of its target. After the zero Outcome, the job is due at once.
func (q *Queue) End(job *Job, o Outcome, now time.Time) Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := job.target
	t.Last = now.UTC()
	t.Next = t.Last.Add(intervals[t.Kind])
	t.Reason = o.Reason
	if !o.Requested {
		t.Sent -= job.URLs
	}
	switch {
	case o.Status/100 == 2: // 202 means that the key is still to be checked
		t.Accepted += job.URLs
		t.Failures = 0
		t.Forbidden = 0
	case slices.Contains(final[t.Kind], o.Status):
		t.Refused += job.URLs
		t.Stopped = true
	default:
		t.Dropped += t.Queued.add(t.Noted) // which were the newest
		t.Used -= job.URLs
		t.Next = t.Last.Add(t.backOff(o))
	}
	if t.Stopped {
		t.Reason += "; nothing is sent until the configuration is reloaded"
	}
	t.Noted = nil
	t.Resent = false
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
	case o.Status == 0 && o.Requested: // it may have been received
		least = intervals[t.Kind]
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
	Save   func(ctx context.Context) error     // stores the queue; what cannot be stored is not sent
	Done   func(job *Job, o Outcome, s Status) // called after each job, with the status of its target
}

// Run sends what is due until ctx ends or the runner is paused. Around a reload, it waits until another runner has left.
func (q *Queue) Run(ctx context.Context, r *Runner) {
	if r.Paused() || !q.turn.Take(ctx) {
		return
	}
	defer q.turn.Release()
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

// check finds out which of some removed pages are gone, and queues these.
func (q *Queue) check(ctx context.Context, r *Runner) {
	q.mu.Lock()
	absent := slices.Clone(q.state.Absent[:min(len(q.state.Absent), maxChecks)])
	q.mu.Unlock()
	var gone list
	for _, path := range absent {
		status, _, err := r.Fetch(ctx, path)
		if err != nil {
			continue
		}
		if status == http.StatusNotFound || status == http.StatusGone {
			gone = append(gone, path)
		}
	}
	if ctx.Err() != nil {
		return // they are checked again
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state.Absent.remove(absent)
	for _, t := range q.state.Targets {
		if t.Kind == IndexNow {
			t.Dropped += t.Queued.add(gone)
		}
	}
}
