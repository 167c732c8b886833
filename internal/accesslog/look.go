package accesslog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// manyNames is how many names of a folder are examined at a time.
const manyNames = 4096

// target is a pattern.
type target struct {
	folder, name string
	prefix       string // what every name of it begins with
}

func newTarget(pattern string) target {
	folder, name := filepath.Split(filepath.Clean(pattern))
	t := target{folder: filepath.Clean(folder), name: name}
	// Of access.log, access-2026-11-21.log is to be examined.
	t.prefix = strings.TrimSuffix(name, filepath.Ext(name))
	if i := strings.IndexAny(t.prefix, `*?[\`); i >= 0 {
		t.prefix = t.prefix[:i]
	}
	return t
}

func (t target) matches(name string) bool {
	if name == t.name {
		return true
	}
	ok, err := filepath.Match(t.name, name)
	return ok && err == nil
}

// found is a file that was seen in a folder.
type found struct {
	path    string
	log     string
	age     age
	packing packing
	fi      fs.FileInfo
	id      id
	live    bool
	twin    bool // it stands beside itself uncompressed, and is perhaps being made of it
}

// look finds out which files there are and which of them are known.
func (f *Follower) look() {
	f.passedOver = make(map[string]int)
	f.errs = make(map[string]error)
	seen := f.list()
	known := make(map[any]*file, len(f.files))
	for _, x := range f.files {
		known[x.key()] = x
	}
	was := f.files
	f.files = nil
	kept := make(map[*file]bool, len(was))
	refused := make(map[string]bad)
	var unsure []*file
	for _, s := range seen {
		x := known[s.key()]
		if x == nil || kept[x] || !f.still(x, s) {
			if x = f.examine(s, refused); x != nil {
				unsure = append(unsure, x)
			}
			continue
		}
		kept[x] = true
		if x.copied {
			unsure = append(unsure, x)
			continue
		}
		f.files = append(f.files, x)
	}
	f.bad = refused
	for _, x := range was {
		if !kept[x] {
			f.part(x)
		}
	}
	f.claim(unsure)
	f.gone = newest(f.gone, maxGone)
	f.arrange()
}

// key is what a file is found by: the system's, or where that does not tell, its
// path. Its head has the last word.
func (x *file) key() any {
	if x.id != (id{}) {
		return x.id
	}
	return x.path
}

func (s found) key() any {
	if s.id != (id{}) {
		return s.id
	}
	return s.path
}

// still reports whether a file that was found is one that is known, and takes note
// of what is new about it.
func (f *Follower) still(x *file, s found) bool {
	if x.packing != s.packing {
		return false
	}
	x.note(s.fi)
	if x.fresh {
		head, err := x.readHead(s)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errReplaced) {
			return false
		}
		if len(x.head) == 0 && len(head) > 0 && x.handle == nil {
			return false // it may be any
		}
		if err == nil || len(head) > len(x.head) {
			if !bytes.HasPrefix(head, x.head) && !wasCutOff(x.head, head) {
				return false
			}
			x.head = head
		}
	}
	if x.packing == plain && x.size < x.offset {
		// The head is the same: its end was cut off.
		x.offset, x.within = x.size, false
	}
	if x.live && !s.live || x.err != nil && x.packing == plain {
		x.fresh = true
	}
	if s.live {
		x.done = false
	}
	x.path, x.log, x.age, x.live = s.path, s.log, s.age, s.live
	return true
}

// wasCutOff reports whether a head became shorter, but for all that is the same: it
// has a whole line.
func wasCutOff(before, head []byte) bool {
	return bytes.HasPrefix(before, head) && bytes.IndexByte(head, '\n') >= 0
}

func (x *file) readHead(s found) ([]byte, error) {
	if x.handle != nil {
		return plainHead(x.handle)
	}
	return headOf(s.path, s.id, s.packing)
}

// examine reads the head of a file that is not known. A file without one is passed
// over.
func (f *Follower) examine(s found, refused map[string]bad) *file {
	if b, ok := f.bad[s.path]; ok && b.still(s) {
		refused[s.path] = b
		return nil
	}
	head, err := headOf(s.path, s.id, s.packing)
	switch {
	case err == nil || len(head) > 0 && s.packing != plain:
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, errReplaced) || s.twin:
		f.again = true
		return nil
	default:
		refused[s.path] = bad{s.id, s.fi.Size(), s.fi.ModTime(), err}
		return nil
	}
	return &file{
		path: s.path, log: s.log, age: s.age, packing: s.packing, id: s.id,
		size: s.fi.Size(), time: s.fi.ModTime(), live: s.live, head: head, fresh: true,
	}
}

// still reports whether it would be no better to try again.
func (b bad) still(s found) bool {
	return !b.mayPass() && b.id == s.id && b.size == s.fi.Size() && b.time.Equal(s.fi.ModTime())
}

// mayPass reports whether the error may go without a change of the file.
func (b bad) mayPass() bool {
	var e *fs.PathError
	return errors.As(b.err, &e)
}

// part decides about a file that was not found: it was renamed, removed or written
// anew. If it is held open, it is read to its end.
func (f *Follower) part(x *file) {
	if x.handle == nil || x.done {
		f.lose(x)
		return
	}
	fi, err := x.handle.Stat()
	if err != nil || fi.Size() < x.offset || !f.sameHead(x, x.handle) {
		f.lose(x)
		return
	}
	x.note(fi)
	if x.path != "" {
		x.path, x.live, x.fresh, x.age = "", false, true, age{style: unnamed}
	}
	f.files = append(f.files, x)
}

// claim finds out which files that are gone those are that are new.
func (f *Follower) claim(unsure []*file) {
	// Of two with the same head, the one that grows is no copy of the other, one
	// that is compressed was made of one that is not, and a copy is not longer.
	slices.SortStableFunc(unsure, func(a, b *file) int {
		return cmp.Or(order(!a.live, !b.live), order(a.packing != plain, b.packing != plain), cmp.Compare(b.size, a.size))
	})
	var rest []*file
	for _, x := range unsure {
		i := slices.IndexFunc(f.gone, func(p Position) bool { return x.id != id{} && p.id() == x.id && p.begins(x.head) })
		if i < 0 {
			rest = append(rest, x)
			continue
		}
		f.adopt(x, i)
		f.files = append(f.files, x)
	}
	for _, x := range rest {
		f.place(x)
		f.files = append(f.files, x)
	}
}

func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// place finds out where to begin with a file that nothing else tells about than its
// head.
func (f *Follower) place(x *file) {
	before := x.original
	if o := f.originalOf(x); o != nil {
		x.original, x.copied = o, true
		return
	}
	x.copied, x.original = false, nil
	switch i := f.positionOf(x); {
	case i >= 0:
		f.adopt(x, i)
	case before != nil:
		x.goOn(before.offset, false)
	case x.live:
		f.succeed(x)
	}
}

// adopt goes on with a file where one that is gone was left.
func (f *Follower) adopt(x *file, i int) {
	p := f.gone[i]
	f.gone = slices.Delete(f.gone, i, i+1)
	x.copied, x.original = false, nil
	x.goOn(p.Offset, p.Within)
}

func (x *file) goOn(offset int64, within bool) {
	x.offset, x.within, x.fresh, x.done = offset, within, true, false
	if x.packing == plain && x.size < x.offset {
		x.offset, x.within = x.size, false
	}
}

// succeed goes on with a file that an editor put in the place of one that is still
// held open.
func (f *Follower) succeed(x *file) {
	i := slices.IndexFunc(f.files, func(o *file) bool {
		return o.path == "" && o.log == x.log && len(o.head) > 0 && bytes.HasPrefix(x.head, o.head)
	})
	if i < 0 {
		return
	}
	o := f.files[i]
	f.files = slices.Delete(f.files, i, i+1)
	o.close()
	x.goOn(o.offset, o.within)
}

// originalOf is the file that is followed of which this one is a copy, complete or
// not yet. Once that is removed or truncated, the copy takes its place.
func (f *Follower) originalOf(x *file) *file {
	if x.live || len(x.head) == 0 {
		return nil
	}
	for _, o := range f.files {
		if !o.copied && o.log == x.log && bytes.HasPrefix(o.head, x.head) &&
			(o.packing != plain || x.packing != plain || x.size <= o.size) {
			return o
		}
	}
	return nil
}

// positionOf finds the position of a file whose device or inode is another now.
func (f *Follower) positionOf(x *file) int {
	best := -1
	for i, p := range f.gone {
		// Few bytes may begin two logs of one name.
		if p.Log != x.log && (p.HeadSize < headSize || filepath.Base(p.Log) != filepath.Base(x.log)) {
			continue
		}
		if !p.begins(x.head) {
			continue
		}
		if best < 0 || cmp.Or(cmp.Compare(p.HeadSize, f.gone[best].HeadSize), cmp.Compare(p.Offset, f.gone[best].Offset)) > 0 {
			best = i
		}
	}
	return best
}

// arrange puts the files in the order they are read in: those of a log by age, and
// of several logs those first that were written last the longest ago.
func (f *Follower) arrange() {
	slices.SortStableFunc(f.files, func(a, b *file) int {
		return cmp.Or(strings.Compare(a.log, b.log), a.age.compare(b.age), strings.Compare(a.path, b.path))
	})
	times := make(map[*file]time.Time, len(f.files))
	for i, x := range slices.Backward(f.files) {
		// A file that was compressed later than its successor was written.
		t := x.time
		if i+1 < len(f.files) && f.files[i+1].log == x.log && times[f.files[i+1]].Before(t) {
			t = times[f.files[i+1]]
		}
		times[x] = t
	}
	slices.SortStableFunc(f.files, func(a, b *file) int { return times[a].Compare(times[b]) })
}

// list is the files that the patterns match, each once, logs that grow last: so
// what is copied from one is not found to be longer than it.
func (f *Follower) list() []found {
	folders := make(map[string][]target)
	for _, t := range f.targets {
		if _, err := filepath.Match(t.name, ""); err != nil {
			f.errs[filepath.Join(t.folder, t.name)] = err
		}
		for _, folder := range foldersOf(t.folder) {
			folders[folder] = append(folders[folder], t)
		}
	}
	f.folders = make(map[string]time.Time, len(folders))
	var all []found
	for folder, targets := range folders {
		f.folders[folder] = settled(folderTime(folder))
		all = f.listFolder(all, folder, targets)
	}
	all = f.newestFound(all)
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(strings.Compare(a.log, b.log), a.age.compare(b.age), strings.Compare(a.path, b.path))
	})
	for i := range all {
		last := i+1 == len(all) || all[i+1].log != all[i].log
		a := &all[i]
		a.live = a.packing == plain && (a.age.style == current || last && a.age.style == stamped)
	}
	return f.settle(all)
}

// foldersOf are the folders of a pattern's.
func foldersOf(pattern string) []string {
	if !strings.ContainsAny(pattern, `*?[\`) {
		return []string{pattern}
	}
	all, err := filepath.Glob(pattern)
	if err != nil || len(all) == 0 {
		return []string{pattern} // its name may have such letters
	}
	return all
}

// folderTime is when a folder was changed last; zero: there is none.
func folderTime(path string) time.Time {
	fi, err := os.Stat(path)
	if err != nil || !fi.IsDir() {
		return time.Time{}
	}
	return fi.ModTime()
}

// settled is a folder's time, or one that it never has, if it may change again
// without another time: file systems tell 2 s at worst.
func settled(t time.Time) time.Time {
	if since := time.Since(t).Abs(); since < 2*time.Second {
		return time.Time{}.Add(1)
	}
	return t
}

func (f *Follower) listFolder(all []found, folder string, targets []target) []found {
	fi, err := os.Stat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return all
	}
	if err == nil && !fi.IsDir() {
		err = errors.New("not a folder")
	}
	if err != nil {
		f.errs[folder] = fmt.Errorf("looking at folder: %w", err)
		return all
	}
	d, err := os.OpenFile(folder, os.O_RDONLY|dontBlock, 0)
	if err != nil {
		f.errs[folder] = fmt.Errorf("looking at folder: %w", err)
		return all
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(manyNames)
		for _, name := range names {
			if s, ok := candidate(folder, name, targets); ok && f.admit(&s) {
				all = append(all, s)
			}
		}
		if len(all) > 4*maxFiles {
			all = f.newestFound(all)
		}
		if err != nil { // its end, or nothing more to be had
			return all
		}
	}
}

// candidate reports whether a file of this name is one of the targets'.
func candidate(folder, name string, targets []target) (found, bool) {
	for _, t := range targets {
		if !strings.HasPrefix(name, t.prefix) || isUnfinished(name) && name != t.name {
			continue
		}
		bare, p := unpacked(name)
		log, a := rolledFrom(bare)
		if !t.matches(log) && !t.matches(bare) && !t.matches(name) {
			continue
		}
		if a.style == current && p != plain {
			a.style = stamped // it grows no more
		}
		return found{path: filepath.Join(folder, name), log: filepath.Join(folder, log), age: a, packing: p}, true
	}
	return found{}, false
}

// admit examines a file without opening it.
func (f *Follower) admit(s *found) bool {
	fi, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		f.errs[s.path] = err
		f.passedOver[reasonOf(err)]++
		return false
	case !fi.Mode().IsRegular():
		f.passedOver[NotRegular]++
		return false
	case s.packing == foreign:
		f.passedOver[Unknown]++
		return false
	case f.history > 0 && f.now().Sub(fi.ModTime()) > f.history:
		f.passedOver[TooOld]++
		return false
	}
	s.fi, s.id = fi, f.idOf(fi)
	return true
}

// newestFound keeps as many files as are followed at most.
func (f *Follower) newestFound(all []found) []found {
	if len(all) <= maxFiles {
		return all
	}
	slices.SortFunc(all, func(a, b found) int { return b.fi.ModTime().Compare(a.fi.ModTime()) })
	f.passedOver[TooMany] += len(all) - maxFiles
	return all[:maxFiles]
}

// settle examines the logs that grow once more, after all others, and leaves out
// what is another name of a file.
func (f *Follower) settle(all []found) []found {
	slices.SortStableFunc(all, func(a, b found) int { return order(a.live, b.live) })
	names := make(map[string]bool, len(all))
	at := make(map[id]int, len(all))
	var kept []found
	for _, s := range all {
		names[s.path] = true
		if s.live {
			fi, err := os.Stat(s.path)
			if err != nil || !fi.Mode().IsRegular() {
				continue
			}
			s.fi, s.id = fi, f.idOf(fi)
		}
		if i, ok := at[s.id]; ok && s.id != (id{}) {
			kept[i] = s
			continue
		}
		at[s.id] = len(kept)
		kept = append(kept, s)
	}
	for i := range kept {
		bare, p := unpacked(kept[i].path)
		kept[i].twin = p != plain && names[bare]
	}
	return kept
}
