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

// reset empties the text.
func (t *text) reset() { *t = text{buf: t.buf[:0]} }

// write adds s. Characters without width are left out, and so are controls that are no white space.
func (t *text) write(s []byte) {
	for i := 0; i < len(s); {
		start := i
		// Words of ASCII with a space between each two, as nearly all text is, need no look at each character.
		for i < len(s) && (isPlain(s[i]) || i > start && s[i] == ' ' && i+1 < len(s) && isPlain(s[i+1])) {
			i++
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

// add adds what is a text already, behind a space where it begins with one.
func (t *text) add(s []byte) {
	if len(s) == 0 {
		return
	}
	isApart := t.space || s[0] == ' '
	if s[0] == ' ' {
		s = s[1:]
	}
	if isApart && len(t.buf) > 0 {
		t.buf = append(t.buf, ' ')
	}
	t.buf = append(t.buf, s...)
	t.space = false
}

// isPlain reports whether a byte is printed, and in ASCII.
func isPlain(c byte) bool { return ' ' < c && c < '\x7f' }

// withoutWidth are characters that only say where a line may be broken, or not: zero width space, word joiner, byte order
// mark, soft hyphen.
const withoutWidth = "\u200b\u2060\ufeff\u00ad"

// cleaned returns s as a text.
func cleaned(s []byte) []byte {
	var t text
	t.write(s)
	return t.buf
}

// oneLine returns s on one line, with U+FFFD for what is not UTF-8, and cut at [MaxTitle] characters.
func oneLine(s []byte) string {
	s = s[:min(len(s), 64*MaxTitle)] // there may be much white space in it
	line := []rune(string(cleaned(s)))
	if len(line) > MaxTitle {
		line = append(line[:MaxTitle-1], '…')
	}
	return string(line)
}

// textHash hashes texts with a space between each two.
type textHash struct {
	digest xxhash.Digest
	isSome bool
}

func (h *textHash) write(s []byte) {
	if len(s) == 0 {
		return
	}
	if h.isSome {
		_, _ = h.digest.WriteString(" ")
	} else {
		h.digest.Reset()
		h.isSome = true
	}
	_, _ = h.digest.Write(s)
}

// sum returns the hash; 0: there is no text.
func (h *textHash) sum() uint64 {
	if !h.isSome {
		return 0
	}
	return max(h.digest.Sum64(), 1)
}
