package visits

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Visited are the paths that visitors have requested, with the Unix second of the last visit. It is safe for
// concurrent use; the zero value is ready.
type Visited struct {
	mu      sync.Mutex
	paths   map[string]int64
	dropped int
}

// Add records a visit. If there are most paths already, one of a few that were visited before gives way.
func (v *Visited) Add(path string, at int64, most int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.paths == nil {
		v.paths = make(map[string]int64)
	}
	last, isKnown := v.paths[path]
	if !isKnown && len(v.paths) >= most {
		v.dropped++
		if !v.forgetOne(at) {
			return
		}
	}
	v.paths[strings.Clone(path)] = max(last, at) // it may be a part of a whole line
}

// forgetOne forgets a path that was visited before a time, if there is one among eight by chance: to look for one among
// all would take long for each visit.
func (v *Visited) forgetOne(before int64) bool {
	n := 0
	for path, at := range v.paths { // a map's order is random
		if at < before {
			delete(v.paths, path)
			return true
		}
		n++
		if n == 8 {
			break
		}
	}
	return false
}

// Sorted returns the paths in order, and forgets those last visited before since.
func (v *Visited) Sorted(since int64) []string {
	v.mu.Lock()
	maps.DeleteFunc(v.paths, func(_ string, at int64) bool { return at < since })
	all := slices.Collect(maps.Keys(v.paths))
	// Visits wait for the lock, and sorting takes its time.
	v.mu.Unlock()
	slices.Sort(all)
	return all
}

// perVisit is what a path and its time take besides the path's bytes, as JSON.
const perVisit = 20

// Newest returns the paths that were visited last, of those that are wanted, with the Unix second of the last visit. As JSON, they
// take so many bytes at most.
func (v *Visited) Newest(most int, isWanted func(path string, at int64) bool) map[string]int64 {
	v.mu.Lock()
	all := maps.Clone(v.paths)
	v.mu.Unlock()
	maps.DeleteFunc(all, func(path string, at int64) bool { return !isWanted(path, at) })
	paths := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Compare(all[b], all[a]) })
	for _, path := range paths {
		most -= len(path) + 5*strings.Count(path, "&") + perVisit // JSON escapes it
		if most < 0 {
			delete(all, path)
		}
	}
	return all
}

// At returns when a path was last visited, in Unix seconds; 0: never.
func (v *Visited) At(path string) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.paths[path]
}

// Count returns how many paths there are, and how many visits found no room.
func (v *Visited) Count() (paths, dropped int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.paths), v.dropped
}
