package store

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// linkersOf has n pages, from a number on.
func linkersOf(from, n int) (l Linkers) {
	for i := range n {
		l = l.With(xxhash.Sum64String(fmt.Sprintf("/folder/page-%d.html", from+i)))
	}
	return l
}

func TestLinkers(t *testing.T) {
	for _, test := range []struct {
		n         int
		least     uint64
		most      uint64
		magnitude uint8
	}{
		{0, 0, 0, 0},
		{1, 1, 1, 1},
		{3, 2, 3, 2},
		{10, 6, 16, 4},
		{100, 50, 200, 7},
		{1000, 500, 2000, 10},
		{100_000, 50_000, 200_000, 17},
	} {
		l := linkersOf(0, test.n)
		got := l.Count()
		if got < test.least || got > test.most {
			t.Errorf("%d pages: got %d", test.n, got)
		}
		if got := l.Magnitude(); got < test.magnitude-min(test.magnitude, 1) || got > test.magnitude+1 {
			t.Errorf("%d pages: got magnitude %d, want %d or so", test.n, got, test.magnitude)
		}
		if again := l.Merge(linkersOf(0, test.n)); again != l {
			t.Errorf("%d pages: the same ones change %x to %x", test.n, l, again)
		}
	}
	// A mean of 40 is the greatest where what is not used counts, as it is nearer.
	if got := Linkers(0x6666_6666_3111_1110).Count(); got != fewest[1] {
		t.Errorf("of one unused register: got %d, want %d", got, fewest[1])
	}
	most := Linkers(0)
	for i := range uint64(registers) {
		most = most.With(i)
	}
	if most.Count() < 1<<17 || most != ^Linkers(0) {
		t.Errorf("got %d, %x", most.Count(), most)
	}
}

// TestLinkersMerge: in which order pages are added, how often, and in how many parts, makes no difference.
func TestLinkersMerge(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 1 + random.IntN(1000)
		whole := linkersOf(0, n)
		var shuffled, parts Linkers
		for _, i := range random.Perm(n) {
			shuffled = shuffled.With(xxhash.Sum64String(fmt.Sprintf("/folder/page-%d.html", i)))
		}
		for range 5 {
			from := random.IntN(n)
			parts = parts.Merge(linkersOf(from, n-from))
		}
		parts = parts.Merge(whole)
		if shuffled != whole || parts != whole || whole.Merge(0) != whole || Linkers(0).Merge(whole) != whole {
			t.Fatalf("%d pages: got %x, %x, want %x", n, shuffled, parts, whole)
		}
		if more := whole.Merge(linkersOf(n, n)); more.Count() < whole.Count() {
			t.Errorf("more pages than %d are fewer: %d instead of %d", n, more.Count(), whole.Count())
		}
	}
}

// TestLinkersOrder: of two pages of a random site, the one to which four times as many pages link has the greater estimate.
func TestLinkersOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	pairs, wrong := 0, 0
	for range 20 {
		const pages = 300
		var exact [pages]int
		var estimates [pages]Linkers
		for from := range pages {
			links := make(map[int]bool)
			for range 1 + random.IntN(40) {
				at := random.Float64()
				links[int(at*at*at*pages)] = true // the first ones are linked most
			}
			for to := range links {
				exact[to]++
				estimates[to] = estimates[to].With(xxhash.Sum64String(fmt.Sprintf("/%d", from)))
			}
		}
		for a := range pages {
			for b := range pages {
				if exact[a] < 4*exact[b] || exact[a] == 0 {
					continue
				}
				pairs++
				if estimates[a].Magnitude() < estimates[b].Magnitude() {
					wrong++
				}
			}
		}
	}
	if pairs < 100_000 || wrong*1000 > pairs {
		t.Errorf("%d of %d pairs are in the wrong order", wrong, pairs)
	}
}
