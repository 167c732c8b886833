package sitemap

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// The parts of a refresh, and for what it waits.
const (
	firstPublication = time.Second     // what is known by then is published, and again after 2, 4, 8 … seconds
	firstHangs       = 2 * time.Second // for fetches under way when a step ends, while nothing is published
	sourcePatience   = time.Minute     // for a source that yields nothing, once no request waits
	keepGrace        = time.Second     // for a stopped refresh to commit what it has found

	// firstPatience is how long a source that yields nothing, or the probe of an alias, is waited for while requests wait for the
	// first sitemap.
	firstPatience = 4 * time.Second

	maxOver = 1_000_000 // candidates beyond max_urls that are gathered: others may turn out not to be listed
)

// refresh runs the pipeline once, and returns how it ended. Its stages:
//
//	probe    what the server's routes say of the site
//	gather   candidates from the sources
//	crawl    the records brought up to date
//	select   which of them are listed, with which dates
//	build    documents, and a snapshot of them
//	decide   what becomes of it: see verdict
//	publish  what is served swapped, the records written, events emitted
//
// The records of all pages are a generation, which never changes: the crawl and the selection make the next one. While
// the crawl goes on, what it has found is published in parts.
func (s *site) refresh(ctx context.Context, demanded bool) report.Refresh {
	// A superseded configuration whose site comes due would take the records away from the next one's refresh.
	if s.app.isSuperseded() {
		return ended(outcome.Superseded)
	}
	// One refresh at a time has the records, of whichever configuration. One that hangs loses them after three seconds.
	records, err := s.state.records.Acquire(ctx)
	if err != nil {
		return failed(err)
	}
	defer records.Release()
	// The wait for the records may have been long enough for a reload.
	if s.app.isSuperseded() {
		return ended(outcome.Superseded)
	}
	// The next configuration begins at once, if it comes before this refresh has ended.
	s.amend(func(p *publication) { p.next = nextRefresh{} })
	// After a restart, the site serves at once what it served before.
	_ = s.restore(ctx, records)
	// Of the processes that share the site, one refreshes it.
	if !s.mayRefresh() {
		return ended(outcome.Followed)
	}
	s.hearFollowers(ctx)
	return s.runStages(ctx, records, demanded)
}

// runStages runs the stages, as the writer of the records.
func (s *site) runStages(ctx context.Context, records *record.Records, demanded bool) report.Refresh {
	probed, front, err := s.probe(ctx, demanded)
	if err != nil {
		return failed(fmt.Errorf("probing the site: %w", err))
	}
	// The probe has settled which sites are aliases. Requests for the documents of an alias are redirected to its main site.
	if s.main.Load() != nil {
		return ended(outcome.Alias)
	}
	if err := s.rename(ctx, records); err != nil {
		return failed(fmt.Errorf("reading the records of the site's former URL: %w", err))
	}
	s.loadAnnouncer(ctx, false)
	r := s.newRefreshing(records, probed, demanded)
	r.front = front
	if probed.blocked != "" {
		// The routes say that nothing is to be listed, and are believed at once: a server that merely fails has failed the
		// probe. The records stay, and are stored with that.
		nothing := selection{result: indexing.Result{Generation: records.Generation}}
		return s.publish(ctx, r, nothing, decision{verdict: replace, reason: probed.blocked})
	}
	if err := s.gather(ctx, r); err != nil {
		return failed(err)
	}
	defer r.candidates.Close()
	return s.publishParts(ctx, r)
}

// rename has the records go on as those of the site's URL, if they are those of another one: so pages keep the dates that only
// records tell.
func (s *site) rename(ctx context.Context, records *record.Records) error {
	if s.state.published.Load().site == s.published().site {
		return nil
	}
	renamed, err := crawl.Rename(ctx, records.Generation)
	if err != nil {
		return err
	}
	records.Generation = renamed
	s.logger.Info("the site had another URL: its pages keep their dates", zap.Int("pages", renamed.Len()))
	return nil
}

// publishParts crawls, selects, builds, decides and publishes, until the crawl has ended or its time is up.
func (s *site) publishParts(ctx context.Context, r *refreshing) report.Refresh {
	for {
		if err := s.crawl(ctx, r); err != nil {
			return failed(err)
		}
		s.beginRefetch(r)
		// The next configuration goes on from these records, and publishes by its own settings.
		if s.app.isSuperseded() {
			return ended(outcome.Superseded)
		}
		// What was fetched until the site was stopped is kept: after a restart, none of it is requested again.
		if s.ctx.Err() != nil {
			err := r.records.Commit(!record.Waits)
			s.logState("commit", err)
			return failed(errStopping)
		}
		selected, err := s.selectPages(ctx, r)
		if err != nil {
			return failed(err)
		}
		decided := decide(r.served, selected, s.circumstances(r))
		if decided.verdict == goOn {
			continue
		}
		// With crawl off, decide never holds: the candidates can be read only once.
		if decided.verdict == hold {
			selected, err = s.build(ctx, r, keepListed)
			if err != nil {
				return failed(err)
			}
		}
		out := s.publish(ctx, r, selected, decided)
		if !out.Partial {
			return out
		}
	}
}

// refreshing is a refresh under way: what it works with, and what it has found so far.
type refreshing struct {
	demanded bool      // an operator requested it, and wants its result as it is
	start    time.Time // when its sources were asked
	batch    time.Time // the time for all dates: start
	until    time.Time // when its crawl ends, once all candidates are known
	wasReady bool      // no request waited for the first sitemap when it began

	records    *record.Records
	probed     *probeResult
	front      frontPage
	selectedBy uint64   // digest of what a selection depends on besides the records; 0: nothing is selected
	source     *Refresh // as sources see it; nil: nothing is gathered
	candidates *merge.Stream
	crawling   *crawl.Run // nil: with crawl off
	refetch    *refetch   // with which it begins; nil: none

	served  *publication  // by the refresh before, or since by a part of this one
	step    time.Duration // how long the next part of the crawl may take
	crawled crawl.Result  // so far
	built   time.Duration // how long selecting and building took last
	goesOn  bool          // more will be published in this refresh
	cost    time.Duration // of selecting and building so far
}

func (s *site) newRefreshing(records *record.Records, probed *probeResult, demanded bool) *refreshing {
	now := s.app.now()
	served := s.published()
	return &refreshing{
		demanded: demanded,
		start:    now,
		batch:    now,
		wasReady: wait.IsDone(s.ready) || s.app.building != nil,
		records:  records,
		probed:   probed,
		served:   served,
		step:     firstPublication,
		built:    served.built,
	}
}

// refreshWhenDue refreshes the site when it is due, until it is stopped.
func (s *site) refreshWhenDue() {
	if s.state.published.Load().snapshot != nil {
		// Until then, another app may fail to start, and it is the configuration before that goes on.
		_ = s.app.await(s.ctx, s.app.serving)
	}
	for {
		// What a crawl has left of a host that visitors named needs no other request for its sitemap.
		needsRequest := s.onDemand && !s.hasLeft
		isDue := s.schedule.Wait(s.ctx, s.app.now, needsRequest)
		if !isDue {
			return
		}
		release, ok := s.takeTurn()
		if !ok {
			return
		}
		s.run()
		release()
	}
}

// run refreshes the site, and plans the next refresh. Once the site is stopped, it waits a moment for the refresh, and then
// abandons it: Stop must not wait for a source that ignores its context.
func (s *site) run() {
	demanded := s.schedule.Begin()
	begun := s.app.now()
	s.begun = begun
	s.firstLook = s.isFirstLook()
	s.runs++
	s.isHurried = !wait.IsDone(s.ready) && !s.isPatient && s.app.building == nil
	s.isPatient = false
	s.planning.Lock()
	s.prospected = nil
	s.state.isChanged.Store(false)
	s.planning.Unlock()
	s.beginLook()
	// Whatever becomes of the refresh, the site has a time at which it is due: this one, until its end tells a better one.
	s.plan(prospects{now: begun, begun: begun, interval: s.handler.settings.interval, serves: true})
	// When the site is stopped, the refresh has a moment to commit what it has found.
	running, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	defer cancel()
	defer context.AfterFunc(s.ctx, func() { time.AfterFunc(keepGrace, cancel) })()
	var out report.Refresh
	hasEnded := wait.OrLeave(running, stopGrace, func() { out = s.refreshSafely(running, demanded) })
	if !hasEnded {
		// It may still write to out, which therefore is not read.
		s.logger.Warn("a refresh goes on although it was canceled")
		return
	}
	if s.ctx.Err() != nil {
		return
	}
	if out.Result == outcome.Failed {
		s.fail(out, begun)
	}
	if out.IsKnown() && !s.awaitsPages(&out) {
		s.setReady()
	}
	s.checkSetup()
	if s.watch != nil {
		s.logWatch(s.watch.Err())
	}
	s.noteListed()
	s.noteAbsence(&out)
	// Nothing may be listed yet: of a front page that redirects, the first look has fetched only that.
	s.hasLeft = out.Crawled.HasLeft()
	s.giveUpLead(&out)
	s.conclude(&out, begun)
	s.schedule.End()
	// The records that it has now may be more than there is room for.
	if s.onDemand {
		s.app.mu.Lock()
		s.app.makeRoom(0, s)
		s.app.mu.Unlock()
	}
}

// refreshSafely is refresh, which fails where it panics.
func (s *site) refreshSafely(ctx context.Context, demanded bool) (out report.Refresh) {
	defer s.stage.Store(nil)
	defer func() {
		if v := recover(); v != nil {
			s.logger.Error("a refresh panicked", zap.Any("panic", v), zap.Stack("stack"))
			out = failed(fmt.Errorf("panic: %v", v))
		}
	}()
	return s.refresh(ctx, demanded)
}
