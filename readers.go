package sitemap

import (
	"cmp"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/crawler"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
)

// Reading says how often a document of a site was requested with User-Agents of one class,
// and with which result. A HEAD counts as a GET, and each form and encoding of a document
// as the document.
type Reading struct {
	Crawler  string    `json:"crawler"`  // the class of the User-Agent, which is not verified
	Document string    `json:"document"` // index, sitemap, shard or robots
	Result   string    `json:"result"`   // served, not_modified, redirected, missing, unavailable or refused
	Times    uint64    `json:"times"`
	Last     time.Time `json:"last"` // to the second
}

// readDocument is a kind of document that is requested.
type readDocument uint8

const (
	readIndex   readDocument = iota // or where it would be
	readSitemap                     // the only urlset
	readShard
	readRobots

	readDocuments
)

var readDocumentNames = [readDocuments]string{readIndex: "index", readSitemap: "sitemap", readShard: "shard", readRobots: "robots"}

// readResult is how a request ended.
type readResult uint8

const (
	readServed readResult = iota
	readNotModified
	readRedirected  // to the site whose documents stand for this one's
	readMissing     // there is none, or no line for robots.txt: the next handler responded
	readUnavailable // 503, or another error of the server
	readRefused     // the method, a range, a condition, or the client

	readResults
)

var readResultNames = [readResults]string{readServed: "served", readNotModified: "not_modified", readRedirected: "redirected", readMissing: "missing", readUnavailable: "unavailable", readRefused: "refused"}

// readResultOf is the result of a status.
func readResultOf(status int) readResult {
	switch {
	case status < 300:
		return readServed
	case status == http.StatusNotModified:
		return readNotModified
	case status < 400:
		return readRedirected
	case status == http.StatusNotFound || status == http.StatusGone:
		return readMissing
	case status < 500:
		return readRefused
	}
	return readUnavailable
}

// readers counts who requests a site's documents. It keeps no User-Agent, and a bounded
// number of counters. The zero value is ready; it is safe for concurrent use.
type readers struct {
	// Nobody ever requests the documents of most sites on demand.
	classes atomic.Pointer[[crawler.Families]atomic.Pointer[readCounts]]
}

// Destruct lets readers be a value of a [caddy.UsagePool].
func (*readers) Destruct() error { return nil }

// readCounts are the counts of one class of User-Agents.
type readCounts [readDocuments][readResults]readCount

type readCount struct {
	times atomic.Uint64
	last  atomic.Int64 // Unix seconds
}

// readDocumentOf is what is requested of a site with a snapshot; nil: there is none.
func readDocumentOf(want wanted, snapshot *publish.Snapshot) readDocument {
	switch {
	case want.suffix != "":
		return readShard
	case snapshot != nil && !snapshot.Index.Index:
		return readSitemap
	}
	return readIndex
}

// count counts a request by its User-Agent.
func (r *readers) count(header http.Header, document readDocument, result readResult, now func() time.Time) {
	c := &r.of(crawler.Of(get(header, "User-Agent")))[document][result]
	c.times.Add(1)
	if seconds := now().Unix(); c.last.Load() != seconds {
		c.last.Store(seconds)
	}
}

// of returns the counts of a class, which are made if it is the first time.
func (r *readers) of(class crawler.Family) *readCounts {
	return made(&made(&r.classes)[class])
}

// made returns what a pointer points to, which is made if there is nothing yet.
func made[T any](p *atomic.Pointer[T]) *T {
	if v := p.Load(); v != nil {
		return v
	}
	p.CompareAndSwap(nil, new(T))
	return p.Load()
}

// all are the readings, in no particular order.
func (r *readers) all() iter.Seq[Reading] {
	return func(yield func(Reading) bool) {
		for class, counts := range r.each() {
			for document := range counts {
				for result := range counts[document] {
					c := &counts[document][result]
					times := c.times.Load()
					if times > 0 && !yield(Reading{class.String(), readDocumentNames[document], readResultNames[result], times, time.Unix(c.last.Load(), 0).UTC()}) {
						return
					}
				}
			}
		}
	}
}

// each are the counts of the classes that were seen.
func (r *readers) each() iter.Seq2[crawler.Family, *readCounts] {
	return func(yield func(crawler.Family, *readCounts) bool) {
		classes := r.classes.Load()
		if classes == nil {
			return
		}
		for class := range classes {
			if counts := classes[class].Load(); counts != nil && !yield(crawler.Family(class), counts) {
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

// add adds the counts of others.
func (r *readers) add(others *readers) {
	for class, counts := range others.each() {
		sums := r.of(class)
		for document := range counts {
			for result := range counts[document] {
				c, sum := &counts[document][result], &sums[document][result]
				if times := c.times.Load(); times > 0 {
					sum.times.Add(times)
					sum.last.Store(max(sum.last.Load(), c.last.Load()))
				}
			}
		}
	}
}

// allReaders sums up what all sites have counted, and those that there are no longer.
func allReaders(a *App) *readers {
	sums := new(readers)
	if a.departed != nil {
		sums.add(a.departed)
	}
	for _, s := range a.allSites() {
		sums.add(&s.state.readers)
	}
	return sums
}

// readBy is a class of User-Agents, and what it requested.
type readBy struct{ crawler, document string }

// latest are the times of the last requests.
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
