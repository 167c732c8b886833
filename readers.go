package sitemap

import (
	"cmp"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/crawler"
)

// Reading says how often a site's document was fetched by who says to be a crawler of
// some family, and with which result. A HEAD counts as a GET, each form and encoding
// of a document as the document.
type Reading struct {
	Crawler  string    `json:"crawler"`  // its family by its User-Agent, which nobody has verified
	Document string    `json:"document"` // index, sitemap, shard or robots
	Result   string    `json:"result"`   // served, not_modified, redirected, missing, unavailable or refused
	Times    uint64    `json:"times"`
	Last     time.Time `json:"last"` // to the second
}

// readDocument is a kind of document that is fetched.
type readDocument uint8

const (
	readIndex   readDocument = iota // or what would be there
	readSitemap                     // the only urlset
	readShard
	readRobots

	readDocuments
)

var readDocumentNames = [readDocuments]string{readIndex: "index", readSitemap: "sitemap", readShard: "shard", readRobots: "robots"}

// readResult is what a fetch comes to.
type readResult uint8

const (
	readServed readResult = iota
	readNotModified
	readRedirected  // to the site whose documents stand for this one's
	readMissing     // there is none, or no line for robots.txt: what follows the handler answered
	readUnavailable // 503, or another error of the server
	readRefused     // the method, a range, a condition, or the client

	readResults
)

var readResultNames = [readResults]string{readServed: "served", readNotModified: "not_modified", readRedirected: "redirected", readMissing: "missing", readUnavailable: "unavailable", readRefused: "refused"}

// readResultOf is what a status says.
func readResultOf(status int) readResult {
	switch {
	case status < 300:
		return readServed
	case status == http.StatusNotModified:
		return readNotModified
	case status < 400:
		return readRedirected
	case isGone(status):
		return readMissing
	case status < 500:
		return readRefused
	}
	return readUnavailable
}

// readers counts who fetches a site's documents. It keeps no User-Agent, and so many
// counters as there are families. The zero value is ready; it is for concurrent use.
// With nil, nothing is counted.
type readers struct {
	// Most sites that visitors name are read by nobody.
	families atomic.Pointer[[crawler.Families]atomic.Pointer[readCounts]]
}

// readCounts are the counts of one family.
type readCounts [readDocuments][readResults]readCount

type readCount struct {
	times atomic.Uint64
	last  atomic.Int64 // Unix seconds
}

// readDocumentOf is what is fetched of a site with a snapshot; nil: there is none.
func readDocumentOf(want wanted, snapshot *Snapshot) readDocument {
	switch {
	case want.suffix != "":
		return readShard
	case snapshot != nil && snapshot.index.kind == kindURLSet:
		return readSitemap
	}
	return readIndex
}

// countRead counts that a document was fetched.
func (s *site) countRead(r *http.Request, document readDocument, result readResult) {
	s.readers.count(r.Header, document, result, s.app.now)
}

// countRefusal counts that a document was asked for of a visitors' site that may not be
// made.
func (a *App) countRefusal(r *http.Request, want wanted, err error) {
	if errors.Is(err, errTooManySites) {
		a.store.departed.count(r.Header, readDocumentOf(want, nil), readUnavailable, a.now)
	}
}

// count counts a fetch by whom its headers name.
func (r *readers) count(header http.Header, document readDocument, result readResult, now func() time.Time) {
	if r == nil {
		return
	}
	c := &r.of(crawler.Of(get(header, "User-Agent")))[document][result]
	c.times.Add(1)
	if seconds := now().Unix(); c.last.Load() != seconds {
		c.last.Store(seconds)
	}
}

// of returns the counts of a family, made if it is the first time.
func (r *readers) of(family crawler.Family) *readCounts {
	families := made(&r.families)
	return made(&families[family])
}

// made returns what a pointer points to, which is made if there is nothing yet.
func made[T any](p *atomic.Pointer[T]) *T {
	if v := p.Load(); v != nil {
		return v
	}
	p.CompareAndSwap(nil, new(T))
	return p.Load()
}

// all are the readings of which there are any, in no order that means something.
func (r *readers) all() iter.Seq[Reading] {
	return func(yield func(Reading) bool) {
		for family, counts := range r.each() {
			for document := range counts {
				for result := range counts[document] {
					c := &counts[document][result]
					times := c.times.Load()
					if times > 0 && !yield(Reading{family.String(), readDocumentNames[document], readResultNames[result], times, time.Unix(c.last.Load(), 0).UTC()}) {
						return
					}
				}
			}
		}
	}
}

// each are the counts of the families of which there are any.
func (r *readers) each() iter.Seq2[crawler.Family, *readCounts] {
	return func(yield func(crawler.Family, *readCounts) bool) {
		if r == nil || r.families.Load() == nil {
			return
		}
		families := r.families.Load()
		for family := range families {
			if counts := families[family].Load(); counts != nil && !yield(crawler.Family(family), counts) {
				return
			}
		}
	}
}

// list are the readings, the latest first.
func (r *readers) list() []Reading {
	return slices.SortedFunc(r.all(), func(a, b Reading) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(b.Times, a.Times), strings.Compare(a.Crawler, b.Crawler), strings.Compare(a.Document, b.Document), strings.Compare(a.Result, b.Result))
	})
}

// Whether others keep what add takes of them.
const (
	keeping = false
	losing  = true
)

// add adds what others have counted.
func (r *readers) add(others *readers, lose bool) {
	for family, counts := range others.each() {
		sums := r.of(family)
		for document := range counts {
			for result := range counts[document] {
				c, sum := &counts[document][result], &sums[document][result]
				times := c.times.Load()
				if lose {
					times = c.times.Swap(0)
				}
				sum.times.Add(times)
				if times > 0 {
					sum.last.Store(max(sum.last.Load(), c.last.Load()))
				}
			}
		}
	}
}

// allReaders are the sums of what all sites have counted, those of visitors that are no
// more included: no count is ever lower than before.
func (a *App) allReaders() *readers {
	sums := new(readers)
	seen := make(map[*readers]bool) // sites may share what is known of them
	a.mu.RLock()
	defer a.mu.RUnlock()
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	sums.add(&a.store.departed, keeping)
	for _, s := range a.sites {
		if !seen[s.readers] {
			seen[s.readers] = true
			sums.add(s.readers, keeping)
		}
	}
	return sums
}

// readBy is who read what.
type readBy struct{ crawler, document string }

// latest are the times at which documents were fetched last.
func (r *readers) latest() map[readBy]time.Time {
	all := make(map[readBy]time.Time)
	for reading := range r.all() {
		of := readBy{reading.Crawler, reading.Document}
		if reading.Last.After(all[of]) {
			all[of] = reading.Last
		}
	}
	return all
}
