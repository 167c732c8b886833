package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"
)

// grow makes a tree of files with contents.
func grow(t testing.TB, contents map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range contents {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func sampleOf(t testing.TB, o Options) uint64 {
	t.Helper()
	digest, err := Sample(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// treeOf is one of so many files, four in a folder.
func treeOf(n int) map[string]string {
	all := map[string]string{"index.html": "front"}
	for i := range n {
		all[fmt.Sprintf("%03d/%d/%04d.html", i/20, i/4, i)] = fmt.Sprint("page ", i)
	}
	return all
}

// TestSample: equal trees have equal samples, whatever their roots and times are; others have not.
func TestSample(t *testing.T) {
	base := treeOf(100)
	want := sampleOf(t, Options{Root: grow(t, base)})
	for name, test := range map[string]struct {
		change func(all map[string]string)
		isSame bool
	}{
		"the same tree":           {func(map[string]string) {}, true},
		"a file is missing":       {func(all map[string]string) { delete(all, "004/22/0090.html") }, false},
		"a file more":             {func(all map[string]string) { all["004/22/new.html"] = "" }, false},
		"a file is renamed":       {func(all map[string]string) { delete(all, "004/22/0090.html"); all["004/22/x.html"] = "page 90" }, false},
		"all files are longer":    {func(all map[string]string) { appendTo(all, "!") }, false},
		"a folder is missing":     {func(all map[string]string) { removeFolder(all, "003/") }, false},
		"an asset, and a dotfile": {func(all map[string]string) { all["004/a.js"] = "x"; all[".git/x.html"] = "x"; all[".x.html"] = "x" }, true},
	} {
		all := treeOf(100)
		test.change(all)
		if got := sampleOf(t, Options{Root: grow(t, all)}); got == want != test.isSame {
			t.Errorf("%s: is the same: %t", name, got == want)
		}
	}
}

func appendTo(all map[string]string, text string) {
	for name := range all {
		all[name] += text
	}
}

func removeFolder(all map[string]string, folder string) {
	for name := range all {
		if len(name) > len(folder) && name[:len(folder)] == folder {
			delete(all, name)
		}
	}
}

// TestSampleTimes: times do not count, nor in which order a folder is read.
func TestSampleTimes(t *testing.T) {
	all := treeOf(100)
	root := grow(t, all)
	want := sampleOf(t, Options{Root: root})
	for name := range all {
		if err := os.Chtimes(filepath.Join(root, name), time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if sampleOf(t, Options{Root: root}) != want {
		t.Error("another one after all times have changed")
	}
	files := make(fstest.MapFS)
	for name, text := range all {
		files["site/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	if sampleOf(t, Options{FS: files, Root: "site"}) != want {
		t.Error("another one of the same tree on another file system")
	}
}

// TestSampleRules: what the rules leave out does not count.
func TestSampleRules(t *testing.T) {
	all := treeOf(100)
	want := sampleOf(t, Options{Root: grow(t, all)})
	all["drafts/a.html"] = "draft"
	root := grow(t, all)
	if sampleOf(t, Options{Root: root}) == want {
		t.Error("another folder does not count")
	}
	if sampleOf(t, Options{Root: root, Hide: []string{"drafts"}}) != want {
		t.Error("a hidden folder counts")
	}
}

// TestSampleBounds: only the first pages count.
func TestSampleBounds(t *testing.T) {
	files := make(fstest.MapFS)
	for i := range sampleLen + 1 {
		files[fmt.Sprintf("%06d.html", i)] = &fstest.MapFile{}
	}
	want := sampleOf(t, Options{FS: files, Root: "."})
	delete(files, fmt.Sprintf("%06d.html", sampleLen))
	if sampleOf(t, Options{FS: files, Root: "."}) != want {
		t.Error("a page beyond the sample counts")
	}
	delete(files, fmt.Sprintf("%06d.html", sampleLen-1))
	if sampleOf(t, Options{FS: files, Root: "."}) == want {
		t.Error("the last page of the sample does not count")
	}
}

func TestSampleErrors(t *testing.T) {
	if _, err := Sample(t.Context(), Options{Root: filepath.Join(t.TempDir(), "none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no root: %v", err)
	}
	if _, err := Sample(t.Context(), Options{}); err == nil {
		t.Error("no name of a root: no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Sample(ctx, Options{Root: grow(t, treeOf(10))}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
