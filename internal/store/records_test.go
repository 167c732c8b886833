package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// realistic returns n records as a crawl of a large site of files leaves them.
func realistic(n int) []Record { return slices.Clone(largeSite()[:n]) }

var largeSite = sync.OnceValue(func() []Record {
	random := rand.New(rand.NewPCG(1, 2))
	records := make([]Record, 60_000)
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
	for i := range records {
		if err := encoding.MarshalToBuffer(&records[i], &raw); err != nil {
			t.Fatal(err)
		}
	}
	return encodeChunk(len(records), raw.Bytes())
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
		"linkers":     {func(r *Record) { r.Linkers = 1 << 60 }, 2 + 9},
		"article":     {func(r *Record) { r.Article = &Article{Published: 1_790_000_000, Lang: "de"} }, 2 + 1 + 1 + 5 + 1 + 1 + 2},
	} {
		record := realistic(1)[0]
		test.use(&record)
		data, err := encoding.Marshal(record)
		if got := len(data) - 116; err != nil || got != test.want {
			t.Errorf("%s: got %d more bytes, %v, want %d", name, got, err, test.want)
		}
	}
}
