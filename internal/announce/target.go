package announce

import (
	"cmp"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	day          = 24 * time.Hour
	maxBatch     = 10_000           // URLs in a request of IndexNow
	maxAhead     = 15 * time.Minute // by which a change may lie ahead: beyond, the clock was set back
	firstBackOff = time.Minute      // doubled by each failure in a row
	maxBackOff   = 6 * time.Hour
	tooMany      = 10 * time.Minute // after a 429 without Retry-After
	maxRefused   = 13               // times that a key is refused, until over a day has passed
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
	paths   []string // the oldest changes first
	oldest  int64    // when the first of them could have been told
	end     Change   // the cursor once they are told
	waiting int      // changes that the target was not told yet, these included
	next    int64    // when the first of the others may be told
}

// choose returns the oldest of the changes after a cursor, at most n, up to the first that is not ripe: so none is skipped.
func choose(changes iter.Seq[Change], told Change, n int, isRipe func(Change) bool) (b batch) {
	var all []Change
	for c := range changes {
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
		if i == n || !isRipe(c) {
			b.next = c.At
			break
		}
		b.paths = append(b.paths, c.Path)
		b.end = c
	}
	if len(b.paths) == 0 {
		return b
	}
	b.oldest = all[0].At
	// No change comes into a second that is over: records of that time need not be read again.
	if b.next != b.end.At {
		b.end = Change{At: b.end.At + 1}
	}
	return b
}

// target is an endpoint, a ping URL or a hub, as it is stored.
type target struct {
	Status
	Told  Change        `json:"told,omitzero"`   // the cursor
	Until Change        `json:"until,omitzero"`  // the cursor once the request under way is accepted; zero: there is none
	Again bool          `json:"again,omitempty"` // that request is made a second time
	Pause time.Duration `json:"pause,omitempty"` // from Last to the next request

	Forbidden int   `json:"forbidden,omitempty"` // times that the key was refused since it was last accepted
	Day       int64 `json:"day,omitempty"`       // of the last accepted request, since 1970
	Today     int   `json:"today,omitempty"`     // URLs accepted on it
}

// left is how many URLs the target may be told in a request.
func (t *target) left(daily int, now time.Time) int {
	if t.Day == now.Unix()/86400 {
		daily -= t.Today
	}
	return min(max(daily, 0), maxBatch)
}

// due is when the next request may be made.
func (t *target) due(now time.Time) time.Time {
	if t.Last.After(now) {
		t.Last = now // the clock was set back
	}
	return t.Last.Add(min(t.Pause, day))
}

// begin notes that a batch is sent, which may be received although no response is.
func (t *target) begin(b batch, now time.Time) {
	t.Again = t.isUnanswered()
	t.Until = b.end
	t.Last = now
	t.Pause = protocols[t.Kind].interval
}

// isUnanswered reports whether a request was begun of which it is not known what came of it.
func (t *target) isUnanswered() bool { return t.Until != Change{} }

// told moves the cursor past n URLs.
func (t *target) told(n int, now time.Time) {
	t.Told = t.Until
	t.Until = Change{}
	today := now.Unix() / 86400
	if t.Day != today {
		t.Today = 0
	}
	t.Day = today
	t.Today += n
	t.Waiting -= n
}

// end notes what came of the request for a batch. After the zero Outcome, it is due at once.
func (t *target) end(b batch, o Outcome, now time.Time) {
	n := len(b.paths)
	isLate := t.Last.Unix()-b.oldest > 60
	t.Last = now
	t.Reason = o.Reason
	switch {
	case o == (Outcome{}):
		t.Pause = 0
	case o.Status/100 == 2: // 202 means that the key is still to be checked
		// What changes after it was told late is told again no sooner than other changes.
		if t.Kind == IndexNow && !isLate {
			t.Pause = Gap
		}
		t.Accepted += n
		t.Failures = 0
		t.Forbidden = 0
		t.told(n, now)
	case slices.Contains(protocols[t.Kind].final, o.Status):
		t.Stopped = true
		t.told(n, now) // they were refused for good
	default:
		t.fail(o)
	}
	t.Until = Change{}
	if t.Stopped {
		t.Reason += "; nothing is sent until the configuration is reloaded"
	}
}

// fail counts a failure, which puts off the next request.
func (t *target) fail(o Outcome) {
	// A key may be refused for over a day before nothing is sent any more. Counted and not timed, as clocks jump.
	if o.Status == http.StatusForbidden && t.Kind == IndexNow {
		t.Forbidden++
		t.Stopped = t.Forbidden >= maxRefused
	}
	least := o.RetryAfter
	if o.Status == http.StatusTooManyRequests {
		least = cmp.Or(least, tooMany)
	}
	if o.Requested && o.Status == 0 {
		least = t.Pause // it may have been received
	}
	doublings := min(max(t.Failures, 0), 9) // more have no room in a Duration, and what is stored may be negative
	t.Failures++
	t.Pause = max(min(firstBackOff<<doublings, maxBackOff), least)
}
