package crawl

import (
	"context"
	"fmt"
	"iter"
	"math"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// Fetcher fetches pages from the server itself. It is safe for concurrent use.
type Fetcher interface {
	// Fetch makes one GET request as an anonymous visitor. An error means that there was no response: it
	// timed out, the connection was aborted, or ctx has ended. An error status is a response.
	Fetch(ctx context.Context, r Request) (*Response, error)
}

// Request is a GET request for a page of the site.
type Request struct {
	Path   string                                    // with its query, as in [page.Page]
	Header http.Header                               // is sent besides the Fetcher's own; nil: nothing
	Limit  int                                       // the most bytes of the body that are taken
	Wants  func(status int, header http.Header) bool // whether the body is wanted, else the fetch ends; nil: it is
	OfFile bool                                      // a file is known that explains the response

	Patience time.Duration // for the whole response; 0: that for a page's
	Waits    bool          // see [Single.Waits]
}

// Response is the response to a [Request].
type Response struct {
	Status    int
	Header    http.Header
	Body      []byte // of the caller; at most Request.Limit bytes
	Truncated bool   // the body is longer
	Proxied   bool   // an upstream answered
	Made      bool   // no file explains it: an upstream or another handler made it, at a cost
	Unhandled bool   // no route did: the status is 404, although a visitor gets an empty 200
	Aborted   bool   // the connection was, before any header: the status is 403, although a visitor gets no response
}

// fetch fetches those of a chunk's records that are due and that no upstream returns, until wait ends; first is the
// chunk's first path. Pages of upstreams are put in the queue; nil: they wait until all candidates are known.
func (r *Run) fetch(wait context.Context, records []record.Record, first string, upstream *queue) {
	if r.p.Closed {
		return
	}
	if wait.Err() != nil {
		// The time may have ended just now, after it was seen that pages are due: then they are left, and the crawl is
		// not done.
		r.left = r.left || r.chunkDue(records) <= r.c.now()
		return
	}
	due := r.dueOf(records, upstream)
	begun := r.c.o.Now()
	r.fetchOwn(wait, due, first)
	if !r.gathered { // gather calls this
		// Gathering is paid from another budget than fetching. It counts where pages are fetched meanwhile, too: with
		// 200,000 files and one saved every three seconds, refreshing took a twelfth of a core otherwise, not a
		// twentieth.
		r.gatherTime -= r.c.o.Now().Sub(begun)
	}
	r.left = r.left || wait.Err() != nil // some of them, perhaps
}

// dueOf returns those of a chunk's records that are due and that no upstream returns. Pages of upstreams are put in the
// queue.
func (r *Run) dueOf(records []record.Record, upstream *queue) (due []*record.Record) {
	now := r.c.now()
	for i := range records {
		rec := &records[i]
		isAtHand := rec.Path == r.front.path && r.front.resp != nil
		if isAtHand && upstream != nil && r.wanted(rec) {
			upstream.addFront(r, rec, now)
			continue
		}
		if r.due(rec, now) > now {
			continue
		}
		made := r.c.likelyMade(rec)
		canAsk := upstream != nil && !r.stopped.Load() && !r.p.Spares
		if made && !canAsk {
			r.left = true
			continue
		}
		if !r.c.precedence.admits(r.comesLast(rec)) {
			continue
		}
		if made {
			upstream.add(rec, now)
			continue
		}
		due = append(due, rec)
	}
	return due
}

// fetchOwn fetches pages of the site itself, until wait ends.
func (r *Run) fetchOwn(wait context.Context, due []*record.Record, first string) {
	waiting := slices.DeleteFunc(slices.Clone(due), func(rec *record.Record) bool { return !r.waits(rec) })
	var group sync.WaitGroup
	var next atomic.Int64
	slot := int64(xxhash.Sum64String(first) >> 1)
	workers := r.allWorkers()[:r.c.o.Workers]
	for _, w := range workers[:min(len(workers), len(due))] {
		w.ctx = r.fetching
		w.wait = wait
		w.slot = slot
		group.Go(func() { w.work(due, &next) })
	}
	group.Wait()
	// The census is not safe for concurrent use, so the workers leave it alone.
	for _, rec := range waiting {
		if rec.Fetched != 0 && r.census != nil {
			r.census.fetched(rec.Path)
		}
	}
}

// allWorkers returns those for the site's own pages, and then those for pages of upstreams.
func (r *Run) allWorkers() []*worker {
	for len(r.workers) < r.c.o.Workers+r.c.o.Limiter.most {
		r.workers = append(r.workers, &worker{run: r})
	}
	return r.workers
}

// worker fetches pages, one at a time.
type worker struct {
	run       *Run
	ctx, wait context.Context // ctx: of fetches; none begins once wait has ended
	slot      int64           // see [Run.plan]
	front     *Response       // to a request that was made already for the page that is fetched next; nil: none was
}

// work fetches the site's own pages that are due, of which next is shared with other workers, until none is left, or no
// time.
func (w *worker) work(due []*record.Record, next *atomic.Int64) {
	r := w.run
	for i := next.Add(1); i <= int64(len(due)); i = next.Add(1) {
		rec := due[i-1]
		if r.c.likelyMade(rec) {
			continue // it was not known when due was made; the next round fetches the page
		}
		if !w.page(rec, false) && w.wait.Err() != nil {
			return
		}
	}
}

// page fetches a page and updates its record; false: there was no time for it, and the record is as before.
func (w *worker) page(rec *record.Record, made bool) bool {
	r := w.run
	soft404Path := r.soft404Path(rec)
	s, known := r.c.soft404s.get(soft404Path)
	if known && s.came == notAsked {
		if _, ok := w.soft404(soft404Path, made); !ok {
			return false
		}
	}
	begun := r.c.now() // a page that is made while it is fetched has a later Last-Modified
	resp, ok := w.request(rec, made)
	if !ok {
		return false
	}
	f := fetched{
		resp:      resp,
		base:      r.p.Base,
		scope:     r.p.Scope,
		batch:     r.batch,
		now:       begun,
		confirmed: r.p.Confirmed,
		isLast:    r.c.o.Once,
	}
	isPage := resp != nil && resp.Status == http.StatusOK
	if isPage && !w.read(rec, &f, soft404Path) {
		return false
	}

	// From here on, each step needs what the steps before have recorded.
	before := *rec
	came := apply(rec, &f)
	r.mute(&before, rec, came)
	rec.Hub = decayedHub(&before, f.now)
	w.follow(&before, rec, f.meta.Links)
	r.plan(&before, rec, came, w.slot, f.now)
	r.fetched.Add(1)

	// A file that fails says nothing of who responds for others with its extension.
	if f.resp != nil || rec.Version == 0 {
		r.c.setMade(rec, f.resp == nil || f.resp.Made)
	}
	return true
}

// request requests a page: conditionally, where that will do. resp is nil if there was no response, or one that says
// nothing. ok is false if there was no time.
func (w *worker) request(rec *record.Record, made bool) (resp *Response, ok bool) {
	if w.front != nil {
		resp = w.front
		w.front = nil
		return unlessNotModified(resp), true
	}
	header := w.run.condition(rec)
	if header != nil {
		resp, ok = w.get(rec, header, made)
		if !ok || !w.isOutdated(rec, resp) {
			return resp, ok
		}
	}
	resp, ok = w.get(rec, nil, made)
	return unlessNotModified(resp), ok
}

// unlessNotModified returns the response to a request without conditions; nil: it is a 304, which then says nothing.
func unlessNotModified(resp *Response) *Response {
	if resp != nil && resp.Status == http.StatusNotModified {
		return nil
	}
	return resp
}

// read reads a response with the status 200, and compares it with that for a path that cannot exist; "": there is none.
// What cannot be read or compared counts as no response; false: there was no time to compare.
func (w *worker) read(rec *record.Record, f *fetched, soft404Path string) bool {
	resp := f.resp
	meta, ok := w.parse(rec.Path, resp)
	f.meta = meta
	if !ok {
		f.resp = nil
	}
	if !meta.Document || soft404Path == "" {
		return true
	}
	s, ok := w.soft404(soft404Path, resp.Made)
	if !ok {
		return false
	}
	f.soft = s.came == document404 && s.text == meta.Text
	if s.came == failed404 && !rec.IsFile() {
		f.resp = nil // whether the page is a soft 404 cannot be known now
	}
	return true
}

// condition returns the header of a conditional request for a page; nil: it is to be fetched in full.
func (r *Run) condition(rec *record.Record) http.Header {
	// Only a full response shows whether its images, to which a list may have added some, count.
	isExtended := rec.Listed != nil && rec.Cause == record.ByList
	if isExtended || !r.spares(rec, r.c.now()) {
		return nil
	}
	// A recipient ignores If-Modified-Since beside If-None-Match (RFC 9110, section 13.1.3).
	if rec.ETag != "" {
		return http.Header{"If-None-Match": {rec.ETag}}
	}
	return http.Header{"If-Modified-Since": {time.Unix(rec.Modified, 0).UTC().Format(http.TimeFormat)}}
}

// isOutdated reports whether the header of a 304 says something of the page that its record does not. Its fields
// replace those of the response before (RFC 9111, section 3.2), but only the body shows what they amount to: two
// canonicals that differ, say, are none.
func (w *worker) isOutdated(rec *record.Record, resp *Response) bool {
	if resp == nil || resp.Status != http.StatusNotModified {
		return false
	}
	base := w.run.p.Base
	meta := html.Header(html.Page{Base: base, Path: rec.Path, Header: resp.Header, Options: w.run.p.Extract, Now: w.run.c.o.Now()})
	if meta.NoIndexTag && !rec.NoIndexTag {
		return true
	}
	if meta.Canonical != "" && onSite(base, rec.Path, meta.Canonical) != rec.Canonical {
		return true
	}
	if meta.Refresh != "" && onSite(base, rec.Path, meta.Refresh) != rec.Target {
		return true
	}
	isUnknown := func(a page.Alternate) bool { return !slices.Contains(rec.Alternates, a) }
	return slices.ContainsFunc(meta.Alternates, isUnknown)
}

// get requests the page of a record, with a place of the limiter where an upstream responds, and with a computing slot, which
// it gives up if the request takes long. resp is nil if there was no response. ok is false if there was no time.
func (w *worker) get(rec *record.Record, header http.Header, made bool) (resp *Response, ok bool) {
	o := &w.run.c.o
	if made {
		of := o.Rank()
		ok = o.Limiter.awaitCooldown(w.wait, &w.run.c.cooldown) && o.Limiter.Take(w.wait, of, o.Slots)
		if ok {
			defer o.Limiter.Release(of)
		}
	} else {
		ok = o.Limiter.awaitAdmission(w.wait) && o.Slots.Take(w.wait)
	}
	if !ok {
		return nil, false
	}
	timer := time.AfterFunc(slotTime, o.Slots.Release)
	begun := time.Now()
	resp, err := o.Fetcher.Fetch(w.ctx, Request{
		Path:   rec.Path,
		Header: header,
		Limit:  html.MaxBody,
		Wants:  WantsBody,
		OfFile: rec.Version != 0,
	})
	if timer.Stop() { // else the slot was given up
		o.Slots.Release()
	}
	if w.ctx.Err() != nil {
		// The page stays due. Fetched first in the next step of the crawl, a few that hang would keep all behind them
		// waiting: of 50 files of which three hang, one was listed for 40 seconds.
		w.run.c.late.put(rec.Path, true)
		return nil, false
	}
	if err != nil {
		resp = nil
	}
	// A request that took no turn, but reached an upstream, delays the next turn all the same. Not in a first look (see
	// Policy.Spares): with many new hosts, one such page each would leave no turns for other sites.
	isCounted := made || resp != nil && resp.Made && !w.run.p.Spares
	if isCounted {
		w.run.c.record(time.Since(begun), resp)
	}
	return resp, !w.comesAgain(rec.Path, resp)
}

// comesAgain reports whether a page is requested again after the pause for which a 429 asks: that says nothing of the page. One
// that gets a second one may have a limit of its own, and must not have the others wait.
func (w *worker) comesAgain(path string, resp *Response) bool {
	if !resp.isRefused() {
		return false
	}
	isSecond, _ := w.run.c.late.get(path)
	w.run.c.late.put(path, true)
	return !isSecond
}

// WantsBody reports whether the crawl reads the body of a response.
func WantsBody(status int, header http.Header) bool {
	return status == http.StatusOK && html.IsHTML(header.Get("Content-Type"))
}

// parse returns the metadata of a response with the status 200, with a computing slot; false: parsing it panicked.
func (w *worker) parse(path string, resp *Response) (meta html.Meta, ok bool) {
	w.run.c.o.Slots.Take(context.Background()) // others give theirs up soon
	defer w.run.c.o.Slots.Release()
	defer func() {
		if v := recover(); v != nil {
			panicked := &merge.PanicError{Value: v, Stack: debug.Stack()}
			w.run.panicked.CompareAndSwap(nil, fmt.Errorf("parsing %s: %w", path, panicked))
		}
	}()
	pg := html.Page{Base: w.run.p.Base, Path: path, Header: resp.Header, Options: w.run.p.Extract, Now: w.run.c.o.Now()}
	if WantsBody(resp.Status, resp.Header) {
		return html.Parse(resp.Body, pg), true
	}
	return html.Header(pg), true
}

// follow collects the links of a page that was fetched, if they count.
func (w *worker) follow(before, rec *record.Record, found []string) {
	r := w.run
	known := rec.Links
	rec.Links = nil
	if rec.Failing != 0 || rec.Followed != 0 { // the links were not seen
		rec.Links = known
		return
	}
	if rec.Flags&record.SoftNotFound != 0 {
		return
	}
	// Otherwise two drafts that link to each other would have each other listed.
	rec.Withheld = !r.p.Counts(rec)
	if rec.Withheld {
		return
	}
	from := link{
		finder:      rec.Path,
		finderKnown: before.Fetched != 0,
		depth:       min(rec.Depth, math.MaxUint8-1) + 1,
	}
	if rec.Status/100 == 3 {
		w.followRedirect(before, rec, from)
		return
	}
	// Without the links of its front page, nothing of the site is found.
	isHidden := rec.Flags&record.NoIndex != 0 && rec.Flags&record.Seed == 0
	isDocument := rec.Status == http.StatusOK && rec.Flags&record.Document != 0
	if !isDocument || isHidden {
		return
	}
	w.link(from, rec.Target)
	if !r.p.IgnoreCanonicals {
		w.followCanonical(rec, from)
	}
	if r.keepsLinks(rec) {
		w.followKept(before, rec, from, known, found)
	} else {
		for target := range w.targets(rec, found) {
			w.linkClean(from, target)
		}
	}
	w.followImages(rec, from)
}

// followRedirect takes the link of a redirect.
func (w *worker) followRedirect(before, rec *record.Record, from link) {
	from.flags = rec.Flags & record.Seed
	if from.flags != 0 {
		from.depth = 0 // the site begins where its front page redirects to
	}
	if before.Cause == record.ByFile {
		w.run.notify(notice{path: rec.Target, cause: record.ByFile})
	}
	// A query in a redirect counts as one in a link does.
	to, ok := w.clean(rec.Target, from.flags)
	if !ok || to == rec.Path {
		return
	}
	// Routes that redirect the URL of a file to another one show it there, as for a URL without the slash at its end.
	if rec.IsFile() {
		from.flags |= record.Target
		from.depth = rec.Depth
	}
	// Redirects may follow each other, as often as links do.
	from.flags |= rec.Flags & record.Target
	w.linkClean(from, to)
}

// followCanonical takes the link to the canonical of a page: it stands for this one, so it is as near.
func (w *worker) followCanonical(rec *record.Record, from link) {
	from.depth = rec.Depth
	from.flags = record.Target
	w.link(from, rec.Canonical)
}

// followImages takes the links to the images of a page, and to its version in Markdown: that is shown in place of the
// page, and is to be requested as images are.
func (w *worker) followImages(rec *record.Record, from link) {
	from.depth = math.MaxUint8
	from.flags = record.Image
	for _, url := range rec.Extensions().Images {
		if path, ok := html.PathOn(w.run.p.Base, url); ok {
			w.link(from, path)
		}
	}
	if strings.HasPrefix(rec.Markdown, "/") {
		w.link(from, rec.Markdown)
	}
}

// followKept follows the links of a hub or a front page, and keeps them; known are those before. They are fetched so
// often that those of their links that are known already are followed only once a day.
func (w *worker) followKept(before, rec *record.Record, from link, known, found []string) {
	targets := unique(w.targets(rec, found))
	if len(targets) <= maxKeptLinks {
		rec.Links = targets
		w.run.noteLost(known, targets)
		targets = w.followNew(before, rec, known, targets)
	}
	for _, target := range targets {
		w.linkClean(from, target)
	}
}

// followNew notes which targets of a page are new, and returns those that are to be followed now.
func (w *worker) followNew(before, rec *record.Record, known, targets []string) []string {
	if len(known) == 0 {
		return targets // all of them are, or what was known was not kept
	}
	fresh := minus(targets, known)
	w.run.noteNew(fresh)
	isFollowedToday := rec.Fetched-before.FollowedAt() < day
	if !isFollowedToday {
		return targets
	}
	rec.Followed = before.FollowedAt()
	return fresh
}

// targets yields the clean paths to which a page links, in the order of its links.
func (w *worker) targets(rec *record.Record, found []string) iter.Seq[string] {
	return func(yield func(path string) bool) {
		for _, path := range found {
			isSelf := rec.Version != 0 && page.Bare(path) == rec.Path // to the file itself, spelled otherwise
			if isSelf {
				continue
			}
			path, ok := w.clean(path, 0)
			if ok && path != rec.Path && !yield(path) {
				return
			}
		}
	}
}

// unique returns paths, each once.
func unique(paths iter.Seq[string]) []string {
	var all []string
	seen := make(map[string]bool)
	for path := range paths {
		if !seen[path] {
			seen[path] = true
			all = append(all, path)
		}
	}
	return all
}

// clean returns the clean form of a path to which a link leads; false: it is no page of a site.
func (w *worker) clean(path string, flags record.Flags) (string, bool) {
	// Most are clean, and the parameters of a canonical or an image are meant.
	isRaw := flags&(record.Target|record.Image) == 0 && strings.ContainsAny(path, ";?%")
	if isRaw || strings.Contains(path, "//") || len(path) > origin.MaxPath {
		return w.run.links.cleaner.Clean(path)
	}
	return path, path != ""
}

// link takes a link from one page to another.
func (w *worker) link(from link, to string) {
	to, ok := w.clean(to, from.flags)
	if ok && to != from.finder {
		w.linkClean(from, to)
	}
}

// linkClean is link for a clean path of another page.
func (w *worker) linkClean(from link, to string) {
	n := newLink(to, from)
	if strings.HasPrefix(n.path, w.run.p.Scope) {
		w.run.links.add(n)
	}
}
