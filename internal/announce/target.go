package announce

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const (
	maxBatch     = 10_000           // URLs in a request of IndexNow
	maxAhead     = 15 * time.Minute // by which a change may lie ahead: beyond, the clock was set back
	firstBackOff = time.Minute      // doubled by each failure in a row
	maxBackOff   = 6 * time.Hour
	maxDoublings = 9 // more have no room in a Duration
	maxExcused   = 5 // failures in a row, in half an hour, of a target for which the others are told more than they need
)

// Change is from when on a change may be told, in Unix seconds, and the path of its page. A cursor is the last one that was told.
// Of a document, there is a digest in place of the path, and no time.
type Change struct {
	At   int64  `json:"at,omitempty"`
	Path string `json:"path,omitempty"`
}

// Compare orders changes by time, then by path.
func (c Change) Compare(other Change) int {
	return cmp.Or(cmp.Compare(c.At, other.At), strings.Compare(c.Path, other.Path))
}

// batch is what a target can be told at once.
type batch struct {
	changes []Change // the oldest ones first
	waiting int      // changes that the target was not told yet, these included
	next    int64    // when the first of the others may be told
	before  Change   // up to which an earlier request may have been received
}

// choose returns the oldest of the changes after a cursor, at most n, up to the first that is not ripe: so none is skipped.
func choose(records iter.Seq2[*record.Record, error], told Change, n int, isRipe func(at int64) bool) (b batch, err error) {
	var all []Change
	for rec, err := range records {
		if err != nil {
			return b, err
		}
		c := Change{At: int64(rec.Moved), Path: rec.Path}
		if c.Compare(told) <= 0 {
			continue
		}
		b.waiting++
		all = append(all, c)
		if len(all) > 2*maxBatch+n {
			slices.SortFunc(all, Change.Compare)
			all = all[:n+1]
		}
	}
	slices.SortFunc(all, Change.Compare)
	for i, c := range all {
		if i == n || !isRipe(c.At) {
			b.changes = all[:i]
			b.next = c.At
			return b, nil
		}
	}
	b.changes = all
	return b, nil
}

// end is the cursor once the batch is told.
func (b *batch) end() Change {
	last := b.changes[len(b.changes)-1]
	// No change comes into a second that is over: records of that time need not be read again.
	if last.At != 0 && b.next != last.At {
		return Change{At: last.At + 1}
	}
	return last
}

// isLate reports whether a change in the batch could have been told more than a minute before.
func (b *batch) isLate(now time.Time) bool { return now.Unix()-b.changes[0].At > 60 }

// target is an endpoint, a ping URL or a hub, as it is stored.
type target struct {
	Status
	Told  Change        `json:"told,omitzero"`   // the cursor
	Until Change        `json:"until,omitzero"`  // what the target may have been told, as there was no response yet
	Pause time.Duration `json:"pause,omitempty"` // from Last to the next request
	Day   int64         `json:"day,omitempty"`   // of the last request whose URLs are not sent again, since 1970
	Today int           `json:"today,omitempty"` // URLs in such requests on it

	isCounted bool // Waiting is that of what is published
}

// left is how many URLs the target may be told in a request.
func (t *target) left(daily int, now time.Time) int {
	if t.Day == dayOf(now) {
		daily -= t.Today
	}
	return min(max(daily, 0), maxBatch)
}

func dayOf(at time.Time) int64 { return at.Unix() / 86400 }

// due is when the next request may be made.
func (t *target) due(daily int, now time.Time) time.Time {
	due := t.Last.Add(t.Pause)
	if t.Last.After(now) {
		due = now // the clock was set back
	}
	midnight := time.Unix((dayOf(now)+1)*86400, 0)
	if t.Kind == IndexNow && t.left(daily, now) == 0 && due.Before(midnight) {
		return midnight
	}
	return due
}

// begin notes that a batch is sent, which may be received although no response is.
func (t *target) begin(b *batch, now time.Time) {
	b.before = t.Until
	t.Until = b.end()
	t.Last = now
	t.Pause = intervals[t.Kind]
}

// end notes what came of a batch: of a request that was begun, or of why none was.
func (t *target) end(b *batch, o Outcome, now time.Time) {
	isLate := b.isLate(t.Last)
	t.Last = now
	t.Reason = o.Reason
	if o.Status != 0 {
		t.Until = b.before
	}
	if o.Reason == "" || o.Refused {
		t.tell(b, now)
	}
	if o.Reason != "" {
		backOff := firstBackOff << min(max(t.Failures, 0), maxDoublings) // what is stored may be negative
		t.Failures++
		t.Pause = max(min(backOff, maxBackOff), o.RetryAfter)
		return
	}
	t.Accepted += len(b.changes)
	t.Failures = 0
	// What changes after it was told late is told again no sooner than other changes.
	if t.Kind == IndexNow && !isLate {
		t.Pause = Gap
	}
}

// tell moves the cursor past a batch.
func (t *target) tell(b *batch, now time.Time) {
	t.Told = b.end()
	t.Until = Change{}
	t.Waiting -= len(b.changes)
	if t.Day != dayOf(now) {
		t.Day = dayOf(now)
		t.Today = 0
	}
	t.Today += len(b.changes)
}
