//go:build unix

package accesslog

import (
	"io/fs"
	"syscall"
)

// dontBlock keeps a FIFO from holding up who opens it, and a terminal from becoming
// the process's own.
const dontBlock = syscall.O_NONBLOCK | syscall.O_NOCTTY

func idOf(fi fs.FileInfo) id {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return id{}
	}
	return id{uint64(st.Dev), uint64(st.Ino)} //nolint:unconvert // differ in size among systems
}
