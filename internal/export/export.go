// Package export writes a site's documents into a folder that a static host serves. A generation is written aside in
// full and then renamed into place, file by file, so that no file refers to one that is not there. It keeps no list of
// what it wrote: a file is its own by name and content.
package export

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

const (
	aside      = ".caddy-sitemap.tmp" // the folder in which files are written
	robotsName = "robots.txt"
)

var (
	// ErrBusy says that another process is writing into the folder.
	ErrBusy = errors.New("another build is writing there")

	// ErrForeign says that a file is in the way that was not written by a Folder.
	ErrForeign = errors.New("the file exists and was not written by a build")
)

// Folder is a folder that a site's files are written into, by one process at a time. No link in it leads out of it.
type Folder struct {
	Site
	LLMs string `json:"-"` // name of the document for language models, with slashes

	stem     string // name of the index without .xml, with slashes
	force    bool
	root     *os.Root
	lock     *flock.Flock
	before   int      // pages of the generation that is there
	sections []string // names of its documents of sections
	created  []string // staged files that are new
	replaced []string // staged files that replace others
}

// Open makes a folder if there is none, and holds it until Close. index is the name of
// the index in it, which ends in .xml. With force, files are replaced that others wrote.
// The error wraps ErrBusy, or says that the folder cannot be made, read or written.
func Open(dir, index string, force bool) (*Folder, error) {
	f := &Folder{
		Site:  newSite(dir),
		LLMs:  path.Base(document.LLMs),
		stem:  strings.TrimSuffix(index, ".xml"),
		force: force,
	}
	if err := f.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the output folder: %w", err), f.Close())
	}
	return f, nil
}

func (f *Folder) open() error {
	if err := os.MkdirAll(f.Out, 0o777); err != nil {
		return err
	}
	// Where a folder cannot be locked, as on Windows, builds are not kept apart.
	lock := flock.New(f.Out, flock.SetFlag(os.O_RDONLY))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		return fmt.Errorf("%s: %w", f.Out, ErrBusy)
	}
	f.lock = lock
	f.root, err = os.OpenRoot(f.Out)
	if err != nil {
		return err
	}
	if err := f.prepare(); err != nil {
		return fmt.Errorf("writing into %s: %w", f.Out, err)
	}
	return f.readBefore()
}

// prepare finds out whether the folder can be written, before a site is crawled.
func (f *Folder) prepare() error {
	// A build that was killed may have left files: what is written aside is none of its files.
	if err := f.root.RemoveAll(aside); err != nil {
		return err
	}
	if err := f.root.MkdirAll(path.Dir(f.stem), 0o777); err != nil {
		return err
	}
	if err := f.root.Mkdir(aside, 0o777); err != nil {
		return err
	}
	return f.root.Remove(aside) // Stage makes it again: until then, nothing is left behind
}

// readBefore learns from its index which generation is there.
func (f *Folder) readBefore() error {
	index, _, err := f.read(f.stem + ".xml")
	if err != nil {
		return err
	}
	if !isOwn(index) {
		return nil // Stage refuses to replace it
	}
	// A small site has no shards: the document of that name lists its pages itself.
	f.before = bytes.Count(index, []byte("\n<url>"))
	for _, child := range shardName.FindAllSubmatch(index, -1) {
		f.addBefore(string(child[1]))
	}
	return nil
}

// shardName finds the names of shards in an index, without .xml.
var shardName = regexp.MustCompile(`/([^/<]+)\.xml</loc>`)

// addBefore notes a shard of the generation that is there, by its name in the index.
func (f *Folder) addBefore(escaped string) {
	file := page.Unescape(html.UnescapeString(escaped)) + ".xml"
	name, ours := strings.CutPrefix(file, path.Base(f.stem))
	section := document.SectionOf(name)
	isShard := document.IsHashed(name) || document.CheckSectionName(section) == nil
	if !ours || !isShard {
		return
	}
	shard, _, _ := f.read(f.stem + name)
	f.before += bytes.Count(shard, []byte("\n<url>"))
	if section != "" {
		f.sections = append(f.sections, name, document.NameOfSection(section)) // the index of the section is not listed
	}
}

// documentName is how names of documents end after the stem, but for those of sections.
var documentName = regexp.MustCompile(`^((-[0-9a-f]{12}|-news)?\.xml|(-[0-9a-f]{32})?\.html|-html\.(css|js)|\.atom|\.css)(\.gz)?$`)

// mayRemove reports whether a file, whose name ends so after the stem, is removed if a build wrote it. What looks like a
// section may be the sitemap of another build, unless the index that was there has listed it.
func (f *Folder) mayRemove(suffix string) bool {
	return documentName.MatchString(suffix) || slices.Contains(f.sections, strings.TrimSuffix(suffix, ".gz"))
}

// read returns the content of a file and its permissions; nil: there is none. What cannot
// be replaced by a file is an error.
func (f *Folder) read(name string) ([]byte, fs.FileMode, error) {
	info, err := f.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0o666, nil
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%s exists and is not a regular file", f.path(name))
	}
	content, err := f.root.ReadFile(name)
	return content, info.Mode().Perm(), err
}

func (f *Folder) path(name string) string { return filepath.Join(f.Out, filepath.FromSlash(name)) }

// generator is near the beginning of all documents of a build.
var generator = regexp.MustCompile(
	`^/\* caddy-sitemap:|<(generator>|meta name="generator" content=")caddy-sitemap[<"]|` + document.Mark)

// beginning returns the first bytes of a document, compressed or not.
func beginning(content []byte) []byte {
	if z, err := gzip.NewReader(bytes.NewReader(content)); err == nil {
		content, _ = io.ReadAll(io.LimitReader(z, document.MaxBeginning))
	}
	return content[:min(len(content), document.MaxBeginning)]
}

// isOwn reports whether a build has written a document, compressed or not.
func isOwn(content []byte) bool { return generator.Match(beginning(content)) }

// Stage writes the documents of a snapshot aside. With compressed, each is written a second time as .gz. The error
// wraps ErrForeign, or says which file cannot be written, or that less than half of the pages would be left.
func (f *Folder) Stage(s *document.Set, compressed bool) error {
	if 2*s.Pages < f.before && !f.force {
		return fmt.Errorf("less than half of the pages would be left: %d instead of %d; --force writes it", s.Pages, f.before)
	}
	f.Pages = s.Pages
	f.Shards = max(len(s.Shards), 1)
	f.Sections = s.Sections()
	if err := f.root.MkdirAll(aside, 0o777); err != nil {
		return fmt.Errorf("writing into %s: %w", f.Out, err)
	}
	// An index comes after the documents that it names: they are renamed into place in this order.
	for _, d := range s.All() {
		if err := f.stageDocument(d, compressed); err != nil {
			return err
		}
	}
	return nil
}

// stageDocument writes a document aside, and its compressed form.
func (f *Folder) stageDocument(d *document.Document, compressed bool) error {
	name := f.nameOf(d)
	givesWay := d.Name == document.Stylesheet || d.Name == document.LLMs
	if givesWay {
		there, _, _ := f.read(name)
		isForeign := there != nil && !isOwn(there)
		if isForeign {
			return nil // a site keeps its own, as with a server
		}
	}
	open, err := d.Open()
	if err != nil {
		return err
	}
	content, err := io.ReadAll(open)
	if err := errors.Join(err, open.Close()); err != nil {
		return err
	}
	if err := f.stage(name, content, isOwn); err != nil {
		return err
	}
	if !compressed {
		return nil
	}
	return f.stage(name+".gz", d.Gzip, isOwn)
}

// nameOf is the name of a document's file.
func (f *Folder) nameOf(d *document.Document) string {
	if d.Name == document.LLMs {
		return f.LLMs
	}
	return f.stem + d.Name
}

// StageRobots writes robots.txt aside, which names the sitemap. It replaces one that names
// it, too, or that lacks only Sitemap lines. A feed or a news sitemap that Finish will remove is not named.
func (f *Folder) StageRobots(content []byte) error {
	for _, suffix := range []string{document.Feed, document.NewsSitemap} {
		name := f.stem + suffix
		isStaged := slices.Contains(slices.Concat(f.created, f.replaced, f.Unchanged), name)
		there, _, _ := f.read(name)
		if isStaged || !isOwn(there) {
			continue
		}
		url := strings.TrimSuffix(f.Sitemap, ".xml") + suffix
		line := regexp.MustCompile(`(?m)^Sitemap: ` + regexp.QuoteMeta(url) + `\r?\n`)
		content = line.ReplaceAll(content, nil)
	}
	return f.stage(robotsName, content, func(there []byte) bool {
		namesSitemap := slices.Contains(robotstxt.Sitemaps(there), f.Sitemap)
		merged := robotstxt.Merge(there, robotstxt.Sitemaps(content)...)
		lacksOnlyLines := len(there) == 0 || bytes.Equal(merged, content)
		return namesSitemap || lacksOnlyLines
	})
}

func (f *Folder) stage(name string, content []byte, mayReplace func(there []byte) bool) error {
	f.Bytes += int64(len(content))
	there, mode, err := f.read(name)
	switch {
	case err != nil:
		return err
	case there != nil && bytes.Equal(there, content):
		f.Unchanged = append(f.Unchanged, name)
		return nil
	case there != nil && !f.force && !mayReplace(there):
		return fmt.Errorf("%s: %w; --force replaces it", f.path(name), ErrForeign)
	}
	if err := f.write(asideName(name), content, mode); err != nil {
		return fmt.Errorf("writing %s: %w", f.path(name), err)
	}
	if there == nil {
		f.created = append(f.created, name)
	} else {
		f.replaced = append(f.replaced, name)
	}
	return nil
}

func (f *Folder) write(name string, content []byte, mode fs.FileMode) error {
	file, err := f.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	// A file that is renamed before its content is on the disk may be empty after a crash.
	return errors.Join(err, file.Sync(), file.Close())
}

func asideName(name string) string { return path.Join(aside, path.Base(name)) }

// Finish renames the staged files into place, in the order in which they were staged, but
// new ones first, and removes documents that are no longer needed. After an error some files
// may be in place and others not; the next build mends that.
func (f *Folder) Finish() error {
	// What replaces other files, such as the index, may name what is new: that has to be there first.
	for _, name := range slices.Concat(f.created, f.replaced) {
		if err := f.root.Rename(asideName(name), name); err != nil {
			return fmt.Errorf("writing into %s: %w", f.Out, err)
		}
		f.Written = append(f.Written, name)
	}
	if err := f.removeOld(); err != nil {
		return fmt.Errorf("removing old files from %s: %w", f.Out, err)
	}
	return nil
}

// removeOld removes documents of builds that this one has not.
func (f *Folder) removeOld() error {
	folder := path.Dir(f.stem)
	entries, err := fs.ReadDir(f.root.FS(), folder)
	names := []string{f.LLMs, f.LLMs + ".gz"}
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		suffix, ok := strings.CutPrefix(name, f.stem)
		if ok && f.mayRemove(suffix) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		isNeeded := slices.Contains(f.Written, name) || slices.Contains(f.Unchanged, name)
		if isNeeded || !f.isOld(name) {
			continue
		}
		err = errors.Join(err, f.root.Remove(name))
		f.Removed = append(f.Removed, name)
	}
	return err
}

// isOld reports whether a build of the same sitemap wrote a file.
func (f *Folder) isOld(name string) bool {
	content, _, _ := f.read(name)
	isLLMs := name == f.LLMs || name == f.LLMs+".gz"
	// The name of this one does not depend on that of the sitemap: it is ours if it has a link to ours.
	if isLLMs && !bytes.Contains(beginning(content), []byte("("+f.Sitemap+")")) {
		return false
	}
	return isOwn(content)
}

// Close removes what was written aside and gives the folder back.
func (f *Folder) Close() error {
	var errs []error
	if f.root != nil {
		errs = append(errs, f.root.RemoveAll(aside), f.root.Close())
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	return errors.Join(errs...)
}
