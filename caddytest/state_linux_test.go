//go:build mount

package caddytest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// disk mounts a small disk at {dir}/<name>.
func (s *server) disk(name, options string) (remount func(flags uintptr, options string)) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", path, "tmpfs", 0, options); err != nil {
		s.t.Fatal("mounting takes privileges: ", err)
	}
	s.t.Cleanup(func() { _ = syscall.Unmount(path, syscall.MNT_DETACH) })
	return func(flags uintptr, options string) {
		s.t.Helper()
		if err := syscall.Mount("tmpfs", path, "tmpfs", syscall.MS_REMOUNT|flags, options); err != nil {
			s.t.Fatal(err)
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
			asked := countAsks(t)
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
					fill(t, filepath.Join(s.dir, "disk", "filling"))
				}
			}
			if test.early {
				spoil()
			}
			s.writeDated(200, pageNumbered)
			caddyfile := stateIn("{dir}/disk/state", "shard_urls 10")
			if err := s.load(caddyfile); err != nil {
				t.Fatal(err)
			}
			s.served()
			if !test.early {
				if lines := s.logLines(unkept); len(lines) > 0 {
					t.Fatalf("too early: %s", lines)
				}
				spoil()
				s.put(datedName(7), "<!doctype html><title>page</title>Another page 7, and what it says", dayOf(1000))
				s.eventually(func() bool { return s.dates(local)["/000/007.html"] == stamp(dayOf(1000)) }, s.sitemapLog)
			}
			before := s.served()
			s.logged(unkept, `"level":"warn"`)
			s.reload(caddyfile)
			if _, err := s.again(local + "/nothing-there"); err != nil {
				t.Fatal(err)
			}
			s.wantServed(before, "a reload with a disk that is "+name)
			if lines := s.logLines(`"level":"warn"`, "sitemap"); len(lines) > 2 { // one of each configuration
				t.Errorf("the log warns %d times: %s", len(lines), strings.Join(lines, ""))
			}

			s.restart(caddyfile)
			if locs := s.locs(local + "/sitemap.xml"); len(locs) != 200 {
				t.Errorf("after a restart, %d pages are listed", len(locs))
			}

			// Once it is well, everything is written.
			if err := os.RemoveAll(filepath.Join(s.dir, "disk", "filling")); test.flags == 0 && err != nil {
				t.Fatal(err)
			}
			remount(0, test.good)
			s.put(datedName(8), "<!doctype html><title>page</title>Another page 8, and what it says", dayOf(1001))
			s.eventually(func() bool { return s.dates(local)["/000/008.html"] == stamp(dayOf(1001)) }, s.sitemapLog)
			before = s.served()
			asked.since()
			refreshes := len(s.refreshLines())
			s.restart(caddyfile)
			s.wantServed(before, "a restart with a disk that is well again")
			s.eventually(func() bool { return len(s.refreshLines()) > refreshes }, s.sitemapLog)
			for path := range asked.since() {
				if path != "000/008.html" { // whose turn it may have been
					t.Errorf("after a restart with a disk that is well again, %s was asked for", path)
				}
			}
		})
	}
}
