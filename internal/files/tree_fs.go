package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// fsTree is an fs.FS. Its paths are names in it, after a root that all have.
type fsTree struct {
	fsys fs.FS
	root string
}

// newDiskTree is the operating system's file system by way of the standard library,
// and the folder's path in it.
func newDiskTree(folder string) (tree, string, error) {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return nil, "", err
	}
	volume := filepath.VolumeName(abs) + separator
	return fsTree{os.DirFS(volume), filepath.ToSlash(volume)}, filepath.ToSlash(abs), nil
}

// name is the name of a path in the fs.FS.
func (t fsTree) name(p string) string {
	if p = strings.TrimPrefix(p, t.root); p == "" {
		return "."
	}
	return p
}

func (t fsTree) handle() handle { return &fsHandle{t: t} }

// maxLinks is how many links in one path are followed, as Linux has it.
const maxLinks = 40

var errNoLinks = errors.New("links cannot be read")

// real follows links itself, so that nothing is opened to find out what it is.
// A link that leaves the file system is an error.
func (t fsTree) real(p string) (string, error) {
	links, ok := t.fsys.(fs.ReadLinkFS)
	if !ok {
		return "", errNoLinks
	}
	done, rest := "", t.name(p)
	if strings.HasPrefix(rest, "/") {
		done, rest = "/", rest[1:]
	}
	for n := 0; rest != ""; {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		switch {
		case part == "" || part == ".":
			continue
		case part == ".." && done == "" && t.root == "":
			return "", fs.ErrInvalid
		case part == "..":
			// No link is in done, so that its parent is what the name says.
			if done = path.Dir(done); done == "." {
				done = ""
			}
			continue
		}
		next := path.Join(done, part)
		fi, err := links.Lstat(next)
		if err != nil {
			return "", err
		}
		if fi.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if n++; n > maxLinks {
			return "", syscall.ELOOP
		}
		target, err := links.ReadLink(next)
		if err != nil {
			return "", err
		}
		target = filepath.ToSlash(target)
		if below, ok := strings.CutPrefix(target, t.root); ok && t.root != "" {
			done, target = "", below
		} else if strings.HasPrefix(target, "/") || filepath.VolumeName(target) != "" {
			return "", fs.ErrInvalid
		}
		rest = target + "/" + rest
	}
	if done == "" && t.root == "" {
		return ".", nil
	}
	return t.root + done, nil
}

// statFile follows links.
func (t fsTree) statFile(p string) (fs.FileInfo, error) {
	if links, ok := t.fsys.(fs.ReadLinkFS); ok {
		real, err := t.real(p)
		if err == nil {
			return links.Lstat(t.name(real))
		}
		if !errors.Is(err, fs.ErrInvalid) {
			return nil, err
		}
	}
	return fs.Stat(t.fsys, t.name(p))
}

func (t fsTree) exists(p string) (kind, bool) {
	fi, err := t.statFile(p)
	if err != nil {
		return 0, false
	}
	return kindOfFileMode(fi.Mode()), true
}

func (t fsTree) enterable(p string) bool { return t.opens(p) }

func (t fsTree) opens(p string) bool {
	f, err := t.fsys.Open(t.name(p))
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

type fsHandle struct {
	t       fsTree
	path    string
	entries []fs.DirEntry
}

func (h *fsHandle) open(p string, follow bool) (fileID, error) {
	h.path = p
	if !follow {
		return fileID{}, nil
	}
	fi, err := h.t.statFile(h.path)
	if err == nil && !fi.IsDir() {
		err = syscall.ENOTDIR
	}
	return fileID{}, err
}

func (h *fsHandle) list(add func(name string, k kind) bool) error {
	var err error
	h.entries, err = fs.ReadDir(h.t.fsys, h.t.name(h.path))
	for _, e := range h.entries {
		name, k := e.Name(), kindOfFileMode(e.Type())
		if name == "" || strings.ContainsAny(name, "/\x00") {
			return fs.ErrInvalid
		}
		if !fs.ValidPath(name) {
			k = kindOther // not to be opened by that name
		}
		if !add(name, k) {
			return nil
		}
	}
	return err
}

func (h *fsHandle) stat(name string, ord uint32, follow bool, in *info) error {
	var fi fs.FileInfo
	var err error
	if follow {
		fi, err = h.t.statFile(join(h.path, name))
	} else {
		fi, err = h.entries[ord].Info()
	}
	if err != nil {
		return err
	}
	in.fill(fi)
	return nil
}

// readable opens a file that not all may read: in most such file systems modes mean
// nothing. It is known to be a regular one.
func (h *fsHandle) readable(name string, in *info) bool {
	return in.mode&0o444 == 0o444 || h.t.opens(join(h.path, name))
}

func (h *fsHandle) close() { h.entries = nil }
