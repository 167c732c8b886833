package publish

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// within bounds the bytes of a document: some bytes around each path, and around all.
func within(maxBytes int) func([]page.Page) bool {
	return func(pages []page.Page) bool { return size(pages) <= maxBytes }
}

func size(pages []page.Page) int {
	n := 50
	for _, p := range pages {
		n += 20 + len(p.Path)
	}
	return n
}

// cutAll cuts pages and checks what must hold of any cutting: all pages, in order,
// within bounds, under unique names that follow from the pages.
func cutAll(t testing.TB, o cutterOptions, pages []page.Page) []shard {
	t.Helper()
	shards := cut(t, o, pages)
	o = newCutter(o, nil).o
	ids := map[uint64]bool{}
	rest := pages
	for i, s := range shards {
		n := len(s.Pages)
		if n == 0 || n > len(rest) || !slices.Equal(s.Pages, rest[:n]) {
			t.Fatalf("shard %d of %d does not hold the next %d pages", i, len(shards), n)
		}
		rest = rest[n:]
		if s.Only != (len(shards) == 1) {
			t.Errorf("shard %d of %d: Only is %v", i, len(shards), s.Only)
		}
		if n > o.MaxPages {
			t.Errorf("shard %d has %d pages", i, n)
		}
		if o.Fits != nil && n > 1 && !o.Fits(s.Pages) {
			t.Errorf("shard %d has %d bytes", i, size(s.Pages))
		}
		if ids[s.ID] || s.ID>>idBits != 0 || (s.ID == 0) != (i == 0) {
			t.Errorf("shard %d is named %012x", i, s.ID)
		}
		ids[s.ID] = true
	}
	if len(rest) > 0 {
		t.Fatalf("the last %d pages are missing", len(rest))
	}
	return shards
}

func cut(t testing.TB, o cutterOptions, pages []page.Page) []shard {
	t.Helper()
	var shards []shard
	err := cutTo(o, pages, func(s shard) error {
		shards = append(shards, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

// cutTo cuts pages until there is an error.
func cutTo(o cutterOptions, pages []page.Page, emit func(shard) error) error {
	c := newCutter(o, emit)
	for _, p := range pages {
		if err := c.add(p); err != nil {
			return err
		}
	}
	err := c.end()
	if err == nil && (c.pages != nil || c.hashes != nil) {
		return errors.New("pages are held after the end") // of all sections of a site, until the last one ends
	}
	return err
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

// TestCutWithoutRoom: pages that are few enough for a document but have no room in one are cut where more of them would be.
func TestCutWithoutRoom(t *testing.T) {
	pages := inFoldersOf200(32)
	isRoomy := func(pages []page.Page) bool { return len(pages) < 32 }
	shards := cutAll(t, cutterOptions{MaxPages: 32, Fits: isRoomy}, pages)
	var got, want []string
	for _, s := range shards {
		got = append(got, s.Pages[0].Path)
	}
	for i, p := range pages {
		if i == 0 || xxhash.Sum64String(p.Path) <= math.MaxUint64/16 { // one in MaxPages/2
			want = append(want, p.Path)
		}
	}
	if len(want) < 3 || !slices.Equal(got, want) {
		t.Errorf("shards begin at %q, want %q", got, want)
	}
}

func TestCutterLimits(t *testing.T) {
	pages, ample := inFoldersOf200(40_000), 1<<30
	for _, test := range []struct {
		maxBytes int
		pages    []page.Page
		want     bool // in one document
	}{
		{size(pages), pages, true}, {size(pages) - 1, pages, false}, {0, pages[:1], true}, {0, nil, false},
		{ample, inFoldersOf200(50_000), true}, {ample, inFoldersOf200(50_001), false}, {ample, inFoldersOf200(120_000), false},
	} {
		if shards := cutAll(t, cutterOptions{Fits: within(test.maxBytes)}, test.pages); (len(shards) == 1) != test.want {
			t.Errorf("%d pages in at most %d bytes: got %d shards", len(test.pages), test.maxBytes, len(shards))
		}
	}
}

// Where the cuts lie follows from the set of pages: their paths and sizes.
func TestCutsFollowFromPages(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		pages := randomPages(r, r.IntN(2000), 12)
		o := cutterOptions{MaxPages: 1 + r.IntN(1+r.IntN(300)), Fits: within(100 + r.IntN(10_000))}
		if !slices.EqualFunc(cutAll(t, o, pages), reference(o, pages), same) {
			t.Fatalf("%+v: cuts are not those of the whole list at once", o)
		}
	}
}

func same(a, b shard) bool {
	return a.ID == b.ID && a.Only == b.Only && slices.Equal(a.Pages, b.Pages)
}

// reference is the rule as the design says it, on all pages at once.
func reference(o cutterOptions, pages []page.Page) []shard {
	fits := func(p []page.Page) bool { return len(p) <= o.MaxPages && o.Fits(p) || len(p) == 1 }
	if len(pages) == 0 {
		return nil
	}
	if fits(pages) {
		return []shard{{Pages: pages, Only: true}}
	}
	hash := func(p page.Page) uint64 { return xxhash.Sum64String(p.Path) }
	var shards []shard
	var cut func(p []page.Page)
	cut = func(p []page.Page) {
		if fits(p) {
			s := shard{Pages: p}
			if len(shards) > 0 {
				s.ID = ShardID(p[0].Path)
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
		if half := uint64(o.MaxPages / 2); half < 2 || hash(pages[i])*half/half == hash(pages[i]) {
			cut(pages[from:i])
			from = i
		}
	}
	cut(pages[from:])
	return shards
}

func TestInsertionChangesOneShard(t *testing.T) {
	if testing.Short() {
		t.Skip("two million pages")
	}
	const insertions, pages = 20, 100_000
	r := rand.New(rand.NewPCG(3, 3))
	all := inFoldersOf200(pages)
	before := cutAll(t, cutterOptions{}, all)
	changed := map[int]int{}
	after := make([]page.Page, 0, pages+1)
	for range insertions {
		p := page.Page{Path: fmt.Sprintf("/folder-%04d/page-%07d-%x.html", r.IntN(pages/200), r.IntN(pages), r.Uint32())}
		at, _ := slices.BinarySearchFunc(all, p, page.Compare)
		after = append(append(append(after[:0], all[:at]...), p), all[at:]...)
		changed[difference(before, cut(t, cutterOptions{}, after))]++
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
func difference(before, after []shard) int {
	known := map[uint64]shard{}
	for _, s := range before {
		known[s.ID] = s
	}
	n := 0
	for _, s := range after {
		if k, ok := known[s.ID]; !ok || !slices.Equal(k.Pages, s.Pages) {
			n++
		}
	}
	return n
}

// Shards are handed over as soon as they are complete: what is held stays near a shard's size, however
// many pages come, and also where paths hash high, whether by chance or made to.
func TestHeldIsBounded(t *testing.T) {
	const maxPages = 100
	o := cutterOptions{MaxPages: maxPages}
	begin := newCutter(o, nil).begin
	high := slices.DeleteFunc(inFoldersOf200(20_000), func(p page.Page) bool { return xxhash.Sum64String(p.Path) <= begin })
	for _, test := range []struct {
		pages []page.Page
		held  int
	}{{inFoldersOf200(100_000), 12 * maxPages}, {high, maxPiece * maxPages}} {
		most, emitted, shards := 0, 0, 0
		c := newCutter(o, func(s shard) error {
			emitted += len(s.Pages)
			shards++
			return nil
		})
		var err error
		for i, p := range test.pages {
			err = errors.Join(err, c.add(p))
			most = max(most, i+1-emitted)
		}
		err = errors.Join(err, c.end())
		if c.pages != nil {
			t.Error("it holds pages after its end")
		}
		isFull := most == test.held || &test.pages[0] != &high[0] // which are held until there is no room
		if err != nil || most > test.held || !isFull || emitted/shards < maxPages/4 {
			t.Errorf("held %d pages, made %d shards of %d, %v", most, shards, emitted, err)
		}
	}
}

func TestShardsBelongToTheReceiver(t *testing.T) {
	pages := inFoldersOf200(5000)
	shards := cutAll(t, cutterOptions{MaxPages: 100}, pages)
	for _, s := range shards {
		if cap(s.Pages) > len(s.Pages)+len(s.Pages)/4+8 {
			t.Errorf("%d pages keep room for %d", len(s.Pages), cap(s.Pages))
		}
		clear(s.Pages)
	}
	cutAll(t, cutterOptions{MaxPages: 100}, pages)
}

func TestCollidingNames(t *testing.T) {
	c := newCutter(cutterOptions{}, nil)
	path := "/page"
	ids := []uint64{c.newID("/first"), c.newID(path), c.newID(path), c.newID(path), c.newID("/other")}
	want := []uint64{0, ShardID(path), ShardID(path + "\x00"), ShardID(path + "\x00\x00"), ShardID("/other")}
	if !slices.Equal(ids, want) {
		t.Errorf("got %x, want %x", ids, want)
	}
}

func TestCutterErrors(t *testing.T) {
	stop := errors.New("stop")
	alone := func(pages []page.Page) bool { return len(pages) < 2 }
	for name, test := range map[string]struct {
		o     cutterOptions
		paths string
		want  error
		emits int
	}{
		"order":                 {cutterOptions{}, "/b /a", errOrder, 0},
		"twice":                 {cutterOptions{}, "/a /a", errOrder, 0},
		"order, behind a shard": {cutterOptions{MaxPages: 1}, "/a /b /b", errOrder, 1},
		"emit":                  {cutterOptions{MaxPages: 1}, "/a /b /c /d /e", stop, 1},
		"emit at the end":       {cutterOptions{}, "/a", stop, 1},
		"order before it emits": {cutterOptions{MaxPages: 2}, "/b /a", errOrder, 0},
		// Not more than MaxPages, but they fit into no document; each begins a shard.
		"emit, cut at the end": {cutterOptions{MaxPages: 3, Fits: alone}, "/a /b /c", stop, 1},
	} {
		emits := 0
		var pages []page.Page
		for path := range strings.FieldsSeq(test.paths) {
			pages = append(pages, page.Page{Path: path})
		}
		err := cutTo(test.o, pages, func(shard) error {
			emits++
			if test.want == stop {
				return stop
			}
			return nil
		})
		if !errors.Is(err, test.want) || emits != test.emits {
			t.Errorf("%s: got %v after %d emits, want %v after %d", name, err, emits, test.want, test.emits)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("a b c d e f g h i j k", uint16(3), uint16(100))
	f.Add("", uint16(0), uint16(0))
	f.Add("/a /a/b /a/c /b /b?c /d", uint16(1), uint16(1))
	f.Fuzz(func(t *testing.T, words string, maxPages, maxBytes uint16) {
		var pages []page.Page
		for word := range strings.FieldsSeq(words) {
			pages = append(pages, page.Page{Path: "/" + word})
		}
		slices.SortFunc(pages, page.Compare)
		pages = slices.Compact(pages)
		o := cutterOptions{MaxPages: int(maxPages), Fits: within(int(maxBytes))}
		got := cutAll(t, o, pages)
		if maxPages > 0 && len(pages) < maxPiece*o.MaxPages && !slices.EqualFunc(got, reference(o, pages), same) {
			t.Error("cuts are not those of the whole list at once")
		}
	})
}
