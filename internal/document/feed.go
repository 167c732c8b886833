package document

import (
	"cmp"
	"encoding/xml"
	"strings"
	"time"
)

const maxEntries = 500 // pages of a feed

// feed makes an Atom feed of the pages that changed last.
type feed struct {
	*builder
	latest first[atomEntry]
}

// The elements of Atom (RFC 4287, section 4).
type (
	atomEntry struct {
		ID      string     `xml:"id"`
		Title   string     `xml:"title"`
		Summary string     `xml:"summary,omitempty"` // of an entry; plain text, like the title
		Updated string     `xml:"updated"`
		Links   []atomLink `xml:"link"`

		at int64 // Updated, in Unix seconds
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

// compare has the latest one first.
func (e atomEntry) compare(other atomEntry) int {
	return cmp.Or(cmp.Compare(other.at, e.at), strings.Compare(e.ID, other.ID))
}

func (f *feed) add(p listed) {
	// When the page changed, or was published where only that is known.
	at, ok := dateOf(cmp.Or(p.LastMod, p.Extensions.Published))
	if !ok {
		return
	}
	kept := f.latest.add(atomEntry{at: at.Unix(), ID: f.Base + p.Path})
	if kept == nil {
		return
	}
	kept.Title = cmp.Or(p.title, pathLabel(p.Path))
	kept.Summary = p.description()
	kept.Updated = at.Format(time.RFC3339)
	kept.Links = []atomLink{{"alternate", kept.ID}}
}

// finish makes the feed, unless no page has a date.
func (f *feed) finish() {
	pages := f.latest.values
	if len(pages) == 0 {
		return
	}
	self := f.Sitemap + Feed
	f.feedURL = self
	all := atomFeed{Generator: "caddy-sitemap", Author: f.host()}
	all.ID = self
	all.Title = cmp.Or(f.front.title, f.host())
	all.Updated = pages[0].Updated
	all.Links = []atomLink{{"self", self}, {"alternate", f.Base + f.root()}}
	for _, hub := range f.Hubs {
		all.Links = append(all.Links, atomLink{"hub", hub})
	}
	for _, p := range pages {
		all.Entries = append(all.Entries, *p)
	}
	body, _ := xml.MarshalIndent(all, "", " ") // only strings, without an error
	f.file(Feed, "application/atom+xml", inert([]byte(xml.Header+string(body)+"\n")))
}
