package sitemap

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// TestFilesPlaceholders: a placeholder without a value is an error, since what is left of a root
// without it may be a folder that holds all sites.
func TestFilesPlaceholders(t *testing.T) {
	t.Setenv("SITEMAP_FOLDER", "www")
	t.Setenv("SITEMAP_NONE", "")
	srv, err := caddy.FastAbs("/srv")
	if err != nil {
		t.Fatal(err)
	}
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
		{SourceFiles{Root: "/srv/{http.vars.x}"}, "", "the root '/srv/{http.vars.x}': unrecognized placeholder {http.vars.x}"},
		{SourceFiles{Root: "/srv/{http.request.host.labels.7}"}, "", "the root '/srv/{http.request.host.labels.7}': unrecognized placeholder {http.request.host.labels.7}"},
		{SourceFiles{Root: "/srv/{env.SITEMAP_NONE}"}, "", "the root '/srv/{env.SITEMAP_NONE}': evaluated placeholder {env.SITEMAP_NONE} is empty"},
		{SourceFiles{Root: "{http.request.port}"}, "", "the root '{http.request.port}': evaluated placeholder {http.request.port} is empty"},
		{SourceFiles{Root: "/srv/www", Hide: []string{"*.bak", "/srv/www/{http.vars.x}"}}, "www", "hide '/srv/www/{http.vars.x}': unrecognized placeholder {http.vars.x}"},
		{SourceFiles{Root: "/srv/www", FileSystem: "{http.vars.fs}"}, "www", "fs '{http.vars.fs}': unrecognized placeholder {http.vars.fs}"},
	} {
		o, err := test.source.options(&Refresh{BaseURL: "https://named.example"})
		switch {
		case test.err != "":
			if err == nil || !strings.HasSuffix(err.Error(), test.err) {
				t.Errorf("%+v: got %v, want %s", test.source, err, test.err)
			}
		case err != nil:
			t.Errorf("%+v: got %v", test.source, err)
		case o.Root != filepath.Join(srv, test.root):
			t.Errorf("%+v: got %q, want %q in %q", test.source, o.Root, test.root, srv)
		}
	}
}
