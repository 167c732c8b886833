package sitemapxml

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
)

func compress(t testing.TB, document []byte, pieces func() int) []byte {
	t.Helper()
	var b bytes.Buffer
	z := NewGzip(&b)
	for len(document) > 0 {
		n := min(pieces(), len(document))
		if _, err := z.Write(document[:n]); err != nil {
			t.Fatal(err)
		}
		document = document[n:]
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Equal documents must be equal bytes wherever and however they are written: their
// ETags come from them.
func TestGzipIsDeterministic(t *testing.T) {
	document := urlSet(t, Encoder{Base: base}, realPages(5000))
	want := compress(t, document, func() int { return len(document) })
	if mtime := want[4:8]; !bytes.Equal(mtime, make([]byte, 4)) {
		t.Errorf("the header holds a time: %x", mtime)
	}
	var wait sync.WaitGroup
	for seed := range uint64(8) {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(seed, 0))
			for range 3 {
				if got := compress(t, document, func() int { return 1 + r.IntN(100_000) }); !bytes.Equal(got, want) {
					t.Errorf("got %d other bytes, want %d", len(got), len(want))
				}
			}
		})
	}
	wait.Wait()

	z, err := gzip.NewReader(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, document) {
		t.Errorf("decompressed: got %d bytes, %v, want %d", len(got), err, len(document))
	}
}

func TestGzipError(t *testing.T) {
	if err := NewGzip(&failing{5}).Close(); err != errFull {
		t.Errorf("got %v, want %v", err, errFull)
	}
}
