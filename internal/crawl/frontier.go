package crawl

import (
	"context"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const (
	maxPerPattern = 10_000 // discovered pages whose paths differ in digits alone
	maxCrowd      = 100    // new pages of a folder that are fetched in a round from an upstream
	maxSeeds      = 10     // redirects that are followed from the front page
	relink        = week   // after which Record.Linked is set again, or sooner
)

// link is a page that another one names.
type link struct {
	path  string
	depth uint8
	flags store.Flags // Target and Seed
}

// links collects what fetched pages link to: each target once, by the hash of its path.
type links struct {
	cleaner *page.Cleaner
	max     int // targets

	mu      sync.Mutex
	seen    map[uint64]uint8 // the least depth at which a target was found
	found   []link           // since the last round
	seeds   int
	dropped int
}

func (l *links) init(query []string) {
	l.cleaner, l.seen = page.NewCleaner(query), make(map[uint64]uint8)
}

// add takes a link to a clean path.
func (l *links) add(path string, depth uint8, flags store.Flags) {
	key := xxhash.Sum64String(path) ^ uint64(flags)
	l.mu.Lock()
	defer l.mu.Unlock()
	least, known := l.seen[key]
	switch {
	case known && least <= depth, flags&store.Seed != 0 && l.seeds > maxSeeds:
		return
	case !known && len(l.seen) >= l.max:
		l.dropped++
		return
	case flags&store.Seed != 0:
		l.seeds++
	}
	l.seen[key] = depth
	l.found = append(l.found, link{strings.Clone(path), depth, flags})
}

// take returns what was found, sorted, each path once.
func (l *links) take() []link {
	l.mu.Lock()
	found := l.found
	l.found = nil
	l.mu.Unlock()
	slices.SortFunc(found, func(a, b link) int { return strings.Compare(a.path, b.path) })
	out := found[:0]
	for _, n := range found {
		if last := len(out) - 1; last >= 0 && out[last].path == n.path {
			out[last].depth, out[last].flags = min(out[last].depth, n.depth), out[last].flags|n.flags
			continue
		}
		out = append(out, n)
	}
	return out
}

// round merges links into the records, and fetches what they name, what was left, and what upstreams have
// that is due, until wait ends; nil: nothing. It rewrites the chunks that this concerns.
func (r *Run) round(ctx, wait context.Context) (fetched int, err error) {
	found := r.links.take()
	r.crowd, r.deferred = make(map[string]int), false
	w, left, now := r.gen.Writer(), r.left, r.c.o.Now().Unix()
	aliases := r.takeAliases()
	if wait != nil {
		r.left = nil
	}
	for i := range r.gen.Chunks() {
		chunk := r.gen.Chunks()[i]
		next, last := endOf(r.gen.Chunks(), i)
		n := len(found)
		if !last {
			n = sort.Search(n, func(k int) bool { return found[k].path >= next })
		}
		part := found[:n]
		found = found[n:]
		isLeft := slices.ContainsFunc(left, func(path string) bool { return path >= chunk.First && (last || path < next) })
		isDue := chunk.Due <= now && chunk.First >= r.c.cursor && !r.stopped
		hasTime := wait != nil && wait.Err() == nil
		if len(part) == 0 && !aliases.chunks[i] && !(hasTime && (isLeft || isDue)) {
			w.Keep(i)
			continue
		}
		records, err := r.load(ctx, i)
		if err != nil {
			return fetched, err
		}
		r.countPending(records, -1)
		if records, err = r.insert(ctx, chunk.First, records, part); err != nil {
			return fetched, err
		}
		r.linkAliases(aliases, records, now)
		if before := r.stopped; hasTime {
			fetched += r.fetch(wait, records, chunk.First, !before)
			if !before && r.stopped {
				r.c.cursor = next // the next time, what comes after has its turn
			}
		}
		if err := ctx.Err(); err != nil {
			return fetched, err
		}
		r.countPending(records, 1)
		r.put(w, chunk.First, records)
	}
	gen, err := w.Generation()
	if err == nil {
		r.gen = gen
	}
	return fetched, err
}

// insert merges links into the records of the chunk that begins at first.
func (r *Run) insert(ctx context.Context, first string, records []store.Record, found []link) ([]store.Record, error) {
	now := r.c.o.Now().Unix()
	var fresh []store.Record
	for _, n := range found {
		i, known := find(records, n.path)
		if !known || records[i].Status != http.StatusOK {
			r.unmatched = append(r.unmatched, n.path)
		}
		if known {
			r.relink(&records[i], n, now)
			continue
		}
		rec, ok, err := r.discover(ctx, n, now)
		if err != nil {
			return nil, err
		}
		if ok {
			fresh = append(fresh, rec)
		}
	}
	if len(fresh) > 0 {
		r.touched = true
		r.counts.Followed += len(fresh)
		delete(r.c.visited, first) // which of the new pages were visited is to be seen
	}
	return mergeSorted(records, fresh), nil
}

// aliases are links to paths where no page was found: they count for the pages that have such a path for an
// alias (see [page.Bare]).
type aliases struct {
	bare   map[uint64]bool // hashes of bare paths
	chunks map[int]bool    // in which these pages are, if there are any
}

func (r *Run) takeAliases() aliases {
	a := aliases{make(map[uint64]bool), make(map[int]bool)}
	chunks := r.gen.Chunks()
	for _, path := range r.unmatched {
		a.bare[xxhash.Sum64String(page.Bare(path))] = true
		for _, alias := range page.Aliases(path) {
			a.chunks[sort.Search(len(chunks), func(i int) bool { return chunks[i].First > alias })-1] = true
		}
	}
	r.unmatched = nil
	return a
}

func (r *Run) linkAliases(a aliases, records []store.Record, now int64) {
	for i := range records {
		if rec := &records[i]; len(a.bare) > 0 && a.bare[xxhash.Sum64String(page.Bare(rec.Path))] {
			r.linked(rec, now)
		}
	}
}

// relink updates the record of a page to which another links.
func (r *Run) relink(rec *store.Record, n link, now int64) {
	r.linked(rec, now)
	if rec.Path == r.p.Front {
		r.c.seeded = r.p.Front
	}
	if rec.Flags|n.flags != rec.Flags {
		rec.Flags |= n.flags
		r.touched = true
	}
	if rec.Absent != 0 && r.discovers() {
		r.toLinked(rec)
	}
	if rec.Flags&store.Named == 0 && n.depth < rec.Depth {
		rec.Depth = n.depth
		if rec.Fetched != 0 && r.p.Links {
			rec.Due = 0 // its links are nearer, too
		}
		r.touched = true
	}
}

// linked records that something links to a page now.
func (r *Run) linked(rec *store.Record, now int64) {
	if now-rec.Linked > min(relink, r.expire()/4) || rec.Linked > now+clockSlack {
		rec.Linked = now
		r.touched = true
	}
}

// discover returns the record of a page that a link names; false: it gets none.
func (r *Run) discover(ctx context.Context, n link, now int64) (rec store.Record, ok bool, err error) {
	switch {
	case n.flags != 0:
	case r.p.Links && int(n.depth) > r.p.Depth, !r.discovers():
		return rec, false, nil
	}
	if reason := r.p.Filter(&page.Page{Path: n.path}); reason != "" && n.path != r.p.Front {
		return rec, false, nil
	}
	if r.census == nil {
		if r.census, err = r.count(ctx); err != nil {
			return rec, false, err
		}
	}
	pattern := r.census.patternOf(n.path)
	switch {
	case n.flags&store.Seed != 0:
	case r.census.pages >= r.p.MaxPaths:
		r.counts.DroppedPaths++
		return rec, false, nil
	case pattern != nil && *pattern >= maxPerPattern:
		r.counts.DroppedPatterns++
		return rec, false, nil
	}
	r.census.add(n.path)
	rec = store.Record{Path: n.path, Flags: n.flags, Depth: n.depth, Linked: now}
	if n.path == r.p.Front {
		r.c.seeded = n.path
	}
	r.classify(&rec)
	return rec, true, nil
}

// census counts pages that no source names, as bounds on them want it.
type census struct {
	pages    int
	patterns [1 << 16]uint32 // by hash of the path with folded digits; a few too many
}

// count makes a census of all records.
func (r *Run) count(ctx context.Context) (*census, error) {
	c := new(census)
	for rec, err := range r.gen.Records(ctx) {
		if err != nil {
			return nil, err
		}
		if rec.Flags&store.Named == 0 {
			c.add(rec.Path)
		}
	}
	return c, nil
}

func (c *census) add(path string) {
	c.pages++
	if n := c.patternOf(path); n != nil {
		*n++
	}
}

// patternOf is where pages like path are counted; nil: it has no digits.
func (c *census) patternOf(path string) *uint32 {
	folded := make([]byte, 0, 256)
	digits := false
	for i := 0; i < len(path); i++ {
		b := path[i]
		switch {
		case b == '%' && i+2 < len(path): // the digits of escapes are none
			folded = append(folded, path[i:i+3]...)
			i += 2
		case b < '0' || b > '9':
			folded = append(folded, b)
		case len(folded) == 0 || folded[len(folded)-1] != 0:
			folded = append(folded, 0)
			digits = true
		}
	}
	if !digits {
		return nil
	}
	return &c.patterns[xxhash.Sum64(folded)>>48]
}
