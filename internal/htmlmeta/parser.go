package htmlmeta

import (
	"bytes"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/net/html/atom"
)

// Parser parses one page at a time. It is not safe for concurrent use. Its buffers are
// reused; nothing that it returns refers to them, or to a body.
type Parser struct {
	options Options
	now     time.Time
	self    location // of the page
	base    location // what its references are relative to
	meta    Meta

	scanner
	elements
	xhtml    bool
	inBody   bool // the head is over
	hasBase  bool
	nofollow bool
	content  content // what the next text is

	main text // in the main content
	rest text // elsewhere, save in menus and the like

	title, description []byte
	references         []reference
	dates              [dateSources]date
	dateTries          int
	things             []thing // of JSON-LD
	jsonSize           int

	seen    map[uint64]struct{} // hashes of links: as written, and resolved
	paths   []byte              // of all links
	ends    []int               // of each of the paths
	scratch []byte
}

// content says what the next text is, if it is that of an element with no tags in it.
type content uint8

const (
	ordinary content = iota
	hidden           // a script, a style sheet, what is shown in place of something else
	titleText
	jsonLD
)

// NewParser returns a Parser.
func NewParser(o Options) *Parser {
	return &Parser{options: o, seen: make(map[uint64]struct{})}
}

// Parse returns the metadata in body, as far as MaxBody, and in the header. It never
// fails: whatever body is, it returns what can be known of it.
func (p *Parser) Parse(body []byte, pg Page) Meta {
	p.begin(pg)
	if len(body) > MaxBody {
		body, p.meta.Truncated = body[:MaxBody], true
	}
	if !p.meta.Unreadable {
		contentType := pg.Header.Get("Content-Type")
		p.xhtml = strings.EqualFold(mediaType(contentType), xhtml)
		p.parse(toUTF8(body, contentType))
	}
	return p.finish()
}

// begin prepares for a page and reads its header.
func (p *Parser) begin(pg Page) {
	if len(p.seen) > 1<<12 || cap(p.attributes) > 1<<10 { // clearing a map takes as long as it was large
		p.seen, p.attributes = make(map[uint64]struct{}), nil
	}
	clear(p.seen)
	clear(p.references)
	clear(p.things)
	p.main.reset()
	p.rest.reset()
	*p = Parser{
		options: p.options, now: pg.Now, self: newLocation(pg.Base, pg.Path),
		scanner: scanner{attributes: p.attributes[:0]}, elements: elements{stack: p.stack[:0]},
		main: p.main, rest: p.rest, title: p.title[:0], description: p.description[:0],
		references: p.references[:0], things: p.things[:0],
		seen: p.seen, paths: p.paths[:0], ends: p.ends[:0], scratch: p.scratch,
	}
	p.base = p.self
	p.readHeader(pg.Header)
}

// finish returns what is known of the page.
func (p *Parser) finish() Meta {
	p.resolve()
	p.chooseDate()
	p.meta.Text = p.hash()
	if p.options.Title {
		p.meta.Title = strings.ToValidUTF8(string(p.title), "")
	}
	if len(p.ends) > 0 && !p.nofollow {
		paths, start := string(p.paths), 0
		p.meta.Links = make([]string, len(p.ends))
		for i, end := range p.ends {
			p.meta.Links[i], start = paths[start:end], end
		}
	}
	return p.meta
}

func (p *Parser) hash() uint64 {
	if !p.main.some && !p.rest.some {
		p.rest.write(p.title)
		p.rest.gap()
		p.rest.write(p.description)
	}
	switch {
	case p.main.some:
		return p.main.sum()
	case p.rest.some:
		return p.rest.sum()
	}
	return 0
}

func (p *Parser) parse(body []byte) {
	p.scanner.rest = body
	for {
		kind := p.next()
		content := p.content
		p.content = ordinary
		switch kind {
		case textToken:
			p.text(content)
		case startTag:
			p.startTag(elementTraits[p.name])
		case endTag:
			p.endTag(elementTraits[p.name])
		case doctype:
			p.meta.Document = p.meta.Document || !p.inBody
		case endOfInput:
			p.scanner.rest, p.token = nil, nil
			return
		}
	}
}

// text reads text. The first that is not in the head begins the body.
func (p *Parser) text(content content) {
	s := p.token
	if content == hidden || p.region.template || !p.inBody && content == ordinary && len(bytes.TrimSpace(s)) == 0 {
		return
	}
	if content == jsonLD {
		p.readJSON(s)
		return
	}
	if bytes.IndexByte(s, '&') >= 0 {
		p.scratch = unescape(p.scratch[:0], s)
		s = p.scratch
	}
	if content == titleText {
		if len(p.title) == 0 {
			p.title = appendTitle(p.title, s)
		}
		return
	}
	p.inBody = true
	switch {
	case p.region.skip:
	case p.region.main:
		p.main.write(s)
	case !p.main.some:
		p.rest.write(s)
	}
}

// gap separates words in the text of the region.
func (p *Parser) gap() {
	if p.region.main {
		p.main.gap()
	} else {
		p.rest.gap()
	}
}

func (p *Parser) startTag(is traits) {
	isSVG := p.name == atom.Svg || p.name == atom.Math
	if p.region.svg {
		if is&notSVG == 0 {
			if !p.closed && (isSVG || p.name == atom.Foreignobject) {
				p.open(p.name, noLandmark)
			}
			return
		}
		p.leaveSVG()
	}
	empty := p.closed && (p.xhtml || isSVG)
	if is&rawText != 0 {
		p.raw = !empty
		p.content = hidden
	}
	if !p.region.template {
		p.inBody = p.inBody || is&ofHead == 0
		p.element()
	}
	if empty {
		p.content = ordinary
	}
	if is&inline == 0 {
		p.gap()
	}
	if is&tracked != 0 && !empty {
		p.open(p.name, landmarkOf(p.name.String(), p.attribute("role")))
	}
}

func (p *Parser) endTag(is traits) {
	if (p.name == atom.Body || p.name == atom.Html || p.name == atom.Br) && !p.region.svg && !p.region.template {
		p.inBody = true
	}
	if is&inline == 0 {
		p.gap()
	}
	if is&tracked != 0 {
		p.close(p.name)
		p.gap()
	}
}

// element reads a start tag that is neither in a template nor in SVG.
func (p *Parser) element() {
	switch p.name {
	case atom.Html, atom.Head, atom.Body:
		p.meta.Document = true
	case atom.Title:
		p.meta.Document = true
		p.content = titleText
	case atom.Textarea, atom.Xmp, atom.Plaintext:
		p.content = ordinary
	case atom.A, atom.Area:
		p.anchor()
	case atom.Img, atom.Image:
		p.image()
	case atom.Meta:
		p.metaTag()
	case atom.Link:
		if !p.inBody {
			variant := p.attribute("hreflang") != nil || p.attribute("lang") != nil || p.attribute("media") != nil || p.attribute("type") != nil
			p.link(&p.base, string(p.attribute("rel")), string(p.attribute("href")), string(p.attribute("hreflang")), variant)
		}
	case atom.Base:
		if href := p.attribute("href"); href != nil && !p.inBody && !p.hasBase {
			p.hasBase = true
			if origin, path, ok := p.self.resolve(nil, href); ok {
				p.base = newLocation(origin, string(path))
			}
		}
	case atom.Script:
		kind, _, _ := strings.Cut(string(p.attribute("type")), ";")
		if strings.EqualFold(strings.Trim(kind, white), "application/ld+json") {
			p.content = jsonLD
		}
	}
}

// anchor reads an <a> or <area>. Most links of a page are in it many times.
func (p *Parser) anchor() {
	href, _, _ := bytes.Cut(p.rawAttribute("href"), []byte("#"))
	if len(href) == 0 || p.nofollow || len(p.ends) >= MaxLinks || hasWord(string(p.rawAttribute("rel")), "nofollow") {
		return
	}
	if !p.isNew(href, 1) {
		return
	}
	origin, path, ok := p.base.resolve(p.scratch[:0], p.attribute("href"))
	p.scratch = path
	if ok && origin == p.self.origin && string(path) != p.self.path && p.isNew(path, 0) {
		p.paths = append(p.paths, path...)
		p.ends = append(p.ends, len(p.paths))
	}
}

// isNew reports whether a link was not seen before. Those as written have another salt.
func (p *Parser) isNew(link []byte, salt uint64) bool {
	n := len(p.seen)
	p.seen[xxhash.Sum64(link)^salt] = struct{}{}
	return len(p.seen) > n
}

// image reads an <img>. Its alternative text is part of the text.
func (p *Parser) image() {
	if p.region.skip {
		return
	}
	kind, out := otherImage, &p.rest
	if p.region.main {
		kind, out = mainImage, &p.main
	}
	out.gap()
	out.write(p.attribute("alt"))
	out.gap()
	if p.options.Images {
		p.refer(kind, &p.base, "", string(p.attribute("src")))
	}
}
