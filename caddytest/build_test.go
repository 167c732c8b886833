package caddytest

import (
	"encoding/json"
	"fmt"
	"maps"
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
func refused(t *testing.T, status int, dir string, args []string, words ...string) {
	t.Helper()
	r := run(t, dir, append([]string{"sitemap", "build"}, args...)...)
	if r.status != status {
		t.Errorf("build %q: status %d, want %d\n%s%s", args, r.status, status, r.stdout, r.stderr)
	}
	wantWords(t, fmt.Sprintf("the output of build %q", args), r.stdout+r.stderr, words...)
}

// locsOf are the URLs of a sitemap in a folder whose URL is given, in order. Every document
// must be there and valid.
func locsOf(t *testing.T, out, url string) []string {
	t.Helper()
	locs, err := readLocs(out, url, "sitemap.xml")
	harness.Must(t, err)
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
	harness.Must(t, err)
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

// noindex is a document that is not indexable.
var noindex = harness.Whole(`<meta name="robots" content="noindex">`, "x")

// TestBuild: a folder gets its sitemap and its robots.txt, of its indexable pages.
func TestBuild(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"www/index.html": page("front"), "www/a b.html": page("a"), "www/hidden.html": noindex,
		"www/kept/secret.html": page("secret"), "www/robots.txt": "User-agent: *\nDisallow: /kept/\n",
	})
	r := build(t, dir, alone...)
	wantLocs(t, filepath.Join(dir, "www"), example, "/", "/a%20b.html")
	if got, want := read(t, dir, "www", "robots.txt"), "User-agent: *\nDisallow: /kept/\n\nSitemap: https://example.com/sitemap.xml\n"; got != want {
		t.Errorf("got robots.txt %q, want %q", got, want)
	}
	wantWords(t, "the summary", r.stdout, "https://example.com/sitemap.xml\n", "pages: 2, fetched: 3, shards: 1,",
		"left out, noindex: 1 [/hidden.html]", "[/kept/secret.html]", "written into www: 3,")
	if r.stderr != "" {
		t.Errorf("the standard error has %q", r.stderr)
	}

	// Once more, nothing is written; then the site's own robots.txt changes in another folder.
	old := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range []string{"sitemap.xml", "robots.txt"} {
		harness.Must(t, os.Chtimes(filepath.Join(dir, "www", name), old, old))
	}
	r = build(t, dir, alone...)
	wantWords(t, "the summary", r.stdout, ": 0, unchanged: 3, removed: 0")
	for _, name := range []string{"sitemap.xml", "robots.txt"} {
		if info, err := os.Stat(filepath.Join(dir, "www", name)); err != nil || !info.ModTime().Equal(old) {
			t.Errorf("%s was written anew: %v", name, err)
		}
	}
	for _, disallowed := range []string{"/x/", "/y/"} {
		write(t, dir, map[string]string{"www/robots.txt": "User-agent: *\nDisallow: " + disallowed + "\n"})
		build(t, dir, append(alone, "--out", "out")...)
		wantWords(t, "robots.txt", read(t, dir, "out", "robots.txt"), "Disallow: "+disallowed+"\n", "Sitemap: ")
	}
}

// summary is what --json prints.
type summary struct {
	Error string
	Sites []struct {
		Sitemap, Out                  string
		Pages, Fetched, Shards, Bytes int
		LeftOut                       map[string]int `json:"left_out"`
		Examples                      map[string][]string
		Written, Unchanged, Removed   []string
	}
	Notes []string
}

func summaryOf(t *testing.T, r ran) (s summary) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
		t.Fatalf("%v: %s", err, r.stdout)
	}
	return s
}

func TestBuildJSON(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"www/index.html": page("front"), "www/hidden.html": noindex, "nothing/a.css": "x"})
	r := build(t, dir, append(alone, "--out", "out", "--json")...)
	s := summaryOf(t, r).Sites[0]
	if s.Sitemap != example+"/sitemap.xml" || s.Out != "out" || s.Pages != 1 || s.Fetched < 2 || s.Shards != 1 || s.Bytes < 100 ||
		s.LeftOut["noindex"] != 1 || !slices.Equal(s.Examples["noindex"], []string{"/hidden.html"}) || !slices.Equal(s.Written, []string{"sitemap.css", "sitemap.xml", "robots.txt"}) ||
		s.Unchanged == nil || s.Removed == nil {
		t.Errorf("got %s", r.stdout)
	}
	r = run(t, dir, "sitemap", "build", "--root", "nothing", "--base-url", example, "--json")
	if s := summaryOf(t, r); r.status != 1 || !strings.Contains(s.Error, "https://example.com/sitemap.xml: there is no sitemap: no page to list") {
		t.Errorf("got %d %s", r.status, r.stdout)
	}
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
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // dates are whole seconds
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

// TestBuildFewer: less than half of the pages of the last build is not believed.
func TestBuildFewer(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, pages(100))
	args := append(slices.Clone(alone), "--out", "out", "--state", "state")
	build(t, dir, args...)
	before := read(t, dir, "out", "sitemap.xml")
	for i := range 60 {
		harness.Must(t, os.Remove(filepath.Join(dir, fmt.Sprintf("www/000/%03d.html", i))))
	}
	refused(t, 1, dir, args, "less than half of the pages would be left", "--force writes it")
	refused(t, 1, dir, args, "less than half of the pages would be left") // and not the next time
	if read(t, dir, "out", "sitemap.xml") != before {
		t.Error("the sitemap was written")
	}
	build(t, dir, append(args, "--force")...)
	if got := len(locsOf(t, filepath.Join(dir, "out"), example)); got != 40 {
		t.Errorf("got %d pages", got)
	}
	build(t, dir, args...)
}

// sharded is a Caddyfile of a site with small shards.
const sharded = "http://example.com {\n\troot * www\n\tsitemap {\n\t\tshard_urls 50\n\t}\n\tfile_server\n}\n"

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
http://a.example, http://www.a.example, http://*.a.example {
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
	r := build(t, dir, "--config", "Caddyfile", "--out", "out")
	wantWords(t, "the summary", r.stdout, "note: hosts that only visitors name are not built: set base_url for *.a.example\n")
	if got := names(t, filepath.Join(dir, "out")); !slices.Equal(got, []string{"a.example", "b.example_8081"}) {
		t.Errorf("got %q", got)
	}
	wantLocs(t, filepath.Join(dir, "out", "a.example"), "http://a.example", "/", "/docs/guide.html")
	wantLocs(t, filepath.Join(dir, "out", "b.example_8081", "docs"), "http://b.example:8081/docs", "/", "/two.html")
	// A folder with the name of an old document stays.
	write(t, dir, map[string]string{"a/new.html": page("new"), "b/new.html": page("new"), "out/b.example_8081/docs/sitemap.xml.gz/x": "x"})
	r = build(t, dir, "--config", "Caddyfile", "--out", "out")
	// The new page has the first date, for which the stylesheet gets a column.
	wantWords(t, "the summary", r.stdout, "a.example: 2, unchanged: 1, removed: 0", "docs: 2, unchanged: 0, removed: 0")
	wantLocs(t, filepath.Join(dir, "out", "a.example"), "http://a.example", "/", "/docs/guide.html", "/new.html")
	for _, name := range []string{"servers-state", "access.log"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("there is %s", name)
		}
	}
}

// TestBuildAsServed: what is built is what a server with the same settings serves, byte
// for byte.
func TestBuildAsServed(t *testing.T) {
	s := harness.Prepare(t, nil)
	files := pages(300)
	files["www/hidden.html"] = harness.Whole(`<meta name="robots" content="noindex">`, "x")
	published := time.Now().UTC().Format(time.RFC3339)
	files["www/article.html"] = harness.Whole(`<meta http-equiv=content-language content=en><meta property="article:published_time" content="`+published+`">`, "x")
	files["www/robots.txt"] = "User-agent: *\nDisallow: /001/\n"
	write(t, s.Dir, files)
	const options = "base_url https://example.com\n\t\tshard_urls 50\n\t\tfeed\n\t\thtml\n\t\tnews Times\n\t\tllms\n\t\tlastmod mtime"
	caddyfile := ":{port} {\n\troot * {dir}/www\n\tsitemap {\n\t\t" + options + "\n\t\trefresh 1s\n\t}\n\tfile_server\n}\n"
	s.Load(caddyfile)
	s.WantLeftOut(map[string]int{"noindex": 1, "blocked by robots.txt": 100, "not included": 1})
	write(t, s.Dir, map[string]string{"Caddyfile": s.Expand(caddyfile)})
	build(t, s.Dir, "--config", "Caddyfile", "--out", "out", "--gzip")
	out := filepath.Join(s.Dir, "out")
	if got := len(locsOf(t, out, example)); got != 201 {
		t.Errorf("got %d pages", got)
	}
	all := names(t, out)
	for _, name := range all {
		if strings.HasSuffix(name, ".gz") && !strings.HasSuffix(name, ".xml.gz") { // which only a file server has
			continue
		}
		if r := s.Get(harness.Local + "/" + name); r.Text != read(t, out, name) {
			t.Errorf("%s: served is %.300q, built %.300q", name, r.Text, read(t, out, name))
		}
	}
	for _, name := range []string{"sitemap.atom", "sitemap.css", "sitemap.html", "sitemap.html.gz", "sitemap-news.xml", "sitemap-news.xml.gz", "llms.txt", "llms.txt.gz"} {
		if !slices.Contains(all, name) {
			t.Errorf("got %q, without %s", all, name)
		}
	}
	r := s.Get(harness.Local + "/robots.txt")
	if !strings.Contains(r.Text, "/sitemap.atom\n") || !strings.Contains(r.Text, "/sitemap-news.xml\n") {
		t.Errorf("got robots.txt %q", r.Text)
	}
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

// TestBuildKilled kills builds at twenty moments. After each, the index and all shards that
// it names are there and whole, and the last build leaves what one does that was never
// killed.
func TestBuildKilled(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, pages(500))
	write(t, dir, map[string]string{"Caddyfile": sharded})
	args := []string{"sitemap", "build", "--config", "Caddyfile", "--out"}
	begun := time.Now()
	build(t, dir, append(args[2:], "out")...)
	whole := time.Since(begun)
	const kills = 20
	for i := range kills {
		// Every time, half of the folders have other pages.
		for folder := i % 2; folder < 5; folder += 2 {
			from, to := "%03d/050.html", "%03d/050x.html"
			if i/2%2 == 1 {
				from, to = to, from
			}
			harness.Must(t, os.Rename(filepath.Join(dir, "www", fmt.Sprintf(from, folder)), filepath.Join(dir, "www", fmt.Sprintf(to, folder))))
		}
		cmd := command(dir, append(args, "out")...)
		harness.Must(t, cmd.Start())
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		if i%2 == 0 {
			time.Sleep(whole * time.Duration(i+1) / kills)
		} else {
			awaitWriting(filepath.Join(dir, "out", ".caddy-sitemap.tmp"), ended)
			time.Sleep(time.Duration(i) * 400 * time.Microsecond)
		}
		_ = cmd.Process.Kill()
		<-ended
		if locs, err := readLocs(filepath.Join(dir, "out"), "http://example.com", "sitemap.xml"); err != nil || len(locs) < 400 || len(locs) > 600 {
			t.Fatalf("killed for the %dth time: %d pages, %v", i+1, len(locs), err)
		}
	}
	build(t, dir, append(args[2:], "out")...)
	build(t, dir, append(args[2:], "fresh")...)
	got, want := sums(t, filepath.Join(dir, "out")), sums(t, filepath.Join(dir, "fresh"))
	for name := range got {
		if want[name] == "" && strings.HasPrefix(name, "sitemap-") {
			delete(got, name) // a build was killed between its renaming and that of the index
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	if _, err := os.Stat(filepath.Join(dir, "out", ".caddy-sitemap.tmp")); err == nil {
		t.Error("what was written aside is left")
	}
}

// awaitWriting waits until a build writes files aside, or has ended.
func awaitWriting(aside string, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		default:
		}
		if entries, _ := os.ReadDir(aside); len(entries) > 0 {
			return
		}
	}
}

// TestBuildSections: a build writes the documents of sections, and check accepts them.
func TestBuildSections(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"www/index.html": page("front")}
	for i := range 60 {
		files[fmt.Sprintf("www/blog/%d.html", i)] = page(fmt.Sprint("post ", i))
		files[fmt.Sprintf("www/docs/%d.html", i%9)] = page(fmt.Sprint("chapter ", i%9))
	}
	write(t, dir, files)
	const sections = "\t\tsection blog /blog/*\n\t\tsection docs /docs/*\n\t\tsection none /none/*\n"
	write(t, dir, map[string]string{"Caddyfile": "https://example.com {\n\troot * www\n\tsitemap {\n\t\tshard_urls 20\n\t\tpath /maps.xml\n" + sections + "\t}\n\tfile_server\n}\n"})
	r := build(t, dir, "--config", "Caddyfile", "--out", "out")
	wantWords(t, "the summary", r.stdout, "pages: 70,", "section blog: pages: 60, shards: ", "section docs: pages: 9, shards: 1\n")
	out := filepath.Join(dir, "out")
	wantWords(t, "the index", read(t, out, "maps.xml"), "https://example.com/maps-000000000000.xml<", "https://example.com/maps-docs.xml<", "https://example.com/maps-blog-000000000000.xml<")
	wantWords(t, "that of a section", read(t, out, "maps-blog.xml"), "<sitemapindex", "https://example.com/maps-blog-000000000000.xml<")
	wantWords(t, "robots.txt", read(t, out, "robots.txt"), "Sitemap: https://example.com/maps.xml\n")
	for _, target := range []string{"out/maps.xml", "out/maps-blog.xml", "out/robots.txt"} {
		if r := run(t, dir, "sitemap", "check", "--base-url", "https://example.com", target); r.status != 0 || !strings.Contains(r.stderr, "errors: 0, warnings: 0") {
			t.Errorf("check %s: %d, %s%s", target, r.status, r.stdout, r.stderr)
		}
	}
	for _, name := range names(t, out) { // as a folder is checked, whose names have "sitemap"
		target := strings.Replace(name, "maps", "sitemap", 1)
		write(t, dir, map[string]string{"checked/" + target: strings.ReplaceAll(read(t, out, name), "/maps", "/sitemap")})
	}
	if r := run(t, dir, "sitemap", "check", "--base-url", "https://example.com", "checked"); r.status != 0 || !strings.Contains(r.stderr, "pages: 70, fetched: 0, errors: 0, warnings: 0") {
		t.Errorf("check: %d, %s%s", r.status, r.stdout, r.stderr)
	}
}
