package html

import (
	"bytes"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// tokens are those of a page.
type tokens struct {
	*html.Tokenizer
	end        int       // of the present token, in the body
	name       atom.Atom // of a tag; 0: HTML does not know it
	closed     bool      // the tag ends in a slash
	hasMore    bool      // it may have attributes that were not read yet
	attributes []attribute
}

// attribute is one of a tag, with its name in lower case and its value decoded. Both are valid until the next token.
type attribute struct{ name, value []byte }

// begin begins with the tokens of a body.
func (t *tokens) begin(body []byte) {
	t.Tokenizer = html.NewTokenizer(bytes.NewReader(body))
	t.end = 0
}

// next reads the next token. A tag that ends in a slash is a start tag.
func (t *tokens) next() html.TokenType {
	kind := t.Next()
	t.end += len(t.Raw())
	switch kind {
	case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
		t.name = t.readName()
		t.hasMore = true
		t.attributes = t.attributes[:0]
		t.closed = kind == html.SelfClosingTagToken
	}
	if kind == html.SelfClosingTagToken {
		return html.StartTagToken
	}
	return kind
}

// hasFold reports whether name, in lower case, is in a tag, in any case.
func hasFold(tag []byte, name string) bool {
	for len(tag) >= len(name) {
		if tag[0]|0x20 == name[0] && bytes.EqualFold(tag[:len(name)], []byte(name)) {
			return true
		}
		tag = tag[1:]
	}
	return false
}

// readName reads the name of the tag. The tokenizer copies it, which only one in upper case needs.
func (t *tokens) readName() atom.Atom {
	tag := bytes.TrimPrefix(t.Raw()[1:], []byte("/"))
	end := 0
	for tag[end] > ' ' && tag[end] != '/' && tag[end] != '>' { // in which a tag ends
		end++
	}
	if known := atom.Lookup(tag[:end]); known != 0 {
		return known
	}
	return atom.Lookup(bytes.ToLower(tag[:end]))
}

// attribute returns the value of the tag's first attribute with a name; nil: it has none. The tokenizer copies them, so those of
// most tags are never read.
func (t *tokens) attribute(name string) []byte {
	if t.hasMore && !hasFold(t.Raw(), name) {
		return nil
	}
	for t.hasMore {
		var a attribute
		a.name, a.value, t.hasMore = t.TagAttr()
		if a.value == nil {
			a.value = []byte{} // it is there
		}
		t.attributes = append(t.attributes, a)
	}
	for _, a := range t.attributes {
		if string(a.name) == name {
			return a.value
		}
	}
	return nil
}
