// Package files lists the files of a folder that a file server would serve and that may be
// pages, by their names alone. It opens nothing but folders.
package files

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Options says what to scan and what to list.
type Options struct {
	// FS is the file system to scan. Nil: the operating system's own.
	FS fs.FS

	// Root is the folder to scan; it may itself be a symbolic link. With FS, a path as it is given to FS.Open; "" is
	// ".". Without FS, a relative one is relative to the working directory.
	Root string

	// At is the URL folder under which Root is served, as in [page.Normal], but
	// without a slash at its end: "" or such as "/docs".
	At string

	// Includes reports whether a file is a page by its path in [page.Normal]'s form: At and its path below Root, which is
	// /dir/index.html for an index file. Nil: *.html, *.htm and *.xhtml are.
	//
	// Error pages such as 404.html, and files that prove a site's ownership, are pages only if Include has their very
	// paths. The folders node_modules and bower_components are never entered.
	Includes func(path string) bool
	Include  []string

	// Excludes reports whether a file is no page by the same path; for an index file also by its folder's URL, and with
	// Clean also by the shorter form that would be listed. Nil: none is excluded. A folder is not entered if Exclude has
	// a pattern for just all below it, such as /drafts/*.
	Excludes func(path string) bool
	Exclude  []string

	// Hide lists files that are not served, as file_server's hide does: entries with a path separator are absolute paths or
	// globs of whole paths, others are names or globs that match any component of the path below Root.
	Hide []string

	// Index lists the names of index files, the preferred first. Nil:
	// index.html, index.txt. Empty, but not nil: folders have none.
	Index []string

	// Front is the path below Root of the file, or folder, that the server shows at At, as it rewrites requests for it. It
	// is listed as such, and not by its own URL; ".html" may be missing at its end. "": the index is shown there.
	Front string

	// Clean lists about.html as /about, unless there is a file of that name.
	Clean bool

	// Watch is to tell of changes below Root from the scan on, unless there is FS. Nil: nothing does.
	Watch *Watch
}

// IndexNames are Index, or the default, which is that of Caddy's file_server.
func (o *Options) IndexNames() []string {
	if o.Index == nil {
		return []string{"index.html", "index.txt"}
	}
	return o.Index
}

// TimeOf returns the modification time, in Unix seconds, of the file that a file server would show at a normal path: of
// that name, of that name with ".html" after it, or the index of that folder; 0: there is none. It examines these files
// alone, and knows no other rules of o.
func TimeOf(o Options, path string) int64 {
	_, info := o.shownAt(path)
	if info == nil {
		return 0
	}
	return max(info.ModTime().Unix(), 1)
}

// Shows reports whether what a file server would show at a path, as in [TimeOf], has the size of a body, or more if that is cut.
func Shows(o Options, path string, body []byte, isCut bool) bool {
	_, info := o.shownAt(path)
	if info == nil {
		return false
	}
	size := int64(len(body))
	return info.Size() == size || isCut && info.Size() > size
}

// shownAt returns the path below Root of the regular file that would be shown at a normal path; "": there is none.
func (o *Options) shownAt(url string) (name string, info fs.FileInfo) {
	rel, isBelow := strings.CutPrefix(page.Unescape(url), page.Unescape(o.At)+"/")
	if rel == "" {
		rel = o.Front
	}
	folder := strings.TrimSuffix(rel, "/")
	// A path that a stranger requests must not lead out of the root.
	if !isBelow || rel != "" && !fs.ValidPath(folder) {
		return "", nil
	}
	var names []string
	if folder == rel {
		names = []string{rel, rel + ".html"}
	}
	for _, index := range o.IndexNames() {
		names = append(names, path.Join(folder, index))
	}
	for _, name := range names {
		info, err := o.stat(name)
		if err == nil && info.Mode().IsRegular() {
			return name, info
		}
	}
	return "", nil
}

// fileSystem returns the file system of the root, and the root in it.
func (o *Options) fileSystem() (fsys fs.FS, root string) {
	if o.FS == nil {
		return os.DirFS(o.Root), "."
	}
	return o.FS, path.Clean(o.Root)
}

// stat describes the file with a path below Root.
func (o *Options) stat(rel string) (fs.FileInfo, error) {
	fsys, root := o.fileSystem()
	return fs.Stat(fsys, path.Join(root, rel))
}

// IsFolder reports whether the root exists, and is a folder.
func IsFolder(o Options) bool {
	info, err := o.stat("")
	return err == nil && info.IsDir()
}

// Stats are the counts of a scan.
type Stats struct {
	// LeftOut counts what is not listed, by reason. A folder that is not entered counts once.
	LeftOut map[string]int

	// Unreadable holds some of the paths that could not be read, as the operating system or the FS knows them.
	Unreadable []string
}

// CheckRoot refuses the root of a disk.
func CheckRoot(folder string) error {
	folder = filepath.Clean(folder)
	if folder == "." || filepath.Dir(folder) != folder {
		return nil
	}
	return fmt.Errorf("the root is %s, which holds more than a site: use a folder in it", folder)
}

const maxUnreadable = 3 // paths in Stats.Unreadable

// Scan yields the pages below o.Root in the order of [page.Compare], each once.
//
// Symbolic links are followed as a file server does, unless they lead below the root, where a scan finds all but what lies in a
// folder with a dot, or to what it has found by another link. In a virtual file system, links to folders are not followed.
//
// Scan returns the first error or panic of yield, or ctx's error. A root that is missing, may not be read or is no folder is an error
// that matches [fs.ErrNotExist], [fs.ErrPermission] or [syscall.ENOTDIR]; one that [CheckRoot] refuses, or a link to such
// a one, is an error, too. Other errors below the root are counted in [Stats], unless the process lacks memory or file
// descriptors, or the file system panics: then pages would be missed, and the scan ends with that error.
//
// No goroutine outlives Scan.
func Scan(ctx context.Context, o Options, yield func(page.Page) error) (Stats, error) {
	if o.Includes == nil {
		o.Includes = page.IsFile
	}
	if o.Excludes == nil {
		o.Excludes = func(string) bool { return false }
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &scan{
		Options: &o,
		index:   o.IndexNames(),
		top:     o.At + "/",
		ctx:     ctx,
		yield:   yield,
		stats:   Stats{LeftOut: make(map[string]int)},
		targets: make(map[string]bool),
	}
	defer s.reading.Wait()
	defer cancel()
	err := caught(s.run)
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case err != nil:
		err = fmt.Errorf("scanning %s: %w", o.Root, err)
	}
	return s.stats, err
}
