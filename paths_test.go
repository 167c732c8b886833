package sitemap

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/discover"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

// countedStorage counts what is stored, and fails where it is told to.
type countedStorage struct {
	state.Storage
	stores      int
	load, store error
}

func (s *countedStorage) Store(ctx context.Context, key string, value []byte) error {
	s.stores++
	if s.store != nil {
		return s.store
	}
	return s.Storage.Store(ctx, key, value)
}

func (s *countedStorage) Load(ctx context.Context, key string) ([]byte, error) {
	if s.load != nil {
		return nil, s.load
	}
	return s.Storage.Load(ctx, key)
}

// link lets a page link to some paths, which are then kept as they are.
func link(catalog *discover.Catalog, paths ...string) {
	round := catalog.Round(1, false)
	round.Page(0, "/hub", paths)
	round.End(1000)
}

// keptPaths is what a storage has of some paths and a position.
func keptPaths(t *testing.T, storage state.Storage, paths ...string) (*shelf, *discover.Catalog) {
	t.Helper()
	ctx, sh := context.Background(), newShelf(storage, "site")
	catalog, err := sh.paths.open(ctx, sh, discover.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range paths {
		catalog.Visit(discover.FromLog, path, int64(1000+i), "198.51.100.7", uint32(i+1))
	}
	link(catalog, paths...)
	sh.paths.read("log", position)
	if err := sh.paths.keep(ctx, sh); err != nil {
		t.Fatal(err)
	}
	return sh, catalog
}

var position = accesslog.Positions{Files: []accesslog.Position{{Log: "/var/log/a.log", Device: 1, Inode: 2, Offset: 3, Head: 4, HeadSize: 5}}}

// TestPathsKept: what is kept comes back, with the positions of logs.
func TestPathsKept(t *testing.T) {
	storage := state.NewMemory()
	keptPaths(t, storage, "/a", "/b?page=2", "/%C3%BC")
	sh := newShelf(storage, "site")
	catalog, err := sh.paths.open(context.Background(), sh, discover.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range []string{"/a", "/b?page=2", "/%C3%BC"} {
		if tag, at := catalog.Shown(path); tag != uint32(i+1) || at != int64(1000+i) {
			t.Errorf("%s: got tag %d at %d", path, tag, at)
		}
	}
	if got := catalog.Stats().Paths; got != 3 {
		t.Errorf("got %d paths, want 3", got)
	}
	if got := sh.paths.position("log"); !reflect.DeepEqual(got, position) {
		t.Errorf("got position %+v, want %+v", got, position)
	}
	if got := sh.paths.position("another log"); len(got.Files) != 0 {
		t.Errorf("another log: got position %+v", got)
	}
	if again, err := sh.paths.open(context.Background(), sh, discover.Options{}); again != catalog || err != nil {
		t.Errorf("opened again: got another catalog, %v", err)
	}
}

// TestPathsKeptOnce: nothing is written that has not changed.
func TestPathsKeptOnce(t *testing.T) {
	ctx := context.Background()
	storage := &countedStorage{Storage: state.NewMemory()}
	sh := newShelf(storage, "site")
	keep := func(want int) {
		t.Helper()
		if err := sh.paths.keep(ctx, sh); err != nil || storage.stores != want {
			t.Errorf("got %d writes, %v, want %d", storage.stores, err, want)
		}
	}
	keep(0) // not opened
	sh.paths.read("log", position)
	keep(0)
	if _, err := sh.paths.open(ctx, sh, discover.Options{}); err != nil {
		t.Fatal(err)
	}
	keep(0)
	sh.paths.read("log", position)
	keep(1)
	keep(1)
	sh.paths.changed.Store(true)
	keep(2)
	keep(2)
}

// TestPathsKeepFails: what could not be written is written the next time.
func TestPathsKeepFails(t *testing.T) {
	full := errors.New("the disk is full")
	storage := &countedStorage{Storage: state.NewMemory()}
	sh, catalog := keptPaths(t, storage, "/a")
	catalog.Visit(discover.FromLog, "/b", 2000, "", 0)
	link(catalog, "/a", "/b")
	sh.paths.changed.Store(true)
	storage.store = full
	for range 2 {
		if err := sh.paths.keep(context.Background(), sh); !errors.Is(err, full) {
			t.Fatalf("got %v", err)
		}
	}
	storage.store = nil
	if err := sh.paths.keep(context.Background(), sh); err != nil {
		t.Fatal(err)
	}
	again := newShelf(storage, "site")
	if catalog, err := again.paths.open(context.Background(), again, discover.Options{}); err != nil || catalog.Stats().Paths != 2 {
		t.Errorf("got %d paths, %v, want 2", catalog.Stats().Paths, err)
	}
}

// TestPathsUnreadable: what cannot be read is said once, and begun anew, logs too.
func TestPathsUnreadable(t *testing.T) {
	ctx := context.Background()
	whole := state.NewMemory()
	keptPaths(t, whole, "/a", "/b")
	kept, err := whole.Load(ctx, pathsKey("site"))
	if err != nil {
		t.Fatal(err)
	}
	note, rest, _ := strings.Cut(string(kept), "\n")
	for name, damaged := range map[string]string{
		"empty":              "",
		"an empty line":      "\n",
		"no note":            rest,
		"the note alone":     note,
		"the note's line":    note + "\n",
		"half a note":        note[:len(note)/2] + "\n" + rest,
		"cut short":          string(kept[:len(kept)-1]),
		"half":               note + "\n" + rest[:len(rest)/2],
		"another note":       "[]\n" + rest,
		"a bit has changed":  note + "\n" + rest[:len(rest)-2] + string(rest[len(rest)-2]^4) + rest[len(rest)-1:],
		"all of it is zeros": strings.Repeat("\x00", len(kept)),
	} {
		t.Run(name, func(t *testing.T) {
			storage := state.NewMemory()
			if err := storage.Store(ctx, pathsKey("site"), []byte(damaged)); err != nil {
				t.Fatal(err)
			}
			checkBegunAnew(t, storage, "reading what is kept of paths: ")
			if aside, err := storage.Load(ctx, pathsKey("site")+damagedSuffix); err != nil || string(aside) != damaged {
				t.Errorf("set aside: got %d bytes, %v", len(aside), err)
			}
		})
	}
}

// TestPathsUnread: what cannot be read for now, and may be whole, is not overwritten.
func TestPathsUnread(t *testing.T) {
	ctx := context.Background()
	storage := &countedStorage{Storage: state.NewMemory()}
	keptPaths(t, storage, "/a", "/b")
	storage.load = errors.New("too many open files")
	sh := newShelf(storage, "site")
	catalog, err := sh.paths.open(ctx, sh, discover.Options{})
	if !errors.Is(err, storage.load) || catalog.Stats().Paths != 0 {
		t.Fatalf("got %v", err)
	}
	sh.paths.changed.Store(true)
	if err := sh.paths.keep(ctx, sh); !errors.Is(err, storage.load) {
		t.Errorf("keeping: got %v", err)
	}
	storage.load = nil
	sh = newShelf(storage, "site")
	if catalog, err := sh.paths.open(ctx, sh, discover.Options{}); err != nil || catalog.Stats().Paths != 2 {
		t.Errorf("got %v, %v", catalog.Stats(), err)
	}
}

func checkBegunAnew(t *testing.T, storage state.Storage, want string) {
	t.Helper()
	ctx, sh := context.Background(), newShelf(storage, "site")
	catalog, err := sh.paths.open(ctx, sh, discover.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got error %v, want %s…", err, want)
	}
	if catalog == nil || catalog.Stats().Paths != 0 || len(sh.paths.position("log").Files) != 0 {
		t.Fatalf("got catalog %v, position %+v, want none", catalog, sh.paths.position("log"))
	}
	if again, err := sh.paths.open(ctx, sh, discover.Options{}); again != catalog || err != nil {
		t.Errorf("opened again: got error %v", err)
	}
	catalog.Visit(discover.FromLog, "/new", 1, "", 0)
	sh.paths.read("log", position)
	if err := sh.paths.keep(ctx, sh); err != nil {
		t.Error(err)
	}
}

// TestPathsOfSites: each site keeps its own, under its name, and what only a visitor
// named keeps nothing.
func TestPathsOfSites(t *testing.T) {
	b := discovering(t, &Handler{}, discovery{from: discover.FromTraffic})
	ctx := context.Background()
	storage := &countedStorage{Storage: state.NewMemory()}
	named, visited := b.site("named.example"), b.site("visited.example")
	for _, s := range []*site{named, visited} {
		s.shelf.storage = storage
		s.visited(ctx, discover.FromTraffic, "/a", &accesslog.Visit{Time: 1})
	}
	b.app.keepAllPaths(ctx)
	b.app.keepAllPaths(ctx)
	if storage.stores != 1 {
		t.Errorf("got %d writes, want 1", storage.stores)
	}
	kept, err := storage.Load(ctx, pathsKey(named.shelf.prefix))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(kept), "\n")
	if !json.Valid([]byte(line)) {
		t.Errorf("got %q", line)
	}
	storage.store = errors.New("full")
	named.visited(ctx, discover.FromTraffic, "/b", &accesslog.Visit{Time: 2})
	b.app.keepAllPaths(ctx)
	if got := b.logged("where visitors went cannot be kept"); got != 1 {
		t.Errorf("the log says so %d times, want once", got)
	}
}

// TestPathsForget drops how far logs were read that no source names any more.
func TestPathsForget(t *testing.T) {
	var p paths
	sh := newShelf(state.NewMemory(), "site")
	if _, err := p.open(t.Context(), sh, discover.Options{}); err != nil {
		t.Fatal(err)
	}
	at := accesslog.Positions{Files: []accesslog.Position{{Log: "/access.log"}}}
	p.read("one", at)
	p.read("other", at)
	p.forget(map[string]bool{"one": true})
	if len(p.position("one").Files) != 1 || len(p.position("other").Files) != 0 {
		t.Errorf("got %+v", p.positions)
	}
}
