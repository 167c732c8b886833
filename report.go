package sitemap

import (
	"context"
	"maps"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/gather"
)

// What a refresh comes to.
const (
	refreshChanged   = "changed"   // other documents than before are served
	refreshUnchanged = "unchanged" // the same as before
	refreshEmpty     = "empty"     // there is no page to list
	refreshDoubted   = "doubted"   // it is not believed until the next one says the same
	refreshFailed    = "failed"    // pages could not be gathered; what there was is served on
)

// refreshResults are all that a refresh may come to.
var refreshResults = [...]string{refreshChanged, refreshUnchanged, refreshEmpty, refreshDoubted, refreshFailed}

// report is what the last refresh of a site came to. It is never changed, and holds data
// alone: it is handed on with the snapshot.
type report struct {
	begun     time.Time
	took      time.Duration
	result    string    // one of refreshResults
	reason    string    // why it failed, is doubted, or lists nothing; "": it did not
	confirmed time.Time // when the last refresh began that was believed; zero: none

	pages    int // that it found
	verified int // of them, those that answered
	leftOut  map[string]int
	examples map[string][]string
	sources  []sourceReport
	warnings []string
}

// sourceReport is what a source contributed.
type sourceReport struct {
	name  string
	pages int    // that it named, before any was left out for what it answers
	err   string // why it could not be read; "": it could
}

// maxWarnings is how many warnings of a refresh are kept for those who look at it.
const maxWarnings = 20

// reportOn keeps what a refresh came to.
func (s *site) reportOn(held *held, result outcome, came, reason string) {
	r := &report{
		begun: time.Unix(s.begun.Load(), 0), took: held.took, result: came, reason: reason,
		pages: result.pages, verified: result.verified,
		leftOut: maps.Clone(result.leftOut), examples: result.examples,
		sources: result.sources, warnings: result.warnings,
	}
	for _, f := range result.failed {
		if f.Input < len(r.sources) {
			r.sources[f.Input].err = f.Err.Error()
		}
	}
	switch last := held.report.Load(); {
	case came != refreshFailed && came != refreshDoubted:
		r.confirmed = r.begun
	case last != nil:
		// What is served is what was confirmed before.
		r.confirmed, r.verified = last.confirmed, last.verified
		if came == refreshFailed {
			r.pages, r.leftOut, r.examples = last.pages, last.leftOut, last.examples
		}
	}
	held.report.Store(r)
	s.lastReport.Store(r)
	s.app.counts.refreshed(came, held.took)
}

// counted counts the pages that a source yields.
func (r *Refresh) counted(i int, pages gather.Stream) gather.Stream {
	return func(ctx context.Context, yield func(Page) error) error {
		n := 0
		defer func() { r.sources[i].pages = n }()
		return pages(ctx, func(p Page) error {
			n++
			return yield(p)
		})
	}
}
