package crawl

import (
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const (
	minute = 60 // seconds, as all that follow
	hour   = 60 * minute
	day    = 24 * hour
	week   = 7 * day

	briefWait     = 5           // until an emptied page is fetched again, or a front page that has only failed
	frontWait     = 110         // for a front page that no probe requests: it comes with every other refresh
	confirmWait   = minute      // until what a fetch found is confirmed by another one
	writeWait     = 2           // the same, of what was just saved
	confirmWithin = 10 * minute // later, two dates that differ may be two changes
	maxAhead      = 100 * day   // until a chunk is looked at in any case
)

// Pace says how often the known pages of upstreams are fetched again. All sites that share a rate share it.
type Pace struct {
	Rate  float64 // requests a second that upstreams get at most
	Known int     // their pages that were fetched before
	Hubs  int     // fetches of hubs among them a day
}

// manyPages is the number of known pages from which on they take twice the share of the rate: with the default
// rate, it is as many as a twentieth of it fetches in a day.
const manyPages = 8000

// Share is how many requests a second known pages take at most: a twentieth of the rate, or a tenth for many pages.
func (p Pace) Share() float64 {
	if p.Known > manyPages {
		return p.Rate / 10
	}
	return p.Rate / 20
}

// Longest is the longest interval between two fetches of a known page, in seconds: as long as it takes to fetch all of
// them once with what hubs leave of their share, between 1 and 14 days.
func (p Pace) Longest() int64 {
	left := max(p.Share()-float64(p.Hubs)/day, p.Share()/2)
	if left <= 0 {
		return 14 * day
	}
	return min(max(int64(float64(p.Known)/left), day), 14*day)
}

// Routine is how many known pages are fetched a second at most because their interval is over. Pages that were all
// found together, as in a first crawl, would all be due together: they are spread over a little less than a day.
func (p Pace) Routine() float64 {
	return min(p.Share(), max(1.2*float64(p.Known)/day, 60./hour))
}

// Quarter is how many requests a second hubs, and likewise pages that visitors or lost links signal, take at most.
func (p Pace) Quarter() float64 { return p.Share() / 4 }

// intervals bound those of a page that does not fail.
type intervals struct {
	first, shortest, longest int64 // seconds
}

// intervals bound those of known pages of upstreams.
func (p Pace) intervals() intervals {
	return intervals{first: day, shortest: 6 * hour, longest: p.Longest()}
}

var (
	// ofOwn are those of pages that Caddy makes.
	ofOwn = intervals{first: day, shortest: 6 * hour, longest: day}

	// ofFiles are those of files, which tell by their versions that they have changed.
	ofFiles = intervals{first: week, shortest: week, longest: 90 * day}

	// ofData are those of pages of the site itself that are not HTML, and have no links.
	ofData = intervals{first: 90 * day, shortest: 90 * day, longest: 90 * day}
)

// comparison is how a response compares with what was known of the page.
type comparison uint8

const (
	unchanged comparison = iota
	changed              // the text or the status is another than before
	suspected            // the text, or the date that it declares, is another one, which is to be confirmed
	gone                 // it was a page, and is none any more
	missing              // it is no page, as before
	failed               // there was no response, or one that says nothing about the page
	emptied              // it was a document and is none, for the first time: it may be being written
)

// fetchFacts are what of a fetch decides when the page is fetched again.
type fetchFacts struct {
	intervals
	came      comparison
	interval  int64   // of the page until now, in seconds; 0: it has none yet
	isFirst   bool    // it was not fetched before
	isNew     bool    // a page that was fetched before has a link to it that is new
	isFailing bool    // the fetch before failed, too, or nothing was known before
	isFront   bool    // the site begins with the page
	isProbed  bool    // it is the front page, and each probe tells whether it is another one
	isNoisy   bool    // its text was another one each time lately
	isNoPage  bool    // it was no response with the status 200
	isSteady  bool    // the page is a file: until its version changes, it brings nothing new
	isSpread  bool    // it may have been found together with very many others
	isWritten bool    // it was due by a write
	path      string  // of the page
	hub       float64 // its score as a hub
}

// due is when a page is fetched again.
type due struct {
	interval int64 // of the page from now on, in seconds
	pause    int64 // from now, in seconds
	cause    record.Cause
}

// bring brings forward what is due later than after a pause, as the page's links may lead to new ones.
func (d *due) bring(pause int64) {
	if pause < d.pause {
		d.pause = pause
		d.cause = record.ByHub
	}
}

// next decides when a page is due again, and by what.
func (f fetchFacts) next() due {
	d := f.byComparison()
	if d.cause != record.ByInterval || f.isNoPage {
		return d
	}
	if f.isFirst && f.isSpread {
		d.pause = spread(d.pause, f.path)
	}
	if !f.isSteady {
		f.bringForLinks(&d)
	}
	return d
}

// bringForLinks brings forward what is due for the sake of the page's links.
func (f fetchFacts) bringForLinks(d *due) {
	if f.isProbed && f.isNoisy {
		d.bring(confirmWithin) // to see whether it is still noise: see calm
		return
	}
	if f.isProbed {
		d.bring(hour)
		return
	}
	if f.isFront {
		d.bring(frontWait)
		return
	}
	if often := HubInterval(f.hub); often != 0 {
		d.bring(often)
	}
}

// byComparison is next for a page without links. While nothing changes, pages are fetched less and less often; failures
// sooner, and a front page soonest, as an application may start with the server.
func (f fetchFacts) byComparison() due {
	interval := f.interval
	switch f.came {
	case emptied:
		return due{interval, briefWait, record.ByConfirmation}
	case suspected:
		interval = min(max(interval, f.shortest), f.longest)
		if f.isWritten {
			return due{interval, writeWait, record.ByWrite}
		}
		return due{interval, confirmWait, record.ByConfirmation}
	case gone: // by mistake, perhaps: a deployment may be under way
		return due{minute, minute, record.ByConfirmation}
	case failed:
		interval = f.afterFailure()
		return due{interval, interval, record.ByFailure}
	case missing:
		interval = min(max(2*interval, minute), f.longest)
		// A new link may have come before the page to which it leads, which an author publishes minutes later. Any
		// other link that was never good is a broken one.
		if f.isFirst && !f.isNew {
			interval = hour
		}
	case changed:
		interval = min(max(interval/2, f.shortest), f.longest)
	case unchanged:
		interval = min(max(2*interval, f.shortest), f.longest)
	}
	if f.isFirst && f.came != missing {
		interval = f.first
	}
	return due{interval, interval, record.ByInterval}
}

// afterFailure returns the interval of a page that fails.
func (f fetchFacts) afterFailure() int64 {
	least := int64(minute)
	if f.isFront {
		least = briefWait
	}
	if !f.isFailing {
		return hour + minute // what is known stays until then
	}
	return min(max(2*f.interval, least), day)
}

const (
	hubDecay = 7 * day // after which a score has fallen to 1/e
	hubUnit  = 1000    // of [record.Record.Hub]
)

// hubIntervals are how often hubs are fetched, by their least score.
var hubIntervals = []struct {
	score    float64
	interval int64 // seconds
}{
	{2, 10 * minute},
	{0.7, hour},
	{0.2, 6 * hour},
}

// HubInterval returns how often a page with a score as a hub is fetched, in seconds; 0: as any other page.
func HubInterval(score float64) int64 {
	for _, h := range hubIntervals {
		if score >= h.score {
			return h.interval
		}
	}
	return 0
}

// Decayed returns a score after some seconds.
func Decayed(score float64, seconds int64) float64 {
	return score * math.Exp(-float64(max(seconds, 0))/hubDecay)
}

// spread returns when a page is fetched for the second time, in seconds: pages that were found together come at
// different times of their first interval.
func spread(interval int64, path string) int64 {
	if interval <= 2*hour {
		return interval
	}
	return hour + int64(xxhash.Sum64String(path)%uint64(interval-hour))
}

// lateness is for how many of its intervals a page has been due.
func lateness(rec *record.Record, now int64) float64 {
	return float64(now-rec.Due) / float64(max(rec.Due-rec.Fetched, minute))
}

// class says on whose account a page is fetched again.
type class uint8

const (
	byRate    class = iota // at the whole rate: nobody waits for fewer requests
	byList                 // half of the share of known pages
	bySignal               // a quarter of that share
	byHub                  // a quarter of that share
	byShare                // what is left of that share
	byRoutine              // of that, no more than [Pace.Routine]
	classes                // how many there are
)

// classOf returns the class of a known page that is due.
func classOf(cause record.Cause) class {
	switch cause {
	case record.ByOperator, record.ByOperatorForAll, record.ByConfiguration, record.ByLinks, record.ByFile, record.ByWrite:
		return byRate
	case record.ByList:
		return byList
	case record.ByVisitor, record.ByLostLink:
		return bySignal
	case record.ByHub:
		return byHub
	case record.ByConfirmation, record.ByFailure:
		return byShare
	}
	return byRoutine
}
