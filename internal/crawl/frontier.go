package crawl

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/frontier"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/uri"
)

const (
	imagesPerPath = 10     // the most images, for each of Policy.MaxPaths
	maxPerPattern = 10_000 // the most discovered pages whose paths differ in digits alone
	maxSeeds      = 10     // redirects that are followed from the front page
	maxAliases    = 50_000 // unmatched links whose aliases are looked up in a round
)

// link is a page that another one names.
type link struct {
	path    string
	depth   uint8
	flags   store.Flags // Target, Seed and Image
	isAlias bool        // the link is to an alias of the path: see links.take

	// spelled is how the link spells the path, if that is not [page.Bare], and path is the bare spelling: that of a
	// file's name. Only once no file is found there, the link is to what it says. "": there is one spelling.
	spelled string

	finder string // the page that has the link
	isNews bool   // that page was fetched before, so it has a link that is new if its target is
}

// newLink returns a link to a clean path, which is otherwise as from says.
func newLink(path string, from link) link {
	n := from
	n.path = page.Bare(path)
	if n.path != path {
		n.spelled = path
	}
	return n
}

// key is the same for links to the same target, by the spelling of the link.
func (l *link) key() uint64 { return xxhash.Sum64String(cmp.Or(l.spelled, l.path)) ^ uint64(l.flags) }

// links collects what fetched pages link to: each target once, by the hash of its path.
type links struct {
	cleaner *uri.Cleaner
	max     int // targets that are known, found or unmatched

	mu        sync.Mutex
	seen      map[uint64]uint8 // the least depth at which a target was found; not of all, if they are too many
	found     []link           // since the last round
	unmatched []string         // paths found before that and not known to be pages
	seeds     int
	dropped   int
}

// add adds a link.
func (l *links) add(n link) {
	key := n.key()
	l.mu.Lock()
	defer l.mu.Unlock()
	least, known := l.seen[key]
	if known && least <= n.depth {
		return
	}
	isSeed := n.flags&store.Seed != 0
	if isSeed && l.seeds > maxSeeds {
		return
	}
	if len(l.found) >= l.max {
		l.dropped++
		return
	}
	if len(l.seen) >= l.max {
		// There may be no end of targets: what is forgotten is merged again. Else no page found from now on would come.
		clear(l.seen)
	}
	if isSeed {
		l.seeds++
	}
	l.seen[key] = n.depth
	n.path = strings.Clone(n.path) // it may be part of a page's body
	n.spelled = strings.Clone(n.spelled)
	l.found = append(l.found, n)
}

// endings are what is often left out of a page's URL, or added to it.
var endings = []string{"/index.html", "/index.htm", "/index.php", "/index", ".html", ".htm", ".php", "/", ""}

// take returns the links found since, sorted, and those to aliases of unmatched paths: paths that mostly lead to the
// same page.
func (l *links) take() []link {
	found := l.found
	l.found = nil
	n := min(len(l.unmatched), maxAliases)
	for _, path := range l.unmatched[:n] {
		found = appendAliases(found, path)
		if bare := page.Bare(path); bare != path {
			found = appendAliases(found, bare)
		}
	}
	l.unmatched = l.unmatched[n:]
	slices.SortFunc(found, func(a, b link) int { return strings.Compare(a.path, b.path) })
	return found
}

// appendAliases appends links to the aliases of a path.
func appendAliases(found []link, path string) []link {
	at := strings.IndexByte(path+"?", '?')
	i := slices.IndexFunc(endings, func(ending string) bool { return strings.HasSuffix(path[:at], ending) })
	name := strings.TrimSuffix(path[:at], endings[i])
	for _, ending := range endings {
		if alias := name + ending + path[at:]; strings.HasPrefix(alias, "/") {
			found = append(found, link{path: alias, isAlias: true})
		}
	}
	return found
}

// round merges the results of the round before, links and notices into the records, and fetches what links name and what is
// due, until wait ends. It rewrites the chunks that this concerns. hasWorked: there was something to do.
func (r *Run) round(ctx, wait context.Context) (hasWorked bool, err error) {
	found := r.links.take()
	results := r.results
	r.results = nil
	notices := r.takeNotices()
	hasWorked = len(found)+len(results)+len(notices) > 0
	before := r.fetched.Load()
	r.left = false
	upstream := r.newAgenda()
	w := r.gen.Writer()
	for i, chunk := range r.gen.Chunks() {
		news := news{
			links:   cut(&found, r.endOf(i), func(l link) string { return l.path }),
			results: cut(&results, r.endOf(i), func(rec store.Record) string { return rec.Path }),
			notices: cut(&notices, r.endOf(i), func(n notice) string { return n.path }),
		}
		if err := r.roundChunk(ctx, wait, w, i, chunk, news, upstream); err != nil {
			return false, err
		}
	}
	r.gen, err = w.Generation()
	if err != nil {
		return false, err
	}
	fresh, err := r.freshErrands(ctx, upstream)
	if err != nil {
		return false, err
	}
	r.runErrands(wait, upstream.complete(upstream.order(r.c.o.Limiter), fresh))
	r.left = r.left || upstream.left
	hasFetched := r.fetched.Load() != before || len(r.results) > 0
	return hasWorked || hasFetched || len(r.links.found)+len(r.links.unmatched) > 0, nil
}

// news is what has become known of the pages of a chunk. All are sorted by path.
type news struct {
	links   []link
	results []store.Record // of fetches
	notices []notice
}

// cut cuts off what comes before a path from what is sorted by paths.
func cut[T any](all *[]T, end string, pathOf func(T) string) []T {
	n, _ := slices.BinarySearchFunc(*all, end, func(v T, path string) int { return strings.Compare(pathOf(v), path) })
	part := (*all)[:n]
	*all = (*all)[n:]
	return part
}

// roundChunk is round for one chunk.
func (r *Run) roundChunk(ctx, wait context.Context, w *store.Writer, i int, chunk store.Chunk, news news, upstream *agenda) error {
	isFront := r.isNews() && chunk.First <= r.p.Scope && r.p.Scope < r.endOf(i)
	isDue := !r.p.Closed && (chunk.Due <= r.c.now() || isFront)
	canFetch := isDue && wait.Err() == nil
	r.left = r.left || isDue && !canFetch
	isTold := len(news.links)+len(news.results)+len(news.notices) > 0
	if !isTold && !canFetch {
		w.Keep(i)
		return nil
	}
	records, err := r.load(ctx, i)
	if err != nil {
		return err
	}
	chunk = r.gen.Chunks()[i] // it may have been found damaged
	known := len(records)
	before := r.fetched.Load()
	r.pending -= r.pendingOf(records)
	for _, result := range news.results {
		if at, ok := find(records, result.Path); ok {
			r.noLongerWaits(&records[at])
			records[at] = result
		}
	}
	records, err = r.addLinks(ctx, records, news.links)
	if err != nil {
		return err
	}
	records, hasDropped := r.dropGivenUp(records)
	hasHeeded := r.heed(records, news.notices)
	hasSettled := r.settleFinders(records)
	r.fetch(wait, records, chunk.First, upstream)
	r.pending += r.pendingOf(records)
	isSame := !hasDropped && !hasHeeded && !hasSettled && r.fetched.Load() == before && len(news.links)+len(news.results) == 0
	if isSame && r.chunkDue(records) <= r.c.now() {
		w.Keep(i) // nothing could be done yet
		return nil
	}
	w.Put(chunk.First, records, func(first, _ string) uint64 {
		if first == chunk.First && len(records) == known && !hasDropped {
			return chunk.Digest
		}
		return min(chunk.Digest, 1) // 1: it is to be seen which pages are named, and which new ones were visited
	}, r.chunkDue)
	return nil
}

// addLinks merges links into the records of their range.
func (r *Run) addLinks(ctx context.Context, records []store.Record, found []link) ([]store.Record, error) {
	var fresh []store.Record
	for _, n := range found {
		if n.isAlias || n.spelled != "" {
			continue // a guess makes no record
		}
		if _, known := find(records, n.path); known {
			continue
		}
		if last := len(fresh) - 1; last >= 0 && fresh[last].Path == n.path {
			continue // found is sorted
		}
		ok, err := r.isDiscovered(ctx, n)
		if err != nil {
			return nil, err
		}
		if ok {
			fresh = append(fresh, store.Record{Path: n.path, Depth: math.MaxUint8, Finder: n.finder, Credited: !n.isNews})
			r.classify(&fresh[len(fresh)-1])
		}
	}
	records = insert(records, fresh)
	for _, n := range found {
		if n.spelled != "" && !isFile(records, n.path) {
			r.addSpelled(n)
			continue
		}
		isPage := r.relink(records, n)
		isTried := n.isAlias || n.flags&store.Image != 0 // it has no aliases that are to be looked up
		if !isPage && !isTried && len(r.links.unmatched) < r.links.max {
			r.links.unmatched = append(r.links.unmatched, n.path)
		}
	}
	return records, nil
}

// isFile reports whether there is a page that a source names, or named until now, for its file.
func isFile(records []store.Record, path string) bool {
	i, known := find(records, path)
	return known && records[i].Version != 0
}

// addSpelled adds a link for the next round whose path, bare, is that of no file: to an application, the path as the
// link spells it may be another page.
func (r *Run) addSpelled(n link) {
	n.path = n.spelled
	n.spelled = ""
	if strings.HasPrefix(n.path, r.p.Scope) {
		r.links.found = append(r.links.found, n)
	}
}

// linkPart merges the links found since into records at hand, so that they need not be held: most lead nearby.
func (r *Run) linkPart(records []store.Record, since int) {
	rest := r.links.found[:since]
	for _, n := range r.links.found[since:] {
		isCertain := n.spelled == "" || isFile(records, n.path)
		if isCertain && r.relink(records, n) {
			delete(r.links.seen, n.key())
			continue
		}
		rest = append(rest, n)
	}
	r.links.found = rest
}

// relink updates the record of a page to which another links, and reports whether it is known to be one.
func (r *Run) relink(records []store.Record, n link) (isPage bool) {
	i, known := find(records, n.path)
	if !known {
		return false
	}
	rec := &records[i]
	r.linked(rec)
	r.release(rec)
	isPage = rec.Status == http.StatusOK
	if n.isAlias {
		return isPage // what else the link says is of another path
	}
	rec.Flags |= n.flags
	if rec.Absent != 0 && r.p.discovers() {
		toLinked(rec)
		r.classify(rec)
	}
	if rec.Flags&store.Named == 0 && n.depth < rec.Depth {
		rec.Depth = n.depth
		if r.p.Links {
			demand(rec, store.ByLinks) // its links are nearer, too
		}
	}
	return isPage
}

// release has a page fetched again whose links did not count when it was fetched, if they do now: they are not kept.
// A page that fails is fetched again anyhow, when it is due.
func (r *Run) release(rec *store.Record) {
	if rec.Withheld && rec.Failing == 0 && r.p.Counts(rec) {
		demand(rec, store.ByLinks)
	}
}

// linked records that something links to a page now, and not again for a week or less.
func (r *Run) linked(rec *store.Record) {
	now := r.c.now()
	isOld := now-rec.Linked > store.LinkedEvery(r.p.expire())
	if isOld || rec.Linked > now+clockSlack { // the clock was set back
		rec.Linked = now
	}
}

// isDiscovered reports whether a page that a link names gets a record.
func (r *Run) isDiscovered(ctx context.Context, n link) (ok bool, err error) {
	// A page beyond Policy.Depth has a record as well, so that it can be named, although it is not fetched.
	if n.flags == 0 && !r.p.discovers() {
		return false, nil
	}
	isFiltered := n.path != r.p.Scope && n.flags&store.Image == 0
	if isFiltered && r.p.Filter(&page.Page{Path: n.path}) != "" {
		return false, nil
	}
	if r.census == nil {
		r.census, err = r.count(ctx) // once in a crawl, and only if it is needed: it reads all records
	}
	if err != nil {
		return false, err
	}
	if !r.makeRoom(n) {
		r.links.dropped++
		return false, nil
	}
	rec := store.Record{Path: n.path, Flags: n.flags, Depth: n.depth}
	r.census.add(&rec, r.isTooDeep(n.depth, n.flags))
	return true, nil
}

// makeRoom reports whether there is room for what a link names. A page that was never fetched may give way to one of a
// smaller group.
func (r *Run) makeRoom(n link) bool {
	c := r.census
	switch {
	case n.flags&store.Seed != 0:
		return true
	case n.flags&store.Image != 0:
		return c.images < imagesPerPath*r.p.MaxPaths
	case r.isTooDeep(n.depth, n.flags):
		return c.tooDeep < r.p.MaxPaths
	case *c.like(n.path) >= maxPerPattern:
		return false
	case c.pages < r.p.MaxPaths:
		return true
	}
	// Those that give way are dropped in this round or the next one. Until then, there are so many more.
	isOver := c.waiting.GivingUp() >= max(r.p.MaxPaths/4, minAgenda)
	if isOver || !c.waiting.MakeRoom(n.path) {
		return false
	}
	c.pages--
	r.links.dropped++
	return true
}

// waits reports whether a page may give way to others: it was never fetched.
func (r *Run) waits(rec *store.Record) bool {
	isKept := rec.Fetched != 0 || rec.Flags&(store.Named|store.Image|store.Seed) != 0
	return !isKept && !r.isTooDeep(rec.Depth, rec.Flags)
}

// noLongerWaits notes that a page that waits is fetched.
func (r *Run) noLongerWaits(rec *store.Record) {
	if r.census != nil && r.waits(rec) {
		r.census.fetched(rec.Path)
	}
}

// dropGivenUp drops pages that give way to others from the records of a chunk, those that are farthest from the front
// page first, and reports whether there were any.
func (r *Run) dropGivenUp(records []store.Record) (left []store.Record, hasDropped bool) {
	if r.census == nil || r.census.waiting.GivingUp() == 0 {
		return records, false
	}
	var waiting []*store.Record
	for i := range records {
		if r.waits(&records[i]) {
			waiting = append(waiting, &records[i])
		}
	}
	slices.SortStableFunc(waiting, func(a, b *store.Record) int { return cmp.Compare(b.Depth, a.Depth) })
	dropped := make(map[string]bool)
	for _, rec := range waiting {
		if r.census.waiting.Drop(rec.Path) {
			dropped[rec.Path] = true
			*r.census.like(rec.Path)--
		}
	}
	left = slices.DeleteFunc(records, func(rec store.Record) bool { return dropped[rec.Path] })
	return left, len(dropped) > 0
}

// isTooDeep reports whether a page to which links lead is not fetched, as it is beyond Policy.Depth.
func (r *Run) isTooDeep(depth uint8, flags store.Flags) bool {
	isWantedElse := flags&(store.Target|store.Seed|store.Image|store.Visited) != 0
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
			if rec.Flags&store.Named == 0 {
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

func (c *census) add(rec *store.Record, isTooDeep bool) {
	if rec.Flags&store.Image != 0 {
		c.images++
		return
	}
	if isTooDeep {
		c.tooDeep++
		return
	}
	c.pages++
	*c.like(rec.Path)++
	if rec.Fetched == 0 && rec.Flags&store.Seed == 0 {
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
	path, _ = url.PathUnescape(path)
	return &c.patterns[xxhash.Sum64String(withoutDigits.Replace(path))>>48]
}

var withoutDigits = strings.NewReplacer(
	"0", "", "1", "", "2", "", "3", "", "4", "", "5", "", "6", "", "7", "", "8", "", "9", "",
)
