package webpage

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the template, the stylesheets and the script
	"encoding/base64"
	"html/template"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

var (
	//go:embed page.html
	pageTemplate string
	//go:embed page.css
	styleSource string
	//go:embed page.js
	scriptSource string
	//go:embed sitemap.css
	stylesheet string
)

// Each document has them.
var (
	pageStyle  = compact(styleSource)
	pageScript = compact(scriptSource)
)

// compact drops indentation, and the comments of CSS.
func compact(source string) string {
	return regexp.MustCompile(`(?m)^\s+|/\*[^*]*\*/\s*`).ReplaceAllString(source, "")
}

var compiled = template.Must(template.New("page").Funcs(template.FuncMap{
	"style":  func() template.CSS { return template.CSS(pageStyle) },
	"script": func() template.JS { return template.JS(pageScript) },
	"href":   href,
	"count":  count,
}).Parse(pageTemplate))

// pagePolicy allows what the template holds, and the site's icon, which Firefox would not load (https://www.w3.org/TR/CSP3/).
var pagePolicy = "default-src 'none'; img-src 'self'; script-src " + source(pageScript) + "; style-src " + source(pageStyle) +
	"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Look is what documents have in common that makes them look as they do. Where it is another one, as after an upgrade, they
// are made again, even if nothing has changed on the site.
var Look = pageTemplate + pagePolicy + stylesheet

func source(inline string) string {
	hash := sha256.Sum256([]byte(inline))
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}

// href is the attribute of a link. Package template would also percent-encode quotes and parentheses, and in a query
// that makes another URL.
func href(url string) template.HTMLAttr {
	return template.HTMLAttr(`href="` + template.HTMLEscapeString(url) + `"`)
}

// count is a number of things as people write it: "1,261 pages".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

// thousands is a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// view is what the template shows.
type view struct {
	Site     string // title of the front page, or the host
	Host     string
	Home     string // URL of the front page
	Feed     string // URL; or ""
	Folder   string // label of the folder; of the first document, ""
	Part     *part  // nil: it is no part of the folder
	Above    []row  // documents around it, the outermost first
	Pages    int
	IsWhole  bool  // no pages of the folder are in other documents
	IsDated  bool  // some page has a date
	Contents []row // folders in this one: links to their documents, or to their chapters
	Folders  []row // parts of the list of these
	Chapters []chapter
	Index    []row // parts of the list of all documents
}

// chapter is a folder's rows below its heading.
type chapter struct {
	Label   string
	ID      string // what contents link to
	Pages   int
	Folders []row
	Parts   []row
	Rows    []row // pages

	folder string
}

// IsIndex reports whether the document is a part of the list of all documents.
func (v view) IsIndex() bool { return v.Part != nil && v.Part.IsIndex }

// IsEmpty reports whether the contents of the document have all that is in the chapter.
func (c chapter) IsEmpty() bool { return len(c.Folders)+len(c.Parts)+len(c.Rows) == 0 }

// view is the document of a folder, or a part of it.
func (t *tree) view(f *folder, rows []row, p *part) view {
	v := view{Host: t.host(), Home: t.Base + t.root(), Part: p}
	isFirst := f.parent == nil && p == nil
	if isFirst {
		v.Site = t.front
	} else {
		v.Folder = t.folderLabel(f, p)
	}
	if v.Site == "" {
		v.Site = v.Host
	}
	if t.hasFeed && isFirst { // the first document is made last: only then it is known whether there is a feed
		v.Feed = t.Sitemap + Feed
	}
	v.Above = t.above(f, p)
	v.addRows(rows)
	v.Chapters = chaptersOf(f.path, rows, t.front)
	v.Contents = contentsOf(f.path, v.Chapters)
	return v
}

// folderLabel is what the document of a folder is called, or a part of it.
func (t *tree) folderLabel(f *folder, p *part) string {
	if p != nil && p.IsIndex {
		return "All folders"
	}
	if f.path == "/" {
		return cmp.Or(t.front, t.host())
	}
	return pathLabel(f.path)
}

// above are links to the documents around that of a folder, the outermost first. A part is in the document of its
// folder.
func (t *tree) above(f *folder, p *part) (links []row) {
	for above := f; above != nil; above = above.parent {
		isItself := above == f && p == nil
		if above.hasDocument() && !isItself {
			links = append(links, row{Label: pathLabel(above.path), URL: t.Sitemap + above.name})
		}
	}
	slices.Reverse(links)
	return links
}

// addRows counts the pages of rows, and adds those that are in no chapter.
func (v *view) addRows(rows []row) {
	v.IsWhole = true
	for _, r := range rows {
		switch r.Kind {
		case toIndex:
			r.Label = labelOf(r)
			v.Index = append(v.Index, r)
			continue // its pages are counted where they are listed
		case toFolders:
			r.Label = labelOf(r)
			v.Folders = append(v.Folders, r)
		}
		v.IsWhole = v.IsWhole && r.Kind == toPage
		v.Pages += r.Pages
		v.IsDated = v.IsDated || r.Date != ""
	}
}

// idOf is the ID of a folder's chapter.
func idOf(folder string) string {
	const digits = 8 // so few that folders could share one, and then a link would lead to the other
	hash := strconv.FormatUint(xxhash.Sum64String(folder), 36)
	return "s" + hash[max(len(hash)-digits, 0):]
}

// chaptersOf groups rows by their folders, in the order of these; rows keep their order. Titles are shown without what most
// of them end in, and without the name of the site, which is the title of the front page.
func chaptersOf(folder string, rows []row, site string) (chapters []chapter) {
	byFolder := func(a, b row) int { return strings.Compare(a.Folder, b.Folder) }
	if !slices.IsSortedFunc(rows, byFolder) {
		rows = slices.Clone(rows)
		slices.SortStableFunc(rows, byFolder)
	}
	ending := commonEnding(rows)
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r row) bool { return r.Folder != rows[0].Folder })
		if n < 0 {
			n = len(rows)
		}
		c := chapterOf(rows[:n], ending, site)
		if c.folder == folder {
			c.Label = "Pages"
		}
		chapters = append(chapters, c)
		rows = rows[n:]
	}
	return chapters
}

// chapterOf is the chapter of a folder's rows: see chaptersOf.
func chapterOf(rows []row, ending, site string) chapter {
	folder := rows[0].Folder
	c := chapter{
		Label:  pathLabel(folder),
		ID:     idOf(folder),
		Rows:   make([]row, 0, len(rows)),
		folder: folder,
	}
	for _, r := range rows {
		c.Pages += r.Pages
		r.Label = labelOf(r)
		switch r.Kind {
		case toPage:
			r.Title = shortTitle(r.Title, ending, site)
			c.Rows = append(c.Rows, r)
		case toFolder:
			c.Folders = append(c.Folders, r)
		case toPart:
			c.Parts = append(c.Parts, r)
		}
	}
	return c
}

// shortTitle is a title without an ending, or else without the name of the site behind a separator. Something is left of it.
func shortTitle(title, ending, site string) string {
	short := strings.TrimSuffix(title, ending)
	if short == title && site != "" {
		own := endingOf(title) // such as " — Example"
		if strings.HasSuffix(own, " "+site) {
			short = strings.TrimSuffix(title, own)
		}
	}
	if short == "" {
		return title
	}
	return short
}

// labelOf is what a row shows of a path.
func labelOf(r row) string {
	if r.Kind == toPage || r.Kind == toFolder {
		return labelBelow(r.Folder, r.Path)
	}
	if r.From == r.To {
		return r.From
	}
	return r.From + " – " + r.To
}

// contentsOf are the folders in that of a document, with their pages. A folder with only another one in it has no
// contents: those are the contents of the other. Links to documents of folders move there from their chapter, and
// the other chapters with such links list the folders below them likewise.
//
// Rows that are grouped by other than folders, such as by sections of the site, would be contents, too.
func contentsOf(folder string, chapters []chapter) (contents []row) {
	contents = foldersIn(folder, chapters)
	for hasOneChapter(contents) {
		folder = contents[0].Path
		contents = foldersIn(folder, chapters)
	}
	for i := range chapters {
		c := &chapters[i]
		if c.folder == folder {
			c.Folders = nil
		} else if len(c.Folders) > 0 {
			c.Folders = foldersIn(c.folder, chapters[i:])
		}
	}
	return contents
}

// hasOneChapter reports whether contents are a single folder, which is shown in this document.
func hasOneChapter(contents []row) bool { return len(contents) == 1 && contents[0].URL[0] == '#' }

// foldersIn are the folders in one: links to their documents, or to their first chapter.
func foldersIn(folder string, chapters []chapter) (folders []row) {
	for i := range chapters {
		c := &chapters[i]
		if c.folder == folder {
			folders = append(folders, c.Folders...)
			continue
		}
		if !strings.HasPrefix(c.folder, folder) {
			continue
		}
		child := childOf(folder, c.folder)
		last := len(folders) - 1
		isNew := last < 0 || folders[last].Path != child // chapters are in the order of their folders
		if isNew {
			folders = append(folders, row{
				Path:  child,
				URL:   "#" + c.ID,
				Label: labelBelow(folder, child),
				Kind:  toFolder,
			})
			last++
		}
		folders[last].Pages += c.Pages
	}
	slices.SortStableFunc(folders, func(a, b row) int { return strings.Compare(a.Path, b.Path) })
	return folders
}

// commonEnding is what more than half of the titles end in from their last separator on, such as " — Example"; "":
// nothing.
func commonEnding(rows []row) string {
	ending, titles := majorityEnding(rows)
	if ending == "" {
		return ""
	}
	n := 0
	for _, r := range rows {
		if strings.HasSuffix(r.Title, ending) {
			n++
		}
	}
	if n < ownHeading || 2*n <= titles {
		return ""
	}
	return ending
}

// majorityEnding returns the ending that more than half of the titles have, if there is one, and else any one (Boyer
// and Moore); and how many titles there are.
func majorityEnding(rows []row) (ending string, titles int) {
	lead := 0
	for _, r := range rows {
		if r.Title == "" {
			continue
		}
		titles++
		own := endingOf(r.Title)
		switch {
		case lead == 0:
			ending = own
			lead = 1
		case own == ending:
			lead++
		default:
			lead--
		}
	}
	return ending, titles
}

// endingOf is the end of a title from its last separator on, which stands between blanks; "": it has none.
func endingOf(title string) string {
	for end := len(title); ; {
		blank := strings.LastIndexByte(title[:end], ' ')
		if blank < 0 {
			return ""
		}
		before := strings.LastIndexByte(title[:blank], ' ')
		if before < 0 {
			return ""
		}
		switch title[before+1 : blank] {
		case "-", "–", "—", "|", "·", "•", "::", ":", "»", "«", "/", "~":
			return title[before:]
		}
		end = blank
	}
}

func (v view) body() []byte {
	var b bytes.Buffer
	_ = compiled.Execute(&b, v) // a buffer returns no errors, and the template is tested
	return inert(b.Bytes())
}

// inert returns HTML or XML in which Caddy's templates, which may be around the handler, find nothing to execute: that
// is what is in two braces.
func inert(markup []byte) []byte {
	return bytes.ReplaceAll(markup, []byte("{{"), []byte("{&#123;"))
}
