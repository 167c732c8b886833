// Package webpage makes what accompanies a sitemap: HTML pages for people, an Atom feed of the pages that changed last,
// a news sitemap, an llms.txt for language models, and the stylesheet with which browsers show the XML as a table.
package webpage

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// How the names of documents end.
const (
	HTML         = ".html"
	PeopleStyle  = "-html.css" // of the pages for people
	PeopleScript = "-html.js"
	Feed         = ".atom"
	Stylesheet   = ".css"
	NewsSitemap  = "-news.xml"
	LLMs         = "/llms.txt" // the whole name: it lies in the folder of the site, not beside the sitemap

	maxTitle = 200 // characters of a title that are shown
)

// Options are what is made, and what documents say besides their pages.
type Options struct {
	Base       string   // scheme, host and port of pages, such as "https://example.com"
	Sitemap    string   // URL of the sitemap without its extension, such as "https://example.com/sitemap": it begins with Base
	People     *People  // how the pages for people look; nil: make none
	Feed       bool     // make the feed
	Hubs       []string // absolute URLs of the feed's WebSub hubs (https://www.w3.org/TR/websub/#discovery)
	Stylesheet bool     // make the CSS that XML sitemaps refer to
	LLMs       bool     // make the document for language models

	News *NewsOptions // of the news sitemap; nil: make none
}

// People says how the pages for people look.
type People struct {
	Title string // of the site; "": that of its front page
	CSS   string // URL of a stylesheet that comes after ours; "": none
}

// root is the path of the sitemap's folder.
func (o Options) root() string { return page.Folder(strings.TrimPrefix(o.Sitemap, o.Base)) }

// host is the name of the site for people: the host, and the port if there is one.
func (o Options) host() string { return o.Base[strings.Index(o.Base, "//")+2:] }

// Document is one finished document. It is never changed.
type Document struct {
	// Name is what its URL has after Options.Sitemap: ".html", a hyphen, 32 hexadecimal digits and ".html", ".atom",
	// ".css", or "-news.xml", which is a sitemap; or LLMs.
	Name string
	Type string // for Content-Type; "": that of a sitemap
	ETag string // without quotes; equal ones of documents of one Name mean equal bodies

	// Body renders the document, which takes longer than all else: callers that hold a document with this Name and ETag
	// skip it. It is safe for concurrent use.
	Body func() []byte
}

// newDocument makes a document whose body depends on template and content alone. Without a type, it has that of a
// sitemap.
func newDocument(name, contentType, template string, content any, body func() []byte) Document {
	hash := xxhash.New()
	_, _ = hash.WriteString(template)
	_ = json.NewEncoder(hash).Encode(content) // only strings and numbers
	if contentType != "" {
		contentType += "; charset=utf-8"
	}
	return Document{name, contentType, strconv.FormatUint(hash.Sum64(), 36), body}
}

// Builder makes the documents of the pages that it is given. Equal pages and options give equal documents in the same
// order. It holds the pages that people see, 1,000 pages for the feed and for LLMs, and 2,000 for the news sitemap.
type Builder struct {
	Options
	emit    func(Document)
	visible people
	latest  first[changed]
	newest  newest
	nearest nearest
	columns columns
	endings endings

	// Of the page whose path is the sitemap's folder, which comes first; "": it has none.
	front, frontDescription, frontLang string
}

// New returns a Builder that calls emit for each document as soon as it is complete.
func New(o Options, emit func(Document)) *Builder {
	b := &Builder{
		Options: o,
		emit:    emit,
		latest:  first[changed]{most: maxEntries, compare: compareChanged},
		nearest: newNearest(),
		endings: endings{count: make(map[string]int)},
	}
	if o.News != nil {
		b.newest = newNewest(o.News)
	}
	return b
}

// Add adds a page, which comes after all others in the order of [page.Compare]. section is the name of the one that the
// configuration has it in; "": none.
func (b *Builder) Add(p page.Page, section string) {
	if p.Path == b.root() {
		// Which may be parts of larger strings.
		b.front = strings.Clone(clean(titleOf(p)))
		b.frontDescription = strings.Clone(clean(descriptionOf(p)))
		b.frontLang = strings.Clone(cmp.Or(p.Extensions, new(page.Extensions)).Lang)
	}
	b.columns.add(p)
	if b.Feed {
		b.addLatest(p)
	}
	if b.News != nil {
		b.newest.add(p, b.frontLang)
	}
	if b.LLMs {
		b.nearest.add(b.Options, p, section)
	}
	if b.People != nil {
		b.visible.add(b.Options, p, section)
	}
	if b.LLMs || b.People != nil {
		b.endings.add(clean(titleOf(p)))
	}
}

// siteNames are the names of the site, which titles need not repeat.
func (b *Builder) siteNames() []string {
	return []string{b.front, b.host(), b.endings.most()}
}

// Finish makes the documents that are left. Without pages there is no HTML, and without dates there is no feed.
func (b *Builder) Finish() {
	b.people()
	b.feed()
	if b.News != nil {
		b.news()
	}
	b.llms()
	if b.Stylesheet {
		b.stylesheet()
	}
}

// stylesheet makes the stylesheet of the XML.
func (b *Builder) stylesheet() {
	if b.People != nil {
		b.columns.People = b.Sitemap + HTML
	}
	columns := b.columns // a copy, which does not keep the rest of the builder alive
	body := func() []byte { return []byte(columns.css()) }
	b.emit(newDocument(Stylesheet, "text/css", stylesheet+ofSite, columns, body))
}

// InNews returns what there is to know of the news sitemap, once the documents are finished; nil: there is none.
func (b *Builder) InNews() *News {
	if b.News == nil {
		return nil
	}
	result := b.newest.result // a copy, which does not keep the rest of the builder alive
	return &result
}

// titleOf is the title of a page; "": its path stands for it.
func titleOf(p page.Page) string { return cmp.Or(p.Extensions, new(page.Extensions)).Title }

// descriptionOf is what a page declares as its description; "": it declares none.
func descriptionOf(p page.Page) string {
	return cmp.Or(p.Extensions, new(page.Extensions)).Description
}

// dateOf returns when a page changed; ok is false if that is not known. RFC 3339 has years of four digits.
func dateOf(p page.Page) (t time.Time, ok bool) {
	t = time.Unix(p.LastMod, 0).UTC()
	return t, p.LastMod != 0 && t.Year() > 0 && t.Year() < 10_000
}

// clean makes a text fit for one line: it collapses white space, and drops characters that XML forbids
// (https://www.w3.org/TR/xml/#charsets), controls, and what overrides the writing direction of the text after it.
// Invalid UTF-8 becomes U+FFFD. A text of more than maxTitle characters is cut, and ends in an ellipsis.
func clean(text string) string {
	isOther := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(text) <= maxTitle && !strings.ContainsFunc(text, isOther) {
		return text // as most paths are
	}
	text = strings.Join(strings.Fields(strings.Map(visible, text)), " ")
	if utf8.RuneCountInString(text) <= maxTitle {
		return text
	}
	return strings.TrimRight(string([]rune(text)[:maxTitle-1]), " ") + "…"
}

func visible(r rune) rune {
	isControl := unicode.IsControl(r) && !unicode.IsSpace(r)
	isOverride := unicode.Is(unicode.Bidi_Control, r) && r > '\u200F' // the marks up to there turn no other text around
	isNoCharacter := r&0xFFFE == 0xFFFE
	if isControl || isOverride || isNoCharacter {
		return -1
	}
	return r
}

// pathLabel is a path or folder as people read it.
func pathLabel(path string) string {
	_, query, _ := strings.Cut(path+"?", "?")
	return clean(page.Unescape(path) + strings.TrimSuffix("?"+query, "?"))
}
