package indexing

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Pages are told apart by the hashes of their paths: a set of them is a sorted slice.

func hash(s string) uint64 { return xxhash.Sum64String(s) }

// combine hashes two hashes.
func combine(a, b uint64) uint64 { return a*0x9e3779b97f4a7c15 ^ b }

// sortUnique sorts hashes and removes repeated ones.
func sortUnique(hashes []uint64) []uint64 {
	slices.Sort(hashes)
	return slices.Compact(hashes)
}

// sortRepeated sorts hashes and keeps one each of those that occur more than once.
func sortRepeated(hashes []uint64) []uint64 {
	slices.Sort(hashes)
	n := 0
	for i := 1; i < len(hashes); i++ {
		if hashes[i] == hashes[i-1] && (n == 0 || hashes[n-1] != hashes[i]) {
			hashes[n] = hashes[i]
			n++
		}
	}
	return slices.Clone(hashes[:n])
}

// find is [slices.BinarySearch], begun where h would be if the hashes were spread evenly,
// as they nearly are.
func find(hashes []uint64, h uint64) (int, bool) {
	near, _ := bits.Mul64(h, uint64(len(hashes)))
	from, to := int(near), int(near)
	for step := 16; from > 0 && hashes[from] >= h; step *= 2 {
		from = max(from-step, 0)
	}
	for step := 16; to < len(hashes) && hashes[to] < h; step *= 2 {
		to = min(to+step, len(hashes))
	}
	i, ok := slices.BinarySearch(hashes[from:min(to+1, len(hashes))], h)
	return from + i, ok
}

// pair maps one hash to another, in a slice that is sorted by the first.
type pair struct{ key, value uint64 }

func sortPairs(pairs []pair) {
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.key, b.key) })
}

// lookup returns the value of a key.
func lookup(pairs []pair, key uint64) (uint64, bool) {
	i, ok := slices.BinarySearchFunc(pairs, key, func(p pair, key uint64) int { return cmp.Compare(p.key, key) })
	if !ok {
		return 0, false
	}
	return pairs[i].value, true
}
