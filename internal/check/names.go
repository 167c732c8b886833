package check

import "unicode/utf8"

// What a byte can be in XML (https://www.w3.org/TR/xml/#charsets and #NT-NameChar).
const (
	byteName      = 1 << iota // in a name
	byteNameStart             // first in a name
	byteSpace                 // white space
	bytePlain                 // in text, without a second look
)

var bytesOf = func() (t [256]byte) {
	for c := range 128 {
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_':
			t[c] = byteName | byteNameStart | bytePlain
		case '0' <= c && c <= '9' || c == '-' || c == '.':
			t[c] = byteName | bytePlain
		case c == '&' || c == ']' || c == '<':
		case c == '\r':
			t[c] = byteSpace
		case c == ' ' || c == '\t' || c == '\n':
			t[c] = byteSpace | bytePlain
		case c > ' ':
			t[c] = bytePlain
		}
	}
	return t
}()

func isSpace(c byte) bool { return bytesOf[c]&byteSpace != 0 }

func allSpace(b []byte) bool {
	for _, c := range b {
		if !isSpace(c) {
			return false
		}
	}
	return true
}

// trimSpace is b without white space around it, which XML Schema calls collapsing.
func trimSpace(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// nameLen is the length of the name that b begins with: a colon may part it in two.
// It is 0 for no name. colon is where the local part's colon is, or -1.
func nameLen(b []byte) (n, colon int) {
	colon = -1
	first := true // of a part
	for n < len(b) {
		c := b[n]
		size := 1
		switch {
		case c >= utf8.RuneSelf:
			r, s := utf8.DecodeRune(b[n:])
			if r == utf8.RuneError && s == 1 || !isNameRune(r, first) {
				return n, colon
			}
			size = s
		case c == ':':
			if first || colon >= 0 {
				return 0, -1
			}
			colon = n
			n++
			first = true
			continue
		case first && bytesOf[c]&byteNameStart == 0:
			if n > 0 && colon == n-1 {
				return 0, -1
			}
			return n, colon
		case bytesOf[c]&byteName == 0:
			return n, colon
		}
		n += size
		first = false
	}
	if first {
		return 0, -1
	}
	return n, colon
}

// isNameRune is NameStartChar and NameChar beyond ASCII.
func isNameRune(r rune, first bool) bool {
	if !first && (r == 0xB7 || 0x0300 <= r && r <= 0x036F || r == 0x203F || r == 0x2040) {
		return true
	}
	for _, span := range nameRunes {
		if r <= span[1] {
			return r >= span[0]
		}
	}
	return false
}

var nameRunes = [...][2]rune{
	{0xC0, 0xD6}, {0xD8, 0xF6}, {0xF8, 0x2FF}, {0x370, 0x37D}, {0x37F, 0x1FFF}, {0x200C, 0x200D},
	{0x2070, 0x218F}, {0x2C00, 0x2FEF}, {0x3001, 0xD7FF}, {0xF900, 0xFDCF}, {0xFDF0, 0xFFFD},
	{0x10000, 0xEFFFF},
}

// isChar is Char: what a document may have at all.
func isChar(r rune) bool {
	switch {
	case r < ' ':
		return r == '\t' || r == '\n' || r == '\r'
	case r <= 0xD7FF:
		return true
	}
	return 0xE000 <= r && r <= 0xFFFD || 0x10000 <= r && r <= utf8.MaxRune
}

// validChars says what in b is no character of XML, or "". It looks at no markup.
func validChars(b []byte) error {
	for i := 0; i < len(b); {
		c := b[i]
		if c < utf8.RuneSelf {
			if c < ' ' && !isChar(rune(c)) {
				return errControl
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return errUTF8
		}
		if !isChar(r) {
			return errControl
		}
		i += size
	}
	return nil
}
