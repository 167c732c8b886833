package html

import (
	"cmp"

	"github.com/cespare/xxhash/v2"
)

// tally is the sum of the hashes of blocks, which wraps around, and the bytes of their text.
type tally struct {
	sum  uint64
	size int
}

func (t tally) plus(o tally) tally { return tally{t.sum + o.sum, t.size + o.size} }

// Kinds of words. Behind the words of a part of the page are those in its links.
const (
	mainWords = iota
	mainLinks
	restWords
	restLinks
	titleWords // in an <h1> outside <main>
	kinds
)

// blockCounter counts the blocks of a page: runs of text between the boundaries of elements that are not inline.
//
// The text that dates a page is the sum of the hashes of its blocks. It does not depend on their order, and the difference
// of two sums is that of the blocks that came and went. These rules say which blocks count:
//
//  1. Those of <main>, else those of all but menus, headers, footers and asides. The <h1> counts wherever it is.
//  2. Words in links to pages of the site do not count, nor do only dates, numbers and signs beside them: a list of related
//     posts changes whenever one is published.
//  3. An element that begins with a linked heading, and has no other one, is a teaser. All of it counts as words in links.
//  4. Where words in links are more than four times the others, they count: the page is a list.
//  5. In stamps and counters, digits, months and weekdays count as one sign: see masker.
type blockCounter struct {
	tallies [kinds]tally
	block   text // which is being read
	words   text // those of the block that are not in links to pages of the site
	linked  text // and those that are
	label   []byte
	masker  masker

	headings []int // where each <h1> to <h6> ends, in bytes of words of its kind
	teasers  int   // how many of these are links to other pages
	inTitle  bool  // in an <h1>

	inLink   bool // to a page of the site
	leaves   bool // which is another page
	hasOther bool // the block has a link to another page

	isCut bool // the page is longer than [MaxBody]
	limit int  // where its text ends then; 0: it has not begun
}

// writeText adds text of the body, unless it is not shown or stands beside the content. Of a page that is cut, half of
// [MaxBody] counts from the first word on: else a longer header would push text out, and change it.
func (r *reader) writeText(s []byte) {
	isShown := r.region&(inTemplate|inSVG|inNoscript) == 0
	isTitle := r.inTitle && !r.inLink // which counts wherever it is
	if !isShown || !isTitle && !r.region.hasContent() {
		return
	}
	if r.isCut {
		r.limit = cmp.Or(r.limit, r.start+MaxBody/2)
		s = s[:min(len(s), max(r.limit-r.start, 0))]
	}
	begin := len(r.block.buf)
	r.block.write(s)
	cleaned := r.block.buf[begin:]
	if r.inLink {
		r.hasOther = r.hasOther || r.leaves
		r.words.space = true
		r.linked.add(cleaned)
		return
	}
	r.words.add(cleaned)
}

// gap ends a block: an element that is not inline begins or ends here; isHeading says that it is a heading which ends.
func (r *reader) gap(isHeading bool) {
	if r.region&inNoscript != 0 || len(r.block.buf) == 0 {
		return
	}
	if r.region.hasContent() {
		r.texts[r.part()].write(r.block.buf)
	}
	if len(r.linked.buf) > 0 && r.masker.isDate(r.words.buf) { // which counts as the link beside it
		r.linked.space = true
		r.linked.add(r.words.buf)
		r.words.reset()
	}
	words := r.words.buf
	linked := r.linked.buf
	if isHeading {
		words = withoutNumber(words)
		linked = withoutNumber(linked)
		r.countHeading(len(words) == 0)
	}
	r.count(linked, r.kind(true))
	r.count(words, r.kind(false))
	r.block.reset()
	r.words.reset()
	r.linked.reset()
	r.hasOther = false
}

// kind is that of the words that are being read.
func (r *reader) kind(isLinked bool) int {
	kind := restWords
	if r.region.hasContent() && r.region&inMain != 0 {
		kind = mainWords
	} else if r.inTitle && !isLinked {
		return titleWords
	}
	if isLinked {
		kind++
	}
	return kind
}

// count counts words of a block.
func (r *reader) count(block []byte, kind int) {
	if len(block) == 0 {
		return
	}
	hash := xxhash.Sum64(r.masker.mask(block, r.label))
	r.tallies[kind] = r.tallies[kind].plus(tally{hash, len(block)})
	r.label = append(r.label[:0], block[:min(len(block), longestStamp)]...)
}

// countHeading takes note of a heading that ends; isLink says that all of it is in links. One to the page itself is that of
// a teaser only where another heading came first: many an article's title links to it.
func (r *reader) countHeading(isLink bool) {
	if isLink && (r.hasOther || len(r.headings) > r.teasers) {
		r.teasers++
	}
	r.headings = append(r.headings, r.tallies[r.kind(false)].size)
}

// openElement opens the element that has begun.
func (r *reader) openElement() {
	e := r.open(r.name, r.attribute("role"))
	if e == nil {
		return
	}
	e.kind = r.kind(false)
	e.words = r.tallies[e.kind]
	e.headings = len(r.headings)
	e.teasers = r.teasers
}

// endElement counts all words of an element as words in links if it is a teaser.
func (r *reader) endElement(e *element) {
	const mostBefore = 64 // bytes, such as a date or a category
	headings := r.headings[e.headings:]
	isTeaser := len(headings) > 0 && len(headings) == r.teasers-e.teasers && headings[0]-e.words.size <= mostBefore
	if !isTeaser || e.kind == titleWords {
		return
	}
	words := r.tallies[e.kind]
	r.tallies[e.kind] = e.words
	links := &r.tallies[e.kind+1]
	links.sum += words.sum - e.words.sum
	links.size += words.size - e.words.size
}

// counted is what counts of the page.
func (r *reader) counted() tally {
	title := r.tallies[titleWords]
	for _, kind := range []int{mainWords, restWords} {
		words := r.tallies[kind]
		links := r.tallies[kind+1]
		isList := links.size > 4*words.size
		if isList {
			return title.plus(words).plus(links)
		}
		if words.size > 0 {
			return title.plus(words)
		}
	}
	return title
}

// blockSum returns [Meta.Blocks].
func (r *reader) blockSum() uint64 {
	return max(cmp.Or(r.counted().sum, r.texts[inHead].sum()), 1)
}
