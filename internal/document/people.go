package document

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the template, the stylesheets and the script
	"fmt"
	"html"
	"html/template"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

// Sizes of the pages for people, in pages.
const (
	maxSingle  = 2000      // up to which one document shows all
	maxPart    = 1000      // of each other document
	ownHeading = 4         // a group with fewer has no heading of its own,
	maxGroups  = 1000      // nor has one with less than its share of so many
	maxPeople  = 1_000_000 // all are held in memory
)

var (
	//go:embed page.html
	pageTemplate string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
	//go:embed sitemap.css
	sitemapStyle string
)

var compiled = template.Must(template.New("page").Funcs(template.FuncMap{"href": href}).Parse(pageTemplate))

// Look is what documents have in common that makes them look as they do. Where it is another one, as after an upgrade, they
// are made again, even if nothing has changed on the site.
var Look = pageTemplate + pageStyle + pageScript + sitemapStyle

// People says how the pages for people look.
type People struct {
	Title string // of the site; "": that of its front page
	CSS   string // URL of a stylesheet that comes after ours; "": none
}

// people makes the pages for people: one document, or a first one and others with at most maxPart pages of one group.
type people struct {
	*builder
	groups map[string]*group // by key
	count  int               // of all pages
	order  *collate.Collator // of the site's language
	buffer collate.Buffer
}

// group is pages below one heading.
type group struct {
	key     string // name of a section, or else of a first folder; "": of the rest
	entries []entry

	// What the template shows.
	Heading string
	URL     string        // of the page that introduces the others; or ""
	Count   int           // of its pages
	Parts   []link        // to the documents with its pages,
	Rows    template.HTML // or these pages
}

// entry is a page of a group.
type entry struct {
	path    string
	title   string // or ""
	lastMod int64
	sortKey string
}

// label is what people know the page by.
func (e entry) label() string { return cmp.Or(e.title, pathLabel(e.path)) }

// link leads to a document with so many pages.
type link struct {
	URL, Label string
	Count      int
}

// view is what a document shows.
type view struct {
	Lang, Dir string
	Words     words
	Site      string // what the site is called
	Home      string // URL of the front page
	First     string // URL of the first document
	Style     string // URL
	Script    string // URL
	CSS       string // URL of the operator's own stylesheet; or ""
	Feed      string // URL; or ""
	Pages     int    // of the site

	Heading string // of the group that the document shows; "": it is the first one
	URL     string // of the page that introduces that group; or ""
	Range   string // labels of the first and the last page
	Groups  []*group
}

func (l *people) add(p listed) {
	l.count++
	if l.count > maxPeople {
		return
	}
	g := l.groups[p.group]
	if g == nil {
		g = &group{key: p.group}
		l.groups[g.key] = g
	}
	g.entries = append(g.entries, entry{path: p.Path, title: p.title, lastMod: p.LastMod})
}

func (l *people) finish() {
	lang := language.Make(l.front.Extensions.Lang)
	l.order = collate.New(lang, collate.Loose)
	stem := "./" + path.Base(l.Sitemap) // below any port or proxy
	v := view{
		Lang:   cmp.Or(l.front.Extensions.Lang, "en"),
		Dir:    direction(lang),
		Words:  wordsIn(lang),
		Site:   cmp.Or(l.People.Title, headline(l.front.title, l.siteNames()), l.host()),
		Home:   l.Base + l.root(),
		First:  l.Sitemap + HTML,
		Style:  stem + PeopleStyle,
		Script: stem + PeopleScript,
		CSS:    l.People.CSS,
		Feed:   l.feedURL,
		Pages:  l.count,
	}
	whole := new(group) // links to groups that have one document
	for _, g := range l.arrange(v.Words.Pages) {
		l.show(g, v)
		if len(g.Parts) == 1 {
			whole.Parts = append(whole.Parts, link{g.Parts[0].URL, g.Heading, g.Count})
			continue
		}
		v.Groups = append(v.Groups, g)
	}
	if len(whole.Parts) > 0 {
		v.Groups = slices.Insert(v.Groups, 0, whole)
	}
	l.render(HTML, v)
	l.file(PeopleStyle, "text/css", []byte(pageStyle))
	l.file(PeopleScript, "text/javascript", []byte(pageScript))
}

// arrange returns the groups as they are shown: the rest, which has a heading of ours, and the others by their headings. Titles
// are without the names of the site.
func (l *people) arrange(heading string) []*group {
	shown := make(map[string]*group)
	for key, g := range l.groups {
		if key != "" && len(g.entries) >= max(ownHeading, l.count/maxGroups) {
			g.Heading = headingNamed(key)
			shown[key] = g
		}
	}
	rest := &group{Heading: heading}
	names := l.siteNames()
	for _, key := range slices.Sorted(maps.Keys(l.groups)) {
		g := cmp.Or(shown[key], rest)
		entries := l.groups[key].entries
		l.groups[key].entries = entries[:0]
		for _, e := range entries {
			e.title = headline(e.title, names)
			// "/news/" and "/news" introduce the group "news".
			of := shown[strings.Trim(strings.TrimPrefix(e.path, l.root()), "/")]
			if of == nil || of.URL != "" {
				g.Count++
				g.entries = append(g.entries, e)
				continue
			}
			of.Count++
			of.URL = l.Base + e.path
			of.Heading = cmp.Or(e.title, of.Heading)
		}
	}
	groups := slices.SortedFunc(maps.Values(shown), func(a, b *group) int {
		return strings.Compare(l.sortKey(a.Heading, a.key), l.sortKey(b.Heading, b.key))
	})
	groups = slices.Insert(groups, 0, rest)
	return slices.DeleteFunc(groups, func(g *group) bool { return g.Count == 0 })
}

// show makes the rows of a group, as a person sorts them, or the documents that have them.
func (l *people) show(g *group, v view) {
	for i := range g.entries {
		e := &g.entries[i]
		e.sortKey = l.sortKey(e.label(), e.path)
	}
	slices.SortFunc(g.entries, func(a, b entry) int { return strings.Compare(a.sortKey, b.sortKey) })
	most := maxPart
	if l.count <= maxSingle {
		most = maxSingle
	}
	from := 0
	// Adding a page leaves most documents as they are.
	parts := newCutter(most, maxEntryBytes, func(s shard) {
		rows := template.HTML(s.entries)
		if l.count <= maxSingle {
			g.Rows = rows
			return
		}
		entries := g.entries[from : from+len(s.pages)]
		from += len(entries)
		v.Heading = g.Heading
		v.URL = g.URL
		v.Range = entries[0].label() + " – " + entries[len(entries)-1].label()
		v.Groups = []*group{{Rows: rows}}
		// Nobody can find two parts with one name.
		name := fmt.Sprintf("-%.16x"+HTML, sha256.Sum256([]byte(g.key+" "+entries[0].path)))
		l.render(name, v)
		g.Parts = append(g.Parts, link{l.Sitemap + name, v.Range, len(entries)})
	})
	parts.begin /= 4 // fewer pages a document are of no use to people
	for _, e := range g.entries {
		parts.add(held{path: e.path}, l.row(e))
	}
	if len(g.entries) > 0 { // else all of its pages introduce other groups
		parts.end()
	}
	g.entries = nil // before the next group is sorted
}

// digits are a number in a text.
var digits = regexp.MustCompile(`[0-9]+`)

// sortKey returns what sorts a text with a label as a person does, and those with equal labels by their names.
func (l *people) sortKey(label, name string) string {
	// 2 comes before 10. The numeric order of package collate has 0 behind all others.
	padded := digits.ReplaceAllStringFunc(label, func(number string) string { return fmt.Sprintf("%010s", number) })
	l.buffer.Reset()
	return string(l.order.KeyFromString(&l.buffer, padded)) + "\x00\x00" + name
}

// row is an item of a list of pages. The template would take ten times as long for them.
func (l *people) row(e entry) []byte {
	row := fmt.Appendf(nil, "\n<li><a %s><bdi>%s</bdi></a>", href(l.Base+e.path), html.EscapeString(e.label()))
	if e.title != "" {
		row = fmt.Appendf(row, " <bdi>%s</bdi>", html.EscapeString(pathLabel(e.path))) // beside the title
	}
	if at, ok := dateOf(e.lastMod); ok {
		row = fmt.Appendf(row, " <time>%s</time>", at.Format(time.DateOnly))
	}
	return append(row, "</li>"...)
}

// render makes the document that shows a view.
func (l *people) render(name string, v view) {
	var body bytes.Buffer
	_ = compiled.Execute(&body, v) // a buffer returns no errors, and the template is tested
	l.file(name, "text/html", inert(body.Bytes()))
}

// href is the attribute of a link. Package template would also percent-encode quotes and parentheses, and in a query
// that makes another URL.
func href(url string) template.HTMLAttr {
	return template.HTMLAttr(`href="` + html.EscapeString(url) + `"`)
}
