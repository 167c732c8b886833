package discover

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// MaxPath is the longest path that is taken, with its query, in bytes.
const MaxPath = 2000

// maxValue is the longest value of a query's parameter, in bytes as it is written.
const maxValue = 200

// What a path may hold as it is, and what a query may hold percent-encoded no more:
// internal/page says it for its canonical form.
var inPath, unreserved [256]bool

func init() {
	for i := range 256 {
		c := string([]byte{byte(i)})
		inPath[i] = page.Escape(c) == c
		escaped := "/x?%" + string([]byte{upperHex[i>>4], upperHex[i&15]})
		canonical, err := page.Canonical(escaped)
		unreserved[i] = err == nil && canonical != escaped
	}
}

const upperHex = "0123456789ABCDEF"

// Cleaner tells which page a request is for.
type Cleaner struct {
	// Query names the parameters of the query that are part of a page's address, in
	// the order that they are written in. Others are dropped, and so are those that
	// [IsTracking] knows.
	Query []string
}

// Clean returns the path of the page that a request's URI, or a link in
// [page.Canonical]'s form, is for: in that form, with the query that [Cleaner] keeps,
// without a fragment, and without the session identifiers that applications write
// after a semicolon. It may be part of uri. Clean(Clean(uri)) is Clean(uri).
//
// ok is false where that is no path of a page: it does not begin with a slash, has a
// segment that begins with a dot, such as "..", ".git" and ".well-known", where only
// programs look, an empty one that is not the last, an encoded slash, a backslash, a
// control character, an invalid escape, what is no UTF-8, a kept value of more than
// 200 bytes, or more than [MaxPath] bytes in all.
func (c *Cleaner) Clean(uri string) (path string, ok bool) {
	if uri == "" || uri[0] != '/' {
		return "", false
	}
	end, plain := scan(uri)
	if plain && end <= MaxPath && (end == len(uri) || uri[end] == '#' || len(c.Query) == 0) {
		return uri[:end], true
	}
	if end > 4*MaxPath {
		return "", false
	}
	out := make([]byte, 0, 512)
	if plain {
		out = append(out, uri[:end]...)
	} else if out, ok = appendPath(out, uri[:end]); !ok {
		return "", false
	}
	if end < len(uri) && uri[end] == '?' {
		query, _, _ := strings.Cut(uri[end+1:], "#")
		if out, ok = c.appendQuery(out, query); !ok {
			return "", false
		}
	}
	if len(out) > MaxPath {
		return "", false
	}
	if len(out) <= len(uri) && string(out) == uri[:len(out)] {
		return uri[:len(out)], true
	}
	return string(out), true
}

// scan finds where the path of a URI ends, and whether it certainly is clean.
func scan(uri string) (end int, plain bool) {
	plain, slash := true, false
	for i := 0; i < len(uri); i++ {
		c := uri[i]
		switch {
		case c == '?' || c == '#':
			return i, plain
		case !inPath[c] || c == ';' || slash && (c == '/' || c == '.'):
			plain = false
		}
		slash = c == '/'
	}
	return len(uri), plain
}

// appendPath appends a path in its canonical form without session identifiers; false
// where it has what no page's has.
func appendPath(dst []byte, path string) ([]byte, bool) {
	start := len(dst)
	dst, ok := appendCanonical(dst, path, false)
	if !ok {
		return nil, false
	}
	dst = dst[:start+len(cutSessions(dst[start:]))]
	return dst, areSegments(dst[start:])
}

// appendCanonical appends s as [page.Canonical] writes it; false where it holds a
// control character, an invalid escape or what is no UTF-8, or, in a path, an encoded
// slash or a backslash.
func appendCanonical(dst []byte, s string, query bool) ([]byte, bool) {
	raw := make([]byte, 0, 128) // what is not ASCII, with an x where there is some between
	for i := 0; i < len(s); i++ {
		c := s[i]
		escaped := c == '%'
		if escaped {
			if i+2 >= len(s) || unhex(s[i+1]) < 0 || unhex(s[i+2]) < 0 {
				return nil, false
			}
			c = byte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			i += 2
		}
		switch {
		case c < ' ' || c == 0x7F:
			return nil, false
		case !query && (c == '\\' || escaped && c == '/'):
			return nil, false
		case unreserved[c] || inPath[c] && !(query && escaped) || query && !escaped && c == '?':
			dst = append(dst, c)
		default:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
		switch {
		case c >= utf8.RuneSelf:
			raw = append(raw, c)
		case len(raw) > 0 && raw[len(raw)-1] != 'x':
			raw = append(raw, 'x')
		}
	}
	return dst, utf8.Valid(raw)
}

// cutSessions takes the parameters that hold a session's identifier out of the
// segments of a path.
func cutSessions(path []byte) []byte {
	out := path[:0]
	for i := 0; i < len(path); {
		end := i + 1
		for end < len(path) && path[end] != ';' && path[end] != '/' {
			end++
		}
		if path[i] != ';' || !isSession(path[i+1:end]) {
			out = append(out, path[i:end]...)
		}
		i = end
	}
	return out
}

// isSession reports whether a segment's parameter is such as jsessionid=….
func isSession(param []byte) bool {
	name, _, ok := bytes.Cut(param, []byte("="))
	if !ok {
		return false
	}
	var short [14]byte // one more than the longest name has
	lower := string(appendLower(short[:0], string(name[:min(len(name), len(short))])))
	switch lower {
	case "jsessionid", "jsessionidsso", "sessionid", "session_id", "session-id", "session", "sessid", "sess", "sid",
		"phpsessid", "psession", "cfid", "cftoken", "oscsid", "xtcsid", "zenid", "wosid", "svid":
		return true
	}
	return strings.HasPrefix(lower, "aspsessionid")
}

// areSegments reports whether no segment of a path begins with a dot, and none but the
// last is empty.
func areSegments(path []byte) bool {
	for i := 1; i <= len(path); {
		end := i
		for end < len(path) && path[end] != '/' {
			end++
		}
		if i == end && end < len(path) {
			return false
		}
		if i < end && path[i] == '.' {
			return false
		}
		i = end + 1
	}
	return true
}

// appendQuery appends the parameters of a query that are kept; false where one of
// them has what no page's has.
func (c *Cleaner) appendQuery(dst []byte, query string) ([]byte, bool) {
	mark := byte('?')
	for _, name := range c.Query {
		if IsTracking(name) {
			continue
		}
		value := valueOf(query, name)
		if value == "" {
			continue
		}
		dst = append(dst, mark)
		dst = appendName(dst, name)
		dst = append(dst, '=')
		start := len(dst)
		var ok bool
		if dst, ok = appendCanonical(dst, value, true); !ok || len(dst)-start > maxValue {
			return nil, false
		}
		mark = '&'
	}
	return dst, true
}

// valueOf is what the first parameter of that name is, as it is written.
func valueOf(query, name string) string {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		n, value, _ := strings.Cut(pair, "=")
		if n == name || strings.ContainsAny(n, "%+") && unescape(strings.ReplaceAll(n, "+", " ")) == name {
			return value
		}
	}
	return ""
}

// appendName appends a parameter's name, which valueOf reads back.
func appendName(dst []byte, name string) []byte {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if inPath[c] && c != '&' && c != '=' && c != '+' {
			dst = append(dst, c)
			continue
		}
		dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
	}
	return dst
}

// unescape is s with its escapes decoded.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && unhex(s[i+1]) >= 0 && unhex(s[i+2]) >= 0 {
			out = append(out, byte(unhex(s[i+1])<<4|unhex(s[i+2])))
			i += 2
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

// unhex is -1 for what is no hexadecimal digit.
func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// IsTracking reports whether a query's parameter tells where a visitor came from, and
// so never which page is shown. Case plays no part.
func IsTracking(name string) bool {
	var short [17]byte // one more than the longest name has
	lower := string(appendLower(short[:0], name[:min(len(name), len(short))]))
	for _, prefix := range [...]string{"utm_", "mtm_", "matomo_", "piwik_"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	switch lower {
	case "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "gad_campaignid", "srsltid", "_ga", "_gl", "_gac",
		"fbclid", "fb_action_ids", "fb_action_types", "fb_source", "fb_ref", "igshid", "igsh",
		"msclkid", "mc_cid", "mc_eid", "mkt_tok", "yclid", "ymclid", "ysclid", "_openstat", "twclid", "ttclid", "tduid",
		"li_fat_id", "epik", "rdt_cid", "scclid", "sccid", "irclickid", "irgwc", "zanpid", "awc", "ref_src", "ref_url",
		"_hsenc", "_hsmi", "hsctatracking", "__hstc", "__hssc", "__hsfp", "_kx", "_ke", "vero_id", "vero_conv", "oly_anon_id", "oly_enc_id",
		"rb_clickid", "s_cid", "s_kwcid", "ml_subscriber", "wickedid", "_branch_match_id", "cx_click", "dm_i", "ef_id", "guccounter",
		"guce_referrer", "itm_source", "itm_medium", "itm_campaign", "itm_content", "itm_term",
		"pk_campaign", "pk_kwd", "pk_keyword", "pk_source", "pk_medium", "pk_content", "pk_cid", "sscid", "at_medium", "at_campaign", "at_custom1":
		return true
	}
	return false
}

// appendLower appends s with its ASCII letters in lower case. Names are compared so
// that come with every request: what strings.ToLower makes would be garbage.
func appendLower(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}

// Fold is the pattern that a path shares with those that differ from it in numbers
// alone: each run of digits is a "#". The digits of escapes are none.
func Fold(path string) string {
	out, folded := appendFolded(make([]byte, 0, 256), path)
	if !folded {
		return path
	}
	return string(out)
}

func appendFolded(dst []byte, path string) (out []byte, folded bool) {
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c == '%' && i+2 < len(path):
			dst = append(dst, path[i:i+3]...)
			i += 2
		case '0' <= c && c <= '9':
			folded = true
			for i+1 < len(path) && '0' <= path[i+1] && path[i+1] <= '9' {
				i++
			}
			dst = append(dst, '#')
		default:
			dst = append(dst, c)
		}
	}
	return dst, folded
}
