package files

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"
)

// TestVersionOf keeps the numbers: they are stored.
func TestVersionOf(t *testing.T) {
	for _, c := range []struct {
		mod, modNsec, change, changeNsec, size int64
		inode                                  uint64
		want                                   uint32
	}{
		{0, 0, 0, 0, 0, 0, 3925968017},
		{1_700_000_000, 123_456_789, 1_700_000_001, 5, 4096, 77, 3066884704},
		{-1, 0, 0, 0, -1, 1<<64 - 1, 1158396030},
		{1 << 62, 1 << 62, 0, 0, 1 << 62, 1 << 63, 262177270},
	} {
		if got := versionOf(c.mod, c.modNsec, c.change, c.changeNsec, c.size, c.inode); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

// TestVersionsDiffer changes one thing at a time, and counts how often two files
// of a site have the same version, of which chance gives 1 in 2^32.
func TestVersionsDiffer(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	same, pairs := 0, 0
	for range 200_000 {
		v := [6]int64{1_700_000_000 + rnd.Int64N(1e8), 0, 1_700_000_000, rnd.Int64N(1e9), rnd.Int64N(1e5), rnd.Int64N(1e7)}
		if rnd.IntN(2) == 0 {
			v[1] = rnd.Int64N(1e9)
		}
		of := func(v [6]int64) uint32 { return versionOf(v[0], v[1], v[2], v[3], v[4], uint64(v[5])) }
		for i := range v {
			w := v
			w[i] += 1 + rnd.Int64N(3)
			if pairs++; of(v) == of(w) {
				same++
			}
		}
	}
	if same > 2 {
		t.Errorf("%d of %d pairs are the same", same, pairs)
	}
	seen := make(map[uint32]bool)
	for i := range 10_000 {
		seen[versionOf(1_700_000_000, 0, 1_700_000_000, 0, 500, uint64(i))] = true
	}
	if len(seen) < 9_999 {
		t.Errorf("got %d versions of 10,000 files", len(seen))
	}
}

func versions(t *testing.T, o Options) map[string]uint32 {
	t.Helper()
	got, _ := scanAll(t, o)
	all := make(map[string]uint32)
	for _, p := range got {
		if p.Version == 0 {
			t.Errorf("%s has no version", p.Path)
		}
		all[p.Path] = p.Version
	}
	return all
}

func TestVersionFollowsTheFile(t *testing.T) {
	root := build(t, map[string]string{"a.html": "one", "b/index.html": "one", "c.html": "->../other.html", "d.html": "one", "../other.html": "one"})
	t.Cleanup(func() { os.Remove(filepath.Join(root, "../other.html")) })
	before := versions(t, Options{Root: root})
	replace := func(name, text string) {
		full := filepath.Join(root, name)
		if err := os.WriteFile(full+"~", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(full+"~", full); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(full, time.Time{}, testNow.Add(-time.Hour+time.Nanosecond*100)); err != nil {
			t.Fatal(err)
		}
	}
	replace("b/index.html", "two")
	replace("../other.html", "two")
	after := versions(t, Options{Root: root})
	for path, changed := range map[string]bool{"/a.html": false, "/b/": true, "/c.html": true, "/d.html": false} {
		if got := before[path] != after[path]; got != changed {
			t.Errorf("%s: changed %t, want %t", path, got, changed)
		}
	}
}

func TestVersionInFS(t *testing.T) {
	tree := fstest.MapFS{
		"a.html": {Data: []byte("x"), ModTime: testNow}, "b.html": {Data: []byte("y"), ModTime: testNow},
		"c.html": {Data: []byte("xx"), ModTime: testNow}, "d.html": {Data: []byte("x"), ModTime: testNow.Add(-1)}, "e.html": {Data: []byte("x")},
	}
	v := versions(t, Options{FS: tree})
	if v["/a.html"] != v["/b.html"] || v["/a.html"] == v["/c.html"] || v["/a.html"] == v["/d.html"] || v["/a.html"] == v["/e.html"] {
		t.Errorf("got %v: an fs.FS tells time and size", v)
	}
	got, _ := scanAll(t, Options{FS: tree, Now: testNow.Add(-2 * time.Second)})
	for _, p := range got {
		if p.LastMod != 0 || p.Version != v[p.Path] {
			t.Errorf("got %+v: a time that is not believed is part of the version", p)
		}
	}
}
