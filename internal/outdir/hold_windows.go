package outdir

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

const (
	lockName = ".caddy-sitemap.lock"

	// lockInside says that a folder cannot be removed while it is held.
	lockInside = true
)

// hold makes a file that nobody else can open, and that vanishes with the process.
func hold(dir string) (io.Closer, error) {
	path := filepath.Join(dir, lockName)
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_WRITE, 0, nil, windows.OPEN_ALWAYS,
		windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	switch {
	case errors.Is(err, windows.ERROR_SHARING_VIOLATION):
		return nil, ErrBusy
	case err != nil:
		return nil, err
	}
	return os.NewFile(uintptr(handle), path), nil
}
