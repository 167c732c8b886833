package indexing

import (
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// round is what the changes of a day have in common, of pages that are files, or of the others. A template changes many pages
// in the same way, or nearly all of them, each in another way: neither is a change of a page.
type round struct {
	alike      map[uint64]int // how many pages have changed alike, by how: in the last day, or to be dated
	changes    []change       // those of pages that are samples of the others
	since      int64          // when the first change was found that is to be dated
	lead       int64          // for how long before that pages of upstreams count: a crawl finds few changes at a time
	fetched    []uint32       // when those were fetched that are no files
	looked     int            // how many pages were looked at in the round: all files, as each scan does
	isRedesign bool
}

// change is how the text of a page has changed, and when that was found.
type change struct {
	found      int64
	difference uint64
}

// add takes a page into account that was dated before; isPending says that its last change is to be dated.
func (r *round) add(rec *record.Record, isPending bool, now int64) {
	if rec.Streak >= maxStreak {
		return // that its text changes once more says nothing of the others
	}
	if rec.IsFile() {
		r.looked++
	} else if !rec.Steadiness.IsInDoubt() {
		r.fetched = append(r.fetched, record.Unix32(rec.Fetched))
	}
	isRecent := rec.Changed > now-day
	if rec.Changed == 0 || !isPending && !isRecent {
		return
	}
	if rec.Difference == 0 {
		return // the text of before is back
	}
	r.alike[rec.Difference]++
	if isChosen(rec) {
		return
	}
	found := int64(rec.Found)
	r.changes = append(r.changes, change{found, rec.Difference})
	if isPending && (r.since == 0 || found < r.since) {
		r.since = found
		r.lead = hour
		// The changes that writes have made before are others.
		if rec.FoundBy == record.ByWrite {
			r.lead = hour / 60
		}
	}
}

// isChosen reports whether a page was fetched because it may have changed: it is no sample of the others.
func isChosen(rec *record.Record) bool {
	return !rec.IsFile() && (rec.FoundBy.IsChosen() || rec.FoundBy == record.ByList)
}

// decide is called once all pages were added.
func (r *round) decide() {
	for _, at := range r.fetched {
		if int64(at) >= r.from() {
			r.looked++
		}
	}
	others := 0
	for _, c := range r.changes {
		if c.found >= r.from() && !r.isShared(c.difference) {
			others++
		}
	}
	const fewestLooked = 10
	r.isRedesign = r.since != 0 && r.looked >= fewestLooked && 2*others > r.looked
}

// isShared reports whether so many pages have changed in a way that it is the template's.
func (r *round) isShared(difference uint64) bool {
	const fewestShared = 5
	n := r.alike[difference]
	isMost := n >= fewestAlike && 2*n > r.looked
	return n >= fewestShared || isMost
}

// from is when the round begins of the changes that are to be dated.
func (r *round) from() int64 {
	areFiles := len(r.fetched) == 0
	if areFiles {
		return r.since
	}
	return r.since - r.lead
}

// isTemplate reports whether a change that is to be dated is the template's.
func (r *round) isTemplate(rec *record.Record) bool {
	return r.isShared(rec.Difference) || r.isRedesign && !isChosen(rec)
}

// isTemplateSince is isTemplate, of a change of the last day that was dated already. A scan finds all files of a redesign at once.
func (r *round) isTemplateSince(rec *record.Record) bool {
	isOfRound := !rec.IsFile() && int64(rec.Found) >= r.from()
	return r.isShared(rec.Difference) || isOfRound && r.isTemplate(rec)
}
