package sitemap

import (
	"fmt"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
)

// confirmAfter is how long refreshes must find the same suspicious change before it is published.
const confirmAfter = 10 * time.Minute

// selection is what select and build have made of the records.
type selection struct {
	snapshot *document.Set // nil: no page is listed; what is served if nothing was selected
	result   indexing.Result
}

// verdict is what becomes of a selection.
type verdict uint8

const (
	goOn    verdict = iota // nothing is published yet: only while the refresh goes on
	keep                   // what is served stays
	replace                // what was selected is served
	hold                   // it is selected again, so that pages that were listed stay unless they are refused
)

// decision is a verdict, and why.
type decision struct {
	verdict
	reason string    // why something is held back, or nothing is listed; "": all is as the selection says
	since  time.Time // since when refreshes have found what waits to be confirmed; zero: nothing does
}

// circumstances are what a decision depends on besides what is served and what was selected.
type circumstances struct {
	goesOn     bool      // the refresh goes on, and publishes again
	gathered   bool      // all candidates were read
	hasTime    bool      // the time for the crawl is not over: an empty sitemap can wait
	demanded   bool      // an operator wants the result as it is
	crawlOff   bool      // names suffice, so no record tells which pages are gone
	selectedBy uint64    // by which settings pages were selected
	newFailed  string    // names sources that failed, and could be read when pages were last confirmed; "": there is none
	lost       bool      // records were lost, and not all of their pages are fetched again
	now        time.Time // the batch of the refresh
}

// Reasons for which something is held back, besides sources that cannot be read.
const (
	reasonHalf  = "less than half of the pages would be left"
	reasonFifth = "more than a fifth of the pages would go at once: %s"
	reasonLost  = "stored records were lost: their pages are fetched again"
)

// decide decides what becomes of a selection. It is checked against a table over all combinations: see TestDecide.
func decide(before *publication, sel selection, c circumstances) decision {
	// Other settings change as much as they like.
	sameSettings := before.snapshot != nil && before.selectedBy == c.selectedBy

	if c.goesOn && isTooEarly(before, sel, c, sameSettings) {
		return decision{verdict: goOn}
	}
	// Pages of a source that cannot be read stay listed, which is a reason to tell if there are any.
	unread := c.newFailed
	if pagesOf(sel.snapshot) == 0 {
		unread = ""
	}
	// Nothing has changed since the last selection.
	if !sel.result.IsMade() {
		return decision{verdict: keep, reason: unread}
	}
	return decideMade(before, sel, c, sameSettings, unread)
}

// decideMade is decide for a selection that was made anew. unread is why pages of sources stay listed; "": none does.
func decideMade(before *publication, sel selection, c circumstances, sameSettings bool, unread string) decision {
	served := pagesOf(before.snapshot)
	selected := pagesOf(sel.snapshot)
	// Even an operator who requests a refresh does not mean pages whose records were lost.
	if sameSettings && c.lost && selected < served {
		if c.goesOn {
			return decision{verdict: goOn}
		}
		return decision{verdict: keep, reason: reasonLost, since: before.history.Since}
	}
	// With crawl off, no record tells which of the pages are those of the source that failed.
	if c.crawlOff && sameSettings && c.newFailed != "" {
		return decision{verdict: keep, reason: c.newFailed}
	}
	// What an operator has requested or configured is intended.
	isIntended := c.demanded || !sameSettings
	reason := suspicion(served, selected, &sel.result)
	if isIntended || reason == "" {
		return decision{verdict: replace, reason: unread}
	}
	since := suspiciousSince(&before.history, c.now)
	isConfirmed := c.now.Sub(since) >= confirmAfter
	if isConfirmed {
		return decision{verdict: replace, reason: unread}
	}
	// Where no records tell which pages were listed, none can be kept one by one.
	if c.crawlOff || 2*sel.result.Before < served {
		return decision{verdict: keep, reason: reason, since: since}
	}
	return decision{verdict: hold, reason: reason, since: since}
}

// suspiciousSince returns since when refreshes have found a suspicious change: at least since now.
func suspiciousSince(h *outcome.History, now time.Time) time.Time {
	// A time in the future is of a clock that was set back since, and would put the end off for as long.
	isFirst := h.Since.IsZero() || h.Since.After(now)
	if isFirst {
		return now
	}
	return h.Since
}

// isTooEarly reports whether nothing of a refresh that goes on is published yet: which pages are gone, and which sources fail,
// shows only once all are read.
func isTooEarly(before *publication, sel selection, c circumstances, sameSettings bool) bool {
	// A part without a loss is no end of a loss that waits to be confirmed: its ten minutes would begin anew.
	if sameSettings && before.history.Last.Result == outcome.HeldBack {
		return true
	}
	hasNoMore := pagesOf(sel.snapshot) <= pagesOf(before.snapshot)
	if sameSettings && !c.gathered && hasNoMore {
		return true
	}
	// Nor is an empty sitemap published while a source or the crawl may still find a page.
	isEmpty := before.snapshot == nil && sel.snapshot == nil
	return isEmpty && (c.hasTime || !c.gathered)
}

// suspicion returns why a change may be the work of a fault; "": it is usual.
func suspicion(served, selected int, result *indexing.Result) string {
	if 2*selected < served {
		return reasonHalf
	}
	for status := range indexing.StatusCount {
		// That no source names a page any more was somebody's doing: only the loss of half of all is suspicious.
		if status == indexing.Absent {
			continue
		}
		if 5*result.Regressed[status] > served {
			return fmt.Sprintf(reasonFifth, status)
		}
	}
	return ""
}

// ending returns how the refresh, or a part of it, has ended by the decision: where it has a reason, something is held back,
// else the documents tell.
func (d decision) ending(served, next *document.Set) outcome.Outcome {
	o := outcome.Outcome{Result: outcome.Published, Reason: d.reason, Since: d.since}
	switch {
	case next == nil:
		o.Result = outcome.Empty
	case d.reason != "":
		o.Result = outcome.HeldBack
	case served.Equal(next):
		o.Result = outcome.Unchanged
	}
	return o
}
