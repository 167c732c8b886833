// Package shard cuts a site's sorted pages into shards that stay put: a page that
// comes or goes changes the shard it lies in, and no other.
//
// A cut every 50,000 pages would move all later shards by one page, and crawlers
// would fetch them all again. Here a shard begins at a page whose own hash says so,
// as in content-defined chunking, so where the cuts lie depends on the pages near
// them alone, and on nothing that would have to be stored.
package shard

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// The protocol's bounds of one document
// (https://www.sitemaps.org/protocol.html#index).
const (
	DefaultMaxPages = 50_000
	DefaultMaxBytes = 52_428_800
)

// idBits is how many bits of a hash name a shard: 12 hexadecimal digits. They are
// the low ones, because the high ones are what makes a page begin a shard.
const idBits = 48

// maxHeld bounds what a Cutter holds, in multiples of MaxPages. By chance no piece
// ever grows so long (e^-32); paths that were made to hash high could.
const maxHeld = 16

// Errors of [Cutter.Add].
var (
	ErrOrder  = errors.New("pages are out of order")
	ErrClosed = errors.New("the cutter is closed")
)

// Options bounds a shard.
type Options struct {
	// MaxPages is the most pages in a shard. 0: DefaultMaxPages.
	MaxPages int

	// MaxBytes is the most bytes of a document, uncompressed. 0: DefaultMaxBytes.
	MaxBytes int64

	// Overhead is the bytes of a document without its pages.
	Overhead int64

	// Size is the bytes of a page's entry in a document. nil: bytes are not bounded.
	Size func(page.Page) int

	// Bound is at least the sum of Size over any pages whose paths have pathBytes
	// bytes together. Where it says that a piece fits, Size is not called, which for
	// ordinary pages is nearly always. nil: Size is called for every page.
	Bound func(pages int, pathBytes int64) int64
}

// Shard is a run of pages that goes into one document.
type Shard struct {
	// ID names the shard: the [ID] of its first page, and 0 for the first shard.
	// No two shards of a site have the same.
	ID uint64

	// Pages are the shard's pages in order, one at least. They belong to the
	// receiver.
	Pages []page.Page

	// Only says that there is no other shard: the site needs no index.
	Only bool
}

// ID is what a shard that begins at path is named by: the low 48 bits of the
// path's xxhash64.
func ID(path string) uint64 { return xxhash.Sum64String(path) & (1<<idBits - 1) }

// Cutter cuts pages into shards as they come. It holds one shard's pages or, where
// a shard had to be cut again, those of the piece; and until it is known that not
// all fit into one shard, the first MaxPages. It is not safe for concurrent use.
type Cutter struct {
	o    Options
	emit func(Shard) error

	// A page whose hash is not above begin begins a shard: one in MaxPages/2.
	begin uint64

	pages  []page.Page         // held, with
	hashes []uint64            // the hash of each
	sums   []int64             // bytes before each page of the piece being cut; empty: it fits by far
	ids    map[uint64]struct{} // in use
	last   string              // path of the last page added, whether still held or not
	any    bool                // a page was added
	split  bool                // not all fit into one shard
	err    error
}

// NewCutter returns a Cutter that hands each shard to emit as soon as it is
// complete, in the order of the pages. An error of emit ends the cutting.
func NewCutter(o Options, emit func(Shard) error) *Cutter {
	if o.MaxPages <= 0 {
		o.MaxPages = DefaultMaxPages
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	return &Cutter{
		o:     o,
		emit:  emit,
		begin: math.MaxUint64 / uint64(max(o.MaxPages/2, 1)),
		ids:   make(map[uint64]struct{}),
	}
}

// Add takes the next page. Pages come in the order of [page.Compare] without
// duplicates, else the error is ErrOrder. Any other error is that of an emit;
// after an error, Add and Close return it again.
func (c *Cutter) Add(p page.Page) error {
	if c.err != nil {
		return c.err
	}
	if c.any && p.Path <= c.last {
		c.err = fmt.Errorf("'%s' after '%s': %w", p.Path, c.last, ErrOrder)
		return c.err
	}
	c.last, c.any = p.Path, true

	h := xxhash.Sum64String(p.Path)
	if c.split && h <= c.begin && len(c.pages) > 0 {
		c.finish(len(c.pages))
	}
	c.pages = append(c.pages, p)
	c.hashes = append(c.hashes, h)
	switch {
	case !c.split && len(c.pages) > c.o.MaxPages:
		c.startSplit()
	case len(c.pages) > maxHeld*c.o.MaxPages:
		c.finish(c.lowest(0, len(c.pages)))
	}
	return c.err
}

// Close emits what is left. Without a page nothing is emitted. The Cutter cannot
// be used afterwards.
func (c *Cutter) Close() error {
	if c.err != nil {
		return c.err
	}
	if n := len(c.pages); n > 0 && !c.split {
		c.measure(n)
		if c.fits(0, n) {
			c.hand(Shard{Pages: slices.Clone(c.pages), Only: true})
		} else {
			c.startSplit()
		}
	}
	if c.split && len(c.pages) > 0 {
		c.finish(len(c.pages))
	}
	err := c.err
	c.pages, c.hashes, c.sums, c.ids, c.last = nil, nil, nil, nil, ""
	if err == nil {
		c.err = ErrClosed
	}
	return err
}

// startSplit emits the complete pieces of what was held back until it was known
// that the site needs several shards.
func (c *Cutter) startSplit() {
	c.split = true
	for i := 1; i < len(c.pages); {
		if c.hashes[i] > c.begin {
			i++
			continue
		}
		c.finish(i)
		i = 1
	}
}

// finish emits the first n pages held, cut until each part fits, and drops them.
func (c *Cutter) finish(n int) {
	c.measure(n)
	c.cut(0, n)
	c.pages = c.pages[:copy(c.pages, c.pages[n:])]
	c.hashes = c.hashes[:copy(c.hashes, c.hashes[n:])]
}

// measure prepares sums for the first n pages held.
func (c *Cutter) measure(n int) {
	c.sums = c.sums[:0]
	if c.o.Size == nil {
		return
	}
	if c.o.Bound != nil {
		var pathBytes int64
		for i := range c.pages[:n] {
			pathBytes += int64(len(c.pages[i].Path))
		}
		if c.o.Overhead+c.o.Bound(n, pathBytes) <= c.o.MaxBytes {
			return
		}
	}
	var sum int64
	c.sums = append(c.sums, 0)
	for i := range c.pages[:n] {
		sum += int64(c.o.Size(c.pages[i]))
		c.sums = append(c.sums, sum)
	}
}

// fits reports whether the pages held in [from, to) make one shard. A page alone
// always does: there is nothing left to cut.
func (c *Cutter) fits(from, to int) bool {
	switch n := to - from; {
	case n == 1:
		return true
	case n > c.o.MaxPages:
		return false
	}
	return len(c.sums) == 0 || c.o.Overhead+c.sums[to]-c.sums[from] <= c.o.MaxBytes
}

// cut emits the pages held in [from, to), in as many shards as it takes.
func (c *Cutter) cut(from, to int) {
	if c.err != nil {
		return
	}
	if !c.fits(from, to) {
		at := c.lowest(from, to)
		c.cut(from, at)
		c.cut(at, to)
		return
	}
	c.hand(Shard{ID: c.newID(c.pages[from].Path), Pages: slices.Clone(c.pages[from:to])})
}

// lowest is the page of the middle three quarters of [from, to) with the lowest
// hash: the page that another piece around it would most likely be cut at, too.
// There are two pages at least, and it is not the first.
func (c *Cutter) lowest(from, to int) int {
	eighth := (to - from) / 8
	at := from + max(eighth, 1)
	for i := at + 1; i < to-eighth; i++ {
		if c.hashes[i] < c.hashes[at] {
			at = i
		}
	}
	return at
}

// newID is the ID of the shard that begins at path. Where another shard has it
// already, the path is hashed again with one more NUL behind it, which no path has:
// the earlier shard keeps its name, and the later one's follows from its own path.
func (c *Cutter) newID(path string) uint64 {
	var id uint64
	if len(c.ids) > 0 {
		id = ID(path)
		for salted := path; c.taken(id); id = ID(salted) {
			salted += "\x00"
		}
	}
	c.ids[id] = struct{}{}
	return id
}

func (c *Cutter) taken(id uint64) bool {
	_, ok := c.ids[id]
	return ok
}

func (c *Cutter) hand(s Shard) { c.err = c.emit(s) }
