package crawl

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/frontier"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const (
	imagesPerPath = 10     // the most images, for each of Policy.MaxPaths
	maxPerPattern = 10_000 // the most discovered pages whose paths differ in digits alone
)

// makeRoom reports whether there is room for what a link names. A page that was never fetched may give way to one of a
// smaller group.
func (r *Run) makeRoom(n link) bool {
	c := r.census
	if n.flags&record.Seed != 0 {
		return true
	}
	if n.flags&record.Image != 0 {
		return c.images < imagesPerPath*r.p.MaxPaths
	}
	// Counted with the others, a page with many links at the last level took the places of pages that are fetched.
	if r.isTooDeep(n.depth, n.flags) {
		return c.tooDeep < r.p.MaxPaths
	}
	if *c.like(n.path) >= maxPerPattern {
		return false
	}
	if c.pages < r.p.MaxPaths {
		return true
	}
	// Where filters or a calendar have filled it, products still get their records. Those that give way are dropped in
	// this round or the next one. Until then, there are so many more.
	isOver := c.waiting.GivingUp() >= max(r.p.MaxPaths/4, minQueue)
	if isOver || !c.waiting.MakeRoom(n.path) {
		return false
	}
	c.pages--
	r.links.dropped++
	return true
}

// waits reports whether a page may give way to others: it was never fetched.
func (r *Run) waits(rec *record.Record) bool {
	isKept := rec.Fetched != 0 || rec.Flags&(record.Named|record.Image|record.Seed) != 0
	return !isKept && !r.isTooDeep(rec.Depth, rec.Flags)
}

// noLongerWaits notes that a page that waits is fetched.
func (r *Run) noLongerWaits(rec *record.Record) {
	if r.census != nil && r.waits(rec) {
		r.census.fetched(rec.Path)
	}
}

// dropGivenUp drops pages that give way to others from the records of a chunk, those that are farthest from the front
// page first, and reports whether there were any.
func (r *Run) dropGivenUp(records []record.Record) (left []record.Record, hasDropped bool) {
	if r.census == nil || r.census.waiting.GivingUp() == 0 {
		return records, false
	}
	var waiting []*record.Record
	for i := range records {
		if r.waits(&records[i]) {
			waiting = append(waiting, &records[i])
		}
	}
	// The farthest first: those near the front page lead to others.
	slices.SortStableFunc(waiting, func(a, b *record.Record) int { return cmp.Compare(b.Depth, a.Depth) })
	dropped := make(map[string]bool)
	for _, rec := range waiting {
		if r.census.waiting.Drop(rec.Path) {
			dropped[rec.Path] = true
			*r.census.like(rec.Path)--
		}
	}
	left = slices.DeleteFunc(records, func(rec record.Record) bool { return dropped[rec.Path] })
	return left, len(dropped) > 0
}

// isTooDeep reports whether a page to which links lead is not fetched, as it is beyond Policy.Depth.
func (r *Run) isTooDeep(depth uint8, flags record.Flags) bool {
	isWantedElse := flags&(record.Target|record.Seed|record.Image|record.Visited) != 0
	return !isWantedElse && !r.p.Discover && int(depth) > r.p.Depth
}

// census counts the pages and images that no source names.
type census struct {
	pages, images int             // without pages that are given up, but not dropped yet
	waiting       frontier.Census // of the pages: see Run.waits
	tooDeep       int             // pages that are not fetched, and leave the others their room: see Run.isTooDeep
	patterns      [1 << 16]uint32 // pages by hash of the path without digits; a few too many
}

func (r *Run) count(ctx context.Context) (*census, error) {
	c := new(census)
	for i := range r.gen.Chunks() {
		records, err := r.load(ctx, i)
		if err != nil {
			return nil, err
		}
		for j := range records {
			rec := &records[j]
			if rec.Flags&record.Named == 0 {
				c.add(rec, r.isTooDeep(rec.Depth, rec.Flags))
			}
		}
	}
	// There was more room before, or the crawl before ended in the middle.
	for c.pages > r.p.MaxPaths && c.waiting.GiveUp() {
		c.pages--
		r.links.dropped++
	}
	return c, nil
}

func (c *census) add(rec *record.Record, isTooDeep bool) {
	if rec.Flags&record.Image != 0 {
		c.images++
		return
	}
	if isTooDeep {
		c.tooDeep++
		return
	}
	c.pages++
	*c.like(rec.Path)++
	if rec.Fetched == 0 && rec.Flags&record.Seed == 0 {
		c.waiting.Add(rec.Path)
	}
}

// fetched notes that a page that was waiting is not waiting any more.
func (c *census) fetched(path string) {
	stays := c.waiting.Remove(path)
	if stays {
		c.pages++
	}
}

// like is the count of pages whose paths differ from this one in digits alone.
func (c *census) like(path string) *uint32 {
	path, _ = url.PathUnescape(path) // the digits of an escape are part of a letter
	return &c.patterns[xxhash.Sum64String(withoutDigits.Replace(path))>>48]
}

var withoutDigits = strings.NewReplacer(
	"0", "", "1", "", "2", "", "3", "", "4", "", "5", "", "6", "", "7", "", "8", "", "9", "",
)
