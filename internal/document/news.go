package document

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"golang.org/x/text/language"
)

// Bounds of a news sitemap (https://developers.google.com/search/docs/crawling-indexing/sitemaps/news-sitemap).
const (
	maxArticles = 1000
	newsFor     = 48 * time.Hour // after it was published, an article is no news any more
)

// When an article that declares a date to come is published.
const (
	clockSkew  = 5 * time.Minute // between the clocks of who writes and who serves
	dayBegins  = 14 * time.Hour  // by which a day begins somewhere before it does in UTC
	maxOmitted = 3               // pages that are named of those that are left out for one reason
)

// NewsOf says which pages are news, and of whom.
type NewsOf struct {
	Publication string                 // its name, as readers know it
	Match       func(path string) bool // tells which pages may be news; nil: all of them
}

// News is what there is to know of a news sitemap besides the document.
type News struct {
	Pages    int                 `json:"pages"`              // articles in it
	LeftOut  map[string]int      `json:"left_out,omitempty"` // pages that are not in it, by reason; those that are simply too old do not count
	Examples map[string][]string `json:"examples,omitempty"` // paths of some of these
	Until    time.Time           `json:"until,omitzero"`     // when equal pages make another document; zero: never
}

// IsCurrent reports whether equal pages make an equal document at a time as at an earlier one, after which the news, which may be
// nil, were selected; false: also where the clock was set back.
func (n *News) IsCurrent(selected, now time.Time) bool {
	if n == nil {
		return true
	}
	isOver := !n.Until.IsZero() && !now.Before(n.Until)
	return !isOver && !now.Before(selected)
}

// Reasons for which a page is not in the news.
const (
	newsUndated   = "no date of publication" // only where patterns say that the page is an article
	newsFuture    = "published in the future"
	newsUntitled  = "no title"
	newsNoLang    = "no language"
	newsOverBound = "more than 1,000 articles in two days"
)

// news makes the news sitemap, of the articles published last.
type news struct {
	*builder
	made     *News
	articles first[article] // and behind them those that are no news any more
}

// article is an entry of a news sitemap.
type article struct {
	path      string
	published int64  // in Unix seconds
	day       bool   // only the day of published is known
	title     string // on one line
	lang      string // two or three lower-case letters, "zh-cn" or "zh-tw"; "": the entry is a page without what makes it news
}

// compare has the newest one first. An article keeps its place among the others as long as it is listed.
func (a article) compare(other article) int {
	return cmp.Or(cmp.Compare(other.published, a.published), strings.Compare(a.path, other.path))
}

func (n *news) add(p listed) {
	of := n.News
	if of.Match != nil && !of.Match(p.Path) {
		return
	}
	e := p.Extensions
	if e.Published == 0 {
		// Without patterns, most pages may well be no articles.
		if of.Match != nil {
			n.leaveOut(newsUndated, p.Path)
		}
		return
	}
	a := article{path: p.Path, published: e.Published, day: e.PublishedDay}
	published := time.Unix(e.Published, 0).UTC()
	from := published.Add(-clockSkew)
	if e.PublishedDay {
		from = published.Add(-dayBegins)
	}
	until := published.Add(newsFor)
	for _, at := range []time.Time{from, until} {
		isNext := n.made.Until.IsZero() || at.Before(n.made.Until)
		if at.After(n.Now) && isNext {
			n.made.Until = at
		}
	}
	if !n.Now.Before(until) {
		n.articles.add(a)
		return
	}
	a.title = cmp.Or(strings.Clone(clean(e.Headline)), p.title) // either may have the name of the site
	a.lang = cmp.Or(newsLanguage(e.Lang), newsLanguage(n.front.Extensions.Lang))
	switch {
	case a.lang == "":
		n.leaveOut(newsNoLang, p.Path)
	case a.title == "":
		n.leaveOut(newsUntitled, p.Path)
	case n.Now.Before(from):
		n.leaveOut(newsFuture, p.Path)
	default:
		n.made.Pages++
		n.articles.add(a)
	}
}

// leaveOut counts a page that is left out, and keeps the first ones as examples.
func (n *news) leaveOut(reason, path string) {
	n.made.LeftOut[reason]++
	if examples := n.made.Examples[reason]; len(examples) < maxOmitted {
		n.made.Examples[reason] = append(examples, path)
	}
}

// finish makes the document. While no article is news, it lists the newest older one, as a mere page: Google asks for that or for
// an empty document, which the schema does not allow, and of which it warns. There is none until an article was published.
func (n *news) finish() {
	articles := n.articles.values
	if len(articles) == 0 {
		return
	}
	if over := n.made.Pages - maxArticles; over > 0 {
		n.made.LeftOut[newsOverBound] = over
		n.made.Pages = maxArticles
	}
	publication := clean(n.News.Publication)
	names := []string{publication, n.front.title, n.host(), strings.TrimPrefix(n.host(), "www.")}
	var entries []byte
	for _, a := range articles[:max(n.made.Pages, 1)] {
		a.title = headline(a.title, names)
		entries = n.appendArticle(entries, publication, a)
	}
	const namespace = `" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9`
	n.file(NewsSitemap, "", inert(n.urlset(namespace, entries)))
}

// textEscapes are the named entities: some readers do not decode numeric ones.
var textEscapes = strings.NewReplacer("&", "&amp;", "'", "&apos;", `"`, "&quot;", "<", "&lt;", ">", "&gt;")

// appendArticle appends the entry of an article:
//
//	<url><loc>https://example.com/a</loc><news:news><news:publication><news:name>The Example Times</news:name><news:language>en</news:language></news:publication><news:publication_date>2006-01-02T15:04:05Z</news:publication_date><news:title>A title</news:title></news:news></url>
//
// It has some 15,000 bytes at most, as titles have up to 200 characters, so 1,000 of them are far from the protocol's bound.
func (n *news) appendArticle(b []byte, publication string, a *article) []byte {
	b = fmt.Appendf(b, urlOpen+"%s"+locClose, appendURL(nil, n.Base+a.path))
	if a.lang != "" {
		b = fmt.Appendf(b, "<news:news><news:publication><news:name>%s</news:name><news:language>%s</news:language></news:publication>",
			textEscapes.Replace(publication), a.lang)
		b = fmt.Appendf(b, "<news:publication_date>%s</news:publication_date><news:title>%s</news:title></news:news>",
			appendDate(nil, time.Unix(a.published, 0).UTC(), a.day), textEscapes.Replace(a.title))
	}
	return append(b, urlClose...)
}

// newsLanguage returns a language, which is as in BCP 47, as Google wants it: a code of ISO 639, or "zh-cn" and "zh-tw"
// for Chinese in simplified and in traditional characters. "": it is none, or not known.
func newsLanguage(lang string) string {
	tag, err := language.Parse(lang)
	if err != nil {
		return ""
	}
	base, _, _ := tag.Raw()
	switch code := base.String(); code {
	case "und", "mis", "mul", "zxx": // undetermined, uncoded, multiple, no linguistic content
		return ""
	case "zh", "cmn":
		script, _ := tag.Script()
		if script.String() == "Hant" {
			return "zh-tw"
		}
		return "zh-cn"
	default:
		return code
	}
}
