package webpage

import (
	"cmp"
	"encoding/xml"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const maxEntries = 500 // pages of a feed

// changed is a page of the feed, with when it changed, or was published where only that is known.
type changed struct {
	at int64 // in Unix seconds
	atomEntry
}

// compareChanged orders pages, the latest first.
func compareChanged(a, b changed) int {
	return cmp.Or(cmp.Compare(b.at, a.at), strings.Compare(a.ID, b.ID))
}

// addLatest adds a page to the feed.
func (b *Builder) addLatest(p page.Page) {
	if p.LastMod == 0 && p.Extensions != nil {
		p.LastMod = p.Extensions.Published
	}
	at, ok := dateOf(p)
	next := changed{at: p.LastMod}
	next.ID = b.Base + p.Path
	if !ok || !b.latest.takes(next) {
		return
	}
	// Both may be parts of larger strings.
	next.Title = strings.Clone(cmp.Or(clean(titleOf(p)), pathLabel(p.Path)))
	next.Summary = strings.Clone(clean(descriptionOf(p)))
	next.Updated = at.Format(time.RFC3339)
	next.Links = []atomLink{{"alternate", next.ID}}
	b.latest.add(next)
}

// The elements of Atom (RFC 4287, section 4).
type (
	atomEntry struct {
		ID      string     `xml:"id"`
		Title   string     `xml:"title"`
		Summary string     `xml:"summary,omitempty"` // of an entry; plain text, like the title
		Updated string     `xml:"updated"`
		Links   []atomLink `xml:"link"`
	}
	atomFeed struct {
		XMLName   xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		Generator string   `xml:"generator"` // by which builds know their files, as by that of HTML and CSS
		atomEntry
		Author  string      `xml:"author>name"`
		Entries []atomEntry `xml:"entry"`
	}
	atomLink struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
	}
)

// feed makes the feed, unless no page has a date.
func (b *Builder) feed() {
	pages := b.latest.sorted()
	if len(pages) == 0 {
		return
	}
	self := b.Sitemap + Feed
	links := []atomLink{{"self", self}, {"alternate", b.Base + b.root()}}
	for _, hub := range b.Hubs {
		links = append(links, atomLink{"hub", hub})
	}
	f := atomFeed{Generator: "caddy-sitemap", Author: b.host()}
	f.ID = self
	f.Title = cmp.Or(b.front, b.host())
	f.Updated = pages[0].Updated
	f.Links = links
	for _, p := range pages {
		f.Entries = append(f.Entries, p.atomEntry)
	}
	b.emit(newDocument(Feed, "application/atom+xml", xml.Header, f, func() []byte {
		body, _ := xml.MarshalIndent(f, "", " ") // only strings, without an error
		return inert(append([]byte(xml.Header), append(body, '\n')...))
	}))
}
