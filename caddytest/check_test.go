package caddytest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestCheckOwn is that the check finds nothing wrong with what this module serves.
func TestCheckOwn(t *testing.T) {
	files := map[string]string{"www/index.html": "<!doctype html><title>home</title><link rel=alternate hreflang=en href=/><link rel=alternate hreflang=de href=/docs/><img src=https://images.example/a.png>", "www/ä ö/&'.html": "a strange name", "www/docs/index.html": "<!doctype html><title>docs</title><link rel=alternate hreflang=en href=/><link rel=alternate hreflang=de href=/docs/><img src=https://images.example/b.png>"}
	for i := range 40 {
		files[fmt.Sprintf("www/docs/%d.html", i)] = fmt.Sprintf("page %d", i)
	}
	for name, test := range map[string]struct{ settings, served string }{
		"index":      {"shard_urls 10\nschema 0.84", "/schemas/sitemap/0.84"},
		"extensions": {"extensions alternates images", "<image:loc>"},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.Start(t, harness.Local+" {\nroot * {dir}/www\nsitemap {\n"+test.settings+"\n}\nfile_server\n}", files)
			s.Eventually(func() bool {
				locs, err := s.TryLocs(harness.Local + "/sitemap.xml")
				return err == nil && len(locs) == len(files)
			}, s.SitemapLog)
			if r := s.Get(harness.Local + "/sitemap.xml"); !strings.Contains(r.Text, test.served) {
				t.Fatalf("got %s, want %q", r.Text, test.served)
			}
			at := s.Expand(harness.Local)
			for _, args := range [][]string{
				{at + "/robots.txt"}, {at + "/sitemap.xml.gz"}, {"--fetch", "--rate", "1000/s", at},
			} {
				r := run(t, t.TempDir(), append([]string{"sitemap", "check"}, args...)...)
				stdout, stderr, status := r.stdout, r.stderr, r.status
				if stdout != "" || status != 0 || !strings.Contains(stderr, " pages: 43,") || !strings.HasSuffix(stderr, " errors: 0, warnings: 0\n") {
					t.Errorf("%q: got status %d\n%s%s", args, status, stdout, stderr)
				}
				if args[0] == "--fetch" && !strings.Contains(stderr, " fetched: 43,") {
					t.Errorf("%q: got %q", args, stderr)
				}
			}
		})
	}
}

// TestCheckStatus is what Caddy exits with.
func TestCheckStatus(t *testing.T) {
	gone := "http://" + harness.Backend(t, http.NotFound) + "/sitemap.xml"
	for name, test := range map[string]struct {
		args           []string
		stdout, stderr string
		status         int
	}{
		"errors":    {[]string{"check", gone}, gone + ": error: document-status: returns status 404\n", "documents: 0, pages: 0, fetched: 0, errors: 1, warnings: 0\n", 1},
		"no answer": {[]string{"check", "http://127.0.0.1:1/sitemap.xml"}, "http://127.0.0.1:1/sitemap.xml: error: document-unreachable: ", "errors: 1", 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, t.TempDir(), append([]string{"sitemap"}, test.args...)...)
			stdout, stderr, status := r.stdout, r.stderr, r.status
			if !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) || status != test.status {
				t.Errorf("got status %d\n%s%s, want %+v", status, stdout, stderr, test)
			}
		})
	}
}
