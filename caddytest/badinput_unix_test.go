//go:build unix

package caddytest

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestPipes: what would block whoever opens it is not opened, be it a page,
// an index, a list or the root.
func TestPipes(t *testing.T) {
	var writers []int
	t.Cleanup(func() {
		for _, fd := range writers {
			_ = unix.Close(fd)
		}
	})
	s := prepare(t, map[string]string{"site/page.html": "x", "site/sub/page.html": "x"})
	for _, name := range []string{"site/pipe.html", "site/index.html", "site/sub/index.html", "site/sitemap.xml", "list", "root"} {
		harness.Must(t, unix.Mkfifo(filepath.Join(s.Dir, name), 0o644))
	}
	// file_server opens what it finds, and waits for a writer.
	t.Cleanup(func() {
		for _, name := range []string{"site/index.html", "site/sub/index.html", "site/sitemap.xml"} {
			if fd, err := unix.Open(filepath.Join(s.Dir, name), unix.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
				writers = append(writers, fd)
			}
		}
	})
	s.Load(`
http://localhost:{port} {
	root * {dir}/site
	sitemap {
		refresh 1s
		files
		urls {dir}/list {
			/inline
		}
	}
	header /inline Content-Type text/html
	respond /inline "<!doctype html><title>inline</title>"
	file_server
}
http://pipe.localhost:{port} {
	sitemap {
		files {dir}/root
	}
	respond 404
}`)
	s.WantLocs("http://localhost:{port}/sitemap.xml",
		"http://localhost:{port}/inline", "http://localhost:{port}/page.html", "http://localhost:{port}/sub/page.html")
	s.Logged(harness.Refreshed, `"not a regular file":3`)
	s.Logged(harness.GatheringFails, ": not a regular file")
	s.Logged(harness.GatheringFails, "pipe.localhost", "not a directory")
	s.Stop() // although the front page, and with it an ask, is stuck
}
