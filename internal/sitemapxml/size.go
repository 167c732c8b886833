package sitemapxml

import "github.com/seed3295b519/caddy-sitemap/internal/page"

// LocLen is the length of a page's URL in bytes, before it is escaped for XML:
// what the protocol wants below 2,048, see [page.MaxLoc].
func LocLen(base string, p page.Page) int {
	return lengthOf(base, &urlLen) + lengthOf(p.Path, &urlLen)
}

// TextSize is how many bytes [WriteText] writes for a page.
func TextSize(base string, p page.Page) int { return LocLen(base, p) + len("\n") }

// EntrySize is how many bytes [URLSet.Add] writes for a page without its
// extensions.
func EntrySize(base string, p page.Page) int {
	n := len(urlOpen) + lengthOf(base, &xmlLen) + lengthOf(p.Path, &xmlLen) + len(locClose)
	if hasDate(p.LastMod) {
		n += len(lastModOpen) + len(lastModClose)
		if p.LastModDay {
			n += dateLen
		} else {
			n += dateTimeLen
		}
	}
	return n + len(freqElements[p.ChangeFreq]) + len(prioElements[p.Priority]) + len(urlClose)
}

// ExtensionsSize is how many bytes [URLSet.Add] writes for a page's extensions in
// a document of [NewExtendedURLSet], beyond [EntrySize].
func ExtensionsSize(s Schema, p page.Page) int {
	if p.Extensions == nil || !s.extensible() {
		return 0
	}
	n := 0
	for _, a := range p.Extensions.Alternates {
		n += len(alternateOpen+alternateMiddle+alternateClose) + lengthOf(a.Lang, &xmlLen) + lengthOf(a.URL, &xmlLen)
	}
	for _, image := range p.Extensions.Images {
		n += len(imageOpen+imageClose) + lengthOf(image, &xmlLen)
	}
	return n
}

// EntriesBound is at least the sum of [EntrySize] over any pages whose paths have
// pathBytes bytes together. It costs nothing, and for paths of up to some 140 bytes
// says that 50,000 of them fit into a document. It knows nothing of extensions: use
// it only where no page has any.
func EntriesBound(base string, pages int, pathBytes int64) int64 {
	return int64(pages)*int64(longestEntryWithoutLocBytes+lengthOf(base, &xmlLen)) + int64(maxXMLLen)*pathBytes
}

// ExtensionsOverhead is what a document of [NewExtendedURLSet] has beyond
// [Overhead].
func ExtensionsOverhead(s Schema) int64 {
	if !s.extensible() {
		return 0
	}
	return int64(len(extensionNamespaces))
}

// Overhead is the bytes of a urlset without a page.
func Overhead(s Schema) int64 {
	return int64(len(declaration + urlSetOpen + urlSetOpenEnd + urlSetClose + s.Namespace()))
}
