package htmlmeta

import (
	"golang.org/x/net/html/atom"
)

// maxDepth is how many open elements are told apart.
const maxDepth = 512

// region is the part of a document in which something is.
type region struct {
	template bool // in a <template>
	foreign  bool // in SVG or MathML
	main     bool // in the main content
	skip     bool // its text is not part of the content
}

// open is an open element, and the region around it.
type open struct {
	name  atom.Atom
	outer region
}

// elements are the open elements that decide which region something is in, save those
// whose end tags may be omitted: the end of what is around ends them, too.
type elements struct {
	stack   []open
	region  region // of what comes next
	hasMain bool
	beyond  int // how many are open beyond maxDepth
}

// landmark is the part of a page that an element is, by its name or its role
// (https://www.w3.org/TR/html-aria/#docconformance).
type landmark uint8

const (
	noLandmark landmark = iota
	mainLandmark
	navigation // or a footer
	header     // or an aside: content where it is within main
)

func landmarkOf(name atom.Atom) landmark {
	switch name {
	case atom.Main:
		return mainLandmark
	case atom.Nav, atom.Footer:
		return navigation
	case atom.Header, atom.Aside:
		return header
	}
	return noLandmark
}

// landmarkOfRole returns the landmark of a role attribute, or else otherwise.
func landmarkOfRole(role []byte, otherwise landmark) landmark {
	switch {
	case hasToken(role, "main"):
		return mainLandmark
	case hasToken(role, "navigation"), hasToken(role, "contentinfo"):
		return navigation
	case hasToken(role, "banner"), hasToken(role, "complementary"):
		return header
	}
	return otherwise
}

// isTracked reports whether an element is among elements.
func isTracked(name atom.Atom) bool {
	switch name {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Center, atom.Details, atom.Dialog, atom.Div,
		atom.Dl, atom.Fieldset, atom.Figure, atom.Footer, atom.Foreignobject, atom.Form, atom.Header, atom.Main,
		atom.Math, atom.Menu, atom.Nav, atom.Object, atom.Ol, atom.Section, atom.Svg, atom.Table, atom.Template, atom.Ul:
		return true
	}
	return false
}

// push opens a tracked element.
func (e *elements) push(name atom.Atom, mark landmark) {
	if len(e.stack) >= maxDepth {
		e.beyond++
		return
	}
	e.stack = append(e.stack, open{name, e.region})
	in := &e.region
	switch name {
	case atom.Template:
		in.template, in.skip = true, true
	case atom.Svg:
		in.foreign, in.skip = true, true
	case atom.Math:
		in.foreign = true
	case atom.Foreignobject:
		in.foreign = false
	}
	switch mark {
	case mainLandmark:
		if !in.template {
			in.main, in.skip = true, false
			e.hasMain = true
		}
	case navigation:
		in.skip = true
	case header:
		in.skip = in.skip || !in.main
	}
}

// pop closes a tracked element and what is open within it. An end tag that closes
// nothing is ignored, and one in a <template> closes nothing outside.
func (e *elements) pop(name atom.Atom) {
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

// leaveForeign closes SVG and MathML before a tag that cannot be in them, and reports
// whether it did (https://html.spec.whatwg.org/multipage/parsing.html#parsing-main-inforeign).
func (e *elements) leaveForeign(name atom.Atom) bool {
	switch name {
	case atom.B, atom.Big, atom.Blockquote, atom.Body, atom.Br, atom.Center, atom.Code, atom.Dd, atom.Div, atom.Dl,
		atom.Dt, atom.Em, atom.Embed, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Head, atom.Hr, atom.I,
		atom.Img, atom.Li, atom.Listing, atom.Menu, atom.Meta, atom.Nobr, atom.Ol, atom.P, atom.Pre, atom.Ruby, atom.S,
		atom.Small, atom.Span, atom.Strong, atom.Strike, atom.Sub, atom.Sup, atom.Table, atom.Tt, atom.U, atom.Ul, atom.Var:
	default:
		return false
	}
	for i := len(e.stack) - 1; i >= 0 && e.region.foreign; i-- {
		e.region, e.stack = e.stack[i].outer, e.stack[:i]
	}
	return true
}
