package html

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// maxJSON limits the bytes of a script of JSON-LD.
const maxJSON = 256 << 10

// thing is a JSON-LD object that may declare when it was modified or published.
type thing struct {
	date     string
	headline string
	urls     [4]string // its own, or of the page whose main content it is
}

// thingType says what a type of schema.org says of a thing.
type thingType uint8

const (
	ofPart thingType = 1 << iota // the thing is a part of a page, though its URL may be the page's

	// The thing is news, if it is new: NewsArticle with its subtypes, and what publishers declare in its place: Article,
	// which many systems declare for all that they publish, BlogPosting, LiveBlogPosting, which is coverage of an event, and
	// Report, which is by a news organization. The other subtypes of Article are not news by themselves:
	// AdvertiserContentArticle, SatiricalArticle, ScholarlyArticle, TechArticle, and DiscussionForumPosting. Nor is WebPage, for
	// which search engine plugins declare when each page was made
	// (https://schema.org/Article, https://developers.google.com/search/docs/appearance/structured-data/article).
	ofArticle
)

var thingTypes = newTable(strings.ToLower, map[thingType]string{
	ofPart: `AggregateOffer Answer BreadcrumbList Comment ImageObject ItemList ListItem Offer Organization Person Review WebSite`,
	ofArticle: `AnalysisNewsArticle Article AskPublicNewsArticle BackgroundNewsArticle BlogPosting LiveBlogPosting NewsArticle
		OpinionNewsArticle Report ReportageNewsArticle ReviewNewsArticle`,
})

// typeOf returns what all types of a thing say of it.
func typeOf(thing map[string]any) (all thingType) {
	for _, kind := range list(thing["@type"]) {
		name := strings.ToLower(first(kind))
		all |= thingTypes[name[strings.LastIndexAny(name, "/#:")+1:]]
	}
	return all
}

// readJSON reads a script of JSON-LD (https://www.w3.org/TR/json-ld11/).
func (r *reader) readJSON(data []byte) {
	// Of what declares no date, nothing is wanted: it need not be decoded.
	hasDate := bytes.Contains(data, []byte("dateModified")) ||
		r.options.Articles && bytes.Contains(data, []byte("datePublished"))
	if len(data) > maxJSON || !hasDate {
		return
	}
	var doc any
	if json.Unmarshal(data, &doc) == nil {
		r.addThings(doc)
	}
}

// addThings adds a thing, a list or a graph of them, but not the comments and offers within one.
func (r *reader) addThings(v any) {
	for _, member := range list(v) {
		m, _ := member.(map[string]any)
		kind := typeOf(m)
		main, _ := m["mainEntityOfPage"].(map[string]any)
		urls := [4]string{first(m["url"]), first(m["@id"]), first(m["mainEntityOfPage"]), first(main["@id"])}
		if modified := first(m["dateModified"]); modified != "" && kind&ofPart == 0 {
			r.things = append(r.things, thing{date: modified, urls: urls})
		}
		published := first(m["datePublished"])
		if r.options.Articles && published != "" && kind&ofArticle != 0 {
			r.articles = append(r.articles, thing{date: published, headline: first(m["headline"]), urls: urls})
		}
		if m["@graph"] != nil {
			r.addThings(m["@graph"])
		}
	}
}

// list returns v as a list: JSON-LD omits the brackets of a single value.
func list(v any) []any {
	if l, ok := v.([]any); ok && len(l) > 0 {
		return l
	}
	return []any{v}
}

// first returns a string, or the first of a list of them.
func first(v any) string {
	s, _ := list(v)[0].(string)
	return s
}

// readThings declares the date of the thing that is the page, or else of the only one.
func (r *reader) readThings() {
	r.things = slices.Compact(r.things) // a theme and a plugin may declare the same
	for _, t := range r.things {
		if len(r.things) == 1 || r.isSelf(t) {
			r.modified.declare(0, t.date, r.now)
		}
	}
}

// isSelf reports whether a thing is the page that is read.
func (r *reader) isSelf(t thing) bool {
	return slices.ContainsFunc(t.urls[:], func(ref string) bool {
		if strings.HasPrefix(ref, "#") {
			return true // of this page, whatever its URL is
		}
		u := r.self.absolute([]byte(ref))
		if u == "" {
			return false
		}
		return u == r.self.url() || u == r.meta.Canonical
	})
}
