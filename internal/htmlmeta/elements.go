package htmlmeta

import (
	"bytes"
	"strings"

	"golang.org/x/net/html/atom"
)

// traits are what has to be known of an element.
type traits uint8

const (
	inline  traits = 1 << iota // it shows nothing, or may begin or end within a word
	ofHead                     // it may be in the head; any other begins the body
	rawText                    // there are no tags in it
	tracked                    // it is among elements: its end tag may not be omitted
)

var elementTraits = newTraits(map[traits]string{
	inline: `a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp small span
		strike strong sub sup time tt u var wbr iframe link meta noembed noframes noscript script style template title`,
	ofHead:  "base basefont bgsound head html link meta noframes noscript script style template title",
	rawText: "iframe noembed noframes noscript plaintext script style textarea title xmp",
	tracked: `address article aside blockquote center details dialog div dl fieldset figure footer form header main menu
		nav object ol section svg table template ul`,
})

func newTraits(names map[traits]string) map[atom.Atom]traits {
	all := map[atom.Atom]traits{0: inline}
	for trait, names := range names {
		for name := range strings.FieldsSeq(names) {
			all[atom.Lookup([]byte(name))] |= trait
		}
	}
	return all
}

// region is the part of a document in which something is.
type region uint8

const (
	inMain     region = 1 << iota // in the main content
	beside                        // in a menu or a footer
	besideMain                    // in a header or an aside, whose text is content within the main content
	inTemplate
	inSVG
	inArticle // in an <article>, unless that is one beside the content
)

// hasContent reports whether the text of the region is what readers come for.
func (r region) hasContent() bool {
	return r&(beside|inTemplate|inSVG) == 0 && r&(besideMain|inMain) != besideMain
}

// regions are those that elements and roles begin (https://www.w3.org/TR/html-aria/#docconformance).
var regions = map[string]region{
	"main": inMain, "nav": beside, "navigation": beside, "footer": beside, "contentinfo": beside,
	"header": besideMain, "banner": besideMain, "aside": besideMain, "complementary": besideMain,
	"template": inTemplate, "svg": inSVG,
}

// elements are the open elements that decide in which region something is.
type elements struct {
	stack   []element
	named   [nameSlots]uint16 // how many of stack have a name, by slotOf
	region  region            // of what comes next
	hasMain bool
}

// maxOpen is how deep elements are told apart.
const maxOpen = 512

// nameSlots tell most end tags that close nothing from others: without them, each would pass all of the stack.
const nameSlots = 64

func slotOf(name atom.Atom) int { return int(name>>8) % nameSlots }

type element struct {
	name  atom.Atom
	outer region
	zone  zoneID
}

// open opens an element, and returns it until the next one opens; nil: it is too deep to be told apart.
func (e *elements) open(name atom.Atom, roles []byte) *element {
	if len(e.stack) == maxOpen {
		return nil
	}
	begins := regions[name.String()]
	for role := range bytes.FieldsSeq(roles) {
		if r := regions[string(bytes.ToLower(role))]; r != 0 {
			begins = r
			break
		}
	}
	e.stack = append(e.stack, element{name: name, outer: e.region})
	e.named[slotOf(name)]++
	// Whatever <main> is in, it is no menu.
	if begins == inMain {
		e.region &^= beside
		e.hasMain = true
	}
	if name == atom.Article && e.region&besideMain == 0 {
		e.region |= inArticle
	}
	e.region |= begins
	return &e.stack[len(e.stack)-1]
}

// close closes an element and what is open within it, which it returns until the next element opens. An end tag that
// closes nothing is ignored, and one in a <template> closes nothing outside of it.
func (e *elements) close(name atom.Atom) (closed []element) {
	// A page of end tags that close nothing would pass up to 512 open elements with each: that took ten seconds.
	if e.named[slotOf(name)] == 0 {
		return nil
	}
	for i := len(e.stack) - 1; i >= 0; i-- {
		open := &e.stack[i]
		if open.name == name {
			closed = e.stack[i:]
			for _, element := range closed {
				e.named[slotOf(element.name)]--
			}
			e.region = open.outer
			e.stack = e.stack[:i]
		}
		if open.name == name || open.name == atom.Template {
			return closed
		}
	}
	return nil
}
