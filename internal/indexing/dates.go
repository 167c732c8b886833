package indexing

import (
	"math"
	"slices"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Mode is where the dates of listed pages come from.
type Mode uint8

// The modes.
const (
	Auto    Mode = iota // what pages declare, and when their text changed
	ModTime             // what sources say
	Off                 // there are none
)

const (
	day         = 24 * 3600
	span        = 600 // seconds within which times are alike, as a deployment's
	fewestAlike = 3   // times or pages that say something about the site
	fewestFiles = 10  // files of a deployment, where not nearly all pages are of it
	maxStreak   = 3   // changes in a row that show a counter or a rotating list
)

// times are Unix seconds.
type times []uint32

func (t *times) add(unix int64) {
	if unix > 0 && unix <= math.MaxUint32 {
		*t = append(*t, uint32(unix))
	}
}

// crowd is a range of times, first and last included.
type crowd struct{ first, last uint32 }

// crowds sorts the times and returns the ranges in which times within ten minutes of each
// other are enough.
func (t times) crowds(enough func(count int) bool) (found []crowd) {
	slices.Sort(t)
	from := 0
	for to := range t {
		for t[to]-t[from] > span {
			from++
		}
		if !enough(to - from + 1) {
			continue
		}
		if n := len(found); n > 0 && t[from] <= found[n-1].last {
			found[n-1].last = t[to]
			continue
		}
		found = append(found, crowd{t[from], t[to]})
	}
	return found
}

// alike returns the range of nine tenths of the times, if they are within ten minutes.
func (t times) alike() []crowd {
	return t.crowds(func(count int) bool { return count >= fewestAlike && 10*count >= 9*len(t) })
}

// dates is what all pages together say about the dates of each. Most is decided of a batch
// as a whole: that it is a deployment, or a change of the template.
type dates struct {
	rules *Rules

	declared times // of all pages
	answers  times // Last-Modified of all pages that are no files
	files    times // of files at first sight, and of those that are known for a deployment's
	fetched  times // of known pages without file version: when they were fetched last
	first    int   // pages at first sight that have such a time
	known    int   // pages with a file version, which need not be fetched to be known
	changed  map[int64]int

	declaredAlike bool
	answersAlike  bool
	deployments   []crowd
	template      map[int64]bool // batches in which most texts changed
}

// batchOf is the batch in which the page's present text was found; 0: it has none.
func batchOf(rec *store.Record) int64 {
	if rec.Changed != 0 {
		return rec.Changed
	}
	return rec.First
}

// hasFileTime reports whether ModTime is that of a file that is served as it is.
func hasFileTime(rec *store.Record) bool {
	return rec.Version != 0 && rec.ModTime != 0 && rec.Flags&store.Proxied == 0
}

// add takes a record into account.
func (d *dates) add(rec *store.Record) {
	if rec.Text == 0 || rec.Absent != 0 {
		return
	}
	d.declared.add(rec.Declared)
	isFile, batch, dated := hasFileTime(rec), batchOf(rec), rec.Selected.Dated
	modified := lastModified(rec)
	if !isFile {
		d.answers.add(modified)
	}
	isFirst := dated == 0 && batch != d.rules.OpenBatch
	if isFirst && (isFile || modified != 0) {
		d.first++
	}
	if isFile && (isFirst || dated != 0 && rec.Selected.Text == 0) {
		d.files.add(rec.ModTime)
	}
	if dated != 0 {
		d.addKnown(rec, batch != dated)
	}
}

// addKnown counts a page whose text was known before. A counter says nothing of others.
func (d *dates) addKnown(rec *store.Record, changed bool) {
	if rec.Streak >= maxStreak {
		return
	}
	if changed {
		if d.changed == nil {
			d.changed = make(map[int64]int)
		}
		d.changed[batchOf(rec)]++
	}
	if rec.Version != 0 {
		d.known++
		return
	}
	d.fetched.add(rec.Fetched)
}

// decide is called once all records were added.
func (d *dates) decide() {
	d.declaredAlike = len(d.declared.alike()) > 0
	d.answersAlike = len(d.answers.alike()) > 0
	if d.first > 0 {
		all := append(slices.Clone(d.files), d.answers...)
		d.deployments = append(d.files.alike(), all.crowds(func(count int) bool {
			return count >= fewestFiles && 5*count >= d.first
		})...)
	}
	slices.Sort(d.fetched)
	for batch, changed := range d.changed {
		since, _ := slices.BinarySearch(d.fetched, uint32(max(batch, 0)))
		known := d.known + len(d.fetched) - since
		if known >= fewestAlike && 2*changed > known {
			if d.template == nil {
				d.template = make(map[int64]bool)
			}
			d.template[batch] = true
		}
	}
	d.declared, d.answers, d.files, d.fetched = nil, nil, nil, nil
}

// isDeployment reports whether a time is that of many other files.
func (d *dates) isDeployment(unix int64) bool {
	return slices.ContainsFunc(d.deployments, func(c crowd) bool {
		return int64(c.first) <= unix && unix <= int64(c.last)
	})
}

// date is a date with its precision; the zero value: none.
type date struct {
	unix int64
	day  bool
}

// of returns what was selected of a page, but for whether it is listed.
func (d *dates) of(rec *store.Record) store.Selected {
	text, dated := d.ofText(rec)
	listed := d.listed(rec, text)
	if listed.unix > d.rules.Now.Unix() {
		listed = date{}
	}
	return store.Selected{LastMod: listed.unix, Day: listed.day, Text: text.unix, TextDay: text.day, Dated: dated}
}

// listed returns the date that is listed for a page whose text has another.
func (d *dates) listed(rec *store.Record, text date) date {
	source := date{rec.ModTime, rec.Flags&store.ModDay != 0}
	switch {
	case d.rules.Dates == ModTime:
		return source
	case d.rules.Dates == Off, rec.Streak >= maxStreak:
		return date{}
	case rec.Declared != 0 && !d.declaredAlike && rec.Flags&store.DeclaredMoves == 0:
		return date{rec.Declared, rec.Flags&store.DeclaredDay != 0}
	case isFromList(rec) && rec.ModTime != 0:
		return source // the operator's word
	}
	return text
}

// ofText returns the date of the page's present text, and the batch from which that was
// decided. It is decided once, since later the file may be written anew with the same text.
func (d *dates) ofText(rec *store.Record) (date, int64) {
	batch, dated := batchOf(rec), rec.Selected.Dated
	before := date{rec.Selected.Text, rec.Selected.TextDay}
	switch {
	case batch == 0, batch == dated, batch == d.rules.OpenBatch:
		return before, dated
	case dated == 0:
		return d.atFirstSight(rec), batch
	case d.template[batch]:
		return before, batch
	}
	return d.ofChange(rec), batch
}

func (d *dates) atFirstSight(rec *store.Record) date {
	first := date{rec.ModTime, rec.Flags&store.ModDay != 0}
	if !hasFileTime(rec) {
		first = date{unix: lastModified(rec)}
		if d.answersAlike {
			return date{}
		}
	}
	if d.isDeployment(first.unix) {
		return date{}
	}
	return first
}

func (d *dates) ofChange(rec *store.Record) date {
	// A time that was there before the text changed is not that of the change.
	before, modified := rec.Selected.Text, lastModified(rec)
	switch {
	case hasFileTime(rec) && rec.ModTime > before:
		return date{rec.ModTime, rec.Flags&store.ModDay != 0}
	case !d.answersAlike && modified > max(before, rec.Before):
		return date{unix: modified}
	case rec.Before != 0 && rec.Fetched-rec.Before < day:
		return date{rec.Fetched, true}
	}
	return date{}
}

// lastModified is the Last-Modified header of the response. Some servers send the time of
// the response itself, which is no date; 0: it is that, or there is none.
func lastModified(rec *store.Record) int64 {
	if rec.Modified <= 0 || rec.Modified >= rec.Fetched/60*60-1 {
		return 0
	}
	return rec.Modified
}
