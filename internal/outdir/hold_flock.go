//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package outdir

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockInside says that a folder cannot be removed while it is held.
const lockInside = false

// hold locks the folder itself: nothing lies about that a process would have to remove
// that was killed. A file system that knows no such locks has none.
func hold(dir string) (io.Closer, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, errors.Join(ErrBusy, f.Close())
	case err == nil, errors.Is(err, unix.EBADF), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL):
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}
