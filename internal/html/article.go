package html

import (
	"cmp"
	"slices"
)

// newsItem is what a news sitemap says of a page, as far as it has been read.
type newsItem struct {
	published declaredDate
	articles  []thing // of JSON-LD, with a date of publication
	langs     [langPlaces]string

	pubdate declaredDate // of the first <time pubdate>
	isList  bool         // the page is a list of articles
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

// readArticle decides what is known of the page as an article.
func (r *reader) readArticle() {
	r.meta.Lang = cmp.Or(r.langs[:]...)
	r.articles = slices.Compact(r.articles)
	for _, t := range r.articles {
		// Of several, others may be teasers.
		isKept := (len(r.articles) == 1 || r.isSelf(t)) && r.published.declare(ofThing, t.date, r.now)
		if isKept {
			r.meta.Headline = oneLine([]byte(t.headline))
		}
	}
	// The first date of a list is that of its newest article, not that of the page.
	if r.published.unix == 0 && !r.isList {
		r.published = r.pubdate
	}
	if r.published.unix == 0 {
		return
	}
	r.meta.Published = r.published.unix
	r.meta.PublishedDay = r.published.day
	r.meta.Headline = cmp.Or(r.meta.Headline, r.shared.title)
}

// readLang reads the attributes of an <html>.
func (r *reader) readLang() {
	lang := onlyLanguage(string(r.attribute("lang")))
	ofXML := onlyLanguage(string(r.attribute("xml:lang")))
	r.langs[inRoot] = cmp.Or(r.langs[inRoot], lang, ofXML)
}

// readPubdate reads a <time>. Its attribute pubdate said in drafts of HTML 5 that an article was published then
// (https://www.w3.org/TR/2011/WD-html5-20110525/text-level-semantics.html#the-time-element). The first date counts: the
// comments of an article are later than it. A list of articles has the newest first, so where an earlier date follows, none is
// that of the page.
func (r *reader) readPubdate() {
	var d declaredDate
	if r.attribute("pubdate") == nil {
		return
	}
	isDate := d.declare(ofPubdate, string(r.attribute("datetime")), r.now)
	if !isDate {
		return
	}
	if r.pubdate.unix == 0 {
		r.pubdate = d
	}
	r.isList = r.isList || d.unix < r.pubdate.unix
}
