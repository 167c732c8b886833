package accesslog

import (
	"slices"
	"strings"
	"sync"
)

// Visited are the paths that visitors have had, with the Unix second of the last visit. It is safe for
// concurrent use; the zero value is ready.
type Visited struct {
	mu      sync.Mutex
	paths   map[string]int64
	dropped int
}

// Add notes a visit. Where there are as many paths as may be, the oldest of a few is forgotten.
func (v *Visited) Add(path string, at int64, most int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.paths == nil {
		v.paths = make(map[string]int64)
	}
	last, known := v.paths[path]
	if !known && len(v.paths) >= most {
		v.dropped++
		oldest, before, n := "", at, 0
		for other, last := range v.paths { // in no order
			if last < before {
				oldest, before = other, last
			}
			if n++; n == 8 {
				break
			}
		}
		if oldest == "" {
			return
		}
		delete(v.paths, oldest)
	}
	if !known {
		path = strings.Clone(path)
	}
	v.paths[path] = max(last, at)
}

// Sorted returns the paths in order, without those of a last visit before since, which are forgotten.
func (v *Visited) Sorted(since int64) []string {
	v.mu.Lock()
	all := make([]string, 0, len(v.paths))
	for path, at := range v.paths {
		if at < since {
			delete(v.paths, path)
			continue
		}
		all = append(all, path)
	}
	v.mu.Unlock() // sorting takes its time, and visits wait
	slices.Sort(all)
	return all
}

// At returns when visitors had a path last, in Unix seconds; 0: never.
func (v *Visited) At(path string) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.paths[path]
}

// Count returns how many paths there are, and for how many there was no room.
func (v *Visited) Count() (paths, dropped int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.paths), v.dropped
}

// Reasons counts visits by [Visit.Reason]. It is safe for concurrent use; the zero value is ready.
type Reasons struct {
	mu sync.Mutex
	of map[string]int
}

// enoughVisits is how many visits to pages there are before it is said that few count.
const enoughVisits = 100

// Add counts a visit.
func (c *Reasons) Add(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]int)
	}
	c.of[reason]++
}

// Ignored returns how many visits to pages did not count, by reason, where those are nine tenths or more of
// all; nil: they are fewer.
func (c *Reasons) Ignored() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	ignored, all := make(map[string]int), c.of[""]
	for _, reason := range []string{SignedIn, NoIndex, Robot} {
		if n := c.of[reason]; n > 0 {
			ignored[reason] = n
			all += n
		}
	}
	if all < enoughVisits || 10*c.of[""] > all {
		return nil
	}
	return ignored
}
