package state

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/caddyserver/certmagic"

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
			Fingerprint: r.Uint64() & FingerprintMask, LastMod: mod, Seen: 1, Content: 1,
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
	b.ReportMetric(float64(book.Bytes())/float64(len(records)), "bytes/record")
	b.ReportMetric(float64(book.Pieces()), "pieces")
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

// withDetails gives each record a menu of 30 links and five links of its own.
func withDetails(records []Record) []Record {
	r := rand.New(rand.NewPCG(8, 8))
	var menu []string
	for i := range 30 {
		menu = append(menu, fmt.Sprintf("/section-%02d/", i))
	}
	for i := range records {
		d := &Details{Links: menu}
		for range 5 {
			d.Links = append(d.Links[:len(d.Links):len(d.Links)], records[max(0, i-r.IntN(100))].Page.Path)
		}
		records[i].Details = d
	}
	return records
}

// BenchmarkDetails reads the details of 100,000 records.
func BenchmarkDetails(b *testing.B) {
	records := withDetails(realistic(100_000))
	book := write(b, empty(b), records, 2)
	var size int
	for _, p := range book.pieces {
		for _, d := range p.details {
			for _, r := range d {
				size += int(r.size)
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := book.Details(context.Background(), func(string, *Details) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size)/float64(len(records)), "bytes/record")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
}

// BenchmarkWriteDetails writes 100,000 records with details.
func BenchmarkWriteDetails(b *testing.B) {
	records := withDetails(realistic(100_000))
	b.ReportAllocs()
	for b.Loop() {
		write(b, empty(b), records, 2)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
}

// BenchmarkOpen opens the state of 1,000,000 pages in files and loads the documents,
// of 17 bytes a page, as after a restart.
func BenchmarkOpen(b *testing.B) {
	ctx := context.Background()
	st := &certmagic.FileStorage{Path: b.TempDir()}
	d := must(Open(ctx, st, "site"))(b).Draft(ctx, 2)
	for _, r := range realistic(1_000_000) {
		if err := d.Add(&r); err != nil {
			b.Fatal(err)
		}
	}
	data := make([]byte, 17_000_000/54)
	for i := range 54 {
		for k := range data {
			data[k] = byte(rand.Uint32())
		}
		if err := d.PutDocument(fmt.Sprint(i), uint64(i), nil, data); err != nil {
			b.Fatal(err)
		}
	}
	must(d.Commit(ctx))(b)
	b.ReportAllocs()
	for b.Loop() {
		book := must(Open(ctx, st, "site"))(b)
		if docs, err := book.Documents(ctx); err != nil || len(docs) != 54 {
			b.Fatal(err)
		}
	}
}

// BenchmarkInsert adds one page to 1,000,000.
func BenchmarkInsert(b *testing.B) {
	ctx := context.Background()
	book := write(b, empty(b), realistic(1_000_000), 2)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		path := fmt.Sprintf("/folder-%04d/page-new-%d.html", i%5000, i)
		d, done := book.Draft(ctx, 1), false
		err := book.Records(ctx, func(r *Record) error {
			if !done && r.Page.Path > path {
				done = true
				if err := d.Add(&Record{Page: page.Page{Path: path}}); err != nil {
					return err
				}
			}
			return d.Keep(r)
		})
		if err != nil {
			b.Fatal(err)
		}
		book = must(d.Commit(ctx))(b)
	}
}
