package indexing

import (
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// Result is the result of a selection.
type Result struct {
	Generation     *record.Generation // has the selection in its records; nil: Pages has not ended
	Listed, Before int                // pages listed now, and by the last published selection
	LeftOut        [StatusCount]List  // pages that are not listed, by status
	Changes        Changes
	DatesDue       time.Time // when dates can be decided that wait for the end of a deployment; zero: none does

	// Regressed counts, by status, the pages that were listed and are no longer indexable, even
	// if they are kept. Pages refused with 401 or 403, or left out by settings, do not count.
	Regressed [StatusCount]int

	Orphans           List // listed pages without incoming links
	AlternatesLeftOut List // listed pages that name alternates with which they are not listed
}

// IsMade reports whether pages were selected. Else nothing has changed since they were.
func (r *Result) IsMade() bool { return r.Generation != nil }

// List counts pages, and keeps the paths of the first three.
type List struct {
	Count int
	First []string
}

const maxExamples = 3

func (l *List) add(path string) {
	l.Count++
	if len(l.First) < maxExamples {
		l.First = append(l.First, path)
	}
}

// Changes count the pages that differ from the last published selection. Changed are those with another text, save where a
// template changed, or another date.
type Changes struct{ Added, Changed, Removed int }

// Result returns the result, once Pages has ended.
func (s *Selection) Result() Result { return s.result }

// add counts a record: rec has the previous selection, st is the new one, in which the page is as m says.
func (r *Result) add(rec *record.Record, st state, m move) {
	if !st.isListed {
		r.LeftOut[st.status].add(rec.Path)
	} else if st.isOrphan {
		r.Orphans.add(rec.Path)
	}
	if rec.Selected.Listed && st.status != Indexable && !isFinal(st.status, rec) {
		r.Regressed[st.status]++
	}
	switch m {
	case added:
		r.Changes.Added++
	case edited, redated:
		r.Changes.Changed++
	case removed, hidden:
		r.Changes.Removed++
	}
}
