package caddytest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	sitemap "github.com/seed3295b519/caddy-sitemap"
	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

func init() { caddy.RegisterModule(new(scripted)) }

// scripted is a source of pages that does what a test's script says, which it knows
// by name, so that a reload meets the same script.
type scripted struct {
	Name string `json:"name,omitempty"`
}

func (*scripted) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.sitemap.sources.scripted", New: func() caddy.Module { return new(scripted) }}
}

func (s *scripted) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.Args(&s.Name) {
		return d.ArgErr()
	}
	return nil
}

func (s *scripted) Pages(ctx context.Context, r *sitemap.Refresh, yield func(sitemap.Page) error) error {
	found, ok := scripts.Load(s.Name)
	if !ok {
		return fmt.Errorf("no script %s", s.Name)
	}
	return found.(*script).run(ctx, r, yield)
}

var scripts sync.Map

// script is what a scripted source does, and what was seen of it.
type script struct {
	mu      sync.Mutex
	pages   []string
	err     error
	panics  bool
	hold    chan struct{}  // runs wait until it is closed; nil: they do not
	runs    map[string]int // by site
	running map[string]int
	overlap bool // two of one site at a time
}

// newScript makes the script that `scripted <name of the test>` follows.
func newScript(t *testing.T, pages ...string) *script {
	s := &script{pages: pages, runs: make(map[string]int), running: make(map[string]int)}
	scripts.Store(t.Name(), s)
	t.Cleanup(func() { scripts.Delete(t.Name()) })
	return s
}

func (s *script) run(ctx context.Context, r *sitemap.Refresh, yield func(sitemap.Page) error) error {
	s.mu.Lock()
	s.runs[r.BaseURL]++
	s.running[r.BaseURL]++
	s.overlap = s.overlap || s.running[r.BaseURL] > 1
	pages, err, panics, hold := s.pages, s.err, s.panics, s.hold
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running[r.BaseURL]--
	}()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, path := range pages {
		if err := yield(sitemap.Page{Path: path}); err != nil {
			return err
		}
	}
	if panics {
		panic("as the script says")
	}
	return err
}

// atOnce is how many run now. Under mu.
func (s *script) atOnce() int {
	n := 0
	for _, running := range s.running {
		n += running
	}
	return n
}

// with reads or changes the script.
func (s *script) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// total is how many runs there were, over all sites.
func (s *script) total() (n int) {
	s.with(func() {
		for _, runs := range s.runs {
			n += runs
		}
	})
	return n
}

// await waits until so many more runs have begun and ended.
func (s *script) await(server *server, more int) {
	server.T.Helper()
	want := s.total() + more
	server.Eventually(func() bool {
		done := false
		total := s.total()
		s.with(func() { done = total >= want && s.atOnce() == 0 || total > want })
		return done
	}, func() string { return fmt.Sprintf("got %d runs, want %d\n%s", s.total(), want, server.SitemapLog()) })
}

const everySecond = `
http://localhost:{port} {
	root * {dir}/site
	sitemap {
		refresh 1s
	}
	file_server
}`

func TestRefreshFollowsFiles(t *testing.T) {
	s := prepare(t, nil)
	// Days apart: files of the same minute are a deployment, and have no dates.
	for i, name := range []string{"index.html", "a.html", "b.html"} {
		s.Put("site/"+name, name, harness.DayOf(i))
	}
	s.Load(everySecond)
	const url = "http://localhost:{port}/sitemap.xml"
	s.WantLocs(url, "http://localhost:{port}/", "http://localhost:{port}/a.html", "http://localhost:{port}/b.html")

	s.Crawled()
	changes := len(s.LogLines(`"level":"info"`, harness.Refreshed))
	before := s.Get(url)
	s.Quietly(1)
	after := s.Get(url)
	for _, name := range []string{"Etag", "Last-Modified"} {
		if after.Header.Get(name) != before.Header.Get(name) || before.Header.Get(name) == "" {
			t.Errorf("%s: %q after an unchanged refresh, %q before", name, after.Header.Get(name), before.Header.Get(name))
		}
	}

	s.Write(map[string]string{"site/new/index.html": "new"})
	s.WantLocs(url, "http://localhost:{port}/", "http://localhost:{port}/a.html", "http://localhost:{port}/b.html", "http://localhost:{port}/new/")

	at := time.Now()
	s.Put("site/a.html", "changed", at)
	s.Eventually(func() bool {
		return strings.Contains(s.Get(url).Text, "<lastmod>"+harness.Stamp(at))
	}, func() string { return "a changed file keeps its date: " + s.Get(url).Text })

	harness.Must(t, os.Remove(filepath.Join(s.Dir, "site", "b.html")))
	s.WantLocs(url, "http://localhost:{port}/", "http://localhost:{port}/a.html", "http://localhost:{port}/new/")
	if r := s.Get(url); r.Header.Get("Etag") == before.Header.Get("Etag") {
		t.Error("other pages have the same ETag")
	}
	if n := len(s.LogLines(`"level":"info"`, harness.Refreshed)) - changes; n > 3 {
		t.Errorf("after the first crawl, %d lines say that it was refreshed; only changes are worth one", n)
	}
}

// scriptedSites are n sites on one server whose pages a script gives.
func scriptedSites(t *testing.T, n int, options string) string {
	var hosts []string
	for i := range n {
		hosts = append(hosts, fmt.Sprintf("http://s%d.localhost:{port}", i))
	}
	return strings.Join(hosts, ", ") + " {\n\tsitemap {\n\t\trefresh 1s\n\t\tscripted " + t.Name() + "\n\t\t" + options + "\n\t}\n\t" + aPage + "\n}"
}

// TestFailingSource and TestPanickingSource are promise 4, seen from outside.
func TestFailingSource(t *testing.T) {
	s := testHeldBack(t, func(script *script) {
		script.err = errors.New("scripted failure")
		script.pages = []string{"/a"}
	})
	s.wantLoggedOnce(harness.GatheringFails, "scripted failure")
}

func TestPanickingSource(t *testing.T) {
	s := testHeldBack(t, func(script *script) {
		script.panics = true
		script.pages = []string{"/a"}
	})
	s.wantLoggedOnce(harness.GatheringFails, "as the script says")
	s.wantLoggedOnce(harness.GatheringFails, `"stack"`)
}

// wantLoggedOnce reports if a line with some words was not logged once.
func (s *server) wantLoggedOnce(words ...string) {
	s.T.Helper()
	if n := len(s.LogLines(words...)); n != 1 {
		s.T.Errorf("%q is logged %d times, want once", words, n)
	}
}

// testHeldBack has a source fail for a while, in which nothing changes.
func testHeldBack(t *testing.T, fail func(*script)) *server {
	t.Helper()
	pages := []string{"/a", "/b", "/c", "/d"}
	script := newScript(t, pages...)
	s := start(t, scriptedSites(t, 1, "urls {\n/listed\n}"), nil)
	const url, base = "http://s0.localhost:{port}/sitemap.xml", "http://s0.localhost:{port}"
	wantAll := func() {
		t.Helper()
		s.WantLocs(url, base+"/a", base+"/b", base+"/c", base+"/d", base+"/listed")
	}
	wantAll()
	good := s.Get(url)
	script.with(func() { fail(script) })
	s.Logged(harness.HeldBack)
	script.await(s, 2)
	wantAll()
	s.wantLoggedOnce(harness.HeldBack)
	script.with(func() {
		script.err = nil
		script.panics = false
		script.pages = pages
	})
	wantAll()
	script.await(s, 2)
	if r := s.Get(url); r.Header.Get("Etag") != good.Header.Get("Etag") {
		t.Error("the same pages as before have another ETag")
	}
	return s
}

// TestSamePagesSameBytes is promise 3: another server, another order of making the files.
func TestSamePagesSameBytes(t *testing.T) {
	const pages = 300
	countFetches(t)
	s := prepare(t, nil)
	var documents []map[string]string
	for _, first := range []int{0, pages - 1} {
		for i := range pages {
			n := max(first-i, i-first)
			s.Put(fmt.Sprintf("site/d%d/f%d.html", n%7, n), "x", harness.DayOf(0))
		}
		s.Begin(stateIn("off", "shard_urls 50"))
		s.Crawled()
		documents = append(documents, s.bodies())
		s.Stop()
		harness.Must(t, os.RemoveAll(filepath.Join(s.Dir, "site")))
	}
	if one, other := documents[0], documents[1]; len(one) < 5 || !maps.Equal(one, other) {
		t.Errorf("got %v, then %v", one, other)
	}
}
