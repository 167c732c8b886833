package document

import (
	"cmp"
	"encoding/xml"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const maxEntries = 500 // pages of a feed

// feed makes an Atom feed of the pages that changed last.
type feed struct {
	*builder
	latest first[recent]
}

// recent is a page of the feed, with when it changed, or was published where only that is known.
type recent struct {
	at int64 // in Unix seconds
	atomEntry
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

func newFeed(b *builder) *feed {
	// The latest comes first.
	compare := func(a, b recent) int { return cmp.Or(cmp.Compare(b.at, a.at), strings.Compare(a.ID, b.ID)) }
	return &feed{builder: b, latest: first[recent]{most: maxEntries, compare: compare}}
}

func (f *feed) add(p page.Page, _ string) {
	date := cmp.Or(p.LastMod, extensionsOf(p).Published)
	at, ok := dateOf(date)
	next := recent{at: date}
	next.ID = f.Base + p.Path
	if !ok || !f.latest.takes(next) {
		return
	}
	// Both may be parts of larger strings.
	next.Title = strings.Clone(cmp.Or(titleOf(p), pathLabel(p.Path)))
	next.Summary = strings.Clone(descriptionOf(p))
	next.Updated = at.Format(time.RFC3339)
	next.Links = []atomLink{{"alternate", next.ID}}
	f.latest.add(next)
}

// url is where the feed is; "": there is none, as no page has a date.
func (f *feed) url() string {
	if f == nil || len(f.latest.values) == 0 {
		return ""
	}
	return f.Sitemap + Feed
}

func (f *feed) finish() {
	self := f.url()
	if self == "" {
		return
	}
	pages := f.latest.sorted()
	all := atomFeed{Generator: "caddy-sitemap", Author: f.host()}
	all.ID = self
	all.Title = cmp.Or(f.front.title, f.host())
	all.Updated = pages[0].Updated
	all.Links = []atomLink{{"self", self}, {"alternate", f.Base + f.root()}}
	for _, hub := range f.Hubs {
		all.Links = append(all.Links, atomLink{"hub", hub})
	}
	for _, p := range pages {
		all.Entries = append(all.Entries, p.atomEntry)
	}
	body, _ := xml.MarshalIndent(all, "", " ") // only strings, without an error
	f.file(Feed, "application/atom+xml", inert([]byte(xml.Header+string(body)+"\n")))
}
