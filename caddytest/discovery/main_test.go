// Package discovery tries how real Caddy learns of pages that no source knows.
package discovery

import (
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, "^Test(Discover([A-KM-Z].*|Later|Log)|ManyNamedSites|TrafficAmongHandlers)$")
}

// server is a running Caddy, with what these tests want of it.
type server struct{ *harness.Server }

func prepare(t *testing.T, files map[string]string) *server {
	t.Helper()
	return &server{harness.Prepare(t, files)}
}
