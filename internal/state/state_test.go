package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// randomRecords are n records of all kinds, in order, most with details.
func randomRecords(r *rand.Rand, n int, prefix string) []Record {
	paths := map[string]bool{}
	for len(paths) < n {
		paths[prefix+randomText(r, 40)] = true
	}
	records := make([]Record, 0, n)
	for path := range paths {
		records = append(records, randomRecord(r, path))
	}
	slices.SortFunc(records, func(a, b Record) int { return page.Compare(a.Page, b.Page) })
	return records
}

func randomText(r *rand.Rand, most int) string {
	b := make([]byte, 1+r.IntN(most))
	for i := range b {
		b[i] = "abcdefghij/&\x00\xff"[r.IntN(14)]
	}
	return string(b)
}

func randomRecord(r *rand.Rand, path string) Record {
	maybe := func() bool { return r.IntN(2) == 0 }
	number := func() int64 {
		switch r.IntN(4) {
		case 0:
			return 0
		case 1:
			return int64(r.Uint64())
		}
		return 1_700_000_000 + r.Int64N(1000)
	}
	text := func() string {
		switch r.IntN(4) {
		case 0:
			return randomText(r, 30)
		case 1:
			return path + randomText(r, 3)
		case 2:
			return []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "Tue, 02 Jan 2006 15:04:05 GMT", "Mon, 2 Jan 2006 15:04:05 GMT", "Mon, 02 Jan 2006 15:04:05 UTC", "Sat, 01 Jan 0000 00:00:00 GMT"}[r.IntN(6)]
		}
		return ""
	}
	rec := Record{
		Page: page.Page{Path: path, LastMod: number(), LastModDay: maybe(), ChangeFreq: page.ChangeFreq(r.IntN(8)),
			Priority: page.Priority(r.IntN(3)), Version: uint32(number())},
		Fingerprint: uint64(number()) & FingerprintMask,
		Declared:    number(), DeclaredDay: maybe(),
		LastMod: number(), LastModDay: maybe(),
		Seen: uint8(r.IntN(3)), Content: uint8(r.IntN(3)), Answer: uint8(r.IntN(300)), Suspect: uint8(r.IntN(3)),
		Flags: uint16(number()), Streak: uint8(r.IntN(3)), Wait: uint8(number()),
		Asked: number() / 60 * 60, Canonical: text(), ETag: text(), Modified: text(),
	}
	if maybe() {
		rec.LastMod = rec.Page.LastMod
	}
	if maybe() {
		rec.Declared = rec.Page.LastMod
	}
	if maybe() {
		rec.Details = randomDetails(r)
	}
	return rec
}

func randomDetails(r *rand.Rand) *Details {
	d := &Details{}
	for range r.IntN(5) {
		d.Links = append(d.Links, fmt.Sprint("/menu/", r.IntN(20)))
	}
	for range r.IntN(3) {
		d.Alternates = append(d.Alternates, page.Alternate{Lang: []string{"de", "en-GB", ""}[r.IntN(3)], URL: randomText(r, 20)})
	}
	for range r.IntN(3) {
		d.Images = append(d.Images, "https://example.com/"+randomText(r, 5))
	}
	return d
}

// site is what a book is expected to hold.
type site map[string]Record

func (s site) paths() []string {
	paths := make([]string, 0, len(s))
	for p := range s {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// bare is a record as a book gives it.
func bare(r Record) Record {
	r.Details, r.of, r.at = nil, nil, 0
	return r
}

func sameDetails(a, b *Details) bool {
	if a == nil {
		a = &Details{}
	}
	if b == nil {
		b = &Details{}
	}
	return slices.Equal(a.Links, b.Links) && slices.Equal(a.Alternates, b.Alternates) && slices.Equal(a.Images, b.Images)
}

// expect compares all that a book gives with what it should.
func expect(t *testing.T, b *Book, want site) {
	t.Helper()
	ctx := context.Background()
	paths := want.paths()
	if b.Len() != len(paths) {
		t.Fatalf("got %d records, want %d", b.Len(), len(paths))
	}
	i := 0
	err := b.Records(ctx, func(r *Record) error {
		if w := bare(want[paths[i]]); bare(*r) != w {
			t.Fatalf("record %d: got %+v, want %+v", i, bare(*r), w)
		}
		i++
		return nil
	})
	if err != nil || i != len(paths) {
		t.Fatalf("%d of %d records, error %v", i, len(paths), err)
	}
	seen := map[string]bool{}
	err = b.Details(ctx, func(path string, d *Details) error {
		if d.empty() || !sameDetails(d, want[path].Details) {
			t.Fatalf("details of %q: got %+v, want %+v", path, d, want[path].Details)
		}
		seen[path] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, r := range want {
		if !seen[path] && r.Details != nil && !r.Details.empty() {
			t.Fatalf("no details of %q", path)
		}
	}
	for _, path := range paths[:min(len(paths), 5)] {
		r, found, err := b.Find(ctx, path)
		if err != nil || !found || bare(*r) != bare(want[path]) || !sameDetails(r.Details, want[path].Details) {
			t.Fatalf("finding %q: %+v, %v, %v", path, r, found, err)
		}
	}
}

func reopen(t *testing.T, b *Book) *Book {
	t.Helper()
	again, err := Open(context.Background(), b.storage, b.folder[:len(b.folder)-len("/state")])
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.encode(), b.encode()) {
		t.Fatal("another manifest was read than written")
	}
	return again
}

// empty is a new book in memory.
func empty(t testing.TB) *Book {
	t.Helper()
	b, err := Open(context.Background(), NewMemory(), "sites/a")
	if err != nil || !b.Empty() {
		t.Fatal(err)
	}
	return b
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// write makes a book of records alone.
func write(t testing.TB, b *Book, records []Record, workers int) *Book {
	t.Helper()
	d := b.Draft(context.Background(), workers)
	for i := range records {
		if err := d.Add(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	return must(d.Commit(context.Background()))(t)
}

// TestGenerations changes a site at random, generation after generation, and
// compares what the book holds, before and after it is opened again.
func TestGenerations(t *testing.T) {
	seeds := uint64(5)
	if slow {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			b, want := empty(t), site{}
			for range 6 {
				b = nextGeneration(t, r, b, want)
				if r.IntN(2) == 0 {
					b = reopen(t, b)
				}
				expect(t, b, want)
				expectTidy(t, b)
			}
		})
	}
}

func nextGeneration(t *testing.T, r *rand.Rand, b *Book, want site) *Book {
	ctx := context.Background()
	for _, rec := range randomRecords(r, r.IntN(9000), randomText(r, 2)) {
		if _, there := want[rec.Page.Path]; !there {
			rec.Flags |= 1 << 15 // new
			want[rec.Page.Path] = rec
		}
	}
	drop, change := r.IntN(3) == 0, r.IntN(2) == 0
	d := b.Draft(ctx, 1+r.IntN(3))
	c := b.Cursor(ctx)
	defer c.Close()
	old := must(c.Next())(t)
	for _, path := range want.paths() {
		rec := want[path]
		if old == nil || old.Page.Path != path {
			if err := d.Add(&rec); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var err error
		switch n := r.IntN(10_000); {
		case n < 2 && drop:
			delete(want, path)
		case n < 4 && change:
			details := rec.Details
			rec = randomRecord(r, path)
			if err = d.Add(&rec); rec.Details == nil {
				rec.Details = details
			}
			want[path] = rec
		case n < 6 && change:
			old.Streak++
			rec.Streak++
			want[path] = rec
			err = d.Add(old)
		default:
			err = d.Keep(old)
		}
		if err != nil {
			t.Fatal(err)
		}
		old = must(c.Next())(t)
	}
	return must(d.Commit(ctx))(t)
}

// expectTidy checks that the storage holds what the book refers to and nothing else.
func expectTidy(t *testing.T, b *Book) {
	t.Helper()
	keys := must(b.storage.List(context.Background(), b.folder, true))(t)
	want := map[string]bool{b.manifestKey(): true}
	b.allRefs(func(r ref) { want[b.key(r.name)] = true })
	for _, key := range keys {
		if !want[key] {
			t.Errorf("left: %s", key)
		}
	}
	if len(keys) != len(want) && !b.Empty() {
		t.Errorf("%d values, want %d", len(keys), len(want))
	}
}

func TestUpdate(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(1, 2))
	records := randomRecords(r, 20_000, "/")
	b := write(t, empty(t), records, 2)
	want := site{}
	for _, rec := range records {
		want[rec.Page.Path] = rec
	}
	if b.Pieces() < 3 {
		t.Fatalf("%d pieces", b.Pieces())
	}
	paths := []string{"", records[3].Page.Path, records[3].Page.Path + "x", records[9000].Page.Path, records[9001].Page.Path, "~"}
	next := must(b.Update(ctx, paths, func(rec *Record) bool {
		if rec.Page.Path == records[9001].Page.Path {
			return false
		}
		rec.Asked = 6000
		rec.Details = &Details{Links: []string{"/new"}}
		want[rec.Page.Path] = *rec
		return true
	}))(t)
	expect(t, next, want)
	expectTidy(t, next)
	if n := changed(b, next); n == 0 || n > 2 {
		t.Errorf("%d pieces changed", n)
	}
	if same := must(next.Update(ctx, paths, func(*Record) bool { return false }))(t); same != next {
		t.Error("a book was written where nothing changed")
	}
}

// changed counts the pieces of b that a does not have.
func changed(a, b *Book) int {
	n := 0
	for _, p := range b.pieces {
		if !slices.Contains(a.pieces, p) {
			n++
		}
	}
	return n
}

func TestOrder(t *testing.T) {
	d := empty(t).Draft(context.Background(), 1)
	for _, test := range []struct {
		path string
		want error
	}{{"/b", nil}, {"/b", ErrOrder}, {"/a", ErrOrder}, {"/c", nil}, {"", ErrTooLarge}, {string(make([]byte, MaxPath+1)), ErrTooLarge}} {
		if err := d.Add(&Record{Page: page.Page{Path: test.path}}); !errors.Is(err, test.want) {
			t.Errorf("%.10q: got %v, want %v", test.path, err, test.want)
		}
	}
	d.Abort()
}
