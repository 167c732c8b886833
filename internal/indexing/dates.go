package indexing

import (
	"cmp"
	"math"
	"slices"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Mode is where the dates of listed pages come from.
type Mode uint8

// The modes.
const (
	Auto    Mode = iota // dates that pages declare, else lists, else when the text changed
	ModTime             // dates that sources give
	Off                 // none
)

const (
	day         = 24 * 3600 // seconds
	span        = 600       // seconds within which times are alike, as those of a deployment
	fewestAlike = 3         // fewest times or pages that say something about the site
	fewestFiles = 10        // fewest files of a deployment that is not nearly all of the site
	maxStreak   = 3         // changes in a row, from which on the text has a counter or a rotating list
)

// times are Unix seconds.
type times []uint32

func (t *times) add(unix int64) {
	if unix > 0 && unix <= math.MaxUint32 {
		*t = append(*t, uint32(unix))
	}
}

// clusters sorts the times and returns the ranges, from first to last, in which enough times lie
// within ten minutes of each other.
func (t times) clusters(enough func(count int) bool) (found [][2]uint32) {
	slices.Sort(t)
	from := 0
	for to := range t {
		for t[to]-t[from] > span {
			from++
		}
		if !enough(to - from + 1) {
			continue
		}
		last := len(found) - 1
		if last >= 0 && t[from] <= found[last][1] {
			found[last][1] = t[to] // they overlap
			continue
		}
		found = append(found, [2]uint32{t[from], t[to]})
	}
	return found
}

// alike returns the range of nine tenths of the times, if they are within ten minutes.
func (t times) alike() [][2]uint32 {
	return t.clusters(func(count int) bool { return count >= fewestAlike && 10*count >= 9*len(t) })
}

// dates is what all pages together say about the date of each: whether a batch is a deployment, or a
// change of the template.
type dates struct {
	rules    *Options
	allTimes // until decide

	fresh   int   // pages seen for the first time that have a time
	known   int   // known pages with a file version; after decide, also those fetched since
	changed int   // known pages with another text
	since   int64 // the first batch of these

	deployments   [][2]uint32
	declaredAlike bool
	headersAlike  bool
	template      bool // most texts changed at once

	// buildTimes are when programs wrote the lists, where nearly all of these' dates are alike. Single dates beside them are
	// those of edits: an application may have got all of its other pages in one import.
	buildTimes [][2]uint32
}

// allTimes are 4 bytes for each time that a page has.
type allTimes struct {
	declared times // of all pages
	headers  times // Last-Modified of all pages without a file's time
	lists    times // of pages that a list dates
	undated  times // of pages whose text has no date, or none yet
	files    times // those of undated that are of files
	fetched  times // when known pages without a file version were fetched
	told     times // of changed pages that were fetched because of another date in a list
}

// batchOf is the batch in which the page's present text was found; 0: it has none.
func batchOf(rec *store.Record) int64 { return cmp.Or(rec.Changed, rec.First) }

// timeOf returns when the page was modified: by the file, if it is served as it is, else by the
// Last-Modified header. Zero: neither says, or the header is the time of the response itself.
func timeOf(rec *store.Record) (at date, isFile bool) {
	switch {
	case rec.Version != 0 && rec.ModTime != 0 && rec.Flags&store.Proxied == 0:
		return date{unix: rec.ModTime}, true
	case rec.Modified < rec.Fetched/60*60-1:
		return date{unix: rec.Modified}, false
	}
	return date{}, false
}

// add takes a record into account.
func (d *dates) add(rec *store.Record) {
	if rec.First == 0 || rec.Status != 200 || rec.Absent != 0 {
		return
	}
	at, isFile := timeOf(rec)
	d.declared.add(rec.Declared)
	d.lists.add(listDate(rec).unix)
	if !isFile {
		d.headers.add(at.unix)
	}
	if rec.Selected.Text == 0 {
		d.undated.add(at.unix)
		if isFile {
			d.files.add(at.unix)
		}
	}
	batch := batchOf(rec)
	isOpen := batch == d.rules.OpenBatch
	if rec.Selected.Dated == 0 {
		if !isOpen && at.unix != 0 {
			d.fresh++
		}
		return
	}
	if rec.Streak >= maxStreak {
		return // that its text changes once more says nothing about the template
	}
	if rec.Version != 0 {
		d.known++
	} else {
		d.fetched.add(rec.Fetched)
	}
	if batch == rec.Selected.Dated || isOpen || rec.FoundBy.IsChosen() {
		return
	}
	if rec.FoundBy == store.ByList {
		d.told.add(listDate(rec).unix) // it counts only if that is the time of a build
		return
	}
	d.changed++
	if d.since == 0 || batch < d.since {
		d.since = batch
	}
}

// decide is called once all records were added.
func (d *dates) decide() {
	d.declaredAlike = len(d.declared.alike()) > 0
	d.headersAlike = len(d.headers.alike()) > 0
	if !d.rules.TrustLists && len(d.lists.alike()) > 0 {
		d.buildTimes = d.lists.clusters(func(count int) bool { return count >= fewestAlike })
	}
	for _, at := range d.told {
		if isIn(d.buildTimes, int64(at)) {
			d.changed++
		}
	}
	if d.fresh > 0 {
		d.deployments = append(d.files.alike(), d.undated.alike()...)
		d.deployments = append(d.deployments, d.undated.clusters(func(count int) bool {
			return count >= fewestFiles && 5*count >= d.fresh
		})...)
	}
	// A page that was not fetched since may have the other template as well.
	for _, fetched := range d.fetched {
		if int64(fetched) >= d.since {
			d.known++
		}
	}
	d.template = d.known >= fewestAlike && 2*d.changed > d.known
	d.allTimes = allTimes{}
}

// date is a date with its precision; the zero value: none.
type date struct {
	unix int64
	day  bool
}

// of returns the selection of a page that is listed.
func (d *dates) of(rec *store.Record) store.Selected {
	text, dated := d.ofText(rec)
	s := store.Selected{Listed: true, Text: text.unix, TextDay: text.day, Dated: dated}
	listed := d.listed(rec, text)
	isFuture := listed.unix > max(d.rules.Now.Unix(), rec.Fetched)
	if listed.unix < page.Earliest || isFuture {
		return s
	}
	s.LastMod = listed.unix
	s.Day = listed.day
	return s
}

// listed returns the date that is listed for a page, given that of its text.
func (d *dates) listed(rec *store.Record, text date) date {
	list := listDate(rec)
	hasList := list.unix != 0 && !isIn(d.buildTimes, list.unix)
	isInDoubt := rec.Steadiness.IsInDoubt()
	isBelieved := !d.declaredAlike && !isInDoubt && rec.Flags&store.DeclaredMoves == 0
	switch {
	case d.rules.Dates == ModTime && list.unix == 0:
		return date{unix: rec.ModTime}
	case d.rules.Dates == ModTime:
		return list
	case d.rules.Dates == Off:
		return date{}
	case isInDoubt && rec.Selected.Listed && (!hasList || rec.Declared != 0):
		return date{rec.Selected.LastMod, rec.Selected.Day} // until what has changed is confirmed
	case rec.Declared != 0 && isBelieved:
		return date{rec.Declared, rec.Flags&store.DeclaredDay != 0}
	case hasList:
		return list // the operator's word, or the application's, which needs no confirmation
	case rec.Streak >= maxStreak, rec.Steadiness == store.Noisy:
		return date{}
	}
	return text
}

// listDate returns the date that a list gives a page; zero: none does.
func listDate(rec *store.Record) date {
	isDay := rec.Flags&store.ModDay != 0
	switch {
	case rec.Flags&store.Named == 0:
		return date{}
	case rec.Version != 0: // then ModTime is the file's
		return date{rec.ListDate, isDay}
	}
	return date{rec.ModTime, isDay}
}

// ofText returns the date of the page's present text, and the batch from which it was decided:
// once, since later the file may be written anew with the same text.
func (d *dates) ofText(rec *store.Record) (date, int64) {
	batch := batchOf(rec)
	dated := rec.Selected.Dated
	before := date{rec.Selected.Text, rec.Selected.TextDay}
	switch {
	case batch == 0, batch == dated, batch == d.rules.OpenBatch:
		return before, dated
	case dated == 0:
		return d.atFirstSight(rec), batch
	case d.isTemplates(rec):
		return before, batch
	}
	return d.ofChange(rec), batch
}

// isTemplates reports whether the last change of a page's text may be the template's. A page that was fetched because it may
// have changed is no sample of the others, and what others found says nothing of it.
func (d *dates) isTemplates(rec *store.Record) bool { return d.template && !d.isChosen(rec) }

// isChosen reports whether a page was fetched because it may have changed: also where a list told so, unless that has new dates for
// all pages at each build.
func (d *dates) isChosen(rec *store.Record) bool {
	isTold := rec.FoundBy == store.ByList && !isIn(d.buildTimes, listDate(rec).unix)
	return isTold || rec.FoundBy.IsChosen()
}

func (d *dates) atFirstSight(rec *store.Record) date {
	at, isFile := timeOf(rec)
	if isIn(d.deployments, at.unix) || !isFile && d.headersAlike {
		return date{}
	}
	return at
}

// isIn reports whether a time is in any of the ranges.
func isIn(ranges [][2]uint32, unix int64) bool {
	return slices.ContainsFunc(ranges, func(r [2]uint32) bool {
		return int64(r[0]) <= unix && unix <= int64(r[1])
	})
}

func (d *dates) ofChange(rec *store.Record) date {
	at, isFile := timeOf(rec)
	before := rec.Selected.Text
	if isFile && at.unix > before {
		return at
	}
	if !isFile && !d.headersAlike && at.unix > max(before, rec.Before) { // else it was there before the change
		return at
	}
	// Below 0, the clock was set back, and neither time says when the text changed. A page that is fetched once a day comes
	// somewhat later in its turn, and again to confirm the change.
	elapsed := rec.Fetched - rec.Before
	if elapsed >= 0 && elapsed < day+day/4 {
		return date{rec.Fetched, true}
	}
	return date{}
}
