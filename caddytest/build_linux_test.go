//go:build mount

package caddytest

import (
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestBuildFullDisk: on a disk that has no room for a new generation the old one stays, and
// nothing is left of the new one.
func TestBuildFullDisk(t *testing.T) {
	for name, options := range map[string]string{"bytes": "size=64k", "inodes": "size=8m,nr_inodes=12"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out")
			harness.Must(t, os.Mkdir(out, 0o755))
			if err := syscall.Mount("tmpfs", out, "tmpfs", 0, options); err != nil {
				t.Fatal("mounting takes privileges: ", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(out, syscall.MNT_DETACH) })
			write(t, dir, pages(100))
			write(t, dir, map[string]string{"Caddyfile": sharded})
			args := []string{"--config", "Caddyfile", "--out", "out"}
			build(t, dir, args...)
			before := sums(t, out)
			write(t, dir, pages(3000))
			refused(t, 1, dir, args, "no space left on device", "writing out")
			if got := sums(t, out); !maps.Equal(got, before) {
				t.Errorf("got %d files, want %d as they were", len(got), len(before))
			}
			left, err := filepath.Glob(filepath.Join(out, ".caddy-sitemap*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left are %q, %v", left, err)
			}
		})
	}
}
