package accesslog

import (
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

// id is a file's device and inode; zero where the system does not tell.
type id struct{ device, inode uint64 }

// found is a file that was seen in a folder.
type found struct {
	path    string
	log     string // the path of its log
	age     age
	packing packing
	fi      fs.FileInfo
	id      id
	live    bool // it may grow
	twin    bool // it stands beside itself uncompressed, and is perhaps being made of it
}

// look finds out which files there are and how far each was read.
func (f *Follower) look() {
	f.passedOver, f.errs = make(map[string]int), make(map[string]error)
	known := make(map[string]*file, len(f.files))
	for _, x := range f.files {
		known[x.path] = x
	}
	f.files = nil
	used := make(map[*position]bool)
	var changed []*file
	for _, s := range f.list() {
		x := known[s.path]
		if x == nil || x.id != s.id {
			x = &file{found: s, fresh: true}
		} else {
			delete(known, s.path)
			x.note(s.fi)
			if x.live != s.live || x.twin != s.twin {
				x.fresh, x.done = true, false
			}
			x.found = s
		}
		if mayPass(x.err) {
			x.fresh, x.done, x.err = true, false, nil
		}
		f.files = append(f.files, x)
		if x.fresh {
			changed = append(changed, x)
		} else {
			used[x.at] = true
		}
	}
	for _, x := range known {
		x.close()
	}
	f.assign(changed, used)
	f.dropPositions(used)
}

// assign finds out how far files that are new or have changed were read, and takes note
// of the positions that are used.
func (f *Follower) assign(files []*file, used map[*position]bool) {
	heads := make(map[*file][]byte, len(files))
	for _, x := range files {
		heads[x] = f.examine(x)
	}
	// Of two with the same head, the longer one is no copy of the other.
	slices.SortStableFunc(files, func(a, b *file) int {
		return cmp.Or(cmp.Compare(a.packing, b.packing), cmp.Compare(b.fi.Size(), a.fi.Size()))
	})
	for _, x := range files {
		head := heads[x]
		if x.at = nil; len(head) == 0 {
			continue
		}
		best := 0
		for _, p := range f.positions {
			if n := p.matches(x, head); n > best || n > 0 && n == best && p.Offset > x.at.Offset {
				best, x.at = n, p
			}
		}
		if x.at == nil {
			x.at = new(position)
			f.positions = append(f.positions, x.at)
		}
		if !used[x.at] || len(head) > len(x.at.head) {
			x.at.set(head)
			x.at.Log = x.log
		}
		if !used[x.at] && x.packing == plain {
			x.at.moveBack(x.fi.Size())
		}
		used[x.at] = true
	}
}

// examine reads the head of a file; nil: it is not to be read.
func (f *Follower) examine(x *file) []byte {
	head, err := headOf(x.path, x.id, x.packing)
	if err == nil || len(head) > 0 && x.packing != plain {
		return head
	}
	f.fail(x, err)
	return nil
}

// dropPositions forgets the oldest of files that are gone.
func (f *Follower) dropPositions(used map[*position]bool) {
	gone := -maxGone
	for _, p := range f.positions {
		if !used[p] {
			gone++
		}
	}
	f.positions = slices.DeleteFunc(f.positions, func(p *position) bool {
		if used[p] {
			return false
		}
		p.head = nil
		gone--
		return gone >= 0
	})
}

// list is the files that the patterns match, each once, in the order to be read.
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

// settle examines the logs that grow once more, after all others, so that what is copied
// from one is not found to be longer than it. It leaves out what is another name of a file.
func (f *Follower) settle(all []found) []found {
	names := make(map[string]bool, len(all))
	for i := range all {
		s := &all[i]
		names[s.path] = true
		if !s.live {
			continue
		}
		if fi, err := os.Stat(s.path); err == nil && fi.Mode().IsRegular() {
			s.fi, s.id = fi, f.idOf(fi)
		}
	}
	for i := range all {
		bare, p := unpacked(all[i].path)
		all[i].twin = p != plain && names[bare]
	}
	at := make(map[id]bool, len(all))
	return slices.DeleteFunc(all, func(s found) bool {
		other := at[s.id] && s.id != id{}
		at[s.id] = true
		return other
	})
}
