package check

import "github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"

// role is what an element is for.
type role uint8

const (
	roleHolder   role = iota // has elements, and no text
	roleNothing              // has neither
	roleText                 // has text, which a rule is about
	roleURL                  // has an absolute URL as its text
	roleEntry                // holds a page or a child
	roleLoc                  // of a page or child
	roleLastMod              // of a page or child
	roleImage                // holds an image
	roleNews                 // holds news
	roleNewsDate             // of news
	roleLink                 // names a page in another language
	roleAtomLink             // is the URL of an entry
)

// others is which elements an element may have beside its own.
type others uint8

const (
	othersNone  others = iota
	othersAfter        // extensions, after its own
	othersFirst        // extensions, before its own
	othersAny          // anything, unchecked, and any attribute
)

// element is a definition of a schema.
type element struct {
	name       string
	space      knownSpace // spaceNone: that of the document
	role       role
	children   []*element
	anyOrder   bool
	others     others
	required   bool
	max        int // how often in its parent; 0: once, -1: any number
	rule       rule
	attributes []attributeRule
	obsolete   bool // readers pass it over
}

type attributeRule struct {
	name     string
	required bool
	rule     rule
}

// must is e, required.
func (e element) must() *element {
	e.required = true
	return &e
}

func (e element) may() *element { return &e }

func text(name string, r rule) element { return element{name: name, role: roleText, rule: r} }

// of gives a namespace to an element and all in it.
func of(space knownSpace, e *element) *element {
	e.space = space
	for _, child := range e.children {
		of(space, child)
	}
	return e
}

// rootOf is the definition of a kind of document.
func rootOf(kind Kind, schema sitemapxml.Schema) *element {
	switch kind {
	case KindURLSet:
		return urlsets[schema]
	case KindIndex:
		return indexes[schema]
	case KindRSS:
		return rssRoot
	}
	return atomRoot
}

var changeFrequency = isOneOf("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")

// In 0.84 elements come in any order, and there are no extensions.
var urlsets = [...]*element{
	sitemapxml.Schema09:  urlset(false, othersFirst, othersAfter),
	sitemapxml.Schema084: urlset(true, othersNone, othersNone),
}

var indexes = [...]*element{
	sitemapxml.Schema09:  index(false, othersFirst, othersAfter),
	sitemapxml.Schema084: index(true, othersNone, othersNone),
}

func urlset(anyOrder bool, inSet, inEntry others) *element {
	return &element{name: KindURLSet.String(), others: inSet, children: []*element{{
		name: "url", role: roleEntry, required: true, max: -1, anyOrder: anyOrder, others: inEntry,
		children: []*element{
			element{name: "loc", role: roleLoc}.must(),
			element{name: "lastmod", role: roleLastMod}.may(),
			text("changefreq", changeFrequency).may(),
			text("priority", isPriority).may(),
		},
	}}}
}

func index(anyOrder bool, inIndex, inEntry others) *element {
	return &element{name: KindIndex.String(), others: inIndex, children: []*element{{
		name: "sitemap", role: roleEntry, required: true, max: -1, anyOrder: anyOrder, others: inEntry,
		children: []*element{
			element{name: "loc", role: roleLoc}.must(),
			element{name: "lastmod", role: roleLastMod}.may(),
		},
	}}}
}

// https://www.rssboard.org/rss-specification
var rssRoot = &element{name: "rss", others: othersAny, anyOrder: true, children: []*element{{
	name: "channel", others: othersAny, anyOrder: true, required: true,
	children: []*element{{
		name: "item", role: roleEntry, others: othersAny, anyOrder: true, max: -1,
		children: []*element{{name: "link", role: roleLoc, others: othersAny}},
	}},
}}}

// https://www.rfc-editor.org/rfc/rfc4287
var atomRoot = &element{name: "feed", others: othersAny, anyOrder: true, children: []*element{{
	name: "entry", role: roleEntry, others: othersAny, anyOrder: true, max: -1,
	children: []*element{{name: "link", role: roleAtomLink, others: othersAny, max: -1}},
}}}

// extension is the definition of what an entry may have beyond the protocol. known
// says whether its namespace is one of those that this package knows.
func extension(n name) (e *element, known bool) {
	switch n.space.known {
	case spaceImage, spaceVideo, spaceNews, spaceMobile:
		e = extensions[n.space.known]
		if string(n.local) != e.name {
			return nil, true
		}
		return e, true
	case spaceXHTML:
		if string(n.local) == xhtmlLink.name {
			return xhtmlLink, true
		}
	}
	return nil, false
}

var extensions = map[knownSpace]*element{
	spaceImage:  of(spaceImage, image),
	spaceVideo:  of(spaceVideo, video),
	spaceNews:   of(spaceNews, news),
	spaceMobile: of(spaceMobile, &element{name: "mobile", role: roleNothing}),
}

// https://developers.google.com/search/docs/crawling-indexing/sitemaps/image-sitemaps
var image = &element{name: "image", role: roleImage, children: []*element{
	element{name: "loc", role: roleURL}.must(),
	element{name: "caption", role: roleText, rule: anyText, obsolete: true}.may(),
	element{name: "geo_location", role: roleText, rule: anyText, obsolete: true}.may(),
	element{name: "title", role: roleText, rule: anyText, obsolete: true}.may(),
	element{name: "license", role: roleText, rule: isURI, obsolete: true}.may(),
}}

// https://developers.google.com/search/docs/crawling-indexing/sitemaps/news-sitemap
var news = &element{name: "news", role: roleNews, children: []*element{
	element{name: "publication", children: []*element{
		text("name", anyText).must(),
		text("language", matches("zh-cn|zh-tw|[a-z]{2,3}", "is no language of two or three letters, zh-cn or zh-tw")).must(),
	}}.must(),
	text("access", isOneOf("Subscription", "Registration")).may(),
	text("genres", matches("("+genres+")(, *("+genres+"))*", "is no list of PressRelease, Satire, Blog, OpEd, Opinion, UserGenerated")).may(),
	element{name: "publication_date", role: roleNewsDate, rule: isDate}.must(),
	text("title", anyText).must(),
	text("keywords", anyText).may(),
	text("stock_tickers", matches(`([\pL\pM\pN\pS]+:[\pL\pM\pN\pS]+(, *[\pL\pM\pN\pS]+:[\pL\pM\pN\pS]+){0,4})?`, "is no list of five tickers at most, such as NASDAQ:AMAT")).may(),
}}

const genres = "PressRelease|Satire|Blog|OpEd|Opinion|UserGenerated"

var (
	yesNo        = isOneOf("yes", "Yes", "YES", "no", "No", "NO")
	allowDeny    = isOneOf("allow", "deny")
	seconds      = isWhole(0, 28_800, "is no number of seconds up to 28800")
	notNegative  = isWhole(0, 1e9, "is no whole number from 0")
	positive     = isWhole(1, 1e9, "is no whole number from 1")
	relationship = []attributeRule{{name: "relationship", required: true, rule: allowDeny}}
)

// https://developers.google.com/search/docs/crawling-indexing/sitemaps/video-sitemaps
var video = &element{name: "video", children: []*element{
	element{name: "thumbnail_loc", role: roleURL}.must(),
	text("title", isShort(100)).must(),
	text("description", isShort(2048)).must(),
	element{name: "content_loc", role: roleURL}.may(),
	element{name: "player_loc", role: roleURL, attributes: []attributeRule{
		{name: "allow_embed", rule: yesNo}, {name: "autoplay", rule: anyText},
	}}.may(),
	text("duration", seconds).may(),
	text("expiration_date", isDate).may(),
	text("rating", isRating).may(),
	element{name: "content_segment_loc", role: roleURL, max: -1, attributes: []attributeRule{
		{name: "duration", rule: seconds},
	}}.may(),
	text("view_count", notNegative).may(),
	text("publication_date", isDate).may(),
	element{name: "tag", role: roleText, rule: anyText, max: 32}.may(),
	text("category", isShort(256)).may(),
	text("family_friendly", yesNo).may(),
	element{name: "restriction", role: roleText, attributes: relationship,
		rule: matches("([A-Z]{2}( +[A-Z]{2})*)?", "is no list of countries such as 'DE AT'")}.may(),
	element{name: "gallery_loc", role: roleURL, attributes: []attributeRule{
		{name: "title", rule: anyText},
	}}.may(),
	element{name: "price", role: roleText, rule: anyText, max: -1, attributes: []attributeRule{
		{name: "currency", rule: matches("[A-Z]{3}", "is no currency such as EUR")},
		{name: "type", rule: isOneOf("purchase", "PURCHASE", "rent", "RENT")},
		{name: "resolution", rule: isOneOf("sd", "SD", "hd", "HD")},
	}}.may(),
	text("requires_subscription", yesNo).may(),
	element{name: "uploader", role: roleText, rule: anyText, attributes: []attributeRule{
		{name: "info", rule: isURI},
	}}.may(),
	element{name: "tvshow", children: []*element{
		text("show_title", anyText).must(),
		text("video_type", isOneOf("full", "preview", "clip", "interview", "news", "other")).must(),
		text("episode_title", anyText).may(),
		text("season_number", positive).may(),
		text("episode_number", positive).may(),
		text("premier_date", isDate).may(),
	}}.may(),
	element{name: "platform", role: roleText, attributes: relationship,
		rule: matches("((web|mobile|tv)( (web|mobile|tv))*)?", "is no list of web, mobile, tv")}.may(),
	text("live", yesNo).may(),
	element{name: "id", role: roleText, rule: anyText, max: -1, attributes: []attributeRule{
		{name: "type", required: true, rule: isOneOf("tms:series", "tms:program", "rovi:series", "rovi:program", "freebase", "url")},
	}}.may(),
}}

// https://developers.google.com/search/docs/specialty/international/localized-versions
// and the schema of XHTML 1.0 Strict.
var xhtmlLink = &element{name: "link", space: spaceXHTML, role: roleLink, attributes: append([]attributeRule{
	{name: "rel", rule: anyText},
	{name: "hreflang", rule: isLanguage},
	{name: "href", rule: anyText},
	{name: "lang", rule: isLanguage},
	{name: "dir", rule: isOneOf("ltr", "rtl")},
}, unchecked("charset", "class", "id", "media", "rev", "style", "title", "type",
	"onclick", "ondblclick", "onmousedown", "onmouseup", "onmouseover", "onmousemove",
	"onmouseout", "onkeypress", "onkeydown", "onkeyup")...)}

func unchecked(names ...string) (rules []attributeRule) {
	for _, n := range names {
		rules = append(rules, attributeRule{name: n, rule: anyText})
	}
	return rules
}
