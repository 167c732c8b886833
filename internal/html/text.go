package html

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// text is text in which each run of white space counts as one space, at either end as none.
type text struct {
	buf   []byte
	space bool // white space came last
}

// write adds s. Characters without width are left out, and so are controls that are no white space.
func (t *text) write(s []byte) {
	for i := 0; i < len(s); {
		start := i
		// Words of ASCII with a space between each two, as nearly all text is, need no look at each character.
		for i < len(s) && isPlain(s[i]) {
			i++
			if i+1 < len(s) && s[i] == ' ' && isPlain(s[i+1]) {
				i++
			}
		}
		if i == start {
			c, n := utf8.DecodeRune(s[i:])
			i += n
			if unicode.IsSpace(c) {
				t.space = true
				continue
			}
			if unicode.IsControl(c) || strings.ContainsRune(withoutWidth, c) {
				continue
			}
		}
		if t.space && len(t.buf) > 0 {
			t.buf = append(t.buf, ' ')
		}
		t.buf = append(t.buf, s[start:i]...)
		t.space = false
	}
}

// isPlain reports whether a byte is printed, and in ASCII.
func isPlain(c byte) bool { return ' ' < c && c < '\x7f' }

// withoutWidth are characters that only say where a line may be broken, or not: zero width space, word joiner, byte order
// mark, soft hyphen.
const withoutWidth = "\u200b\u2060\ufeff\u00ad"

// oneLine returns s on one line, with U+FFFD for what is not UTF-8, and cut at [MaxTitle] characters.
func oneLine(s []byte) string {
	var t text
	t.write(s)
	line := []rune(string(t.buf))
	if len(line) > MaxTitle {
		line = append(line[:MaxTitle-1], '…')
	}
	return string(line)
}

// hash returns the hash of the text; 0: there is none.
func (t *text) hash() uint64 {
	if len(t.buf) == 0 {
		return 0
	}
	return max(xxhash.Sum64(t.buf), 1)
}
