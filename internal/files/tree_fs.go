package files

import (
	"io/fs"
	"strings"
	"syscall"
)

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
	if err == nil && in.kind != kindFolder {
		err = syscall.ENOTDIR
	}
	return in.id, err
}

func (h *fsHandle) list(add func(name string, k kind) bool) error {
	var err error
	h.entries, err = fs.ReadDir(h.fsys, h.path)
	for _, e := range h.entries {
		name := e.Name()
		if name == "" || strings.ContainsAny(name, "/\x00") {
			return fs.ErrInvalid
		}
		if !add(name, kindOf(e.Type())) {
			return nil
		}
	}
	return err
}

func (h *fsHandle) stat(name string, ord uint32, follow bool, in *info) error {
	if follow {
		return h.examine(join(h.path, name), in)
	}
	fi, err := h.entries[ord].Info()
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
	t, id := fi.ModTime(), identity(fi)
	*in = info{kindOf(fi.Mode()), t.Unix(), versionOf(t.Unix(), int64(t.Nanosecond()), 0, 0, fi.Size(), id.ino), id}
}
