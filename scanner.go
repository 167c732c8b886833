package sitemap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const (
	shareOfTime      = 20 // gathering, selecting and building take a twentieth of the time at most
	firstPublication = time.Second
	confirmAfter     = 10 * time.Minute // of refreshes that agree, before a suspicious change is published
	hangPatience     = 2 * time.Second  // with fetches under way when a budget ends
	firstPatience    = 4 * time.Second  // with a source that yields nothing, while requests wait
	patience         = time.Minute      // with it, later
	commitPatience   = 30 * time.Second
	computePatience  = 3 * time.Second
)

// refresh runs the pipeline once, and returns what it came to:
//
//	probe    what the server's routes say of the site
//	gather   candidates from the sources
//	crawl    the records brought up to date
//	select   which of them are listed, with which dates
//	build    documents, and a snapshot of them
//	confirm  whether the snapshot is published, or held back
//	publish  the snapshot swapped in, the records written, events emitted
func (s *site) refresh(ctx context.Context, demanded bool) result {
	records, err := s.state.acquire(ctx)
	if err != nil {
		return result{err: err}
	}
	defer s.state.release(records)
	s.restore(ctx, records)
	probed, err := s.probe(ctx)
	s.settle(ctx, &probed, err)
	if err != nil {
		return result{err: fmt.Errorf("probing the site: %w", err)}
	}
	if s.main.Load() != nil {
		return result{outcome: refreshAlias}
	}
	run := &refreshRun{site: s, records: records, probed: probed, begun: s.app.now(), demanded: demanded}
	run.source = s.newRefresh(probed, run.begun)
	if reason := probed.blocked(); reason != "" {
		return run.publishNothing(ctx, reason)
	}
	if err := run.source.openFS(); err != nil {
		return result{err: err}
	}
	candidates := run.gather(ctx)
	defer candidates.Close()
	if s.handler.settings.crawl.off {
		return run.listNames(ctx, candidates)
	}
	crawling := run.crawler().Start(candidates, run.policy())
	var next int64 // when upstreams may be asked again, if all else is done
	for step := firstPublication; ; step *= 2 {
		run.awaitUpstreams(next)
		budget := run.budget(step)
		crawled, err := crawling.Update(ctx, records.generation, budget)
		if err != nil {
			return run.failed(candidates, fmt.Errorf("crawling: %w", err))
		}
		if s.ctx.Err() != nil {
			return run.keep(ctx, crawled)
		}
		if next = 0; s.app.now().Before(budget.Until) {
			next = crawled.Next
		}
		records.hanging = crawled.Abandoned > 0 && crawled.Fetched == 0
		if b := s.app.building; b != nil && (!crawled.Gathered || !crawled.Done) {
			records.generation = crawled.Generation
			b.crawled(crawled.Generation.Len(), crawled.Pending)
			continue // nobody waits
		}
		partial := run.goesOn(&crawled, next)
		out := run.publish(ctx, crawled, candidates)
		if out.partial = partial && out.err == nil; out.partial && out.snapshot == nil {
			continue // nothing was fetched yet
		}
		s.report(out, run.begun, run.spent())
		s.rest(&out, run.begun)
		run.commit(ctx, &out)
		if !out.partial {
			return out
		}
	}
}

// goesOn reports whether more of this refresh follows what was crawled so far. Who asked for
// one does not wait for upstreams that are left alone.
func (r *refreshRun) goesOn(c *crawl.Result, next int64) bool {
	s := r.site
	if !c.Gathered || c.Done {
		return !c.Gathered
	}
	return r.spent() < r.patience() && !s.schedule.isRequested() && !(r.demanded && next > s.app.now().Unix()+1)
}

// patience is how long the refresh may last while pages are left to be fetched.
func (r *refreshRun) patience() time.Duration {
	if r.site.state.Index.Load() == nil {
		return max(r.site.interval(), firstWait) // those who wait shall not be told that there is nothing
	}
	return r.site.interval()
}

// awaitUpstreams waits until upstreams may be asked again, if nothing can be done before: no
// longer than the refresh may last, or until another one is asked for.
func (r *refreshRun) awaitUpstreams(next int64) {
	s := r.site
	wait := time.Unix(next, 0).Sub(s.app.now())
	if s.app.building == nil {
		wait = min(wait, r.patience()-r.spent())
	}
	if next == 0 || wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.schedule.hurry:
	case <-s.ctx.Done():
	}
}

// keep writes what was crawled before the site was stopped.
func (r *refreshRun) keep(ctx context.Context, crawled crawl.Result) result {
	r.records.generation = crawled.Generation
	if r.records.store != nil && crawled.Touched {
		r.site.logState(r.records.store.Commit(ctx, crawled.Generation))
	}
	return result{err: errStopping}
}

// refreshRun is one refresh under way.
type refreshRun struct {
	site     *site
	records  *records
	probed   probeResult
	source   *Refresh // what sources are told
	begun    time.Time
	demanded bool // somebody asked for it
	cost     time.Duration
}

// result is what a refresh came to.
type result struct {
	outcome  string   // one of the outcomes of refreshes
	reason   string   // why it failed, is held back or lists nothing; "": it did not
	err      error    // the refresh failed
	settings uint64   // digest that the snapshot was selected by
	partial  bool     // the refresh goes on
	source   *Refresh // what sources said; nil: they were not asked
	found    int      // pages, before some were kept that a held-back change would take away
	snapshot *publish.Snapshot
	selected indexing.Result
	crawled  crawl.Result
	merged   merge.Result
	cost     time.Duration // of gathering, selecting and building
}

// budget is what the crawl may take before what it found is published. Pages that hang do not
// keep the others waiting: they are left for later, and have their time once nothing else is due.
func (r *refreshRun) budget(step time.Duration) crawl.Budget {
	s := r.site
	b := crawl.Budget{Until: s.app.now().Add(max(min(step, s.interval()), r.cost)), Patience: hangPatience, Stop: s.ctx}
	if r.records.hanging {
		b.Patience = fetchTimeout + fetchGrace
	}
	return b
}

func (r *refreshRun) spent() time.Duration { return r.site.app.now().Sub(r.begun) }

// restore serves what was published before a restart, if it was with these settings.
func (s *site) restore(ctx context.Context, r *records) {
	snapshot, m, err := r.open(ctx, s.app.now(), func(key string, err error) {
		s.logger.Warn("what was kept of the pages is damaged: it is set aside and relearned", zap.String("key", key), zap.Error(err))
	})
	if !errors.Is(err, store.ErrDamaged) { // which was said
		s.logState(err)
	}
	if r.generation == nil {
		r.generation = emptyGeneration(ctx)
	}
	if m != nil {
		s.logState(s.state.positions.decode(m.Positions))
		s.state.generation.Store(r.generation)
		if m.Report != nil && s.lastReport() == nil {
			s.state.report.Store(m.Report.fromMeta())
		}
	}
	if m != nil && m.Settings == s.selectDigest(nil) && s.state.Index.Load() == nil && snapshot != nil {
		s.state.Index.Store(snapshot)
		s.markReady()
		s.adoptAliases(m.Aliases)
	}
}

// settle notes what a probe found, and which sites stand for others now.
func (s *site) settle(ctx context.Context, probed *probeResult, err error) {
	if err == nil {
		s.probed.Store(probed)
	}
	s.firstProbe.Do(func() { close(s.wasProbed) })
	if err == nil && probed.same != nil {
		s.mergeInto(probed.same)
		return
	}
	if !s.onDemand && s.handler.settings.base == "" {
		s.awaitTwins(ctx)
		s.app.settleAliases()
	}
}

// gather starts the sources. Those that do not answer for long are left out of this
// refresh.
func (r *refreshRun) gather(ctx context.Context) *merge.Stream {
	wait := patience
	if r.site.state.Index.Load() == nil {
		wait = firstPatience
	}
	return merge.Start(ctx, r.source.inputs(r.records.failing), merge.Options{
		Filter: r.site.filter, MaxPages: r.site.handler.settings.maxURLs + maxOver, Patience: wait,
	})
}

// maxOver is how many candidates more than max_urls are looked at: some may turn out not
// to be listed.
const maxOver = 1_000_000

// filter is why a page is not a candidate whatever it says of itself; "": it is one.
func (s *site) filter(p *page.Page) string {
	switch {
	case !strings.HasPrefix(p.Path, s.scope):
		return "outside the sitemap's folder"
	case s.handler.settings.exclude.Match(p.Path):
		return "excluded"
	case len(p.Path)+len(s.origin) > page.MaxLoc:
		return "URL too long"
	case s.isDocument(p.Path):
		return "a document of the sitemap"
	}
	return ""
}

// crawler is the site's crawler in this configuration.
func (r *refreshRun) crawler() *crawl.Crawler {
	if s := r.site; r.records.crawls != s {
		r.records.crawls = s
		r.records.crawler = crawl.New(crawl.Options{Fetcher: s, Limiter: s.handler.limiter, Slots: s.app.slots, Workers: cap(s.app.slots), Now: s.app.now, Own: !usesUpstreams(s.handler.server)})
	}
	return r.records.crawler
}

// policy is what the crawl may fetch.
func (r *refreshRun) policy() crawl.Policy {
	s, set := r.site, &r.site.handler.settings
	p := crawl.Policy{
		Base: s.origin, Scope: s.scope, Front: s.front(), Filter: s.filter, IgnoreCanonicals: !set.canonical, After: r.records.batch,
		Disallow: func(path string) bool { return set.crawl.disallow.Match(path) != "" }, Closed: r.probed.robots.closed,
		Extract: set.extract(), Settings: s.crawlDigest(&r.probed), Routes: digestOf(s.routes, set.alternates, set.images),
	}
	if !r.probed.robots.rules.Empty() {
		p.Allowed = r.probed.robots.rules.Allows
	}
	if d := s.handler.discovery; d != nil {
		p.Discover, p.Links, p.Depth, p.Query = d.visitors, d.links, d.depth, d.query
		p.Expire, p.MaxPaths, p.Unlinked = d.expire, s.handler.maxPaths(s.onDemand), d.isUnlinked
	}
	return p
}

// front is the site's front page. Where the sitemap's folder is not the whole site, it is
// that folder's: what lies outside is not listed.
func (s *site) front() string {
	if len(s.scope) > len(s.prefix)+1 {
		return s.scope
	}
	return s.prefix + "/"
}

// rules are what pages are selected by.
func (r *refreshRun) rules(crawled crawl.Result, keepListed bool) indexing.Rules {
	s, set := r.site, &r.site.handler.settings
	rules := indexing.Rules{
		Base: s.origin, Front: s.front(), Filter: s.filter, Hints: set.hint,
		Respect: set.canonical, OmitOrphans: set.omitOrphans, Dates: set.dates, MaxPages: set.maxURLs,
		Included: s.handler.underscored.Match, Alternates: set.alternates, Images: set.images, KeepListed: keepListed, Now: r.begun,
	}
	if d := s.handler.discovery; d != nil {
		rules.Unlinked, rules.Expire = d.isUnlinked, d.expire
	}
	if !crawled.Gathered || crawled.Pending > 0 {
		rules.OpenBatch = crawled.Batch
	}
	return rules
}

// publish selects, builds, confirms and publishes what the crawl found so far.
func (r *refreshRun) publish(ctx context.Context, crawled crawl.Result, candidates *merge.Stream) result {
	s := r.site
	out := result{crawled: crawled, merged: candidates.Result(), source: r.source}
	noteFailures(r.records.failing, out.merged.Failed, r.begun)
	s.logPanics(out.merged.Failed)
	settings := s.selectDigest(&r.probed)
	published := s.state.Index.Load()
	r.records.batch = crawled.Batch
	if !crawled.Touched && settings == r.records.settings && r.records.pending.reason == "" && published != nil {
		r.records.generation = crawled.Generation
		out.outcome, out.snapshot, out.cost = refreshUnchanged, published, r.cost
		out.settings = settings
		return out
	}
	build := func(keepListed bool) error {
		if err := s.app.acquireCompute(ctx); err != nil {
			return err
		}
		begun := s.app.now() // waiting for other sites is no cost of this one
		defer func() {
			<-s.app.compute
			r.cost += s.app.now().Sub(begun)
		}()
		selection, err := indexing.Select(ctx, crawled.Generation, r.rules(crawled, keepListed))
		if err != nil {
			return fmt.Errorf("selecting pages: %w", err)
		}
		if out.snapshot, err = publish.Build(ctx, selection.Pages(ctx), r.previous(), s.buildOptions(r.begun)); err != nil {
			return fmt.Errorf("building the documents: %w", err)
		}
		out.selected = selection.Result()
		return nil
	}
	if out.err = build(false); out.err != nil {
		return out
	}
	if out.snapshot == nil && published == nil && !(crawled.Gathered && crawled.Done) {
		r.records.generation = crawled.Generation
		if r.spent() < max(s.interval(), firstWait) {
			return out
		}
	}
	out.found = pagesOf(out.snapshot)
	if out.reason = r.confirm(published, &out, settings); out.reason != "" {
		// What was listed stays, unless it is refused; what is new is listed.
		if out.err = build(true); out.err != nil {
			return out
		}
		out.outcome = refreshHeldBack
	}
	out.cost = r.cost
	r.swap(ctx, &out, published, settings)
	return out
}

// pendingChange is a suspicious change that waits to be confirmed by later refreshes.
type pendingChange struct {
	reason string
	since  time.Time
}

// confirm is why a snapshot is held back; "": it is published. What an operator asked for
// is believed.
func (r *refreshRun) confirm(published *publish.Snapshot, out *result, settings uint64) string {
	reason := ""
	switch {
	case published == nil, settings != r.records.settings, r.demanded:
	case 2*pagesOf(out.snapshot) < pagesOf(published):
		reason = "less than half of the pages are left"
	default:
		for _, status := range indexing.Statuses() {
			// What no source names any more the operator has taken away, up to half of it.
			if n := out.selected.Regressed[status]; status != indexing.Absent && n > 0 && 5*n > pagesOf(published) {
				reason = fmt.Sprintf("over a fifth of the pages are %s at once", status)
				break
			}
		}
	}
	pending := &r.records.pending
	if reason == "" {
		*pending = pendingChange{}
		return ""
	}
	if pending.reason == "" {
		*pending = pendingChange{reason, r.begun}
	}
	switch age := r.begun.Sub(pending.since); {
	case age < 0: // the clock was set back
		pending.since = r.begun
	case age >= confirmAfter:
		*pending = pendingChange{}
		return ""
	}
	pending.reason = reason
	return reason
}

// previous is the snapshot whose documents the next one carries over. Its names are known
// still where the site was empty since.
func (r *refreshRun) previous() *publish.Snapshot {
	if published := r.site.state.Index.Load(); published != nil {
		r.records.last = published
	}
	return r.records.last
}

// swap publishes a snapshot: one pointer, then the store's commit.
func (r *refreshRun) swap(ctx context.Context, out *result, published *publish.Snapshot, settings uint64) {
	s := r.site
	switch {
	case out.snapshot == nil:
		out.outcome = refreshEmpty
	case out.outcome != "":
	case published.Equal(out.snapshot):
		out.outcome, out.snapshot = refreshUnchanged, published
	default:
		out.outcome = refreshChanged
	}
	s.schedule.at(r.begun.Add(s.interval())) // until it is known better
	s.state.Index.Store(out.snapshot)
	s.markReady()
	r.records.generation, r.records.settings = out.selected.Generation, settings
	out.settings = settings
	s.state.generation.Store(r.records.generation)
	s.state.measure(r.records.generation, out.snapshot)
	s.app.announce(s.changeEvents(published, out))
}

// commit writes what was published, or how far logs were read. What cannot be written stays
// in memory, and is tried again with the next refresh.
func (r *refreshRun) commit(ctx context.Context, out *result) {
	positions := r.site.state.positions.takeChanged()
	if out.err == nil && (out.outcome != refreshUnchanged || out.selected.Generation != nil || positions) {
		r.site.logState(r.write(ctx, out, out.settings))
	}
}

func (r *refreshRun) write(ctx context.Context, out *result, settings uint64) error {
	m := meta{Batch: r.records.batch, Settings: r.site.selectDigest(nil), Selected: settings, Aliases: r.site.aliases(), Positions: r.site.state.positions.encode()}
	if report := r.site.newReport(out, r.begun, r.spent()); report != nil {
		m.Report = report.toMeta()
	}
	var documents []store.StoredDocument
	if out.snapshot != nil {
		var stored []publish.Stored
		var err error
		if m.Snapshot, stored, err = out.snapshot.Documents(); err != nil {
			return err
		}
		documents = r.storedDocuments(stored)
	}
	encoded, err := json.Marshal(m)
	if err != nil {
		return err
	}
	r.records.generation = r.records.generation.WithDocuments(encoded, documents)
	if r.records.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, commitPatience)
	defer cancel()
	return r.records.store.Commit(ctx, r.records.generation)
}

// storedDocuments are documents for the store, which has some of them already.
func (r *refreshRun) storedDocuments(documents []publish.Stored) []store.StoredDocument {
	known := make(map[string]store.StoredDocument)
	for _, d := range r.records.generation.Documents() {
		known[d.Name+string(d.Meta)] = d
	}
	stored := make([]store.StoredDocument, len(documents))
	for i, d := range documents {
		same, ok := known[d.Name+string(d.Meta)]
		if !ok {
			same = store.NewDocument(d.Name, d.Meta, d.Gzip)
		}
		stored[i] = same
	}
	return stored
}

// publishNothing takes the sitemap away, at once: the site's routes say so.
func (r *refreshRun) publishNothing(ctx context.Context, reason string) result {
	out := result{outcome: refreshEmpty, reason: reason}
	out.selected.Generation = r.records.generation
	r.swap(ctx, &out, r.site.state.Index.Load(), 0)
	r.commit(ctx, &out)
	return out
}

// listNames lists all candidates, with crawl off: names suffice.
func (r *refreshRun) listNames(ctx context.Context, candidates *merge.Stream) result {
	s := r.site
	out := result{source: r.source}
	published := s.state.Index.Load()
	out.snapshot, out.err = publish.Build(ctx, r.named(ctx, candidates), r.previous(), s.buildOptions(r.begun))
	out.merged, out.cost = candidates.Result(), r.spent()
	if out.err != nil {
		return out
	}
	out.selected.Listed, out.selected.Generation = pagesOf(out.snapshot), r.records.generation
	out.found = pagesOf(out.snapshot)
	settings := s.selectDigest(nil)
	if out.reason = r.confirmNames(published, &out, settings); out.reason != "" {
		out.outcome, out.snapshot = refreshHeldBack, published
		return out
	}
	r.swap(ctx, &out, published, settings)
	s.rest(&out, r.begun)
	return out
}

// confirmNames is confirm where there are no records: a source that could not be read
// counts as a change, too.
func (r *refreshRun) confirmNames(published *publish.Snapshot, out *result, settings uint64) string {
	if last := r.site.lastReport(); last != nil && published != nil && settings == r.records.settings {
		if reason := newFailures(out.merged.Failed, last); reason != "" {
			return reason
		}
	}
	return r.confirm(published, out, settings)
}

// failed is the result of a refresh that did not come to its end.
func (r *refreshRun) failed(candidates *merge.Stream, err error) result {
	return result{err: err, merged: candidates.Result(), cost: r.cost, source: r.source}
}

// acquireCompute waits for a slot of selecting and building.
func (a *App) acquireCompute(ctx context.Context) error {
	select {
	case a.compute <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run refreshes the site and plans the next refresh. A source or handler that does not heed
// that ctx has ended is left to itself: Stop shall not wait for it.
func (s *site) run(ctx context.Context, demanded bool) {
	defer s.endTurn()
	begun := s.app.now()
	ended := make(chan result, 1)
	// The refresh has a moment to keep what it has found when the site is stopped.
	running, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer func() {
			if v := recover(); v != nil {
				s.logger.Error("a refresh panicked", zap.Any("panic", v), zap.Stack("stack"))
				ended <- result{err: fmt.Errorf("panic: %v", v)}
			}
		}()
		ended <- s.refresh(running, demanded)
	}()
	var out result
	select {
	case out = <-ended:
	case <-ctx.Done():
		if !endsSoon(ended, keepGrace) {
			cancel()
			if !endsSoon(ended, stopGrace) {
				s.logger.Warn("a refresh goes on although it was told to end")
			}
		}
		return
	}
	if ctx.Err() != nil {
		return
	}
	now := s.app.now()
	if out.crawled.Generation == nil {
		s.report(out, begun, now.Sub(begun)) // else it was, as it went on
	}
	s.markReady()
	s.schedule.end(s.nextRefresh(out, begun, now), now, s.onDemand && !s.traffic.since(begun))
	s.checkSetup(ctx)
	s.app.notify()
}

// endsSoon waits for the end of a refresh, but not long.
func endsSoon(ended <-chan result, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}

const (
	keepGrace  = time.Second            // for a refresh to keep what it has found when it is stopped
	retryEmpty = 5 * time.Second        // of a site that has nothing to serve yet
	soon       = 200 * time.Millisecond // while pages are left to be fetched
)

// afterInterval is when the refresh is due that follows one of a cost.
func (s *site) afterInterval(begun time.Time, cost time.Duration) time.Time {
	if s.handler.settings.fixed {
		return begun.Add(s.interval())
	}
	return begun.Add(max(s.interval(), shareOfTime*cost))
}

// rest notes whether a refresh left nothing to do before the next one is due.
func (s *site) rest(out *result, begun time.Time) {
	if out.err == nil && out.reason == "" && !out.partial && (out.crawled.Generation == nil || out.crawled.Done) {
		s.state.rested.Store(&rest{begun, out.cost, s.restDigest()})
		return
	}
	s.state.rested.Store(nil)
}

// restDigest is of all that has a site refreshed anew when it changes.
func (s *site) restDigest() uint64 {
	return digestOf(s.handler.settings.digest, s.routes)
}

// nextRefresh is when the site is to be refreshed after a refresh that began at begun.
func (s *site) nextRefresh(out result, begun, now time.Time) time.Time {
	due := s.afterInterval(begun, out.cost)
	crawled := &out.crawled
	switch {
	case s.state.Index.Load() == nil && (out.err != nil || s.isStarting()):
		due = earlier(due, now.Add(retryEmpty)) // an application may start with the server
	case out.err != nil:
	case crawled.Generation != nil && !crawled.Done:
		due = earlier(due, now.Add(soon))
	case crawled.Next > now.Unix():
		due = earlier(due, time.Unix(crawled.Next, 0))
	}
	return later(due, now)
}

// isStarting reports whether robots.txt cannot be fetched, so that nothing is.
func (s *site) isStarting() bool {
	probed := s.probed.Load()
	return probed != nil && probed.robots.closed
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// interval is the time from the beginning of one refresh to that of the next.
func (s *site) interval() time.Duration { return s.handler.settings.refresh }

// crawlDigest is of all that shapes what is known of pages.
func (s *site) crawlDigest(probed *probeResult) uint64 {
	set := &s.handler.settings
	return digestOf(s.origin, s.scope, set.digest, probed.robots.digest)
}

// selectDigest is of all that shapes which pages are listed; probed is nil before a probe.
func (s *site) selectDigest(probed *probeResult) uint64 {
	parts := []any{s.origin, s.scope, s.docPath("", ""), s.handler.settings.digest}
	if probed != nil {
		parts = append(parts, probed.root, probed.fs, probed.index)
	}
	return digestOf(parts...)
}

func digestOf(parts ...any) uint64 {
	sum := xxhash.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(sum, "%q\n", fmt.Sprint(part))
	}
	return sum.Sum64()
}

// buildOptions say how the site's documents are built.
func (s *site) buildOptions(now time.Time) publish.Options {
	set := &s.handler.settings
	return publish.Options{
		Base: s.origin, Document: func(suffix string) string { return s.origin + s.docPath(suffix, ".xml") },
		Schema: set.schema, ShardURLs: set.shardURLs, Extended: set.alternates || set.images,
		Workers: s.workers(), Now: now,
	}
}

// workers is how many goroutines may compute for the site: all cores while nothing is
// served yet, later half of them.
func (s *site) workers() int {
	if s.state.Index.Load() == nil || s.app.building != nil {
		return max(runtime.GOMAXPROCS(0), 1)
	}
	return cap(s.app.compute)
}

// named are the candidates themselves, with crawl off.
func (r *refreshRun) named(ctx context.Context, candidates *merge.Stream) iter.Seq2[page.Page, error] {
	set := &r.site.handler.settings
	return func(yield func(page.Page, error) bool) {
		for n := 0; ; n++ {
			p, ok, err := candidates.Next(ctx)
			switch {
			case err != nil:
				yield(page.Page{}, err)
				return
			case !ok:
				r.source.LeaveOut(merge.OverMax, max(n-set.maxURLs, 0))
				return
			case n >= set.maxURLs:
				continue
			}
			set.hint(&p)
			if set.dates == indexing.Off {
				p.LastMod, p.LastModDay = 0, false
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}
