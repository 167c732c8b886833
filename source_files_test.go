package sitemap

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// TestFileSpelling: what a list says is of a file, however it spells its name.
func TestFileSpelling(t *testing.T) {
	root := t.TempDir()
	other := t.TempDir()
	for _, name := range []string{filepath.Join(root, "a,b.html"), filepath.Join(other, "c;d.html")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ofSite := &SourceFiles{}
	apart := &SourceFiles{Root: other, at: "/x+y", At: "/x+y"}
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
		{"another root", []input{ofSite, apart}, false, "/x%2By/c%3Bd.html", "/x+y/c;d.html"},
		{"of another root", []input{ofSite, apart}, false, "/c%3Bd.html", "/c%3Bd.html"},
	} {
		of := &site{identity: identity{handler: &Handler{server: new(caddyhttp.Server), sources: test.sources}}}
		r := &Refresh{BaseURL: "https://named.example", Root: root, site: of, probed: probeResult{siteFiles: siteFiles{unserved: test.unserved}}}
		r.served = r.servedFolders
		if got := r.fileSpelling(test.path); got != test.want {
			t.Errorf("%s: %s: got %s, want %s", test.name, test.path, got, test.want)
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

// TestFetchFile: what a file server says of a path.
func TestFetchFile(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		switch r.URL.Path {
		case "/a.html":
			w.Header().Set("Location", "./a?x=1")
			w.WriteHeader(http.StatusMovedPermanently)
		case "/away.html":
			w.Header().Set("Location", "https://other.example/a")
			w.WriteHeader(http.StatusFound)
		default:
			_, err := io.WriteString(w, r.URL.Path)
			return err
		}
		return nil
	}
	r, err := newRefresh(s, probeResult{}, b.clock)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]files.Response{
		"/a":         {Status: http.StatusOK, Body: []byte("/a")},
		"/a.html":    {Status: http.StatusMovedPermanently, To: "/a?x=1"},
		"/away.html": {Status: http.StatusFound},
	} {
		got := r.fetchFile(t.Context(), path)
		isRedirect := want.Status >= http.StatusMultipleChoices // else To is the path itself
		if got.Status != want.Status || isRedirect && got.To != want.To || string(got.Body) != string(want.Body) {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := r.fetchFile(ended, "/a"); got.Status != 0 || got.Body != nil {
		t.Errorf("after its end: got %+v", got)
	}
}
