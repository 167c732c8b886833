package indexing

import (
	"cmp"
	"math"
	"slices"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// A burst is changes of files that follow each other without a gap of two minutes, or of two intervals if that is
// longer: a few edits, or a deployment. Which of the two it is, and what its pages have in common, shows only once it
// is over, whichever refreshes or processes have seen its parts. Until then, no date is decided by which a deployment
// could be taken for edits.
const (
	longestWait = 60 * 60 // seconds of the date of a page for the end of a burst
	remembered  = day     // for which pages that are dated already count for the rest of their burst

	fewestDeployed = 10 // files of a deployment
	fewestShared   = 5  // pages with the same difference that have it from a template,
	shareOfShared  = 10 // if they are at least a tenth of the pages that have changed
)

// Quiet is for how many seconds nothing changes, at least, until a deployment is over; a few edits are over after a
// quarter of it. Only tests that wait for dates set less.
var Quiet int64 = 2 * 60

// Patient is whether dates wait for the end of a burst. Only tests that are about other things set it to false: a burst
// is then what one scan has found.
var Patient = true

// burst is one burst. Times are Unix seconds.
type burst struct {
	from, to int64 // the first and the last change
	gap      int64 // without a change, after which a deployment is over
	files    int   // that are new, gone or written anew, be it with the same text
	pages    int   // of the site that are files,
	known    int   // and those of them that were dated before

	shared []uint64 // differences of texts that so many pages have in common that they are a template's
	others int      // pages whose text has changed otherwise
}

// isDeployment reports whether a program has written the files, so that their times do not tell when their texts
// changed.
func (b *burst) isDeployment() bool {
	if b.pages < fewestAlike {
		return false // so few say nothing about the site
	}
	return b.files >= fewestDeployed || 2*b.files > b.pages
}

// isTemplate reports whether most pages have changed, each in another way.
func (b *burst) isTemplate() bool { return b.known >= fewestAlike && 2*b.others > b.known }

// end is when the burst is over, if nothing more changes.
func (b *burst) end() int64 {
	if b.isDeployment() {
		return b.to + b.gap
	}
	return b.to + Quiet/4
}

// decidesAt is when the date of a page is decided that waits since a time: when the burst is over, or after an hour.
// That is rounded up to a minute, so that a deployment without an end has pages selected once a minute at most.
func (b *burst) decidesAt(since int64) int64 {
	waited := (since + longestWait + 59) / 60 * 60
	return min(b.end(), waited)
}

// textChange is what a change of a page's text comes from.
type textChange uint8

const (
	undecided  textChange = iota // the burst goes on
	ofTemplate                   // what pages have in common has changed, which changes no date
	ofEdit                       // the time of the file is that of the change
	ofRelease                    // a correction within a deployment, which has changed the time of the file
)

// textChange decides what a change comes from, by the time since which its date waits, by the difference between the
// texts and by the time now. Without a difference, the text of before is back.
func (b *burst) textChange(since int64, difference uint64, now int64) textChange {
	if now < b.decidesAt(since) {
		return undecided
	}
	isShared := difference == 0 || slices.Contains(b.shared, difference)
	if isShared || b.isTemplate() {
		return ofTemplate
	}
	if b.isDeployment() {
		return ofRelease
	}
	return ofEdit
}

// count counts the differences of the texts that have changed, given those that are known to be a template's.
func (b *burst) count(changes []fileChange, templates []uint64) {
	b.shared = append(sharedBy(changes), templates...)
	for _, c := range changes {
		if c.difference != 0 && !slices.Contains(b.shared, c.difference) {
			b.others++
		}
	}
}

// sharedBy is shared, of changes.
func sharedBy(changes []fileChange) (templates []uint64) {
	differences := make(map[uint64]int)
	for _, c := range changes {
		differences[c.difference]++
	}
	return shared(differences)
}

// shared returns the differences that are a template's.
func shared(differences map[uint64]int) (templates []uint64) {
	changed := 0
	for difference, n := range differences {
		if difference != 0 {
			changed += n
		}
	}
	for difference, n := range differences {
		if difference != 0 && n >= fewestShared && shareOfShared*n >= changed {
			templates = append(templates, difference)
		}
	}
	return templates
}

// bursts finds the bursts in the records of pages that are files.
type bursts struct {
	now, gap int64
	open     int64 // the batch that the crawl has not completed; 0: none

	isKnownSite  bool        // else when its files were found says nothing of when they changed
	pages, known int         // as in burst
	activity     times       // when files last changed, save those of found
	found        []foundFile // pages that were never dated
	waiting      times       // activity of pages that have a date to be decided
	changes      []fileChange

	// shared are the differences that pages have in common that have changed in the last day: a deployment may be so slow
	// that each of its files is a burst of its own.
	shared []uint64

	all []burst // those with a page that waits, in order
	due int64   // when the next date can be decided; 0: none waits
}

// foundFile is when the file of a new page was last changed, and when it was found.
type foundFile struct{ changed, first uint32 }

// fileChange is how a page's text has changed, and when.
type fileChange struct {
	at         int64
	difference uint64
}

// changedAt is when the file of a page last changed: its own time, or when the change was found, if that is later, as
// where a copy keeps the times of files.
func (b *bursts) changedAt(rec *store.Record) int64 {
	at := max(rec.ModTime, rec.Changed)
	if rec.Selected.Dated == 0 && b.isKnownSite {
		at = max(at, rec.First)
	}
	return min(at, math.MaxUint32)
}

// differenceOf returns how the text of a page differs from the one by which it was last dated.
func differenceOf(rec *store.Record) uint64 {
	if rec.Blocks == 0 {
		return hash(rec.Path) | 1 // it is not known, and so like no other one
	}
	return rec.Difference
}

// add takes a record into account. It is of a page that has a text, or had one.
func (b *bursts) add(rec *store.Record) {
	if rec.Absent != 0 {
		b.activity.add(rec.Absent)
		return
	}
	b.pages++
	changed := max(rec.ModTime, rec.Changed)
	if rec.Selected.Dated == 0 {
		b.found = append(b.found, foundFile{unix32(changed), unix32(rec.First)})
		return
	}
	b.isKnownSite = true
	b.activity.add(changed)
	if rec.Streak < maxStreak { // that its text changes once more says nothing of the others
		b.known++
		b.addChange(rec, changed)
	}
	isWaiting := rec.AwaitsDate() && rec.Batch() != b.open
	if isWaiting || b.declaresLately(rec) {
		b.waiting.add(changed)
	}
}

// addChange adds the last change of a page's text, if that counts still.
func (b *bursts) addChange(rec *store.Record, at int64) {
	isPending := rec.AwaitsDate()
	isRecent := rec.Changed > b.now-remembered
	if rec.Changed == 0 || !isPending && !isRecent {
		return
	}
	// The file may have been written again since, with the same text, by the next deployment: the change is not part of
	// that.
	if !isPending {
		at = rec.Changed
	}
	b.changes = append(b.changes, fileChange{min(at, math.MaxUint32), differenceOf(rec)})
}

func unix32(at int64) uint32 { return uint32(min(max(at, 0), math.MaxUint32)) }

// declaresLately reports whether the date that a page declares is so late that it may be that of a build under way.
func (b *bursts) declaresLately(rec *store.Record) bool {
	return rec.Declared != 0 && declaredUntil(rec) > b.now-longestWait-b.gap
}

// declaredUntil is the last moment of the date that a page declares.
func declaredUntil(rec *store.Record) int64 {
	if rec.Flags&store.DeclaredDay != 0 {
		return rec.Declared + day - 1
	}
	return rec.Declared
}

// find finds the bursts, once all records were added.
func (b *bursts) find() {
	b.addFound()
	slices.Sort(b.activity)
	slices.Sort(b.waiting)
	slices.SortFunc(b.changes, func(x, y fileChange) int { return cmp.Compare(x.at, y.at) })
	b.shared = sharedBy(b.changes)
	for chain := range b.activity.chains(b.gap) {
		from := int64(chain[0])
		to := int64(chain[len(chain)-1])
		// The clock was set back: dates would wait until that time has come, for a year if it was wrong by one.
		if from > b.now+longestWait {
			break
		}
		waiting := b.waiting.within(from, to)
		if len(waiting) == 0 {
			continue
		}
		next := burst{from: from, to: to, gap: b.gap, files: len(chain), pages: b.pages, known: b.known}
		next.count(b.changesWithin(from, to), b.shared)
		b.all = append(b.all, next)
		for _, at := range waiting { // or a page waits for longer already, and is decided with the next change
			b.plan(next.decidesAt(int64(at)))
		}
	}
	b.activity = nil
	b.found = nil
	b.waiting = nil
	b.changes = nil
}

// addFound adds the new pages, once it is known whether the site is.
func (b *bursts) addFound() {
	for _, f := range b.found {
		at := int64(f.changed)
		if b.isKnownSite {
			at = max(at, int64(f.first))
		}
		b.activity.add(at)
		if at > b.now-longestWait-b.gap {
			b.waiting.add(at) // else nothing keeps it from being dated
		}
	}
}

// changesWithin returns the changes from one time to another, which are sorted.
func (b *bursts) changesWithin(from, to int64) []fileChange {
	compare := func(c fileChange, at int64) int { return cmp.Compare(c.at, at) }
	first, _ := slices.BinarySearchFunc(b.changes, from, compare)
	end, _ := slices.BinarySearchFunc(b.changes, to+1, compare)
	return b.changes[first:end]
}

// of returns the burst in which the file of a page last changed; nil: none that matters.
func (b *bursts) of(rec *store.Record) *burst {
	at := b.changedAt(rec)
	i, _ := slices.BinarySearchFunc(b.all, at, func(x burst, at int64) int {
		if x.to < at {
			return -1
		}
		return 1
	})
	if i < len(b.all) && b.all[i].from <= at {
		return &b.all[i]
	}
	return nil
}

// plan notes when a date can be decided.
func (b *bursts) plan(at int64) {
	if at > b.now && (b.due == 0 || at < b.due) {
		b.due = at
	}
}

// isOpen reports whether the date of a page waits for the end of a burst.
func (b *bursts) isOpen(rec *store.Record) bool {
	burst := b.of(rec)
	return burst != nil && b.now < burst.decidesAt(rec.Batch())
}

// declaresWhileOpen reports whether the date that a page declares may be that of a build under way. It waits until that
// is over, unless the page itself has changed.
func (b *bursts) declaresWhileOpen(rec *store.Record) bool {
	if !b.declaresLately(rec) {
		return false
	}
	burst := b.of(rec)
	isOver := burst == nil || b.now >= burst.end()
	if isOver || declaredUntil(rec) < burst.from-burst.gap {
		return false
	}
	// Perhaps it has waited for so long that its burst has begun since.
	hasChanged := rec.AwaitsDate() || rec.Batch() >= burst.from
	if !hasChanged {
		return true
	}
	change := burst.textChange(rec.Batch(), differenceOf(rec), b.now)
	return change == undecided || change == ofTemplate
}

// textChangeOf decides what the last change of a page's text comes from.
func (b *bursts) textChangeOf(rec *store.Record) textChange {
	burst := b.of(rec)
	if burst == nil {
		return ofEdit
	}
	return burst.textChange(rec.Batch(), differenceOf(rec), b.now)
}
