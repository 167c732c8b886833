// Package webpage makes what accompanies a sitemap: HTML pages for people, an Atom feed of the pages that changed last,
// and the stylesheet with which browsers show the XML as a table.
package webpage

import (
	_ "embed" // the templates, stylesheets and the script
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// MaxTitle is how many characters of a title are shown.
const MaxTitle = 200

// Page is a listed page. Its Path has at most [page.MaxLoc] bytes.
type Page struct {
	page.Page
	Title string // as text, not HTML; "": its path stands for it
}

// date returns when the page changed; ok is false if that is not known. RFC 3339 has years of four digits.
func (p Page) date() (t time.Time, ok bool) {
	t = time.Unix(p.LastMod, 0).UTC()
	return t, p.LastMod != 0 && t.Year() > 0 && t.Year() < 10_000
}

// Options are what is made, and what documents say besides their pages.
type Options struct {
	Base    string   // what the URLs of pages have before their path, such as "https://example.com"
	Sitemap string   // URL of the sitemap without its extension, such as "https://example.com/sitemap": it begins with Base
	HTML    bool     // make the pages for people
	Feed    bool     // make the feed
	Hubs    []string // absolute URLs of the feed's WebSub hubs (https://www.w3.org/TR/websub/#discovery)
}

// Host is the host of Base, with its port: the name of the site for people.
func (o Options) Host() string {
	_, host, _ := strings.Cut(o.Base, "://")
	host, _, _ = strings.Cut(host, "/")
	return host
}

// Document is one finished document. It is never changed.
type Document struct {
	Name   string // what its URL has after Options.Sitemap: ".html", a hyphen, 32 hexadecimal digits and ".html", ".atom", ".css"
	Type   string // for Content-Type
	Policy string // for Content-Security-Policy; "": none is needed
	ETag   string // without quotes; equal ones of documents of one Name mean equal bodies

	body func() []byte
}

// Body renders the document, which takes longer than all else: callers that hold a document with this Name and ETag
// skip it. It is safe for concurrent use.
func (d Document) Body() []byte { return d.body() }

// newDocument makes a document whose body depends on policy, template and content alone.
func newDocument(name, contentType, policy, template string, content any, body func() []byte) Document {
	hash := xxhash.New()
	_, _ = hash.WriteString(policy + template)
	_ = json.NewEncoder(hash).Encode(content) // only strings and numbers
	return Document{name, contentType + "; charset=utf-8", policy, strconv.FormatUint(hash.Sum64(), 36), body}
}

//go:embed sitemap.css
var stylesheet string

// Stylesheet is the CSS that XML sitemaps refer to. It is the same for all sites.
func Stylesheet() Document {
	return newDocument(".css", "text/css", "", stylesheet, nil, func() []byte { return []byte(stylesheet) })
}

// Build makes the documents of pages, which come in the order of [page.Compare] without duplicates. Equal pages and
// options give equal documents in the same order. Without pages there is no HTML, and without dates there is no feed.
// An error is that of pages, or [page.ErrRelative]; no document follows it.
//
// Build holds one document's pages for each folder that the current page is in, of at most 17, and 1,000 for the feed.
func Build(pages iter.Seq2[Page, error], o Options) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		var latest latest
		root := &folder{path: page.Folder(strings.TrimPrefix(o.Sitemap, o.Base)), name: ".html"}
		t := &tree{Options: o, own: ownDocument, folder: root, emit: func(d Document) bool { return yield(d, nil) }}
		for p, err := range pages {
			if err == nil && !strings.HasPrefix(p.Path, "/") {
				err = fmt.Errorf("'%s': %w", p.Path, page.ErrRelative)
			}
			if err != nil {
				yield(Document{}, err)
				return
			}
			if o.Feed {
				latest.add(p)
			}
			if o.HTML && !t.add(p) {
				return
			}
		}
		if entries := latest.entries(); t.finish() && len(entries) > 0 {
			yield(feedOf(entries, o), nil)
		}
	}
}

// clean makes a text fit for one line: it collapses white space, and drops characters that XML forbids
// (https://www.w3.org/TR/xml/#charsets), controls, and what overrides the writing direction of the text after it.
// Invalid UTF-8 becomes U+FFFD. A text of more than [MaxTitle] characters is cut, and ends in an ellipsis.
func clean(text string) string {
	text = strings.Join(strings.Fields(strings.Map(visible, text)), " ")
	if utf8.RuneCountInString(text) <= MaxTitle {
		return text
	}
	return strings.TrimRight(string([]rune(text)[:MaxTitle-1]), " ") + "…"
}

func visible(r rune) rune {
	if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r) && r > '\u200F' || r&0xFFFE == 0xFFFE {
		return -1
	}
	return r
}

// pathLabel is a path or folder as people read it.
func pathLabel(path string) string {
	_, query, _ := strings.Cut(path+"?", "?")
	return clean(page.Unescape(path) + strings.TrimSuffix("?"+query, "?"))
}
