package evidence

import (
	"bytes"
	"strings"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/net/idna"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// location is where a document is, which its references are relative to.
type location struct {
	origin string // scheme, host and port
	host   string // with port, of the origin
	scheme string // in lower case
	path   string // without query
	self   string // with query
}

func newLocation(origin, path string) location {
	scheme, host, _ := strings.Cut(origin, "://")
	self, err := page.Canonical(path)
	if err != nil {
		self = path
	}
	path, _, _ = strings.Cut(self, "?")
	return location{origin: origin, host: host, scheme: strings.ToLower(scheme), path: path, self: self}
}

// at is the location that a reference leads to; false if it is no http one.
func (l *location) at(ref []byte) (location, bool) {
	origin, path := l.resolve(nil, ref)
	if len(path) == 0 {
		return location{}, false
	}
	return newLocation(origin, string(path)), true
}

// absolute is the absolute URL that a reference leads to, without a fragment; empty
// if it is no http one, not valid, or too long.
func (l *location) absolute(ref []byte) string {
	if len(ref) > 2*MaxURL {
		return ""
	}
	origin, ref := l.resolve(nil, ref)
	if len(ref) == 0 {
		return ""
	}
	path, err := page.CanonicalOf(ref)
	if err != nil || len(origin)+len(path) > MaxURL {
		return ""
	}
	return origin + path
}

// append appends the path, with query, of a reference that leads to origin; it
// returns nothing of one that leads elsewhere.
func (l *location) append(dst, ref []byte, origin string) []byte {
	if len(ref) > 2*MaxURL {
		return dst[:0]
	}
	o, path := l.resolve(dst, ref)
	if o != origin {
		return dst[:0]
	}
	return path
}

// resolve appends the path, with query, of a reference, as browsers read it
// (https://url.spec.whatwg.org/#concept-basic-url-parser), and returns it with its
// origin. The path is not in its canonical form yet. It is empty for what is no http
// URL.
func (l *location) resolve(dst, ref []byte) (origin string, path []byte) {
	ref = clean(ref)
	if i := bytes.IndexByte(ref, '#'); i >= 0 {
		ref = ref[:i]
	}
	scheme := l.scheme
	if n := schemeEnd(ref); n > 0 {
		switch {
		case equals(ref[:n], "http"):
			scheme = "http"
		case equals(ref[:n], "https"):
			scheme = "https"
		default:
			return "", nil
		}
		ref = ref[n+1:]
		if scheme != l.scheme || len(ref) > 0 && isSlash(ref[0]) && (len(ref) < 2 || isSlash(ref[1])) {
			return l.absoluteTo(dst, ref, scheme)
		}
	}
	if len(ref) >= 2 && isSlash(ref[0]) && isSlash(ref[1]) {
		return l.absoluteTo(dst, ref, scheme)
	}
	switch {
	case len(ref) == 0:
		return l.origin, append(dst, l.self...)
	case isSlash(ref[0]):
	case ref[0] == '?':
		dst = append(dst, l.path...)
	default:
		dst = append(dst, l.path[:strings.LastIndexByte(l.path, '/')+1]...)
	}
	return l.origin, appendPath(dst, ref)
}

// absoluteTo is resolve for what follows a scheme: slashes, a host, a path.
func (l *location) absoluteTo(dst, ref []byte, scheme string) (string, []byte) {
	for len(ref) > 0 && isSlash(ref[0]) {
		ref = ref[1:]
	}
	n := bytes.IndexAny(ref, `/\?`)
	if n < 0 {
		n = len(ref)
	}
	origin := l.origin
	if scheme != l.scheme || string(ref[:n]) != l.host {
		host, ok := normalHost(string(ref[:n]), scheme)
		if !ok {
			return "", nil
		}
		if own, _ := normalHost(l.host, l.scheme); scheme != l.scheme || host != own {
			origin = scheme + "://" + host
		}
	}
	ref = ref[n:]
	if len(ref) == 0 || ref[0] == '?' {
		dst = append(dst, '/')
	}
	return origin, appendPath(dst, ref)
}

// appendPath appends a path with query, with slashes for what browsers take for
// ones.
func appendPath(dst, ref []byte) []byte {
	n := bytes.IndexByte(ref, '?')
	if n < 0 {
		n = len(ref)
	}
	start := len(dst)
	dst = append(dst, ref...)
	for i, c := range dst[start : start+n] {
		if c == '\\' {
			dst[start+i] = '/'
		}
	}
	return dst
}

// normalHost is a host with port as browsers write it: in lower case, in ASCII,
// without the scheme's own port.
func normalHost(host, scheme string) (string, bool) {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && i > strings.LastIndexByte(host, ']') {
		name, port = host[:i], host[i+1:]
	}
	if len(name) == 0 || len(name) > 1024 || len(port) > 5 || !isAll([]byte(port), '0', '9') {
		return "", false
	}
	ascii := true
	for i := 0; i < len(name); i++ {
		ascii = ascii && name[i] < 0x80
	}
	if !ascii {
		var err error
		if name, err = idna.Lookup.ToASCII(name); err != nil {
			return "", false
		}
	}
	name = strings.ToLower(name)
	if len(name) > 253 {
		return "", false
	}
	if name[0] == '[' {
		if name[len(name)-1] != ']' || strings.Trim(name[1:len(name)-1], "0123456789abcdef:.") != "" {
			return "", false
		}
	} else if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-._") != "" || strings.Trim(name, ".") == "" {
		return "", false
	}
	if port == "" || scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		return name, true
	}
	return name + ":" + port, true
}

// clean is a reference without what browsers remove from one.
func clean(ref []byte) []byte {
	for len(ref) > 0 && ref[0] <= ' ' {
		ref = ref[1:]
	}
	for len(ref) > 0 && ref[len(ref)-1] <= ' ' {
		ref = ref[:len(ref)-1]
	}
	if bytes.IndexByte(ref, '\n') < 0 && bytes.IndexByte(ref, '\t') < 0 && bytes.IndexByte(ref, '\r') < 0 {
		return ref
	}
	out := make([]byte, 0, len(ref))
	for _, c := range ref {
		if c != '\n' && c != '\t' && c != '\r' {
			out = append(out, c)
		}
	}
	return out
}

// schemeEnd is where the colon after a reference's scheme is; 0 if it has none.
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

func isSlash(c byte) bool { return c == '/' || c == '\\' }

// isNew reports whether a link was not met before.
func (r *Reader) isNew(path []byte) bool {
	if len(r.seen) > 16*MaxLinks {
		return true
	}
	h := xxhash.Sum64(path)
	if _, ok := r.seen[h]; ok {
		return false
	}
	r.seen[h] = struct{}{}
	return true
}
