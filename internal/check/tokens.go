package check

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"
	"unicode/utf8"
)

const (
	maxDepth      = 256
	maxName       = 1024
	maxAttributes = 128
	maxBindings   = 256 // namespace declarations in force
)

// flaw is why a document is not well-formed, or goes beyond a bound.
type flaw string

func (f flaw) Error() string { return string(f) }

// What ends the reading of a document.
const (
	errTokenSize    flaw = "a tag, text or comment is longer than 1 MiB"
	errDepth        flaw = "elements are nested more than 256 deep"
	errName         flaw = "a name is longer than 1,024 bytes"
	errAttributes   flaw = "an element has more than 128 attributes"
	errBindings     flaw = "has more than 256 namespace declarations within each other"
	errDoctype      flaw = "has a document type declaration, which readers refuse because its entities can be abused"
	errControl      flaw = "has a character that XML does not allow, such as NUL"
	errUTF8         flaw = "has bytes that are not UTF-8"
	errEnd          flaw = "ends too early"
	errEndTag       flaw = "has an end tag that does not match the element that is open"
	errTag          flaw = "has a tag that is not well-formed"
	errNoSpace      flaw = "has attributes without white space between them"
	errTwice        flaw = "has an attribute twice in one element"
	errValue        flaw = "has an attribute that is not well-formed"
	errEntity       flaw = "has an '&' that begins none of &amp; &lt; &gt; &quot; &apos; and no character reference"
	errReference    flaw = "has a reference to a character that XML does not allow"
	errBrackets     flaw = "has ']]>' in text"
	errComment      flaw = "has a comment that is not well-formed"
	errInstruction  flaw = "has a processing instruction that is not well-formed"
	errDeclaration  flaw = "has an XML declaration that is not well-formed"
	errLate         flaw = "has an XML declaration that is not at its very beginning"
	errMarkup       flaw = "has '<!' that begins neither a comment nor a CDATA section"
	errOutside      flaw = "has text outside of its root element"
	errSecondRoot   flaw = "has a second root element"
	errPrefix       flaw = "has a namespace prefix that is not declared"
	errNamespace    flaw = "has a namespace declaration that is not allowed"
	errEmptyDoc     flaw = "has no root element"
	errVersionOther flaw = "is XML of another version than 1.0"
)

// codeOf is the code of the finding that a flaw is.
func codeOf(f flaw) string {
	switch f {
	case errTokenSize, errDepth, errName, errAttributes, errBindings, errTooMuch, errBomb:
		return "too-large"
	case errDoctype:
		return "doctype"
	case errUTF8:
		return "not-utf-8"
	case errTruncated, errCorrupt, errTrailing:
		return "gzip"
	}
	return "not-well-formed"
}

type tokenKind uint8

const (
	tokenEnd   tokenKind = iota + 1 // of an element
	tokenStart                      // of an element
	tokenText                       // in an element
	tokenEOF                        // the document is complete
)

// name is that of an element or attribute, with its namespace.
type name struct {
	space namespace
	local []byte
}

type attribute struct {
	raw   []byte // with prefix
	name  name
	value []byte
}

// tokenizer reads XML 1.0 with namespaces, in UTF-8 and without document type
// declarations. It is strict. What it hands out is valid until the next token.
type tokenizer struct {
	window

	// The token. Text may come in several pieces.
	name       name
	attributes []attribute
	text       []byte

	encoding string // as declared; "": not

	open     []byte // names of the open elements, one after the other
	begins   []int  // where each begins in open
	bindings []binding
	space    namespace // without a prefix
	closing  bool      // an empty-element tag was just handed out as tokenStart
	rooted   bool      // the root element has begun
	begun    bool
	scratch  []byte
	seed     maphash.Seed
}

// binding is a namespace declaration.
type binding struct {
	depth  int
	prefix string
	space  namespace
}

func newTokenizer(r io.Reader, seed maphash.Seed) *tokenizer {
	return &tokenizer{window: newWindow(r), seed: seed}
}

// depth is how many elements are open.
func (t *tokenizer) depth() int { return len(t.begins) }

// next reads a token. An error is a flaw or one of the reader, and final. Its line is
// that of the window.
func (t *tokenizer) next() (tokenKind, error) {
	if !t.begun {
		t.begun = true
		if err := t.declaration(); err != nil {
			return 0, err
		}
	}
	if t.closing {
		t.closing = false
		t.pop()
		return tokenEnd, nil
	}
	for {
		t.begin()
		if !t.has(1) {
			return t.atEnd()
		}
		if t.buf[t.pos] != '<' {
			if err := t.readText(); err != nil {
				return 0, err
			}
			if t.depth() > 0 {
				return tokenText, nil
			}
			continue
		}
		if !t.has(2) {
			return 0, t.cut()
		}
		switch c := t.buf[t.pos+1]; c {
		case '/':
			return tokenEnd, t.endTag()
		case '?':
			if err := t.instruction(); err != nil {
				return 0, err
			}
		case '!':
			kind, err := t.exclamation()
			if err != nil || kind != 0 {
				return kind, err
			}
		default:
			return tokenStart, t.startTag()
		}
	}
}

func (t *tokenizer) atEnd() (tokenKind, error) {
	switch {
	case t.err != io.EOF:
		return 0, t.err
	case t.depth() > 0:
		return 0, errEnd
	case !t.rooted:
		return 0, errEmptyDoc
	}
	return tokenEOF, nil
}

// cut is the error of a token that has no end.
func (t *tokenizer) cut() error {
	if t.err == io.EOF {
		return errEnd
	}
	return t.err
}

func (t *tokenizer) readText() error {
	n := t.indexByte('<', 0)
	if n < 0 {
		if !errors.Is(t.err, io.EOF) {
			return t.err
		}
		n = len(t.rest())
	}
	raw := t.rest()[:n]
	if t.depth() == 0 {
		if !allSpace(raw) {
			return t.outside(raw)
		}
		t.pos += n
		return nil
	}
	text, err := t.decode(raw)
	if err != nil {
		return err
	}
	t.text = text
	t.pos += n
	return nil
}

// outside says what is wrong with text that no element holds.
func (t *tokenizer) outside(raw []byte) error {
	if err := validChars(raw); err != nil {
		return err
	}
	return errOutside
}

// decode is raw text with references replaced and line ends made one. Where nothing
// changes it is raw itself.
func (t *tokenizer) decode(raw []byte) ([]byte, error) {
	n := 0
	for n < len(raw) && bytesOf[raw[n]]&bytePlain != 0 {
		n++
	}
	if n == len(raw) {
		return raw, nil
	}
	if err := validChars(raw[n:]); err != nil {
		return nil, err
	}
	if bytes.Contains(raw[n:], []byte("]]>")) {
		return nil, errBrackets
	}
	if bytes.IndexByte(raw[n:], '&') < 0 && bytes.IndexByte(raw[n:], '\r') < 0 {
		return raw, nil
	}
	var err error
	t.scratch, err = appendDecoded(t.scratch[:0], raw)
	return t.scratch, err
}

// appendDecoded appends raw with references replaced and line ends made one.
func appendDecoded(dst, raw []byte) ([]byte, error) {
	for len(raw) > 0 {
		i := bytes.IndexAny(raw, "&\r")
		if i < 0 {
			return append(dst, raw...), nil
		}
		dst = append(dst, raw[:i]...)
		if raw[i] == '\r' {
			dst = append(dst, '\n')
			raw = bytes.TrimPrefix(raw[i+1:], newline)
			continue
		}
		var err error
		if dst, raw, err = appendReference(dst, raw[i:]); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// maxReference is more than any reference needs, leading zeros aside.
const maxReference = 64

// appendReference appends what the reference that raw begins with stands for, and
// returns what follows it.
func appendReference(dst, raw []byte) (appended, rest []byte, err error) {
	end := bytes.IndexByte(raw[:min(len(raw), maxReference)], ';')
	if end < 0 {
		return dst, nil, errEntity
	}
	switch body := raw[1:end]; string(body) {
	case "amp":
		dst = append(dst, '&')
	case "lt":
		dst = append(dst, '<')
	case "gt":
		dst = append(dst, '>')
	case "quot":
		dst = append(dst, '"')
	case "apos":
		dst = append(dst, '\'')
	default:
		r, err := character(body)
		if err != nil {
			return dst, nil, err
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, raw[end+1:], nil
}

// character reads "#65" or "#x41".
func character(body []byte) (rune, error) {
	if len(body) < 2 || body[0] != '#' {
		return 0, errEntity
	}
	base, digits := rune(10), body[1:]
	if digits[0] == 'x' {
		base, digits = 16, digits[1:]
	}
	if len(digits) == 0 {
		return 0, errEntity
	}
	var r rune
	for _, c := range digits {
		v := rune(hexValue(c))
		if v >= base {
			return 0, errEntity
		}
		r = min(r*base+v, 0x7FFFFF) // no character is so high
	}
	if !isChar(r) {
		return 0, errReference
	}
	return r, nil
}

// hexValue is that of a hexadecimal digit, and 255 of anything else.
func hexValue(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

func (t *tokenizer) endTag() error {
	depth := t.depth()
	if depth == 0 {
		return errEndTag
	}
	want := t.open[t.begins[depth-1]:]
	if rest := t.rest()[2:]; len(rest) > len(want) && rest[len(want)] == '>' && string(rest[:len(want)]) == string(want) {
		t.pop()
		t.pos += 2 + len(want) + 1
		return nil
	}
	n := t.indexByte('>', 2)
	if n < 0 {
		return t.cut()
	}
	tag := t.rest()[2:n]
	for len(tag) > 0 && isSpace(tag[len(tag)-1]) {
		tag = tag[:len(tag)-1]
	}
	if string(tag) != string(want) {
		return errEndTag
	}
	t.pop()
	t.pos += n + 1
	return nil
}

// pop closes the innermost element.
func (t *tokenizer) pop() {
	depth := t.depth()
	t.open = t.open[:t.begins[depth-1]]
	t.begins = t.begins[:depth-1]
	n := len(t.bindings)
	if n == 0 || t.bindings[n-1].depth < depth {
		return
	}
	for n > 0 && t.bindings[n-1].depth == depth {
		n--
	}
	t.bindings = t.bindings[:n]
	t.space, _ = t.bound("")
}

// bound is the namespace that a prefix stands for.
func (t *tokenizer) bound(prefix string) (namespace, bool) {
	for i := len(t.bindings) - 1; i >= 0; i-- {
		if t.bindings[i].prefix == prefix {
			return t.bindings[i].space, true
		}
	}
	switch prefix {
	case "":
		return namespace{}, true
	case "xml":
		return namespace{known: spaceXML}, true
	}
	return namespace{}, false
}

// startTag reads a start tag or an empty-element tag.
func (t *tokenizer) startTag() error {
	if t.depth() == 0 && t.rooted {
		return errSecondRoot
	}
	tag := t.rest()[1:]
	n, colon := nameLen(tag)
	if n == len(tag) || tag[n] != '>' { // not the whole of it, or with attributes
		end, err := t.tagEnd()
		if err != nil {
			return err
		}
		tag = t.rest()[1:end]
		n, colon = nameLen(tag)
	} else {
		tag = tag[:n]
	}
	switch {
	case n == 0:
		return errTag
	case n > maxName:
		return errName
	case t.depth() == maxDepth:
		return errDepth
	}
	t.rooted = true
	t.begins = append(t.begins, len(t.open))
	t.open = append(t.open, tag[:n]...)
	t.attributes = t.attributes[:0]
	if n < len(tag) {
		if err := t.afterName(tag[n:]); err != nil {
			return err
		}
	}
	t.name = name{space: t.space, local: tag[:n]}
	if colon >= 0 {
		space, ok := t.bound(string(tag[:colon]))
		if !ok {
			return errPrefix
		}
		t.name = name{space: space, local: tag[colon+1 : n]}
	}
	t.pos += len("<") + len(tag) + len(">")
	return nil
}

// tagEnd is where the ">" is that ends the tag at pos: values may have some, too.
func (t *tokenizer) tagEnd() (int, error) {
	end := -1
	for i := 1; ; i++ {
		if end < i {
			end = t.indexByte('>', i)
		}
		if end < 0 {
			return 0, t.cut()
		}
		quote := bytes.IndexAny(t.rest()[i:end], `"'`)
		if quote < 0 {
			return end, nil
		}
		quote += i
		if i = t.indexByte(t.rest()[quote], quote+1); i < 0 {
			return 0, t.cut()
		}
	}
}

// afterName reads what a start tag has after its name.
func (t *tokenizer) afterName(rest []byte) error {
	if rest[len(rest)-1] == '/' {
		t.closing = true
		rest = rest[:len(rest)-1]
	}
	t.scratch = t.scratch[:0]
	declares := false
	for {
		trimmed := bytes.TrimLeft(rest, " \t\r\n")
		if len(trimmed) == 0 {
			break
		}
		if len(trimmed) == len(rest) {
			if len(t.attributes) == 0 {
				return errTag
			}
			return errNoSpace
		}
		if len(t.attributes) == maxAttributes {
			return errAttributes
		}
		var a attribute
		var err error
		if a, rest, err = t.attribute(trimmed); err != nil {
			return err
		}
		declares = declares || bytes.HasPrefix(a.raw, []byte("xmlns"))
		t.attributes = append(t.attributes, a)
	}
	if declares {
		if err := t.declare(); err != nil {
			return err
		}
	}
	return t.resolve()
}

// attribute reads name="value".
func (t *tokenizer) attribute(b []byte) (attribute, []byte, error) {
	n, _ := nameLen(b)
	if n == 0 {
		return attribute{}, nil, errValue
	}
	if n > maxName {
		return attribute{}, nil, errName
	}
	a := attribute{raw: b[:n]}
	b = bytes.TrimLeft(b[n:], " \t\r\n")
	if len(b) == 0 || b[0] != '=' {
		return a, nil, errValue
	}
	b = bytes.TrimLeft(b[1:], " \t\r\n")
	if len(b) == 0 || b[0] != '"' && b[0] != '\'' {
		return a, nil, errValue
	}
	end := bytes.IndexByte(b[1:], b[0])
	if end < 0 {
		return a, nil, errValue
	}
	raw := b[1 : 1+end]
	b = b[2+end:]
	if err := validChars(raw); err != nil {
		return a, nil, err
	}
	if bytes.IndexByte(raw, '<') >= 0 {
		return a, nil, errValue
	}
	from := len(t.scratch)
	var err error
	t.scratch, err = appendDecoded(t.scratch, raw)
	a.value = t.scratch[from:len(t.scratch):len(t.scratch)]
	return a, b, err
}

const (
	xmlSpace   = "http://www.w3.org/XML/1998/namespace"
	xmlnsSpace = "http://www.w3.org/2000/xmlns/"
)

// declare takes the namespace declarations of the element that has just begun.
func (t *tokenizer) declare() error {
	for _, a := range t.attributes {
		prefix, ok := declared(a.raw)
		if !ok {
			continue
		}
		uri := string(a.value)
		switch {
		case prefix == "xml" && uri == xmlSpace:
			continue
		case prefix == "xml", prefix == "xmlns", uri == xmlSpace, uri == xmlnsSpace,
			prefix != "" && uri == "":
			return errNamespace
		}
		if len(t.bindings) == maxBindings {
			return errBindings
		}
		t.bindings = append(t.bindings, binding{t.depth(), prefix, t.namespaceOf(uri)})
	}
	t.space, _ = t.bound("")
	return nil
}

// declared is the prefix that an attribute named raw declares.
func declared(raw []byte) (prefix string, ok bool) {
	if string(raw) == "xmlns" {
		return "", true
	}
	rest, ok := bytes.CutPrefix(raw, []byte("xmlns:"))
	return string(rest), ok
}

// resolve finds the namespaces of attributes, of which none may come twice.
func (t *tokenizer) resolve() error {
	kept := t.attributes[:0]
	for i := range t.attributes {
		a := &t.attributes[i]
		for j := range i {
			if bytes.Equal(t.attributes[j].raw, a.raw) {
				return errTwice
			}
		}
		a.name.local = a.raw
		colon := bytes.IndexByte(a.raw, ':')
		if colon < 0 {
			continue
		}
		prefix := string(a.raw[:colon])
		if prefix == "xmlns" {
			continue
		}
		space, ok := t.bound(prefix)
		if !ok {
			return errPrefix
		}
		a.name = name{space: space, local: a.raw[colon+1:]}
	}
	for _, a := range t.attributes {
		if _, ok := declared(a.raw); ok {
			continue
		}
		for _, b := range kept {
			if a.name.space == b.name.space && bytes.Equal(a.name.local, b.name.local) {
				return errTwice
			}
		}
		kept = append(kept, a)
	}
	t.attributes = kept
	return nil
}

// declaration reads "<?xml …?>", which can be at the very beginning alone.
func (t *tokenizer) declaration() error {
	if !t.has(6) || !bytes.HasPrefix(t.rest(), []byte("<?xml")) || !isSpace(t.buf[t.pos+5]) {
		return nil
	}
	end := t.index("?>", 5)
	if end < 0 {
		return t.cut()
	}
	rest := t.rest()[5:end]
	t.scratch = t.scratch[:0]
	for i, want := range [...]string{"version", "encoding", "standalone"} {
		trimmed := bytes.TrimLeft(rest, " \t\r\n")
		if len(trimmed) == len(rest) || !bytes.HasPrefix(trimmed, []byte(want)) {
			if i == 0 {
				return errDeclaration
			}
			continue
		}
		a, after, err := t.attribute(trimmed)
		if err != nil || string(a.raw) != want {
			return errDeclaration
		}
		switch value := string(a.value); {
		case i == 0 && value != "1.0":
			return errVersionOther
		case i == 1 && (value == "" || len(value) > 40):
			return errDeclaration
		case i == 1:
			t.encoding = value
		case i == 2 && value != "yes" && value != "no":
			return errDeclaration
		}
		rest = after
	}
	if !allSpace(rest) {
		return errDeclaration
	}
	t.pos += end + 2
	return nil
}

func (t *tokenizer) instruction() error {
	end := t.index("?>", 2)
	if end < 0 {
		return t.cut()
	}
	body := t.rest()[2:end]
	n, colon := nameLen(body)
	switch {
	case n == 0 || colon >= 0 || n < len(body) && !isSpace(body[n]):
		return errInstruction
	case bytes.EqualFold(body[:n], []byte("xml")):
		return errLate
	}
	if err := validChars(body); err != nil {
		return err
	}
	t.pos += end + 2
	return nil
}

const (
	commentStart = "<!--"
	cdataStart   = "<![CDATA["
	doctypeStart = "<!DOCTYPE"
)

// exclamation reads what begins with "<!". The kind is that of a CDATA section's
// text, or 0.
func (t *tokenizer) exclamation() (tokenKind, error) {
	switch {
	case t.follows(commentStart):
		return 0, t.comment()
	case t.follows(cdataStart):
		return t.cdata()
	case t.follows(doctypeStart):
		return 0, errDoctype
	case t.err != nil && len(t.rest()) < len(commentStart):
		return 0, t.cut()
	}
	return 0, errMarkup
}

func (t *tokenizer) follows(with string) bool {
	return t.has(len(with)) && string(t.rest()[:len(with)]) == with
}

func (t *tokenizer) comment() error {
	end := t.index("--", len(commentStart))
	if end < 0 || !t.has(end+3) {
		return t.cut()
	}
	if t.rest()[end+2] != '>' {
		return errComment
	}
	if err := validChars(t.rest()[:end]); err != nil {
		return err
	}
	t.pos += end + 3
	return nil
}

func (t *tokenizer) cdata() (tokenKind, error) {
	if t.depth() == 0 {
		return 0, errOutside
	}
	end := t.index("]]>", len(cdataStart))
	if end < 0 {
		return 0, t.cut()
	}
	raw := t.rest()[len(cdataStart):end]
	if err := validChars(raw); err != nil {
		return 0, err
	}
	t.text = raw
	if bytes.IndexByte(raw, '\r') >= 0 {
		t.scratch = appendLines(t.scratch[:0], raw)
		t.text = t.scratch
	}
	t.pos += end + 3
	return tokenText, nil
}

// appendLines appends raw with line ends made one.
func appendLines(dst, raw []byte) []byte {
	for {
		before, after, found := bytes.Cut(raw, []byte("\r"))
		dst = append(dst, before...)
		if !found {
			return dst
		}
		dst = append(dst, '\n')
		raw = bytes.TrimPrefix(after, newline)
	}
}
