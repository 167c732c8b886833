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
	record := realistic(1)[0]
	for title, want := range map[string]int{"": 116, "four": 116 + 2 + 1 + 4} {
		record.Title = title
		data, err := encoding.Marshal(record)
		if got := len(data); err != nil || got != want {
			t.Errorf("%q: got %d bytes, %v, want %d", title, got, err, want)
		}
	}
}
