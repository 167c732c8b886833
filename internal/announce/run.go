package announce

import (
	"context"
	"iter"
	"time"
)

const savePatience = 10 * time.Second

// Runner is what a site in one configuration has for its announcer.
type Runner struct {
	Client *Client
	Now    func() time.Time
	Fetch  Fetch

	// Ready calls [Announcer.Load], and reports whether this process is to send what is due.
	Ready func(ctx context.Context) bool

	// Changes yields the changes of pages since a time, among others.
	Changes func(ctx context.Context, since int64) iter.Seq2[Change, error]

	// Done is called after each request, with the number of its URLs and the status of its target.
	Done func(urls int, o Outcome, s Status)

	// Failed is called with what failed of reading changes or storing cursors; nil: nothing has.
	Failed func(err error)
}

// Run sends what is due until ctx ends. Around a reload, it waits until another runner has left.
func (a *Announcer) Run(ctx context.Context, r *Runner) {
	if !a.slot.Take(ctx) {
		return
	}
	defer a.slot.Release()
	a.tryAgain()
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

// tryAgain has targets be tried again that were stopped or refuse the key: perhaps the new configuration is right.
func (a *Announcer) tryAgain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.selecting = 0
	for _, t := range a.state.Targets {
		if t.Stopped || t.Forbidden > 0 {
			t.Stopped = false
			t.Pause = Gap
			t.Reason = ""
			t.Failures = 0
			t.Forbidden = 0
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
		next, err := a.tell(ctx, r, t)
		r.Failed(err)
		if err == nil && !next.IsZero() {
			pause = min(pause, next.Sub(r.Now()))
		}
	}
	return pause
}

// tell tells a target what is due, and returns when it may be told more; zero: nothing waits.
func (a *Announcer) tell(ctx context.Context, r *Runner, t *target) (next time.Time, err error) {
	b, err := a.choose(ctx, r, t)
	if err != nil {
		return next, err
	}
	n, next := a.begin(t, b, r.Now())
	if n == nil {
		return next, nil
	}
	// It is stored before it is sent, so that a process that is killed sends it once more at most.
	var o Outcome
	saving, cancel := context.WithTimeout(ctx, savePatience)
	err = a.Save(saving)
	cancel()
	if err == nil {
		o = r.Client.send(ctx, n, r.Fetch)
	}
	// Stopped amid a request, as by a reload, which may have been received: it is sent once more.
	isCut := ctx.Err() != nil && o.Requested
	if isCut {
		return next, nil
	}
	a.mu.Lock()
	t.end(b, o, r.Now())
	s := t.Status
	a.mu.Unlock()
	if o != (Outcome{}) {
		r.Done(len(b.paths), o, s)
		err = a.Save(ctx)
	}
	return r.Now(), err
}

// choose chooses what a target can be told now.
func (a *Announcer) choose(ctx context.Context, r *Runner, t *target) (b batch, err error) {
	now := r.Now()
	a.mu.Lock()
	told := t.Told
	until := t.Until
	n := t.left(a.config.Daily, now)
	document := a.documents[t.Kind]
	before := now.Unix()
	if a.selecting != 0 {
		before = min(before, a.selecting)
	}
	a.mu.Unlock()

	if t.Kind != IndexNow {
		if document != "" && document != told.Path {
			b = batch{paths: []string{document}, end: Change{Path: document}, oldest: now.Unix(), waiting: 1}
		}
		return b, nil
	}
	isRipe := func(c Change) bool {
		if until != (Change{}) {
			return c.Compare(until) <= 0 // what may have been received is sent again as it was
		}
		return c.At < before || c.At > now.Add(maxAhead).Unix()
	}
	changes := func(yield func(Change) bool) {
		for c, failed := range r.Changes(ctx, told.At) {
			err = failed
			if err != nil || !yield(c) {
				return
			}
		}
	}
	b = choose(changes, told, n, isRipe)
	return b, err
}

// begin returns what a target is told now; nil: it is not to be told anything before next.
func (a *Announcer) begin(t *target, b batch, now time.Time) (n *notice, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.Waiting = b.waiting
	next = t.due(now)
	isDue := !next.After(now)
	isNothing := len(b.paths) == 0
	// It is not known a second time what came of a request: it is taken for received. Or nothing is left of it.
	isOver := t.isUnanswered() && (t.Again || isNothing)
	switch {
	case isDue && isOver:
		t.told(0, now)
		return nil, now
	case t.Stopped || b.waiting == 0:
		return nil, time.Time{}
	case isDue && isNothing:
		return nil, time.Unix(b.next+1, 0)
	case !isDue || isNothing:
		return nil, next
	}
	t.begin(b, now)
	config := a.config
	config.Key = a.state.Key
	return &notice{Target: t.Target, Config: config, paths: b.paths}, now
}
