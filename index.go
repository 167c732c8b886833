package sitemap

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
)

// publication is what a site serves, and how it came about. It never changes: what is learnt makes another one, which takes
// its place in one step. Requests, operators, the next refresh, the next configuration and the next process read it as a
// whole.
type publication struct {
	site string // URL of its sitemap

	snapshot     *document.Set // nil: nothing is served
	lastSnapshot *document.Set // the last one that was not nil: the names of its shards and sections still work
	sections     sections      // by which the pages of snapshot are in its documents

	generation *record.Generation // of records, as of the last selection, also if that was not served; nil: it is not known
	selectedBy uint64             // digest of what else that depended on
	probed     *probeResult       // of the last refresh; nil: it is not known
	built      time.Duration      // how long selecting and building took
	cost       time.Duration      // of the last refresh: see report.Refresh

	history outcome.History
	report  *report.Report // of the last refresh, for operators; nil: there was none
	next    nextRefresh
}

// nextRefresh is what the next configuration needs to know to go on from a publication.
type nextRefresh struct {
	due    time.Time // zero: at once, as a refresh is under way, or the last one has not succeeded
	digest uint64    // of the settings and routes for which this holds
}

// published returns what the site serves. It is never nil.
func (s *site) published() *publication { return s.state.published.Load().at(s.sitemap) }

// at returns what a site serves of what its state had published. If that was at another URL, none of the documents is
// served, but their names still work.
func (p *publication) at(site string) *publication {
	if p.site == site {
		return p
	}
	return &publication{site: site, lastSnapshot: p.lastSnapshot, report: p.report}
}

// amend replaces the publication by a changed copy that serves the same, or what was restored.
func (s *site) amend(change func(next *publication)) (before, next *publication) {
	for {
		before = s.state.published.Load()
		amended := *before
		change(&amended)
		if s.state.published.CompareAndSwap(before, &amended) {
			return before, &amended
		}
	}
}

// isCurrent reports whether selecting again, from a generation by the same settings, would change nothing: no loss is to be
// confirmed, no record to be learnt again, no date to be decided now, and the news are those of now. goesOn: the refresh goes on.
func (p *publication) isCurrent(records *record.Generation, selectedBy uint64, goesOn bool, now time.Time) bool {
	if p.snapshot == nil || p.selectedBy != selectedBy {
		return false
	}
	if !p.history.Since.IsZero() || !p.history.Lost.IsZero() {
		return false
	}
	if p.history.Partial && !goesOn {
		return false
	}
	if due := p.history.DatesDue; !due.IsZero() && !now.Before(due) {
		return false
	}
	if p.report != nil && !p.report.News.IsCurrent(p.report.At, now) {
		return false
	}
	return crawl.Same(records, p.generation)
}

const recordBytes = 32 // of a compressed record, roughly

// bytes returns how much memory it takes, roughly.
func (p *publication) bytes() (n int64) {
	if p.generation != nil {
		n += int64(p.generation.Len()) * recordBytes
	}
	if p.snapshot != nil {
		n += p.snapshot.Bytes
	}
	return n
}

// publish makes the site serve what was decided, and tells of it. What cannot be stored is stored by the next refresh.
func (s *site) publish(ctx context.Context, r *refreshing, sel selection, d decision) report.Refresh {
	// The next configuration may have published: by these settings, pages that it excludes would be listed again.
	if s.app.isSuperseded() {
		return ended(outcome.Superseded)
	}
	before := r.served
	snapshot := sel.snapshot
	// Equal documents are not replaced: clients and the feed see no other ones.
	if d.verdict == keep || before.snapshot.Equal(snapshot) {
		snapshot = before.snapshot
	}
	out := s.result(r, sel, d, snapshot)
	next := s.publicationOf(r, &out)
	if d.verdict != keep {
		next.sections = s.handler.settings.sections
	}
	if s.node != nil && s.fleetRole() != roleAlone {
		if !s.share(ctx, r, next, &out) {
			return ended(outcome.Later)
		}
		if !s.swap(r, next) {
			return ended(outcome.Superseded)
		}
		s.tell(r, before, &out)
		s.tellAnnouncer(ctx, before.snapshot, &out)
		return out
	}
	// No request waits for the storage, which may be slow.
	if !s.swap(r, next) {
		return ended(outcome.Superseded)
	}
	s.tell(r, before, &out)
	s.store(r, &out)
	s.tellAnnouncer(ctx, before.snapshot, &out)
	return out
}

// swap makes a publication what is served; false: the next configuration has published meanwhile. What else was noted
// meanwhile, such as that a refresh of the configuration before failed, is replaced, too.
func (s *site) swap(r *refreshing, next *publication) bool {
	for {
		stored := s.state.published.Load()
		now := stored.at(s.sitemap)
		if now.snapshot != r.served.snapshot || now.generation != r.served.generation {
			return false
		}
		if s.state.published.CompareAndSwap(stored, next) {
			break
		}
	}
	r.served = next
	s.isPatient = s.isHurried && r.hasTimedOut()
	// Whether there is none is known at the end of the refresh.
	if next.snapshot != nil {
		s.setReady()
	}
	return true
}

// store writes what was published, if pages were selected, or the last write failed.
func (s *site) store(r *refreshing, out *report.Refresh) {
	r.adopt(&out.Selected)
	isStored := !out.Selected.IsMade() && !r.records.Unsaved
	if isStored || s.handler.settings.crawl.Off {
		return
	}
	// Visitors can make up any number of hosts, each of which may have pages. It is stored once it is known.
	if s.rank() == schedule.Fresh {
		r.records.Unsaved = true
		return
	}
	s.logState("commit", r.records.Write(r.served.snapshot, r.served.meta(s.digest()), !record.Waits))
}

// adopt makes the records those of a selection.
func (r *refreshing) adopt(selected *indexing.Result) {
	if selected.IsMade() {
		r.records.Generation = selected.Generation
	}
}

// result is what there is to tell of a refresh, or of a part of it, that is published.
func (s *site) result(r *refreshing, sel selection, d decision, snapshot *document.Set) report.Refresh {
	now := s.app.now()
	out := report.Refresh{
		Outcome:  d.ending(r.served.snapshot, snapshot),
		Changed:  r.served.snapshot != snapshot, // equal documents are the same
		Begun:    r.start,
		Took:     now.Sub(r.start),
		Cost:     r.cost,
		Partial:  r.goesOn,
		Crawled:  r.crawled,
		Selected: sel.result,
		Snapshot: snapshot,
	}
	if r.source != nil {
		out.Merged = r.candidates.Result()
		out.Warnings, out.Skipped = r.source.result()
		if r.crawled.Gathered {
			r.source.clearOldWarnings()
		}
		isComplete := r.crawled.Done && len(out.Merged.Failed) == 0
		hasBuilt := sel.result.IsMade() && snapshot != nil
		if isComplete && hasBuilt {
			s.logUnmatched()
		}
	}
	out.DatesDue = r.served.history.DatesDue
	if sel.result.IsMade() {
		out.DatesDue = sel.result.DatesDue
		if sel.snapshot != nil {
			out.News = sel.snapshot.News
		}
	}
	out.Cost += r.gatherCost(&out)
	return out
}

// publicationOf returns what is served after a refresh.
func (s *site) publicationOf(r *refreshing, out *report.Refresh) *publication {
	next := *r.served
	next.snapshot = out.Snapshot
	if out.Snapshot != nil {
		next.lastSnapshot = out.Snapshot
	}
	if out.Selected.IsMade() {
		next.generation = out.Selected.Generation
	}
	next.selectedBy = r.selectedBy
	next.probed = r.probed
	next.built = r.built
	next.cost = out.Cost
	next.history = r.served.history.After(out.Outcome, outcome.Ended{
		Begun:    r.start.UTC().Truncate(time.Second),
		Failed:   failedSources(out.Merged.Failed),
		Selected: out.Selected.IsMade(),
		Partial:  out.Partial,
		Lost:     r.lost(),
		DatesDue: out.DatesDue,
	})
	next.report = s.reportOf(out, &next)
	return &next
}

func failedSources(failed []merge.InputError) map[int]string {
	names := make(map[int]string)
	for _, f := range failed {
		names[f.Input] = f.Name
	}
	return names
}

// tell tells operators of what was published in place of another publication.
func (s *site) tell(r *refreshing, before *publication, out *report.Refresh) {
	if out.Changed {
		s.state.writes.NoteChange(s.app.now())
	}
	s.app.events.emitRefreshed(s, before.snapshot, out)
	if s.ctx.Err() != nil {
		return
	}
	served := r.served
	s.log(out, before, served)
	s.logProbed(out, served.report)
	isComplete := served.report.Pages > 0 && served.report.Pending == 0
	isMissing := func(suffix string) bool { return isComplete && served.snapshot.Find(suffix) == nil }
	s.logger.OnceIf(s.handler.Feed && isMissing(document.Feed), zap.WarnLevel, "feed",
		"there is no feed yet, as no page has a date: declare dates in the pages, or set 'lastmod mtime'")
	s.logger.OnceIf(s.handler.News != nil && isMissing(document.NewsSitemap), zap.WarnLevel, "news",
		"there is no news sitemap yet, as no article was published: "+
			"declare dates of publication in the pages, as by a NewsArticle of JSON-LD")
}

// fail notes that a refresh failed. What is served stays.
func (s *site) fail(out report.Refresh, begun time.Time) {
	// The next configuration tells how its own refreshes end.
	if s.app.isSuperseded() {
		return
	}
	out.Begun = begun
	out.Took = s.app.now().Sub(begun)
	before, next := s.amend(func(p *publication) {
		p.history = p.history.After(out.Outcome, outcome.Ended{})
		p.report = s.reportOf(&out, p)
	})
	s.log(&out, before, next)
}

// log logs a refresh, and emits that it failed or held something back.
func (s *site) log(out *report.Refresh, before, next *publication) {
	out.Log(s.logger, s.handler.logger.With(zap.String("site", s.url())), next.report, before.report)
	now := out.Outcome
	last := before.history.Last
	isTrouble := now.Result == outcome.Failed || now.Result == outcome.HeldBack
	// Trouble that lasts is told once, and not with each refresh.
	isNew := now.Result != last.Result || now.Reason != last.Reason
	if isTrouble && isNew {
		s.app.events.emit(s, "sitemap_refresh_failed", map[string]any{"reason": next.report.Reason})
	}
}

// reportOf returns the report of a refresh. next is what is served after it, yet with the report before.
func (s *site) reportOf(out *report.Refresh, next *publication) *report.Report {
	out.Pages = pagesOf(next.snapshot)
	out.MaxPages = s.handler.settings.maxURLs
	out.Sources = s.inputNames()
	rep := out.Report(next.history, next.report)
	n := len(rep.Sources)
	if n > 0 && s.discovery() == nil {
		// Most sites of files have no sitemaps of their own, which is nothing to tell.
		last := rep.Sources[n-1]
		if last.Source == ownSitemaps && last.Pages == 0 && last.Error == "" {
			rep.Sources = rep.Sources[:n-1]
		}
	}
	return rep
}

// gatherCost returns what gathering has cost, besides selecting and building. A refresh without a change gathers and does nothing
// else: if that cost nothing, it would begin at each interval however long it takes.
func (r *refreshing) gatherCost(out *report.Refresh) time.Duration {
	// Waiting for a source that fails is no work.
	if len(out.Merged.Failed) > 0 {
		return 0
	}
	// With crawl off, gathering has taken all the rest of the time.
	if r.crawling == nil {
		return out.Took - out.Cost
	}
	return max(r.crawled.GatherTime, 0)
}

// ended returns the result of a refresh of which nothing is reported.
func ended(r outcome.Result) report.Refresh {
	return report.Refresh{Outcome: outcome.Outcome{Result: r}}
}

// failed returns the result of a refresh that was not completed.
func failed(err error) report.Refresh { return report.Refresh{Outcome: outcome.Fail(err)} }

// meta is what is stored of a publication besides its records and documents.
type meta struct {
	Sitemap  string          `json:"sitemap,omitempty"` // publication.site
	Settings uint64          `json:"settings"`          // digest of the settings: see identity.digest
	Selected uint64          `json:"selected"`          // publication.selectedBy
	History  outcome.History `json:"history,omitzero"`
	Report   *report.Report  `json:"report,omitempty"`
	Probed   storedProbe     `json:"probed,omitzero"`
}

func (p *publication) meta(settings uint64) meta {
	m := meta{
		Sitemap:  p.site,
		Settings: settings,
		Selected: p.selectedBy,
		History:  p.history,
		Report:   p.report,
	}
	if p.probed != nil {
		m.Probed = storeProbe(p.probed)
	}
	return m
}

// storedProbe is what is stored of a probe: what a process needs to know that does not probe the site itself.
type storedProbe struct {
	Blocked       string `json:"blocked,omitempty"`
	Status        int    `json:"status,omitempty"`
	Remedy        string `json:"remedy,omitempty"`
	MovedTo       string `json:"moved_to,omitempty"`
	CanonicalHost string `json:"canonical_host,omitempty"`
	ByLinks       bool   `json:"by_links,omitempty"`
	Root          string `json:"root,omitempty"`
	FS            string `json:"fs,omitempty"`
	Robots        string `json:"robots,omitempty"` // rules
	Closed        bool   `json:"closed,omitempty"` // robots.txt cannot be fetched
}

func storeProbe(p *probeResult) storedProbe {
	return storedProbe{
		Blocked:       p.blocked,
		Status:        p.status,
		Remedy:        p.remedy,
		MovedTo:       p.movedTo,
		CanonicalHost: p.canonicalHost,
		ByLinks:       p.byLinks,
		Root:          p.root,
		FS:            p.fs,
		Robots:        p.robots.rules.String(),
		Closed:        p.robots.closed,
	}
}

func (s storedProbe) probe() *probeResult {
	p := &probeResult{
		blocked:       s.Blocked,
		status:        s.Status,
		remedy:        s.Remedy,
		movedTo:       s.MovedTo,
		canonicalHost: s.CanonicalHost,
		byLinks:       s.ByLinks,
	}
	p.root = s.Root
	p.fs = s.FS
	p.robots.closed = s.Closed
	p.robots.rules = robotstxt.ReadRules([]byte("User-agent: *\n"+s.Robots), "")
	return p
}

// restore opens the site's records, unless they are open. After a restart, it serves what was published before, if that was
// with the same settings; in a fleet, also what another node has published since.
func (s *site) restore(ctx context.Context, r *record.Records) error {
	s.adopt()
	var m meta
	before := s.published()
	var snapshot *document.Set
	damaged := func(key string, err error) {
		s.logger.Warn("the stored records are damaged: their pages are fetched again",
			zap.String("key", key), zap.Error(err))
	}
	err := r.Open(ctx, &m, damaged, func(ctx context.Context, stored json.RawMessage, g *record.Generation) (err error) {
		snapshot, err = document.Restore(ctx, stored, g, before.snapshot)
		return err
	})
	// Damage was told above.
	isDamaged := errors.Is(err, record.ErrDamaged)
	if !isDamaged {
		s.logState("open", err)
	}
	if err == nil && m.Settings != 0 {
		s.restorePublication(ctx, before, snapshot, m, r.Generation)
	}
	if isDamaged {
		s.amend(func(next *publication) { next.history.Lost = s.app.now() })
	}
	return err
}

// restorePublication makes what was stored the publication.
func (s *site) restorePublication(
	ctx context.Context, before *publication, snapshot *document.Set, m meta, records *record.Generation,
) {
	isShared := s.node != nil
	s.loadAnnouncer(ctx, isShared) // which has the key of the others
	// Those of the process that leads count for all.
	isSame := isShared || m.Settings == s.digest()
	isServed := isShared || isSame && snapshot != nil && before.snapshot == nil
	s.amend(func(next *publication) {
		if before.snapshot == nil {
			next.site = m.Sitemap
		}
		if isSame {
			next.site = s.sitemap
		}
		if isShared || before.report == nil {
			next.history = m.History
			next.history.Since = record.ClampTime(m.History.Since)
			next.report = m.Report
			next.probed = m.Probed.probe()
		}
		// Documents by other settings, such as of sections, are not served, but their names still work.
		if !isServed {
			next.lastSnapshot = cmp.Or(next.lastSnapshot, snapshot)
			return
		}
		next.snapshot = snapshot
		next.sections = s.handler.settings.sections
		if snapshot != nil {
			next.lastSnapshot = snapshot
		}
		next.generation = records
		next.selectedBy = m.Selected
	})
	if isServed {
		s.becomeKnown()
		s.setReady()
	}
}

func pagesOf(snapshot *document.Set) int {
	if snapshot == nil {
		return 0
	}
	return snapshot.Pages
}
