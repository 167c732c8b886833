package indexing

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// Mode is where the dates of listed pages come from.
type Mode uint8

// The modes.
const (
	Auto    Mode = iota // what pages declare, lists, and when texts changed
	ModTime             // dates that sources give
	Off                 // none
)

// Minute is how many seconds a minute has of those for which a change of a file waits. Only tests shorten it.
var Minute int64 = 60

// A date names when a text changed, or what the page declares. Evidence names a time; only a new page, a changed text or a
// newer statement makes a date:
//
//  6. A change of a file waits until no file has changed for some minutes: see waiting.
//  7. A difference that several pages have within a day is the template's: see round.
//  8. So are changes of most pages, each in another way.
//  9. Any other change is an edit. Its date is the first evidence from after the fetch before it, or else the day: see ofEdit.
//  10. The date of a new page is the first evidence that is neither that of a build nor that of an upload: see ofNew.
//  11. A statement that is newer than the text is believed, unless it is that of a build: see restated.
//
// The rules 1 to 5 say what counts as the text: see [html.Meta].
type dates struct {
	rules *Options

	waiting waiting
	rounds  map[bool]*round // of files, and of pages without one
	looks   bool            // a page is still to be fetched because of a write
	saved   int64           // when the last change was found that awaits that; 0: none does
	uploads uploads
	stated  [2]times // what pages declare, and what lists say
}

const (
	day         = 24 * 3600
	hour        = 3600
	fewestAlike = 3 // fewest pages that say something about the site
	maxStreak   = 3 // changes in a row, from which on the text has a counter or a rotating list
)

func newDates(r *Options) dates {
	return dates{
		rules:   r,
		waiting: waiting{options: r},
		rounds: map[bool]*round{
			true:  {alike: make(map[uint64]int)},
			false: {alike: make(map[uint64]int)},
		},
	}
}

// date is a date with its precision; the zero value: none.
type date struct {
	unix int64
	day  bool
}

// last is the last second of the date.
func (d date) last() int64 {
	if d.day {
		return d.unix + day - 1
	}
	return d.unix
}

// Kinds of evidence, the one that tells most first.
const (
	declared = iota
	listed
	own // by the file, or by Last-Modified
	evidenceKinds
)

// evidence returns the times that a page has. What lies in the future, or before there was a web, is none.
func (d *dates) evidence(rec *record.Record) [evidenceKinds]date {
	all := [evidenceKinds]date{
		declared: declaredDate(rec),
		listed:   listDate(rec),
		own:      {unix: ownTime(rec)},
	}
	for i, e := range all {
		if !d.isPossible(rec, e.unix) {
			all[i] = date{}
		}
	}
	return all
}

func (d *dates) isPossible(rec *record.Record, unix int64) bool {
	return page.Earliest <= unix && unix <= max(d.rules.Now.Unix(), rec.Fetched)
}

// declaredDate returns the date that a page declares, unless that is another one in each response.
func declaredDate(rec *record.Record) date {
	const slack = 2 * 60
	at := date{rec.Declared, rec.Flags&record.DeclaredDay != 0}
	isOfResponse := rec.Flags&record.DeclaredMoves != 0
	if rec.IsFile() {
		// As by templates: it is not in the file, which is older.
		isOfResponse = at.unix > rec.ModTime+slack && at.last() >= rec.Fetched-slack
	}
	if isOfResponse {
		return date{}
	}
	return at
}

// listDate returns the date that a list gives a page, or gave until it dropped the page, which was not fetched since; zero:
// none does.
func listDate(rec *record.Record) date {
	isDay := rec.Flags&record.ModDay != 0
	if rec.Version != 0 { // then ModTime is the file's
		return date{rec.ListDate, isDay}
	}
	return date{rec.ModTime, isDay}
}

// ownTime returns when the page was modified: by the file, if it is served as it is, else by the Last-Modified header; 0:
// neither says.
func ownTime(rec *record.Record) int64 {
	if rec.IsFile() && rec.ModTime != 0 {
		return rec.ModTime
	}
	// A page that is made for each request has the time of the request, perhaps rounded to the minute.
	isOfResponse := rec.Modified >= rec.Fetched/60*60-1
	if isOfResponse {
		return 0
	}
	return rec.Modified
}

// isDatable reports whether a record is of a page whose text is known.
func isDatable(rec *record.Record) bool {
	return rec.First != 0 && rec.Status == 200 && rec.Absent == 0
}

// add takes a record into account.
func (d *dates) add(rec *record.Record) {
	d.looks = d.looks || rec.Cause == record.ByWrite
	if !isDatable(rec) {
		return
	}
	isPending := rec.AwaitsDate() && rec.Batch() != d.rules.OpenBatch
	if rec.IsFile() {
		d.waiting.add(rec, isPending)
	}
	if isPending && rec.FoundBy == record.ByWrite && int64(rec.Found)+lookTime >= d.rules.Now.Unix() {
		d.saved = max(d.saved, int64(rec.Found))
	}
	evidence := d.evidence(rec)
	d.stated[declared].add(evidence[declared])
	d.stated[listed].add(evidence[listed])
	d.uploads.add(rec, evidence[own])
	if rec.Selected.Dated != 0 {
		d.rounds[rec.IsFile()].add(rec, isPending, d.rules.Now.Unix())
	}
}

// decide is called once all records were added.
func (d *dates) decide() {
	for _, r := range d.rounds {
		r.decide()
	}
}

// of returns the selection of a page, which is listed or not.
func (d *dates) of(rec *record.Record, isListed bool) record.Selected {
	text, dated := d.ofText(rec)
	if newer := d.restated(rec); newer.unix > text.unix {
		text = newer
	}
	s := record.Selected{Listed: isListed, Text: text.unix, TextDay: text.day, Dated: dated}
	shown := d.shown(rec, text)
	if isListed && d.isPossible(rec, shown.unix) {
		s.LastMod = shown.unix
		s.Day = shown.day
	}
	return s
}

// shown returns the date that is listed for a page, given that of its text.
func (d *dates) shown(rec *record.Record, text date) date {
	list := listDate(rec)
	switch {
	case d.rules.Dates == Off:
		return date{}
	case d.rules.Dates == ModTime && list.unix == 0:
		return date{unix: rec.ModTime}
	case list.unix != 0 && (d.rules.Dates == ModTime || d.rules.TrustLists):
		return list // the operator's word
	case isUnsteady(rec):
		return d.statedBy(rec)
	}
	return text
}

// isUnsteady reports whether the text of a page is another one at each fetch, so that it says nothing about when the
// page has changed.
func isUnsteady(rec *record.Record) bool {
	return rec.Streak >= maxStreak || rec.Steadiness == record.Noisy
}

// ofText returns the date of the page's present text, but for what is stated anew, and the batch from which it was decided.
func (d *dates) ofText(rec *record.Record) (text date, dated int64) {
	batch := rec.Batch()
	before := date{rec.Selected.Text, rec.Selected.TextDay}
	isOpen := batch == d.rules.OpenBatch || rec.Steadiness.IsInDoubt() || d.waits(rec, batch)
	switch {
	case !isDatable(rec), rec.AwaitsDate() && isOpen:
		return before, rec.Selected.Dated
	case d.isTakenBack(rec):
		return date{int64(rec.Was), rec.WasDay}, batch
	case !rec.AwaitsDate(), d.isOfTemplate(rec):
		return before, batch
	case rec.Selected.Dated == 0:
		return d.ofNew(rec), batch
	}
	return d.ofEdit(rec), batch
}

// lookTime is how many seconds a change waits at most for the end of a look.
const lookTime = 30

// due is when dates can be decided that wait; the zero time: none does.
func (d *dates) due() time.Time {
	due := d.waiting.due()
	look := time.Unix(d.saved+lookTime+1, 0).UTC()
	isSooner := due.IsZero() || look.Before(due)
	if d.looks && d.saved != 0 && isSooner {
		return look
	}
	return due
}

// waits reports whether the date of a page waits for what other pages show, of a deployment or of a look at what was saved.
func (d *dates) waits(rec *record.Record, batch int64) bool {
	if rec.IsFile() {
		return d.waiting.isOpen(batch)
	}
	isOver := int64(rec.Found)+lookTime < d.rules.Now.Unix()
	return d.looks && !isOver && rec.FoundBy == record.ByWrite
}

// isOfTemplate reports whether the last change of a page's text, which has no date yet, is the template's.
func (d *dates) isOfTemplate(rec *record.Record) bool {
	if !rec.AwaitsDate() || rec.Selected.Dated == 0 {
		return false
	}
	isBack := rec.Difference == 0 // the text of before
	return isBack || d.rounds[rec.IsFile()].isTemplate(rec)
}

// isTakenBack reports whether the last change of a page's text was dated in the last day, and turns out to be the
// template's.
func (d *dates) isTakenBack(rec *record.Record) bool {
	isRecent := rec.Changed > d.rules.Now.Unix()-day
	return isRecent && !rec.AwaitsDate() && d.rounds[rec.IsFile()].isTemplateSince(rec)
}

// ofNew is rule 10. The pages of an upload, or of a build, have no date.
func (d *dates) ofNew(rec *record.Record) date {
	all := d.counted(rec)
	if d.uploads.has(all[own]) {
		all[own] = date{}
	}
	return cmp.Or(all[declared], all[listed], all[own])
}

// statedBy returns the first date that a page or a list states, and no build.
func (d *dates) statedBy(rec *record.Record) date {
	all := d.counted(rec)
	return cmp.Or(all[declared], all[listed])
}

// counted is the evidence without the dates of a build. A list that the operator names is believed.
func (d *dates) counted(rec *record.Record) [evidenceKinds]date {
	all := d.evidence(rec)
	if d.stated[declared].areOfBuild(all[declared]) {
		all[declared] = date{}
	}
	if !d.rules.TrustLists && d.stated[listed].areOfBuild(all[listed]) {
		all[listed] = date{}
	}
	return all
}

// ofEdit is rule 9. Evidence from before the last fetch of the former text is not that of the change, and neither is the time of
// a file that was written again since, as by the next deployment.
func (d *dates) ofEdit(rec *record.Record) date {
	for kind, e := range d.counted(rec) {
		isWrittenAgain := kind == own && e.unix > rec.Changed
		// In the second of that fetch, it may have changed since.
		isBefore := e.unix == 0 || e.last() < rec.Before
		if !isBefore && !isWrittenAgain {
			return e
		}
	}
	if isFoundSoon(rec) {
		return date{int64(rec.Found), true}
	}
	return date{}
}

// isFoundSoon reports whether so little time was between two fetches that the day on which a change was found is that of the
// change, to within one. A page that is fetched once a day comes somewhat later in its turn. The clock may be set back
// meanwhile: then neither time says anything.
func isFoundSoon(rec *record.Record) bool {
	elapsed := int64(rec.Found) - rec.Before
	return elapsed >= 0 && elapsed < 30*hour
}

// textFoundAt is when a text of the page was last found that was not known.
func textFoundAt(rec *record.Record) int64 { return max(rec.First, rec.Changed, int64(rec.Found)) }

// restated is rule 11: the date that the page or a list states, if it was stated since the text was found. A file tells by
// itself that it declares its date anew, an application by a date that is later than that.
func (d *dates) restated(rec *record.Record) date {
	found := textFoundAt(rec)
	if rec.IsFile() && rec.Flags&record.DeclaredMoves != 0 {
		found = 0
	}
	isOpen := rec.Steadiness == record.DateInDoubt || rec.IsFile() && d.waiting.isOpen(rec.Fetched)
	// Of nearly all pages, nothing is newer: the dates of other pages need not be looked at.
	mayBeNewer := max(rec.Declared, listDate(rec).unix) > found
	if !isDatable(rec) || rec.Selected.Dated == 0 || isOpen || !mayBeNewer {
		return date{}
	}
	if at := d.statedBy(rec); at.unix > found {
		return at
	}
	return date{}
}

// times are those of many pages.
type times struct {
	unix     []uint32
	isSorted bool
}

func (t *times) add(e date) {
	if e.unix != 0 {
		t.unix = append(t.unix, record.Unix32(e.unix))
	}
}

// within returns how many there are from one time on, and before another.
func (t *times) within(from, to int64) int {
	if !t.isSorted { // only where a date depends on them
		slices.Sort(t.unix)
		t.isSorted = true
	}
	first, _ := slices.BinarySearch(t.unix, record.Unix32(from))
	end, _ := slices.BinarySearch(t.unix, record.Unix32(to))
	return end - first
}

// around returns how many there are on the day of a time, and up to so many days before and after it.
func (t *times) around(at, days int64) int {
	midnight := at / day * day
	return t.within(midnight-days*day, midnight+(days+1)*day)
}

// areOfBuild reports whether a date is that of a build: ten pages have the same second, or nine tenths the same day.
func (t *times) areOfBuild(e date) bool {
	const fewestOfSecond = 10
	isExact := e.unix%day != 0
	if isExact && t.within(e.unix, e.unix+1) >= fewestOfSecond {
		return true
	}
	n := t.around(e.unix, 0)
	return n >= fewestAlike && 10*n >= 9*len(t.unix)
}

// uploads are the times at which pages were modified that have no date: new ones, and those that came before.
type uploads struct {
	new, old  times
	newcomers int
	timed     int   // pages that have a time
	lastFound int64 // when the last of the old ones was found
}

func (u *uploads) add(rec *record.Record, e date) {
	if e.unix != 0 {
		u.timed++
	}
	switch {
	case rec.Selected.Dated == 0:
		u.newcomers++
		u.new.add(e)
	case rec.Selected.Text == 0 && e.unix != 0:
		u.old.add(e)
		u.lastFound = max(u.lastFound, rec.First)
	}
}

// has reports whether the time of a new page is that of an upload: ten pages, and a fifth of the new ones, have it within
// three days, or nine tenths on one day.
func (u *uploads) has(e date) bool {
	const fewestUploaded = 10
	one := u.new.around(e.unix, 0)
	three := u.new.around(e.unix, 1)
	isOver := e.unix > u.lastFound+hour
	if !isOver {
		one += u.old.around(e.unix, 0)
		three += u.old.around(e.unix, 1)
	}
	isPart := three >= fewestUploaded && 5*three >= u.newcomers
	isAll := one >= fewestAlike && 10*one >= 9*u.timed
	return isPart || isAll
}
