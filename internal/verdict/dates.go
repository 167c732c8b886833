package verdict

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

// Decisions are what the dates of a site's pages are told by all of them together.
type Decisions struct {
	Deployment      bool // the files that are new were all written at the same time
	AnswersAlike    bool // so were, by their answers, the pages that are no files
	DeclaredAlike   bool // the pages declare the time at which they were built
	TemplateChanged bool // most texts changed at once
}

const (
	fewest   = 3   // pages that say something about the site
	alike    = 600 // seconds in which a deployment ends
	manyTens = 9   // tenths
)

// dates counts what Decisions are made of.
type dates struct {
	first, answers, declared times
	known, changed           int
}

func (d *dates) add(r *state.Record) {
	d.declared.add(r.Declared)
	switch {
	case r.Flags&FlagRead == 0:
		return
	case r.Flags&FlagDynamic != 0 && r.Modified != "":
		d.answers.add(lastModified(r))
	}
	switch r.Seen {
	case seenFirstFile:
		d.first.add(r.Page.LastMod)
		return
	case seenFirstAnswer:
		return
	}
	if r.Streak >= maxStreak {
		return // a counter says nothing of the others
	}
	d.known++
	if r.Seen != seenNothing {
		d.changed++
	}
}

func (d *dates) decide() Decisions {
	return Decisions{
		Deployment:      d.first.areAlike(),
		AnswersAlike:    d.answers.areAlike(),
		DeclaredAlike:   d.declared.areAlike(),
		TemplateChanged: d.known >= fewest && 2*d.changed > d.known,
	}
}

// times are Unix seconds: all of them up to maxTimes, beyond that every second,
// every fourth, ….
type times struct {
	kept   []uint32
	stride uint // a power of two; 0: 1
	seen   uint
}

const maxTimes = 1 << 18

func (t *times) add(unix int64) {
	if unix <= 0 || unix > math.MaxUint32 {
		return
	}
	t.stride = max(t.stride, 1)
	t.seen++
	if (t.seen-1)&(t.stride-1) != 0 {
		return
	}
	if len(t.kept) == maxTimes {
		for i := range maxTimes / 2 {
			t.kept[i] = t.kept[2*i]
		}
		t.kept, t.stride = t.kept[:maxTimes/2], 2*t.stride
	}
	t.kept = append(t.kept, uint32(unix))
}

// areAlike reports whether nine tenths of the times lie within ten minutes of each
// other.
func (t *times) areAlike() bool {
	n := len(t.kept)
	if n < fewest {
		return false
	}
	slices.Sort(t.kept)
	most := (n*manyTens + 9) / 10
	for i := most - 1; i < n; i++ {
		if t.kept[i]-t.kept[i-most+1] <= alike {
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
		if d.AnswersAlike {
			r.LastMod = 0
		}
		return true
	}
	// A time that was there before the text changed is not that of the change.
	modified := lastModified(r)
	if d.AnswersAlike || modified <= r.LastMod {
		modified = 0
	}
	switch {
	case d.TemplateChanged:
	case seen == seenChangeFile && r.Page.LastMod > r.LastMod:
		r.LastMod, r.LastModDay = r.Page.LastMod, r.Page.LastModDay
	case seen != seenChangeFile && modified != 0:
		r.LastMod, r.LastModDay = modified, false
	case seen == seenChangeDay:
		r.LastMod, r.LastModDay = r.Asked, true
	default:
		r.LastMod, r.LastModDay = 0, false
	}
	return true
}

// lastModified is the header of the last answer; 0: it had none, or one that cannot
// be, such as the time of the answer itself, which is kept to the minute.
func lastModified(r *state.Record) int64 {
	if r.Modified == "" {
		return 0
	}
	t, ok := headerTime(r.Modified)
	if !ok || t <= 0 || t >= r.Asked/60*60-1 {
		return 0
	}
	return t
}

// headerTime is [http.ParseTime] for Unix seconds, and quick for the form that
// servers send (RFC 9110, section 5.6.7).
func headerTime(s string) (unix int64, ok bool) {
	const form = "Mon, 02 Jan 2006 15:04:05 GMT"
	if len(s) == len(form) && s[3:5] == ", " && s[7] == ' ' && s[11] == ' ' && s[16] == ' ' && s[19] == ':' && s[22] == ':' && s[25:] == form[25:] {
		month := strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", s[8:11])
		day, year := number(s[5:7]), number(s[12:16])
		hour, minute, second := number(s[17:19]), number(s[20:22]), number(s[23:25])
		// The rest are left to who knows how long months are.
		if month >= 0 && month%3 == 0 && day > 0 && day <= 28 && year > 0 &&
			uint(hour) < 24 && uint(minute) < 60 && uint(second) < 60 {
			return time.Date(year, time.Month(month/3+1), day, hour, minute, second, 0, time.UTC).Unix(), true
		}
	}
	t, err := http.ParseTime(s)
	return t.Unix(), err == nil
}

// number reads digits; -1: there are others.
func number(s string) (n int) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = 10*n + int(s[i]-'0')
	}
	return n
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
	case r.Page.Version == 0 && r.Page.LastMod != 0 && r.Flags&(FlagRead|FlagDynamic) != FlagRead:
		return r.Page.LastMod, r.Page.LastModDay // the user's own list says so, not a file that is to be read again
	case r.Flags&FlagRead == 0:
		return 0, false
	}
	return r.LastMod, r.LastModDay
}

// day is how long a change may have been there before it was noticed.
const day = 24 * time.Hour
