package caddytest

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

func init() { caddy.RegisterModule(new(hookedFS)) }

// hookedFS is a folder as a file system, with a test's hook before each Open.
type hookedFS struct {
	Dir string `json:"dir,omitempty"`
}

// openHook may refuse to open a name, or do anything else meanwhile.
var openHook atomic.Pointer[func(name string) error]

func (*hookedFS) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.fs.test_hooked", New: func() caddy.Module { return new(hookedFS) }}
}

func (h *hookedFS) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	d.Args(&h.Dir)
	return nil
}

func (h *hookedFS) Open(name string) (fs.File, error) {
	if hook := openHook.Load(); hook != nil && *hook != nil {
		if err := (*hook)(name); err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
	return os.DirFS(h.Dir).Open(name)
}

// hook sets the hook until the test ends; nil: none.
func hook(t *testing.T, f func(name string) error) {
	t.Cleanup(func() { openHook.Store(nil) })
	openHook.Store(&f)
}

const hookedSite = `{
	filesystem hooked test_hooked {dir}/site
}
http://localhost:{port} {
	root * .
	fs hooked
	sitemap {
		refresh 1s
	}
	file_server
}`

// TestRootsThatAreNone: a root of which nothing can be listed leaves the site as it is
// without a sitemap, and a line in the log.
func TestRootsThatAreNone(t *testing.T) {
	for _, test := range []struct {
		name, root string
		files      map[string]string
		line       string
	}{
		{"missing", "{dir}/none", nil, "no such file"},
		{"a file", "{dir}/file", map[string]string{"file": "x"}, "not a directory"},
		{"all there is", "/", nil, "holds more than a site"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, strings.Replace(everySecond, "{dir}/site", test.root, 1), test.files)
			s.Logged(`"level":"`, test.line)
			for _, path := range []string{"/sitemap.xml", "/robots.txt"} {
				if r := s.Get("http://localhost:{port}" + path); r.StatusCode != http.StatusNotFound {
					t.Errorf("%s: status %d, want 404", path, r.StatusCode)
				}
			}
			s.Refreshes(2) // what each refresh logs would be there twice
			if test.name == "missing" {
				s.Write(map[string]string{"none/index.html": "home"})
				s.WantLocs("http://localhost:{port}/sitemap.xml", "http://localhost:{port}/")
			}
			if n := len(s.LogLines(test.line, `"logger":"http.handlers.sitemap"`)); n != 1 {
				t.Errorf("the log says %d times that %q\n%s", n, test.line, s.SitemapLog())
			}
		})
	}
}

// TestRootComesAndGoes: what is suddenly amiss is held back; recovery is believed at once.
func TestRootComesAndGoes(t *testing.T) {
	files := make(map[string]string)
	var all []string
	for i := range 9 {
		files[fmt.Sprintf("site/%d.html", i)] = "x"
		all = append(all, fmt.Sprintf("http://localhost:{port}/%d.html", i))
	}
	const url = "http://localhost:{port}/sitemap.xml"
	must := func(err error) {
		t.Helper()
		harness.Must(t, err)
	}
	replace := func(s *server, files map[string]string) {
		must(os.Rename(filepath.Join(s.Dir, "site"), filepath.Join(s.Dir, "away")))
		s.Write(files)
	}
	remove := func(s *server) { must(os.RemoveAll(filepath.Join(s.Dir, "site"))) }
	var vanishing sync.Mutex
	mended := false
	for _, test := range []struct {
		name   string
		amiss  func(*server)
		reason string
		mend   func(*server) // nil: what was replaced comes back
	}{
		{"a file in its place", func(s *server) { replace(s, map[string]string{"site": "x"}) }, "could not be read", nil},
		{"half copied", func(s *server) {
			replace(s, map[string]string{"site/0.html": "x", "site/1.html": "x", "site/2.html": "", "site/3.html": ""})
		}, "less than half", nil},
		{"may not be read", func(*server) { hook(t, func(string) error { return fs.ErrPermission }) }, "less than half", func(*server) { hook(t, nil) }},
		{"vanishes while it is scanned", func(s *server) {
			hook(t, func(name string) error {
				vanishing.Lock()
				defer vanishing.Unlock()
				if name != "." && !mended {
					remove(s)
				}
				return nil
			})
		}, "", func(s *server) {
			vanishing.Lock()
			defer vanishing.Unlock()
			mended = true
			remove(s)
			s.Write(files)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, hookedSite, files)
			s.WantLocs(url, slices.Clone(all)...)
			good := s.Get(url)
			test.amiss(s)
			if test.name == "may not be read" {
				s.Eventually(func() bool { return s.Get(url).StatusCode == http.StatusForbidden }, s.SitemapLog) // as file_server has it
				s.Logged(`"level":"warn"`, "cannot read . of file system 'hooked': permission denied", `"remedy":"Let the user that runs Caddy read it`)
			} else {
				s.Logged(harness.HeldBack, test.reason)
				s.RefreshedAgain(harness.Local)
				s.WantLocs(url, slices.Clone(all)...)
			}
			if n := len(s.LogLines(harness.HeldBack, test.reason)); n > 2 || n > 1 && test.reason != "" {
				t.Errorf("the log says %d times that it is held back, want once", n)
			}
			if test.mend != nil {
				test.mend(s)
			} else {
				remove(s)
				must(os.Rename(filepath.Join(s.Dir, "away"), filepath.Join(s.Dir, "site")))
			}
			s.WantLocs(url, slices.Clone(all)...)
			if r := s.Get(url); test.mend == nil && r.Header.Get("Etag") != good.Header.Get("Etag") {
				t.Error("the same files have another ETag")
			}
		})
	}
}

// TestHostsThatAreNone: a bad request where a host is needed, and no matter elsewhere.
func TestHostsThatAreNone(t *testing.T) {
	s := start(t, `
http://:{port} {
	root * {dir}/site
	sitemap
	file_server
}`, map[string]string{"site/index.html": "home", "site/robots.txt": "User-agent: *\nDisallow:\n"})
	for _, host := range []string{"", ".", "a_b!c", "a%20b", "*.example", "user@host", "[::1", "[]", ":80", "a..b", strings.Repeat("a", 64) + ".example", strings.Repeat("a", 5000), "a b", "<a>", "\xff\xfe", "a\\b"} {
		if got := s.Raw("GET /sitemap.xml HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"); got != http.StatusBadRequest {
			t.Errorf("Host %q: status %d, want 400", host, got)
		}
		// Either net/http refuses it, or the site has its own robots.txt and pages.
		for _, path := range []string{"/robots.txt", "/"} {
			if got := s.Raw("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"); got != http.StatusBadRequest && got != http.StatusOK {
				t.Errorf("Host %q, %s: status %d", host, path, got)
			}
		}
	}
	if got := s.Raw("GET /sitemap.xml HTTP/1.0\r\n\r\n"); got != http.StatusBadRequest {
		t.Errorf("no Host at all: status %d, want 400", got)
	}
	for _, host := range []string{"A.Example.", "127.0.0.1", "[::1]:80", "xn--bcher-kva.example", "a_b.example"} {
		if got := s.Raw("GET /sitemap.xml HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"); got != http.StatusOK {
			t.Errorf("Host %q: status %d, want 200", host, got)
		}
	}
	if lines := s.LogLines("panic"); len(lines) > 0 {
		t.Errorf("the log says: %s", lines[0])
	}
}
