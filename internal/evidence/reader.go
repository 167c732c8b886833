package evidence

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// longTag is the length from which on a tag may have so many attributes that the
// tokenizer, which keeps their names and clears them at each tag, is better begun
// anew.
const longTag = 8 << 10

// Reader reads pages, one at a time. What it holds is used again; what it returns is
// not.
type Reader struct {
	o      Options
	page   Page
	doc    location // the page itself
	base   location // what its references are relative to
	ev     Evidence
	follow bool

	head head
	tree tree
	raw  rawText
	main text // of the main elements
	rest text // of the body but for its menus and the like

	mainImages, restImages []string
	links                  []string
	seen                   map[uint64]struct{} // hashes of links
	scratch                []byte
	source                 bytes.Reader
	scripts                []entity // what JSON-LD says
	scriptBytes            int
}

// NewReader makes a Reader.
func NewReader(o Options) *Reader {
	return &Reader{o: o, seen: make(map[uint64]struct{})}
}

// Read reads a document, as far as MaxBody. Whatever the bytes are, it returns what
// can be known of them; nothing that it returns refers to body.
func (r *Reader) Read(body []byte, p Page) Evidence {
	r.begin(p)
	if len(body) > MaxBody {
		body = body[:MaxBody]
		r.ev.Truncated = true
	}
	contentType := ""
	if p.Header != nil {
		contentType = p.Header.Get("Content-Type")
	}
	r.read(decode(body, contentType), strings.EqualFold(mediaType(contentType), xhtml))
	return r.finish()
}

func (r *Reader) begin(p Page) {
	r.page = p
	r.doc = newLocation(p.Base, p.Path)
	r.base = r.doc
	r.ev = Evidence{}
	r.follow = true
	r.head.reset()
	r.tree.reset()
	r.raw = noRaw
	r.main.reset()
	r.rest.reset()
	r.mainImages, r.restImages, r.links = r.mainImages[:0], r.restImages[:0], r.links[:0]
	r.scripts, r.scriptBytes = r.scripts[:0], 0
	switch {
	case len(r.seen) > 2*MaxLinks: // clearing takes as long as it was full
		r.seen = make(map[uint64]struct{})
	case len(r.seen) > 0:
		clear(r.seen)
	}
	r.readHeader()
}

func (r *Reader) finish() Evidence {
	r.settleHead()
	r.date()
	if r.follow && len(r.links) > 0 {
		r.ev.Links = slices.Clone(r.links)
	}
	clear(r.links)
	if r.o.Images {
		r.addImages()
	}
	r.ev.Fingerprint = r.fingerprint()
	ev := r.ev
	r.ev = Evidence{}
	r.page = Page{}
	return ev
}

func (r *Reader) fingerprint() uint64 {
	switch {
	case r.main.some:
		return r.main.sum()
	case r.rest.some:
		return r.rest.sum()
	}
	r.rest.write([]byte(r.ev.Title))
	r.rest.gap()
	r.rest.write([]byte(r.ev.Description))
	if r.rest.some {
		return r.rest.sum()
	}
	return 0
}

// rawText is whose content the next text is, where it is that of an element with
// nothing but text in it.
type rawText uint8

const (
	noRaw rawText = iota
	rawTitle
	rawData   // application/ld+json
	rawUnseen // a script, a style sheet, what stands in for something else
	rawSeen
)

func (r *Reader) read(body []byte, xml bool) {
	r.source.Reset(body)
	defer r.source.Reset(nil)
	z := html.NewTokenizer(&r.source)
	z.AllowCDATA(xml)
	offset := 0
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return
		}
		token := z.Raw()
		offset += len(token)
		raw := r.raw
		r.raw = noRaw
		switch kind {
		case html.TextToken:
			r.text(z, raw)
		case html.DoctypeToken:
			if !r.head.begun {
				r.ev.Whole = true
				r.head.begun = true
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name := tagName(token[1:])
			long := len(token) > longTag
			isRaw := r.start(z, name, token, kind == html.SelfClosingTagToken, xml)
			if long {
				context := ""
				if isRaw {
					context = name.String()
				}
				r.source.Reset(body[offset:])
				z = html.NewTokenizerFragment(&r.source, context)
			}
			z.AllowCDATA(xml || r.tree.top.foreign)
		case html.EndTagToken:
			r.end(tagName(token[2:]))
			z.AllowCDATA(xml || r.tree.top.foreign)
		}
	}
}

// tagName is the name that tag, without its opening, begins with; 0 for one that
// HTML does not know.
func tagName(tag []byte) atom.Atom {
	var name [16]byte
	for i, c := range tag {
		switch {
		case c == '>' || c == '/' || isSpace(c):
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

// text takes a text. Before the body, text begins it.
func (r *Reader) text(z *html.Tokenizer, raw rawText) {
	top := r.tree.top
	switch raw {
	case rawUnseen:
		return
	case rawTitle:
		if !top.template && !r.head.hasTitle {
			r.head.title, r.head.hasTitle = r.folded(z.Text()), true
		}
		return
	case rawData:
		if !top.template {
			r.readJSON(z.Text())
		}
		return
	}
	if !r.head.over && !top.template {
		if isBlank(z.Raw()) {
			return
		}
		r.beginBody()
	}
	switch {
	case top.skip:
	case top.main:
		r.main.write(z.Text())
	case !r.main.some:
		r.rest.write(z.Text())
	}
}

func (r *Reader) gap() {
	if top := r.tree.top; top.main {
		r.main.gap()
	} else if !top.skip {
		r.rest.gap()
	}
}

// start takes a start tag. It reports whether what follows is raw text.
func (r *Reader) start(z *html.Tokenizer, name atom.Atom, token []byte, closed, xml bool) (isRaw bool) {
	if r.tree.top.foreign {
		if !r.tree.breakOut(name) {
			z.NextIsNotRawText()
			if !closed {
				r.tree.open(name, landmark(0))
			}
			return false
		}
	}
	r.head.begun = true
	if !r.head.over && !r.tree.top.template {
		switch name {
		case atom.Html, atom.Head, atom.Base, atom.Basefont, atom.Bgsound, atom.Link, atom.Meta,
			atom.Title, atom.Noframes, atom.Style, atom.Script, atom.Template:
		case atom.Noscript:
			if r.head.closed {
				r.beginBody()
			}
		default:
			r.beginBody()
		}
	}

	switch name {
	case atom.Script, atom.Style, atom.Noscript, atom.Noframes, atom.Noembed, atom.Iframe, atom.Title,
		atom.Textarea, atom.Xmp, atom.Plaintext:
		if xml && closed {
			z.NextIsNotRawText()
			return false
		}
		r.raw = rawUnseen
		isRaw = true
	}
	if !r.tree.top.template {
		r.element(z, name, token)
	} else if isRaw {
		return true
	}
	if !isInline(name) {
		r.gap()
	}
	if isContainer(name) && !closed || isContainer(name) && name != atom.Svg && name != atom.Math && !xml {
		mark := landmarkOf(name)
		if hasRole(token) {
			mark = role(z, token, mark)
		}
		r.tree.open(name, mark)
	}
	return isRaw
}

// element takes a start tag that is in the document proper.
func (r *Reader) element(z *html.Tokenizer, name atom.Atom, token []byte) {
	switch name {
	case atom.A, atom.Area:
		r.link(z, token)
	case atom.Img, atom.Image:
		r.img(z, token)
	case atom.Meta:
		r.meta(z, token)
	case atom.Link:
		if !r.head.over {
			r.headLink(z, token)
		}
	case atom.Base:
		if !r.head.over && r.head.base == nil {
			var a attributes
			if a.read(z, token, hrefName); a.has[0] {
				r.head.base = append([]byte{}, a.value[0]...)
			}
		}
	case atom.Title:
		r.ev.Whole = true
		r.raw = rawTitle
	case atom.Script:
		var a attributes
		if a.read(z, token, typeName); isData(a.value[0]) {
			r.raw = rawData
		}
	case atom.Textarea, atom.Xmp, atom.Plaintext:
		r.raw = rawSeen
	}
}

func (r *Reader) end(name atom.Atom) {
	if !r.tree.top.foreign {
		r.head.begun = true
		if !r.head.over && !r.tree.top.template {
			switch name {
			case atom.Head:
				r.head.closed = true
			case atom.Body, atom.Html, atom.Br:
				r.beginBody()
			}
		}
	}
	if !isInline(name) {
		r.gap()
	}
	r.tree.close(name)
	if !isInline(name) {
		r.gap()
	}
}

// link takes an <a> or <area>.
func (r *Reader) link(z *html.Tokenizer, token []byte) {
	if len(r.links) >= MaxLinks || !r.follow {
		return
	}
	var a attributes
	a.read(z, token, anchorName)
	href, rel := a.value[0], a.value[1]
	if href == nil || hasToken(rel, "nofollow") {
		return
	}
	r.scratch = r.base.append(r.scratch[:0], href, r.doc.origin)
	if len(r.scratch) == 0 || !r.isNew(r.scratch) {
		return
	}
	if string(r.scratch) == r.doc.self {
		return
	}
	path, err := page.CanonicalOf(r.scratch)
	if err != nil || len(r.doc.origin)+len(path) > MaxURL || path == r.doc.self {
		return
	}
	if path != string(r.scratch) && !r.isNew([]byte(path)) {
		return
	}
	r.links = append(r.links, path)
}

// img takes an <img>. A reader sees its alternative text, or what it tells.
func (r *Reader) img(z *html.Tokenizer, token []byte) {
	var a attributes
	a.read(z, token, imageNames)
	src, alt := a.value[0], a.value[1]
	top := r.tree.top
	if top.skip {
		return
	}
	out, images := &r.rest, &r.restImages
	if top.main {
		out, images = &r.main, &r.mainImages
	}
	out.gap()
	out.write(alt)
	out.gap()
	if r.o.Images && len(*images) < MaxImages {
		if src = trim(src); len(src) == 0 || src[0] == '#' {
			return
		}
		if u := r.base.absolute(src); u != "" {
			*images = append(*images, u)
		}
	}
}

func (r *Reader) addImages() {
	all := r.head.images
	if r.tree.hasMain {
		all = append(all, r.mainImages...)
	} else {
		all = append(all, r.restImages...)
	}
	seen := make(map[string]struct{}, len(all))
	for _, u := range all {
		if _, ok := seen[u]; !ok && len(r.ev.Images) < MaxImages {
			seen[u] = struct{}{}
			r.ev.Images = append(r.ev.Images, u)
		}
	}
	clear(r.mainImages)
	clear(r.restImages)
	clear(r.head.images)
}

// cut shortens s to at most n bytes of whole runes.
func cut(s []byte, n int) []byte {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
