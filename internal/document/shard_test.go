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

func size(pages []page.Page) (n int) {
	for _, p := range pages {
		n += len(entryOf(p))
	}
	return n
}

// run is a shard as a test reads it.
type run struct {
	id    uint64
	pages []page.Page
	only  bool
}

// cutAll cuts pages and checks what must hold of any cutting: all pages, in order,
// within bounds, under unique names that follow from the pages.
func cutAll(t testing.TB, o bounds, pages []page.Page) []run {
	t.Helper()
	var runs []run
	c := newCutter(o.most, o.room, func(s shard) {
		r := run{id: s.id, only: s.isOnly}
		for _, p := range s.pages {
			r.pages = append(r.pages, page.Page{Path: p.path})
		}
		var entries []byte
		for _, p := range r.pages {
			entries = append(entries, entryOf(p)...)
		}
		if !bytes.Equal(entries, s.entries) {
			t.Fatalf("the entries of %d pages are others", len(r.pages))
		}
		runs = append(runs, r)
	})
	for _, p := range pages {
		c.add(held{path: p.Path}, entryOf(p))
	}
	c.end()
	if c.held != nil || c.entries != nil {
		t.Error("pages are held after the end") // of all sections of a site, until the last one ends
	}
	ids := map[uint64]bool{}
	rest := pages
	for i, s := range runs {
		n := len(s.pages)
		if n == 0 || n > len(rest) || !slices.Equal(s.pages, rest[:n]) {
			t.Fatalf("shard %d of %d does not hold the next %d pages", i, len(runs), n)
		}
		rest = rest[n:]
		if s.only != (len(runs) == 1) {
			t.Errorf("shard %d of %d: only is %v", i, len(runs), s.only)
		}
		if n > o.most || size(s.pages) > o.room {
			t.Errorf("shard %d has %d pages, %d bytes", i, n, size(s.pages))
		}
		if ids[s.id] || s.id>>idBits != 0 || (s.id == 0) != (i == 0) {
			t.Errorf("shard %d is named %012x", i, s.id)
		}
		ids[s.id] = true
	}
	if len(rest) > 0 {
		t.Fatalf("the last %d pages are missing", len(rest))
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

func randomPages(r *rand.Rand, n, length int) []page.Page {
	paths := map[string]bool{}
	for len(paths) < n {
		b := make([]byte, 1+r.IntN(length))
		for i := range b {
			b[i] = "abcdefghij/&"[r.IntN(12)]
		}
		paths["/"+string(b)] = true
	}
	pages := make([]page.Page, 0, n)
	for path := range paths {
		pages = append(pages, page.Page{Path: path})
	}
	slices.SortFunc(pages, page.Compare)
	return pages
}

func same(a, b run) bool {
	return a.id == b.id && a.only == b.only && slices.Equal(a.pages, b.pages)
}

// reference is the rule as the design says it, on all pages at once.
func reference(o bounds, pages []page.Page) []run {
	fits := func(p []page.Page) bool { return len(p) <= o.most && size(p) <= o.room }
	if fits(pages) {
		return []run{{pages: pages, only: true}}
	}
	hash := func(p page.Page) uint64 { return xxhash.Sum64String(p.Path) }
	var shards []run
	var cut func(p []page.Page)
	cut = func(p []page.Page) {
		if fits(p) {
			s := run{pages: p}
			if len(shards) > 0 {
				s.id = ShardID(p[0].Path)
			}
			shards = append(shards, s)
			return
		}
		at := 0
		for i := max(1, len(p)/8); i < len(p)-len(p)/8; i++ {
			if at == 0 || hash(p[i]) < hash(p[at]) {
				at = i
			}
		}
		cut(p[:at])
		cut(p[at:])
	}
	from := 0
	for i := 1; i < len(pages); i++ {
		if half := uint64(o.most / 2); half < 2 || hash(pages[i])*half/half == hash(pages[i]) {
			cut(pages[from:i])
			from = i
		}
	}
	cut(pages[from:])
	return shards
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
		if k, ok := known[s.id]; !ok || !slices.Equal(k.pages, s.pages) {
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
		held  int // pages
	}{
		{inFoldersOf200(100_000), maxBytes, 12 * most},
		{high, maxBytes, maxPiece * most},
		{high, 10 * len(entryOf(high[0])), maxPiece * 10},
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
		isFull := atMost >= test.held || &test.pages[0] != &high[0] // which are held until there is no room
		if atMost > test.held+1 || !isFull || emitted/shards < min(most, test.held/maxPiece)/4 {
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

// FuzzCut: where the cuts are follows from the set of pages: their paths and sizes.
func FuzzCut(f *testing.F) {
	for seed := range uint64(100) {
		f.Add(seed, uint16(seed*97%1500+1), uint16(seed*seed%300+1), uint16(seed*seed*7919%10_000))
	}
	f.Fuzz(func(t *testing.T, seed uint64, n, most, room uint16) {
		pages := randomPages(rand.New(rand.NewPCG(seed, 2)), int(n)%2000+1, 12)
		o := bounds{max(int(most), 1), max(int(room), 40)}
		switch seed % 4 { // as many as fit into one, or one more
		case 0:
			o = bounds{max(len(pages)-int(room%2), 1), size(pages)}
		case 1:
			o = bounds{len(pages), max(size(pages)-int(room%2), 40)}
		}
		got := cutAll(t, o, pages)
		if len(pages) < maxPiece*o.most && size(pages) < maxPiece*o.room && !slices.EqualFunc(got, reference(o, pages), same) {
			t.Errorf("%+v: cuts are not those of the whole list at once", o)
		}
	})
}
