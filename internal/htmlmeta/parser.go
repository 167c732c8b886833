package htmlmeta

import (
	"bytes"
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Parser parses one page at a time. It is not safe for concurrent use. Its buffers are reused; nothing that it
// returns refers to them, or to a body.
type Parser struct {
	options    Options
	now        time.Time
	self, base location // of the page, and what its references are relative to
	meta       Meta

	scanner
	elements
	blockCounter
	xhtml             bool // the response is XHTML
	inBody            bool
	hasBase           bool // a <base> has come
	nofollow          bool // no link of the page is to be followed
	severalCanonicals bool // that differ
	isJSON            bool // the script that has begun is JSON-LD

	texts    [parts]text
	images   [parts][]string
	modified declaredDate
	things   []thing // of JSON-LD, with a date of modification
	jsonSize int

	newsItem

	shared struct{ title, description string } // what the page is called where it is shared: og:title, og:description

	countsBeside bool // what is beside the content is counted, too

	seen    map[uint64]struct{} // hashes of URLs
	links   int
	paths   []byte // of all links, a line feed before each
	scratch []byte
}

// Parts of a page, in the order in which its text is looked for.
const (
	inMainPart = iota
	inOtherPart
	inHead
	parts
)

// NewParser returns a Parser.
func NewParser(o Options) *Parser { return &Parser{options: o} }

// Parse returns the metadata in body, as far as MaxBody, and in the header, whatever body is.
func (p *Parser) Parse(body []byte, pg Page) Meta {
	p.begin(pg)
	if len(body) >= MaxBody { // who fetches the body may cut it there
		p.cut.isCut = true
		body = body[:MaxBody]
	}
	if !p.meta.Unreadable {
		contentType := pg.Header.Get("Content-Type")
		p.xhtml = mediaType(contentType) == xhtml
		p.rest = toUTF8(body, contentType)
		p.cut.size = len(p.rest)
		p.parse()
		p.meta.Blocks = p.blockSum(body, pg)
	}
	return p.finish()
}

// begin prepares for a page and reads its header.
func (p *Parser) begin(pg Page) {
	// A large page costs the next ones nothing.
	if p.seen == nil || p.isLarge() {
		*p = Parser{
			options:      p.options,
			countsBeside: p.countsBeside,
			seen:         make(map[uint64]struct{}),
		}
	}
	clear(p.seen)
	for i, t := range p.texts {
		p.texts[i] = text{buf: t.buf[:0]}
	}
	p.reset()
	self := location{pg.Base, pg.Path}
	if normal, err := page.Normal(pg.Path); err == nil {
		self.path = normal
	}
	// All that is known of the page before is forgotten; the buffers are kept.
	*p = Parser{
		options:      p.options,
		now:          pg.Now,
		self:         self,
		base:         self,
		scanner:      scanner{attributes: p.attributes[:0]},
		elements:     elements{stack: p.stack[:0]},
		texts:        p.texts,
		seen:         p.seen,
		paths:        p.paths[:0],
		scratch:      p.scratch,
		blockCounter: p.blockCounter,
		countsBeside: p.countsBeside,
	}
	p.readHeader(pg.Header)
}

// isLarge reports whether the buffers are larger than those of usual pages.
func (p *Parser) isLarge() bool {
	size := cap(p.texts[inMainPart].buf) + cap(p.texts[inOtherPart].buf) + p.blockMemory()
	return len(p.seen) > 1<<12 || cap(p.attributes) > 1<<10 || size > 1<<18
}

// finish returns what is known of the page.
func (p *Parser) finish() Meta {
	if p.severalCanonicals || p.meta.Canonical == p.self.url() {
		p.meta.Canonical = ""
	}
	p.readThings()
	p.meta.Modified = p.modified.unix
	p.meta.ModifiedDay = p.modified.day
	p.meta.Description = cmp.Or(p.meta.Description, p.shared.description)
	if p.options.Articles {
		p.readArticle()
	}
	p.meta.Text = cmp.Or(p.texts[inMainPart].hash(), p.texts[inOtherPart].hash(), p.texts[inHead].hash())
	p.readImages()
	if p.links > 0 && !p.nofollow {
		p.meta.Links = strings.Split(string(p.paths[1:]), "\n")
	}
	return p.meta
}

// readImages lists the images of the head, which are what a page is shared with, and those of the content.
func (p *Parser) readImages() {
	body := inOtherPart
	if p.hasMain {
		body = inMainPart
	}
	for _, u := range append(p.images[inHead], p.images[body]...) {
		if len(p.meta.Images) < MaxImages && p.isNew([]byte(u), 0) {
			p.meta.Images = append(p.meta.Images, u)
		}
	}
}

// toUTF8 returns body in UTF-8 (https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding).
func toUTF8(body []byte, contentType string) []byte {
	hasUTF16Mark := bytes.HasPrefix(body, []byte("\xFF\xFE")) || bytes.HasPrefix(body, []byte("\xFE\xFF"))
	if hasUTF16Mark || !isUTF8(body, contentType) {
		body = decoded(body, contentType)
	}
	return bytes.TrimPrefix(body, []byte("\uFEFF"))
}

// isUTF8 reports whether a body certainly is in UTF-8, but for what a byte order mark says. Nearly all are. To tell it,
// charset.DetermineEncoding tokenizes a kilobyte, with 21 allocations a page: more than all the rest.
func isUTF8(body []byte, contentType string) bool {
	if strings.Contains(contentType, ";") {
		_, label, _ := strings.Cut(contentType, "charset=")
		return strings.EqualFold(strings.Trim(label, `"' `), "utf-8")
	}
	// Most pages whose header names no charset name UTF-8 themselves, or none.
	head := bytes.ToLower(body[:min(len(body), 1024)])
	named := bytes.Count(head, []byte("charset"))
	namedUTF8 := bytes.Count(head, []byte("charset=utf-8")) + bytes.Count(head, []byte(`charset="utf-8"`))
	return named == namedUTF8 && utf8.Valid(body)
}

// decoded returns a body in UTF-8 by what it declares. One that cannot be decoded stays as it is.
func decoded(body []byte, contentType string) []byte {
	e, name, isCertain := charset.DetermineEncoding(body, contentType)
	if name == "utf-8" {
		return body
	}
	// What is guessed where nothing is declared is windows-1252, which valid UTF-8 hardly ever is.
	isGuessed := !isCertain && name == "windows-1252"
	if isGuessed && utf8.Valid(body) {
		return body
	}
	text, err := e.NewDecoder().Bytes(body)
	if err != nil {
		return body
	}
	return text
}

func (p *Parser) parse() {
	for {
		raw := p.raw
		switch p.next() {
		case html.TextToken:
			p.text(raw)
		case html.StartTagToken:
			p.startTag(elementTraits[p.name])
		case html.EndTagToken:
			p.endTag(elementTraits[p.name])
		case html.DoctypeToken:
			p.meta.Document = p.meta.Document || !p.inBody
		case html.ErrorToken:
			return
		}
	}
}

// text reads text; raw is the element that it is in, if there are no tags in that. The first text that is not of
// the head begins the body.
func (p *Parser) text(raw atom.Atom) {
	s := p.token
	if p.region&inTemplate != 0 {
		return
	}
	isBetweenTags := !p.inBody && raw == 0 && len(bytes.TrimSpace(s)) == 0 // of the head
	if isBetweenTags {
		return
	}
	// Character references are none in a script (https://html.spec.whatwg.org/multipage/parsing.html#script-data-state).
	if bytes.IndexByte(s, '&') >= 0 && raw != atom.Script {
		p.scratch = unescape(p.scratch[:0], s)
		s = p.scratch
	}
	switch raw {
	case atom.Script:
		if p.isJSON {
			p.readJSON(s)
		}
	case atom.Title:
		p.texts[inHead].gap()
		p.texts[inHead].write(s)
		if p.options.Titles && p.meta.Title == "" {
			p.meta.Title = oneLine(s)
		}
	case 0, atom.Textarea, atom.Xmp, atom.Plaintext: // others hold what is not shown
		p.inBody = true
		if p.inPubdate {
			p.writePubdate(s)
		}
		p.writeText(s)
	}
}

// part is the part of the body that is being read, and out where its text goes.
func (p *Parser) part() int {
	if p.region&inMain != 0 {
		return inMainPart
	}
	return inOtherPart
}

func (p *Parser) out() *text { return &p.texts[p.part()] }

func (p *Parser) startTag(is traits) {
	// In HTML, a slash at the end of a tag means nothing, but it does in the SVG in it.
	isXML := p.xhtml || p.region&inSVG != 0 || p.name == atom.Svg
	isEmpty := p.closed && isXML
	if is&rawText != 0 && !isEmpty && p.region&inSVG == 0 {
		p.raw = p.name
	}
	if p.region&(inTemplate|inSVG) == 0 {
		p.inBody = p.inBody || is&ofHead == 0
		p.element()
	}
	if is&inline == 0 {
		p.gap()
		p.paragraph(true)
		p.heading()
	}
	if is&tracked != 0 && !isEmpty {
		if opened := p.open(p.name, p.attribute("role")); opened != nil {
			opened.zone = p.zoneOf(opened)
		}
	}
}

func (p *Parser) endTag(is traits) {
	// Other end tags end no head (https://html.spec.whatwg.org/multipage/parsing.html#the-after-head-insertion-mode).
	endsHead := p.name == atom.Body || p.name == atom.Html || p.name == atom.Br
	if endsHead && p.region&inTemplate == 0 {
		p.inBody = true
	}
	if is&inline == 0 {
		p.gap()
		p.paragraph(false)
	}
	switch p.name {
	case atom.A:
		p.inLink = false
	case atom.H1:
		p.inTitle = false
	case atom.Time:
		p.endPubdate()
	}
	if is&tracked != 0 {
		p.inTitle = false // an <h1> may lack its end tag
		for _, closed := range p.close(p.name) {
			p.closeZone(closed.zone)
		}
		p.gap()
	}
}

// element reads a start tag that is neither in a template nor in SVG.
func (p *Parser) element() {
	switch p.name {
	case atom.Html:
		p.meta.Document = true
		if p.options.Articles {
			p.readLang()
		}
	case atom.Head, atom.Body, atom.Title:
		p.meta.Document = true
	case atom.Time:
		if p.options.Articles {
			p.beginPubdate()
		}
	case atom.A, atom.Area:
		p.anchor()
	case atom.Frame, atom.Iframe:
		p.frame()
	case atom.Img, atom.Image:
		p.image()
	case atom.Meta:
		p.metaTag()
	case atom.Link:
		// Search engines accept a canonical in the head only
		// (https://developers.google.com/search/docs/crawling-indexing/consolidate-duplicate-urls).
		if !p.inBody {
			p.link()
		}
	case atom.Base:
		p.baseTag()
	case atom.Script:
		p.isJSON = mediaType(string(p.attribute("type"))) == "application/ld+json"
	}
}

// baseTag reads a <base>. The first one with a URL counts
// (https://html.spec.whatwg.org/multipage/semantics.html#the-base-element).
func (p *Parser) baseTag() {
	href := p.attribute("href")
	if href == nil || p.inBody || p.hasBase {
		return
	}
	p.hasBase = true
	origin, path, ok := p.self.resolve(nil, href)
	if ok {
		p.base = location{origin, string(path)}
	}
}

// anchor reads an <a> or <area>.
func (p *Parser) anchor() {
	href := p.attribute("href")
	p.inLink = p.name == atom.A && len(href) > 0
	if len(href) > 0 && !hasWord(p.attribute("rel"), "nofollow") {
		p.addLink(href)
	}
}

// frame reads a <frame> or <iframe>: what it shows is a page. A srcdoc is shown in place of the src
// (https://html.spec.whatwg.org/multipage/iframe-embed-object.html#the-iframe-element).
func (p *Parser) frame() {
	if p.attribute("srcdoc") == nil {
		p.addLink(p.attribute("src"))
	}
}

// addLink adds a link to another page. Most links of a page are in it many times.
func (p *Parser) addLink(href []byte) {
	href, _, _ = bytes.Cut(href, []byte("#"))
	if len(href) == 0 || p.nofollow || p.links >= MaxLinks {
		return
	}
	if !p.isNew(href, 1) {
		return // it is not resolved again
	}
	origin, path, ok := p.base.resolve(p.scratch[:0], href)
	p.scratch = path
	isOfSite := ok && origin == p.self.origin
	isSelf := string(path) == p.self.path
	if isOfSite && !isSelf && p.isNew(path, 0) {
		p.paths = append(p.paths, '\n')
		p.paths = append(p.paths, path...)
		p.links++
	}
}

// isNew reports whether a URL was not seen before. Links as they are written have another salt.
func (p *Parser) isNew(url []byte, salt uint64) bool {
	n := len(p.seen)
	p.seen[xxhash.Sum64(url)^salt] = struct{}{}
	return len(p.seen) > n
}

// image reads an <img>. Its alternative text is part of the text.
func (p *Parser) image() {
	if !p.region.hasContent() {
		return
	}
	p.gap()
	p.writeText(p.attribute("alt"))
	p.gap()
	p.addImage(p.part(), p.attribute("src"))
}

func (p *Parser) addImage(part int, ref []byte) {
	const most = 4 * MaxImages // some may be the same
	if !p.options.Images || len(p.images[part]) >= most {
		return
	}
	if u := p.base.absolute(ref); u != "" {
		p.images[part] = append(p.images[part], u)
	}
}
