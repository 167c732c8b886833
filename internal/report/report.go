// Package report turns the result of a [Refresh] into a [Report], which status, metrics and the store keep, and into
// log lines.
package report

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/terminal"
)

// Report is what operators see of the last refresh of a site, and of what earlier ones confirmed. It is immutable, and
// nothing is decided by it.
type Report struct {
	At        time.Time           `json:"at"` // when it began
	Seconds   float64             `json:"duration_seconds"`
	Result    outcome.Result      `json:"result"`                // "": there was no refresh
	Reason    string              `json:"reason,omitempty"`      // why it failed, is held back, or lists nothing
	Confirmed time.Time           `json:"confirmed_at,omitzero"` // when the last refresh began that neither failed nor was held back
	HeldSince time.Time           `json:"held_since,omitzero"`   // when the first refresh began that held back so many missing pages
	Pages     int                 `json:"pages"`                 // listed
	Pending   int                 `json:"pending,omitempty"`     // pages still to be fetched
	Partial   bool                `json:"partial,omitempty"`     // selected while the refresh went on
	Sources   []Source            `json:"sources,omitempty"`
	LeftOut   map[string]int      `json:"left_out,omitempty"` // pages by reason: most are names of an indexing.Status
	Examples  map[string][]string `json:"examples,omitempty"` // some of their paths, by reason
	News      *document.News      `json:"news,omitempty"`     // nil: there is no news sitemap
	Warnings  []string            `json:"warnings,omitempty"` // of the sources
}

// Source is what one source contributed to the last refresh.
type Source struct {
	Source string `json:"source"`           // its module's name
	Pages  int    `json:"pages"`            // named, including those that are left out
	Error  string `json:"error,omitempty"`  // why it could not be read; "": it could
	Unread bool   `json:"unread,omitempty"` // it could not be read either when the pages were last confirmed
}

// Refresh is the result of one refresh, or of a part of it that was published.
type Refresh struct {
	outcome.Outcome
	Changed  bool // other documents than before are served
	Begun    time.Time
	Took     time.Duration
	Cost     time.Duration // the part of Took for gathering, selecting and building
	Partial  bool          // the refresh goes on
	Pages    int           // listed now
	MaxPages int           // max_urls
	DatesDue time.Time     // see [outcome.History]

	Sources  []string       // the names of the inputs of Merged
	Warnings []string       // of the sources
	Skipped  map[string]int // candidates that the sources left out, by reason
	Merged   merge.Result
	Crawled  crawl.Result
	Selected indexing.Result // its Generation is nil if nothing was selected
	Snapshot *document.Set
	News     *document.News // of the pages that were selected; nil: none were, or there is no news sitemap
}

// Report returns the report of r, given the history after it and the report before, which may be nil. Of a refresh that
// failed, it has what the one before had.
func (r *Refresh) Report(h outcome.History, before *Report) *Report {
	rep := new(Report)
	if before != nil {
		*rep = *before
	}
	rep.At = r.Begun.UTC().Truncate(time.Second)
	rep.Seconds = r.Took.Round(time.Microsecond).Seconds()
	rep.Result = r.Result
	rep.Reason = r.Reason
	rep.Pages = r.Pages
	rep.Confirmed = h.Confirmed
	rep.HeldSince = h.Since.UTC().Truncate(time.Second)
	rep.Partial = h.Partial
	if r.Result == outcome.Failed {
		rep.Reason = terminal.Clip(r.Reason) // an error may hold bytes of strangers
		return rep
	}
	rep.Pending = r.Crawled.Pending
	rep.Warnings = r.Warnings
	rep.Sources = nil
	for i, n := range r.Merged.Counts {
		rep.Sources = append(rep.Sources, Source{Source: r.Sources[i], Pages: n})
	}
	for _, f := range r.Merged.Failed {
		source := &rep.Sources[f.Input]
		source.Error = terminal.Clip(f.Err.Error())
		source.Unread = h.IsUnread(f.Input, f.Name)
	}
	// Where nothing touched a record, no page is selected anew, and what was left out before still is.
	if r.Selected.IsMade() {
		rep.LeftOut, rep.Examples = r.LeftOut()
		rep.News = r.News
	}
	return rep
}

// WhyEmpty returns why a refresh lists no page, as far as its report tells.
func (r *Report) WhyEmpty() string {
	if r.Reason != "" {
		return r.Reason
	}
	for i, source := range r.Sources { // a source that failed may have all pages
		if source.Error != "" {
			return Unreadable(i, source.Source)
		}
	}
	if r.Pending > 0 {
		return "pages are still to be fetched"
	}
	if len(r.LeftOut) > 0 {
		return "all pages are left out"
	}
	return "no source names a page"
}

// Unreadable says that a source, counted from 0, could not be read.
func Unreadable(i int, name string) string {
	return fmt.Sprintf("source %d (%s) could not be read", i+1, name)
}

// LeftOut counts the pages that are not listed, by reason, with some examples. Absent and pending pages do not count;
// excluded ones are counted by the stage that gathers them.
func (r *Refresh) LeftOut() (counts map[string]int, examples map[string][]string) {
	counts = make(map[string]int)
	examples = make(map[string][]string)
	stages := []map[string]int{
		r.Skipped,
		r.Merged.LeftOut,
		{"alternates left out": r.Selected.AlternatesLeftOut.Count},
		{"over max_paths": r.Crawled.DroppedPaths},
	}
	if r.Snapshot != nil {
		stages = append(stages, r.Snapshot.LeftOut)
	}
	for i, of := range r.Selected.LeftOut {
		status := indexing.Status(i)
		isCounted := status != indexing.Excluded && status != indexing.Absent && status != indexing.Pending
		if isCounted && of.Count > 0 {
			examples[status.String()] = of.First
			counts[status.String()] = of.Count
		}
	}
	for _, stage := range stages {
		for reason, n := range stage {
			counts[reason] += n
		}
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	return counts, examples
}

// Log writes to l what differs between rep, the report of r, and the one before, which may be nil; that nothing does, to
// quiet.
func (r *Refresh) Log(l *logonce.Logger, quiet *zap.Logger, rep, before *Report) {
	// In an outage, refreshes fail in several ways in turn.
	l.Lasting(when(r.Err != nil), zap.ErrorLevel, "failed",
		"sitemap refresh failed; the published sitemap stays", "sitemap refreshes succeed again", zap.Error(r.Err))
	if r.Err != nil {
		return
	}
	r.logFailures(l)
	l.Lasting(when(rep.Result == outcome.HeldBack), zap.WarnLevel, "held back",
		"sitemap change held back until later refreshes confirm it", "no sitemap change is held back any more",
		zap.String("reason", rep.Reason))
	// That a site has no pages is logged once, with its reason, and not beside the source that failed.
	if rep.Result == outcome.Empty {
		return
	}
	r.logPages(l, quiet, rep, before)
	if r.Selected.IsMade() {
		r.logAdvice(l, rep)
	}
}

// logFailures logs what failed without ending the refresh.
func (r *Refresh) logFailures(l *logonce.Logger) {
	if panicked, ok := errors.AsType[*merge.PanicError](r.Crawled.Panic); ok {
		l.Once(zap.ErrorLevel, "panic", "parsing a page panicked: it counts as one that did not respond",
			zap.Error(r.Crawled.Panic), zap.ByteString("stack", panicked.Stack))
	}
	var names []string
	for _, f := range r.Merged.Failed {
		names = append(names, Unreadable(f.Input, f.Name))
	}
	err := Failures(r.Merged.Failed)
	stack := zap.Skip()
	if panicked, ok := errors.AsType[*merge.PanicError](err); ok {
		stack = zap.ByteString("stack", panicked.Stack)
	}
	l.Lasting(strings.Join(names, "; "), zap.ErrorLevel, "sources",
		"gathering pages failed", "all sources are read again", zap.Error(err), stack)
}

// when returns the name of a condition that has only one; "": it does not apply.
func when(applies bool) string {
	if applies {
		return "applies"
	}
	return ""
}

// logPages logs how many pages are listed and left out. Without a change, that is for quiet: by default, a site is
// refreshed every minute.
func (r *Refresh) logPages(l *logonce.Logger, quiet *zap.Logger, rep, before *Report) {
	fields := append(rep.Fields(),
		zap.Int("pages", rep.Pages),
		zap.Int("pending", rep.Pending),
		zap.Duration("duration", r.Took),
	)
	var leftOutBefore map[string]int
	if before != nil {
		leftOutBefore = before.LeftOut
	}
	switch {
	case r.Changed:
		l.Info("sitemap refreshed", append(fields, r.changes()...)...)
	case rep.Result == outcome.Unchanged && !maps.Equal(rep.LeftOut, leftOutBefore):
		l.Info("sitemap refreshed, other pages are left out", fields...)
	default:
		quiet.Debug("sitemap refreshed, nothing changed", fields...)
	}
}

// changes are the log fields of the pages that differ; nil: with crawl off, no record tells.
func (r *Refresh) changes() []zap.Field {
	if r.Crawled.Generation == nil {
		return nil
	}
	of := &r.Selected.Changes
	return []zap.Field{
		zap.Int("added", of.Added),
		zap.Int("changed", of.Changed),
		zap.Int("removed", of.Removed),
	}
}

// logAdvice logs what an operator may want to mend.
func (r *Refresh) logAdvice(l *logonce.Logger, rep *Report) {
	reason, fields := r.CommonReason()
	l.Lasting(reason, zap.WarnLevel, "common reason",
		"more than half of the pages are not listed", "more than half of the pages are listed again", fields...)

	over := rep.LeftOut[indexing.OverMax.String()] + rep.LeftOut[document.NoRoom]
	l.OnceIf(over > 0, zap.WarnLevel, "over",
		"more pages than the sitemap may list: raise 'max_urls' or 'shard_urls'",
		zap.Int("left_out", over), zap.Int("max_urls", r.MaxPages))

	// While pages are still to be fetched, a link to a page may yet be found.
	isComplete := !r.Partial && rep.Pending == 0
	if orphans := r.Selected.Orphans; isComplete {
		l.OnceIf(orphans.Count > 0, zap.InfoLevel, "orphans", "some listed pages have no incoming links",
			zap.Int("pages", orphans.Count), zap.Strings("first", orphans.First))
	}
}

// CommonReason is the one reason for which more than half of the pages are not listed, with its remedy, where a
// setting may be wrong, as log fields; "": there is none.
func (r *Refresh) CommonReason() (reason string, fields []zap.Field) {
	total := r.Selected.Listed
	for _, of := range r.Selected.LeftOut {
		total += of.Count
	}
	for status := range indexing.StatusCount {
		of := r.Selected.LeftOut[status]
		if !status.IsSuspicious() || 2*of.Count <= total {
			continue
		}
		return status.String(), []zap.Field{
			zap.Stringer("reason", status),
			zap.String("remedy", status.Remedy()),
			zap.Int("pages", of.Count),
			zap.Int("of", total),
			zap.Strings("first", of.First),
		}
	}
	return "", nil
}

// Fields are the log fields of the pages that are left out.
func (r *Report) Fields() []zap.Field {
	if len(r.LeftOut) == 0 {
		return nil
	}
	return []zap.Field{zap.Any("left_out", r.LeftOut), zap.Any("examples", r.Examples)}
}

// Failures joins the errors of sources; nil: there are none.
func Failures(failed []merge.InputError) error {
	var errs []error
	for _, f := range failed {
		errs = append(errs, fmt.Errorf("%s: %w", f.Name, f.Err))
	}
	return errors.Join(errs...)
}
