package sitemap

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
	"github.com/seed3295b519/caddy-sitemap/internal/webpage"
)

const (
	firstPublication = time.Second            // what is known by then is published, and again after 2, 4, 8 … seconds
	confirmAfter     = 10 * time.Minute       // for which refreshes must find a change suspicious before it is published
	firstPatience    = 4 * time.Second        // with a source that yields nothing, or the probe of an alias, while requests wait for the first sitemap
	firstHangs       = 2 * time.Second        // with fetches under way when a budget ends, while nothing is published
	sourcePatience   = time.Minute            // with a source, once no request waits
	keepGrace        = time.Second            // for a stopped refresh to commit what it has found
	retryEmpty       = 5 * time.Second        // until the next refresh of a site that has nothing to serve yet
	soon             = 200 * time.Millisecond // until the next refresh while pages are left to be fetched
	maxOver          = 1_000_000              // candidates beyond max_urls that are gathered: others may turn out not to be listed
	shareOfTime      = 20                     // gathering, selecting and building take a twentieth of the time at most
)

// refresh runs the pipeline once, and returns the result. Its stages:
//
//	probe    what the server's routes say of the site
//	gather   candidates from the sources
//	crawl    the records brought up to date
//	select   which of them are listed, with which dates
//	build    documents, and a snapshot of them
//	confirm  whether the snapshot is published, or held back
//	publish  the snapshot swapped in, the records written, events emitted
//
// The records of all pages are a generation, which never changes: the crawl and the selection make the next one. A
// batch is the crawl in which a page was first seen; whether its pages have the dates of a deployment shows only once
// it is complete. A digest tells whether settings, routes or rules are those of an earlier result.
func (s *site) refresh(ctx context.Context, demanded bool) report.Refresh {
	if s.app.isSuperseded() {
		return report.Refresh{Result: refreshSuperseded}
	}
	records, err := s.state.records.Acquire(ctx)
	if err != nil {
		return report.Refresh{Err: err}
	}
	defer records.Release()
	if s.app.isSuperseded() { // meanwhile
		return report.Refresh{Result: refreshSuperseded}
	}
	s.state.plan.Store(nil)
	s.restore(ctx, records)
	probed, err := s.probe(ctx)
	switch {
	case err != nil:
		return report.Refresh{Err: fmt.Errorf("probing the site: %w", err)}
	case s.main.Load() != nil:
		return report.Refresh{Result: refreshAlias}
	}
	run := &refreshRun{site: s, records: records, probed: probed, start: s.app.now(), demanded: demanded}
	run.begun = run.start
	if s.state.shared != nil {
		release, out := s.join(ctx, records, demanded)
		if release == nil {
			return out
		}
		defer release()
		run.start, run.begun = s.app.now(), s.state.shared.Begin()
	}
	if reason := probed.blocked; reason != "" { // the site's routes say so, and are believed at once
		return run.publish(ctx, report.Refresh{Result: report.Empty, Reason: reason, Selected: indexing.Result{Generation: records.Generation}})
	}
	if run.source, err = newRefresh(s, probed, run.start); err != nil {
		return report.Refresh{Err: err}
	}
	s.enter(stageGather)
	run.source.warnOfHidden(ctx)
	set := &s.handler.settings
	isReady, patience := wait.IsDone(s.ready), sourcePatience // a source that yields nothing is left out of this refresh
	if !isReady {
		patience = firstPatience
	}
	run.candidates = merge.Start(ctx, run.source.inputs(), merge.Options{Filter: s.filterNoting, MaxPages: set.maxURLs + maxOver, Patience: patience})
	defer run.candidates.Close()
	if set.crawl.Off {
		return run.selectAndPublish(ctx, crawl.Result{Gathered: true, Done: true})
	}
	// Once all candidates are known, the crawl ends here. While clients wait for a first sitemap,
	// it goes on until their time-out; an operator who requested a refresh waits no longer.
	run.end = run.start.Add(set.refresh)
	if empty := s.state.published.Load() == nil; empty && set.refresh < firstWait || !empty && demanded && set.refresh > firstWait {
		run.end = run.start.Add(firstWait)
	}
	crawling := s.crawler.Start(run.candidates, run.policy())
	for step := firstPublication; ; step *= 2 {
		hangs := fetchTimeout + fetchGrace
		if !isReady || step == firstPublication && s.state.published.Load() == nil {
			hangs = firstHangs
		}
		patience := max(min(step, set.refresh), run.cost, 2*s.built)
		budget := crawl.Budget{Until: s.app.now().Add(patience), Patience: hangs, Stop: s.ctx}
		crawled, err := crawling.Update(ctx, records.Generation, budget)
		if err != nil {
			return report.Refresh{Err: fmt.Errorf("crawling: %w", err)}
		}
		records.Generation = crawled.Generation
		now, idle := s.app.now(), time.Duration(0) // idle: until upstreams may be requested, if all else is done
		if now.Before(budget.Until) {
			idle = time.Unix(crawled.Next, 0).Sub(now)
		}
		_, _, requested := s.schedule.State()
		run.goesOn = !crawled.Gathered || !crawled.Done && idle < min(2*firstPublication, set.refresh) && !requested && now.Before(run.end)
		switch {
		case s.app.isSuperseded(): // the next configuration goes on from these records
			return report.Refresh{Result: refreshSuperseded}
		case s.ctx.Err() != nil:
			s.logState("commit", records.Commit())
			return report.Refresh{Err: errStopping}
		case s.app.building != nil && !crawled.Done: // a build has no visitors who wait
			if crawled.Gathered {
				s.app.building.Total.Store(s.app.building.Fetched.Load() + int64(crawled.Pending))
			}
			wait.Within(idle, ctx.Done())
			continue
		}
		if out := run.selectAndPublish(ctx, crawled); out.Err != nil || !out.Partial {
			return out
		}
	}
}

// refreshRun is one refresh under way.
type refreshRun struct {
	*site
	records    *persist.Records
	probed     probeResult
	source     *Refresh // as sources see it
	candidates *merge.Stream
	start, end time.Time     // end: when its crawl ends, once all candidates are known
	begun      time.Time     // the time for all dates: start, or what another node's clock had if that is later
	demanded   bool          // an operator requested it
	goesOn     bool          // more is published in this refresh
	selectedBy uint64        // see siteState
	cost       time.Duration // of gathering, selecting and building
}

// probe probes the site's routes, and settles which sites are aliases of others.
func (s *site) probe(ctx context.Context) (probeResult, error) {
	probing := s.enter(stageProbe)
	hangs := time.AfterFunc(fetchTimeout, func() {
		s.stage.CompareAndSwap(probing, &stage{stageHangs, probing.Since})
		s.logger.Once(zap.WarnLevel, "hangs", "the site does not respond to requests for its front page or robots.txt: its disk or upstream hangs")
	})
	probed, err := s.fetcher.probe(ctx, s.lastProbe())
	if hangs.Stop() {
		s.logger.Clear("hangs")
	}
	if probed.blocked == reasonAbsent && fails(probed.status) && s.state.published.Load() != nil {
		probed.blocked = "" // no made-up host: its pages stay as long as any that fail
	}
	s.settle(ctx, &probed, err)
	return probed, err
}

// lastProbe returns the result of the last probe. At first, it is known from a process or configuration before whether the
// pages of the site were found by links.
func (s *site) lastProbe() probeResult {
	if probed := s.probed.Load(); probed != nil {
		return *probed
	}
	return probeResult{byLinks: s.state.byLinks.Load()}
}

// policy is what the crawl may fetch.
func (r *refreshRun) policy() crawl.Policy {
	set := &r.handler.settings
	p := crawl.Policy{
		Base: r.origin, Scope: r.scope, Front: r.scope, Filter: r.filterNoting, IgnoreCanonicals: !set.canonical,
		Disallow: func(path string) bool {
			isDisallowed := set.crawl.disallows(path) != ""
			set.crawl.use.note(path, isDisallowed)
			return isDisallowed
		},
		Allowed: r.probed.robots.rules.Allows, Closed: r.probed.robots.closed,
		Extract: set.extract, Settings: r.digest(r.probed.robots.rules.String(), r.probed.byLinks), Routes: digestOf(r.fetcher.routes, set.extract),
		Batch: r.begun.Unix(),
	}
	rules := r.rules(crawl.Result{}, false)
	p.Counts = rules.LinksCount
	if d := r.discovery(); d != nil {
		p.Discover, p.Links, p.Depth, p.Query = d.visitors, d.links, d.depth, d.query
		p.Expire, p.MaxPaths, p.Unlinked = d.expire, d.most(r.onDemand), d.unlinked.Match
	}
	return p
}

// selectAndPublish is the stages from select on. If the change has to be confirmed first, pages that
// were listed stay.
func (r *refreshRun) selectAndPublish(ctx context.Context, crawled crawl.Result) report.Refresh {
	published, last, off := r.state.published.Load(), r.lastReport(), r.handler.settings.crawl.Off
	out := report.Refresh{Crawled: crawled, Partial: r.goesOn, Snapshot: published}
	r.selectedBy = r.digest(r.probed.root, r.probed.fs, r.probed.index)
	asBefore := published != nil && r.selectedBy == r.state.selectedBy.Load()
	isSettled := last.HeldSince.IsZero() && (r.goesOn || !last.Partial) // no loss is to be confirmed, no date to be decided
	unchanged := asBefore && !off && isSettled && crawl.Same(crawled.Generation, r.state.generation.Load())
	if !unchanged {
		if out.Snapshot, out.Selected, out.Err = r.build(ctx, crawled, false); out.Err != nil {
			return out
		}
	}
	out.Merged = r.candidates.Result()
	r.warnOfPatterns(crawled, out.Merged)
	if out.Warnings, out.Skipped = r.source.result(); crawled.Gathered {
		r.source.clearOldWarnings()
	}
	switch {
	case r.goesOn && asBefore && (last.Result == report.HeldBack || !crawled.Gathered && pagesOf(out.Snapshot) <= pagesOf(published)):
		return out // which pages are gone, and which sources fail, shows once all are read
	case unchanged:
		out.Result = report.Unchanged
	case r.goesOn && out.Snapshot == nil && published == nil && r.app.now().Before(r.end):
		return out // nothing was found yet
	case r.state.shared != nil && r.records.Unsaved && crawled.Pending > 0 && pagesOf(out.Snapshot) < pagesOf(published):
		return out // records were lost: what is served stays until their pages are fetched again
	case off && asBefore:
		out.Reason = last.NewFailures(out.Merged.Failed) // no records tell which pages are missing
	}
	if out.Reason == "" {
		out.Reason, out.HeldSince = r.confirm(published, &out)
	}
	if out.Reason != "" {
		out.Result = report.HeldBack
		if off || 2*out.Selected.Before < pagesOf(published) { // no records tell which pages were listed
			out.Snapshot = published
		} else if out.Snapshot, out.Selected, out.Err = r.build(ctx, crawled, true); out.Err != nil {
			return out
		}
	}
	return r.publish(ctx, out)
}

// warnOfPatterns warns of path patterns that match nothing, once everything was read and fetched.
func (r *refreshRun) warnOfPatterns(crawled crawl.Result, gathered merge.Result) {
	set := &r.handler.settings
	isComplete := crawled.Gathered && crawled.Done && !r.goesOn && len(gathered.Failed) == 0
	warn := func(message string) { r.source.Warn("pattern "+message, message) }
	// A page that only links name is seen when what links to it is fetched, perhaps by the process before. And a pattern
	// may be meant for another site of the handler.
	seesAll := r.discovery() == nil && r.isOnlySite()
	set.excludeUse.warn(isComplete, seesAll, warn)
	for _, rule := range set.rules {
		rule.use.warn(isComplete, false, warn) // a rule sees no page that one before it matches
	}
	set.crawl.use.warn(isComplete, false, warn)
}

// isOnlySite reports whether the handler has no other site.
func (s *site) isOnlySite() bool {
	s.app.mu.RLock()
	defer s.app.mu.RUnlock()
	n := 0
	for _, other := range s.app.sites {
		if other.handler == s.handler {
			n++
		}
	}
	return n == 1
}

// build selects the pages to list, and builds their documents. keepListed is for a change that is held
// back: new pages are listed, and pages that were listed stay unless they are refused.
func (r *refreshRun) build(ctx context.Context, crawled crawl.Result, keepListed bool) (snapshot *publish.Snapshot, selected indexing.Result, err error) {
	set, begun := &r.handler.settings, r.app.now()
	defer func() { r.built = r.app.now().Sub(begun); r.cost += r.built }()
	pages, result := r.named(ctx), func() indexing.Result { return indexing.Result{Generation: r.records.Generation} }
	if !set.crawl.Off { // else selecting waits for the sources, which needs no slot
		if !r.app.compute.Take(ctx) {
			return nil, selected, ctx.Err()
		}
		defer r.app.compute.Release()
		begun = r.app.now() // waiting for other sites is no cost of this one
		selection, err := indexing.Select(ctx, crawled.Generation, r.rules(crawled, keepListed))
		if err != nil {
			return nil, selected, fmt.Errorf("selecting pages: %w", err)
		}
		pages, result = selection.Pages(ctx), selection.Result
	}
	beside := set.beside
	beside.Base, beside.Sitemap = r.origin, r.origin+r.docPath("", "")
	snapshot, err = publish.Build(ctx, pages, r.state.last.Load(), publish.Options{
		Options: beside,
		Schema:  set.schema, ShardURLs: set.shardURLs, Extended: set.extract.Alternates || set.extract.Images,
		Workers: r.source.Workers, Now: r.begun,
	})
	if err != nil {
		return nil, selected, fmt.Errorf("building the documents: %w", err)
	}
	return snapshot, result(), nil
}

// rules returns the rules by which pages are selected.
func (r *refreshRun) rules(crawled crawl.Result, keepListed bool) indexing.Rules {
	set := &r.handler.settings
	rules := indexing.Rules{
		Base: r.origin, Scope: r.scope, Front: r.scope, Filter: r.filterNoting, Hints: set.hint,
		Respect: set.canonical, OmitOrphans: set.omitOrphans, Dates: set.dates, MaxPages: set.maxURLs,
		Included: r.handler.underscored.Match, Alternates: set.extract.Alternates, Images: set.extract.Images, Titles: set.extract.Titles,
		KeepListed: keepListed, Now: r.begun, TrustLists: slices.ContainsFunc(r.handler.sources, namesLists),
	}
	if d := r.discovery(); d != nil {
		rules.Unlinked, rules.Expire = d.unlinked.Match, d.expire
		rules.Visits = d.visitors
		if d.links {
			rules.Depth = d.depth
		}
	}
	if !crawled.Gathered || crawled.Pending > 0 || r.goesOn {
		rules.OpenBatch = crawled.Batch
	}
	return rules
}

// named yields the candidates, which are listed as they are with crawl off.
func (r *refreshRun) named(ctx context.Context) iter.Seq2[page.Page, error] {
	set := &r.handler.settings
	return func(yield func(page.Page, error) bool) {
		n := 0
		p, ok, err := r.candidates.Next(ctx)
		for ; ok; p, ok, err = r.candidates.Next(ctx) {
			if n++; n > set.maxURLs {
				continue
			}
			set.hint(&p)
			p.LastMod, p.LastModDay = p.BestDate()
			if set.dates == indexing.Off {
				p.LastMod, p.LastModDay = 0, false
			}
			if !yield(p, nil) {
				return
			}
		}
		if r.source.LeaveOut(merge.OverMax, max(n-set.maxURLs, 0)); err != nil {
			yield(page.Page{}, err)
		}
	}
}

// confirm returns why a change is held back, and since when; "": it is published, as is any change
// that an operator requested or configured.
func (r *refreshRun) confirm(published *publish.Snapshot, out *report.Refresh) (reason string, since time.Time) {
	switch {
	case published == nil, r.selectedBy != r.state.selectedBy.Load(), r.demanded: // nothing to compare, or intended
	case 2*pagesOf(out.Snapshot) < pagesOf(published):
		reason = "less than half of the pages would be left"
	default:
		for status := range indexing.StatusCount {
			// That no source names a page any more was somebody's doing: only the loss of half of all is suspicious.
			if n := out.Selected.Regressed[status]; status != indexing.Absent && n > 0 && 5*n > pagesOf(published) {
				reason = fmt.Sprintf("more than a fifth of the pages would go at once: %s", status)
				break
			}
		}
	}
	since = cmp.Or(r.lastReport().HeldSince, r.begun)
	switch age := r.begun.Sub(since); {
	case reason == "", age >= confirmAfter:
		return "", time.Time{}
	case age < 0: // the clock was set back
		since = r.begun
	}
	return reason, since
}

// publish swaps the snapshot in, emits events, reports, and writes the records if something was selected
// or logs were read on. What cannot be written is tried again by the next refresh.
func (r *refreshRun) publish(ctx context.Context, out report.Refresh) report.Refresh {
	if r.app.isSuperseded() { // the next configuration may have published meanwhile
		return report.Refresh{Result: refreshSuperseded}
	}
	published := r.state.published.Load()
	if out.Cost = r.cost; out.Crawled.Fetched == 0 && len(out.Merged.Failed) == 0 {
		out.Cost = r.app.now().Sub(r.start) // gathering took the rest
	}
	switch {
	case out.Snapshot == nil:
		out.Result = report.Empty
	case out.Result != "":
	case published.Equal(out.Snapshot):
		out.Result, out.Snapshot = report.Unchanged, published
	default:
		out.Result = report.Changed
	}
	selected := out.Selected.Generation
	if selected != nil {
		r.records.Generation = selected
	}
	r.schedule.At(r.start.Add(r.handler.settings.refresh)) // until it is known better
	if r.state.shared != nil && !r.commit(ctx, published, &out) {
		return report.Refresh{Result: refreshFollowed} // what others cannot load is not served
	}
	r.state.published.Store(out.Snapshot)
	r.setReady()
	if selected != nil {
		r.state.generation.Store(selected)
	}
	asBefore := r.state.selectedBy.Swap(r.selectedBy) == r.selectedBy
	bytes := int64(r.records.Generation.Len()) * recordBytes
	if own := r.own.Load(); own != nil {
		bytes += int64(own.pages) * ownBytes
	}
	if out.Snapshot != nil {
		bytes += out.Snapshot.Bytes
		r.state.last.Store(out.Snapshot)
	}
	r.state.bytes.Store(bytes)
	r.app.events.announceRefreshed(r.site, published, &out)
	now := r.app.now()
	r.report(out, r.start, now.Sub(r.start))
	r.countUnlinked(ctx, &out)
	if out.Reason == "" && !out.Partial {
		r.state.plan.Store(&plan{r.nextRefresh(out, r.start, now), r.fetcher.digest(), &r.probed})
	}
	if r.state.shared != nil {
		return out
	}
	r.queueChanges(ctx, published, &out, asBefore)
	positions, readOn := r.state.progress.Stored(out.Crawled.Gathered)
	if !r.handler.settings.crawl.Off && (selected != nil || readOn || r.records.Unsaved) {
		r.logState("commit", r.records.Write(out.Snapshot, meta{r.digest(), r.selectedBy, r.lastReport(), r.probed.byLinks, positions}))
	}
	return out
}

// refreshWhenDue refreshes the site when it is due, until it is stopped.
func (s *site) refreshWhenDue() {
	if s.state.published.Load() != nil { // until another app fails to start: then it is the configuration before that goes on
		_ = s.app.await(s.ctx, s.app.serving)
	}
	turn := s.handler.onDemandTurn
	for s.schedule.Wait(s.ctx, s.app.now, s.onDemand) && (!s.onDemand || turn.Take(s.ctx)) {
		if s.run(); s.onDemand {
			turn.Release()
		}
	}
}

// run refreshes the site and plans the next refresh. Once the site is stopped, it waits a moment for
// the refresh, and then abandons it: Stop must not wait for a source that ignores its context.
func (s *site) run() {
	demanded, begun := s.schedule.Begin(), s.app.now()
	// When the site is stopped, the refresh has a moment to commit what it has found.
	running, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	defer cancel()
	defer context.AfterFunc(s.ctx, func() { time.AfterFunc(keepGrace, cancel) })()
	var out report.Refresh
	if !wait.OrLeave(running, stopGrace, func() {
		defer func() {
			if v := recover(); v != nil {
				s.logger.Error("a refresh panicked", zap.Any("panic", v), zap.Stack("stack"))
				out = report.Refresh{Err: fmt.Errorf("panic: %v", v)}
			}
		}()
		defer s.stage.Store(nil)
		out = s.refresh(running, demanded)
	}) {
		s.logger.Warn("a refresh goes on although it was canceled")
		return
	}
	if s.ctx.Err() != nil {
		return
	}
	now := s.app.now()
	if out.Err != nil {
		s.report(out, begun, now.Sub(begun))
	}
	if out.Result != refreshSuperseded && out.Result != refreshFollowed { // which has loaded something, or nothing is known
		s.setReady()
	}
	s.checkSetup()
	next := s.nextRefresh(out, begun, now)
	if s.state.shared != nil {
		next = s.nextInFleet(out, next)
	}
	s.schedule.At(next)
	s.schedule.End()
	if s.onDemand {
		s.app.mu.Lock()
		s.app.makeRoom(0, s)
		s.app.mu.Unlock()
	}
}

// nextRefresh returns when the next refresh is due, after one that began at begun.
func (s *site) nextRefresh(out report.Refresh, begun, now time.Time) time.Time {
	interval := s.handler.settings.refresh
	if s.handler.RefreshInterval == 0 {
		interval = max(interval, shareOfTime*out.Cost)
	}
	wait := begun.Add(interval).Sub(now)
	wait = min(wait, interval) // it is longer where the clock was set back meanwhile
	next := time.Unix(out.Crawled.Next, 0).Sub(now)
	crawled, probed := &out.Crawled, s.probed.Load()
	switch {
	case s.state.published.Load() == nil && (out.Err != nil || probed != nil && probed.robots.closed):
		wait = min(wait, retryEmpty) // an application may start with the server
	case out.Err != nil:
	case crawled.Generation != nil && !crawled.Done:
		wait = min(wait, max(soon, next))
	case next > 0:
		wait = min(wait, next)
	}
	if own := s.own.Load(); own != nil && own.unread > 0 && out.Err == nil {
		turn := s.handler.limiter.Next().Sub(now)
		wait = min(wait, max(soon, turn))
	}
	return now.Add(max(wait, 0))
}

// Results of refreshes that are not reported, besides those of package report.
const (
	refreshAlias      = "alias"      // the site is an alias of another one
	refreshSuperseded = "superseded" // the next configuration refreshes the site
	refreshFollowed   = "followed"   // another node of a fleet refreshes the site, or nothing is due
)

// lastReport returns the report of the last refresh; the zero value: there was none.
func (s *site) lastReport() *report.Report { return cmp.Or(s.state.report.Load(), new(report.Report)) }

// reportOf returns the report of a refresh that serves a number of pages.
func (s *site) reportOf(r *report.Refresh, begun time.Time, took time.Duration, pages int) *report.Report {
	r.Begun, r.Took, r.Sources = begun, took, s.inputNames()
	r.Pages, r.MaxPages = pages, s.handler.settings.maxURLs
	rep := r.Report(s.lastReport())
	if n := len(rep.Sources); n > 0 && s.discovery() == nil {
		last := rep.Sources[n-1]
		if last.Source == ownSitemaps && last.Pages == 0 && last.Error == "" { // most sites of files have none
			rep.Sources = rep.Sources[:n-1]
		}
	}
	return rep
}

// report stores, logs and announces the result of a refresh.
func (s *site) report(r report.Refresh, begun time.Time, took time.Duration) {
	if s.ctx.Err() != nil {
		return
	}
	before, last := s.lastReport(), s.reportOf(&r, begun, took, pagesOf(s.state.published.Load()))
	s.state.report.Store(last)
	r.Log(s.logger, s.handler.logger.With(zap.String("site", s.url())), last, before)
	if r.Err == nil {
		s.logProbed(&r, last)
		isMissing := s.handler.Feed && r.Pages > 0 && last.Pending == 0 && s.state.published.Load().Find(webpage.Feed) == nil
		s.logger.OnceIf(isMissing, zap.WarnLevel, "feed", "there is no feed yet, as no page has a date: declare dates in the pages, or set 'lastmod mtime'")
	}
	if (last.Result == report.Failed || last.Result == report.HeldBack) && (last.Result != before.Result || last.Reason != before.Reason) {
		s.app.events.announce(s, "sitemap_refresh_failed", map[string]any{"reason": last.Reason})
	}
}

func pagesOf(snapshot *publish.Snapshot) int {
	if snapshot == nil {
		return 0
	}
	return snapshot.Pages
}
