package document

import (
	"math"

	"github.com/cespare/xxhash/v2"
)

// idBits is the number of bits of a hash that name a shard: 12 hexadecimal digits. They
// are the low ones, because the high ones decide whether a page begins a shard.
const idBits = 48

// maxPiece bounds the pages of a piece, all of which a cutter holds, in multiples of what a document may have. By chance no
// piece grows so long (e^-32); with paths chosen to hash high, one could.
const maxPiece = 16

// ShardID returns the name of a shard that begins at path: the low 48 bits of the path's xxhash64.
func ShardID(path string) uint64 { return xxhash.Sum64String(path) & (1<<idBits - 1) }

// cutter cuts the sorted pages of a site, or of a section of it, into shards that stay put, as they come: adding or removing a page
// changes the shard it is in, and no other.
//
// With a cut every 50,000 pages, one page would move all later shards, and crawlers would fetch them all again. Here a
// shard begins at a page whose own hash says so, as in content-defined chunking: where the cuts are depends only on the
// pages near them, and on nothing that would have to be stored.
//
// It holds the pages of one shard or, if that has to be cut again, of the piece; and the first ones until it is known that
// not all fit into one shard.
type cutter struct {
	most    int // pages of a shard
	room    int // bytes of its entries
	emit    func(shard)
	begin   uint64 // a page whose hash is not above begins a shard: one in most/2
	held    []held
	entries []byte // of the pages that are held
	seen    int    // pages held of which none but the first begins a shard
	ids     map[uint64]bool
	isSplit bool // not all fit into one shard
}

// shard is a run of pages that goes into one document. Its slices are valid until emit returns.
type shard struct {
	// id names the shard: the [ShardID] of its first page, and 0 for the first shard. It is unique among those of a cutter.
	id      uint64
	pages   []held // one at least
	entries []byte
	isOnly  bool // it is the only shard: an index is not needed
}

// held is a page of which the cutter does not know yet which shard it is in.
type held struct {
	path       string
	lastMod    int64
	lastModDay bool
	isExtended bool // its entry has extensions

	hash uint64
	end  int // of its entry
}

// newCutter returns a cutter of at most so many pages, and bytes of entries, a shard. It calls emit for each shard in order, as
// soon as it is complete.
func newCutter(most, room int, emit func(shard)) *cutter {
	return &cutter{
		most:  most,
		room:  room,
		emit:  emit,
		begin: math.MaxUint64 / uint64(max(most/2, 1)),
		ids:   make(map[uint64]bool),
	}
}

// add adds a page, which comes after all others, with its entry, which is not longer than what a shard has room for.
func (c *cutter) add(p held, entry []byte) {
	p.hash = xxhash.Sum64String(p.path)
	c.entries = append(c.entries, entry...)
	p.end = len(c.entries)
	c.held = append(c.held, p)
	// Until then, what is held is not cut.
	c.isSplit = c.isSplit || !c.fits(0, len(c.held))
	if !c.isSplit {
		return
	}
	for ; c.seen < len(c.held); c.seen++ {
		if c.seen > 0 && c.held[c.seen].hash <= c.begin {
			c.finish(c.seen)
		}
	}
	if len(c.held) > maxPiece*c.most || len(c.entries) > maxPiece*c.room {
		// None of them begins a shard, as where paths were chosen to hash high.
		c.finish(c.lowest(0, len(c.held)))
	}
}

// end makes shards of what is held, once all pages were added, and holds nothing thereafter. There is a page at least.
func (c *cutter) end() {
	if c.isSplit {
		c.finish(len(c.held))
	} else {
		c.emit(shard{pages: c.held, entries: c.entries, isOnly: true})
	}
	c.held = nil
	c.entries = nil
}

// finish makes shards of the first n pages held, cut until each part fits, and drops them.
func (c *cutter) finish(n int) {
	c.cut(0, n)
	end := c.held[n-1].end
	c.entries = c.entries[:copy(c.entries, c.entries[end:])]
	c.held = c.held[:copy(c.held, c.held[n:])]
	for i := range c.held {
		c.held[i].end -= end
	}
	c.seen = 0
}

// between are the entries of the pages held in [from, to).
func (c *cutter) between(from, to int) []byte {
	begin := 0
	if from > 0 {
		begin = c.held[from-1].end
	}
	return c.entries[begin:c.held[to-1].end]
}

// fits reports whether the pages held in [from, to) make one shard.
func (c *cutter) fits(from, to int) bool {
	return to-from <= c.most && len(c.between(from, to)) <= c.room
}

// cut makes shards of the pages held in [from, to), as many as it takes.
func (c *cutter) cut(from, to int) {
	if c.fits(from, to) {
		c.emit(shard{id: c.newID(c.held[from].path), pages: c.held[from:to], entries: c.between(from, to)})
		return
	}
	at := c.lowest(from, to)
	c.cut(from, at)
	c.cut(at, to)
}

// lowest is the page of the middle three quarters of [from, to) with the lowest hash: the page that another piece
// around it would most likely be cut at, too. There are two pages at least, and it is not the first.
func (c *cutter) lowest(from, to int) int {
	eighth := (to - from) / 8
	at := from + max(eighth, 1)
	for i := at + 1; i < to-eighth; i++ {
		if c.held[i].hash < c.held[at].hash {
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
	for c.ids[id] {
		path += "\x00"
		id = ShardID(path)
	}
	c.ids[id] = true
	return id
}
