// Package crawl brings the records of a site's pages up to date: it decides which pages are due, fetches
// them, follows links, and returns the store's next generation.
package crawl

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Candidates are the pages that sources name and visitors have requested, in path order, each once. After an
// error of its context, Next goes on where it was.
type Candidates interface {
	Next(ctx context.Context) (page.Page, bool, error)

	// Complete reports whether no source has failed so far: pages that are missing are not named any more.
	Complete() bool
}

// Policy says what may be fetched, and how links and visits become pages. Its functions are pure and may be
// called concurrently.
type Policy struct {
	// Base is the site's scheme, host and port, such as https://example.com. Scope is the path prefix of its
	// pages, with a slash at the end, and so the path of its front page.
	Base, Scope string

	// Filter returns why a page that only links or visitors name is left out; "": it is not. It must not be nil.
	Filter func(p *page.Page) (reason string)

	// Disallow reports whether a path that only links or visitors name is never fetched, Allowed whether robots.txt
	// allows a path. Neither may be nil.
	Disallow, Allowed func(path string) bool

	// Told is the earliest of the last changes that search engines were told: see [record.Record.Moved]. 0: nobody is told.
	Told int64

	// Unlinked reports whether a page that visitors have requested is kept without a link; nil: none is.
	Unlinked func(path string) bool

	// Counts reports whether the links of a page count, if the page itself may be listed: not while it would need a
	// link and has none. nil: they do.
	Counts func(rec *record.Record) bool

	Closed   bool          // nothing is fetched at all, as robots.txt cannot be fetched
	Spares   bool          // no upstream is requested: another crawl follows
	Links    bool          // pages that links name are fetched
	Discover bool          // they are recorded, and fetched once visitors have requested them
	Depth    int           // the most links from the front page or a page that sources name; 0: 250
	Query    []string      // parameters that are part of a page's path: see [origin.NewCleaner]
	Expire   time.Duration // after which a page that nothing links to is dropped; 0: 90 days
	MaxPaths int           // the most pages that no source names, and as many more beyond Depth; 0: 100,000

	IgnoreCanonicals bool // canonicals count neither as links nor for the index status
	Extract          html.Options

	// Front is the response to a request for the front page that was made just now: no other one is made. nil: none
	// was. FrontPath is the path of the page to which it belongs, as the front page may redirect to another one; "":
	// Scope.
	Front     *Response
	FrontPath string

	// Refetch are paths of pages that an operator wants fetched again, RefetchAll: all of them.
	Refetch    []string
	RefetchAll bool

	// Look is what is left of the last look after writes, which the crawl takes a part of; nil: there was none.
	Look *Look

	// Settings is a digest of this policy: if it has changed since the last crawl, all records are classified anew.
	// Routes is a digest of all that responses depend on, and of Extract: if it has changed, all pages are due.
	Settings, Routes uint64

	// SameRoutes is another digest of the same, as earlier crawls may have it; 0: there is none.
	SameRoutes uint64
	Batch      int64 // in Unix seconds; 0: now

	// Confirmed is when all candidates were read last, in Unix seconds: files that are others now have changed since.
	// 0: it is not known.
	Confirmed int64
}

// discovers reports whether links make records.
func (p *Policy) discovers() bool { return p.Links || p.Discover }

// wantsImages reports whether pages are fetched that others show as images, or name as their versions in Markdown.
func (p *Policy) wantsImages() bool { return p.Extract.Images || p.Extract.Markdown }

// expire is Expire in seconds.
func (p *Policy) expire() int64 { return int64(p.Expire / time.Second) }

// Options are what a [Crawler] works with. Fetcher is needed.
type Options struct {
	Fetcher Fetcher
	Limiter *Limiter             // of requests to upstreams; nil: 2 a second, one at a time
	Rank    func() schedule.Rank // of the site, among those that share the Limiter; nil: it is named
	Slots   wait.Slots           // of computing; none is held while waiting for something
	Workers int                  // fetches of the site's own pages at a time; 0: 1
	Now     func() time.Time     // nil: time.Now
	Own     bool                 // no route makes pages: the site itself responds for pages that are no files

	// Once: no crawl follows soon, so all that is due is fetched, and what has changed is not confirmed.
	Once bool
}

// Crawler keeps what outlives one crawl of a site.
type Crawler struct {
	o             Options
	made          memory[bool]    // by folder or extension: see likelyMade
	late          memory[bool]    // pages whose fetch was abandoned, by path
	own, upstream atomic.Bool     // the site itself, or who makes pages, has responded for a page that is no file
	refused       atomic.Int64    // when a response was a 429, in Unix seconds; 0: none was
	soft404s      memory[soft404] // by path
	proper404s    memory[int]     // paths that do not exist and were no soft 404s, by soft404Group
	soft404Name   string          // last part of the paths that cannot exist
	precedence    precedence
	cooldown      cooldown // of the site's own upstream; under the Limiter's mu
	signals       signals
	frontHash     uint64 // of the front page's last response
}

// New returns a Crawler.
func New(o Options) *Crawler {
	o.Workers = max(o.Workers, 1)
	if o.Limiter == nil {
		o.Limiter = NewLimiter(2, 1)
	}
	if o.Rank == nil {
		o.Rank = func() schedule.Rank { return schedule.Named }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Crawler{
		o:           o,
		soft404Name: "no-such-page-" + rand.Text()[:12],
	}
	c.own.Store(o.Own)
	return c
}

func (c *Crawler) now() int64 { return c.o.Now().Unix() }

// TimeLimit is how long a [Run.Update] may take.
type TimeLimit struct {
	Until    time.Time       // no fetch begins later
	Patience time.Duration   // for fetches under way at Until: later ones stay due; 0: no limit
	Stop     context.Context // when it ends, so does the time, with little patience; nil: never
}

// contexts returns two that end with ctx: wait when the time is over, fetching when the patience is, too.
func (l TimeLimit) contexts(ctx context.Context, now time.Time) (wait, fetching context.Context, cancel func()) {
	if l.Stop == nil {
		l.Stop = ctx
	}
	wait, endWait := context.WithTimeout(ctx, l.Until.Sub(now))
	fetching, endFetching := context.WithCancel(ctx)
	endStop := context.AfterFunc(l.Stop, func() {
		endWait()
		time.AfterFunc(stopPatience, endFetching)
	})
	// With no limit, a fetch ends by the time-out of its Fetcher.
	endPatience := context.AfterFunc(wait, func() {
		if l.Patience > 0 {
			time.AfterFunc(l.Patience, endFetching)
		}
	})
	cancel = func() {
		// At first what else would begin to be patient when wait ends.
		endStop()
		endPatience()
		endWait()
		endFetching()
	}
	return wait, fetching, cancel
}

// Result is the result of a [Run.Update].
type Result struct {
	Generation *record.Generation // the next one
	Gathered   bool               // all candidates were read
	Done       bool               // all candidates were read, and nothing is due any more
	Batch      int64              // when the crawl began, in Unix seconds: see [record.Record]
	Next       int64              // when another crawl is due, or what is left can be fetched, in Unix seconds
	Pending    int                // pages still to be fetched for the first time; too few until Gathered
	Lost       bool               // records were found damaged in this crawl: their pages are fetched again

	// Of the whole crawl:

	Fetched    int           // pages, successfully or not
	GatherTime time.Duration // that passed while candidates were read, and no page was fetched meanwhile

	// Panic is of the first page whose parsing panicked, which counts as one that did not respond; nil: none did.
	Panic error

	// DroppedPaths are links beyond Policy.MaxPaths, or pages that gave way; and those beyond 10,000 pages that differ in
	// digits alone.
	DroppedPaths int
}

// HasLeft reports whether there was no time to fetch all pages that are due.
func (r *Result) HasLeft() bool { return r.Generation != nil && !r.Done }

// Run is one crawl. It is not safe for concurrent use.
type Run struct {
	c                 *Crawler
	p                 Policy
	gen               *record.Generation
	batch             int64
	resettle, reroute bool // Policy.Settings, Policy.Routes differ from those of the last crawl
	cands             Candidates
	gathered          bool        // they were read to the end
	pos               string      // the path up to which they were read
	ahead             page.Page   // the next one, if it was read already; else it has no path
	taken             []page.Page // buffer of take
	links             links
	notices           []notice        // for the next round
	front             frontPage       // until it is used
	results           []record.Record // of pages that were fetched in this round, sorted by path
	census            *census
	pace              Pace
	followed          int64 // see [record.Workload], when this Update began
	began             int64 // when this Update did, in Unix seconds
	left              bool  // pages are due that were not reached
	pending           int
	lost              bool            // see Result.Lost
	fetching          context.Context // of the fetches of this Update
	workers           []*worker
	fetched           atomic.Int64  // pages
	gatherTime        time.Duration // see Result.GatherTime
	panicked          atomic.Value  // see Result.Panic
	hasLooked         bool          // see look
	stopped           atomic.Bool   // there is no time for upstreams any more in this Update
}

// Start begins a crawl. Only one crawl of a Crawler may be used at a time, the last.
func (c *Crawler) Start(cands Candidates, p Policy) *Run {
	p.Depth = cmp.Or(p.Depth, 250)
	p.MaxPaths = cmp.Or(p.MaxPaths, 100_000)
	p.Expire = cmp.Or(p.Expire, 90*24*time.Hour)
	if p.Unlinked == nil {
		p.Unlinked = func(string) bool { return false }
	}
	if p.Counts == nil {
		p.Counts = func(*record.Record) bool { return true }
	}
	if p.Batch == 0 {
		p.Batch = c.now()
	}
	return &Run{
		c:     c,
		p:     p,
		cands: cands,
		batch: p.Batch,
		front: newFrontPage(&p),
		links: links{cleaner: origin.NewCleaner(p.Query), seen: make(map[uint64]uint8)},
	}
}

// Update goes on with the crawl from a generation: at first the last one, later the one that the Update
// before returned, in which records may have been selected meanwhile. It returns soon after the limit, or
// when nothing is due. It may be called again, also when the crawl was done. The error is the storage's, the
// candidates' or ctx's; the crawl is over then, and gen stands.
func (r *Run) Update(ctx context.Context, gen *record.Generation, limit TimeLimit) (Result, error) {
	if r.gen == nil {
		r.begin(gen)
	}
	// What happened since the Update before: records may have been found damaged when they were selected.
	r.gen = gen
	r.lost = r.lost || gen.Lost()
	r.began = r.c.now()

	// All sites that share the limiter share what known pages may take of it.
	load := record.Sum(gen.Chunks())
	r.followed = load.Followed
	r.pace = r.c.o.Limiter.update(r.c, load)

	wait, fetching, cancel := limit.contexts(ctx, r.c.o.Now())
	defer cancel()
	r.fetching = fetching
	if err := r.crawl(ctx, wait); err != nil {
		// What the front page told is lost with the records, so the next crawl has to take it for new again.
		r.c.frontHash = 0
		return Result{}, err
	}
	// A crawl that ctx has cut short is not told from one that found no time.
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	result := Result{
		Generation:   r.gen,
		Gathered:     r.gathered,
		Batch:        r.batch,
		Pending:      r.pending,
		Lost:         r.lost,
		Fetched:      int(r.fetched.Load()),
		GatherTime:   r.gatherTime,
		DroppedPaths: r.links.dropped,
	}
	result.Panic, _ = r.panicked.Load().(error)
	result.Next, result.Done = r.next()
	return result, nil
}

// begin finds out in what the last crawl differs from this one, and how much it knew.
func (r *Run) begin(gen *record.Generation) {
	settings, routes := gen.Settings()
	isOther := routes != r.p.Routes
	isSame := r.p.SameRoutes != 0 && routes == r.p.SameRoutes
	// All records are written once with the digest of now.
	r.resettle = settings != r.p.Settings || isOther && isSame
	r.reroute = isOther && !isSame
	r.links.max = r.p.MaxPaths + gen.Len()
	if r.p.wantsImages() {
		r.links.max += imagesPerPath * r.p.MaxPaths
	}
	r.links.max = max(r.links.max, html.MaxLinks) // else a page may have more than there is room for
	// Otherwise an earlier crawl by these settings has done so.
	if r.resettle || gen.Len() == 0 {
		r.seed()
	}
}

// Same reports whether two generations have the same records; nil: it has none that are known.
func Same(a, b *record.Generation) bool {
	if a == nil || b == nil {
		return false
	}
	return slices.EqualFunc(a.Chunks(), b.Chunks(), func(a, b record.Chunk) bool {
		if a.Count != b.Count {
			return false
		}
		// Objects are named by their content. Those of empty chunks have no name.
		return a.Object == b.Object || a.Count > 0 && a.Object.Name == b.Object.Name
	})
}

// crawl reads the candidates, and then works in rounds on what is due and on what links of the round before
// named, until there is nothing, or wait ends.
func (r *Run) crawl(ctx, wait context.Context) error {
	if !r.gathered {
		begun := r.c.o.Now()
		err := r.gather(ctx, wait)
		r.gatherTime += r.c.o.Now().Sub(begun)
		if err != nil {
			return err
		}
		// Until all candidates are read, a page that a link names may still be named by a source.
		if !r.gathered {
			return nil
		}
	}
	r.stopped.Store(false)
	for {
		hasWorked, err := r.round(ctx, wait)
		if err != nil {
			return err
		}
		// The front page comes first, and what it links to.
		err = r.look(ctx)
		if err != nil {
			return err
		}
		if hasWorked || len(r.notices) > 0 {
			continue
		}
		isTimeOver := wait.Err() != nil || r.stopped.Load()
		if isTimeOver {
			return nil
		}
		// Nothing else is due: now come the pages that had to wait.
		if !r.c.precedence.next() {
			return nil
		}
	}
}

// next returns when it is time for another crawl, and whether nothing is left that could be fetched now. Pages whose
// interval is over, and hubs, wait for whenever that is: only what failed or is to be confirmed does not.
func (r *Run) next() (at int64, done bool) {
	now := r.c.now()
	if !r.gathered {
		return now, false
	}
	if r.p.Closed {
		return now + minute, true // robots.txt is to be fetched again
	}
	if r.left {
		// It waits for upstreams, if they are left alone. The time is rounded up: rounded down, refreshes began at once
		// and found nothing to do, until the second was over.
		upstreams := r.c.o.Limiter.nextOf(&r.c.cooldown).Add(time.Second - 1).Unix()
		return max(now, upstreams), false
	}
	at = record.Sum(r.gen.Chunks()).Urgent
	if at == 0 {
		at = now + maxAhead
	}
	if at <= now {
		at = now + 10*minute // the budget for what is due is spent
	}
	if r.p.Look.IsOn(now) {
		at = min(at, max(now+lookEvery, r.c.o.Limiter.LookDue().Unix()))
	}
	return at, true
}

// seed adds the front page to what is discovered.
func (r *Run) seed() {
	if r.p.discovers() {
		r.links.add(link{path: r.p.Scope, flags: record.Seed})
	}
}

// load returns the records of a chunk; none where it was damaged.
func (r *Run) load(ctx context.Context, i int) ([]record.Record, error) {
	runtime.Gosched() // requests come first
	records, err := r.gen.Load(ctx, i)
	if errors.Is(err, record.ErrDamaged) {
		// Its pages are found again by candidates and links, beginning with those of the front page.
		r.lost = true
		r.seed()
		return nil, nil
	}
	return records, err
}

// endOf is the first path after chunk i.
func (r *Run) endOf(i int) string {
	if chunks := r.gen.Chunks(); i+1 < len(chunks) {
		return chunks[i+1].First
	}
	return end
}

// pendingOf counts pages that are to be fetched for the first time.
func (r *Run) pendingOf(records []record.Record) (n int) {
	for i := range records {
		if rec := &records[i]; rec.Fetched == 0 && r.wanted(rec) {
			n++
		}
	}
	return n
}

// insert adds records of other paths to sorted ones.
func insert(records, fresh []record.Record) []record.Record {
	if len(fresh) == 0 {
		return records
	}
	records = append(records, fresh...)
	slices.SortFunc(records, func(a, b record.Record) int { return strings.Compare(a.Path, b.Path) })
	return records
}
