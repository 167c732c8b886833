// Package files lists the files of a folder that a file server would serve and that may be
// pages, by their names alone. It opens nothing but folders.
package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Options says what to scan and what to list.
type Options struct {
	// FS is the file system to scan. Nil: the operating system's own.
	FS fs.FS

	// Root is the folder to scan; it may itself be a symbolic link. With FS, a path as it is given to FS.Open; "" is
	// ".". Without FS, a relative one is relative to the working directory, and "" is an error.
	Root string

	// At is the URL folder under which Root is served, as in [page.Normal], but
	// without a slash at its end: "" or such as "/docs".
	At string

	// Include are patterns, as Compile takes them, of the files that are pages. They match At and the file's path below
	// Root, which is /dir/index.html for an index file. Empty: *.html, *.htm and *.xhtml.
	//
	// Error pages such as 404.html, and files that prove a site's ownership, are pages only if a pattern without a
	// wildcard names them. The folders node_modules and bower_components are entered only for a pattern that begins
	// with their path, such as /node_modules/docs/*.
	Include []string

	// Exclude are patterns of the files that are not pages. They match the same paths as Include; for an index file
	// also its folder's URL, and with CleanURLs also the shorter form that would be listed.
	Exclude []string

	// Compile returns a function that reports whether one of the patterns matches a path
	// in [page.Normal]'s form, in any case. It is needed with Include or Exclude.
	Compile func(patterns []string) (match func(path string) bool)

	// Hide lists files that are not served, as file_server's hide does: entries with a path separator are paths or
	// globs of whole paths, others are names or globs that match any component of the absolute path.
	Hide []string

	// Index lists the names of index files, the preferred first. Nil:
	// index.html, index.txt. Empty, but not nil: folders have none.
	Index []string

	// Front is the path below Root of the file, or folder, that the server shows at At, as it rewrites requests for it. It
	// is listed as such, and not by its own URL; ".html" may be missing at its end. "": the index is shown there.
	Front string

	// CleanURLs lists about.html as /about, unless there is a file of that name.
	CleanURLs bool

	// KeepBesideFolders lists about.html as such if there is a folder about: some
	// servers redirect the shorter form to the folder.
	KeepBesideFolders bool

	// Workers is the number of goroutines that scan. 1 or less: only the calling one.
	Workers int

	// Watcher is to tell of changes after the scan. Nil: nothing does.
	Watcher *Watcher

	// Now is the present: a modification time after it, or before 1981, counts as unknown.
	Now time.Time
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
	name, info := o.shownAt(path)
	if name == "" {
		return 0
	}
	return max(info.ModTime().Unix(), 1)
}

// Shows reports whether what a file server would show at a path, as in [TimeOf], is a body, or begins with it if that is cut.
func Shows(o Options, path string, body []byte, isCut bool) bool {
	name, info := o.shownAt(path)
	if name == "" {
		return false
	}
	isWhole := info.Size() == int64(len(body))
	return (isWhole || isCut) && o.begins(name, body)
}

// shownAt returns the path below Root of the regular file that would be shown at a normal path; "": there is none.
func (o *Options) shownAt(path string) (name string, info fs.FileInfo) {
	rel, isBelow := strings.CutPrefix(page.Unescape(path), page.Unescape(o.At)+"/")
	if !isBelow {
		return "", nil
	}
	if rel == "" {
		rel = o.Front
	}
	folder := strings.TrimSuffix(rel, "/")
	isRoot := rel == "" // which IsLocal refuses
	// A path that a stranger requests must not lead out of the root.
	if !isRoot && !filepath.IsLocal(filepath.FromSlash(folder)) {
		return "", nil
	}
	var names []string
	if folder == rel && !isRoot {
		names = append(names, rel, rel+".html")
	}
	for _, index := range o.IndexNames() {
		names = append(names, strings.TrimPrefix(folder+"/"+index, "/"))
	}
	for _, name := range names {
		info, err := o.stat(name)
		if err == nil && info.Mode().IsRegular() {
			return name, info
		}
	}
	return "", nil
}

// begins reports whether a regular file below Root begins with a text.
func (o *Options) begins(rel string, text []byte) bool {
	fsys := o.FS
	name := join(path.Clean(o.Root), rel)
	if fsys == nil {
		fsys = os.DirFS(o.Root)
		name = rel
	}
	file, err := fsys.Open(name)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	content := make([]byte, len(text))
	_, err = io.ReadFull(file, content)
	return err == nil && bytes.Equal(content, text)
}

// IsFolder reports whether the root exists, and is a folder.
func IsFolder(o Options) bool {
	info, err := o.stat("")
	return err == nil && info.IsDir()
}

// stat describes the file with a path below Root.
func (o *Options) stat(rel string) (fs.FileInfo, error) {
	if o.FS != nil {
		return fs.Stat(o.FS, join(path.Clean(o.Root), rel))
	}
	return os.Stat(filepath.Join(o.Root, filepath.FromSlash(rel)))
}

// Stats are the counts of a scan.
type Stats struct {
	Pages   int // pages yielded
	Folders int // folders read

	// LeftOut counts what is not listed, by reason. A folder that is not entered counts once.
	LeftOut map[string]int

	// Unreadable holds a few paths that could not be read, as the operating system or the FS knows them.
	Unreadable []string
}

// ErrNotFolder is the error of a root that is not a folder.
var ErrNotFolder = errors.New("not a folder")

// CheckRoot refuses the root of a disk.
func CheckRoot(folder string) error {
	folder = filepath.Clean(folder)
	if folder == "." || filepath.Dir(folder) != folder {
		return nil
	}
	return fmt.Errorf("the root is %s, which holds more than a site: use a folder in it", folder)
}

const (
	maxUnreadable = 3       // paths in Stats.Unreadable
	maxReadAhead  = 8 << 20 // bytes of entries that were read and not yielded yet
)

// Scan yields the pages below o.Root in the order of [page.Compare], each once.
//
// Symbolic links are followed as a file server does. Their targets are listed once: by their own
// path if the scan finds that, else by the first link. Device and inode identify a target; on a
// system without them, links to folders are not followed.
//
// Scan returns the first error of yield, or ctx's. A root that is missing, may not be read or is no folder is an error
// that matches [fs.ErrNotExist], [fs.ErrPermission] or [ErrNotFolder]; one that [CheckRoot] refuses, or a link to such
// a one, is an error, too. Other errors below the root are counted in [Stats], unless the process lacks memory or file
// descriptors, or the file system panics: then pages would be missed, and the scan ends with that error.
//
// No goroutine outlives Scan.
func Scan(ctx context.Context, o Options, yield func(page.Page) error) (Stats, error) {
	s, err := newScan(ctx, o)
	if err == nil && o.Front != "" {
		yield, err = o.yieldFront(yield)
	}
	if err == nil {
		err = s.run(max(o.Workers-1, 0), yield)
	}
	s.watch.end(ctx, err)
	return s.stats(), err
}

// yieldFront yields the front page as the file that Front names, and returns a yield of the other pages.
func (o *Options) yieldFront(yield func(page.Page) error) (others func(page.Page) error, err error) {
	front := page.Page{Path: o.At + "/"}
	name, info := o.shownAt(front.Path)
	if name == "" {
		return yield, nil
	}
	t := info.ModTime()
	front.FileTime = int64(believed(t.Unix(), o.Now.Unix()))
	front.Version = versionOf(t.Unix(), int64(t.Nanosecond()), 0, 0, info.Size(), 0)
	shown := o.At + "/" + page.Escape(name)
	named := o.At + "/" + page.Escape(o.Front)
	others = func(p page.Page) error {
		isShown := p.Path == named || p.Path == shown || p.Path+".html" == shown
		if isShown || p.Path == front.Path {
			return nil
		}
		return yield(p)
	}
	return others, yield(front)
}
