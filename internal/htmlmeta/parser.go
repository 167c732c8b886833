package htmlmeta

import (
	"bytes"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// longTag is the length of a tag from which on it may have so many attributes that the
// tokenizer, which keeps their names and clears them at each tag, is better replaced.
const longTag = 8 << 10

// Parser parses one page at a time. It is not safe for concurrent use. Its buffers are
// reused; nothing that it returns refers to them, or to a body.
type Parser struct {
	options Options
	now     time.Time
	self    location // of the page
	base    location // what its references are relative to
	meta    Meta

	xhtml    bool
	inBody   bool // the head is over
	hasBase  bool
	nofollow bool
	raw      rawText // what the next text is
	elements

	main text // in the main content
	rest text // elsewhere, save in menus and the like

	title, description []byte
	refs               references
	dates              [dateSources]date
	dateTries          int
	things             []thing // of JSON-LD
	jsonSize           int

	seen    map[uint64]struct{} // hashes of links: as written, and resolved
	paths   []byte              // of all links
	ends    []int               // of each of the paths
	scratch []byte
	source  bytes.Reader
}

// rawText says what the text is that follows the start tag of an element in which there
// are no tags.
type rawText uint8

const (
	noRawText rawText = iota
	rawHidden         // a script, a style sheet, what is shown in place of something else
	rawTitle
	rawJSON // JSON-LD
	rawShown
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
	seen := p.seen
	if len(seen) > 1<<12 { // clearing a map takes as long as it was ever large
		seen = make(map[uint64]struct{})
	}
	clear(seen)
	p.main.reset()
	p.rest.reset()
	*p = Parser{
		options: p.options, now: pg.Now, self: newLocation(pg.Base, pg.Path), seen: seen,
		elements: elements{stack: p.stack[:0]}, main: p.main, rest: p.rest, refs: p.refs.reset(),
		title: p.title[:0], description: p.description[:0], things: p.things[:0],
		paths: p.paths[:0], ends: p.ends[:0], scratch: p.scratch,
	}
	p.base = p.self
	if pg.Header != nil {
		p.readHeader(pg.Header)
	}
}

func (p *Parser) readHeader(h http.Header) {
	if e := h.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		p.meta.Unreadable = true
	}
	for _, value := range h.Values("X-Robots-Tag") {
		p.robots(parseRobots(value, true, p.now))
	}
	for _, value := range h.Values("Refresh") {
		p.refs.add(refRefresh, true, "", parseRefresh(value))
	}
	for _, links := range h.Values("Link") {
		for links != "" {
			var href string
			var params map[string]string
			href, params, links = nextLink(links)
			if _, other := params["anchor"]; other || href == "" { // of another page
				continue
			}
			lang, hasLang := params["hreflang"]
			p.link(true, []byte(params["rel"]), []byte(href), lang, hasLang, params["media"] != "" || params["type"] != "")
		}
	}
}

func (p *Parser) robots(noindex, nofollow bool) {
	p.meta.NoIndex = p.meta.NoIndex || noindex
	p.nofollow = p.nofollow || nofollow
}

// finish returns what is known of the page.
func (p *Parser) finish() Meta {
	p.resolve()
	p.chooseDate()
	p.meta.Text = p.hash()
	if p.options.Title {
		p.meta.Title = strings.ToValidUTF8(string(cut(p.title, MaxTitle)), "\ufffd")
	}
	if len(p.ends) > 0 && !p.nofollow {
		paths, start := string(p.paths), 0
		p.meta.Links = make([]string, len(p.ends))
		for i, end := range p.ends {
			p.meta.Links[i] = paths[start:end]
			start = end
		}
	}
	clear(p.things)
	return p.meta
}

func (p *Parser) hash() uint64 {
	switch {
	case p.main.some:
		return p.main.sum()
	case !p.rest.some:
		p.rest.write(p.title)
		p.rest.gap()
		p.rest.write(p.description)
	}
	if !p.rest.some {
		return 0
	}
	return p.rest.sum()
}

func (p *Parser) parse(body []byte) {
	p.source.Reset(body)
	z := html.NewTokenizer(&p.source)
	z.AllowCDATA(p.xhtml)
	for offset := 0; ; {
		kind := z.Next()
		token := z.Raw()
		offset += len(token)
		raw := p.raw
		p.raw = noRawText
		switch kind {
		case html.ErrorToken:
			p.source.Reset(nil)
			return
		case html.TextToken:
			p.text(z, token, raw)
		case html.DoctypeToken:
			p.meta.Document = p.meta.Document || !p.inBody
		case html.StartTagToken, html.SelfClosingTagToken:
			name := tagName(token[1:])
			p.startTag(z, name, token, kind == html.SelfClosingTagToken)
			if len(token) > longTag {
				p.source.Reset(body[offset:])
				within := ""
				if p.raw != noRawText {
					within = name.String()
				}
				z = html.NewTokenizerFragment(&p.source, within)
			}
			z.AllowCDATA(p.xhtml || p.region.foreign)
		case html.EndTagToken:
			p.endTag(tagName(token[2:]))
			z.AllowCDATA(p.xhtml || p.region.foreign)
		}
	}
}

// tagName returns the name with which a tag begins; 0: none that HTML knows.
func tagName(tag []byte) atom.Atom {
	var name [16]byte
	for i, c := range tag {
		switch {
		case endsName(c):
			return atom.Lookup(name[:i])
		case i == len(name):
			return 0
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		name[i] = c
	}
	return 0
}

func (p *Parser) text(z *html.Tokenizer, token []byte, raw rawText) {
	switch {
	case raw == rawHidden || p.region.template:
		return
	case raw == rawTitle:
		if len(p.title) == 0 {
			p.title = folded(p.title, z.Text())
		}
		return
	case raw == rawJSON:
		p.readJSON(z.Text())
		return
	case !p.inBody && len(bytes.TrimSpace(token)) == 0:
		return
	}
	p.inBody = true
	if bytes.IndexByte(token, '&') >= 0 || token[0] == '<' { // CDATA, too
		token = z.Text()
	}
	switch {
	case p.region.skip:
	case p.region.main:
		p.main.write(token)
	case !p.main.some:
		p.rest.write(token)
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

func (p *Parser) startTag(z *html.Tokenizer, name atom.Atom, token []byte, closed bool) {
	if p.region.foreign && !p.leaveForeign(name) {
		z.NextIsNotRawText()
		if !closed && (name == atom.Svg || name == atom.Math || name == atom.Foreignobject) {
			p.push(name, noLandmark)
		}
		return
	}
	if isRawText(name) {
		if p.xhtml && closed {
			z.NextIsNotRawText()
			return
		}
		p.raw = rawHidden
	}
	if !p.region.template {
		p.inBody = p.inBody || !isOfHead(name)
		p.element(z, name, token)
	}
	if !isInline(name) {
		p.gap()
	}
	if !isTracked(name) || closed && (p.xhtml || name == atom.Svg || name == atom.Math) {
		return
	}
	mark := landmarkOf(name)
	if bytes.Contains(token, []byte("role")) {
		var a attributes
		a.read(z, token, roleNames)
		mark = landmarkOfRole(a.value[0], mark)
	}
	p.push(name, mark)
}

func isRawText(name atom.Atom) bool {
	switch name {
	case atom.Iframe, atom.Noembed, atom.Noframes, atom.Noscript, atom.Plaintext, atom.Script, atom.Style,
		atom.Textarea, atom.Title, atom.Xmp:
		return true
	}
	return false
}

// isOfHead reports whether an element may be in the head. Any other begins the body.
func isOfHead(name atom.Atom) bool {
	switch name {
	case atom.Base, atom.Basefont, atom.Bgsound, atom.Head, atom.Html, atom.Link, atom.Meta, atom.Noframes,
		atom.Noscript, atom.Script, atom.Style, atom.Template, atom.Title:
		return true
	}
	return false
}

// element reads a start tag that is not in a template.
func (p *Parser) element(z *html.Tokenizer, name atom.Atom, token []byte) {
	var a attributes
	switch name {
	case atom.Html, atom.Head, atom.Body:
		p.meta.Document = true
	case atom.Title:
		p.meta.Document = true
		p.raw = rawTitle
	case atom.Textarea, atom.Xmp, atom.Plaintext:
		p.raw = rawShown
	case atom.A, atom.Area:
		if !p.nofollow && len(p.ends) < MaxLinks {
			a.read(z, token, anchorNames)
			if !hasToken(a.value[1], "nofollow") {
				p.anchor(a.value[0])
			}
		}
	case atom.Img, atom.Image:
		a.read(z, token, imageNames)
		p.image(a.value[0], a.value[1])
	case atom.Meta:
		a.read(z, token, metaNames)
		p.metaTag(a.value[0], a.value[1], a.value[2], a.value[3])
	case atom.Link:
		if !p.inBody {
			a.read(z, token, linkNames)
			p.link(false, a.value[1], a.value[0], string(a.value[2]), a.has[2], a.has[3] || a.has[4] || a.has[5])
		}
	case atom.Base:
		if a.read(z, token, baseNames); a.has[0] && !p.inBody && !p.hasBase {
			p.hasBase = true
			if origin, path, ok := p.self.resolve(nil, a.value[0]); ok {
				p.base = newLocation(origin, string(path))
			}
		}
	case atom.Script:
		a.read(z, token, scriptNames)
		if kind, _, _ := bytes.Cut(a.value[0], []byte(";")); equals(kind, "application/ld+json") {
			p.raw = rawJSON
		}
	}
}

func (p *Parser) endTag(name atom.Atom) {
	if (name == atom.Body || name == atom.Html || name == atom.Br) && !p.region.foreign && !p.region.template {
		p.inBody = true
	}
	if isInline(name) && name != atom.Template {
		return
	}
	p.gap()
	if isTracked(name) {
		p.pop(name)
		p.gap()
	}
}

// anchor reads the href of an <a> or <area>. Most links of a page are in it many times.
func (p *Parser) anchor(href []byte) {
	if i := bytes.IndexByte(href, '#'); i >= 0 {
		href = href[:i]
	}
	if len(href) == 0 || !p.isNew(^xxhash.Sum64(href)) {
		return
	}
	origin, path, ok := p.base.resolve(p.scratch[:0], href)
	p.scratch = path
	if !ok || origin != p.self.origin || string(path) == p.self.path || !p.isNew(xxhash.Sum64(path)) {
		return
	}
	p.paths = append(p.paths, path...)
	p.ends = append(p.ends, len(p.paths))
}

func (p *Parser) isNew(hash uint64) bool {
	n := len(p.seen)
	p.seen[hash] = struct{}{}
	return len(p.seen) > n
}

// image reads an <img>. Its alternative text is part of the text.
func (p *Parser) image(src, alt []byte) {
	if p.region.skip {
		return
	}
	kind, out := refOtherImage, &p.rest
	if p.region.main {
		kind, out = refMainImage, &p.main
	}
	out.gap()
	out.write(alt)
	out.gap()
	if p.options.Images {
		p.refs.add(kind, false, "", string(src))
	}
}

// folded appends s, its white space folded, as far as a title is kept.
func folded(dst, s []byte) []byte {
	dst, _, _ = appendFolded(dst, cut(s, 8*MaxTitle), false, false)
	return cut(dst, MaxTitle)
}

// cut shortens s to at most n bytes, between runes.
func cut(s []byte, n int) []byte {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
