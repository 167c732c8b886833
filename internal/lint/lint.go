// Package lint finds what is wrong with sitemaps and robots.txt files of any origin. A
// document streams by: one of any size takes a few megabytes.
package lint

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"time"
)

// Kind is what a document is.
type Kind uint8

// The kinds that engines read as sitemaps, and HTML, which error pages are.
const (
	KindUnknown Kind = iota
	KindURLSet
	KindIndex
	KindText
	KindFeed // RSS or Atom, which is not checked
	KindHTML
)

// The protocol's limits of a document (https://www.sitemaps.org/protocol.html#index).
const (
	maxEntries  = 50_000
	maxDocument = 52_428_800 // bytes uncompressed
)

const (
	maxRead  = 1 << 30 // bytes of a document, uncompressed, after which reading ends
	maxSeen  = 1 << 18 // entries that are remembered to find duplicates
	maxAdded = 50_000  // files for which findings of the caller are reported one by one
)

// Options says where findings go. The zero value of each field is its default.
type Options struct {
	// Report is called for each finding as it is found; nil: only the [Summary] counts.
	Report func(Finding)

	// Page is called for each page that a document lists, in order, whatever is wrong
	// with it. loc is without the white space around it; line is where it begins.
	Page func(loc string, line int)

	// MaxPerCode is how many findings of one code are reported for a file one by one.
	// The rest is counted and reported as one. Default: 20.
	MaxPerCode int

	// Now is the clock. Default: [time.Now].
	Now func() time.Time
}

// Result is what [Checker.Document] learned of a document.
type Result struct {
	Kind          Kind
	Children      []Child   // of an index, at most 50,000; those with a usable URL
	NewestLastMod time.Time // zero where no entry has a valid one
}

// Child is a document that an index lists.
type Child struct {
	Loc     string
	LastMod string // verbatim, without white space around it
	Line    int
}

// Checker checks the documents of one run, one after the other. It is not safe for
// concurrent use.
type Checker struct {
	options Options
	maxRead int64
	seed    maphash.Seed
	seen    map[uint64]int // the document in which an entry was last, by hash
	forgot  bool
	summary Summary
	added   map[string]*findings // by file
}

// New returns a Checker that has seen nothing.
func New(o Options) *Checker {
	if o.MaxPerCode <= 0 {
		o.MaxPerCode = 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Checker{
		options: o, maxRead: maxRead, seed: maphash.MakeSeed(), seen: make(map[uint64]int),
		summary: Summary{Codes: make(map[string]int)}, added: make(map[string]*findings),
	}
}

// Document checks one document, plain or gzip, of any kind. name is what findings
// call it. at is its absolute URL, which limits what its locs may be; where that is not
// known, it is "", and all locs must have the scheme, host and port of the first. The
// error is one of r; what is wrong with the document is reported.
func (c *Checker) Document(name, at string, r io.Reader) (Result, error) {
	c.summary.Documents++
	d := &document{findings: c.findings(name), in: newInput(r, c.maxRead), now: c.options.Now()}
	if len(c.seen)+maxEntries > maxSeen {
		clear(c.seen) // so that duplicates within the document are found
		if !c.forgot {
			c.forgot = true
			d.add(Warning, 0, "duplicates-unknown", "has pages that are no longer compared with all earlier documents: there are too many")
		}
	}
	if at != "" {
		var bad *urlError
		if d.scope, bad = newScope(at); bad != nil {
			return Result{}, fmt.Errorf("reading %s: its URL %s %s", name, at, bad.message)
		}
	}
	if err := d.check(); err != nil {
		return d.result, fmt.Errorf("reading %s: %w", name, err)
	}
	return d.result, nil
}

// Robots checks the Sitemap lines of a robots.txt, and returns the URLs that they
// name, each once. name, at and the error are as in [Checker.Document].
func (c *Checker) Robots(name, at string, r io.Reader) ([]string, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxRobots))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(body) == maxRobots { // and perhaps in the middle of a line
		body = body[:bytes.LastIndexByte(body, '\n')+1]
	}
	l := &robots{findings: c.findings(name), known: make(map[string]bool)}
	l.check(at, body)
	l.rest()
	return l.urls, nil
}

// Add reports what the caller found, such as a page that answers 404. What exceeds
// the findings of one code and file is counted, and reported by [Checker.Summary].
func (c *Checker) Add(f Finding) {
	added := c.added[f.File]
	if added == nil {
		if len(c.added) >= maxAdded {
			c.count(f.Severity, f.Code)
			return
		}
		added = c.findings(f.File)
		c.added[f.File] = added
	}
	added.report(f)
}

// Summary reports how many findings [Checker.Add] held back, and returns the totals.
func (c *Checker) Summary() Summary {
	for _, file := range slices.Sorted(maps.Keys(c.added)) {
		c.added[file].rest()
	}
	clear(c.added)
	s := c.summary
	s.Codes = maps.Clone(s.Codes)
	return s
}

func (c *Checker) count(s Severity, code string) {
	c.summary.Codes[code]++
	if s == Error {
		c.summary.Errors++
		return
	}
	c.summary.Warnings++
}
