package evidence

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// treeReading reads the same from the whole tree of a document, slowly. It differs
// from [Reader] on purpose, and documents that tell them apart are left out of what
// they are compared on, where the tree is not in the document's order or has more in
// it than was written: text in a table but outside of its cells, misnested
// formatting, a <select> or <frameset>, and depths beyond maxDepth.
type treeReading struct {
	noindex, whole    bool
	title             *string
	canonicals        []string
	base              *string
	main, rest        text
	hasMain, hasDescr bool
	descr             string
}

func readReference(t *testing.T, body []byte, p Page) (ref treeReading, ok bool) {
	doc, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return ref, false
	}
	ref.main.reset()
	ref.rest.reset()
	ref.walk(doc, place{}, false, p)
	return ref, true
}

func attr(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val, true
		}
	}
	return "", false
}

func (ref *treeReading) gap(in place) {
	if in.main {
		ref.main.gap()
	} else {
		ref.rest.gap()
	}
}

func (ref *treeReading) write(s string, in place) {
	switch {
	case in.skip:
	case in.main:
		ref.main.write([]byte(s))
	default:
		ref.rest.write([]byte(s))
	}
}

func (ref *treeReading) walk(n *html.Node, in place, head bool, p Page) {
	switch n.Type {
	case html.DoctypeNode:
		ref.whole = true
	case html.TextNode:
		if !head && n.Parent.DataAtom != atom.Html {
			ref.write(n.Data, in)
		}
	case html.ElementNode:
		switch {
		case n.Namespace != "":
			if n.Data == "svg" || n.Data == "style" || n.Data == "script" || n.Data == "noscript" || n.Data == "noembed" || n.Data == "noframes" || n.Data == "iframe" {
				in.skip = true
			}
		case n.DataAtom == atom.Head:
			head = true
		case n.DataAtom == atom.Title:
			ref.whole = true
			if ref.title == nil {
				s := ""
				if n.FirstChild != nil {
					s = n.FirstChild.Data
				}
				if s = new(Reader).folded([]byte(s)); s != "" || n.FirstChild != nil {
					ref.title = &s
				}
			}
			return
		case n.DataAtom == atom.Template:
			return
		case n.DataAtom == atom.Script || n.DataAtom == atom.Style || n.DataAtom == atom.Noscript || n.DataAtom == atom.Noframes || n.DataAtom == atom.Noembed || n.DataAtom == atom.Iframe:
			return
		case n.DataAtom == atom.Meta && head:
			name, _ := attr(n, "name")
			property, _ := attr(n, "property")
			content, _ := attr(n, "content")
			equiv, _ := attr(n, "http-equiv")
			if strings.EqualFold(strings.Trim(equiv, white), "refresh") {
				break
			}
			for _, s := range []string{name, property} {
				switch strings.ToLower(strings.Trim(s, white)) {
				case "robots", "googlebot":
					ref.noindex = ref.noindex || parseRobots([]byte(content), false, p.Now).noindex
				case "description":
					if !ref.hasDescr && content != "" {
						ref.hasDescr, ref.descr = true, new(Reader).folded([]byte(content))
					}
				}
			}
		case n.DataAtom == atom.Link && head:
			rel, _ := attr(n, "rel")
			href, _ := attr(n, "href")
			_, hreflang := attr(n, "hreflang")
			_, lang := attr(n, "lang")
			_, media := attr(n, "media")
			_, kind := attr(n, "type")
			if hasToken([]byte(rel), "canonical") && !hreflang && !lang && !media && !kind && href != "" {
				ref.canonicals = append(ref.canonicals, href)
			}
		case n.DataAtom == atom.Base && head:
			if href, ok := attr(n, "href"); ok && ref.base == nil {
				ref.base = &href
			}
		case n.DataAtom == atom.Img:
			alt, _ := attr(n, "alt")
			ref.gap(in)
			ref.write(alt, in)
			ref.gap(in)
		}
		inner := in
		if n.Namespace == "" && isContainer(n.DataAtom) {
			switch n.DataAtom {
			case atom.Tr, atom.Tbody, atom.Thead, atom.Tfoot:
			default:
				mark := landmarkOf(n.DataAtom)
				if v, ok := attr(n, "role"); ok {
					mark = roleMark([]byte(v), mark)
				}
				switch mark {
				case mainMark:
					inner.main, inner.skip = true, false
					ref.hasMain = true
				case navMark:
					inner.skip = true
				case headerMark:
					inner.skip = inner.skip || !inner.main
				}
			}
		}
		block := n.Namespace == "" && !isInline(n.DataAtom) || n.Namespace != "" && !isInline(atom.Lookup([]byte(strings.ToLower(n.Data))))
		if block {
			ref.gap(in)
			ref.gap(inner)
		}
		for c := range n.ChildNodes() {
			ref.walk(c, inner, head, p)
		}
		if block {
			ref.gap(in)
			ref.gap(inner)
		}
		return
	}
	for c := range n.ChildNodes() {
		ref.walk(c, in, head, p)
	}
}

func (ref *treeReading) canonical(p Page) string {
	doc := newLocation(p.Base, p.Path)
	base := doc
	if ref.base != nil {
		if l, ok := doc.at([]byte(*ref.base)); ok {
			base = l
		}
	}
	out := ""
	for _, c := range ref.canonicals {
		c = strings.Trim(c, white)
		if c == "" || c[0] == '#' {
			continue
		}
		u := base.absolute([]byte(c))
		if out != "" && u != "" && u != out {
			return ""
		}
		if u != "" {
			out = u
		}
	}
	return out
}

func (ref *treeReading) fingerprint() uint64 {
	switch {
	case ref.main.some:
		return ref.main.sum()
	case ref.rest.some:
		return ref.rest.sum()
	}
	if ref.title != nil {
		ref.rest.write([]byte(*ref.title))
	}
	ref.rest.gap()
	ref.rest.write([]byte(ref.descr))
	if ref.rest.some {
		return ref.rest.sum()
	}
	return 0
}

// disagreement is what Reader and reference do not say alike; empty for none.
func disagreement(t *testing.T, body []byte, p Page) string {
	ref, ok := readReference(t, body, p)
	if !ok {
		return ""
	}
	r := NewReader(Options{})
	e := r.Read(body, p)
	title := ""
	if ref.title != nil {
		title = *ref.title
	}
	switch {
	case e.Whole != ref.whole:
		return "whole"
	case e.NoIndex != ref.noindex:
		return "noindex"
	case e.Canonical != ref.canonical(p):
		return "canonical"
	case e.Title != title:
		return "title"
	case e.Description != ref.descr:
		return "description"
	case e.Fingerprint == ref.fingerprint():
		return ""
	case !bytes.Equal(words(&r.main, &r.rest), words(&ref.main, &ref.rest)):
		return "text"
	}
	return "white space"
}

// words is what is kept of a text, without white space.
func words(main, rest *text) []byte {
	if main.some {
		rest = main
	}
	return bytes.ReplaceAll(rest.buf, []byte(" "), nil)
}

func TestAgreesWithTree(t *testing.T) {
	for _, body := range []string{
		"", "x", "<", "</", "<!", "<?", "<p", "<p a", "<p a='", "&", "&#", "&#x", "&amp", "\x00", "<\x00p>",
		"<html", "<!doctype", "<title", "<title>", "<title>a", "<title>a</title", "<title>a</titlex></title>",
		"<html><head><title>a</title></head><body><p>b</body></html>c",
		"<head><head><title>a</title><p>b<meta name=robots content=noindex>",
		"<head></head><title>a</title><meta name=robots content=noindex>\n<p>b<meta name=googlebot content=none>",
		"</p></head></p><meta name=robots content=noindex>",
		"<body><head><meta name=robots content=noindex>", "</body><meta name=robots content=noindex>",
		"<html lang=a><html lang=b><meta name=robots content=noindex>",
		"<script>a</script ><meta name=robots content=noindex>", "<script><!--</script><meta name=robots content=noindex>",
		"<script><!--<script>a</script>--></script><meta name=robots content=noindex>",
		"<style></styl></style><link rel=canonical href=/a>", "<noframes><p></noframes><link rel=canonical href=/a>",
		"<head><noscript><link rel=canonical href=/b></noscript><link rel=canonical href=/a>",
		"<!-- a --!><link rel=canonical href=/a>", "<!--><link rel=canonical href=/a>", "<!---><link rel=canonical href=/a>-->",
		"<!-- > <link rel=canonical href=/b> --><link rel=canonical href=/a>", "<![CDATA[><link rel=canonical href=/a>]]>",
		"<link rel=canonical rel=next href=/a href=/b>", "<link/rel=canonical/href=/a>", "<link rel = canonical href = '/a'/>",
		"<link rel=\"canonical\"href='/a'>", "<link rel=canonical href=/a?b&copy=c&copy;&amp;d>", "<link =rel=canonical rel=canonical href=/a\x00>",
		"<base href=/x/><link rel=canonical href=a><base href=/y/>", "<base><base href=/x/><link rel=canonical href=a>",
		"<template><title>a</title><link rel=canonical href=/a></template><title>b</title>",
		"<svg><title>a</title></svg><title>b</title><p>c", "<p>a<svg><style><p>b</style></svg>c",
		"<main>a<nav>b</nav>c</main>d", "<nav>a<div>b</nav>c</div>d", "<div><nav>a</div>b</nav>c",
		"<ul><li>a<nav>b<li>c</nav>d<li>e</ul>f", "<dl><dt>a<nav>b<dd>c</nav>d</dl>e",
		"<table><tr><td>a<nav>b<td>c</nav>d<tr><th>e</table>f", "<table><caption><nav>a</caption><tr><td>b</table>c",
		"<nav><table><tr><td></nav>a</table>b</nav>c", "<table><tbody><tr><td><nav>a</tbody><tr><td>b</table>",
		"<article><header>a</header>b<footer>c</footer></article><aside>d</aside>e",
		"<textarea><p>a</textarea>b", "<xmp><p>a</xmp>b", "<iframe><p>a</iframe>b", "<noembed>a</noembed>b", "a<plaintext></p>b",
		"<p>a<p>b<h1>c</h1><pre>\nd</pre>e<br>f</br>g", "<b>a<i>b</b>c</i>d", "<a>a<a>b</a>c", "<p>a<img alt=' b '>c<image alt=d>",
		"<p>\xff\xfea\xc3", "<p>a\u00a0\u2028b\r\nc\rd", "<p>a&nbspb&#0;&#x80;&#xd800;&#1114112;&notit;&hopf;c",
		strings.Repeat("<div>", 300) + "a" + strings.Repeat("</div>", 300) + "b",
	} {
		if what := disagreement(t, []byte(body), withHeader("Content-Type", "text/html; charset=utf-8")); what != "" && what != "white space" {
			t.Errorf("%s of %q", what, body)
		}
	}
}
