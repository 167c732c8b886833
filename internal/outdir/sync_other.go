//go:build !windows

package outdir

import (
	"errors"
	"os"
	"syscall"
)

// syncFolder lets renames outlast a crash, where the file system can do that.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
