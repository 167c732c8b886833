//go:build darwin || freebsd || netbsd

package files

import (
	"io/fs"
	"syscall"
)

// changed is when the file's inode last changed, and which inode it is.
func changed(fi fs.FileInfo) (sec, nsec int64, inode uint64, ok bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, 0, false
	}
	return int64(st.Ctimespec.Sec), int64(st.Ctimespec.Nsec), uint64(st.Ino), true //nolint:unconvert // differ in size among systems
}
