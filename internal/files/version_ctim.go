//go:build linux || dragonfly || openbsd || solaris

package files

import (
	"io/fs"
	"syscall"
)

// changed is when the file's inode last changed, and which inode it is; zero where that
// is not known.
func changed(fi fs.FileInfo) (sec, nsec int64, inode uint64) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, 0
	}
	return int64(st.Ctim.Sec), int64(st.Ctim.Nsec), uint64(st.Ino) //nolint:unconvert // differ in size among systems
}
