package sitemap

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
)

const (
	firstPublication = time.Second      // what is known by then is published, and again after 2, 4, 8 … seconds
	confirmAfter     = 10 * time.Minute // for which refreshes must find a change suspicious before it is published
	hangPatience     = 2 * time.Second  // with fetches under way when a budget ends
	firstPatience    = 4 * time.Second  // with a source that yields nothing, while requests wait for the first sitemap
	sourcePatience   = time.Minute      // the same, once there is a sitemap
)

// refresh runs the pipeline once, and returns its outcome. The scheduler calls it when the
// site is due (see schedule.go). Its stages:
//
//	probe    what the server's routes say of the site
//	gather   candidates from the sources
//	crawl    the records brought up to date
//	select   which of them are listed, with which dates
//	build    documents, and a snapshot of them
//	confirm  whether the snapshot is published, or held back
//	publish  the snapshot swapped in, the records written, events emitted
//
// What is known of each page is a record. All records of a site are a generation, which is
// never changed: each stage that learns something makes the next one. A batch is the run of
// a crawl in which pages were first seen; whether their dates are those of a deployment
// shows only over all of it. A digest tells settings, routes or rules apart from those that
// earlier results were made with.
func (s *site) refresh(ctx context.Context, demanded bool) result {
	if s.state.holder.Load() > s.app.number {
		return result{outcome: refreshSuperseded}
	}
	records, err := s.state.acquire(ctx)
	if err != nil {
		return result{err: err}
	}
	defer s.state.release(records)
	if !s.onDemand {
		s.state.keepIn(records, s.app.storage)
	}
	s.restore(ctx, records)
	probed, err := s.probe(ctx)
	switch {
	case err != nil:
		return result{err: fmt.Errorf("probing the site: %w", err)}
	case s.main.Load() != nil:
		return result{outcome: refreshAlias}
	}
	run := &refreshRun{site: s, records: records, probed: probed, begun: s.app.now(), demanded: demanded}
	run.source = newRefresh(s, probed, run.begun)
	if reason := probed.blocked(); reason != "" {
		return run.publishNothing(ctx, reason)
	}
	if err := run.source.openFS(); err != nil {
		return result{err: err}
	}
	candidates := run.gather(ctx)
	defer candidates.Close()
	if s.handler.settings.crawl.Off {
		return run.listNames(ctx, candidates)
	}
	crawling := run.crawler().Start(candidates, run.policy())
	for step := firstPublication; ; step *= 2 {
		budget := run.budget(step)
		crawled, err := crawling.Update(ctx, records.generation, budget)
		if err != nil {
			return run.failed(candidates, fmt.Errorf("crawling: %w", err))
		}
		var panicked *merge.PanicError
		if errors.As(crawled.Panic, &panicked) {
			s.logger.once(zap.ErrorLevel, "panic", "a page cannot be parsed: it counts as one that did not respond", zap.Error(crawled.Panic), zap.ByteString("stack", panicked.Stack))
		}
		records.hanging = crawled.Abandoned > 0 && crawled.Fetched == 0
		complete := crawled.Gathered && crawled.Done
		idle := time.Duration(0) // for which upstreams ask for a pause, and all else is done
		if now := s.app.now(); now.Before(budget.Until) {
			idle = time.Unix(crawled.Next, 0).Sub(now)
		}
		switch {
		case s.ctx.Err() != nil:
			return run.keep(ctx, crawled)
		case s.state.holder.Load() > s.app.number:
			records.generation = crawled.Generation
			return result{outcome: refreshSuperseded}
		case s.app.building != nil && !complete: // a build has no visitors who wait
			records.generation = crawled.Generation
			if crawled.Gathered {
				s.app.building.Total.Store(s.app.building.Fetched.Load() + int64(crawled.Pending))
			}
			select {
			case <-time.After(idle):
			case <-ctx.Done():
			}
			continue
		}
		if out := run.publish(ctx, crawled, candidates, run.goesOn(&crawled, idle)); !out.partial {
			return out
		}
	}
}

// probe finds out what the routes say of the site, and settles which sites stand for
// others.
func (s *site) probe(ctx context.Context) (probeResult, error) {
	hangs := time.AfterFunc(fetchTimeout, func() {
		s.logger.once(zap.WarnLevel, "hangs", "the site does not answer its own requests for its front page or robots.txt: the disk or upstream behind them hangs")
	})
	probed, err := s.fetcher.probe(ctx)
	if hangs.Stop() {
		s.logger.clear("hangs")
	}
	if fails(probed.absent) && s.state.Index.Load() != nil {
		probed.absent = 0 // no made-up host: its pages stay as long as any that fail
	}
	s.settle(ctx, &probed, err)
	return probed, err
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

// goesOn reports whether this refresh crawls on, rather than leave the rest to the next one:
// not while upstreams ask for a pause, and not where somebody asked for a refresh meanwhile.
func (r *refreshRun) goesOn(c *crawl.Result, idle time.Duration) bool {
	if !c.Gathered || c.Done {
		return !c.Gathered
	}
	return idle < firstPublication && !r.site.schedule.isRequested() && r.spent() < r.patience()
}

// patience is how long a refresh may last once all pages are known. Those who wait for a
// first sitemap shall not be told that there is none; who asked for a refresh does not wait
// for all pages.
func (r *refreshRun) patience() time.Duration {
	switch interval := r.site.interval(); {
	case r.site.state.Index.Load() == nil:
		return max(interval, firstWait)
	case r.demanded:
		return min(interval, firstWait)
	default:
		return interval
	}
}

// gather starts the sources. Those that do not answer for long are left out of this
// refresh.
func (r *refreshRun) gather(ctx context.Context) *merge.Stream {
	wait := sourcePatience
	if !isDone(r.site.ready) {
		wait = firstPatience
	}
	return merge.Start(ctx, r.source.inputs(r.records.failing), merge.Options{
		Filter: r.site.filter, MaxPages: r.site.handler.settings.maxURLs + maxOver, Patience: wait,
	})
}

// maxOver is how many candidates more than max_urls are looked at: some may turn out not
// to be listed.
const maxOver = 1_000_000

// crawler is the site's crawler in this configuration.
func (r *refreshRun) crawler() *crawl.Crawler {
	if s := r.site; r.records.crawls != s {
		r.records.crawls = s
		r.records.crawler = crawl.New(crawl.Options{Fetcher: &s.fetcher, Limiter: s.handler.limiter, Slots: s.app.slots, Workers: cap(s.app.slots), Now: s.app.now, Own: !usesUpstreams(s.handler.server)})
	}
	return r.records.crawler
}

// policy is what the crawl may fetch.
func (r *refreshRun) policy() crawl.Policy {
	s, set := r.site, &r.site.handler.settings
	p := crawl.Policy{
		Base: s.origin, Scope: s.scope, Front: s.front(), Filter: s.filter, IgnoreCanonicals: !set.canonical, After: r.records.batch,
		Disallow: func(path string) bool { return set.crawl.disallow.Match(path) != "" }, Closed: r.probed.robots.closed,
		Extract: set.extract(), Settings: s.crawlDigest(&r.probed), Routes: digestOf(s.fetcher.routes, set.alternates, set.images),
	}
	if !r.probed.robots.rules.Empty() {
		p.Allowed = r.probed.robots.rules.Allows
	}
	if d := s.handler.discovery; d != nil {
		p.Discover, p.Links, p.Depth, p.Query = d.visitors, d.links, d.depth, d.query
		p.Expire, p.MaxPaths, p.Unlinked = d.expire, d.most(s.onDemand), d.isUnlinked
	}
	return p
}

// rules are what pages are selected by.
func (r *refreshRun) rules(crawled crawl.Result, keepListed bool) indexing.Rules {
	s, set := r.site, &r.site.handler.settings
	rules := indexing.Rules{
		Base: s.origin, Scope: s.scope, Front: s.front(), Filter: s.filter, Hints: set.hint,
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

// publish publishes what the crawl has found so far, and writes it to the store. goesOn
// says that more follows in this refresh.
func (r *refreshRun) publish(ctx context.Context, crawled crawl.Result, candidates *merge.Stream, goesOn bool) result {
	out := r.selectAndBuild(ctx, crawled, candidates)
	if out.partial = goesOn && out.err == nil; out.partial && out.snapshot == nil {
		return out // nothing was fetched yet
	}
	r.site.report(out, r.begun, r.spent())
	r.site.rest(&out, r.begun)
	r.commit(ctx, &out)
	return out
}

// selectAndBuild selects the pages to list, builds their documents and swaps them in. Where
// the change has to be confirmed first, pages that were listed stay.
func (r *refreshRun) selectAndBuild(ctx context.Context, crawled crawl.Result, candidates *merge.Stream) result {
	s := r.site
	out := result{crawled: crawled, merged: candidates.Result(), source: r.source}
	noteFailures(r.records.failing, out.merged.Failed, r.begun)
	settings := s.selectDigest(&r.probed)
	published := s.state.Index.Load()
	r.records.batch = crawled.Batch
	if last := s.lastReport(); !crawled.Touched && settings == r.records.settings && published != nil && !r.demanded && last.Result != refreshHeldBack {
		r.records.generation = crawled.Generation
		out.outcome, out.snapshot, out.cost = refreshUnchanged, published, r.cost
		out.settings = settings
		return out
	}
	if out.snapshot, out.selected, out.err = r.build(ctx, crawled, false); out.err != nil {
		return out
	}
	if out.snapshot == nil && published == nil && (!crawled.Gathered || !crawled.Done) {
		r.records.generation = crawled.Generation
		if r.spent() < r.patience() {
			return out
		}
	}
	out.found = pagesOf(out.snapshot)
	if out.reason = r.confirm(published, &out, settings); out.reason != "" {
		// What was listed stays, unless it is refused; what is new is listed.
		if out.snapshot, out.selected, out.err = r.build(ctx, crawled, true); out.err != nil {
			return out
		}
		out.outcome = refreshHeldBack
	}
	out.cost = r.cost
	return r.swap(out, published, settings)
}

// build selects the pages to list, and builds their documents. Where a change is held back,
// pages that were listed are kept.
func (r *refreshRun) build(ctx context.Context, crawled crawl.Result, keepListed bool) (*publish.Snapshot, indexing.Result, error) {
	s := r.site
	if !s.app.compute.Take(ctx) {
		return nil, indexing.Result{}, ctx.Err()
	}
	begun := s.app.now() // waiting for other sites is no cost of this one
	defer func() {
		s.app.compute.Release()
		r.cost += s.app.now().Sub(begun)
	}()
	selection, err := indexing.Select(ctx, crawled.Generation, r.rules(crawled, keepListed))
	if err != nil {
		return nil, indexing.Result{}, fmt.Errorf("selecting pages: %w", err)
	}
	snapshot, err := publish.Build(ctx, selection.Pages(ctx), r.previous(), r.buildOptions())
	if err != nil {
		return nil, indexing.Result{}, fmt.Errorf("building the documents: %w", err)
	}
	return snapshot, selection.Result(), nil
}

// buildOptions say how the site's documents are built.
func (r *refreshRun) buildOptions() publish.Options {
	s, set := r.site, &r.site.handler.settings
	return publish.Options{
		Base: s.origin, Document: func(suffix string) string { return s.origin + s.docPath(suffix, ".xml") },
		Schema: set.schema, ShardURLs: set.shardURLs, Extended: set.alternates || set.images,
		Workers: r.source.Workers, Now: r.begun,
	}
}

// pendingChange is a suspicious change that waits to be confirmed by later refreshes.
type pendingChange struct {
	reason string
	since  time.Time
}

// confirm returns why a change is held back; "": it is published. What an operator asked
// for, or configured, is believed.
func (r *refreshRun) confirm(published *publish.Snapshot, out *result, settings uint64) string {
	reason := ""
	switch {
	case published == nil, settings != r.records.settings, r.demanded: // nothing to compare, or meant
	case 2*pagesOf(out.snapshot) < pagesOf(published):
		reason = "less than half of the pages are left"
	default:
		for _, status := range indexing.Statuses() {
			// Pages that no source names any more were taken away by somebody: only the loss
			// of half of all is suspicious.
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

// previous is the snapshot whose documents the next one carries over. It is remembered
// while the site is empty, so that old URLs keep working.
func (r *refreshRun) previous() *publish.Snapshot {
	if published := r.site.state.Index.Load(); published != nil {
		r.records.last = published
	}
	return r.records.last
}

// swap publishes a snapshot: requests see it from now on, all of it.
func (r *refreshRun) swap(out result, published *publish.Snapshot, settings uint64) result {
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
	s.state.measure(r.records.generation, out.snapshot, s.own.Load())
	s.app.events.announceRefreshed(s, published, &out)
	return out
}

// publishNothing takes the sitemap away, at once: the site's routes say so.
func (r *refreshRun) publishNothing(ctx context.Context, reason string) result {
	out := result{outcome: refreshEmpty, reason: reason}
	out.selected.Generation = r.records.generation
	out = r.swap(out, r.site.state.Index.Load(), 0)
	r.commit(ctx, &out)
	return out
}

// listNames lists all candidates, with crawl off: names suffice.
func (r *refreshRun) listNames(ctx context.Context, candidates *merge.Stream) result {
	s := r.site
	out := result{source: r.source}
	published := s.state.Index.Load()
	out.snapshot, out.err = publish.Build(ctx, r.named(ctx, candidates), r.previous(), r.buildOptions())
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
	out = r.swap(out, published, settings)
	s.rest(&out, r.begun)
	return out
}

// confirmNames is confirm where there are no records: a source that could not be read
// counts as a change, too.
func (r *refreshRun) confirmNames(published *publish.Snapshot, out *result, settings uint64) string {
	if last := r.site.lastReport(); published != nil && settings == r.records.settings {
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
