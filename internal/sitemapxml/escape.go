package sitemapxml

import "github.com/seed3295b519/caddy-sitemap/internal/page"

// What a byte of a URL becomes in a document. Page paths come percent-encoded, so
// that usually only "&" and "'" need anything. But whatever comes, the document
// stays well-formed and no white space gets into a loc: other bytes that no URL
// has are percent-encoded one by one (RFC 3986, section 2.1).
//
// Only the named entities are used: some readers do not decode numeric ones.
var entities = [256]string{'&': "&amp;", '\'': "&apos;", '"': "&quot;", '<': "&lt;", '>': "&gt;"}

// Bytes in a document, and in a URL, per byte of a path.
var xmlLen, urlLen [256]uint8

// maxXMLLen is the largest of xmlLen.
const maxXMLLen = len("&apos;")

func init() {
	for i := range xmlLen {
		xmlLen[i], urlLen[i] = 1, 1
		switch {
		case entities[i] != "":
			xmlLen[i] = uint8(len(entities[i]))
		case i <= ' ' || i >= 0x7F:
			xmlLen[i], urlLen[i] = 3, 3
		}
	}
}

// appendURL appends a URL or a part of one as XML text.
func appendURL(dst []byte, s string) []byte {
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if xmlLen[c] == 1 {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		if e := entities[c]; e != "" {
			dst = append(dst, e...)
			continue
		}
		dst = append(dst, page.Escape(s[i:i+1])...)
	}
	return append(dst, s[from:]...)
}

// lengthOf is the sum of lengths, xmlLen or urlLen, over the bytes of s.
func lengthOf(s string, lengths *[256]uint8) int {
	n := 0
	for i := 0; i < len(s); i++ {
		n += int(lengths[s[i]])
	}
	return n
}
