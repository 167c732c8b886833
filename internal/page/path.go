package page

import (
	"bytes"
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
	if IsNormal(ref) {
		return strings.Clone(ref), nil // a caller's ref may be part of something long
	}
	out, err := AppendCanonical(make([]byte, 0, len(ref)+8), ref)
	return string(out), err
}

// AppendCanonical appends what [Canonical] returns; nothing with an error.
func AppendCanonical[T string | []byte](dst []byte, ref T) ([]byte, error) {
	if len(ref) == 0 || ref[0] != '/' {
		return dst, ErrRelative
	}
	if isCanonical(ref) {
		return append(dst, ref...), nil
	}
	end := len(ref)
	query := end
	for i := range end {
		if ref[i] == '?' && query > i {
			query = i
		}
		if ref[i] == '#' {
			end = i
			break
		}
	}
	query = min(query, end)
	start := len(dst)
	out, err := normalize(dst, ref[:query], false)
	if err != nil {
		return dst, err
	}
	out = out[:start+len(removeDotSegments(out[start:]))]
	if query+1 >= end {
		return out, nil
	}
	if out, err = normalize(append(out, '?'), ref[query+1:end], true); err != nil {
		return dst, err
	}
	return out, nil
}

// IsNormal reports whether a path certainly is in [Canonical]'s form. It is fast, and may
// be false for one that is.
func IsNormal(path string) bool { return path != "" && path[0] == '/' && isCanonical(path) }

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

func normalize[T string | []byte](dst []byte, s T, query bool) ([]byte, error) {
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

// removeDotSegments works in place (RFC 3986, section 5.2.4).
func removeDotSegments(p []byte) []byte {
	out := p[:0]
	for i := 0; i < len(p); {
		end := i + 1
		for end < len(p) && p[end] != '/' {
			end++
		}
		switch string(p[i:end]) {
		case "/..":
			out = out[:max(0, bytes.LastIndexByte(out, '/'))]
			fallthrough
		case "/.":
			if end == len(p) {
				out = append(out, '/')
			}
		default:
			out = append(out, p[i:end]...)
		}
		i = end
	}
	return out
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
