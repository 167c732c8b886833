package indexing

import (
	"math"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
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
	since   []int64
	due     time.Time // when the first of those that wait still has waited for long enough
}

// add takes a page into account that is a file, or was one; isPending says that its last change is to be dated.
func (w *waiting) add(rec *store.Record, isPending bool) {
	if rec.Absent != 0 {
		w.latest = max(w.latest, rec.Absent) // what is gone is part of a deployment, too
		return
	}
	w.files++
	at := max(rec.ModTime, rec.Changed)
	isFromFuture := at > w.options.Now.Unix()+w.longest()
	if !isFromFuture {
		w.latest = max(w.latest, at)
	}
	if rec.Selected.Dated == 0 {
		w.found = max(w.found, rec.First)
	} else {
		w.isKnown = true
	}
	switch {
	case isPending:
		w.changed++
		w.since = append(w.since, rec.Batch())
	case rec.Flags&store.DeclaredMoves != 0, rec.Declared > textFoundAt(rec):
		w.since = append(w.since, rec.Fetched)
	}
}

// decide is called once all pages were added.
func (w *waiting) decide() {
	if w.isKnown {
		w.latest = max(w.latest, w.found)
	}
	now := w.options.Now.Unix()
	first := int64(math.MaxInt64)
	for _, since := range w.since {
		if at := w.endsAt(since); at > now {
			first = min(first, at)
		}
	}
	if first != math.MaxInt64 {
		w.due = time.Unix(first, 0).UTC()
	}
	w.since = nil
}

// isOpen reports whether a page waits because of its text.
func (w *waiting) isOpen(rec *store.Record) bool { return rec.IsFile() && w.isOpenSince(rec.Batch()) }

// isRewritten reports whether a page waits because of the date that it declares.
func (w *waiting) isRewritten(rec *store.Record) bool {
	return rec.IsFile() && w.isOpenSince(rec.Fetched)
}

func (w *waiting) isOpenSince(since int64) bool { return w.options.Now.Unix() < w.endsAt(since) }

// endsAt is when a page has waited for long enough.
func (w *waiting) endsAt(since int64) int64 {
	isFromFuture := since > w.options.Now.Unix()+w.longest() // the clock was set back
	if isFromFuture {
		return 0
	}
	return min(w.latest+w.quiet(), since+w.longest())
}

// quiet is for how many seconds no file may change.
func (w *waiting) quiet() int64 {
	areEdits := w.changed < 10 && 2*w.changed <= w.files
	if areEdits {
		return w.minutes(1) / 2
	}
	return max(w.minutes(2), int64(2*w.options.Interval/time.Second))
}

func (w *waiting) longest() int64 { return w.minutes(60) }

func (w *waiting) minutes(n int64) int64 {
	if w.options.Once {
		return 0 // no selection follows
	}
	return n * Minute
}
