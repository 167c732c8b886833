// Package caddytest runs real Caddy with real files and real sockets against what
// the project promises.
package caddytest

import (
	"os"
	"testing"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
)

// slow are patterns of the names of tests that take over a second: see [harness.Main].
var slow = []string{
	// those that take ten seconds and more
	"Soak", "(Slow|Stamped|KilledAmid)Deployment", "Kills", "ManyPages", "Pipes", "ReloadWhileAPageHangs", "HangingIsLogged",
	"UpstreamMaintenance", "DuplicateChanges", "PostLeavesList", "MadeUpHosts.*", "Hung.*",

	// files, and the life of a configuration
	"Another.*", "Damaged.*", "DocumentsCarriedOver", "DocumentsRetired", "Examples", "Extensions", "FailedReload", "FilesMessy",
	"Homeless", ".*Source", "OwnStorage", "Redeployment", "Refresh.*",
	"Reload(FetchesNothing|GoesOn|KeepsSnapshots|UnderLoad|While.*)", "Root(ComesAndGoes|GoneAfterRestart)", "Sites", "StateFolders",
	"URLsReadAgain", "Watched.*",

	// crawling
	"Canonicals", "CanonicalThatIsNotListed", "CacheInFront", "DatesOfApplications", "Deployments", "FrontPage.*", "LogOfLeftOut", "Made.*", "OnePace", "OwnSitemaps",
	"PageAwayForAMoment", "PageThatIsRateLimited", "PauseEndsWithMaintenance", "RateLimiterInCaddy", "Robots(Forbids|StaysForbidden)", "RoutesThatChange", "SitesNotPublicOnce", "TimesOfDeployments", "Upstream.*",
	"WhatApplicationsHave", "WhatSitesHave",

	// discovery
	"Discover([A-KM-Z].*|Later|Log)", "ManyNamedSites", "TrafficAmongHandlers",

	// announcing
	"Announced.*",

	// commands and the admin API
	"AliasesFailNoCommand", "Build(Fewer|Interrupted|JSON|Killed|Sections|State)", "CaddyCommands", "Check(Memory|Own)",
	"Command(Explain|Refetch|Refresh|Status|WithoutServer)", "Docs", "EventHandlersHurtNothing", "ManySites.*", "Metrics",
	"SignalOfVisitor",

	// files that change while they are served
	"Saved",

	// what people report
	"BuildSlowApplication", "BuildTwice", "CacheInFront", "Declared.*", "EndlessRobots", "FrontPage.*", "LogWithoutAgents", "Made.*",
	"OnePace", "PageThatIsRateLimited", "PauseEnds.*", "RateLimiterInCaddy", "RefreshAmidCrawl", "Reported(Roots|Redirects)",
	"ReportsDirectives", "VisitedHostRedirects",

	// what goes wrong around Caddy
	"BadPages", "FailingDisk", "Hanging.*", "ManyPagesBehindOne", "PageBeingWritten", "SlowList.*", "SpoiltChunk",
}

// commandVar, in the environment, makes of the test's program Caddy's.
const commandVar = "CADDYTEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVar) != "" {
		caddycmd.Main()
		return
	}
	// In each Caddy, too, which is this program.
	announce.Gap = time.Second
	indexing.AddedFor = time.Second
	harness.Main(m, slow...)
}

// server is a running Caddy, with what these tests want of it.
type server struct{ *harness.Server }

func start(t *testing.T, caddyfile string, files map[string]string) *server {
	t.Helper()
	return &server{harness.Start(t, caddyfile, files)}
}

func prepare(t *testing.T, files map[string]string) *server {
	t.Helper()
	return &server{harness.Prepare(t, files)}
}
