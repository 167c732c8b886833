//go:build unix

package files

import (
	"io/fs"
	"syscall"
)

// identity is which file it is, where the file system tells.
func identity(fi fs.FileInfo) fileID {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{uint64(st.Dev), uint64(st.Ino)} //nolint:unconvert // they differ in size among systems
}
