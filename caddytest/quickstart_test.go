package caddytest

import (
	"net/http"
	"strings"
	"testing"
)

// TestOneLine is the whole of it: one word in a Caddyfile.
func TestOneLine(t *testing.T) {
	s := start(t, `
http://localhost:{port} {
	root * {dir}/site
	sitemap
	file_server
}`, map[string]string{
		"site/index.html":      "<!doctype html><title>home</title>",
		"site/about.html":      "<!doctype html><title>about</title>",
		"site/docs/index.html": "<!doctype html><title>docs</title>",
		"site/404.html":        "<!doctype html><title>not found</title>",
	})
	s.WantLocs("http://localhost:{port}/sitemap.xml",
		"http://localhost:{port}/",
		"http://localhost:{port}/about.html",
		"http://localhost:{port}/docs/")
	r := s.Get("http://localhost:{port}/robots.txt")
	if want := s.Expand("Sitemap: http://localhost:{port}/sitemap.xml\n"); r.StatusCode != http.StatusOK || !strings.HasSuffix(r.Text, want) {
		t.Errorf("robots.txt: status %d, body %q, want it to end in %q", r.StatusCode, r.Text, want)
	}
}
