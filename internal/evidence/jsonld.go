package evidence

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Bounds on JSON-LD: bytes of all of a page's, and things in it with a date.
const (
	maxData     = 256 << 10
	maxEntities = 100
)

// entity is a thing that JSON-LD says was modified.
type entity struct {
	date      date
	addresses [3]string
}

// readJSON takes a script of JSON-LD (https://www.w3.org/TR/json-ld11/).
func (r *Reader) readJSON(s []byte) {
	r.scriptBytes += len(s)
	if r.scriptBytes > maxData || !bytes.Contains(s, []byte("dateModified")) {
		return
	}
	var doc any
	if json.Unmarshal(s, &doc) == nil {
		r.entities(doc, 0)
	}
}

// entities takes a thing, a list of them, or a graph of them: what is at the top,
// not the comments and offers within.
func (r *Reader) entities(v any, depth int) {
	if depth > 3 || len(r.scripts) >= maxEntities {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, member := range v {
			r.entities(member, depth+1)
		}
	case map[string]any:
		if graph, ok := v["@graph"]; ok {
			r.entities(graph, depth+1)
		}
		modified := text1(v["dateModified"])
		if modified == "" || isPart(v["@type"]) {
			return
		}
		t, day, ok := parseDate(modified)
		if !ok || !r.isPlausible(t) {
			return
		}
		r.scripts = append(r.scripts, entity{date{t.Unix(), day}, addresses(v)})
	}
}

// isPart reports whether what is of such a type is not the page, though its address
// may be the page's.
func isPart(v any) bool {
	switch v := v.(type) {
	case []any:
		for _, member := range v {
			if isPart(member) {
				return true
			}
		}
	case string:
		v = v[strings.LastIndexAny(v, "/#:")+1:]
		switch v {
		case "AggregateOffer", "Answer", "BreadcrumbList", "Comment", "ImageObject", "ItemList", "ListItem", "Offer",
			"Organization", "Person", "Review", "WebSite":
			return true
		}
	}
	return false
}

// addresses are those that a thing has or is the main content of.
func addresses(v map[string]any) [3]string {
	main := v["mainEntityOfPage"]
	if m, ok := main.(map[string]any); ok {
		main = m["@id"]
		if main == nil {
			main = m["url"]
		}
	}
	return [3]string{text1(v["url"]), text1(v["@id"]), text1(main)}
}

// isSelf reports whether one of a thing's addresses is the page's.
func (r *Reader) isSelf(e entity) bool {
	for _, address := range e.addresses {
		if address == "" {
			continue
		}
		if u := r.doc.absolute([]byte(address)); u != "" && (u == r.doc.origin+r.doc.self || u == r.ev.Canonical) {
			return true
		}
	}
	return false
}

// text1 is a string, or the first of a list of them.
func text1(v any) string {
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	s, _ := v.(string)
	return s
}

// dateOfJSON takes the date of the page's own entity, or else of the only one there
// is.
func (r *Reader) dateOfJSON() {
	for _, e := range r.scripts {
		if r.isSelf(e) {
			r.head.dates[dateJSON] = e.date
			return
		}
	}
	if len(r.scripts) == 1 {
		r.head.dates[dateJSON] = r.scripts[0].date
	}
}
