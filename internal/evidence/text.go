package evidence

import (
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/net/html/atom"
)

// text hashes a text: white space folded, none at its ends, case kept.
type text struct {
	digest xxhash.Digest
	buf    []byte
	space  bool // comes before what follows
	some   bool
}

func (t *text) reset() {
	t.digest.Reset()
	t.buf = t.buf[:0]
	t.space, t.some = false, false
}

// gap parts what follows from what came.
func (t *text) gap() { t.space = true }

// sum is the hash of 48 bits, not 0; nothing is written after it.
func (t *text) sum() uint64 {
	_, _ = t.digest.Write(t.buf)
	return fingerprint(t.digest.Sum64())
}

// fingerprint makes one of a hash: of 48 bits, which tell versions of a page apart well
// enough and take less room, and not 0.
func fingerprint(hash uint64) uint64 { return max(hash>>16, 1) }

// Fingerprint is that of a document that is no HTML.
func Fingerprint(document []byte) uint64 { return fingerprint(xxhash.Sum64(document)) }

func (t *text) write(s []byte) {
	t.buf, t.space, t.some = fold(t.buf, s, t.space, t.some)
	if len(t.buf) >= 4<<10 {
		_, _ = t.digest.Write(t.buf)
		t.buf = t.buf[:0]
	}
}

// fold appends s with each white space, of any kind, as one space between what is
// none. Characters without width are left out, as NULs are.
func fold(dst, s []byte, space, some bool) ([]byte, bool, bool) {
	for i := 0; i < len(s); {
		start := i
		for i < len(s) && s[i] > ' ' && s[i] < utf8.RuneSelf {
			i++
		}
		if i > start {
			if space && some {
				dst = append(dst, ' ')
			}
			dst = append(dst, s[start:i]...)
			space, some = false, true
			continue
		}
		if s[i] <= ' ' {
			if s[i] != 0 {
				space = true
			}
			i++
			continue
		}
		c, n := utf8.DecodeRune(s[i:])
		switch {
		case unicode.IsSpace(c):
			space = true
		case c == '\u200b' || c == '\u2060' || c == '\ufeff' || c == '\u00ad':
		default:
			if space && some {
				dst = append(dst, ' ')
			}
			dst = append(dst, s[i:i+n]...)
			space, some = false, true
		}
		i += n
	}
	return dst, space, some
}

// folded is s with its white space folded, at most MaxText bytes of valid UTF-8.
func (r *Reader) folded(s []byte) string {
	r.scratch, _, _ = fold(r.scratch[:0], cut(s, 8*MaxText), false, false)
	return string(cut(validUTF8(r.scratch), MaxText))
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f'
}

func isBlank(s []byte) bool {
	for _, c := range s {
		if !isSpace(c) {
			return false
		}
	}
	return true
}

// isInline reports whether an element's tags may stand within a word.
func isInline(name atom.Atom) bool {
	switch name {
	case atom.A, atom.Abbr, atom.Acronym, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Cite, atom.Code, atom.Data, atom.Del, atom.Dfn,
		atom.Em, atom.Font, atom.I, atom.Ins, atom.Kbd, atom.Label, atom.Mark, atom.Nobr, atom.Q, atom.S,
		atom.Samp, atom.Script, atom.Small, atom.Span, atom.Strike, atom.Strong, atom.Style, atom.Sub, atom.Sup, atom.Template, atom.Time, atom.Tt, atom.U,
		atom.Var, atom.Wbr, atom.Noscript, atom.Noframes, atom.Noembed, atom.Iframe, atom.Title, atom.Link, atom.Meta, 0:
		return true
	}
	return false
}
