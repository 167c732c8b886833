package html

import "cmp"

// newsItem is what a news sitemap says of a page, as far as it has been read.
type newsItem struct {
	published         declaredDate // in JSON-LD, or else as article:published_time (https://ogp.me/#type_article)
	articles          []thing      // of JSON-LD, with a date of publication
	lang, contentLang string       // of <html>, and of the field Content-Language, also in a <meta>

	pubdate declaredDate // of the first <time pubdate>
	isList  bool         // the page is a list of articles
}

// readArticle decides what is known of the page as an article.
func (r *reader) readArticle() {
	r.meta.Lang = cmp.Or(r.lang, r.contentLang)
	for _, t := range r.own(r.articles) {
		if r.published.declare(0, t.date, r.Now) {
			r.meta.Headline = oneLine([]byte(t.headline))
		}
	}
	// The first date of a list is that of its newest article, not that of the page.
	if r.published.unix == 0 && !r.isList {
		r.published = r.pubdate
	}
	if r.published.unix != 0 {
		r.meta.Headline = cmp.Or(r.meta.Headline, r.shared.title)
	}
	r.meta.Published = r.published.unix
	r.meta.PublishedDay = r.published.day
}

// readPubdate reads a <time>. Its attribute pubdate said in drafts of HTML 5 that an article was published then
// (https://www.w3.org/TR/2011/WD-html5-20110525/text-level-semantics.html#the-time-element). The first date counts: the
// comments of an article are later than it. A list of articles has the newest first, so where an earlier date follows, none is
// that of the page.
func (r *reader) readPubdate() {
	var d declaredDate
	isDate := r.attribute("pubdate") != nil && d.declare(0, string(r.attribute("datetime")), r.Now)
	if !isDate {
		return
	}
	if r.pubdate.unix == 0 {
		r.pubdate = d
	}
	r.isList = r.isList || d.unix < r.pubdate.unix
}
