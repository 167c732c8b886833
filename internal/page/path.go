package page

import (
	"errors"
	"strings"
)

// The bytes that RFC 3986, section 3.3, allows in a path as they are:
// unreserved, sub-delims, ":", "@" and "/".
var inPath, unreserved [256]bool

func init() {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~") {
		inPath[c], unreserved[c] = true, true
	}
	for _, c := range []byte("!$&'()*+,;=:@/") {
		inPath[c] = true
	}
}

const upperHex = "0123456789ABCDEF"

// AppendEscaped appends raw, bytes of a decoded path such as a file's name, with
// those bytes percent-encoded that RFC 3986 does not allow in a path. Bytes that
// are no UTF-8 keep their values.
func AppendEscaped(dst []byte, raw string) []byte {
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if inPath[c] {
			dst = append(dst, c)
			continue
		}
		dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
	}
	return dst
}

// Escape is [AppendEscaped] for one string. What needs no escaping is returned
// as it is, without an allocation.
func Escape(raw string) string {
	for i := 0; i < len(raw); i++ {
		if !inPath[raw[i]] {
			return string(AppendEscaped(make([]byte, 0, len(raw)+16), raw))
		}
	}
	return raw
}

// Errors of [Canonical].
var (
	ErrRelative = errors.New("a path begins with a slash")
	ErrEscape   = errors.New("a percent sign is followed by two hexadecimal digits")
)

// Canonical rewrites an already percent-encoded path, with its query if it has
// one, into the one form that pages are listed in. In the path every byte is
// encoded as [AppendEscaped] does, however it was written, so that a link and the
// name of a file agree; only an encoded slash stays encoded, as it separates no
// segments. In the query, where encoding may matter to an application, escapes
// are decoded for unreserved characters only. Hexadecimal digits are upper-case, dot
// segments are removed (RFC 3986, section 5.2.4), and there is no fragment. The
// error is ErrRelative or ErrEscape.
func Canonical(ref string) (string, error) {
	if ref == "" || ref[0] != '/' {
		return "", ErrRelative
	}
	if isCanonical(ref) {
		return strings.Clone(ref), nil // a caller's ref may be part of something long
	}
	if i := strings.IndexByte(ref, '#'); i >= 0 {
		ref = ref[:i]
	}
	path, query, hasQuery := strings.Cut(ref, "?")
	out, err := normalize(make([]byte, 0, len(ref)+8), path, false)
	if err != nil {
		return "", err
	}
	p := removeDotSegments(string(out))
	if !hasQuery || query == "" {
		return p, nil
	}
	out, err = normalize(append(out[:0], '?'), query, true)
	if err != nil {
		return "", err
	}
	return p + string(out), nil
}

// CanonicalOf is [Canonical] for bytes.
func CanonicalOf(ref []byte) (string, error) {
	if len(ref) > 0 && ref[0] == '/' && isCanonical(ref) {
		return string(ref), nil
	}
	return Canonical(string(ref))
}

// isCanonical reports whether a path certainly is in that form: it has neither
// anything to be escaped or decoded, nor dots after a slash, nor a query.
func isCanonical[T string | []byte](path T) bool {
	slash := false
	for i := 0; i < len(path); i++ {
		c := path[i]
		if !inPath[c] || slash && c == '.' {
			return false
		}
		slash = c == '/'
	}
	return true
}

func normalize(dst []byte, s string, query bool) ([]byte, error) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return nil, ErrEscape
			}
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += 2
			if unreserved[c] || !query && inPath[c] && c != '/' {
				dst = append(dst, c)
				continue
			}
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		case inPath[c] || query && c == '?':
			dst = append(dst, c)
		default:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst, nil
}

func removeDotSegments(p string) string {
	if !strings.Contains(p, "/.") {
		return p
	}
	var out []string
	segments := strings.Split(p[1:], "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".", "..":
			if s == ".." && len(out) > 0 {
				out = out[:len(out)-1]
			}
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, s)
		}
	}
	return "/" + strings.Join(out, "/")
}

// Unescape decodes the percent-encoding of a canonical path; its query, if it
// has one, is left out. What needs no decoding is returned as it is, without an
// allocation.
func Unescape(path string) string {
	path, _, _ = strings.Cut(path, "?")
	i := strings.IndexByte(path, '%')
	if i < 0 {
		return path
	}
	out := append(make([]byte, 0, len(path)), path[:i]...)
	for ; i < len(path); i++ {
		if path[i] == '%' && i+2 < len(path) && isHex(path[i+1]) && isHex(path[i+2]) {
			out = append(out, unhex(path[i+1])<<4|unhex(path[i+2]))
			i += 2
			continue
		}
		out = append(out, path[i])
	}
	return string(out)
}

// Folder is the path up to and with its last slash: what a document at path may
// list by the protocol's scope rule.
func Folder(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path[:strings.LastIndexByte(path, '/')+1]
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}
