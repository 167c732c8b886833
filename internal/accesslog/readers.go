package accesslog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Reading says how often a document of a site was requested with User-Agents of one class, and with which
// result. A HEAD counts as a GET, and each form and encoding of a document as the document.
type Reading struct {
	Crawler  string    `json:"crawler"`  // the class of the User-Agent, which is not verified
	Document string    `json:"document"` // index, sitemap, shard or robots
	Result   string    `json:"result"`   // served, not_modified, redirected, missing, unavailable or refused
	Times    uint64    `json:"times"`
	Last     time.Time `json:"last"` // to the second
}

// Readers counts who requests a site's documents. It keeps no User-Agent, and a bounded number of counters. The
// zero value is ready; it is safe for concurrent use.
type Readers struct {
	mu       sync.Mutex
	readings map[[3]string]Reading
}

// Destruct lets Readers be a value of a pool of Caddy's.
func (*Readers) Destruct() error { return nil }

// Count counts a request by its User-Agent.
func (r *Readers) Count(agent, document, result string, now time.Time) {
	r.add(Reading{ClassOf(agent), document, result, 1, now.UTC().Truncate(time.Second)})
}

func (r *Readers) add(more Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readings == nil {
		r.readings = make(map[[3]string]Reading)
	}
	of := [...]string{more.Crawler, more.Document, more.Result}
	so := r.readings[of]
	more.Times += so.Times
	if so.Last.After(more.Last) {
		more.Last = so.Last
	}
	r.readings[of] = more
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
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(b.Times, a.Times), strings.Compare(a.Crawler, b.Crawler), strings.Compare(a.Document, b.Document), strings.Compare(a.Result, b.Result))
	})
}
