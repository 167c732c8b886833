package check

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

// document is the check of one document.
type document struct {
	*findings
	c      *Checker
	in     *input
	tokens *tokenizer
	result Result
	scope  *scope
	own    namespace // of the root, and of the protocol's elements
	frames []frame
	value  []byte // text of the element being read
	entry  entry
	dates  dates
	news   int // in the document
}

// frame is an open element.
type frame struct {
	def  *element // nil: passed over
	line int
	next int    // the first of the definition's children that may come
	seen uint32 // which came
	many int    // how many of the last
}

// entry is the page or child being read.
type entry struct {
	loc     []byte
	locLine int
	usable  bool // the loc is a URL
	lastMod []byte
	images  int
}

// dates is what the entries' lastmods have in common.
type dates struct {
	now    int64
	newest int64
	found  bool
	first  []byte // the first one
	same   int    // how many are like it
	last   []byte // the last valid one
	at     int64  // its time
	form   dateForm
}

// run checks the document. The error is one of the reader.
func (d *document) run() error {
	err := d.read()
	d.result.Bytes = d.in.total
	if flaw := flaw(""); errors.As(err, &flaw) {
		d.say(Error, d.tokens.line(), codeOf(flaw), "%s", flaw.Error())
		err = nil
	}
	if d.in.total > maxDocument {
		d.say(Error, 0, "too-long", "has more than 52,428,800 bytes uncompressed")
	}
	d.complete()
	d.rest()
	return err
}

func (d *document) read() error {
	w := &d.tokens.window
	switch {
	case !w.has(1):
		if w.err != io.EOF {
			return w.err
		}
		d.say(Error, 0, "empty", "is empty")
		return nil
	case d.foreign():
		return nil
	}
	if strings.HasSuffix(d.file, ".gz") && !d.in.compressed() {
		d.say(Warning, 0, "gzip-name", "is named .gz, but is not compressed")
	}
	if w.has(3) && string(w.rest()[:3]) == "\uFEFF" {
		w.pos += 3
	}
	if d.isXML() {
		return d.xml()
	}
	return d.list()
}

// foreign reports whether the document is in an encoding that no reader takes.
func (d *document) foreign() bool {
	w := &d.tokens.window
	w.has(4)
	head := w.rest()[:min(4, len(w.rest()))]
	for _, mark := range []string{"\xFE\xFF", "\xFF\xFE", "<\x00", "\x00<"} {
		if bytes.HasPrefix(head, []byte(mark)) {
			d.say(Error, 1, "encoding", "is in UTF-16, not in UTF-8")
			return true
		}
	}
	if d.in.compressed() && bytes.HasPrefix(head, []byte("\x1f\x8b")) {
		d.say(Error, 0, "gzip-twice", "is compressed twice")
		return true
	}
	return false
}

// isXML reports whether the first that is no white space is "<".
func (d *document) isXML() bool {
	w := &d.tokens.window
	for i := 0; i < firstWindow/2 && w.has(i+1); i++ {
		if c := w.rest()[i]; !isSpace(c) {
			return c == '<'
		}
	}
	return true
}

// isHTML reports whether the document is what servers send instead of one.
func (d *document) isHTML() bool {
	w := &d.tokens.window
	w.has(512)
	head := bytes.ToLower(bytes.TrimLeft(w.rest()[:min(512, len(w.rest()))], " \t\r\n"))
	return bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html"))
}

func (d *document) html(line int) {
	d.result.Kind = KindHTML
	d.say(Error, line, "html", "is an HTML page, not a sitemap")
}

func (d *document) xml() error {
	if d.isHTML() {
		d.html(1)
		return nil
	}
	for {
		kind, err := d.tokens.next()
		if err != nil {
			return err
		}
		switch kind {
		case tokenStart:
			if len(d.frames) == 0 && !d.root() {
				return nil
			}
			d.start()
		case tokenText:
			if err := d.text(); err != nil {
				return err
			}
		case tokenEnd:
			d.end()
		case tokenEOF:
			return nil
		}
	}
}

// root takes the root element, and reports whether it is one of a sitemap.
func (d *document) root() bool {
	d.encoding()
	n := d.tokens.name
	d.own = n.space
	switch string(n.local) {
	case "html":
		d.html(d.tokens.line())
		return false
	case "rss":
		d.result.Kind = KindRSS
	case "feed":
		d.result.Kind = KindAtom
		if n.space.known != spaceAtom {
			d.say(Error, d.tokens.line(), "namespace", "has a feed that is not in the namespace of Atom 1.0")
		}
	case KindURLSet.String():
		d.result.Kind = KindURLSet
		d.schema()
	case KindIndex.String():
		d.result.Kind = KindIndex
		d.schema()
	default:
		d.say(Error, d.tokens.line(), "root", "has the root element '%s', not urlset or sitemapindex", shown(n.local))
		return false
	}
	return true
}

func (d *document) encoding() {
	switch name := strings.ToLower(d.tokens.encoding); name {
	case "", "utf-8":
	default:
		d.say(Error, 1, "encoding", "says that its encoding is %s; a sitemap must be UTF-8", shown([]byte(name)))
	}
}

// schema takes the schema that the root's namespace says.
func (d *document) schema() {
	want := d.c.options.Schema
	switch d.own.known {
	case space09:
	case space084:
		d.result.Schema = sitemapxml.Schema084
	default:
		if want != nil {
			d.result.Schema = *want
		}
		d.say(Error, d.tokens.line(), "namespace", "has a root element that is not in the namespace %s", d.result.Schema.Namespace())
		return
	}
	if want != nil && *want != d.result.Schema {
		d.say(Error, d.tokens.line(), "schema", "follows schema %s, not %s", d.result.Schema, *want)
	}
}

// start begins an element.
func (d *document) start() {
	if len(d.frames) == 0 {
		d.open(rootOf(d.result.Kind, d.result.Schema))
		return
	}
	parent := &d.frames[len(d.frames)-1]
	if parent.def == nil {
		d.frames = append(d.frames, frame{})
		return
	}
	d.open(d.child(parent))
}

// open begins an element with a definition, or nil.
func (d *document) open(def *element) {
	f := frame{def: def}
	if def == nil {
		d.frames = append(d.frames, f)
		return
	}
	if def.children != nil {
		f.line = d.tokens.line()
	}
	d.frames = append(d.frames, f)
	d.value = d.value[:0]
	if def.others != othersAny && (len(d.tokens.attributes) > 0 || def.attributes != nil) {
		d.attributes(def)
	}
	switch def.role {
	case roleEntry:
		d.beginEntry()
	case roleImage:
		if d.entry.images++; d.entry.images == 1001 {
			d.about(d.entry.loc, Error, d.tokens.line(), "too-many-images", "has more than 1,000 images")
		}
	case roleNews:
		if d.news++; d.news == 1001 {
			d.say(Error, d.tokens.line(), "too-many-news", "has more than 1,000 news")
		}
	case roleLink:
		d.link()
	case roleAtomLink:
		d.atomLink()
	}
	if def.obsolete {
		d.once(Warning, d.tokens.line(), "obsolete-element", "has '%s' in an image, which engines no longer read", def.name)
	}
}

// child is the definition of the element that has just begun in parent, or nil.
func (d *document) child(parent *frame) *element {
	n := d.tokens.name
	def := parent.def
	if d.own == n.space || def.space != spaceNone {
		for i := parent.next; i < len(def.children); i++ {
			if d.is(def.children[i], n) {
				return d.follow(parent, i)
			}
		}
		for i := range parent.next {
			if i < len(def.children) && d.is(def.children[i], n) {
				return d.late(parent, i)
			}
		}
	}
	return d.other(parent, n)
}

func (d *document) is(e *element, n name) bool {
	if string(n.local) != e.name {
		return false
	}
	if e.space == spaceNone {
		return n.space == d.own
	}
	return n.space.known == e.space
}

// follow takes child i of parent, which is none too late.
func (d *document) follow(parent *frame, i int) *element {
	child := parent.def.children[i]
	bit := uint32(1) << i
	again := parent.seen&bit != 0
	if !again {
		parent.seen |= bit
		parent.many = 0
	}
	if !parent.def.anyOrder {
		parent.next = i
	}
	parent.many++
	if again && child.max >= 0 && (child.max == 0 || parent.many > child.max) {
		d.twice(parent, child)
	}
	return child
}

// late takes child i of parent, after which others came.
func (d *document) late(parent *frame, i int) *element {
	child := parent.def.children[i]
	bit := uint32(1) << i
	if parent.seen&bit != 0 && child.max >= 0 {
		d.twice(parent, child)
		return child
	}
	parent.seen |= bit
	d.about(d.entry.loc, Error, d.tokens.line(), "element-order", "has '%s' in '%s' after what must come later", child.name, parent.def.name)
	return child
}

func (d *document) twice(parent *frame, child *element) {
	d.about(d.entry.loc, Error, d.tokens.line(), "repeated-element", "has '%s' in '%s' more often than allowed", child.name, parent.def.name)
}

// other is the definition of an element that is none of parent's own, or nil.
func (d *document) other(parent *frame, n name) *element {
	def := parent.def
	switch {
	case def.others == othersAny:
		return nil
	case def.others == othersNone, n.space == d.own, n.space.known == spaceNone:
		d.unknown(def, n)
		return nil
	case def.others == othersAfter:
		parent.next = len(def.children)
	case parent.seen != 0: // othersFirst
		d.say(Error, d.tokens.line(), "element-order", "has '%s' in '%s' after what must come later", shown(n.local), def.name)
	}
	e, known := extension(n)
	switch {
	case known && e == nil:
		d.unknown(def, n)
	case !known:
		d.once(Warning, d.tokens.line(), "unknown-extension", "has '%s' of a namespace that this check does not know", shown(n.local))
	}
	return e
}

func (d *document) unknown(parent *element, n name) {
	d.about(d.entry.loc, Error, d.tokens.line(), "unknown-element", "has '%s' in '%s', which the schema does not allow", shown(n.local), parent.name)
}

func (d *document) attributes(def *element) {
	for _, a := range d.tokens.attributes {
		d.attribute(def, a)
	}
	for _, r := range def.attributes {
		if r.required && d.attributeValue(r.name) == nil {
			d.say(Error, d.tokens.line(), "missing-attribute", "has '%s' without '%s'", def.name, r.name)
		}
	}
}

func (d *document) attribute(def *element, a attribute) {
	if a.name.space.known == spaceInstance && isHint(a.name.local) {
		return
	}
	if def.role == roleLink && a.name.space.known == spaceXML && string(a.name.local) == "lang" {
		return
	}
	if a.name.space.known == spaceNone {
		for _, r := range def.attributes {
			if string(a.name.local) != r.name {
				continue
			}
			if message := r.rule(a.value); message != "" {
				d.about(d.entry.loc, Error, d.tokens.line(), "attribute-value", "has '%s' with '%s' \"%s\" that %s", def.name, r.name, shown(a.value), message)
			}
			return
		}
	}
	d.about(d.entry.loc, Error, d.tokens.line(), "unknown-attribute", "has '%s' with the attribute '%s', which the schema does not allow", def.name, shown(a.raw))
}

// isHint reports whether an attribute of XML Schema tells where schemas are.
func isHint(local []byte) bool {
	return string(local) == "schemaLocation" || string(local) == "noNamespaceSchemaLocation"
}

// attributeValue is that of the element that has just begun, or nil.
func (d *document) attributeValue(local string) []byte {
	for _, a := range d.tokens.attributes {
		if a.name.space.known == spaceNone && string(a.name.local) == local {
			return a.value
		}
	}
	return nil
}

// link checks an alternate version of a page.
func (d *document) link() {
	line := d.tokens.line()
	if rel := d.attributeValue("rel"); string(trimSpace(rel)) != "alternate" {
		d.about(d.entry.loc, Error, line, "alternate", "has a link whose rel is not 'alternate'")
	}
	if d.attributeValue("hreflang") == nil {
		d.about(d.entry.loc, Error, line, "alternate", "has a link without hreflang")
	}
	if _, flaw := parseAddress(trimSpace(d.attributeValue("href"))); flaw != nil {
		d.about(d.entry.loc, Error, line, "alternate", "has a link whose href %s", flaw.message)
	}
}

// atomLink takes the URL of an entry: a link without rel is an alternate (RFC 4287,
// section 4.2.7.2).
func (d *document) atomLink() {
	rel := d.attributeValue("rel")
	if len(d.entry.loc) > 0 || rel != nil && string(rel) != "alternate" {
		return
	}
	d.value = append(d.value[:0], d.attributeValue("href")...)
	d.loc()
}

// text takes a piece of text.
func (d *document) text() error {
	f := &d.frames[len(d.frames)-1]
	if f.def == nil {
		return nil
	}
	text := d.tokens.text
	if len(text) == 0 {
		return nil
	}
	switch f.def.role {
	case roleText, roleURL, roleLoc, roleLastMod, roleNewsDate:
		if len(d.value)+len(text) > maxToken {
			return errTokenSize
		}
		d.value = append(d.value, text...)
		return nil
	case roleNothing, roleLink:
	default:
		if allSpace(text) || f.def.others == othersAny {
			return nil
		}
	}
	line := d.tokens.line() + bytes.Count(text[:len(text)-len(bytes.TrimLeft(text, " \t\r\n"))], newline)
	d.about(d.entry.loc, Error, line, "unexpected-text", "has text in '%s', where none may be", f.def.name)
	return nil
}

// end ends the innermost element.
func (d *document) end() {
	f := d.frames[len(d.frames)-1]
	d.frames = d.frames[:len(d.frames)-1]
	def := f.def
	if def == nil {
		return
	}
	if def.children != nil {
		d.missing(f)
	}
	switch def.role {
	case roleLoc:
		d.loc()
	case roleLastMod:
		d.lastMod()
	case roleNewsDate:
		d.ruled(def)
		d.newsDate()
	case roleText:
		d.ruled(def)
	case roleURL:
		if _, flaw := parseAddress(trimSpace(d.value)); flaw != nil {
			d.about(d.entry.loc, Error, d.valueLine(), "extension-url", "has a %s \"%s\" that %s", def.name, shown(d.value), flaw.message)
		}
	case roleEntry:
		d.endEntry()
	}
}

func (d *document) missing(f frame) {
	for i, child := range f.def.children {
		if child.required && f.seen&(1<<i) == 0 {
			d.about(d.entry.loc, Error, f.line, "missing-element", "has '%s' without '%s'", f.def.name, child.name)
		}
	}
}

// ruled checks the text of an element by its rule.
func (d *document) ruled(def *element) {
	message := def.rule(d.value)
	if message == "" {
		return
	}
	code := "extension-value"
	if def.space == spaceNone {
		code = def.name
	}
	d.about(d.entry.loc, Error, d.valueLine(), code, "has a %s \"%s\" that %s", def.name, shown(d.value), message)
}

// valueLine is the line where the value that has just ended begins.
func (d *document) valueLine() int {
	space := len(d.value) - len(bytes.TrimLeft(d.value, " \t\r\n"))
	return d.tokens.line() - bytes.Count(d.value[space:], newline)
}

// complete checks what the whole document says.
func (d *document) complete() {
	d.sameDates()
	if d.c.seen.full {
		d.once(Warning, 0, "duplicates-unknown", "has more entries than are remembered, so later duplicates are not found")
	}
	if d.dates.found {
		d.result.NewestLastMod = time.Unix(d.dates.newest, 0).UTC()
	}
}
