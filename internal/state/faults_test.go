package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

var errDisk = errors.New("no space left on device")

// flaky is a Storage whose operations fail, from the one that counts fail down to
// zero on, as many as times says; or hang until hung is closed.
type flaky struct {
	Storage
	mu    sync.Mutex
	only  string // the operations that count: a prefix; "": all
	fail  int
	times int
	hung  chan struct{}
}

func (f *flaky) op(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !strings.HasPrefix(name, f.only) {
		return nil
	}
	if f.fail--; f.fail >= 0 || f.times <= 0 {
		return nil
	}
	f.times--
	if hung := f.hung; hung != nil {
		f.mu.Unlock()
		<-hung
		f.mu.Lock()
	}
	return errDisk
}

func (f *flaky) Store(ctx context.Context, key string, value []byte) error {
	if err := f.op("store " + key); err != nil {
		return err
	}
	return f.Storage.Store(ctx, key, value)
}

func (f *flaky) Load(ctx context.Context, key string) ([]byte, error) {
	if err := f.op("load " + key); err != nil {
		return nil, err
	}
	return f.Storage.Load(ctx, key)
}

func (f *flaky) Delete(ctx context.Context, key string) error {
	if err := f.op("delete " + key); err != nil {
		return err
	}
	return f.Storage.Delete(ctx, key)
}

func (f *flaky) List(ctx context.Context, prefix string, recursive bool) ([]string, error) {
	if err := f.op("list " + prefix); err != nil {
		return nil, err
	}
	return f.Storage.List(ctx, prefix, recursive)
}

// stride is how many operations lie between those that fail.
var stride = map[bool]int{false: 1, true: 9}[slow]

// generation is a site of which everything says which generation it is of.
func generation(g int) []Record {
	records := make([]Record, 6000)
	for i := range records {
		r := &records[i]
		r.Page.Path = fmt.Sprintf("/%05d", i)
		if i < 5000 {
			r.Fingerprint = uint64(g)
		}
		if i%50 == 0 {
			r.Details = &Details{Links: []string{fmt.Sprint("/generation/", g), "/"}}
		}
	}
	return records[:len(records)-g%7]
}

func document1(g int) []byte { return []byte(strings.Repeat(fmt.Sprintf("%04d", g), 100_000)) }

// advance commits generation g of a book.
func advance(ctx context.Context, b *Book, g int) (*Book, error) {
	d := b.Draft(ctx, 1+g%2)
	defer d.Abort()
	c := b.Cursor(ctx)
	old, err := c.Next()
	if err != nil {
		return nil, err
	}
	for _, r := range generation(g) {
		for old != nil && old.Page.Path < r.Page.Path {
			if old, err = c.Next(); err != nil {
				return nil, err
			}
		}
		if old != nil && old.Page.Path == r.Page.Path && old.Fingerprint == r.Fingerprint && r.Details == nil {
			err = d.Keep(old)
		} else {
			err = d.Add(&r)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := d.SetMeta([]byte(fmt.Sprint(g))); err != nil {
		return nil, err
	}
	if err := d.PutDocument("index", uint64(g), []byte(fmt.Sprint(g)), document1(g)); err != nil {
		return nil, err
	}
	if !d.KeepDocument("constant", 1) {
		if err := d.PutDocument("constant", 1, nil, []byte("constant")); err != nil {
			return nil, err
		}
	}
	return d.Commit(ctx)
}

// generationOf checks that a book is a whole generation, and tells which: 0: none.
func generationOf(ctx context.Context, b *Book) (int, error) {
	if b.Empty() {
		return 0, nil
	}
	var g int
	if _, err := fmt.Sscan(string(b.Meta()), &g); err != nil {
		return 0, err
	}
	want := generation(g)
	i := 0
	err := b.RecordsWithDetails(ctx, func(r *Record) error {
		if i >= len(want) || bare(*r) != bare(want[i]) || !sameDetails(r.Details, want[i].Details) {
			return fmt.Errorf("record %d of generation %d is %+v with %+v", i, g, bare(*r), r.Details)
		}
		i++
		return nil
	})
	if err != nil {
		return g, err
	}
	if i != len(want) {
		return g, fmt.Errorf("%d records of %d", i, len(want))
	}
	docs, err := b.Documents(ctx)
	if err != nil {
		return g, err
	}
	if len(docs) != 2 || docs[0].Name != "constant" || docs[1].Sum != uint64(g) ||
		string(docs[1].Data) != string(document1(g)) || string(docs[1].Meta) != fmt.Sprint(g) || string(docs[0].Data) != "constant" {
		return g, errors.New("other documents")
	}
	return g, nil
}

func openGeneration(t *testing.T, st Storage) (*Book, int) {
	t.Helper()
	b, err := Open(context.Background(), st, "site")
	if err != nil {
		t.Fatal(err)
	}
	g, err := generationOf(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	return b, g
}

// TestFailing lets the nth operation fail, for every n, and all after it, or not.
func TestFailing(t *testing.T) {
	ctx := context.Background()
	for _, times := range []int{1, 1 << 30} {
		for n, failed := 0, true; failed; n += stride {
			st := &flaky{Storage: NewMemory()}
			b, err := Open(ctx, st, "site")
			if err != nil {
				t.Fatal(err)
			}
			if b, err = advance(ctx, b, 1); err != nil {
				t.Fatal(err)
			}
			st.fail, st.times = n, times
			next, err := advance(ctx, b, 2)
			failed = st.times < times
			st.times = 0
			opened, g := openGeneration(t, st)
			switch {
			case err == nil && g != 2:
				t.Fatalf("operation %d failed: generation %d after a commit", n, g)
			case err != nil && !errors.Is(err, errDisk):
				t.Errorf("operation %d failed: %v", n, err)
			case err != nil && g != 1:
				t.Errorf("operation %d failed: generation %d after an error", n, g)
			}
			// Both the opened book and the one at hand go on, and clean up.
			if err == nil {
				opened = next
			} else if n/stride%2 == 0 {
				opened = b
			}
			last, err := advance(ctx, opened, 3)
			if err != nil {
				t.Fatal(err)
			}
			if _, g := openGeneration(t, st); g != 3 {
				t.Errorf("generation %d", g)
			}
			if last, err = advance(ctx, last, 4); err != nil {
				t.Fatal(err)
			}
			expectTidy(t, last)
		}
	}
}

// TestDamage changes each value in several ways: never is anything read that is not
// so, and a new book takes the place of what cannot be read.
func TestDamage(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(6, 6))
	good := NewMemory().(*memory)
	b, err := advance(ctx, must(Open(ctx, good, "site"))(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	keys := must(good.List(ctx, "site", true))(t)
	slices.Sort(keys)
	damages := map[string]func(v []byte) []byte{
		"flipped":   func(v []byte) []byte { v[r.IntN(len(v))] ^= 1 << r.IntN(8); return v },
		"flipped 2": func(v []byte) []byte { v[min(len(v)-1, 9)] ^= 0x40; return v },
		"halved":    func(v []byte) []byte { return v[:len(v)/2] },
		"emptied":   func([]byte) []byte { return nil },
		"longer":    func(v []byte) []byte { return append(v, 0) },
		"foreign":   func([]byte) []byte { return []byte(`{"version":3}`) },
		"newer":     func(v []byte) []byte { v[len(manifestMagic)]++; return v },
		"swapped":   func([]byte) []byte { return must(good.Load(ctx, keys[0]))(t) },
	}
	for i, key := range keys {
		if slow && i%4 > 0 {
			continue
		}
		for name, damage := range damages {
			if name == "swapped" && key == keys[0] {
				continue
			}
			st := NewMemory()
			for _, k := range keys {
				v := must(good.Load(ctx, k))(t)
				if k == key {
					v = damage(v)
				}
				_ = st.Store(ctx, k, v)
			}
			bad, err := Open(ctx, st, "site")
			if err == nil {
				_, err = generationOf(ctx, bad)
				bad = bad.Fresh()
			}
			if !errors.Is(err, ErrUnusable) {
				t.Errorf("%s %s: got error %v", key, name, err)
				continue
			}
			if !bad.Empty() || bad.Len() != 0 {
				t.Errorf("%s %s: the book is not empty", key, name)
			}
			if bad, err = advance(ctx, bad, 1); err != nil {
				t.Errorf("%s %s: %v", key, name, err)
				continue
			}
			if _, g := openGeneration(t, st); g != 1 {
				t.Errorf("%s %s: generation %d", key, name, g)
			}
			expectTidy(t, bad)
		}
	}
	if b.Pieces() < 2 {
		t.Error("one piece alone")
	}
}

// TestHealing goes on behind a piece that is damaged, and writes it again.
func TestHealing(t *testing.T) {
	ctx := context.Background()
	st := NewMemory()
	b, err := advance(ctx, must(Open(ctx, st, "site"))(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	records := generation(1)
	for _, lost := range []blob{b.pieces[0].records, b.pieces[1].records} {
		_ = st.Delete(ctx, b.key(lost[0].name))
		d, c := b.Draft(ctx, 2), b.Cursor(ctx)
		have := map[string]*Record{}
		for damaged := 0; ; {
			r, err := c.Next()
			if errors.Is(err, ErrUnusable) && damaged == 0 {
				damaged++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if r == nil {
				break
			}
			have[r.Page.Path] = r
		}
		if len(have) == 0 || len(have) == len(records) {
			t.Fatalf("%d records are there", len(have))
		}
		for i := range records {
			put, r := d.Add, &records[i]
			if old := have[r.Page.Path]; old != nil {
				put, r = d.Keep, old
			}
			if err := put(r); err != nil {
				t.Fatal(err)
			}
		}
		d.KeepDocuments()
		if b, err = d.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if _, g := openGeneration(t, st); g != 1 {
			t.Fatalf("generation %d", g)
		}
	}
	_ = st.Delete(ctx, b.key(b.documents[0].data[0].name))
	if _, err := b.Documents(ctx); !errors.Is(err, ErrUnusable) {
		t.Errorf("got %v", err)
	}
	if b, err = advance(ctx, b, 2); err != nil {
		t.Fatal(err)
	}
	if _, g := openGeneration(t, st); g != 2 {
		t.Fatalf("generation %d", g)
	}
	expectTidy(t, b)
}

// TestStale lets two books of one site go on: the later one is told so.
func TestStale(t *testing.T) {
	ctx := context.Background()
	st := NewMemory()
	a := must(Open(ctx, st, "site"))(t)
	b := must(Open(ctx, st, "site"))(t)
	a1, err := advance(ctx, a, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := advance(ctx, b, 9); !errors.Is(err, ErrStale) {
		t.Errorf("got %v", err)
	}
	a2, err := advance(ctx, a1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := generationOf(ctx, a1); !errors.Is(err, ErrStale) {
		t.Errorf("got %v", err)
	}
	if _, err := advance(ctx, a1.Fresh(), 3); !errors.Is(err, ErrStale) {
		t.Errorf("got %v", err)
	}
	if _, g := openGeneration(t, st); g != 2 {
		t.Errorf("generation %d", g)
	}
	if err := Erase(ctx, st, "site"); err != nil {
		t.Fatal(err)
	}
	if _, err := advance(ctx, a2, 3); !errors.Is(err, ErrStale) && !errors.Is(err, ErrUnusable) {
		t.Errorf("got %v", err)
	}
	if keys := must(st.List(ctx, "site", true))(t); len(keys) != 0 {
		t.Errorf("left: %v", keys)
	}
}

// TestFinish makes books of books before any of them is committed.
func TestFinish(t *testing.T) {
	ctx := context.Background()
	st := NewMemory()
	b, err := advance(ctx, must(Open(ctx, st, "site"))(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	step := func(from *Book, fingerprint uint64) *Book {
		t.Helper()
		d := from.Draft(ctx, 2)
		d.KeepDocuments()
		err := from.Records(ctx, func(r *Record) error {
			if r.Page.Path != "/00007" || r.Fingerprint == fingerprint {
				return d.Keep(r)
			}
			r.Fingerprint = fingerprint
			return d.Add(r)
		})
		if err != nil {
			t.Fatal(err)
		}
		return must(d.Finish())(t)
	}
	fingerprint := func(b *Book) uint64 {
		r, _, err := b.Find(ctx, "/00007")
		if err != nil {
			t.Fatal(err)
		}
		return r.Fingerprint
	}
	second := step(b, 22)
	third := step(second, 33)
	if fingerprint(b) != 1 || fingerprint(second) != 22 || fingerprint(third) != 33 {
		t.Error("a book that is not committed says something else")
	}
	// Back where it was: what is discarded or aborted is not what is committed.
	back := step(third, 1)
	if same := must(back.Commit(ctx))(t); same != b && fingerprint(same) != 1 {
		t.Error("another book was committed")
	}
	step(b, 44).Discard(ctx)
	d := step(step(b, 55), 1).Draft(ctx, 1)
	if err := d.Add(&Record{Page: generation(1)[7].Page, Fingerprint: 1}); err != nil {
		t.Fatal(err)
	}
	d.Abort()
	if _, g := openGeneration(t, st); g != 1 {
		t.Errorf("generation %d", g)
	}
	last := must(step(step(must(Open(ctx, st, "site"))(t), 66), 77).Commit(ctx))(t)
	if fingerprint(reopenAt(t, last, "site")) != 77 {
		t.Error("another book was committed")
	}
	expectTidy(t, last)
}

func reopenAt(t *testing.T, b *Book, prefix string) *Book {
	t.Helper()
	return must(Open(context.Background(), b.storage, prefix))(t)
}

// TestNeighbours keeps to one site's own values, also where a Storage takes a prefix
// for the beginning of a name.
func TestNeighbours(t *testing.T) {
	ctx := context.Background()
	st := prefixes{NewMemory().(*memory)}
	others := []string{"site/statement/x", "site/state/deeper/x", "site/stat", "sites/state/manifest", "site2/state/x"}
	for _, key := range others {
		_ = st.Store(ctx, key, nil)
	}
	_ = st.Store(ctx, "site/state/123456", []byte("what a storage left when it was killed"))
	b, err := advance(ctx, must(Open(ctx, st, "site"))(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Load(ctx, "site/state/123456"); err == nil {
		t.Error("a value that nothing refers to is left")
	}
	if err := Erase(ctx, b.storage, "site"); err != nil {
		t.Fatal(err)
	}
	keys := must(st.List(ctx, "", true))(t)
	slices.Sort(keys)
	slices.Sort(others)
	if !slices.Equal(keys, others) {
		t.Errorf("got %v, want %v", keys, others)
	}
}

// prefixes lists all keys that begin with a prefix.
type prefixes struct{ *memory }

func (p prefixes) List(_ context.Context, prefix string, _ bool) ([]string, error) {
	var keys []string
	for key := range p.values {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// TestStaleUncommitted has another generation committed while one is in the making.
func TestStaleUncommitted(t *testing.T) {
	ctx := context.Background()
	b, err := advance(ctx, empty(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	d := b.Draft(ctx, 1)
	err = b.Records(ctx, func(r *Record) error {
		r.Streak++
		return d.Add(r)
	})
	if err != nil {
		t.Fatal(err)
	}
	learnt := must(d.Finish())(t)
	other := must(b.Update(ctx, []string{"/00001"}, func(r *Record) bool { r.Wait = 9; return true }))(t)
	if _, err := generationOf(ctx, learnt); !errors.Is(err, ErrStale) || errors.Is(err, ErrUnusable) {
		t.Errorf("got %v", err)
	}
	if _, err := learnt.Commit(ctx); !errors.Is(err, ErrStale) {
		t.Errorf("got %v", err)
	}
	learnt.Discard(ctx)
	expectTidy(t, other)
	if r, found, err := other.Find(ctx, "/00001"); err != nil || !found || r.Wait != 9 {
		t.Errorf("got %+v, %v, %v", r, found, err)
	}
}

// TestKeepCopy keeps copies of records, of which one was changed.
func TestKeepCopy(t *testing.T) {
	ctx := context.Background()
	b, err := advance(ctx, empty(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []int{-1, 0, 77, 5998} {
		d, i := b.Draft(ctx, 1), 0
		d.KeepDocuments()
		err := b.Records(ctx, func(r *Record) error {
			rec := *r
			if i == change {
				rec.Streak++
			}
			i++
			return d.Keep(&rec)
		})
		if err != nil {
			t.Fatal(err)
		}
		next := must(d.Finish())(t)
		if same := next == b; same != (change < 0) {
			t.Errorf("record %d: the same: %v", change, same)
		}
		if n := changed(b, next); n > 1 {
			t.Errorf("record %d: %d pieces changed", change, n)
		}
		next.Discard(ctx)
	}
	expectTidy(t, b)
}
