package verdict

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// LinkSet is the set of pages that other pages link to, by hash.
type LinkSet struct {
	hashes []uint64
	sorted int // of hashes, from the beginning
}

// What is not sorted yet may grow to this before it is.
const leastUnsorted = 1 << 16

// Add adds the links of a page to other ones.
func (s *LinkSet) Add(from string, links []string) {
	for _, link := range links {
		if link != from {
			s.hashes = append(s.hashes, Hash(link))
		}
	}
	if len(s.hashes)-s.sorted > max(s.sorted, leastUnsorted) {
		s.sort()
	}
}

func (s *LinkSet) sort() {
	slices.Sort(s.hashes)
	s.hashes = slices.Compact(s.hashes)
	s.sorted = len(s.hashes)
}

// Has reports whether a page is linked to.
func (s *LinkSet) Has(path string) bool {
	if s.sorted < len(s.hashes) {
		s.sort()
	}
	_, ok := find(s.hashes, Hash(path))
	return ok
}

// Reaches reports whether a page is linked to, be it by a path that leads to it: with
// the name of an index file, without a slash at the end, with ".html" or without.
func (s *LinkSet) Reaches(path string) bool {
	if s.Has(path) {
		return true
	}
	path, query, hasQuery := strings.Cut(path, "?")
	if hasQuery {
		query = "?" + query
	}
	bare := trimName(path)
	for _, ending := range [...]string{"", "/", "/index.html", "/index.htm", ".html", ".htm", "/index.php", ".php"} {
		if s.Has(bare + ending + query) {
			return true
		}
	}
	return false
}

// find is [slices.BinarySearch] for sorted hashes, each of which lies near the place
// that it would have if they were spread evenly.
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

// Alternates tells which sets of pages in several languages are complete: each page
// of a set lists the same set, itself in it.
type Alternates struct{ sets map[uint64]uint64 } // hash of the set by that of the path

// Add takes down which alternates a page lists.
func (a *Alternates) Add(path string, list []page.Alternate) {
	if len(list) == 0 {
		return
	}
	if a.sets == nil {
		a.sets = make(map[uint64]uint64)
	}
	a.sets[Hash(path)] = setHash(list)
}

// Mutual reports whether a page's set is complete, once all were added. A page of
// another site cannot be known to list it.
func (a *Alternates) Mutual(site, path string, list []page.Alternate) bool {
	own, itself := setHash(list), false
	for _, alternate := range list {
		there, ok := PathOn(site, alternate.URL)
		if !ok || a.sets[Hash(there)] != own {
			return false
		}
		itself = itself || there == path
	}
	return itself
}

// setHash is the same for lists that differ in order alone.
func setHash(list []page.Alternate) uint64 {
	var sum uint64
	for _, alternate := range list {
		sum += (Hash(strings.ToLower(alternate.Lang))*0x9e3779b97f4a7c15 ^ Hash(alternate.URL)) * 0x9e3779b97f4a7c15
	}
	return sum
}
