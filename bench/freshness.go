package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// change is something that happens to a site, and when it has arrived.
type change struct {
	what    string
	bound   time.Duration
	happens func(n int)      // for the nth time
	arrived func(n int) bool // after that
}

// rows has each change happen as often as there are runs, one after the other, and measures how long each takes to arrive.
func (b *bench) rows(ctx context.Context, s *server, changes []change) (rows []*row) {
	for _, c := range changes {
		r := &row{what: c.what, show: duration, reach: atMost(c.bound.Seconds())}
		for n := range b.runs {
			begun := time.Now()
			c.happens(n)
			check(s.until(ctx, c.what, func() (bool, error) { return c.arrived(n), nil }))
			took := time.Since(begun).Seconds()
			r.add(took)
			b.say("  freshness: %s: %s (%s)", c.what, duration(took), load())
		}
		rows = append(rows, r)
	}
	return rows
}

// dates are the pages of a small sitemap by path, with their lastmod.
func (s *server) dates(ctx context.Context) map[string]string {
	dates := make(map[string]string)
	for _, entry := range document(ctx, s.sitemap()).Pages {
		dates[must(url.Parse(entry.Loc)).Path] = entry.LastMod
	}
	return dates
}

func (s *server) isListed(ctx context.Context, path string) bool {
	_, isListed := s.dates(ctx)[path]
	return isListed
}

// freshnessRows measure how long it takes from a change until the sitemap shows it, or a search engine is told.
func (b *bench) freshnessRows(ctx context.Context) []*row {
	return slices.Concat(b.savedRows(ctx), b.writtenRows(ctx), b.applicationRows(ctx))
}

const freshPages = 20 // of each site, when it begins

// freshText is a page with a text of its own, which an edit makes longer.
func freshText(name string, edits int, links ...string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "<!doctype html><title>%s</title><h1>%s</h1>", name, name)
	for i := range 5 + edits {
		fmt.Fprintf(&text, "<p>Paragraph %d of %s, in a text of its own.</p>", i, name)
	}
	for _, link := range links {
		fmt.Fprintf(&text, "<a href=%q>%s</a>", link, link)
	}
	return text.String()
}

// savedRows measure a folder of files.
func (b *bench) savedRows(ctx context.Context) []*row {
	const name = "saved"
	check(os.RemoveAll(b.path(name)))
	root := b.path(name + "/root")
	check(os.MkdirAll(root, 0o755))
	old := func(n int) string { return fmt.Sprintf("/page-%d.html", n) }
	added := func(n int) string { return fmt.Sprintf("/new-%d.html", n) }
	write := func(path string, edits int) {
		check(os.WriteFile(filepath.Join(root, path), []byte(freshText(path, edits)), 0o644))
	}
	for i := range freshPages {
		write(old(i), 0)
		longAgo := time.Now().AddDate(0, 0, -10-i)
		check(os.Chtimes(filepath.Join(root, old(i)), longAgo, longAgo))
	}
	addr := freeAddr()
	s := b.start(name, addr, site(addr, files(root, "sitemap")...))
	must(s.listed(ctx, freshPages))
	check(s.settle(ctx))
	var before string
	return b.rows(ctx, s, []change{
		{"a file saved: listed", 3 * time.Second,
			func(n int) { write(added(n), 0) },
			func(n int) bool { return s.isListed(ctx, added(n)) }},
		{"a file removed: not listed any more", 3 * time.Second,
			func(n int) { check(os.Remove(filepath.Join(root, added(n)))) },
			func(n int) bool { return !s.isListed(ctx, added(n)) }},
		{"the text of a file changed: dated", 40 * time.Second,
			func(n int) {
				before = s.dates(ctx)[old(n)]
				write(old(n), 1)
			},
			func(n int) bool { return s.dates(ctx)[old(n)] != before }},
	})
}

// application is a site behind a proxy, and a search engine that is told of its changes.
type application struct {
	mu    sync.Mutex
	lists []string       // pages to which the front page links, and which link to all others; none: it links to these itself
	edits map[string]int // of each page, by path
	gone  map[string]bool
	told  map[string]bool
}

func (a *application) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	edits, isPage := a.edits[r.URL.Path]
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	all := slices.Sorted(maps.Keys(a.edits))
	switch {
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path == "/" && len(a.lists) > 0:
		_, _ = fmt.Fprint(w, freshText("Front page", 0, a.lists...))
	case r.URL.Path == "/", slices.Contains(a.lists, r.URL.Path):
		_, _ = fmt.Fprint(w, freshText("List "+r.URL.Path, 0, all...))
	case a.gone[r.URL.Path]:
		w.WriteHeader(http.StatusGone)
	case isPage:
		_, _ = fmt.Fprint(w, freshText(r.URL.Path, edits))
	default:
		http.NotFound(w, r)
	}
}

// publish adds a page, or edits it.
func (a *application) publish(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.edits[path]++
}

func (a *application) remove(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone[path] = true
}

// isTold reports whether the search engine has been told of a page since it was last asked.
func (a *application) isTold(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	isTold := a.told[path]
	delete(a.told, path)
	return isTold
}

// notice takes a notice of IndexNow.
func (a *application) notice(w http.ResponseWriter, r *http.Request) {
	var body struct{ URLList []string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, raw := range body.URLList {
		a.told[must(url.Parse(raw)).Path] = true
	}
	w.WriteHeader(http.StatusAccepted)
}

// writtenRows measure an application in which somebody who is signed in saves what changes.
func (b *bench) writtenRows(ctx context.Context) []*row {
	const name = "written"
	check(os.RemoveAll(b.path(name)))
	a := &application{edits: make(map[string]int), gone: make(map[string]bool), lists: []string{"/news", "/products"}}
	old := func(n int) string { return fmt.Sprintf("/page-%d", n) }
	added := func(n int) string { return fmt.Sprintf("/new-%d", n) }
	for i := range freshPages {
		a.publish(old(i))
	}
	upstream := httptest.NewServer(a)
	defer upstream.Close()
	addr := freeAddr()
	s := b.start(name, addr, site(addr, "sitemap", "reverse_proxy "+upstream.Listener.Addr().String()))
	must(s.listed(ctx, 1+len(a.lists)+freshPages))
	check(s.settle(ctx))
	var before string
	return b.rows(ctx, s, []change{
		{"a page saved that a list links to: listed", time.Minute,
			func(n int) {
				a.publish(added(n))
				s.write(ctx)
			},
			func(n int) bool { return s.isListed(ctx, added(n)) }},
		{"… corrected: dated", time.Minute,
			func(n int) {
				before = s.dates(ctx)[old(n)]
				a.publish(old(n))
				s.write(ctx)
			},
			func(n int) bool { return s.dates(ctx)[old(n)] != before }},
		{"… removed: not listed any more", time.Minute,
			func(n int) {
				a.remove(added(n))
				s.write(ctx)
			},
			func(n int) bool { return !s.isListed(ctx, added(n)) }},
	})
}

// write sends a request by which somebody who is signed in saves something.
func (s *server) write(ctx context.Context) {
	req := must(http.NewRequestWithContext(ctx, http.MethodPost, s.base()+"/admin", nil))
	req.Header.Set("Cookie", "session=1")
	resp, err := http.DefaultClient.Do(req)
	check(err)
	check(resp.Body.Close())
}

// publicOrigin is by what the search engine is to know the site: none is told of 127.0.0.1.
const publicOrigin = "http://www.sitemap-bench.org"

// applicationRows measure an application, whose pages links and visitors tell of.
func (b *bench) applicationRows(ctx context.Context) []*row {
	const name = "application"
	check(os.RemoveAll(b.path(name)))
	a := &application{edits: make(map[string]int), gone: make(map[string]bool), told: make(map[string]bool)}
	old := func(n int) string { return fmt.Sprintf("/page-%d", n) }
	added := func(n int) string { return fmt.Sprintf("/new-%d", n) }
	for i := range freshPages {
		a.publish(old(i))
	}
	upstream := httptest.NewServer(a)
	defer upstream.Close()
	engine := httptest.NewServer(http.HandlerFunc(a.notice))
	defer engine.Close()
	addr := freeAddr()
	options := fmt.Sprintf("sitemap {\nlinks\ntraffic\nbase_url %s\nindexnow {\nendpoint %s/\n}\n}", publicOrigin, engine.URL)
	s := b.start(name, addr, site(addr, options, "reverse_proxy "+upstream.Listener.Addr().String()))
	must(s.listed(ctx, 1+freshPages))
	// What a first crawl finds is confirmed, and not announced.
	check(s.settle(ctx))
	var before string
	return b.rows(ctx, s, []change{
		{"a page that the front page links to: listed", 2 * time.Minute,
			func(n int) { a.publish(added(n)) },
			func(n int) bool { return s.isListed(ctx, added(n)) }},
		{"… and announced", 4 * time.Minute,
			func(n int) { a.publish(added(b.runs + n)) },
			func(n int) bool { return a.isTold(added(b.runs + n)) }},
		{"a page removed, met by a visitor: not listed any more", 2 * time.Minute,
			func(n int) {
				a.remove(old(n))
				s.visit(ctx, old(n))
			},
			func(n int) bool { return !s.isListed(ctx, old(n)) }},
		{"a text changed, after `refresh --fetch URL`: dated", 2 * time.Minute,
			func(n int) {
				path := old(freshPages - 1 - n)
				before = s.dates(ctx)[path]
				a.publish(path)
				run(ctx, must(os.Executable()), "sitemap", "refresh", "--address", s.admin, "--fetch", publicOrigin+path)
			},
			func(n int) bool { return s.dates(ctx)[old(freshPages-1-n)] != before }},
	})
}

// visit requests a page as a browser does.
func (s *server) visit(ctx context.Context, path string) {
	req := must(http.NewRequestWithContext(ctx, http.MethodGet, s.base()+path, nil))
	req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0")
	resp, err := http.DefaultClient.Do(req)
	check(err)
	check(resp.Body.Close())
}
