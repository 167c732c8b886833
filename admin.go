package sitemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"golang.org/x/sync/errgroup"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/replica"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/terminal"
	"github.com/seed3295b519/caddy-sitemap/internal/visits"
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
		{Pattern: "GET /sitemap/sites", Handler: adminHandler(sites, "site")},
		{Pattern: "POST /sitemap/refresh", Handler: adminHandler(sites, "site", repeatable)},
		{Pattern: "GET /sitemap/explain", Handler: adminHandler(explain, "url", "site")},
	}
}

// repeatable is the only query parameter that may be given several times.
const repeatable = "fetch"

// adminHandler responds with what the running app says of the query, which has no other parameters than these. The
// endpoint's own configuration may be starting, or have failed to start.
func adminHandler(respond func(r *http.Request, a *App, query url.Values) (any, error), parameters ...string) caddy.AdminHandler {
	return caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		query, err := parseQuery(r, parameters)
		if err != nil {
			return caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: err}
		}
		running, err := caddy.ActiveContext().AppIfConfigured("sitemap")
		if err != nil {
			err = errors.New("no site of the running configuration has a sitemap")
			return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: err}
		}
		v, err := respond(r, running.(*App), query)
		if _, ok := errors.AsType[caddy.APIError](err); ok {
			return err
		} else if err != nil {
			return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: err}
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(v)
	})
}

// parseQuery returns the query of a request, which may have these parameters only.
func parseQuery(r *http.Request, parameters []string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	for key, values := range query {
		isAllowed := slices.Contains(parameters, key) && (len(values) == 1 || key == repeatable)
		// A misspelt 'site' must not mean all sites.
		if !isAllowed {
			return nil, fmt.Errorf("the query has '%s': %s", key, allowed(parameters))
		}
	}
	return query, nil
}

// allowed says which parameters a query may have.
func allowed(parameters []string) string {
	var all []string
	for _, name := range parameters {
		number := "only one"
		if name == repeatable {
			number = "any number of"
		}
		all = append(all, fmt.Sprintf("%s '%s'", number, name))
	}
	text := strings.Join(all, " and ")
	if len(all) > 1 {
		return text + " are allowed"
	}
	return text + " is allowed"
}

// maxNames is how many sites an error names.
const maxNames = 10

// What names a site: hosts in the configuration, or the requests of visitors.
const (
	namedByConfiguration = "configuration"
	namedByVisitors      = "visitors"
)

// sites returns the status of all sites, or of that whose URL the query has, or that of whose sitemap. A POST has them
// refreshed first, or the sites of the pages that are to be fetched.
func sites(r *http.Request, a *App, query url.Values) (any, error) {
	wanted, err := a.sitesOf(query.Get("site"))
	if err != nil {
		return nil, err
	}
	refetches, err := a.refetchesOf(r.Context(), query[repeatable], wanted)
	if err != nil {
		return nil, err
	}
	// What is wanted is noted before any refresh begins, so that none of these begins without it.
	for s, w := range refetches {
		s.state.addRefetch(w)
	}
	// Pages alone mean their own sites. With a site, that is shown even where none of its pages is named.
	namesPages := len(refetches) > 0 && query.Get(repeatable) != fetchAll
	if namesPages && query.Get("site") == "" {
		wanted = slices.DeleteFunc(wanted, func(s *site) bool {
			_, hasRefetch := refetches[s]
			return !hasRefetch
		})
	}
	var refreshes errgroup.Group
	for _, s := range wanted {
		if r.Method == http.MethodPost {
			refreshes.Go(func() error { return s.refreshNow(r.Context()) })
		}
	}
	err = refreshes.Wait()
	all := make([]siteStatus, 0, len(wanted))
	for _, s := range wanted {
		st := s.status()
		if _, hasRefetch := refetches[s]; hasRefetch {
			st.PagesDue = s.pagesDue(r.Context())
		}
		all = append(all, st)
	}
	return summarize(all), err
}

// sitesOf are the sites with this URL, or this URL of their sitemap; else those whose URLs have this part, which must be one
// URL. "": all sites.
func (a *App) sitesOf(wanted string) ([]*site, error) {
	if wanted == "" {
		return a.allSites(), nil
	}
	part := strings.ToLower(strings.TrimSuffix(wanted, "/"))
	found := a.sitesThat(func(s *site) bool { return slices.Contains(s.urlNames(), part) })
	if len(found) > 0 {
		return found, nil
	}
	found = a.sitesThat(func(s *site) bool {
		return slices.ContainsFunc(s.urlNames(), func(name string) bool { return strings.Contains(name, part) })
	})
	if len(found) == 0 {
		problem := fmt.Sprintf("no site has a URL with '%s'", terminal.Clip(wanted))
		return nil, listingSites(http.StatusNotFound, problem, a.allSites())
	}
	isOther := func(s *site) bool { return s.url() != found[0].url() }
	if slices.ContainsFunc(found, isOther) {
		problem := fmt.Sprintf("'%s' is part of the URLs of several sites", terminal.Clip(wanted))
		return nil, listingSites(http.StatusBadRequest, problem, found)
	}
	return found, nil
}

// urlNames are the URLs of the site and its sitemap in lowercase, as visitors and as the server know it.
func (i *identity) urlNames() []string {
	document := i.docPath(".xml")
	names := []string{
		i.origin + i.prefix, i.internalOrigin + i.prefix,
		i.origin + document, i.internalOrigin + document,
	}
	for n, name := range names {
		names[n] = strings.ToLower(name)
	}
	return names
}

// sitesAt returns the sites with the scheme, host and port of the URL of a page, else those of its host, and the URL's path.
// The error is an APIError.
func (a *App) sitesAt(raw string) (found []*site, path string, err error) {
	u, err := origin.ParseURL(raw)
	if err != nil {
		err = fmt.Errorf("not the URL of a page, such as https://example.com/page: %w", err)
		return nil, "", caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: err}
	}
	found = a.sitesThat(func(s *site) bool { return s.origin == u.Origin() || s.internalOrigin == u.Origin() })
	// Whoever writes http for https, or no port, means the site all the same.
	if len(found) == 0 {
		found = a.sitesThat(func(s *site) bool { return s.id.host == u.Host })
	}
	return found, u.Path, nil
}

// noSite is the error of a URL that no sitemap covers.
func (a *App) noSite() error {
	return listingSites(http.StatusNotFound, "no sitemap covers this URL", a.allSites())
}

// listingSites is an error that lists the URLs of sites, ten at most.
func listingSites(status int, problem string, sites []*site) error {
	var urls []string
	for _, s := range sites {
		urls = append(urls, s.url()+"/")
	}
	if n := len(urls) - maxNames; n > 0 {
		urls = append(urls[:maxNames], fmt.Sprintf("and %d more", n))
	}
	err := fmt.Errorf("%s; sites: %s", problem, strings.Join(urls, ", "))
	return caddy.APIError{HTTPStatus: status, Err: err}
}

// siteStatus is what the admin API shows of a site.
type siteStatus struct {
	Site     string `json:"site"`                // scheme, host, port and prefix
	Sitemap  string `json:"sitemap"`             // the URL of the sitemap, or index
	NamedBy  string `json:"named_by"`            // configuration or visitors
	ServedBy string `json:"served_by,omitempty"` // the site whose documents stand for this one's

	Problem string       `json:"problem,omitempty"` // what an operator is to look at; "": nothing
	Paused  *pauseStatus `json:"paused,omitempty"`  // nil: pages are requested

	// What is served.
	Pages  int       `json:"pages"`
	Shards int       `json:"shards,omitempty"`
	Bytes  int64     `json:"bytes,omitempty"` // of memory, compressed
	Since  time.Time `json:"since,omitzero"`  // when the sitemap, or its index, last changed

	Sections []sectionStatus `json:"sections,omitempty"`

	NextRefresh time.Time      `json:"next_refresh,omitzero"`
	Refreshing  *stage         `json:"refreshing,omitempty"`   // nil: no refresh is under way
	LastRefresh *report.Report `json:"last_refresh,omitempty"` // nil: none has ended

	PagesDue *int `json:"pages_due,omitempty"` // now, at the pace of `crawl rate`; nil: this request wants none to be fetched again

	Storage *storageStatus `json:"storage,omitempty"` // nil: it is not shared

	Announced    []announce.Status `json:"announced,omitempty"`     // to search engines and hubs
	NotAnnounced string            `json:"not_announced,omitempty"` // why nothing is, although the configuration says so

	Writes crawl.WriteCounts `json:"writes,omitzero"` // of the last hour

	Visited int          `json:"visited,omitempty"`         // paths that visitors had
	Dropped int          `json:"visited_dropped,omitempty"` // those for which there was no room
	Logs    []visits.Log `json:"logs,omitempty"`            // that are read for all sites of the handler
}

// status is what there is to show of a site.
func (s *site) status() siteStatus {
	st := siteStatus{Site: s.url(), Sitemap: s.sitemap, NamedBy: namedByConfiguration}
	if s.onDemand {
		st.NamedBy = namedByVisitors
	}
	// An alias serves nothing, and is not refreshed: the rest is told of its main site.
	if main := s.main.Load(); main != nil {
		st.ServedBy = main.url()
		st.Sitemap = main.sitemap
		return st
	}
	if probed := s.probed.Load(); probed != nil && probed.movedTo != "" {
		st.ServedBy = probed.movedTo
		return st
	}
	served := s.published()
	if s.mayRefresh() {
		st.NextRefresh = toSecond(s.schedule.Due())
	}
	st.Paused = s.pauseStatus()
	st.LastRefresh = served.report
	st.Refreshing = s.stage.Load()
	if snapshot := served.snapshot; snapshot != nil {
		st.Pages = snapshot.Pages
		st.Shards = max(len(snapshot.Shards), 1)
		st.Bytes = snapshot.Bytes
		st.Since = toSecond(snapshot.Index.Modified)
		st.Sections = s.sectionsStatus(served)
	}
	if s.node != nil {
		st.Storage = s.storageStatus()
		st.confirmBy(st.Storage)
	}
	if rep := st.LastRefresh; rep != nil && rep.Result == outcome.Empty {
		explained := *rep
		explained.Reason = s.whyEmpty(rep)
		st.LastRefresh = &explained
	}
	if s.announces() {
		st.Announced = s.state.announcer.Status(s.app.now())
	}
	if s.wantsAnnouncements() && s.private {
		st.NotAnnounced = whyUnannounced
	}
	s.addVisits(&st)
	st.Problem = st.problem(s.isAbsent())
	return st
}

// pauseStatus is what there is to show of a pause in which no page is requested but, unless the status is 429, the front page.
type pauseStatus struct {
	Until  time.Time `json:"until"`
	Status int       `json:"status,omitempty"` // of the response that has led to it; 0: there was none
}

// pauseStatus returns the pause of the site; nil: there is none.
func (s *site) pauseStatus() *pauseStatus {
	p := s.handler.limiter.Paused()
	if p == nil {
		return nil
	}
	return &pauseStatus{Until: toSecond(p.Until), Status: p.Status}
}

// confirmBy takes the last sign of life of the leader for the time of the last refresh: it leads only while its refreshes succeed.
func (st *siteStatus) confirmBy(storage *storageStatus) {
	rep := st.LastRefresh
	if rep == nil || storage.Leads || storage.Leader == "" {
		return
	}
	if rep.Result != outcome.Published && rep.Result != outcome.Unchanged {
		return
	}
	confirmed := *rep // a report never changes
	confirmed.Confirmed = toSecond(storage.Seen)
	st.LastRefresh = &confirmed
}

// addVisits adds what is known of writes, and of visits where a source discovers pages.
func (s *site) addVisits(st *siteStatus) {
	st.Writes = s.state.writes.Counts(s.app.now())
	if s.discovery() == nil {
		return
	}
	for _, r := range s.handler.logs {
		if logs := r.logs.Load(); logs != nil {
			st.Logs = append(st.Logs, *logs...)
		}
	}
	st.Visited, st.Dropped = s.state.visited.Count()
}

// storageStatus is what there is to show of the storage that a site's processes share.
type storageStatus struct {
	replica.Status
	Key   string `json:"key"`             // prefix of the keys: processes with the same one share the site
	State string `json:"state,omitempty"` // why nothing is served, or only what this process has found; "": neither
}

// States of a process that has not read the storage yet.
const (
	stateWaits = "waiting" // nothing is served
	stateAlone = "alone"   // what it has found by itself is
)

func (s *site) storageStatus() *storageStatus {
	status := storageStatus{Status: s.node.Status(), Key: s.node.Prefix}
	switch s.fleetRole() {
	case roleWaits:
		status.State = stateWaits
	case roleAlone:
		status.State = stateAlone
	}
	return &status
}

// stage is what a refresh is at, and since when.
type stage struct {
	Stage string    `json:"stage"`
	Since time.Time `json:"since"`
}

// Stages of a refresh that can take long.
const (
	stageProbe  = "fetching the front page and robots.txt"
	stageHangs  = "the front page or robots.txt does not respond: the disk or upstream hangs"
	stageGather = "gathering pages, and fetching those that are due"
)

// enter notes that the site's refresh is at another stage.
func (s *site) enter(name string) *stage {
	at := &stage{name, toSecond(s.app.now())}
	s.stage.Store(at)
	return at
}

// whyEmpty returns why the last refresh, whose report is given, found no page to list.
func (s *site) whyEmpty(rep *report.Report) string {
	if rep.Reason != "" {
		return rep.Reason
	}
	if probed := s.probed.Load(); probed != nil && probed.robots.closed && !s.handler.settings.crawl.Off {
		if probed.robots.status == 0 {
			return "robots.txt does not respond, so no page is fetched"
		}
		return fmt.Sprintf("robots.txt returns status %d, so no page is fetched", probed.robots.status)
	}
	return rep.WhyEmpty()
}

func toSecond(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// Interface guard
var _ caddy.AdminRouter = (*adminAPI)(nil)
