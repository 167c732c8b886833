package indexing

import (
	"net/url"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Bounds of what a result keeps.
const (
	maxExamples = 3
	maxChanges  = 10_000
	maxHosts    = 20
)

// Result is the result of a selection.
type Result struct {
	Generation     *store.Generation         // has the selection in its records; nil: Pages has not ended
	Listed, Before int                       // pages listed now, and by the last published selection
	LeftOut        [StatusCount]List[string] // pages that are not listed, by status
	Changes        Changes

	// Regressed counts, by status, the pages that were listed and are no longer indexable, even
	// if they are kept. Pages refused with 401 or 403, or left out by settings, do not count.
	Regressed [StatusCount]int

	Orphans           List[string]   // listed pages without incoming links
	AlternatesLeftOut List[string]   // listed pages that name alternates with which they are not listed
	ForeignHosts      map[string]int // canonicals on other sites by "scheme://host"; "": further hosts
}

// IsMade reports whether pages were selected. Else nothing has changed since they were.
func (r *Result) IsMade() bool { return r.Generation != nil }

// List counts things and keeps the first of them: three paths, or 10,000 changes.
type List[T any] struct {
	Count int
	First []T
}

func (l *List[T]) add(v T, most int) {
	l.Count++
	if len(l.First) < most {
		l.First = append(l.First, v)
	}
}

// Changes are the pages that differ from the last published selection. Changed are those
// with another text, save where a template changed, or another date.
type Changes struct{ Added, Changed, Removed List[Change] }

// Change is a page that changed, and its date in Unix seconds; 0: none, it was only found out, or the page is removed.
// Gone: it returned 404 or 410. Absent: no source names it any more, and it was not requested since.
type Change struct {
	Path         string
	LastMod      int64
	Gone, Absent bool
}

// Result returns the result, once Pages has ended.
func (s *Selection) Result() Result { return s.result }

// add counts a record: rec has the previous selection, st and selected are the new one.
func (r *Result) add(rec *store.Record, st state, selected store.Selected, isTemplate bool) {
	status := st.status()
	was := rec.Selected
	if isImage(rec) && !was.Listed {
		return // it is recorded for the pages that show it, and nobody expects it to be listed
	}
	switch {
	case st&isListed == 0:
		r.LeftOut[status].add(rec.Path, maxExamples)
	case st&isOrphan != 0:
		r.Orphans.add(rec.Path, maxExamples)
	}
	if status == CanonicalForeign {
		r.addForeign(rec.Canonical)
	}
	if was.Listed {
		r.Before++
		if status != Indexable && !isFinal(status, rec) {
			r.Regressed[status]++
		}
	}
	c := Change{rec.Path, selected.LastMod, status == NotFound, status == Absent}
	switch {
	case selected.Listed && !was.Listed:
		r.Changes.Added.add(c, maxChanges)
	case !selected.Listed && was.Listed:
		r.Changes.Removed.add(c, maxChanges)
	case selected.Listed && isChange(was, selected, isTemplate):
		// A first date, with the text that it had or that of another template, is no change of the page.
		if was.LastMod == 0 && (was.Dated == selected.Dated || isTemplate) {
			c.LastMod = 0
		}
		r.Changes.Changed.add(c, maxChanges)
	}
}

// addForeign counts a canonical on another site.
func (r *Result) addForeign(canonical string) {
	host := ""
	if u, err := url.Parse(canonical); err == nil {
		host = u.Scheme + "://" + u.Host
	}
	if len(r.ForeignHosts) >= maxHosts && r.ForeignHosts[host] == 0 {
		host = ""
	}
	r.ForeignHosts[host]++
}

// isChange reports whether a page that stays listed has another text or date. A first date
// that is decided only after the page was listed does not count.
func isChange(was, is store.Selected, isTemplate bool) bool {
	if was.Dated != is.Dated && (was.Dated == 0 || !isTemplate) {
		return was.Dated != 0
	}
	return was.LastMod != is.LastMod || was.Day != is.Day
}
