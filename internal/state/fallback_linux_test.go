//go:build mount

package state

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/caddyserver/certmagic"
)

// TestFullDisk fills a disk, then gives it room.
func TestFullDisk(t *testing.T) {
	ctx := context.Background()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=640k"); err != nil {
		t.Fatal("mounting takes privileges: ", err)
	}
	defer func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) }()
	disk := &certmagic.FileStorage{Path: folder}
	st := NewFallback(disk)
	b := must(Open(ctx, st, "site"))(t)
	var err error
	for g := 1; g <= 4; g++ {
		if b, err = advance(ctx, b, g); err != nil {
			t.Fatal(err)
		}
		if _, have := openGeneration(t, st); have != g {
			t.Fatalf("generation %d, want %d", have, g)
		}
		if _, have := openGeneration(t, disk); have != 1 {
			t.Fatalf("generation %d is on disk", have)
		}
		if full := errors.Is(st.Err(), syscall.ENOSPC); full != (g > 1) {
			t.Fatalf("generation %d: error %v", g, st.Err())
		}
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	if b, err = advance(ctx, b, 5); err != nil || st.Err() != nil {
		t.Fatal(err, st.Err())
	}
	if _, have := openGeneration(t, disk); have != 5 {
		t.Fatalf("generation %d is on disk", have)
	}
	expectTidyFiles(t, b)
}

// TestReadOnlyDisk keeps a state on a disk that became read-only.
func TestReadOnlyDisk(t *testing.T) {
	ctx := context.Background()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal("mounting takes privileges: ", err)
	}
	defer func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) }()
	disk := &certmagic.FileStorage{Path: folder}
	if _, err := advance(ctx, must(Open(ctx, disk, "site"))(t), 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	st := NewFallback(disk)
	b, err := advance(ctx, must(Open(ctx, st, "site"))(t), 2)
	if err != nil || !errors.Is(st.Err(), syscall.EROFS) {
		t.Fatal(err, st.Err())
	}
	if _, have := openGeneration(t, disk); have != 1 {
		t.Fatalf("generation %d is on disk", have)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	if b, err = advance(ctx, b, 3); err != nil || st.Err() != nil {
		t.Fatal(err, st.Err())
	}
	if _, have := openGeneration(t, disk); have != 3 {
		t.Fatalf("generation %d is on disk", have)
	}
	expectTidyFiles(t, b)
}
