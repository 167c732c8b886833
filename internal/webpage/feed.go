package webpage

import (
	"cmp"
	"encoding/xml"
	"slices"
	"strings"
	"time"
)

// maxEntries is how many pages a feed has.
const maxEntries = 500

// latest collects the pages that changed last.
type latest struct{ pages []Page }

func (l *latest) add(p Page) {
	if _, ok := p.date(); !ok {
		return
	}
	p.Path, p.Title = strings.Clone(p.Path), strings.Clone(p.Title) // may be parts of larger strings
	if l.pages = append(l.pages, p); len(l.pages) == 2*maxEntries {
		l.entries()
	}
}

// entries returns the pages of the feed, the latest first, and drops the others.
func (l *latest) entries() []Page {
	slices.SortFunc(l.pages, func(a, b Page) int {
		return cmp.Or(cmp.Compare(b.LastMod, a.LastMod), strings.Compare(a.Path, b.Path))
	})
	l.pages = l.pages[:min(len(l.pages), maxEntries)]
	return l.pages
}

// The elements of Atom (RFC 4287, section 4).
type (
	atomEntry struct {
		ID      string     `xml:"id"`
		Title   string     `xml:"title"`
		Updated string     `xml:"updated"`
		Links   []atomLink `xml:"link"`
	}
	atomFeed struct {
		XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		atomEntry
		Author  string      `xml:"author>name"`
		Entries []atomEntry `xml:"entry"`
	}
	atomLink struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
	}
)

// feedOf makes the feed of at least one page.
func feedOf(pages []Page, o Options) Document {
	self := o.Sitemap + ".atom"
	f := atomFeed{Author: o.Host()}
	for _, p := range pages {
		changed, _ := p.date()
		url := o.Base + p.Path
		f.Entries = append(f.Entries, atomEntry{url, cmp.Or(clean(p.Title), pathLabel(p.Path)), changed.Format(time.RFC3339), []atomLink{{"alternate", url}}})
	}
	f.atomEntry = atomEntry{self, o.Host(), f.Entries[0].Updated, []atomLink{{"self", self}, {"alternate", o.Base + "/"}}}
	for _, hub := range o.Hubs {
		f.Links = append(f.Links, atomLink{"hub", hub})
	}
	return newDocument(".atom", "application/atom+xml", "", xml.Header, f, func() []byte {
		body, _ := xml.MarshalIndent(f, "", " ") // only strings, without an error
		return append([]byte(xml.Header), append(body, '\n')...)
	})
}
