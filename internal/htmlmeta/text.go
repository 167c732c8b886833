package htmlmeta

import (
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// text is text in which each run of white space counts as one space, at either end as none.
type text struct {
	buf   []byte
	space bool // white space came last
}

// gap separates the words before it from those behind.
func (t *text) gap() { t.space = true }

// write adds s. Characters without width are left out, and so are controls that are no white space.
func (t *text) write(s []byte) {
	for i := 0; i < len(s); {
		start := i
		// What is printed in ASCII, as nearly all text is, needs no look at each character.
		for i < len(s) && s[i] > ' ' && s[i] < '\x7f' {
			i++
		}
		if i == start {
			c, n := utf8.DecodeRune(s[i:])
			i += n
			if unicode.IsSpace(c) {
				t.space = true
				continue
			}
			if unicode.IsControl(c) || hasNoWidth(c) {
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

// hasNoWidth reports whether a character only says where a line may be broken, or not.
func hasNoWidth(c rune) bool {
	switch c {
	case '\u200b', '\u2060', '\ufeff', '\u00ad': // zero width space, word joiner, byte order mark, soft hyphen
		return true
	}
	return false
}

// oneLine returns s on one line, with U+FFFD for what is not UTF-8, and cut at [MaxTitle] characters.
func oneLine(s []byte) string {
	var t text
	t.write(s[:min(len(s), 64*MaxTitle)]) // there may be much white space in it
	line := []rune(string(t.buf))
	if len(line) > MaxTitle {
		line = append(line[:MaxTitle-1], '…')
	}
	return string(line)
}

// hash returns a hash of the text; 0: there is none.
func (t *text) hash() uint64 {
	if len(t.buf) == 0 {
		return 0
	}
	return max(xxhash.Sum64(t.buf), 1)
}
