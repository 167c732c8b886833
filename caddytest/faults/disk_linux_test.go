//go:build mount

package faults

import (
	"net/http"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestHungDisk: neither a root nor a folder of state on a disk that hangs keeps a site
// waiting that does not need it, or a reload or Stop.
func TestHungDisk(t *testing.T) {
	for _, early := range []bool{true, false} {
		for _, what := range []string{"root", "state"} {
			t.Run(map[bool]string{true: "from the start, ", false: "later, "}[early]+what, func(t *testing.T) {
				s := prepare(t, nil)
				s.OpenAdmin()
				d := s.newDisk("disk")
				s.Put("healthy/index.html", harness.Whole("", "home"), harness.DayOf(0))
				s.Write(map[string]string{"disk/site/page.html": "page"})
				caddyfile := "{\n sitemap {\n state {dir}/state\n }\n}\n" + healthy
				if what == "state" {
					caddyfile = "{\n sitemap {\n state {dir}/disk/state\n }\n}\n" + healthy
				} else {
					caddyfile += "http://hanging.localhost:{port} {\n root * {dir}/disk/site\n sitemap {\n refresh 1s\n }\n file_server\n}\n"
				}
				begin := func() {
					if err := s.Load(caddyfile); err != nil {
						t.Fatal(err)
					}
					if r, err := s.Again(healthyOrigin + "/sitemap.xml"); err != nil || r.StatusCode != http.StatusOK {
						t.Fatalf("the first answer is %v, %v\n%s", r.Response, err, s.SitemapLog())
					}
				}
				begin()
				if what == "root" {
					s.WantLocs("http://hanging.localhost:{port}/sitemap.xml", "http://hanging.localhost:{port}/page.html")
				}
				if early {
					s.Stop()
				}
				if d.hang(); early {
					promptly(t, "the first answer", begin)
				}
				s.wantHealthy(caddyfile)
				promptly(t, "Stop", s.Stop)
				d.goOn()
				begin()
				s.keepsRefreshing(healthyOrigin, 1)
				if lines := s.LogLines("damaged"); len(lines) > 0 {
					t.Errorf("the log says %s", lines[0])
				}
			})
		}
	}
}
