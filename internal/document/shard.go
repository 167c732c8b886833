package document

import (
	"math"
	"slices"

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
	size int // of its entry
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
	p.size = len(entry)
	c.held = append(c.held, p)
	c.entries = append(c.entries, entry...)
	// Until then, what is held is not cut.
	c.isSplit = c.isSplit || !c.fits(c.held, c.entries)
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
		c.finish(lowest(c.held))
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

// finish makes shards of the first n pages held, and drops them.
func (c *cutter) finish(n int) {
	size := sizeOf(c.held[:n])
	c.cut(c.held[:n], c.entries[:size])
	c.held = slices.Delete(c.held, 0, n)
	c.entries = slices.Delete(c.entries, 0, size)
	c.seen = 0
}

// sizeOf is the size of the entries of pages.
func sizeOf(pages []held) (size int) {
	for _, p := range pages {
		size += p.size
	}
	return size
}

// fits reports whether pages with these entries make one shard.
func (c *cutter) fits(pages []held, entries []byte) bool {
	return len(pages) <= c.most && len(entries) <= c.room
}

// cut makes shards of pages with these entries, as many as it takes.
func (c *cutter) cut(pages []held, entries []byte) {
	if c.fits(pages, entries) {
		c.emit(shard{id: c.newID(pages[0].path), pages: pages, entries: entries})
		return
	}
	at := lowest(pages)
	size := sizeOf(pages[:at])
	c.cut(pages[:at], entries[:size])
	c.cut(pages[at:], entries[size:])
}

// lowest is the page of the middle three quarters with the lowest hash: the page that another piece around it would most likely be
// cut at, too. There are two pages at least, and it is not the first.
func lowest(pages []held) int {
	eighth := len(pages) / 8
	at := max(eighth, 1)
	for i := at + 1; i < len(pages)-eighth; i++ {
		if pages[i].hash < pages[at].hash {
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
