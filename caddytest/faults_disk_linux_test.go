//go:build mount

package caddytest

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestHungDisk: neither a root nor a folder of state, of records or of the copies of what several servers share, on a disk
// that hangs keeps a site waiting that does not need it, or a reload or Stop.
func TestHungDisk(t *testing.T) {
	for _, early := range []bool{true, false} {
		for _, what := range []string{"root", "state", "copies"} {
			t.Run(map[bool]string{true: "from the start, ", false: "later, "}[early]+what, func(t *testing.T) {
				s := prepare(t, nil)
				s.OpenAdmin()
				d := s.newDisk("disk")
				s.Put("healthy/index.html", harness.Whole("", "home"), harness.DayOf(0))
				s.Write(map[string]string{"disk/site/page.html": "page"})
				caddyfile := "{\n sitemap {\n state {dir}/state\n }\n}\n" + healthy
				switch what {
				case "state":
					caddyfile = "{\n sitemap {\n state {dir}/disk/state\n }\n}\n" + healthy
				case "copies":
					caddyfile = "{\n storage file_system {dir}/shared\n sitemap {\n storage caddy\n state {dir}/disk/state\n }\n}\n" + healthy
				default:
					caddyfile += "http://hanging.localhost:{port} {\n root * {dir}/disk/site\n sitemap {\n refresh 1s\n }\n file_server\n}\n"
				}
				begin := func() {
					s.Load(caddyfile)
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
				d.hang()
				if early {
					promptly(t, "the first answer", begin)
				}
				// Another process may lead instead: see TestFleetGivesUp. A disk that hangs from the start is not used.
				if what == "copies" && !early {
					time.Sleep(5 * time.Second)
					s.WantLocs(healthyOrigin+"/sitemap.xml", healthyOrigin+"/")
				} else {
					s.wantHealthy(caddyfile)
				}
				if what == "state" {
					s.Logged(`"level":"warn"`, harness.NotStored)
				}
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

// TestSpoiltChunk: while a file of records cannot be read, the sitemap stays as it is, and so do the records: nothing is
// given up before an hour. Once it can be read, refreshes go on with it.
func TestSpoiltChunk(t *testing.T) {
	s := prepare(t, nil)
	s.OpenAdmin()
	d := s.newDisk("disk")
	const pages = 30
	for i := range pages {
		s.Put(fmt.Sprintf("site/%02d.html", i), harness.Whole("", fmt.Sprint("page ", i)), harness.DayOf(i))
	}
	caddyfile := "{\n sitemap {\n state {dir}/disk/state\n }\n}\n" + harness.Local + " {\n root * {dir}/site\n sitemap {\n refresh 1h\n shard_urls 10\n }\n file_server\n}"
	refresh := func() string {
		return s.Do(http.MethodPost, "http://localhost:{admin}/sitemap/refresh").Text
	}
	wantPages := func(when string, want int) {
		t.Helper()
		if locs := s.Locs(harness.Local + "/sitemap.xml"); len(locs) != want {
			t.Errorf("%s: %d pages are listed, want %d", when, len(locs), want)
		}
	}
	s.Load(caddyfile)
	wantPages("before", pages)
	// What is served is stored a little later.
	var manifests []string
	s.Eventually(func() bool {
		manifests, _ = filepath.Glob(filepath.Join(d.backing, "state", "sites", "*", "store", "manifest.json"))
		return len(manifests) == 1
	}, s.SitemapLog)
	s.Stop()
	manifest, err := os.ReadFile(manifests[0])
	harness.Must(t, err)
	found := regexp.MustCompile(`"chunks":\[.*?"object":\{"name":"store/([0-9a-f]+)"`).FindSubmatch(manifest)
	if found == nil {
		t.Fatalf("no chunk in %s", manifest)
	}
	chunk := string(found[1])
	d.spoil(chunk)
	s.Load(caddyfile)
	wantPages("after a restart", pages)
	s.Put("site/00.html", harness.Whole("", "another page"), harness.DayOf(100))
	s.Put("site/more.html", harness.Whole("", "one more page"), harness.DayOf(100))
	for range 5 {
		if answer := refresh(); !strings.Contains(answer, "input/output error") {
			t.Errorf("a refresh without the records: %s", answer)
		}
		wantPages("without the records", pages)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(manifests[0]), chunk)); err != nil {
		t.Errorf("the chunk is gone: %v", err)
	}
	d.spoil("")
	if answer := refresh(); strings.Contains(answer, "error") {
		t.Errorf("with the records again: %s", answer)
	}
	wantPages("with the records again", pages+1)
	if lines := s.LogLines("damaged"); len(lines) > 0 {
		t.Errorf("the log says %s", lines[0])
	}
}

var every = flag.Int("every", 25, "which operations TestFailingDisk lets fail: 1 is all")

// TestFailingDisk lets the nth operation on the disk of the state fail, for every n, while
// a server writes or reads it: alone, or with all that follow. Pages are served all the
// same, and what was known before is not dropped.
func TestFailingDisk(t *testing.T) {
	for _, forever := range []bool{false, true} {
		t.Run(map[bool]string{false: "once", true: "from then on"}[forever], func(t *testing.T) {
			s := prepare(t, nil)
			s.OpenAdmin()
			d := s.newDisk("disk")
			const pages = 30
			for i := range pages {
				s.Put(fmt.Sprintf("site/%02d.html", i), harness.Whole("", fmt.Sprint("page ", i)), harness.DayOf(i))
			}
			// Only a refresh that is asked for comes to anything between.
			caddyfile := "{\n sitemap {\n state {dir}/disk/state\n }\n}\n" + harness.Local + " {\n root * {dir}/site\n sitemap {\n refresh 1h\n shard_urls 10\n }\n file_server\n}"
			begin := func(when string, n int) {
				t.Helper()
				s.Load(caddyfile)
				if r, err := s.Again(harness.Local + "/sitemap.xml"); err != nil || r.StatusCode != http.StatusOK {
					t.Fatalf("%s operation %d: the first answer is %v, %v\n%s", when, n, r.Response, err, s.SitemapLog())
				}
				if locs := s.Locs(harness.Local + "/sitemap.xml"); len(locs) != pages {
					t.Fatalf("%s operation %d: %d pages are listed", when, n, len(locs))
				}
			}
			begin("before", 0)
			for n, done := 0, false; !done; n += *every {
				s.Put(fmt.Sprintf("site/%02d.html", n%pages), harness.Whole("", fmt.Sprint("another page ", n)), harness.DayOf(1000+n))
				d.fail(n, forever)
				if r := s.Do(http.MethodPost, "http://localhost:{admin}/sitemap/refresh"); r.StatusCode != http.StatusOK {
					t.Fatalf("writing, operation %d: status %d, %s", n, r.StatusCode, r.Text)
				}
				if locs := s.Locs(harness.Local + "/sitemap.xml"); len(locs) != pages {
					t.Fatalf("writing, operation %d: %d pages are listed", n, len(locs))
				}
				done = d.fail(-1, false) <= n
				s.Stop()
				begin("after", n)
			}
			for n, done := 0, false; !done; n += *every {
				s.Stop()
				d.fail(n, forever)
				begin("reading,", n)
				done = d.fail(-1, false) <= n
				s.Stop()
				begin("after reading,", n)
			}
			if lines := s.LogLines("damaged"); len(lines) > 0 {
				t.Errorf("the log says %s", lines[0])
			}
			s.Logged(`"level":"warn"`, harness.NotStored)
		})
	}
}
