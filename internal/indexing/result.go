package indexing

import (
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Bounds of what a result keeps.
const (
	maxExamples = 3
	maxChanges  = 10_000
	maxHosts    = 20
)

// Result is what a selection came to.
type Result struct {
	// Generation has the selection written in its records. Nil: not all pages were read.
	Generation *store.Generation

	// Listed is how many pages are listed, and Before how many the last published selection
	// listed.
	Listed, Before int

	// LeftOut are the pages that are not listed, by status.
	LeftOut [statusCount]Examples

	// Changes are what differs from the last published selection.
	Changes Changes

	// Regressed counts, by status, the pages that were listed and do not qualify any more,
	// also where they are kept. Those that are refused with 401 or 403, or that the
	// operator's settings exclude, do not count.
	Regressed [statusCount]int

	// Orphans are listed pages to which no listed page links.
	Orphans Examples

	// NotMutual are listed pages whose alternates are left out: not each of these pages
	// lists the same alternates.
	NotMutual Examples

	// ForeignHosts counts the canonicals on other sites by scheme, host and port; those of
	// more than 20 are counted under "".
	ForeignHosts map[string]int
}

// Examples are a number of pages, and the paths of the first three.
type Examples struct {
	Count int
	First []string
}

func (e *Examples) add(path string) {
	if e.Count++; len(e.First) < maxExamples {
		e.First = append(e.First, path)
	}
}

// Changes are the pages that differ from the last published selection. Changed are those
// with another text, save where a template changed, or another date.
type Changes struct {
	Added, Changed, Removed ChangeList
}

// ChangeList are a number of pages, and the first 10,000 of them.
type ChangeList struct {
	Count int
	First []Change
}

// Change is a page that changed. LastMod is its date in Unix seconds, 0 if it has none; a
// removed page has none.
type Change struct {
	Path    string
	LastMod int64
}

func (l *ChangeList) add(path string, lastMod int64) {
	if l.Count++; len(l.First) < maxChanges {
		l.First = append(l.First, Change{path, lastMod})
	}
}

// Result returns what the selection came to. It is complete once the pages were read.
func (s *Selection) Result() Result { return s.result }

// add takes a record into account whose selection is new.
func (r *Result) add(rec *store.Record, st state, selected store.Selected, isTemplate bool) {
	status, was := st.status(), rec.Selected
	if st&isListed == 0 {
		r.LeftOut[status].add(rec.Path)
		if status == CanonicalForeign {
			r.addHost(rec.Canonical)
		}
	} else if st&isOrphan != 0 {
		r.Orphans.add(rec.Path)
	}
	if was.Listed && status != Indexable && !isFinal(status, rec) {
		r.Regressed[status]++
	}
	switch {
	case selected.Listed && !was.Listed:
		r.Changes.Added.add(rec.Path, selected.LastMod)
	case !selected.Listed && was.Listed:
		r.Changes.Removed.add(rec.Path, 0)
	case selected.Listed && isChange(was, selected, isTemplate):
		r.Changes.Changed.add(rec.Path, selected.LastMod)
	}
}

// isChange reports whether a page that stays listed is to be told of. It is not when its
// first date is only decided after it was listed.
func isChange(was, is store.Selected, isTemplate bool) bool {
	if was.Dated != is.Dated {
		return was.Dated != 0 && !isTemplate
	}
	return was.LastMod != is.LastMod || was.Day != is.Day
}

func (r *Result) addHost(url string) {
	scheme, rest, _ := strings.Cut(url, "//")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host := scheme + "//" + rest[:end]
	if r.ForeignHosts == nil {
		r.ForeignHosts = make(map[string]int)
	}
	if _, known := r.ForeignHosts[host]; !known && len(r.ForeignHosts) >= maxHosts {
		host = ""
	}
	r.ForeignHosts[host]++
}
