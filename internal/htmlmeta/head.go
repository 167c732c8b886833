package htmlmeta

import (
	"bytes"
	"regexp"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// reference is a URL as the page has it. All are resolved in the end: a <base> may come
// behind.
type reference struct {
	kind   refKind
	header bool // relative to the page, whatever its <base> says
	lang   string
	href   string
}

type refKind uint8

const (
	refCanonical refKind = iota
	refRefresh
	refAlternate
	refPageImage // for the page as a whole
	refMainImage
	refOtherImage
	refKinds
)

// references are collected up to a number of each kind.
type references struct {
	all   []reference
	count [refKinds]int
}

func (r references) reset() references {
	clear(r.all)
	return references{all: r.all[:0]}
}

func (r *references) add(kind refKind, header bool, lang, href string) {
	href = strings.Trim(href, white)
	isFragment := strings.HasPrefix(href, "#") && kind != refRefresh
	if href == "" || isFragment || len(href) > 2*MaxURL || r.count[kind] >= 2*MaxImages {
		return
	}
	r.count[kind]++
	r.all = append(r.all, reference{kind, header, strings.Clone(lang), strings.Clone(href)})
}

// link reads a <link>, or a link of a header. One that says for which readers it is does
// not name a canonical
// (https://developers.google.com/search/docs/crawling-indexing/consolidate-duplicate-urls).
func (p *Parser) link(header bool, rel, href []byte, lang string, hasLang, hasVariant bool) {
	if !hasLang && !hasVariant && hasToken(rel, "canonical") {
		p.refs.add(refCanonical, header, "", string(href))
	}
	if p.options.Alternates && hasLang && hasToken(rel, "alternate") && !hasToken(rel, "stylesheet") {
		if l := normalLanguage(lang); l != "" {
			p.refs.add(refAlternate, header, l, string(href))
		}
	}
}

var languages = regexp.MustCompile(`^([a-z]{2,3})(-[a-z]{4})?(-[a-z]{2}|-[0-9]{3})?$`)

// normalLanguage returns an hreflang in its usual case, such as de, zh-Hant, de-AT or
// x-default; "": it is not one.
func normalLanguage(s string) string {
	if s = strings.ToLower(strings.Trim(s, white)); s == "x-default" {
		return s
	}
	m := languages.FindStringSubmatch(s)
	if m == nil {
		return ""
	}
	if m[2] != "" {
		m[2] = "-" + strings.ToUpper(m[2][1:2]) + m[2][2:]
	}
	return m[1] + m[2] + strings.ToUpper(m[3])
}

// metaTag reads a <meta>. Robots directives and a refresh count in the body, too.
func (p *Parser) metaTag(name, property, equiv, content []byte) {
	if equals(equiv, "refresh") {
		p.refs.add(refRefresh, false, "", parseRefresh(string(content)))
		return
	}
	if equals(equiv, "last-modified") {
		p.declareDate(dateLastModified, content)
	}
	for _, n := range [2][]byte{name, property} {
		if n = bytes.TrimSpace(n); len(n) == 0 || len(n) > 32 {
			continue
		}
		switch n := strings.ToLower(string(n)); n {
		case "robots", "googlebot":
			p.robots(parseRobots(string(cut(content, 4<<10)), false, p.now))
		case "description":
			if !p.inBody && len(p.description) == 0 {
				p.description = folded(p.description, content)
			}
		case "og:image", "og:image:url", "og:image:secure_url":
			if !p.inBody && p.options.Images {
				p.refs.add(refPageImage, false, "", string(content))
			}
		default:
			if source, ok := dateNames[n]; ok {
				p.declareDate(source, content)
			}
		}
	}
}

// resolve makes URLs of the references.
func (p *Parser) resolve() {
	self := p.self.origin + p.self.path
	var canonical, refresh string
	differ := false
	other := refMainImage // images that do not count
	if p.hasMain {
		other = refOtherImage
	}
	for _, r := range p.refs.all {
		base := &p.base
		if r.header {
			base = &p.self
		}
		u := base.absolute([]byte(r.href))
		if u == "" || r.kind == other {
			continue
		}
		switch r.kind {
		case refCanonical:
			differ = differ || canonical != "" && canonical != u
			canonical = u
		case refRefresh:
			if refresh == "" {
				refresh = u
			}
		case refAlternate:
			p.addAlternate(r.lang, u)
		default:
			if len(p.meta.Images) < MaxImages && p.isNew(xxhash.Sum64String(u)) {
				p.meta.Images = append(p.meta.Images, u)
			}
		}
	}
	if !differ && canonical != self {
		p.meta.Canonical = canonical
	}
	if refresh != self {
		p.meta.Refresh = refresh
	}
}

func (p *Parser) addAlternate(lang, url string) {
	for _, a := range p.meta.Alternates {
		if a.Lang == lang {
			return
		}
	}
	if len(p.meta.Alternates) < MaxAlternates {
		p.meta.Alternates = append(p.meta.Alternates, page.Alternate{Lang: lang, URL: url})
	}
}

// date is a declared date; the zero value: none.
type date struct {
	unix int64
	day  bool
}

// The sources of a declared date, the most reliable first.
const (
	dateJSON = iota
	dateArticle
	dateOpenGraph
	dateDublinCore
	dateLastModified
	dateSources
)

var dateNames = map[string]int{
	"article:modified_time": dateArticle, "og:updated_time": dateOpenGraph, "last-modified": dateLastModified,
	"dcterms.modified": dateDublinCore, "dc.date.modified": dateDublinCore, "dc.modified": dateDublinCore,
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

// declareDate keeps the first date of a source in the head.
func (p *Parser) declareDate(source int, value []byte) {
	if !p.inBody && p.dates[source] == (date{}) {
		p.dates[source], _ = p.parseDate(string(cut(value, 100)))
	}
}

func (p *Parser) chooseDate() {
	p.dates[dateJSON] = p.jsonDate()
	for _, d := range p.dates {
		if d != (date{}) {
			p.meta.Modified, p.meta.ModifiedDay = d.unix, d.day
			return
		}
	}
}
