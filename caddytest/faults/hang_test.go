package faults

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

func init() { caddy.RegisterModule(new(hangingFS)) }

// hangingFS is a file system that, while it hangs, lets nobody go who opens something: no
// context ends that, as with a network file system whose server is gone.
type hangingFS struct {
	Dir string `json:"dir,omitempty"`
}

// hanging holds up whoever uses the file system; nil: nobody.
var hanging atomic.Pointer[chan struct{}]

func (*hangingFS) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.fs.test_hanging", New: func() caddy.Module { return new(hangingFS) }}
}

func (h *hangingFS) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.Args(&h.Dir) {
		return d.ArgErr()
	}
	return nil
}

func (h *hangingFS) Open(name string) (fs.File, error) {
	if hang := hanging.Load(); hang != nil {
		<-*hang
	}
	return os.DirFS(h.Dir).Open(name)
}

// hang lets the file system hang until the test ends, or what it returns is called.
func hang(t *testing.T) (free func()) {
	t.Helper()
	held := make(chan struct{})
	hanging.Store(&held)
	free = sync.OnceFunc(func() {
		hanging.Store(nil)
		close(held)
	})
	t.Cleanup(free)
	return free
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

// TestHanging: what hangs is named in a line of the log, and nothing else waits for it.
func TestHanging(t *testing.T) {
	const onFSOrigin = "http://hanging.localhost:{port}"
	const onFS = onFSOrigin + " {\n root * .\n fs hanging\n sitemap {\n refresh 1s\n }\n file_server\n}\n"
	upstreams := func(t *testing.T) string {
		caddyfile, app := "", deaf(t)
		for i := range 4 {
			caddyfile += fmt.Sprintf("http://hanging%d.localhost:{port} {\n sitemap {\n refresh 1s\n links\n }\n reverse_proxy %s\n}\n", i, app)
		}
		return caddyfile
	}
	for name, sites := range map[string]func(t *testing.T) string{
		"from the start": func(t *testing.T) string {
			hang(t)
			return onFS + upstreams(t)
		},
		"later": func(*testing.T) string { return onFS },
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			s.OpenAdmin()
			s.Put("healthy/index.html", harness.Whole("", "home"), harness.DayOf(0))
			s.Put("site/page.html", harness.Whole("", "page"), harness.DayOf(0))
			caddyfile := "{\n filesystem hanging test_hanging {dir}/site\n}\n" + healthy + sites(t)
			begun := time.Now()
			s.Load(caddyfile)
			if name == "later" {
				s.WantLocs(onFSOrigin+"/sitemap.xml", onFSOrigin+"/page.html")
				hang(t)
			}
			promptly(t, "the healthy site's first answer", func() { s.WantLocs(healthyOrigin+"/sitemap.xml", healthyOrigin+"/") })
			s.wantHealthy(caddyfile)
			most := 1 + int(min(time.Since(begun)/(10*time.Second), 1)) // before the reload, too, if that came late
			if name == "later" {
				s.WantLocs(onFSOrigin+"/sitemap.xml", onFSOrigin+"/page.html")
			} else {
				for _, origin := range []string{onFSOrigin, "http://hanging3.localhost:{port}"} {
					s.Logged(`"level":"warn"`, `"site":"`+origin+`"`, "hangs")
					lines := slices.DeleteFunc(s.LogLines(`"level":"warn"`, `"site":"`+origin+`"`), func(line string) bool {
						return strings.Contains(line, "cannot fetch robots.txt") // which comes ten seconds later
					})
					if len(lines) > most || !strings.Contains(lines[0], "hangs") {
						t.Errorf("the log warns %d times of %s, want %d: %s", len(lines), origin, most, lines)
					}
				}
				s.keepsRefreshing(healthyOrigin, 1)
			}
			promptly(t, "Stop", s.Stop)
		})
	}
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
	s.Logged("gathering pages failed", "urls")
}
