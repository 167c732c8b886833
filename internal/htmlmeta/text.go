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

// write adds s. Characters without width are left out, and so are NULs.
func (t *text) write(s []byte) {
	for i := 0; i < len(s); {
		start := i
		for i < len(s) && s[i] > ' ' && s[i] < utf8.RuneSelf {
			i++
		}
		if i == start {
			c, n := utf8.DecodeRune(s[i:])
			i += n
			switch {
			case c == 0 || c == '\u200b' || c == '\u2060' || c == '\ufeff' || c == '\u00ad':
				continue
			case c <= ' ' || unicode.IsSpace(c):
				t.space = true
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

// hash returns a hash of the text; 0: there is none.
func (t *text) hash() uint64 {
	if len(t.buf) == 0 {
		return 0
	}
	return max(xxhash.Sum64(t.buf), 1)
}
