package indexing

import (
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Undated is why a listed page has no date. Of several reasons, the first counts.
type Undated uint8

// The reasons.
const (
	IsDated           Undated = iota // it has one
	DatesOff                         // Options.Dates is Off
	InFuture                         // the date that counts is later than now, and than the last fetch
	TooEarly                         // it is before the year 1981
	Undecided                        // the crawl that has found the page, or a change of it, goes on
	NotBySource                      // Options.Dates is ModTime, and no source gives a date
	Unconfirmed                      // the next fetch is to confirm what has changed
	TextMoves                        // the text is another one at each fetch
	DeclaredDateMoves                // the declared date is, while the text stays
	OfBuild                          // nearly all declared dates, or all of the list, are those of a build
	FoundLate                        // the text has changed, on a day that is not known
	OfTemplate                       // it has changed with those of most pages
	OfDeployment                     // the times of many pages are those of a deployment
	NothingTells                     // there is neither a date nor a change

	undatedCount // is how many there are
)

// String returns the reason in words; "" for IsDated.
func (u Undated) String() string {
	return [undatedCount]string{
		DatesOff:          "lastmod off",
		InFuture:          "date in the future",
		TooEarly:          "date before 1981",
		Undecided:         "not decided yet",
		NotBySource:       "no date from a source",
		Unconfirmed:       "to be confirmed",
		TextMoves:         "text changes at each fetch",
		DeclaredDateMoves: "declared date changes at each fetch",
		OfBuild:           "date of a build",
		FoundLate:         "change found late",
		OfTemplate:        "change of many pages",
		OfDeployment:      "time of a deployment",
		NothingTells:      "nothing says when it changed",
	}[min(u, undatedCount-1)]
}

// whyUndated returns why a listed page has no date, by its record as it was published. What a date is decided by is
// known only while it is decided: later, some reasons are those that are left.
func (d *dates) whyUndated(rec *store.Record) Undated {
	if rec.Selected.LastMod != 0 {
		return IsDated
	}
	if d.rules.Dates == Off {
		return DatesOff
	}
	text, _ := d.ofText(rec)
	at := d.listed(rec, text).unix
	if at != 0 {
		return d.whyNotListed(rec, at)
	}
	if d.rules.Dates == ModTime {
		return NotBySource
	}
	return whyUnknown(rec)
}

// whyNotListed returns why a page is listed without the date that it has.
func (d *dates) whyNotListed(rec *store.Record, at int64) Undated {
	if at > max(d.rules.Now.Unix(), rec.Fetched) {
		return InFuture
	}
	if at < page.Earliest {
		return TooEarly
	}
	return Undecided // the last selection was made before the date was
}

// whyUnknown returns why it is not known when a page has changed.
func whyUnknown(rec *store.Record) Undated {
	own, isFile := timeOf(rec)
	// A file that has changed has the time of that, unless it was written, or has changed, in a deployment.
	isOfDeployment := own.unix != 0 && (isFile || rec.Changed == 0)
	switch {
	case rec.Steadiness.IsInDoubt():
		return Unconfirmed
	case isUnsteady(rec):
		return TextMoves
	case rec.Declared != 0 && rec.Flags&store.DeclaredMoves != 0:
		return DeclaredDateMoves
	case rec.Declared != 0, listDate(rec).unix != 0:
		return OfBuild
	case rec.AwaitsDate():
		return Undecided
	case isOfDeployment:
		return OfDeployment
	case rec.Changed == 0:
		return NothingTells
	case !isFoundSoon(rec.Changed - rec.Before):
		return FoundLate
	}
	return OfTemplate
}
