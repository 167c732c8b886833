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

// final are the statuses after which nothing else is to be expected.
var final = map[Kind][]int{IndexNow: {400, 422}, Ping: {404, 410}, Hub: {404, 410}}

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
	t.Last, t.Next = now, now.Add(t.Kind.interval())
	t.Sent += len(t.Noted)
	q.version++
	return q.newJob(t), now
}

// End says what came of a job.
func (q *Queue) End(job *Job, o Outcome, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := job.target
	t.Last, t.Next, t.Reason = now.UTC(), now.UTC().Add(t.Kind.interval()), o.Reason
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
		backOff = max(backOff, t.Kind.interval())
	}
	t.Next = t.Last.Add(backOff)
	if o.Status == http.StatusForbidden && t.Kind == IndexNow {
		t.Forbidden = cmp.Or(t.Forbidden, t.Last)
		t.Stopped = t.Last.Sub(t.Forbidden) >= day && t.Failures >= keyFailures
	}
}

// Run sends what is due until ctx ends. save stores the queue, see [Queue.Save]: what cannot be stored is not sent. done
// is called after each job.
func (q *Queue) Run(ctx context.Context, c *Client, now func() time.Time, save func(context.Context, []byte) error, done func()) {
	for ctx.Err() == nil {
		job, next := q.Begin(now())
		saving, cancel := context.WithTimeout(ctx, savePatience)
		err := q.Save(saving, save)
		cancel()
		if job == nil {
			var timer <-chan time.Time
			if !next.IsZero() || err != nil {
				timer = time.After(min(max(next.Sub(now()), time.Second), time.Minute)) // clocks jump
			}
			select {
			case <-q.changed:
			case <-timer:
			case <-ctx.Done():
			}
			continue
		}
		o := Outcome{Reason: excerpt(fmt.Sprintf("nothing was sent: storing the queue: %v", err))}
		if err == nil {
			o = c.Send(ctx, job)
		}
		if ctx.Err() == nil { // else the note stays: the job may have been received
			q.End(job, o, now())
			done()
		}
	}
}
