package sitemap

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// TestAdminParameters: what is misspelt does not mean all sites.
func TestAdminParameters(t *testing.T) {
	b := newBench(t, &Handler{})
	b.site("named.example")
	b.site("other.example")
	for query, want := range map[string]struct{ status, sites int }{
		"":                                      {0, 2},
		"site=http://named.example":             {0, 1},
		"site=http://NAMED.example:80/":         {0, 1},
		"site=http://named.example/sitemap.xml": {0, 1},
		"site=http://named.example/other":       {http.StatusNotFound, 0},
		"site=https://named.example":            {http.StatusNotFound, 0},
		"site=":                                 {http.StatusBadRequest, 0},
		"site=named.example":                    {http.StatusBadRequest, 0},
		"sites=http://named.example":            {http.StatusBadRequest, 0},
		"site=http://named.example;x":           {http.StatusBadRequest, 0},
		"site=http://named.example&x=y":         {http.StatusBadRequest, 0},
		"site=http://a.example&site=nowhere":    {http.StatusBadRequest, 0},
		"site=%zz":                              {http.StatusBadRequest, 0},
	} {
		r := httptest.NewRequest(http.MethodGet, "/sitemap/sites", nil)
		r.URL.RawQuery = query
		sites, err := wantedSites(b.app, r)
		status := 0
		if answer, ok := errors.AsType[caddy.APIError](err); ok {
			status = answer.HTTPStatus
		}
		if status != want.status || len(sites) != want.sites {
			t.Errorf("%q: got %d sites, status %d (%v), want %d, %d", query, len(sites), status, err, want.sites, want.status)
		}
	}
}
