package visits

import (
	"slices"
	"strings"
	"sync"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Visited are the paths that visitors have requested, with the Unix second of the last visit. It is safe for
// concurrent use; the zero value is ready.
type Visited struct {
	mu      sync.Mutex
	paths   map[string]int64
	dropped int
}

// Add records a visit. If there are most paths already, the oldest of a few is forgotten.
func (v *Visited) Add(path string, at int64, most int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.paths == nil {
		v.paths = make(map[string]int64)
	}
	last, isKnown := v.paths[path]
	if !isKnown && len(v.paths) >= most {
		v.dropped++
		oldest := v.oldestOfSome(at)
		if oldest == "" {
			return
		}
		delete(v.paths, oldest)
	}
	// The path may be a part of a line's buffer.
	if !isKnown {
		path = strings.Clone(path)
	}
	v.paths[path] = max(last, at)
}

// oldestOfSome returns the path that was visited longest ago, before a time, of eight paths by chance: to look for it among all
// would take long for each visit. "": none of them was visited before that.
func (v *Visited) oldestOfSome(before int64) (oldest string) {
	n := 0
	for path, last := range v.paths { // a map's order is random
		if last < before {
			oldest = path
			before = last
		}
		n++
		if n == 8 {
			break
		}
	}
	return oldest
}

// Sorted returns the paths in order, and forgets those last visited before since.
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

// Filter decides which visits count, and counts the others. It is safe for concurrent use.
type Filter struct {
	*origin.Cleaner
	lookedAt func() *lookedAt // made for the first signal: most sites of a configuration of thousands have none
	mu       sync.Mutex
	visits   map[string]int // by [Visit.Reason]
}

// NewFilter returns a Filter of pages that are told apart by these query parameters.
func NewFilter(query []string) *Filter {
	return &Filter{
		Cleaner:  origin.NewCleaner(query),
		visits:   make(map[string]int),
		lookedAt: sync.OnceValue(func() *lookedAt { return new(lookedAt) }),
	}
}

// enoughVisits is the number of visits to pages from which on Ignored judges.
const enoughVisits = 100

// Page returns the page that a visit shows, or why it does not count.
func (f *Filter) Page(v *Visit) (path, reason string) {
	reason = v.Reason()
	if reason == "" {
		var ok bool
		path, ok = f.Clean(v.URI)
		if !ok || !isPagePath(v.URI) {
			path = ""
			reason = oddPath
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.visits[reason]++
	return path, reason
}

// isPagePath reports whether a client that follows links to pages may request a URI. None sends dot segments, encoded
// or not (RFC 3986, section 5.2.4): they are a scanner's. So are .git and .env; /wiki/.NET may be a page.
func isPagePath(requested string) bool {
	path := page.Unescape(requested)
	return !strings.HasPrefix(path, "/.") && !strings.Contains(path+"/", "/./") && !strings.Contains(path+"/", "/../")
}

// Ignored returns how many visits to pages did not count, by reason, if these are at least nine tenths of all;
// else nil.
func (f *Filter) Ignored() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	ignored := make(map[string]int)
	all := f.visits[""]
	for _, reason := range []string{signedIn, noIndex, Robot} {
		if n := f.visits[reason]; n > 0 {
			ignored[reason] = n
			all += n
		}
	}
	if all < enoughVisits || 10*f.visits[""] > all {
		return nil
	}
	return ignored
}
