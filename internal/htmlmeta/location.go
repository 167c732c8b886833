package htmlmeta

import (
	"bytes"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// location is the URL of a document: what references are relative to.
type location struct {
	origin string // scheme, host and port
	path   string // with its query, normal
}

func (l location) url() string { return l.origin + l.path }

// absolute returns the absolute URL of a reference without its fragment; "" where that is all, or it is not an
// http URL, not valid or too long.
func (l location) absolute(ref []byte) string {
	site, path, ok := l.resolve(nil, ref)
	if !ok {
		return ""
	}
	return site + string(path)
}

// Absolute is the absolute URL to which a reference leads from the page at a path of a base URL; "": as for links of the page,
// it is not an http URL, not valid or too long.
func Absolute(base, path, ref string) string { return location{base, path}.absolute([]byte(ref)) }

// lineEnds are what browsers leave out of a URL, wherever it is (https://url.spec.whatwg.org/#url-parsing).
var lineEnds = strings.NewReplacer("\n", "", "\r", "", "\t", "")

// asBrowser returns a reference as browsers read it: before the query, a backslash is a slash
// (https://url.spec.whatwg.org/#path-state).
func asBrowser(ref []byte) []byte {
	before, query, hasQuery := strings.Cut(lineEnds.Replace(string(ref)), "?")
	before = strings.ReplaceAll(before, `\`, "/")
	if hasQuery {
		before += "?" + query
	}
	return []byte(before)
}

// resolve returns the origin to which a reference leads, and appends the normal path and query to dst.
func (l location) resolve(dst, ref []byte) (site string, path []byte, ok bool) {
	ref = bytes.TrimFunc(ref, func(c rune) bool { return c <= ' ' })
	ref, _, _ = bytes.Cut(ref, []byte("#"))
	// Dot segments and escapes that are not needed make a reference longer than its URL.
	if len(ref) == 0 || len(ref) > 2*MaxURL {
		return "", dst, false
	}
	if bytes.ContainsAny(ref, "\\\n\r\t") {
		ref = asBrowser(ref)
	}
	site = l.origin
	n := len(site)
	prefix := "" // of the path
	switch {
	case len(ref) > n && ref[n] == '/' && string(ref[:n]) == site: // which needs no parser
		ref = ref[n:]
	case bytes.HasPrefix(ref, []byte("//")), hasScheme(ref):
		absolute := string(ref)
		if ref[0] == '/' { // the scheme is that of the document (RFC 3986, section 5.2.2)
			scheme, _, _ := strings.Cut(site, "//")
			absolute = scheme + absolute
		}
		u, err := origin.ParseURL(absolute)
		if err != nil {
			return "", dst, false
		}
		if !u.IsOn(site) {
			site = u.Origin()
		}
		prefix = u.Path
		ref = nil
	case ref[0] == '?':
		prefix, _, _ = strings.Cut(l.path, "?")
	case ref[0] != '/':
		prefix = page.Folder(l.path)
	}
	if prefix != "" {
		var buf [256]byte // spares most references an allocation
		joined := append(buf[:0], prefix...)
		ref = append(joined, ref...)
	}
	path, err := page.AppendNormal(dst, ref)
	size := len(site) + len(path) - len(dst)
	return site, path, err == nil && size <= MaxURL
}

// hasScheme reports whether a colon comes before any slash and query: /a:b and ?to=a:b have none (RFC 3986, section 4.2).
func hasScheme(ref []byte) bool {
	end := bytes.IndexAny(ref, ":/?")
	return end > 0 && ref[end] == ':' && isLetter(ref[0])
}
