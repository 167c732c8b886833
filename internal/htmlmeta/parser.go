package htmlmeta

import (
	"bytes"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
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
	xhtml, inBody, hasBase, nofollow bool
	isJSON                           bool // the script that has begun is JSON-LD

	mainText, otherText text
	title, description  []byte
	references          []reference
	dateRank            int     // of meta.Modified
	things              []thing // of JSON-LD
	jsonSize            int

	seen    map[uint64]struct{} // hashes of links: as written, and resolved
	paths   []byte              // of all links
	ends    []int               // of each of the paths
	scratch []byte
}

// NewParser returns a Parser.
func NewParser(o Options) *Parser { return &Parser{options: o} }

// Parse returns the metadata in body, as far as MaxBody, and in the header. It never fails: whatever body is,
// it returns what can be known of it.
func (p *Parser) Parse(body []byte, pg Page) Meta {
	p.begin(pg)
	if len(body) > MaxBody {
		body, p.meta.Truncated = body[:MaxBody], true
	}
	if !p.meta.Unreadable {
		contentType := pg.Header.Get("Content-Type")
		p.xhtml = mediaType(contentType) == xhtml
		p.parse(toUTF8(body, contentType))
	}
	return p.finish()
}

// begin prepares for a page and reads its header.
func (p *Parser) begin(pg Page) {
	if p.seen == nil || len(p.seen) > 1<<12 || cap(p.attributes) > 1<<10 { // clearing takes as long as they were large
		p.seen, p.attributes = make(map[uint64]struct{}), nil
	}
	clear(p.seen)
	clear(p.references)
	clear(p.things)
	*p = Parser{
		options: p.options, now: pg.Now, self: newLocation(pg.Base, pg.Path), dateRank: dateRanks,
		scanner: scanner{attributes: p.attributes[:0]}, elements: elements{stack: p.stack[:0]},
		mainText: newText(p.mainText.buf), otherText: newText(p.otherText.buf), title: p.title[:0],
		description: p.description[:0], references: p.references[:0], things: p.things[:0],
		seen: p.seen, paths: p.paths[:0], ends: p.ends[:0], scratch: p.scratch,
	}
	p.base = p.self
	p.readHeader(pg.Header)
}

// finish returns what is known of the page.
func (p *Parser) finish() Meta {
	p.resolve()
	p.readThings()
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
	t := &p.mainText
	if !t.some {
		t = &p.otherText
	}
	if !t.some {
		t.write(p.title)
		t.gap()
		t.write(p.description)
	}
	return t.sum()
}

func (p *Parser) parse(body []byte) {
	p.rest = body
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
			p.rest, p.token = nil, nil
			return
		}
	}
}

// text reads text; raw is the element that it is in, if there are no tags in that. The first text that is not of
// the head begins the body.
func (p *Parser) text(raw atom.Atom) {
	s := p.token
	if p.region&inTemplate != 0 || !p.inBody && raw == 0 && len(bytes.TrimSpace(s)) == 0 {
		return
	}
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
		if len(p.title) == 0 {
			p.title = appendTitle(p.title, s)
		}
	case 0, atom.Textarea, atom.Xmp, atom.Plaintext: // others hold what is not shown
		p.inBody = true
		if p.region.hasContent() {
			p.out().write(s)
		}
	}
}

// out is where the text of the region goes.
func (p *Parser) out() *text {
	if p.region&inMain != 0 {
		return &p.mainText
	}
	return &p.otherText
}

func (p *Parser) startTag(is traits) {
	empty := p.closed && (p.xhtml || p.region&inSVG != 0 || p.name == atom.Svg)
	if is&rawText != 0 && !empty && p.region&inSVG == 0 {
		p.raw = p.name
	}
	if p.region&(inTemplate|inSVG) == 0 {
		p.inBody = p.inBody || is&ofHead == 0
		p.element()
	}
	if is&inline == 0 {
		p.out().gap()
	}
	if is&tracked != 0 && !empty {
		p.open(p.name, p.attribute("role"))
	}
}

func (p *Parser) endTag(is traits) {
	if (p.name == atom.Body || p.name == atom.Html || p.name == atom.Br) && p.region&inTemplate == 0 {
		p.inBody = true
	}
	if is&inline == 0 {
		p.out().gap()
	}
	if is&tracked != 0 {
		p.close(p.name)
		p.out().gap()
	}
}

// element reads a start tag that is neither in a template nor in SVG.
func (p *Parser) element() {
	switch p.name {
	case atom.Html, atom.Head, atom.Body, atom.Title:
		p.meta.Document = true
	case atom.A, atom.Area:
		p.anchor()
	case atom.Img, atom.Image:
		p.image()
	case atom.Meta:
		p.metaTag()
	case atom.Link:
		if !p.inBody {
			p.link(&p.base)
		}
	case atom.Base:
		if href := p.attribute("href"); href != nil && !p.inBody && !p.hasBase {
			p.hasBase = true
			if origin, path, ok := p.self.resolve(nil, href); ok {
				p.base = newLocation(origin, string(path))
			}
		}
	case atom.Script:
		p.isJSON = mediaType(string(p.attribute("type"))) == "application/ld+json"
	}
}

// anchor reads an <a> or <area>. Most links of a page are in it many times.
func (p *Parser) anchor() {
	href, _, _ := bytes.Cut(p.attribute("href"), []byte("#"))
	if len(href) == 0 || p.nofollow || len(p.ends) >= MaxLinks || hasWord(p.attribute("rel"), "nofollow") || !p.isNew(href, 1) {
		return
	}
	origin, path, ok := p.base.resolve(p.scratch[:0], href)
	p.scratch = path
	if ok && origin == p.self.origin && string(path) != p.self.path && p.isNew(path, 0) {
		p.paths = append(p.paths, path...)
		p.ends = append(p.ends, len(p.paths))
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
	p.out().gap()
	p.out().write(p.attribute("alt"))
	p.out().gap()
	if kind := otherImage; p.options.Images {
		if p.region&inMain != 0 {
			kind = mainImage
		}
		p.refer(kind, &p.base, "", string(p.attribute("src")))
	}
}
