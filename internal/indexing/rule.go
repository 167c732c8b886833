package indexing

import "github.com/seed3295b519/caddy-sitemap/internal/record"

// The rules by which a listed page has its date, or none. Those from DatesOff on give no date.
const (
	ByPage    = "declared by the page"
	ByList    = "given by a list"
	ByFile    = "time of the file"
	ByHeader  = "Last-Modified"
	ByDay     = "day on which the change was found"
	ByEarlier = "date from before the last change"

	DatesOff     = "lastmod off"
	NotBySource  = "no date from a source"
	Unconfirmed  = "to be confirmed"
	Undecided    = "not decided yet"
	TextMoves    = "text changes at each fetch"
	OfBuild      = "date of a build"
	OfUpload     = "time of an upload"
	FoundLate    = "change found late"
	OfTemplate   = "change of many pages"
	NothingTells = "nothing says when it changed"
)

// ruleOf returns the rule by which a listed page has its date, or none, by its record as it was published. What a date is
// decided by is known only while it is decided: later, some rules are those that are left.
func (d *dates) ruleOf(rec *record.Record) string {
	switch {
	case rec.Selected.LastMod != 0:
		return ruleOfDate(rec)
	case d.rules.Dates == Off:
		return DatesOff
	case d.rules.Dates == ModTime:
		return NotBySource
	}
	return d.ruleOfNone(rec)
}

func ruleOfDate(rec *record.Record) string {
	at := date{rec.Selected.LastMod, rec.Selected.Day}
	isOwn := at.unix == ownTime(rec)
	switch {
	case at == declaredDate(rec):
		return ByPage
	case at == listDate(rec):
		return ByList
	case at == date{int64(rec.Found), true}:
		return ByDay
	case isOwn && !rec.IsFile():
		return ByHeader
	case isOwn, rec.Version != 0 && at.unix == rec.ModTime:
		return ByFile
	}
	return ByEarlier
}

// ruleOfNone is ruleOf, of a page without a date.
func (d *dates) ruleOfNone(rec *record.Record) string {
	isOfBuild := d.counted(rec) != d.evidence(rec)
	switch {
	case rec.Steadiness.IsInDoubt():
		return Unconfirmed
	case isUnsteady(rec):
		return TextMoves
	case rec.AwaitsDate():
		return Undecided
	case isOfBuild:
		return OfBuild
	case rec.Changed == 0 && ownTime(rec) != 0:
		return OfUpload
	case rec.Changed == 0:
		return NothingTells
	case !isFoundSoon(rec):
		return FoundLate
	}
	return OfTemplate
}
