package caddytest

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// slowly responds to requests for /a.txt only once what returns is done, or the request was canceled, and to others at once.
func slowly(until func() <-chan struct{}, pages http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a.txt" {
			select {
			case <-until():
			case <-r.Context().Done():
				return
			}
		}
		pages.ServeHTTP(w, r)
	}
}

// withLists is an application with two lists, and with a page that each names.
func withLists() http.Handler {
	const text = "Content-Type: text/plain\n\n"
	return newWeb(map[string]string{"/a.txt": text + "/a", "/b.txt": text + "/b", "/a": linking("a"), "/b": linking("b")})
}

// besideFiles is a site of files and an application.
func besideFiles(sources, app string) string {
	return harness.Local + " {\nroot {dir}/root\nsitemap {\n" + sources + "\n}\n@files file\nhandle @files {\nfile_server\n}\n" +
		"handle {\nreverse_proxy " + app + "\n}\n}"
}

// TestSlowList: while a list that takes longer than a client waits, and than a page may take, is all that could tell of pages,
// clients are told to come again, and not that there is no sitemap. Its pages are listed once it has come.
func TestSlowList(t *testing.T) {
	const haste = 5
	for name, test := range map[string]struct {
		sources, want string
	}{
		"alone":               {"urls /a.txt", "/a"},
		"alone, each second":  {"refresh 1s\nurls /a.txt", "/a"},
		"with crawl off":      {"crawl off\nurls /a.txt", "/a"},
		"behind a quick list": {"crawl off\nurls /b.txt /a.txt", "/a /b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.PrepareChildren(t, map[string]string{"root/f.html": page("f")})
			late := func() <-chan struct{} {
				ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second/haste)
				context.AfterFunc(ctx, cancel)
				return ctx.Done()
			}
			app := httptest.NewServer(slowly(late, withLists()))
			defer app.Close()
			c := s.Child(besideFiles(test.sources, app.Listener.Addr().String()), harness.Haste(haste))
			defer c.Kill()
			// Each request waits for as long as clients do.
			for r := s.First(c); r.StatusCode != http.StatusOK; r = s.Get(harness.Local + "/sitemap.xml") {
				if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
					t.Fatalf("meanwhile: status %d, Retry-After %q\n%s", r.StatusCode, r.Header.Get("Retry-After"), s.SitemapLog())
				}
			}
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, strings.Fields(test.want))...)
		})
	}
}

// TestSlowListBeside: what other sources know is listed while a list takes long, and the list soon after it has come.
func TestSlowListBeside(t *testing.T) {
	for name, test := range map[string]struct {
		sources, meanwhile, want string
	}{
		"files": {"urls /a.txt\nfiles", "/f.html", "/a /f.html"},
		"lines": {"urls /a.txt\nurls {\n/b\n}", "/b", "/a /b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, map[string]string{"root/index.html": page("front"), "root/f.html": page("f")})
			release := make(chan struct{})
			s.LoadApp(besideFiles(test.sources, "{app}"), slowly(func() <-chan struct{} { return release }, withLists()))
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, strings.Fields(test.meanwhile))...)
			close(release)
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, strings.Fields(test.want))...)
		})
	}
}

// brokenSitemaps are sitemaps in which the entry of /b.html cannot be read, or something behind all entries.
func brokenSitemaps() map[string]string {
	entry := func(path, more string) string {
		return "<url><loc>" + harness.Local + path + "</loc><lastmod>2024-05-06</lastmod>" + more + "</url>"
	}
	urlset := func(entries ...string) string {
		return `<?xml version="1.0"?><urlset xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">` + strings.Join(entries, "\n") + "</urlset>\n"
	}
	a := entry("/a.html", "")
	c := entry("/c.html", "")
	return map[string]string{
		"a bare ampersand":         urlset(a, entry("/b.html?x=1&y=2", ""), c),
		"one of an image":          urlset(a, entry("/b.html", "<image:image><image:loc>/i.png?x&y</image:loc></image:image>"), c),
		"a control character":      urlset(a, entry("/b.html\x0b", ""), c),
		"an entity":                strings.Replace(urlset(a, entry("/b.html", "<x>&writer;</x>"), c), "?>", `?><!DOCTYPE urlset [<!ENTITY writer "me">]>`, 1),
		"a missing end tag":        urlset(a, entry("/b.html", "<priority>"), c),
		"an entry that has no end": strings.Replace(urlset(a, entry("/b.html", ""), c), "</url>\n<url><loc>"+harness.Local+"/c", "\n<url><loc>"+harness.Local+"/c", 1),
		"junk behind it":           urlset(a, c) + "\n<b>Warning</b>: memory & time <br",
		"a line of dashes":         urlset(a, "<!-- --- more --- <url> -->"+entry("/c.html", "")),
		"a cut end":                strings.TrimSuffix(urlset(a, c, entry("/b.html", "")), "/url></urlset>\n"),
	}
}

// TestBrokenSitemaps: what is wrong with an entry of a generator's sitemap is lost with that entry, and told. No build fails
// for a sitemap that nobody has named.
func TestBrokenSitemaps(t *testing.T) {
	for name, sitemap := range brokenSitemaps() {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, map[string]string{"root/a.html": page("a"), "root/b.html": page("b"), "root/c.html": page("c")})
			s.Write(map[string]string{"root/sitemap.xml": s.Expand(sitemap)})
			s.Load(harness.Local + " {\nroot {dir}/root\n" + plain + "file_server\n}")
			s.WantDates(harness.Local, map[string]string{"/a.html": "2024-05-06", "/b.html": "", "/c.html": "2024-05-06"})
			isEntry := name != "junk behind it" && name != "a line of dashes"
			if isEntry {
				s.Logged("own sitemap", "no XML", `"count":1`)
			}
		})
	}
}

// TestBuildBesideBrokenSitemap: a build lists what can be read, and says what cannot.
func TestBuildBesideBrokenSitemap(t *testing.T) {
	dir := t.TempDir()
	harness.Must(t, os.MkdirAll(dir+"/root", 0o755))
	write := func(name, content string) {
		harness.Must(t, os.WriteFile(dir+"/root/"+name, []byte(content), 0o644))
	}
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	_, err := z.Write([]byte("<urlset><url><loc>https://example.com/a.html</loc><lastmod>2024-05-06</lastmod></url></urlset>"))
	harness.Must(t, err)
	harness.Must(t, z.Close())
	write("a.html", page("a"))
	write("sitemap.xml.gz", compressed.String()+"done in 3 s\n")
	build(t, dir, "--root", "root", "--base-url", "https://example.com", "--out", "out")
	wantLocs(t, dir+"/out", "https://example.com", "/a.html")
	text, err := os.ReadFile(dir + "/out/sitemap.xml")
	harness.Must(t, err)
	if !strings.Contains(string(text), "2024-05-06") {
		t.Errorf("the date is missing: %s", text)
	}

	harness.Must(t, os.Remove(dir+"/root/sitemap.xml.gz"))
	write("sitemap.xml", "<urlset><url><loc>https://example.com/a.html</loc></url><url><loc>https://exam")
	r := build(t, dir, "--root", "root", "--base-url", "https://example.com", "--out", "second")
	wantLocs(t, dir+"/second", "https://example.com", "/a.html")
	if !strings.Contains(r.stdout+r.stderr, "own sitemaps") {
		t.Errorf("nothing is told of the sitemap: %s%s", r.stdout, r.stderr)
	}
}
