package sitemap

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
)

// Outcomes of refreshes.
const (
	refreshChanged   = "changed"   // other documents than before are served
	refreshUnchanged = "unchanged" // the same documents as before
	refreshEmpty     = "empty"     // no page is listed
	refreshHeldBack  = "held_back" // pages that are missing stay listed until later refreshes confirm it
	refreshFailed    = "failed"    // it was not completed; what was published stays
	refreshAlias     = "alias"     // another site's documents stand for this one's

	refreshSuperseded = "superseded" // the next configuration refreshes the site
)

// refreshOutcomes are those that are counted.
var refreshOutcomes = [...]string{refreshChanged, refreshUnchanged, refreshEmpty, refreshHeldBack, refreshFailed}

// report is what the last refresh of a site came to. It is immutable, and data alone: it
// outlives a configuration.
type report struct {
	begun     time.Time
	took      time.Duration
	outcome   string    // one of refreshOutcomes
	reason    string    // why it failed, is held back, or lists nothing; "": it did not
	confirmed time.Time // when the last refresh began that was neither; zero: none so far

	pages    int                 // that are listed
	pending  int                 // that are still to be fetched
	leftOut  map[string]int      // by reason, most of which are names of index statuses
	examples map[string][]string // paths of some of these, by reason
	sources  []sourceReport
	without  []int    // sources that could not be read when it was last confirmed
	warnings []string // of the sources
}

// sourceReport is what a source contributed, in the form of the admin API, too.
type sourceReport struct {
	Source string `json:"source"`          // its module's name
	Pages  int    `json:"pages"`           // that it named, including those that are left out
	Error  string `json:"error,omitempty"` // why it could not be read; "": it could
}

// lastReport is that on the last refresh; nil: there has been none.
func (s *site) lastReport() *report { return cmp.Or(s.last.Load(), s.state.report.Load()) }

// report keeps, counts and logs what a refresh came to.
func (s *site) report(r result, begun time.Time, took time.Duration) {
	if r.outcome == refreshAlias || r.outcome == refreshSuperseded || s.ctx.Err() != nil {
		return
	}
	before := cmp.Or(s.lastReport(), new(report))
	rep := newReport(s, &r, begun, took)
	s.last.Store(rep)
	s.state.report.Store(rep)
	if !r.partial {
		s.app.counts.refreshed(rep.outcome, took)
	}
	reportLog{s, &r, rep, before}.write()
	s.app.events.announce(failedEvent(s, rep, before))
}

// newReport makes the report on a result whose snapshot is published.
func newReport(s *site, r *result, begun time.Time, took time.Duration) *report {
	before := cmp.Or(s.lastReport(), new(report))
	rep := &report{
		begun: begun, took: took, outcome: r.outcome, reason: r.reason, confirmed: begun,
		pages: pagesOf(s.state.Index.Load()), pending: r.crawled.Pending, sources: sourceReports(s.handler, &r.merged),
	}
	if r.source != nil {
		rep.warnings, _ = r.source.said()
	}
	switch {
	case r.err != nil:
		rep.outcome, rep.reason, rep.pending = refreshFailed, clip(r.err.Error()), before.pending
	case rep.reason == "" && rep.pages > 0:
		// The pages of a source that cannot be read stay, and nothing confirms them.
		if rep.reason = newFailures(r.merged.Failed, before); rep.reason != "" {
			rep.outcome = refreshHeldBack
		}
	}
	if rep.outcome == refreshFailed || rep.outcome == refreshHeldBack {
		rep.confirmed, rep.without = before.confirmed, before.without
	} else {
		for _, f := range r.merged.Failed {
			rep.without = append(rep.without, f.Input)
		}
	}
	rep.leftOut, rep.examples = before.leftOut, before.examples
	if r.selected.Generation != nil {
		rep.leftOut, rep.examples = leftOutOf(r)
	}
	return rep
}

func pagesOf(snapshot *publish.Snapshot) int {
	if snapshot == nil {
		return 0
	}
	return snapshot.Pages
}

// sourceReports are those on all sources, in their order, and on other inputs that failed.
func sourceReports(h *Handler, merged *merge.Result) []sourceReport {
	sources := make([]sourceReport, len(h.sources))
	for i := range sources {
		sources[i].Source = h.sourceNames[i]
		if i < len(merged.Counts) {
			sources[i].Pages = merged.Counts[i]
		}
	}
	for _, f := range merged.Failed {
		for f.Input >= len(sources) {
			sources = append(sources, sourceReport{})
		}
		sources[f.Input].Source, sources[f.Input].Error = f.Name, clip(f.Err.Error())
	}
	return sources
}

// newFailures names the sources that could be read when the pages were last confirmed; "":
// there is none. The pages of a source that was never read are not missing.
func newFailures(failed []merge.InputError, before *report) string {
	var all []string
	for _, f := range failed {
		if !before.confirmed.IsZero() && !slices.Contains(before.without, f.Input) {
			all = append(all, fmt.Sprintf("source %d (%s) could not be read", f.Input+1, f.Name))
		}
	}
	return strings.Join(all, "; ")
}

// leftOutOf counts the pages that are not listed, by reason, with some examples. What no
// source names any more, and what waits to be fetched, does not count; what is excluded
// counts where it is gathered.
func leftOutOf(r *result) (leftOut map[string]int, examples map[string][]string) {
	leftOut, examples = make(map[string]int), make(map[string][]string)
	add := func(counts map[string]int) {
		for reason, n := range counts {
			leftOut[reason] += n
		}
	}
	add(r.merged.LeftOut)
	if r.source != nil {
		_, bySources := r.source.said()
		add(bySources)
	}
	if r.snapshot != nil {
		add(r.snapshot.LeftOut)
	}
	for _, status := range indexing.Statuses() {
		switch status {
		case indexing.Indexable, indexing.Excluded, indexing.Absent, indexing.Pending:
			continue
		}
		if of := r.selected.LeftOut[status]; of.Count > 0 {
			leftOut[status.String()] += of.Count
			examples[status.String()] = of.First
		}
	}
	if n := r.selected.NotMutual.Count; n > 0 {
		leftOut["alternates not mutual"] += n
	}
	if n := r.crawled.DroppedPaths; n > 0 {
		leftOut["over max_paths"] += n
	}
	return leftOut, examples
}

// reportLog writes the log lines of a refresh.
type reportLog struct {
	*site
	r      *result
	rep    *report
	before *report // on the refresh before; the zero value: none
}

func (l reportLog) write() {
	r, rep, before := l.r, l.rep, l.before
	l.logger.onceIf(r.err != nil, zapcore.ErrorLevel, "failed", "sitemap refresh failed; the published sitemap stays", zap.Error(r.err))
	if r.err != nil {
		return
	}
	l.sources()
	probed := l.probed.Load()
	l.logger.onceIf(probed != nil && probed.robots.closed && !l.handler.settings.crawl.off, zapcore.WarnLevel, "robots",
		"robots.txt cannot be fetched, or returns an error, so no page is fetched")
	if rep.outcome == refreshHeldBack && (before.outcome != refreshHeldBack || before.reason != rep.reason) {
		found := rep.pages
		if r.outcome == refreshHeldBack {
			found = r.found
		}
		l.logger.log(zapcore.WarnLevel, "sitemap change held back until later refreshes confirm it",
			zap.String("reason", rep.reason), zap.Int("pages", found), zap.Int("pages_before", before.pages))
	}
	if r.outcome == refreshEmpty {
		l.empty()
		return
	}
	l.logger.clear("empty")
	switch {
	case r.outcome == refreshChanged:
		l.refreshed(zapcore.InfoLevel, "sitemap refreshed")
	case r.outcome == refreshUnchanged && rep.summary() != before.summary():
		l.refreshed(zapcore.InfoLevel, "sitemap refreshed, nothing changed")
	case r.outcome == refreshUnchanged:
		l.refreshed(zapcore.DebugLevel, "sitemap refreshed, nothing changed")
	case r.outcome == refreshHeldBack:
		l.refreshed(zapcore.DebugLevel, "sitemap refreshed, a change is held back")
	}
	if r.selected.Generation != nil {
		l.selection()
	}
}

// summary is what a refresh may change besides the documents.
func (r *report) summary() string { return fmt.Sprint(r.pages, r.pending, r.leftOut) }

// refreshed says what is listed now.
func (l reportLog) refreshed(level zapcore.Level, message string) {
	rep := l.rep
	snapshot := l.state.Index.Load()
	if snapshot == nil || !l.logger.Core().Enabled(level) {
		return
	}
	fields := []zap.Field{
		zap.Int("pages", rep.pages), zap.Int("shards", len(documentsOf(snapshot))), zap.Int("pending", rep.pending), zap.Duration("duration", rep.took),
	}
	l.logger.log(level, message, append(fields, rep.leftOutFields()...)...)
}

// leftOutFields say what is left out, with examples; none if nothing is.
func (r *report) leftOutFields() (fields []zap.Field) {
	var counts, examples []string
	for _, reason := range slices.Sorted(maps.Keys(r.leftOut)) {
		counts = append(counts, fmt.Sprintf("%s: %d", reason, r.leftOut[reason]))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.examples)) {
		examples = append(examples, reason+": "+strings.Join(r.examples[reason], " "))
	}
	if counts != nil {
		fields = append(fields, zap.Strings("left_out", counts))
	}
	if examples != nil {
		fields = append(fields, zap.Strings("examples", examples))
	}
	return fields
}

// sources says which sources could not be read.
func (l reportLog) sources() {
	r := l.r
	if r.source != nil {
		r.source.mu.Lock()
		kinds := maps.Clone(r.source.kinds)
		r.source.mu.Unlock()
		l.logger.keepSources(kinds)
	}
	err := joinFailures(r.merged.Failed)
	l.logger.onceIf(err != nil, zapcore.ErrorLevel, "sources", "gathering pages failed", zap.Error(err))
}

// empty says why no page is listed.
func (l reportLog) empty() {
	rep := l.rep
	probed := l.probed.Load()
	if probed == nil {
		return
	}
	switch rep.reason {
	case "":
	case reasonRefused, reasonAbsent:
		l.logger.once(zapcore.InfoLevel, "empty", rep.reason, zap.Int("status", cmp.Or(probed.refused, probed.absent)))
		return
	default:
		fields := []zap.Field{zap.String("path", l.internal.prefix+l.handler.settings.path)}
		if probed.status != 0 {
			fields = append(fields, zap.Int("status", probed.status))
		}
		l.logger.once(zapcore.WarnLevel, "empty", rep.reason, fields...)
		return
	}
	if rep.pending > 0 {
		return // too early to tell
	}
	candidates := 0
	for _, n := range rep.leftOut {
		candidates += n
	}
	fields := append([]zap.Field{zap.Int("candidates", candidates)}, rep.leftOutFields()...)
	if probed.root != "" {
		fields = append(fields, zap.String("root", probed.root))
	}
	l.logger.once(zapcore.WarnLevel, "empty", "no page to list, so there is no sitemap", fields...)
}

// selection says what stands out among the pages as a whole.
func (l reportLog) selection() {
	selected, rep := &l.r.selected, l.rep
	count := func(status indexing.Status) int { return selected.LeftOut[status].Count }
	total := selected.Listed
	for _, status := range indexing.Statuses() {
		total += count(status)
	}
	const unwilling = "more than half of the pages name a canonical on another site or ask not to be indexed, so they are not listed: is base_url right?"
	n := count(indexing.CanonicalForeign) + count(indexing.NoIndex)
	l.logger.onceIf(2*n > total, zapcore.WarnLevel, "unwilling", unwilling, zap.Int("pages", n), zap.Int("of", total),
		zap.Strings("first", slices.Concat(selected.LeftOut[indexing.CanonicalForeign].First, selected.LeftOut[indexing.NoIndex].First)))

	disallowed := selected.LeftOut[indexing.Disallowed]
	var words []string
	for _, path := range disallowed.First {
		if word := l.handler.settings.crawl.disallow.Match(path); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	l.logger.onceIf(2*disallowed.Count > total, zapcore.WarnLevel, "disallowed",
		"more than half of the pages are never requested, because of a word or pattern in 'crawl disallow'",
		zap.Strings("disallow", words), zap.Int("pages", disallowed.Count), zap.Int("of", total), zap.Strings("first", disallowed.First))

	orphans := selected.Orphans
	complete := !l.r.partial && rep.pending == 0 // else links may still be found
	l.logger.onceIf(complete && orphans.Count > 0 && !l.handler.settings.omitOrphans, zapcore.InfoLevel, "orphans", "some listed pages have no incoming links",
		zap.Int("pages", orphans.Count), zap.Strings("first", orphans.First))

	over := rep.leftOut[indexing.OverMax.String()] + rep.leftOut[publish.NoRoom]
	l.logger.onceIf(over > 0, zapcore.WarnLevel, "over", "not all pages fit into the sitemap", zap.Int("left_out", over),
		zap.Int("max_urls", l.handler.settings.maxURLs), zap.Int("shard_urls", l.handler.settings.shardURLs))
}

// reportMeta is what is kept of a report with the store.
type reportMeta struct {
	Begun     time.Time           `json:"begun"`
	Took      time.Duration       `json:"took"`
	Outcome   string              `json:"outcome"`
	Reason    string              `json:"reason,omitempty"`
	Confirmed time.Time           `json:"confirmed,omitzero"`
	Pages     int                 `json:"pages"`
	Pending   int                 `json:"pending,omitempty"`
	LeftOut   map[string]int      `json:"left_out,omitempty"`
	Examples  map[string][]string `json:"examples,omitempty"`
	Sources   []sourceReport      `json:"sources,omitempty"`
	Without   []int               `json:"without,omitempty"`
}

func (r *report) toMeta() *reportMeta {
	return &reportMeta{
		Begun: r.begun, Took: r.took, Outcome: r.outcome, Reason: r.reason, Confirmed: r.confirmed,
		Pages: r.pages, Pending: r.pending, LeftOut: r.leftOut, Examples: r.examples, Sources: r.sources, Without: r.without,
	}
}

// fromMeta is the report that was kept; nil: none was.
func (m *reportMeta) fromMeta() *report {
	if m == nil {
		return nil
	}
	return &report{
		begun: m.Begun, took: m.Took, outcome: m.Outcome, reason: m.Reason, confirmed: m.Confirmed,
		pages: m.Pages, pending: m.Pending, leftOut: m.LeftOut, examples: m.Examples, sources: m.Sources, without: m.Without,
	}
}
