// Package check finds what is wrong with sitemaps of any origin. It reads them as
// they stream by: a document of any size takes a few megabytes.
package check

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

// Kind is what a document is.
type Kind uint8

// The kinds that engines read as sitemaps, and HTML, which error pages are.
const (
	KindUnknown Kind = iota
	KindURLSet
	KindIndex
	KindText
	KindRSS
	KindAtom
	KindHTML
)

var kindNames = [...]string{"", "urlset", "sitemapindex", "text", "rss", "atom", "html"}

// String is the name of the root element, "text" for a list of URLs, and "" for what
// is no sitemap.
func (k Kind) String() string { return kindNames[k] }

// MarshalText is String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Options says what to check against, and where findings go. The zero value of each
// field is its default.
type Options struct {
	// Report is called for each finding as it is found; nil is for who wants the
	// [Summary] alone.
	Report func(Finding)

	// Page is called for each page that a document lists, in order, whatever is wrong
	// with it. loc is without the white space around it, and is valid until Page
	// returns; line is where it begins.
	Page func(loc []byte, line int)

	// MaxPerCode is how many findings of one code are reported for a file one by one.
	// The rest is counted, and said at the file's end. Default: 20.
	MaxPerCode int

	// Schema is what documents must follow. Default: what their namespace says.
	Schema *sitemapxml.Schema

	// MaxBytes is where the reading of a document ends for good, in bytes
	// uncompressed. That it is longer than the protocol allows is found before that.
	// Default: 1 GiB.
	MaxBytes int64

	// Remember is the memory for finding duplicates, in bytes, 11 for each page. Where
	// it is full, a warning says so. Default: 4 MiB.
	Remember int

	// Now is the clock. Default: [time.Now].
	Now func() time.Time
}

// Result is what [Checker.Document] learned of a document.
type Result struct {
	Kind          Kind
	Schema        sitemapxml.Schema // of a urlset or sitemapindex
	URLs          int               // pages, or children of an index
	Bytes         int64             // read, uncompressed
	Children      []Child           // of an index, at most 50,000; those with a usable URL
	NewestLastMod time.Time         // zero where no entry has a valid one
}

// Child is a document that an index lists.
type Child struct {
	Loc     string
	LastMod string // word for word, without white space around it
	Line    int
}

// Checker checks the documents of one run, one after the other. It is not safe for
// concurrent use.
type Checker struct {
	options Options
	seed    maphash.Seed
	seen    *seen
	spelt   []byte // the last loc that has a simpler spelling, in that
	forgot  bool
	summary Summary
	added   map[string]*findings // by file
}

// New returns a Checker that has seen nothing.
func New(o Options) *Checker {
	if o.MaxPerCode <= 0 {
		o.MaxPerCode = 20
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 1 << 30
	}
	if o.Remember <= 0 {
		o.Remember = 4 << 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	seed := maphash.MakeSeed()
	return &Checker{
		options: o, seed: seed, seen: newSeen(o.Remember, seed),
		summary: Summary{Codes: map[string]int{}}, added: map[string]*findings{},
	}
}

// Document checks one document, plain or gzip, of any kind. name is what findings
// call it. at is its absolute URL, which says what its locs may be; where that is not
// known, it is "", and all locs must have scheme, host and port of the first. The
// error is one of r; what is wrong with the document is reported.
func (c *Checker) Document(name, at string, r io.Reader) (Result, error) {
	c.summary.Documents++
	in := openInput(r, c.options.MaxBytes)
	d := &document{findings: c.findings(name), c: c, in: in, tokens: newTokenizer(in, c.seed)}
	d.dates.now = c.options.Now().Unix()
	if c.seen.begin() && !c.forgot {
		c.forgot = true
		d.say(Warning, 0, "duplicates-unknown", "and all later ones are compared with the documents before only in part: there are more pages than are remembered")
	}
	if at != "" {
		var flaw *urlFlaw
		if d.scope, flaw = scopeOf(at); flaw != nil {
			return Result{}, fmt.Errorf("reading %s: its URL %s %s", name, at, flaw.message)
		}
	}
	if err := d.run(); err != nil {
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
	l := &robots{findings: c.findings(name), body: body, known: map[string]bool{}}
	l.run(at)
	l.rest()
	return l.urls, nil
}

// Add reports what the caller found, such as a page that answers 404. What exceeds
// the findings of one code and file is counted, and said by [Checker.Summary].
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
	if added.add(f.Severity, f.Code) {
		c.tell(f)
	}
}

// maxAdded is how many files have findings of callers one by one.
const maxAdded = 50_000

// Summary reports how many findings [Checker.Add] kept back, and says what was
// checked and found in all.
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

func (c *Checker) tell(f Finding) {
	if c.options.Report != nil {
		c.options.Report(f)
	}
}
