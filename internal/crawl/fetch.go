package crawl

import (
	"context"
	"errors"
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

var errUnknown = errors.New("not known now")

// noTime is the error of a request that was not made, since there was no time for it.
type noTime struct{ error }

func isOurs(err error) bool { _, ok := err.(noTime); return ok }

// fetch fetches those of some records that are due, until wait ends: the site's own pages, and with
// upstreams theirs too. It returns how many it has fetched.
func (r *Run) fetch(wait context.Context, records []store.Record, first string, upstreams bool) int {
	var own, proxied []int
	now := r.c.o.Now().Unix()
	for i := range records {
		rec := &records[i]
		switch {
		case r.due(rec, now) > now || r.isDeferred(rec):
		case !r.c.backends.isProxied(rec):
			own = append(own, i)
		case upstreams && !r.isCrowded(rec):
			proxied = append(proxied, i)
		}
	}
	if len(own)+len(proxied) == 0 {
		return 0
	}
	for len(r.workers) < r.c.o.Workers+cap(r.c.o.Limiter.slots) {
		r.workers = append(r.workers, newWorker(r))
	}
	t := task{ctx: r.fetching, wait: wait, records: records, slot: slotOf(first)}
	var group sync.WaitGroup
	t.start(&group, r.workers[:r.c.o.Workers], own, false)
	t.start(&group, r.workers[r.c.o.Workers:], proxied, true)
	group.Wait()
	if t.left.Load() {
		r.left = append(r.left, records[own[len(own)-1]].Path)
	}
	r.stopped = r.stopped || t.stopped.Load()
	r.touched = r.touched || t.fetched.Load() > 0
	return int(t.fetched.Load())
}

// isDeferred reports whether a page is left for last, as its name is that of an asset.
func (r *Run) isDeferred(rec *store.Record) bool {
	if r.assets || rec.Fetched != 0 || rec.Flags&store.Named != 0 || !page.IsAsset(rec.Path) {
		return false
	}
	r.deferred = true
	return true
}

// isCrowded reports whether a page is one too many of its folder for this round: an endless calendar is not
// to keep an upstream from all that comes after it.
func (r *Run) isCrowded(rec *store.Record) bool {
	if rec.Fetched != 0 || rec.Flags&store.Named != 0 {
		return false
	}
	folder := page.Folder(rec.Path)
	r.crowd[folder]++
	r.deferred = r.deferred || r.crowd[folder] > maxCrowd
	return r.crowd[folder] > maxCrowd
}

// task is the fetching of some records.
type task struct {
	ctx, wait context.Context
	records   []store.Record
	slot      uint64
	fetched   atomic.Int64
	left      atomic.Bool // some of the site's own pages were not reached
	stopped   atomic.Bool // nor were some of upstreams
}

// start has workers fetch the records with these indexes.
func (t *task) start(group *sync.WaitGroup, workers []*worker, indexes []int, proxied bool) {
	next := new(atomic.Int64)
	for _, w := range workers[:min(len(workers), len(indexes))] {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(indexes) {
					return
				}
				rec := &t.records[indexes[i]]
				isProxied := w.run.c.backends.isProxied(rec)
				if isProxied && !proxied {
					continue // it is left for the next round
				}
				if t.wait.Err() != nil || !w.page(t, rec, isProxied) {
					t.left.Store(t.left.Load() || !proxied)
					t.stopped.Store(t.stopped.Load() || proxied)
					return
				}
				t.fetched.Add(1)
			}
		})
	}
}

// worker fetches pages, one at a time.
type worker struct {
	run      *Run
	parser   *htmlmeta.Parser
	computes bool         // it has a computing slot
	timer    *time.Timer  // gives it up when a fetch takes long
	recent   [1024]target // that pages have linked to
}

type target struct {
	hash  uint64
	depth uint8
}

func newWorker(r *Run) *worker {
	w := &worker{run: r, parser: htmlmeta.NewParser(r.p.Extract)}
	w.timer = time.AfterFunc(math.MaxInt64, r.c.o.Slots.release)
	w.timer.Stop()
	return w
}

// page fetches a page and updates its record; false: there was no time for it, and the record is as before.
func (w *worker) page(t *task, rec *store.Record, proxied bool) bool {
	r := w.run
	defer w.release()
	if w.probeFirst(t.ctx, t.wait, rec, proxied) != nil {
		return false
	}
	req := Request{Path: rec.Path, Limit: htmlmeta.MaxBody, Wants: wantsBody}
	if r.spares(rec, r.c.o.Now().Unix()) {
		req.Header = conditions(rec)
	}
	resp, err := w.get(t.ctx, t.wait, req, proxied)
	if isOurs(err) || t.ctx.Err() != nil {
		return false
	}
	f := fetched{resp: resp, base: r.p.Base, batch: r.batch, now: r.c.o.Now().Unix()}
	if err != nil || resp.Status == http.StatusNotModified && req.Header == nil {
		f.resp = nil
	}
	if f.resp != nil && resp.Status == http.StatusOK {
		f.meta = w.parse(rec.Path, resp)
		if f.meta.Document {
			f.soft, err = w.isSoft(t.ctx, t.wait, rec, resp.Proxied, f.meta.Text)
			if errors.Is(err, errUnknown) {
				f.resp = nil
			} else if err != nil {
				return false
			}
		}
	}
	before := *rec
	changed := apply(rec, &f)
	r.plan(&before, rec, changed, t.slot, f.now)
	w.note(rec, &f)
	w.follow(rec, f.meta.Links)
	return true
}

// note counts a fetch.
func (w *worker) note(rec *store.Record, f *fetched) {
	w.run.mu.Lock()
	defer w.run.mu.Unlock()
	w.run.counts.Fetched++
	switch {
	case f.resp == nil || !isAnswer(uint16(f.resp.Status)):
		w.run.counts.Failed++
	case f.resp.Status == http.StatusNotModified:
		w.run.counts.NotModified++
	}
	if f.resp != nil || rec.Version == 0 {
		w.run.c.backends.note(rec, f.resp == nil || f.resp.Proxied)
	}
}

// take takes a computing slot, release gives it back.
func (w *worker) take(ctx context.Context) (err error) {
	if !w.computes {
		err = w.run.c.o.Slots.take(ctx)
		w.computes = err == nil
	}
	return err
}

func (w *worker) release() {
	if w.computes {
		w.run.c.o.Slots.release()
		w.computes = false
	}
}

// get makes a request, with a place of the limiter where an upstream responds, and with a computing slot,
// which it gives up if the request takes long and has again for what follows. It begins no later than wait
// ends.
func (w *worker) get(ctx, wait context.Context, req Request, proxied bool) (*Response, error) {
	o := &w.run.c.o
	w.release()
	if proxied {
		if err := o.Limiter.begin(wait); err != nil {
			return nil, noTime{err}
		}
		defer o.Limiter.end()
	}
	if err := w.take(wait); err != nil {
		return nil, noTime{err}
	}
	w.timer.Reset(slotTime)
	begun := time.Now()
	resp, err := o.Fetcher.Fetch(ctx, req)
	took := time.Since(begun)
	w.computes = w.timer.Stop()
	if ctx.Err() == nil && (proxied || resp != nil && resp.Proxied) {
		o.Limiter.record(took, resp)
	}
	if err == nil {
		err = w.take(ctx)
	}
	return resp, err
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
		header.Set("If-Modified-Since", httpTime(rec.Modified))
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
	depth := rec.Depth
	if depth < math.MaxUint8 {
		depth++
	}
	switch {
	case rec.Failing != 0 || rec.Flags&store.SoftNotFound != 0:
	case rec.Status >= 300 && rec.Status < 400 && rec.Flags&store.Seed != 0:
		w.link(rec.Path, rec.Target, 0, store.Seed)
	case rec.Status >= 300 && rec.Status < 400:
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
	hash := xxhash.Sum64String(to) ^ uint64(flags)
	recent := &w.recent[hash%uint64(len(w.recent))]
	if to == "" || to[0] != '/' || recent.hash == hash && recent.depth <= depth {
		return
	}
	if flags&store.Target == 0 && strings.ContainsAny(to, ";?%") || strings.Contains(to, "//") || len(to) > page.MaxPath { // else it is clean
		var ok bool
		if to, ok = w.run.links.cleaner.Clean(to); !ok {
			return
		}
	}
	if to != from && strings.HasPrefix(to, w.run.p.Scope) {
		*recent = target{hash, depth}
		w.run.links.add(to, depth, flags)
	}
}
