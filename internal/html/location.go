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

// lineEnds are what browsers leave out of a URL, wherever it is (https://url.spec.whatwg.org/#url-parsing).
var lineEnds = strings.NewReplacer("\n", "", "\r", "", "\t", "")

// resolve returns to where a reference leads, without its fragment; the zero location: see absolute.
func (l location) resolve(reference []byte) (to location, ok bool) {
	before, _, _ := bytes.Cut(reference, []byte("#"))
	ref := strings.TrimFunc(string(before), func(c rune) bool { return c <= ' ' })
	if ref == "" {
		return location{}, false
	}
	if strings.ContainsAny(ref, "\n\r\t\\") { // which hardly any has
		// Before the query, browsers take a backslash for a slash (https://url.spec.whatwg.org/#path-state).
		ref = lineEnds.Replace(ref)
		path, _, _ := strings.Cut(ref, "?")
		ref = strings.ReplaceAll(path, `\`, "/") + ref[len(path):]
	}
	site := l.origin
	switch {
	case strings.HasPrefix(ref, "//"), hasScheme(ref):
		if ref[0] == '/' { // the scheme is that of the document (RFC 3986, section 5.2.2)
			scheme, _, _ := strings.Cut(site, "//")
			ref = scheme + ref
		}
		u, err := origin.ParseURL(ref)
		if err != nil {
			return location{}, false
		}
		if !u.IsOn(site) {
			site = u.Origin()
		}
		ref = u.Path
	case ref[0] == '?':
		path, _, _ := strings.Cut(l.path, "?")
		ref = path + ref
	case ref[0] != '/':
		ref = page.Folder(l.path) + ref
	}
	if !page.IsNormal(ref) { // as most are
		normal, err := page.Normal(ref)
		if err != nil {
			return location{}, false
		}
		ref = normal
	}
	if len(site)+len(ref) > page.MaxLoc {
		return location{}, false
	}
	return location{site, ref}, true
}

// hasScheme reports whether a colon comes before any slash and query: /a:b and ?to=a:b have none (RFC 3986, section 4.2).
func hasScheme(ref string) bool {
	end := strings.IndexAny(ref, ":/?")
	return end > 0 && ref[end] == ':' && isLetter(ref[0])
}
