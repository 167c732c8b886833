package crawl

import (
	"math"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/frontier"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const maxMemory = 10_000 // values

// memory is a bounded map that is safe for concurrent use. When it is full, all is forgotten.
type memory[V any] struct {
	mu     sync.Mutex
	values map[string]V
}

func (m *memory[V]) get(key string) (value V, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, known = m.values[key]
	return value, known
}

func (m *memory[V]) put(key string, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil || len(m.values) >= maxMemory {
		m.values = make(map[string]V)
	}
	m.values[key] = value
}

// likelyMade guesses whether the response for a page is made: by the last response, by the last one for its
// folder and extension, or its extension if it is a file, by whether one ever was for what is no file.
func (c *Crawler) likelyMade(rec *record.Record) bool {
	if rec.Failing != 0 {
		return true // whatever it is, it is slow
	}
	// Where Caddy limits requests, files have the pace of an application, too.
	if c.now()-c.refused.Load() < hour {
		return true
	}
	if rec.Fetched != 0 {
		return rec.Flags&record.Made != 0
	}
	made, known := c.made.get(backendOf(rec))
	if known || rec.Version != 0 {
		return made
	}
	return c.upstream.Load() || !c.own.Load()
}

// setMade remembers whether the response for a page was made.
func (c *Crawler) setMade(rec *record.Record, made bool) {
	if rec.Version == 0 {
		// Two workers may find out both at once, and each is only ever set.
		c.upstream.CompareAndSwap(false, made)
		c.own.CompareAndSwap(false, !made)
	}
	c.made.put(backendOf(rec), made)
}

func backendOf(rec *record.Record) string {
	base, _, _ := strings.Cut(rec.Path, "?")
	if rec.Version != 0 {
		return path.Ext(base)
	}
	// The files of an application are often beside its pages.
	return page.Folder(base) + path.Ext(base)
}

// soft404 is the response for a path that cannot exist: a page beside it with the same text is a soft 404.
type soft404 struct {
	until int64 // when it is to be fetched again
	came  answer404
	text  uint64 // of a document
}

// answer404 is what came of a request for a path that cannot exist.
type answer404 uint8

const (
	notAsked    answer404 = iota // there was no time: it is requested before the page itself
	proper404                    // no document, as it should be, or as is assumed
	failed404                    // the fetch failed; the next one may not
	document404                  // status 200, and a document
)

// soft404Path returns a path beside a page that cannot exist: a sibling in the page's folder, or another value of the
// last query parameter. "": the page is no soft 404 whatever its text, as a source names it: the pages of an
// application that runs in the browser may all have the same text. In place of a file, another one may be served: one path
// for all files tells of that.
func (r *Run) soft404Path(rec *record.Record) string {
	base, query, hasQuery := strings.Cut(rec.Path, "?")
	if page.IsFirstPage(query) {
		hasQuery = false // many lists show it for any value that they do not know
	}
	isKnown := rec.Flags&record.Named != 0 && !rec.IsFile()
	isFront := rec.Flags&record.Seed != 0 || base == r.p.Scope && !hasQuery
	if isKnown || isFront {
		return ""
	}
	if hasQuery && rec.Flags&record.Target != 0 {
		return "" // whoever names a query in a canonical knows what it is for
	}
	// Not a path below the page: a router that matches by prefix would respond with the page itself. All pages of a
	// folder share one path, whether or not theirs end in a slash, so it is fetched once a day.
	path := page.Folder(strings.TrimSuffix(base, "/")) + r.c.soft404Name
	if hasQuery {
		// A last parameter without a value is replaced whole.
		kept := strings.LastIndexAny(query, "=&") + 1
		path = base + "?" + query[:kept] + r.c.soft404Name
	}
	if rec.IsFile() {
		path = r.p.Scope + r.c.soft404Name
		// A file does not wait for an upstream's turn.
		if r.c.likelyMade(&record.Record{Path: path}) {
			return ""
		}
	}
	// What it returns may be known: of all files, one path tells.
	_, wasAsked := r.c.soft404s.get(path)
	if !wasAsked && (!r.p.Allowed(path) || r.p.Disallow(path)) {
		return ""
	}
	return path
}

// soft404 fetches a path that cannot exist, unless the last response still counts; false: there was no time for it.
func (w *worker) soft404(path string, made bool) (soft404, bool) {
	c := w.run.c
	now := c.now()
	last, known := c.soft404s.get(path)
	if now < last.until {
		return last, true
	}
	group := soft404Group(path)
	proper, _ := c.proper404s.get(group)
	isSample := xxhash.Sum64String(path)%sampled404 == 0
	if !known && proper >= enough404s && !isSample {
		return soft404{until: now + day, came: proper404}, true
	}
	resp, ok := w.get(&record.Record{Path: path}, nil, made)
	if !ok {
		c.soft404s.put(path, soft404{})
		return soft404{}, false
	}
	s := w.judgeSoft404(path, resp, last, now)
	c.soft404s.put(path, s)
	switch s.came {
	case document404:
		c.proper404s.put(group, neverEnough)
	case proper404:
		c.proper404s.put(group, proper+1)
	}
	return s, true
}

// judgeSoft404 returns what a response for a path that cannot exist says; nil: there was none.
func (w *worker) judgeSoft404(path string, resp *Response, last soft404, now int64) soft404 {
	s := soft404{until: now + day, came: proper404}
	// Until it is known what a path that does not exist returns, the pages beside it count as failed. An application may
	// fail instead of returning 404, and does so again: both times it is requested right after such a page returned 200,
	// so a minute between them is enough.
	isRefused := resp == nil || !page.IsConclusive(resp.Status) || resp.Status == http.StatusForbidden
	if isRefused && last.came != failed404 {
		s.came = failed404
		s.until = now + minute
		return s
	}
	if resp == nil || resp.Status != http.StatusOK {
		return s
	}
	meta, parsed := w.parse(path, resp)
	if !parsed {
		s.came = failed404
	} else if meta.Document {
		s.came = document404
		s.text = meta.Text
	}
	return s
}

// An application answers alike for what does not exist, wherever that is: in a site of folders for each filter of a
// shop, half of all requests would be for such paths.
const (
	enough404s  = 20 // paths of a group that do not exist and were no soft 404s, from which on
	sampled404  = 10 // only one of so many is requested
	neverEnough = math.MinInt32
)

// soft404Group returns what paths that cannot exist have in common: the first folder, and the parameter of a query.
func soft404Group(path string) string {
	base, query, hasQuery := strings.Cut(path, "?")
	first, _, isBelow := strings.Cut(strings.TrimPrefix(base, "/"), "/")
	if !isBelow {
		first = ""
	}
	if !hasQuery {
		return first
	}
	parameter := query[strings.LastIndexByte(query, '&')+1:]
	parameter, _, _ = strings.Cut(parameter, "=")
	return first + "?" + parameter
}

// precedence is which pages come first. Some wait until nothing else is due: those for which comesLast says so.
type precedence struct {
	fresh frontier.Accounts // of the pages that were never fetched
	last  lastPages
}

// lastPages is what becomes of the pages for which comesLast is true.
type lastPages uint8

const (
	noneWaits  lastPages = iota // none was due so far
	someWait                    // some are due, and wait until nothing else is
	areFetched                  // nothing else is due: they are fetched, too
)

// comesLast reports whether a page is fetched only once nothing else is due.
func (r *Run) comesLast(rec *record.Record) bool {
	if isLate, _ := r.c.late.get(rec.Path); isLate {
		return true // the others need not wait for one after the other of these
	}
	isFound := rec.Fetched == 0 && rec.Flags&record.Named == 0
	if isFound && (rec.Flags&record.Image != 0 || origin.IsAsset(rec.Path)) {
		return true
	}
	// It would be fetched again for its links, once it has the link that it needs: that is most often yet to be found.
	return !r.p.Counts(rec)
}

// admits reports whether a page is fetched now, and notes that one waits.
func (p *precedence) admits(comesLast bool) bool {
	if !comesLast || p.last == areFetched {
		return true
	}
	p.last = someWait
	return false
}

// next lets those come that wait, once nothing else is due; false: none does.
func (p *precedence) next() bool {
	if p.last == someWait {
		p.last = areFetched
		return true
	}
	p.last = noneWaits
	return false
}
