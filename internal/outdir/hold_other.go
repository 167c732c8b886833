//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package outdir

import (
	"io"
	"os"
)

// lockInside says that a folder cannot be removed while it is held.
const lockInside = false

// hold opens the folder: there are no locks that end with a process.
func hold(dir string) (io.Closer, error) { return os.Open(dir) }
