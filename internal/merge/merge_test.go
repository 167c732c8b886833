package merge

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func BenchmarkMerge(b *testing.B) {
	const n = 1_000_000
	sorted := make([]page.Page, n)
	for i := range sorted {
		sorted[i] = page.Page{Path: fmt.Sprintf("/section-%04d/article-%06d.html", i/200, i), LastMod: int64(1_700_000_000 + i)}
	}
	shuffled := append([]page.Page(nil), sorted...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
	var thirds [3][]page.Page
	for i, p := range sorted {
		thirds[i%3] = append(thirds[i%3], p)
	}
	input := func(sorted bool, pages []page.Page) Input {
		return Input{Sorted: sorted, Pages: func(_ context.Context, yield func(page.Page) error) error {
			for i := range pages {
				if err := yield(pages[i]); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	b.Run("read directly", func(b *testing.B) {
		var last string
		in := input(true, sorted)
		for b.Loop() {
			_ = in.Pages(b.Context(), func(p page.Page) error { last = p.Path; return nil })
		}
		_ = last
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/page")
	})
	for _, bench := range []struct {
		name   string
		inputs []Input
	}{
		{"one sorted", []Input{input(true, sorted)}},
		{"three sorted", []Input{input(true, thirds[0]), input(true, thirds[1]), input(true, thirds[2])}},
		{"the same twice", []Input{input(true, sorted), input(true, sorted)}},
		{"one unsorted", []Input{input(false, shuffled)}},
		{"sorted and unsorted", []Input{input(true, sorted), input(false, shuffled[:100_000])}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := Start(b.Context(), bench.inputs, Options{})
				got := 0
				for {
					_, ok, err := s.Next(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					if !ok {
						break
					}
					got++
				}
				s.Close()
				if got != n || !s.Complete() {
					b.Fatal(got, s.Result())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/page")
		})
	}
}
