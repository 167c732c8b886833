package sitemapxml

import (
	"bytes"
	"io"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const (
	declaration = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

	urlSetOpen, urlSetOpenEnd = `<urlset xmlns="`, `">` + "\n"
	urlSetClose               = "</urlset>\n"
	urlOpen, urlClose         = "<url><loc>", "</url>\n"
	locClose                  = "</loc>"
	lastModOpen, lastModClose = "<lastmod>", "</lastmod>"

	extensionNamespaces = `" xmlns:xhtml="http://www.w3.org/1999/xhtml" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1`

	alternateOpen, alternateMiddle, alternateClose = `<xhtml:link rel="alternate" hreflang="`, `" href="`, `"/>`
	imageOpen, imageClose                          = "<image:image><image:loc>", "</image:loc></image:image>"

	indexOpen, indexOpenEnd     = `<sitemapindex xmlns="`, `">` + "\n"
	indexClose                  = "</sitemapindex>\n"
	sitemapOpen, sitemapClose   = "<sitemap><loc>", "</sitemap>\n"
	longestFreq, longestPrio    = "<changefreq>monthly</changefreq>", "<priority>0.55</priority>"
	longestEntryWithoutLocBytes = len(urlOpen+locClose+lastModOpen+lastModClose+longestFreq+longestPrio+urlClose) + dateTimeLen
)

// flushBytes is how much text is gathered before it is written.
const flushBytes = 64 << 10

// The elements of every change frequency and priority, whole; "" for those that
// say nothing or do not exist.
var (
	freqElements [256]string
	prioElements [256]string
)

func init() {
	for i, name := range page.ChangeFreqs() {
		freqElements[i+1] = "<changefreq>" + name + "</changefreq>"
	}
	for n := range 101 {
		p := page.Priority(n + 1)
		prioElements[p] = "<priority>" + p.String() + "</priority>"
	}
}

// document is what both kinds of document have in common.
type document struct {
	w     io.Writer
	buf   []byte
	close string
	bytes int64 // written to w already
	err   error
}

func (d *document) open(w io.Writer, open, namespaces, openEnd, end string) {
	*d = document{w: w, buf: make([]byte, 0, flushBytes+4<<10), close: end}
	d.buf = append(d.buf, declaration...)
	d.buf = append(d.buf, open...)
	d.buf = append(d.buf, namespaces...)
	d.buf = append(d.buf, openEnd...)
}

// Bytes is how long the document is so far, uncompressed; after Close, all of it.
func (d *document) Bytes() int64 { return d.bytes + int64(len(d.buf)) }

// Close ends the document and writes what is left of it. It does not close the
// writer beneath. The error is the first that this writer returned.
func (d *document) Close() error {
	d.buf = append(d.buf, d.close...)
	d.flush()
	d.close = ""
	return d.err
}

func (d *document) flush() {
	if d.err == nil && len(d.buf) > 0 {
		_, d.err = d.w.Write(d.buf)
	}
	d.bytes += int64(len(d.buf))
	d.buf = d.buf[:0]
}

func appendLastMod(dst []byte, t int64, dayOnly bool) []byte {
	if !hasDate(t) {
		return dst
	}
	dst = append(dst, lastModOpen...)
	dst = appendDate(dst, t, dayOnly)
	return append(dst, lastModClose...)
}

// URLSet writes the document that lists pages, with one entry a line:
//
//	<?xml version="1.0" encoding="UTF-8"?>
//	<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
//	<url><loc>https://example.com/</loc><lastmod>2006-01-02T15:04:05Z</lastmod><changefreq>daily</changefreq><priority>0.5</priority></url>
//	</urlset>
//
// What is not known of a page has no element. The order of elements is that of
// schema 0.9; 0.84 takes any. A URLSet is not safe for concurrent use.
type URLSet struct {
	document
	prefix   []byte // of every entry: up to the path
	extended bool
}

// NewURLSet begins a document on w. The URL of a page is base followed by its path,
// where base is scheme, host, port and folder, percent-encoded and without a slash
// at the end, such as "https://example.com". The bytes come in pieces of some
// 64 KiB, so w needs no buffer.
func NewURLSet(w io.Writer, s Schema, base string) *URLSet {
	u := &URLSet{prefix: appendURL([]byte(urlOpen), base)}
	u.open(w, urlSetOpen, s.Namespace(), urlSetOpenEnd, urlSetClose)
	return u
}

// NewExtendedURLSet is [NewURLSet] for a document that also says what is in
// [page.Extensions], which a URLSet otherwise leaves out:
//
//	<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
//	<url><loc>https://example.com/</loc><xhtml:link rel="alternate" hreflang="de" href="https://example.com/de"/><image:image><image:loc>https://example.com/a.png</image:loc></image:image></url>
//	</urlset>
//
// Schema 0.84 allows no elements but its own: such a document is as NewURLSet
// writes it.
func NewExtendedURLSet(w io.Writer, s Schema, base string) *URLSet {
	if !s.extensible() {
		return NewURLSet(w, s, base)
	}
	u := &URLSet{prefix: appendURL([]byte(urlOpen), base), extended: true}
	u.open(w, urlSetOpen, s.Namespace()+extensionNamespaces, urlSetOpenEnd, urlSetClose)
	return u
}

// Add writes a page. It does not check the protocol's bounds: see [LocLen],
// [EntrySize], [ExtensionsSize] and [Overhead]. The error is the first that the writer beneath
// returned.
func (u *URLSet) Add(p page.Page) error {
	b := append(u.buf, u.prefix...)
	b = appendURL(b, p.Path)
	b = append(b, locClose...)
	b = appendLastMod(b, p.LastMod, p.LastModDay)
	b = append(b, freqElements[p.ChangeFreq]...)
	b = append(b, prioElements[p.Priority]...)
	if u.extended && p.Extensions != nil {
		b = appendExtensions(b, p.Extensions)
	}
	u.buf = append(b, urlClose...)
	if len(u.buf) >= flushBytes {
		u.flush()
	}
	return u.err
}

func appendExtensions(b []byte, e *page.Extensions) []byte {
	for _, a := range e.Alternates {
		b = append(b, alternateOpen...)
		b = appendURL(b, a.Lang)
		b = append(b, alternateMiddle...)
		b = appendURL(b, a.URL)
		b = append(b, alternateClose...)
	}
	for _, image := range e.Images {
		b = append(b, imageOpen...)
		b = appendURL(b, image)
		b = append(b, imageClose...)
	}
	return b
}

// Index writes the document that lists other documents, with one entry a line:
//
//	<?xml version="1.0" encoding="UTF-8"?>
//	<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
//	<sitemap><loc>https://example.com/sitemap-000000000000.xml</loc><lastmod>2006-01-02T15:04:05Z</lastmod></sitemap>
//	</sitemapindex>
//
// An Index is not safe for concurrent use.
type Index struct{ document }

// NewIndex begins a document on w.
func NewIndex(w io.Writer, s Schema) *Index {
	x := &Index{}
	x.open(w, indexOpen, s.Namespace(), indexOpenEnd, indexClose)
	return x
}

// Add writes the document at loc, an absolute percent-encoded URL, which last
// changed at lastMod, in Unix seconds, or on that day where dayOnly; 0: not known.
// The error is the first that the writer beneath returned.
func (x *Index) Add(loc string, lastMod int64, dayOnly bool) error {
	b := append(x.buf, sitemapOpen...)
	b = appendURL(b, loc)
	b = append(b, locClose...)
	b = appendLastMod(b, lastMod, dayOnly)
	x.buf = append(b, sitemapClose...)
	if len(x.buf) >= flushBytes {
		x.flush()
	}
	return x.err
}

// IsOwn reports whether a document, or its beginning, is as [URLSet] and [Index] write it.
func IsOwn(document []byte) bool {
	rest, ok := bytes.CutPrefix(document, []byte(declaration))
	root, rest, _ := bytes.Cut(rest, []byte("\n"))
	return ok && (bytes.HasPrefix(root, []byte(urlSetOpen)) && bytes.HasPrefix(rest, []byte(urlOpen)) ||
		bytes.HasPrefix(root, []byte(indexOpen)) && bytes.HasPrefix(rest, []byte(sitemapOpen)))
}
