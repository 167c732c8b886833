package evidence

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

func trim(s []byte) []byte { return bytes.Trim(s, white) }

func trimLeft(s, cutset string) string { return strings.TrimLeft(s, cutset) }

func indexByte(s string, c byte) int { return strings.IndexByte(s, c) }

// equals reports whether s is word, which is in lower case, but for case and white
// space around it.
func equals(s []byte, word string) bool {
	s = trim(s)
	if len(s) != len(word) {
		return false
	}
	for i := range s {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// hasToken reports whether token, in lower case, is among those in s that white
// space parts.
func hasToken(s []byte, token string) bool {
	for {
		s = bytes.TrimLeft(s, white)
		if len(s) < len(token) {
			return false
		}
		n := bytes.IndexAny(s, white)
		if n < 0 {
			n = len(s)
		}
		if equals(s[:n], token) {
			return true
		}
		s = s[n:]
	}
}

func appendLower(dst, s []byte) []byte {
	for _, c := range s {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

func validUTF8(s []byte) []byte {
	if utf8.Valid(s) {
		return s
	}
	return bytes.ToValidUTF8(s, []byte("\ufffd"))
}

// skipTo is where c first is in s outside of quotes, or its length.
func skipTo(s string, c byte) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quoted:
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == c && !quoted:
			return i
		}
	}
	return len(s)
}

// parameter reads a name, in lower case on return, and the value it may have after
// an equals sign, quoted or not, and returns what follows.
func parameter(s string) (name, value, rest string) {
	s = trimLeft(s, white)
	n := strings.IndexAny(s, white+"=;,")
	if n < 0 {
		return strings.ToLower(s), "", ""
	}
	name = strings.ToLower(s[:n])
	s = trimLeft(s[n:], white)
	if s == "" || s[0] != '=' {
		return name, "", s
	}
	s = trimLeft(s[1:], white)
	if s == "" || s[0] != '"' {
		n = strings.IndexAny(s, white+";,")
		if n < 0 {
			n = len(s)
		}
		return name, s[:n], s[n:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return name, b.String(), s[i+1:]
		case '\\':
			i++
			if i == len(s) {
				return name, b.String(), ""
			}
		}
		b.WriteByte(s[i])
	}
	return name, b.String(), ""
}

// isData reports whether a script's type is that of JSON-LD.
func isData(kind []byte) bool {
	kind, _, _ = bytes.Cut(kind, []byte(";"))
	return equals(kind, "application/ld+json")
}

// language is an hreflang in its usual case, such as "de", "zh-Hant", "de-AT" or
// "x-default"; empty for what cannot be one.
func language(s []byte) string {
	s = trim(s)
	if equals(s, "x-default") {
		return "x-default"
	}
	if len(s) < 2 || len(s) > 11 {
		return ""
	}
	out := appendLower(nil, s)
	parts := bytes.Split(out, []byte("-"))
	if n := len(parts[0]); n < 2 || n > 3 || !isAll(parts[0], 'a', 'z') {
		return ""
	}
	parts = parts[1:]
	if len(parts) > 0 && len(parts[0]) == 4 && isAll(parts[0], 'a', 'z') {
		parts[0][0] -= 'a' - 'A'
		parts = parts[1:]
	}
	if len(parts) > 0 {
		region := parts[0]
		switch {
		case len(region) == 2 && isAll(region, 'a', 'z'):
			copy(region, bytes.ToUpper(region))
		case len(region) == 3 && isAll(region, '0', '9'):
		default:
			return ""
		}
		parts = parts[1:]
	}
	if len(parts) > 0 {
		return ""
	}
	return string(out)
}

func isAll(s []byte, from, to byte) bool {
	for _, c := range s {
		if c < from || c > to {
			return false
		}
	}
	return true
}
