package caddytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// watchedConfig is a site that is refreshed only when it is told of a change.
const watchedConfig = harness.Local + ` {
	root * {dir}/www
	sitemap {
		refresh 1h
	}
	file_server
}`

// wantListed waits until the site lists pages.
func (s *server) wantListed(paths ...string) {
	s.T.Helper()
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, paths)...)
}

// TestWatchedFiles: the changes of the files of a site show without an interval.
func TestWatchedFiles(t *testing.T) {
	s := start(t, watchedConfig, map[string]string{"www/index.html": "home", "www/a.html": "a"})
	s.wantListed("/", "/a.html")
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
	s.Reload(strings.Replace(watchedConfig, "sitemap", "header X-Test yes\nsitemap", 1))
	s.Write(map[string]string{"www/a.html": "a"})
	s.wantListed("/", "/a.html")
	s.Reload(strings.Replace(watchedConfig, "refresh 1h", "refresh 1h\nfeed", 1))
	s.Write(map[string]string{"www/b.html": "b"})
	s.wantListed("/", "/a.html", "/b.html")
}

// TestWatchedLoss: that most files are gone is no loss that an operator confirms, although it is told.
func TestWatchedLoss(t *testing.T) {
	s := start(t, strings.Replace(watchedConfig, "refresh 1h", "", 1), map[string]string{
		"www/index.html": "home", "www/a.html": "a", "www/b.html": "b", "www/c.html": "c",
	})
	s.wantListed("/", "/a.html", "/b.html", "/c.html")
	for _, name := range []string{"a", "b", "c"} {
		harness.Must(t, os.Remove(filepath.Join(s.Dir, "www", name+".html")))
	}
	s.Logged(harness.HeldBack, "less than half")
	s.wantListed("/", "/a.html", "/b.html", "/c.html")
}
