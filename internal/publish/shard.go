package publish

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// defaultMaxPages is the protocol's limit for one document (https://www.sitemaps.org/protocol.html#index).
const defaultMaxPages = 50_000

// idBits is the number of bits of a hash that name a shard: 12 hexadecimal digits. They
// are the low ones, because the high ones decide whether a page begins a shard.
const idBits = 48

// maxPiece bounds the pages of a piece, all of which a cutter holds, in multiples of MaxPages. By chance no
// piece grows so long (e^-32); with paths chosen to hash high, one could.
const maxPiece = 16

// errOrder is the error of [cutter.add] for pages that are not sorted.
var errOrder = errors.New("pages are out of order")

// cutterOptions bounds a shard. A page alone is always one.
type cutterOptions struct {
	MaxPages int                          // 0: defaultMaxPages
	Fits     func(pages []page.Page) bool // reports whether a document has room for pages; nil: it has
}

// shard is a run of pages that goes into one document.
type shard struct {
	// ID names the shard: the [ShardID] of its first page, and 0 for the first shard. It is unique among those of a cutter.
	ID uint64

	// Pages are the shard's pages in order, one at least. They belong to the receiver.
	Pages []page.Page

	// Only says that it is the only shard: an index is not needed.
	Only bool
}

// ShardID returns the name of a shard that begins at path: the low 48 bits of the path's xxhash64.
func ShardID(path string) uint64 { return xxhash.Sum64String(path) & (1<<idBits - 1) }

// cutter cuts a site's sorted pages into shards that stay put, as they come: adding or removing a page changes the shard
// it is in, and no other.
//
// With a cut every 50,000 pages, one page would move all later shards, and crawlers would fetch them all again. Here a
// shard begins at a page whose own hash says so, as in content-defined chunking: where the cuts are depends only on the
// pages near them, and on nothing that would have to be stored.
//
// It holds the pages of one shard or, if that has to be cut again, of the
// piece; and the first MaxPages until it is known that not all fit into one shard.
type cutter struct {
	o      cutterOptions
	emit   func(shard) error
	last   string              // path of the last page
	begin  uint64              // a page whose hash is not above begins a shard: one in MaxPages/2
	pages  []page.Page         // held, with
	hashes []uint64            // the hash of each
	ids    map[uint64]struct{} // in use
	split  bool                // not all fit into one shard
}

// newCutter returns a cutter that calls emit for each shard in order, as soon as it is complete.
func newCutter(o cutterOptions, emit func(shard) error) *cutter {
	o.MaxPages = cmp.Or(o.MaxPages, defaultMaxPages)
	return &cutter{
		o:     o,
		emit:  emit,
		begin: math.MaxUint64 / uint64(max(o.MaxPages/2, 1)),
		ids:   make(map[uint64]struct{}),
	}
}

// add adds a page, which comes after all others in the order of [page.Compare]. The error is errOrder, or emit's.
func (c *cutter) add(p page.Page) error {
	if p.Path <= c.last {
		return fmt.Errorf("'%s' after '%s': %w", p.Path, c.last, errOrder)
	}
	c.last = p.Path
	hash := xxhash.Sum64String(p.Path)
	if c.split && hash <= c.begin && len(c.pages) > 0 {
		if err := c.finish(len(c.pages)); err != nil {
			return err
		}
	}
	c.pages = append(c.pages, p)
	c.hashes = append(c.hashes, hash)
	if !c.split && len(c.pages) > c.o.MaxPages {
		return c.startSplit()
	}
	if len(c.pages) > maxPiece*c.o.MaxPages {
		// None of them begins a shard, as where paths were chosen to hash high.
		return c.finish(c.lowest(0, len(c.pages)))
	}
	return nil
}

// end emits what is held, once all pages were added, and holds nothing thereafter. The error is emit's.
func (c *cutter) end() error {
	n := len(c.pages)
	if n == 0 {
		return nil
	}
	if !c.split && c.fits(0, n) {
		only := shard{Pages: c.pages, Only: true}
		c.pages = nil
		c.hashes = nil
		return c.emit(only)
	}
	// Perhaps no more than MaxPages came, but a document has no room for them: then nothing was cut yet.
	if err := c.startSplit(); err != nil {
		return err
	}
	err := c.finish(len(c.pages))
	c.pages = nil
	c.hashes = nil
	return err
}

// startSplit emits the complete pieces of what was held back until it was known that the site needs several shards.
func (c *cutter) startSplit() error {
	c.split = true
	for i := 1; i < len(c.pages); i++ {
		if c.hashes[i] > c.begin {
			continue
		}
		if err := c.finish(i); err != nil {
			return err
		}
		i = 0 // finish has dropped the piece: the page at i is the first now
	}
	return nil
}

// finish emits the first n pages held, cut until each part fits, and drops them.
func (c *cutter) finish(n int) error {
	err := c.cut(0, n)
	c.pages = c.pages[:copy(c.pages, c.pages[n:])]
	c.hashes = c.hashes[:copy(c.hashes, c.hashes[n:])]
	return err
}

// fits reports whether the pages held in [from, to) make one shard.
func (c *cutter) fits(from, to int) bool {
	n := to - from
	if n == 1 {
		return true // it cannot be cut, whatever Fits says
	}
	if n > c.o.MaxPages {
		return false
	}
	return c.o.Fits == nil || c.o.Fits(c.pages[from:to])
}

// cut emits the pages held in [from, to), in as many shards as it takes.
func (c *cutter) cut(from, to int) error {
	if c.fits(from, to) {
		id := c.newID(c.pages[from].Path)
		// A copy: finish moves the rest of the pages to the beginning of c.pages.
		return c.emit(shard{ID: id, Pages: slices.Clone(c.pages[from:to])})
	}
	at := c.lowest(from, to)
	if err := c.cut(from, at); err != nil {
		return err
	}
	return c.cut(at, to)
}

// lowest is the page of the middle three quarters of [from, to) with the lowest hash: the page that another piece
// around it would most likely be cut at, too. There are two pages at least, and it is not the first.
func (c *cutter) lowest(from, to int) int {
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
func (c *cutter) newID(path string) (id uint64) {
	if len(c.ids) > 0 { // else it is the first shard, which is 0
		id = ShardID(path)
	}
	for _, taken := c.ids[id]; taken; _, taken = c.ids[id] {
		path += "\x00"
		id = ShardID(path)
	}
	c.ids[id] = struct{}{}
	return id
}
