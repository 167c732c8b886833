package htmlmeta

import (
	"bytes"
	"html"

	"golang.org/x/net/html/atom"
)

// scanner splits HTML into tokens in place, at the same places as the tokenizer of
// golang.org/x/net/html. That one spends two thirds of the time that parsing takes here,
// most of it on copies of attributes that nobody reads.
type scanner struct {
	rest  []byte // not scanned yet
	token []byte // as written
	raw   bool   // the tag begins an element in which there are no tags; set by the caller

	// Of a tag:
	name       atom.Atom // 0: not one that HTML knows
	attributes []attribute
	closed     bool // it ends in a slash
}

type attribute struct{ name, value []byte } // as written

type tokenKind uint8

const (
	endOfInput tokenKind = iota
	textToken
	startTag
	endTag
	doctype
	comment // or what else is ignored
)

func (s *scanner) next() tokenKind {
	kind, n := textToken, 0
	if s.raw {
		n = rawTextEnd(s.rest, s.name)
		s.raw = false
	}
	if n == 0 {
		kind, n = s.scan(s.rest)
	}
	s.token, s.rest = s.rest[:n], s.rest[n:]
	return kind
}

func (s *scanner) scan(b []byte) (tokenKind, int) {
	if len(b) == 0 {
		return endOfInput, 0
	}
	if n := textEnd(b); n > 0 {
		return textToken, n
	}
	switch {
	case bytes.HasPrefix(b, []byte("<!--")):
		return comment, commentEnd(b)
	case len(b) >= 9 && bytes.EqualFold(b[:9], []byte("<!doctype")):
		return doctype, endAfter(b, '>')
	case isLetter(b[1]):
		return s.scanTag(b, 1, startTag)
	case b[1] == '/' && isLetter(b[2]):
		return s.scanTag(b, 2, endTag)
	}
	return comment, endAfter(b, '>')
}

// textEnd returns where the text ends with which b begins: before what looks like a tag.
func textEnd(b []byte) int {
	for i := 0; ; i++ {
		n := bytes.IndexByte(b[i:], '<')
		if i += n; n < 0 || i+1 == len(b) {
			return len(b)
		}
		if c := b[i+1]; isLetter(c) || c == '!' || c == '?' || c == '/' && i+2 < len(b) {
			return i
		}
	}
}

func endAfter(b []byte, c byte) int {
	if n := bytes.IndexByte(b, c); n >= 0 {
		return n + 1
	}
	return len(b)
}

// commentEnd returns where a comment ends: <!--> and <!---> are whole ones.
func commentEnd(b []byte) int {
	for i := len("<!"); ; i++ {
		n := bytes.Index(b[i:], []byte("--"))
		if n < 0 {
			return len(b)
		}
		i += n
		if rest := b[i+2:]; bytes.HasPrefix(rest, []byte(">")) {
			return i + len("-->")
		} else if i >= len("<!--") && bytes.HasPrefix(rest, []byte("!>")) {
			return i + len("--!>")
		}
	}
}

// rawTextEnd returns where the end tag of an element is that has only text in it. In a
// script, a comment may hold another script's tags
// (https://html.spec.whatwg.org/multipage/scripting.html#restrictions-for-contents-of-script-elements).
func rawTextEnd(b []byte, element atom.Atom) int {
	name := element.String()
	if element == atom.Plaintext {
		return len(b)
	}
	inComment, inScript := false, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '-' && inComment && bytes.HasPrefix(b[i:], []byte("-->")):
			inComment, inScript = false, false
		case c != '<' || i+1 == len(b):
		case b[i+1] == '!' && element == atom.Script && bytes.HasPrefix(b[i:], []byte("<!--")):
			inComment = true
		case b[i+1] == '/' && isName(b[i+2:], name):
			if !inScript {
				return i
			}
			inScript = false
		case inComment && isName(b[i+1:], name):
			inScript = true
		}
	}
	return len(b)
}

// isName reports whether a tag, without what it begins with, has that name.
func isName(tag []byte, name string) bool {
	return len(tag) > len(name) && endsName(tag[len(name)]) && bytes.EqualFold(tag[:len(name)], []byte(name))
}

// scanTag scans a tag whose name begins at i
// (https://html.spec.whatwg.org/multipage/parsing.html#before-attribute-name-state).
// One that does not end is ignored.
func (s *scanner) scanTag(b []byte, i int, kind tokenKind) (tokenKind, int) {
	start := i
	for i < len(b) && !endsName(b[i]) {
		i++
	}
	s.name = lookup(b[start:i])
	s.attributes = s.attributes[:0]
	for {
		start = i
		for i < len(b) && (isSpace(b[i]) || b[i] == '/') {
			i++
		}
		if i == len(b) {
			return endOfInput, i
		}
		if b[i] == '>' {
			s.closed = i > start && b[i-1] == '/'
			return kind, i + 1
		}
		start = i
		for i < len(b) && !endsName(b[i]) && (b[i] != '=' || i == start) {
			i++
		}
		a := attribute{name: b[start:i], value: b[i:i]}
		i = skipSpace(b, i)
		if i < len(b) && b[i] == '=' {
			a.value, i = scanValue(b, skipSpace(b, i+1))
		}
		s.attributes = append(s.attributes, a)
	}
}

// scanValue returns the value that begins at i, and where what follows begins.
func scanValue(b []byte, i int) ([]byte, int) {
	start := i
	if i < len(b) && (b[i] == '"' || b[i] == '\'') {
		n := bytes.IndexByte(b[i+1:], b[i])
		if n < 0 {
			return nil, len(b)
		}
		return b[i+1 : i+1+n], i + n + 2
	}
	for i < len(b) && b[i] != '>' && !isSpace(b[i]) {
		i++
	}
	return b[start:i], i
}

// rawAttribute returns the value of the tag's first attribute with a name, which is in
// lower case, as written; nil: there is none.
func (s *scanner) rawAttribute(name string) []byte {
	for _, a := range s.attributes {
		if len(a.name) == len(name) && bytes.EqualFold(a.name, []byte(name)) {
			return a.value
		}
	}
	return nil
}

// attribute is rawAttribute with character references decoded.
func (s *scanner) attribute(name string) []byte {
	value := s.rawAttribute(name)
	if bytes.IndexByte(value, '&') < 0 {
		return value
	}
	return unescape(nil, value)
}

// unescape appends s with its character references decoded. A name needs a semicolon
// behind it, as in a URL's query it may be a parameter's.
func unescape(dst, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, '&')
		if i < 0 {
			return append(dst, s...)
		}
		dst, s = append(dst, s[:i]...), s[i:]
		n := 1
		for n < len(s) && n < 40 && (isLetter(s[n]) || '0' <= s[n] && s[n] <= '9' || s[n] == '#') {
			n++
		}
		if n < len(s) && s[n] == ';' {
			n++
		}
		switch ref := s[:n]; {
		case string(ref) == "&amp;":
			dst = append(dst, '&')
		case string(ref) == "&lt;":
			dst = append(dst, '<')
		case string(ref) == "&gt;":
			dst = append(dst, '>')
		case ref[n-1] == ';' || n > 1 && ref[1] == '#':
			dst = append(dst, html.UnescapeString(string(ref))...)
		default:
			dst = append(dst, ref...)
		}
		s = s[n:]
	}
}

// lookup returns the name of an element in any case.
func lookup(name []byte) atom.Atom {
	var lower [16]byte
	if len(name) > len(lower) {
		return 0
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return atom.Lookup(lower[:len(name)])
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

func endsName(c byte) bool { return c == '/' || c == '>' || isSpace(c) }

func skipSpace(s []byte, i int) int {
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	return i
}
