package sitemap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/discover"
	"github.com/seed3295b519/caddy-sitemap/internal/gather"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

// Why a page is left out, besides the reasons that sources give.
const (
	outsideScope  = "outside the sitemap's folder"
	omitted       = "omitted"
	urlTooLong    = "URL too long"
	overMaxURLs   = "over max_urls"
	indexFull     = "no room in the index"
	ownDocument   = "a document of the sitemap"
	notCanonical  = "malformed path"
	maxLoggedName = 3

	// retryClosed is when a site is looked at again whose robots.txt cannot be had, and
	// which has nothing to serve.
	retryClosed = 5 * time.Second

	// retryGrown is when the pages are gathered again that were found in a refresh.
	retryGrown = 200 * time.Millisecond

	// maxOver is how many candidates more than max_urls are looked at: some may turn
	// out to be none that is listed.
	maxOver = 1_000_000
)

// outcome is what a refresh came to.
type outcome struct {
	snapshot *Snapshot // nil: no pages
	pages    int
	leftOut  map[string]int
	failed   []gather.InputError // sources that could not be read
	broken   error               // why the refresh did not come to its end

	book     *state.Book         // what is known of the pages, not committed; nil: as before
	read     int                 // pages
	verified int                 // listed pages that answered
	examples map[string][]string // pages left out, by reason
	turned   bool                // so many listed pages turned bad at once that it is doubted
	same     bool                // the snapshot is the one before
	starting bool                // the front page, from which others are to be found, answers with an error
	closed   bool                // robots.txt cannot be had, so no page was asked for
	round    *discover.Round     // of the links that listed pages have; nil: nothing discovers, or as before
	again    bool                // the pages were listed before more than their names was known

	sources  []sourceReport
	warnings []string
	unlisted string // why nothing may be listed; "": it may
}

// refresh runs from the sources to a new snapshot and schedules the next run. What
// another configuration or handler refreshed lately is served on as it is.
func (s *site) refresh(ctx context.Context) {
	now := s.app.now()
	var events []event
	defer func() { s.app.announce(events) }()
	wishes := s.wanted.take()
	defer func() { wishes.grant() }()
	if !s.looked && (len(wishes) > 0 || !s.hasLookedLately(now)) {
		if err := s.look(ctx); err != nil {
			events = s.failed(ctx, now, err)
			return
		}
	}
	s.looked = false
	held := s.held.Load()
	if !s.take(held) {
		s.looked = true
		s.wanted.putBack(wishes)
		wishes = nil
		s.due.Store(now.Add(retryContended).UnixNano())
		return
	}
	defer s.advise(ctx)
	defer held.mu.Unlock()
	defer s.count()
	defer s.shelf.unlock()
	s.begun.Store(now.Unix())
	hastened := s.hastened.Swap(false)
	if age := now.Sub(held.begun); !hastened && len(wishes) == 0 && !held.begun.IsZero() && age >= 0 && age < s.interval(held.took) {
		s.due.Store(now.Add(s.interval(held.took) - age).UnixNano())
		s.heed()
		s.markReady()
		s.verifyOn(now)
		return
	}
	result := s.run(ctx, held.last(), now, s.isFirst() || s.app.building != nil)
	if result.again && ctx.Err() == nil {
		// There is something to serve; now for what is behind the names.
		held.took = max(s.app.now().Sub(now), 0)
		events = s.publish(ctx, held, result)
		held.inherited = held.snapshot.Load()
		s.markReady()
		result = s.run(ctx, held.last(), now, true)
	}
	if ctx.Err() != nil {
		result.discard(ctx)
		return
	}
	held.begun, held.took = now, max(s.app.now().Sub(now), 0)
	events = append(events, s.publish(ctx, held, result)...)
	held.took = max(s.app.now().Sub(now), 0)
	s.due.Store(now.Add(s.interval(held.took)).UnixNano())
	s.took.Store(int64(held.took))
	s.markReady()
	if s.handler.discovery != nil {
		s.tellPaths()
	}
	switch {
	case result.round != nil && result.round.Grown():
		s.hasten(retryGrown)
	case s.current() == nil && (result.closed || result.starting):
		s.hasten(retryClosed) // an application may start with the server
	}
	s.verifyDue()
	s.heed()
}

// heed lets the next refresh come at once if somebody asked for one after this one had
// begun. It follows what says when the next one is due.
func (s *site) heed() {
	if s.wanted.any() {
		s.due.Store(s.app.now().UnixNano())
	}
}

// hasLookedLately reports whether a refresh that comes before its time may spare another
// look at the site.
func (s *site) hasLookedLately(now time.Time) bool {
	return s.hastened.Load() && s.sight.reached && now.Sub(s.lookedAt) < s.handler.settings.refresh
}

// discard drops what was learnt.
func (o *outcome) discard(ctx context.Context) {
	if o.book != nil {
		o.book.Discard(context.WithoutCancel(ctx))
	}
}

// take takes hold of what only one refresh at a time may change.
func (s *site) take(held *held) bool {
	if !held.mu.TryLock() {
		return false
	}
	if !s.shelf.tryLock() {
		held.mu.Unlock()
		return false
	}
	return true
}

// failed notes that the site could not even be looked at.
func (s *site) failed(ctx context.Context, now time.Time, err error) []event {
	if ctx.Err() != nil {
		return nil
	}
	s.begun.Store(now.Unix())
	s.say(zapcore.WarnLevel, "look", "looking at the site failed; the last good sitemap stays", zap.Error(err))
	s.due.Store(now.Add(s.interval(0)).UnixNano())
	s.heed()
	s.markReady()
	result := outcome{broken: fmt.Errorf("looking at the site: %w", err)}
	of := s.held.Load()
	if of == nil {
		of = new(held) // nobody has seen yet what the site has
	}
	if of.mu.TryLock() {
		defer of.mu.Unlock()
		s.reportOn(of, result, refreshFailed, result.broken.Error())
	}
	return s.failedEvent(result.broken.Error())
}

// interval is the time from the beginning of one refresh to that of the next.
func (s *site) interval(took time.Duration) time.Duration {
	interval := s.handler.settings.refresh
	if s.handler.settings.fixed {
		return max(interval, took)
	}
	return max(interval, shareOfTime*took)
}

// hasten lets the next refresh come soon, least after the beginning of the last one:
// there are pages to follow that were not known before.
func (s *site) hasten(least time.Duration) {
	soonest := time.Unix(s.begun.Load(), 0).Add(max(least, shareOfTime*time.Duration(s.took.Load()))).UnixNano()
	s.hastened.Store(true)
	for {
		due := s.due.Load()
		if due <= soonest || s.due.CompareAndSwap(due, soonest) {
			break
		}
	}
	s.app.rouse()
}

// run gathers, learns what is to be known of the pages, judges, cuts and writes. The
// first run of a site may use every core, later ones one.
func (s *site) run(ctx context.Context, previous *Snapshot, now time.Time, isFirst bool) (result outcome) {
	r := s.newRefresh(now)
	result.leftOut = r.leftOut
	defer func() {
		if v := recover(); v != nil {
			result.broken = r.panicked("refresh", v)
		}
		result.sources, result.warnings = r.sources, r.warned
	}()
	if isFirst {
		r.Workers = cap(s.app.first)
	}
	if result.unlisted = s.sight.unlisted(); !s.mayList() {
		return result
	}
	if result.broken = r.openFS(); result.broken != nil {
		return result
	}
	candidates := func(ctx context.Context, next func(page.Page) error) ([]gather.InputError, error) {
		clear(r.leftOut)
		j := &judge{settings: s.handler.settings, site: s, refresh: r, scope: s.scope(), next: next}
		return gather.Gather(ctx, s.inputs(r), gather.Options{Parallel: r.Workers > 1}, j.page)
	}
	if s.handler.settings.manners.off {
		result.broken = s.listByName(ctx, r, previous, candidates, &result)
	} else {
		result.broken = s.examine(ctx, r, previous, candidates, &result)
	}
	if result.broken != nil {
		return result
	}
	s.unsay(r.said)
	if result.snapshot != nil {
		result.pages = result.snapshot.pages
	}
	return result
}

func (s *site) newRefresh(now time.Time) *Refresh { return s.refreshOf(s.sight, now) }

// refreshOf is a refresh of the site as it was seen.
func (s *site) refreshOf(seen sight, now time.Time) *Refresh {
	return &Refresh{
		BaseURL: s.base, Folder: s.at, Now: now, Workers: 1, Logger: s.logger,
		Root: seen.root, Hide: seen.hide, Index: seen.index,
		site: s, sight: seen, leftOut: make(map[string]int), sources: s.namedSources(),
	}
}

// namedSources is a report on each source that says no more than its name.
func (s *site) namedSources() []sourceReport {
	sources := make([]sourceReport, len(s.handler.sources))
	for i, name := range s.handler.sourceNames {
		sources[i].name = name
	}
	return sources
}

func (r *Refresh) openFS() (err error) {
	if r.Root != "" {
		r.FS, err = r.site.handler.fileSystem(r.sight.fs)
	}
	return err
}

// listByName lists all candidates, of which nothing but their names is known.
func (s *site) listByName(ctx context.Context, r *Refresh, previous *Snapshot, candidates feed, result *outcome) (err error) {
	p := s.openPress(r, previous, r.Now)
	defer p.close()
	result.failed, err = candidates(ctx, func(pg page.Page) error {
		if s.handler.settings.dates == verdict.Off {
			pg.LastMod, pg.LastModDay = 0, false
		}
		return p.page(pg)
	})
	if err != nil {
		return err
	}
	result.snapshot, err = p.finish()
	return err
}

// Why a site lists nothing.
const (
	saysPrivate   = "the site refuses strangers, so nothing is listed"
	saysShadowed  = "another sitemap handler before this one has the same path, so nothing is listed here"
	saysUnreached = "requests for the sitemap do not reach its handler, so nothing is listed"
)

// unlisted is why a site lists nothing, as far as a look at it showed; "": it does list.
func (seen *sight) unlisted() string {
	switch {
	case seen.private != 0:
		return saysPrivate
	case seen.shadowed:
		return saysShadowed
	case !seen.reached:
		return saysUnreached
	}
	return ""
}

// mayList reports whether the site lists anything, and says so where it does not.
func (s *site) mayList() bool {
	switch why := s.sight.unlisted(); why {
	case "":
		delete(s.said, "access")
		return true
	case saysPrivate:
		s.say(zapcore.InfoLevel, "access", why, zap.Int("status", s.sight.private))
	case saysShadowed:
		s.say(zapcore.WarnLevel, "access", why, zap.String("path", s.askPath()))
	default:
		s.say(zapcore.WarnLevel, "access", why, zap.String("path", s.askPath()), zap.Int("status", s.sight.status))
	}
	return false
}

func (s *site) inputs(r *Refresh) []gather.Input {
	var inputs []gather.Input
	for i, source := range s.handler.sources {
		sorted, _ := source.(SortedSource)
		pages := func(ctx context.Context, yield func(page.Page) error) error {
			return source.Pages(ctx, r, yield)
		}
		switch source.(type) {
		case *SourceFiles, *SourceURLs, discoverer:
		default:
			pages = r.checked(pages)
		}
		inputs = append(inputs, gather.Input{
			Name:   s.handler.sourceNames[i],
			Pages:  r.guarded(s.handler.sourceNames[i], r.counted(i, pages)),
			Sorted: sorted != nil && sorted.Sorted(),
		})
	}
	return inputs
}

// guarded makes of a source's panic its error.
func (r *Refresh) guarded(name string, pages gather.Stream) gather.Stream {
	return func(ctx context.Context, yield func(page.Page) error) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = r.panicked(name, v)
			}
		}()
		return pages(ctx, yield)
	}
}

// checked leaves out what a guest module's source yields that is no path.
func (r *Refresh) checked(pages gather.Stream) gather.Stream {
	return func(ctx context.Context, yield func(page.Page) error) error {
		return pages(ctx, func(p page.Page) error {
			if canonical, err := page.Canonical(p.Path); err != nil || canonical != p.Path {
				r.LeaveOut(notCanonical, 1)
				return nil
			}
			return yield(p)
		})
	}
}

// judge drops the candidates that must not be listed, whatever they say.
type judge struct {
	settings settings
	site     *site
	refresh  *Refresh
	scope    string
	passed   int
	next     func(page.Page) error
}

func (j *judge) page(p page.Page) error {
	if reason := j.verdict(p); reason != "" {
		j.refresh.LeaveOut(reason, 1)
		return nil
	}
	j.passed++
	j.site.app.building.found()
	return j.next(p)
}

// verdict is the reason for which a page is left out; "": it is listed.
func (j *judge) verdict(p page.Page) string {
	switch {
	case !strings.HasPrefix(p.Path, j.scope):
		return outsideScope
	case j.settings.omit.Match(p.Path):
		return omitted
	case len(p.Path)+len(j.site.base) > page.MaxLoc:
		return urlTooLong
	case j.site.isDocument(p.Path):
		return ownDocument
	case j.passed >= j.settings.maxURLs+maxOver:
		return overMaxURLs
	}
	return ""
}

// isDocument reports whether a path is that of one of the site's own documents.
func (s *site) isDocument(path string) bool {
	_, _, ok := parseName(path, s.docPath("", ""))
	return ok
}

// LeaveOut counts candidates that are not listed for a reason, a few words that a
// log line can group them by.
func (r *Refresh) LeaveOut(reason string, n int) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leftOut[reason] += n
}

// doubt is why a refresh was not believed.
type doubt string

const (
	doubtFewer  = "less than half of the pages are left"
	doubtTurned = "over a fifth of the pages turned bad at once"
)

// doubts is the reason not to believe what a refresh says that has come to its end;
// "": there is none. A source that the previous snapshot had to do without is none.
func (h *held) doubts(previous *Snapshot, result outcome) doubt {
	if previous == nil {
		return ""
	}
	var reasons []string
	for _, f := range result.failed {
		if !slices.Contains(h.without, f.Input) {
			reasons = append(reasons, fmt.Sprintf("source %d (%s) could not be read", f.Input+1, f.Name))
		}
	}
	if result.pages < (previous.pages+1)/2 && previous != h.inherited {
		reasons = append(reasons, doubtFewer)
	}
	if result.turned && previous != h.inherited {
		reasons = append(reasons, doubtTurned)
	}
	return doubt(strings.Join(reasons, "; "))
}

// publish makes a snapshot the one that is served, unless there is reason to doubt
// it: then the next refresh must say the same first. It returns the events to announce.
func (s *site) publish(ctx context.Context, held *held, result outcome) []event {
	s.sayFailed(result)
	s.app.building.cameTo(s, result)
	if result.broken != nil {
		// It does not say what pages there are.
		s.reportOn(held, result, refreshFailed, result.broken.Error())
		return s.failedEvent(result.broken.Error())
	}
	previous := held.snapshot.Load()
	reason := held.doubts(previous, result)
	if reason != "" && (reason != held.doubted || result.pages < (held.doubtedPages+1)/2) {
		held.doubted, held.doubtedPages = reason, result.pages
		s.log(zapcore.WarnLevel, "sitemap refreshed, but not believed until the next refresh says the same",
			zap.String("reason", string(reason)), zap.Int("pages", result.pages), zap.Int("pages_before", previous.pages))
		result.discard(ctx)
		s.reportOn(held, result, refreshDoubted, string(reason))
		return s.failedEvent(string(reason))
	}
	s.endRound(ctx, result.round)
	s.keep(ctx, result)
	held.doubted, held.without, held.inherited = "", nil, nil
	for _, f := range result.failed {
		held.without = append(held.without, f.Input)
	}
	s.failure = ""
	if result.same || previous != nil && result.snapshot != nil && previous.equal(result.snapshot) {
		level := zapcore.DebugLevel
		if s.reported != summary(result) {
			level = zapcore.InfoLevel
		}
		s.report(level, "sitemap refreshed, nothing changed", result, held.took)
		s.reportOn(held, result, refreshUnchanged, "")
		return nil
	}
	held.store(result.snapshot, held.begun)
	if result.snapshot == nil {
		s.sayEmpty(result)
		s.reportOn(held, result, refreshEmpty, result.unlisted)
		return s.refreshedEvent(ctx, previous, nil)
	}
	delete(s.said, "empty")
	s.report(zapcore.InfoLevel, "sitemap refreshed", result, held.took)
	s.reportOn(held, result, refreshChanged, "")
	return s.refreshedEvent(ctx, previous, result.snapshot)
}

// summary is what a refresh has to say besides the documents.
func summary(result outcome) string {
	return fmt.Sprint(result.pages, result.verified, leftOutFields(result.leftOut))
}

func (s *site) report(level zapcore.Level, message string, result outcome, took time.Duration) {
	s.reported = summary(result)
	if !s.logger.Core().Enabled(level) {
		return
	}
	fields := []zap.Field{
		zap.Int("pages", result.pages),
		zap.Int("shards", max(len(result.snapshot.shards), 1)),
		zap.Int("verified", result.verified),
		zap.Duration("duration", took),
	}
	fields = append(fields, leftOutFields(result.leftOut)...)
	s.log(level, message, append(fields, exampleFields(result.examples)...)...)
}

// exampleFields name some of the pages that are left out.
func exampleFields(examples map[string][]string) []zap.Field {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(examples)) {
		parts = append(parts, reason+": "+strings.Join(examples[reason], " "))
	}
	if parts == nil {
		return nil
	}
	return []zap.Field{zap.Strings("examples", parts)}
}

// sayEmpty says why a site has no pages.
func (s *site) sayEmpty(result outcome) {
	if s.sight.private != 0 || !s.sight.reached {
		return
	}
	candidates := 0
	for _, n := range result.leftOut {
		candidates += n
	}
	fields := append([]zap.Field{zap.Int("candidates", candidates)}, leftOutFields(result.leftOut)...)
	fields = append(fields, exampleFields(result.examples)...)
	if s.sight.root != "" {
		fields = append(fields, zap.String("root", s.sight.root))
	}
	s.say(zapcore.WarnLevel, "empty", "no page to list, so there is no sitemap", fields...)
}

// err is why some pages, or all, could not be gathered; nil: they could.
func (o *outcome) err() error {
	err := o.broken
	for _, f := range o.failed {
		err = errors.Join(err, f)
	}
	return err
}

func (s *site) sayFailed(result outcome) {
	err := result.err()
	if err == nil {
		delete(s.said, "failed")
		return
	}
	s.say(zapcore.ErrorLevel, "failed", "gathering pages failed", zap.Error(err))
}

func leftOutFields(leftOut map[string]int) []zap.Field {
	if len(leftOut) == 0 {
		return nil
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(leftOut)) {
		parts = append(parts, fmt.Sprintf("%s: %d", reason, leftOut[reason]))
	}
	return []zap.Field{zap.Strings("left_out", parts)}
}

// sourceKind begins the kinds of what sources say.
const sourceKind = "source "

// unsay lets all that sources said before, but not in the last refresh, be said
// again.
func (s *site) unsay(kept map[string]bool) {
	maps.DeleteFunc(s.said, func(kind, _ string) bool {
		return strings.HasPrefix(kind, sourceKind) && !kept[kind]
	})
}

// say writes a log line of a kind, and not again while it stays the same.
func (s *site) say(level zapcore.Level, kind, message string, fields ...zap.Field) {
	if isNew(s.said, kind, message, fields) {
		s.log(level, message, fields...)
	}
}

// isNew reports whether a log line is another than the last one of its kind, which it
// becomes.
func isNew(said map[string]string, kind, message string, fields []zap.Field) bool {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	line := fmt.Sprint(message, enc.Fields)
	if said[kind] == line {
		return false
	}
	said[kind] = line
	return true
}

// log writes a log line. Of sites that only visitors named, who may name any number,
// a handler says the same for the first, tenth, hundredth … time, and how often it
// would have; what lies between is for debugging.
func (s *site) log(level zapcore.Level, message string, fields ...zap.Field) {
	if s.visitors && level > zapcore.DebugLevel {
		n := s.handler.heard.times(message)
		if !isPowerOfTen(n) {
			level = zapcore.DebugLevel
		}
		fields = append(fields, zap.Int("times", n))
	}
	if c := s.logger.Check(level, message); c != nil {
		c.Write(fields...)
	}
}

// heard counts what was said of a handler's visitors' sites.
type heard struct {
	mu     sync.Mutex
	counts map[string]int
}

// maxHeard is how many messages are counted each by itself: those of guest modules may
// differ from one site to the next.
const maxHeard = 50

func (h *heard) times(message string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil {
		h.counts = make(map[string]int)
	}
	if _, known := h.counts[message]; !known && len(h.counts) >= maxHeard {
		message = ""
	}
	h.counts[message]++
	return h.counts[message]
}

func isPowerOfTen(n int) bool {
	for n >= 10 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}
