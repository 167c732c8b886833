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
		for i < len(s) && s[i] > ' ' && s[i] < '\x7f' {
			i++
		}
		if i == start {
			c, n := utf8.DecodeRune(s[i:])
			i += n
			isSpace := unicode.IsSpace(c)
			if t.space = t.space || isSpace; isSpace || unicode.IsControl(c) || c == '\u200b' || c == '\u2060' || c == '\ufeff' || c == '\u00ad' {
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

// oneLine returns s on one line, with U+FFFD for what is not UTF-8, and cut at [MaxTitle] characters.
func oneLine(s []byte) string {
	var t text
	t.write(s[:min(len(s), 64*MaxTitle)])
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
