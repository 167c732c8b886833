package operators

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// send sends a body of JSON to the admin API, and wants 200.
func (s *server) send(method, path, body string) {
	s.T.Helper()
	request, err := http.NewRequest(method, s.Expand(api+path), strings.NewReader(s.Expand(body)))
	if err != nil {
		s.T.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	resp, err := harness.Client.Do(request)
	if err != nil {
		s.T.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.T.Fatalf("%s %s: got status %d", method, path, resp.StatusCode)
	}
}

const labelled = `{
	"admin": {"listen": "127.0.0.1:{admin}", "config": {"persist": false}},
	"apps": {"http": {"http_port": 1, "https_port": 2, "servers": {"one": {
		"listen": [":{port}"], "automatic_https": {"disable": true},
		"routes": [{"match": [{"host": ["localhost"]}], "handle": [{"handler": "subroute", "routes": [
			{"handle": [{"handler": "vars", "root": "{dir}/a"}, {"@id": "map", "handler": "sitemap", "refresh_interval": "1h"}, {"handler": "file_server"}]}
		]}]}]
	}}}}
}`

// TestPartialChanges changes parts of a configuration in a running Caddy.
func TestPartialChanges(t *testing.T) {
	s := prepare(t, harness.TwoRoots)
	if err := s.LoadJSON(labelled); err != nil {
		t.Fatal(err)
	}
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, harness.PagesOfA)...)
	before := s.Get(harness.Local + "/sitemap.xml").Header.Get("ETag")

	s.send(http.MethodPatch, "/id/map/refresh_interval", `"1s"`)
	if etag := s.Get(harness.Local + "/sitemap.xml").Header.Get("ETag"); etag != before {
		t.Errorf("the sitemap is another one: %s, want %s", etag, before)
	}
	s.Write(map[string]string{"a/new.html": harness.HTML("new")})
	with := slices.Sorted(slices.Values(append(slices.Clone(harness.PagesOfA), "/new.html")))
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, with)...)

	s.send(http.MethodPost, "/config/apps/http/servers/one/routes", `{"match": [{"host": ["127.0.0.1"]}], "handle": [
		{"handler": "vars", "root": "{dir}/b"}, {"@id": "other", "handler": "sitemap"}, {"handler": "file_server"}]}`)
	s.WantLocs("http://127.0.0.1:{port}/sitemap.xml", harness.Below("http://127.0.0.1:{port}", harness.PagesOfB)...)
	if all := s.statuses(http.MethodGet, "/sitemap/sites"); len(all) != 2 {
		t.Errorf("with another handler: got %+v", all)
	}
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, with)...)

	s.send(http.MethodDelete, "/id/other", "")
	if all := s.statuses(http.MethodGet, "/sitemap/sites"); len(all) != 1 || all[0].Site != s.Expand(harness.Local) {
		t.Errorf("without it: got %+v", all)
	}
	s.WantStatus("http://127.0.0.1:{port}/sitemap.xml", http.StatusNotFound)

	s.send(http.MethodDelete, "/id/map", "")
	s.wantError(http.MethodGet, "/sitemap/sites", http.StatusServiceUnavailable)
	s.WantStatus(harness.Local+"/sitemap.xml", http.StatusNotFound)

	s.send(http.MethodPost, "/load", labelled)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, with)...)
	if all := s.statuses(http.MethodPost, "/sitemap/refresh"); len(all) != 1 || all[0].Pages != len(with) {
		t.Errorf("loaded anew: got %+v", all)
	}
}
