package sitemap

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// probe probes the site's routes, and settles which sites are aliases of others. It returns what the crawl need not request,
// too.
func (s *site) probe(ctx context.Context, demanded bool) (*probeResult, frontPage, error) {
	last := s.lastProbe()
	if !demanded && s.goesOnWith(&last, s.begun) {
		return &last, frontPage{}, nil
	}
	probing := s.enter(stageProbe)
	hangs := time.AfterFunc(fetchTimeout, func() {
		s.stage.CompareAndSwap(probing, &stage{stageHangs, probing.Since})
		s.logHangs("it hangs")
	})
	probed, front, err := s.fetcher.probe(ctx, last, probeMode{isFresh: demanded, atFront: s.firstLook || s.isAbsent()})
	if hangs.Stop() {
		s.logHangs("")
	}
	isKnown := s.probed.Load() != nil || s.published().probed != nil
	if errors.Is(err, errPaused) && isKnown {
		return &last, front, nil
	}
	if err == nil {
		s.probedAt = s.begun
	}
	// A host that has listed pages is not made up. While its server fails, the pages stay as long as any that fail.
	isServed := s.published().snapshot != nil
	if probed.blocked == reasonAbsent && !page.IsConclusive(probed.status) && isServed {
		probed.blocked = ""
	}
	s.settle(ctx, &probed, err)
	return &probed, front, err
}

// logHangs logs that a probe hangs, and that none does any more; "".
func (s *site) logHangs(condition string) {
	s.logger.Lasting(condition, zap.WarnLevel, "hangs",
		"the site does not respond to requests for its front page or robots.txt: its disk or upstream hangs",
		"the site responds to requests for its front page and robots.txt again")
}

// lastProbe returns the result of the last probe. At first, that is of a process or configuration before.
func (s *site) lastProbe() probeResult {
	if probed := s.probed.Load(); probed != nil {
		return *probed
	}
	if probed := s.published().probed; probed != nil {
		return *probed
	}
	return probeResult{}
}

// gather starts what yields the candidates, and the crawl that reads them.
func (s *site) gather(ctx context.Context, r *refreshing) error {
	s.enter(stageGather)
	source, err := newRefresh(s, *r.probed, r.start)
	if err != nil {
		return err
	}
	set := &s.handler.settings
	source.demanded = r.demanded
	r.source = source
	if s.watch != nil {
		s.watch.Renew()
	}
	r.source.lookAtOwn(ctx)
	if disallowed := s.disallowed(); disallowed != "" {
		r.source.Warn("disallowed", disallowed)
	}
	r.selectedBy = s.digest(r.probed.root, r.probed.fs, r.probed.index, document.Look)
	// A source that yields nothing for so long is left out of this refresh. A folder of very many files on a network disk may
	// need a minute, which requests that wait for the first sitemap do not have.
	patience := sourcePatience
	if s.isHurried && !r.wasReady {
		patience = firstPatience
	}
	r.candidates = merge.Start(ctx, source.inputs(), merge.Options{
		Filter:   s.filter,
		MaxPages: set.maxURLs + maxOver,
		Patience: wait.Patience(patience),
	})
	if set.crawl.Off {
		return nil
	}
	r.until = r.start.Add(s.crawlTime(r))
	// Once the crawl has begun with what was wanted by now, that is done with; what is wanted later stays: see beginRefetch.
	r.refetch = s.state.refetch.Load()
	r.crawling = s.crawler.Start(r.candidates, s.policy(r))
	return nil
}

// hasTimedOut reports whether a source was too slow.
func (r *refreshing) hasTimedOut() bool {
	if r.candidates == nil {
		return false
	}
	return slices.ContainsFunc(r.candidates.Result().Failed, func(f merge.InputError) bool {
		return errors.Is(f.Err, merge.ErrTimeout)
	})
}

// awaitsPages reports whether nothing is served after a refresh that may not have seen all there is: a source was too slow, or
// there was no time left to fetch the pages that it names.
func (s *site) awaitsPages(out *report.Refresh) bool {
	if s.published().snapshot != nil {
		return false
	}
	return s.isPatient || out.Crawled.HasLeft() && !s.onDemand
}

// crawlTime returns how long the crawl of a refresh goes on once all candidates are known. What it does not reach is due in the
// next refresh.
func (s *site) crawlTime(r *refreshing) time.Duration {
	if s.firstLook {
		return 0
	}
	// Of hosts that visitors named there may be a thousand, which take turns.
	if s.onDemand && !r.demanded {
		return s.sliceTime()
	}
	interval := s.handler.settings.interval
	// Clients wait for a first sitemap until their time-out.
	if r.served.snapshot == nil {
		return max(interval, wait.Patience(firstWait))
	}
	// An operator waits no longer than that.
	if r.demanded {
		return min(interval, firstWait)
	}
	return interval
}

// policy is what the crawl may fetch.
func (s *site) policy(r *refreshing) crawl.Policy {
	set := &s.handler.settings
	robots := &r.probed.robots
	options := s.selectOptions(r.records.Generation, r.batch)
	p := crawl.Policy{
		Base:             s.origin,
		Scope:            s.scope,
		Filter:           s.filter,
		IgnoreCanonicals: set.ignoreCanonicals,
		Disallow:         func(path string) bool { return set.crawl.disallows(path) != "" },
		Allowed:          robots.rules.Allows,
		Closed:           robots.closed,
		Spares:           s.firstLook,
		Counts:           options.LinksCount,
		Extract:          set.extract,
		Settings:         s.digest(robots.rules.String(), r.probed.byLinks),
		Routes:           digestOf(s.fetcher.routes, set.extract),
		SameRoutes:       digestOf(s.fetcher.sameRoutes, set.extract),
		Batch:            r.batch.Unix(),
		Told:             s.state.announcer.Behind(),
		Look:             s.look,
	}
	if confirmed := r.served.history.Confirmed; !confirmed.IsZero() {
		p.Confirmed = confirmed.Unix()
	}
	if s.isFrontInScope() {
		p.Front = r.front.response
		p.FrontPath = r.front.path
	}
	if r.refetch != nil {
		p.Refetch = r.refetch.paths
		p.RefetchAll = r.refetch.all
	}
	if d := s.discovery(); d != nil {
		p.Discover = d.visitors
		p.Links = d.depth > 0
		p.Depth = d.depth
		p.Query = d.query
		p.Expire = d.expire
		p.MaxPaths = d.most(s.onDemand)
		p.Unlinked = d.unlinked.Match
	}
	return p
}

// crawl goes on with the crawl for a step, and notes whether the refresh goes on after it. For the command 'build', which has
// no visitors who wait, it goes on until nothing is left.
func (s *site) crawl(ctx context.Context, r *refreshing) error {
	if r.crawling == nil {
		r.crawled = crawl.Result{Gathered: true, Done: true}
		return nil
	}
	for {
		limit := s.timeLimit(r)
		// Whoever requests a refresh waits for the end of this one.
		stop, release := s.schedule.UntilRequested(limit.Stop)
		limit.Stop = stop
		crawled, err := r.crawling.Update(ctx, r.records.Generation, limit)
		release()
		if err != nil {
			return fmt.Errorf("crawling: %w", err)
		}
		r.records.Generation = crawled.Generation
		r.crawled = crawled
		if r.step < s.handler.settings.interval {
			r.step *= 2
		}

		now := s.app.now()
		// How long it is until upstreams may be requested, if all else is done: a crawl that has used up its time may as well
		// have left pages of the site itself.
		var idle time.Duration
		if now.Before(limit.Until) {
			idle = time.Unix(crawled.Next, 0).Sub(now)
		}
		// When an upstream may be requested again is rounded up to seconds: half a second may look like one and a half.
		isIdle := idle >= min(2*firstPublication, s.handler.settings.interval)
		// Whoever requests a refresh wants one that begins after the request.
		isRequested := s.schedule.IsRequested()
		due := s.lookDue()
		isLookDue := !due.IsZero() && !now.Before(due)
		isSpent := isRequested || isIdle || isLookDue || !now.Before(r.until)
		r.goesOn = !crawled.Gathered || !crawled.Done && !isSpent

		building := s.app.building
		if building == nil || crawled.Done || s.ctx.Err() != nil {
			return nil
		}
		if crawled.Gathered {
			building.Total.Store(building.Fetched.Load() + int64(crawled.Pending))
		}
		wait.Within(idle, ctx.Done())
	}
}

// timeLimit is how long the next step of the crawl may take: at least as long as what follows it.
func (s *site) timeLimit(r *refreshing) crawl.TimeLimit {
	// While nothing is published, one page that hangs must not keep all others from clients that wait.
	patience := fetchTimeout + fetchGrace
	isFirst := r.crawled.Generation == nil && r.served.snapshot == nil
	hasClients := s.app.building == nil
	if !r.wasReady || isFirst && hasClients {
		patience = firstHangs
	}
	step := min(r.step, s.handler.settings.interval)
	// While candidates are still read, the refresh does not end with a step that a request has ended.
	if s.schedule.IsRequested() {
		step = firstPublication
	}
	// A site of ten million pages would be selected two to three times in a refresh in which one page changed.
	step = max(step, r.cost, 2*r.built)
	until := s.app.now().Add(step)
	// What was saved is looked at in the next refresh.
	if due := s.lookDue(); r.crawled.Gathered && !due.IsZero() && due.Before(until) {
		until = due
	}
	return crawl.TimeLimit{Until: until, Patience: patience, Stop: s.ctx}
}

// selectPages is the stages select and build, unless nothing has changed.
func (s *site) selectPages(ctx context.Context, r *refreshing) (selection, error) {
	isOff := s.handler.settings.crawl.Off
	if !isOff && r.served.isCurrent(r.crawled.Generation, r.selectedBy, r.goesOn, r.batch) {
		return selection{snapshot: r.served.snapshot}, nil
	}
	return s.build(ctx, r, false)
}

// keepListed has pages stay that were listed, unless they are refused: see [indexing.Options].
const keepListed = true

// build selects the pages to list, and builds their documents.
func (s *site) build(ctx context.Context, r *refreshing, keepsListed bool) (sel selection, err error) {
	set := &s.handler.settings
	begun := s.app.now()
	defer func() {
		r.built = s.app.now().Sub(begun)
		r.cost += r.built
	}()
	pages := s.named(ctx, r)
	result := func() indexing.Result { return indexing.Result{Generation: r.records.Generation} }
	// With crawl off, selecting waits for the sources, which needs no slot.
	if !set.crawl.Off {
		if !s.app.compute.Take(ctx) {
			return sel, ctx.Err()
		}
		defer s.app.compute.Release()
		// Waiting for other sites is no cost of this one.
		begun = s.app.now()
		options := s.selectOptions(r.crawled.Generation, r.batch)
		options.KeepListed = keepsListed
		if s.announces() {
			options.Notices = s.state.announcer.Select(s.app.now())
			options.Notices.IsKnown = options.Notices.IsKnown && !r.hasLost()
		}
		// Dates are decided once all pages of the round were fetched: until then, nothing tells a change of the template, which
		// all others will show, too, from a correction.
		if r.crawled.Pending > 0 || r.goesOn {
			options.OpenBatch = r.crawled.Batch
		}
		selecting, err := indexing.Select(ctx, r.crawled.Generation, options)
		if err != nil {
			return sel, fmt.Errorf("selecting pages: %w", err)
		}
		pages = selecting.Pages(ctx)
		result = selecting.Result
	}
	o := document.Options{
		Beside:    set.beside,
		Base:      s.origin,
		Sitemap:   s.origin + s.docPath(""),
		Schema:    set.schema,
		ShardURLs: set.shardURLs,
		Extended:  set.extract.Alternates || set.extract.Images || set.extract.Videos,
		Workers:   r.source.Workers,
		Now:       r.publishedAt(s.app.now()),
	}
	if set.sections != nil {
		o.Sections = set.sections.names()
		o.SectionOf = set.sections.of
	}
	sel.snapshot, err = document.Build(ctx, pages, r.served.lastSnapshot, o)
	if err != nil {
		return sel, fmt.Errorf("building the documents: %w", err)
	}
	sel.result = result()
	return sel, nil
}

// publishedAt returns when documents that are built at a time were modified.
func (r *refreshing) publishedAt(now time.Time) time.Time {
	return r.batch.Add(max(now.Sub(r.start), 0))
}

// selectOptions say how pages are selected from a generation at a time.
func (s *site) selectOptions(g *record.Generation, now time.Time) indexing.Options {
	set := &s.handler.settings
	o := indexing.Options{
		Base:             s.origin,
		Scope:            s.scope,
		Filter:           s.filter,
		Hints:            set.hint,
		IgnoreCanonicals: set.ignoreCanonicals,
		OmitOrphans:      set.omitOrphans,
		Dates:            set.dates,
		MaxPages:         set.maxURLs,
		Extract:          set.extract,
		Depths:           set.beside.LLMs,
		Now:              now,
		Interval:         max(set.interval, shareOfTime*s.published().cost),
		Once:             s.app.building != nil,
		Followed:         record.Sum(g.Chunks()).Followed,
		TrustLists:       slices.ContainsFunc(s.handler.sources, namesLists),
	}
	if d := s.discovery(); d != nil {
		o.Unlinked = d.unlinked.Match
		o.Expire = d.expire
		o.Visits = d.visitors
		o.Depth = d.depth
	}
	return o
}

// named yields the candidates, which are listed as they are with crawl off.
func (s *site) named(ctx context.Context, r *refreshing) iter.Seq2[page.Page, error] {
	set := &s.handler.settings
	return func(yield func(page.Page, error) bool) {
		n := 0
		p, ok, err := r.candidates.Next(ctx)
		for ; ok; p, ok, err = r.candidates.Next(ctx) {
			n++
			if n > set.maxURLs {
				continue
			}
			set.hint(&p)
			p.LastMod, p.LastModDay = p.BestDate(r.start.Unix())
			if set.dates == indexing.Off {
				p.LastMod = 0
				p.LastModDay = false
			}
			if !yield(p, nil) {
				return
			}
		}
		r.source.LeaveOut(merge.OverMax, max(n-set.maxURLs, 0))
		if err != nil {
			yield(page.Page{}, err)
		}
	}
}

// circumstances are those of a decision on what was selected just now.
func (s *site) circumstances(r *refreshing) circumstances {
	now := s.app.now()
	return circumstances{
		goesOn:     r.goesOn,
		gathered:   r.crawled.Gathered,
		hasTime:    now.Before(r.until),
		demanded:   r.demanded,
		crawlOff:   s.handler.settings.crawl.Off,
		selectedBy: r.selectedBy,
		newFailed:  newFailed(r.served.history, r.candidates.Result().Failed),
		lost:       !r.lost().IsZero(),
		now:        r.batch,
	}
}

// lostFor is how long pages may be missing because their records were lost. There may always be some to be fetched.
const lostFor = 24 * time.Hour

// lost returns when records were lost, of which not all pages are fetched again; zero: none were.
func (r *refreshing) lost() time.Time {
	at := r.served.history.Lost
	if at.IsZero() && r.crawled.Lost {
		at = r.batch
	}
	// There may always be some page that is still to be fetched, so after a day, what is left is believed.
	isFetched := r.crawled.Gathered && r.crawled.Pending == 0
	if isFetched || r.batch.Sub(at).Abs() >= lostFor {
		return time.Time{}
	}
	return at
}

// hasLost reports whether pages that are fetched again seem to be new, and were listed before their records were lost.
func (r *refreshing) hasLost() bool { return !r.served.history.Lost.IsZero() || r.crawled.Lost }

// newFailed names the sources that failed, and could be read when the pages were last confirmed; "": there is none. One that
// failed already then has no pages that could be missing.
func newFailed(h outcome.History, failed []merge.InputError) string {
	var all []string
	for _, f := range failed {
		if !h.IsUnread(f.Input, f.Name) {
			all = append(all, report.Unreadable(f.Input, f.Name))
		}
	}
	return strings.Join(all, "; ")
}

// logUnmatched logs which rules and patterns of files no page matches, once everything was read, fetched and selected.
func (s *site) logUnmatched() {
	// Another site of the handler may have such pages.
	if s.handler.siteCount() > 1 {
		return
	}
	for _, rule := range s.handler.settings.rules {
		rule.match.logUnmatched(s.logger, "rule")
	}
	for _, source := range s.sources() {
		of, isFiles := source.(*SourceFiles)
		if isFiles && of.included != nil {
			of.included.logUnmatched(s.logger, "include")
		}
	}
}

// siteCount returns the number of sites of the handler.
func (h *Handler) siteCount() int { return h.countSites(func(*site) bool { return true }) }

// probedSites returns the number of sites of the handler whose front pages are requested again and again, of a rank and of
// those above it.
func (h *Handler) probedSites(of schedule.Rank) int {
	return h.countSites(func(s *site) bool { return s.rank() <= of && !s.isAbsent() })
}

func (h *Handler) countSites(counts func(*site) bool) int {
	h.app.mu.RLock()
	defer h.app.mu.RUnlock()
	n := 0
	for _, s := range h.app.sites {
		if s.handler == h && counts(s) {
			n++
		}
	}
	return n
}
