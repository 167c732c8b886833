// Package sitemapxml writes sitemap documents: urlset and sitemapindex, their text form, and gzip.
package sitemapxml

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Schema is the XML schema that a document follows. The zero value is [Schema09].
type Schema uint8

const (
	// Schema09 is that of https://www.sitemaps.org/protocol.html.
	Schema09 Schema = iota

	// Schema084 is Google's first, which some engines and appliances still want. Its
	// entries have no elements of other namespaces: they are an xsd:all of its own four.
	Schema084
)

// Namespace is the XML namespace of the schema's documents.
func (s Schema) Namespace() string {
	if s == Schema084 {
		return "http://www.google.com/schemas/sitemap/0.84"
	}
	return "http://www.sitemaps.org/schemas/sitemap/0.9"
}

// Mark is near the beginning of every document, as a comment. Builds and servers know their own by it: others name and lay out
// theirs alike, and those are to be kept and read.
const Mark = "<!-- caddy-sitemap -->"

// MaxBeginning is within how many bytes of a document its Mark is: the name of the stylesheet may be long.
const MaxBeginning = 4 << 10

const (
	declaration = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	rootEnd     = `">` + Mark + "\n"

	styleOpen  = `<?xml-stylesheet type="text/css" href="`
	styleClose = `"?>` + "\n"

	urlSetOpen  = `<urlset xmlns="`
	urlSetClose = "</urlset>\n"
	urlOpen     = "<url><loc>"
	urlClose    = "</url>\n"

	indexOpen    = `<sitemapindex xmlns="`
	indexClose   = "</sitemapindex>\n"
	sitemapOpen  = "<sitemap><loc>"
	sitemapClose = "</sitemap>\n"

	locClose = "</loc>"

	extensionNamespaces = `" xmlns:xhtml="http://www.w3.org/1999/xhtml" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1` +
		`" xmlns:video="http://www.google.com/schemas/sitemap-video/1.1`
)

// The elements of every change frequency and priority, whole; "" for those that say nothing or do not exist.
var (
	freqElements [256]string
	prioElements [256]string
)

// What a byte of a URL becomes in a document; "": it stays. Page paths come percent-encoded, so that usually only "&"
// and "'" need anything. But whatever comes, the document stays well-formed and no white space gets into a loc: other
// bytes that no URL has are percent-encoded one by one (RFC 3986, section 2.1).
//
// Only the named entities are used: some readers do not decode numeric ones.
var escapes = [256]string{'&': "&amp;", '\'': "&apos;", '"': "&quot;", '<': "&lt;", '>': "&gt;"}

// maxEscape is the length of the longest of escapes.
const maxEscape = len("&apos;")

func init() {
	for i, name := range page.ChangeFreqs() {
		freqElements[i+1] = "<changefreq>" + name + "</changefreq>"
	}
	for n := range 101 {
		p := page.Priority(n + 1)
		prioElements[p] = "<priority>" + p.String() + "</priority>"
	}
	for c := range escapes {
		if c <= ' ' || c >= 0x7F {
			escapes[c] = page.Escape(string([]byte{byte(c)}))
		}
	}
}

// appendURL appends a URL or a part of one as XML text.
func appendURL(dst []byte, s string) []byte {
	from := 0
	for i := range len(s) {
		if e := escapes[s[i]]; e != "" {
			dst = append(dst, s[from:i]...)
			dst = append(dst, e...)
			from = i + 1
		}
	}
	return append(dst, s[from:]...)
}

// Encoder writes the documents of a site. Equal pages give equal bytes.
type Encoder struct {
	Schema Schema

	// Base is scheme, host, port and folder of all pages, percent-encoded and without a slash
	// at the end, such as "https://example.com".
	Base string

	// Extended documents also have [page.Extensions].
	Extended bool

	// Stylesheet is the percent-encoded URL of a CSS stylesheet in the folder of the documents,
	// relative to them, such as "sitemap.css". "": none.
	Stylesheet string
}

// URLSet writes the document that lists pages, with one entry a line:
//
//	<?xml version="1.0" encoding="UTF-8"?>
//	<?xml-stylesheet type="text/css" href="sitemap.css"?>
//	<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
//	<url><loc>https://example.com/</loc><lastmod>2006-01-02T15:04:05Z</lastmod><changefreq>daily</changefreq><priority>0.5</priority></url>
//	</urlset>
//
// Unknown fields of a page have no element. The order of elements is that of schema
// 0.9; 0.84 takes any. An extended document has more namespaces and elements:
//
//	<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:video="http://www.google.com/schemas/sitemap-video/1.1">
//	<url><loc>https://example.com/</loc><xhtml:link rel="alternate" hreflang="de" href="https://example.com/de"/><image:image><image:loc>https://example.com/a.png</image:loc></image:image></url>
//	</urlset>
//
// The URL of a page is the base followed by its path. The bytes come in pieces of some 64 KiB, so w needs no buffer;
// size counts them. URLSet does not check the protocol's bounds: see [Encoder.Bound].
func (e Encoder) URLSet(w io.Writer, pages []page.Page) (size int64, err error) {
	namespaces := e.Schema.Namespace()
	if e.Extended {
		namespaces += extensionNamespaces
	}
	l := layout{
		open:       urlSetOpen + namespaces + rootEnd,
		close:      urlSetClose,
		entryOpen:  urlOpen,
		entryClose: urlClose,
	}
	return e.write(w, l, pages)
}

// Index writes the document that lists other documents, as [Encoder.URLSet] does. Their paths are absolute URLs:
//
//	<?xml version="1.0" encoding="UTF-8"?>
//	<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
//	<sitemap><loc>https://example.com/sitemap-000000000000.xml</loc><lastmod>2006-01-02T15:04:05Z</lastmod></sitemap>
//	</sitemapindex>
func (e Encoder) Index(w io.Writer, documents []page.Page) (size int64, err error) {
	l := layout{
		open:       indexOpen + e.Schema.Namespace() + rootEnd,
		close:      indexClose,
		entryOpen:  sitemapOpen,
		entryClose: sitemapClose,
	}
	e.Base = "" // the paths of documents are whole URLs
	e.Extended = false
	return e.write(w, l, documents)
}

// layout is what tells the kinds of documents apart.
type layout struct{ open, close, entryOpen, entryClose string }

func (e Encoder) write(w io.Writer, l layout, pages []page.Page) (size int64, err error) {
	const enough = 64 << 10
	buf := make([]byte, 0, enough+4<<10) // most entries that go beyond fit into the rest
	buf = append(buf, declaration...)
	buf = append(buf, e.stylesheet()...)
	buf = append(buf, l.open...)
	prefix := appendURL([]byte(l.entryOpen), e.Base)
	for _, p := range pages {
		buf = append(buf, prefix...)
		buf = appendEntry(buf, p, e.Extended)
		buf = append(buf, l.entryClose...)
		if len(buf) < enough {
			continue
		}
		n, err := w.Write(buf)
		size += int64(n)
		if err != nil {
			return size, err
		}
		buf = buf[:0]
		runtime.Gosched() // requests go first
	}
	n, err := w.Write(append(buf, l.close...))
	return size + int64(n), err
}

// stylesheet is the line that names the stylesheet (https://www.w3.org/TR/xml-stylesheet/), "" without one.
func (e Encoder) stylesheet() string {
	href := e.Stylesheet
	if href == "" {
		return ""
	}
	// What comes before a colon in the first segment would be a scheme (RFC 3986, section 4.2).
	if strings.Contains(href, ":") {
		href = "./" + href
	}
	return styleOpen + string(appendURL(nil, href)) + styleClose
}

// appendEntry appends what stands between the site's base and the end of an entry.
func appendEntry(b []byte, p page.Page, extended bool) []byte {
	b = appendURL(b, p.Path)
	b = append(b, locClose...)
	b = appendLastMod(b, p.LastMod, p.LastModDay)
	b = append(b, freqElements[p.ChangeFreq]...)
	b = append(b, prioElements[p.Priority]...)
	if !extended || p.Extensions == nil {
		return b
	}
	for _, a := range p.Extensions.Alternates {
		b = append(b, `<xhtml:link rel="alternate" hreflang="`...)
		b = appendURL(b, a.Lang)
		b = append(b, `" href="`...)
		b = appendURL(b, a.URL)
		b = append(b, `"/>`...)
	}
	for _, image := range p.Extensions.Images {
		b = append(b, "<image:image><image:loc>"...)
		b = appendURL(b, image)
		b = append(b, "</image:loc></image:image>"...)
	}
	for _, video := range p.Extensions.Videos {
		b = append(b, "<video:video>"...)
		b = append(b, video...)
		b = append(b, "</video:video>"...)
	}
	return b
}

// appendLastMod appends the date of a page, if it is known and can be written.
func appendLastMod(b []byte, unix int64, isDay bool) []byte {
	if unix == 0 {
		return b
	}
	// W3C Datetime has years of four digits (https://www.w3.org/TR/NOTE-datetime), and XML Schema has no year 0
	// (https://www.w3.org/TR/xmlschema-2/#dateTime).
	t := time.Unix(unix, 0).UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		return b
	}
	form := time.RFC3339
	if isDay {
		form = time.DateOnly
	}
	b = append(b, "<lastmod>"...)
	b = t.AppendFormat(b, form)
	return append(b, "</lastmod>"...)
}

// Bound returns an upper bound for the bytes of a document of pages, without extensions. It is
// cheap, and shows that 50,000 pages with paths of up to some 140 bytes fit into a document.
func (e Encoder) Bound(pages []page.Page) int64 {
	const longest = urlOpen + locClose +
		"<lastmod>2006-01-02T15:04:05Z</lastmod><changefreq>monthly</changefreq><priority>0.55</priority>" +
		urlClose
	root := declaration + e.stylesheet() + urlSetOpen + Schema09.Namespace() + rootEnd + urlSetClose // 0.84's is shorter
	entry := len(longest) + len(appendURL(nil, e.Base))
	size := int64(len(root))
	size += int64(len(pages) * entry)
	for i := range pages {
		size += int64(maxEscape * len(pages[i].Path))
	}
	return size
}

// TextSize is how many bytes [WriteText] writes for a page.
func TextSize(base string, p page.Page) int {
	n := len(base) + len(p.Path) + len("\n")
	for _, s := range [...]string{base, p.Path} {
		for i := range len(s) {
			if e := escapes[s[i]]; e != "" && e[0] == '%' {
				n += len("%00") - 1
			}
		}
	}
	return n
}

// IsOwn reports whether an [Encoder] wrote a document, of which this is at least the beginning. How a document is laid out
// tells nothing: scripts of others write it alike.
func IsOwn(document []byte) bool {
	beginning := document[:min(len(document), MaxBeginning)]
	return bytes.HasPrefix(beginning, []byte(declaration)) && bytes.Contains(beginning, []byte(Mark))
}
