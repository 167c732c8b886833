// Package export writes a site's documents into a folder as one generation: all of them
// are written aside first, and then put in their places, one atomic rename each. It keeps
// no list of what it wrote: documents of earlier generations are known by their names and
// by what they begin with.
package export

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"

	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

const (
	tempPrefix = ".caddy-sitemap-"
	lockName   = ".caddy-sitemap.lock" // on Windows, where a folder cannot be locked

	syncsAtATime = 32 // a disk takes for several together as long as for one

	renameTries = 5
	renameWait  = 50 * time.Millisecond
)

var (
	// ErrBusy says that another process is writing into the folder.
	ErrBusy = errors.New("another build is writing there")

	// ErrForeign says that a file is in the way that was not written by a Folder.
	ErrForeign = errors.New("the file is there already and was not written by a build")
)

// Folder is a folder that a site's files are written into, by one process at a time.
// Names are relative to it, with slashes; a link in a path never leads out of it.
type Folder struct {
	dir    string
	root   *os.Root
	index  string         // name of the index, or of the only document
	own    *regexp.Regexp // names, beside the index, of a site's documents
	force  bool
	made   []string // folders that were not there, the outermost first
	lock   *flock.Flock
	staged []staged
	group  errgroup.Group
}

// staged is a file that waits to be put in its place.
type staged struct {
	name string
	temp string // "": what is there says the same already
	size int64
}

// Open makes a folder if there is none, and holds it until Close. index is the name of
// the index to be written there. Force lets files be replaced that others wrote. The error
// wraps ErrBusy, or says that the folder cannot be made, read or written into.
func Open(dir, index string, force bool) (*Folder, error) {
	own := regexp.QuoteMeta(strings.TrimSuffix(path.Base(index), ".xml")) + `(-[0-9a-f]{12})?\.xml(\.gz)?`
	f := &Folder{dir: dir, index: index, own: regexp.MustCompile("^" + own + "$"), force: force}
	f.group.SetLimit(syncsAtATime)
	err := f.open()
	if errors.Is(err, ErrBusy) {
		return nil, err // whoever holds it needs what was made
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Folder) open() (err error) {
	inner := filepath.Dir(f.path(f.index))
	for at := filepath.Clean(inner); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		f.made = append([]string{at}, f.made...)
	}
	if err := os.MkdirAll(inner, 0o777); err != nil {
		return err
	}
	if err := f.hold(); err != nil {
		return err
	}
	if f.root, err = os.OpenRoot(f.dir); err != nil {
		return err
	}
	for _, name := range f.names() { // what builds left behind that were killed
		if strings.HasPrefix(path.Base(name), tempPrefix) {
			_ = f.root.Remove(name)
		}
	}
	// Find out early whether files can be made.
	temp, file, err := f.create(f.index)
	if err != nil {
		return fmt.Errorf("writing into %s: %w", f.dir, cause(err))
	}
	return errors.Join(file.Close(), f.root.Remove(temp))
}

// hold locks the folder. The lock ends with the process.
func (f *Folder) hold() error {
	f.lock = flock.New(f.dir, flock.SetFlag(os.O_RDONLY))
	if runtime.GOOS == "windows" {
		f.lock = flock.New(filepath.Join(f.dir, lockName))
	}
	locked, err := f.lock.TryLock()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil // the file system has no locks
	case err == nil && !locked:
		err = ErrBusy
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.dir, err)
	}
	return nil
}

func (f *Folder) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// names are the regular files beside the index.
func (f *Folder) names() (names []string) {
	folder := path.Dir(f.index)
	entries, _ := fs.ReadDir(f.root.FS(), folder)
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, path.Join(folder, e.Name()))
		}
	}
	return names
}

// read is the content of a file, decompressed where its name ends in .gz; nil if there is
// none. What a reader could wait at is an error.
func (f *Folder) read(name string) ([]byte, error) {
	info, err := f.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is in the way: it is no regular file", f.path(name))
	}
	return f.root.ReadFile(name)
}

// isOwn reports whether the content of a file is a document that a build wrote.
func isOwn(name string, content []byte) bool {
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			return false
		}
		head := make([]byte, 4<<10)
		n, _ := io.ReadFull(z, head)
		content = head[:n]
	}
	return sitemapxml.IsOwn(content)
}

var childName = regexp.MustCompile(`<sitemap><loc>[^<]*/([^/<]+)</loc>`)

// Pages is how many pages the documents in the folder list.
func (f *Folder) Pages() int {
	content, _ := f.read(f.index)
	if !sitemapxml.IsOwn(content) {
		return 0
	}
	n := countPages(content)
	for _, child := range childName.FindAllSubmatch(content, -1) {
		shard, _ := f.read(path.Join(path.Dir(f.index), string(child[1])))
		n += countPages(shard)
	}
	return n
}

func countPages(document []byte) int { return bytes.Count(document, []byte("\n<url>")) }

// Stage writes a document aside. The error wraps ErrForeign where a file is in the way
// that must not be replaced.
func (f *Folder) Stage(name string, write func(io.Writer) error) error {
	return f.stage(name, write, func(there []byte) bool { return isOwn(name, there) })
}

// Replace is Stage for any file. mayReplace says whether what is there may go.
func (f *Folder) Replace(name string, content []byte, mayReplace func(there []byte) bool) error {
	return f.stage(name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}, mayReplace)
}

func (f *Folder) stage(name string, write func(io.Writer) error, mayReplace func([]byte) bool) error {
	there, err := f.read(name)
	if err != nil {
		return err
	}
	temp, file, err := f.create(name)
	if err != nil {
		return f.writing(name, err)
	}
	f.staged = append(f.staged, staged{name: name, temp: temp})
	s := &f.staged[len(f.staged)-1]
	same := &comparison{rest: there}
	if err := write(io.MultiWriter(file, same)); err != nil {
		return errors.Join(f.writing(name, err), file.Close())
	}
	s.size = same.size
	switch {
	case there != nil && same.equal():
		s.temp = ""
		return errors.Join(file.Close(), f.root.Remove(temp))
	case there != nil && !f.force && !mayReplace(there):
		return errors.Join(fmt.Errorf("%s: %w", f.path(name), ErrForeign), file.Close())
	}
	f.group.Go(func() error {
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return f.writing(name, err)
		}
		return nil
	})
	return nil
}

// create makes a temporary file beside the place of a name, with the mode of what is there.
func (f *Folder) create(name string) (temp string, file *os.File, err error) {
	mode := fs.FileMode(0o666)
	if info, err := f.root.Stat(name); err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
	}
	temp = path.Join(path.Dir(name), tempPrefix+rand.Text()+".tmp")
	file, err = f.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	return temp, file, err
}

func (f *Folder) writing(name string, err error) error {
	return fmt.Errorf("writing %s: %w", f.path(name), cause(err))
}

// cause is an error without the name of a temporary file.
func cause(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// comparison compares what is written to it.
type comparison struct {
	rest   []byte
	size   int64
	differ bool
}

func (c *comparison) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	rest, ok := bytes.CutPrefix(c.rest, p)
	c.rest = rest
	c.differ = c.differ || !ok
	return len(p), nil
}

func (c *comparison) equal() bool { return !c.differ && len(c.rest) == 0 }

// Result is what a generation came to.
type Result struct {
	Written   []string // in the order in which they were put in their places
	Unchanged []string
	Removed   []string
	Kept      []string // no longer needed, and not removed since somebody else changed them
	Bytes     int64    // of all files of the generation
}

// Finish puts the staged files in their places, in the order in which they were staged,
// and removes documents of earlier generations that were not staged. After an error some
// files may be in their places and others not; a further build mends that.
func (f *Folder) Finish() (r Result, err error) {
	if err := f.group.Wait(); err != nil {
		return r, err
	}
	for i := range f.staged {
		s := &f.staged[i]
		r.Bytes += s.size
		if s.temp == "" {
			r.Unchanged = append(r.Unchanged, s.name)
			continue
		}
		if err := f.rename(s.temp, s.name); err != nil {
			return r, err
		}
		s.temp = ""
		r.Written = append(r.Written, s.name)
	}
	for _, name := range f.names() {
		if !f.own.MatchString(path.Base(name)) || slices.ContainsFunc(f.staged, func(s staged) bool { return s.name == name }) {
			continue
		}
		if content, err := f.read(name); err != nil || !isOwn(name, content) {
			r.Kept = append(r.Kept, name)
			continue
		}
		if err := f.root.Remove(name); err != nil {
			return r, err
		}
		r.Removed = append(r.Removed, name)
	}
	if folder, err := f.root.Open(path.Dir(f.index)); err == nil && len(r.Written)+len(r.Removed) > 0 {
		_ = folder.Sync() // which not every file system can
		_ = folder.Close()
	}
	return r, nil
}

// rename replaces a file. On Windows, one that somebody reads cannot be for a moment.
func (f *Folder) rename(from, to string) (err error) {
	for try := range renameTries {
		if err = f.root.Rename(from, to); err == nil || runtime.GOOS != "windows" || !errors.Is(err, fs.ErrPermission) {
			return err
		}
		time.Sleep(renameWait << try)
	}
	return err
}

// Close removes what was staged and not put in its place, and folders that were made for
// nothing, and gives the folder back.
func (f *Folder) Close() error {
	_ = f.group.Wait() // whose error Finish returns
	var errs []error
	for _, s := range f.staged {
		if s.temp != "" {
			errs = append(errs, f.root.Remove(s.temp))
		}
	}
	if f.root != nil {
		errs = append(errs, f.root.Close())
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	if runtime.GOOS == "windows" {
		_ = os.Remove(filepath.Join(f.dir, lockName))
	}
	for _, made := range slices.Backward(f.made) {
		_ = os.Remove(made) // only empty ones
	}
	return errors.Join(errs...)
}
