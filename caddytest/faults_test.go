package caddytest

import (
	"strconv"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// promptly runs a function, such as a refresh, reload or Stop, that is to end before a request does that hangs: that takes
// ten seconds. By design, waiting for the storage or for what Stop cancels may add up to three. With the race detector on, a
// busy machine takes any time for it.
func promptly(t *testing.T, what string, run func()) {
	t.Helper()
	begun := time.Now()
	run()
	if took := time.Since(begun); took > 9*time.Second && !harness.Race {
		t.Errorf("%s takes %s", what, took)
	}
}

// keepsRefreshing puts pages below {dir}/healthy, the root of a site with refresh 1s, and
// waits for each to be listed.
func (s *server) keepsRefreshing(origin string, pages int) {
	s.T.Helper()
	for i := range pages {
		name := "/" + strconv.FormatInt(time.Now().UnixNano(), 36) + ".html"
		s.Put("healthy"+name, harness.Whole("", name), harness.DayOf(i))
		promptly(s.T, "listing a new page", func() {
			s.Eventually(func() bool { return s.lists(origin, name) }, s.SitemapLog)
		})
	}
}

// lists reports whether a site's sitemap lists a path.
func (s *server) lists(origin, path string) bool {
	locs, err := s.TryLocs(origin + "/sitemap.xml")
	for _, loc := range locs {
		if err == nil && loc == s.Expand(origin+path) {
			return true
		}
	}
	return false
}

// healthy is a site that keeps to refresh 1s.
const healthy = "http://healthy.localhost:{port} {\n root * {dir}/healthy\n sitemap {\n refresh 1s\n }\n file_server\n}\n"

const healthyOrigin = "http://healthy.localhost:{port}"
