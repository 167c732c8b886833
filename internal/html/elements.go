package html

import (
	"cmp"
	"strings"

	"golang.org/x/net/html/atom"
)

// traits are what has to be known of an element.
type traits uint8

const (
	inline  traits = 1 << iota // it shows nothing, or may begin or end within a word
	rawText                    // there are no tags in it
	heading
	ofHead  // it may be in the head; any other begins the body
	tracked // it is among elements: its end tag may not be omitted
)

var elementTraits = newTable(func(name string) atom.Atom { return atom.Lookup([]byte(name)) }, map[traits]string{
	inline: `a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp small span
		strike strong sub sup time tt u var wbr iframe link meta noembed noframes noscript script style template title
		unknown`, // which stands for all that HTML does not know
	heading: "h1 h2 h3 h4 h5 h6",
	ofHead:  "base head html link meta noscript script style template title",
	rawText: "iframe noembed noframes plaintext script style textarea title xmp",
	tracked: `address article aside blockquote center details dialog div dl fieldset figure footer form header main menu
		nav noscript object ol section svg table template ul`,
})

// region is the part of a document in which something is.
type region uint8

const (
	inMain     region = 1 << iota // in the main content
	beside                        // in a menu or a footer
	besideMain                    // in a header or an aside, whose text is content within the main content
	inTemplate
	inSVG
	inNoscript // shown to readers without scripts only: its links and images count
)

// hasContent reports whether the text of the region is what readers come for.
func (r region) hasContent() bool {
	return r&(beside|inTemplate|inSVG) == 0 && r&(besideMain|inMain) != besideMain
}

// regions are those that elements and roles begin (https://www.w3.org/TR/html-aria/#docconformance).
var regions = newTable(strings.ToLower, map[region]string{
	inMain:     "main",
	beside:     "nav navigation footer contentinfo",
	besideMain: "header banner aside complementary",
	inTemplate: "template",
	inSVG:      "svg",
	inNoscript: "noscript",
})

// maxOpen is how deep elements are told apart. An end tag that closes nothing passes all of them.
const maxOpen = 128

// element is an open element that decides in which region something is.
type element struct {
	name  atom.Atom
	outer region

	// What was counted before it: see blockCounter.
	kind              int // of its words
	words             tally
	headings, teasers int
}

// openElement opens the element that has begun.
func (r *reader) openElement() {
	if len(r.open) == maxOpen {
		return
	}
	e := element{name: r.name, outer: r.region, headings: len(r.headings), teasers: r.teasers}
	begins := cmp.Or(regions[string(r.attribute("role"))], regions[r.name.String()])
	// Whatever <main> is in, it is no menu.
	if begins == inMain {
		r.region &^= beside
	}
	r.region |= begins
	e.kind = r.kind(false)
	e.words = r.tallies[e.kind]
	r.open = append(r.open, e)
}

// closeElement closes the last element with the name of the end tag, and what is open within it. An end tag that closes
// nothing is ignored.
func (r *reader) closeElement() {
	at := len(r.open) - 1
	for at >= 0 && r.open[at].name != r.name {
		at--
	}
	if at < 0 {
		return
	}
	for i := len(r.open) - 1; i >= at; i-- {
		r.endElement(&r.open[i])
	}
	r.region = r.open[at].outer
	r.open = r.open[:at]
}
