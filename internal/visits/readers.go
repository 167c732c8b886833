package visits

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Reading counts the requests for a document of a site by one class of User-Agents, with one result. A HEAD
// counts as a GET, and each form and encoding of a document as the document.
type Reading struct {
	Crawler  string    `json:"crawler"`  // the class of the User-Agent, which is not verified
	Document string    `json:"document"` // sitemap, section, shard, robots, html, feed, news, llms or stylesheet
	Result   string    `json:"result"`   // served, not_modified, redirected, missing, unavailable or refused
	Times    uint64    `json:"times"`
	Last     time.Time `json:"last"` // to the second
}

// Readers counts who requests a site's documents. It keeps a bounded number of counters, and no User-Agent. The
// zero value is ready; it is safe for concurrent use.
type Readers struct {
	mu       sync.Mutex
	readings map[[3]string]Reading
}

// Count counts a request by its User-Agent and the status of its response.
func (r *Readers) Count(agent, document string, status int, now time.Time) {
	r.add(Reading{classOf(agent), document, resultOf(status), 1, now.UTC().Truncate(time.Second)})
}

// resultOf is how a request ended.
func resultOf(status int) string {
	switch {
	case status < 300:
		return "served"
	case status == http.StatusNotModified:
		return "not_modified"
	case status < 400:
		return "redirected" // to the site whose documents stand for this one's
	case status == http.StatusNotFound || status == http.StatusGone:
		return "missing" // there is none, or no line for robots.txt
	case status < 500:
		return "refused" // the method, a range, a condition, or the client
	}
	return "unavailable"
}

func (r *Readers) add(more Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readings == nil {
		r.readings = make(map[[3]string]Reading)
	}
	key := [...]string{more.Crawler, more.Document, more.Result}
	before := r.readings[key]
	more.Times += before.Times
	if before.Last.After(more.Last) {
		more.Last = before.Last
	}
	r.readings[key] = more
}

// Add adds the counts of others.
func (r *Readers) Add(others *Readers) {
	for _, reading := range others.List() {
		r.add(reading)
	}
}

// List returns the readings, the latest first.
func (r *Readers) List() []Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.readings), func(a, b Reading) int {
		return cmp.Or(
			b.Last.Compare(a.Last),
			cmp.Compare(b.Times, a.Times),
			strings.Compare(a.Crawler, b.Crawler),
			strings.Compare(a.Document, b.Document),
			strings.Compare(a.Result, b.Result),
		)
	})
}
