package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	filesInFolder    = 200
	foldersInSection = 50
	treeVersion      = "1"
)

// firstModified is the earliest modification time of a file of a tree; all lie in the
// two years after it.
var firstModified = time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)

// tree makes a site of small HTML files, the same every time, unless an earlier run
// did.
func (b *bench) tree(ctx context.Context, files int) (string, error) {
	root := b.path(fmt.Sprintf("tree-%d", files))
	made := root + ".made"
	if version, err := os.ReadFile(made); err == nil && string(version) == treeVersion {
		return root, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	b.say("making %s files in %s", number(files), root)
	if err := os.RemoveAll(root); err != nil {
		return "", err
	}
	folders := (files + filesInFolder - 1) / filesInFolder
	errs := make([]error, runtime.NumCPU())
	var next atomic.Int64
	var group sync.WaitGroup
	for worker := range errs {
		group.Go(func() {
			for errs[worker] == nil && ctx.Err() == nil {
				folder := int(next.Add(1)) - 1
				if folder >= folders {
					return
				}
				errs[worker] = makeFolder(root, folder, files)
			}
		})
	}
	group.Wait()
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return "", fmt.Errorf("making a tree: %w", err)
	}
	return root, os.WriteFile(made, []byte(treeVersion), 0o644)
}

func makeFolder(root string, folder, files int) error {
	first := folder * filesInFolder
	if err := os.MkdirAll(filepath.Dir(filepath.Join(root, filepath.FromSlash(pagePath(first)))), 0o755); err != nil {
		return err
	}
	for i := first; i < min(first+filesInFolder, files); i++ {
		name := filepath.Join(root, filepath.FromSlash(pagePath(i)))
		if err := os.WriteFile(name, content(i), 0o644); err != nil {
			return err
		}
		at := time.Unix(modified(i), 0)
		if err := os.Chtimes(name, at, at); err != nil {
			return err
		}
	}
	return nil
}

// pagePath is the path of the ith page of a site, as its tree has it.
func pagePath(i int) string {
	folder := i / filesInFolder
	return fmt.Sprintf("/section-%03d/part-%02d/page-%03d.html", folder/foldersInSection, folder%foldersInSection, i%filesInFolder)
}

func content(i int) []byte {
	words := strings.Repeat("lorem ipsum ", int(scramble(i)%6))
	return fmt.Appendf(nil, "<!doctype html>\n<title>Page %d</title>\n<h1>Page %d</h1>\n<p>%s</p>\n", i, i, words)
}

// modified is when the ith page changed: no two neighbours at the same time, as after
// years of edits, which compresses worst.
func modified(i int) int64 {
	const twoYears = 2 * 365 * 24 * 60 * 60
	return firstModified.Unix() + int64(scramble(i)%twoYears)
}

// scramble is splitmix64.
func scramble(i int) uint64 {
	z := (uint64(i) + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
