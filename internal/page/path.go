package page

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// inPath are the bytes that RFC 3986, section 3.3, allows in a path as they are, and the slash; unreserved those that
// mean nothing but themselves anywhere (section 2.3).
var inPath, unreserved [256]bool

func init() {
	for c := range 256 {
		b := byte(c)
		lower := b | 0x20
		isLetter := 'a' <= lower && lower <= 'z'
		isDigit := '0' <= b && b <= '9'
		unreserved[c] = isLetter || isDigit || strings.IndexByte("-._~", b) >= 0
		inPath[c] = unreserved[c] || strings.IndexByte("!$&'()*+,;=:@/", b) >= 0
	}
}

const hexDigits = "0123456789ABCDEF"

// unhex is the value of a hexadecimal digit; -1: it is none.
func unhex(c byte) int {
	if c >= 'a' {
		c -= 'a' - 'A'
	}
	return strings.IndexByte(hexDigits, c)
}

// appendByte appends a byte of a path or query, percent-encoded unless it is kept.
func appendByte(dst []byte, c byte, kept bool) []byte {
	if kept {
		return append(dst, c)
	}
	return append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
}

// Escape percent-encodes the bytes of a decoded path, such as a file's name, that RFC 3986 does not allow in a path.
// Invalid UTF-8 is encoded byte by byte. A path that needs no escaping is returned without an allocation.
func Escape(raw string) string {
	i := 0
	for i < len(raw) && inPath[raw[i]] {
		i++
	}
	if i == len(raw) {
		return raw
	}
	out := append(make([]byte, 0, len(raw)+16), raw[:i]...)
	for ; i < len(raw); i++ {
		out = appendByte(out, raw[i], inPath[raw[i]])
	}
	return string(out)
}

// Unescape decodes the percent-encoding of a normal path, without its query. A path that needs no decoding is
// returned without an allocation.
func Unescape(path string) string {
	path, _, _ = strings.Cut(path, "?")
	if decoded, err := url.PathUnescape(path); err == nil {
		return decoded
	}
	return path
}

// Errors of [Normal].
var (
	ErrRelative = errors.New("a path must begin with a slash")
	ErrEscape   = errors.New("a percent sign must be followed by two hexadecimal digits")
)

// Normal rewrites an already percent-encoded path, with its query if it has one, into the one form that pages are
// listed in: the equivalences of RFC 3986, section 6.2.2, and no others. Escapes of unreserved characters are decoded;
// what may not stand in a path is encoded; hexadecimal digits are upper-case; dot segments are removed (section 5.2.4),
// also encoded ones; and there is no fragment.
//
// A reserved character stays as it is written, encoded or not: to an application, /a%3Bb and /a;b, or /p%2Fq and /p/q,
// may be different pages (section 2.2). See [Bare] for the spelling in which a file's name has them.
//
// The error is ErrRelative or ErrEscape.
func Normal(ref string) (string, error) {
	if IsNormal(ref) {
		return strings.Clone(ref), nil // a caller's ref may be part of something long
	}
	out, err := AppendNormal(make([]byte, 0, len(ref)+8), ref)
	return string(out), err
}

// AppendNormal appends what [Normal] returns; nothing with an error.
func AppendNormal[T string | []byte](dst []byte, ref T) ([]byte, error) {
	if IsNormal(ref) { // as most paths are
		return append(dst, ref...), nil
	}
	if len(ref) == 0 || ref[0] != '/' {
		return dst, ErrRelative
	}
	out, queryAt, err := appendEncoded(dst, ref)
	if err != nil {
		return dst, err
	}
	path := out[len(dst):queryAt]
	query := out[queryAt:]
	if len(query) == len("?") {
		query = nil // an empty one is none
	}
	// Only now: escapes of dots are decoded.
	if bytes.Contains(path, []byte("/.")) {
		path = removeDotSegments(path)
	}
	out = append(dst, path...)
	return append(out, query...), nil
}

// appendEncoded appends a reference without its fragment, in the one percent-encoding. The query begins at queryAt.
func appendEncoded[T string | []byte](dst []byte, ref T) (out []byte, queryAt int, err error) {
	out = dst
	queryAt = -1
	for i := 0; i < len(ref) && ref[i] != '#'; i++ {
		c := ref[i]
		switch {
		case c == '%':
			if i+2 >= len(ref) {
				return nil, 0, ErrEscape
			}
			high := unhex(ref[i+1])
			low := unhex(ref[i+2])
			if high < 0 || low < 0 {
				return nil, 0, ErrEscape
			}
			decoded := byte(high<<4 | low)
			out = appendByte(out, decoded, unreserved[decoded])
			i += 2
		case c == '?' && queryAt < 0:
			queryAt = len(out)
			out = append(out, c)
		default:
			out = appendByte(out, c, inPath[c] || c == '?')
		}
	}
	if queryAt < 0 {
		queryAt = len(out)
	}
	return out, queryAt, nil
}

// Bare returns a normal path in the spelling in which [Escape] writes the name of a file: with all characters bare
// that a path may hold, also the slash. A file server shows the same file for both spellings. The query stays as it is.
// A path whose encoded slashes hide dot segments, which no file's path has, is returned as it is. So is one that needs
// no rewriting, without an allocation: each link of a page is looked at.
func Bare(path string) string {
	encoded, query, _ := strings.Cut(path, "?")
	if !mayBeBarer(encoded) {
		return path
	}
	bare := Escape(Unescape(encoded))
	// Slashes that were encoded may have hidden dot segments.
	if normal, err := Normal(bare); err != nil || normal != bare {
		return path
	}
	if query == "" {
		return bare
	}
	return bare + "?" + query
}

// mayBeBarer reports whether a normal path without a query has an encoded character that a path may hold.
func mayBeBarer(path string) bool {
	for {
		at := strings.IndexByte(path, '%')
		if at < 0 || at+2 >= len(path) {
			return false
		}
		high := unhex(path[at+1])
		low := unhex(path[at+2])
		if high >= 0 && low >= 0 && inPath[high<<4|low] {
			return true
		}
		path = path[at+3:]
	}
}

// IsNormal reports whether a path certainly is in [Normal]'s form: it has neither anything to be escaped or decoded,
// nor dots after a slash, nor a query. It is fast, and may be false for one that is.
func IsNormal[T string | []byte](path T) bool {
	if len(path) == 0 || path[0] != '/' {
		return false
	}
	isAfterSlash := false
	for i := 0; i < len(path); i++ {
		c := path[i]
		isDotSegment := isAfterSlash && c == '.' // perhaps
		if !inPath[c] || isDotSegment {
			return false
		}
		isAfterSlash = c == '/'
	}
	return true
}

// removeDotSegments is as in RFC 3986, section 5.2.4.
func removeDotSegments(path []byte) []byte {
	segments := bytes.Split(path, []byte("/"))
	kept := segments[:1]
	for i, segment := range segments[1:] {
		switch string(segment) {
		case "..":
			kept = kept[:max(len(kept)-1, 1)]
		case ".":
		default:
			kept = append(kept, segment)
			continue
		}
		// A dot segment at the end names a folder: /a/.. is /, and /a/. is /a/.
		if i == len(segments)-2 {
			kept = append(kept, nil)
		}
	}
	return bytes.Join(kept, []byte("/"))
}

// Folder returns a path up to and including its last slash: the scope of a sitemap at that path, by the protocol.
func Folder(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path[:strings.LastIndexByte(path, '/')+1]
}

// IsClean reports whether a path has no query, and no dot or empty segments, not even encoded, except for a slash at its
// end.
func IsClean(p string) bool {
	if strings.ContainsAny(p, "?#") {
		return false
	}
	decoded := Unescape(p)
	cleaned := path.Clean(decoded)
	return strings.TrimSuffix(decoded, "/") == strings.TrimSuffix(cleaned, "/")
}

// CheckPattern refuses a path pattern that could match no page.
func CheckPattern(p string) error {
	if p == "" || p[0] != '/' && p[0] != '*' {
		return fmt.Errorf("path pattern '%s' matches nothing: it must begin with '/' or '*'", p)
	}
	if strings.HasSuffix(p, ",") || strings.Contains(p, ",/") || strings.Contains(p, ",*") {
		return fmt.Errorf("path pattern '%s': a space separates patterns, not a comma", p)
	}
	// In a pattern of Caddy's matcher, %* is an asterisk that is matched in the encoded path.
	if _, err := path.Match(strings.ReplaceAll(p, "%*", "*"), ""); err != nil {
		return fmt.Errorf("path pattern '%s': %w", p, err)
	}
	return nil
}
