package indexing

import (
	"slices"
	"time"

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
	maxGap      = 600       // seconds, between two times of an upload
	fewestAlike = 3         // fewest times or pages that say something about the site
	maxStreak   = 3         // changes in a row, from which on the text has a counter or a rotating list
)

// dates is what all pages together say about the date of each: whether a batch is a deployment, or a
// change of what its pages have in common.
type dates struct {
	rules    *Options
	allTimes // until decide

	bursts bursts // of changes of files
	round  burst  // of the pages of upstreams: what has changed in this round of crawling
	fresh  int    // pages seen for the first time that have a time
	since  int64  // the first batch of these

	uploadTimes   []span
	declaredAlike bool
	headersAlike  bool

	// deployedTimes are those of the files of known pages, where many were written together; none unless a page is to
	// be dated.
	deployedTimes []span

	// stampTimes are the dates that several files declare anew, although their texts have stayed.
	stampTimes []span

	// buildTimes are when programs wrote the lists, where nearly all of these' dates are alike. Single dates beside
	// them are those of edits: an application may have got all of its other pages in one import.
	buildTimes []span
}

func newDates(r *Options) dates {
	now := r.Now.Unix()
	gap := max(Quiet, int64(2*r.Interval/time.Second))
	if !Patient {
		gap = 0 // what one scan has found
	}
	if r.Once || !Patient {
		now += 2 * longestWait // by then, no burst goes on of what is known
	}
	return dates{
		rules: r,
		bursts: bursts{
			now:  now,
			gap:  gap,
			open: r.OpenBatch,
		},
		allTimes: allTimes{differences: make(map[uint64]int)},
	}
}

// allTimes are 4 bytes for each time that a page has.
type allTimes struct {
	declared times // of all pages
	headers  times // Last-Modified of all pages without a file's time
	lists    times // of pages that a list dates
	undated  times // of pages whose text has no date, or none yet
	files    times // those of undated that are of files
	written  times // those of files of pages that were dated before
	fetched  times // when known pages without a file version were fetched
	told     times // of changed pages that were fetched because of another date in a list

	stamps times // declared by files anew, whose texts have stayed

	differences map[uint64]int // of the texts of pages of upstreams that have changed lately, to how many have it
	samples     []uint64       // those of pages that count as changed
}

// timeOf returns when the page was modified: by the file, if it is served as it is, else by the
// Last-Modified header. Zero: neither says, or the header is the time of the response itself.
func timeOf(rec *store.Record) (at date, isFile bool) {
	if rec.IsFile() && rec.ModTime != 0 {
		return date{unix: rec.ModTime}, true
	}
	// A page that is made for each request has the time of the request, perhaps rounded to the minute.
	isOfResponse := rec.Modified >= rec.Fetched/60*60-1
	if isOfResponse {
		return date{}, false
	}
	return date{unix: rec.Modified}, false
}

// add takes a record into account.
func (d *dates) add(rec *store.Record) {
	if rec.First == 0 {
		return // it never had a text
	}
	isPage := rec.Status == 200 && rec.Absent == 0
	if rec.IsFile() && (isPage || rec.Absent != 0) {
		d.bursts.add(rec) // what is gone is part of a deployment, too
	}
	if !isPage {
		return
	}
	at, isOfFile := timeOf(rec)
	d.addTimes(rec, at, isOfFile)
	if rec.Selected.Dated == 0 {
		if rec.Batch() != d.rules.OpenBatch && at.unix != 0 {
			d.fresh++
		}
		return
	}
	if rec.IsFile() {
		d.written.add(rec.ModTime)
		return
	}
	if rec.Streak < maxStreak { // that its text changes once more says nothing about the template
		d.addKnown(rec)
	}
}

// addTimes takes the dates of a page into account, given when it was modified.
func (d *dates) addTimes(rec *store.Record, at date, isOfFile bool) {
	d.declared.add(rec.Declared)
	if isOfFile && rec.Flags&store.DeclaredMoves != 0 {
		d.stamps.add(rec.Declared)
	}
	d.lists.add(listDate(rec).unix)
	if !isOfFile {
		d.headers.add(at.unix)
	}
	if rec.Selected.Text != 0 {
		return
	}
	d.undated.add(at.unix)
	if isOfFile {
		d.files.add(at.unix)
	}
}

// addKnown takes a page of an upstream into account that was dated before.
func (d *dates) addKnown(rec *store.Record) {
	d.fetched.add(rec.Fetched)
	isPending := rec.AwaitsDate()
	isRecent := rec.Changed > d.rules.Now.Unix()-remembered
	if rec.Changed != 0 && (isPending || isRecent) {
		d.differences[differenceOf(rec)]++
	}
	batch := rec.Batch()
	if !isPending || batch == d.rules.OpenBatch {
		return
	}
	// A page that visitors, hubs or an operator had fetched, and that has changed, is no sample of the others: three of
	// three were taken for a change of the template once, of 127 pages.
	if rec.FoundBy.IsChosen() {
		return
	}
	if rec.FoundBy == store.ByList {
		d.told.add(listDate(rec).unix) // it counts only if that is the time of a build
		return
	}
	d.samples = append(d.samples, differenceOf(rec))
	if d.since == 0 || batch < d.since {
		d.since = batch
	}
}

// decide is called once all records were added.
func (d *dates) decide() {
	d.bursts.find()
	d.declaredAlike = d.declared.areOfBuilds()
	d.stampTimes = d.stamps.uploads(func(count int) bool { return count >= fewestAlike })
	d.headersAlike = len(d.headers.alike()) > 0
	// Many generators write the time of the build at each page of their sitemap. A list that the operator names is
	// believed.
	if !d.rules.TrustLists && len(d.lists.alike()) > 0 {
		d.buildTimes = d.lists.uploads(func(count int) bool { return count >= fewestAlike })
	}
	// Times are sorted only where a date depends on them.
	if d.fresh > 0 {
		d.uploadTimes = append(d.files.alike(), d.undated.alike()...)
		d.uploadTimes = append(d.uploadTimes, d.undated.uploads(func(count int) bool {
			return count >= fewestDeployed && 5*count >= d.fresh
		})...)
	}
	if d.fresh > 0 || len(d.bursts.all) > 0 {
		known := len(d.written)
		d.deployedTimes = d.written.uploads(func(count int) bool {
			return count >= fewestDeployed && 5*count >= known
		})
	}
	d.decideRound()
	d.allTimes = allTimes{} // for the garbage collector
}

// decideRound decides what the pages of upstreams have in common.
func (d *dates) decideRound() {
	d.round.shared = shared(d.differences)
	for _, difference := range d.samples {
		if !slices.Contains(d.round.shared, difference) {
			d.round.others++
		}
	}
	for _, at := range d.told {
		if isIn(d.buildTimes, int64(at)) {
			d.round.others++
		}
	}
	// A page that was not fetched since may have the other template as well.
	for _, fetched := range d.fetched {
		if int64(fetched) >= d.since {
			d.round.known++
		}
	}
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
	switch d.rules.Dates {
	case Off:
		return date{}
	case ModTime:
		if list := listDate(rec); list.unix != 0 {
			return list
		}
		return date{unix: rec.ModTime}
	}
	return d.best(rec, text)
}

// best returns the date that tells most of a page: what it declares, what a list gives it, or when its text has
// changed.
func (d *dates) best(rec *store.Record, text date) date {
	list := listDate(rec)
	hasList := list.unix != 0 && !isIn(d.buildTimes, list.unix)
	before := date{rec.Selected.LastMod, rec.Selected.Day} // 0 where the page was not listed

	// What is in doubt keeps its date until another fetch has confirmed what has changed. A list's word needs no
	// confirmation.
	isInDoubt := rec.Steadiness.IsInDoubt() && rec.Selected.Listed
	if isInDoubt && (!hasList || rec.Declared != 0) {
		return before
	}
	declares := d.declarationOf(rec, text)
	if declares == waits {
		return before
	}
	if declares == counts {
		return date{rec.Declared, rec.Flags&store.DeclaredDay != 0}
	}
	if hasList {
		return list // the operator's word, or the application's
	}
	if isUnsteady(rec) {
		return date{}
	}
	// Only the template has changed: the page keeps what it had, such as the date that it declared before the build.
	isSameText := text.unix == rec.Selected.Text
	if declares == ofBuild && before.unix != 0 && isSameText {
		return before
	}
	return text
}

// isUnsteady reports whether the text of a page is another one at each fetch, so that it says nothing about when the
// page has changed.
func isUnsteady(rec *store.Record) bool {
	return rec.Streak >= maxStreak || rec.Steadiness == store.Noisy
}

// declaration is what the date that a page declares is worth.
type declaration uint8

const (
	// ignored: there is none, or it is another one at each fetch, or those of nearly all pages are a build's.
	ignored declaration = iota

	// waits for the end of a burst, as what has changed besides does, or as it may be that of a build.
	waits

	// ofBuild: it is that of a build which has changed the template.
	ofBuild

	counts
)

// declarationOf decides what the date is worth that a page declares, given the date of its text.
func (d *dates) declarationOf(rec *store.Record, text date) declaration {
	hasMoved := rec.Flags&store.DeclaredMoves != 0
	isMoving := hasMoved && (!rec.IsFile() || isOfFetch(rec))
	if rec.Declared == 0 || d.declaredAlike || isMoving || rec.Steadiness.IsInDoubt() {
		return ignored
	}
	if !rec.IsFile() {
		return counts // no build has written it
	}
	if hasMoved && isIn(d.stampTimes, rec.Declared) {
		return ofBuild
	}
	hasChanged := rec.Selected.Dated != 0 && rec.AwaitsDate()
	if hasChanged && d.bursts.isOpen(rec) {
		return waits
	}
	if d.bursts.declaresWhileOpen(rec) {
		return waits
	}
	if d.declaresBuild(rec, text) {
		return ofBuild
	}
	return counts
}

// isOfFetch reports whether the date that the page of a file declares is not in the file, which is older, but made for
// each response, as by templates.
func isOfFetch(rec *store.Record) bool {
	const slack = 2 * 60
	return rec.Declared > rec.ModTime+slack && declaredUntil(rec) >= rec.Fetched-slack
}

// declaresBuild reports whether the date that the page of a file declares is that of a build, which has changed the
// template: it is as new as the last change of the page, by which the date of its text has not moved.
func (d *dates) declaresBuild(rec *store.Record, text date) bool {
	if rec.Changed == 0 {
		return false
	}
	longestBuild := longestWait + d.bursts.gap
	isNew := declaredUntil(rec) >= rec.Changed-longestBuild
	hasMoved := text.unix >= min(rec.Changed, rec.ModTime)-longestBuild // a deployment may keep the times of files
	return isNew && !hasMoved
}

// listDate returns the date that a list gives a page, or gave until it dropped the page, which was not fetched since; zero:
// none does.
func listDate(rec *store.Record) date {
	isDay := rec.Flags&store.ModDay != 0
	if rec.Version != 0 { // then ModTime is the file's
		return date{rec.ListDate, isDay}
	}
	return date{rec.ModTime, isDay}
}

// ofText returns the date of the page's present text, and the batch from which it was decided:
// once, since later the file may be written anew with the same text.
func (d *dates) ofText(rec *store.Record) (date, int64) {
	batch := rec.Batch()
	dated := rec.Selected.Dated
	before := date{rec.Selected.Text, rec.Selected.TextDay}
	isDecided := batch == 0 || batch == dated
	isOpen := batch == d.rules.OpenBatch           // whether it is a deployment shows only over all of it
	isPage := rec.Status == 200 && rec.Absent == 0 // else the others tell nothing of it
	if batch == dated && d.isTakenBack(rec) {
		return date{int64(rec.Was), rec.WasDay}, dated
	}
	if isDecided || isOpen || !isPage {
		return before, dated
	}
	isNew := dated == 0
	if isNew && !rec.IsFile() {
		return d.atFirstSight(rec), batch
	}
	if isNew {
		return d.ofNewFile(rec)
	}
	switch d.textChangeOf(rec) {
	case undecided:
		return before, dated
	case ofTemplate:
		return before, batch
	case ofRelease:
		at := d.ofChange(rec, true)
		at.day = at.unix != 0
		return at, batch
	}
	return d.ofChange(rec, !d.isMoved(rec, rec.Changed)), batch
}

// ofNewFile is ofText for a page that is a file and was never dated. One that was written by a deployment has the day.
func (d *dates) ofNewFile(rec *store.Record) (date, int64) {
	burst := d.bursts.of(rec)
	if burst == nil {
		return d.atFirstSight(rec), rec.Batch()
	}
	if d.bursts.isOpen(rec) {
		return date{}, 0
	}
	at := d.atFirstSight(rec)
	if at.unix >= burst.from && burst.isDeployment() {
		at.day = true
	}
	return at, rec.Batch()
}

// textChangeOf returns what the last change of a page's text comes from. What others found says nothing of a page of an
// upstream that was fetched because it may have changed, save where they have found the same.
func (d *dates) textChangeOf(rec *store.Record) textChange {
	if rec.IsFile() {
		return d.bursts.textChangeOf(rec)
	}
	if rec.Blocks != 0 && slices.Contains(d.round.shared, rec.Difference) {
		return ofTemplate
	}
	if !d.isChosen(rec) && d.round.isTemplate() {
		return ofTemplate
	}
	return ofEdit
}

// isTakenBack reports whether the date of a page was decided by a change of the last day that turns out to be the
// template's, as other pages have come with the same difference since.
func (d *dates) isTakenBack(rec *store.Record) bool {
	templates := d.round.shared
	if rec.IsFile() {
		templates = d.bursts.shared
	}
	isRecent := rec.Changed > d.rules.Now.Unix()-remembered
	return isRecent && slices.Contains(templates, differenceOf(rec))
}

// isOfTemplate reports whether the last change of a page's text may be the template's.
func (d *dates) isOfTemplate(rec *store.Record) bool {
	return rec.AwaitsDate() && rec.Selected.Dated != 0 && d.textChangeOf(rec) == ofTemplate
}

// isChosen reports whether a page was fetched because it may have changed: also where a list told so, unless that has
// new dates for all pages at each build.
func (d *dates) isChosen(rec *store.Record) bool {
	isTold := rec.FoundBy == store.ByList && !isIn(d.buildTimes, listDate(rec).unix)
	return isTold || rec.FoundBy.IsChosen()
}

func (d *dates) atFirstSight(rec *store.Record) date {
	at, isFile := timeOf(rec)
	isOfUpload := isIn(d.uploadTimes, at.unix) || !isFile && d.headersAlike
	if isOfUpload {
		return date{}
	}
	if d.isMoved(rec, rec.First) {
		return date{}
	}
	return at
}

// isMoved reports whether the file of a page was written by a deployment that was over when the page, or a change of
// it, was found: it was moved or copied since, and its time says nothing of when it changed.
func (d *dates) isMoved(rec *store.Record, found int64) bool {
	return rec.IsFile() && slices.ContainsFunc(d.deployedTimes, func(s span) bool {
		isOver := int64(s.last)+max(d.bursts.gap, Quiet) < found
		return isOver && s.has(rec.ModTime)
	})
}

// ofChange returns when the text of a page has changed: by the time of its file, if that can be told from it, or of its
// response.
func (d *dates) ofChange(rec *store.Record, byFile bool) date {
	at, isFile := timeOf(rec)
	before := rec.Selected.Text
	if isFile && byFile && at.unix > before {
		return at
	}
	isAfter := at.unix > max(before, rec.Before) // else the header had that time before the change
	if !isFile && !d.headersAlike && isAfter {
		return at
	}
	// Below 0, the clock was set back, and neither time says when the text changed.
	elapsed := rec.Fetched - rec.Before
	if elapsed >= 0 && isFoundSoon(elapsed) {
		return date{rec.Fetched, true}
	}
	return date{}
}

// isFoundSoon reports whether so many seconds between two fetches say on which day a text has changed, to within one. A
// page that is fetched once a day comes somewhat later in its turn, and again to confirm the change.
func isFoundSoon(elapsed int64) bool { return elapsed < day+day/4 }
