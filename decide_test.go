package sitemap

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// question is one combination of everything that decide depends on. Ten pages are served, or none.
type question struct {
	goesOn, gathered, waiting, demanded, off, serves, same, isMade, unread, lost, held bool

	selected int // pages; 0: no snapshot
	before   int // pages that the records say were listed
	loss     loss
	since    time.Duration // suspicious for so long; 0: not at all
}

// loss is how many pages are lost for one reason.
type loss struct {
	status indexing.Status
	pages  int
}

const servedPages = 10

var batch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// questions are all combinations, or one of so many, with each number on both sides of each limit.
func questions(every int) iter.Seq[question] {
	n := 0
	return func(yield func(question) bool) {
		for bits := range 1 << 11 {
			is := func(i int) bool { return bits>>i&1 != 0 }
			q := question{
				goesOn: is(0), gathered: is(1), waiting: is(2), demanded: is(3), off: is(4), serves: is(5),
				same: is(6), isMade: is(7), unread: is(8), lost: is(9), held: is(10),
			}
			for _, q.selected = range []int{0, 4, 5, 9, 10, 11} {
				for _, q.before = range []int{4, 5} {
					for _, q.loss = range []loss{{}, {indexing.ServerError, 2}, {indexing.ServerError, 3}, {indexing.Absent, 10}, {indexing.Absent, 1}, {indexing.NotFound, 1}, {indexing.StatusCount - 1, 3}} {
						for _, q.since = range []time.Duration{0, 1, confirmAfter - 1, confirmAfter, -1} {
							n++
							if n%every == 0 && !yield(q) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// ask asks decide.
func (q *question) ask() decision {
	p := &publication{selectedBy: 1}
	if q.serves {
		p.snapshot = listing(servedPages)
	}
	p.history.Last.Result = outcome.Published
	if q.held {
		p.history.Last.Result = outcome.HeldBack
	}
	if q.since != 0 {
		p.history.Since = batch.Add(-q.since)
	}
	var sel selection
	if q.selected > 0 {
		sel.snapshot = listing(q.selected)
	}
	if q.isMade {
		sel.result.Generation = new(record.Generation)
	}
	sel.result.Before = q.before
	sel.result.Regressed[q.loss.status] = q.loss.pages
	c := circumstances{
		goesOn: q.goesOn, gathered: q.gathered, hasTime: q.waiting, demanded: q.demanded, crawlOff: q.off,
		lost: q.lost, now: batch, selectedBy: 2,
	}
	if q.same {
		c.selectedBy = p.selectedBy
	}
	if q.unread {
		c.newFailed = "unread"
	}
	return decide(p, sel, c)
}

// served returns how many pages are served.
func (q *question) served() int {
	if q.serves {
		return servedPages
	}
	return 0
}

// shrinks reports whether fewer pages are selected than are served.
func (q *question) shrinks() bool { return q.selected < q.served() }

// asBefore reports whether something is served that was selected by the same settings.
func (q *question) asBefore() bool { return q.serves && q.same }

// fault is what makes a change suspicious.
func (q *question) fault() string {
	isMany := float64(q.loss.pages) > float64(q.served())/5
	switch {
	case float64(q.selected) < float64(q.served())/2:
		return "less than half of the pages would be left"
	case isMany && q.loss.status != indexing.Absent:
		return "more than a fifth of the pages would go at once: " + q.loss.status.String()
	}
	return ""
}

// isHeld reports whether the change waits to be confirmed.
func (q *question) isHeld() bool {
	return q.asBefore() && !q.demanded && q.fault() != "" && q.since < 10*time.Minute
}

// heldSince is since when: a clock that was set back begins anew.
func (q *question) heldSince() time.Time {
	if q.since > 0 {
		return batch.Add(-q.since)
	}
	return batch
}

// unreadReason names sources that fail, unless no page would be listed.
func (q *question) unreadReason() string {
	if q.unread && q.selected > 0 {
		return "unread"
	}
	return ""
}

// rows is the decision table: the first row that applies decides.
var rows = []struct {
	name    string
	applies func(q *question) bool
	answer  func(q *question) decision
}{
	{"a part of a refresh, after one that held something back",
		func(q *question) bool { return q.goesOn && q.asBefore() && q.held }, plain(goOn)},
	{"a part that has not read all sources, and lists no more",
		func(q *question) bool { return q.goesOn && q.asBefore() && !q.gathered && q.selected <= q.served() }, plain(goOn)},
	{"nothing was found yet, and requests wait",
		func(q *question) bool { return q.goesOn && !q.serves && q.selected == 0 && (q.waiting || !q.gathered) }, plain(goOn)},
	{"nothing has changed",
		func(q *question) bool { return !q.isMade },
		func(q *question) decision { return decision{verdict: keep, reason: q.unreadReason()} }},
	{"records were lost, and the refresh goes on",
		func(q *question) bool { return q.asBefore() && q.lost && q.shrinks() && q.goesOn }, plain(goOn)},
	{"records were lost",
		func(q *question) bool { return q.asBefore() && q.lost && q.shrinks() },
		func(q *question) decision {
			d := decision{verdict: keep, reason: "stored records were lost: their pages are fetched again"}
			if q.since != 0 {
				d.since = batch.Add(-q.since)
			}
			return d
		}},
	{"with crawl off, a source cannot be read",
		func(q *question) bool { return q.off && q.asBefore() && q.unread },
		func(q *question) decision { return decision{verdict: keep, reason: "unread"} }},
	{"a suspicious change, and no records tell which pages were listed",
		func(q *question) bool { return q.isHeld() && (q.off || float64(q.before) < float64(q.served())/2) },
		func(q *question) decision { return decision{verdict: keep, reason: q.fault(), since: q.heldSince()} }},
	{"a suspicious change",
		func(q *question) bool { return q.isHeld() },
		func(q *question) decision { return decision{verdict: hold, reason: q.fault(), since: q.heldSince()} }},
	{"anything else",
		func(q *question) bool { return true },
		func(q *question) decision { return decision{verdict: replace, reason: q.unreadReason()} }},
}

// plain returns a verdict without a reason.
func plain(v verdict) func(*question) decision {
	return func(*question) decision { return decision{verdict: v} }
}

// TestDecide checks all combinations against the table.
func TestDecide(t *testing.T) {
	hits := make([]int, len(rows))
	wrong := 0
	every := 1
	if testing.Short() {
		every = 11 // no number of values is a multiple of it
	}
	for q := range questions(every) {
		i := 0
		for !rows[i].applies(&q) {
			i++
		}
		hits[i]++
		want, got := rows[i].answer(&q), q.ask()
		if got != want && wrong < 10 {
			wrong++
			t.Errorf("%s: %+v: got %+v, want %+v", rows[i].name, q, got, want)
		}
	}
	for i, n := range hits {
		if n == 0 {
			t.Errorf("no question is for the row '%s'", rows[i].name)
		}
	}
}

// TestOutcomeOfDecision: what is served tells, not what was meant to be.
func TestOutcomeOfDecision(t *testing.T) {
	a, b := snapshotOf(t, 0, "/a"), snapshotOf(t, 0, "/b")
	for _, test := range []struct {
		d            decision
		served, next *document.Set
		want         outcome.Result
	}{
		{decision{verdict: replace}, nil, a, outcome.Published},
		{decision{verdict: replace}, b, a, outcome.Published},
		{decision{verdict: replace}, a, snapshotOf(t, 0, "/a"), outcome.Unchanged},
		{decision{verdict: keep}, a, a, outcome.Unchanged},
		{decision{verdict: replace}, a, nil, outcome.Empty},
		{decision{verdict: replace, reason: "refused"}, nil, nil, outcome.Empty},
		{decision{verdict: replace, reason: "unread"}, a, b, outcome.HeldBack},
		{decision{verdict: keep, reason: "unread"}, a, a, outcome.HeldBack},
		{decision{verdict: hold, reason: "few", since: batch}, a, b, outcome.HeldBack},
	} {
		got := test.d.ending(test.served, test.next)
		if got.Result != test.want || got.Reason != test.d.reason || got.Since != test.d.since {
			t.Errorf("%+v: got %+v, want %s", test.d, got, test.want)
		}
	}
}

// String names a verdict in failures.
func (v verdict) String() string {
	return fmt.Sprint([]string{"go on", "keep", "replace", "hold"}[v])
}
