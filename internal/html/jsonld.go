package html

import (
	"bytes"
	"encoding/json"
	"regexp"
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

var (
	// partType matches types of schema.org of what is a part of a page, though its URL may be the page's.
	partType = regexp.MustCompile(`(?i)(^|[/#:])(AggregateOffer|Answer|BreadcrumbList|Comment|ImageObject|ItemList|ListItem|Offer|` +
		`Organization|Person|Review|WebSite)$`)

	// articleType matches those of news, if it is new: NewsArticle with its subtypes, and what publishers declare in its place:
	// Article, which many systems declare for all that they publish, BlogPosting, LiveBlogPosting, which is coverage of an
	// event, and Report, which is by a news organization. The other subtypes of Article are not news by themselves:
	// AdvertiserContentArticle, SatiricalArticle, ScholarlyArticle, TechArticle, and DiscussionForumPosting. Nor is WebPage,
	// for which search engine plugins declare when each page was made
	// (https://schema.org/Article, https://developers.google.com/search/docs/appearance/structured-data/article).
	articleType = regexp.MustCompile(`(?i)(^|[/#:])((Analysis|AskPublic|Background|Opinion|Reportage|Review)?NewsArticle|Article|` +
		`(Live)?BlogPosting|Report)$`)
)

// hasType reports whether one of the types of a thing matches.
func hasType(thing map[string]any, pattern *regexp.Regexp) bool {
	return slices.ContainsFunc(list(thing["@type"]), func(kind any) bool { return pattern.MatchString(first(kind)) })
}

// readJSON reads a script of JSON-LD (https://www.w3.org/TR/json-ld11/).
func (r *reader) readJSON(data []byte) {
	// Of what declares no date, nothing is wanted: it need not be decoded.
	hasDate := bytes.Contains(data, []byte("dateModified")) ||
		r.Articles && bytes.Contains(data, []byte("datePublished"))
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
		main, _ := m["mainEntityOfPage"].(map[string]any)
		urls := [4]string{first(m["url"]), first(m["@id"]), first(m["mainEntityOfPage"]), first(main["@id"])}
		if modified := first(m["dateModified"]); modified != "" && !hasType(m, partType) {
			r.things = append(r.things, thing{date: modified, urls: urls})
		}
		published := first(m["datePublished"])
		if published != "" && hasType(m, articleType) {
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

// own returns those of things that are the page, or the only one: of several, others may be teasers.
func (r *reader) own(things []thing) []thing {
	things = slices.Compact(things) // a theme and a plugin may declare the same
	if len(things) == 1 {
		return things
	}
	isOther := func(t thing) bool { return !slices.ContainsFunc(t.urls[:], r.isSelf) }
	return slices.DeleteFunc(things, isOther)
}

// isSelf reports whether a reference leads to the page that is read.
func (r *reader) isSelf(ref string) bool {
	if strings.HasPrefix(ref, "#") {
		return true // whatever its URL is
	}
	to := r.self.absolute([]byte(ref))
	isPage := to == r.self.url() || to == r.meta.Canonical
	return isPage && to != ""
}
