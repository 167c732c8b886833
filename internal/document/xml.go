package document

import (
	"bytes"
	"path"
	"slices"
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

// Mark is near the beginning of every XML document, and of the one for language models, as a comment. Builds and servers know their own
// by it: others name and lay out theirs alike, and those are to be kept and read.
const Mark = "<!-- caddy-sitemap -->"

// MaxBeginning is within how many bytes of a document its Mark is: the name of the stylesheet may be long.
const MaxBeginning = 4 << 10

const (
	declaration = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

	urlSetClose  = "</urlset>\n"
	urlOpen      = "<url><loc>"
	urlClose     = "</url>\n"
	indexClose   = "</sitemapindex>\n"
	sitemapOpen  = "<sitemap><loc>"
	sitemapClose = "</sitemap>\n"
	locClose     = "</loc>"

	extensionNamespaces = `" xmlns:xhtml="http://www.w3.org/1999/xhtml" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1` +
		`" xmlns:video="http://www.google.com/schemas/sitemap-video/1.1`
)

// What a byte of a URL becomes in a document. Page paths come percent-encoded, so that usually only "&" and "'" need anything. But
// whatever comes, the document stays well-formed and no white space gets into a loc: other bytes that no URL has are
// percent-encoded one by one (RFC 3986, section 2.1).
//
// Only the named entities are used: some readers do not decode numeric ones.
var escapes [256]string

func init() {
	for c := range escapes {
		one := string([]byte{byte(c)})
		if c <= ' ' || c >= 0x7F {
			one = page.Escape(one)
		}
		escapes[c] = textEscapes.Replace(one)
	}
}

// appendURL appends a URL or a part of one as XML text.
func appendURL(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = append(dst, escapes[s[i]]...)
	}
	return dst
}

// appendIn appends a URL or a part of one in markup.
func appendIn(dst []byte, open, url, end string) []byte {
	dst = append(dst, open...)
	dst = appendURL(dst, url)
	return append(dst, end...)
}

// urlset is the document with these entries:
//
//	<?xml version="1.0" encoding="UTF-8"?>
//	<?xml-stylesheet type="text/css" href="sitemap.css"?>
//	<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><!-- caddy-sitemap -->
//	<url><loc>https://example.com/</loc><lastmod>2006-01-02T15:04:05Z</lastmod><changefreq>daily</changefreq><priority>0.5</priority></url>
//	</urlset>
//
// namespaces are those of elements beside the schema's.
func (o *Options) urlset(namespaces string, entries []byte) []byte {
	return o.document("urlset", namespaces, entries, urlSetClose)
}

// document is a document with a root element.
func (o *Options) document(root, namespaces string, entries []byte, end string) []byte {
	begin := declaration + o.stylesheetLine() + "<" + root + ` xmlns="` + o.Schema.Namespace() + namespaces + `">` + Mark + "\n"
	return slices.Concat([]byte(begin), entries, []byte(end))
}

// stylesheetLine names the stylesheet (https://www.w3.org/TR/xml-stylesheet/); "": there is none.
func (o *Options) stylesheetLine() string {
	if !o.Stylesheet {
		return ""
	}
	href := path.Base(o.Sitemap) + Stylesheet
	// What comes before a colon in the first segment would be a scheme (RFC 3986, section 4.2).
	if strings.Contains(href, ":") {
		href = "./" + href
	}
	return `<?xml-stylesheet type="text/css" href="` + string(appendURL(nil, href)) + `"?>` + "\n"
}

// index is the document that lists others:
//
//	<sitemap><loc>https://example.com/sitemap-000000000000.xml</loc><lastmod>2006-01-02T15:04:05Z</lastmod></sitemap>
func (o *Options) index(documents []*Document) []byte {
	var entries []byte
	for _, d := range documents {
		entries = appendIn(entries, sitemapOpen, o.Sitemap+d.Name, locClose)
		entries = appendLastMod(entries, d.LastMod, d.LastModDay)
		entries = append(entries, sitemapClose...)
	}
	return o.document("sitemapindex", "", entries, indexClose)
}

// appendEntry appends the entry of a page. Unknown fields have no element. The order of elements is that of schema 0.9; 0.84 takes
// any. Extensions are elements of other namespaces:
//
//	<url><loc>https://example.com/</loc><xhtml:link rel="alternate" hreflang="de" href="https://example.com/de"/><image:image><image:loc>https://example.com/a.png</image:loc></image:image></url>
func appendEntry(b []byte, base string, p page.Page, extended bool) []byte {
	b = appendIn(b, urlOpen, base, "")
	b = appendIn(b, "", p.Path, locClose)
	b = appendLastMod(b, p.LastMod, p.LastModDay)
	b = appendElement(b, "changefreq", p.ChangeFreq.String())
	b = appendElement(b, "priority", p.Priority.String())
	if extended && p.Extensions != nil {
		b = appendExtensions(b, p.Extensions)
	}
	return append(b, urlClose...)
}

// appendElement appends an element, unless its text is "".
func appendElement(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return append(b, "<"+name+">"+text+"</"+name+">"...)
}

func appendExtensions(b []byte, e *page.Extensions) []byte {
	for _, a := range e.Alternates {
		b = appendIn(b, `<xhtml:link rel="alternate" hreflang="`, a.Lang, `" href="`)
		b = appendIn(b, "", a.URL, `"/>`)
	}
	for _, image := range e.Images {
		b = appendIn(b, "<image:image><image:loc>", image, "</image:loc></image:image>")
	}
	for _, video := range e.Videos {
		b = append(b, "<video:video>"+video+"</video:video>"...)
	}
	return b
}

// appendLastMod appends the date of a page, if it is known and can be written.
func appendLastMod(b []byte, unix int64, isDay bool) []byte {
	t, ok := dateOf(unix)
	if !ok {
		return b
	}
	b = append(b, "<lastmod>"...)
	b = appendDate(b, t, isDay)
	return append(b, "</lastmod>"...)
}

// appendDate appends a time, or only its day.
func appendDate(b []byte, t time.Time, isDay bool) []byte {
	if isDay {
		return t.AppendFormat(b, time.DateOnly)
	}
	return t.AppendFormat(b, time.RFC3339)
}

// dateOf returns when a page changed; ok is false if that is not known, or cannot be written: W3C Datetime has years of four digits
// (https://www.w3.org/TR/NOTE-datetime), and XML Schema has no year 0 (https://www.w3.org/TR/xmlschema-2/#dateTime).
func dateOf(unix int64) (t time.Time, ok bool) {
	t = time.Unix(unix, 0).UTC()
	return t, unix != 0 && t.Year() > 0 && t.Year() < 10_000
}

// IsOwn reports whether a document, of which this is at least the beginning, is one of ours. How it is laid out
// tells nothing: scripts of others write it alike.
func IsOwn(document []byte) bool {
	beginning := document[:min(len(document), MaxBeginning)]
	return bytes.HasPrefix(beginning, []byte(declaration)) && bytes.Contains(beginning, []byte(Mark))
}
