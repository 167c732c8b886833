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
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	firstPublication = time.Second            // what is known by then is published, and again after 2, 4, 8 … seconds
	confirmAfter     = 10 * time.Minute       // for which refreshes must find a change suspicious before it is published
	hangPatience     = 2 * time.Second        // with fetches under way when a budget ends
	firstPatience    = 4 * time.Second        // with a source that yields nothing, while requests wait for the first sitemap
	sourcePatience   = time.Minute            // the same, once there is a sitemap
	keepGrace        = time.Second            // for a refresh to keep what it has found when it is stopped
	retryEmpty       = 5 * time.Second        // of a site that has nothing to serve yet
	soon             = 200 * time.Millisecond // while pages are left to be fetched
	maxOver          = 1_000_000              // candidates beyond max_urls that are looked at: others may turn out not to be listed

	// shareOfTime bounds what refreshing costs: gathering, selecting and building take a
	// twentieth of the time at most.
	shareOfTime = 20
)

// refresh runs the pipeline once, and returns its outcome. Its stages:
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
	isSuperseded := func() bool { return latest.Load() > s.app.number }
	if isSuperseded() {
		return result{outcome: refreshSuperseded}
	}
	records, err := s.state.acquire(ctx)
	if err != nil {
		return result{err: err}
	}
	defer records.lease.Release()
	s.restore(ctx, records)
	probed, err := s.probe(ctx)
	switch {
	case err != nil:
		return result{err: fmt.Errorf("probing the site: %w", err)}
	case s.main.Load() != nil:
		return result{outcome: refreshAlias}
	}
	run := &refreshRun{site: s, records: records, probed: probed, begun: s.app.now(), demanded: demanded}
	if reason := probed.blocked; reason != "" { // the site's routes say so, and are believed at once
		return run.finish(run.swap(result{outcome: report.Empty, reason: reason, selected: indexing.Result{Generation: records.generation}}))
	}
	if run.source, err = newRefresh(s, probed, run.begun); err != nil {
		return result{err: err}
	}
	patience := sourcePatience // with those that yield nothing: they are left out of this refresh
	if !wait.IsDone(s.ready) {
		patience = firstPatience
	}
	run.candidates = merge.Start(ctx, run.source.inputs(), merge.Options{
		Filter: s.filter, MaxPages: s.handler.settings.maxURLs + maxOver, Patience: patience,
	})
	defer run.candidates.Close()
	if s.handler.settings.crawl.Off {
		return run.publish(ctx, crawl.Result{Gathered: true, Done: true, Touched: true}, false)
	}
	crawling := s.crawler.Start(run.candidates, run.policy())
	for step := firstPublication; ; step *= 2 {
		budget := run.budget(step)
		crawled, err := crawling.Update(ctx, records.generation, budget)
		if err != nil {
			return result{err: fmt.Errorf("crawling: %w", err), merged: run.candidates.Result(), cost: run.cost, source: run.source}
		}
		var panicked *merge.PanicError
		if errors.As(crawled.Panic, &panicked) {
			s.logger.Once(zap.ErrorLevel, "panic", "a page cannot be parsed: it counts as one that did not respond", zap.Error(crawled.Panic), zap.ByteString("stack", panicked.Stack))
		}
		records.hanging = crawled.Abandoned > 0 && crawled.Fetched == 0
		idle := time.Duration(0) // for which upstreams ask for a pause, and all else is done
		if now := s.app.now(); now.Before(budget.Until) {
			idle = time.Unix(crawled.Next, 0).Sub(now)
		}
		switch {
		case s.ctx.Err() != nil:
			records.generation = crawled.Generation
			if crawled.Touched {
				logState(s.logger, records.commit())
			}
			return result{err: errStopping}
		case isSuperseded():
			records.generation = crawled.Generation
			return result{outcome: refreshSuperseded}
		case s.app.building != nil && (!crawled.Gathered || !crawled.Done): // a build has no visitors who wait
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
		if out := run.publish(ctx, crawled, run.goesOn(&crawled, idle)); !out.partial {
			return out
		}
	}
}

// refreshRun is one refresh under way.
type refreshRun struct {
	*site
	records    *records
	probed     probeResult
	source     *Refresh // what sources are told
	candidates *merge.Stream
	begun      time.Time
	demanded   bool // somebody asked for it
	cost       time.Duration
}

// result is what a refresh came to.
type result struct {
	outcome  string   // one of the outcomes of refreshes
	reason   string   // why it failed, is held back or lists nothing; "": it did not
	err      error    // the refresh failed
	settings uint64   // digest that the snapshot was selected by
	partial  bool     // the refresh goes on
	reported bool     // it is logged and counted
	source   *Refresh // what sources said; nil: they were not asked
	snapshot *publish.Snapshot
	selected indexing.Result
	crawled  crawl.Result
	merged   merge.Result
	cost     time.Duration // of gathering, selecting and building
}

// probe finds out what the routes say of the site, and settles which sites stand for
// others.
func (s *site) probe(ctx context.Context) (probeResult, error) {
	hangs := time.AfterFunc(fetchTimeout, func() {
		s.logger.Once(zap.WarnLevel, "hangs", "the site does not answer its own requests for its front page or robots.txt: the disk or upstream behind them hangs")
	})
	probed, err := s.fetcher.probe(ctx)
	if hangs.Stop() {
		s.logger.Clear("hangs")
	}
	if probed.blocked == reasonAbsent && fails(probed.status) && s.state.Index.Load() != nil {
		probed.blocked = "" // no made-up host: its pages stay as long as any that fail
	}
	s.settle(ctx, &probed, err)
	return probed, err
}

// policy is what the crawl may fetch.
func (r *refreshRun) policy() crawl.Policy {
	set := &r.handler.settings
	p := crawl.Policy{
		Base: r.origin, Scope: r.scope, Front: r.front(), Filter: r.filter, IgnoreCanonicals: !set.canonical, After: r.records.batch,
		Disallow: func(path string) bool { return set.crawl.disallows(path) != "" }, Closed: r.probed.robots.closed,
		Extract: set.extract, Settings: r.digest(r.probed.robots.rules.String()), Routes: digestOf(r.fetcher.routes, set.extract),
	}
	if !r.probed.robots.rules.Empty() {
		p.Allowed = r.probed.robots.rules.Allows
	}
	if d := r.handler.discovery; d != nil {
		p.Discover, p.Links, p.Depth, p.Query = d.visitors, d.links, d.depth, d.query
		p.Expire, p.MaxPaths, p.Unlinked = d.expire, d.most(r.onDemand), d.unlinked.Match
	}
	return p
}

// budget is what the crawl may take before what it found is published. Pages that hang do not
// keep the others waiting: they are left for later, and have their time once nothing else is due.
func (r *refreshRun) budget(step time.Duration) crawl.Budget {
	b := crawl.Budget{Until: r.app.now().Add(max(min(step, r.handler.settings.refresh), r.cost)), Patience: hangPatience, Stop: r.ctx}
	if r.records.hanging {
		b.Patience = fetchTimeout + fetchGrace
	}
	return b
}

// goesOn reports whether this refresh crawls on, rather than leave the rest to the next one:
// not while upstreams ask for a pause, and not where somebody asked for a refresh meanwhile.
func (r *refreshRun) goesOn(c *crawl.Result, idle time.Duration) bool {
	if !c.Gathered || c.Done {
		return !c.Gathered
	}
	_, _, requested := r.schedule.State()
	return idle < firstPublication && !requested && r.spent() < r.patience()
}

func (r *refreshRun) spent() time.Duration { return r.app.now().Sub(r.begun) }

// patience is how long a refresh may last once all pages are known. Those who wait for a
// first sitemap shall not be told that there is none; who asked for a refresh does not wait
// for all pages.
func (r *refreshRun) patience() time.Duration {
	switch interval := r.handler.settings.refresh; {
	case r.state.Index.Load() == nil:
		return max(interval, firstWait)
	case r.demanded:
		return min(interval, firstWait)
	default:
		return interval
	}
}

// publish publishes what the crawl has found so far, and writes it to the store. goesOn
// says that more follows in this refresh.
func (r *refreshRun) publish(ctx context.Context, crawled crawl.Result, goesOn bool) result {
	out := r.selectAndBuild(ctx, crawled)
	if out.partial = goesOn && out.err == nil; out.partial && out.snapshot == nil {
		return out // nothing was fetched yet
	}
	return r.finish(out)
}

// selectAndBuild selects the pages to list, builds their documents and swaps them in. Where
// the change has to be confirmed first, pages that were listed stay.
func (r *refreshRun) selectAndBuild(ctx context.Context, crawled crawl.Result) (out result) {
	published, last, off := r.state.Index.Load(), r.lastReport(), r.handler.settings.crawl.Off
	settings := r.digest(r.probed.root, r.probed.fs, r.probed.index)
	unchanged := !crawled.Touched && settings == r.records.settings && published != nil && last.Result != report.HeldBack
	out = result{crawled: crawled, source: r.source, settings: settings, outcome: report.Unchanged, snapshot: published}
	defer func() { out.cost = r.cost }()
	if !unchanged {
		out.outcome = ""
		out.snapshot, out.selected, out.err = r.build(ctx, crawled, false)
	}
	out.merged, r.records.batch = r.candidates.Result(), crawled.Batch
	if out.err != nil {
		return out
	}
	if unchanged || out.snapshot == nil && published == nil && (!crawled.Gathered || !crawled.Done) {
		r.records.generation = crawled.Generation
		if unchanged || r.spent() < r.patience() {
			return out
		}
	}
	if off && published != nil && settings == r.records.settings {
		out.reason = last.NewFailures(out.merged.Failed) // no records tell which pages are missing
	}
	if out.reason == "" {
		out.reason = r.confirm(published, &out)
	}
	if out.reason != "" {
		out.outcome = report.HeldBack
		if off {
			out.snapshot = published
		} else if out.snapshot, out.selected, out.err = r.build(ctx, crawled, true); out.err != nil {
			return out
		}
	}
	return r.swap(out)
}

// build selects the pages to list, and builds their documents. Where a change is held back,
// pages that were listed are kept: what is new is listed, and what is refused is not.
func (r *refreshRun) build(ctx context.Context, crawled crawl.Result, keepListed bool) (snapshot *publish.Snapshot, selected indexing.Result, err error) {
	set := &r.handler.settings
	if !set.crawl.Off { // else it waits for the sources
		if !r.app.compute.Take(ctx) {
			return nil, selected, ctx.Err()
		}
		defer r.app.compute.Release()
	}
	begun := r.app.now() // waiting for other sites is no cost of this one
	defer func() { r.cost += r.app.now().Sub(begun) }()
	pages, selection := r.named(ctx), (*indexing.Selection)(nil)
	if !set.crawl.Off {
		if selection, err = indexing.Select(ctx, crawled.Generation, r.rules(crawled, keepListed)); err != nil {
			return nil, selected, fmt.Errorf("selecting pages: %w", err)
		}
		pages = selection.Pages(ctx)
	}
	// The last snapshot is remembered while the site is empty, so that old URLs keep working.
	if published := r.state.Index.Load(); published != nil {
		r.records.last = published
	}
	snapshot, err = publish.Build(ctx, pages, r.records.last, publish.Options{
		Base: r.origin, Document: func(suffix string) string { return r.origin + r.docPath(suffix, ".xml") },
		Schema: set.schema, ShardURLs: set.shardURLs, Extended: set.extract.Alternates || set.extract.Images,
		Workers: r.source.Workers, Now: r.begun,
	})
	switch {
	case err != nil:
		return nil, selected, fmt.Errorf("building the documents: %w", err)
	case set.crawl.Off:
		return snapshot, indexing.Result{Listed: pagesOf(snapshot), Generation: r.records.generation}, nil
	}
	return snapshot, selection.Result(), nil
}

// rules are what pages are selected by.
func (r *refreshRun) rules(crawled crawl.Result, keepListed bool) indexing.Rules {
	set := &r.handler.settings
	rules := indexing.Rules{
		Base: r.origin, Scope: r.scope, Front: r.front(), Filter: r.filter, Hints: set.hint,
		Respect: set.canonical, OmitOrphans: set.omitOrphans, Dates: set.dates, MaxPages: set.maxURLs,
		Included: r.handler.underscored.Match, Alternates: set.extract.Alternates, Images: set.extract.Images, KeepListed: keepListed, Now: r.begun,
	}
	if d := r.handler.discovery; d != nil {
		rules.Unlinked, rules.Expire = d.unlinked.Match, d.expire
	}
	if !crawled.Gathered || crawled.Pending > 0 {
		rules.OpenBatch = crawled.Batch
	}
	return rules
}

// named are the candidates themselves, with crawl off: names suffice.
func (r *refreshRun) named(ctx context.Context) iter.Seq2[page.Page, error] {
	set := &r.handler.settings
	return func(yield func(page.Page, error) bool) {
		for n := 0; ; n++ {
			p, ok, err := r.candidates.Next(ctx)
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

// pendingChange is a suspicious change that waits to be confirmed by later refreshes.
type pendingChange struct {
	reason string
	since  time.Time
}

// confirm returns why a change is held back; "": it is published. What an operator asked
// for, or configured, is believed.
func (r *refreshRun) confirm(published *publish.Snapshot, out *result) string {
	reason := ""
	switch {
	case published == nil, out.settings != r.records.settings, r.demanded: // nothing to compare, or meant
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
	if age := r.begun.Sub(pending.since); pending.reason == "" || age < 0 { // the clock was set back
		pending.since = r.begun
	} else if age >= confirmAfter {
		reason = ""
	}
	pending.reason = reason
	return reason
}

// swap publishes a snapshot: requests see it from now on, all of it.
func (r *refreshRun) swap(out result) result {
	published := r.state.Index.Load()
	switch {
	case out.snapshot == nil:
		out.outcome = report.Empty
	case out.outcome != "":
	case published.Equal(out.snapshot):
		out.outcome, out.snapshot = report.Unchanged, published
	default:
		out.outcome = report.Changed
	}
	r.schedule.At(r.begun.Add(r.handler.settings.refresh)) // until it is known better
	r.state.Index.Store(out.snapshot)
	r.setReady()
	r.records.generation, r.records.settings = out.selected.Generation, out.settings
	r.state.generation.Store(r.records.generation)
	bytes := int64(r.records.generation.Len()) * recordBytes
	if own := r.own.Load(); own != nil {
		bytes += int64(len(own.pages)) * ownBytes
	}
	if out.snapshot != nil {
		bytes += out.snapshot.Bytes
	}
	r.state.bytes.Store(bytes)
	r.app.events.announceRefreshed(r.site, published, &out)
	return out
}

// finish logs and counts what was published, and writes it, or how far logs were read. What
// cannot be written stays in memory, and is tried again with the next refresh.
func (r *refreshRun) finish(out result) result {
	r.report(out, r.begun, r.spent())
	out.reported = true
	if out.err == nil && out.reason == "" && !out.partial {
		r.state.plan.Store(&plan{r.nextRefresh(out, r.begun, r.app.now()), r.fetcher.digest(), &r.probed})
	}
	positions := r.state.progress.TakeChanged()
	if out.err == nil && !r.handler.settings.crawl.Off && (out.selected.Generation != nil || positions || r.records.unsaved) {
		err := r.write(&out)
		r.records.unsaved = err != nil
		logState(r.logger, err)
	}
	return out
}

// refreshWhenDue refreshes the site when it is due, until it is stopped.
func (s *site) refreshWhenDue() {
	for s.schedule.Wait(s.ctx, s.app.now, s.onDemand) {
		if !s.onDemand {
			s.run()
		} else if turn := s.handler.onDemandTurn; turn.Take(s.ctx) {
			s.run()
			turn.Release()
		}
	}
}

// run refreshes the site and plans the next refresh. A source or handler that does not heed
// that it is stopped is left to itself: Stop shall not wait for it.
func (s *site) run() {
	demanded, begun := s.schedule.Begin(), s.app.now()
	s.state.plan.Store(nil)
	// The refresh has a moment to keep what it has found when the site is stopped.
	running, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	defer cancel()
	defer context.AfterFunc(s.ctx, func() { time.AfterFunc(keepGrace, cancel) })()
	var out result
	if !wait.OrLeave(running, stopGrace, func() {
		defer func() {
			if v := recover(); v != nil {
				s.logger.Error("a refresh panicked", zap.Any("panic", v), zap.Stack("stack"))
				out = result{err: fmt.Errorf("panic: %v", v)}
			}
		}()
		out = s.refresh(running, demanded)
	}) {
		s.logger.Warn("a refresh goes on although it was told to end")
		return
	}
	if s.ctx.Err() != nil {
		return
	}
	now := s.app.now()
	if !out.reported {
		s.report(out, begun, now.Sub(begun))
	}
	if out.outcome != refreshSuperseded {
		s.setReady()
	}
	s.checkSetup()
	s.schedule.At(s.nextRefresh(out, begun, now))
	s.schedule.End()
	if s.onDemand {
		s.app.mu.Lock()
		s.app.makeRoom(0, s)
		s.app.mu.Unlock()
	}
}

// nextRefresh is when the site is to be refreshed after a refresh that began at begun.
func (s *site) nextRefresh(out result, begun, now time.Time) time.Time {
	interval := s.handler.settings.refresh
	if s.handler.RefreshInterval == 0 {
		interval = max(interval, shareOfTime*out.cost)
	}
	wait, next := begun.Add(interval).Sub(now), time.Unix(out.crawled.Next, 0).Sub(now)
	crawled, probed := &out.crawled, s.probed.Load()
	switch {
	case s.state.Index.Load() == nil && (out.err != nil || probed != nil && probed.robots.closed):
		wait = min(wait, retryEmpty) // an application may start with the server
	case out.err != nil:
	case crawled.Generation != nil && !crawled.Done:
		wait = min(wait, max(soon, next))
	case next > 0:
		wait = min(wait, next)
	}
	return now.Add(max(wait, 0))
}
