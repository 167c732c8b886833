package htmlmeta

import (
	"bytes"
	"cmp"
	"unsafe"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/net/html/atom"
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

// Blocks are counted apart in the parts whose text is, and beside them: what is no content.
const (
	countedMain   = inMainPart
	countedOther  = inOtherPart
	countedBeside = countedOther + 1
	countedParts  = countedBeside + 1
)

// blockCounter counts the blocks of a page: runs of text between the boundaries of elements that are not inline.
type blockCounter struct {
	tallies  [countedParts]tally
	beside   text       // the block that is being read, where it is not part of Meta.Text
	begun    [parts]int // where the block that is being read begins in texts
	before   [parts]int // where the block before it begins
	zones    []zone
	titles   int // <main> and <h1> so far
	headings int // <h1> to <h6> so far
	linked   int // bytes of the block that are in links
	inLink   bool
	inTitle  bool // in an <h1>

	isLeftOut bool // there is text beside the content, which was not counted

	inParagraph zoneID
	masker      masker
	cut         cut
}

// reset prepares for another page; buffers are kept.
func (c *blockCounter) reset() {
	*c = blockCounter{
		cut:    cut{begin: -1},
		beside: text{buf: c.beside.buf[:0]},
		zones:  c.zones[:0],
		masker: masker{tokens: c.masker.tokens[:0], masked: c.masker.masked[:0]},
	}
}

// blockMemory returns the bytes of the buffers.
func (c *blockCounter) blockMemory() int {
	return cap(c.beside.buf) + cap(c.zones)*int(unsafe.Sizeof(zone{}))
}

// zone is a part of a page that an element holds.
type zone struct {
	kind      zoneKind
	part      int  // of those that are counted
	inArticle bool // it is a part of one
	isByID    bool // it is furniture by its id
	from, to  tally

	titlesBefore, headingsBefore int // of the page, when it began
	titles, headings             int // in it, once it is closed
}

func (z zone) tally() tally { return z.to.minus(z.from) }

type zoneKind uint8

const (
	content zoneKind = iota // no zone
	article                 // the outermost; others are a part of it
	notice                  // furniture
	menu                    // furniture, if it is mostly links
)

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
		kind:           kind,
		part:           part,
		inArticle:      p.region&inArticle != 0,
		from:           p.tallies[part],
		titlesBefore:   p.titles,
		headingsBefore: p.headings,
	})
	return zoneID(len(p.zones))
}

// heading takes note of the element that has just begun.
func (p *Parser) heading() {
	switch p.name {
	case atom.H1:
		p.inTitle = true
		p.titles++
		p.headings++
	case atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		p.headings++
	}
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
	return p.furnitureZone()
}

// furnitureZone begins the zone of furniture.
func (p *Parser) furnitureZone() zoneID {
	if p.region&(beside|inTemplate|inSVG) != 0 {
		return 0 // it does not count anyway
	}
	kind, isByID := p.furniture()
	if kind == content {
		return 0
	}
	id := p.openZone(kind)
	if id != 0 {
		p.zones[id-1].isByID = isByID
	}
	return id
}

// paragraph begins or ends the zone of a paragraph or a list item, whose end tags may be omitted: the next element that
// is not inline ends it, but for those that may be in one.
func (p *Parser) paragraph(isStart bool) {
	switch p.name {
	case atom.Br, atom.Img, atom.Image:
		return
	}
	if p.inParagraph != 0 {
		p.closeZone(p.inParagraph)
		p.inParagraph = 0
	}
	if isStart && (p.name == atom.P || p.name == atom.Li) {
		p.inParagraph = p.furnitureZone()
	}
}

func (c *blockCounter) closeZone(id zoneID) {
	if id == 0 {
		return
	}
	z := &c.zones[id-1]
	z.to = c.tallies[z.part]
	z.titles = c.titles - z.titlesBefore
	z.headings = c.headings - z.headingsBefore
}

// writeText adds text of the body, unless nobody sees it.
func (p *Parser) writeText(s []byte) {
	if p.region&(inTemplate|inSVG) != 0 {
		return
	}
	out := p.out()
	if !p.region.hasContent() {
		isCounted := p.countsBeside || p.partBeside() == countedOther
		if !isCounted {
			p.isLeftOut = true
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
		label := out.buf[p.before[part]:p.begun[part]]
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
	hash := xxhash.Sum64(p.masker.mask(block, label))
	t.sum += hash
	t.blocks++
	t.words += words(block)
	t.size += len(block)
	t.linked += p.linked
	p.linked = 0
	if p.cut.isCut && part != countedBeside {
		p.cut.consider(hash, p.cut.size-len(p.rest), &p.tallies)
	}
}

// words returns about how many words there are in a block. Where no spaces divide them, one has four characters of
// three bytes.
func words(block []byte) int {
	return max(bytes.Count(block, []byte(" "))+1, len(block)/12)
}

// blockSum returns [Meta.Blocks]. What counts is <main>, else the article that the page is about, else all that is
// content, without the furniture in it; where there is no content, everything, and where there is nothing, title and
// description.
func (p *Parser) blockSum(body []byte, pg Page) uint64 {
	// Where the body is cut, the last block is not whole, and would be another one whenever a header grew.
	if !p.cut.isCut {
		p.gap()
	}
	p.closeZone(p.inParagraph)
	for _, open := range p.stack {
		p.closeZone(open.zone)
	}
	if p.cut.isCut {
		p.endAtCut()
	}
	counted := p.counted()
	// Only if something was left out: to read any other page again would find nothing, either.
	if counted.size == 0 && p.isLeftOut {
		return p.blockSumBeside(body, pg)
	}
	if counted.size == 0 {
		return max(p.texts[inHead].hash(), 1)
	}
	return cmp.Or(counted.sum, 1)
}

// blockSumBeside returns the sum of a page without content. That is so rare that the page is read again, rather than all
// the menus of others with it.
func (p *Parser) blockSumBeside(body []byte, pg Page) uint64 {
	again := NewParser(Options{})
	again.countsBeside = true
	return again.Parse(body, pg).Blocks
}

func (c *blockCounter) counted() tally {
	main := c.tallies[countedMain]
	if main.size > 0 {
		return c.withoutFurniture(countedMain, main, false)
	}
	if article := c.theArticle(); article.size > 0 {
		return c.withoutFurniture(countedOther, article, true)
	}
	other := c.tallies[countedOther]
	if other.size > 0 {
		return c.withoutFurniture(countedOther, other, false)
	}
	return c.tallies[countedBeside]
}

// theArticle returns the tally of the article that the page is about: the only one, if it has the title. Others may be
// reviews or teasers (https://html.spec.whatwg.org/multipage/sections.html#the-article-element). That several hold most
// of the text is no reason to leave out the rest: a new banner would change that on some pages, and date each of them.
func (c *blockCounter) theArticle() tally {
	var found zone
	for _, z := range c.zones {
		if z.kind != article || z.part != countedOther {
			continue
		}
		// Those that held most of the text were once taken: a banner dated 40 of 115 pages of a blog, each differently.
		isSecond := found.kind == article
		if isSecond {
			return tally{}
		}
		found = z
	}
	if found.titles == 0 {
		return tally{}
	}
	return found.tally()
}
