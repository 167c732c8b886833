package indexing

import (
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// waiting says for how long a change of a file waits until it is dated: what the pages of a deployment have in common shows
// once it is over. That is when no file has changed for two minutes, or for two intervals of refreshes, as a scan finds
// changes only then. Where few files wait, they are edits, and half a minute will do. None waits for more than an hour.
type waiting struct {
	options *Options

	isKnown bool  // the site is: else when its files were found says nothing of when they changed
	files   int   // that are pages,
	changed int   // and how many of them wait because of their text
	latest  int64 // when a file last changed,
	found   int64 // or a new one was found
	first   int64 // since when the first of them waits; 0: none does
}

// add takes a page into account that is a file; isPending says that its last change is to be dated.
func (w *waiting) add(rec *record.Record, isPending bool) {
	w.files++
	w.saw(rec.ModTime)
	w.saw(rec.Changed)
	if rec.Selected.Dated == 0 {
		w.found = max(w.found, rec.First)
	} else {
		w.isKnown = true
	}
	switch {
	case isPending:
		w.changed++
		w.wait(rec.Batch())
	case rec.Flags&record.DeclaredMoves != 0, rec.Declared > textFoundAt(rec):
		w.wait(rec.Fetched)
	}
}

// saw takes a time into account at which a file changed. One in the future is of a clock that is wrong.
func (w *waiting) saw(at int64) {
	if at <= w.options.Now.Unix() {
		w.latest = max(w.latest, at)
	}
}

// wait has a page wait since a time, unless that is over.
func (w *waiting) wait(since int64) {
	isOver := since+w.longest() <= w.options.Now.Unix()
	if !isOver && (w.first == 0 || since < w.first) {
		w.first = since
	}
}

// due is when dates can be decided that wait; the zero time: none does.
func (w *waiting) due() time.Time {
	if w.first == 0 || !w.isOpen(w.first) {
		return time.Time{}
	}
	return time.Unix(w.endsAt(w.first), 0).UTC()
}

// isOpen reports whether a file waits that does so since a time.
func (w *waiting) isOpen(since int64) bool { return w.options.Now.Unix() < w.endsAt(since) }

// endsAt is when a file has waited for long enough.
func (w *waiting) endsAt(since int64) int64 {
	latest := w.latest
	if w.isKnown {
		latest = max(latest, w.found)
	}
	return min(latest+w.quiet(), since+w.longest())
}

// quiet is for how many seconds no file may change.
func (w *waiting) quiet() int64 {
	areEdits := w.changed < 10 && 2*w.changed <= w.files
	if areEdits {
		return Minute / 2
	}
	return max(2*Minute, int64(2*w.options.Interval/time.Second))
}

// longest is for how many seconds a file waits at most.
func (w *waiting) longest() int64 {
	if w.options.Once {
		return 0 // no selection follows
	}
	return 60 * Minute
}
