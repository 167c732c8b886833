package caddytest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// slowly responds to requests for /a.txt only once it is released, or the request was canceled, and to others at once.
func slowly(release <-chan struct{}, pages http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a.txt" {
			select {
			case <-release:
			case <-r.Context().Done():
				return
			}
		}
		pages.ServeHTTP(w, r)
	}
}

// TestSlowList: while a list that takes long is all that could tell of pages, clients are told to come again, and not
// that there is no sitemap. What other sources know is listed meanwhile, and the list soon after it has come.
func TestSlowList(t *testing.T) {
	const text = "Content-Type: text/plain\n\n"
	application := newWeb(map[string]string{"/a.txt": text + "/a", "/b.txt": text + "/b", "/a": linking("a"), "/b": linking("b")})
	for name, test := range map[string]struct {
		sources         string
		meanwhile, want string // paths; "": none
	}{
		"alone":          {sources: "urls /a.txt", want: "/a"},
		"with crawl off": {sources: "crawl off\nurls /a.txt", want: "/a"},
		"beside files":   {sources: "urls /a.txt\nfiles", meanwhile: "/f.html", want: "/a /f.html"},
		"beside lines":   {sources: "urls /a.txt\nurls {\n/b\n}", meanwhile: "/b", want: "/a /b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, map[string]string{"root/index.html": page("front"), "root/f.html": page("f")})
			release := make(chan struct{})
			s.LoadApp(harness.Local+" {\nroot {dir}/root\nsitemap {\n"+test.sources+"\n}\n@files file\nhandle @files {\nfile_server\n}\nhandle {\nreverse_proxy {app}\n}\n}",
				slowly(release, application))
			if test.meanwhile != "" {
				s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, strings.Fields(test.meanwhile))...)
			}
			// It waits for as long as clients do.
			r := s.Get(harness.Local + "/sitemap.xml")
			isToCome := r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") != ""
			if test.meanwhile == "" && !isToCome {
				t.Errorf("meanwhile: status %d, Retry-After %q", r.StatusCode, r.Header.Get("Retry-After"))
			}
			close(release)
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, strings.Fields(test.want))...)
		})
	}
}
