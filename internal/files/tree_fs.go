package files

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// fsTree is an fs.FS.
type fsTree struct{ fsys fs.FS }

func (t fsTree) handle() handle { return &fsHandle{t: t} }

// maxLinks is how many links in one path are followed, as Linux has it.
const maxLinks = 40

var errNoLinks = errors.New("links cannot be read")

// real follows links itself, so that nothing is opened to find out what it is.
// A link that leaves the file system is an error.
func (t fsTree) real(name string) (string, error) {
	links, ok := t.fsys.(fs.ReadLinkFS)
	if !ok {
		return "", errNoLinks
	}
	done, rest := "", name
	if strings.HasPrefix(name, "/") {
		done, rest = "/", name[1:]
	}
	for n := 0; rest != ""; {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			// No link is in done, so that its parent is what the name says.
			if done == "" {
				return "", fs.ErrInvalid
			}
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
		// os.DirFS passes on what Windows writes.
		target = filepath.ToSlash(target)
		if strings.HasPrefix(target, "/") {
			return "", fs.ErrInvalid
		}
		rest = target + "/" + rest
	}
	if done == "" {
		return ".", nil
	}
	return done, nil
}

// statFile follows links.
func (t fsTree) statFile(name string) (fs.FileInfo, error) {
	if links, ok := t.fsys.(fs.ReadLinkFS); ok {
		real, err := t.real(name)
		if err == nil {
			return links.Lstat(real)
		}
		if !errors.Is(err, fs.ErrInvalid) {
			return nil, err
		}
	}
	return fs.Stat(t.fsys, name)
}

func (t fsTree) exists(name string) (kind, bool) {
	fi, err := t.statFile(name)
	if err != nil {
		return 0, false
	}
	return kindOfFileMode(fi.Mode()), true
}

func (t fsTree) enterable(string) bool { return true }

func (fsTree) join(root, rel string) string { return path.Join(root, rel) }

func (t fsTree) stat(name []byte, in *info) error {
	fi, err := t.statFile(string(name))
	if err != nil {
		return err
	}
	in.fill(fi)
	return nil
}

func (t fsTree) open(name []byte) (io.ReadCloser, error) { return t.fsys.Open(string(name)) }

type fsHandle struct {
	t       fsTree
	path    string
	entries []fs.DirEntry
}

func (h *fsHandle) open(name []byte, follow bool) (fileID, error) {
	h.path = string(name)
	if !follow {
		return fileID{}, nil
	}
	fi, err := h.t.statFile(h.path)
	if err != nil {
		return fileID{}, err
	}
	if !fi.IsDir() {
		return fileID{}, syscall.ENOTDIR
	}
	return fileID{}, nil
}

func (h *fsHandle) list(add func(name string, k kind) bool) error {
	var err error
	h.entries, err = fs.ReadDir(h.t.fsys, h.path)
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
		fi, err = h.t.statFile(path.Join(h.path, name))
	} else {
		fi, err = h.entries[ord].Info()
	}
	if err != nil {
		return err
	}
	in.fill(fi)
	return nil
}

// readable opens a file that only its owner may read: in most such file systems
// modes mean nothing. It is known to be a regular one.
func (h *fsHandle) readable(name string, in *info) bool {
	if in.mode&0o444 == 0o444 {
		return true
	}
	f, err := h.t.fsys.Open(path.Join(h.path, name))
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

func (h *fsHandle) where() (string, error) { return h.t.real(h.path) }

func (h *fsHandle) real(name string) (string, error) { return h.t.real(path.Join(h.path, name)) }

func (h *fsHandle) share(of handle) {
	o := of.(*fsHandle)
	h.path, h.entries = o.path, o.entries
}

func (h *fsHandle) close() { h.entries = nil }
