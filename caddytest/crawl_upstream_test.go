package caddytest

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// password is the one of a login that no one here knows.
const password = "$2a$04$aPZhuYXBWNJlPRSWPfCZFegvKwmNlOEz6SpV1vpOSgLLGWPTqRZhW"

// twoFolders are the files of the tests of a folder that is served otherwise than the
// rest of its site.
var twoFolders = map[string]string{
	"site/index.html":               harness.HTML("home"),
	"site/about.html":               harness.HTML("about"),
	"site/private/index.html":       harness.HTML("secret plans"),
	"site/private/plan-a.html":      harness.HTML("plan a"),
	"site/private/plan-b.html":      harness.HTML("plan b"),
	"site/private/deep/plan-c.html": harness.HTML("plan c"),
	"site/public/index.html":        harness.HTML("public"),
	"site/public/news.html":         harness.HTML("news"),
	"site/public/private/one.html":  harness.HTML("one"),
}

// TestPagesThatVisitorsGet is which pages are listed where not all of them are
// served from their files.
func TestPagesThatVisitorsGet(t *testing.T) {
	const origin = "http://localhost:{port}"
	open := []string{"/", "/about.html", "/public/", "/public/news.html", "/public/private/one.html"}
	for name, test := range map[string]struct {
		caddyfile string
		files     map[string]string // besides twoFolders
		want      []string
		left      string // words of why others are left out
	}{
		"basic_auth of a folder": {caddyfile: "basic_auth /private/* {\n user " + password + "\n }\n root {dir}/site\n sitemap\n file_server", want: open, left: `"refused":4`},
		"a folder for visitors from inside": {
			caddyfile: "root {dir}/site\n@outside {\n path /private/*\n not remote_ip 127.0.0.1 ::1 private_ranges\n}\nrespond @outside 403\nsitemap\nfile_server",
			want:      open, left: `"refused":4`,
		},
		"templates": {
			caddyfile: "root {dir}/site\nsitemap\ntemplates\nfile_server",
			files: map[string]string{
				"site/_robots.html":      `<meta name="robots" content="noindex">`,
				"site/made.html":         "<!doctype html><head><title>made</title>{{include \"_robots.html\"}}</head>text",
				"site/told.html":         "<!doctype html><head><title>told</title>{{if false}}<meta name=\"robots\" content=\"noindex\">{{end}}</head>text",
				"site/canonical.html":    "<!doctype html><head><title>x</title>{{if false}}<link rel=\"canonical\" href=\"https://elsewhere.example/\">{{end}}</head>text",
				"site/fragment.html":     "{{if false}}x{{else}}<!doctype html><title>a whole one</title>{{end}}",
				"site/no-whole-one.html": "{{if false}}<!doctype html><title>a whole one</title>{{else}}a part{{end}}",
				"site/broken.html":       "<!doctype html><title>broken</title>{{include \"missing.html\"}}",
			},
			want: []string{"/", "/about.html", "/canonical.html", "/fragment.html", "/private/", "/private/deep/plan-c.html", "/private/plan-a.html", "/private/plan-b.html", "/public/", "/public/news.html", "/public/private/one.html", "/told.html"},
			left: `"noindex":2`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(twoFolders)
			maps.Copy(files, test.files)
			s := start(t, origin+" {\n"+test.caddyfile+"\n}", files)
			s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, test.want)...)
			s.Logged(harness.Refreshed, test.left)
			if !slices.Contains(test.want, "/private/") {
				for _, document := range []string{"/sitemap.xml", "/sitemap.txt", "/robots.txt"} {
					if r := s.Get(origin + document); strings.Contains(r.Text, "/private/plan") || strings.Contains(r.Text, "/private/deep") {
						t.Errorf("%s names pages of the folder: %s", document, r.Text)
					}
				}
			}
		})
	}
}

// upstream is an application that serves a folder, and counts what is fetched.
type upstream struct {
	root string

	mu      sync.Mutex
	respond http.HandlerFunc // in the place of files; nil: files
	fetches []string         // paths
}

// isPage reports whether a request is a fetch of a page: the front page is probed with each
// refresh, and no page here.
func isPage(r *http.Request) bool {
	path := r.URL.Path
	return path != "/" && path != "/robots.txt" && !strings.HasPrefix(path, "/sitemap") && strings.HasPrefix(r.UserAgent(), "caddy-sitemap ")
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	if isPage(r) {
		u.fetches = append(u.fetches, r.URL.Path)
	}
	respond := u.respond
	u.mu.Unlock()
	if respond == nil || r.URL.Path == "/robots.txt" {
		http.FileServer(http.Dir(u.root)).ServeHTTP(w, r)
		return
	}
	respond(w, r)
}

// become has the upstream respond so from now on, but for robots.txt; nil: with the files.
// What was fetched before is forgotten.
func (u *upstream) become(respond http.HandlerFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.respond, u.fetches = respond, nil
}

// fetched are the pages that were fetched, in order of their paths, each once.
func (u *upstream) fetched() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(u.fetches)))
}

// startProxied runs a site whose pages, those below {dir}/site, an upstream serves.
func startProxied(t *testing.T, options string, files map[string]string) (*server, *upstream) {
	t.Helper()
	s := prepare(t, files)
	u := &upstream{root: filepath.Join(s.Dir, "site")}
	s.LoadApp(`http://localhost:{port} {
		sitemap {
			refresh 1s
			files {dir}/site {
				clean_urls off
			}
			`+options+`
		}
		reverse_proxy {app}
	}`, u.ServeHTTP)
	return s, u
}

// numbered are n files of one folder, and their URLs.
func numbered(n int) (files map[string]string, urls []string) {
	files = make(map[string]string)
	for i := range n {
		name := fmt.Sprintf("/pages/%02d.html", i)
		files["site"+name] = "<!doctype html><title>page</title><main>the text of page " + name + "</main>"
		urls = append(urls, "http://localhost:{port}"+name)
	}
	return files, urls
}

// touch has all files below {dir}/site changed, their text not.
func (s *server) touch(files map[string]string) {
	s.T.Helper()
	now := time.Now()
	for name := range files {
		harness.Must(s.T, os.Chtimes(filepath.Join(s.Dir, filepath.FromSlash(name)), now, now))
	}
}

// TestUpstreamMaintenance is an upstream that responds to everything alike for a while, or
// with what says nothing of a page: all that was good stays.
func TestUpstreamMaintenance(t *testing.T) {
	const n = 6
	responses := map[string]http.HandlerFunc{
		"maintained": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<!doctype html><title>Maintenance</title><main>We will be back soon.</main>"))
		},
		"redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/maintenance", http.StatusFound) },
		"unavailable": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Robots-Tag", "noindex")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"breaks-off": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				w.Header().Set("Content-Length", "9")
			}
			_, _ = w.Write([]byte("<"))
		},
	}
	files, _ := numbered(n)
	s := prepare(t, files)
	upstreams, was, changes := make(map[string]*upstream), make(map[string]string), make(map[string]int)
	var caddyfile strings.Builder
	for name := range responses {
		u := &upstream{root: filepath.Join(s.Dir, "site")}
		upstreams[name] = u
		// A refresh must have the time for all pages: a loss that comes in small parts is not held back.
		concurrency := map[string]int{"maintained": n, "redirects": n, "unavailable": 1, "breaks-off": 1}[name]
		fmt.Fprintf(&caddyfile, "%s {\n sitemap {\n refresh 1500ms\n files {dir}/site {\n clean_urls off\n }\n crawl {\n rate 1000/s\n concurrency %d\n }\n }\n reverse_proxy %s\n}\n", originOf(name), concurrency, harness.Backend(t, u.ServeHTTP))
	}
	s.Load(caddyfile.String())
	var origins []string
	for name := range responses {
		origins = append(origins, originOf(name))
		s.Eventually(func() bool { return len(upstreams[name].fetched()) == n }, s.SitemapLog)
	}
	s.Refreshes(2)
	changed := func(name string) int {
		return len(s.LogLines(harness.Refreshed+`"`, `"site":"`+originOf(name)+`"`))
	}
	for name, respond := range responses {
		if was[name], changes[name] = s.Get(originOf(name)+"/sitemap.xml").Text, changed(name); strings.Count(was[name], "<loc>") != n {
			t.Fatalf("%s: the sitemap is %s", name, was[name])
		}
		upstreams[name].become(respond)
	}
	s.touch(files)
	for name, u := range upstreams {
		want := map[string]int{"maintained": n, "redirects": n, "breaks-off": 3}[name] // at an ever slower pace
		s.Eventually(func() bool { return len(u.fetched()) >= want }, func() string {
			return fmt.Sprintf("%s: fetched %q\n%s", name, u.fetched(), s.SitemapLog())
		})
	}
	check := func(when string) {
		t.Helper()
		for name := range responses {
			if is := s.Get(originOf(name) + "/sitemap.xml").Text; is != was[name] {
				t.Errorf("%s, %s, the sitemap has become\n%s, want\n%s\n%s", name, when, is, was[name], s.SitemapLog())
			}
		}
	}
	s.Logged(harness.HeldBack, originOf("redirects"))
	s.RefreshedAgain(origins...)
	check("meanwhile")
	if pages := upstreams["unavailable"].fetched(); len(pages) > 1 { // none, if the front page was requested first
		t.Errorf("an upstream that is to be left alone got requests for %q", pages)
	}
	for _, u := range upstreams {
		u.become(nil)
	}
	s.RefreshedAgain(origins...)
	s.RefreshedAgain(origins...)
	check("afterwards")
	for name := range responses {
		if got := changed(name); got != changes[name] {
			t.Errorf("%s: the sitemap changed in between:\n%s", name, s.SitemapLog())
		}
	}
}

// TestRobotsForbids is that what robots.txt keeps crawlers from is neither fetched nor
// listed.
func TestRobotsForbids(t *testing.T) {
	const private = "/private/ /private/deep/plan-c.html /private/plan-a.html /private/plan-b.html"
	const public = "/public/ /public/news.html /public/private/one.html"
	files := maps.Clone(twoFolders)
	files["site/robots.txt"] = "User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nDisallow: /public/\n"
	s, u := startProxied(t, "crawl {\n rate 100/s\n}", files)
	allowed := strings.Fields("/about.html " + private)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, append([]string{"/"}, allowed...))...)
	s.Refreshes(1)
	if got := u.fetched(); !slices.Equal(got, allowed) {
		t.Errorf("fetched %q, want %q", got, allowed)
	}
	// Another robots.txt is heeded with the next refresh that an operator asks for, and else with the tenth.
	s.Write(map[string]string{"site/robots.txt": "User-agent: *\nDisallow: /about\n"})
	s.Refreshes(1)
	allowed = strings.Fields(private + " " + public)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, append([]string{"/"}, allowed...))...)
	s.Eventually(func() bool {
		got := u.fetched()
		return slices.Equal(slices.DeleteFunc(got, func(path string) bool { return path == "/about.html" }), allowed)
	}, func() string { return fmt.Sprintf("fetched %q\n%s", u.fetched(), s.SitemapLog()) })
}

// TestQuietUpstream: that the rest of a long response is of no use is nothing that reverse_proxy would log.
func TestQuietUpstream(t *testing.T) {
	front := linking("home", "/missing/a", "/missing/b", "/refused", "/data", "/a")
	long := strings.Repeat("<p>a line of a long page</p>\n", 10_000)
	s := prepare(t, nil)
	s.LoadApp(behind("links"), func(w http.ResponseWriter, r *http.Request) {
		status, body := http.StatusNotFound, linking("There is no such page.")
		switch r.URL.Path {
		case "/":
			status, body = http.StatusOK, front
		case "/a":
			status, body = http.StatusOK, linking("a")
		case "/data":
			status = http.StatusOK
			w.Header().Set("Content-Type", "application/octet-stream")
		case "/refused":
			status = http.StatusForbidden
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body+long)
	})
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/", harness.Local+"/a")
	s.WantLeftOut(map[string]int{"not found": 2, "refused": 1, "not HTML": 1})
	s.Refreshes(1)
	if lines := s.LogLines("aborting with incomplete response"); len(lines) > 0 {
		t.Errorf("%d responses were aborted, the first: %s", len(lines), lines[0])
	}
}

// TestModifiedInParts: a client that asks whether the sitemap was modified since it saw a part of the first crawl gets the whole.
func TestModifiedInParts(t *testing.T) {
	const pages = 25
	s := prepare(t, nil)
	var links []string
	for i := range pages - 1 {
		links = append(links, fmt.Sprint("/page-", i))
	}
	// Without the last page, the crawl cannot end before there is a response with a part of the pages.
	got := make(chan struct{})
	hasPart := sync.OnceFunc(func() { close(got) })
	s.LoadApp(harness.Local+" {\n sitemap {\n crawl {\n rate 10/s\n}\n}\n reverse_proxy {app}\n}", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			fmt.Fprint(w, linking("home", links...))
			return
		case links[len(links)-1]:
			select {
			case <-got:
			case <-r.Context().Done():
			}
		}
		fmt.Fprint(w, linking("page "+r.URL.Path))
	})
	t.Cleanup(hasPart)
	const sitemap = harness.Local + "/sitemap.xml"
	part := s.Get(sitemap)
	hasPart()
	if n := strings.Count(part.Text, "<url>"); part.StatusCode != http.StatusOK || n == pages {
		t.Fatalf("status %d with %d pages, want a part", part.StatusCode, n)
	}
	s.Eventually(func() bool { return len(s.Locs(sitemap)) == pages }, s.SitemapLog)
	since := part.Header.Get("Last-Modified")
	if whole := s.Get(sitemap, "If-Modified-Since: "+since); whole.StatusCode != http.StatusOK {
		t.Errorf("modified since %s: status %d, want 200", since, whole.StatusCode)
	}
}
