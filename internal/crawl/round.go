package crawl

import (
	"context"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// round merges the results of the round before, links and notices into the records, and fetches what links name and
// what is due, until wait ends. It rewrites the chunks that this concerns. hasWorked: there was something to do.
func (r *Run) round(ctx, wait context.Context) (hasWorked bool, err error) {
	links := r.links.take()
	results := r.results
	r.results = nil
	notices := r.takeNotices()
	hasWorked = len(links)+len(results)+len(notices) > 0
	before := r.fetched.Load()

	// Each chunk takes its share of them, and the site's own pages are fetched on the way. Those of upstreams wait
	// until all chunks were seen: which of them come first is decided over the whole site.
	r.left = false
	upstream := r.newQueue()
	w := r.gen.Writer()
	for i := range r.gen.Chunks() {
		found := findings{
			links:   cut(&links, r.endOf(i), func(l link) string { return l.path }),
			results: cut(&results, r.endOf(i), func(rec record.Record) string { return rec.Path }),
			notices: cut(&notices, r.endOf(i), func(n notice) string { return n.path }),
		}
		if err := r.roundChunk(ctx, wait, w, i, found, upstream); err != nil {
			return false, err
		}
	}
	r.gen, err = w.Generation()
	if err != nil {
		return false, err
	}

	fresh, err := r.freshJobs(ctx, upstream)
	if err != nil {
		return false, err
	}
	known := upstream.order(r.spend)
	r.runJobs(wait, upstream.complete(known, fresh))
	r.left = r.left || upstream.left

	hasFetched := r.fetched.Load() != before || len(r.results) > 0
	hasLinks := len(r.links.found)+len(r.links.unmatched) > 0
	return hasWorked || hasFetched || hasLinks, nil
}

// findings are what has become known of the pages of a chunk. All are sorted by path.
type findings struct {
	links   []link
	results []record.Record // of fetches
	notices []notice
}

// cut cuts off what comes before a path from what is sorted by paths.
func cut[T any](all *[]T, end string, pathOf func(T) string) []T {
	n, _ := slices.BinarySearchFunc(*all, end, func(v T, path string) int {
		return strings.Compare(pathOf(v), path)
	})
	part := (*all)[:n]
	*all = (*all)[n:]
	return part
}

func (f *findings) isEmpty() bool { return len(f.links)+len(f.results)+len(f.notices) == 0 }

// effect is what findings do to the records of a chunk.
type effect uint8

const (
	noEffect effect = iota
	updates         // some are others now
	resizes         // and pages have come, or gone
)

// roundChunk is round for one chunk.
func (r *Run) roundChunk(ctx, wait context.Context, w *record.Writer, i int, found findings, upstream *queue) error {
	chunk := r.gen.Chunks()[i]
	isFront := r.frontDiffers() && r.front.isIn(chunk.First, r.endOf(i))
	canFetch := r.canFetch(wait, chunk.Due, isFront)
	if found.isEmpty() && !canFetch {
		w.Keep(i) // it is not even decoded
		return nil
	}
	records, err := r.load(ctx, i)
	if err != nil {
		return err
	}
	chunk = r.gen.Chunks()[i] // it may have been found damaged

	// What the chunk adds to pending is counted before and after, as findings and fetches both change it.
	before := r.fetched.Load()
	r.pending -= r.pendingOf(records)
	records, has, err := r.addFindings(ctx, records, found)
	if err != nil {
		return err
	}
	r.fetch(wait, records, chunk.First, upstream)
	if isFront && canFetch {
		// Where there is no such page, its response would be news in every round of every crawl.
		r.seeFront()
	}
	r.pending += r.pendingOf(records)

	isSame := has == noEffect && r.fetched.Load() == before
	if isSame && r.chunkDue(records) <= r.c.now() {
		w.Keep(i) // nothing could be done yet
		return nil
	}
	w.Put(chunk.First, records, digestAfter(chunk, has), r.chunkDue)
	return nil
}

// canFetch reports whether pages of a chunk are fetched in this round, and notes if some are due, but there is no time.
func (r *Run) canFetch(wait context.Context, due int64, isFront bool) bool {
	isDue := due <= r.c.now() || isFront
	if r.p.Closed || !isDue {
		return false
	}
	if wait.Err() != nil {
		r.left = true
		return false
	}
	return true
}

// digestAfter returns the digests of the parts of a chunk after it was seen in a round.
func digestAfter(chunk record.Chunk, has effect) func(first, next string) uint64 {
	return func(first, _ string) uint64 {
		if first == chunk.First && has != resizes {
			return chunk.Digest
		}
		// Which pages are named, and which new ones were visited, is to be seen again. The sum of no candidates, 0,
		// stays: links have changed nothing about that.
		return min(chunk.Digest, unknownDigest(first, ""))
	}
}

// addFindings merges findings into the records of its chunk.
func (r *Run) addFindings(ctx context.Context, records []record.Record, found findings) ([]record.Record, effect, error) {
	known := len(records)
	for _, result := range found.results {
		if at, ok := record.Search(records, result.Path); ok {
			r.noLongerWaits(&records[at])
			records[at] = result
		}
	}
	records, err := r.addLinks(ctx, records, found.links)
	if err != nil {
		return nil, noEffect, err
	}
	hasGrown := len(records) > known

	// Only now it is known which pages have to give way to those that links have brought.
	records, hasDropped := r.dropGivenUp(records)
	isNoticed := r.applyNotices(records, found.notices)
	hasSettled := r.settleFinders(records)
	if hasGrown || hasDropped {
		return records, resizes, nil
	}
	if isNoticed || hasSettled || len(found.results)+len(found.links) > 0 {
		return records, updates, nil
	}
	return records, noEffect, nil
}
