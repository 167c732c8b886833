package webpage

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"html/template"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Sizes are in bytes of HTML. The difference of maxSize and maxRows is for what surrounds the rows.
const (
	maxSize     = 200_000
	maxRows     = maxSize - 40_000
	ownDocument = maxRows / 4 // from this size on, a folder has a document of its own, unless one has room for all
	ownHeading  = 4           // from so many rows on, a folder has a heading of its own
	maxDepth    = 16          // deeper folders count as a part of the last one
	markup      = 90          // at most, of a row or heading without its texts
)

// row is one line of a document: a page, or a link to a document with more of them.
type row struct {
	Folder     string // path of the one under whose heading it stands
	Path, URL  string // of the page; of a document, the path of its folder or first page
	Label      string // the path for people
	Title      string // of the page; or ""
	Date       string // of its last change; or ""
	Pages      int    // 1, or those of the document
	IsDocument bool
}

// list is rows that are in no document yet, and their size, with the headings.
type list struct {
	rows []row
	size int
	up   *list // rows for the documents that hold the rows before these; nil: there are none
}

func (l *list) add(rows ...row) {
	for _, r := range rows {
		if n := len(l.rows); n == 0 || l.rows[n-1].Folder != r.Folder {
			l.size += markup + escapedSize(pathLabel(r.Folder))
		}
		l.rows = append(l.rows, r)
		l.size += markup + escapedSize(r.URL) + escapedSize(r.Label) + escapedSize(r.Title)
	}
}

// tree distributes pages to documents. If one has room for all, there is one. Otherwise each large folder has its own,
// and a small one is a section in the document of its parent. A folder that does not fit into a document is cut into
// parts, which its document lists. As in package shard, a cut depends only on the pages around it.
type tree struct {
	Options
	held   list    // all rows, until it is known that they do not fit into one document
	own    int     // size of a folder that has a document of its own
	folder *folder // of the last page
	emit   func(Document)
}

// folder is a folder that is not complete yet.
type folder struct {
	list
	path   string
	name   string  // of its document, if it has one
	parent *folder // nil: the folder of the sitemap
	depth  int
}

// addPage adds a page, which comes after all others in the order of paths.
func (t *tree) addPage(p page.Page) {
	r := row{Path: p.Path, URL: t.Base + p.Path, Label: pathLabel(p.Path), Title: clean(titleOf(p)), Pages: 1}
	r.Folder = page.Folder(strings.TrimSuffix(r.Path, "/")) // "/a/" is a page of "/": what is in "/a/" is one run
	if changed, ok := dateOf(p); ok {
		r.Date = changed.Format(time.DateOnly)
	}
	if t.held.add(r); t.held.size > maxRows {
		t.place()
	}
}

// place puts the rows that are held into their folders.
func (t *tree) place() {
	for _, r := range t.held.rows {
		for t.folder.parent != nil && !strings.HasPrefix(r.Folder, t.folder.path) {
			t.close()
		}
		for f := t.folder; f.depth < maxDepth && strings.HasPrefix(r.Folder, f.path) && r.Folder != f.path; f = t.folder {
			path := r.Folder[:len(f.path)+strings.IndexByte(r.Folder[len(f.path):], '/')+1]
			t.folder = &folder{path: path, name: nameAt(path, 0), parent: f, depth: f.depth + 1}
		}
		r.Folder = t.folder.path
		t.put(r)
	}
	t.held.rows = t.held.rows[:0]
}

func (t *tree) put(rows ...row) {
	t.folder.add(rows...)
	t.cut(t.folder, &t.folder.list, 1)
}

// close leaves a folder after its last page.
func (t *tree) close() {
	f, rows := t.folder, t.folder.rows
	t.folder = f.parent
	if t.hasDocument(f) {
		rows = []row{t.document(f)}
	}
	if len(rows) < ownHeading {
		for i := range rows {
			rows[i].Folder = t.folder.path
		}
	}
	t.put(rows...)
}

// hasDocument reports whether a folder is known to have a document of its own.
func (t *tree) hasDocument(f *folder) bool { return f.parent == nil || f.up != nil || f.size >= t.own }

// document makes the document of a complete folder, and the last ones of its parts. It returns a link to it.
func (t *tree) document(f *folder) row {
	l := &f.list
	for level := 1; l.up != nil; level, l = level+1, l.up {
		t.part(f, l, len(l.rows), level)
	}
	return t.write(f.name, f, "", l)
}

// cut makes parts of the first rows until the rest fits into a document. A part is at least half full, and the next
// begins at the row with the lowest hash, so that adding a page leaves most parts as they are.
func (t *tree) cut(f *folder, l *list, level int) {
	for l.size > maxRows {
		var first list
		at, lowest := 1, uint64(math.MaxUint64)
		for i, r := range l.rows {
			if hash := xxhash.Sum64String(r.Path); first.size > maxRows/2 && hash <= lowest {
				at, lowest = i, hash
			}
			if first.add(r); first.size > maxRows {
				break
			}
		}
		t.part(f, l, at, level)
	}
}

// part makes a document of the first n rows of a folder's list.
func (t *tree) part(f *folder, l *list, n, level int) {
	first, rest := list{rows: l.rows[:n]}, list{up: cmp.Or(l.up, new(list))}
	path := first.rows[0].Path
	rest.add(l.rows[n:]...)
	*l = rest
	l.up.add(t.write(nameAt(path, level), f, path, &first))
	t.cut(f, l.up, level+1)
}

// write emits the document of a folder, or the part that begins at a path, and returns the row that links to it.
func (t *tree) write(name string, f *folder, part string, l *list) row {
	runtime.Gosched() // requests go first
	v := view{Host: t.host(), Folder: pathLabel(f.path), Part: pathLabel(part), Sections: sectionsOf(l.rows)}
	if t.Feed && name == HTML { // whether there is a feed is known at the end
		v.Feed = t.Sitemap + Feed
	}
	for _, r := range l.rows {
		v.Pages += r.Pages
	}
	for above := f; above != nil; above = above.parent {
		if t.hasDocument(above) && (above != f || part != "") {
			v.Above = append(v.Above, row{Label: pathLabel(above.path), URL: t.Sitemap + above.name})
		}
	}
	slices.Reverse(v.Above)
	t.emit(newDocument(name, "text/html", pagePolicy, pageTemplate, v, v.body))
	link := row{Folder: f.path, Path: cmp.Or(part, f.path), URL: t.Sitemap + name, Label: v.Folder, Pages: v.Pages, IsDocument: true}
	if part != "" {
		link.Label = v.Part + " …"
	}
	return link
}

// nameAt is the name of a folder's document (level 0), of a part that begins at a path (1), or of a part of the list of
// parts (2 and so on). Nobody can find two paths with one name.
func nameAt(path string, level int) string {
	return fmt.Sprintf("-%.16x.html", sha256.Sum256(fmt.Appendf(nil, "%d %s", level, path)))
}

// escapedSize is how many bytes a text has in HTML.
func escapedSize(text string) int {
	more := strings.Count(text, "+")*len("#43;") + strings.Count(text, "{{")*len("&#123") // which view.body escapes, too
	return len(template.HTMLEscapeString(text)) + more
}
