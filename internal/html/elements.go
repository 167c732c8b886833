package html

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"golang.org/x/net/html/atom"
)

// traits are what has to be known of an element.
type traits uint8

const (
	inline  traits = 1 << iota // it shows nothing, or may begin or end within a word
	ofHead                     // it may be in the head; any other begins the body
	rawText                    // there are no tags in it
	heading
	tracked // it is among elements: its end tag may not be omitted
)

var elementTraits = newTable(func(name string) atom.Atom { return atom.Lookup([]byte(name)) }, map[traits]string{
	inline: `a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp small span
		strike strong sub sup time tt u var wbr iframe link meta noembed noframes noscript script style template title
		unknown`, // which stands for all that HTML does not know
	ofHead:  "base basefont bgsound head html link meta noframes noscript script style template title",
	heading: "h1 h2 h3 h4 h5 h6",
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
	part              *part // in which it is
	words             tally
	headings, teasers int
}

// openElement opens the element that has begun.
func (r *reader) openElement() {
	if len(r.open) == maxOpen {
		return
	}
	e := element{name: r.name, outer: r.region, headings: len(r.headings), teasers: r.teasers}
	role, _, _ := bytes.Cut(bytes.ToLower(bytes.TrimSpace(r.attribute("role"))), []byte(" "))
	begins := cmp.Or(regions[string(role)], regions[r.name.String()])
	// Whatever <main> is in, it is no menu.
	if begins == inMain {
		r.region &^= beside
		r.hasMain = true
	}
	r.region |= begins
	e.part = r.part()
	e.words = e.part.words
	r.open = append(r.open, e)
}

// closeElement closes the last element with the name of the end tag, and what is open within it. An end tag that closes
// nothing is ignored, and one in a <template> or a <noscript> closes nothing outside of it.
func (r *reader) closeElement() {
	for at := range slices.Backward(r.open) {
		name := r.open[at].name
		if name == r.name {
			r.closeFrom(at)
			return
		}
		if name == atom.Template || name == atom.Noscript {
			return
		}
	}
}

// closeFrom closes an open element, and those within it before.
func (r *reader) closeFrom(at int) {
	for _, e := range slices.Backward(r.open[at:]) {
		r.endElement(e)
	}
	r.region = r.open[at].outer
	r.open = r.open[:at]
}
