// Package check finds what is wrong with sitemaps of any origin. It reads them as
// they stream by: a document of any size takes a few megabytes.
package check

import (
	"io"
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

	// Remember is the memory for finding duplicates, in bytes, 9 for each page. Where
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
}

// New returns a Checker that has seen nothing.
func New(o Options) *Checker { return &Checker{options: o} }

// Document checks one document, plain or gzip, of any kind. name is what findings
// call it. at is its absolute URL, which says what its locs may be; where that is not
// known, it is "", and all locs must have scheme, host and port of the first. The
// error is one of r; what is wrong with the document is reported.
func (c *Checker) Document(name, at string, r io.Reader) (Result, error) {
	return Result{}, nil
}

// Robots checks the Sitemap lines of a robots.txt, and returns the URLs that they
// name, each once. name, at and the error are as in [Checker.Document].
func (c *Checker) Robots(name, at string, r io.Reader) ([]string, error) {
	return nil, nil
}

// Add reports what the caller found, such as a page that answers 404. What exceeds
// the findings of one code and file is counted, and said by [Checker.Summary].
func (c *Checker) Add(f Finding) {}

// Summary reports how many findings [Checker.Add] kept back, and says what was
// checked and found in all.
func (c *Checker) Summary() Summary { return Summary{} }
