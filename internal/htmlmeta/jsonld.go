package htmlmeta

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Limits on JSON-LD: bytes of all of a page's, and things with a date in it.
const (
	maxJSON   = 256 << 10
	maxThings = 100
)

// thing is something of which JSON-LD declares when it was modified.
type thing struct {
	modified date
	urls     [3]string // its own, or of the page whose main content it is
}

// readJSON reads a script of JSON-LD (https://www.w3.org/TR/json-ld11/).
func (p *Parser) readJSON(data []byte) {
	p.jsonSize += len(data)
	if p.jsonSize > maxJSON || !bytes.Contains(data, []byte("dateModified")) {
		return
	}
	var doc any
	if json.Unmarshal(data, &doc) == nil {
		p.addThings(doc, 0)
	}
}

// addThings adds a thing, a list or a graph of them, but not the comments and offers
// within one.
func (p *Parser) addThings(v any, depth int) {
	if depth > 3 {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, member := range v {
			p.addThings(member, depth+1)
		}
	case map[string]any:
		p.addThings(v["@graph"], depth+1)
		modified, ok := p.parseDate(firstString(v["dateModified"]))
		if !ok || isPart(v["@type"]) || len(p.things) >= maxThings {
			return
		}
		of := firstString(v["mainEntityOfPage"])
		if main, ok := v["mainEntityOfPage"].(map[string]any); ok {
			of = firstString(main["@id"])
		}
		p.things = append(p.things, thing{modified, [3]string{firstString(v["url"]), firstString(v["@id"]), of}})
	}
}

// isPart reports whether a thing of such a type is not the page, though its URL may be
// the page's.
func isPart(kind any) bool {
	kinds, ok := kind.([]any)
	if !ok {
		kinds = []any{kind}
	}
	for _, kind := range kinds {
		s, _ := kind.(string)
		switch s[strings.LastIndexAny(s, "/#:")+1:] {
		case "AggregateOffer", "Answer", "BreadcrumbList", "Comment", "ImageObject", "ItemList", "ListItem", "Offer",
			"Organization", "Person", "Review", "WebSite":
			return true
		}
	}
	return false
}

// firstString returns a string, or the first of a list of them.
func firstString(v any) string {
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	s, _ := v.(string)
	return s
}

// jsonDate returns the date of the thing that is the page, or else of the only one.
func (p *Parser) jsonDate() date {
	for _, t := range p.things {
		for _, ref := range t.urls {
			if ref == "" {
				continue
			}
			if u := p.self.absolute(ref); u != "" && (u == p.self.origin+p.self.path || u == p.meta.Canonical) {
				return t.modified
			}
		}
	}
	if len(p.things) == 1 {
		return p.things[0].modified
	}
	return date{}
}
