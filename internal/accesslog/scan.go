package accesslog

import (
	"encoding/binary"
	"math/bits"
)

// The functions here find where things in JSON end, and are strict about what they
// pass.

// notSure is where a quick reader is when it must leave a line to encoding/json: one
// that is no JSON, has a key twice, or anything else that Caddy does not write.
const notSure = -1

// skipSpace is where white space ends that may begin at b[i]. Caddy writes none.
func skipSpace(b []byte, i int) int {
	if i < len(b) && b[i] > ' ' {
		return i
	}
	return spaceEnd(b, i)
}

func spaceEnd(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// oddness tells what there may be in a string besides plain ASCII: the bit of
// escapes, others where it may have bytes beyond ASCII.
type oddness uint64

const escapes oddness = 1

// stringEnd is where the string ends that begins before b[i], after its quote: the
// place of the other quote.
func stringEnd(b []byte, i int) (end int, odd oddness) {
	all := uint64(0)
	for i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i : i+8])
		all |= w
		found := find(w)
		if found == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(found) / 8
		if b[i] == '"' {
			return i, odd | oddness(all&highs)
		}
		if i = escapeEnd(b, i); i < 0 {
			return notSure, 0
		}
		odd = escapes
	}
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			return i, odd | oddness(all&highs)
		case c == '\\' || c < ' ':
			if i = escapeEnd(b, i); i < 0 {
				return notSure, 0
			}
			odd = escapes
		default:
			all |= uint64(c)
			i++
		}
	}
	return notSure, 0
}

// find looks for quotes, backslashes and control characters in eight bytes at once:
// the first is where the lowest bit is. A quote becomes a space when its second bit is
// flipped, and what is less than "!" then is a quote or a control character. Borrows
// reach only bytes after one that is found.
func find(w uint64) uint64 {
	return (((w ^ 0x02*ones) - 0x21*ones) | ((w ^ '\\'*ones) - ones)) &^ w & highs
}

// plainEnd is where the first eight bytes from b[i] on have something that does not
// stand for itself in a string, such as its end, or where less than eight are left.
// It is short enough to be compiled into its callers.
func plainEnd(b []byte, i int) int {
	for i+8 <= len(b) {
		if found := find(binary.LittleEndian.Uint64(b[i : i+8])); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
		i += 8
	}
	return i
}

// skipString is where what follows a string begins, as stringEnd.
func skipString(b []byte, i int) int {
	i = plainEnd(b, i)
	if i < len(b) && b[i] == '"' {
		return i + 1
	}
	if i, _ = stringEnd(b, i); i < 0 {
		return notSure
	}
	return i + 1
}

// hasPair reports whether two bytes are at b[i]. What Caddy writes is told by it before
// white space is thought of, and without a call.
func hasPair(b []byte, i int, first, second byte) bool {
	return i+1 < len(b) && b[i] == first && b[i+1] == second
}

// valueStart is where the value begins whose key ends before b[i].
func valueStart(b []byte, i int) int {
	i = skipSpace(b, i)
	if i >= len(b) || b[i] != ':' {
		return notSure
	}
	if i = skipSpace(b, i+1); i >= len(b) {
		return notSure
	}
	return i
}

// nextStart is where the next value or key begins in an array or object, after the
// value that ends before b[i]. Where there is none, it is what follows the end.
func nextStart(b []byte, i int, end byte) (next int, more bool) {
	i = skipSpace(b, i)
	switch {
	case i >= len(b):
		return notSure, false
	case b[i] == ',':
		return skipSpace(b, i+1), true
	case b[i] == end:
		return i + 1, false
	}
	return notSure, false
}

// escapeEnd is where the escape ends that begins at b[i]. A control character is
// none.
func escapeEnd(b []byte, i int) int {
	if b[i] != '\\' || i+1 == len(b) {
		return notSure
	}
	if c := b[i+1]; escaped[c] != 0 {
		return i + 2
	} else if c == 'u' && i+6 <= len(b) && isHex4(b[i+2:]) {
		return i + 6
	}
	return notSure
}

func isHex4(b []byte) bool {
	for _, c := range b[:4] {
		if hexDigit(c) > 15 {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// maxDepth is how deep values may lie within what is skipped.
const maxDepth = 64

// skipValue is where the value ends that begins at b[i].
func skipValue(b []byte, i, depth int) int {
	if i >= len(b) || depth > maxDepth {
		return notSure
	}
	switch b[i] {
	case '"':
		return skipString(b, i+1)
	case '{':
		return skipObject(b, i, depth)
	case '[':
		return skipArray(b, i, depth)
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	}
	return numberEnd(b, i)
}

func skipWord(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return notSure
	}
	return i + len(word)
}

func skipObject(b []byte, i, depth int) int {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for more := true; more; {
		if i >= len(b) || b[i] != '"' {
			return notSure
		}
		if i = skipString(b, i+1); i < 0 {
			return notSure
		}
		if i+1 < len(b) && b[i] == ':' && b[i+1] > ' ' {
			i++
		} else if i = valueStart(b, i); i < 0 {
			return notSure
		}
		if i = skipValue(b, i, depth+1); i < 0 {
			return notSure
		}
		if hasPair(b, i, ',', '"') { // most likely
			i++
			continue
		}
		i, more = nextStart(b, i, '}')
	}
	return i
}

func skipArray(b []byte, i, depth int) int {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for more := true; more; {
		if i = skipValue(b, i, depth+1); i < 0 {
			return notSure
		}
		i, more = nextStart(b, i, ']')
	}
	return i
}

// numberEnd is where the number ends that begins at b[i] (RFC 8259, section 6).
func numberEnd(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	from := i
	if i = skipDigits(b, i); i == from || b[from] == '0' && i > from+1 {
		return notSure
	}
	if i < len(b) && b[i] == '.' {
		from = i + 1
		if i = skipDigits(b, from); i == from {
			return notSure
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from = i
		if i = skipDigits(b, from); i == from {
			return notSure
		}
	}
	return i
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i
}
