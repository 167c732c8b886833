package files

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// osTree is the operating system's file system by way of the standard library,
// for systems that have no faster one here.
type osTree struct{}

func (osTree) handle() handle { return &osHandle{} }

func (osTree) real(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	abs, err = filepath.EvalSymlinks(abs)
	return filepath.ToSlash(abs), err
}

func (osTree) exists(path string) (kind, bool) {
	fi, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	return kindOfFileMode(fi.Mode()), true
}

func (osTree) enterable(path string) bool {
	d, err := os.Open(path)
	if err != nil {
		return false
	}
	d.Close()
	return true
}

func (osTree) join(root, rel string) string { return filepath.Join(root, filepath.FromSlash(rel)) }

func (osTree) stat(path []byte, in *info) error {
	fi, err := os.Stat(filepath.FromSlash(string(path)))
	if err != nil {
		return err
	}
	in.fillOS(fi)
	return nil
}

func (osTree) open(path []byte) (io.ReadCloser, error) {
	return os.OpenFile(filepath.FromSlash(string(path)), os.O_RDONLY|dontBlock, 0)
}

type osHandle struct {
	dir     *os.File
	path    string
	entries []fs.DirEntry // in the order of list
}

func (h *osHandle) open(path []byte, follow bool) (fileID, error) {
	h.path = filepath.FromSlash(string(path))
	stat := os.Stat
	if !follow {
		stat = os.Lstat
	}
	fi, err := stat(h.path)
	if err != nil {
		return fileID{}, err
	}
	if !fi.IsDir() {
		return fileID{}, syscall.ENOTDIR
	}
	h.dir, err = os.Open(h.path)
	return fileID{}, err
}

func (h *osHandle) list(add func(name string, k kind) bool) error {
	h.entries = h.entries[:0]
	for {
		entries, err := h.dir.ReadDir(1024)
		for _, e := range entries {
			h.entries = append(h.entries, e)
			if !add(e.Name(), kindOfFileMode(e.Type())) {
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (h *osHandle) stat(name string, ord uint32, follow bool, in *info) error {
	var fi fs.FileInfo
	var err error
	if follow {
		fi, err = os.Stat(filepath.Join(h.path, name))
	} else {
		fi, err = h.entries[ord].Info()
	}
	if err != nil {
		return err
	}
	in.fillOS(fi)
	return nil
}

// readable opens a file whose mode does not say that all may read it; it is
// known to be a regular one.
func (h *osHandle) readable(name string, in *info) bool {
	if in.mode&0o444 == 0o444 {
		return true
	}
	f, err := os.Open(filepath.Join(h.path, name))
	if err != nil {
		return false
	}
	f.Close()
	return true
}

func (h *osHandle) where() (string, error) { return osTree{}.real(h.path) }

func (h *osHandle) real(name string) (string, error) {
	return osTree{}.real(filepath.Join(h.path, name))
}

func (h *osHandle) share(of handle) {
	o := of.(*osHandle)
	h.dir, h.path, h.entries = nil, o.path, o.entries
}

func (h *osHandle) close() {
	if h.dir != nil {
		h.dir.Close()
		h.dir = nil
	}
	h.entries = nil
}
