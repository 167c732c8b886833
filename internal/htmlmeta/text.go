package htmlmeta

import (
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// text hashes text: each run of white space counts as one space, at either end as none.
type text struct {
	digest xxhash.Digest
	buf    []byte // not hashed yet
	space  bool   // white space came last
	some   bool   // there is some text
}

func newText(buf []byte) text { return text{buf: buf[:0], digest: *xxhash.New()} }

// gap separates the words before it from those behind.
func (t *text) gap() { t.space = true }

func (t *text) write(s []byte) {
	t.buf, t.space, t.some = appendFolded(t.buf, s, t.space, t.some)
	if len(t.buf) >= 4<<10 {
		_, _ = t.digest.Write(t.buf)
		t.buf = t.buf[:0]
	}
}

// sum returns the hash; 0: there is no text. Nothing may be written after it.
func (t *text) sum() uint64 {
	if !t.some {
		return 0
	}
	_, _ = t.digest.Write(t.buf)
	return max(t.digest.Sum64(), 1)
}

// appendFolded appends s with its white space folded. Characters without width are left out, and so are NULs.
// space and some are as in text.
func appendFolded(dst, s []byte, space, some bool) ([]byte, bool, bool) {
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
				space = true
				continue
			}
		}
		if space && some {
			dst = append(dst, ' ')
		}
		dst = append(dst, s[start:i]...)
		space, some = false, true
	}
	return dst, space, some
}

// appendTitle appends s, its white space folded, as far as a title is kept.
func appendTitle(dst, s []byte) []byte {
	dst, _, _ = appendFolded(dst, s[:min(len(s), 8*MaxTitle)], false, false)
	return dst[:min(len(dst), MaxTitle)]
}
