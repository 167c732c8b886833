package crawl

import (
	"context"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// slotTime is for how long a fetch may hold a computing slot.
const slotTime = 100 * time.Millisecond

// fetch fetches those of a chunk's records that are due, until wait ends: the site's own pages, and once all
// candidates are known those of upstreams.
func (r *Run) fetch(wait context.Context, records []store.Record, first string) {
	if r.p.Closed || wait.Err() != nil {
		return
	}
	var own, proxied []*store.Record
	now := r.c.now()
	for i := range records {
		rec := &records[i]
		switch {
		case r.due(rec, now) > now:
		case !r.assets && isLast(rec):
			r.left = true
		case !r.c.backends.isProxied(rec):
			own = append(own, rec)
		case r.gathered && !r.stopped && r.c.turns.take(rec.Path):
			proxied = append(proxied, rec)
		}
	}
	for len(r.workers) < r.c.o.Workers+cap(r.c.o.Limiter.slots) {
		r.workers = append(r.workers, newWorker(r))
	}
	var group sync.WaitGroup
	var stopped atomic.Bool
	start := func(workers []*worker, due []*store.Record, ofUpstreams bool) {
		queue := make(chan *store.Record, len(due))
		for _, rec := range due {
			queue <- rec
		}
		close(queue)
		for _, w := range workers[:min(len(workers), len(due))] {
			w.ctx, w.wait, w.slot = r.fetching, wait, int64(xxhash.Sum64String(first)>>1)
			group.Go(func() {
				for rec := range queue {
					proxied := r.c.backends.isProxied(rec)
					if proxied && !ofUpstreams {
						continue // that is known only now: it is left for the next round
					}
					if !w.page(rec, proxied) {
						stopped.Store(stopped.Load() || ofUpstreams)
						return
					}
				}
			})
		}
	}
	start(r.workers[:r.c.o.Workers], own, false)
	start(r.workers[r.c.o.Workers:], proxied, true)
	group.Wait()
	r.stopped = r.stopped || stopped.Load()
}

// isLast reports whether a page is fetched after all others, as its name is that of an asset.
func isLast(rec *store.Record) bool {
	return rec.Fetched == 0 && rec.Flags&store.Named == 0 && page.IsAsset(rec.Path)
}

// worker fetches pages, one at a time.
type worker struct {
	run    *Run
	parser *htmlmeta.Parser

	ctx, wait context.Context // of the chunk at hand: no request begins once wait has ended
	slot      int64           // see [Run.plan]

	computes bool        // it has a computing slot
	timer    *time.Timer // gives it up when a fetch takes long
}

func newWorker(r *Run) *worker {
	w := &worker{run: r, parser: htmlmeta.NewParser(r.p.Extract)}
	w.timer = time.AfterFunc(math.MaxInt64, r.c.o.Slots.release)
	w.timer.Stop()
	return w
}

// page fetches a page and updates its record; false: there was no time for it, and the record is as before.
func (w *worker) page(rec *store.Record, proxied bool) bool {
	defer w.release()
	r := w.run
	absent := r.absentBeside(rec)
	if a, known := r.c.missing.get(absent); known && a.at == 0 {
		if _, ok := w.absence(absent, proxied); !ok {
			return false
		}
	}
	req := Request{Path: rec.Path, Limit: htmlmeta.MaxBody, Wants: wantsBody}
	if r.spares(rec, r.c.now()) {
		req.Header = conditions(rec)
	}
	resp, ok := w.get(req, proxied)
	if !ok {
		return false
	}
	f := fetched{resp: resp, base: r.p.Base, batch: r.batch, now: r.c.now()}
	switch {
	case resp == nil:
	case resp.Status == http.StatusNotModified && req.Header == nil:
		f.resp = nil
	case resp.Status == http.StatusOK:
		f.meta = w.parse(rec.Path, resp)
		if f.meta.Document && absent != "" {
			a, ok := w.absence(absent, resp.Proxied)
			if !ok {
				return false
			}
			if f.soft = a.found && a.text == f.meta.Text; a.failed {
				f.resp = nil // what the page is cannot be known now
			}
		}
	}
	before := *rec
	came := apply(rec, &f)
	r.plan(&before, rec, came, w.slot, f.now)
	r.fetched.Add(1)
	if f.resp != nil || rec.Version == 0 {
		r.c.backends.note(rec, f.resp == nil || f.resp.Proxied)
	}
	w.follow(rec, f.meta.Links)
	return true
}

// take takes a computing slot, release gives it back.
func (w *worker) take(ctx context.Context) bool {
	w.computes = w.computes || w.run.c.o.Slots.take(ctx)
	return w.computes
}

func (w *worker) release() {
	if w.computes {
		w.run.c.o.Slots.release()
		w.computes = false
	}
}

// get makes a request, with a place of the limiter where an upstream responds, and with a computing slot,
// which it gives up if the request takes long and has again for what follows. resp is nil if there was no
// response. ok is false if there was no time.
func (w *worker) get(req Request, proxied bool) (resp *Response, ok bool) {
	o := &w.run.c.o
	w.release()
	if proxied {
		if !o.Limiter.begin(w.wait) {
			return nil, false
		}
		defer o.Limiter.slots.release()
	}
	if w.wait.Err() != nil || !w.take(w.wait) {
		return nil, false
	}
	w.timer.Reset(slotTime)
	begun := time.Now()
	resp, err := o.Fetcher.Fetch(w.ctx, req)
	took := time.Since(begun)
	w.computes = w.timer.Stop()
	if err != nil {
		resp = nil
	}
	if w.ctx.Err() == nil && (proxied || resp != nil && resp.Proxied) {
		o.Limiter.record(took, resp)
	}
	return resp, w.take(w.ctx) && w.ctx.Err() == nil
}

// wantsBody is [Request].Wants of all requests.
func wantsBody(status int, header http.Header) bool {
	return status == http.StatusOK && htmlmeta.IsHTML(header.Get("Content-Type"))
}

// conditions makes a request conditional on that the page has changed.
func conditions(rec *store.Record) http.Header {
	header := make(http.Header, 2)
	if rec.ETag != "" {
		header.Set("If-None-Match", rec.ETag)
	}
	if rec.Modified != 0 {
		header.Set("If-Modified-Since", time.Unix(rec.Modified, 0).UTC().Format(http.TimeFormat))
	}
	return header
}

// parse returns the metadata of a response with the status 200.
func (w *worker) parse(path string, resp *Response) htmlmeta.Meta {
	pg := htmlmeta.Page{Base: w.run.p.Base, Path: path, Header: resp.Header, Now: w.run.c.o.Now()}
	if htmlmeta.IsHTML(resp.Header.Get("Content-Type")) {
		return w.parser.Parse(resp.Body, pg)
	}
	return htmlmeta.Header(pg)
}

// follow collects the links of a page that was fetched, if they count.
func (w *worker) follow(rec *store.Record, found []string) {
	depth := rec.Depth + 1
	if depth == 0 {
		depth = math.MaxUint8
	}
	switch {
	case rec.Failing != 0 || rec.Flags&store.SoftNotFound != 0:
	case isRedirect(rec) && rec.Flags&store.Seed != 0:
		w.link(rec.Path, rec.Target, 0, store.Seed)
	case isRedirect(rec):
		w.link(rec.Path, rec.Target, depth, 0)
	case rec.Status == http.StatusOK && rec.Flags&store.Document != 0 && rec.Flags&(store.NoIndex|store.Seed) != store.NoIndex:
		w.link(rec.Path, rec.Target, depth, 0)
		if !w.run.p.IgnoreCanonicals {
			w.link(rec.Path, rec.Canonical, depth, store.Target)
		}
		for _, path := range found {
			w.link(rec.Path, path, depth, 0)
		}
	}
}

// link takes a link from one page to another.
func (w *worker) link(from, to string, depth uint8, flags store.Flags) {
	links, ok := &w.run.links, true
	if flags&store.Target == 0 && strings.ContainsAny(to, ";?%") || strings.Contains(to, "//") || len(to) > page.MaxPath { // else it is clean
		to, ok = links.cleaner.Clean(to)
	}
	if ok && to != from && strings.HasPrefix(to, w.run.p.Scope) {
		links.add(to, depth, flags)
	}
}

// backends remembers whether the site itself or an upstream responds, by folder, or "" for all, of files
// and of what else there is.
type backends struct {
	mu      sync.Mutex
	proxied map[backend]bool
}

type backend struct {
	folder string
	isFile bool
}

const maxFolders = 10_000

// isProxied guesses whether an upstream responds for a page: by the last response, by the last one of its
// folder, by whether an upstream ever did.
func (b *backends) isProxied(rec *store.Record) bool {
	switch {
	case rec.Failing != 0:
		return true // whatever it is, it is slow
	case rec.Fetched != 0:
		return rec.Flags&store.Proxied != 0
	}
	key := backend{page.Folder(rec.Path), rec.Version != 0}
	b.mu.Lock()
	defer b.mu.Unlock()
	proxied, known := b.proxied[key]
	if !known {
		proxied, known = b.proxied[backend{"", key.isFile}]
	}
	return proxied || !known && !key.isFile
}

// note remembers who responded for a page.
func (b *backends) note(rec *store.Record, proxied bool) {
	key := backend{page.Folder(rec.Path), rec.Version != 0}
	b.mu.Lock()
	defer b.mu.Unlock()
	all := backend{"", key.isFile}
	ever := proxied || b.proxied[all]
	if key.isFile && !ever {
		return // as was to be expected
	}
	if len(b.proxied) >= maxFolders {
		clear(b.proxied)
	}
	b.proxied[all], b.proxied[key] = ever, proxied
}

// turns counts the pages of each folder that were taken for upstreams, so that a folder of very many, such as an
// endless calendar, lets others have their turn.
type turns map[uint64]int

const maxTurn = 500

func (t turns) take(path string) bool {
	folder := xxhash.Sum64String(page.Folder(path))
	t[folder]++
	return t[folder] <= maxTurn
}

// end begins a new turn, once nothing else is due. It reports whether pages were left for it.
func (t turns) end() bool {
	left := false
	for _, n := range t {
		left = left || n > maxTurn
	}
	clear(t)
	return left
}
