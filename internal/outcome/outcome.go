// Package outcome says how the refreshes of a site ended. What a refresh decides is told by these values alone: reports,
// log lines, metrics, events, announcements and other processes follow from them, and never the other way round.
package outcome

import (
	"maps"
	"time"
)

// Result is how a refresh ended.
type Result string

// The results. Those of the second group change nothing of what is served, and are not reported.
const (
	Published Result = "changed"   // other documents than before are served
	Unchanged Result = "unchanged" // the same documents as before
	Empty     Result = "empty"     // no page is listed
	HeldBack  Result = "held_back" // pages that are missing stay listed, until later refreshes confirm it or sources can be read
	Failed    Result = "failed"    // it was not completed; what is served stays

	Followed   Result = "followed"   // other processes refresh the site
	Later      Result = "later"      // another process refreshes the site now or is to, or their storage fails
	Superseded Result = "superseded" // the next configuration has started, and refreshes the site
	Alias      Result = "alias"      // the site is an alias of another one
)

// Outcome is how a refresh ended, and why. It is decided once.
type Outcome struct {
	Result Result    `json:"result,omitempty"` // "": there was no refresh
	Reason string    `json:"reason,omitempty"` // why it failed, held something back, or lists nothing
	Since  time.Time `json:"since,omitzero"`   // since when refreshes have found what waits to be confirmed; zero: nothing does
	Err    error     `json:"-"`                // why it failed
}

// Fail returns the outcome of a refresh that was not completed.
func Fail(err error) Outcome { return Outcome{Result: Failed, Reason: err.Error(), Err: err} }

// IsSettled reports whether there is nothing to look at again before the site is due. Where nothing is listed, or something
// waits to be confirmed, the next configuration may well be the remedy.
func (o Outcome) IsSettled() bool {
	switch o.Result {
	case Published, Unchanged:
		return true
	case HeldBack:
		return !o.IsSuspicious()
	}
	return false
}

// IsKnown reports whether requests need not wait any longer to learn what the site serves, be it nothing.
func (o Outcome) IsKnown() bool {
	switch o.Result {
	case Followed, Later, Superseded: // which may have published, and may not
		return false
	}
	return true
}

// IsSuspicious reports whether it waits to be confirmed that pages are gone. What is held back as a source cannot be read
// does not: nothing but the source tells when that ends.
func (o Outcome) IsSuspicious() bool { return !o.Since.IsZero() }

// History is what later refreshes need to know of those before. It is stored with what they published.
type History struct {
	Last      Outcome        `json:"last,omitzero"`      // of the last refresh
	Since     time.Time      `json:"since,omitzero"`     // as in Outcome, of the last refresh that did not fail
	Confirmed time.Time      `json:"confirmed,omitzero"` // when the last refresh began that neither failed nor held anything back
	Unread    map[int]string `json:"unread,omitempty"`   // sources that could already not be read when the pages were last confirmed, by number
	Partial   bool           `json:"partial,omitempty"`  // the last selection was made while its refresh went on: dates are still to be decided
	Lost      time.Time      `json:"lost,omitzero"`      // when records were lost, of which not all pages are fetched again
	DatesDue  time.Time      `json:"dates_due,omitzero"` // when dates can be decided that wait for the end of a deployment; zero: none does
}

// Ended is what a refresh adds to the history, besides its outcome.
type Ended struct {
	Begun    time.Time
	Failed   map[int]string // sources that could not be read: number and name
	Selected bool           // pages were selected,
	Partial  bool           // while the refresh goes on
	Lost     time.Time      // as in History
	DatesDue time.Time      // as in History, of the pages selected
}

// After returns the history after another refresh.
func (h History) After(o Outcome, e Ended) History {
	next := h
	next.Last = o
	if o.Result == Failed {
		return next // it has found out nothing
	}
	next.Since = o.Since
	next.Lost = e.Lost
	if e.Selected {
		next.Partial = e.Partial
		next.DatesDue = e.DatesDue
	}
	if o.Result != HeldBack {
		next.Confirmed = e.Begun
		next.Unread = e.Failed
		return next
	}
	// Of the sources that failed before, those count as unread that still fail.
	next.Unread = maps.Clone(e.Failed)
	maps.DeleteFunc(next.Unread, func(source int, name string) bool { return !h.IsUnread(source, name) })
	return next
}

// IsUnread reports whether a source could not be read either when the pages were last confirmed. The pages of a source that
// was never read are not missing.
func (h History) IsUnread(source int, name string) bool {
	unread, isKnown := h.Unread[source]
	return h.Confirmed.IsZero() || isKnown && unread == name
}
