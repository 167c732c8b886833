package htmlmeta

import (
	"bytes"

	"golang.org/x/net/html"
)

// attributes are the values of a tag's attributes, in the order of the names that are
// asked for. They are valid until the next token.
type attributes struct {
	value [6][]byte // nil: empty
	has   [6]bool
}

// Names of attributes, in lower case.
var (
	anchorNames = []string{"href", "rel"}
	imageNames  = []string{"src", "alt"}
	metaNames   = []string{"name", "property", "http-equiv", "content"}
	linkNames   = []string{"href", "rel", "hreflang", "lang", "media", "type"}
	baseNames   = []string{"href"}
	scriptNames = []string{"type"}
	roleNames   = []string{"role"}
)

// read reads the attributes of tag, z's current token. Most tags hold no character
// references and are read in place: the tokenizer copies every name and every value.
func (a *attributes) read(z *html.Tokenizer, tag []byte, names []string) {
	if bytes.IndexByte(tag, '&') < 0 {
		a.readPlain(tag, names)
		return
	}
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		a.set(key, value, names)
	}
}

// set keeps the first attribute of each name.
func (a *attributes) set(key, value []byte, names []string) {
	for i, name := range names {
		if len(key) == len(name) && !a.has[i] && bytes.EqualFold(key, []byte(name)) {
			a.has[i] = true
			if len(value) > 0 {
				a.value[i] = value
			}
			return
		}
	}
}

// readPlain follows https://html.spec.whatwg.org/multipage/parsing.html#before-attribute-name-state
// as the tokenizer does.
func (a *attributes) readPlain(tag []byte, names []string) {
	i := 1
	for i < len(tag) && !endsName(tag[i]) {
		i++
	}
	for {
		for i < len(tag) && (isSpace(tag[i]) || tag[i] == '/') {
			i++
		}
		if i >= len(tag) || tag[i] == '>' {
			return
		}
		start := i
		for i < len(tag) && !endsName(tag[i]) && (tag[i] != '=' || i == start) {
			i++
		}
		key := tag[start:i]
		i = skipSpace(tag, i)
		var value []byte
		if i < len(tag) && tag[i] == '=' {
			value, i = attributeValue(tag, skipSpace(tag, i+1))
		}
		a.set(key, value, names)
	}
}

// attributeValue returns the value that begins at i, and where it ends.
func attributeValue(tag []byte, i int) ([]byte, int) {
	if i >= len(tag) {
		return nil, i
	}
	start := i
	if quote := tag[i]; quote == '"' || quote == '\'' {
		n := bytes.IndexByte(tag[i+1:], quote)
		if n < 0 {
			return tag[i+1:], len(tag)
		}
		return tag[i+1 : i+1+n], i + n + 2
	}
	for i < len(tag) && tag[i] != '>' && !isSpace(tag[i]) {
		i++
	}
	return tag[start:i], i
}

func endsName(c byte) bool { return c == '/' || c == '>' || isSpace(c) }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

func skipSpace(s []byte, i int) int {
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	return i
}

// equals reports whether s is word, except for case and white space around it.
func equals(s []byte, word string) bool {
	return len(s) >= len(word) && bytes.EqualFold(bytes.TrimSpace(s), []byte(word))
}

// hasToken reports whether word is one of those in s, in any case.
func hasToken(s []byte, word string) bool {
	if len(s) < len(word) {
		return false
	}
	for token := range bytes.FieldsSeq(s) {
		if bytes.EqualFold(token, []byte(word)) {
			return true
		}
	}
	return false
}
