package files

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// root is the folder that is read with all below it, and how.
type root struct {
	abs       string // absolute path
	disk      string // path for the operating system; "": there is none
	path      string // path for handles
	newHandle func() handle
}

// rootOf returns the root that options name. The error matches [fs.ErrNotExist] if they name none.
func rootOf(o *Options) (r root, err error) {
	r.abs, err = filepath.Abs(o.Root)
	if err != nil {
		return r, fmt.Errorf("scanning %s: %w", o.Root, err)
	}
	if o.FS != nil {
		r.readFS(o.FS, path.Clean(o.Root))
		return r, nil
	}
	if o.Root == "" {
		return r, fmt.Errorf("scanning: no root: %w", fs.ErrNotExist)
	}
	r.disk = r.abs
	r.path = r.abs
	r.newHandle = newDiskHandle()
	if r.newHandle == nil {
		r.readFS(os.DirFS(r.disk), ".")
	}
	return r, nil
}

// readFS has handles read a folder of fsys.
func (r *root) readFS(fsys fs.FS, folder string) {
	r.path = folder
	r.newHandle = func() handle { return &fsHandle{fsys: fsys} }
}
