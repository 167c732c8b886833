package indexing

import (
	"net/url"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Bounds of what a result keeps.
const (
	maxExamples = 3
	maxHosts    = 20
)

// Result is the result of a selection.
type Result struct {
	Generation     *store.Generation         // has the selection in its records; nil: Pages has not ended
	Listed, Before int                       // pages listed now, and by the last published selection
	LeftOut        [StatusCount]List[string] // pages that are not listed, by status
	Changes        Changes
	DatesDue       time.Time // when dates can be decided that wait for the end of a deployment; zero: none does

	// Regressed counts, by status, the pages that were listed and are no longer indexable, even
	// if they are kept. Pages refused with 401 or 403, or left out by settings, do not count.
	Regressed [StatusCount]int

	Orphans           List[string]   // listed pages without incoming links
	AlternatesLeftOut List[string]   // listed pages that name alternates with which they are not listed
	ForeignHosts      map[string]int // canonicals on other sites by "scheme://host"; "": further hosts
}

// IsMade reports whether pages were selected. Else nothing has changed since they were.
func (r *Result) IsMade() bool { return r.Generation != nil }

// List counts things and keeps the first three of them.
type List[T any] struct {
	Count int
	First []T
}

func (l *List[T]) add(v T) {
	l.Count++
	if len(l.First) < maxExamples {
		l.First = append(l.First, v)
	}
}

// Changes count the pages that differ from the last published selection. Changed are those with another text, save where a
// template changed, or another date.
type Changes struct{ Added, Changed, Removed int }

// Result returns the result, once Pages has ended.
func (s *Selection) Result() Result { return s.result }

// add counts a record: rec has the previous selection, st is the new one, in which the page is as m says.
func (r *Result) add(rec *store.Record, st state, m move) {
	if isUnexpected(rec) {
		return
	}
	r.addStatus(rec, st)
	switch m {
	case added:
		r.Changes.Added++
	case edited, redated:
		r.Changes.Changed++
	case removed, hidden:
		r.Changes.Removed++
	}
}

// isUnexpected reports whether nobody expects a record to be listed: it is an image, of the pages that show it.
func isUnexpected(rec *store.Record) bool { return isImage(rec) && !rec.Selected.Listed }

// addStatus counts a record by its status.
func (r *Result) addStatus(rec *store.Record, st state) {
	status := st.status()
	if st&isListed == 0 {
		r.LeftOut[status].add(rec.Path)
	} else if st&isOrphan != 0 {
		r.Orphans.add(rec.Path)
	}
	if status == CanonicalForeign {
		r.addForeign(rec.Canonical)
	}
	if !rec.Selected.Listed {
		return
	}
	r.Before++
	if status != Indexable && !isFinal(status, rec) {
		r.Regressed[status]++
	}
}

// addForeign counts a canonical on another site.
func (r *Result) addForeign(canonical string) {
	host := ""
	if u, err := url.Parse(canonical); err == nil {
		host = u.Scheme + "://" + u.Host
	}
	isNew := r.ForeignHosts[host] == 0
	if isNew && len(r.ForeignHosts) >= maxHosts {
		host = ""
	}
	r.ForeignHosts[host]++
}
