package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/certmagic"
	"github.com/fxamacker/cbor/v2"
	"go.uber.org/goleak"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const prefix = "sites/example"

var ctx = context.Background()

func open(t testing.TB, storage Storage) *Store {
	t.Helper()
	s := New(storage, prefix)
	if err := s.Open(ctx, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func commit(t testing.TB, s *Store, g *Generation) {
	t.Helper()
	if err := s.Commit(ctx, g); err != nil {
		t.Fatal(err)
	}
}

// put returns a generation of records that were put in ranges of so many.
func put(t testing.TB, g *Generation, records []Record, size int) *Generation {
	t.Helper()
	w, first := g.Writer(), ""
	for part := range slices.Chunk(records, size) {
		w.Put(first, part, nil, nil)
		if len(records) > size {
			records = records[size:]
			first = records[0].Path
		}
	}
	if len(records) == 0 {
		w.Put("", nil, nil, nil)
	}
	next, err := w.Generation()
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func all(g *Generation) (records []Record, err error) {
	for r, err := range g.Records(ctx) {
		if err != nil {
			return nil, err
		}
		records = append(records, *r)
	}
	return records, nil
}

func expect(t testing.TB, g *Generation, want []Record) {
	t.Helper()
	got, err := all(g)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := cbor.Marshal(got) // faster to compare
	b, errB := cbor.Marshal(slices.Clip(want))
	if len(got) != len(want) || len(want) > 0 && !bytes.Equal(a, b) || g.Len() != len(want) || errA != nil || errB != nil {
		t.Errorf("got %d other records, Len %d, want %d", len(got), g.Len(), len(want))
	}
}

func objectNames(g *Generation) (names []string) {
	for _, c := range g.Chunks() {
		names = append(names, c.Object.Name)
	}
	return names
}

// files returns the names of all that is stored below the prefix.
func files(t testing.TB, storage Storage) (names []string) {
	t.Helper()
	names, err := storage.List(ctx, prefix, true)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return path.Base(name) == path.Base(folder) })
}

// seal makes a manifest of a line.
func seal(line []byte) []byte { return fmt.Appendf(bytes.Clone(line), "\n%s\n", Hash(line)) }

// full returns a record in which no field is zero.
func full(path string) Record {
	return Record{
		Path: path, Flags: Named | Blocked, ModTime: -1, Version: 1 << 31, ChangeFreq: 7, Priority: 101, Absent: 1,
		Depth: 255, Linked: 1 << 37, Fetched: 2, Due: 3, Wait: 1<<32 - 1, Failing: 4, Status: 503, Text: 1<<64 - 1,
		Canonical: "/c", Target: "https://example.org/", Declared: 5, ETag: "W/\"\xff\"", Modified: 6, First: 7,
		Changed: 8, Before: 9, Streak: 10, Alternates: []page.Alternate{{Lang: "de", URL: "https://example.org/de"}},
		Images: []string{"https://example.org/i.png"}, Selected: Selected{Listed: true, LastMod: 11, Day: true, Dated: 12}, NoIndexTag: true, Title: "t",
		ListDate: 13, Withheld: true, Cause: ByHub, Finder: "/f", Credited: true, Followed: 14, Hub: 15,
		Links: []string{"/l"}, Muted: 16, False: 17, FalseBy: ByList, FoundBy: ByHub, Settled: 18, Steadiness: Noisy,
		Blocks: 1<<64 - 2, Difference: 19, Description: "d", Markdown: "/m",
		Listed:  &page.Extensions{Alternates: []page.Alternate{{Lang: "l", URL: "u"}}, Images: []string{"i"}, Videos: []string{"v"}},
		Article: &Article{Published: 20, PublishedDay: true, Headline: "h", Lang: "l"},
		Was:     22, WasDay: true, Found: 23, Moved: 24, Turned: true,
	}
}

func TestReopen(t *testing.T) {
	if v := reflect.ValueOf(full("/")); true {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("field %s is zero", v.Type().Field(i).Name)
			}
		}
	}
	storages := map[string]Storage{"memory": NewMemory(), "file": &certmagic.FileStorage{Path: t.TempDir()}}
	for name, storage := range storages {
		t.Run(name, func(t *testing.T) {
			if err := storage.Store(ctx, prefix+"2/store/x", []byte("another's")); err != nil {
				t.Fatal(err)
			}
			s := open(t, storage)
			expect(t, s.Last(), nil)
			records := append(realistic(4000), full("/z"))
			g := put(t, s.Last(), records, 1000).WithDocuments(json.RawMessage(`{"a":1}`), []StoredDocument{
				NewDocument("index", json.RawMessage(`[2]`), []byte("data")), NewDocument("empty", nil, []byte{})})
			expect(t, g, records)
			for range 2 { // again from the storage
				commit(t, s, g)
				s = open(t, storage)
				g = s.Last()
				expect(t, g, records)
				docs := g.Documents()
				data, err := g.Document(ctx, 0)
				if err != nil || string(data) != "data" || docs[0].Name != "index" || string(docs[0].Meta) != "[2]" {
					t.Errorf("document %v: %q, %v", docs[0], data, err)
				}
				if data, err := g.Document(ctx, 1); err != nil || len(data) != 0 || string(g.Meta()) != `{"a":1}` {
					t.Errorf("document %q, %v, meta %s", data, err, g.Meta())
				}
			}
			commit(t, s, put(t, g, records[:1], 1).WithDocuments(nil, g.Documents()[:1]))
			if got := files(t, storage); len(got) != 3 {
				t.Errorf("not tidy: %q", got)
			}
			if _, err := storage.Load(ctx, prefix+"2/store/x"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWriterCuts(t *testing.T) {
	s := open(t, NewMemory())
	records := realistic(20_000)
	g := put(t, s.Last(), records, 5000)
	if n := len(g.Chunks()); n < 10 || n > 30 {
		t.Errorf("%d chunks", n)
	}
	if got := put(t, s.Last(), records, 777); !slices.Equal(objectNames(got), objectNames(g)) {
		t.Error("chunks depend on the ranges that are put")
	}
	same := put(t, g, records, 50_000)
	if !slices.Equal(objectNames(same), objectNames(g)) {
		t.Error("equal records are other objects")
	}
	// A page that goes changes one chunk, or joins it with another.
	less := objectNames(put(t, g, slices.Delete(slices.Clone(records), 11_000, 11_001), 5000))
	changed := slices.DeleteFunc(less, func(name string) bool { return slices.Contains(objectNames(g), name) })
	if len(changed) > 2 {
		t.Errorf("%d chunks changed", len(changed))
	}
	// Neighbours that became small are joined.
	if got := put(t, g, records[10_000:10_500], 50); len(got.Chunks()) != 1 {
		t.Errorf("%d chunks", len(got.Chunks()))
	}
	// A chunk is bounded by what its records take.
	large := make([]Record, 40)
	for i := range large {
		large[i] = Record{Path: fmt.Sprintf("/%02d", i), Images: slices.Repeat([]string{strings.Repeat("i", 900)}, 700)}
	}
	large[4].Images = slices.Repeat(large[4].Images, 7) // the last of a chunk
	got := put(t, s.Last(), large, 3)
	expect(t, got, large)
	if n := len(got.Chunks()); n < 6 {
		t.Errorf("%d chunks", n)
	}
}

// digestOf is a digest whose parts add up: of records up to one.
func digestOf(records []Record) func(first, next string) uint64 {
	return func(first, next string) (sum uint64) {
		for i, r := range records {
			if r.Path >= first && (next == "" || r.Path < next) {
				sum += uint64(i+1) << 40
			}
		}
		return sum
	}
}

func TestWriterDigests(t *testing.T) {
	s := open(t, NewMemory())
	records := realistic(30_000)
	due := func(records []Record) int64 { return int64(len(records)) }
	w := s.Last().Writer()
	w.SetSettings(5, 1<<63)
	w.Put("", records[:7000], digestOf(records[:7000]), due)
	w.Put(records[7000].Path, records[7000:], digestOf(records), due)
	g, err := w.Generation()
	if err != nil {
		t.Fatal(err)
	}
	check := func(g *Generation) {
		t.Helper()
		for i, c := range g.Chunks() {
			next := ""
			if i+1 < len(g.Chunks()) {
				next = g.Chunks()[i+1].First
			}
			if want := digestOf(records)(c.First, next); c.Digest != want || c.Due != int64(c.Count) {
				t.Errorf("chunk %d: digest %x, due %d, want %x, %d", i, c.Digest, c.Due, want, c.Count)
			}
		}
		if a, b := g.Settings(); a != 5 || b != 1<<63 {
			t.Errorf("settings %d, %d", a, b)
		}
	}
	check(g)
	commit(t, s, g)
	check(s.Last())
	w = g.Writer()
	for i := 0; i < len(g.Chunks())-1; i++ {
		w.Keep(i)
	}
	w.Put(g.Chunks()[len(g.Chunks())-1].First, nil, nil, due)
	next, err := w.Generation()
	if err != nil {
		t.Fatal(err)
	}
	last := len(g.Chunks()) - 1
	if c := next.Chunks()[last]; !slices.Equal(next.Chunks()[:last], g.Chunks()[:last]) || c.Count != 0 || c.Digest != 0 {
		t.Errorf("chunks %+v", next.Chunks())
	}
	commit(t, s, next)
	expect(t, s.Last(), records[:len(records)-g.Chunks()[last].Count])
}

func TestWriterOrder(t *testing.T) {
	s := open(t, NewMemory())
	records := realistic(20_000)
	g := put(t, s.Last(), records, 20_000)
	last := len(g.Chunks()) - 1
	second := g.Chunks()[1].First
	for name, write := range map[string]func(w *Writer){
		"nothing":          func(*Writer) {},
		"no beginning":     func(w *Writer) { w.Put("/a", nil, nil, nil) },
		"first kept late":  func(w *Writer) { w.Keep(1) },
		"a gap":            func(w *Writer) { w.Keep(0); w.Keep(2) },
		"no end":           func(w *Writer) { w.Keep(0) },
		"a gap before":     func(w *Writer) { w.Keep(0); w.Put(second+"x", nil, nil, nil) },
		"twice":            func(w *Writer) { w.Put("", records[:9], nil, nil); w.Put("", nil, nil, nil) },
		"too far":          func(w *Writer) { w.Put("", records, nil, nil); w.Keep(last) },
		"before the range": func(w *Writer) { w.Keep(0); w.Put(second, records[:1], nil, nil) },
		"unsorted":         func(w *Writer) { w.Put("", []Record{{Path: "/b"}, {Path: "/a"}}, nil, nil) },
		"same path":        func(w *Writer) { w.Put("", []Record{{Path: "/b"}, {Path: "/b"}}, nil, nil) },
	} {
		w := g.Writer()
		write(w)
		if _, err := w.Generation(); err == nil || !strings.HasPrefix(err.Error(), "out of order") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestDamage changes what is stored and learns it again.
func TestDamage(t *testing.T) {
	defer goleak.VerifyNone(t)
	records := realistic(4000)
	flip := func(b []byte) []byte {
		b = bytes.Clone(b)
		b[len(b)/2] ^= 4
		return b
	}
	reseal := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte {
			line, _, _ := bytes.Cut(b, []byte{'\n'})
			line = bytes.Replace(line, []byte(old), []byte(new), 1)
			return seal(line)
		}
	}
	for _, test := range []struct {
		name     string
		manifest bool
		change   func([]byte) []byte
	}{
		{"truncated chunk", false, func(b []byte) []byte { return b[:len(b)/2] }},
		{"empty chunk", false, func([]byte) []byte { return []byte{} }},
		{"flipped chunk", false, flip},
		{"foreign chunk", false, func([]byte) []byte { return []byte("<html>") }},
		{"truncated manifest", true, func(b []byte) []byte { return b[:len(b)/2] }},
		{"empty manifest", true, func([]byte) []byte { return []byte{} }},
		{"flipped manifest", true, flip},
		{"later manifest", true, reseal(`"version":3`, `"version":4`)},
		{"foreign manifest", true, func([]byte) []byte { return []byte(`{"version":3}`) }},
		{"manifest that leads out", true, reseal(`"store/`, `"../`)},
		{"manifest out of order", true, reseal(`"first":"/`, `"first":"","x":"/`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			storage := &certmagic.FileStorage{Path: t.TempDir()}
			s := open(t, storage)
			g := put(t, s.Last(), records, 1500)
			commit(t, s, g)
			key := prefix + "/" + ManifestName
			if !test.manifest {
				key = prefix + "/" + g.Chunks()[1].Object.Name
			}
			good, err := storage.Load(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			bad := test.change(good)
			if err := storage.Store(ctx, key, bad); err != nil {
				t.Fatal(err)
			}
			var damaged []string
			s = New(storage, prefix)
			err = s.Open(ctx, func(key string, err error) {
				damaged = append(damaged, key)
				if err == nil {
					t.Error("no error")
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			g, want := s.Last(), records[:0]
			if !test.manifest {
				from := g.Chunks()[0].Count
				want = slices.Delete(slices.Clone(records), from, from+g.Chunks()[1].Count)
				other := g.WithDocuments(nil, nil) // has the same chunks
				for _, g := range []*Generation{g, other} {
					if _, err := all(g); !errors.Is(err, ErrDamaged) {
						t.Errorf("error %v", err)
					}
				}
				if c := g.Chunks()[1]; c.Digest != 0 || c.Due != 0 || c.Count != 0 {
					t.Errorf("chunk %+v", c)
				}
				expect(t, other, want)
			}
			expect(t, g, want)
			if !slices.Equal(damaged, []string{key}) {
				t.Errorf("damaged: %q", damaged)
			}
			commit(t, s, g)
			expect(t, open(t, storage).Last(), want)
			commit(t, s, put(t, g, records, 2500))
			expect(t, open(t, storage).Last(), records)
		})
	}
}

// TestMissing takes all objects away: one error tells of all.
func TestMissing(t *testing.T) {
	storage := NewMemory()
	s := open(t, storage)
	commit(t, s, put(t, s.Last(), realistic(20_000), 5000).WithDocuments(nil, []StoredDocument{NewDocument("a", nil, []byte("b"))}))
	n := 0
	damaged := func(string, error) { n++ }
	s.damaged.Store(&damaged)
	for _, o := range s.Last().state.Load().objects() {
		_ = storage.Delete(ctx, prefix+"/"+o.Name)
	}
	other := s.Last().WithDocuments(nil, s.Last().Documents())
	if _, err := s.Last().Document(ctx, 0); !errors.Is(err, ErrDamaged) || len(s.Last().Documents()) != 0 {
		t.Errorf("error %v, documents %v", err, s.Last().Documents())
	}
	if _, err := other.Load(ctx, 1); !errors.Is(err, ErrDamaged) || len(other.Documents()) != 0 {
		t.Errorf("error %v, documents %v", err, other.Documents())
	}
	expect(t, s.Last(), nil)
	expect(t, other, nil)
	if want := len(s.Last().Chunks()) + 1; n != want {
		t.Errorf("%d objects are damaged, want %d", n, want)
	}
	commit(t, s, s.Last())
	if g := open(t, storage).Last(); len(g.Documents()) != 0 || g.Len() != 0 {
		t.Errorf("%d documents, %d records", len(g.Documents()), g.Len())
	}
}

// TestRelearn writes a damaged chunk again although its content, and so its name, is as before.
func TestRelearn(t *testing.T) {
	storage := NewMemory()
	commit(t, open(t, storage), put(t, open(t, storage).Last(), realistic(100), 100))
	s := open(t, storage)
	_ = storage.Store(ctx, prefix+"/"+s.Last().Chunks()[0].Object.Name, []byte("bad"))
	other := s.Last().WithDocuments(nil, nil) // finds it, while the last generation does not
	if _, err := all(other); !errors.Is(err, ErrDamaged) {
		t.Errorf("error %v", err)
	}
	commit(t, s, put(t, other, realistic(100), 100))
	expect(t, open(t, storage).Last(), realistic(100))
}

// TestFind: each record is found by its path, in whichever chunk it is.
func TestFind(t *testing.T) {
	g := open(t, NewMemory()).Last()
	if rec, err := g.Find(ctx, "/a"); rec != nil || err != nil {
		t.Errorf("of none: got %v, %v", rec, err)
	}
	records := realistic(4000)
	g = put(t, g, records, 100)
	edges := make(map[int]bool) // the first and the last record of each chunk
	from := 0
	for _, c := range g.Chunks() {
		edges[from] = true
		from += c.Count
		edges[from-1] = true
	}
	if len(edges) < 6 {
		t.Fatalf("%d chunks", len(g.Chunks()))
	}
	for i := range records {
		if !edges[i] && i%101 > 0 { // each is decoded twice
			continue
		}
		rec, err := g.Find(ctx, records[i].Path)
		if err != nil || rec == nil || rec.Path != records[i].Path || rec.Text != records[i].Text {
			t.Fatalf("%s: got %+v, %v", records[i].Path, rec, err)
		}
		if rec, err := g.Find(ctx, records[i].Path+"x"); rec != nil || err != nil {
			t.Fatalf("%sx: got %+v, %v", records[i].Path, rec, err)
		}
	}
	if rec, err := g.Find(ctx, "/"); rec != nil || err != nil {
		t.Errorf("before the first: got %v, %v", rec, err)
	}
}

// TestSearch: a path that no record has would be before the first greater one.
func TestSearch(t *testing.T) {
	records := []Record{{Path: "/b"}, {Path: "/d"}}
	for path, want := range map[string]struct {
		at      int
		isThere bool
	}{
		"/a": {0, false},
		"/b": {0, true},
		"/c": {1, false},
		"/d": {1, true},
		"/e": {2, false},
	} {
		if at, isThere := Search(records, path); at != want.at || isThere != want.isThere {
			t.Errorf("%s: got %d, %t, want %d, %t", path, at, isThere, want.at, want.isThere)
		}
	}
}
