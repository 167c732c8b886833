package webpage

import (
	"cmp"
	"encoding/xml"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const maxEntries = 500 // pages of a feed

// latest collects the pages that changed last, or were published last, where only that is known.
type latest struct {
	pages  []changed
	oldest int64 // of these, once they are as many as a feed has
}

type changed struct {
	at int64 // in Unix seconds
	atomEntry
}

func (l *latest) add(base string, p page.Page) {
	if p.LastMod == 0 && p.Extensions != nil {
		p.LastMod = p.Extensions.Published
	}
	at, ok := dateOf(p)
	isTooOld := len(l.pages) >= maxEntries && p.LastMod < l.oldest
	if !ok || isTooOld {
		return
	}
	url := base + p.Path
	entry := atomEntry{
		ID: url,
		// Both may be parts of larger strings.
		Title:   strings.Clone(cmp.Or(clean(titleOf(p)), pathLabel(p.Path))),
		Summary: strings.Clone(clean(descriptionOf(p))),
		Updated: at.Format(time.RFC3339),
		Links:   []atomLink{{"alternate", url}},
	}
	l.pages = append(l.pages, changed{p.LastMod, entry})
	// Sorting once for each 500 pages is far cheaper than for each page, and holds no more than 1,000.
	if len(l.pages) == 2*maxEntries {
		l.trim()
	}
}

// trim sorts the pages, the latest first, and drops those that the feed has no room for.
func (l *latest) trim() {
	slices.SortFunc(l.pages, func(a, b changed) int {
		return cmp.Or(cmp.Compare(b.at, a.at), strings.Compare(a.ID, b.ID))
	})
	if len(l.pages) >= maxEntries {
		l.pages = l.pages[:maxEntries]
		l.oldest = l.pages[maxEntries-1].at
	}
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
	b.latest.trim()
	if len(b.latest.pages) == 0 {
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
	f.Updated = b.latest.pages[0].Updated
	f.Links = links
	for _, p := range b.latest.pages {
		f.Entries = append(f.Entries, p.atomEntry)
	}
	b.emit(newDocument(Feed, "application/atom+xml", "", xml.Header, f, func() []byte {
		body, _ := xml.MarshalIndent(f, "", " ") // only strings, without an error
		return inert(append([]byte(xml.Header), append(body, '\n')...))
	}))
}
