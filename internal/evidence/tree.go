package evidence

import (
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxDepth is how deep containers may lie within each other to be told apart.
const maxDepth = 512

// tree follows which containers are open: as much of
// https://html.spec.whatwg.org/multipage/parsing.html#tree-construction as decides
// what lies in which of them, also where end tags are missing.
type tree struct {
	stack   []node
	top     place // of what comes next
	hasMain bool
	beyond  int // containers open beyond maxDepth
}

type node struct {
	name  atom.Atom
	outer place
}

// place is where in a document something is.
type place struct {
	template bool // not in the document proper
	foreign  bool // in SVG or MathML
	main     bool
	skip     bool // its text is not what a reader comes for
}

func (t *tree) reset() { *t = tree{stack: t.stack[:0]} }

// landmark is what part of a page an element is, by its name or its role
// (https://www.w3.org/TR/html-aria/#el-main and below).
type landmark uint8

const (
	noLandmark landmark = iota
	mainMark
	navMark    // nav, footer: not even within main
	headerMark // header, aside: where there is no main
)

func landmarkOf(name atom.Atom) landmark {
	switch name {
	case atom.Main:
		return mainMark
	case atom.Nav, atom.Footer:
		return navMark
	case atom.Header, atom.Aside:
		return headerMark
	}
	return noLandmark
}

// hasRole reports whether a tag may have the attribute.
func hasRole(tag []byte) bool {
	for i := 0; i+4 < len(tag); i++ {
		if tag[i]|0x20 == 'r' && tag[i+1]|0x20 == 'o' && tag[i+2]|0x20 == 'l' && tag[i+3]|0x20 == 'e' {
			return true
		}
	}
	return false
}

// role is the landmark that a tag's attribute makes of it, otherwise what it is.
func role(z *html.Tokenizer, token []byte, otherwise landmark) landmark {
	var a attributes
	a.read(z, token, roleName)
	return roleMark(a.value[0], otherwise)
}

func roleMark(value []byte, otherwise landmark) landmark {
	switch {
	case hasToken(value, "main"):
		return mainMark
	case hasToken(value, "navigation"), hasToken(value, "contentinfo"):
		return navMark
	case hasToken(value, "banner"), hasToken(value, "complementary"):
		return headerMark
	}
	return otherwise
}

// isContainer reports whether an element is followed.
func isContainer(name atom.Atom) bool {
	switch name {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Caption, atom.Center, atom.Dd, atom.Details, atom.Dialog, atom.Div,
		atom.Dl, atom.Dt, atom.Fieldset, atom.Figure, atom.Footer, atom.Header, atom.Li, atom.Main, atom.Math, atom.Menu, atom.Nav, atom.Object, atom.Ol,
		atom.Section, atom.Svg, atom.Table, atom.Tbody, atom.Td, atom.Template, atom.Tfoot, atom.Th, atom.Thead, atom.Tr, atom.Ul:
		return true
	}
	return false
}

func (t *tree) open(name atom.Atom, mark landmark) {
	switch name {
	case atom.Li:
		t.closeItem(atom.Li, atom.Li)
	case atom.Dd, atom.Dt:
		t.closeItem(atom.Dd, atom.Dt)
	case atom.Td, atom.Th, atom.Tr, atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption:
		t.closeCell()
		if name != atom.Td && name != atom.Th && name != atom.Caption {
			return
		}
	case atom.Foreignobject, atom.ForeignObject, atom.Svg, atom.Math:
	default:
		if t.top.foreign {
			return
		}
	}
	if len(t.stack) >= maxDepth {
		t.beyond++
		return
	}
	t.stack = append(t.stack, node{name, t.top})
	in := &t.top
	switch name {
	case atom.Template:
		in.template, in.skip = true, true
	case atom.Svg:
		in.foreign, in.skip = true, true
	case atom.Math:
		in.foreign = true
	case atom.Foreignobject, atom.ForeignObject:
		in.foreign = false
	}
	switch mark {
	case mainMark:
		if !in.template {
			in.main, in.skip = true, false
			t.hasMain = true
		}
	case navMark:
		in.skip = true
	case headerMark:
		in.skip = in.skip || !in.main
	}
}

// close takes an end tag: it closes what is open within the element too.
func (t *tree) close(name atom.Atom) {
	switch name {
	case atom.Tr, atom.Tbody, atom.Thead, atom.Tfoot:
		t.closeCell()
		return
	case atom.Foreignobject, atom.ForeignObject:
	default:
		if !isContainer(name) {
			return
		}
	}
	if t.beyond > 0 {
		t.beyond--
		return
	}
	for i := len(t.stack) - 1; i >= 0; i-- {
		open := t.stack[i].name
		if open == name {
			t.pop(i)
			return
		}
		if isBoundary(open) && name != atom.Template && (name != atom.Table || open == atom.Template) {
			return
		}
	}
}

// isBoundary reports whether an element's content does not end what is open around
// it (https://html.spec.whatwg.org/multipage/parsing.html#has-an-element-in-scope).
func isBoundary(name atom.Atom) bool {
	switch name {
	case atom.Caption, atom.Foreignobject, atom.ForeignObject, atom.Object, atom.Table, atom.Td, atom.Template, atom.Th:
		return true
	}
	return false
}

// pop closes the containers from number i on.
func (t *tree) pop(i int) {
	t.top = t.stack[i].outer
	t.stack = t.stack[:i]
}

// closeItem closes a list item that another one ends.
func (t *tree) closeItem(a, b atom.Atom) {
	for i := len(t.stack) - 1; i >= 0; i-- {
		switch t.stack[i].name {
		case a, b:
			t.pop(i)
			return
		case atom.Div, atom.Address:
		default:
			return
		}
	}
}

// closeCell closes all that is open in a table.
func (t *tree) closeCell() {
	for i := len(t.stack) - 1; i >= 0; i-- {
		switch t.stack[i].name {
		case atom.Table:
			if i+1 < len(t.stack) {
				t.pop(i + 1)
			}
			return
		case atom.Template, atom.Foreignobject, atom.ForeignObject:
			return
		}
	}
}

// breakOut closes SVG or MathML at a tag that cannot be in it, and reports whether
// it did (https://html.spec.whatwg.org/multipage/parsing.html#parsing-main-inforeign).
func (t *tree) breakOut(name atom.Atom) bool {
	switch name {
	case atom.B, atom.Big, atom.Blockquote, atom.Body, atom.Br, atom.Center, atom.Code, atom.Dd, atom.Div, atom.Dl, atom.Dt, atom.Em,
		atom.Embed, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Head, atom.Hr, atom.I, atom.Img, atom.Li,
		atom.Listing, atom.Menu, atom.Meta, atom.Nobr, atom.Ol, atom.P, atom.Pre, atom.Ruby, atom.S, atom.Small, atom.Span,
		atom.Strong, atom.Strike, atom.Sub, atom.Sup, atom.Table, atom.Tt, atom.U, atom.Ul, atom.Var:
	default:
		return false
	}
	for i := len(t.stack) - 1; i >= 0 && t.top.foreign; i-- {
		t.pop(i)
	}
	return true
}
