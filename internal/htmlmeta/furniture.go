package htmlmeta

import (
	"bytes"
	"strings"
)

// Furniture is what a page has besides its content: footers, menus, notices. A reader view drops it, and a change of
// it alone is no change of the page. Elements and roles that say so are known by their region; furniture is what class
// and id say.
//
// The words are those that several reader views drop elements by, as far as they are used for little else:
//   - Mozilla's Readability, unlikelyCandidates and negative (https://github.com/mozilla/readability), which comes from
//     Arc90's (https://code.google.com/archive/p/arc90labs-readability)
//   - Trafilatura, OVERALL_DISCARD_XPATH (https://github.com/adbar/trafilatura/blob/master/trafilatura/xpaths.py)
//   - Chromium's DOM Distiller, which adds the density of links, as Boilerpipe does
//     (https://github.com/chromium/dom-distiller, https://github.com/kohlschutter/boilerpipe)
//
// Left out are words of theirs that name content as well: header, meta, comment, extra, media, tags, author, widget,
// tool, embed, button, bottom, message, slide, sponsor, promo, popup, and modal. They look for parts of words anywhere
// in a name, and make up for mistakes by starting over where little text is left. Here a whole word counts, and only
// where it says what the element is: see furnitureOfClass.
var furnitureWords = newFurniture(map[zoneKind]string{
	notice: `footer foot copyright copyrights colophon masthead banner
		share sharing sharedaddy social cookie cookies consent gdpr newsletter subscribe
		advert advertisement ads outbrain taboola disqus
		toolbar topbar skiplink breadcrumb breadcrumbs crumbs pagination pager paginator`,
	menu: `nav navbar navigation navlinks navheader navfooter navpath subnav sidenav rellinks menu menubar submenu
		dropdown sidebar related recommended recommendations`,
})

func newFurniture(lists map[zoneKind]string) map[string]zoneKind {
	all := map[string]zoneKind{}
	for kind, words := range lists {
		for word := range strings.FieldsSeq(words) {
			all[word] = kind
		}
	}
	return all
}

// Before such a word, it is said that something else has one: has-sidebar.
var otherWords = map[string]bool{"no": true, "has": true, "with": true, "without": true, "hide": true, "show": true}

// An id of two words begins with such a one: main-nav.
var placeWords = map[string]bool{"site": true, "page": true, "main": true}

// Furniture holds no more than this. More is content after all, whatever its name is: the sidebar of a manual may have
// its prose, and the menu of a restaurant its prices.
const (
	maxNoticeShare = 4 // of the text, a quarter
	maxNoticeWords = 200
	maxMenuShare   = 2 // and mostly links
	minLeftShare   = 3 // if less than a third is left of a page, all of it counts

	// So few words are furniture on the smallest pages, too: else a banner that comes to a page of some words would make
	// its line of links content no more, another one on each page.
	fewWords = 12
)

// furniture returns the kind of furniture that an element is by its class and id, or content.
func (s *scanner) furniture() (kind zoneKind, isByID bool) {
	for _, a := range s.attributes {
		switch {
		case len(a.value) == 0:
		case kind == content && isAttribute(a.name, "class"):
			kind = furnitureOfClass(a.value)
		case isAttribute(a.name, "id"):
			byID := furnitureOfID(a.value)
			if kind == content && byID != content {
				kind = byID
				isByID = true
			}
		}
	}
	return kind, isByID
}

func isAttribute(name []byte, want string) bool {
	return len(name) == len(want) && bytes.EqualFold(name, []byte(want))
}

// furnitureOfClass returns the kind that a name of a class says: by its last word, of three at most. Longer names, and
// words before the last, are those of parts and variants: footer-left-column, navbar-page.
func furnitureOfClass(class []byte) zoneKind {
	for len(class) > 0 {
		end := 0
		for end < len(class) && !isSpace(class[end]) {
			end++
		}
		if kind := furnitureOfName(class[:end]); kind != content {
			return kind
		}
		class = class[min(end+1, len(class)):]
	}
	return content
}

func furnitureOfName(name []byte) zoneKind {
	start := lastWordAt(name)
	kind := furnitureWord(name[start:])
	for words := 1; kind != content && start > 0; words++ {
		name = bytes.TrimRight(name[:start], "-_")
		start = lastWordAt(name)
		if words == 3 || isWordOf(otherWords, name[start:]) {
			return content
		}
	}
	return kind
}

// furnitureOfID returns the kind that an id says, alone or behind the place of the element.
func furnitureOfID(id []byte) zoneKind {
	start := lastWordAt(id)
	place := bytes.TrimRight(id[:start], "-_")
	if start == 0 || isWordOf(placeWords, place) {
		return furnitureWord(id[start:])
	}
	return content
}

// lastWordAt returns where the last word of a name begins: words end with a hyphen or an underscore, or begin with a
// capital letter.
func lastWordAt(name []byte) int {
	for i := len(name) - 1; i > 0; i-- {
		before := name[i-1]
		isCapital := 'A' <= name[i] && name[i] <= 'Z' && 'a' <= before && before <= 'z'
		if before == '-' || before == '_' || isCapital {
			return i
		}
	}
	return 0
}

// longestWord is the length of the longest word that is known.
const longestWord = len("recommendations")

func furnitureWord(word []byte) zoneKind {
	if len(word) == 0 || !furnitureEnds.has(word) {
		return content // as nearly all are
	}
	var buf [longestWord]byte
	return furnitureWords[string(lowered(&buf, word))]
}

// ends are the first and last letters of words.
type ends [32]uint32

var furnitureEnds = newEnds(furnitureWords)

func newEnds(words map[string]zoneKind) *ends {
	var all ends
	for word := range words {
		all[word[0]%32] |= 1 << (word[len(word)-1] % 32)
	}
	return &all
}

func (e *ends) has(word []byte) bool {
	// A letter has the same lower five bits in either case.
	first := word[0] % 32
	last := word[len(word)-1] % 32
	return e[first]&(1<<last) != 0
}

func isWordOf(words map[string]bool, word []byte) bool {
	var buf [longestWord]byte
	return words[string(lowered(&buf, word))]
}

// lowered returns a word in lower case; "": it is longer than any that is known.
func lowered(buf *[longestWord]byte, word []byte) []byte {
	if len(word) > len(buf) {
		return nil
	}
	for i, c := range word {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
	}
	return buf[:len(word)]
}

// isDropped reports whether a zone is furniture of a page with a text like all. One with the title is not, and
// neither is a section with a heading, from which its id may come: <section id="menu">.
func (z zone) isDropped(all tally) bool {
	// A looser rule dropped whole manuals, for <body class="…-navbar"> and for a <div class=sidebar> around prose.
	t := z.tally()
	isSection := z.isByID && z.headings > 0
	if z.titles > 0 || isSection {
		return false
	}
	isMostlyLinks := 2*t.linked > t.size
	isFew := t.words <= fewWords
	switch {
	case isMostlyLinks:
		return isFew || t.size*maxMenuShare <= all.size
	case z.kind == notice:
		return isFew || t.size*maxNoticeShare <= all.size && t.words <= maxNoticeWords
	default:
		return false
	}
}

// withoutFurniture returns what is left of the tally of a part without furniture: of all of it, or of its article.
func (c *blockCounter) withoutFurniture(part int, all tally, ofArticle bool) tally {
	left := all
	end := 0 // of the furniture that was dropped last
	for _, z := range c.zones {
		isCounted := z.part == part && (z.inArticle || !ofArticle)
		isInDropped := z.from.blocks < end // it went with that
		if z.kind == article || !isCounted || isInDropped || !z.isDropped(all) {
			continue
		}
		left = left.minus(z.tally())
		end = z.to.blocks
	}
	if left.size*minLeftShare < all.size {
		return all
	}
	return left
}
