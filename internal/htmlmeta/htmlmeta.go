// Package htmlmeta reads the metadata of pages, from their HTML and from the header of the response: whether a
// page asks not to be indexed, its canonical URL, when it was modified, its links, and a hash of the text that
// a reader sees.
package htmlmeta

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Limits on what is read and returned. A longer list ends there, a longer URL is ignored, a longer title is
// cut.
const (
	MaxBody       = 2 << 20 // bytes of a body
	MaxURL        = page.MaxLoc
	MaxTitle      = 1 << 10 // bytes
	MaxLinks      = 1 << 16
	MaxAlternates = 500
	MaxImages     = 1000
)

// Options says what is collected besides what every page is read for.
type Options struct{ Alternates, Images, Title bool }

// Page is the page whose body or header is read.
type Page struct {
	Base   string      // scheme, host and port of the site, as in https://example.com
	Path   string      // with its query, as in [page.Page]
	Header http.Header // of the response
	Now    time.Time   // the zero time: no date is in the past or in the future
}

// Meta is the metadata of a page.
type Meta struct {
	// Document says that the body is an HTML document: it has a doctype, <html>, <head>, <body> or <title>.
	// Otherwise it is a fragment, such as one that other pages include.
	Document bool

	// NoIndex says that the page asks search engines not to index it.
	NoIndex bool

	// Truncated says that the body is longer than MaxBody. The rest was not read.
	Truncated bool

	// Unreadable says that the body has a Content-Encoding. As none is asked for, it was not read.
	Unreadable bool

	// Canonical is the absolute URL that the page names as its canonical, and Refresh the one to which it
	// sends its readers by a refresh. "": none, or the page itself. Canonical is "", too, where the page names
	// several that differ.
	Canonical string
	Refresh   string

	// Modified is the modification date that the page declares, in Unix seconds; 0: none. ModifiedDay says
	// that only the day is known.
	Modified    int64
	ModifiedDay bool

	// Title is the page's title, only with Options.Title.
	Title string

	// Text is a hash of the text that a reader sees; 0: there is none, and neither a title nor a description
	// in its place. White space, markup, scripts and styles, navigation, headers, footers and asides are not
	// part of it.
	Text uint64

	// Links are the other pages of the site to which the page links, each once, in order, as in
	// [page.Canonical]. They share memory: clone what is kept for long.
	Links []string

	// Alternates are the page's versions in other languages, the first of each language; only with
	// Options.Alternates.
	Alternates []page.Alternate

	// Images are the absolute URLs of the page's images, each once; only with Options.Images.
	Images []string
}

// Header returns the metadata that the header of a response declares: all there is of one whose body is not HTML.
func Header(pg Page) Meta {
	p := NewParser(Options{Alternates: true})
	p.begin(pg)
	return p.finish()
}

// IsHTML reports whether a Content-Type is HTML's or XHTML's.
func IsHTML(contentType string) bool {
	t := mediaType(contentType)
	return t == "text/html" || t == xhtml
}

const xhtml = "application/xhtml+xml"

func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// PathOn returns the path, with its query, of an absolute URL on the site whose scheme, host and port are base, as
// in [page.Canonical]. ok is false where the URL is not on the site, or not valid.
func PathOn(base, url string) (path string, ok bool) {
	if len(url) < len(base) || !strings.EqualFold(url[:len(base)], base) {
		return "", false
	}
	path, _, _ = strings.Cut(url[len(base):], "#")
	if path == "" || path[0] == '?' {
		path = "/" + path
	}
	path, err := page.Canonical(path)
	return path, err == nil
}
