package indexing

import (
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Rule is the rule by which a listed page has its date, or none.
type Rule uint8

// The rules. Those from DatesOff on give no date.
const (
	ByPage Rule = iota
	ByList
	ByFile
	ByHeader
	ByDay
	ByEarlier

	DatesOff
	NotBySource
	Unconfirmed
	Undecided
	TextMoves
	DeclaredDateMoves
	InFuture
	TooEarly
	OfBuild
	OfUpload
	FoundLate
	OfTemplate
	NothingTells

	ruleCount // is how many there are
)

// String returns the rule in words.
func (r Rule) String() string {
	return [ruleCount]string{
		ByPage:    "declared by the page",
		ByList:    "given by a list",
		ByFile:    "time of the file",
		ByHeader:  "Last-Modified",
		ByDay:     "day on which the change was found",
		ByEarlier: "date from before the last change",

		DatesOff:          "lastmod off",
		NotBySource:       "no date from a source",
		Unconfirmed:       "to be confirmed",
		Undecided:         "not decided yet",
		TextMoves:         "text changes at each fetch",
		DeclaredDateMoves: "declared date changes at each fetch",
		InFuture:          "date in the future",
		TooEarly:          "date before 1981",
		OfBuild:           "date of a build",
		OfUpload:          "time of an upload",
		FoundLate:         "change found late",
		OfTemplate:        "change of many pages",
		NothingTells:      "nothing says when it changed",
	}[min(r, ruleCount-1)]
}

// ruleOf returns the rule by which a listed page has its date, or none, by its record as it was published. What a date is
// decided by is known only while it is decided: later, some rules are those that are left.
func (d *dates) ruleOf(rec *store.Record) Rule {
	if rec.Selected.LastMod != 0 {
		return ruleOfDate(rec)
	}
	switch d.rules.Dates {
	case Off:
		return DatesOff
	case ModTime:
		return d.ruleOfStatement(rec, NotBySource)
	}
	return d.ruleOfNone(rec)
}

func ruleOfDate(rec *store.Record) Rule {
	at := date{rec.Selected.LastMod, rec.Selected.Day}
	isOwn := at.unix == ownTime(rec)
	switch {
	case at == declaredDate(rec):
		return ByPage
	case at == listDate(rec):
		return ByList
	case isOwn && !rec.IsFile():
		return ByHeader
	case isOwn, rec.Version != 0 && at.unix == rec.ModTime:
		return ByFile
	case at.day:
		return ByDay
	}
	return ByEarlier
}

// ruleOfNone is ruleOf, of a page without a date.
func (d *dates) ruleOfNone(rec *store.Record) Rule {
	switch {
	case rec.Steadiness.IsInDoubt():
		return Unconfirmed
	case isUnsteady(rec):
		return d.ruleOfStatement(rec, TextMoves)
	case rec.AwaitsDate():
		return Undecided
	case rec.Declared != 0 && rec.Flags&store.DeclaredMoves != 0:
		return DeclaredDateMoves
	case rec.Declared != 0, listDate(rec).unix != 0:
		return d.ruleOfStatement(rec, OfBuild)
	case rec.Changed == 0 && ownTime(rec) != 0:
		return OfUpload
	case rec.Changed == 0:
		return NothingTells
	case !isFoundSoon(rec):
		return FoundLate
	}
	return OfTemplate
}

// ruleOfStatement returns why a stated date does not count; usual: it may be one.
func (d *dates) ruleOfStatement(rec *store.Record, usual Rule) Rule {
	for _, at := range []int64{rec.Declared, listDate(rec).unix, rec.ModTime} {
		if at == 0 || d.isPossible(rec, at) {
			continue
		}
		if at < page.Earliest {
			return TooEarly
		}
		return InFuture
	}
	return usual
}
