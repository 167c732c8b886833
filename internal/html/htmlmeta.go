// Package html reads the metadata of pages from their HTML and from the header of the response: whether a page
// asks not to be indexed, its canonical URL, title, date and links, and a hash of the text that a reader sees.
package html

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Limits on what is read and returned. A longer list ends there, a longer URL is ignored.
const (
	MaxBody  = 2 << 20 // bytes of a body
	MaxLinks = 1 << 16
	MaxTitle = 200 // characters, of a headline or description, too
)

// Options says what is collected besides the other fields of [Meta].
type Options struct {
	Alternates, Images, Titles bool

	Descriptions bool // Description
	Markdown     bool // the field of this name
	Articles     bool // Published, Headline and Lang: what a news sitemap says of a page, and a feed
	Videos       bool // which only lists name
}

// Page is the page whose body or header is read.
type Page struct {
	Base   string      // scheme, host and port of the site, as in https://example.com
	Path   string      // with its query, as in [page.Page]
	Header http.Header // of the response
	Options
	Now time.Time // no date is more than a day later; the zero time: nothing is unavailable yet
}

// Meta is the metadata of a page.
type Meta struct {
	Document   bool // the body has a doctype, <html>, <head>, <body> or <title>; otherwise it is a fragment
	NoIndex    bool // the page asks search engines not to index it
	NoIndexTag bool // NoIndex, in an X-Robots-Tag header
	Unreadable bool // the body has a Content-Encoding, though none is asked for; it was not read

	// Canonical and Refresh are the absolute URLs of the page's canonical and of its refresh; "": none, or the page
	// itself. Canonical is also "" if the page names several that differ.
	Canonical, Refresh string

	// Modified is the modification date that the page declares, in Unix seconds; 0: none. ModifiedDay says that
	// only the day is known.
	Modified    int64
	ModifiedDay bool

	// Text is a hash of the text that a reader sees, or else of title and description; 0: there is none. White
	// space, markup, scripts, navigation, headers, footers and asides are not part of it.
	Text uint64

	// Blocks is the sum, which wraps around, of the hashes of the blocks of text that count for the date of the page, so
	// that the difference of two is that of the blocks that came and went, whatever else is on the page. 1: there is no
	// text; 0: unknown, as the body is not HTML or was not read. See blockCounter for which blocks count.
	Blocks uint64

	// Links are the other pages of the site to which the page links or that its frames show, each once, in order, as in
	// [page.Normal].
	Links []string

	// Extensions has what else the page declares, as far as the Options of these names want it: its Alternates, the first of
	// each language, the Images of its head and its content, each once, the first Title, the Description, and the absolute URL
	// of the version in Markdown. Lang, and Published with PublishedDay and Headline, are collected with Options.Articles; a
	// Headline is mostly without the name of the site that a Title has.
	page.Extensions
}

// Headers are the fields of a response's header that are read: a page whose body and whose Headers are as before has the
// same metadata, but for what time changes.
var Headers = []string{"Content-Encoding", "Content-Language", "Content-Type", "Link", "Refresh", "X-Robots-Tag"}

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

// PathOn returns the path, with its query, of an absolute URL on the site whose scheme, host and port are base (see
// [origin.URL.IsOn]), as in [page.Normal]. ok is false where the URL is not on the site, or not valid.
func PathOn(base, url string) (path string, ok bool) {
	path, ok = strings.CutPrefix(url, base)
	if ok && page.IsNormal(path) {
		return path, true // as nearly all are written
	}
	u, err := origin.ParseURL(url)
	if err != nil || !u.IsOn(base) {
		return "", false
	}
	return u.Path, true
}

// AcceptPage is the Accept header of a request for a page, as browsers send it: applications that negotiate return HTML
// only where it is named (RFC 9110, section 12.5.1).
const AcceptPage = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
