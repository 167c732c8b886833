package evidence

import (
	"bytes"

	"golang.org/x/net/html"
)

// attributes are values of a tag's attributes, by their numbers among the names that
// are asked for. They are valid until the next token. An empty one is nil.
type attributes struct {
	value [6][]byte
	has   [6]bool
}

// Names of attributes, and their numbers.
var (
	hrefName   = []string{"href"}
	typeName   = []string{"type"}
	roleName   = []string{"role"}
	anchorName = []string{"href", "rel"}
	imageNames = []string{"src", "alt"}
	metaNames  = []string{"name", "property", "http-equiv", "content"}
	linkNames  = []string{"href", "rel", "hreflang", "lang", "media", "type"}
)

// read takes the attributes that names has from z's tag, which is token. Most tags
// need no decoding, and are read where they are: the tokenizer copies each name and
// each value, also of what nobody asks for.
func (a *attributes) read(z *html.Tokenizer, token []byte, names []string) {
	if bytes.IndexByte(token, '&') < 0 && bytes.IndexByte(token, '\r') < 0 && bytes.IndexByte(token, 0) < 0 {
		a.readPlain(token, names)
		return
	}
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		a.take(key, value, names)
	}
}

// take keeps the first attribute of each name.
func (a *attributes) take(key, value []byte, names []string) {
	for i, name := range names {
		if len(key) == len(name) && !a.has[i] && equalFold(key, name) {
			a.has[i] = true
			if len(value) > 0 {
				a.value[i] = value
			}
			return
		}
	}
}

// equalFold reports whether key, as long as name, which is in lower case, is that.
func equalFold(key []byte, name string) bool {
	for i, c := range key {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// readPlain reads a tag as the tokenizer does
// (https://html.spec.whatwg.org/multipage/parsing.html#before-attribute-name-state).
func (a *attributes) readPlain(tag []byte, names []string) {
	i := 1
	for i < len(tag) && tag[i] != '/' && tag[i] != '>' && !isSpace(tag[i]) {
		i++
	}
	for {
		i = skipSpace(tag, i)
		if i >= len(tag) || tag[i] == '>' {
			return
		}
		start := i
		for i < len(tag) && (tag[i] != '=' || i == start) && tag[i] != '/' && tag[i] != '>' && !isSpace(tag[i]) {
			i++
		}
		key := tag[start:i]
		i = skipSpace(tag, i)
		var value []byte
		switch {
		case i >= len(tag):
		case tag[i] == '/':
			i++
		case tag[i] == '=':
			value, i = attributeValue(tag, skipSpace(tag, i+1))
		}
		a.take(key, value, names)
	}
}

// attributeValue is the value at i, after an equals sign, and where it is over.
func attributeValue(tag []byte, i int) ([]byte, int) {
	if i >= len(tag) || tag[i] == '>' {
		return nil, i
	}
	if quote := tag[i]; quote == '"' || quote == '\'' {
		i++
		n := bytes.IndexByte(tag[i:], quote)
		if n < 0 {
			return tag[i:], len(tag)
		}
		return tag[i : i+n], i + n + 1
	}
	start := i
	for i < len(tag) && tag[i] != '>' && !isSpace(tag[i]) {
		i++
	}
	return tag[start:i], i
}

func skipSpace(s []byte, i int) int {
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	return i
}
