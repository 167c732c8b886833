package schedule

import "slices"

// Rank says for whom a turn is wanted. Where several ranks wait, each has its share of the turns.
type Rank uint8

// The ranks of sites. Visitors can make up any number of hosts, so what they named has a share that does not grow with
// it.
const (
	Named Rank = iota // the configuration names the site
	Known             // visitors named its host; it has listed pages, and was requested again since
	Fresh             // visitors named its host, which may be made up
	ranks
)

// weights are the shares of the ranks, where all of them wait: named sites have over half of the turns, and of hosts
// that visitors named, those that are known have three times as many as fresh ones. None is shut out.
var weights = [ranks]float64{Named: 5, Known: 3, Fresh: 1}

// Line is a line of those who wait for turns, by their ranks: stride scheduling. It is not safe for concurrent use.
type Line[T comparable] struct {
	waiting [ranks][]T
	passes  [ranks]float64 // of the next turn of each rank: the least comes first
	passed  float64        // of the last turn
}

// Add adds one who waits, behind all others of the rank.
func (l *Line[T]) Add(of Rank, v T) {
	if len(l.waiting[of]) == 0 {
		// Turns that it did not want are not saved up.
		l.passes[of] = max(l.passes[of], l.passed)
	}
	l.waiting[of] = append(l.waiting[of], v)
}

// Remove removes one who waits; false: nobody such does.
func (l *Line[T]) Remove(of Rank, v T) bool {
	i := slices.Index(l.waiting[of], v)
	if i < 0 {
		return false
	}
	l.waiting[of] = slices.Delete(l.waiting[of], i, i+1)
	return true
}

// Next removes and returns whose turn it is, of those ranks that may have one, and its rank; false: nobody's.
func (l *Line[T]) Next(may func(Rank) bool) (next T, of Rank, ok bool) {
	best := ranks
	for of := range ranks {
		if len(l.waiting[of]) == 0 || !may(of) {
			continue
		}
		if best == ranks || l.passes[of] < l.passes[best] {
			best = of
		}
	}
	if best == ranks {
		return next, best, false
	}
	l.passed = l.passes[best]
	l.passes[best] += 1 / weights[best]
	// Turns for which there was no place are not saved up either: after requests of made-up hosts had hung, those that
	// visitors named would have all turns for as long.
	for of := range ranks {
		if len(l.waiting[of]) > 0 && !may(of) {
			l.passes[of] = max(l.passes[of], l.passed)
		}
	}
	next = l.waiting[best][0]
	l.waiting[best] = slices.Delete(l.waiting[best], 0, 1) // which clears what it frees
	return next, best, true
}

// Reject removes and returns those for whom a turn comes too late.
func (l *Line[T]) Reject(isLate func(T) bool) (late []T) {
	for of := range ranks {
		l.waiting[of] = slices.DeleteFunc(l.waiting[of], func(v T) bool {
			if !isLate(v) {
				return false
			}
			late = append(late, v)
			return true
		})
	}
	return late
}

// IsEmpty reports whether nobody waits.
func (l *Line[T]) IsEmpty() bool {
	for _, waiting := range l.waiting {
		if len(waiting) > 0 {
			return false
		}
	}
	return true
}
