package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyserver/certmagic"
)

// TestFallback lets the disk fail from its nth operation on, for every n: what was
// committed is there, and the disk by itself holds a whole generation throughout.
func TestFallback(t *testing.T) {
	ctx := context.Background()
	for _, only := range []string{"store", "delete", ""} {
		for n, failed := 0, true; failed; n += stride {
			under := NewMemory()
			disk := &flaky{Storage: under, only: only, fail: n, times: 1 << 30}
			if only == "" {
				disk.fail += 2 // else the opening fails
			}
			st := NewFallback(disk)
			b, err := Open(ctx, st, "site")
			if err != nil {
				t.Fatal(err)
			}
			for g := 1; g <= 3; g++ {
				next, err := advance(ctx, b, g)
				if err != nil {
					if only != "" {
						t.Fatalf("%s %d: generation %d: %v", only, n, g, err)
					}
					break // it cannot be read, either
				}
				b = next
				if _, have := openGeneration(t, under); have > g {
					t.Fatalf("generation %d is on disk", have)
				}
				if only == "store" {
					if _, have := openGeneration(t, st); have != g {
						t.Fatalf("%s %d: got generation %d, want %d", only, n, have, g)
					}
				}
			}
			failed = disk.times < 1<<30
			if failed && only == "store" && !errors.Is(st.Err(), errDisk) {
				t.Errorf("got %v", st.Err())
			}
			// The disk is there again.
			disk.times = 0
			if b, err = advance(ctx, must(Open(ctx, st, "site"))(t), 4); err != nil {
				t.Fatal(err)
			}
			if err := st.Retry(ctx); err != nil || st.Err() != nil {
				t.Errorf("%s %d: %v, %v", only, n, err, st.Err())
			}
			if b, err = advance(ctx, b, 5); err != nil {
				t.Fatal(err)
			}
			if _, have := openGeneration(t, under); have != 5 {
				t.Errorf("generation %d is on disk", have)
			}
			b.storage = under
			expectTidy(t, b)
		}
	}
}

// TestFallbackInterrupted brings values to a disk that fails again and again: what it
// holds at any time is a whole generation.
func TestFallbackInterrupted(t *testing.T) {
	ctx := context.Background()
	under := NewMemory()
	disk := &flaky{Storage: under, only: "store"}
	st := NewFallback(disk)
	b, err := advance(ctx, must(Open(ctx, st, "site"))(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	disk.times = 1 << 30
	for g := 2; g <= 4; g++ {
		if b, err = advance(ctx, b, g); err != nil {
			t.Fatal(err)
		}
	}
	disk.only = ""
	for st.Err() != nil {
		disk.fail, disk.times = 1, 1
		_ = st.Retry(ctx)
		if _, g := openGeneration(t, under); g != 1 && g != 4 {
			t.Fatalf("generation %d is on disk", g)
		}
	}
	if _, g := openGeneration(t, under); g != 4 {
		t.Fatalf("generation %d is on disk", g)
	}
	b.storage = under
	expectTidy(t, b)
}

// TestFallbackHangs has one operation hang: no other waits for it.
func TestFallbackHangs(t *testing.T) {
	ctx := context.Background()
	disk := &flaky{Storage: NewMemory(), only: "store site/", times: 1, hung: make(chan struct{})}
	st := NewFallback(disk)
	done := make(chan error)
	go func() { done <- st.Store(ctx, "site/1", []byte("one")) }()
	for i := range 3 {
		key := fmt.Sprint("other/", i)
		if err := st.Store(ctx, key, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Load(ctx, key); err != nil {
			t.Fatal(err)
		}
		if _, err := st.List(ctx, "other", false); err != nil {
			t.Fatal(err)
		}
		if err := st.Retry(ctx); err != nil || st.Err() != nil {
			t.Fatal(err)
		}
	}
	close(disk.hung)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if v, err := st.Load(ctx, "site/1"); err != nil || string(v) != "one" {
		t.Errorf("got %q, %v", v, err)
	}
	if err := st.Delete(ctx, "site/1"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Load(ctx, "site/1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := st.Retry(ctx); err != nil || st.Err() != nil {
		t.Errorf("got %v, %v", err, st.Err())
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	disk.times = 1
	if err := st.Store(cancelled, "site/2", nil); !errors.Is(err, context.Canceled) || st.Err() != nil {
		t.Errorf("got %v, %v", err, st.Err())
	}
}

// TestNoDisk has a file where the folder should be.
func TestNoDisk(t *testing.T) {
	ctx := context.Background()
	folder := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	st := NewFallback(&certmagic.FileStorage{Path: folder})
	b, err := Open(ctx, st, "site")
	if err != nil && !errors.Is(err, ErrUnusable) || !b.Empty() {
		t.Fatal(err)
	}
	for g := 1; g <= 2; g++ {
		if b, err = advance(ctx, b, g); err != nil {
			t.Fatal(err)
		}
		if _, have := openGeneration(t, st); have != g || st.Err() == nil {
			t.Fatalf("generation %d, error %v", have, st.Err())
		}
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if b, err = advance(ctx, b, 3); err != nil || st.Err() != nil {
		t.Fatal(err, st.Err())
	}
	if _, have := openGeneration(t, &certmagic.FileStorage{Path: folder}); have != 3 {
		t.Fatalf("generation %d", have)
	}
	expectTidyFiles(t, b)
}

// TestInTheWay keeps values where folders lie in their place, and finds none where a
// file lies in the place of a folder.
func TestInTheWay(t *testing.T) {
	ctx := context.Background()
	folder := t.TempDir()
	f := NewFallback(&certmagic.FileStorage{Path: folder})
	if err := os.MkdirAll(filepath.Join(folder, "site", "value", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Store(ctx, "site/value", []byte("a")); err != nil || f.Err() != nil {
		t.Fatal(err, f.Err())
	}
	if got, err := os.ReadFile(filepath.Join(folder, "site", "value")); err != nil || string(got) != "a" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := f.Load(ctx, "site/value/below"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a file: got %v", err)
	}
	if err := f.Store(ctx, "site/value/below", []byte("b")); err != nil || f.Err() == nil {
		t.Errorf("below a file: got %v, %v", err, f.Err())
	}
	if got, err := f.Load(ctx, "site/value/below"); err != nil || string(got) != "b" {
		t.Errorf("below a file: got %q, %v", got, err)
	}
}
