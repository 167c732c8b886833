package html

import "cmp"

// readArticle decides what is known of the page as an article.
func (r *reader) readArticle() {
	r.meta.Lang = cmp.Or(r.lang, r.contentLang)
	for _, t := range r.own(r.articles) {
		if r.published.declare(0, t.date, r.Now) {
			r.meta.Headline = oneLine([]byte(t.headline))
		}
	}
	if r.published.unix != 0 {
		r.meta.Headline = cmp.Or(r.meta.Headline, r.shared.title)
	}
	r.meta.Published = r.published.unix
	r.meta.PublishedDay = r.published.day
}
