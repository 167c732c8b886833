package indexing

import (
	"net/url"
	"slices"
	"time"

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
type Change struct {
	Path    string
	LastMod int64

	// Own says that the page itself is another one than when it was last listed, by its text or by the date that
	// counts. Else another of its dates counts, as where the settings have changed, or it was found the same.
	Own bool

	// Gone says that the removed page returns an error or leads elsewhere, that it asks not to be indexed, or that no
	// source names it any more and it was not requested since. Else the settings or other pages leave it out.
	Gone bool
}

// Result returns the result, once Pages has ended.
func (s *Selection) Result() Result { return s.result }

// add counts a record: rec has the previous selection, st and selected are the new one.
func (r *Result) add(rec *store.Record, st state, selected store.Selected, isTemplate bool) {
	if isImage(rec) && !rec.Selected.Listed {
		return // it is recorded for the pages that show it, and nobody expects it to be listed
	}
	r.addStatus(rec, st)
	r.addChange(rec, st.status(), selected, isTemplate)
}

// addStatus counts a record by its status.
func (r *Result) addStatus(rec *store.Record, st state) {
	status := st.status()
	if st&isListed == 0 {
		r.LeftOut[status].add(rec.Path, maxExamples)
	} else if st&isOrphan != 0 {
		r.Orphans.add(rec.Path, maxExamples)
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

// addChange counts what has changed since the previous selection.
func (r *Result) addChange(rec *store.Record, status Status, selected store.Selected, isTemplate bool) {
	was := rec.Selected
	c := Change{
		Path:    rec.Path,
		LastMod: selected.LastMod,
		Own:     isOwn(rec, selected, isTemplate),
	}
	if !selected.Listed {
		if was.Listed {
			c.Gone = status.isGone()
			r.Changes.Removed.add(c, maxChanges)
		}
		return
	}
	if !was.Listed {
		r.Changes.Added.add(c, maxChanges)
		return
	}
	if !isChange(rec, selected, isTemplate) {
		return
	}
	// A first date, with the text that it had or that of another template, is no change of the page.
	if was.LastMod == 0 && !c.Own {
		c.LastMod = 0
	}
	r.Changes.Changed.add(c, maxChanges)
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

// isChange reports whether a page that stays listed has another text or date. A first date
// that is decided only after the page was listed does not count.
func isChange(rec *store.Record, is store.Selected, isTemplate bool) bool {
	was := rec.Selected
	hasOtherDate := was.LastMod != is.LastMod || was.Day != is.Day
	if was.Dated == is.Dated {
		return hasOtherDate
	}
	if was.Dated == 0 {
		return false
	}
	if isTemplate {
		return hasOtherDate // as of pages that declare the date of the build
	}
	return hasOtherDate || !isKnown(rec)
}

// isKnown reports whether the change of a page's text counted already, as its date was listed before the text was
// confirmed: a list told of it.
func isKnown(rec *store.Record) bool {
	was := rec.Selected
	return !was.Day && rec.Before != 0 && was.LastMod > rec.Before
}

// isOwn reports whether the page itself is another one than that of its last selection: see [Change].
func isOwn(rec *store.Record, is store.Selected, isTemplate bool) bool {
	was := rec.Selected
	hasOtherText := was.Dated != 0 && was.Dated != is.Dated && !isTemplate
	if hasOtherText {
		return true
	}
	if was.LastMod == 0 {
		return !is.Day && is.LastMod > datedTextSeenAt(rec) // since it was looked at last
	}
	isTakenBack := was.Dated == is.Dated && was.Text != is.Text
	if was.LastMod == is.LastMod || isTakenBack {
		return false
	}
	// The text, which is the same, says more than the time of its file.
	if rec.Version != 0 && is.Dated != 0 && is.LastMod == rec.ModTime {
		return false
	}
	// A date that the page still has gave way to another one, or the date of its text counts again.
	hasStill := []int64{rec.Declared, rec.ListDate, rec.ModTime, is.Text}
	return !slices.Contains(hasStill, was.LastMod) && is.LastMod != was.Text
}

// datedTextSeenAt is when the text of a page by which its date was decided was last seen, in Unix seconds.
func datedTextSeenAt(rec *store.Record) int64 {
	hasChanged := rec.Steadiness.IsInDoubt() || rec.AwaitsDate()
	if hasChanged && rec.Before != 0 {
		return rec.Before
	}
	return rec.Fetched
}
