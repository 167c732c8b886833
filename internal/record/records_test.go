package record

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/caddyserver/certmagic"
)

// realistic returns n records as a crawl of a large site of files leaves them.
func realistic(n int) []Record { return slices.Clone(largeSite()[:n]) }

var largeSite = sync.OnceValue(func() []Record {
	random := rand.New(rand.NewPCG(1, 2))
	records := make([]Record, 30_000)
	for i := range records {
		batch := int64(1_790_000_000 + i%3*86_400)
		fetched := batch + int64(i/12_000)
		records[i] = Record{
			Path:    fmt.Sprintf("/docs/section-%04d/page-%06d.html", i/200, i),
			Flags:   Named | HTML | Document,
			ModTime: 1_780_000_000 + int64(i/200)*60, Version: random.Uint32(),
			Linked: batch, Fetched: fetched, Due: fetched + 7*86_400, Wait: 7 * 86_400,
			Status: 200, Text: random.Uint64(), First: batch, Changed: batch,
			Selected: Selected{Listed: true, LastMod: 1_780_000_000 + int64(i/200)*60},
		}
	}
	return records
})

func encode(t testing.TB, records []Record) []byte {
	var raw bytes.Buffer
	var hashes []byte
	for i := range records {
		hashes = appendHashes(hashes, &records[i])
		if err := encoding.MarshalToBuffer(&records[i], &raw); err != nil {
			t.Fatal(err)
		}
	}
	return encodeChunk(len(records), raw.Bytes(), hashes)
}

// TestRecordSize: a field that is not used takes no room on disk.
func TestRecordSize(t *testing.T) {
	for name, test := range map[string]struct {
		use  func(r *Record)
		want int // bytes beyond those of a record that does not use it
	}{
		"none":        {func(*Record) {}, 0},
		"title":       {func(r *Record) { r.Title = "four" }, 2 + 1 + 4},
		"description": {func(r *Record) { r.Description = "four" }, 2 + 1 + 4},
		"hashes":      {func(r *Record) { r.Version, r.Text, r.Blocks = 1, 2, 3 }, 0}, // see hashesSize
		"article":     {func(r *Record) { r.Article = &Article{Published: 1_790_000_000, Lang: "de"} }, 2 + 1 + 1 + 5 + 1 + 1 + 2},
	} {
		record := realistic(1)[0]
		test.use(&record)
		data, err := encoding.Marshal(record)
		if got := len(data) - 100; err != nil || got != test.want {
			t.Errorf("%s: got %d more bytes, %v, want %d", name, got, err, test.want)
		}
	}
}

// TestHashesOfChunk: a chunk whose hashes are not those of its records is damaged.
func TestHashesOfChunk(t *testing.T) {
	records := realistic(3)
	var raw []byte
	var hashes []byte
	for i := range records {
		data, err := encoding.Marshal(records[i])
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, data...)
		hashes = appendHashes(hashes, &records[i])
	}
	for name, test := range map[string]struct {
		hashes []byte
		isGood bool
	}{
		"all":     {hashes, true},
		"none":    {nil, false},
		"too few": {hashes[:2*hashesSize], false},
		"cut":     {hashes[:len(hashes)-2], false},
		"more":    {append(bytes.Clone(hashes), 0), false},
	} {
		got, err := decodeChunk(encodeChunk(len(records), raw, test.hashes))
		if isGood := err == nil; isGood != test.isGood {
			t.Errorf("%s: got %v", name, err)
		}
		if test.isGood && !reflect.DeepEqual(got, records) {
			t.Errorf("%s: got %+v, want %+v", name, got, records)
		}
	}
	raw = append([]byte{0x99, 0, 3}, raw...)
	if _, err := decodeChunk(pack(raw)); err == nil {
		t.Error("a chunk without a string of hashes is taken")
	}
}

// TestFormerFormat: what commit 109c614 has stored, before blocks were counted by rules with a version, keeps all dates, and no sum.
func TestFormerFormat(t *testing.T) {
	const now = 1_700_000_000
	s := New(&certmagic.FileStorage{Path: "testdata"}, "109c614")
	if err := s.Open(ctx, func(key string, err error) { t.Errorf("%s is damaged: %v", key, err) }); err != nil {
		t.Fatal(err)
	}
	g := s.Last()
	if settings, routes := g.Settings(); settings != 5 || routes != 6 || g.Chunks()[0].Due != now+9 {
		t.Errorf("settings %d, %d, chunks %+v", settings, routes, g.Chunks())
	}
	if d, err := g.Document(ctx, 0); err != nil || string(d) != "document" || string(g.Meta()) != `{"meta":{"settings":"1"}}` {
		t.Errorf("document %q, %v, meta %s", d, err, g.Meta())
	}
	records, err := all(g)
	if err != nil || len(records) != 3 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	batch := int64(now - 8*daySeconds)
	for i, want := range []Record{
		{Path: "/declared", Flags: Named | HTML | Document, Version: 7, ModTime: now - 9*daySeconds, Text: 11, Declared: now - 40*daySeconds,
			Selected: Selected{Listed: true, LastMod: now - 40*daySeconds, Text: now - 40*daySeconds, Dated: batch}},
		{Path: "/doubted", Flags: HTML | Document | Made, Text: 21, Before: now - daySeconds,
			Selected: Selected{Listed: true, LastMod: now - 5*daySeconds, Day: true, Text: now - 5*daySeconds, TextDay: true, Dated: batch}},
		{Path: "/undated", Flags: Named | HTML | Document, Version: 8, ModTime: now - 9*daySeconds, Text: 31, Declared: batch,
			Selected: Selected{Listed: true, Dated: batch}},
	} {
		want.Status, want.First, want.Fetched = 200, batch, records[i].Fetched
		if !reflect.DeepEqual(records[i], want) {
			t.Errorf("got %+v, want %+v", records[i], want)
		}
	}
	again, err := decodeChunk(encode(t, records))
	if err != nil || !reflect.DeepEqual(again, records) {
		t.Errorf("written again: got %+v, %v", again, err)
	}
}

// TestMoved: only chunks in which something has moved since a time are read.
func TestMoved(t *testing.T) {
	w := open(t, NewMemory()).Last().Writer()
	for i, first := range []string{"", "/b", "/c"} {
		w.Put(first, []Record{{Path: first + "/1", Moved: uint32(i * 100)}, {Path: first + "/2"}}, nil, nil)
		w.startChunk(first + "/3") // each range has a chunk of its own
	}
	g, err := w.Generation()
	if err != nil {
		t.Fatal(err)
	}
	for since, want := range map[int64]int{0: 6, 1: 4, 100: 4, 101: 2, 200: 2, 201: 0} {
		n := 0
		for _, err := range g.Moved(ctx, since) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != want {
			t.Errorf("since %d: got %d records, want %d", since, n, want)
		}
	}
}
