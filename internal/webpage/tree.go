package webpage

import (
	"crypto/sha256"
	"fmt"
	"html/template"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Sizes are in bytes of HTML. What differs between maxSize and maxRows, and between maxFront and frontRows, is for what
// surrounds the rows.
const (
	maxSize     = 200_000
	maxRows     = maxSize - 40_000
	maxFront    = 100_000 // of the first document
	frontRows   = maxFront - 20_000
	maxPart     = maxRows / 2  // of what does not fit into one document, in each
	ownDocument = maxRows / 4  // from this size on, a folder of a divided folder has a document of its own
	maxShown    = maxRows / 20 // up to this size, it is shown in the document of that folder
	maxOwn      = 20_000       // of the list of folders, of which each has its own document
	smallest    = 500          // of a folder's document
	ownHeading  = 4            // from so many rows on, a folder has a heading of its own
	maxDepth    = 16           // deeper folders count as a part of the last one
	maxClicks   = 3            // from the first document to any page
	maxIndex    = 8000         // of the list of all documents in the first one

	markupOfPage    = len("\n<li><a href=\"\"><bdi></bdi></a> <bdi></bdi></li>")
	markupOfDate    = len(" <time>2006-01-02</time>")
	markupOfLink    = len("\n<li><a href=\"\"><bdi> – </bdi></a> <span>10,000,000 pages</span></li>")
	markupOfChapter = len("\n<section id=\"s12345678\">\n<h2><bdi></bdi></h2>\n<ul lang=\"\">\n</ul>\n</section>")

	maxEscape = len("&#43;")         // of a character
	maxLabel  = maxTitle * maxEscape // of a text that was cut
)

// The series of parts: names of documents depend on them.
const (
	pageSeries   = "pages"
	folderSeries = "folders"
	sharedSeries = "shared"
	indexSeries  = "index"
)

// kind is what a row leads to.
type kind uint8

const (
	toPage    kind = iota
	toFolder       // the document of a folder
	toPart         // a part of the pages of a folder
	toFolders      // a part of the list of the folders in one
	toIndex        // a part of the list of all documents
)

// row is one line of a document. What its HTML does not depend on is not in the ETag.
type row struct {
	Folder   string `json:"-"` // path of the one under whose heading it stands
	Path     string `json:"-"` // of the page or folder; of a part, that of its first page
	URL      string
	Label    string // the path below the folder for people; it is known once the row is written
	Title    string `json:",omitempty"` // of the page; or ""
	Date     string `json:",omitempty"` // of its last change; or ""
	From, To string `json:"-"`          // labels of the first and last row of a part
	Pages    int    // 1, or those of the document
	Kind     kind   `json:"-"`

	size   int
	clicks int // from here to the farthest page
}

// list is rows that are in no document yet, and their size, with the headings.
type list struct {
	rows []row
	size int

	series string // tells the parts of this list from those of other lists of the folder
	before string // name of the last part that was made of it; or ""
	up     *list  // links to these parts; nil: there are none
}

func (l *list) add(rows ...row) {
	l.rows = slices.Grow(l.rows, len(rows))
	for _, r := range rows {
		folder := ""
		if n := len(l.rows); n > 0 {
			folder = l.rows[n-1].Folder
		}
		l.size += r.sizeAfter(folder)
		l.rows = append(l.rows, r)
	}
}

// sizeAfter is how many bytes a row adds to a list whose last row is below the heading of a folder.
func (r row) sizeAfter(folder string) int {
	if r.Folder == folder {
		return r.size
	}
	return r.size + markupOfChapter + markupOfLink + 2*labelSize(r.Folder) // the heading is in the contents, too
}

// tree distributes pages to documents by their folders. A folder that fits into the document of its parent is shown
// there, below a heading. Once all that is in a folder does not fit into one document, the folder is divided: large
// ones in it have documents of their own, others share documents, and small ones stay. What does not fit after that,
// which is the folder's own pages or the list of the folders in it, is cut into parts, which its document lists. As with
// shards, a cut depends only on the rows around it.
//
// Folders share documents because each document has a style and a script of 2 kB, compressed: if a million pages in
// 5,000 folders had as many documents, that would be a third of them. Where there are very many folders, large ones
// share documents, too.
type tree struct {
	Options
	front   string  // title of the front page; or ""
	hasFeed bool    // there is a feed: known before the first document is made, which links to it
	folder  *folder // of the last page
	all     []row   // links to the documents that have pages
	spare   []row   // room for the pages of the next folder
	emit    func(Document)
}

// folder is a folder that is not complete yet.
type folder struct {
	path   string
	name   string  // of its document, if it has one
	parent *folder // nil: the folder of the sitemap
	depth  int

	pages   list // in it, and those of folders without a heading
	inside  list // links to the documents of folders in it, and the rows of those that are shown here
	shared  list // rows of folders in it that share documents
	divided bool
}

func newFolder(path string, parent *folder) *folder {
	f := &folder{
		path:   path,
		name:   HTML,
		parent: parent,
		pages:  list{series: pageSeries},
		inside: list{series: folderSeries},
		shared: list{series: sharedSeries},
	}
	if parent != nil {
		f.name = nameAt("folder", path)
		f.depth = parent.depth + 1
	}
	return f
}

func (f *folder) size() int { return f.pages.size + f.inside.size }

// rows are those of the folder and in it. The caller does not keep them.
func (f *folder) rows() []row {
	if len(f.inside.rows) == 0 {
		return f.pages.rows
	}
	return slices.Concat(f.pages.rows, f.inside.rows)
}

// isCut reports whether there are parts of the folder.
func (f *folder) isCut() bool { return f.pages.up != nil || f.inside.up != nil }

// shares reports whether another folder in the folder, which has a size, shares a document with others.
func (f *folder) shares(size int) bool {
	hasMany := f.inside.up != nil || f.inside.size > maxOwn
	return hasMany || size < ownDocument
}

// hasDocument reports whether the folder is known to have a document of its own. One that is not may still get one once
// it is complete.
func (f *folder) hasDocument() bool {
	return f.parent == nil || f.isCut() || f.divided && f.parent.divided
}

// larger returns the longer one of two lists.
func larger(a, b *list) *list {
	if a.size > b.size {
		return a
	}
	return b
}

// addPage adds a page, which comes after all others in the order of paths.
func (t *tree) addPage(p page.Page) {
	r := row{
		Folder: page.Folder(strings.TrimSuffix(p.Path, "/")), // "/a/" is a page of "/": what is in "/a/" is one run
		Path:   p.Path,
		URL:    t.Base + p.Path,
		Title:  clean(titleOf(p)),
		Pages:  1,
		clicks: 1,
	}
	if changed, ok := dateOf(p); ok {
		r.Date = changed.Format(time.DateOnly)
	}
	t.enter(r.Folder)
	r.Folder = t.folder.path
	r.size = sizeOf(r)
	t.folder.pages.add(r)
	t.keepWithin(t.folder)
}

// enter makes a folder the one of the last page.
func (t *tree) enter(path string) {
	for t.folder.parent != nil && !strings.HasPrefix(path, t.folder.path) {
		t.leave()
	}
	for f := t.folder; f.depth < maxDepth && strings.HasPrefix(path, f.path) && path != f.path; f = t.folder {
		t.folder = newFolder(childOf(f.path, path), f)
		// With many small folders, a list that grows from nothing for each takes a good part of the time.
		t.folder.pages.rows = t.spare
		t.spare = nil
	}
}

// childOf returns the folder in a folder that a path below it is in, or is.
func childOf(folder, path string) string {
	return path[:len(folder)+strings.IndexByte(path[len(folder):], '/')+1]
}

// leave leaves a folder after its last page.
func (t *tree) leave() {
	// What is in the folder is complete, and so is what it may have to share with others.
	f := t.folder
	above := f.parent
	t.folder = above
	t.addInside(f) // what is left of those that share documents
	t.keepWithin(f)
	t.close(f, above)
	t.spare = f.pages.rows[:0] // all rows were copied
	t.keepWithin(above)
}

// close makes the document of a folder that is complete, or shows what is in it in another one.
func (t *tree) close(f, above *folder) {
	rows := f.rows()
	isLarge := above.divided && (f.divided || f.size() >= maxShown)
	isOne := !f.divided && !f.isCut()
	if isLarge && isOne && above.shares(f.size()) {
		t.share(above, rows)
		return
	}
	if isLarge || f.isCut() {
		t.addInside(above, t.document(f))
		return
	}
	if len(rows) < ownHeading {
		t.moveUp(above, rows)
		return
	}
	t.addInside(above, rows...)
}

// moveUp shows the rows of a folder without a heading of its own, as if they were in the folder above.
func (t *tree) moveUp(above *folder, rows []row) {
	for _, r := range rows {
		r.Folder = above.path
		r.size = sizeOf(r) // its label is longer
		if r.Kind == toPage {
			above.pages.add(r)
		} else {
			t.addInside(above, r)
		}
	}
}

// share puts the rows of a folder into a document that it shares with others of the folder above.
func (t *tree) share(above *folder, rows []row) {
	above.shared.add(rows...)
	for above.shared.size > maxRows {
		t.writeShared(above, cutAt(above, above.shared.rows, maxRows))
	}
}

// addInside adds rows to the list of the folders in one, in order: after all that share documents.
func (t *tree) addInside(f *folder, rows ...row) {
	if len(f.shared.rows) > 0 {
		t.writeShared(f, len(f.shared.rows))
		f.shared.before = "" // the next one is not the next of these
	}
	f.inside.add(rows...)
}

// writeShared makes the document of the first n rows of folders that share one, and a link to each of the folders.
func (t *tree) writeShared(f *folder, n int) {
	rows, document := t.writeFirst(f, &f.shared, n)
	for len(rows) > 0 {
		n := runIn(f, rows)
		link := row{
			Folder: document.Folder,
			Path:   strings.Clone(childOf(f.path, rows[0].Folder)),
			Kind:   toFolder,
		}
		first := rows[0].Folder
		for _, r := range rows[:n] {
			first = min(first, r.Folder)
			link.Pages += r.Pages
			link.clicks = max(link.clicks, r.clicks+1)
		}
		link.URL = document.URL + "#" + idOf(first)
		link.size = sizeOf(link)
		f.inside.add(link)
		rows = rows[n:]
	}
}

// keepWithin divides a folder that does not fit into a document, and makes parts of what still does not fit.
func (t *tree) keepWithin(f *folder) {
	if f.size() <= maxRows {
		return
	}
	t.divide(f)
	for f.size() > maxRows {
		t.cut(f, larger(&f.pages, &f.inside)) // which is larger than a part
	}
}

// divide makes documents of the folders in one that were shown in its own so far.
func (t *tree) divide(f *folder) {
	if !f.divided {
		f.divided = true
		t.moveOut(f, maxShown)
	}
}

// moveOut makes documents of the folders in one that were shown in its own and have at least a size.
func (t *tree) moveOut(f *folder, size int) {
	shown := f.inside.rows
	f.inside = list{series: f.inside.series}
	for len(shown) > 0 {
		n := runIn(f, shown)
		run := list{}
		run.add(shown[:n]...)
		shown = shown[n:]
		isLink := run.rows[0].Folder == f.path
		if isLink || run.size < size {
			t.addInside(f, run.rows...)
			continue
		}
		if f.shares(run.size) {
			t.share(f, run.rows)
			continue
		}
		child := newFolder(childOf(f.path, run.rows[0].Folder), f)
		t.addInside(f, t.write(child, child.name, run.rows, nil))
	}
}

// runIn is how many rows from the first one on stay together when a folder is divided or cut: those of a folder in it.
func runIn(f *folder, rows []row) int {
	if rows[0].Folder == f.path {
		return 1
	}
	child := childOf(f.path, rows[0].Folder)
	n := slices.IndexFunc(rows, func(r row) bool { return !strings.HasPrefix(r.Folder, child) })
	if n < 0 {
		return len(rows)
	}
	return n
}

// document makes the document of a complete folder, and the last ones of its parts. It returns a link to it.
func (t *tree) document(f *folder) row {
	return t.write(f, f.name, t.shown(f, maxRows), nil)
}

// shown makes what is left of the parts of a folder, and more of them until the rest fits. It returns the rest.
func (t *tree) shown(f *folder, limit int) []row {
	pages := t.top(f, &f.pages)
	inside := t.top(f, &f.inside)
	for pages.size+inside.size > limit {
		if larger(pages, inside) == pages {
			pages = t.allParts(f, pages)
		} else {
			inside = t.allParts(f, inside)
		}
	}
	return slices.Concat(pages.rows, inside.rows)
}

// top makes the last parts of a list that was cut, and returns the list of all its parts.
func (t *tree) top(f *folder, l *list) *list {
	for l.up != nil {
		l = t.allParts(f, l)
	}
	return l
}

// allParts makes parts of a whole list, and returns the list of these.
func (t *tree) allParts(f *folder, l *list) *list {
	t.cut(f, l)
	t.part(f, l, len(l.rows))
	return l.up
}

// cut makes parts of the first rows until the rest fits into one.
func (t *tree) cut(f *folder, l *list) {
	for l.size > maxPart {
		t.part(f, l, cutAt(f, l.rows, maxPart))
	}
}

// cutAt is how many rows of a folder's list are the next part, which has room for a size. A part is at least half full,
// and the one after it begins where the hash is the lowest, so that adding a page leaves most parts as they are.
func cutAt(f *folder, rows []row, size int) int {
	at := len(rows)
	lowest := uint64(math.MaxUint64)
	before := 0  // size of the rows before,
	folder := "" // and folder of the last one
	for i := 0; i < len(rows) && before <= size; {
		hash := xxhash.Sum64String(rows[i].Path)
		if before > size/2 && hash <= lowest {
			at = i
			lowest = hash
		}
		n := runIn(f, rows[i:])
		for _, r := range rows[i : i+n] {
			before += r.sizeAfter(folder)
			folder = r.Folder
		}
		isTooLarge := before > size && i > 0
		if isTooLarge && at == len(rows) {
			at = i // a large folder comes before the part is half full
		}
		i += n
	}
	return at
}

// part is what the document of a part says beside its rows.
type part struct {
	IsIndex    bool   // it is of the list of all documents
	From, To   string // labels of the first and the last row
	Before     string // URL of the part before; or ""
	After      string // URL of the next; or ""
	AfterBegin string // label of the first row of the next; or ""
}

// part makes a document of the first n rows of a list, and lists it.
func (t *tree) part(f *folder, l *list, n int) {
	_, link := t.writeFirst(f, l, n)
	if strings.HasPrefix(l.series, folderSeries) {
		link.Kind = toFolders
	}
	if l.up == nil {
		l.up = &list{series: l.series + "+"}
	}
	l.up.add(link)
	t.cut(f, l.up)
}

// writeFirst makes a document of the first n rows of a list, and takes these from it.
func (t *tree) writeFirst(f *folder, l *list, n int) (first []row, link row) {
	first = l.rows[:n]
	rest := slices.Clone(l.rows[n:])
	name := nameAt(l.series, first[0].Path)
	p := part{IsIndex: strings.HasPrefix(l.series, indexSeries)}
	p.From, _ = ends(f, first[0])
	_, p.To = ends(f, first[n-1])
	if l.before != "" {
		p.Before = t.Sitemap + l.before
	}
	if len(rest) > 0 {
		p.After = t.Sitemap + nameAt(l.series, rest[0].Path)
		p.AfterBegin, _ = ends(f, rest[0])
	}
	l.before = name
	l.rows = nil
	l.size = 0
	l.add(rest...) // whose first heading counts again
	return first, t.write(f, name, first, &p)
}

// ends are the first and the last label of a row in a list of a folder.
func ends(f *folder, r row) (from, to string) {
	if r.From != "" {
		return r.From, r.To
	}
	if r.Folder != f.path {
		r.Path = childOf(f.path, r.Folder)
	}
	label := labelBelow(f.path, r.Path)
	return label, label
}

// write emits the document of a folder, or a part of it, and returns the row that links to it.
func (t *tree) write(f *folder, name string, rows []row, p *part) row {
	runtime.Gosched() // requests go first
	link := row{Folder: f.path, Path: f.path, URL: t.Sitemap + name, Kind: toFolder}
	for _, r := range rows {
		link.Pages += r.Pages
		link.clicks = max(link.clicks, r.clicks+1)
	}
	if f.parent != nil && p == nil {
		link.Folder = f.parent.path
	}
	if p != nil {
		link.Path = rows[0].Path
		link.Kind = toPart
		link.From = p.From
		link.To = p.To
	}
	// Links outlive the pages, whose paths may be parts of larger strings.
	link.Folder = strings.Clone(link.Folder)
	link.Path = strings.Clone(link.Path)
	link.From = strings.Clone(link.From)
	link.To = strings.Clone(link.To)
	link.size = sizeOf(link)
	hasPages := slices.ContainsFunc(rows, func(r row) bool { return r.Kind == toPage })
	if hasPages && name != HTML {
		t.all = append(t.all, link)
	}
	v := t.view(f, rows, p)
	t.emit(newDocument(name, "text/html", pagePolicy, pageTemplate, v, v.body))
	return link
}

// finish makes the documents that are left.
func (t *tree) finish() {
	for t.folder.parent != nil {
		t.leave()
	}
	// The first document is made last: it says what all others are.
	root := t.folder
	t.addInside(root)
	if root.size() > frontRows {
		t.divide(root)
		t.addInside(root)
	}
	// There is more room in other documents. Small folders, too, have their own rather than that their list is cut.
	for size := maxShown / 2; size >= smallest && root.size() > frontRows && !root.isCut(); size /= 2 {
		t.moveOut(root, size)
		t.addInside(root)
	}
	rows := t.shown(root, frontRows)
	if len(rows) == 0 {
		return
	}
	farthest := slices.MaxFunc(rows, func(a, b row) int { return a.clicks - b.clicks })
	if farthest.clicks > maxClicks {
		rows = append(rows, t.index(root)...)
	}
	t.write(root, root.name, rows, nil)
}

// index makes the list of all documents that have pages, for sites whose folders are so many and so deep that more
// clicks than maxClicks lead to some. It returns links to its parts.
func (t *tree) index(root *folder) []row {
	slices.SortStableFunc(t.all, func(a, b row) int { return strings.Compare(a.Path, b.Path) })
	l := &list{series: indexSeries}
	for _, r := range t.all {
		if r.Kind == toPart {
			folder := labelBelow(root.path, r.Folder)
			r.From = clean(folder + r.From)
			r.To = clean(folder + r.To)
		}
		r.Folder = root.path
		r.size = sizeOf(r)
		l.add(r)
	}
	l = t.allParts(root, l)
	for l.size > maxIndex && len(l.rows) > 1 {
		l = t.allParts(root, l)
	}
	for i := range l.rows {
		l.rows[i].Kind = toIndex
	}
	return l.rows
}

// nameAt is the name of the document of a folder, or of the part of a series that begins at a path. Nobody can find two
// paths with one name.
func nameAt(series, path string) string {
	return fmt.Sprintf("-%.16x.html", sha256.Sum256([]byte(series+" "+path)))
}

// sizeOf is how many bytes a row has in HTML at most.
func sizeOf(r row) int {
	size := escapedSize(r.URL) + labelSize(strings.TrimPrefix(r.Path, r.Folder))
	if r.Kind != toPage {
		return markupOfLink + size + escapedSize(r.From) + escapedSize(r.To)
	}
	if r.Date != "" {
		size += markupOfDate
	}
	return markupOfPage + size + escapedSize(r.Title)
}

// labelSize is how many bytes the label of a path has in HTML at most.
func labelSize(path string) int {
	label := pathLabel(path)
	if utf8.RuneCountInString(label) == maxTitle {
		return maxLabel
	}
	return escapedSize(label)
}

// escapedSize is how many bytes a text has in HTML.
func escapedSize(text string) int {
	pluses := strings.Count(text, "+") * len("#43;")
	braces := strings.Count(text, "{{") * len("&#123") // which view.body escapes, too
	return len(template.HTMLEscapeString(text)) + pluses + braces
}
