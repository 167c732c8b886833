package htmlmeta

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// reference is a URL as it is written. All are resolved in the end: a <base> may come
// behind them.
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

// maxReferences is how many references of a page are kept.
const maxReferences = 2*MaxAlternates + 3*MaxImages

func (p *Parser) refer(kind referenceKind, from *location, lang, href string) {
	href = strings.Trim(href, white)
	isFragment := strings.HasPrefix(href, "#") && kind != refresh
	if href != "" && !isFragment && len(href) <= 2*MaxURL && len(p.references) < maxReferences {
		p.references = append(p.references, reference{kind, from, lang, href})
	}
}

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
		eachLink(value, func(href string, params map[string]string) {
			if params["anchor"] == "" { // else it is another page's
				variant := params["media"] != "" || params["type"] != ""
				p.link(&p.self, params["rel"], href, params["hreflang"], variant)
			}
		})
	}
}

func (p *Parser) robots(directives string, header bool) {
	noindex, nofollow := parseRobots(directives, header, p.now)
	p.meta.NoIndex = p.meta.NoIndex || noindex
	p.nofollow = p.nofollow || nofollow
}

// link reads a <link>, or a link of a header. One that says for which readers it is does
// not name a canonical
// (https://developers.google.com/search/docs/crawling-indexing/consolidate-duplicate-urls).
func (p *Parser) link(from *location, rel, href, lang string, variant bool) {
	if lang == "" && !variant && hasWord(rel, "canonical") {
		p.refer(canonical, from, "", href)
	}
	if p.options.Alternates && hasWord(rel, "alternate") && !hasWord(rel, "stylesheet") {
		if lang = normalLanguage(lang); lang != "" {
			p.refer(alternate, from, lang, href)
		}
	}
}

func hasWord(s, word string) bool {
	return slices.ContainsFunc(strings.Fields(s), func(f string) bool { return strings.EqualFold(f, word) })
}

var languagePattern = regexp.MustCompile(`^([a-z]{2,3})(-[a-z]{4})?(-[a-z]{2}|-[0-9]{3})?$`)

// normalLanguage returns an hreflang in its usual case, such as de, zh-Hant, de-AT or
// x-default; "": it is not one.
func normalLanguage(s string) string {
	if s = strings.ToLower(strings.Trim(s, white)); s == "x-default" {
		return s
	}
	m := languagePattern.FindStringSubmatch(s)
	if m == nil {
		return ""
	}
	if m[2] != "" {
		m[2] = "-" + strings.ToUpper(m[2][1:2]) + m[2][2:]
	}
	return m[1] + m[2] + strings.ToUpper(m[3])
}

// metaTag reads a <meta>. Robots directives and a refresh count in the body, too.
func (p *Parser) metaTag() {
	content := p.attribute("content")
	equiv := strings.ToLower(string(bytes.TrimSpace(p.attribute("http-equiv"))))
	if equiv == "refresh" {
		p.refer(refresh, &p.base, "", parseRefresh(string(content)))
		return
	}
	for _, name := range []string{equiv, string(p.attribute("name")), string(p.attribute("property"))} {
		name = strings.ToLower(strings.Trim(name, white))
		switch source, isDate := dateSource[name]; {
		case name == "robots" || name == "googlebot":
			p.robots(string(cut(content, 4<<10)), false)
		case p.inBody:
		case isDate && p.dates[source] == date{}:
			p.dates[source], _ = p.parseDate(string(cut(content, 100)))
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
	if p.marked {
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
			isSame := func(a page.Alternate) bool { return a.Lang == r.lang }
			if len(p.meta.Alternates) < MaxAlternates && !slices.ContainsFunc(p.meta.Alternates, isSame) {
				p.meta.Alternates = append(p.meta.Alternates, page.Alternate{Lang: r.lang, URL: u})
			}
		case r.kind >= headImage:
			if len(p.meta.Images) < MaxImages && p.isNew([]byte(u), 0) {
				p.meta.Images = append(p.meta.Images, u)
			}
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

// date is a declared date; the zero value: none.
type date struct {
	unix int64
	day  bool
}

// The sources of a declared date, the most reliable first: JSON-LD is number 0.
const dateSources = 5

var dateSource = map[string]int{
	"article:modified_time": 1, "og:updated_time": 2, "dcterms.modified": 3, "dc.date.modified": 3, "dc.modified": 3,
	"last-modified": 4,
}

// earliest is 1990-01-01: there was no web before.
const earliest = 631152000

// parseDate parses a date at which a page can have been modified: not before the web,
// and not when it is not yet tomorrow anywhere.
func (p *Parser) parseDate(s string) (date, bool) {
	if p.dateTries++; p.dateTries > 100 {
		return date{}, false
	}
	unix, day, ok := page.ParseDate(s)
	if !ok || unix < earliest || !p.now.IsZero() && unix > p.now.Add(24*time.Hour).Unix() {
		return date{}, false
	}
	return date{unix, day}, true
}

func (p *Parser) chooseDate() {
	p.dates[0] = p.jsonDate()
	for _, d := range p.dates {
		if d != (date{}) {
			p.meta.Modified, p.meta.ModifiedDay = d.unix, d.day
			return
		}
	}
}
