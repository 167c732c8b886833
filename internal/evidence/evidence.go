// Package evidence reads what a page says of itself: whether it wants to be
// indexed, which address it goes by, when it was changed, where it links to, and a
// fingerprint of what a reader sees of it.
package evidence

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Bounds on what is read and kept of a page. What exceeds one is left out: a longer
// list ends there, a longer URL is none, a longer text is cut.
const (
	MaxBody       = 2 << 20 // bytes of a document
	MaxURL        = 2047    // bytes of a URL, as of any page that is listed
	MaxText       = 1 << 10 // bytes of a title, a description
	MaxLinks      = 1000
	MaxAlternates = 500
	MaxImages     = 1000
)

// Evidence is what a page says of itself.
type Evidence struct {
	// Whole says that it is a whole document, with a doctype or a title. Else it
	// is a fragment, such as one that other pages include.
	Whole bool

	// NoIndex says that it asks search engines not to list it.
	NoIndex bool

	// Canonical is the absolute URL that it names as the one to list, itself or
	// another; empty where it names none, or several that differ.
	Canonical string

	// Refresh is the absolute URL that a reader is led to without asking; empty
	// where it leads nowhere, or to the page itself.
	Refresh string

	// Modified is the date that it declares, in Unix seconds; 0 for none.
	// ModifiedDay says that it declares no time of day.
	Modified    int64
	ModifiedDay bool

	Title, Description string

	// Fingerprint is a hash of 48 bits of the text that a reader sees; 0 where there
	// is none, and no title or description in its place.
	Fingerprint uint64

	// Links are the other pages of the site that it links to, each once, in order,
	// in the form of [page.Canonical].
	Links []string

	// Alternates are its versions in other languages, the first of each language.
	Alternates []page.Alternate

	// Images are the absolute URLs of its images, each once.
	Images []string

	// Truncated says that it is longer than MaxBody.
	Truncated bool
}

// Page is which page is read.
type Page struct {
	Base   string      // scheme, host and port of the site: https://example.com
	Path   string      // percent-encoded, with query
	Header http.Header // of the answer; nil for a file
	Now    time.Time   // the zero time: no date is in the past or the future
}

// Options is what is worth collecting.
type Options struct {
	Alternates, Images bool
}

// Header is what the headers of an answer say, without its body.
func Header(p Page) Evidence {
	r := NewReader(Options{Alternates: true})
	r.begin(p)
	return r.finish()
}

// IsHTML reports whether a Content-Type is that of a page.
func IsHTML(contentType string) bool {
	t := mediaType(contentType)
	return strings.EqualFold(t, "text/html") || strings.EqualFold(t, xhtml)
}

const xhtml = "application/xhtml+xml"

func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.TrimSpace(t)
}
