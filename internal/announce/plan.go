package announce

import (
	"cmp"
	"time"
)

// plan is what a target is to be sent now, or what that waits for.
type plan struct {
	added, others list
	waits         Wait      // "": it is sent now, or there is nothing
	due           time.Time // when it may be sent; zero: that depends on what happens
}

// plan decides what a target is sent at a time.
func (q *Queue) plan(t *target, now time.Time) plan {
	if t.Stopped {
		return plan{waits: ForReload}
	}
	// What was noted goes first, as nothing else may be noted meanwhile.
	if t.noted() > 0 {
		return plan{waits: ForResponse, due: t.Last.Add(protocols[t.Kind].interval)}
	}
	if len(t.Added)+len(t.Queued) == 0 {
		return q.planUnconfirmed(t)
	}
	// Of two reasons to wait, operators are told the one that lasts.
	p := q.planQueued(t, now)
	isPaced := t.Next.After(now)
	if !isPaced || p.due.After(t.Next) {
		return p
	}
	if t.Failures > 0 {
		return plan{waits: ForRetry, due: t.Next}
	}
	return plan{waits: ForGap, due: t.Next}
}

// planQueued is the plan of a target for which something is queued, apart from its own pace.
func (q *Queue) planQueued(t *target, now time.Time) plan {
	if t.Kind.ofPages() && q.state.Hold.After(now) {
		return plan{waits: ForConfirmation, due: q.state.Hold}
	}
	held := q.held(t)
	p := plan{
		added:  held.without(t.Added),
		others: held.without(t.Queued),
	}
	if len(p.added)+len(p.others) == 0 {
		return held.next
	}
	if !t.Kind.ofPages() {
		return p
	}
	// What was sent a short time ago is kept, so that no URL is sent again too soon: there is room for so many.
	room := min(protocols[t.Kind].batch, maxPaths-t.Recent.len())
	if room <= 0 {
		return plan{waits: ForInterval, due: t.Recent[0].At.Add(protocols[t.Kind].interval)}
	}
	daily := cmp.Or(q.config.Daily, DefaultDaily)
	left := t.Spent.left(daily)
	hasAdded := len(p.added) > 0
	// News are worth nothing later.
	p.added = p.added.withLast(q.state.News).newest(min(room, left.all))
	p.others = p.others.newest(min(room-len(p.added), left.others(len(p.added))))
	if len(p.added)+len(p.others) == 0 {
		return plan{waits: ForDay, due: t.Spent.frees(daily, hasAdded)}
	}
	return p
}

// planUnconfirmed is the plan of a target for which nothing is queued.
func (q *Queue) planUnconfirmed(t *target) plan {
	s := &q.state
	if !t.Kind.ofPages() {
		return plan{}
	}
	if len(s.Fresh)+len(s.Older) > 0 {
		return plan{waits: ForConfirmation}
	}
	if n, next := s.unchecked(); n > 0 {
		return plan{waits: ForCheck, due: next}
	}
	return plan{}
}

// held are the pages that cannot be sent now, by hash.
type held struct {
	until map[uint64]plan // what each of them waits for
	next  plan            // that of the first which can be sent again, of those that were asked for
}

// held returns the pages that were sent to a target a short time ago, or that may be gone.
func (q *Queue) held(t *target) *held {
	h := &held{until: make(map[uint64]plan)}
	for _, b := range t.Recent {
		for _, page := range b.Pages {
			h.until[page] = plan{waits: ForInterval, due: b.At.Add(protocols[t.Kind].interval)}
		}
	}
	for _, r := range q.state.Removed {
		if r.Stays {
			continue
		}
		h.until[hash(r.Path)] = plan{waits: ForCheck, due: r.due()}
	}
	return h
}

// without returns the paths that can be sent.
func (h *held) without(paths list) (free list) {
	for _, path := range paths {
		p, isHeld := h.until[hash(path)]
		if !isHeld {
			free = append(free, path)
			continue
		}
		if h.next.due.IsZero() || p.due.Before(h.next.due) {
			h.next = p
		}
	}
	return free
}
