package page

// Extensions is what a page's entry says beyond the protocol's own elements.
type Extensions struct {
	// Alternates are the page's versions in other languages, itself among them
	// (https://developers.google.com/search/docs/specialty/international/localized-versions).
	Alternates []Alternate

	// Images are the absolute URLs of the images on the page, at most 1,000
	// (https://developers.google.com/search/docs/crawling-indexing/sitemaps/image-sitemaps).
	Images []string
}

// Empty reports whether e, which may be nil, says nothing.
func (e *Extensions) Empty() bool {
	return e == nil || len(e.Alternates) == 0 && len(e.Images) == 0
}

// Alternate is a version of a page for readers of a language or region.
type Alternate struct {
	Lang string // as in hreflang, such as "de-AT" or "x-default"
	URL  string // absolute
}
