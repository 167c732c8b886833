package htmlmeta

import (
	"bytes"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// scanner splits HTML into tokens in place, where [html.Tokenizer] does. That one copies the attributes of every
// tag, which took two thirds of all the time here.
type scanner struct {
	rest       []byte    // not scanned yet
	token      []byte    // as written
	name       atom.Atom // of a tag; 0: HTML does not know it
	attributes []attribute
	closed     bool      // the tag ends in a slash
	raw        atom.Atom // set by the caller: the element that has begun, if there are no tags in it
}

type attribute struct{ name, value []byte } // as written

func (s *scanner) next() html.TokenType {
	kind := html.TextToken
	n := 0
	if s.raw != 0 {
		n = rawTextEnd(s.rest, s.raw)
		s.raw = 0
	}
	// Where the end tag follows at once, there is no text.
	if n == 0 {
		kind, n = s.scan(s.rest)
	}
	s.token = s.rest[:n]
	s.rest = s.rest[n:]
	return kind
}

func (s *scanner) scan(b []byte) (html.TokenType, int) {
	if len(b) == 0 {
		return html.ErrorToken, 0
	}
	if n := textEnd(b); n > 0 {
		return html.TextToken, n
	}
	switch {
	case isLetter(b[1]):
		return s.scanTag(b, 1, html.StartTagToken)
	case b[1] == '/' && isLetter(b[2]):
		return s.scanTag(b, 2, html.EndTagToken)
	case bytes.HasPrefix(b, []byte("<!--")):
		return html.CommentToken, commentEnd(b)
	case len(b) >= 9 && bytes.EqualFold(b[:9], []byte("<!doctype")):
		return html.DoctypeToken, endAfter(b, 0)
	default: // what else is ignored
		return html.CommentToken, endAfter(b, 0)
	}
}

// textEnd returns where the text ends with which b begins: at what looks like a tag.
func textEnd(b []byte) int {
	for i := 0; ; i++ {
		n := bytes.IndexByte(b[i:], '<')
		i += n
		if n < 0 || i+1 == len(b) {
			return len(b)
		}
		// A < before anything else is text (https://html.spec.whatwg.org/multipage/parsing.html#tag-open-state).
		c := b[i+1]
		isEndTag := c == '/' && i+2 < len(b)
		if isLetter(c) || c == '!' || c == '?' || isEndTag {
			return i
		}
	}
}

// endAfter returns the index behind the first > from i on.
func endAfter(b []byte, i int) int {
	if n := bytes.IndexByte(b[i:], '>'); n >= 0 {
		return i + n + 1
	}
	return len(b)
}

// commentEnd returns where a comment ends; <!--> and <!---> are whole ones.
func commentEnd(b []byte) int {
	for i := len("<!--"); i < len(b); {
		i = endAfter(b, i)
		if bytes.HasSuffix(b[2:i], []byte("-->")) || bytes.HasSuffix(b[4:i], []byte("--!>")) {
			return i
		}
	}
	return len(b)
}

// rawTextEnd returns where the end tag of an element that has only text begins. A script's comment may have the tags
// of another one (https://html.spec.whatwg.org/multipage/scripting.html#restrictions-for-contents-of-script-elements).
func rawTextEnd(b []byte, element atom.Atom) int {
	name := element.String()
	inComment := false
	inScript := false // within that
	for i := 0; i+1 < len(b) && element != atom.Plaintext; i++ {
		switch {
		case b[i] == '-' && inComment && bytes.HasPrefix(b[i:], []byte("-->")):
			inComment = false
			inScript = false
		case b[i] != '<':
		case element == atom.Script && bytes.HasPrefix(b[i:], []byte("<!--")):
			inComment = true
		case b[i+1] == '/' && isTag(b[i+2:], name):
			if !inScript {
				return i
			}
			inScript = false
		case inComment && isTag(b[i+1:], name):
			inScript = true
		}
	}
	return len(b)
}

func isTag(b []byte, name string) bool {
	return len(b) > len(name) && endsName(b[len(name)]) && bytes.EqualFold(b[:len(name)], []byte(name))
}

// scanTag scans a tag whose name begins at i
// (https://html.spec.whatwg.org/multipage/parsing.html#before-attribute-name-state). One that does not end is ignored.
func (s *scanner) scanTag(b []byte, i int, kind html.TokenType) (html.TokenType, int) {
	end := nameEnd(b, i)
	s.attributes = s.attributes[:0]
	s.name = atom.Lookup(b[i:end])
	if s.name == 0 {
		s.name = atom.Lookup(bytes.ToLower(b[i:end])) // which is seldom needed, and may allocate
	}
	for {
		i = end
		for i < len(b) && (isSpace(b[i]) || b[i] == '/') {
			i++
		}
		if i == len(b) {
			return html.ErrorToken, i
		}
		if b[i] == '>' {
			s.closed = i > end && b[i-1] == '/'
			return kind, i + 1
		}
		end = nameEnd(b, i)
		// An equals sign that comes first belongs to the name, by the specification.
		if n := bytes.IndexByte(b[i+1:end], '='); n >= 0 {
			end = i + 1 + n
		}
		a := attribute{name: b[i:end], value: b[end:end]}
		end = skipSpace(b, end)
		if end < len(b) && b[end] == '=' {
			a.value, end = scanValue(b, skipSpace(b, end+1))
		}
		s.attributes = append(s.attributes, a)
	}
}

func nameEnd(b []byte, i int) int {
	for i < len(b) && !endsName(b[i]) {
		i++
	}
	return i
}

// scanValue returns the value that begins at i, and where it is over.
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

// attribute returns the value of the tag's first attribute with a name, in lower case; nil: it has none.
func (s *scanner) attribute(name string) []byte {
	for _, a := range s.attributes {
		if isAttribute(a.name, name) {
			if bytes.IndexByte(a.value, '&') >= 0 {
				return unescape(nil, a.value)
			}
			return a.value
		}
	}
	return nil
}

// commonReferences spare most references a copy.
var commonReferences = map[string]string{"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": `"`}

// unescape appends s with its character references decoded. They need a semicolon behind them, as what begins like
// one may be a parameter in the query of a URL.
func unescape(dst, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, '&')
		if i < 0 {
			return append(dst, s...)
		}
		end := i + 1
		for end < len(s) && (isLetter(s[end]) || '0' <= s[end] && s[end] <= '9' || s[end] == '#') {
			end++
		}
		dst = append(dst, s[:i]...)
		if end < len(s) && s[end] == ';' {
			end++
			decoded, ok := commonReferences[string(s[i:end])]
			if !ok {
				decoded = html.UnescapeString(string(s[i:end]))
			}
			dst = append(dst, decoded...)
		} else {
			dst = append(dst, s[i:end]...)
		}
		s = s[end:]
	}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isSpace(c byte) bool  { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }
func endsName(c byte) bool { return c == '/' || c == '>' || isSpace(c) }

func skipSpace(s []byte, i int) int {
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	return i
}
