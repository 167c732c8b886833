package htmlmeta

import (
	"bytes"
	"strings"

	"golang.org/x/net/html/atom"
)

// traits are what the parser has to know of an element.
type traits uint8

const (
	inline  traits = 1 << iota // it shows nothing, or may begin or end within a word
	ofHead                     // it may be in the head; any other begins the body
	rawText                    // there are no tags in it
	tracked                    // it may be among elements: its end tag may not be omitted
	notSVG                     // it ends SVG or MathML, where it cannot be
)

// https://html.spec.whatwg.org/multipage/parsing.html#parsing-main-inforeign
var elementTraits = newTraits(map[traits]string{
	inline: `a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp small span
		strike strong sub sup time tt u var wbr iframe link meta noembed noframes noscript script style template title`,
	ofHead:  "base basefont bgsound head html link meta noframes noscript script style template title",
	rawText: "iframe noembed noframes noscript plaintext script style textarea title xmp",
	tracked: `address article aside blockquote center details dialog div dl fieldset figure footer foreignobject form header
		main math menu nav object ol section svg table template ul`,
	notSVG: `b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta
		nobr ol p pre ruby s small span strong strike sub sup table tt u ul var`,
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

// landmark is the part of a page that an element is
// (https://www.w3.org/TR/html-aria/#docconformance).
type landmark uint8

const (
	noLandmark landmark = iota
	mainContent
	besidesContent // even within the main content
	besidesMain    // content where it is within the main content
)

// landmarks has elements and roles by their names.
var landmarks = map[string]landmark{
	"main": mainContent,
	"nav":  besidesContent, "navigation": besidesContent, "footer": besidesContent, "contentinfo": besidesContent,
	"header": besidesMain, "banner": besidesMain, "aside": besidesMain, "complementary": besidesMain,
}

func landmarkOf(element string, roles []byte) landmark {
	for role := range bytes.FieldsSeq(roles) {
		if l := landmarks[string(bytes.ToLower(role))]; l != noLandmark {
			return l
		}
	}
	return landmarks[element]
}

// region is the part of a document in which something is.
type region struct {
	template bool // in a <template>
	svg      bool // in SVG or MathML
	main     bool // in the main content
	skip     bool // its text is not part of the content
}

// elements are the open elements that decide in which region something is.
type elements struct {
	stack  []element
	region region // of what comes next
	marked bool   // one of them was the main content
	beyond int    // how many are open beyond maxDepth
}

type element struct {
	name  atom.Atom
	outer region
}

// maxDepth is how many open elements are told apart.
const maxDepth = 512

func (e *elements) open(name atom.Atom, l landmark) {
	if len(e.stack) >= maxDepth {
		e.beyond++
		return
	}
	e.stack = append(e.stack, element{name, e.region})
	in := &e.region
	switch name {
	case atom.Template:
		in.template = true
	case atom.Svg, atom.Math:
		in.svg = true
	case atom.Foreignobject:
		in.svg = false
	}
	switch l {
	case mainContent:
		in.main, in.skip = !in.template, in.template
		e.marked = e.marked || in.main
	case besidesContent:
		in.skip = true
	case besidesMain:
		in.skip = in.skip || !in.main
	}
	in.skip = in.skip || in.template || name == atom.Svg
}

// close closes an element and what is open within it. An end tag that closes nothing is
// ignored, and one in a <template> closes nothing outside of it.
func (e *elements) close(name atom.Atom) {
	if e.beyond > 0 {
		e.beyond--
		return
	}
	for i := len(e.stack) - 1; i >= 0; i-- {
		if e.stack[i].name == name {
			e.region, e.stack = e.stack[i].outer, e.stack[:i]
			return
		}
		if e.stack[i].name == atom.Template {
			return
		}
	}
}

func (e *elements) leaveSVG() {
	for i := len(e.stack) - 1; i >= 0 && e.region.svg; i-- {
		e.region, e.stack = e.stack[i].outer, e.stack[:i]
	}
}
