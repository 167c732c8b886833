package sitemap

import (
	"cmp"
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
	"golang.org/x/sync/errgroup"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
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
		{Pattern: "POST /sitemap/refresh", Handler: adminHandler("site", sites)},
		{Pattern: "GET /sitemap/explain", Handler: adminHandler("url", explain)},
	}
}

// adminHandler responds with what the running app says of one query parameter. The
// endpoint's own configuration may be starting, or have failed to start.
func adminHandler(parameter string, respond func(r *http.Request, a *App, value string) (any, error)) caddy.AdminHandler {
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
		v, err := respond(r, running.(*App), query.Get(parameter))
		if _, ok := errors.AsType[caddy.APIError](err); ok {
			return err
		} else if err != nil {
			return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: err}
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(v)
	})
}

// sitesStatus is the response to a request for sites.
type sitesStatus struct {
	Sites []siteStatus `json:"sites"`
}

// sites returns the status of all sites, or of that whose URL it is given, or that of whose
// sitemap. A POST has them refreshed first.
func sites(r *http.Request, a *App, url string) (any, error) {
	wanted := a.allSites()
	if url != "" {
		found, path, err := a.sitesAt(url)
		if err != nil {
			return nil, err
		}
		wanted = slices.DeleteFunc(found, func(s *site) bool {
			return strings.TrimSuffix(path, "/") != s.prefix && path != s.docPath("", ".xml")
		})
		if len(wanted) == 0 {
			return nil, a.noSite()
		}
	}
	var refreshes errgroup.Group
	for _, s := range wanted {
		if r.Method == http.MethodPost {
			refreshes.Go(func() error { return s.refreshNow(r.Context()) })
		}
	}
	err := refreshes.Wait()
	all := sitesStatus{Sites: []siteStatus{}}
	for _, s := range wanted {
		all.Sites = append(all.Sites, s.status())
	}
	return all, err
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
	var urls []string
	for _, s := range a.allSites() {
		urls = append(urls, s.url()+"/")
	}
	return caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("no sitemap covers this URL; there are %d sites: %s",
		len(urls), strings.Join(urls[:min(len(urls), 10)], ", "))}
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

	NextRefresh time.Time `json:"next_refresh,omitzero"`
	LastRefresh *report   `json:"last_refresh,omitempty"` // nil: none has ended

	Visited int                 `json:"visited,omitempty"`            // paths that visitors had
	Dropped int                 `json:"visited_dropped,omitempty"`    // those for which there was no room
	Ignored map[string]int      `json:"visits_ignored,omitempty"`     // why visits do not count, where few do
	Logs    []accesslog.Log     `json:"logs,omitempty"`               // that are read for all sites of the handler
	Readers []accesslog.Reading `json:"readers_unverified,omitempty"` // who requested its documents, by User-Agent
}

// status is what there is to show of a site.
func (s *site) status() siteStatus {
	st := siteStatus{Site: s.url(), Sitemap: s.sitemapURL(), NamedBy: "configuration", Readers: s.state.readers.List()}
	if s.onDemand {
		st.NamedBy = "visitors"
	}
	if main := s.main.Load(); main != nil {
		st.ServedBy, st.Sitemap = main.url(), main.sitemapURL()
		return st
	}
	due, _, _ := s.schedule.State()
	st.NextRefresh, st.LastRefresh = toSecond(due), s.state.report.Load()
	if snapshot := s.state.Index.Load(); snapshot != nil {
		st.Pages, st.Shards, st.Bytes = snapshot.Pages, max(len(snapshot.Shards), 1), snapshot.Bytes
		st.Since = toSecond(snapshot.Index.Modified)
	}
	if d := s.handler.discovery; d != nil {
		st.Ignored = d.filter.Ignored()
		for _, r := range s.handler.logs {
			st.Logs = append(st.Logs, r.Logs()...)
		}
		st.Visited, st.Dropped = s.state.visited.Count()
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

// ownSitemaps is the source that comes after those of the handler.
const ownSitemaps = "own sitemaps"

// lastReport is that on the last refresh; the zero value: there has been none.
func (s *site) lastReport() *report { return cmp.Or(s.state.report.Load(), new(report)) }

// report keeps and logs what a refresh came to.
func (s *site) report(r result, begun time.Time, took time.Duration) {
	if r.outcome == refreshAlias || r.outcome == refreshSuperseded || s.ctx.Err() != nil {
		return
	}
	before := s.lastReport()
	rep := *before
	rep.At, rep.Seconds, rep.Result, rep.Reason = toSecond(begun), took.Round(time.Microsecond).Seconds(), r.outcome, r.reason
	if rep.Pages = pagesOf(s.state.Index.Load()); r.err != nil {
		rep.Result, rep.Reason = refreshFailed, clip(r.err.Error())
		s.logger.Once(zapcore.ErrorLevel, "failed", "sitemap refresh failed; the published sitemap stays", zap.Error(r.err))
	} else {
		rep.add(s.handler.sourceNames, &r, before)
		s.log(&r, &rep, before)
	}
	s.state.report.Store(&rep)
	if rep.Result != refreshFailed && rep.Result != refreshHeldBack || rep.Result == before.Result && rep.Reason == before.Reason {
		return
	}
	if rep.Result == refreshHeldBack {
		s.logger.Warn("sitemap change held back until later refreshes confirm it", zap.String("reason", rep.Reason),
			zap.Int("pages", cmp.Or(r.found, rep.Pages)), zap.Int("pages_before", before.Pages))
	}
	s.app.events.announce(s, "sitemap_refresh_failed", map[string]any{"reason": rep.Reason})
}

// add adds what a refresh found that did not fail.
func (r *report) add(names []string, out *result, before *report) {
	if r.Reason == "" && r.Pages > 0 {
		// The pages of a source that cannot be read stay, and nothing confirms them.
		if r.Reason = newFailures(out.merged.Failed, before); r.Reason != "" {
			r.Result = refreshHeldBack
		}
	}
	if r.Result != refreshHeldBack {
		r.Confirmed = r.At
	}
	r.Pending, r.Sources, r.Warnings = out.crawled.Pending, nil, nil
	for i, n := range out.merged.Counts {
		r.Sources = append(r.Sources, sourceReport{Source: slices.Concat(names, []string{ownSitemaps})[i], Pages: n})
	}
	for _, f := range out.merged.Failed {
		failed := &r.Sources[f.Input]
		failed.Error, failed.Unread = clip(f.Err.Error()), r.Result != refreshHeldBack || before.isUnread(f.Input)
	}
	if out.source != nil {
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
	stages := []map[string]int{out.merged.LeftOut, {"alternates not mutual": out.selected.NotMutual.Count, "over max_paths": out.crawled.DroppedPaths}}
	if out.source != nil {
		_, bySources := out.source.said()
		stages = append(stages, bySources)
	}
	if out.snapshot != nil {
		stages = append(stages, out.snapshot.LeftOut)
	}
	for _, status := range indexing.Statuses() {
		switch of := out.selected.LeftOut[status]; {
		case status == indexing.Indexable, status == indexing.Excluded, status == indexing.Absent, status == indexing.Pending, of.Count == 0:
		default:
			examples[status.String()] = of.First
			stages = append(stages, map[string]int{status.String(): of.Count})
		}
	}
	for _, counts := range stages {
		for reason, n := range counts {
			leftOut[reason] += n
		}
	}
	maps.DeleteFunc(leftOut, func(_ string, n int) bool { return n == 0 })
	return leftOut, examples
}

// log writes the log lines of a refresh that did not fail.
func (s *site) log(r *result, rep, before *report) {
	l, set, probed, selected := s.logger, &s.handler.settings, cmp.Or(s.probed.Load(), new(probeResult)), &r.selected
	l.Clear("failed")
	err := joinFailures(r.merged.Failed)
	failure := []zap.Field{zap.Error(err)}
	if panicked, ok := errors.AsType[*merge.PanicError](err); ok {
		failure = append(failure, zap.ByteString("stack", panicked.Stack))
	}
	l.OnceIf(err != nil, zapcore.ErrorLevel, "sources", "gathering pages failed", failure...)
	if r.source != nil {
		r.source.forgetWarnings()
	}
	l.OnceIf(probed.robots.closed && !set.crawl.Off, zapcore.WarnLevel, "robots", "robots.txt cannot be fetched, or returns an error, so no page is fetched")
	fields := []zap.Field{zap.Int("pages", rep.Pages), zap.Int("pending", rep.Pending), zap.Float64("seconds", rep.Seconds)}
	if len(rep.LeftOut) > 0 {
		fields = append(fields, zap.Any("left_out", rep.LeftOut), zap.Any("examples", rep.Examples))
	}
	if rep.Result == refreshEmpty {
		level := zapcore.WarnLevel
		if probed.blocked == reasonRefused || probed.blocked == reasonAbsent { // the visitor's word, or as the operator wants it
			level = zapcore.InfoLevel
		}
		if rep.Reason != "" || rep.Pending == 0 { // else it is too early to tell
			l.Once(level, "empty", cmp.Or(rep.Reason, "no page to list, so there is no sitemap"), append(slices.Clone(fields[3:]), zap.String("root", probed.root),
				zap.String("path", s.internal.prefix+set.path), zap.Int("status", probed.status))...)
		}
		return
	}
	l.Clear("empty")
	switch {
	case r.outcome == refreshChanged:
		l.Info("sitemap refreshed", fields...)
	case r.outcome == refreshUnchanged && (rep.Pages != before.Pages || rep.Pending != before.Pending || !maps.Equal(rep.LeftOut, before.LeftOut)):
		l.Info("sitemap refreshed, nothing changed", fields...)
	default: // of sites on demand, too
		s.handler.logger.Debug("sitemap refreshed, nothing changed", append(fields, zap.String("site", s.url()))...)
	}
	if selected.Generation == nil {
		return
	}
	total := selected.Listed
	for _, of := range selected.LeftOut {
		total += of.Count
	}
	for _, status := range []indexing.Status{indexing.NoIndex, indexing.CanonicalForeign, indexing.Disallowed} { // a setting may be wrong
		of := selected.LeftOut[status]
		var words []string
		for _, path := range of.First {
			if word := set.crawl.disallow.Match(path); status == indexing.Disallowed && !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
		l.OnceIf(2*of.Count > total, zapcore.WarnLevel, status.String(), "more than half of the pages are not listed",
			zap.Stringer("reason", status), zap.String("remedy", status.Remedy()), zap.Strings("disallow", words), zap.Int("pages", of.Count), zap.Int("of", total), zap.Strings("first", of.First))
	}
	over := rep.LeftOut[indexing.OverMax.String()] + rep.LeftOut[publish.NoRoom]
	l.OnceIf(over > 0, zapcore.WarnLevel, "over", "not all pages fit into the sitemap", zap.Int("left_out", over),
		zap.Int("max_urls", set.maxURLs), zap.Int("shard_urls", set.shardURLs))
	complete := !r.partial && rep.Pending == 0 // else links may still be found
	l.OnceIf(complete && selected.Orphans.Count > 0 && !set.omitOrphans, zapcore.InfoLevel, "orphans", "some listed pages have no incoming links",
		zap.Int("pages", selected.Orphans.Count), zap.Strings("first", selected.Orphans.First))
}

// Interface guard
var _ caddy.AdminRouter = (*adminAPI)(nil)
