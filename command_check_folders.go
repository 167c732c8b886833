package sitemap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/seed3295b519/caddy-sitemap/internal/lint"
)

// Bounds on the folders that are looked through.
const (
	maxCheckDepth = 32
	maxCheckFiles = 1_000_000 // looked at
	maxCheckDocs  = 100_000   // sitemaps among them
)

// checkedDir is a folder in which documents are looked up that others name.
type checkedDir struct {
	k     *checking
	name  string   // of the folder, as findings name it
	root  *os.Root // nil where nothing can be looked up
	files []localFile
	index map[string]int // of files, by name

	indexes bool            // there is an index
	listed  map[string]bool // names of files that an index or a robots.txt names
}

// localFile is one that may be a sitemap or a robots.txt.
type localFile struct {
	name string // below the folder, with slashes
	rank int    // robots.txt first, then indexes: they say where the others are
	kind lint.Kind
}

const (
	rankRobots = iota
	rankIndex
	rankOther
)

// openDir opens a folder. Where it may be entered but not read, nothing is looked up.
func (k *checking) openDir(name string) (*checkedDir, error) {
	root, err := os.OpenRoot(name)
	return &checkedDir{k: k, name: name, root: root, index: make(map[string]int), listed: make(map[string]bool)}, err
}

func (d *checkedDir) close() {
	if d.root != nil {
		_ = d.root.Close()
	}
}

// file checks a file, and what it names where that is in its folder.
func (k *checking) file(name string) {
	if k.seen(key(name)) {
		return
	}
	f, err := os.Open(name) // a pipe, too
	if err != nil {
		k.cannot(err)
		return
	}
	defer f.Close()
	d, _ := k.openDir(filepath.Dir(name))
	defer d.close()
	base := filepath.Base(name)
	if isRobots(base) {
		d.robots(name, "", f)
		return
	}
	d.document(name, f, d.at(base))
}

// key is what tells a local file apart.
func key(name string) string {
	if whole, err := filepath.Abs(name); err == nil {
		name = whole
	}
	return "file:" + name
}

func isRobots(base string) bool { return strings.EqualFold(base, "robots.txt") }

// folder checks what sitemaps a folder has.
func (k *checking) folder(name string) {
	d, err := k.openDir(name)
	if err != nil {
		k.cannot(err)
		return
	}
	defer d.close()
	if err := d.walk(); err != nil {
		k.cannot(err)
	}
	if len(d.files) == 0 && !k.failed {
		k.cannot(fmt.Errorf("%s: there is no sitemap and no robots.txt in it", name))
	}
	slices.SortStableFunc(d.files, func(a, b localFile) int { return a.rank - b.rank })
	d.files = slices.DeleteFunc(d.files, func(f localFile) bool { return d.isCopy(f.name) })
	for i, f := range d.files {
		d.index[f.name] = i
	}
	for i := 0; i < len(d.files); i++ { // it grows by what is named
		d.local(i, d.at(d.files[i].name))
	}
	d.orphans()
}

// isCopy reports whether a file is the compressed form of another, which a server
// sends in its stead. It is checked where something names it.
func (d *checkedDir) isCopy(name string) bool {
	plain, ok := strings.CutSuffix(name, ".gz")
	if !ok {
		return false
	}
	info, err := d.root.Stat(plain)
	return err == nil && info.Mode().IsRegular()
}

var errEnough = errors.New("there is too much in it")

// walk finds the folder's sitemaps, by name and in that order.
func (d *checkedDir) walk() error {
	looked := 0
	return fs.WalkDir(d.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		looked++
		switch {
		case d.k.ctx.Err() != nil:
			return d.k.ctx.Err()
		case err != nil:
			d.k.cannot(err)
			return nil
		case looked > maxCheckFiles || len(d.files) > maxCheckDocs:
			return fmt.Errorf("looking through %s: %w", d.name, errEnough)
		case e.IsDir() && strings.Count(name, "/") >= maxCheckDepth:
			d.k.cannot(fmt.Errorf("looking through %s: folders are nested too deep", d.path(name)))
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		if rank, ok := d.rank(name, e); ok {
			d.files = append(d.files, localFile{name: name, rank: rank})
		}
		return nil
	})
}

// rank reports whether a file is to be checked, and when.
func (d *checkedDir) rank(name string, e fs.DirEntry) (int, bool) {
	base := strings.ToLower(path.Base(name))
	if isRobots(base) {
		return rankRobots, d.isRegular(name, e)
	}
	plain := strings.TrimSuffix(base, ".gz")
	byName := strings.HasPrefix(base, "sitemap") && (strings.HasSuffix(plain, ".xml") || strings.HasSuffix(plain, ".txt"))
	if !byName && !strings.HasSuffix(plain, ".xml") || !d.isRegular(name, e) {
		return 0, false
	}
	root, err := d.rootElement(name)
	switch {
	case root == "sitemapindex":
		return rankIndex, true
	case err != nil && !errors.Is(err, errNoSitemap):
		return rankOther, true // which is said when it is read
	}
	return rankOther, byName || root == "urlset"
}

// isRegular reports whether a file is one, or a link to one in the folder.
func (d *checkedDir) isRegular(name string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Type().IsRegular()
	}
	info, err := d.root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

var (
	rootElement  = regexp.MustCompile(`<(?:[\w.-]+:)?(urlset|sitemapindex)[\s>]`)
	errNoSitemap = errors.New("no sitemap")
)

// rootElement is the root element of a file if it is one of a sitemap. It is to be
// among the first bytes.
func (d *checkedDir) rootElement(name string) (string, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 4<<10)
	var plain io.Reader = r
	if isGzip(r) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return "", errNoSitemap
		}
		plain = z
	}
	head := make([]byte, 4<<10)
	n, _ := io.ReadFull(plain, head) // what can be read of it
	if m := rootElement.FindSubmatch(head[:n]); m != nil {
		return string(m[1]), nil
	}
	return "", errNoSitemap
}

// path is what findings call a file.
func (d *checkedDir) path(name string) string {
	return filepath.Join(d.name, filepath.FromSlash(name))
}

// at is the URL of a file, "" where nobody said what the folder's is.
func (d *checkedDir) at(name string) string {
	if d.k.flags.base == "" {
		return ""
	}
	return d.k.flags.base + (&url.URL{Path: name}).EscapedPath()
}

// local checks a file of the folder.
func (d *checkedDir) local(i int, at string) (result lint.Result) {
	file := d.files[i]
	whole := d.path(file.name)
	if d.k.ctx.Err() != nil || d.k.seen(key(whole)) {
		return result
	}
	f, err := d.root.Open(file.name)
	if err != nil {
		d.k.cannot(err)
		return result
	}
	defer f.Close()
	if file.rank == rankRobots {
		d.robots(whole, path.Dir(file.name), f)
		return result
	}
	result = d.document(whole, f, at)
	d.files[i].kind = result.Kind
	return result
}

func (d *checkedDir) robots(name, folder string, r io.Reader) {
	at := d.at(path.Join(folder, "robots.txt"))
	sitemaps, err := d.k.checker.Robots(name, at, r)
	if err != nil {
		d.k.cannot(err)
	}
	for _, s := range sitemaps {
		d.child(folder, s, mention{file: name}, false)
	}
}

// document checks a document and, if it is an index, what it lists.
func (d *checkedDir) document(name string, r io.Reader, at string) lint.Result {
	result, err := d.k.document(name, at, r)
	if err != nil {
		d.k.cannot(err)
		return result
	}
	if result.Kind != lint.KindIndex {
		return result
	}
	d.indexes = true
	folder := "."
	if rel, err := filepath.Rel(d.name, filepath.Dir(name)); err == nil && d.root != nil {
		folder = filepath.ToSlash(rel)
	}
	for _, child := range result.Children {
		from := mention{name, child.Line}
		d.k.dates(from, child, d.child(folder, child.Loc, from, true))
	}
	return result
}

// child checks a document that one of a folder names.
func (d *checkedDir) child(folder, loc string, from mention, ofIndex bool) (none lint.Result) {
	if d.k.ctx.Err() != nil {
		return none
	}
	name := d.find(folder, loc)
	if name == "" {
		return d.missing(loc, from, ofIndex)
	}
	d.listed[name] = true
	i, ok := d.index[name]
	if !ok {
		i = d.join(name)
	}
	if ofIndex && d.files[i].rank == rankIndex {
		d.k.nested(from, loc)
		return none
	}
	return d.local(i, loc)
}

// join takes a file among the folder's that was not found by its name.
func (d *checkedDir) join(name string) int {
	file := localFile{name: name, rank: rankOther}
	if root, _ := d.rootElement(name); root == "sitemapindex" {
		file.rank = rankIndex
	}
	d.index[name] = len(d.files)
	d.files = append(d.files, file)
	return len(d.files) - 1
}

// missing is what is said of a document that is not in the folder.
func (d *checkedDir) missing(loc string, from mention, ofIndex bool) (none lint.Result) {
	f := from.of(loc, "document-missing")
	switch base := d.k.flags.base; {
	case d.k.flags.fetch:
		return d.k.fetch(loc, from, ofIndex)
	case d.root != nil && base != "" && strings.HasPrefix(loc, base):
		d.k.add(f, "%sis not in %s", from, d.name)
	default:
		f.Severity = lint.Warning
		d.k.add(f, "%swas not checked, as it is not in the folder", from)
	}
	return none
}

// find is the file of the folder that a URL stands for, "" if there is none: where
// the base URL or its own path says, else beside the document that names it.
func (d *checkedDir) find(folder, loc string) string {
	u, err := url.Parse(loc)
	if d.root == nil || err != nil {
		return ""
	}
	var names []string
	if base := d.k.flags.base; base != "" {
		below, ok := strings.CutPrefix(loc, base)
		if !ok {
			return ""
		}
		if below, err = url.PathUnescape(below); err != nil {
			return ""
		}
		names = []string{below}
	} else {
		names = []string{u.Path, path.Join(folder, path.Base(u.Path))}
	}
	for _, name := range names {
		name = strings.TrimPrefix(path.Clean("/"+name), "/")
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			continue
		}
		if info, err := d.root.Stat(name); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

// orphans are sitemaps beside an index that nothing names: likely left over.
func (d *checkedDir) orphans() {
	if !d.indexes {
		return
	}
	for _, f := range d.files {
		if f.kind != lint.KindURLSet && f.kind != lint.KindText || d.isListed(f.name) {
			continue
		}
		d.k.add(lint.Finding{Severity: lint.Warning, File: d.path(f.name), Code: "document-orphan"}, "is named by no index and no robots.txt of the folder")
	}
}

// isListed reports whether a file, or another form of the same document, is named.
func (d *checkedDir) isListed(name string) bool {
	stem := strings.TrimSuffix(name, ".gz")
	for _, other := range []string{name, stem, stem + ".gz", strings.TrimSuffix(stem, ".txt"), strings.TrimSuffix(stem, ".txt") + ".xml"} {
		if d.listed[other] {
			return true
		}
	}
	return false
}
