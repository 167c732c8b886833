package persist

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"syscall"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// inFolder is a storage whose folder 'sites' has these names, or cannot be listed.
type inFolder struct {
	store.Storage
	names []string
	err   error
}

func (f inFolder) List(context.Context, string, bool) ([]string, error) { return f.names, f.err }

// TestNeighbors: neighbors are all folders beside that of the site.
func TestNeighbors(t *testing.T) {
	for name, test := range map[string]struct {
		folder inFolder
		want   []string
		err    error
	}{
		"several":      {inFolder{names: []string{"sites/c", "sites/b", "sites/a"}}, []string{"sites/a", "sites/c"}, nil},
		"only its own": {inFolder{names: []string{"sites/b"}}, []string{}, nil},
		"no folder":    {inFolder{err: fs.ErrNotExist}, nil, nil},
		"not readable": {inFolder{err: syscall.EIO}, nil, syscall.EIO},
		"very many":    {inFolder{names: slices.Repeat([]string{"sites/a"}, maxNeighbors+1)}, slices.Repeat([]string{"sites/a"}, maxNeighbors), nil},
	} {
		test.folder.Storage = store.NewMemory()
		got, err := newRecords(test.folder, "sites/b").Neighbors(t.Context())
		if !slices.Equal(got, test.want) || !errors.Is(err, test.err) {
			t.Errorf("%s: got %q, %v, want %q, %v", name, got, err, test.want, test.err)
		}
	}
}

// TestPeek reads the records of a neighbor, and changes nothing, whatever these are like.
func TestPeek(t *testing.T) {
	storage := store.NewMemory()
	former := newRecords(storage, "sites/former")
	if _, err := open(t, former); err != nil {
		t.Fatal(err)
	}
	w := former.Generation.Writer()
	w.Put("", []store.Record{{Path: "/a"}}, nil, nil)
	former.Generation, _ = w.Generation()
	if err := former.Write(nil, "kept"); err != nil {
		t.Fatal(err)
	}
	chunk := "sites/former/" + former.Generation.Chunks()[0].Object.Name
	manifest := "sites/former/store/manifest.json"
	good := contents(t, storage, manifest, chunk)
	for name, test := range map[string]struct {
		damaged string // key
		meta    any
		pages   int // -1: there are no records
		err     bool
	}{
		"good":               {meta: new(string), pages: 1},
		"another meta":       {meta: new(int), pages: -1, err: true},
		"a damaged manifest": {damaged: manifest, meta: new(string), pages: -1},
		"damaged records":    {damaged: chunk, meta: new(string), pages: 0},
	} {
		for key, value := range good {
			if key == test.damaged {
				value = "damaged"
			}
			_ = storage.Store(t.Context(), key, []byte(value))
		}
		before := contents(t, storage, manifest, chunk)
		r := newRecords(storage, "sites/new")
		if r.IsBare() {
			t.Errorf("%s: it is bare before it is opened", name)
		}
		if _, err := open(t, r); err != nil || !r.IsBare() {
			t.Errorf("%s: %v, bare %t", name, err, r.IsBare())
		}
		g, err := r.Peek(t.Context(), "sites/former", test.meta)
		pages := -1
		if g != nil {
			pages = 0
			for _, err := range g.Records(t.Context()) {
				if err == nil {
					pages++
				}
			}
		}
		if pages != test.pages || (err != nil) != test.err {
			t.Errorf("%s: got %d pages, %v, want %d", name, pages, err, test.pages)
		}
		if after := contents(t, storage, manifest, chunk); !maps.Equal(before, after) {
			t.Errorf("%s: it has changed", name)
		}
		if keys, _ := storage.List(t.Context(), "sites", true); len(keys) != len(good) {
			t.Errorf("%s: there are %q", name, keys)
		}
	}
}

func contents(t *testing.T, storage store.Storage, keys ...string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, key := range keys {
		data, err := storage.Load(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		all[key] = string(data)
	}
	return all
}
