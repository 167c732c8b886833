package htmlmeta

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// reference is a URL as it is written. All are resolved in the end: a <base> may come behind them.
type reference struct {
	kind referenceKind
	from *location // what it is relative to
	lang string
	href string
}

type referenceKind uint8

const (
	canonical referenceKind = iota
	refresh
	alternate
	headImage // of the page as a whole
	mainImage
	otherImage
)

const maxReferences = 4096

func (p *Parser) refer(kind referenceKind, from *location, lang, href string) {
	href = strings.Trim(href, white)
	isFragment := strings.HasPrefix(href, "#") && kind != refresh
	if href != "" && !isFragment && len(href) <= 2*MaxURL && len(p.references) < maxReferences {
		p.references = append(p.references, reference{kind, from, lang, href})
	}
}

// A link of a Link header: its parameters (RFC 8288, section 3) are written like the attributes of a tag.
var linkPattern = regexp.MustCompile(`<([^>"]*)>((?:"(?:[^"\\]|\\.)*"?|[^,"])*)`)

func (p *Parser) readHeader(h http.Header) {
	encoding := h.Get("Content-Encoding")
	p.meta.Unreadable = encoding != "" && !strings.EqualFold(encoding, "identity")
	for _, value := range h.Values("X-Robots-Tag") {
		p.robots(value, true)
	}
	for _, value := range h.Values("Refresh") {
		p.refer(refresh, &p.self, "", parseRefresh(value))
	}
	for _, value := range h.Values("Link") {
		for _, m := range linkPattern.FindAllStringSubmatch(value, -1) {
			tag := `<link href="` + m[1] + `" ` + strings.ReplaceAll(m[2], ";", " ") + ">"
			p.scanTag([]byte(tag), len("<"), html.StartTagToken)
			if p.attribute("anchor") == nil { // else it is another page's
				p.link(&p.self)
			}
		}
	}
}

func (p *Parser) robots(directives string, header bool) {
	noindex, nofollow := parseRobots(directives, header, p.now)
	p.meta.NoIndex = p.meta.NoIndex || noindex
	p.nofollow = p.nofollow || nofollow
}

var languagePattern = regexp.MustCompile(`(?i)^(x-default|[a-z]{2,3}(-[a-z]{4})?(-[a-z]{2}|-[0-9]{3})?)$`)

// link reads a <link>. One that says for which readers it is does not name a canonical
// (https://developers.google.com/search/docs/crawling-indexing/consolidate-duplicate-urls).
func (p *Parser) link(from *location) {
	rel, href := p.attribute("rel"), string(p.attribute("href"))
	isVariant := func(name string) bool { return p.attribute(name) != nil }
	if hasWord(rel, "canonical") && !slices.ContainsFunc([]string{"hreflang", "lang", "media", "type"}, isVariant) {
		p.refer(canonical, from, "", href)
	}
	lang := strings.Trim(string(p.attribute("hreflang")), white)
	if p.options.Alternates && hasWord(rel, "alternate") && !hasWord(rel, "stylesheet") && languagePattern.MatchString(lang) {
		p.refer(alternate, from, lang, href)
	}
}

func hasWord(s []byte, word string) bool {
	for f := range bytes.FieldsSeq(s) {
		if len(f) == len(word) && bytes.EqualFold(f, []byte(word)) {
			return true
		}
	}
	return false
}

// metaTag reads a <meta>. Robots directives and a refresh count in the body, too.
func (p *Parser) metaTag() {
	content := p.attribute("content")
	if hasWord(p.attribute("http-equiv"), "refresh") {
		p.refer(refresh, &p.base, "", parseRefresh(string(content)))
		return
	}
	for _, attribute := range []string{"name", "property", "http-equiv"} {
		name := strings.ToLower(strings.Trim(string(p.attribute(attribute)), white))
		switch rank := dateRank[name]; {
		case name == "robots" || name == "googlebot":
			p.robots(string(content), false)
		case p.inBody:
		case rank > 0:
			p.declareDate(rank, string(content))
		case name == "description" && len(p.description) == 0:
			p.description = appendTitle(p.description, content)
		case p.options.Images && (name == "og:image" || name == "og:image:url" || name == "og:image:secure_url"):
			p.refer(headImage, &p.base, "", string(content))
		}
	}
}

// resolve makes URLs of the references.
func (p *Parser) resolve() {
	var canonicals []string
	var refreshed string
	ignored := mainImage
	if p.hasMain {
		ignored = otherImage
	}
	for _, r := range p.references {
		u := r.from.absolute(r.href)
		switch {
		case u == "" || r.kind == ignored:
		case r.kind == canonical:
			canonicals = append(canonicals, u)
		case r.kind == refresh && refreshed == "":
			refreshed = u
		case r.kind == alternate:
			isSame := func(a page.Alternate) bool { return strings.EqualFold(a.Lang, r.lang) }
			if len(p.meta.Alternates) < MaxAlternates && !slices.ContainsFunc(p.meta.Alternates, isSame) {
				p.meta.Alternates = append(p.meta.Alternates, page.Alternate{Lang: r.lang, URL: u})
			}
		case r.kind >= headImage && len(p.meta.Images) < MaxImages && p.isNew([]byte(u), 0):
			p.meta.Images = append(p.meta.Images, u)
		}
	}
	self := p.self.origin + p.self.path
	if canonicals = slices.Compact(canonicals); len(canonicals) == 1 && canonicals[0] != self {
		p.meta.Canonical = canonicals[0]
	}
	if refreshed != self {
		p.meta.Refresh = refreshed
	}
}

// dateRank has the names of declared dates, the most reliable first; JSON-LD comes before them.
var dateRank = map[string]int{
	"article:modified_time": 1, "og:updated_time": 2, "dcterms.modified": 3, "dc.date.modified": 3, "dc.modified": 3,
	"last-modified": 4,
}

const (
	dateRanks = 5
	earliest  = 631152000 // 1990: there was no web before
)

// declareDate keeps the most reliable date, and the first of several. It is one at which a page can have been
// modified: not one when it is not yet tomorrow anywhere.
func (p *Parser) declareDate(rank int, s string) {
	if rank >= p.dateRank {
		return
	}
	unix, day, ok := page.ParseDate(s)
	if ok && unix >= earliest && (p.now.IsZero() || unix <= p.now.Add(24*time.Hour).Unix()) {
		p.dateRank, p.meta.Modified, p.meta.ModifiedDay = rank, unix, day
	}
}
