package htmlmeta

import (
	"bytes"
	"strings"

	"golang.org/x/net/idna"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// location is the URL of a document: what references are relative to.
type location struct {
	scheme, host, origin string // of https://example.com:8443: https, example.com:8443, and all of it
	path                 string // with its query, canonical
	folder, end          int    // lengths of the path up to its last slash, and without the query
}

func newLocation(origin, path string) location {
	if canonical, err := page.Canonical(path); err == nil {
		path = canonical
	}
	scheme, host, _ := strings.Cut(origin, "://")
	bare, _, _ := strings.Cut(path, "?")
	return location{scheme, host, origin, path, strings.LastIndexByte(bare, '/') + 1, len(bare)}
}

// absolute returns the absolute URL of a reference without its fragment; "" where it is
// not an http URL, not valid or too long.
func (l *location) absolute(ref []byte) string {
	var buf [256]byte
	origin, path, ok := l.resolve(buf[:0], ref)
	if !ok {
		return ""
	}
	return origin + string(path)
}

// resolve appends the canonical path and query of a reference to dst and returns the
// origin, as browsers read it (https://url.spec.whatwg.org/#concept-basic-url-parser).
func (l *location) resolve(dst, ref []byte) (origin string, path []byte, ok bool) {
	ref = normalReference(ref)
	if len(ref) > 2*MaxURL {
		return "", dst, false
	}
	origin = l.origin
	scheme, hasHost := l.scheme, bytes.HasPrefix(ref, []byte("//"))
	if n := schemeEnd(ref); n > 0 {
		switch {
		case bytes.EqualFold(ref[:n], []byte("http")):
			scheme = "http"
		case bytes.EqualFold(ref[:n], []byte("https")):
			scheme = "https"
		default:
			return "", dst, false
		}
		ref = ref[n+1:]
		hasHost = scheme != l.scheme || bytes.HasPrefix(ref, []byte("//"))
	}
	prefix := "" // of the path
	switch {
	case hasHost:
		ref = bytes.TrimLeft(ref, "/")
		n := bytes.IndexAny(ref, "/?")
		if n < 0 {
			n = len(ref)
		}
		if origin, ok = l.originOf(scheme, ref[:n]); !ok {
			return "", dst, false
		}
		if ref = ref[n:]; len(ref) == 0 || ref[0] == '?' {
			prefix = "/"
		}
	case len(ref) == 0:
		prefix = l.path
	case ref[0] == '?':
		prefix = l.path[:l.end]
	case ref[0] != '/':
		prefix = l.path[:l.folder]
	}
	if prefix != "" {
		var buf [512]byte
		ref = append(append(buf[:0], prefix...), ref...)
	}
	path, err := page.AppendCanonical(dst, ref)
	return origin, path, err == nil && len(origin)+len(path)-len(dst) <= MaxURL
}

// normalReference removes from a reference what browsers ignore, and its fragment. They
// take a backslash in a path for a slash.
func normalReference(ref []byte) []byte {
	for len(ref) > 0 && ref[0] <= ' ' {
		ref = ref[1:]
	}
	for len(ref) > 0 && ref[len(ref)-1] <= ' ' {
		ref = ref[:len(ref)-1]
	}
	if i := bytes.IndexByte(ref, '#'); i >= 0 {
		ref = ref[:i]
	}
	if bytes.IndexByte(ref, '\\') < 0 && bytes.IndexByte(ref, '\n') < 0 && bytes.IndexByte(ref, '\r') < 0 && bytes.IndexByte(ref, '\t') < 0 {
		return ref
	}
	out := make([]byte, 0, len(ref))
	query := false
	for _, c := range ref {
		query = query || c == '?'
		switch {
		case c == '\n' || c == '\r' || c == '\t':
		case c == '\\' && !query:
			out = append(out, '/')
		default:
			out = append(out, c)
		}
	}
	return out
}

// schemeEnd returns where the colon behind a reference's scheme is; 0: it has none.
func schemeEnd(ref []byte) int {
	for i, c := range ref {
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			return i
		default:
			return 0
		}
	}
	return 0
}

// originOf returns the origin of a scheme and a host with its port, in the form that
// browsers give it.
func (l *location) originOf(scheme string, host []byte) (string, bool) {
	if scheme == l.scheme && string(host) == l.host {
		return l.origin, true
	}
	name, ok := normalHost(string(host), scheme)
	if own, _ := normalHost(l.host, l.scheme); scheme == l.scheme && name == own {
		return l.origin, ok
	}
	return scheme + "://" + name, ok
}

// normalHost writes a host in lower case, in ASCII, and without its scheme's own port.
func normalHost(host, scheme string) (string, bool) {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name, port = host[:i], host[i+1:]
	}
	if len(name) > 253 || len(port) > 5 || strings.Trim(port, "0123456789") != "" {
		return "", false
	}
	name = strings.ToLower(name)
	if strings.ContainsFunc(name, func(c rune) bool { return c >= 0x80 }) {
		var err error
		if name, err = idna.Lookup.ToASCII(name); err != nil {
			return "", false
		}
	}
	allowed := "abcdefghijklmnopqrstuvwxyz0123456789-._"
	inner := name
	if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		inner, allowed = name[1:len(name)-1], "0123456789abcdef:."
	}
	if strings.Trim(inner, allowed) != "" || strings.Trim(inner, ".") == "" {
		return "", false
	}
	if port == "" || scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		return name, true
	}
	return name + ":" + port, true
}
