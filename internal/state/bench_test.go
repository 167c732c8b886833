package state

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// realistic are n records as a site of files in folders has them: written folder by
// folder over two years, some since, all read.
func realistic(n int) []Record {
	r := rand.New(rand.NewPCG(7, 7))
	records := make([]Record, n)
	at := int64(1_700_000_000)
	for i := range records {
		if i%200 == 0 {
			at = 1_700_000_000 + r.Int64N(63_000_000)
		}
		mod := at + r.Int64N(300)
		if r.IntN(10) == 0 {
			mod = 1_700_000_000 + r.Int64N(63_000_000)
		}
		records[i] = Record{
			Page:        page.Page{Path: fmt.Sprintf("/folder-%04d/page-%07d.html", i/200, i), LastMod: mod, Version: r.Uint32()},
			Fingerprint: r.Uint64(), LastMod: mod, Seen: 1, Content: 1,
		}
	}
	return records
}

func BenchmarkEncodePiece(b *testing.B) {
	records := realistic(2700)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = len(encodePiece(records))
	}
	b.ReportMetric(float64(n)/float64(len(records)), "bytes/record")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
}

func BenchmarkDecodePiece(b *testing.B) {
	records := realistic(2700)
	data := encodePiece(records)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodePiece(data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
}

// BenchmarkUnchanged is a refresh of 1,000,000 records in which nothing changed.
func BenchmarkUnchanged(b *testing.B) {
	records := realistic(1_000_000)
	book := write(b, empty(b), records, 2)
	b.ReportMetric(float64(book.Bytes())/float64(len(records)), "bytes/record")
	b.ReportMetric(float64(book.Pieces()), "pieces")
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		d, c := book.Draft(ctx, 1), book.Cursor(ctx)
		for {
			r, err := c.Next()
			if err != nil {
				b.Fatal(err)
			}
			if r == nil {
				break
			}
			if err := d.Keep(r); err != nil {
				b.Fatal(err)
			}
		}
		next, err := d.Commit(ctx)
		if err != nil || next != book {
			b.Fatal("it changed", err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
}

// BenchmarkFirst is a first refresh of 1,000,000 records.
func BenchmarkFirst(b *testing.B) {
	records := realistic(1_000_000)
	b.ReportAllocs()
	for b.Loop() {
		write(b, empty(b), records, 2)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
}
