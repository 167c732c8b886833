// Package outdir writes files into a folder as one generation: all of them are written
// aside first, and only then put in their places, one atomic rename each. It keeps a list
// of what it wrote, so that the next generation removes what it no longer needs, and
// nothing else.
package outdir

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// ManifestName is the file in a folder that lists what was written there.
	ManifestName = ".caddy-sitemap.json"

	tempPrefix = ".caddy-sitemap-"
	tempSuffix = ".tmp"

	maxManifest = 64 << 20
	version     = 1

	// A disk that is told of several files together does with them what takes as long as
	// one.
	syncsAtATime = 32

	renameTries = 5
	renameWait  = 50 * time.Millisecond
)

var (
	// ErrBusy says that another process is writing into the folder.
	ErrBusy = errors.New("another build is writing there")

	// ErrDamaged says that the manifest cannot be understood.
	ErrDamaged = errors.New("the list of what was written is damaged")

	// ErrForeign says that a file is in the way that was not written by a Folder.
	ErrForeign = errors.New("the file is there already and was not written by a build")
)

// manifest is the content of ManifestName.
type manifest struct {
	Version int             `json:"version"`
	Note    json.RawMessage `json:"note,omitempty"`

	// The SHA-256 that each may have, in hexadecimal. Those that are not only the
	// folder's own are never removed.
	Files  map[string][]string `json:"files,omitempty"`
	Merged map[string][]string `json:"merged,omitempty"`
}

// Folder is a folder that files are written into, by one process at a time.
type Folder struct {
	dir    string
	made   []string // folders that were not there, the outermost first
	lock   io.Closer
	was    manifest
	staged []staged
	force  bool

	syncs   chan struct{} // slots
	group   sync.WaitGroup
	mu      sync.Mutex
	unsaved error // why a staged file is not safe on the disk
}

// staged is a file that waits to be put in its place.
type staged struct {
	name string
	temp string // path; "": what is there says the same already
	sum  string
	size int64
	own  bool // is removed once it is no longer needed
}

// Open makes a folder if there is none, and takes hold of it until Close. Force lets files
// be replaced that others wrote, and takes a damaged manifest for an empty one. The error
// wraps ErrBusy or ErrDamaged, or says that the folder cannot be made, read or written into.
func Open(dir string, force bool) (*Folder, error) {
	f := &Folder{dir: dir, force: force, syncs: make(chan struct{}, syncsAtATime)}
	err := f.makeFolder(dir)
	if err == nil {
		if f.lock, err = hold(dir); err != nil {
			err = fmt.Errorf("%s: %w", dir, err)
		}
	}
	if errors.Is(err, ErrBusy) {
		return nil, err // whoever holds it needs what was made
	}
	if err != nil {
		f.removeMade()
		return nil, err
	}
	f.was, err = readManifest(f.path(ManifestName))
	if force && errors.Is(err, ErrDamaged) {
		err = nil
	}
	if err == nil {
		f.sweep()
		err = f.try()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// makeFolder makes a folder with those around it, and remembers which were not there.
func (f *Folder) makeFolder(path string) error {
	var missing []string
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		missing = append(missing, at)
	}
	slices.Reverse(missing)
	f.made = append(f.made, missing...)
	return os.MkdirAll(path, 0o777)
}

// removeMade removes the folders that were not there, save those that have something in
// them. It may be called again.
func (f *Folder) removeMade() {
	for _, path := range slices.Backward(f.made) {
		_ = os.Remove(path)
	}
}

// try finds out early whether files can be made in the folder.
func (f *Folder) try() error {
	path := f.path(tempName())
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("writing into %s: %w", f.dir, cause(err))
	}
	return errors.Join(file.Close(), os.Remove(path))
}

// Note is what the last generation's Finish was given; nil: there was none.
func (f *Folder) Note() json.RawMessage { return f.was.Note }

// readManifest reads a manifest; one that is not there is empty.
func readManifest(path string) (manifest, error) {
	file, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return manifest{}, nil
	}
	if err != nil {
		return manifest{}, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxManifest))
	if err != nil {
		return manifest{}, err
	}
	m, err := decodeManifest(data)
	if err != nil {
		return manifest{}, fmt.Errorf("reading %s: %w: %w", path, ErrDamaged, err)
	}
	return m, nil
}

// openRegular opens a file, and nothing that a reader could wait at.
func openRegular(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is in the way: it is no regular file", path)
	}
	return os.Open(path)
}

// decodeManifest takes no name but of files in the folder.
func decodeManifest(data []byte) (m manifest, err error) {
	if err := json.Unmarshal(data, &m); err != nil {
		return m, err
	}
	if m.Version != version {
		return m, fmt.Errorf("it is of version %d, and %d is known", m.Version, version)
	}
	for name := range either(m.Files, m.Merged) {
		if !isName(name) {
			return m, fmt.Errorf("%q is no name of a file in it", name)
		}
	}
	return m, nil
}

func isName(name string) bool {
	return name != "." && fs.ValidPath(name) && filepath.IsLocal(filepath.FromSlash(name))
}

// sweep removes what builds left behind that were killed.
func (f *Folder) sweep() {
	folders := map[string]bool{f.dir: true}
	for name := range f.was.Files {
		folders[filepath.Dir(f.path(name))] = true
	}
	for folder := range folders {
		f.sweepFolder(folder)
	}
}

func (f *Folder) sweepFolder(folder string) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if e.Type().IsRegular() && isTemp(e.Name()) {
			_ = os.Remove(filepath.Join(folder, e.Name()))
		}
	}
}

// isTemp reports whether a name is one that tempName makes.
func isTemp(name string) bool {
	rest, begins := strings.CutPrefix(name, tempPrefix)
	middle, ends := strings.CutSuffix(rest, tempSuffix)
	return begins && ends && len(middle) == 26
}

func tempName() string { return tempPrefix + rand.Text() + tempSuffix }

func (f *Folder) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// Stage writes a file aside. Its name is a path within the folder, with slashes. The error
// wraps ErrForeign where a file is in the way that must not be replaced.
func (f *Folder) Stage(name string, write func(io.Writer) error) error {
	s, file, err := f.aside(name, write)
	if err != nil {
		return err
	}
	s.own = true
	there, err := f.sumOf(name)
	switch {
	case err != nil:
		return errors.Join(err, discard(file))
	case there == s.sum:
		s.temp = ""
		f.staged = append(f.staged, s)
		return discard(file)
	case there != "" && !f.wrote(name, there) && !f.force:
		return errors.Join(fmt.Errorf("%s: %w", f.path(name), ErrForeign), discard(file))
	}
	f.staged = append(f.staged, s)
	f.save(name, file)
	return nil
}

// StageOver is Stage for a file that is not the folder's own: what is there must still be
// the bytes that the new ones were made of, nil: nothing, and it is never removed later.
func (f *Folder) StageOver(name string, was, content []byte) error {
	there, err := f.sumOf(name)
	if err != nil {
		return err
	}
	if sum := sumOf(content); there == sum {
		f.staged = append(f.staged, staged{name: name, sum: sum, size: int64(len(content))})
		return nil
	}
	made := ""
	if was != nil {
		made = sumOf(was)
	}
	if there != "" && there != made && !f.wrote(name, there) && !f.force {
		return fmt.Errorf("%s: %w", f.path(name), ErrForeign)
	}
	s, file, err := f.aside(name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
	if err == nil {
		f.staged = append(f.staged, s)
		f.save(name, file)
	}
	return err
}

// save writes a file through to the disk and closes it, behind what else there is to do.
func (f *Folder) save(name string, file *os.File) {
	f.syncs <- struct{}{}
	f.group.Go(func() {
		err := errors.Join(file.Sync(), file.Close())
		<-f.syncs
		if err == nil {
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.unsaved = errors.Join(f.unsaved, fmt.Errorf("writing %s: %w", f.path(name), cause(err)))
	})
}

// saved waits until all is on the disk.
func (f *Folder) saved() error {
	f.group.Wait()
	return f.unsaved
}

// aside writes a temporary file beside the place of its name, which is still open.
func (f *Folder) aside(name string, write func(io.Writer) error) (s staged, file *os.File, err error) {
	if !isName(name) {
		return s, nil, fmt.Errorf("%q is no name of a file in a folder", name)
	}
	folder := filepath.Dir(f.path(name))
	if err := f.makeFolder(folder); err != nil {
		return s, nil, err
	}
	s = staged{name: name, temp: filepath.Join(folder, tempName())}
	if file, err = os.OpenFile(s.temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, f.mode(name)); err != nil {
		return s, nil, fmt.Errorf("writing %s: %w", f.path(name), cause(err))
	}
	hash := sha256.New()
	counted := &counter{w: io.MultiWriter(file, hash)}
	if err := write(counted); err != nil {
		return s, nil, errors.Join(fmt.Errorf("writing %s: %w", f.path(name), cause(err)), discard(file))
	}
	s.sum, s.size = hex.EncodeToString(hash.Sum(nil)), counted.n
	return s, file, nil
}

// discard removes a temporary file that is open.
func discard(file *os.File) error { return errors.Join(file.Close(), os.Remove(file.Name())) }

// cause is an error without the name of a temporary file.
func cause(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// mode is that of the file in whose place another one comes.
func (f *Folder) mode(name string) fs.FileMode {
	if info, err := os.Stat(f.path(name)); err == nil && info.Mode().IsRegular() {
		return info.Mode().Perm()
	}
	return 0o666
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func removeTemp(path string) error {
	if path == "" {
		return nil
	}
	return os.Remove(path)
}

// wrote reports whether an earlier generation wrote a file of that content.
func (f *Folder) wrote(name, sum string) bool {
	return slices.Contains(f.was.Files[name], sum) || slices.Contains(f.was.Merged[name], sum)
}

// sumOf is the SHA-256 of what a name has; "": there is nothing.
func (f *Folder) sumOf(name string) (string, error) {
	path := f.path(name)
	file, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Result is what a generation came to.
type Result struct {
	Written   []string // in the order in which they were put in their places
	Unchanged []string
	Removed   []string
	Kept      []string // no longer needed, and not removed since somebody else changed them
	Bytes     int64    // of all files of the generation
}

// Finish puts the staged files in their places, in the order in which they were staged,
// and removes those of earlier generations that were not staged. note is kept for the next
// one. After an error some files may be in their places and others not; a further build
// knows all of them.
func (f *Folder) Finish(note any) (Result, error) {
	var r Result
	encoded, err := json.Marshal(note)
	if err != nil {
		return r, err
	}
	next := manifest{Version: version, Note: encoded, Files: make(map[string][]string), Merged: make(map[string][]string)}
	maps.Copy(next.Merged, f.was.Merged)
	for _, s := range f.staged {
		if s.own {
			next.Files[s.name] = []string{s.sum}
		} else {
			next.Merged[s.name] = []string{s.sum}
		}
	}
	if err := errors.Join(f.announce(next), f.saved()); err != nil {
		return r, err
	}
	for i := range f.staged {
		s := &f.staged[i]
		r.Bytes += s.size
		if s.temp == "" {
			r.Unchanged = append(r.Unchanged, s.name)
			continue
		}
		if err := rename(s.temp, f.path(s.name)); err != nil {
			return r, err
		}
		s.temp = ""
		r.Written = append(r.Written, s.name)
	}
	if err := f.remove(&next, &r); err != nil {
		return r, err
	}
	if f.was.equal(next) && len(r.Written) == 0 {
		return r, nil
	}
	if err := f.writeManifest(next); err != nil {
		return r, err
	}
	return r, f.syncFolders()
}

// announce notes that files may be those of the next generation from now on, so that
// they are known as such if it does not come to its end.
func (f *Folder) announce(next manifest) error {
	both := manifest{Version: version, Note: f.was.Note, Files: either(f.was.Files, next.Files), Merged: either(f.was.Merged, next.Merged)}
	if f.was.equal(both) {
		return nil
	}
	return f.writeManifest(both)
}

// either has the sums of both.
func either(was, next map[string][]string) map[string][]string {
	both := make(map[string][]string, len(next))
	maps.Copy(both, was)
	for name, sums := range next {
		for _, sum := range sums {
			if !slices.Contains(both[name], sum) {
				both[name] = append(slices.Clip(both[name]), sum)
			}
		}
	}
	return both
}

func (m manifest) equal(o manifest) bool {
	return m.Version == o.Version && bytes.Equal(m.Note, o.Note) &&
		maps.EqualFunc(m.Files, o.Files, slices.Equal[[]string]) && maps.EqualFunc(m.Merged, o.Merged, slices.Equal[[]string])
}

func (f *Folder) writeManifest(m manifest) error {
	s, file, err := f.aside(ManifestName, func(w io.Writer) error { return json.NewEncoder(w).Encode(m) })
	if err != nil {
		return err
	}
	f.save(ManifestName, file)
	if err = f.saved(); err == nil {
		err = rename(s.temp, f.path(ManifestName))
	}
	if err != nil {
		return errors.Join(err, removeTemp(s.temp))
	}
	return nil
}

// remove removes the files of earlier generations that the next one lacks.
func (f *Folder) remove(next *manifest, r *Result) error {
	for _, name := range slices.Sorted(maps.Keys(f.was.Files)) {
		if _, needed := next.Files[name]; needed {
			continue
		}
		sum, err := f.sumOf(name)
		switch {
		case err != nil || sum != "" && !f.wrote(name, sum):
			r.Kept = append(r.Kept, name)
			continue
		case sum == "":
			continue
		}
		if err := os.Remove(f.path(name)); err != nil {
			return err
		}
		r.Removed = append(r.Removed, name)
	}
	return nil
}

// rename replaces a file. On Windows, one that somebody reads cannot be for a moment.
func rename(from, to string) (err error) {
	for try := range renameTries {
		if err = os.Rename(from, to); err == nil || !errors.Is(err, fs.ErrPermission) || os.PathSeparator == '/' {
			return err
		}
		time.Sleep(renameWait << try)
	}
	return err
}

func (f *Folder) syncFolders() error {
	synced := map[string]bool{f.dir: true}
	if err := syncFolder(f.dir); err != nil {
		return err
	}
	for _, s := range f.staged {
		folder := filepath.Dir(f.path(s.name))
		if synced[folder] {
			continue
		}
		synced[folder] = true
		if err := syncFolder(folder); err != nil {
			return err
		}
	}
	return nil
}

// Close removes what was staged and not put in its place, and folders that were made for
// nothing, and gives the folder back.
func (f *Folder) Close() error {
	f.group.Wait()
	var errs []error
	for _, s := range f.staged {
		errs = append(errs, removeTemp(s.temp))
	}
	f.staged = nil
	f.removeMade() // while nobody else can begin to write there
	errs = append(errs, f.lock.Close())
	if lockInside {
		f.removeMade()
	}
	return errors.Join(errs...)
}
