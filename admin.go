package sitemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/caddyserver/caddy/v2"
)

func init() {
	caddy.RegisterModule(new(adminAPI))
}

// adminAPI tells of the sites, and has them refreshed, through Caddy's admin endpoint.
type adminAPI struct{}

// CaddyModule returns the Caddy module information.
func (*adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.sitemap",
		New: func() caddy.Module { return new(adminAPI) },
	}
}

// Routes are those of the API.
func (a *adminAPI) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: "/sitemap/sites", Handler: a.of(http.MethodGet, a.sites)},
		{Pattern: "/sitemap/refresh", Handler: a.of(http.MethodPost, a.refresh)},
		{Pattern: "/sitemap/explain", Handler: a.of(http.MethodGet, a.explain)},
		{Pattern: "/sitemap/", Handler: caddy.AdminHandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
			return apiError(http.StatusNotFound, fmt.Errorf("there is no '%s': there are /sitemap/sites, /sitemap/refresh and /sitemap/explain", r.URL.Path))
		})},
	}
}

// of makes a route of what answers one method, and may ask the app.
func (a *adminAPI) of(method string, answer func(*App, *http.Request) (any, error)) caddy.AdminHandler {
	return caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != method && (r.Method != http.MethodHead || method != http.MethodGet) {
			w.Header().Set("Allow", method)
			return apiError(http.StatusMethodNotAllowed, fmt.Errorf("the method is %s: it is to be %s", r.Method, method))
		}
		app, err := a.app()
		if err != nil {
			return apiError(http.StatusServiceUnavailable, err)
		}
		v, err := answer(app, r)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(v)
	})
}

var errNoApp = errors.New("no site of the running configuration has a sitemap")

// app is that of the configuration that runs. The endpoint's own one may be on its way up
// still, in which nothing may be looked up meanwhile, or may have failed to get there.
func (a *adminAPI) app() (*App, error) {
	app, err := caddy.ActiveContext().AppIfConfigured("sitemap")
	if err != nil {
		return nil, errNoApp
	}
	return app.(*App), nil
}

// sites answers with the status of all sites, or of one.
func (a *adminAPI) sites(app *App, r *http.Request) (any, error) {
	sites, err := wantedSites(app, r)
	if err != nil {
		return nil, err
	}
	return statuses(sites), nil
}

// refresh has all sites refreshed, or one, and answers with their status afterwards.
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

// wantedSites are those that a request names in its query, or all.
func wantedSites(app *App, r *http.Request) ([]*site, error) {
	url, given, err := parameter(r, "site")
	if err != nil {
		return nil, err
	}
	if !given {
		return app.allSites(), nil
	}
	sites, err := app.sitesNamed(url)
	if err != nil {
		return nil, apiError(http.StatusBadRequest, err)
	}
	if len(sites) == 0 {
		return nil, apiError(http.StatusNotFound, app.noSite())
	}
	return sites, nil
}

// parameter is the one parameter that a request may have. What is misspelt must not mean
// all sites.
func parameter(r *http.Request, name string) (value string, given bool, err error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", false, apiError(http.StatusBadRequest, fmt.Errorf("reading the query: %w", err))
	}
	for key, values := range query {
		if key != name || len(values) > 1 {
			return "", false, apiError(http.StatusBadRequest, fmt.Errorf("the query has '%s': there may be one '%s'", key, name))
		}
	}
	return query.Get(name), query.Has(name), nil
}

// explain answers with why a URL is listed, or is not.
func (a *adminAPI) explain(app *App, r *http.Request) (any, error) {
	url, _, err := parameter(r, "url")
	if err != nil {
		return nil, err
	}
	explanation, err := app.explain(r.Context(), url)
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

// sitesStatus is the answer to a question for sites.
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

// Interface guard
var _ caddy.AdminRouter = (*adminAPI)(nil)
