package html

import (
	"bytes"
	"cmp"

	"github.com/cespare/xxhash/v2"
)

// tally is the sum of the hashes of blocks, which wraps around, and the bytes of their text.
type tally struct {
	sum  uint64
	size int
}

// part is what is read in a part of a page.
type part struct {
	text         text // that a reader sees
	images       []string
	words, links tally // of blocks: the words that are not in links to pages of the site, and those that are
}

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
	main, rest part
	head       part // with the words of an <h1> outside <main>, which count wherever it is

	words  []byte // those of the block that are not in links to pages of the site
	linked []byte // and those that are
	label  []byte
	masker masker

	headings []int // where each <h1> to <h6> ends, in bytes of the words of its part
	teasers  int   // how many of these are links to other pages
	inTitle  bool  // in an <h1>

	inLink   bool // to a page of the site
	leaves   bool // which is another page
	hasOther bool // the block has a link to another page

	limit int // where the text ends; 0: it has not begun, and the page is longer than [MaxBody]
}

// writeText adds text of the body, unless it is not shown or stands beside the content. Of a page that is cut, half of
// [MaxBody] counts from the first word on: else a longer header would push text out, and change it.
func (r *reader) writeText(s []byte) {
	isShown := r.region&(inTemplate|inSVG|inNoscript) == 0
	isTitle := r.inTitle && !r.inLink // which counts wherever it is
	isContent := r.region.hasContent()
	if !isShown || !isTitle && !isContent {
		return
	}
	start := r.end - len(r.Raw())
	r.limit = cmp.Or(r.limit, start+MaxBody/2)
	s = s[:min(len(s), max(r.limit-start, 0))]
	text := &r.part().text
	if !isContent {
		text = &r.head.text
	}
	begin := len(text.buf)
	text.write(s)
	cleaned := text.buf[begin:]
	if r.inLink {
		r.hasOther = r.hasOther || r.leaves
		r.linked = append(r.linked, cleaned...)
		cleaned = []byte(" ") // what is on both sides of a link are two words, whatever it says
	}
	if bytes.HasSuffix(r.words, []byte(" ")) {
		cleaned = bytes.TrimLeft(cleaned, " ")
	}
	r.words = append(r.words, cleaned...)
}

// part is the part of the body that is being read.
func (r *reader) part() *part {
	if r.region&inMain != 0 {
		return &r.main
	}
	return &r.rest
}

// gap ends a block: an element that is not inline begins or ends here; isHeading says that it is a heading which ends.
func (r *reader) gap(isHeading bool) {
	if r.region&inNoscript != 0 {
		return
	}
	part := r.part()
	part.text.space = true
	words := bytes.TrimSpace(r.words)
	linked := bytes.TrimSpace(r.linked)
	isEmpty := len(words)+len(linked) == 0
	if isEmpty {
		return
	}
	if len(linked) > 0 && r.masker.isDate(words) { // which counts as the link beside it
		linked = append(linked, words...)
		words = nil
	}
	if isHeading {
		words = withoutNumber(words)
		linked = withoutNumber(linked)
		r.countHeading(len(words) == 0)
	}
	r.count(linked, &part.links)
	if r.inTitle && part == &r.rest {
		part = &r.head
	}
	r.count(words, &part.words)
	r.words = r.words[:0]
	r.linked = r.linked[:0]
	r.hasOther = false
}

// count counts words of a block.
func (r *reader) count(block []byte, t *tally) {
	if len(block) == 0 {
		return
	}
	t.sum += xxhash.Sum64(r.masker.mask(block, r.label))
	t.size += len(block)
	r.label = append(r.label[:0], block[:min(len(block), longestStamp)]...)
}

// countHeading takes note of a heading that ends; isLink says that all of it is in links. One to the page itself is that of
// a teaser only where another heading came first: many an article's title links to it.
func (r *reader) countHeading(isLink bool) {
	if isLink && (r.hasOther || len(r.headings) > r.teasers) {
		r.teasers++
	}
	r.headings = append(r.headings, r.part().words.size)
}

// endElement counts all words of an element as words in links if it is a teaser.
func (r *reader) endElement(e element) {
	const mostBefore = 64 // bytes, such as a date or a category
	headings := r.headings[e.headings:]
	isTeaser := len(headings) > 0 && len(headings) == r.teasers-e.teasers && headings[0]-e.words.size <= mostBefore
	if isTeaser {
		e.part.links.sum += e.part.words.sum - e.words.sum
		e.part.links.size += e.part.words.size - e.words.size
		e.part.words = e.words
	}
}

// blockSum returns [Meta.Blocks].
func (r *reader) blockSum() uint64 {
	sum := r.head.words.sum
	for _, part := range []*part{&r.main, &r.rest} {
		isList := part.links.size > 4*part.words.size
		if isList {
			sum += part.links.sum
		}
		if isList || part.words.size > 0 {
			sum += part.words.sum
			break
		}
	}
	return max(cmp.Or(sum, r.head.text.hash()), 1)
}
