//go:build !(linux || dragonfly || openbsd || solaris || darwin || freebsd || netbsd)

package files

import "io/fs"

// changed: the system does not tell.
func changed(fs.FileInfo) (sec, nsec int64, inode uint64) { return 0, 0, 0 }
