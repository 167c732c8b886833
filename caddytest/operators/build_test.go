package operators

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/caddytest/sitemaps"
)

// build runs the build command and fails the test if it fails.
func build(t *testing.T, dir string, args ...string) ran {
	t.Helper()
	r := run(t, dir, append([]string{"sitemap", "build"}, args...)...)
	if r.status != 0 {
		t.Fatalf("build %q: status %d\n%s%s", args, r.status, r.stdout, r.stderr)
	}
	return r
}

// refused runs the build command, which is to fail with these words.
func refused(t *testing.T, dir string, args []string, words ...string) {
	t.Helper()
	refusedWith(t, 1, dir, args, words...)
}

// refusedWith is refused with another status.
func refusedWith(t *testing.T, status int, dir string, args []string, words ...string) {
	t.Helper()
	r := run(t, dir, append([]string{"sitemap", "build"}, args...)...)
	if r.status != status {
		t.Errorf("build %q: status %d, want %d\n%s%s", args, r.status, status, r.stdout, r.stderr)
	}
	if r.stdout != "" {
		t.Errorf("build %q prints %q", args, r.stdout)
	}
	wantWords(t, fmt.Sprintf("the error of build %q", args), r.stderr, words...)
}

// locsOf are the URLs of a sitemap in a folder whose URL is given, in order. Every document
// must be there and valid.
func locsOf(t *testing.T, out, url string) []string {
	t.Helper()
	locs, err := readLocs(out, url, "sitemap.xml")
	if err != nil {
		t.Fatal(err)
	}
	return locs
}

func readLocs(out, url, name string) (locs []string, err error) {
	text, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	d, err := sitemaps.Read(string(text))
	if err != nil {
		return nil, err
	}
	locs = sitemaps.Locs(d.Pages)
	for _, child := range d.Children {
		more, err := readLocs(out, url, strings.TrimPrefix(child.Loc, url+"/"))
		if err != nil {
			return nil, err
		}
		locs = append(locs, more...)
	}
	return locs, nil
}

func wantLocs(t *testing.T, out, url string, paths ...string) {
	t.Helper()
	if got, want := locsOf(t, out, url), harness.Below(url, paths); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// names are the files of a folder, without those that begin with a dot.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			all = append(all, e.Name())
		}
	}
	return all
}

// page is a whole document.
func page(text string) string { return harness.Whole("", text) }

// pages are so many documents in folders of a hundred.
func pages(n int) map[string]string {
	files := make(map[string]string)
	for i := range n {
		files[fmt.Sprintf("www/%03d/%03d.html", i/100, i%100)] = page(fmt.Sprintf("page %d", i))
	}
	return files
}

const example = "https://example.com"

var alone = []string{"--root", "www", "--base-url", example}

// TestBuild: a folder gets its sitemap and its robots.txt, of the pages that ask to be
// found.
func TestBuild(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"www/index.html": page("front"), "www/a b.html": page("a"), "www/hidden.html": harness.Whole(`<meta name="robots" content="noindex">`, "x"),
		"www/kept/secret.html": page("secret"), "www/robots.txt": "User-agent: *\nDisallow: /kept/\n",
	})
	r := build(t, dir, alone...)
	wantLocs(t, filepath.Join(dir, "www"), example, "/", "/a%20b.html")
	if got, want := read(t, dir, "www", "robots.txt"), "User-agent: *\nDisallow: /kept/\n\nSitemap: https://example.com/sitemap.xml\n"; got != want {
		t.Errorf("got robots.txt %q, want %q", got, want)
	}
	wantWords(t, "the summary", r.stdout, "https://example.com/sitemap.xml\n", "2 pages in 1 shard",
		"left out, noindex: 1 (/hidden.html)", "(/kept/secret.html)", "written into", "robots.txt is the site's own with one line more")
	if r.stderr != "" {
		t.Errorf("the standard error has %q", r.stderr)
	}

	// Once more, nothing is written.
	old := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range []string{"sitemap.xml", "robots.txt"} {
		if err := os.Chtimes(filepath.Join(dir, "www", name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	r = build(t, dir, alone...)
	wantWords(t, "the summary", r.stdout, ": 0, unchanged: 2, removed: 0")
	for _, name := range []string{"sitemap.xml", "robots.txt"} {
		if info, err := os.Stat(filepath.Join(dir, "www", name)); err != nil || !info.ModTime().Equal(old) {
			t.Errorf("%s was written anew: %v", name, err)
		}
	}
}

// TestBuildFlags tries what each flag does.
func TestBuildFlags(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"www/index.html": page("front"), "www/hidden.html": harness.Whole(`<meta name="robots" content="noindex">`, "x"),
	})
	t.Run("out", func(t *testing.T) {
		build(t, dir, append(alone, "--out", "public/site")...)
		out := filepath.Join(dir, "public", "site")
		wantLocs(t, out, example, "/")
		if got := names(t, out); !slices.Equal(got, []string{"robots.txt", "sitemap.xml"}) {
			t.Errorf("got %q", got)
		}
		if got := names(t, filepath.Join(dir, "www")); !slices.Equal(got, []string{"hidden.html", "index.html"}) {
			t.Errorf("the root has %q", got)
		}
	})
	t.Run("crawl off", func(t *testing.T) {
		build(t, dir, append(alone, "-o", "off", "--crawl", "off")...)
		wantLocs(t, filepath.Join(dir, "off"), example, "/", "/hidden.html")
	})
	t.Run("gzip", func(t *testing.T) {
		build(t, dir, append(alone, "--out", "z", "--gzip")...)
		file, err := os.Open(filepath.Join(dir, "z", "sitemap.xml.gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		z, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := io.ReadAll(z); err != nil || string(plain) != read(t, dir, "z", "sitemap.xml") {
			t.Errorf("got %q, %v", plain, err)
		}
		wantWords(t, "robots.txt", read(t, dir, "z", "robots.txt"), "Sitemap: https://example.com/sitemap.xml\n")
		build(t, dir, append(alone, "--out", "z")...)
		if got := names(t, filepath.Join(dir, "z")); !slices.Equal(got, []string{"robots.txt", "sitemap.xml"}) {
			t.Errorf("without it, there is %q", got)
		}
	})
	t.Run("robots", func(t *testing.T) {
		build(t, dir, append(alone, "--out", "r", "--robots=false")...)
		if got := names(t, filepath.Join(dir, "r")); !slices.Equal(got, []string{"sitemap.xml"}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("quiet", func(t *testing.T) {
		if r := build(t, dir, append(alone, "--out", "q", "--quiet")...); r.stdout+r.stderr != "" {
			t.Errorf("got %q and %q", r.stdout, r.stderr)
		}
		write(t, dir, map[string]string{"nothing/a.css": "x"})
		const want = "Error: https://example.com/sitemap.xml: there is no sitemap: no page to list\n"
		if r := run(t, dir, "sitemap", "build", "--root", "nothing", "--base-url", example, "--quiet"); r.stdout != "" || r.stderr != want {
			t.Errorf("got %q and %q, want %q", r.stdout, r.stderr, want)
		}
	})
	t.Run("json", func(t *testing.T) {
		r := build(t, dir, append(alone, "--out", "j", "--json")...)
		var summary struct {
			Error string
			Sites []struct {
				Sitemap, Out                      string
				Pages, Fetched, Shards, Bytes     int
				LeftOut                           map[string]int `json:"left_out"`
				Examples                          map[string][]string
				Written, Unchanged, Removed, Kept []string
			}
			Duration float64
		}
		if err := json.Unmarshal([]byte(r.stdout), &summary); err != nil {
			t.Fatalf("%v: %s", err, r.stdout)
		}
		if len(summary.Sites) != 1 {
			t.Fatalf("got %s", r.stdout)
		}
		s := summary.Sites[0]
		if s.Sitemap != example+"/sitemap.xml" || s.Out != filepath.Join(dir, "j") || s.Pages != 1 || s.Fetched < 2 || s.Shards != 1 || s.Bytes < 100 ||
			s.LeftOut["noindex"] != 1 || !slices.Equal(s.Examples["noindex"], []string{"/hidden.html"}) || !slices.Equal(s.Written, []string{"sitemap.xml", "robots.txt"}) ||
			s.Unchanged == nil || s.Removed == nil || s.Kept == nil || summary.Duration <= 0 || summary.Error != "" {
			t.Errorf("got %s", r.stdout)
		}
		r = run(t, dir, "sitemap", "build", "--root", "www", "--base-url", "nonsense", "--json")
		if err := json.Unmarshal([]byte(r.stdout), &summary); err != nil || r.status != 2 || !strings.Contains(summary.Error, "--base-url") {
			t.Errorf("got %d %s (%v)", r.status, r.stdout, err)
		}
	})
	t.Run("folder of a URL", func(t *testing.T) {
		r := build(t, dir, "--root", "www", "--base-url", "https://example.com/docs/", "--out", "f")
		wantLocs(t, filepath.Join(dir, "f"), "https://example.com/docs", "/")
		if got := names(t, filepath.Join(dir, "f")); !slices.Equal(got, []string{"sitemap.xml"}) {
			t.Errorf("got %q", got)
		}
		wantWords(t, "the summary", r.stdout, "add this line to https://example.com/robots.txt: Sitemap: https://example.com/docs/sitemap.xml")
	})
}

// TestBuildState: with it, a date says when a page's text changed, as told by two builds.
func TestBuildState(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"www/index.html": page("front"), "www/a.html": page("as it was first"), "www/b.html": page("b"), "www/c.html": page("c")})
	args := append(alone, "--out", "out", "--state", "state")
	build(t, dir, args...)
	if doc := read(t, dir, "out", "sitemap.xml"); strings.Contains(doc, "lastmod") {
		t.Errorf("nothing can be known yet: %s", doc)
	}
	write(t, dir, map[string]string{"www/a.html": page("and another text altogether, which is new")})
	build(t, dir, args...)
	doc := read(t, dir, "out", "sitemap.xml")
	if !strings.Contains(doc, "<loc>https://example.com/a.html</loc><lastmod>") || strings.Count(doc, "lastmod>") != 2 {
		t.Errorf("got %s", doc)
	}
	build(t, dir, args...)
	if again := read(t, dir, "out", "sitemap.xml"); again != doc {
		t.Errorf("got %s, want %s", again, doc)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "state")); err != nil || len(entries) == 0 {
		t.Errorf("the state has %v, %v", entries, err)
	}
}

// TestBuildRefuses tries every error text of what was given.
func TestBuildRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"www/index.html": page("front"), "empty/a.css": "x", "file": "x",
		"noindex/a.html": harness.Whole(`<meta name="robots" content="noindex">`, "x"),
		"Bare":           "example.com {\n\troot * www\n\tfile_server\n}\n",
		"Any":            ":8080 {\n\troot * www\n\tsitemap\n\tfile_server\n}\n",
		"Two":            "a.example {\n\troot * www\n\tsitemap\n\tfile_server\n}\nb.example {\n\troot * empty\n\tsitemap\n\tfile_server\n}\n",
		"Broken":         "example.com {\n\tsitemap {\n\t\trefesh 1m\n\t}\n}\n",
		"Closed":         "http://example.com {\n\troot * www\n\tsitemap\n\tbasic_auth {\n\t\ta $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n\t}\n\tfile_server\n}\n",
		"Rootless":       "http://example.com {\n\tsitemap {\n\t\turls {\n\t\t\t/a\n\t\t}\n\t}\n\trespond ok\n}\n",
		"bad.json":       "{",
	})
	caddyfile := func(name string, more ...string) []string {
		return append([]string{"--config", name, "--adapter", "caddyfile"}, more...)
	}
	for _, test := range []struct {
		args  []string
		words []string
	}{
		{nil, []string{"name the site's folder with --root, or a configuration with --config"}},
		{[]string{"--root", "www"}, []string{"give the site's URL with --base-url"}},
		{[]string{"--root", "www", "--base-url", "example.com"}, []string{"--base-url: ", "it begins with https:// or http://"}},
		{[]string{"--root", "nowhere", "--base-url", example}, []string{"--root: ", "nowhere"}},
		{[]string{"--root", "file", "--base-url", example}, []string{"--root: file is not a folder"}},
		{append(alone, "--crawl", "maybe"), []string{"--crawl is 'maybe': it is on or off"}},
		{append(alone, "--adapter", "caddyfile"), []string{"--adapter is for a configuration"}},
		{append(alone, "extra"), []string{"unexpected 'extra'", "--root"}},
		{append(alone, "--gzipped"), []string{"unknown flag: --gzipped"}},
	} {
		refusedWith(t, 2, dir, test.args, test.words...)
	}
	for _, test := range []struct {
		args  []string
		words []string
	}{
		{append(alone, "--out", "file"), []string{"opening the output folder", "file"}},
		{append(alone, "--out", "file/below"), []string{"opening the output folder", "file"}},
		{[]string{"--root", "empty", "--base-url", example, "--out", "o"}, []string{"there is no sitemap: no page to list", "left out, not included: 1"}},
		{[]string{"--root", "noindex", "--base-url", example, "--out", "o"}, []string{"there is no sitemap: no page to list", "left out, noindex: 1 (/a.html)"}},
		{caddyfile("Nowhere"), []string{"Nowhere"}},
		{[]string{"--config", "bad.json"}, []string{"not valid JSON"}},
		{caddyfile("Broken"), []string{"unrecognized subdirective 'refesh'"}},
		{caddyfile("Bare"), []string{"the configuration has no sitemap handler"}},
		{caddyfile("Any", "--out", "o"), []string{"no matcher of the configuration names a host", "--base-url"}},
		{caddyfile("Two"), []string{"several sites", "--out"}},
		{caddyfile("Two", "--out", "o"), []string{"https://b.example/sitemap.xml: there is no sitemap"}},
		{caddyfile("Two", "--base-url", example), []string{"2 sitemap handlers, and --base-url is that of one"}},
		{caddyfile("Two", "--root", "www", "--out", "o"), []string{"the configuration has 2 roots"}},
		{caddyfile("Closed", "--out", "o"), []string{"refuses anonymous visitors with status 401"}},
		{caddyfile("Rootless"), []string{"no root in which its sitemap could lie", "--out"}},
	} {
		refused(t, dir, test.args, test.words...)
		if _, err := os.Stat(filepath.Join(dir, "o")); err == nil {
			if all := names(t, filepath.Join(dir, "o")); len(all) > 0 {
				t.Errorf("build %q leaves %q", test.args, all)
			}
		}
	}
	refused(t, dir, caddyfile("Two", "--out", "n1/n2/n3"), "there is no sitemap")
	if _, err := os.Stat(filepath.Join(dir, "n1")); err == nil {
		t.Error("folders are left")
	}
	if got := names(t, filepath.Join(dir, "www")); !slices.Equal(got, []string{"index.html"}) {
		t.Errorf("the root has %q", got)
	}
}

// TestBuildForeign: what no build wrote is not replaced, unless that is asked for.
func TestBuildForeign(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"www/index.html": page("front"), "www/sitemap.xml": "by hand", "out/robots.txt": "by hand\n", "www/robots.txt": "User-agent: *\nDisallow:\n"})
	refused(t, dir, alone, "sitemap.xml: the file is there already and was not written by a build; --force replaces it")
	if got := read(t, dir, "www", "sitemap.xml"); got != "by hand" {
		t.Errorf("got %q", got)
	}
	args := append(alone, "--out", "out")
	refused(t, dir, args, "robots.txt: the file is there already", "--robots=false leaves it")
	if got := names(t, filepath.Join(dir, "out")); !slices.Equal(got, []string{"robots.txt"}) {
		t.Errorf("got %q", got)
	}
	build(t, dir, append(args, "--robots=false")...)
	if got := read(t, dir, "out", "robots.txt"); got != "by hand\n" {
		t.Errorf("got %q", got)
	}
	build(t, dir, append(args, "--force")...)
	build(t, dir, append(alone, "--force")...)
	wantLocs(t, filepath.Join(dir, "www"), example, "/")
	wantWords(t, "robots.txt", read(t, dir, "out", "robots.txt"), "Sitemap: ")

	// The site's own changes, and what was made of it with it.
	write(t, dir, map[string]string{"www/robots.txt": "User-agent: *\nDisallow: /x/\n"})
	build(t, dir, args...)
	wantWords(t, "robots.txt", read(t, dir, "out", "robots.txt"), "Disallow: /x/\n", "Sitemap: ")
}

// TestBuildFewer: less than half of the pages of the last build is not believed.
func TestBuildFewer(t *testing.T) {
	for name, more := range map[string][]string{"alone": nil, "with state": {"--state", "state"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, pages(100))
			args := append(append(slices.Clone(alone), "--out", "out"), more...)
			build(t, dir, args...)
			before := read(t, dir, "out", "sitemap.xml")
			for i := range 60 {
				if err := os.Remove(filepath.Join(dir, fmt.Sprintf("www/000/%03d.html", i))); err != nil {
					t.Fatal(err)
				}
			}
			refused(t, dir, args, "less than half of the pages of the last build: 40 instead of 100; --force writes it")
			refused(t, dir, args, "40 instead of 100") // and not the next time
			if read(t, dir, "out", "sitemap.xml") != before {
				t.Error("the sitemap was written")
			}
			build(t, dir, append(args, "--force")...)
			if got := len(locsOf(t, filepath.Join(dir, "out"), example)); got != 40 {
				t.Errorf("got %d pages", got)
			}
			build(t, dir, args...)
		})
	}
}

// sharded is a Caddyfile of a site with small shards.
const sharded = "http://example.com {\n\troot * www\n\tsitemap {\n\t\tshard_urls 50\n\t}\n\tfile_server\n}\n"

// TestBuildShards: one change rewrites one shard, and those that are no more go.
func TestBuildShards(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, pages(1000))
	write(t, dir, map[string]string{"Caddyfile": sharded})
	build(t, dir, "--config", "Caddyfile", "--out", "out")
	out := filepath.Join(dir, "out")
	if got := len(locsOf(t, out, "http://example.com")); got != 1000 {
		t.Fatalf("got %d pages", got)
	}
	before := names(t, out)
	if len(before) < 20 {
		t.Fatalf("got %q", before)
	}
	write(t, dir, map[string]string{"www/003/050x.html": page("one more")})
	r := build(t, dir, "--config", "Caddyfile", "--out", "out", "--json")
	var summary struct {
		Sites []struct{ Written, Unchanged, Removed []string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &summary); err != nil {
		t.Fatal(err)
	}
	if s := summary.Sites[0]; len(s.Written) > 2 || len(s.Unchanged) < len(before)-3 {
		t.Errorf("got %s", r.stdout)
	}
	if got := len(locsOf(t, out, "http://example.com")); got != 1001 {
		t.Errorf("got %d pages", got)
	}

	for i := range 400 {
		if err := os.Remove(filepath.Join(dir, fmt.Sprintf("www/%03d/%03d.html", i/100, i%100))); err != nil {
			t.Fatal(err)
		}
	}
	r = build(t, dir, "--config", "Caddyfile", "--out", "out", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &summary); err != nil || len(summary.Sites[0].Removed) < 5 {
		t.Errorf("got %v, %s", err, r.stdout)
	}
	listed := locsOf(t, out, "http://example.com")
	if len(listed) != 601 {
		t.Errorf("got %d pages", len(listed))
	}
	index := read(t, out, "sitemap.xml")
	for _, name := range names(t, out) {
		if name != "sitemap.xml" && name != "robots.txt" && !strings.Contains(index, "/"+name+"<") {
			t.Errorf("%s is left, and the index does not have it", name)
		}
	}
}

// TestBuildSites: of a configuration with several sites each has its folder, what they are
// is as the server has it, and neither logs nor the state that it names are touched.
func TestBuildSites(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a/index.html": page("a"), "a/docs/guide.html": page("guide"), "b/index.html": page("b"), "b/two.html": page("two"),
		"Caddyfile": `{
	sitemap {
		state ` + filepath.ToSlash(filepath.Join(dir, "servers-state")) + `
	}
}
http://a.example, http://www.a.example {
	log {
		output file ` + filepath.ToSlash(filepath.Join(dir, "access.log")) + `
	}
	root * a
	sitemap
	file_server
}
http://b.example:8081 {
	handle_path /docs/* {
		root * b
		sitemap
		file_server
	}
}
`,
	})
	if r := build(t, dir, "--config", "Caddyfile", "--out", "out"); r.stderr != "" {
		t.Errorf("the standard error has %q", r.stderr)
	}
	if got := names(t, filepath.Join(dir, "out")); !slices.Equal(got, []string{"a.example", "b.example_8081"}) {
		t.Errorf("got %q", got)
	}
	wantLocs(t, filepath.Join(dir, "out", "a.example"), "http://a.example", "/", "/docs/guide.html")
	wantLocs(t, filepath.Join(dir, "out", "b.example_8081", "docs"), "http://b.example:8081/docs", "/", "/two.html")
	for _, name := range []string{"servers-state", "access.log"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("there is %s", name)
		}
	}
}

// TestBuildOverrides: what is given goes before what the configuration says.
func TestBuildOverrides(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"public/index.html": page("a"), "public/hidden.html": harness.Whole(`<meta name="robots" content="noindex">`, "x"), "public/drafts/x.html": page("x"),
		"Caddyfile": ":8080 {\n\troot * /srv/nowhere\n\tsitemap {\n\t\texclude /drafts/*\n\t\tcrawl off\n\t}\n\tfile_server\n}\n",
	})
	args := []string{"--config", "Caddyfile", "--root", "public", "--base-url", example}
	build(t, dir, append(args, "--robots=false")...)
	wantLocs(t, filepath.Join(dir, "public"), example, "/", "/hidden.html")
	build(t, dir, append(args, "--crawl", "on", "--out", "on")...)
	wantLocs(t, filepath.Join(dir, "on"), example, "/")
}

// TestBuildAsServed: what is built is what a server with the same settings serves, byte
// for byte.
func TestBuildAsServed(t *testing.T) {
	s := harness.Prepare(t, nil)
	files := pages(300)
	files["www/hidden.html"] = harness.Whole(`<meta name="robots" content="noindex">`, "x")
	files["www/robots.txt"] = "User-agent: *\nDisallow: /001/\n"
	write(t, s.Dir, files)
	const options = "base_url https://example.com\n\t\tshard_urls 50"
	caddyfile := ":{port} {\n\troot * {dir}/www\n\tsitemap {\n\t\t" + options + "\n\t\trefresh 1s\n\t}\n\tfile_server\n}\n"
	if err := s.Load(caddyfile); err != nil {
		t.Fatal(err)
	}
	s.WantLeftOut(map[string]int{"noindex": 1, "blocked by robots.txt": 100, "not included": 1})
	write(t, s.Dir, map[string]string{"Caddyfile": s.Expand(caddyfile)})
	build(t, s.Dir, "--config", "Caddyfile", "--out", "out", "--gzip")
	out := filepath.Join(s.Dir, "out")
	if got := len(locsOf(t, out, example)); got != 200 {
		t.Errorf("got %d pages", got)
	}
	all := names(t, out)
	for _, name := range all {
		if r := s.Get(harness.Local + "/" + name); r.Text != read(t, out, name) {
			t.Errorf("%s: served is %.300q, built %.300q", name, r.Text, read(t, out, name))
		}
	}
	if len(all) < 10 {
		t.Errorf("got %q", all)
	}
}

// TestBuildBusy: a second build into the same folder fails, and the first one does not
// notice.
func TestBuildBusy(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, pages(10))
	write(t, dir, map[string]string{"Caddyfile": "http://example.com {\n\tsitemap {\n\t\turls {\n\t\t\t/a.html\n\t\t}\n\t}\n\treverse_proxy {env.SLOW}\n}\n"})
	entered, leave := make(chan struct{}, 100), make(chan struct{})
	first := command(dir, "sitemap", "build", "--config", "Caddyfile", "--out", "out", "--quiet")
	first.Env = append(first.Env, "SLOW="+slow(t, entered, leave))
	ended := make(chan ran, 1)
	go func() { ended <- runCommand(t, first) }()
	select {
	case <-entered:
	case r := <-ended:
		t.Fatalf("the first has ended: %+v", r)
	}
	refused(t, dir, append(alone, "--out", "out"), "opening the output folder", "another build is writing there")
	close(leave)
	if r := <-ended; r.status != 0 {
		t.Errorf("the first: %+v", r)
	}
	wantLocs(t, filepath.Join(dir, "out"), "http://example.com", "/a.html")
}

// slow is the address of an application that answers once it may, and says when it was
// asked.
func slow(t *testing.T, entered chan<- struct{}, leave <-chan struct{}) string {
	return harness.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		defer func() { _, _ = io.WriteString(w, page(r.URL.Path)) }()
		if !strings.HasSuffix(r.URL.Path, ".html") {
			return
		}
		select {
		case entered <- struct{}{}:
		default:
		}
		select {
		case <-leave:
		case <-r.Context().Done():
		}
	})
}

// sums are the contents of a folder's files.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, name := range names(t, dir) {
		all[name] = read(t, dir, name)
	}
	return all
}

// TestBuildKilled kills builds at forty moments. After each, the index and all shards that
// it names are there and whole, and what the last build leaves is what one that was never
// killed does.
func TestBuildKilled(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, pages(500))
	write(t, dir, map[string]string{"Caddyfile": sharded})
	args := []string{"sitemap", "build", "--config", "Caddyfile", "--quiet", "--out"}
	begun := time.Now()
	build(t, dir, append(args[2:], "out")...)
	whole := time.Since(begun)
	const kills = 40
	for i := range kills {
		// Every time, half of the folders have other pages.
		for folder := i % 2; folder < 5; folder += 2 {
			from, to := "%03d/050.html", "%03d/050x.html"
			if i/2%2 == 1 {
				from, to = to, from
			}
			if err := os.Rename(filepath.Join(dir, "www", fmt.Sprintf(from, folder)), filepath.Join(dir, "www", fmt.Sprintf(to, folder))); err != nil {
				t.Fatal(err)
			}
		}
		cmd := command(dir, append(args, "out")...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		if i%2 == 0 {
			time.Sleep(whole * time.Duration(i+1) / kills)
		} else {
			awaitWriting(t, filepath.Join(dir, "out"), ended)
			time.Sleep(time.Duration(i) * 200 * time.Microsecond)
		}
		_ = cmd.Process.Kill()
		<-ended
		if locs, err := readLocs(filepath.Join(dir, "out"), "http://example.com", "sitemap.xml"); err != nil || len(locs) < 400 || len(locs) > 600 {
			t.Fatalf("killed for the %dth time: %d pages, %v", i+1, len(locs), err)
		}
	}
	build(t, dir, append(args[2:], "out")...)
	build(t, dir, append(args[2:], "fresh")...)
	if got, want := sums(t, filepath.Join(dir, "out")), sums(t, filepath.Join(dir, "fresh")); !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	left, err := filepath.Glob(filepath.Join(dir, "out", ".caddy-sitemap-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %q, %v", left, err)
	}
}

// awaitWriting waits until a build writes files aside, or has ended.
func awaitWriting(t *testing.T, out string, ended <-chan struct{}) {
	t.Helper()
	for {
		temps, err := filepath.Glob(filepath.Join(out, ".caddy-sitemap-*"))
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
			return
		default:
		}
		if len(temps) > 2 { // one is made to see whether that is allowed
			return
		}
	}
}
