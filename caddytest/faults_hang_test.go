package caddytest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// hang lets whoever opens something of the file system test_hooked wait until the test ends: no context ends that, as with a network
// file system whose server is gone.
func hang(t *testing.T) {
	t.Helper()
	held := make(chan struct{})
	hook(t, func(string) error {
		<-held
		return nil
	})
	t.Cleanup(func() { close(held) })
}

// deaf is an application that accepts requests and does not answer.
func deaf(t *testing.T) string {
	t.Helper()
	stop := make(chan struct{})
	app := harness.Backend(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-stop:
		}
	})
	t.Cleanup(func() { close(stop) })
	return app
}

// wantHealthy checks that the healthy site goes on whatever hangs beside it, that an
// operator's refresh of it returns, and so do reload and stop.
func (s *server) wantHealthy(caddyfile string) {
	s.T.Helper()
	s.keepsRefreshing(healthyOrigin, 2)
	promptly(s.T, "a refresh by the admin API", func() {
		if r := s.Do(http.MethodPost, "http://localhost:{admin}/sitemap/refresh?site="+url.QueryEscape(s.Expand(healthyOrigin))); r.StatusCode != http.StatusOK {
			s.T.Errorf("a refresh by the admin API: status %d: %s", r.StatusCode, r.Text)
		}
	})
	promptly(s.T, "a reload", func() { s.Reload(caddyfile) })
	s.keepsRefreshing(healthyOrigin, 1)
}

const (
	onFSOrigin = "http://hanging.localhost:{port}"
	onFS       = onFSOrigin + " {\n root * .\n fs hanging\n sitemap {\n refresh 1s\n }\n file_server\n}\n"
)

// prepareHanging makes a healthy site, and the Caddyfile of it and of a site on the file system that may hang.
func prepareHanging(t *testing.T) (s *server, caddyfile string) {
	t.Helper()
	s = prepare(t, nil)
	s.OpenAdmin()
	s.Put("healthy/index.html", harness.Whole("", "home"), harness.DayOf(0))
	s.Put("site/page.html", harness.Whole("", "page"), harness.DayOf(0))
	return s, "{\n filesystem hanging test_hooked {dir}/site\n}\n" + healthy + onFS
}

// loadAllHanging loads a healthy site, and beside it sites of which all upstreams and disks hang. It returns the Caddyfile.
func loadAllHanging(t *testing.T) (s *server, caddyfile string) {
	t.Helper()
	s, caddyfile = prepareHanging(t)
	hang(t)
	app := deaf(t)
	for i := range 4 {
		caddyfile += fmt.Sprintf("http://hanging%d.localhost:{port} {\n sitemap {\n refresh 1s\n links\n }\n reverse_proxy %s\n}\n", i, app)
	}
	s.Load(caddyfile)
	promptly(t, "the healthy site's first answer", func() { s.WantLocs(healthyOrigin+"/sitemap.xml", healthyOrigin+"/") })
	return s, caddyfile
}

// TestHanging: nothing waits for what hangs from the start.
func TestHanging(t *testing.T) {
	s, caddyfile := loadAllHanging(t)
	s.wantHealthy(caddyfile)
	promptly(t, "Stop", s.Stop)
}

// TestHangingIsLogged: what hangs is named in a line of the log.
func TestHangingIsLogged(t *testing.T) {
	s, _ := loadAllHanging(t)
	for _, origin := range []string{onFSOrigin, "http://hanging3.localhost:{port}"} {
		s.Logged(`"level":"warn"`, `"site":"`+origin+`"`, "hangs")
		lines := slices.DeleteFunc(s.LogLines(`"level":"warn"`, `"site":"`+origin+`"`), func(line string) bool {
			return strings.Contains(line, "cannot fetch robots.txt") // which comes ten seconds later
		})
		if len(lines) != 1 || !strings.Contains(lines[0], "hangs") {
			t.Errorf("the log warns %d times of %s, want once: %s", len(lines), origin, lines)
		}
	}
	s.keepsRefreshing(healthyOrigin, 1)
}

// TestHangingLater: nothing waits for a disk that hangs once its site is listed, and what is listed stays.
func TestHangingLater(t *testing.T) {
	s, caddyfile := prepareHanging(t)
	s.Load(caddyfile)
	s.WantLocs(onFSOrigin+"/sitemap.xml", onFSOrigin+"/page.html")
	hang(t)
	promptly(t, "the healthy site's first answer", func() { s.WantLocs(healthyOrigin+"/sitemap.xml", healthyOrigin+"/") })
	s.wantHealthy(caddyfile)
	s.WantLocs(onFSOrigin+"/sitemap.xml", onFSOrigin+"/page.html")
	promptly(t, "Stop", s.Stop)
}

// TestHangingList: a list that hangs does not keep a site whose files are there from its
// first answer.
func TestHangingList(t *testing.T) {
	s := prepare(t, map[string]string{"site/index.html": "home", "site/a.html": "a"})
	s.Load(strings.ReplaceAll(harness.Local+` {
		root * {dir}/site
		sitemap {
			refresh 1s
			files
			urls /api/list.txt
		}
		reverse_proxy /api/* {app}
		file_server
	}`, "{app}", deaf(t)))
	if r := s.Get(harness.Local + "/sitemap.xml"); r.StatusCode != http.StatusOK {
		t.Errorf("the first answer is %d", r.StatusCode)
	}
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/", harness.Local+"/a.html")
	s.Logged(harness.GatheringFails, "urls")
}
