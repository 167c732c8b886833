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
	for _, t := range q.state.Targets {
		job, due := q.begin(t, now.UTC())
		if job != nil {
			return job, time.Time{}
		}
		if next.IsZero() || !due.IsZero() && due.Before(next) {
			next = due
		}
	}
	return nil, next
}

// begin is Begin for one target. A zero due: there is nothing to send.
func (q *Queue) begin(t *target, now time.Time) (job *Job, due time.Time) {
	pause := min(max(t.Next.Sub(t.Last), 0), wait.MaxRetryAfter)
	for _, at := range []*time.Time{&t.Last, &t.Forbidden, &t.Day} {
		if at.After(now) {
			*at = now // the clock was set back
		}
	}
	t.Next = t.Last.Add(pause)
	isDue := !t.Next.After(now)
	if isDue && t.Resent {
		t.Dropped += len(t.Noted)
		t.Noted, t.Resent = nil, false
		q.version++
	}
	switch {
	case t.Stopped || len(t.Queued)+len(t.Noted) == 0:
		return nil, time.Time{}
	case !isDue:
		return nil, t.Next
	case len(t.Noted) > 0:
		t.Resent = true
	default:
		n := 1
		if t.Kind == IndexNow {
			if now.Sub(t.Day) >= day {
				t.Day, t.Used = now, 0
			}
			n = cmp.Or(q.config.Daily, max(q.state.Listed/10, leastDay)) - t.Used
		}
		if n <= 0 {
			return nil, t.Day.Add(day)
		}
		first := max(len(t.Queued)-min(n, maxBatch), 0)
		t.Queued, t.Noted = t.Queued[:first], slices.Clone(t.Queued[first:])
		t.Used += len(t.Noted)
	}
	t.Last, t.Next = now, now.Add(intervals[t.Kind])
	t.Sent += len(t.Noted)
	q.version++
	return q.newJob(t), now
}

// End says what came of a job, and returns the status of its target.
func (q *Queue) End(job *Job, o Outcome, now time.Time) Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := job.target
	t.Last, t.Next, t.Reason = now.UTC(), now.UTC().Add(intervals[t.Kind]), o.Reason
	switch {
	case o.Status/100 == 2: // 202 means that the key is still to be checked
		t.Accepted += job.URLs
		t.Failures, t.Forbidden = 0, time.Time{}
	case slices.Contains(final[t.Kind], o.Status):
		t.Refused += job.URLs
		t.Stopped = true
	default:
		t.fail(job, o)
	}
	if t.Stopped {
		t.Reason += "; nothing is sent until the configuration is reloaded"
	}
	t.Noted, t.Resent = nil, false
	q.version++
	return t.Status
}

// fail queues again what was not accepted, and says when it is due.
func (t *target) fail(job *Job, o Outcome) {
	t.queue(t.Queued, t.Noted) // which were the newest
	t.Used = max(t.Used-job.URLs, 0)
	backOff := min(firstBackOff<<min(t.Failures, 9), maxBackOff)
	t.Failures++
	switch {
	case o.RetryAfter > 0:
		backOff = max(backOff, o.RetryAfter)
	case o.Status == http.StatusTooManyRequests:
		backOff = max(backOff, tooMany)
	case o.Status == 0: // it may have been received
		backOff = max(backOff, intervals[t.Kind])
	}
	t.Next = t.Last.Add(backOff)
	if o.Status == http.StatusForbidden && t.Kind == IndexNow {
		t.Forbidden = cmp.Or(t.Forbidden, t.Last)
		t.Stopped = t.Last.Sub(t.Forbidden) >= day && t.Failures >= keyFailures
	}
}

// Runner is what sends the jobs of a queue: the part of a site in one configuration.
type Runner struct {
	Config Config
	Client *Client
	Now    func() time.Time
	Paused func() bool // nothing is sent, as another configuration has the site, or it is an alias of another one

	Gone func(ctx context.Context, path string) bool  // whether a page returns 404 or 410 now
	Save func(ctx context.Context, data []byte) error // see [Queue.Save]: what cannot be stored is not sent
	Done func(job *Job, o Outcome, s Status)          // called after each job, with the status of its target
}

// Run sends what is due until ctx ends. Around a reload, two runners may run, of which one is paused.
func (q *Queue) Run(ctx context.Context, r *Runner) {
	for ctx.Err() == nil {
		pause, changed := time.Minute, q.changed
		if r.Paused() {
			changed = nil // it is for the other runner
		} else if q.turn.Take(ctx) {
			pause = q.send(ctx, r)
			q.turn.Release()
		}
		select {
		case <-changed:
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// send sends the job that is due, and returns the time until the next one: at most a minute, as clocks jump.
func (q *Queue) send(ctx context.Context, r *Runner) time.Duration {
	if q.runner != r {
		q.runner = r
		q.configure(r.Config)
	}
	more := q.check(ctx, r)
	job, next := q.Begin(r.Now())
	saving, cancel := context.WithTimeout(ctx, savePatience)
	err := q.Save(saving, r.Save)
	cancel()
	switch {
	case job == nil && more:
		return 0
	case job == nil && !next.IsZero():
		return min(max(next.Sub(r.Now()), time.Second), time.Minute)
	case job == nil:
		return time.Minute
	}
	o := Outcome{Reason: excerpt(fmt.Sprintf("nothing was sent: storing the queue: %v", err))}
	if err == nil {
		o = r.Client.Send(ctx, job)
	}
	if ctx.Err() == nil { // else the note stays: the job may have been received
		r.Done(job, o, q.End(job, o, r.Now()))
	}
	return 0
}

// check finds out which of some removed pages are gone, and queues these. more: there are further ones.
func (q *Queue) check(ctx context.Context, r *Runner) (more bool) {
	q.mu.Lock()
	absent := slices.Clone(q.state.Absent[:min(len(q.state.Absent), maxChecks)])
	q.mu.Unlock()
	gone := slices.DeleteFunc(slices.Clone(absent), func(path string) bool { return !r.Gone(ctx, path) })
	if len(absent) == 0 || ctx.Err() != nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state.Absent = slices.DeleteFunc(q.state.Absent, func(path string) bool { return slices.Contains(absent, path) })
	q.version++
	for _, t := range q.state.Targets {
		if t.Kind == IndexNow {
			t.queue(t.Queued, gone)
		}
	}
	return len(q.state.Absent) > 0
}
