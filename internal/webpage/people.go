package webpage

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the template, the stylesheets and the script
	"fmt"
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

	"github.com/seed3295b519/caddy-sitemap/internal/page"
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
	stylesheet string
)

var compiled = template.Must(template.New("page").Funcs(template.FuncMap{
	"href":   href,
	"number": number,
}).Parse(pageTemplate))

// Look is what documents have in common that makes them look as they do. Where it is another one, as after an upgrade, they
// are made again, even if nothing has changed on the site.
var Look = pageTemplate + pageStyle + pageScript + stylesheet

// people collects the pages that people see, by what they stand below.
type people struct {
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

// add adds a page of a section, or of none.
func (l *people) add(o Options, p page.Page, section string) {
	l.count++
	if l.count > maxPeople {
		return
	}
	key := cmp.Or(section, o.firstFolder(p.Path))
	if l.groups == nil {
		l.groups = make(map[string]*group)
	}
	g := l.groups[key]
	if g == nil {
		g = &group{key: strings.Clone(key)}
		l.groups[g.key] = g
	}
	e := entry{
		path:  strings.Clone(p.Path), // which may be a part of a larger string, as the title
		title: strings.Clone(clean(titleOf(p))),
	}
	if _, ok := dateOf(p); ok {
		e.lastMod = p.LastMod
	}
	g.entries = append(g.entries, e)
}

// firstFolder is the topmost folder that a path is in, below that of the site; "": it is in none.
func (o Options) firstFolder(path string) string {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, o.root()), "?")
	folder, _, isIn := strings.Cut(path, "/")
	if !isIn {
		return ""
	}
	return folder
}

// arrange returns the groups as they are shown: the rest first, the others by their headings, and all pages as a person sorts
// them. Titles are without the names of the site.
func (l *people) arrange(o Options, names []string, lang language.Tag) []*group {
	rest := new(group)
	shown := make(map[string]*group)
	least := max(ownHeading, l.count/maxGroups)
	for key, g := range l.groups {
		for i := range g.entries {
			g.entries[i].title = headline(g.entries[i].title, names)
		}
		if key == "" || len(g.entries) < least {
			rest.entries = append(rest.entries, g.entries...)
			continue
		}
		shown[key] = g
	}
	slices.SortFunc(rest.entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	rest.takeIndexes(o, shown)
	var groups []*group
	for _, key := range slices.Sorted(maps.Keys(shown)) {
		shown[key].takeIndexes(o, shown)
		groups = append(groups, shown[key])
	}
	order := collate.New(lang, collate.Loose)
	sortBy(order, groups, (*group).heading)
	groups = append([]*group{rest}, groups...)
	for _, g := range groups {
		sortBy(order, g.entries, entry.label)
	}
	return groups
}

// takeIndexes takes the pages out of a group that introduce one: "/news/" and "/news" are the page of the group "news".
func (g *group) takeIndexes(o Options, groups map[string]*group) {
	g.entries = slices.DeleteFunc(g.entries, func(e entry) bool {
		of := groups[strings.Trim(strings.TrimPrefix(e.path, o.root()), "/")]
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

// pages is how many pages a group has.
func (g *group) pages() int {
	if g.index != nil {
		return len(g.entries) + 1
	}
	return len(g.entries)
}

// sortBy sorts values by their labels, as a person does. Those with equal labels stay in order.
func sortBy[T any](order *collate.Collator, values []T, label func(T) string) {
	type labelled struct {
		key   []byte
		value T
	}
	var buffer collate.Buffer
	all := make([]labelled, len(values))
	for i, value := range values {
		all[i] = labelled{order.KeyFromString(&buffer, padded(label(value))), value}
	}
	slices.SortStableFunc(all, func(a, b labelled) int { return bytes.Compare(a.key, b.key) })
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
	Groups     []section
}

// section is a group in a document: its pages, or links to the documents that show them.
type section struct {
	Heading string // "": it needs none
	URL     string // of the page that introduces the others; or ""
	Count   int
	Parts   []row
	Rows    []row
}

// row is a line of a document.
type row struct {
	URL   string
	Label string
	Path  string `json:",omitempty"` // beside a title, for people
	Date  string `json:",omitempty"`
	Count int    `json:",omitempty"` // pages of a part
}

// people makes the pages for people: one document, or a first one and others with at most maxPart pages of one group.
func (b *Builder) people() {
	if b.visible.count == 0 {
		return
	}
	lang := language.Make(b.frontLang)
	names := b.siteNames()
	all := b.newView(lang, names)
	first := all
	first.First = ""
	first.All = b.visible.count
	first.Shown = min(first.All, maxPeople)
	if len(b.latest.values) > 0 {
		first.Feed = b.Sitemap + Feed
	}
	var whole []row // groups with one document
	for _, g := range b.visible.arrange(b.Options, names, lang) {
		if g.pages() == 0 {
			continue
		}
		s := b.section(g, all.Words)
		if first.All <= maxSingle {
			s.Rows = b.rows(g.entries)
			first.Groups = append(first.Groups, s)
			continue
		}
		s.Parts = b.parts(g, s, all)
		if len(s.Parts) == 1 {
			whole = append(whole, row{URL: s.Parts[0].URL, Label: s.Heading, Count: s.Count})
			continue
		}
		first.Groups = append(first.Groups, s)
	}
	if len(whole) > 0 {
		first.Groups = slices.Insert(first.Groups, 0, section{Parts: whole})
	}
	if len(first.Groups) == 1 && first.Groups[0].URL == "" {
		first.Groups[0].Heading = ""
	}
	b.emitView(HTML, first)
	b.emit(newDocument(PeopleStyle, "text/css", pageStyle, nil, func() []byte { return []byte(pageStyle) }))
	b.emit(newDocument(PeopleScript, "text/javascript", pageScript, nil, func() []byte { return []byte(pageScript) }))
}

// newView is what all documents show.
func (b *Builder) newView(lang language.Tag, names []string) view {
	stem := "./" + path.Base(b.Sitemap) // below any port or proxy
	v := view{
		Lang:   cmp.Or(b.frontLang, "en"),
		Dir:    "ltr",
		Words:  wordsIn(lang),
		Site:   cmp.Or(b.People.Title, headline(b.front, names), b.host()),
		Home:   b.Base + b.root(),
		First:  b.Sitemap + HTML,
		Style:  stem + PeopleStyle,
		Script: stem + PeopleScript,
		CSS:    b.People.CSS,
	}
	if isRightToLeft(lang) {
		v.Dir = "rtl"
	}
	return v
}

// section is a group without its pages.
func (b *Builder) section(g *group, in words) section {
	s := section{Heading: in.Pages, Count: g.pages()}
	if g.key != "" {
		s.Heading = g.heading()
	}
	if g.index != nil {
		s.URL = b.Base + g.index.path
	}
	return s
}

func (b *Builder) rows(entries []entry) []row {
	rows := make([]row, len(entries))
	for i, e := range entries {
		r := row{URL: b.Base + e.path, Label: e.label()}
		if e.title != "" {
			r.Path = pathLabel(e.path)
		}
		if e.lastMod != 0 {
			r.Date = time.Unix(e.lastMod, 0).UTC().Format(time.DateOnly)
		}
		rows[i] = r
	}
	return rows
}

// parts makes the documents of a group, and returns links to them.
func (b *Builder) parts(g *group, of section, all view) []row {
	var parts [][]entry
	for rest := g.entries; len(rest) > 0; {
		n := cutAt(rest)
		parts = append(parts, rest[:n])
		rest = rest[n:]
	}
	links := make([]row, len(parts))
	for i, entries := range parts {
		last := entries[len(entries)-1]
		links[i] = row{
			URL:   b.Sitemap + nameAt(g.key, entries[0].path),
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
		v.Groups = []section{{Rows: b.rows(entries)}}
		b.emitView(strings.TrimPrefix(links[i].URL, b.Sitemap), v)
	}
	return links
}

// cutAt is how many pages of a group the next document shows: the one after it begins where the hash is the lowest, so that
// adding a page leaves most documents as they are.
func cutAt(entries []entry) int {
	if len(entries) <= maxPart {
		return len(entries)
	}
	at := maxPart
	lowest := uint64(math.MaxUint64)
	for i := maxPart / 2; i < maxPart; i++ {
		if hash := xxhash.Sum64String(entries[i].path); hash < lowest {
			at = i
			lowest = hash
		}
	}
	return at
}

// nameAt is the name of the document of a group that begins with the page at a path. Nobody can find two with one name.
func nameAt(key, path string) string {
	return fmt.Sprintf("-%.16x.html", sha256.Sum256([]byte(key+" "+path)))
}

func (b *Builder) emitView(name string, v view) {
	b.emit(newDocument(name, "text/html", pageTemplate, v, func() []byte {
		var body bytes.Buffer
		_ = compiled.Execute(&body, v) // a buffer returns no errors, and the template is tested
		return inert(body.Bytes())
	}))
}

// inert returns HTML or XML in which Caddy's templates, which may be around the handler, find nothing to execute: that
// is what is in two braces.
func inert(markup []byte) []byte {
	return bytes.ReplaceAll(markup, []byte("{{"), []byte("{&#123;"))
}

// href is the attribute of a link. Package template would also percent-encode quotes and parentheses, and in a query
// that makes another URL.
func href(url string) template.HTMLAttr {
	return template.HTMLAttr(`href="` + template.HTMLEscapeString(url) + `"`)
}

// number is a number as people read it in any language, with narrow spaces.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202F" + s[i:]
	}
	return s
}
