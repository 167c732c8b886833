package sitemap

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
)

func init() {
	caddy.RegisterModule(new(adminAPI))
}

// adminAPI shows, refreshes and explains the sites through Caddy's admin endpoint.
type adminAPI struct{}

// CaddyModule returns the Caddy module information.
func (*adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.sitemap",
		New: func() caddy.Module { return new(adminAPI) },
	}
}

// Routes implements [caddy.AdminRouter].
func (*adminAPI) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: "GET /sitemap/sites", Handler: adminHandler("site", sites)},
		{Pattern: "POST /sitemap/refresh", Handler: adminHandler("site", refreshSites)},
		{Pattern: "GET /sitemap/explain", Handler: adminHandler("url", explain)},
	}
}

// adminHandler responds with what the running app says of one query parameter. The
// endpoint's own configuration may be starting, or have failed to start.
func adminHandler(parameter string, respond func(context.Context, *App, string) (any, error)) caddy.AdminHandler {
	return caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		query, err := url.ParseQuery(r.URL.RawQuery)
		for key, values := range query {
			if key != parameter || len(values) > 1 { // a misspelt one must not mean all sites
				err = fmt.Errorf("the query has '%s': only one '%s' is allowed", key, parameter)
			}
		}
		if err != nil {
			return caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: err}
		}
		running, err := caddy.ActiveContext().AppIfConfigured("sitemap")
		if err != nil {
			err = errors.New("no site of the running configuration has a sitemap")
			return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: err}
		}
		v, err := respond(r.Context(), running.(*App), query.Get(parameter))
		if _, ok := errors.AsType[caddy.APIError](err); err != nil && !ok {
			err = caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: err}
		}
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(v)
	})
}

// sitesStatus is the response to a request for sites.
type sitesStatus struct {
	Sites []siteStatus `json:"sites"`
}

// sites returns the status of all sites, or of one.
func sites(_ context.Context, a *App, url string) (any, error) {
	wanted, err := a.sitesNamed(url)
	return statuses(wanted), err
}

// refreshSites refreshes all sites, or one, and returns their status afterwards.
func refreshSites(ctx context.Context, a *App, url string) (any, error) {
	wanted, err := a.sitesNamed(url)
	failed := make(chan error, len(wanted))
	for _, s := range wanted {
		go func() { failed <- s.refreshNow(ctx) }()
	}
	for range wanted {
		err = errors.Join(err, <-failed)
	}
	return statuses(wanted), err
}

func statuses(sites []*site) sitesStatus {
	all := sitesStatus{Sites: []siteStatus{}}
	for _, s := range sites {
		all.Sites = append(all.Sites, s.status())
	}
	return all
}

// sitesNamed are the sites whose URL this is, or that of whose sitemap; "": all.
func (a *App) sitesNamed(raw string) ([]*site, error) {
	if raw == "" {
		return a.allSites(), nil
	}
	found, path, err := a.sitesAt(raw)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(s *site) bool {
		return strings.TrimSuffix(path, "/") != s.prefix && path != s.docPath("", ".xml")
	})
	if len(found) == 0 {
		return nil, a.noSite()
	}
	return found, nil
}

// sitesAt are the sites of an absolute URL's scheme, host and port, else those of its host,
// and the URL's path.
func (a *App) sitesAt(raw string) (found []*site, path string, err error) {
	u, err := origin.ParseURL(raw)
	if err != nil {
		return nil, "", caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: fmt.Errorf("not the URL of a page, such as https://example.com/page: %w", err)}
	}
	found = slices.DeleteFunc(a.allSites(), func(s *site) bool { return s.origin != u.Origin() && s.internal.origin != u.Origin() })
	if len(found) == 0 {
		found = slices.DeleteFunc(a.allSites(), func(s *site) bool { return s.id.host != u.Host })
	}
	return found, u.Path, nil
}

// noSite is the error of a URL that no sitemap covers.
func (a *App) noSite() error {
	const most = 10
	var urls []string
	for _, s := range a.allSites() {
		urls = append(urls, s.url()+"/")
	}
	urls = slices.Compact(urls)
	err := fmt.Errorf("no sitemap covers this URL: there are %d sites, such as %s", len(urls), strings.Join(urls[:min(len(urls), most)], ", "))
	if len(urls) == 0 {
		err = errors.New("no sitemap covers this URL: there is no site yet; one that the configuration does not name is created by its first request")
	}
	return caddy.APIError{HTTPStatus: http.StatusNotFound, Err: err}
}

// siteStatus is what the admin API shows of a site.
type siteStatus struct {
	Site     string `json:"site"`                // scheme, host, port and prefix
	Sitemap  string `json:"sitemap"`             // the URL of the sitemap, or index
	NamedBy  string `json:"named_by"`            // configuration or visitors
	ServedBy string `json:"served_by,omitempty"` // the site whose documents stand for this one's

	// What is served.
	Pages  int       `json:"pages"`
	Shards int       `json:"shards,omitempty"`
	Bytes  int64     `json:"bytes,omitempty"` // of memory, compressed
	Since  time.Time `json:"since,omitzero"`  // when the sitemap, or its index, last changed

	Refreshing  bool      `json:"refreshing,omitempty"`
	NextRefresh time.Time `json:"next_refresh,omitzero"`
	LastRefresh *report   `json:"last_refresh,omitempty"` // nil: none has ended

	// What links and visitors name: paths with a record, those that visitors had, and those
	// for which there was no room; and why visits do not count, where few do.
	Known   int            `json:"known,omitempty"`
	Visited int            `json:"visited,omitempty"`
	Dropped int            `json:"visited_dropped,omitempty"`
	Ignored map[string]int `json:"visits_ignored,omitempty"`

	Logs []logStatus `json:"logs,omitempty"` // that are read for all sites of the handler

	// Who requested its documents, by User-Agent, which is not verified.
	Readers []Reading `json:"readers_unverified,omitempty"`
}

// What named a site.
const (
	namedByConfiguration = "configuration"
	namedByVisitors      = "visitors"
)

// status is what there is to show of a site.
func (s *site) status() siteStatus {
	st := siteStatus{Site: s.url(), Sitemap: s.sitemapURL(), NamedBy: namedByConfiguration, Readers: s.state.readers.list()}
	if s.onDemand {
		st.NamedBy = namedByVisitors
	}
	if main := s.main.Load(); main != nil {
		st.ServedBy, st.Sitemap = main.url(), main.sitemapURL()
		return st
	}
	st.Refreshing, st.LastRefresh = s.schedule.isRunning(), s.state.report.Load()
	if due, ok := s.schedule.next(); ok {
		st.NextRefresh = toSecond(due)
	}
	if snapshot := s.state.Index.Load(); snapshot != nil {
		st.Pages, st.Shards, st.Bytes = snapshot.Pages, max(len(snapshot.Shards), 1), snapshot.Bytes
		st.Since = toSecond(snapshot.Index.Modified)
	}
	if d := s.handler.discovery; d != nil {
		st.Ignored, st.Logs = d.visits.ignored(), s.handler.logStatuses()
		st.Visited, st.Dropped = s.state.visited.count()
		if g := s.state.generation.Load(); g != nil {
			st.Known = g.Len()
		}
	}
	return st
}

func toSecond(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// Results of refreshes.
const (
	refreshChanged   = "changed"   // other documents than before are served
	refreshUnchanged = "unchanged" // the same documents as before
	refreshEmpty     = "empty"     // no page is listed
	refreshHeldBack  = "held_back" // pages that are missing stay listed until later refreshes confirm it
	refreshFailed    = "failed"    // it was not completed; what was published stays

	refreshAlias      = "alias"      // another site's documents stand for this one's
	refreshSuperseded = "superseded" // the next configuration refreshes the site
)

// report is what the last refresh of a site came to, for the admin API, metrics and the
// store. It is immutable, and data alone: it outlives a configuration.
type report struct {
	At        time.Time           `json:"at"` // when it began
	Seconds   float64             `json:"duration_seconds"`
	Result    string              `json:"result"`                // one of those above, but for the last two
	Reason    string              `json:"reason,omitempty"`      // why it failed, is held back, or lists nothing
	Confirmed time.Time           `json:"confirmed_at,omitzero"` // when the last refresh began that neither failed nor is held back
	Pages     int                 `json:"pages"`                 // that are listed
	Pending   int                 `json:"pending,omitempty"`     // that are still to be fetched
	Sources   []sourceReport      `json:"sources,omitempty"`     // and own sitemaps that could not be read
	LeftOut   map[string]int      `json:"left_out,omitempty"`    // by reason, most of which are names of index statuses
	Examples  map[string][]string `json:"examples,omitempty"`    // paths of some of these, by reason
	Warnings  []string            `json:"warnings,omitempty"`    // of the sources
}

// sourceReport is what a source contributed.
type sourceReport struct {
	Source string `json:"source"`           // its module's name
	Pages  int    `json:"pages"`            // that it named, including those that are left out
	Error  string `json:"error,omitempty"`  // why it could not be read; "": it could
	Unread bool   `json:"unread,omitempty"` // nor could it be when the pages were last confirmed
}

// lastReport is that on the last refresh; the zero value: there has been none.
func (s *site) lastReport() *report { return cmp.Or(s.state.report.Load(), new(report)) }

// report keeps, counts and logs what a refresh came to.
func (s *site) report(r result, begun time.Time, took time.Duration) {
	if r.outcome == refreshAlias || r.outcome == refreshSuperseded || s.ctx.Err() != nil {
		return
	}
	before := s.lastReport()
	rep := *before
	rep.At, rep.Seconds, rep.Result, rep.Reason = toSecond(begun), took.Round(time.Microsecond).Seconds(), r.outcome, r.reason
	if rep.Pages = pagesOf(s.state.Index.Load()); r.err != nil {
		rep.Result, rep.Reason = refreshFailed, clip(r.err.Error())
	} else {
		rep.add(s.handler.sourceNames, &r, before)
	}
	s.state.report.Store(&rep)
	s.log(&r, &rep, before)
	if (rep.Result == refreshFailed || rep.Result == refreshHeldBack) && !rep.resembles(before) {
		s.app.events.announce(s, eventFailed, map[string]any{"reason": rep.Reason})
	}
}

func (r *report) resembles(o *report) bool { return r.Result == o.Result && r.Reason == o.Reason }

// add adds what a refresh found that did not fail.
func (r *report) add(sourceNames []string, out *result, before *report) {
	r.Pending, r.Sources = out.crawled.Pending, make([]sourceReport, len(sourceNames))
	for i := range r.Sources {
		r.Sources[i].Source = sourceNames[i]
		if i < len(out.merged.Counts) {
			r.Sources[i].Pages = out.merged.Counts[i]
		}
	}
	if r.Reason == "" && r.Pages > 0 {
		// The pages of a source that cannot be read stay, and nothing confirms them.
		if r.Reason = newFailures(out.merged.Failed, before); r.Reason != "" {
			r.Result = refreshHeldBack
		}
	}
	if r.Result != refreshHeldBack {
		r.Confirmed = r.At
	}
	for _, f := range out.merged.Failed {
		failed := sourceReport{Source: f.Name, Error: clip(f.Err.Error()), Unread: r.Result != refreshHeldBack || before.isUnread(f.Input)}
		if f.Input < len(r.Sources) {
			failed.Pages = r.Sources[f.Input].Pages
			r.Sources[f.Input] = failed
		} else {
			r.Sources = append(r.Sources, failed)
		}
	}
	if r.Warnings = nil; out.source != nil {
		r.Warnings, _ = out.source.said()
	}
	if out.selected.Generation != nil {
		r.LeftOut, r.Examples = leftOutOf(out)
	}
}

// isUnread reports whether a source could not be read when the pages were last confirmed.
func (r *report) isUnread(source int) bool {
	return r.Confirmed.IsZero() || source < len(r.Sources) && r.Sources[source].Unread
}

func pagesOf(snapshot *publish.Snapshot) int {
	if snapshot == nil {
		return 0
	}
	return snapshot.Pages
}

// newFailures names the sources that could be read when the pages were last confirmed; "":
// there is none. The pages of a source that was never read are not missing.
func newFailures(failed []merge.InputError, before *report) string {
	var all []string
	for _, f := range failed {
		if !before.isUnread(f.Input) {
			all = append(all, fmt.Sprintf("source %d (%s) could not be read", f.Input+1, f.Name))
		}
	}
	return strings.Join(all, "; ")
}

// leftOutOf counts the pages that are not listed, by reason, with some examples. What no
// source names any more, and what waits to be fetched, does not count; what is excluded
// counts where it is gathered.
func leftOutOf(out *result) (leftOut map[string]int, examples map[string][]string) {
	leftOut, examples = make(map[string]int), make(map[string][]string)
	byStage := []map[string]int{out.merged.LeftOut, {"alternates not mutual": out.selected.NotMutual.Count, "over max_paths": out.crawled.DroppedPaths}}
	if out.source != nil {
		_, bySources := out.source.said()
		byStage = append(byStage, bySources)
	}
	if out.snapshot != nil {
		byStage = append(byStage, out.snapshot.LeftOut)
	}
	for _, counts := range byStage {
		for reason, n := range counts {
			leftOut[reason] += n
		}
	}
	for _, status := range indexing.Statuses() {
		switch of := out.selected.LeftOut[status]; status {
		case indexing.Indexable, indexing.Excluded, indexing.Absent, indexing.Pending:
		default:
			if leftOut[status.String()] += of.Count; of.Count > 0 {
				examples[status.String()] = of.First
			}
		}
	}
	maps.DeleteFunc(leftOut, func(_ string, n int) bool { return n == 0 })
	return leftOut, examples
}

// log writes the log lines of a refresh.
func (s *site) log(r *result, rep, before *report) {
	l, set, probed := s.logger, &s.handler.settings, cmp.Or(s.probed.Load(), new(probeResult))
	l.onceIf(r.err != nil, zapcore.ErrorLevel, "failed", "sitemap refresh failed; the published sitemap stays", zap.Error(r.err))
	if r.err != nil {
		return
	}
	for _, f := range r.merged.Failed {
		if panicked, ok := errors.AsType[*merge.PanicError](f.Err); ok {
			l.once(zapcore.ErrorLevel, "panic "+f.Name, "a source of pages panicked", zap.String("source", f.Name),
				zap.Any("panic", panicked.Value), zap.ByteString("stack", panicked.Stack))
		}
	}
	err := joinFailures(r.merged.Failed)
	l.onceIf(err != nil, zapcore.ErrorLevel, "sources", "gathering pages failed", zap.Error(err))
	if r.source != nil {
		l.forgetWarnings(r.source)
	}
	l.onceIf(probed.robots.closed && !set.crawl.Off, zapcore.WarnLevel, "robots", "robots.txt cannot be fetched, or returns an error, so no page is fetched")

	fields := []zap.Field{zap.Int("pages", rep.Pages), zap.Int("pending", rep.Pending)}
	var counts, examples []string
	for _, reason := range slices.Sorted(maps.Keys(rep.LeftOut)) {
		counts = append(counts, fmt.Sprintf("%s: %d", reason, rep.LeftOut[reason]))
		if first := rep.Examples[reason]; first != nil {
			examples = append(examples, reason+": "+strings.Join(first, " "))
		}
	}
	if counts != nil {
		fields = append(fields, zap.Strings("left_out", counts), zap.Strings("examples", examples))
	}
	if rep.Result == refreshHeldBack && !rep.resembles(before) {
		l.Warn("sitemap change held back until later refreshes confirm it", zap.String("reason", rep.Reason),
			zap.Int("pages", cmp.Or(r.found, rep.Pages)), zap.Int("pages_before", before.Pages))
	}
	level, message := zapcore.DebugLevel, "sitemap refreshed, nothing changed"
	switch {
	case rep.Result == refreshEmpty:
		l.empty(rep, probed, append(fields, zap.String("path", s.internal.prefix+set.path)))
		return
	case r.outcome == refreshChanged:
		level, message = zapcore.InfoLevel, "sitemap refreshed"
	case r.outcome == refreshHeldBack:
		message = "sitemap refreshed, a change is held back"
	case rep.Pages != before.Pages || rep.Pending != before.Pending || !maps.Equal(rep.LeftOut, before.LeftOut):
		level = zapcore.InfoLevel
	}
	l.clear("empty")
	logger := l.Logger
	if level == zapcore.DebugLevel {
		logger = s.handler.logger.With(zap.String("site", s.url())) // all of them: see newSiteLog
	}
	logger.Log(level, message, append(fields, zap.Float64("seconds", rep.Seconds))...)
	if r.selected.Generation != nil {
		l.selection(set, r, rep)
	}
}

// empty says why no page is listed.
func (l *siteLog) empty(rep *report, probed *probeResult, fields []zap.Field) {
	level := zapcore.WarnLevel
	switch rep.Reason {
	case "":
		if rep.Pending > 0 {
			return // too early to tell
		}
	case reasonRefused, reasonAbsent:
		level = zapcore.InfoLevel
	}
	l.once(level, "empty", cmp.Or(rep.Reason, "no page to list, so there is no sitemap"), append(fields, zap.String("root", probed.root),
		zap.Int("status", cmp.Or(probed.refused, probed.absent, probed.status)))...)
}

// selection says what stands out among the pages as a whole.
func (l *siteLog) selection(set *settings, r *result, rep *report) {
	selected := &r.selected
	total := selected.Listed
	for _, of := range selected.LeftOut {
		total += of.Count
	}
	foreign, unwilling := selected.LeftOut[indexing.CanonicalForeign], selected.LeftOut[indexing.NoIndex]
	n := foreign.Count + unwilling.Count
	l.onceIf(2*n > total, zapcore.WarnLevel, "unwilling",
		"more than half of the pages name a canonical on another site or ask not to be indexed, so they are not listed: is base_url right?",
		zap.Int("pages", n), zap.Int("of", total), zap.Strings("first", slices.Concat(foreign.First, unwilling.First)))

	disallowed := selected.LeftOut[indexing.Disallowed]
	var words []string
	for _, path := range disallowed.First {
		words = append(words, set.crawl.disallow.Match(path))
	}
	l.onceIf(2*disallowed.Count > total, zapcore.WarnLevel, "disallowed",
		"more than half of the pages are never requested, because of a word or pattern in 'crawl disallow'",
		zap.Strings("disallow", slices.Compact(words)), zap.Int("pages", disallowed.Count), zap.Int("of", total), zap.Strings("first", disallowed.First))

	complete := !r.partial && rep.Pending == 0 // else links may still be found
	l.onceIf(complete && selected.Orphans.Count > 0 && !set.omitOrphans, zapcore.InfoLevel, "orphans", "some listed pages have no incoming links",
		zap.Int("pages", selected.Orphans.Count), zap.Strings("first", selected.Orphans.First))

	over := rep.LeftOut[indexing.OverMax.String()] + rep.LeftOut[publish.NoRoom]
	l.onceIf(over > 0, zapcore.WarnLevel, "over", "not all pages fit into the sitemap", zap.Int("left_out", over),
		zap.Int("max_urls", set.maxURLs), zap.Int("shard_urls", set.shardURLs))
}

// Interface guard
var _ caddy.AdminRouter = (*adminAPI)(nil)
