package webpage

import (
	"bytes"
	"cmp"
	"path"
	"strings"
	"time"

	"golang.org/x/text/language"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
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

// NewsOptions say which pages are news, and of whom.
type NewsOptions struct {
	Publication string                 // its name, as readers know it
	Match       func(path string) bool // tells which pages may be news; nil: all of them
	Now         time.Time
}

// News is what there is to know of a news sitemap besides the document.
type News struct {
	Paths []string // of the articles, the newest first

	// Pages that are not in it, by reason, with some of their paths. Those that are simply too old do not count.
	LeftOut  map[string]int
	Examples map[string][]string

	// From and Until are between which times equal pages make an equal document; zero: at all times before, or after.
	// Where pages are left out, they may make an equal one for longer.
	From, Until time.Time
}

// Reasons for which a page is not in the news.
const (
	newsUndated   = "no date of publication" // only where patterns say that the page is an article
	newsFuture    = "published in the future"
	newsUntitled  = "no title"
	newsNoLang    = "no language"
	newsOverBound = "more than 1,000 articles in two days"
)

// newest collects the articles that are news: those published last.
type newest struct {
	*NewsOptions
	result   News
	count    int // of articles that are news
	articles first[sitemapxml.Article]
	older    first[sitemapxml.Article] // the newest of those that are no news any more
}

func newNewest(o *NewsOptions) newest {
	return newest{
		NewsOptions: o,
		result:      News{LeftOut: make(map[string]int), Examples: make(map[string][]string)},
		articles:    first[sitemapxml.Article]{most: maxArticles, compare: compareArticles},
		older:       first[sitemapxml.Article]{most: 1, compare: compareArticles},
	}
}

// newsTimes returns from when until when an article is news.
func newsTimes(e *page.Extensions) (from, until time.Time) {
	published := time.Unix(e.Published, 0).UTC()
	until = published.Add(newsFor)
	if e.PublishedDay {
		return published.Add(-dayBegins), until
	}
	return published.Add(-clockSkew), until
}

// add adds a page. lang is the language of the front page; "": it is not known.
func (n *newest) add(p page.Page, lang string) {
	if n.Match != nil && !n.Match(p.Path) {
		return
	}
	e := cmp.Or(p.Extensions, new(page.Extensions))
	if e.Published == 0 {
		// Without patterns, most pages may well be no articles.
		if n.Match != nil {
			n.leaveOut(newsUndated, p.Path)
		}
		return
	}
	from, until := newsTimes(e)
	n.changesAt(from)
	n.changesAt(until)
	// Which may be a part of a larger string, as the title.
	a := sitemapxml.Article{Path: strings.Clone(p.Path), Published: e.Published, Day: e.PublishedDay}
	if !n.Now.Before(until) {
		n.older.add(a)
		return
	}
	a.Title = strings.Clone(cmp.Or(clean(e.Headline), clean(e.Title))) // either may have the name of the site
	a.Lang = cmp.Or(newsLanguage(e.Lang), newsLanguage(lang))
	switch {
	case a.Lang == "":
		n.leaveOut(newsNoLang, p.Path)
	case a.Title == "":
		n.leaveOut(newsUntitled, p.Path)
	case n.Now.Before(from):
		n.leaveOut(newsFuture, p.Path)
	default:
		n.count++
		n.articles.add(a)
	}
}

// leaveOut counts a page that is left out, and keeps the first ones as examples.
func (n *newest) leaveOut(reason, path string) {
	n.result.LeftOut[reason]++
	if examples := n.result.Examples[reason]; len(examples) < maxOmitted {
		n.result.Examples[reason] = append(examples, strings.Clone(path))
	}
}

// changesAt notes a time at which the document changes, although no page does.
func (n *newest) changesAt(at time.Time) {
	hasPassed := !at.After(n.Now)
	if hasPassed && at.After(n.result.From) {
		n.result.From = at
	}
	if !hasPassed && (n.result.Until.IsZero() || at.Before(n.result.Until)) {
		n.result.Until = at
	}
}

// compareArticles orders articles, the newest first. An article keeps its place among the others as long as it is
// listed.
func compareArticles(a, b sitemapxml.Article) int {
	return cmp.Or(cmp.Compare(b.Published, a.Published), strings.Compare(a.Path, b.Path))
}

// finish returns what the document lists. names are those of the site, which are no part of a title. While no article
// is news, it is the newest older one, as a mere page: Google asks for that or for an empty document, which the schema
// does not allow, and of which it warns. There is none until an article was published.
func (n *newest) finish(names []string) []sitemapxml.Article {
	articles := n.articles.sorted()
	if over := n.count - len(articles); over > 0 {
		n.result.LeftOut[newsOverBound] = over
	}
	for i := range articles {
		a := &articles[i]
		a.Title = headline(a.Title, names)
		n.result.Paths = append(n.result.Paths, a.Path)
	}
	if len(articles) == 0 {
		return n.older.sorted()
	}
	return articles
}

// news makes the news sitemap, unless no article was published yet.
func (b *Builder) news() {
	publication := clean(b.News.Publication)
	names := []string{publication, b.front, b.host(), strings.TrimPrefix(b.host(), "www.")}
	articles := b.newest.finish(names)
	if len(articles) == 0 {
		return
	}
	e := sitemapxml.Encoder{Base: b.Base}
	if b.Stylesheet {
		e.Stylesheet = path.Base(b.Sitemap) + Stylesheet
	}
	content := []any{e, publication, articles}
	b.emit(newDocument(NewsSitemap, "", "", content, func() []byte {
		var body bytes.Buffer
		_, _ = e.News(&body, publication, articles) // a buffer returns no errors
		return inert(body.Bytes())
	}))
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
