package harness

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Write makes files below {dir}: a name that ends in a slash is a folder, a content
// that begins with "-> " a symbolic link. What is to be HTML and has no tag becomes a
// whole document.
func (s *Server) Write(files map[string]string) {
	s.T.Helper()
	for name, content := range files {
		path := filepath.Join(s.Dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			Must(s.T, os.MkdirAll(path, 0o755))
			continue
		}
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			Must(s.T, os.MkdirAll(filepath.Dir(path), 0o755))
			Symlink(s.T, filepath.FromSlash(target), path)
			continue
		}
		s.WriteRaw(name, wholePage(name, content))
	}
}

// Symlink makes a symbolic link. On Windows, that takes a privilege, and the test is skipped without it.
func Symlink(t *testing.T, target, path string) {
	t.Helper()
	err := os.Symlink(target, path)
	if err != nil && runtime.GOOS == "windows" {
		t.Skip(err)
	}
	Must(t, err)
}

// wholePage is the text as a whole document where the name is that of one.
func wholePage(name, text string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".html", ".htm", ".xhtml":
		if text != "" && !strings.Contains(text, "<") {
			return "<!doctype html><title>" + name + "</title>" + text
		}
	}
	return text
}

// Put makes a file of a time, in the place of an older one if there is one, at once.
func (s *Server) Put(name, content string, when time.Time) {
	s.T.Helper()
	s.WriteRaw("aside", wholePage(name, content))
	aside := filepath.Join(s.Dir, "aside")
	Must(s.T, os.Chtimes(aside, when, when))
	path := filepath.Join(s.Dir, filepath.FromSlash(name))
	Must(s.T, os.MkdirAll(filepath.Dir(path), 0o755))
	Must(s.T, os.Rename(aside, path))
}

// DayOf is a day of the year 2000.
func DayOf(i int) time.Time { return time.Date(2000, 1, 1+i, 0, 0, 0, 0, time.UTC) }

// HTML is a page of that title.
func HTML(title string) string { return "<!doctype html><title>" + title + "</title>" }

// TwoRoots are the files of sites that share a server: most tests of sites have them.
var TwoRoots = map[string]string{
	"a/index.html":        HTML("a"),
	"a/one.html":          HTML("one"),
	"a/docs/index.html":   HTML("docs"),
	"a/docs/guide.html":   HTML("guide"),
	"b/index.html":        HTML("b"),
	"b/two.html":          HTML("two"),
	"b/docs/install.html": HTML("install"),
}

// The pages of the two roots, at the front of a site.
var (
	PagesOfA = []string{"/", "/docs/", "/docs/guide.html", "/one.html"}
	PagesOfB = []string{"/", "/docs/install.html", "/two.html"}
)

// Stamp is a date as sitemaps say it.
func Stamp(when time.Time) string { return when.UTC().Format(sitemapDate) }

const sitemapDate = "2006-01-02T15:04:05Z"

// Whole is a document with something in its head, and a text.
func Whole(head, text string) string {
	return "<!doctype html><html><head><title>a page</title>" + head + "</head><body>" + text + "</body></html>"
}

// WriteRaw makes a file of just these bytes below {dir}.
func (s *Server) WriteRaw(name, content string) {
	s.T.Helper()
	path := filepath.Join(s.Dir, filepath.FromSlash(name))
	Must(s.T, os.MkdirAll(filepath.Dir(path), 0o755))
	Must(s.T, os.WriteFile(path, []byte(content), 0o644))
}
