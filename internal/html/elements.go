package html

import (
	"bytes"
	"cmp"
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

// elements are the open elements that decide in which region something is.
type elements struct {
	stack   []element
	region  region // of what comes next
	hasMain bool
}

// maxOpen is how deep elements are told apart. An end tag that closes nothing passes all of them.
const maxOpen = 128

type element struct {
	name  atom.Atom
	outer region

	// What was counted before it: see blockCounter.
	kind              int // of its words
	words             tally
	headings, teasers int
}

// open opens an element, and returns it until the next one opens; nil: it is too deep to be told apart.
func (e *elements) open(name atom.Atom, roles []byte) *element {
	if len(e.stack) == maxOpen {
		return nil
	}
	role, _, _ := bytes.Cut(bytes.ToLower(bytes.TrimSpace(roles)), []byte(" "))
	begins := cmp.Or(regions[string(role)], regions[name.String()])
	e.stack = append(e.stack, element{name: name, outer: e.region})
	// Whatever <main> is in, it is no menu.
	if begins == inMain {
		e.region &^= beside
		e.hasMain = true
	}
	e.region |= begins
	return &e.stack[len(e.stack)-1]
}

// close closes an element and what is open within it, which it returns until the next element opens. An end tag that
// closes nothing is ignored, and one in a <template> or a <noscript> closes nothing outside of it.
func (e *elements) close(name atom.Atom) (closed []element) {
	for i := len(e.stack) - 1; i >= 0; i-- {
		open := &e.stack[i]
		if open.name == name {
			closed = e.stack[i:]
			e.region = open.outer
			e.stack = e.stack[:i]
			return closed
		}
		if open.name == atom.Template || open.name == atom.Noscript {
			return nil
		}
	}
	return nil
}
