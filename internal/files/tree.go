package files

import (
	"io/fs"
	"math"
	"math/bits"
	"slices"
	"strings"
	"syscall"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// fileID identifies a file or folder. The zero value: not known.
type fileID struct{ dev, ino uint64 }

// info is what a scan needs to know of a file.
type info struct {
	mode    fs.FileMode // its type
	time    int64       // modification, Unix seconds
	size    int64       // in bytes
	version uint32
	id      fileID
}

// handle reads one folder at a time. Paths begin with the scan's root.
type handle interface {
	// open opens a folder. With follow it may be a link, and the ID is returned, if it is known.
	open(path string, follow bool) (fileID, error)

	// list calls add with the name of each entry, in any order, until it returns
	// false. A name is valid during the call only.
	list(add func(name string, mode fs.FileMode) bool) error

	// stat examines an entry of the folder. name is followed by a NUL in memory.
	stat(name string, follow bool, in *info) error

	close()
}

// versionOf returns a hash of what tells the states of a file apart: a write or a replacement changes at least one of
// these, even if it sets the modification time back. It is never 0, and the same in each run of the program.
func versionOf(modSec, modNsec, changeSec, changeNsec, size int64, inode uint64) uint32 {
	// The modification time alone misses a file that was put in place with its old time.
	modified := uint64(modSec*1e9 + modNsec)
	changed := uint64(changeSec*1e9 + changeNsec)
	// wyhash (https://github.com/wangyi-fudan/wyhash), with its numbers.
	h := fold(modified^0xA0761D6478BD642F, changed^0xE7037ED1A0B428DB)
	h = fold(h^uint64(size)^0x8EBC6AF09C88C6E3, inode^0x589965CC75374CC3)
	return max(uint32(h>>32)^uint32(h), 1)
}

func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// believed returns a modification time, or 0 if it is after now or before [page.Earliest]: some build systems and
// archives write the epoch, or 1980, for none.
func believed(t, now int64) uint32 {
	if t < page.Earliest || t > now || t > math.MaxUint32 {
		return 0
	}
	return uint32(t)
}

// fsHandle reads the folders of an fs.FS, in which all paths are names.
type fsHandle struct {
	fsys    fs.FS
	path    string
	entries []fs.DirEntry
}

func (h *fsHandle) open(path string, follow bool) (fileID, error) {
	h.path = path
	if !follow {
		return fileID{}, nil
	}
	var in info
	err := h.examine(path, &in)
	if err == nil && !in.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	return in.id, err
}

func (h *fsHandle) list(add func(name string, mode fs.FileMode) bool) error {
	var err error
	h.entries, err = fs.ReadDir(h.fsys, h.path)
	// They should come sorted (fs.ReadDirFS), and stat relies on it.
	slices.SortFunc(h.entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range h.entries {
		name := e.Name()
		// With a slash, it would be a path to elsewhere.
		if name == "" || strings.ContainsAny(name, "/\x00") {
			return fs.ErrInvalid
		}
		if !add(name, e.Type()) {
			return nil
		}
	}
	return err
}

func (h *fsHandle) stat(name string, follow bool, in *info) error {
	if follow {
		return h.examine(join(h.path, name), in)
	}
	byName := func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) }
	i, _ := slices.BinarySearchFunc(h.entries, name, byName)
	fi, err := h.entries[i].Info()
	if err == nil {
		in.fill(fi)
	}
	return err
}

// examine follows links.
func (h *fsHandle) examine(path string, in *info) error {
	fi, err := fs.Stat(h.fsys, path)
	if err == nil {
		in.fill(fi)
	}
	return err
}

func (h *fsHandle) close() { h.entries = nil }

// fill takes what the standard library tells of a file.
func (in *info) fill(fi fs.FileInfo) {
	t := fi.ModTime()
	id := identity(fi)
	*in = info{
		mode:    fi.Mode().Type(),
		time:    t.Unix(),
		size:    fi.Size(),
		id:      id,
		version: versionOf(t.Unix(), int64(t.Nanosecond()), 0, 0, fi.Size(), id.ino),
	}
}
