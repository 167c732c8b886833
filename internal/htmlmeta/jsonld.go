package htmlmeta

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// maxJSON limits the bytes of all JSON-LD of a page.
const maxJSON = 256 << 10

// thing is a JSON-LD object that may declare when it was modified or published.
type thing struct {
	date     string
	headline string
	urls     [4]string // its own, or of the page whose main content it is
}

// Things of these types are parts of a page, though their URL may be the page's.
var partTypes = map[string]bool{
	"AggregateOffer": true, "Answer": true, "BreadcrumbList": true, "Comment": true, "ImageObject": true, "ItemList": true,
	"ListItem": true, "Offer": true, "Organization": true, "Person": true, "Review": true, "WebSite": true,
}

// hasType reports whether a thing has one of some types.
func hasType(thing map[string]any, types map[string]bool) bool {
	return slices.ContainsFunc(list(thing["@type"]), func(kind any) bool {
		name := first(kind)
		return types[name[strings.LastIndexAny(name, "/#:")+1:]]
	})
}

// readJSON reads a script of JSON-LD (https://www.w3.org/TR/json-ld11/).
func (p *Parser) readJSON(data []byte) {
	p.jsonSize += len(data)
	// Of what declares no date, nothing is wanted: it need not be decoded.
	hasDate := bytes.Contains(data, []byte("dateModified")) ||
		p.options.Articles && bytes.Contains(data, []byte("datePublished"))
	if p.jsonSize > maxJSON || !hasDate {
		return
	}
	var doc any
	if json.Unmarshal(data, &doc) == nil {
		p.addThings(doc)
	}
}

// addThings adds a thing, a list or a graph of them, but not the comments and offers within one.
func (p *Parser) addThings(v any) {
	for _, member := range list(v) {
		m, _ := member.(map[string]any)
		main, _ := m["mainEntityOfPage"].(map[string]any)
		urls := [4]string{first(m["url"]), first(m["@id"]), first(m["mainEntityOfPage"]), first(main["@id"])}
		if modified := first(m["dateModified"]); modified != "" && !hasType(m, partTypes) {
			p.things = withThing(p.things, thing{date: modified, urls: urls})
		}
		published := first(m["datePublished"])
		if p.options.Articles && published != "" && hasType(m, articleTypes) {
			p.articles = withThing(p.articles, thing{date: published, headline: first(m["headline"]), urls: urls})
		}
		if m["@graph"] != nil {
			p.addThings(m["@graph"])
		}
	}
}

// withThing adds a thing, unless it is the last one again: a theme and a plugin may declare the same.
func withThing(all []thing, t thing) []thing {
	if n := len(all); n > 0 && all[n-1] == t {
		return all
	}
	return append(all, t)
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
func (p *Parser) readThings() {
	for _, t := range p.things {
		if len(p.things) == 1 || p.isSelf(t) {
			p.modified.declare(0, t.date, p.now)
		}
	}
}

// isSelf reports whether a thing is the page that is read.
func (p *Parser) isSelf(t thing) bool {
	return slices.ContainsFunc(t.urls[:], func(ref string) bool {
		if strings.HasPrefix(ref, "#") {
			return true // of this page, whatever its URL is
		}
		u := p.self.absolute([]byte(ref))
		if u == "" {
			return false
		}
		return u == p.self.url() || u == p.meta.Canonical
	})
}
