package sitemapxml

import (
	"bytes"
	stdgzip "compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
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
	document := writeURLSet(t, Schema09, base, realPages(5000))
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

	z, err := stdgzip.NewReader(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, document) {
		t.Errorf("decompressed: got %d bytes, %v, want %d", len(got), err, len(document))
	}
}

func TestGzipClosed(t *testing.T) {
	var b bytes.Buffer
	z := NewGzip(&b)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	n := b.Len()
	if err := z.Close(); err != nil || b.Len() != n {
		t.Errorf("the second Close: %v, %d bytes more", err, b.Len()-n)
	}
	if _, err := z.Write([]byte("x")); err == nil {
		t.Error("wrote after Close")
	}
	if err := NewGzip(&failing{5}).Close(); err != errFull {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

// What GzipLevel was chosen by.
func BenchmarkGzipLevels(b *testing.B) {
	const pages = 50_000
	document := writeURLSet(b, Schema09, base, realPages(pages))
	for level := 1; level <= 9; level++ {
		b.Run(fmt.Sprint(level), func(b *testing.B) {
			var size counter
			z, err := gzip.NewWriterLevel(&size, level)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(document)))
			for b.Loop() {
				size = 0
				z.Reset(&size)
				if _, err := z.Write(document); err != nil {
					b.Fatal(err)
				}
				if err := z.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*1e6/pages, "s/1Mpages")
			b.ReportMetric(float64(size)/pages, "bytes/page")
		})
	}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
