package lint

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
)

// Namespaces that the checks know.
const (
	space09    = "http://www.sitemaps.org/schemas/sitemap/0.9"
	space084   = "http://www.google.com/schemas/sitemap/0.84"
	spaceImage = "http://www.google.com/schemas/sitemap-image/1.1"
	spaceXHTML = "http://www.w3.org/1999/xhtml"
	spaceXML   = "http://www.w3.org/XML/1998/namespace"
	spaceXSI   = "http://www.w3.org/2001/XMLSchema-instance"
)

// unchecked are namespaces of extensions that are passed over.
var unchecked = []string{
	"http://www.google.com/schemas/sitemap-video/1.1", "http://www.google.com/schemas/sitemap-news/0.9",
	"http://www.google.com/schemas/sitemap-mobile/1.0",
}

const (
	maxDepth      = 256
	maxAttributes = 128
	maxSpaces     = 256
	maxImages     = 1000
)

// What ends the reading of XML.
var (
	errUTF8       = &flaw{"not-utf-8", "has bytes that are not UTF-8"}
	errDoctype    = &flaw{"doctype", "has a document type declaration, which readers refuse because its entities can be abused"}
	errDepth      = &flaw{"too-large", "has elements nested more than 256 deep"}
	errAttributes = &flaw{"too-large", "has an element with more than 128 attributes"}
	errSpaces     = &flaw{"too-large", "has more than 256 namespaces"}
)

func malformed(message string) *flaw {
	return &flaw{"not-well-formed", message + "; what follows was not read"}
}

// element is a definition of the schemas.
type element struct {
	name     string
	space    string   // "": that of the document
	children []string // in their order; the first is required
	repeats  bool     // its children come any number of times
	entry    bool     // extensions follow its own children; else they come before them
	text     bool
}

var elements = map[string]*element{
	"urlset":       {children: []string{"url"}, repeats: true},
	"sitemapindex": {children: []string{"sitemap"}, repeats: true},
	"url":          {children: []string{"loc", "lastmod", "changefreq", "priority"}, entry: true},
	"sitemap":      {children: []string{"loc", "lastmod"}, entry: true},
	"loc":          {text: true},
	"lastmod":      {text: true},
	"changefreq":   {text: true},
	"priority":     {text: true},
}

// https://developers.google.com/search/docs/crawling-indexing/sitemaps/image-sitemaps
var imageElements = map[string]*element{
	"image":        {children: []string{"loc", "caption", "geo_location", "title", "license"}},
	"loc":          {text: true},
	"caption":      {text: true},
	"geo_location": {text: true},
	"title":        {text: true},
	"license":      {text: true},
}

// https://developers.google.com/search/docs/specialty/international/localized-versions
var linkElement = &element{name: "link", space: spaceXHTML}

func init() {
	for name, e := range elements {
		e.name = name
	}
	for name, e := range imageElements {
		e.name, e.space = name, spaceImage
	}
}

// frame is an open element.
type frame struct {
	def  *element // nil: passed over
	line int
	next int // the first child that is not too late
	seen [5]bool
}

func (d *document) readXML() error {
	d.spaces = make(map[string]bool)
	d.xml = xml.NewDecoder(d.in)
	d.xml.CharsetReader = func(name string, r io.Reader) (io.Reader, error) {
		d.encoding = name
		return r, nil
	}
	for {
		d.in.begin()
		begin := d.xml.InputOffset()
		d.line, _ = d.xml.InputPos()
		token, err := d.xml.Token()
		if err != nil || d.in.err != nil {
			return d.explain(err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if err := d.start(t); err != nil || d.result.Kind == KindFeed || d.result.Kind == KindHTML {
				return err
			}
		case xml.EndElement:
			d.end()
		case xml.CharData:
			if err := d.text(t); err != nil {
				return err
			}
		case xml.Directive:
			return errDoctype
		case xml.ProcInst:
			if t.Target == "xml" && begin > 0 {
				return malformed("has an XML declaration that is not at its very beginning")
			}
		}
	}
}

// explain says why the decoder ended; nil: at the document's end.
func (d *document) explain(err error) error {
	var syntax *xml.SyntaxError
	switch {
	case d.in.err != nil:
		return d.in.err
	case err == io.EOF && d.rooted:
		return nil
	case err == io.EOF:
		return malformed("has no root element")
	case !errors.As(err, &syntax):
		return malformed("is not well-formed: " + err.Error())
	}
	d.line = syntax.Line
	if syntax.Msg == "invalid UTF-8" {
		return errUTF8
	}
	return malformed("is not well-formed: " + syntax.Msg)
}

func (d *document) start(t xml.StartElement) error {
	if err := d.names(t); err != nil {
		return err
	}
	f := frame{line: d.line}
	switch n := len(d.frames); {
	case n == maxDepth:
		return errDepth
	case n > 0:
		if parent := &d.frames[n-1]; parent.def != nil {
			f.def = d.child(parent, t.Name)
		}
	case d.rooted:
		return malformed("has a second root element")
	default:
		d.rooted = true
		if err := d.root(t.Name); err != nil || d.result.Kind == KindFeed {
			return err
		}
		f.def = elements[t.Name.Local]
	}
	d.frames = append(d.frames, f)
	if f.def != nil {
		d.begin(f.def, t)
	}
	return nil
}

// names checks what encoding/xml does not: that prefixes are declared, and attributes
// unique.
func (d *document) names(t xml.StartElement) error {
	if len(t.Attr) > maxAttributes {
		return errAttributes
	}
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
			d.spaces[a.Value] = true
		}
	}
	if len(d.spaces) > maxSpaces {
		return errSpaces
	}
	for i, a := range t.Attr {
		if a.Name.Space != "xmlns" && !d.declared(a.Name.Space) {
			return malformed("has the namespace prefix '" + shown(a.Name.Space) + "', which is not declared")
		}
		if slices.ContainsFunc(t.Attr[:i], func(b xml.Attr) bool { return a.Name == b.Name }) {
			return malformed("has an attribute twice in one element")
		}
	}
	if !d.declared(t.Name.Space) {
		return malformed("has the namespace prefix '" + shown(t.Name.Space) + "', which is not declared")
	}
	return nil
}

func (d *document) declared(space string) bool {
	return space == "" || space == d.own || space == spaceXML || d.spaces[space]
}

// root takes the root element. The error says that it is not one of a sitemap.
func (d *document) root(name xml.Name) error {
	if d.encoding != "" {
		d.add(Error, 1, "encoding", "declares the encoding %s; a sitemap must be UTF-8", shown(d.encoding))
	}
	switch name.Local {
	case "html":
		d.result.Kind = KindHTML
		return &flaw{"html", "is an HTML page, not a sitemap"}
	case "rss", "feed":
		d.result.Kind = KindFeed
		d.add(Warning, d.line, "feed-unchecked", "is an RSS or Atom feed, which is not checked")
		return nil
	case "urlset":
		d.result.Kind = KindURLSet
	case "sitemapindex":
		d.result.Kind = KindIndex
	default:
		return &flaw{"root", "has the root element '" + shown(name.Local) + "', not urlset or sitemapindex"}
	}
	if d.own = name.Space; d.own != space09 && d.own != space084 {
		d.add(Error, d.line, "namespace", "has a root element that is not in the namespace %s", space09)
	}
	return nil
}

// child is the definition of the element that has just begun in parent, or nil.
func (d *document) child(parent *frame, name xml.Name) *element {
	def, space := parent.def, d.own
	if def.space != "" {
		space = def.space
	}
	if name.Space == space {
		if i := slices.Index(def.children, name.Local); i >= 0 {
			d.place(parent, i)
			if def.space == spaceImage {
				return imageElements[name.Local]
			}
			return elements[name.Local]
		}
	}
	extensible := def.space == "" && def.children != nil && d.own != space084
	if !extensible || name.Space == space || name.Space == "" {
		return d.unknown(def, name)
	}
	if def.entry {
		parent.next = len(def.children)
	} else if parent.seen[0] {
		d.add(Error, d.line, "element-order", "has '%s' in '%s' after what must come later", shown(name.Local), def.name)
	}
	switch {
	case name.Space == spaceImage && name.Local == "image":
		return imageElements["image"]
	case name.Space == spaceImage:
		return d.unknown(def, name)
	case name.Space == spaceXHTML && name.Local == "link":
		return linkElement
	case !slices.Contains(unchecked, name.Space):
		d.once(Warning, d.line, "unknown-extension", "has '%s' of a namespace that this check does not know", shown(name.Local))
	}
	return nil
}

func (d *document) unknown(parent *element, name xml.Name) *element {
	d.about(d.entry.loc, Error, d.line, "unknown-element", "has '%s' in '%s', which the schema does not allow", shown(name.Local), parent.name)
	return nil
}

// place checks the position of child i in its parent. In 0.84 it is free.
func (d *document) place(parent *frame, i int) {
	def := parent.def
	switch {
	case parent.seen[i] && !def.repeats:
		d.about(d.entry.loc, Error, d.line, "repeated-element", "has '%s' in '%s' more often than allowed", def.children[i], def.name)
	case i < parent.next && d.own != space084:
		d.about(d.entry.loc, Error, d.line, "element-order", "has '%s' in '%s' after what must come later", def.children[i], def.name)
	}
	parent.seen[i] = true
	parent.next = max(parent.next, i)
}

// begin begins an element with a definition.
func (d *document) begin(def *element, t xml.StartElement) {
	d.value = d.value[:0]
	d.textLine, _ = d.xml.InputPos()
	if def.entry {
		d.entry = entry{}
		d.count()
	}
	switch {
	case def == linkElement:
		d.link(t.Attr)
		return
	case def.space == spaceImage && def.name == "image":
		if d.entry.images++; d.entry.images == maxImages+1 {
			d.about(d.entry.loc, Error, d.line, "too-many-images", "has more than 1,000 images")
		}
	case def.space == spaceImage && def.name != "loc":
		d.once(Warning, d.line, "obsolete-element", "has '%s' in an image, which engines no longer read", def.name)
	}
	for _, a := range t.Attr {
		if n := a.Name; n.Space != "xmlns" && n.Local != "xmlns" && n.Space != spaceXSI {
			d.about(d.entry.loc, Error, d.line, "unknown-attribute", "has '%s' with the attribute '%s', which the schema does not allow", def.name, shown(n.Local))
		}
	}
}

// link checks an alternate version of a page.
func (d *document) link(attributes []xml.Attr) {
	values := make(map[string]string)
	for _, a := range attributes {
		if a.Name.Space == "" {
			values[a.Name.Local] = a.Value
		}
	}
	if trim(values["rel"]) != "alternate" {
		d.about(d.entry.loc, Error, d.line, "alternate", "has a link whose rel is not 'alternate'")
	}
	if lang, ok := values["hreflang"]; !ok {
		d.about(d.entry.loc, Error, d.line, "alternate", "has a link without hreflang")
	} else if message := languageError(trim(lang)); message != "" {
		d.about(d.entry.loc, Error, d.line, "attribute-value", "has 'link' with 'hreflang' \"%s\" that %s", shown(lang), message)
	}
	if _, bad := parseURL(trim(values["href"])); bad != nil {
		d.about(d.entry.loc, Error, d.line, "alternate", "has a link whose href %s", bad.message)
	}
}

// text takes a piece of text.
func (d *document) text(t []byte) error {
	trimmed := bytes.TrimLeft(t, " \t\r\n")
	if len(d.frames) == 0 {
		if len(trimmed) > 0 {
			return malformed("has text outside of its root element")
		}
		return nil
	}
	def := d.frames[len(d.frames)-1].def
	switch {
	case def == nil:
	case def.text && len(d.value)+len(t) > maxToken:
		return errTokenSize
	case def.text:
		d.value = append(d.value, t...)
	case len(trimmed) > 0:
		line := d.line + bytes.Count(t[:len(t)-len(trimmed)], []byte("\n"))
		d.about(d.entry.loc, Error, line, "unexpected-text", "has text in '%s', where none may be", def.name)
	}
	return nil
}

// end ends the innermost element.
func (d *document) end() {
	f := d.frames[len(d.frames)-1]
	d.frames = d.frames[:len(d.frames)-1]
	if f.def == nil {
		return
	}
	if f.def.children != nil && !f.seen[0] {
		d.about(d.entry.loc, Error, f.line, "missing-element", "has '%s' without '%s'", f.def.name, f.def.children[0])
	}
	value, message := string(d.value), ""
	switch {
	case f.def.entry:
		d.endEntry()
	case f.def.space == spaceImage:
		if _, bad := parseURL(trim(value)); f.def.name == "loc" && bad != nil {
			d.about(d.entry.loc, Error, d.valueLine(), "extension-url", "has a loc \"%s\" of an image that %s", shown(value), bad.message)
		}
	case f.def.name == "loc":
		d.loc(value)
	case f.def.name == "lastmod":
		d.lastMod(value)
	case f.def.name == "changefreq":
		message = changeFreqError(value)
	case f.def.name == "priority":
		message = priorityError(value)
	}
	if message != "" {
		d.about(d.entry.loc, Error, d.valueLine(), f.def.name, "has a %s \"%s\" that %s", f.def.name, shown(value), message)
	}
}
