package caddytest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestManyNamedSites: all sites that a configuration names are listed without a request for their sitemaps, and a reload in
// which nothing has changed fetches nothing.
func TestManyNamedSites(t *testing.T) {
	const sites = 250
	files := make(map[string]string)
	var config strings.Builder
	for i := range sites {
		files[fmt.Sprintf("%d/index.html", i)] = harness.HTML(fmt.Sprintf("home of site %d", i))
		files[fmt.Sprintf("%d/about.html", i)] = harness.HTML(fmt.Sprintf("about site %d", i))
		fmt.Fprintf(&config, "http://site-%d.example:{port} {\nroot {dir}/%d\nsitemap\nfile_server\n}\n", i, i)
	}
	s := prepare(t, files)
	s.OpenAdmin()
	s.Load(config.String())
	listed := func() int {
		return strings.Count(s.Get("http://localhost:{admin}/sitemap/sites").Text, `"pages":2,`)
	}
	s.Eventually(func() bool { return listed() >= sites }, func() string {
		return fmt.Sprintf("%d of %d sites are listed", listed(), sites)
	})
	if lines := s.LogLines(harness.NotWatched); len(lines) > 1 {
		t.Errorf("the log says for each site that it is not watched: %q", lines[0])
	}
	s.Crawled()
	s.Reload(config.String())
	s.WantLocs("http://site-0.example:{port}/sitemap.xml", harness.Below("http://site-0.example:{port}", []string{"/", "/about.html"})...)
	if metrics := s.Get("http://localhost:{admin}/metrics").Text; strings.Contains(metrics, "caddy_sitemap_fetches_total{") {
		t.Error("the reload fetches pages")
	}
	if got := listed(); got < sites {
		t.Errorf("after it, %d sites are listed", got)
	}
}
