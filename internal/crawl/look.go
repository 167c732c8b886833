package crawl

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const (
	mostWrites = 60 // requests that are saved up for writes, or what the rate allows in half a minute
	lookAtOnce = 10 // pages in a crawl, after which dates are decided: enough to tell a correction from another template
	lookEvery  = 1  // seconds between two parts of a look
	lookFor    = 20 // seconds that a look takes
)

// Look is what is looked at after writes, a part in each crawl.
type Look struct {
	Written int64    // when the last write ended, in Unix seconds
	Paths   []string // which the writes name: perhaps pages
	Begun   int64    // in the same
	isPart  bool     // a part of it was taken
	isOver  bool     // all pages were looked at, or the rest of the budget is for the next look
}

// IsOn reports whether there may be pages to look at; nil: there was no write.
func (l *Look) IsOn(now int64) bool { return l != nil && !l.isOver && now-l.Begun <= lookFor }

// IsSince reports whether something was saved since a time; nil: there was no write.
func (l *Look) IsSince(at time.Time) bool { return l != nil && at.Unix() <= l.Written }

// names reports whether a write has named a page.
func (l *Look) names(rec *record.Record) bool { return slices.Contains(l.Paths, rec.Path) }

// LookDue is when a look may begin, by the budget of writes; zero: at once.
func (l *Limiter) LookDue() (due time.Time) {
	r := l.writes.Reserve()
	defer r.Cancel()
	if pause := min(r.Delay(), maxBackoff); pause > 0 {
		due = time.Now().Add(pause)
	}
	return due
}

// look has pages fetched that writes may have changed, once in a crawl. All requests are paid from the budget of writes. Where that has
// few, only the pages that the writes name are.
func (r *Run) look(ctx context.Context) error {
	canLook := !r.hasLooked && !r.p.Closed && !r.p.Spares && r.p.Look.IsOn(r.c.now())
	if !canLook {
		return nil
	}
	r.hasLooked = true
	budget := int(r.c.o.Limiter.writes.Tokens())
	if r.p.Look.isPart && budget < mostWrites/2 {
		r.p.Look.isOver = true
		return nil
	}
	r.p.Look.isPart = true
	most := min(budget, lookAtOnce)
	var first []record.Record
	for i := range r.gen.Chunks() {
		records, err := r.load(ctx, i)
		if err != nil {
			return err
		}
		for _, rec := range records {
			// What the part before has found is dated first.
			if rec.Cause == record.ByWrite && r.wanted(&rec) {
				return nil
			}
			if r.isLookedAt(&rec) && (most == lookAtOnce || r.p.Look.names(&rec)) {
				first = append(first, rec)
			}
		}
		slices.SortFunc(first, r.compareLooked)
		first = first[:min(len(first), max(most, 0))]
	}
	for _, rec := range first {
		r.notify(notice{path: rec.Path, cause: record.ByWrite})
	}
	r.p.Look.isOver = most == lookAtOnce && len(first) < most
	return nil
}

// isLookedAt reports whether a page may have changed by the writes. The probe has looked at the front page.
func (r *Run) isLookedAt(rec *record.Record) bool {
	isSeen := rec.Fetched > r.p.Look.Written || rec.Path == r.front.path
	if isSeen || rec.Fetched == 0 || rec.Flags&record.Made == 0 || !r.wanted(rec) {
		return false
	}
	isPage := rec.Status == 200 && rec.Failing == 0
	return isPage || r.p.Look.names(rec)
}

// compareLooked orders pages by which are looked at first. Of those that are as deep, new ones are corrected more often.
func (r *Run) compareLooked(a, b record.Record) int {
	return cmp.Or(r.lookOrder(&a)-r.lookOrder(&b), cmp.Compare(b.First, a.First))
}

// lookOrder says which pages come first: what the writes name, then lists, then others by depth.
func (r *Run) lookOrder(rec *record.Record) int {
	if r.p.Look.names(rec) {
		return -2
	}
	if HubInterval(scoreOf(rec)) != 0 {
		return -1
	}
	return int(rec.Depth)
}
