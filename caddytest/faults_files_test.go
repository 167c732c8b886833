package caddytest

import (
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

const onFiles = harness.Local + ` {
	root * {dir}/site
	sitemap {
		refresh 1s
	}
	file_server
}`

// TestPageBeingWritten: a page that is empty when it is looked at keeps its place, as
// whoever writes it may not be done. One that stays empty goes.
func TestPageBeingWritten(t *testing.T) {
	s := prepare(t, nil)
	for i, name := range []string{"index.html", "a.html", "b.html", "c.html", "d.html"} {
		s.Put("site/"+name, harness.Whole("", name), harness.DayOf(100*i))
	}
	s.Load(onFiles)
	paths := []string{"/", "/a.html", "/b.html", "/c.html", "/d.html"}
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, paths)...)
	etag := s.Get(harness.Local + "/sitemap.xml").Header.Get("ETag")
	written := time.Now()
	s.WriteRaw("site/b.html", "")
	s.Refreshes(2)
	// It is fetched again after five seconds.
	if got := s.Get(harness.Local + "/sitemap.xml"); got.Header.Get("ETag") != etag && time.Since(written) < 5*time.Second {
		t.Fatalf("while a page is being written, the sitemap is %s", got.Text)
	}
	s.Put("site/b.html", harness.Whole("", "another text"), harness.DayOf(200))
	s.Eventually(func() bool { return s.Dates(harness.Local)["/b.html"] == harness.Stamp(harness.DayOf(200)) }, s.SitemapLog)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, paths)...)
	// A new one is not listed before it has a text, and one that stays empty goes.
	s.WriteRaw("site/new.html", "")
	s.Refreshes(1)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, paths)...)
	s.Put("site/b.html", "", time.Now().Add(-time.Minute))
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, []string{"/", "/a.html", "/c.html", "/d.html"})...)
}
