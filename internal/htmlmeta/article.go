package htmlmeta

import "cmp"

// newsItem is what a news sitemap says of a page, as far as it has been read.
type newsItem struct {
	published declaredDate
	articles  []thing // of JSON-LD, with a date of publication
	langs     [langPlaces]string

	pubdate   declaredDate // of the first <time pubdate>
	isList    bool         // the page is a list of articles
	inPubdate bool         // the text of a <time pubdate> is being read
	dateText  text
}

// Ways to declare a date of publication, the most reliable first.
const (
	ofThing   = iota // JSON-LD
	ofMeta           // article:published_time (https://ogp.me/#type_article)
	ofPubdate        // <time pubdate>
)

// Places that say in which language a page is, the one that counts most first
// (https://html.spec.whatwg.org/multipage/dom.html#the-lang-and-xml:lang-attributes).
const (
	inRoot   = iota // the lang attribute of <html>
	inMeta          // <meta http-equiv=content-language>
	inHeader        // the header Content-Language
	langPlaces
)

// articleTypes are the types of schema.org whose things are news, if they are new: NewsArticle with its subtypes, and
// what publishers declare in its place: Article, which many systems declare for all that they publish, BlogPosting,
// LiveBlogPosting, which is coverage of an event, and Report, which is by a news organization. The other subtypes of
// Article are not news by themselves: AdvertiserContentArticle, SatiricalArticle, ScholarlyArticle, TechArticle, and
// DiscussionForumPosting. Nor is WebPage, for which search engine plugins declare when each page was made
// (https://schema.org/Article, https://developers.google.com/search/docs/appearance/structured-data/article).
var articleTypes = map[string]bool{
	"AnalysisNewsArticle": true, "Article": true, "AskPublicNewsArticle": true, "BackgroundNewsArticle": true,
	"BlogPosting": true, "LiveBlogPosting": true, "NewsArticle": true, "OpinionNewsArticle": true, "Report": true,
	"ReportageNewsArticle": true, "ReviewNewsArticle": true,
}

// readArticle decides what is known of the page as an article.
func (p *Parser) readArticle() {
	p.meta.Lang = cmp.Or(p.langs[:]...)
	for _, t := range p.articles {
		// Of several, others may be teasers.
		isKept := (len(p.articles) == 1 || p.isSelf(t)) && p.published.declare(ofThing, t.date, p.now)
		if isKept {
			p.meta.Headline = oneLine([]byte(t.headline))
		}
	}
	// The first date of a list is that of its newest article, not that of the page.
	if p.published.unix == 0 && !p.isList {
		p.published = p.pubdate
	}
	if p.published.unix == 0 {
		return
	}
	p.meta.Published = p.published.unix
	p.meta.PublishedDay = p.published.day
	p.meta.Headline = cmp.Or(p.meta.Headline, p.shared.title)
}

// readLang reads the attributes of an <html>.
func (p *Parser) readLang() {
	for _, name := range []string{"lang", "xml:lang"} {
		p.langs[inRoot] = cmp.Or(p.langs[inRoot], onlyLanguage(string(p.attribute(name))))
	}
}

// beginPubdate reads a <time>. Its attribute pubdate said in drafts of HTML 5 that an article was published then
// (https://www.w3.org/TR/2011/WD-html5-20110525/text-level-semantics.html#the-time-element).
func (p *Parser) beginPubdate() {
	p.inPubdate = false
	if p.attribute("pubdate") == nil {
		return
	}
	if date := p.attribute("datetime"); date != nil {
		p.declarePubdate(string(date))
		return
	}
	p.inPubdate = true
	p.dateText = text{buf: p.dateText.buf[:0]}
}

// writePubdate adds to the date that is written as text.
func (p *Parser) writePubdate(s []byte) {
	const longest = 64 // as in page.ParseDate
	p.dateText.write(s[:min(len(s), 4*longest)])
	p.inPubdate = len(p.dateText.buf) <= longest
}

func (p *Parser) endPubdate() {
	if p.inPubdate {
		p.inPubdate = false
		p.declarePubdate(string(p.dateText.buf))
	}
}

// declarePubdate keeps the first date. The comments of an article are later than it; a list of articles has the newest
// first, so where an earlier date follows, none is that of the page.
func (p *Parser) declarePubdate(s string) {
	var d declaredDate
	if !d.declare(ofPubdate, s, p.now) {
		return
	}
	if p.pubdate.unix == 0 {
		p.pubdate = d
	}
	p.isList = p.isList || d.unix < p.pubdate.unix
}
