package caddytest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// quickstartSites are those of the quickstart, which is the site of the example of events as well.
var quickstartSites = map[string][]string{
	"http://localhost:{port}": {"/", "/about.html", "/blog/", "/docs/", "/docs/install.html", "/docs/what's%20new%20&%20old.html"},
}

// examples says what each example lists, host by host.
var examples = map[string]struct {
	headers []string
	sites   map[string][]string
	changed string // a page whose change is announced
}{
	// With a stand-in for the plugin that it needs: see TestEventsExample.
	"events":     {sites: quickstartSites},
	"quickstart": {sites: quickstartSites},
	"announcing": {
		sites:   map[string][]string{"https://blog.example.com": {"/", "/about.html", "/posts/", "/posts/apples.html", "/posts/pears.html"}},
		changed: "/posts/pears.html",
	},
	"application": {sites: map[string][]string{
		"http://localhost:{port}": {"/", "/guide/", "/guide/first-steps", "/prices"},
	}},
	"spa": {sites: map[string][]string{
		"http://localhost:{port}": {"/", "/help", "/pricing"},
	}},
	"several-sites": {sites: map[string][]string{
		"http://one.localhost:{port}": {"/", "/about.html"},
		"http://two.localhost:{port}": {"/", "/about.html"},
	}},
	"wildcard": {sites: map[string][]string{
		"http://red.localhost:{port}":  {"/", "/about.html", "/news/today.html"},
		"http://blue.localhost:{port}": {"/", "/about.html"},
	}},
	"behind-a-proxy": {
		headers: []string{"X-Forwarded-Proto: https", "X-Forwarded-Host: shop.example.com"},
		sites:   map[string][]string{"https://shop.example.com": {"/", "/about.html"}},
	},
}

// TestExamples adapts, loads and asks each example.
func TestExamples(t *testing.T) {
	folders, err := filepath.Glob("../examples/*/Caddyfile")
	harness.Must(t, err)
	if len(folders) != len(examples) {
		t.Fatalf("%d examples on disk, %d here", len(folders), len(examples))
	}
	for _, file := range folders {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			example, ok := examples[name]
			if !ok {
				t.Fatal("not in the table")
			}
			s := prepare(t, nil)
			harness.Must(t, os.CopyFS(s.Dir, os.DirFS("../examples")))
			s.Load(inPlace(t, file))
			for base, paths := range example.sites {
				s.checkExample(base, paths, example.headers)
			}
			if example.changed != "" {
				s.checkAnnounced(name, example.changed)
			}
			// One proxies to its own server: a connection dialled while both ends close is
			// closed by neither, so the fetches, and what they dial besides, are let come to their end first.
			s.Crawled()
			s.Passed(time.Second)
		})
	}
}

// inPlace is an example for a free port, whose folders were copied to {dir}.
func inPlace(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	harness.Must(t, err)
	lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "#")
	})
	return strings.NewReplacer(":8080", ":{port}", "* examples", "* {dir}").Replace(strings.Join(lines, ""))
}

// checkAnnounced changes a page of an example that has everything on, whose engines accept that.
func (s *server) checkAnnounced(name, changed string) {
	for _, beside := range []string{"/sitemap.html", "/sitemap.atom", "/sitemap.css"} {
		s.WantStatus(harness.Local+beside, http.StatusOK)
	}
	s.Crawled() // before, nothing is announced
	s.WriteRaw(name+"/site"+changed, dated("2026-11-21"))
	s.Refreshes(1)
	for protocol, status := range map[string]int{"indexnow": http.StatusAccepted, "ping": http.StatusOK, "hub": http.StatusNoContent} {
		s.Logged("changes announced", `"protocol":"`+protocol+`"`, fmt.Sprintf(`"status":%d`, status))
	}
}

// checkExample asks for a site's sitemap, its robots.txt and every page listed.
func (s *server) checkExample(base string, paths, headers []string) {
	s.T.Helper()
	at := harness.Local
	if strings.HasPrefix(base, "http:") {
		at = base
	}
	var want []string
	for _, path := range paths {
		want = append(want, s.Expand(base)+path)
	}
	// What is found by links is there after a few refreshes, and where one site stands for
	// the application of another, the first may find it not yet there.
	var got []string
	var err error
	s.Eventually(func() bool {
		got, err = s.TryLocs(at+"/sitemap.xml", headers...)
		return err == nil && slices.Equal(got, want)
	}, func() string { return fmt.Sprintf("%s lists %q (%v), want %q", s.Expand(base), got, err, want) })
	if r := s.Get(at+"/robots.txt", headers...); !strings.Contains(r.Text, s.Expand("Sitemap: "+base+"/sitemap.xml\n")) {
		s.T.Errorf("robots.txt of %s is %q", s.Expand(base), r.Text)
	}
	for _, path := range paths {
		if r := s.Get(at+path, headers...); r.StatusCode != http.StatusOK {
			s.T.Errorf("%s%s: status %d, want 200", s.Expand(base), path, r.StatusCode)
		}
	}
}
