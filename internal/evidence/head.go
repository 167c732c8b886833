package evidence

import (
	"bytes"
	"time"

	"golang.org/x/net/html"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// head is what a document's head says. It is kept as written until the head is over:
// a <base> may come last in it.
type head struct {
	begun  bool // something other than comments came
	closed bool // by an end tag
	over   bool // the body began

	title, description       string
	hasTitle, hasDescription bool

	base   []byte
	refs   []reference
	images []string
	dates  [5]date // by preference

	canonical     string
	contradiction bool // of two canonicals
	refreshed     bool
}

// reference is a URL in a head.
type reference struct {
	kind refKind
	lang string
	href []byte
}

type refKind uint8

const (
	refCanonical refKind = iota
	refAlternate
	refImage
	refRefresh
)

// maxRefs is how many URLs of a head are kept.
const maxRefs = 2 * (MaxAlternates + MaxImages)

func (h *head) reset() {
	clear(h.refs)
	*h = head{refs: h.refs[:0], images: h.images[:0]}
}

func (h *head) add(kind refKind, lang string, href []byte) {
	if len(h.refs) < maxRefs && len(href) > 0 && len(href) <= 2*MaxURL {
		h.refs = append(h.refs, reference{kind, lang, bytes.Clone(href)})
	}
}

// The sources of a declared date, the best first.
const (
	dateJSON = iota
	dateArticle
	dateGraph
	dateDublinCore
	dateLastModified
)

func (r *Reader) meta(z *html.Tokenizer, token []byte) {
	var a attributes
	a.read(z, token, metaNames)
	name, property, equiv, content := a.value[0], a.value[1], a.value[2], a.value[3]
	if equals(equiv, "refresh") { // browsers obey one in the body too
		if url, ok := refreshURL(content); ok {
			r.head.add(refRefresh, "", url)
			if r.head.over {
				r.settle()
			}
		}
		return
	}
	if r.head.over || len(content) == 0 {
		return
	}
	if equals(equiv, "last-modified") {
		r.declare(dateLastModified, content)
	}
	for _, n := range [2][]byte{name, property} {
		n = trim(n)
		if len(n) == 0 || len(n) > 32 {
			continue
		}
		var buf [32]byte
		switch string(appendLower(buf[:0], n)) {
		case "robots", "googlebot":
			d := parseRobots(content, false, r.page.Now)
			r.ev.NoIndex = r.ev.NoIndex || d.noindex
			r.follow = r.follow && !d.nofollow
		case "description":
			if !r.head.hasDescription {
				r.head.description, r.head.hasDescription = r.folded(content), true
			}
		case "article:modified_time":
			r.declare(dateArticle, content)
		case "og:updated_time":
			r.declare(dateGraph, content)
		case "dcterms.modified", "dc.date.modified", "dc.modified":
			r.declare(dateDublinCore, content)
		case "last-modified":
			r.declare(dateLastModified, content)
		case "og:image", "og:image:url", "og:image:secure_url":
			if r.o.Images {
				r.head.add(refImage, "", content)
			}
		}
	}
}

// headLink takes a <link>.
func (r *Reader) headLink(z *html.Tokenizer, token []byte) {
	var a attributes
	a.read(z, token, linkNames)
	r.relation(a.value[1], a.value[0], a.value[2], a.has[2], a.has[3] || a.has[4] || a.has[5])
}

// relation takes a link to another version of the page. One that says for which
// readers it is names no canonical
// (https://developers.google.com/search/docs/crawling-indexing/consolidate-duplicate-urls).
func (r *Reader) relation(rel, href, lang []byte, hasLang, hasVariant bool) {
	if !hasLang && !hasVariant && hasToken(rel, "canonical") {
		r.head.add(refCanonical, "", href)
	}
	if r.o.Alternates && hasLang && hasToken(rel, "alternate") && !hasToken(rel, "stylesheet") {
		if l := language(lang); l != "" {
			r.head.add(refAlternate, l, href)
		}
	}
}

// readHeader takes the headers of the answer.
func (r *Reader) readHeader() {
	h := r.page.Header
	if h == nil {
		return
	}
	for _, value := range h.Values("X-Robots-Tag") {
		d := parseRobots([]byte(value), true, r.page.Now)
		r.ev.NoIndex = r.ev.NoIndex || d.noindex
		r.follow = r.follow && !d.nofollow
	}
	for _, value := range h.Values("Link") {
		r.readLinkHeader(value)
	}
	for _, value := range h.Values("Refresh") {
		if url, ok := refreshURL([]byte(value)); ok {
			r.head.add(refRefresh, "", url)
		}
	}
	r.settle() // relative to the page, whatever its <base> says
}

func (r *Reader) beginBody() {
	r.head.begun, r.head.over = true, true
	r.settleHead()
}

func (r *Reader) settleHead() {
	if r.head.base != nil {
		if l, ok := r.doc.at(r.head.base); ok {
			r.base = l
		}
		r.head.base = nil
	}
	r.settle()
	r.ev.Title, r.ev.Description = r.head.title, r.head.description
}

// settle resolves what URLs the head has.
func (r *Reader) settle() {
	for _, ref := range r.head.refs {
		href := trim(ref.href)
		if len(href) == 0 || href[0] == '#' && ref.kind != refRefresh {
			continue
		}
		u := r.base.absolute(href)
		if u == "" {
			continue
		}
		switch ref.kind {
		case refCanonical:
			if r.head.canonical == "" {
				r.head.canonical = u
			}
			r.head.contradiction = r.head.contradiction || r.head.canonical != u
		case refRefresh:
			if !r.head.refreshed {
				r.head.refreshed = true
				if u != r.doc.origin+r.doc.self {
					r.ev.Refresh = u
				}
			}
		case refAlternate:
			r.alternate(ref.lang, u)
		case refImage:
			r.head.images = append(r.head.images, u)
		}
	}
	clear(r.head.refs)
	r.head.refs = r.head.refs[:0]
	r.ev.Canonical = r.head.canonical
	if r.head.contradiction {
		r.ev.Canonical = ""
	}
}

func (r *Reader) alternate(lang, url string) {
	for _, a := range r.ev.Alternates {
		if a.Lang == lang {
			return
		}
	}
	if len(r.ev.Alternates) < MaxAlternates {
		r.ev.Alternates = append(r.ev.Alternates, page.Alternate{Lang: lang, URL: url})
	}
}

// date is when a page says it was changed.
type date struct {
	unix int64
	day  bool
}

// declare keeps the first plausible date of a source.
func (r *Reader) declare(source int, value []byte) {
	if r.head.dates[source] != (date{}) {
		return
	}
	if t, day, ok := parseDate(string(cut(bytes.TrimSpace(value), maxDate))); ok && r.isPlausible(t) {
		r.head.dates[source] = date{t.Unix(), day}
	}
}

// isPlausible reports whether a page can have been changed then: there was a web, and
// it is not tomorrow everywhere yet.
func (r *Reader) isPlausible(t time.Time) bool {
	return t.Year() >= 1990 && (r.page.Now.IsZero() || !t.After(r.page.Now.Add(24*time.Hour)))
}

func (r *Reader) date() {
	r.dateOfJSON()
	for _, d := range r.head.dates {
		if d != (date{}) {
			r.ev.Modified, r.ev.ModifiedDay = d.unix, d.day
			return
		}
	}
}
