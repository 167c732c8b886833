package htmlmeta

import (
	"bytes"
	"cmp"

	"github.com/cespare/xxhash/v2"
)

// tally counts blocks. It only grows while a page is read, so the blocks between two points of the page are the
// difference of two tallies, and nothing has to be kept of each block.
type tally struct {
	sum    uint64 // of the hashes of the blocks; it wraps around
	blocks int
	words  int
	size   int // bytes of text
	linked int // bytes of text in links
}

func (t tally) minus(before tally) tally {
	return tally{
		sum:    t.sum - before.sum,
		blocks: t.blocks - before.blocks,
		words:  t.words - before.words,
		size:   t.size - before.size,
		linked: t.linked - before.linked,
	}
}

func (t tally) plus(other tally) tally {
	return tally{
		sum:    t.sum + other.sum,
		blocks: t.blocks + other.blocks,
		words:  t.words + other.words,
		size:   t.size + other.size,
		linked: t.linked + other.linked,
	}
}

// counted are the parts of a page whose blocks are counted apart: as for [Meta.Text], and besides what is no content.
const (
	countedMain = iota
	countedOther
	countedBeside
	countedParts
)

// blockCounter counts the blocks of a page: runs of text between the boundaries of elements that are not inline.
type blockCounter struct {
	tallies [countedParts]tally
	beside  text       // the block that is being read, where it is not part of Meta.Text
	begun   [parts]int // where the block that is being read begins in texts
	before  [parts]int // where the block before it begins
	zones   []zone
	titles  int // <main> and <h1> so far
	linked  int // bytes of the block that are in links
	inLink  bool
	inTitle bool // in an <h1>
	masker  masker
}

// reset prepares for another page; buffers are kept.
func (c *blockCounter) reset() {
	*c = blockCounter{
		beside: text{buf: c.beside.buf[:0]},
		zones:  c.zones[:0],
		masker: masker{tokens: c.masker.tokens[:0], masked: c.masker.masked[:0]},
	}
}

// zone is a part of a page that an element holds.
type zone struct {
	kind     zoneKind
	part     int // of those that are counted
	from, to tally
	titles   int // before it, and then in it
}

type zoneKind uint8

const article zoneKind = iota // the outermost; others are a part of it

// maxZones limits the zones of a page; what follows is not told apart.
const maxZones = 1 << 12

// zoneID is the index of a zone plus one; 0: none.
type zoneID int32

// openZone begins a zone.
func (p *Parser) openZone(kind zoneKind) zoneID {
	if len(p.zones) == maxZones {
		return 0
	}
	part := p.part()
	p.zones = append(p.zones, zone{
		kind:   kind,
		part:   part,
		from:   p.tallies[part],
		titles: p.titles,
	})
	return zoneID(len(p.zones))
}

// zoneOf begins the zone of the element that has just begun, if it is one.
func (p *Parser) zoneOf(e *element) zoneID {
	if p.region&inMain != 0 && e.outer&inMain == 0 {
		p.titles++
		return 0
	}
	isOutermostArticle := e.outer&inArticle == 0 && p.region&inArticle != 0
	if isOutermostArticle {
		return p.openZone(article)
	}
	return 0
}

func (c *blockCounter) closeZone(id zoneID) {
	if id == 0 {
		return
	}
	z := &c.zones[id-1]
	z.to = c.tallies[z.part]
	z.titles = c.titles - z.titles
}

// writeText adds text of the body, unless nobody sees it.
func (p *Parser) writeText(s []byte) {
	out := p.out()
	if !p.region.hasContent() {
		if p.region&(inTemplate|inSVG) != 0 {
			return
		}
		out = &p.beside
	}
	size := len(out.buf)
	out.write(s)
	if p.inLink {
		p.linked += len(out.buf) - size
	}
}

// gap ends a block: the element that begins or ends here is not inline.
func (p *Parser) gap() {
	part := p.part()
	out := &p.texts[part]
	out.gap()
	if len(out.buf) > p.begun[part] {
		block := bytes.TrimPrefix(out.buf[p.begun[part]:], []byte(" "))
		label := bytes.TrimPrefix(out.buf[p.before[part]:p.begun[part]], []byte(" "))
		p.countBlock(part, block, label)
		p.before[part] = p.begun[part]
		p.begun[part] = len(out.buf)
	}
	if len(p.beside.buf) > 0 {
		p.countBlock(p.partBeside(), p.beside.buf, nil)
		p.beside = text{buf: p.beside.buf[:0]}
	}
}

// partBeside returns the part to which a block belongs that is not in Meta.Text. An article's own header and asides
// are content, as those in <main> are, and so is the title of a page.
func (p *Parser) partBeside() int {
	if p.region&beside == 0 && (p.region&inArticle != 0 || p.inTitle) {
		return countedOther
	}
	return countedBeside
}

// countBlock counts a block; label is the one before it.
func (p *Parser) countBlock(part int, block, label []byte) {
	t := &p.tallies[part]
	t.sum += xxhash.Sum64(p.masker.mask(block, label))
	t.blocks++
	t.words += words(block)
	t.size += len(block)
	t.linked += p.linked
	p.linked = 0
}

// words returns about how many words there are in a block. Where no spaces divide them, one has four characters of
// three bytes.
func words(block []byte) int {
	return max(bytes.Count(block, []byte(" "))+1, len(block)/12)
}

// blockSum returns [Meta.Blocks]. What counts is <main>, else the articles if they are what the page is about, else
// all that is content; where there is none, everything, and where there is nothing, title and description.
func (p *Parser) blockSum() uint64 {
	p.gap()
	for _, open := range p.stack {
		p.closeZone(open.zone)
	}
	counted := p.tallies[countedBeside]
	switch articles := p.articles(); {
	case p.tallies[countedMain].size > 0:
		counted = p.tallies[countedMain]
	case articles.size > 0:
		counted = articles
	case p.tallies[countedOther].size > 0:
		counted = p.tallies[countedOther]
	}
	if counted.size == 0 {
		return max(p.texts[inHead].hash(), 1)
	}
	return cmp.Or(counted.sum, 1)
}

// articles returns the tally of the articles, if they hold most of the text, or there is one, and it has the title.
// An article can be less than the page's: a review, or a teaser
// (https://html.spec.whatwg.org/multipage/sections.html#the-article-element).
func (p *Parser) articles() tally {
	var all tally
	n, titles := 0, 0
	for _, z := range p.zones {
		if z.kind == article && z.part == countedOther {
			all = all.plus(z.to.minus(z.from))
			titles += z.titles
			n++
		}
	}
	isPage := n == 1 && titles > 0
	if !isPage && 2*all.size < p.tallies[countedOther].size {
		return tally{}
	}
	return all
}
