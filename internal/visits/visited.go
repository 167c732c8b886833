package visits

import (
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

// Add records a visit. If there are most paths already, one by chance gives way, if it was visited before: to look for the one that was
// visited first would take long for each visit.
func (v *Visited) Add(path string, at int64, most int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.paths == nil {
		v.paths = make(map[string]int64)
	}
	last, isKnown := v.paths[path]
	if !isKnown && len(v.paths) >= most {
		v.dropped++
		for other, last := range v.paths { // a map's order is random
			if last >= at {
				return
			}
			delete(v.paths, other)
			break
		}
	}
	v.paths[strings.Clone(path)] = max(last, at) // it may be a part of a whole line
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
