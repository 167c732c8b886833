package indexing

import (
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// How long a page has to stay as it is before search engines are told. Only tests set less.
var (
	AddedFor   = 90 * time.Second // a page that was added
	RemovedFor = 3 * time.Minute  // one that was removed, as a deployment may fail
)

// MovedApart is the least time between two changes of a page that are told: ten minutes between two notices, of which the first may
// be a minute late, as targets are told once a minute.
const MovedApart = 11 * time.Minute

// Notices are what a selection is to know of those who are told of changes. The zero value: nobody is.
type Notices struct {
	Now     int64 // in Unix seconds
	Told    int64 // the latest change that any of them was told: see [record.Record.Moved]; 0: nobody is told
	Behind  int64 // the latest change that all of them were told
	IsKnown bool  // pages that were not listed before are new to everybody
}

// move is what has become of a page since the last selection.
type move uint8

const (
	unmoved move = iota
	added        // it was not listed
	edited       // the page itself is another one
	redated      // only its date is
	removed      // it is gone
	hidden       // settings or other pages leave it out, and its URL responds as before
)

// moveOf says what has become of a page: rec has the previous selection, and isOther says that it has another text.
func moveOf(rec *record.Record, status Status, is record.Selected, isOther bool) move {
	was := rec.Selected
	switch {
	case is.Listed && !was.Listed:
		return added
	case is.Listed:
		return changeOf(rec, is, isOther)
	case !was.Listed:
		return unmoved
	case status.isGone():
		return removed
	}
	return hidden
}

// changeOf is moveOf, of a page that stays listed. A first date that is decided only after the page was listed is no change.
func changeOf(rec *record.Record, is record.Selected, isOther bool) move {
	was := rec.Selected
	hasFirstDate := was.Dated == 0 && is.Dated != 0
	hasOtherDate := !hasFirstDate && (was.LastMod != is.LastMod || was.Day != is.Day)
	isNews := isOther && !isKnown(rec) || hasOtherDate && isStated(rec, is)
	switch {
	case isNews && is.LastMod != 0:
		return edited
	case isNews, hasOtherDate:
		return redated
	}
	return unmoved
}

// note notes in a record from when on a move may be told. isOther: the text is another one than when the page was last listed.
func (n *Notices) note(rec *record.Record, m move, isOther bool) {
	if n.Told == 0 {
		return
	}
	isUntold := int64(rec.Moved) > n.Told
	isUndone := isUntold && rec.Turned
	// Whoever is behind still takes the page for what it was before.
	isTurn := !isUntold && n.Behind >= n.Told
	switch {
	case m == added && isUndone && !isOther: // it was gone for a moment
		n.withdraw(rec, n.Told)
	case m == added && !n.IsKnown, m == removed && isUndone, m == hidden: // it is not new, or came and went
		n.withdraw(rec, n.Behind)
	case m == added:
		n.set(rec, AddedFor, isTurn)
	case m == removed:
		n.set(rec, RemovedFor, isTurn)
	case m == edited && !isUntold: // else, what is still to be told is told of the page as it is then
		n.set(rec, 0, false)
	}
}

// set has a move be told once it has lasted for a time: later than all that was told, so that no cursor is beyond it, and long
// enough after the page's last notice, or no sooner than what it takes the place of.
func (n *Notices) set(rec *record.Record, lasted time.Duration, isTurn bool) {
	const apart = int64(MovedApart / time.Second)
	last := int64(rec.Moved)
	isTold := last != 0 && last <= n.Told
	if isTold {
		last += apart
	}
	last = min(last, n.Now+apart) // the clock may have been set back
	rec.Moved = record.Unix32(max(n.Now+int64(lasted/time.Second), n.Told+1, last))
	rec.Turned = isTurn
}

// withdraw has a page be one of which everybody was told who was told up to a time. A cursor may lie within its second.
func (n *Notices) withdraw(rec *record.Record, told int64) {
	rec.Moved = min(rec.Moved, record.Unix32(told-1))
}

// hasOtherText reports whether a page has another text than when it was last dated, and not by a template.
func hasOtherText(rec *record.Record, is record.Selected, isTemplate bool) bool {
	was := rec.Selected
	isFirst := was.Dated == 0 && rec.Changed == 0
	return was.Dated != is.Dated && !isFirst && !isTemplate
}

// isKnown reports whether the change of a page's text counted already, as its date was listed before the text was
// confirmed: a list told of it.
func isKnown(rec *record.Record) bool {
	was := rec.Selected
	return !was.Day && rec.Before != 0 && was.LastMod > rec.Before
}

// isStated reports whether another date is one that the page or a list states anew. Else another of its dates counts, as where the
// settings have changed, or it was found the same.
func isStated(rec *record.Record, is record.Selected) bool {
	was := rec.Selected
	if was.LastMod == 0 {
		return !is.Day && is.LastMod > rec.Fetched // since it was looked at last
	}
	isNewer := is.LastMod > was.LastMod
	hasNoText := is.Dated == 0 // as other documents than HTML
	// Not one to which the page returns.
	isRestated := is.Text > was.Text && is.Text != int64(rec.Was) && is.LastMod == is.Text
	return isNewer && (hasNoText || isRestated)
}
