package announce

import (
	"context"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// Runner is what a site in one configuration has for its announcer.
type Runner struct {
	Client *Client
	Now    func() time.Time
	Fetch  Fetch

	// Ready calls [Announcer.Load], and reports whether this process is to send what is due.
	Ready func(ctx context.Context) bool

	// Records returns those of what is published; nil: there are none.
	Records func() *record.Generation

	// Done is called after each request, with the number of its URLs and the status of its target.
	Done func(urls int, o Outcome, s Status)

	// Failed is called with what failed of reading records or storing cursors; nil: what came of a request is stored.
	Failed func(err error)
}

// Run sends what is due until ctx ends. Around a reload, it waits until another runner has left.
func (a *Announcer) Run(ctx context.Context, r *Runner) {
	if !a.slot.Take(ctx) {
		return
	}
	defer a.slot.Release()
	for ctx.Err() == nil {
		pause := time.Minute // at most, as clocks jump
		if r.Ready(ctx) {
			pause = a.tellAll(ctx, r)
		}
		select {
		case <-a.published:
		case <-time.After(max(pause, time.Second)):
		case <-ctx.Done():
		}
	}
}

// tellAll tells each target what is due, and returns the time until it is to be called again.
func (a *Announcer) tellAll(ctx context.Context, r *Runner) time.Duration {
	a.mu.Lock()
	targets := a.state.Targets
	// After a start, what was published is not known yet.
	if a.documents == nil {
		targets = nil
	}
	a.mu.Unlock()
	pause := time.Minute
	for _, t := range targets {
		next := a.tell(ctx, r, t)
		if !next.IsZero() {
			pause = min(pause, next.Sub(r.Now()))
		}
	}
	return pause
}

// tell tells a target what is due, and returns when it may be told more; zero: nothing waits.
func (a *Announcer) tell(ctx context.Context, r *Runner, t *target) (next time.Time) {
	now := r.Now()
	a.mu.Lock()
	next = t.due(a.config.Daily, now)
	// Reading all changes takes long: until the target is due, only what is published anew is worth it.
	isCounted := t.isCounted && next.After(now)
	if isCounted && t.Waiting == 0 {
		next = time.Time{}
	}
	t.isCounted = true
	a.mu.Unlock()
	if isCounted {
		return next
	}
	b, err := a.choose(ctx, r, t, now)
	if err != nil {
		r.Failed(err)
		return time.Time{}
	}
	a.mu.Lock()
	t.Waiting = b.waiting
	n := &notice{t.Target, a.config, b.changes}
	n.Key = a.state.Key
	a.mu.Unlock()
	switch {
	case b.waiting == 0:
		return time.Time{}
	case next.After(now):
		return next
	case len(b.changes) == 0 && b.next < now.Unix(): // it waits for the end of a selection
		return time.Time{}
	case len(b.changes) == 0:
		return time.Unix(b.next+1, 0)
	}

	o := n.checkKeyFile(ctx, r.Fetch)
	if o.Reason == "" {
		a.mu.Lock()
		t.begin(&b, now)
		a.mu.Unlock()
		// It is stored before it is sent, so that a process that is killed sends it again no sooner than it may.
		err = a.Save(ctx)
		if err != nil {
			r.Failed(err)
			return time.Time{}
		}
		o = r.Client.send(ctx, n)
	}
	// A request that is stopped, as by a reload, may have been received.
	if ctx.Err() != nil {
		return time.Time{}
	}
	a.mu.Lock()
	t.end(&b, o, r.Now())
	s := t.Status
	a.mu.Unlock()
	r.Done(len(b.changes), o, s)
	r.Failed(a.Save(ctx))
	return r.Now()
}

// choose chooses what a target can be told now.
func (a *Announcer) choose(ctx context.Context, r *Runner, t *target, now time.Time) (batch, error) {
	a.mu.Lock()
	told := t.Told
	n := t.left(a.config.Daily, now)
	document := a.documents[t.Kind]
	before := now.Unix()
	if a.selecting != 0 {
		before = min(before, a.selecting)
	}
	a.mu.Unlock()

	if t.Kind != IndexNow && (document == "" || document == told.Path) {
		return batch{}, nil
	}
	if t.Kind != IndexNow {
		return batch{changes: []Change{{Path: document}}, waiting: 1}, nil
	}
	records := r.Records()
	if records == nil {
		return batch{}, nil
	}
	isRipe := func(at int64) bool { return at < before || at > now.Add(maxAhead).Unix() }
	return choose(records.Moved(ctx, told.At), told, n, isRipe)
}
