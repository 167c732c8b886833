package htmlmeta

import (
	"bytes"
	"net/url"
	"strings"

	"golang.org/x/net/idna"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// location is the URL of a document: what references are relative to.
type location struct {
	origin string // scheme, host and port
	path   string // with its query, canonical
}

func newLocation(origin, path string) location {
	if canonical, err := page.Canonical(path); err == nil {
		path = canonical
	}
	return location{origin, path}
}

// absolute returns the absolute URL of a reference without its fragment; "" where it is
// not an http URL, not valid or too long.
func (l location) absolute(ref string) string {
	origin, path, ok := l.resolve(nil, []byte(ref))
	if !ok {
		return ""
	}
	return origin + string(path)
}

// resolve returns the origin to which a reference leads, and appends the canonical path
// and query to dst.
func (l location) resolve(dst, ref []byte) (origin string, path []byte, ok bool) {
	ref, _, _ = bytes.Cut(bytes.TrimFunc(ref, func(c rune) bool { return c <= ' ' }), []byte("#"))
	if len(ref) > 2*MaxURL {
		return "", dst, false
	}
	origin, prefix := l.origin, ""
	rest, own := cutOrigin(ref, l.origin)
	switch {
	case own:
		if ref = rest; len(ref) == 0 || ref[0] == '?' {
			prefix = "/"
		}
	case len(ref) == 0:
		prefix = l.path
	case !isPlain(ref):
		var other string
		if origin, other, ok = l.resolveURL(string(ref)); !ok {
			return "", dst, false
		}
		ref = []byte(other)
	case ref[0] == '?':
		prefix, _, _ = strings.Cut(l.path, "?")
	case ref[0] != '/':
		prefix = page.Folder(l.path)
	}
	if prefix != "" {
		var buf [256]byte
		ref = append(append(buf[:0], prefix...), ref...)
	}
	path, err := page.AppendCanonical(dst, ref)
	return origin, path, err == nil && len(origin)+len(path)-len(dst) <= MaxURL
}

// cutOrigin cuts an absolute URL behind its origin.
func cutOrigin(ref []byte, origin string) (rest []byte, ok bool) {
	if len(ref) < len(origin) || string(ref[:len(origin)]) != origin {
		return nil, false
	}
	rest = ref[len(origin):]
	return rest, len(rest) == 0 || rest[0] == '/' || rest[0] == '?'
}

// isPlain reports whether a reference certainly is a path, a query, or both.
func isPlain(ref []byte) bool {
	if bytes.IndexByte(ref, '\\') >= 0 || bytes.IndexByte(ref, '\n') >= 0 || bytes.IndexByte(ref, '\t') >= 0 || bytes.IndexByte(ref, '\r') >= 0 {
		return false
	}
	switch ref[0] {
	case '/':
		return len(ref) == 1 || ref[1] != '/'
	case '.', '?':
		return true
	}
	return bytes.IndexByte(ref, ':') < 0
}

// Browsers ignore line ends and tabs in a URL, and take backslashes for slashes.
var browserRules = strings.NewReplacer("\n", "", "\r", "", "\t", "", `\`, "/")

// resolveURL resolves a reference that may have a scheme and a host.
func (l location) resolveURL(ref string) (origin, path string, ok bool) {
	base, err := url.Parse(l.origin + l.path)
	if err != nil {
		return "", "", false
	}
	u, err := base.Parse(browserRules.Replace(ref))
	if err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", "", false
	}
	host := strings.ToLower(u.Hostname())
	if strings.ContainsFunc(host, func(c rune) bool { return c >= 0x80 }) {
		host, err = idna.Lookup.ToASCII(host)
	}
	if err != nil || host == "" || len(host) > 253 || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-._:") != "" {
		return "", "", false
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && (u.Scheme != "http" || port != "80") && (u.Scheme != "https" || port != "443") {
		host += ":" + port
	}
	path = u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return u.Scheme + "://" + host, path + "?" + u.RawQuery, true
}
