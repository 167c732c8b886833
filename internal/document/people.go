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
	"math"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

// Sizes of the pages for people, in pages.
const (
	maxSingle  = 2000      // up to which one document shows all
	maxPart    = 1000      // of each other document
	ownHeading = 4         // a group with fewer has no heading of its own,
	maxGroups  = 1000      // nor has one with less than its share of so many
	maxPeople  = 1_000_000 // all are held in memory; further ones are counted
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

var compiled = template.Must(template.New("page").Funcs(template.FuncMap{
	"href":   href,
	"number": number,
}).Parse(pageTemplate))

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
}

// group is pages below one heading.
type group struct {
	key     string // name of a section, or else of a first folder; "": of the rest
	index   *entry // the page that introduces the others; nil: there is none
	entries []entry
}

// entry is a page of a group.
type entry struct {
	path    string
	title   string // or ""
	lastMod int64
}

// label is what people know the page by.
func (e entry) label() string { return cmp.Or(e.title, pathLabel(e.path)) }

func newPeople(b *builder) *people {
	return &people{builder: b, groups: make(map[string]*group)}
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
	g.entries = append(g.entries, entry{p.Path, p.title, p.LastMod})
}

// arrange returns the groups as they are shown: the rest first, the others by their headings, and all pages as a person sorts
// them. Titles are without the names of the site.
func (l *people) arrange(lang language.Tag) []*group {
	rest := new(group)
	shown := make(map[string]*group)
	names := l.siteNames()
	least := max(ownHeading, l.count/maxGroups)
	for _, key := range slices.Sorted(maps.Keys(l.groups)) {
		g := l.groups[key]
		for i := range g.entries {
			g.entries[i].title = headline(g.entries[i].title, names)
		}
		if key == "" || len(g.entries) < least {
			rest.entries = append(rest.entries, g.entries...)
			continue
		}
		shown[key] = g
	}
	groups := []*group{rest}
	for _, key := range slices.Sorted(maps.Keys(shown)) {
		groups = append(groups, shown[key])
	}
	for _, g := range groups {
		l.takeIndexes(g, shown)
	}
	order := collate.New(lang, collate.Loose)
	sortBy(order, groups[1:], (*group).heading, func(g *group) string { return g.key })
	for _, g := range groups {
		sortBy(order, g.entries, entry.label, func(e entry) string { return e.path })
	}
	return groups
}

// takeIndexes takes the pages out of a group that introduce one: "/news/" and "/news" are the page of the group "news".
func (l *people) takeIndexes(from *group, groups map[string]*group) {
	from.entries = slices.DeleteFunc(from.entries, func(e entry) bool {
		of := groups[strings.Trim(strings.TrimPrefix(e.path, l.root()), "/")]
		if of == nil || of.index != nil {
			return false
		}
		of.index = &e
		return true
	})
}

// heading is what a group is called.
func (g *group) heading() string {
	if g.index != nil && g.index.title != "" {
		return g.index.title
	}
	return headingNamed(g.key)
}

// sortBy sorts values by their labels, as a person does, and those with equal labels by their names.
func sortBy[T any](order *collate.Collator, values []T, label, name func(T) string) {
	type labelled struct {
		key   []byte
		value T
	}
	var buffer collate.Buffer
	all := make([]labelled, len(values))
	for i, value := range values {
		all[i] = labelled{order.KeyFromString(&buffer, padded(label(value))), value}
	}
	slices.SortFunc(all, func(a, b labelled) int {
		return cmp.Or(bytes.Compare(a.key, b.key), strings.Compare(name(a.value), name(b.value)))
	})
	for i := range all {
		values[i] = all[i].value
	}
}

// digits are a number in a text.
var digits = regexp.MustCompile(`[0-9]+`)

// padded returns a text with zeros before its numbers, so that 2 comes before 10. The numeric order of package collate has 0
// behind all others.
func padded(text string) string {
	return digits.ReplaceAllStringFunc(text, func(number string) string { return fmt.Sprintf("%010s", number) })
}

// view is what the template shows.
type view struct {
	Lang, Dir  string
	Words      words
	Site       string // what the site is called
	Home       string // URL of the front page
	First      string // URL of the first document; "": this is it
	Style      string // URL
	Script     string // URL
	CSS        string // URL of the operator's own stylesheet; or ""
	Feed       string // URL; or ""
	Heading    string // of the group that the document shows; "": it shows all
	URL        string // of the page that introduces that group; or ""
	Range      string // labels of the first and the last page of a part; "": it shows the whole group
	Prev, Next string // URLs of other parts; or ""
	Shown, All int    // pages, in the first document; Shown is less than All beyond maxPeople
	Groups     []shown
}

// shown is a group in a document: its pages, or links to the documents that show them.
type shown struct {
	Heading string // "": it needs none
	URL     string // of the page that introduces the others; or ""
	Count   int    // of its pages
	Parts   []link
	Rows    template.HTML
}

// link leads to a document with so many pages.
type link struct {
	URL, Label string
	Count      int
}

func (l *people) finish() {
	lang := language.Make(l.front.Extensions.Lang)
	all := l.view(lang)
	first := all
	first.First = ""
	first.Feed = l.feedURL
	first.All = l.count
	first.Shown = min(first.All, maxPeople)
	var whole []link // groups with one document
	for _, g := range l.arrange(lang) {
		s := l.show(g, all.Words)
		switch {
		case s.Count == 0:
			continue
		case first.All <= maxSingle:
			s.Rows = l.rows(g.entries)
		default:
			s.Parts = l.parts(g, s, all)
		}
		if len(s.Parts) == 1 {
			whole = append(whole, link{s.Parts[0].URL, s.Heading, s.Count})
			continue
		}
		first.Groups = append(first.Groups, s)
	}
	if len(whole) > 0 {
		first.Groups = slices.Insert(first.Groups, 0, shown{Parts: whole})
	}
	if len(first.Groups) == 1 && first.Groups[0].URL == "" {
		first.Groups[0].Heading = ""
	}
	l.render(HTML, first)
	l.file(PeopleStyle, "text/css", []byte(pageStyle))
	l.file(PeopleScript, "text/javascript", []byte(pageScript))
}

// view is what all documents show.
func (l *people) view(lang language.Tag) view {
	stem := "./" + path.Base(l.Sitemap) // below any port or proxy
	v := view{
		Lang:   cmp.Or(l.front.Extensions.Lang, "en"),
		Dir:    "ltr",
		Words:  wordsIn(lang),
		Site:   cmp.Or(l.People.Title, headline(l.front.title, l.siteNames()), l.host()),
		Home:   l.Base + l.root(),
		First:  l.Sitemap + HTML,
		Style:  stem + PeopleStyle,
		Script: stem + PeopleScript,
		CSS:    l.People.CSS,
	}
	if isRightToLeft(lang) {
		v.Dir = "rtl"
	}
	return v
}

// show is a group without its pages.
func (l *people) show(g *group, in words) shown {
	s := shown{Heading: in.Pages, Count: len(g.entries)}
	if g.key != "" {
		s.Heading = g.heading()
	}
	if g.index != nil {
		s.URL = l.Base + g.index.path
		s.Count++
	}
	return s
}

// rows are the items of a list of pages. The template would take ten times as long for them.
func (l *people) rows(entries []entry) template.HTML {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString("\n<li><a " + string(href(l.Base+e.path)) + "><bdi>" + html.EscapeString(e.label()) + "</bdi></a>")
		if e.title != "" {
			b.WriteString(" <bdi>" + html.EscapeString(pathLabel(e.path)) + "</bdi>") // beside the title
		}
		if at, ok := dateOf(e.lastMod); ok {
			b.WriteString(" <time>" + at.Format(time.DateOnly) + "</time>")
		}
		b.WriteString("</li>")
	}
	return template.HTML(b.String())
}

// parts makes the documents of a group, and returns links to them.
func (l *people) parts(g *group, of shown, all view) []link {
	parts := cut(g.entries)
	links := make([]link, len(parts))
	for i, entries := range parts {
		last := entries[len(entries)-1]
		links[i] = link{
			URL:   l.Sitemap + nameAt(g.key, entries[0].path),
			Label: entries[0].label() + " – " + last.label(),
			Count: len(entries),
		}
	}
	for i, entries := range parts {
		runtime.Gosched() // requests go first
		v := all
		v.Heading = of.Heading
		v.URL = of.URL
		if len(parts) > 1 {
			v.Range = links[i].Label
		}
		if i > 0 {
			v.Prev = links[i-1].URL
		}
		if i+1 < len(links) {
			v.Next = links[i+1].URL
		}
		v.Groups = []shown{{Rows: l.rows(entries)}}
		l.render(strings.TrimPrefix(links[i].URL, l.Sitemap), v)
	}
	return links
}

// cut divides the pages of a group. A part begins where the hash is the lowest, so that adding a page leaves most documents as
// they are.
func cut(entries []entry) (parts [][]entry) {
	for len(entries) > maxPart {
		at := maxPart
		lowest := uint64(math.MaxUint64)
		for i := maxPart / 2; i < maxPart; i++ {
			if hash := xxhash.Sum64String(entries[i].path); hash < lowest {
				at = i
				lowest = hash
			}
		}
		parts = append(parts, entries[:at])
		entries = entries[at:]
	}
	if len(entries) > 0 {
		parts = append(parts, entries)
	}
	return parts
}

// nameAt is the name of the document of a group that begins with the page at a path. Nobody can find two with one name.
func nameAt(key, path string) string {
	return fmt.Sprintf("-%.16x.html", sha256.Sum256([]byte(key+" "+path)))
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

// number is a number as people read it in any language, with narrow spaces.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202F" + s[i:]
	}
	return s
}
