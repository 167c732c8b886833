//go:build unix

package caddytest

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestHungState: state that cannot be read for a disk that hangs keeps neither the first
// answer nor a reload nor Stop waiting, and is neither lost nor damaged.
func TestHungState(t *testing.T) {
	s := prepare(t, nil)
	s.OpenAdmin()
	s.Put("healthy/index.html", harness.Whole("", "home"), harness.DayOf(0))
	caddyfile := "{\n sitemap {\n state {dir}/state\n }\n}\n" + healthy
	s.Load(caddyfile)
	s.WantLocs(healthyOrigin+"/sitemap.xml", healthyOrigin+"/")
	s.Stop()
	found, err := filepath.Glob(filepath.Join(s.Dir, "state", "sites", "*", "store", "manifest.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("got %q, %v", found, err)
	}
	manifest, aside := found[0], filepath.Join(s.Dir, "aside.json")
	harness.Must(t, os.Rename(manifest, aside))
	// Whoever opens it waits for a writer.
	harness.Must(t, unix.Mkfifo(manifest, 0o600))
	freed := false
	free := func() {
		if fd, err := unix.Open(manifest, unix.O_RDWR|unix.O_NONBLOCK, 0); err == nil && !freed {
			freed = true
			t.Cleanup(func() { _ = unix.Close(fd) })
		}
	}
	t.Cleanup(free)
	promptly(t, "the first answer", func() {
		s.Load(caddyfile)
		r, err := s.Again(healthyOrigin + "/sitemap.xml")
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("the first answer is %v, %v\n%s", r.Response, err, s.SitemapLog())
		}
	})
	s.wantHealthy(caddyfile)
	s.Logged(harness.NotStored, `"level":"warn"`)
	promptly(t, "Stop", s.Stop)
	free()
	harness.Must(t, os.Rename(aside, manifest))
	s.Load(caddyfile)
	if r, err := s.Again(healthyOrigin + "/sitemap.xml"); err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("once it is there again: %v, %v", r.Response, err)
	}
	if lines := s.LogLines("damaged"); len(lines) > 0 {
		t.Errorf("the log says %s", lines[0])
	}
}
