package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
)

func TestSample(t *testing.T) {
	root := build(t, map[string]string{
		"index.html": "x", "404.html": "x", "about.html": "xy", "b.html": "x", "taken.html": "x", "taken": "x",
		"a/folder.html": "x", "a/folder/index.html": "x", "a/z b.html": "xyz", "b/link.html": "->../about.html",
		"c/empty.html": "", "c/full.html": "x", "d/.e/f.html": "x", "g/h/i/j.html": "x",
	})
	want := []SampleFile{
		{"/docs/about.html", "/docs/about"},
		{"/docs/a/z%20b.html", "/docs/a/z%20b"},
		{"/docs/c/full.html", "/docs/c/full"},
		{"/docs/g/h/i/j.html", "/docs/g/h/i/j"},
	}
	for _, n := range []int{0, 1, 3, 10} {
		got, err := Sample(context.Background(), Options{Root: root, At: "/docs"}, n)
		if err != nil || !slices.Equal(got, want[:min(n, len(want))]) {
			t.Errorf("%d: got %+v, %v, want %+v", n, got, err, want[:min(n, len(want))])
		}
	}
	beside, err := SampleBesideFolders(context.Background(), Options{Root: root, At: "/docs"}, 3)
	if want := []SampleFile{{"/docs/b.html", "/docs/b"}, {"/docs/a/folder.html", "/docs/a/folder"}}; err != nil || !slices.Equal(beside, want) {
		t.Errorf("beside folders: got %+v, %v, want %+v", beside, err, want)
	}
	if _, err := Sample(context.Background(), Options{Root: filepath.Join(root, "none")}, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Sample(ctx, Options{Root: root}, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestSampleBounds(t *testing.T) {
	tree := fstest.MapFS{}
	for i := range 500 {
		tree[fmt.Sprintf("%03d/x.html", i)] = &fstest.MapFile{Data: []byte("x"), Mode: 0o644}
	}
	got, err := Sample(context.Background(), Options{FS: tree, Root: "."}, 1000)
	if err != nil || len(got) != sampleFolders-1 {
		t.Errorf("got %d files, %v, want %d", len(got), err, sampleFolders-1)
	}
	large := fstest.MapFS{}
	for i := range sampleEntries + 10 {
		large[fmt.Sprintf("a/x%d.txt", i)] = &fstest.MapFile{Data: []byte("x"), Mode: 0o644}
	}
	large["b/x.html"] = &fstest.MapFile{Data: []byte("x"), Mode: 0o644}
	got, err = Sample(context.Background(), Options{FS: large, Root: "."}, 1)
	if err != nil || len(got) != 0 {
		t.Errorf("got %v, %v, want none", got, err)
	}
}
