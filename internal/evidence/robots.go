package evidence

import (
	"bytes"
	"time"
)

// directives is what a robots meta or an X-Robots-Tag header asks for
// (https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag).
type directives struct{ noindex, nofollow bool }

// parseRobots reads directives that commas or white space part. In a header, a name
// and a colon say which robot the rest is for; only what is for all, or for
// googlebot, counts. A directive with a value is no such name.
func parseRobots(s []byte, header bool, now time.Time) (d directives) {
	applies := true
	for {
		s = trimSeparators(s)
		if len(s) == 0 {
			return d
		}
		n := wordEnd(s)
		word := s[:n]
		s = s[n:]
		rest := bytes.TrimLeft(s, white)
		if len(rest) == 0 || rest[0] != ':' {
			switch {
			case !applies:
			case equals(word, "noindex"):
				d.noindex = true
			case equals(word, "nofollow"):
				d.nofollow = true
			case equals(word, "none"):
				d.noindex, d.nofollow = true, true
			}
			continue
		}
		s = bytes.TrimLeft(rest[1:], white)
		switch {
		case equals(word, "unavailable_after"):
			t, rest := leadingDate(s)
			s = rest
			if applies && !t.IsZero() && !now.IsZero() && t.Before(now) {
				d.noindex = true
			}
		case isValued(word) || !header || !isLetter(first(word)):
			s = s[wordEnd(s):]
		default:
			applies = equals(word, "googlebot") || equals(word, "robots") || string(word) == "*"
		}
	}
}

const white = " \t\r\n\f"

func trimSeparators(s []byte) []byte { return bytes.TrimLeft(s, white+",;") }

// wordEnd is where the word that s begins with ends.
func wordEnd(s []byte) int {
	if i := bytes.IndexAny(s, white+",;:"); i > 0 {
		return i
	} else if i == 0 {
		if s[0] == ':' {
			return 1
		}
		return 0
	}
	return len(s)
}

// isValued reports whether a directive has a value after a colon.
func isValued(word []byte) bool {
	return len(word) > 4 && bytes.EqualFold(word[:4], []byte("max-"))
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '*' }

func first(s []byte) byte {
	if len(s) == 0 {
		return 0
	}
	return s[0]
}

// leadingDate is the longest date that s begins with, in whatever form, and what
// follows it. Dates may have commas and spaces in them. Without one, the first word
// is taken off.
func leadingDate(s []byte) (time.Time, []byte) {
	var ends [8]int
	n := 0
	for i := 1; i <= len(s) && i <= maxDate && n < len(ends); i++ {
		if i == len(s) || bytes.IndexByte([]byte(white+",;"), s[i]) >= 0 && bytes.IndexByte([]byte(white+",;"), s[i-1]) < 0 {
			ends[n] = i
			n++
		}
	}
	for ; n > 0; n-- {
		if t, _, ok := parseDate(string(s[:ends[n-1]])); ok {
			return t, s[ends[n-1]:]
		}
	}
	return time.Time{}, s[wordEnd(s):]
}

// refreshURL is where a refresh leads, by
// https://html.spec.whatwg.org/multipage/semantics.html#shared-declarative-refresh-steps.
// It is false where it does not lead anywhere: not valid, or without a URL.
func refreshURL(s []byte) ([]byte, bool) {
	s = bytes.TrimLeft(s, white)
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	if n == 0 && first(s) != '.' {
		return nil, false
	}
	for n < len(s) && ('0' <= s[n] && s[n] <= '9' || s[n] == '.') {
		n++
	}
	s = s[n:]
	if len(s) == 0 || bytes.IndexByte([]byte(white+";,"), s[0]) < 0 {
		return nil, false
	}
	s = bytes.TrimLeft(s, white)
	if c := first(s); c == ';' || c == ',' {
		s = bytes.TrimLeft(s[1:], white)
	}
	if len(s) >= 3 && bytes.EqualFold(s[:3], []byte("url")) {
		if after := bytes.TrimLeft(s[3:], white); first(after) == '=' {
			s = bytes.TrimLeft(after[1:], white)
		}
	}
	if c := first(s); c == '"' || c == '\'' {
		s = s[1:]
		if i := bytes.IndexByte(s, c); i >= 0 {
			s = s[:i]
		}
	}
	return s, len(s) > 0
}

// readLinkHeader reads the links of one Link header (RFC 8288, section 3).
func (r *Reader) readLinkHeader(value string) {
	s := value
	for {
		s = trimLeft(s, white+",")
		if s == "" {
			return
		}
		if s[0] != '<' {
			s = s[skipTo(s, ','):]
			continue
		}
		end := indexByte(s, '>')
		if end < 0 {
			return
		}
		href := s[1:end]
		s = s[end+1:]
		var rel, lang string
		var hasRel, hasLang, hasVariant, hasAnchor bool
		for {
			s = trimLeft(s, white)
			if s == "" || s[0] == ',' {
				break
			}
			if s[0] != ';' {
				s = s[1:]
				continue
			}
			var name, val string
			name, val, s = parameter(s[1:])
			switch name {
			case "rel":
				if !hasRel {
					rel, hasRel = val, true
				}
			case "hreflang":
				lang, hasLang = val, true
			case "anchor":
				hasAnchor = true
			case "media", "type":
				hasVariant = true
			}
		}
		if !hasAnchor { // else of something other than the page
			r.relation([]byte(rel), []byte(href), []byte(lang), hasLang, hasVariant)
		}
	}
}
