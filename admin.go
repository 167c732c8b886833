package sitemap

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
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
func (a *adminAPI) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: "/sitemap/sites", Handler: a.route(http.MethodGet, a.sites)},
		{Pattern: "/sitemap/refresh", Handler: a.route(http.MethodPost, a.refresh)},
		{Pattern: "/sitemap/explain", Handler: a.route(http.MethodGet, a.explain)},
		{Pattern: "/sitemap/", Handler: caddy.AdminHandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
			return apiError(http.StatusNotFound, fmt.Errorf("there is no '%s': there are /sitemap/sites, /sitemap/refresh and /sitemap/explain", r.URL.Path))
		})},
	}
}

// route handles one method, with the running app.
func (a *adminAPI) route(method string, respond func(*App, *http.Request) (any, error)) caddy.AdminHandler {
	return caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != method && (r.Method != http.MethodHead || method != http.MethodGet) {
			w.Header().Set("Allow", method)
			return apiError(http.StatusMethodNotAllowed, fmt.Errorf("the method is %s: it must be %s", r.Method, method))
		}
		app, err := a.app()
		if err != nil {
			return apiError(http.StatusServiceUnavailable, err)
		}
		v, err := respond(app, r)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(v)
	})
}

var errNoApp = errors.New("no site of the running configuration has a sitemap")

// app is that of the running configuration. The endpoint's own configuration may still be
// starting, and must not be used meanwhile, or may have failed to start.
func (a *adminAPI) app() (*App, error) {
	app, err := caddy.ActiveContext().AppIfConfigured("sitemap")
	if err != nil {
		return nil, errNoApp
	}
	return app.(*App), nil
}

// sites returns the status of all sites, or of one.
func (a *adminAPI) sites(app *App, r *http.Request) (any, error) {
	sites, err := wantedSites(app, r)
	if err != nil {
		return nil, err
	}
	return statuses(sites), nil
}

// refresh refreshes all sites, or one, and returns their status afterwards.
func (a *adminAPI) refresh(app *App, r *http.Request) (any, error) {
	sites, err := wantedSites(app, r)
	if err != nil {
		return nil, err
	}
	failed := make(chan error, len(sites))
	for _, s := range sites {
		go func() { failed <- s.refreshNow(r.Context()) }()
	}
	for range sites {
		err = errors.Join(err, <-failed)
	}
	if err != nil {
		return nil, apiError(http.StatusServiceUnavailable, err)
	}
	return statuses(sites), nil
}

// wantedSites are those that the query of a request names, or all.
func wantedSites(app *App, r *http.Request) ([]*site, error) {
	url, given, err := parameter(r, "site")
	if err != nil {
		return nil, err
	}
	if !given {
		return app.allSites(), nil
	}
	sites, err := sitesNamed(app, url)
	if err != nil {
		return nil, apiError(http.StatusBadRequest, err)
	}
	if len(sites) == 0 {
		return nil, apiError(http.StatusNotFound, noSiteOf(app.allSites()))
	}
	return sites, nil
}

// parameter is the one parameter that a request may have. A misspelt one must not mean all
// sites.
func parameter(r *http.Request, name string) (value string, given bool, err error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", false, apiError(http.StatusBadRequest, fmt.Errorf("reading the query: %w", err))
	}
	for key, values := range query {
		if key != name || len(values) > 1 {
			return "", false, apiError(http.StatusBadRequest, fmt.Errorf("the query has '%s': only one '%s' is allowed", key, name))
		}
	}
	return query.Get(name), query.Has(name), nil
}

// explain returns why a URL is listed, or is not.
func (a *adminAPI) explain(app *App, r *http.Request) (any, error) {
	url, _, err := parameter(r, "url")
	if err != nil {
		return nil, err
	}
	explanation, err := explain(r.Context(), app, url)
	switch {
	case err == nil:
		return explanation, nil
	case errors.Is(err, errNotURL):
		return nil, apiError(http.StatusBadRequest, err)
	case errors.Is(err, errNoSite):
		return nil, apiError(http.StatusNotFound, err)
	}
	return nil, apiError(http.StatusServiceUnavailable, err)
}

// sitesStatus is the response to a request for sites.
type sitesStatus struct {
	Sites []siteStatus `json:"sites"`
}

func statuses(sites []*site) sitesStatus {
	all := sitesStatus{Sites: []siteStatus{}}
	for _, s := range sites {
		all.Sites = append(all.Sites, s.status())
	}
	return all
}

func apiError(status int, err error) error {
	return caddy.APIError{HTTPStatus: status, Err: err}
}

var (
	errNotURL = errors.New("not the URL of a page")
	errNoSite = errors.New("no sitemap covers this URL")
)

const (
	maxURLLength  = 64 << 10 // bytes of a URL that is asked for
	maxNamedSites = 10       // in an error
)

// pageURL is the URL of a page, as operators write it.
type pageURL struct {
	scheme, host, port string
	path               string // canonical, with its query
}

// parsePageURL reads an absolute URL. The error wraps errNotURL.
func parsePageURL(raw string) (pageURL, error) {
	if len(raw) > maxURLLength {
		return pageURL{}, fmt.Errorf("%w: it has more than %d bytes", errNotURL, maxURLLength)
	}
	parsed, err := url.Parse(raw)
	switch {
	case err != nil:
		var cause *url.Error
		if errors.As(err, &cause) {
			err = cause.Err // without all of the URL
		}
		return pageURL{}, fmt.Errorf("%w: %.200q", errNotURL, err.Error())
	case parsed.Scheme != "http" && parsed.Scheme != "https", parsed.Opaque != "", parsed.Host == "":
		return pageURL{}, fmt.Errorf("%w: it must be absolute, such as https://example.com/page", errNotURL)
	case parsed.User != nil:
		return pageURL{}, fmt.Errorf("%w: it has a user name", errNotURL)
	}
	u := pageURL{scheme: parsed.Scheme}
	var isHost, isPort bool
	u.host, isHost = origin.CleanHost(parsed.Host)
	if u.port, isPort = origin.CleanPort(parsed.Scheme, parsed.Host); !isHost || !isPort {
		return pageURL{}, fmt.Errorf("%w: its host or port is invalid", errNotURL)
	}
	path := cmp.Or(parsed.EscapedPath(), "/")
	if parsed.RawQuery != "" {
		path += "?" + parsed.RawQuery
	}
	if u.path, err = page.Canonical(path); err != nil {
		return pageURL{}, fmt.Errorf("%w: %w", errNotURL, err)
	}
	return u, nil
}

// sitesAt are the sites of a URL's scheme, host and port: by the origin of their pages,
// else as the server knows them.
func sitesAt(a *App, u pageURL) []*site {
	all := a.allSites()
	origins := []string{origin.Of(u.scheme, u.host, u.port)}
	if u.port == strconv.Itoa(a.httpPort) || u.port == strconv.Itoa(a.httpsPort) {
		origins = append(origins, origin.Of(u.scheme, u.host, "")) // as URLs leave it out
	}
	for _, known := range []func(*site) string{
		func(s *site) string { return s.origin }, func(s *site) string { return s.internal.origin },
	} {
		for _, origin := range origins {
			var found []*site
			for _, s := range all {
				if known(s) == origin {
					found = append(found, s)
				}
			}
			if found != nil {
				return found
			}
		}
	}
	return nil
}

// sitesNamed are the sites of a URL, which may be a site's or its sitemap's. The error
// wraps errNotURL.
func sitesNamed(a *App, raw string) ([]*site, error) {
	u, err := parsePageURL(raw)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(sitesAt(a, u), func(s *site) bool {
		return strings.TrimSuffix(u.path, "/") != s.prefix && u.path != s.docPath("", ".xml")
	}), nil
}

// noSiteOf is errNoSite with the sites that there are.
func noSiteOf(all []*site) error {
	var urls []string
	for _, s := range all {
		urls = append(urls, s.url()+"/")
	}
	urls = slices.Compact(urls)
	switch n := len(urls); {
	case n == 0:
		return fmt.Errorf("%w: there is no site yet; one that the configuration does not name is created by its first request", errNoSite)
	case n > maxNamedSites:
		return fmt.Errorf("%w: there are %d sites, such as %s", errNoSite, n, strings.Join(urls[:maxNamedSites], ", "))
	}
	return fmt.Errorf("%w: the sites are %s", errNoSite, strings.Join(urls, ", "))
}

// What named a site.
const (
	namedByConfiguration = "configuration"
	namedByVisitors      = "visitors"
)

// siteStatus is what the admin API shows of a site.
type siteStatus struct {
	Site    string `json:"site"`    // scheme, host, port and prefix
	Sitemap string `json:"sitemap"` // the URL of its sitemap, or index
	NamedBy string `json:"named_by"`

	// The site whose documents stand for this one's; this one is not refreshed.
	ServedBy string `json:"served_by,omitempty"`

	// What is served.
	Pages     int        `json:"pages"`
	Pending   int        `json:"pending"` // pages that are still to be fetched
	Shards    int        `json:"shards"`
	Bytes     int64      `json:"bytes"`                  // of memory, compressed
	Since     *time.Time `json:"since,omitempty"`        // when the sitemap, or its index, last changed
	Confirmed *time.Time `json:"confirmed_at,omitempty"` // when the last refresh began that confirmed it

	Refreshing  bool           `json:"refreshing"`
	LastRefresh *refreshStatus `json:"last_refresh,omitempty"`
	NextRefresh *time.Time     `json:"next_refresh,omitempty"`

	// Where pages come from, and why others are not listed.
	Sources    []sourceReport      `json:"sources,omitempty"`
	LeftOut    map[string]int      `json:"left_out,omitempty"` // by reason
	Examples   map[string][]string `json:"examples,omitempty"` // some paths of each reason
	Warnings   []string            `json:"warnings,omitempty"` // of the last refresh
	Discovered *discoveredStatus   `json:"discovered,omitempty"`

	// Who requested its documents, by User-Agent, which is not verified.
	Readers []Reading `json:"readers_unverified,omitempty"`
}

// refreshStatus is what the last refresh came to.
type refreshStatus struct {
	At       time.Time `json:"at"`
	Duration float64   `json:"duration_seconds"`
	Result   string    `json:"result"` // changed, unchanged, empty, held_back or failed
	Reason   string    `json:"reason,omitempty"`
}

// discoveredStatus is what is known of the paths that links and visitors name.
type discoveredStatus struct {
	Known   int `json:"known"`   // paths with a record, including those that sources name
	Visited int `json:"visited"` // paths that visitors had
	Dropped int `json:"dropped"` // visited paths for which there was no room

	// Visits that do not count, by reason, where they are nine tenths of all or more.
	Ignored map[string]int `json:"visits_ignored,omitempty"`
}

// status is what there is to show of a site.
func (s *site) status() siteStatus {
	st := siteStatus{
		Site: s.url(), Sitemap: s.sitemapURL(), NamedBy: namedByConfiguration,
		Refreshing: s.schedule.isRunning(), Readers: s.state.readers.list(),
	}
	if s.onDemand {
		st.NamedBy = namedByVisitors
	}
	if main := s.main.Load(); main != nil {
		st.ServedBy, st.Sitemap = main.url(), main.sitemapURL()
		return st
	}
	if due, ok := s.schedule.next(); ok {
		st.NextRefresh = utc(due)
	}
	if snapshot := s.state.Index.Load(); snapshot != nil {
		st.Pages, st.Shards, st.Bytes = snapshot.Pages, len(documentsOf(snapshot)), snapshot.Bytes
		st.Since = utc(snapshot.Index.Modified)
	}
	if r := s.lastReport(); r != nil {
		st.add(r)
	}
	if d := s.handler.discovery; d != nil {
		st.Discovered = &discoveredStatus{Ignored: d.visits.ignored()}
		st.Discovered.Visited, st.Discovered.Dropped = s.state.visited.count()
		if g := s.state.generation.Load(); g != nil {
			st.Discovered.Known = g.Len()
		}
	}
	return st
}

// add adds what the last refresh came to.
func (st *siteStatus) add(r *report) {
	st.Pending, st.Sources, st.LeftOut, st.Examples, st.Warnings = r.pending, r.sources, r.leftOut, r.examples, r.warnings
	st.LastRefresh = &refreshStatus{At: r.begun.UTC(), Duration: r.took.Seconds(), Result: r.outcome, Reason: r.reason}
	if !r.confirmed.IsZero() {
		st.Confirmed = utc(r.confirmed)
	}
}

func utc(t time.Time) *time.Time {
	t = t.UTC().Truncate(time.Second)
	return &t
}

// Interface guard
var _ caddy.AdminRouter = (*adminAPI)(nil)
