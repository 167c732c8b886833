package verdict

import (
	"net/http"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

// Decisions are what the dates of a site's pages are told by all of them together.
type Decisions struct {
	Deployment      bool // the files that are new were all written at the same time
	DeclaredAlike   bool // the pages declare the time at which they were built
	TemplateChanged bool // most texts changed at once
}

const (
	fewest    = 3  // pages that say something about the site
	alike     = 10 // minutes in which a deployment ends
	manyTens  = 9  // tenths
	maxWindow = 1 << 20
)

// dates counts what Decisions are made of.
type dates struct {
	first, declared window
	known, changed  int
}

func (d *dates) add(r *state.Record) {
	switch r.Seen {
	case seenFirstFile:
		d.first.add(r.Page.LastMod)
	case seenChangeFile, seenChangeAnswer, seenChangeDay:
		d.changed++
	}
	if r.Flags&FlagRead != 0 && r.Seen != seenFirstFile && r.Seen != seenFirstAnswer {
		d.known++
	}
	d.declared.add(r.Declared)
}

func (d *dates) decide() Decisions {
	return Decisions{
		Deployment:      d.first.isAlike(),
		DeclaredAlike:   d.declared.isAlike(),
		TemplateChanged: d.known >= fewest && 2*d.changed > d.known,
	}
}

// window counts times by the minute.
type window struct {
	minutes map[int64]int
	total   int
}

func (w *window) add(unix int64) {
	if unix == 0 {
		return
	}
	if w.minutes == nil {
		w.minutes = make(map[int64]int)
	}
	w.total++
	minute := unix / 60
	if _, there := w.minutes[minute]; there || len(w.minutes) < maxWindow {
		w.minutes[minute]++
	}
}

// isAlike reports whether nine tenths of the times lie within ten minutes.
func (w *window) isAlike() bool {
	if w.total < fewest {
		return false
	}
	for minute, n := range w.minutes {
		// The window that begins here: one that holds so many begins at one of them.
		for i := int64(1); i <= alike; i++ {
			n += w.minutes[minute+i]
		}
		if 10*n >= manyTens*w.total {
			return true
		}
	}
	return false
}

// Settle makes a date of how a page's present text was come upon. It reports
// whether that changed the record.
func Settle(r *state.Record, d Decisions) bool {
	seen := r.Seen
	r.Seen = seenNothing
	switch seen {
	case seenNothing:
		return false
	case seenFirstFile:
		r.LastMod, r.LastModDay = r.Page.LastMod, r.Page.LastModDay
		if d.Deployment {
			r.LastMod, r.LastModDay = 0, false
		}
		return true
	case seenFirstAnswer:
		r.LastMod, r.LastModDay = lastModified(r), false
		return true
	}
	switch {
	case d.TemplateChanged:
	case seen == seenChangeFile:
		r.LastMod, r.LastModDay = r.Page.LastMod, r.Page.LastModDay
	case lastModified(r) != 0:
		r.LastMod, r.LastModDay = lastModified(r), false
	case seen == seenChangeDay:
		r.LastMod, r.LastModDay = r.Asked, true
	default:
		r.LastMod, r.LastModDay = 0, false
	}
	return true
}

// lastModified is the header of the last answer; 0: it had none, or one that cannot
// be, such as the time of the answer itself.
func lastModified(r *state.Record) int64 {
	t, err := http.ParseTime(r.Modified)
	if err != nil || t.Unix() <= 0 || t.Unix() >= r.Asked-1 {
		return 0
	}
	return t.Unix()
}

// Mode is where the listed dates come from.
type Mode uint8

// The modes.
const (
	Auto  Mode = iota // from what the page says, and from when it changed
	MTime             // from the sources alone
	Off               // there are none
)

// LastMod is the date that is listed for a page, in Unix seconds, or a day; 0: none.
func LastMod(r *state.Record, d Decisions, m Mode) (unix int64, day bool) {
	switch {
	case m == Off:
		return 0, false
	case m == MTime:
		return r.Page.LastMod, r.Page.LastModDay
	case r.Streak >= maxStreak:
		return 0, false
	case r.Declared != 0 && !d.DeclaredAlike && r.Flags&FlagDeclaredMoves == 0:
		return r.Declared, r.DeclaredDay
	case r.Page.Version == 0 && r.Page.LastMod != 0:
		return r.Page.LastMod, r.Page.LastModDay // the user's own list says so
	case r.Flags&FlagRead == 0:
		return 0, false
	}
	return r.LastMod, r.LastModDay
}

// day is how long a change may have been there before it was noticed.
const day = 24 * time.Hour
