package document

import (
	"cmp"
	"math/rand/v2"
	"testing"
)

type number int

func (n number) compare(other number) int { return cmp.Compare(n, other) }

// TestFirst: the first ones are kept in order, in whichever order they come, and no more.
func TestFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		all := r.Perm(r.IntN(100))
		f := first[number]{most: 1 + r.IntN(50)}
		for _, n := range all {
			f.add(number(n))
		}
		if len(f.values) != min(len(all), f.most) {
			t.Fatalf("%d of %d are kept, at most %d", len(f.values), len(all), f.most)
		}
		for want, got := range f.values {
			if int(*got) != want {
				t.Errorf("value %d is %d", want, *got)
			}
		}
	}
}
