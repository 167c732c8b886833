package htmlmeta

import (
	"bytes"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// cut ends the blocks of a page that is longer than [MaxBody], at the end of a block that the text itself chooses. Where
// the body is cut, a longer header would push text out: every sum would change. So of the blocks that end behind the
// middle, the one with the lowest hash is the last that counts. It stays the same one while the text moves by n bytes,
// save for about n / (MaxBody / 2) of all pages: those in which it is pushed out itself.
//
// It is known as minwise sampling (https://en.wikipedia.org/wiki/MinHash). Chunks that end at every block whose hash is
// below a threshold would change as seldom only if twice as much text was left out.
type cut struct {
	isCut   bool
	size    int // of the body
	begin   int // where the first block of content ends in the body; -1: there was none
	hash    uint64
	isFound bool
	tallies [countedParts]tally // up to the end of that block
}

// consider takes note of a block of content that ends at a position in the body.
func (c *cut) consider(hash uint64, position int, tallies *[countedParts]tally) {
	if c.begin < 0 {
		c.begin = position // so that what comes before the text moves the middle with it
	}
	isBehindMiddle := position >= c.begin+MaxBody/2
	if !isBehindMiddle || c.isFound && hash >= c.hash {
		return
	}
	c.isFound = true
	c.hash = hash
	c.tallies = *tallies
}

// endAtCut ends the page at its last block: the one that was chosen, else the last whole one.
func (p *Parser) endAtCut() {
	if p.cut.isFound {
		p.tallies = p.cut.tallies
	} else {
		p.countBeginning()
	}
	for i := range p.zones {
		z := &p.zones[i]
		end := p.tallies[z.part]
		isBehind := z.from.blocks > end.blocks
		if isBehind {
			z.from = end
		}
		if z.to.blocks > end.blocks {
			z.to = end
		}
	}
}

// countBeginning counts the beginning of the block that is cut, which may be all of a page: half of it or more, to the
// next power of two, which hardly moves while the block becomes a little longer or shorter.
func (p *Parser) countBeginning() {
	part := p.part()
	block := bytes.TrimPrefix(p.texts[part].buf[p.begun[part]:], []byte(" "))
	if len(block) < 2 {
		return
	}
	size := 1 << (bits.Len(uint(len(block))) - 2)
	block = block[:size]
	t := &p.tallies[part]
	t.sum += xxhash.Sum64(block)
	t.blocks++
	t.words += words(block)
	t.size += len(block)
}
