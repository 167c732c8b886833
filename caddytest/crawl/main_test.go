// Package crawl tries how real Caddy fetches pages, and what is listed for what they return.
package crawl

import (
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, "^Test(Canonicals|CanonicalThatIsNotListed|DatesOfApplications|Deployments|LogOfLeftOut|ManyPages|OwnSitemaps|PageAwayForAMoment|"+
		"Robots.*|RoutesThatChange|SitesNotPublicOnce|TimesOfDeployments|Upstream.*|WhatApplicationsHave|WhatSitesHave)$")
}

// server is a running Caddy, with what these tests want of it.
type server struct{ *harness.Server }

func prepare(t *testing.T, files map[string]string) *server {
	t.Helper()
	return &server{harness.Prepare(t, files)}
}

func start(t *testing.T, caddyfile string, files map[string]string) *server {
	t.Helper()
	return &server{harness.Start(t, caddyfile, files)}
}
