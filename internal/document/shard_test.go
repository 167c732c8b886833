package document

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// bounds are what a shard may have.
type bounds struct{ most, room int }

// entryOf is an entry of a page: some bytes around its path.
func entryOf(p page.Page) []byte { return append(make([]byte, 20, 20+len(p.Path)), p.Path...) }

// run is a shard as a test reads it.
type run struct {
	id    uint64
	paths string // one a line
	pages int
	only  bool
}

// cutAll cuts pages and checks what must hold of any cutting: all pages, in order,
// within bounds, under unique names that follow from the pages.
func cutAll(t testing.TB, o bounds, pages []page.Page) []run {
	t.Helper()
	var runs []run
	rest := pages
	c := newCutter(o.most, o.room, func(s shard) {
		r := run{id: s.id, only: s.isOnly, pages: len(s.pages)}
		var entries, paths []byte
		for i, p := range s.pages {
			entries = append(entries, entryOf(rest[i])...)
			paths = append(paths, p.path+"\n"...)
			if p.path != rest[i].Path {
				t.Fatalf("shard %d has %s, want %s", len(runs), p.path, rest[i].Path)
			}
		}
		if !bytes.Equal(entries, s.entries) || len(s.pages) == 0 || len(s.pages) > o.most || len(entries) > o.room {
			t.Fatalf("shard %d has %d pages, %d bytes", len(runs), len(s.pages), len(s.entries))
		}
		rest = rest[len(s.pages):]
		r.paths = string(paths)
		runs = append(runs, r)
	})
	for _, p := range pages {
		c.add(held{path: p.Path}, entryOf(p))
	}
	c.end()
	if c.held != nil || c.entries != nil || len(rest) > 0 {
		t.Errorf("%d pages are missing, or held after the end", len(rest)) // of all sections of a site, until the last one ends
	}
	ids := map[uint64]bool{}
	for i, s := range runs {
		if s.only != (len(runs) == 1) || ids[s.id] || s.id>>idBits != 0 || (s.id == 0) != (i == 0) {
			t.Errorf("shard %d of %d is named %012x, and is the only one: %t", i, len(runs), s.id, s.only)
		}
		ids[s.id] = true
	}
	return runs
}

// inFoldersOf200 are n pages in order.
func inFoldersOf200(n int) []page.Page {
	pages := make([]page.Page, n)
	for i := range pages {
		pages[i].Path = fmt.Sprintf("/folder-%04d/page-%07d.html", i/200, i)
	}
	return pages
}

// TestCutsStay: documents of a site keep their names and pages from one version of this module to the next.
func TestCutsStay(t *testing.T) {
	h := xxhash.New()
	for _, o := range []bounds{{maxPages, maxBytes}, {1000, maxBytes}, {1000, 10_000}, {7, 100}, {1, maxBytes}} {
		for _, s := range cutAll(t, o, inFoldersOf200(120_000)) {
			_, _ = fmt.Fprintf(h, "%012x %d\n", s.id, s.pages)
		}
	}
	if got, want := h.Sum64(), uint64(0x8e9887daab7d8980); got != want {
		t.Errorf("got %#x, want %#x", got, want)
	}
}

func TestInsertionChangesOneShard(t *testing.T) {
	const insertions, pages = 20, 100_000
	r := rand.New(rand.NewPCG(3, 3))
	all := inFoldersOf200(pages)
	ample := bounds{maxPages, maxBytes}
	before := cutAll(t, ample, all)
	changed := map[int]int{}
	after := make([]page.Page, 0, pages+1)
	for range insertions {
		p := page.Page{Path: fmt.Sprintf("/folder-%04d/page-%07d-%x.html", r.IntN(pages/200), r.IntN(pages), r.Uint32())}
		at, _ := slices.BinarySearchFunc(all, p, page.Compare)
		after = append(append(append(after[:0], all[:at]...), p), all[at:]...)
		changed[difference(before, cutAll(t, ample, after))]++
	}
	t.Logf("%d shards; insertions by the number of shards they changed: %v", len(before), changed)
	for n := range changed {
		if n > 3 {
			t.Errorf("an insertion changed %d shards", n)
		}
	}
	if changed[1]*100 < insertions*99 {
		t.Errorf("%d of %d insertions changed exactly one shard", changed[1], insertions)
	}
}

// difference is how many documents a crawler has to fetch again: those that after
// has and before has not, by name and content.
func difference(before, after []run) int {
	known := map[uint64]run{}
	for _, s := range before {
		known[s.id] = s
	}
	n := 0
	for _, s := range after {
		if known[s.id].paths != s.paths {
			n++
		}
	}
	return n
}

// Shards are handed over as soon as they are complete: what is held stays near a shard's size, however
// many pages come, and also where paths hash high, whether by chance or made to.
func TestHeldIsBounded(t *testing.T) {
	const most = 100
	begin := newCutter(most, maxBytes, nil).begin
	high := slices.DeleteFunc(inFoldersOf200(20_000), func(p page.Page) bool { return xxhash.Sum64String(p.Path) <= begin })
	for _, test := range []struct {
		pages []page.Page
		room  int
		held  int // at most
	}{
		{inFoldersOf200(100_000), maxBytes, 12 * most},
		{high, maxBytes, maxPiece*most + 1},
		{high, 10 * len(entryOf(high[0])), maxPiece*10 + 1},
	} {
		atMost, emitted, shards := 0, 0, 0
		c := newCutter(most, test.room, func(s shard) {
			emitted += len(s.pages)
			shards++
		})
		for i, p := range test.pages {
			c.add(held{path: p.Path}, entryOf(p))
			atMost = max(atMost, i+1-emitted)
		}
		c.end()
		if atMost > test.held || emitted/shards < test.held/maxPiece/4 {
			t.Errorf("held %d pages, made %d shards of %d", atMost, shards, emitted)
		}
	}
}

func TestCollidingNames(t *testing.T) {
	c := newCutter(1, 0, nil)
	path := "/page"
	ids := []uint64{c.newID("/first"), c.newID(path), c.newID(path), c.newID(path), c.newID("/other")}
	want := []uint64{0, ShardID(path), ShardID(path + "\x00"), ShardID(path + "\x00\x00"), ShardID("/other")}
	if !slices.Equal(ids, want) {
		t.Errorf("got %x, want %x", ids, want)
	}
}
