package sitemapxml

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// Kind is which of the two documents one is.
type Kind uint8

// The two kinds.
const (
	KindURLSet Kind = iota + 1
	KindIndex
)

// String is the name of the document's root element, and "" for no kind.
func (k Kind) String() string {
	switch k {
	case KindURLSet:
		return "urlset"
	case KindIndex:
		return "sitemapindex"
	}
	return ""
}

// URL is an entry of a urlset, with what its elements say word for word: white
// space around it is still there, and no value has been checked.
type URL struct {
	Loc, LastMod, ChangeFreq, Priority string
	Line                               int // that the entry begins on, from 1
}

// Child is an entry of a sitemapindex, as [URL] is of a urlset.
type Child struct {
	Loc, LastMod string
	Line         int
}

// Info is what [Read] learned of a document.
type Info struct {
	Kind   Kind
	Schema Schema
	Count  int   // entries
	Bytes  int64 // read, after decompression
}

// Limits bounds what [Read] takes. The zero value of each field is its default.
type Limits struct {
	Bytes   int64 // of the document, uncompressed; 52,428,800 by default, as in the protocol
	Entries int   // 50,000 by default, as in the protocol
	Token   int   // bytes of one tag, text or comment; 65,536 by default
	Depth   int   // elements within each other; 16 by default
}

func (l Limits) withDefaults() Limits {
	set := func(n *int, to int) {
		if *n <= 0 {
			*n = to
		}
	}
	if l.Bytes <= 0 {
		l.Bytes = 52_428_800
	}
	set(&l.Entries, 50_000)
	set(&l.Token, 64<<10)
	set(&l.Depth, 16)
	return l
}

// Errors of [Read], which names a line in front of them.
var (
	ErrTooLong    = errors.New("the document is too long")
	ErrTooMany    = errors.New("the document has too many entries")
	ErrTokenSize  = errors.New("a tag or text is too long")
	ErrDepth      = errors.New("elements are nested too deep")
	ErrDTD        = errors.New("a document type declaration is not allowed")
	ErrStructure  = errors.New("not the structure of a sitemap")
	ErrIncomplete = errors.New("the document ends too early")
)

// Read reads a document of either kind and schema, plain or gzip, and calls onURL
// for each entry of a urlset or onChild for each of a sitemapindex, in order, as
// they come; nil is for who wants to count. An error of theirs ends the reading and
// is returned as it is.
//
// It is strict: the document must be well-formed UTF-8 without a document type
// declaration, its own elements must be those of the schema, once an entry and one
// loc each, while their order and values are not checked; elements of other
// namespaces are passed over. Any other error names the line where reading stopped;
// those of this package are [ErrTooLong] and the like, and what is not well-formed
// is an [*xml.SyntaxError].
func Read(r io.Reader, limits Limits, onURL func(URL) error, onChild func(Child) error) (Info, error) {
	d := &decoder{limits: limits.withDefaults(), onURL: onURL, onChild: onChild}
	err := d.open(r)
	if err == nil {
		err = d.document()
	}
	d.info.Bytes = d.in.total
	return d.info, err
}

// bounded is the byte reader beneath the XML decoder, which takes no more from it
// than it has decoded. So a token's length is known while it grows.
type bounded struct {
	r       *bufio.Reader
	total   int64 // bytes read
	max     int64
	token   int // bytes read since the last token
	maxText int
	err     error // why reading ended, if for a bound
}

func (b *bounded) ReadByte() (byte, error) {
	switch {
	case b.token >= b.maxText:
		b.err = ErrTokenSize
		return 0, b.err
	case b.total >= b.max:
		if _, err := b.r.Peek(1); err != nil {
			return 0, err
		}
		b.err = ErrTooLong
		return 0, b.err
	}
	c, err := b.r.ReadByte()
	if err == nil {
		b.total++
		b.token++
	}
	return c, err
}

// Read is there for xml.NewDecoder, which uses ReadByte alone.
func (b *bounded) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c, err := b.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = c
	return 1, nil
}

type decoder struct {
	limits  Limits
	onURL   func(URL) error
	onChild func(Child) error
	in      bounded
	xml     *xml.Decoder
	depth   int
	value   []byte // text of the element being read
	info    Info
}

func (d *decoder) open(r io.Reader) error {
	br := bufio.NewReader(r)
	if magic, _ := br.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(br)
		if err != nil {
			return fmt.Errorf("line 1: %w", cutShort(err))
		}
		br = bufio.NewReader(z)
	}
	if mark, _ := br.Peek(3); string(mark) == "\uFEFF" {
		_, _ = br.Discard(len(mark)) // they were peeked at
		d.in.total = int64(len(mark))
	}
	d.in.r, d.in.max, d.in.maxText = br, d.limits.Bytes, d.limits.Token
	d.xml = xml.NewDecoder(&d.in)
	return nil
}

// at names the line where reading stopped.
func (d *decoder) at(err error) error {
	line, _ := d.xml.InputPos()
	return fmt.Errorf("line %d: %w", line, err)
}

func (d *decoder) bad(format string, args ...any) error {
	return d.at(fmt.Errorf("%w: %s", ErrStructure, fmt.Sprintf(format, args...)))
}

// next is the next token that means something: no comments, and at the end io.EOF.
func (d *decoder) next() (xml.Token, error) {
	for {
		d.in.token = 0
		t, err := d.xml.Token()
		if err != nil {
			return nil, d.explain(err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			if d.depth++; d.depth > d.limits.Depth {
				return nil, d.at(ErrDepth)
			}
		case xml.EndElement:
			d.depth--
		case xml.Directive:
			return nil, d.at(ErrDTD)
		case xml.Comment, xml.ProcInst:
			continue
		case xml.CharData:
			if d.depth == 0 {
				if !isSpace(t) {
					return nil, d.bad("text outside of the root element")
				}
				continue
			}
		}
		return t, nil
	}
}

func (d *decoder) explain(err error) error {
	switch syntax := (*xml.SyntaxError)(nil); {
	case err == io.EOF:
		return io.EOF
	case d.in.err != nil:
		return d.at(d.in.err)
	case errors.As(err, &syntax):
		if syntax.Msg == "unexpected EOF" {
			return d.at(ErrIncomplete)
		}
		// Its own text names the line once more, as "XML syntax error on line 3: …".
		return err
	}
	return d.at(cutShort(err))
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrIncomplete
	}
	return err
}

func (d *decoder) document() error {
	root, err := d.next()
	if err == io.EOF {
		return d.at(ErrIncomplete)
	}
	if err != nil {
		return err
	}
	// Nothing but an element gets here at depth 0.
	name := root.(xml.StartElement).Name
	schema, ok := schemaOf(name.Space)
	if !ok {
		return d.bad("root element '%s' of namespace '%s'", name.Local, name.Space)
	}
	d.info.Schema = schema
	entry := "url"
	switch name.Local {
	case KindURLSet.String():
		d.info.Kind = KindURLSet
	case KindIndex.String():
		d.info.Kind, entry = KindIndex, "sitemap"
	default:
		return d.bad("root element '%s'", name.Local)
	}
	err = d.children(name, func(child xml.Name) error {
		if child.Local != entry {
			return d.bad("element '%s' in '%s'", child.Local, name.Local)
		}
		return d.entry(child)
	})
	if err != nil {
		return err
	}
	if _, err := d.next(); err == nil {
		return d.bad("something after the root element")
	} else if err != io.EOF {
		return err
	}
	return nil
}

// children calls each for every child of the schema's own namespace, up to the end
// of parent. Other children are passed over; text is an error.
func (d *decoder) children(parent xml.Name, each func(xml.Name) error) error {
	for {
		t, err := d.inside()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.EndElement:
			return nil
		case xml.CharData:
			if !isSpace(t) {
				return d.bad("text in '%s'", parent.Local)
			}
		case xml.StartElement:
			if t.Name.Space != d.info.Schema.Namespace() {
				err = d.skip()
			} else {
				err = each(t.Name)
			}
			if err != nil {
				return err
			}
		}
	}
}

// inside is next where the document cannot be at its end.
func (d *decoder) inside() (xml.Token, error) {
	t, err := d.next()
	if err == io.EOF {
		err = d.at(ErrIncomplete)
	}
	return t, err
}

// skip passes over the element that has just begun.
func (d *decoder) skip() error {
	for outer := d.depth - 1; d.depth > outer; {
		if _, err := d.inside(); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) entry(name xml.Name) error {
	if d.info.Count >= d.limits.Entries {
		return d.at(ErrTooMany)
	}
	d.info.Count++
	var u URL
	u.Line, _ = d.xml.InputPos()
	var seen [4]bool
	err := d.children(name, func(child xml.Name) error {
		var to *string
		field := 0
		switch child.Local {
		case "loc":
			to = &u.Loc
		case "lastmod":
			to, field = &u.LastMod, 1
		case "changefreq":
			to, field = &u.ChangeFreq, 2
		case "priority":
			to, field = &u.Priority, 3
		}
		if to == nil || field > 1 && d.info.Kind == KindIndex {
			return d.bad("element '%s' in '%s'", child.Local, name.Local)
		}
		if seen[field] {
			return d.bad("a second '%s' in '%s'", child.Local, name.Local)
		}
		seen[field] = true
		return d.text(child, to)
	})
	if err != nil {
		return err
	}
	if !seen[0] {
		return d.bad("no 'loc' in '%s'", name.Local)
	}
	switch {
	case d.info.Kind == KindURLSet && d.onURL != nil:
		return d.onURL(u)
	case d.info.Kind == KindIndex && d.onChild != nil:
		return d.onChild(Child{Loc: u.Loc, LastMod: u.LastMod, Line: u.Line})
	}
	return nil
}

// text reads the text of an element that has no children. Comments may cut it into
// pieces, so it has the bound of a token as a whole.
func (d *decoder) text(name xml.Name, to *string) error {
	d.value = d.value[:0]
	for {
		t, err := d.inside()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.EndElement:
			*to = string(d.value)
			return nil
		case xml.CharData:
			if len(d.value)+len(t) > d.limits.Token {
				return d.at(ErrTokenSize)
			}
			d.value = append(d.value, t...)
		default:
			return d.bad("an element in '%s'", name.Local)
		}
	}
}

func isSpace(text []byte) bool {
	for _, c := range text {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return false
		}
	}
	return true
}
