package caddytest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

const watchedConfig = harness.Local + ` {
	root * {dir}/www
	sitemap
	file_server
}`

// watchStatus is the part of a site's status that tests of watching need.
type watchStatus struct {
	NextRefresh time.Time `json:"next_refresh"`
	Watched     []struct {
		Root, State, Reason string
		Folders             int
	}
}

// watch refreshes the one site once more, so that its files are watched, and returns its status.
func (s *server) watch() watchStatus {
	s.T.Helper()
	var all struct{ Sites []watchStatus }
	harness.Must(s.T, json.Unmarshal([]byte(s.Refreshes(1)), &all))
	if len(all.Sites) != 1 || len(all.Sites[0].Watched) != 1 {
		s.T.Fatalf("the status is %+v", all)
	}
	return all.Sites[0]
}

// wantWhole checks that the site's files are watched, and that no interval has it refreshed: what it lists afterwards is what
// it was told of.
func (s *server) wantWhole() {
	s.T.Helper()
	var st watchStatus
	// The kernel lets a user have 128 instances of inotify, as a rule: tests beside this one may have the last ones for a moment.
	s.Eventually(func() bool {
		st = s.watch()
		return !strings.HasPrefix(st.Watched[0].Reason, "no inotify instance")
	}, func() string { return fmt.Sprintf("got %+v", st) })
	if st.Watched[0].State != "whole" {
		s.T.Fatalf("got %+v", st)
	}
	if left := time.Until(st.NextRefresh); left < time.Hour/2 {
		s.T.Fatalf("it is refreshed in %s", left)
	}
}

// wantListed waits until the site lists pages.
func (s *server) wantListed(paths ...string) {
	s.T.Helper()
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, paths)...)
}

// TestWatchedFiles: the changes of the files of a site show without an interval.
func TestWatchedFiles(t *testing.T) {
	s := start(t, watchedConfig, map[string]string{"www/index.html": "home", "www/a.html": "a"})
	s.wantListed("/", "/a.html")
	s.wantWhole()
	at := func(name string) string { return filepath.Join(s.Dir, "www", name) }

	s.Write(map[string]string{"www/b.html": "b"})
	s.wantListed("/", "/a.html", "/b.html")

	s.Write(map[string]string{"www/new/c.html": "c", "www/new/deep/d.html": "d"})
	s.wantListed("/", "/a.html", "/b.html", "/new/c.html", "/new/deep/d.html")

	s.Write(map[string]string{"www/new/deep/e.html": "e"}) // in a folder that was not there
	harness.Must(t, os.Remove(at("b.html")))
	s.wantListed("/", "/a.html", "/new/c.html", "/new/deep/d.html", "/new/deep/e.html")

	harness.Must(t, os.Rename(at("new"), at("moved")))
	s.wantListed("/", "/a.html", "/moved/c.html", "/moved/deep/d.html", "/moved/deep/e.html")

	s.WriteRaw("www/robots.txt", "User-agent: *\nDisallow: /moved/c.html\n")
	s.wantListed("/", "/a.html", "/moved/deep/d.html", "/moved/deep/e.html")

	// A sitemap of its own.
	s.WriteRaw("www/paper.pdf", "text")
	s.WriteRaw("www/sitemap.xml", `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>`+
		s.Expand(harness.Local)+`/paper.pdf</loc></url></urlset>`)
	s.wantListed("/", "/a.html", "/moved/deep/d.html", "/moved/deep/e.html", "/paper.pdf")
	s.wantWhole()
}

// TestWatchedRelease: a link to the root leads to another release, and the root is made anew.
func TestWatchedRelease(t *testing.T) {
	s := prepare(t, map[string]string{"1/index.html": "home", "1/a.html": "a", "2/index.html": "home", "2/b.html": "b"})
	link := filepath.Join(s.Dir, "www")
	to := func(release string) {
		harness.Must(t, os.Symlink(filepath.Join(s.Dir, release), link+".new"))
		harness.Must(t, os.Rename(link+".new", link))
	}
	to("1")
	s.Load(watchedConfig)
	s.wantListed("/", "/a.html")
	s.wantWhole()
	to("2")
	s.wantListed("/", "/b.html")
	harness.Must(t, os.Rename(filepath.Join(s.Dir, "2"), filepath.Join(s.Dir, "old")))
	s.Write(map[string]string{"2/index.html": "home", "2/b.html": "b", "2/c.html": "c"})
	s.wantListed("/", "/b.html", "/c.html")
}

// TestWatchedReload: a reload loses no change, whether it fails or not.
func TestWatchedReload(t *testing.T) {
	s := start(t, watchedConfig, map[string]string{"www/index.html": "home"})
	s.wantListed("/")
	s.wantWhole()
	s.Reload(strings.Replace(watchedConfig, "sitemap", "header X-Test yes\nsitemap", 1))
	s.Write(map[string]string{"www/a.html": "a"})
	s.wantListed("/", "/a.html")
	s.wantWhole()
	s.Reload(strings.Replace(watchedConfig, "sitemap", "sitemap {\nfeed\n}", 1))
	s.Write(map[string]string{"www/b.html": "b"})
	s.wantListed("/", "/a.html", "/b.html")
}

// TestUnwatchedFiles: what is not watched as a whole goes by the interval, which is said once.
func TestUnwatchedFiles(t *testing.T) {
	s := prepare(t, map[string]string{"www/index.html": "home", "elsewhere/a.html": "a"})
	harness.Must(t, os.Symlink(filepath.Join(s.Dir, "elsewhere"), filepath.Join(s.Dir, "www", "sub")))
	s.Load(watchedConfig)
	s.wantListed("/", "/sub/a.html")
	for range 3 {
		st := s.watch()
		if w := st.Watched[0]; w.State != "incomplete" || !strings.HasSuffix(w.Reason, "www/sub is reached through a symbolic link that leads elsewhere") || w.Folders != 0 {
			t.Errorf("got %+v", st)
		}
		if left := time.Until(st.NextRefresh); left > time.Minute {
			t.Errorf("it is refreshed in %s", left)
		}
	}
	if lines := s.LogLines(harness.NotWatched); len(lines) != 1 {
		t.Errorf("the log says %q", lines)
	}
}
