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

// add adds a link to a clean path.
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

// take returns what was found, sorted.
func (l *links) take() []link {
	found := l.found
	l.found = nil
	slices.SortFunc(found, func(a, b link) int { return strings.Compare(a.path, b.path) })
	return found
}

// hasLinks reports whether there are links of which the records do not know yet.
func (r *Run) hasLinks() bool { return len(r.links.found)+len(r.unmatched) > 0 }

// round merges links into the records, and fetches what they name and what is due, until wait ends. It rewrites
// the chunks that this concerns.
func (r *Run) round(ctx, wait context.Context) error {
	found, aliases := r.links.take(), r.takeAliases()
	w, now := r.gen.Writer(), r.c.now()
	r.left = false
	for i, chunk := range r.gen.Chunks() {
		next := r.endOf(i)
		n := sort.Search(len(found), func(k int) bool { return found[k].path >= next })
		part := found[:n]
		found = found[n:]
		isDue := chunk.Due <= now && wait.Err() == nil && !r.p.Closed
		if len(part) == 0 && !aliases.chunks[i] && !isDue {
			w.Keep(i)
			continue
		}
		records, err := r.load(ctx, i)
		if err != nil {
			return err
		}
		digest := sameDigest(r.gen.Chunks()[i])
		r.pending -= r.pendingOf(records)
		known := len(records)
		if records, err = r.addLinks(ctx, records, part); err != nil {
			return err
		}
		if len(records) > known {
			digest = unknownDigest // which of the new pages were visited is to be seen
		}
		r.linkAliases(aliases, records, now)
		before := r.fetched.Load()
		r.fetch(wait, records, chunk.First)
		r.pending += r.pendingOf(records)
		if len(part) == 0 && r.fetched.Load() == before && !aliases.chunks[i] && r.chunkDue(records) <= now {
			w.Keep(i) // upstreams are left alone, or it is another folder's turn
			continue
		}
		w.Put(chunk.First, records, digest, r.chunkDue)
	}
	return r.finish(w)
}

// addLinks merges links into the records of their range.
func (r *Run) addLinks(ctx context.Context, records []store.Record, found []link) ([]store.Record, error) {
	now := r.c.now()
	var fresh []store.Record
	for _, n := range found {
		i, known := find(records, n.path)
		if !known || records[i].Status != http.StatusOK {
			r.unmatched = append(r.unmatched, n.path)
		}
		j := len(fresh) - 1
		switch {
		case known:
			r.relink(&records[i], n, now)
		case j >= 0 && fresh[j].Path == n.path:
			r.relink(&fresh[j], n, now)
		default:
			rec, ok, err := r.discover(ctx, n, now)
			if err != nil {
				return nil, err
			}
			if ok {
				fresh = append(fresh, rec)
			}
		}
	}
	return insert(records, fresh), nil
}

// relink updates the record of a page to which another links.
func (r *Run) relink(rec *store.Record, n link, now int64) {
	r.linked(rec, now)
	rec.Flags |= n.flags
	if rec.Absent != 0 && r.p.discovers() {
		toLinked(rec)
		r.classify(rec)
	}
	if rec.Flags&store.Named == 0 && n.depth < rec.Depth {
		rec.Depth = n.depth
		if r.p.Links {
			rec.Due = 0 // its links are nearer, too
		}
	}
}

// linked records that something links to a page now.
func (r *Run) linked(rec *store.Record, now int64) {
	if now-rec.Linked > min(relink, r.p.expire()/4) || rec.Linked > now+clockSlack {
		rec.Linked = now
	}
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

// discover returns the record of a page that a link names; false: it gets none.
func (r *Run) discover(ctx context.Context, n link, now int64) (rec store.Record, ok bool, err error) {
	if n.flags == 0 && (!r.p.discovers() || r.p.Links && int(n.depth) > r.p.Depth) {
		return rec, false, nil
	}
	if n.path != r.p.Front && r.p.Filter(&page.Page{Path: n.path}) != "" {
		return rec, false, nil
	}
	if r.census == nil {
		if r.census, err = r.count(ctx); err != nil {
			return rec, false, err
		}
	}
	if n.flags&store.Seed == 0 && (r.census.pages >= r.p.MaxPaths || *r.census.like(n.path) >= maxPerPattern) {
		r.links.dropped++
		return rec, false, nil
	}
	r.census.add(n.path)
	rec = store.Record{Path: n.path, Flags: n.flags, Depth: n.depth, Linked: now}
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
	for i := range r.gen.Chunks() {
		records, err := r.load(ctx, i)
		if err != nil {
			return nil, err
		}
		for j := range records {
			if records[j].Flags&store.Named == 0 {
				c.add(records[j].Path)
			}
		}
	}
	return c, nil
}

func (c *census) add(path string) {
	c.pages++
	*c.like(path)++
}

// like is the count of pages whose paths differ from this one in digits alone.
func (c *census) like(path string) *uint32 {
	folded := make([]byte, 0, 256)
	for i := 0; i < len(path); i++ {
		switch b := path[i]; {
		case b == '%' && i+2 < len(path): // the digits of escapes are none
			folded = append(folded, path[i:i+3]...)
			i += 2
		case b < '0' || b > '9':
			folded = append(folded, b)
		case len(folded) == 0 || folded[len(folded)-1] != 0:
			folded = append(folded, 0)
		}
	}
	return &c.patterns[xxhash.Sum64(folded)>>48]
}
