//go:build mount

package caddytest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// disk mounts a small disk at {dir}/<name>.
func (s *server) disk(name, options string) (remount func(flags uintptr, options string)) {
	s.T.Helper()
	path := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		s.T.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", path, "tmpfs", 0, options); err != nil {
		s.T.Fatal("mounting takes privileges: ", err)
	}
	s.T.Cleanup(func() { _ = syscall.Unmount(path, syscall.MNT_DETACH) })
	return func(flags uintptr, options string) {
		s.T.Helper()
		if err := syscall.Mount("tmpfs", path, "tmpfs", syscall.MS_REMOUNT|flags, options); err != nil {
			s.T.Fatal(err)
		}
	}
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 1<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// TestStateOnBadDisk keeps the state on a disk that is read-only or full from the
// beginning, or becomes so, and is well again at last.
func TestStateOnBadDisk(t *testing.T) {
	for name, test := range map[string]struct {
		good, bad string
		flags     uintptr
		early     bool // bad from the beginning
	}{
		"read-only":         {"size=8m", "", syscall.MS_RDONLY, true},
		"read-only later":   {"size=8m", "", syscall.MS_RDONLY, false},
		"full":              {"size=8m", "size=8k", 0, true},
		"full, later":       {"size=8m", "", 0, false},
		"without any inode": {"size=8m,nr_inodes=1000", "nr_inodes=2", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := countFetches(t)
			s := prepare(t, nil)
			// Before the files of the test are removed, and after Caddy ended.
			first := test.good
			if test.early && test.flags == 0 {
				first = test.bad
			}
			remount := s.disk("disk", first)
			spoil := func() {
				switch {
				case test.flags != 0:
					remount(test.flags, "")
				case !test.early:
					fill(t, filepath.Join(s.Dir, "disk", "filling"))
				}
			}
			if test.early {
				spoil()
			}
			s.writeDated(200, pageNumbered)
			caddyfile := stateIn("{dir}/disk/state", "shard_urls 10")
			if err := s.Load(caddyfile); err != nil {
				t.Fatal(err)
			}
			s.served()
			if !test.early {
				if lines := s.LogLines(unkept); len(lines) > 0 {
					t.Fatalf("too early: %s", lines)
				}
				spoil()
				s.Put(datedName(7), "<!doctype html><title>page</title>Another page 7, and what it says", harness.DayOf(1000))
				s.Eventually(func() bool { return s.Dates(harness.Local)["/000/007.html"] == harness.Stamp(harness.DayOf(1000)) }, s.SitemapLog)
			}
			before := s.served()
			s.Logged(unkept, `"level":"warn"`)
			s.Reload(caddyfile)
			if _, err := s.Again(harness.Local + "/nothing-there"); err != nil {
				t.Fatal(err)
			}
			s.wantServed(before, "a reload with a disk that is "+name)
			if lines := s.LogLines(`"level":"warn"`, "sitemap"); len(lines) > 2 { // one of each configuration
				t.Errorf("the log warns %d times: %s", len(lines), strings.Join(lines, ""))
			}

			s.Restart(caddyfile)
			if locs := s.Locs(harness.Local + "/sitemap.xml"); len(locs) != 200 {
				t.Errorf("after a restart, %d pages are listed", len(locs))
			}

			// Once it is well, everything is written.
			if err := os.RemoveAll(filepath.Join(s.Dir, "disk", "filling")); test.flags == 0 && err != nil {
				t.Fatal(err)
			}
			remount(0, test.good)
			s.Put(datedName(8), "<!doctype html><title>page</title>Another page 8, and what it says", harness.DayOf(1001))
			s.Eventually(func() bool { return s.Dates(harness.Local)["/000/008.html"] == harness.Stamp(harness.DayOf(1001)) }, s.SitemapLog)
			before = s.served()
			asked.since()
			refreshes := len(s.RefreshLines())
			s.Restart(caddyfile)
			s.wantServed(before, "a restart with a disk that is well again")
			s.Eventually(func() bool { return len(s.RefreshLines()) > refreshes }, s.SitemapLog)
			for path := range asked.since() {
				if path != "000/008.html" { // whose turn it may have been
					t.Errorf("after a restart with a disk that is well again, %s was asked for", path)
				}
			}
		})
	}
}
