package sitemap

import (
	"context"
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// The parts of a refresh, and for what it waits.
const (
	firstPublication = time.Second     // what is known by then is published, and again after 2, 4, 8 … seconds
	firstHangs       = 2 * time.Second // for fetches under way when a budget ends, while nothing is published
	sourcePatience   = time.Minute     // for a source that yields nothing, once no request waits
	keepGrace        = time.Second     // for a stopped refresh to commit what it has found

	// firstPatience is how long a source that yields nothing, or the probe of an alias, is waited for while requests wait for the
	// first sitemap.
	firstPatience = 4 * time.Second

	confirmAfter = 10 * time.Minute // how long refreshes must find the same suspicious change before it is published
	maxOver      = 1_000_000        // candidates beyond max_urls that are gathered: others may turn out not to be listed
)

// When a site is next due.
const (
	soon         = 200 * time.Millisecond // while pages are left to be fetched
	retryEmpty   = 5 * time.Second        // while the site has nothing to serve
	retryRefetch = time.Minute            // after a refresh that failed although an operator wants pages fetched
	maxAbsence   = time.Hour              // at most, for a host that visitors named, and that has no front page
	shareOfTime  = 20                     // gathering, selecting and building take a twentieth of the time at most
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
	// Of the processes that share the site, one refreshes it. After a restart, the site serves at once what it served before.
	role, err := s.join(ctx, records, demanded)
	if err != nil {
		return failed(err)
	}
	switch role {
	case persist.Follower:
		return ended(outcome.Followed)
	case persist.Later:
		return ended(outcome.Later)
	}
	return s.runStages(ctx, records, demanded)
}

// runStages runs the stages, as the writer of the records.
func (s *site) runStages(ctx context.Context, records *persist.Records, demanded bool) report.Refresh {
	probed, front, err := s.probe(ctx, demanded)
	if err != nil {
		return failed(fmt.Errorf("probing the site: %w", err))
	}
	// The probe has settled which sites are aliases. Requests for the documents of an alias are redirected to its main site.
	if s.main.Load() != nil {
		return ended(outcome.Alias)
	}
	r := s.newRefreshing(records, probed, demanded)
	r.front = front
	if probed.blocked != "" {
		// The routes say that nothing is to be listed, and are believed at once: a server that merely fails has failed the
		// probe. The records stay, and are stored with that.
		nothing := selection{result: indexing.Result{Generation: records.Generation}}
		return s.publish(ctx, r, nothing, decision{verdict: replace, reason: probed.blocked})
	}
	s.inherit(ctx, records, probed)
	if err := s.gather(ctx, r); err != nil {
		return failed(err)
	}
	defer r.candidates.Close()
	return s.publishParts(ctx, r)
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
			err := r.records.Commit()
			s.logState("commit", err)
			return failed(errStopping)
		}
		selected, err := s.selectPages(ctx, r)
		if err != nil {
			return failed(err)
		}
		decided := decide(r.before, selected, s.circumstances(r))
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
	batch    time.Time // the time for all dates: start, or what another process's clock had if that is later
	until    time.Time // when its crawl ends, once all candidates are known
	wasReady bool      // no request waited for the first sitemap when it began

	records    *persist.Records
	probed     *probeResult
	front      frontPage
	selectedBy uint64   // digest of what a selection depends on besides the records; 0: nothing is selected
	source     *Refresh // as sources see it; nil: nothing is gathered
	candidates *merge.Stream
	crawling   *crawl.Run // nil: with crawl off
	refetch    *refetch   // with which it begins; nil: none

	before  *publication  // what is served: by the refresh before, or by an earlier part of this one
	step    time.Duration // how long the next part of the crawl may take
	crawled crawl.Result  // so far
	built   time.Duration // how long selecting and building took last
	goesOn  bool          // more will be published in this refresh
	cost    time.Duration // of selecting and building so far
}

func (s *site) newRefreshing(records *persist.Records, probed *probeResult, demanded bool) *refreshing {
	now := s.app.now()
	before := s.published()
	return &refreshing{
		demanded: demanded,
		start:    now,
		batch:    records.Begin(now),
		wasReady: wait.IsDone(s.ready),
		records:  records,
		probed:   probed,
		before:   before,
		step:     firstPublication,
		built:    before.built,
	}
}

// selection is what select and build have made of the records.
type selection struct {
	snapshot *publish.Snapshot // nil: no page is listed; what is served if nothing was selected
	result   indexing.Result
}

// verdict is what becomes of a selection.
type verdict uint8

const (
	goOn    verdict = iota // nothing is published yet: only while the refresh goes on
	keep                   // what is served stays
	replace                // what was selected is served
	hold                   // it is selected again, so that pages that were listed stay unless they are refused
)

// decision is a verdict, and why.
type decision struct {
	verdict
	reason string    // why something is held back, or nothing is listed; "": all is as the selection says
	since  time.Time // since when refreshes have found what waits to be confirmed; zero: nothing does
}

// circumstances are what a decision depends on besides what is served and what was selected.
type circumstances struct {
	goesOn     bool      // the refresh goes on, and publishes again
	gathered   bool      // all candidates were read
	hasTime    bool      // the time for the crawl is not over: an empty sitemap can wait
	demanded   bool      // an operator wants the result as it is
	crawlOff   bool      // names suffice, so no record tells which pages are gone
	selectedBy uint64    // by which settings pages were selected
	newFailed  string    // names sources that failed, and could be read when pages were last confirmed; "": there is none
	lost       bool      // records were lost, and not all of their pages are fetched again
	unseen     bool      // other processes share the site, and none of them sees what this one does
	now        time.Time // the batch of the refresh
}

// Reasons for which something is held back, besides sources that cannot be read.
const (
	reasonHalf  = "less than half of the pages would be left"
	reasonFifth = "more than a fifth of the pages would go at once: %s"
	reasonLost  = "stored records were lost: their pages are fetched again"

	reasonUnseen = "pages would go that only this node does not see"
)

// decide decides what becomes of a selection. It is checked against a table over all combinations: see TestDecide.
func decide(before *publication, sel selection, c circumstances) decision {
	// Other settings change as much as they like.
	sameSettings := before.snapshot != nil && before.selectedBy == c.selectedBy

	if c.goesOn && isTooEarly(before, sel, c, sameSettings) {
		return decision{verdict: goOn}
	}
	// Pages of a source that cannot be read stay listed, which is a reason to tell if there are any.
	unread := c.newFailed
	if pagesOf(sel.snapshot) == 0 {
		unread = ""
	}
	// Nothing has changed since the last selection.
	if !sel.result.IsMade() {
		return decision{verdict: keep, reason: unread}
	}
	return decideMade(before, sel, c, sameSettings, unread)
}

// decideMade is decide for a selection that was made anew. unread is why pages of sources stay listed; "": none does.
func decideMade(before *publication, sel selection, c circumstances, sameSettings bool, unread string) decision {
	served := pagesOf(before.snapshot)
	selected := pagesOf(sel.snapshot)
	// Even an operator who requests a refresh does not mean pages whose records were lost.
	if sameSettings && c.lost && selected < served {
		if c.goesOn {
			return decision{verdict: goOn}
		}
		return decision{verdict: keep, reason: reasonLost, since: before.history.Since}
	}
	// With crawl off, no record tells which of the pages are those of the source that failed.
	if c.crawlOff && sameSettings && c.newFailed != "" {
		return decision{verdict: keep, reason: c.newFailed}
	}
	// What an operator has requested or configured is intended.
	isIntended := c.demanded || !sameSettings
	reason := suspicion(served, selected, &sel.result, c.unseen)
	if isIntended || reason == "" {
		return decision{verdict: replace, reason: unread}
	}
	since := suspiciousSince(&before.history, c.now)
	isConfirmed := c.now.Sub(since) >= confirmAfter
	if isConfirmed {
		return decision{verdict: replace, reason: unread}
	}
	// Where no records tell which pages were listed, none can be kept one by one.
	if c.crawlOff || 2*sel.result.Before < served {
		return decision{verdict: keep, reason: reason, since: since}
	}
	return decision{verdict: hold, reason: reason, since: since}
}

// suspiciousSince returns since when refreshes have found a suspicious change: at least since now.
func suspiciousSince(h *outcome.History, now time.Time) time.Time {
	// A time in the future is of a clock that was set back since, and would put the end off for as long.
	isFirst := h.Since.IsZero() || h.Since.After(now)
	if isFirst {
		return now
	}
	return h.Since
}

// isTooEarly reports whether nothing of a refresh that goes on is published yet: which pages are gone, and which sources fail,
// shows only once all are read.
func isTooEarly(before *publication, sel selection, c circumstances, sameSettings bool) bool {
	// A part without a loss is no end of a loss that waits to be confirmed: its ten minutes would begin anew.
	if sameSettings && before.history.Last.Result == outcome.HeldBack {
		return true
	}
	hasNoMore := pagesOf(sel.snapshot) <= pagesOf(before.snapshot)
	if sameSettings && !c.gathered && hasNoMore {
		return true
	}
	// Nor is an empty sitemap published while the crawl may still find a page.
	isEmpty := before.snapshot == nil && sel.snapshot == nil
	return isEmpty && c.hasTime
}

// suspicion returns why a change may be the work of a fault; "": it is usual. unseen is that of the circumstances.
func suspicion(served, selected int, result *indexing.Result, unseen bool) string {
	if 2*selected < served {
		return reasonHalf
	}
	for status := range indexing.StatusCount {
		// That no source names a page any more was somebody's doing: only the loss of half of all is suspicious.
		if status == indexing.Absent {
			continue
		}
		if 5*result.Regressed[status] > served {
			return fmt.Sprintf(reasonFifth, status)
		}
	}
	// A node whose root lags behind a deployment misses pages that all others have.
	if unseen && removes(result) {
		return reasonUnseen
	}
	return ""
}

// removes reports whether pages go that are no longer there.
func removes(result *indexing.Result) bool {
	return result.Regressed[indexing.Absent]+result.Regressed[indexing.NotFound] > 0
}

// ending returns how the refresh, or a part of it, has ended by the decision: where it has a reason, something is held back,
// else the documents tell.
func (d decision) ending(served, next *publish.Snapshot) outcome.Outcome {
	o := outcome.Outcome{Result: outcome.Published, Reason: d.reason, Since: d.since}
	switch {
	case next == nil:
		o.Result = outcome.Empty
	case d.reason != "":
		o.Result = outcome.HeldBack
	case served.Equal(next):
		o.Result = outcome.Unchanged
	}
	return o
}

// prospects are what determines when a site is next due.
type prospects struct {
	now     time.Time
	noticed bool      // something cannot wait, such as that the site is no alias any more
	planned time.Time // when the configuration before, from which this one goes on, had the site due; zero: there is no plan

	// The last refresh.
	begun  time.Time     // when it began
	cost   time.Duration // what gathering, selecting and building took
	failed bool          // it has failed
	serves bool          // the site has something to serve after it
	closed bool          // no page may be fetched, as robots.txt cannot be

	// The pace.
	interval time.Duration // between refreshes: the setting 'refresh', or its default
	isGiven  bool          // an operator has set the interval, which is obeyed whatever refreshes cost
	probes   time.Duration // the shortest interval at which probes take no more than their share of the rate: see probesTake
	absences int           // refreshes, in a row, that found no front page of a host that visitors named

	// What is left to be done. Zero times: nothing is.
	isLeft     bool      // pages that were due have not been fetched
	next       time.Time // when a page is due that cannot wait for the interval, or what is left can be fetched; past: not known
	datesDue   time.Time // when dates can be decided that wait for the end of a deployment
	newsDue    time.Time // when an article becomes news, or is none any more
	listLeft   bool      // a document of the site's own sitemaps has not been read
	nextList   time.Time // when that document may be fetched
	hasRefetch bool      // an operator wants pages fetched again, and no crawl has begun with them

	// The other processes that refresh the site.
	shared     bool      // there are some
	sharedDue  time.Time // when this process is to refresh the site, by what all of them do
	isFollowed bool      // the last refresh was left to another process

	// Changes of files.
	changes   awareness // how the site learns of them
	isChanged bool      // a change was told since the last refresh began
}

// awareness is how a site learns of changes of its files.
type awareness uint8

const (
	areFound    awareness = iota // refreshes look for them
	areToldNext                  // so does the next one, which has those after it told: once, it comes soon
	areTold                      // all of them are told: refreshes need not look for any
)

// never is a pause after nothing that would end.
const never = time.Duration(math.MaxInt64)

// due returns when a site is next due: an interval after the last refresh began, or sooner where there is work.
func due(p prospects) time.Time {
	switch {
	case p.noticed:
		return p.now
	case p.shared && !p.failed:
		// A process that has failed plans as if it were alone: it may be the only one that can refresh the site.
		return dueInFleet(p)
	case !p.planned.IsZero():
		return dueAsPlanned(p)
	}
	interval := p.nextInterval()
	pause := p.begun.Add(interval).Sub(p.now)
	// The pause is longer than the interval where the clock was set back during the refresh.
	pause = min(pause, interval)
	pause = min(pause, p.untilPages(), p.untilDates(), p.untilFiles(), p.untilList())
	if p.hasRefetch {
		pause = min(pause, retryRefetch)
	}
	return p.now.Add(max(pause, 0))
}

// dueInFleet returns when a process refreshes a site that others refresh, too.
func dueInFleet(p prospects) time.Time {
	retry := p.now.Add(retryEmpty)
	// No other process knows which pages the operator wants.
	if p.hasRefetch {
		return retry
	}
	// It need not look again at once: the polls notice what the other process commits.
	if p.isFollowed && p.sharedDue.Before(retry) {
		return retry
	}
	return p.sharedDue
}

// dueAsPlanned returns when a site is due that goes on from the configuration before.
func dueAsPlanned(p prospects) time.Time {
	// The configuration before has planned without the change, which would show an interval later.
	if p.isChanged {
		return p.now
	}
	// The interval may be another one now, or the clock was set back.
	return p.now.Add(min(p.planned.Sub(p.now), p.interval))
}

// nextInterval is how long after the last refresh a site is due in which nothing happens.
func (p *prospects) nextInterval() time.Duration {
	if p.absences > 0 {
		// The host may be made up, so the pause doubles each time. Refreshes without a front page cost nothing that counts.
		return min(p.interval<<min(p.absences-1, 20), max(p.interval, maxAbsence))
	}
	if p.isGiven {
		return p.interval
	}
	interval := max(p.interval, shareOfTime*p.cost, p.probes)
	if p.changes == areTold {
		interval = max(interval, restFor)
	}
	return interval
}

// spared is the pause after which the last refresh has taken no more than its share of the time.
func (p *prospects) spared() time.Duration {
	return min(p.begun.Add(shareOfTime*p.cost).Sub(p.now), shareOfTime*p.cost)
}

// untilPages is the pause until pages can be fetched that are due, or the site is tried again.
func (p *prospects) untilPages() time.Duration {
	next := p.next.Sub(p.now)
	// An application that starts with the server takes a few seconds longer, and nothing is served until then.
	if !p.serves && (p.failed || p.closed) {
		return retryEmpty
	}
	// A refresh that failed has not found out what is left.
	if p.failed {
		return never
	}
	if p.isLeft {
		return max(soon, next)
	}
	if next > 0 {
		// Yet not so soon that refreshing takes more than its share of the time.
		return max(next, p.spared())
	}
	return never
}

// untilDates is the pause until a date can be decided, or an article becomes news or is none any more.
func (p *prospects) untilDates() time.Duration {
	pause := never
	for _, at := range []time.Time{p.datesDue, p.newsDue} {
		if !p.failed && !at.IsZero() {
			pause = min(pause, max(at.Sub(p.now), soon, p.spared()))
		}
	}
	return pause
}

// untilFiles is the pause until changes of files are looked for that were told, or may have been missed.
func (p *prospects) untilFiles() time.Duration {
	pause := never
	if p.isChanged {
		// Where files are written all the time, each refresh probes, too: its requests keep to their share of the rate.
		probed := min(p.begun.Add(p.probes).Sub(p.now), p.probes)
		pause = max(p.spared(), probed)
	}
	// Until the second scan, which begins to watch, nothing tells of what is saved in the first minute of a site.
	if !p.failed && p.changes == areToldNext {
		pause = min(pause, max(soon, p.cost))
	}
	return pause
}

// untilList is the pause until the next document of the site's own sitemaps can be read.
func (p *prospects) untilList() time.Duration {
	if p.failed || !p.listLeft {
		return never
	}
	return max(soon, p.nextList.Sub(p.now))
}

// plan plans the next refresh of the site, and returns when it is due. Nothing else does, save who requests one at once.
func (s *site) plan(p prospects) time.Time {
	at := due(p)
	s.schedule.At(at)
	return at
}

// prospects are those after a refresh that began at begun, or after a part of it.
func (s *site) prospects(out *report.Refresh, begun time.Time) prospects {
	probed := s.probed.Load()
	p := prospects{
		now:      s.app.now(),
		begun:    begun,
		interval: s.handler.settings.interval,
		isGiven:  s.handler.RefreshInterval != 0,
		cost:     out.Cost,
		probes:   s.probesTake(probed),
		failed:   out.Result == outcome.Failed,
		serves:   s.published().snapshot != nil,
		closed:   probed != nil && probed.robots.closed,
		isLeft:   out.Crawled.Generation != nil && !out.Crawled.Done,
		next:     time.Unix(out.Crawled.Next, 0),
		datesDue: out.DatesDue,
		newsDue:  out.NewsSpan.Until,
		changes:  s.awareness(out),
		absences: s.absences,
	}
	p.isChanged = s.isChanged(begun)
	// What an operator wants fetched stays with the site until a crawl has begun with it, which these results had none of.
	hadNoCrawl := out.Result == outcome.Failed || out.Result == outcome.Followed || out.Result == outcome.Later
	p.hasRefetch = hadNoCrawl && s.state.refetch.Load() != nil
	if own := s.own.Load(); own != nil && own.unread > 0 {
		p.listLeft = true
		p.nextList = s.handler.limiter.Next()
	}
	return p
}

// probesTake returns the shortest interval at which the probes of all sites of the handler, each a request for a front page,
// take a twentieth of the rate of upstreams. The front pages of a hundred sites may be those of one application. Sites of a
// rank below the site's do not count: visitors can make up any number of hosts.
func (s *site) probesTake(probed *probeResult) time.Duration {
	if probed == nil || !probed.proxied {
		return 0
	}
	perProbe := time.Duration(shareOfTime * float64(time.Second) / s.handler.limiter.Rate())
	return perProbe * time.Duration(s.handler.probedSites(s.rank()))
}

// conclude plans the next refresh after one that has ended.
func (s *site) conclude(out *report.Refresh, begun time.Time) {
	// What is told meanwhile is known either here or to who plans next.
	s.planning.Lock()
	defer s.planning.Unlock()
	p := s.prospects(out, begun)
	s.prospected = &p
	s.resting.Store(p.changes == areTold && !p.isGiven)
	s.addShared(&p, out.Result)
	at := s.plan(p)
	if out.IsSettled() && !s.app.isSuperseded() {
		// The next configuration goes on from here, unless it looks at the site otherwise.
		next := nextRefresh{at, s.fetcher.digest()}
		s.amend(func(served *publication) { served.next = next })
	}
}

// addShared adds what the processes that share the site plan, after a refresh with a result.
func (s *site) addShared(p *prospects, result outcome.Result) {
	member := s.state.fleet
	// Nobody commits for an alias, nor by the settings of a configuration that was superseded.
	isCommitted := result != outcome.Alias && result != outcome.Superseded
	if member == nil || !isCommitted {
		return
	}
	isLeft := result == outcome.Followed || result == outcome.Later
	// A process that waits for the storage, with nothing to serve, begins when that is read or its patience is over.
	isJoining := isLeft && !p.serves
	// Until something is committed, each process plans as if it were alone.
	if member.IsEmpty() && !isJoining {
		return
	}
	p.shared = true
	p.sharedDue = member.DueFor(s.standing())
	p.isFollowed = isLeft
}

// refreshWhenDue refreshes the site when it is due, until it is stopped.
func (s *site) refreshWhenDue() {
	if s.published().snapshot != nil {
		// Until then, another app may fail to start, and it is the configuration before that goes on.
		_ = s.app.await(s.ctx, s.app.serving)
	}
	for {
		// What a crawl has left of a host that visitors named needs no other request for its sitemap.
		needsRequest := s.onDemand && !s.goesOn
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
	s.firstLook = s.isFirstLook()
	s.runs++
	s.planning.Lock()
	s.prospected = nil
	s.planning.Unlock()
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
	if out.IsKnown() {
		s.setReady()
	}
	s.checkSetup()
	s.logWatched()
	s.noteListed()
	s.noteAbsence(&out)
	hasCrawled := out.IsSettled() && out.Crawled.Generation != nil
	s.goesOn = hasCrawled && !out.Crawled.Done
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
