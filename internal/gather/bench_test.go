package gather

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const benchPages = 1_000_000

func benchmarkPages() []page.Page {
	pages := make([]page.Page, benchPages)
	for i := range pages {
		pages[i] = page.Page{Path: fmt.Sprintf("/section-%04d/article-%06d.html", i/200, i), LastMod: int64(1_700_000_000 + i)}
	}
	return pages
}

func streamOf(pages []page.Page) Stream {
	return func(_ context.Context, yield func(page.Page) error) error {
		for i := range pages {
			if err := yield(pages[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

func BenchmarkGather(b *testing.B) {
	sorted := benchmarkPages()
	shuffled := append([]page.Page(nil), sorted...)
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(shuffled), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
	var thirds [3][]page.Page
	for i, p := range sorted {
		thirds[i%3] = append(thirds[i%3], p)
	}
	b.Run("no gathering", func(b *testing.B) {
		inputs := []Input{{Pages: streamOf(sorted)}}
		var last string
		for b.Loop() {
			for _, in := range inputs {
				in.Pages(b.Context(), func(p page.Page) error { last = p.Path; return nil })
			}
		}
		_ = last
		perPage(b)
	})
	for _, bench := range []struct {
		name   string
		inputs []Input
		o      Options
	}{
		{"one sorted", []Input{{Pages: streamOf(sorted), Sorted: true}}, Options{}},
		{"three sorted", []Input{
			{Pages: streamOf(thirds[0]), Sorted: true}, {Pages: streamOf(thirds[1]), Sorted: true}, {Pages: streamOf(thirds[2]), Sorted: true},
		}, Options{}},
		{"one unsorted", []Input{{Pages: streamOf(shuffled)}}, Options{}},
		{"one unsorted in memory", []Input{{Pages: streamOf(shuffled)}}, Options{Memory: 1 << 30}},
		{"one unsorted that is sorted", []Input{{Pages: streamOf(sorted)}}, Options{}},
		{"sorted and unsorted", []Input{{Pages: streamOf(sorted), Sorted: true}, {Pages: streamOf(shuffled[:100_000])}}, Options{}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				failed, err := Gather(b.Context(), bench.inputs, bench.o, func(p page.Page) error { n++; return nil })
				if failed != nil || err != nil || n != benchPages {
					b.Fatal(n, failed, err)
				}
			}
			perPage(b)
		})
	}
}

func perPage(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchPages, "ns/page")
}
