package sitemap

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBuildFlags: a build is of a folder with its URL, or of a configuration, which sets everything else.
func TestBuildFlags(t *testing.T) {
	folder := t.TempDir()
	const (
		incomplete = "name the site's folder with --root and its URL with --base-url, or a configuration with --config"
		ofConfig   = "with --config, name a folder with --out; root, base_url, crawl and stylesheet are set in the configuration"
	)
	for _, test := range []struct {
		name  string
		build *build
		want  string
	}{
		{"a folder", &build{root: folder, baseURL: "https://example.com", crawl: true, stylesheet: true}, ""},
		{"no crawl, no stylesheet", &build{root: folder, baseURL: "https://example.com"}, ""},
		{"nothing", &build{crawl: true, stylesheet: true}, incomplete},
		{"no URL", &build{root: folder, crawl: true, stylesheet: true}, incomplete},
		{"no folder", &build{baseURL: "https://example.com", crawl: true, stylesheet: true}, incomplete},
		{"a configuration", &build{config: "Caddyfile", out: folder, crawl: true, stylesheet: true}, ""},
		{"no output", &build{config: "Caddyfile", crawl: true, stylesheet: true}, ofConfig},
		{"both, a folder", &build{config: "Caddyfile", out: folder, root: folder, crawl: true, stylesheet: true}, ofConfig},
		{"both, a URL", &build{config: "Caddyfile", out: folder, baseURL: "https://example.com", crawl: true, stylesheet: true}, ofConfig},
		{"without a crawl", &build{config: "Caddyfile", out: folder, stylesheet: true}, ofConfig},
		{"without a stylesheet", &build{config: "Caddyfile", out: folder, crawl: true}, ofConfig},
	} {
		got := ""
		if err := test.build.check(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestBuild builds folders. No other test has sites of these names: those of a build are not dropped, as its process ends.
func TestBuild(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"index.html": "<title>Home</title>", "a.html": "<title>A</title>", "robots.txt": "User-agent: *\nDisallow: /x\n",
		"hidden.html": `<title>Hidden</title><meta name="robots" content="noindex">`,
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const url = "https://built.example"
	for _, test := range []struct {
		name   string
		flags  []string
		files  []string          // those of the output
		parts  map[string]string // of the files
		status int
		output string // a part
	}{
		{
			name:  "little",
			flags: []string{"--robots=false", "--stylesheet=false", "--crawl=false", "--gzip"},
			files: []string{"sitemap.xml", "sitemap.xml.gz"},
			parts: map[string]string{"sitemap.xml": "<loc>https://built.example/hidden.html</loc>"},
		},
		{
			name:   "a URL with a folder",
			flags:  []string{"--base-url", url + "/docs"},
			files:  []string{"sitemap.css", "sitemap.xml"},
			parts:  map[string]string{"sitemap.xml": "<loc>https://built.example/docs/a.html</loc>"},
			output: "add this line to that of https://built.example: Sitemap: https://built.example/docs/sitemap.xml",
		},
		{
			name:   "no such folder",
			flags:  []string{"--root", filepath.Join(root, "missing")},
			status: exitFailed, output: `for "--root" flag: open `,
		},
		{
			name:   "no URL",
			flags:  []string{"--base-url", "built.example"},
			status: exitFailed, output: `invalid argument "built.example" for "--base-url" flag`,
		},
		{
			name:   "an argument",
			flags:  []string{"extra"},
			status: exitFailed, output: "unexpected argument 'extra': the site's folder is named by --root",
		},
		{
			name:   "a file as the output",
			flags:  []string{"--out", filepath.Join(root, "a.html")},
			status: exitErrors, output: "opening the output folder: ",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := t.TempDir()
			args := append([]string{"build", "--root", root, "--base-url", url, "--out", out}, test.flags...)
			r := runCommand(t.Context(), nil, args...)
			if r.status != test.status || !strings.Contains(strings.ReplaceAll(r.stdout+r.stderr, `": `, `":`), test.output) {
				t.Errorf("got %+v", r)
			}
			var files []string
			entries, _ := os.ReadDir(out)
			for _, entry := range entries {
				files = append(files, entry.Name())
			}
			if !slices.Equal(files, test.files) {
				t.Errorf("got %q, want %q", files, test.files)
			}
			for name, part := range test.parts {
				text, err := os.ReadFile(filepath.Join(out, name))
				if err != nil || !strings.Contains(string(text), part) {
					t.Errorf("%s: got %q, %v", name, text, err)
				}
			}
		})
	}
}

// TestBuildRoot: the configuration that is made of a folder has that as its root, whatever characters its name has.
func TestBuildRoot(t *testing.T) {
	for root, want := range map[string]string{
		"/srv/www":        "/srv/www",
		`/srv/a "b" {c}`:  `/srv/a "b" {c}`,
		`C:\www\public`:   `C:\www\public`,
		`.\public\`:       `.\public\/`,
		`/srv/back\slash`: `/srv/back\slash`,
	} {
		b := &build{root: root, baseURL: "https://example.com", prefix: "/build"}
		encoded, err := b.encodedConfig()
		if err != nil {
			t.Errorf("%s: %v", root, err)
			continue
		}
		quoted, _ := json.Marshal(want)
		for _, part := range []string{`"root":` + string(quoted), `"stylesheet":false`, `"handler":"file_server"`} {
			if !strings.Contains(string(encoded), part) {
				t.Errorf("%s: no %s in %s", root, part, encoded)
			}
		}
	}
}

// TestBuildRobotsHost: robots.txt is requested as pages are, by the host that visitors use.
func TestBuildRobotsHost(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "Caddyfile")
	out := filepath.Join(dir, "out")
	err := os.WriteFile(config, []byte(`:8080 {
		sitemap {
			base_url https://robots.built.example
			links
		}
		respond /robots.txt "# robots.txt of {http.request.hostport}"
		header / Content-Type text/html
		respond "<title>Home</title>"
	}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	r := runCommand(t.Context(), nil, "build", "--config", config, "--adapter", "caddyfile", "--out", out)
	text, err := os.ReadFile(filepath.Join(out, "robots.txt"))
	if want := "# robots.txt of robots.built.example\n"; err != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("got %q, %v, want %q; %+v", text, err, want, r)
	}
}

// TestBuildConfiguration builds the sites of a configuration, each in a folder of its own.
func TestBuildConfiguration(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"www/index.html": "<title>Home</title>",
		"hidden/a.html":  `<title>Hidden</title><meta name="robots" content="noindex">`,
		"two": `
			http://a.built.example, http://b.built.example:8080 {
				root * www
				sitemap
				file_server
			}
			http://*.c.built.example {
				root * www
				sitemap
				file_server
			}`,
		"hosts of visitors": `
			:80 {
				root * www
				sitemap
				file_server
			}`,
		"no page": `
			http://a.built.example {
				sitemap
				respond "no page" 404
			}`,
		"no page of the second": `
			http://a.built.example {
				root * www
				sitemap
				file_server
			}
			http://b.built.example {
				root * hidden
				sitemap
				file_server
			}`,
		"two sitemaps": `
			http://a.built.example {
				root * www
				sitemap
				sitemap {
					path /other.xml
				}
				file_server
			}`,
		"a login": `
			http://a.built.example {
				sitemap
				respond "who are you?" 401
			}`,
		"broken": `http://a.built.example {`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, test := range []struct {
		config string
		files  []string // below the output
		status int
		output string // a part
	}{
		{"two", []string{"a.built.example/robots.txt", "a.built.example/sitemap.css", "a.built.example/sitemap.xml", "b.built.example_8080/sitemap.xml"}, 0,
			"hosts that only visitors name are not built: set base_url for *.c.built.example"},
		{"hosts of visitors", nil, exitErrors, "the configuration has no sitemap handler whose hosts are named: set base_url"},
		{"no page", nil, exitErrors, "there is no sitemap: "},
		{"no page of the second", nil, exitErrors, "left out, noindex: 1 [/a.html]"},
		{"two sitemaps", nil, exitErrors, "http://a.built.example has two sitemaps: "},
		{"a login", nil, exitErrors, "refuses anonymous visitors"},
		{"broken", nil, exitErrors, "reading the configuration: "},
		{"missing", nil, exitErrors, "reading the configuration: "},
	} {
		t.Run(test.config, func(t *testing.T) {
			out := t.TempDir()
			r := runCommand(t.Context(), nil, "build", "--config", test.config, "--adapter", "caddyfile", "--out", out)
			if r.status != test.status || !strings.Contains(r.stdout+r.stderr, test.output) {
				t.Errorf("got %+v", r)
			}
			for _, name := range test.files {
				if _, err := os.Stat(filepath.Join(out, name)); err != nil {
					t.Error(err)
				}
			}
			written, _ := filepath.Glob(filepath.Join(out, "*", "*"))
			if test.status != 0 && len(written) > 0 {
				t.Errorf("it fails, and leaves %q", written)
			}
		})
	}
}
