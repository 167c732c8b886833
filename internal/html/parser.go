package html

import (
	"bytes"
	"cmp"
	"math"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Parse returns the metadata in body, as far as MaxBody, and in the header, whatever body is. Nothing in it refers to body.
func Parse(body []byte, pg Page) Meta {
	r := newReader(pg)
	if !r.meta.Unreadable {
		if len(body) < MaxBody { // else who has fetched it may have cut it there
			r.limit = math.MaxInt
		}
		r.readBody(body[:min(len(body), MaxBody)], pg.Header.Get("Content-Type"))
	}
	return r.finish()
}

// Header returns the metadata that the header of a response declares: all there is of one whose body is not HTML.
func Header(pg Page) Meta { return newReader(pg).finish() }

// reader reads a page.
type reader struct {
	Page
	self, base location // of the page, and what its references are relative to
	meta       Meta

	tokens
	raw     atom.Atom // the element that has begun, if there are no tags in it
	open    []element
	region  region // of what comes next
	hasMain bool
	blockCounter
	xhtml    bool // the response is XHTML
	inBody   bool
	nofollow bool // no link of the page is to be followed
	isJSON   bool // the script that has begun is JSON-LD

	modified  declaredDate
	published declaredDate // in JSON-LD, or else as article:published_time (https://ogp.me/#type_article)
	things    []thing      // of JSON-LD, with a date of modification
	articles  []thing      // and with one of publication

	lang, contentLang string // of <html>, and of the field Content-Language, also in a <meta>

	description string                              // of <meta name=description>
	shared      struct{ title, description string } // what the page is called where it is shared: og:title, og:description

	seen map[string]bool // paths of Links
}

// newReader returns a reader of a page that has read its header.
func newReader(pg Page) *reader {
	self := location{pg.Base, pg.Path}
	r := &reader{
		Page: pg,
		self: self,
		base: self,
		seen: make(map[string]bool),
	}
	r.readHeader(pg.Header)
	return r
}

// readBody reads all of a body.
func (r *reader) readBody(body []byte, contentType string) {
	r.xhtml = mediaType(contentType) == xhtml
	r.begin(toUTF8(body, contentType))
	r.rest.text.buf = make([]byte, 0, len(body)/2)
	for kind := r.next(); kind != html.ErrorToken; kind = r.next() {
		raw := r.raw
		r.raw = 0
		switch kind {
		case html.TextToken:
			r.text(raw)
		case html.StartTagToken:
			r.startTag(elementTraits[r.name])
		case html.EndTagToken:
			r.endTag(elementTraits[r.name])
		case html.DoctypeToken:
			r.meta.Document = r.meta.Document || !r.inBody
		}
	}
	r.gap(false)
	r.meta.Blocks = r.blockSum()
}

// finish returns what is known of the page.
func (r *reader) finish() Meta {
	if r.meta.Canonical == r.self.url() {
		r.meta.Canonical = ""
	}
	for _, t := range r.own(r.things) {
		r.modified.declare(0, t.date, r.Now)
	}
	r.meta.Modified = r.modified.unix
	r.meta.ModifiedDay = r.modified.day
	if r.Descriptions {
		r.meta.Description = cmp.Or(r.description, r.shared.description)
	}
	if r.Articles {
		r.readArticle()
	}
	r.meta.Text = cmp.Or(r.main.text.hash(), r.rest.text.hash(), r.head.text.hash())
	content := r.rest
	if r.hasMain {
		content = r.main
	}
	// Those of the head are what a page is shared with.
	r.meta.Add(&page.Extensions{Images: append(r.head.images, content.images...)})
	if r.nofollow {
		r.meta.Links = nil
	}
	return r.meta
}

// text reads text; raw is the element that it is in, if there are no tags in that. The first text that is not of
// the head begins the body.
func (r *reader) text(raw atom.Atom) {
	if r.region&(inTemplate|inNoscript) != 0 {
		return
	}
	s := r.Text()
	isBetweenTags := !r.inBody && raw == 0 && len(bytes.TrimSpace(s)) == 0 // of the head
	if isBetweenTags {
		return
	}
	switch raw {
	case atom.Script:
		if r.isJSON {
			r.readJSON(s)
		}
	case atom.Title:
		r.head.text.space = true
		r.head.text.write(s)
		if r.Titles && r.meta.Title == "" {
			r.meta.Title = oneLine(s)
		}
	case 0, atom.Textarea, atom.Xmp, atom.Plaintext: // others hold what is not shown
		r.inBody = true
		r.writeText(s)
	}
}

func (r *reader) startTag(is traits) {
	// In HTML, a slash at the end of a tag means nothing, but it does in the SVG in it.
	isXML := r.xhtml || r.region&inSVG != 0 || r.name == atom.Svg
	isEmpty := r.closed && isXML
	hasText := is&rawText != 0 && !isEmpty && r.region&inSVG == 0
	if hasText {
		r.raw = r.name
	} else {
		r.NextIsNotRawText()
	}
	if r.region&inTemplate == 0 {
		r.element(is)
	}
	if is&inline == 0 {
		r.gap(false)
		r.inTitle = r.name == atom.H1 || r.inTitle
	}
	if is&tracked != 0 && !isEmpty {
		r.openElement()
	}
}

func (r *reader) endTag(is traits) {
	if is&inline == 0 {
		r.gap(is&heading != 0)
		r.inTitle = false // an <h1> may lack its end tag
	}
	if r.name == atom.A {
		r.inLink = r.inLink && r.region&inNoscript != 0
	}
	if is&tracked != 0 {
		r.closeElement()
	}
}

// element reads a start tag. Only links and images count in pictures, and in what is shown in place of a script: lists that a
// script loads, and images.
func (r *reader) element(is traits) {
	switch r.name {
	case atom.A, atom.Area:
		r.anchor()
	case atom.Img, atom.Image:
		r.image()
	}
	if r.region&(inSVG|inNoscript) != 0 {
		return
	}
	r.inBody = r.inBody || is&ofHead == 0
	switch r.name {
	case atom.Html:
		r.meta.Document = true
		lang := onlyLanguage(string(r.attribute("lang")))
		ofXML := onlyLanguage(string(r.attribute("xml:lang")))
		r.lang = cmp.Or(r.lang, lang, ofXML)
	case atom.Head, atom.Body, atom.Title:
		r.meta.Document = true
	case atom.Frame, atom.Iframe:
		// What it shows is a page. A srcdoc is shown in place of the src
		// (https://html.spec.whatwg.org/multipage/iframe-embed-object.html#the-iframe-element).
		if r.attribute("srcdoc") == nil {
			r.addLink(r.attribute("src"))
		}
	case atom.Meta:
		r.metaTag()
	case atom.Link:
		// Search engines accept a canonical in the head only
		// (https://developers.google.com/search/docs/crawling-indexing/consolidate-duplicate-urls).
		if !r.inBody {
			r.link()
		}
	case atom.Base:
		// The first one counts (https://html.spec.whatwg.org/multipage/semantics.html#the-base-element).
		if base, ok := r.self.resolve(r.attribute("href")); ok && r.base == r.self {
			r.base = base
		}
	case atom.Script:
		r.isJSON = mediaType(string(r.attribute("type"))) == "application/ld+json"
	}
}

// anchor reads an <a> or <area>.
func (r *reader) anchor() {
	href := r.attribute("href")
	if href == nil {
		href = r.attribute("xlink:href") // in SVG
	}
	path, isOnSite := r.addLink(href)
	if r.name == atom.A && r.region&inNoscript == 0 {
		r.inLink = isOnSite
		r.leaves = path != r.self.path
	}
}

// addLink adds a link of the tag to another page, and returns to which page of the site it leads. A mere fragment leads nowhere.
func (r *reader) addLink(href []byte) (path string, isOnSite bool) {
	to, ok := r.base.resolve(href)
	if !ok || to.origin != r.self.origin {
		return "", false
	}
	isKnown := to.path == r.self.path || r.seen[to.path]
	if !isKnown && len(r.meta.Links) < MaxLinks && !hasWord(r.attribute("rel"), "nofollow") {
		r.seen[to.path] = true
		r.meta.Links = append(r.meta.Links, to.path)
	}
	return to.path, true
}

// image reads an <img>. Its alternative text is part of the text. Its URL is the first of srcset if src has none, as where
// a script loads it. What is as small as a dot counts visitors.
func (r *reader) image() {
	r.gap(false)
	r.writeText(r.attribute("alt"))
	r.gap(false)
	isDot := string(r.attribute("width")) == "1"
	if !r.region.hasContent() || isDot {
		return
	}
	src := r.attribute("src")
	if len(src) == 0 || bytes.HasPrefix(src, []byte("data:")) {
		first, _, _ := bytes.Cut(bytes.TrimLeft(r.attribute("srcset"), ", \t\r\n"), []byte(" "))
		src = bytes.TrimRight(first, ",")
	}
	r.addImage(r.part(), src)
}

func (r *reader) addImage(part *part, ref []byte) {
	if !r.Images || len(part.images) >= page.MaxImages {
		return
	}
	if u := r.base.absolute(ref); u != "" {
		part.images = append(part.images, u)
	}
}
