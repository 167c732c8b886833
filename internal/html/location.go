package html

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
	to, _ := l.resolve(ref)
	return to.url()
}

// Absolute is the absolute URL to which a reference leads from the page at a path of a base URL; "": as for links of the page,
// it is not an http URL, not valid or too long.
func Absolute(base, path, ref string) string { return location{base, path}.absolute([]byte(ref)) }

// asBrowser is how browsers read a reference: they leave out the ends of lines, and take a backslash for a slash
// (https://url.spec.whatwg.org/#url-parsing).
var asBrowser = strings.NewReplacer("\n", "", "\r", "", "\t", "", `\`, "/")

// resolve returns to where a reference leads, without its fragment; the zero location: see absolute.
func (l location) resolve(reference []byte) (to location, ok bool) {
	before, _, _ := bytes.Cut(reference, []byte("#"))
	ref := strings.TrimSpace(string(before))
	if ref == "" {
		return location{}, false
	}
	ref = asBrowser.Replace(ref)
	switch {
	case strings.HasPrefix(ref, "//"): // the scheme is that of the document (RFC 3986, section 5.2.2)
		scheme, _, _ := strings.Cut(l.origin, "//")
		ref = scheme + ref
	case strings.HasPrefix(ref, "?"):
		path, _, _ := strings.Cut(l.path, "?")
		ref = l.origin + path + ref
	case strings.HasPrefix(ref, "/"):
		ref = l.origin + ref
	case !hasScheme(ref):
		ref = l.origin + page.Folder(l.path) + ref
	}
	to, ok = locate(l.origin, ref)
	if !ok || len(to.origin)+len(to.path) > MaxURL {
		return location{}, false
	}
	return to, true
}

// hasScheme reports whether a colon comes before any slash and query: /a:b and ?to=a:b have none (RFC 3986, section 4.2).
func hasScheme(ref string) bool {
	end := strings.IndexAny(ref, ":/?")
	return end > 0 && ref[end] == ':' && isLetter(ref[0])
}

// locate returns where an absolute URL leads. One on the site at base has its origin: see [origin.URL.IsOn].
func locate(base, url string) (to location, ok bool) {
	path, ok := strings.CutPrefix(url, base)
	if ok && page.IsNormal(path) { // as nearly all are written
		return location{base, path}, true
	}
	u, err := origin.ParseURL(url)
	if err != nil {
		return location{}, false
	}
	if u.IsOn(base) {
		return location{base, u.Path}, true
	}
	return location{u.Origin(), u.Path}, true
}

// PathOn returns the path, with its query, of an absolute URL on the site whose scheme, host and port are base (see
// [origin.URL.IsOn]), as in [page.Normal]. ok is false where the URL is not on the site, or not valid.
func PathOn(base, url string) (path string, ok bool) {
	to, ok := locate(base, url)
	if !ok || to.origin != base {
		return "", false
	}
	return to.path, true
}

// HasHostOf reports whether an absolute URL has the host of base, whatever its scheme and port are.
func HasHostOf(base, url string) bool {
	u, err := origin.ParseURL(url)
	return err == nil && u.Host == origin.HostOf(base)
}
