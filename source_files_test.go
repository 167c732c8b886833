package sitemap

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// TestFilesPlaceholders: a placeholder without a value is an error, since what is left of a root
// without it may be a folder that holds all sites.
func TestFilesPlaceholders(t *testing.T) {
	t.Setenv("SITEMAP_FOLDER", "www")
	t.Setenv("SITEMAP_NONE", "")
	of := &site{identity: identity{handler: &Handler{server: new(caddyhttp.Server)}}}
	for _, test := range []struct {
		source SourceFiles
		root   string
		err    string
	}{
		{SourceFiles{Root: "/srv/www"}, "www", ""},
		{SourceFiles{Root: "/srv/{env.SITEMAP_FOLDER}"}, "www", ""},
		{SourceFiles{Root: "/srv/{http.request.host}"}, "named.example", ""},
		{SourceFiles{Root: "/srv/{http.request.host.labels.1}"}, "named", ""},
		{SourceFiles{Root: `/srv/\{a}`}, "{a}", ""},
		{SourceFiles{Root: "/srv/{http.vars.x}"}, "", "'/srv/{http.vars.x}': evaluated placeholder {http.vars.x} is empty"},
		{SourceFiles{Root: "/srv/{http.request.host.labels.7}"}, "", "'/srv/{http.request.host.labels.7}': evaluated placeholder {http.request.host.labels.7} is empty"},
		{SourceFiles{Root: "/srv/{env.SITEMAP_NONE}"}, "", "'/srv/{env.SITEMAP_NONE}': evaluated placeholder {env.SITEMAP_NONE} is empty"},
		{SourceFiles{Root: "/srv/{http.request.uri.path}"}, "", "'/srv/{http.request.uri.path}': evaluated placeholder {http.request.uri.path} is empty"},
		{SourceFiles{Root: "/srv/{http.time_until_shutdown}"}, "", "'/srv/{http.time_until_shutdown}': evaluated placeholder {http.time_until_shutdown} is empty"},
		{SourceFiles{Root: "{http.request.port}"}, "", "'{http.request.port}': evaluated placeholder {http.request.port} is empty"},
		{SourceFiles{Root: "/srv/www", Hide: []string{"*.bak", "/srv/www/{http.vars.x}"}}, "www", "'/srv/www/{http.vars.x}': evaluated placeholder {http.vars.x} is empty"},
		{SourceFiles{Root: "/srv/www", FileSystem: "{http.vars.fs}"}, "www", "'{http.vars.fs}': evaluated placeholder {http.vars.fs} is empty"},
	} {
		o, err := test.source.options(&Refresh{BaseURL: "https://named.example", site: of})
		switch {
		case test.err != "":
			if err == nil || !strings.HasSuffix(err.Error(), test.err) {
				t.Errorf("%+v: got %v, want %s", test.source, err, test.err)
			}
		case err != nil:
			t.Errorf("%+v: got %v", test.source, err)
		case o.Root != "/srv/"+test.root:
			t.Errorf("%+v: got %q, want %q in /srv", test.source, o.Root, test.root)
		}
	}
}

// TestFilesOptions: what is scanned, by the settings of a source and by what the site's file server says.
func TestFilesOptions(t *testing.T) {
	of := &site{identity: identity{handler: &Handler{server: new(caddyhttp.Server)}}}
	r := &Refresh{
		BaseURL: "https://named.example", Root: "/srv/site", Prefix: "/docs", Hide: append(make([]string, 0, 9), "served"), Index: []string{"default.html"}, site: of,
	}
	for _, test := range []struct {
		source SourceFiles
		want   string // root, URL folder, which of PDFs, pages and others are included, what is excluded and hidden, and the index
	}{
		{SourceFiles{}, "/srv/site /docs [/b.html] [] [served] [default.html]"},
		{SourceFiles{Root: "/srv/www", At: "/x/"}, "/srv/www /x [/b.html] [] [served] [default.html]"},
		{SourceFiles{Include: []string{"*.pdf"}}, "/srv/site /docs [/a.pdf /b.html] [] [served] [default.html]"},
		{SourceFiles{IncludeOnly: []string{"*.pdf"}}, "/srv/site /docs [/a.pdf] [] [served] [default.html]"},
		{SourceFiles{Include: []string{"/a/*"}, IncludeOnly: []string{"*.pdf"}}, "/srv/site /docs [/a.pdf /a/c] [] [served] [default.html]"},
		{SourceFiles{Exclude: []string{"/b/*"}, Hide: []string{"secret"}, Index: []string{"home.html"}}, "/srv/site /docs [/b.html] [/b/*] [served secret] [home.html]"},
	} {
		if err := test.source.check(); err != nil {
			t.Fatal(err)
		}
		o, err := test.source.options(r)
		included := slices.DeleteFunc([]string{"/a.pdf", "/a/c", "/b.html"}, func(path string) bool { return !o.Includes(path) })
		got := fmt.Sprint(filepath.ToSlash(o.Root), " ", o.At, " ", included, " ", o.Exclude, " ", o.Hide, " ", o.Index)
		if err != nil || got != test.want {
			t.Errorf("%+v: got %s, %v, want %s", test.source, got, err, test.want)
		}
	}
	r.probed.front = "home.html"
	for want, source := range map[string]SourceFiles{"home.html": {}, "start.html": {Root: "/srv/www", front: "start.html"}} {
		if o, err := source.options(r); err != nil || o.Front != want {
			t.Errorf("%+v: got the front page %q, %v, want %q", source, o.Front, err, want)
		}
	}
	if all := r.Hide[:2]; all[1] != "" {
		t.Errorf("what the file server hides became %q", all)
	}
}

// TestFetchFile: a path of the site is requested below its prefix, and no redirect is followed.
func TestFetchFile(t *testing.T) {
	b := newBench(t, func(h *Handler) {
		h.mounts = mounts{{hosts: []string{"named.example"}, prefix: "/docs"}}
	})
	b.pages = answering(map[string]answer{
		"/docs/a.html": {http.StatusOK, "Content-Type: text/html", "a"},
		"/docs/b.html": {http.StatusPermanentRedirect, "Location: /docs/a.html", ""},
	})
	s, err := b.app.site(siteID{b.handler, address{scheme: "http", host: "named.example", prefix: "/docs"}})
	if err != nil {
		t.Fatal(err)
	}
	r := &Refresh{BaseURL: s.origin, site: s}
	for path, want := range map[string]files.Response{
		"/docs/a.html":       {Status: http.StatusOK, Body: []byte("a")},
		"/docs/b.html":       {Status: http.StatusPermanentRedirect},
		"/docs/nowhere.html": {Status: http.StatusNotFound},
	} {
		got := r.fetchFile(t.Context(), path)
		if got.Status != want.Status || !bytes.Equal(got.Body, want.Body) {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := r.fetchFile(ended, "/docs/a.html"); got.Status != 0 || got.Body != nil {
		t.Errorf("after its end: got %+v", got)
	}
}

// TestFileSpelling: what a list says is of a file, however it spells its name.
func TestFileSpelling(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a,b.html"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ofSite := &SourceFiles{}
	for _, test := range []struct {
		name       string
		sources    []input
		unserved   bool
		path, want string
	}{
		{"no files source", []input{&SourceURLs{}}, false, "/a%2Cb.html", "/a%2Cb.html"},
		{"a file", []input{&SourceURLs{}, ofSite}, false, "/a%2Cb.html", "/a,b.html"},
		{"a file that nothing serves", []input{ofSite}, true, "/a%2Cb.html", "/a%2Cb.html"},
		{"no file", []input{ofSite}, false, "/a%3Bb.html", "/a%3Bb.html"},
		{"one spelling", []input{ofSite}, false, "/a,b.html", "/a,b.html"},
	} {
		of := &site{identity: identity{handler: &Handler{server: new(caddyhttp.Server), sources: test.sources}}}
		r := &Refresh{BaseURL: "https://named.example", Root: root, site: of, probed: probeResult{siteFiles: siteFiles{unserved: test.unserved}}, leftOut: make(map[string]int)}
		if got := r.fileSpelling(test.path); got != test.want {
			t.Errorf("%s: %s: got %s, want %s", test.name, test.path, got, test.want)
		}
		err := r.read(t.Context(), &SourceURLs{URLs: []string{test.path}}, 0, func(p page.Page) error {
			if p.Path != test.want {
				t.Errorf("%s: of a list: got %s, want %s", test.name, p.Path, test.want)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: of a list: %v", test.name, err)
		}
	}
}

// refusing is a file system one folder of which cannot be read.
type refusing struct{ fs.FS }

func (r refusing) Open(name string) (fs.File, error) {
	if name == "srv/denied" {
		return nil, fs.ErrPermission
	}
	return r.FS.Open(name)
}

// TestFilesPages: what a source yields, and what it warns of.
func TestFilesPages(t *testing.T) {
	const unread = "cannot read some files or folders"
	file := &fstest.MapFile{Mode: 0o644}
	b := newBench(t, nil)
	b.handler.ctx.FileSystems().Register("other", fstest.MapFS{"srv/good/b.html": file})
	for name, test := range map[string]struct {
		source     SourceFiles
		isUnserved bool
		want       string
		warning    string
	}{
		"a root":                 {SourceFiles{Root: "srv/good", CleanURLs: "off"}, false, "/a.html", ""},
		"clean URLs":             {SourceFiles{Root: "srv/good", CleanURLs: "on"}, false, "/a", ""},
		"a pattern":              {SourceFiles{Root: "srv/good", CleanURLs: "off", IncludeOnly: []string{"*.txt"}}, false, "/c.txt", ""},
		"another file system":    {SourceFiles{Root: "srv/good", CleanURLs: "off", FileSystem: "other"}, false, "/b.html", ""},
		"a folder is unread":     {SourceFiles{Root: "srv", CleanURLs: "off"}, false, "/good/a.html", unread},
		"the site's root":        {SourceFiles{CleanURLs: "off"}, false, "/a.html", ""},
		"nothing serves it":      {SourceFiles{CleanURLs: "off"}, true, "", "the site's files are not listed: no 'file_server' serves its root, srv/good: "},
		"nothing serves its own": {SourceFiles{Root: "srv/good", CleanURLs: "off"}, true, "/a.html", ""},
	} {
		r, err := newRefresh(b.site("named.example"), probeResult{siteFiles: siteFiles{unserved: test.isUnserved}}, b.clock)
		if err != nil {
			t.Fatal(err)
		}
		r.Root = "srv/good"
		r.FS = refusing{fstest.MapFS{"srv/good/a.html": file, "srv/good/c.txt": file, "srv/denied/b.html": file}}
		b.logs.TakeAll()
		if err := test.source.check(); err != nil {
			t.Fatal(err)
		}
		var paths []string
		err = test.source.pages(t.Context(), r, func(p page.Page) error {
			paths = append(paths, p.Path)
			return nil
		})
		if got := strings.Join(paths, " "); got != test.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, test.want)
		}
		warned := b.logs.FilterMessageSnippet(test.warning).Len() > 0
		if warned != (test.warning != "") || b.logs.Len() > 1 || (r.leftOut[files.Unreadable] == 1) != (test.warning == unread) {
			t.Errorf("%s: got the log %v, left out: %v", name, b.logs.All(), r.leftOut)
		}
	}
}

// TestFileTimes: what a file system says of a time that cannot be is no time of a file.
func TestFileTimes(t *testing.T) {
	b := newBench(t, nil)
	r, err := newRefresh(b.site("named.example"), probeResult{}, b.clock)
	if err != nil {
		t.Fatal(err)
	}
	now := b.clock.Unix()
	for name, test := range map[string]struct{ at, want int64 }{
		"now":           {now, now},
		"in the future": {now + 1, 0},
		"the epoch":     {0, 0},
		"of 1980":       {page.Earliest - 1, 0},
		"of 1981":       {page.Earliest, page.Earliest},
	} {
		r.FS = fstest.MapFS{"a.html": {Data: []byte("a"), ModTime: time.Unix(test.at, 0)}}
		got := int64(-1)
		source := SourceFiles{Root: ".", CleanURLs: "off"}
		if err := source.check(); err != nil {
			t.Fatal(err)
		}
		err := source.pages(t.Context(), r, func(p page.Page) error {
			got = p.FileTime
			return nil
		})
		if err != nil || got != test.want {
			t.Errorf("%s: got %d, %v, want %d", name, got, err, test.want)
		}
	}
}

// TestFilesBeforeFrontPage: where no source is written and robots.txt fails, as while an application starts, it is not
// known yet whether the site has files, so nobody is told to set a root.
func TestFilesBeforeFrontPage(t *testing.T) {
	const noRoot = "no file root"
	for _, test := range []struct {
		isWritten bool
		isClosed  bool
		want      int
	}{{false, true, 0}, {false, false, 1}, {true, true, 1}, {true, false, 1}} {
		b := newBench(t, func(h *Handler) { h.isDefault = !test.isWritten })
		probed := probeResult{robots: robotsRules{closed: test.isClosed}, siteFiles: siteFiles{noRoot: noRoot}}
		r, err := newRefresh(b.site("named.example"), probed, b.clock)
		if err != nil {
			t.Fatal(err)
		}
		err = new(SourceFiles).pages(t.Context(), r, func(page.Page) error { return nil })
		warnings := b.logged("the site's files are not listed: " + noRoot)
		if warnings != test.want || err != nil {
			t.Errorf("%+v: got %d warnings, %v", test, warnings, err)
		}
	}
}
