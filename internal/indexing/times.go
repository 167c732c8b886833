package indexing

import (
	"iter"
	"math"
	"slices"
	"sort"
)

// times are Unix seconds.
type times []uint32

func (t *times) add(unix int64) {
	if unix > 0 && unix <= math.MaxUint32 {
		*t = append(*t, uint32(unix))
	}
}

// chains yields the parts of sorted times that follow each other without a longer gap, in seconds.
func (t times) chains(gap int64) iter.Seq[times] {
	return func(yield func(times) bool) {
		from := 0
		for i := range t {
			isLast := i+1 == len(t)
			if !isLast && int64(t[i+1])-int64(t[i]) <= gap {
				continue
			}
			if !yield(t[from : i+1]) {
				return
			}
			from = i + 1
		}
	}
}

// before returns how many of the sorted times are before one.
func (t times) before(at int64) int {
	return sort.Search(len(t), func(i int) bool { return int64(t[i]) >= at })
}

// within returns the part of the sorted times from one time to another.
func (t times) within(from, to int64) times { return t[t.before(from):t.before(to+1)] }

// span is from the first to the last time of an upload, in Unix seconds.
type span struct{ first, last uint32 }

// has reports whether a time is in the span.
func (s span) has(unix int64) bool { return int64(s.first) <= unix && unix <= int64(s.last) }

// uploads sorts the times and returns the spans of those that follow each other without a gap of ten minutes, in a day at
// most, and are enough. An archive to which somebody adds a page every few minutes, for years, is none, and neither are
// fewer than ten pages, unless they all were written within ten minutes.
func (t times) uploads(enough func(count int) bool) (found []span) {
	slices.Sort(t)
	for chain := range t.chains(maxGap) {
		first := chain[0]
		last := chain[len(chain)-1]
		isLong := len(chain) < fewestDeployed && last-first > maxGap
		if last-first <= day && !isLong && enough(len(chain)) {
			found = append(found, span{first, last})
		}
	}
	return found
}

// alike returns the span of nine tenths of the times, if they are those of one upload.
func (t times) alike() []span {
	return t.uploads(func(count int) bool { return count >= fewestAlike && 10*count >= 9*len(t) })
}

// areOfBuilds reports whether nine tenths of the times are those of one upload, or of two: while pages are deployed
// that declare when they were built, some of them still declare the build before.
func (t times) areOfBuilds() bool {
	if len(t.alike()) > 0 {
		return true
	}
	var largest, second int
	for _, s := range t.uploads(func(count int) bool { return count >= fewestAlike && 10*count >= len(t) }) {
		count := len(t.within(int64(s.first), int64(s.last)))
		if count > largest {
			second = largest
			largest = count
		} else if count > second {
			second = count
		}
	}
	return second > 0 && 10*(largest+second) >= 9*len(t)
}

// isIn reports whether a time is in any of the spans.
func isIn(spans []span, unix int64) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.has(unix) })
}
