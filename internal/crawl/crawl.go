// Package crawl brings the records of a site's pages up to date: it decides which pages are due, fetches
// them, follows links, and returns the store's next generation.
package crawl

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Candidates are the pages that sources name and visitors have had, in path order, each once. Next goes on
// where it was after an error of its context.
type Candidates interface {
	Next(ctx context.Context) (page.Page, bool, error)

	// Complete reports whether no source has failed so far: pages that are missing are not named any more.
	Complete() bool
}

// Policy says what may be fetched, and how links and visits become pages. Its functions are pure and may be
// called concurrently.
type Policy struct {
	// Base is the site's scheme, host and port, without a slash at the end. Scope is the path prefix of its
	// pages, with one. Front is the path of its front page.
	Base, Scope, Front string

	// Filter returns why a page that a link names is left out; "": it is not. Disallow reports whether a
	// path is not fetched that only links or visitors name, Allowed whether robots.txt allows it, and
	// Unlinked whether a path that visitors have had needs no link. nil: nothing, nothing, everything,
	// nothing.
	Filter   func(p *page.Page) (reason string)
	Disallow func(path string) bool
	Allowed  func(path string) bool
	Unlinked func(path string) bool

	Closed   bool          // nothing is fetched at all, as robots.txt cannot be had
	Links    bool          // pages that links name are fetched
	Discover bool          // they are recorded, and fetched once visitors have had them
	Depth    int           // of links that are followed at most; 0: 250
	Query    []string      // parameters that are part of a page's path: see [page.NewCleaner]
	Expire   time.Duration // after which a page is dropped that nothing links to; 0: 90 days
	MaxPaths int           // pages at most that no source names; 0: 100,000

	IgnoreCanonicals bool // they name no pages

	After int64 // the batch of the crawl before, which this one's must not be

	Extract htmlmeta.Options

	// Settings is a digest of this policy. Where it is not that of the last crawl, all records are looked
	// at. Routes is one of all that responses depend on, and of Extract: where it changes, all pages are
	// due.
	Settings, Routes uint64
}

// withDefaults fills in what a crawl needs.
func (p Policy) withDefaults() Policy {
	if p.Depth <= 0 {
		p.Depth = 250
	}
	if p.Expire <= 0 {
		p.Expire = 90 * 24 * time.Hour
	}
	if p.MaxPaths <= 0 {
		p.MaxPaths = 100_000
	}
	none := func(string) bool { return false }
	if p.Filter == nil {
		p.Filter = func(*page.Page) string { return "" }
	}
	if p.Allowed == nil {
		p.Allowed = func(string) bool { return true }
	}
	if p.Disallow == nil {
		p.Disallow = none
	}
	if p.Unlinked == nil {
		p.Unlinked = none
	}
	return p
}

// Options are what a [Crawler] works with. Fetcher is needed.
type Options struct {
	Fetcher Fetcher
	Limiter *Limiter         // of requests to upstreams; nil: 2 a second, one at a time
	Slots   Slots            // of computing; nil: Workers
	Workers int              // fetches of the site's own pages at a time; 0: 1
	Now     func() time.Time // nil: time.Now
}

// Crawler keeps what outlives one crawl of a site: what pages that cannot exist return, for which folders
// an upstream responds, and which visits were looked at.
type Crawler struct {
	o        Options
	missing  missing
	backends backends
	visited  map[string]uint64 // digests of visited candidates, by the first path of the chunk
	cursor   string            // where the last round ran out of time
	seeded   string            // the front page that has a record
}

// New returns a Crawler.
func New(o Options) *Crawler {
	if o.Limiter == nil {
		o.Limiter = NewLimiter(2, 1, nil)
	}
	o.Workers = max(o.Workers, 1)
	if o.Slots == nil {
		o.Slots = NewSlots(o.Workers)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Crawler{o: o, visited: make(map[string]uint64), missing: missing{name: "no-such-page-" + rand.Text()[:12]}}
}

// Counts are what a crawl came to so far.
type Counts struct {
	Fetched         int // pages, successful or not
	NotModified     int // pages among them that returned 304
	Failed          int // pages among them that returned 429 or from 500 on, or nothing
	Probed          int // fetches of paths that cannot exist
	Followed        int // new pages from links
	Dropped         int // pages that were forgotten
	DroppedPaths    int // links beyond Policy.MaxPaths
	DroppedPatterns int // links beyond 10,000 pages that differ in digits alone
}

// Result is what an Update came to.
type Result struct {
	Generation *store.Generation // the next one
	Gathered   bool              // all candidates were read
	Done       bool              // and nothing is due any more
	Touched    bool              // records are others than before
	Batch      int64             // when the crawl began, in Unix seconds: see [store.Record]
	Next       int64             // when there is something to do again
	Pending    int               // pages not fetched yet that are to be; too few until Gathered
	Counts                       // of the whole crawl
}

// Run is one crawl. It is not safe for concurrent use.
type Run struct {
	c     *Crawler
	p     Policy
	cands Candidates
	batch int64

	gen      *store.Generation
	resettle bool            // the settings differ from those of the last crawl
	reroute  bool            // and so does what responses depend on
	fetching context.Context // of the fetches of this Update
	begun    bool
	gathered bool
	pos      string // up to where candidates were read

	held  []page.Page // candidates that were read ahead
	links links
	// Links to paths that are not known to be pages.
	unmatched []string
	census    *census
	workers   []*worker
	crowd     map[string]int // new pages of folders that were fetched in this round
	left      []string       // paths in chunks of which not all own pages could be fetched
	stopped   bool           // there is no time for upstreams any more in this Update
	// Some pages were left for a later round; this one is for those that look like assets.
	deferred, assets bool

	touched bool
	pending int
	mu      sync.Mutex // of counts, while workers run
	counts  Counts
}

// Start begins a crawl. Only one crawl of a Crawler may be used at a time, the last.
func (c *Crawler) Start(cands Candidates, p Policy) *Run {
	r := &Run{c: c, p: p.withDefaults(), cands: cands, batch: max(c.o.Now().Unix(), p.After+1)}
	r.links.init(p.Query)
	return r
}

// Budget is what an [Run.Update] may take.
type Budget struct {
	Until time.Time // no fetch begins later

	// Patience is how long fetches under way may take then; those that take longer stay due.
	// 0: as long as they take.
	Patience time.Duration

	Stop context.Context // when it ends, so does the budget, with little patience; nil: never
}

const stopPatience = 300 * time.Millisecond

// Update goes on with the crawl from a generation: at first the last one, later the one that the Update
// before returned, in which records may have been selected meanwhile. It returns soon after its budget, or
// when nothing is due. It may be called again, also when the crawl was done. The error is the storage's, the
// candidates' or ctx's; the crawl is over then, and gen stands.
func (r *Run) Update(ctx context.Context, gen *store.Generation, b Budget) (Result, error) {
	r.gen, r.touched = gen, false
	if !r.begun {
		r.begin()
	}
	wait, cancel := context.WithTimeout(ctx, b.Until.Sub(r.c.o.Now()))
	defer cancel()
	if b.Stop != nil {
		defer context.AfterFunc(b.Stop, cancel)()
	}
	fetching, abandon := context.WithCancel(ctx)
	defer abandon()
	r.fetching = fetching
	if b.Patience > 0 {
		defer context.AfterFunc(wait, func() {
			patience := b.Patience
			if b.Stop != nil && b.Stop.Err() != nil {
				patience = min(patience, stopPatience)
			}
			select {
			case <-time.After(patience):
			case <-fetching.Done():
			}
			abandon()
		})()
	}
	if err := r.crawl(ctx, wait); err != nil {
		return Result{}, err
	}
	result := Result{Generation: r.gen, Gathered: r.gathered, Touched: r.touched, Batch: r.batch, Pending: r.pending, Counts: r.counts}
	result.Counts.DroppedPaths += r.links.dropped
	result.Next, result.Done = r.next()
	return result, nil
}

func (r *Run) begin() {
	settings, routes := r.gen.Settings()
	r.links.max = r.p.MaxPaths + r.gen.Len()
	r.begun, r.resettle, r.reroute = true, settings != r.p.Settings, routes != r.p.Routes
	if r.discovers() && (r.c.seeded != r.p.Front || r.resettle) {
		r.links.add(r.p.Front, 0, store.Seed)
	}
}

func (r *Run) discovers() bool { return r.p.Links || r.p.Discover }

// crawl reads the candidates, and then works in rounds on what is due and on what links of the round before
// named. wait ends when there is no more time.
func (r *Run) crawl(ctx, wait context.Context) error {
	if !r.gathered {
		if err := r.gather(ctx, wait); err != nil {
			return err
		}
	}
	r.assets, r.stopped = false, false
	for r.gathered && !r.p.Closed && wait.Err() == nil {
		fetched, err := r.round(ctx, wait)
		if err != nil {
			return err
		}
		switch {
		case fetched > 0 || r.hasLinks():
			r.assets = false
		case r.stopped:
			return nil
		case r.deferred && !r.assets:
			r.assets = true
		case r.c.cursor != "":
			r.c.cursor = "" // what lies before it comes next
		default:
			return nil
		}
	}
	for r.hasLinks() && (r.gathered || r.discovers()) {
		if _, err := r.round(ctx, nil); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// hasLinks reports whether there are links of which the records do not know yet.
func (r *Run) hasLinks() bool { return len(r.links.found)+len(r.unmatched) > 0 }

// next is when there is something to do again, and whether there is nothing now.
func (r *Run) next() (at int64, done bool) {
	now := r.c.o.Now()
	switch {
	case !r.gathered:
		return now.Unix(), false
	case r.p.Closed:
		return now.Add(time.Minute).Unix(), true
	}
	at = math.MaxInt64
	for _, chunk := range r.gen.Chunks() {
		at = min(at, chunk.Due)
	}
	if at > now.Unix() {
		return at, !r.hasLinks()
	}
	// What is due now and was not reached waits for upstreams, if they are left alone.
	return max(now.Unix(), r.c.o.Limiter.Next().Unix()), false
}

// load returns the records of a chunk; none where it was damaged.
func (r *Run) load(ctx context.Context, i int) ([]store.Record, error) {
	records, err := r.gen.Load(ctx, i)
	if errors.Is(err, store.ErrDamaged) {
		r.touched = true
		return nil, nil
	}
	return records, err
}

// endOf is the first path after chunk i; last: it is the last one.
func endOf(chunks []store.Chunk, i int) (path string, last bool) {
	if i+1 < len(chunks) {
		return chunks[i+1].First, false
	}
	return "", true
}

// put gives records to the writer.
func (r *Run) put(w *store.Writer, first string, records []store.Record) {
	digest := func(first, next string) uint64 {
		from, _ := find(records, first)
		to := len(records)
		if next != "" {
			to, _ = find(records, next)
		}
		return Digest(records[from:to])
	}
	w.Put(first, records, digest, r.chunkDue)
}

// backends remembers who responded for which folders.
type backends struct {
	mu       sync.Mutex
	folders  map[string]bool // true: an upstream
	local    bool            // for a page that is no file, the site itself responded
	proxied  bool            // for one, an upstream did
	proxyAll bool            // and for one that is a file
}

const maxFolders = 10_000

// isProxied guesses whether an upstream responds for a page: by the last response, by those of its folder,
// by the page being a file.
func (b *backends) isProxied(rec *store.Record) bool {
	switch {
	case rec.Failing != 0:
		return true // whatever it is, it is slow
	case rec.Fetched != 0:
		return rec.Flags&store.Proxied != 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if rec.Version != 0 && !b.proxyAll {
		return false
	}
	if proxied, known := b.folders[page.Folder(rec.Path)]; known {
		return proxied
	}
	return rec.Version != 0 || b.proxied || !b.local
}

// note remembers who responded for a page.
func (b *backends) note(rec *store.Record, proxied bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case rec.Version != 0 && !proxied && !b.proxyAll:
		return
	case rec.Version != 0:
		b.proxyAll = b.proxyAll || proxied
	case proxied:
		b.proxied = true
	default:
		b.local = true
	}
	if len(b.folders) >= maxFolders || b.folders == nil {
		b.folders = make(map[string]bool)
	}
	b.folders[page.Folder(rec.Path)] = proxied
}

// find is where a path is in records, or would be.
func find(records []store.Record, path string) (int, bool) {
	return slices.BinarySearchFunc(records, path, func(r store.Record, path string) int { return strings.Compare(r.Path, path) })
}
