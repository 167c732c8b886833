package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// emptyState is a folder for what a server is to remember, with nothing in it.
func (b *bench) emptyState(name string) (string, error) {
	folder := b.path("state-" + name)
	return folder, os.RemoveAll(folder)
}

// stateOnDisk is the bytes of all files below a folder, and when the last of them was
// written.
func stateOnDisk(folder string) (size int64, written time.Time, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		if info.ModTime().After(written) {
			written = info.ModTime()
		}
		return nil
	})
	return size, written, err
}

const (
	quietFor  = 3 * time.Second
	quietUses = quietFor / 20
)

// quiet waits until a server has been at rest for a while.
func (s *server) quiet(ctx context.Context) error {
	for {
		before, err := processorTime(s.pid())
		if err != nil {
			return err
		}
		if err := sleep(ctx, quietFor); err != nil {
			return err
		}
		after, err := processorTime(s.pid())
		if err != nil {
			return err
		}
		if after-before <= quietUses {
			return nil
		}
	}
}
