package model

import (
	"fmt"
	"html"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// condition is what whoever requests a page gets.
type condition uint8

const (
	indexable condition = iota
	hidden              // by a meta tag that says noindex
	missing             // 404; a file does not exist
	moved               // a redirect
	refused             // 401
)

// page is a page of the site, as it is now.
type page struct {
	path      string
	isFile    bool
	isList    bool // the front page, or a page of links: it stays
	condition condition
	title     string
	text      []string // paragraphs
	template  int      // which one it was rendered with last
	from      *page    // which links to it; nil: none does, as its file is found
}

// site is the truth: a site of files, of an application, or of both.
type site struct {
	folder  string   // of the files
	sources []object // as configured; nil: the default
	proxied []string // paths that the application has

	mu    sync.Mutex // never held while anything waits
	pages map[string]*page
}

// words are random ones.
func words(r *rand.Rand, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("w%05x", r.IntN(1<<20))
	}
	return strings.Join(all, " ")
}

// newPage makes a page with a text of its own.
func newPage(r *rand.Rand, path string, isFile bool, from *page) *page {
	p := &page{path: path, isFile: isFile, from: from, title: words(r, 3)}
	for range 4 {
		p.text = append(p.text, words(r, 15))
	}
	return p
}

// render returns the HTML of a page. The template's line is marked by nothing. Under mu.
func (s *site) render(p *page) string {
	var b strings.Builder
	robots := ""
	if p.condition == hidden {
		robots = `<meta name="robots" content="noindex">`
	}
	fmt.Fprintf(&b, "<!doctype html><html lang=en><head><title>%s</title>%s</head><body><nav>", html.EscapeString(p.title), robots)
	if p.isList {
		b.WriteString(`<a href="/private/area">private</a>`)
	}
	for _, other := range s.linked(p) {
		fmt.Fprintf(&b, `<a href="%s">a page</a> `, other.path)
	}
	fmt.Fprintf(&b, "</nav><div>Template %d of the site says so</div><h1>%s</h1>", p.template, html.EscapeString(p.title))
	for _, text := range p.text {
		fmt.Fprintf(&b, "<p>%s</p>", text)
	}
	b.WriteString("</body></html>")
	return b.String()
}

// linked returns the pages to which a page links, in order: those that it lists, unless they are removed. Under mu.
func (s *site) linked(p *page) []*page {
	var all []*page
	for _, other := range s.pages {
		if other.from == p && other.condition != missing {
			all = append(all, other)
		}
	}
	slices.SortFunc(all, func(x, y *page) int { return strings.Compare(x.path, y.path) })
	return all
}

// write brings the file of a page up to date, as whoever edits it does now.
func (s *site) write(p *page) error {
	if !p.isFile {
		return nil
	}
	name := filepath.Join(s.folder, filepath.FromSlash(p.path))
	if strings.HasSuffix(p.path, "/") {
		name = filepath.Join(name, "index.html")
	}
	if p.condition == missing {
		return os.Remove(name)
	}
	s.mu.Lock()
	text := s.render(p)
	s.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	// The clock of the file system is the real one.
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Chtimes(name, time.Now(), time.Now())
}

// ServeHTTP is the application.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/shop/list.txt" {
		for _, other := range s.linked(s.pages["/shop/"]) {
			fmt.Fprintln(w, origin+other.path)
		}
		return
	}
	if r.URL.Path == "/robots.txt" {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(robots))
		return
	}
	p := s.pages[r.URL.Path]
	if p == nil || p.isFile {
		http.NotFound(w, r)
		return
	}
	switch p.condition {
	case missing:
		http.NotFound(w, r)
	case moved:
		http.Redirect(w, r, "/", http.StatusMovedPermanently)
	case refused:
		w.WriteHeader(http.StatusUnauthorized)
	default:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(s.render(p)))
	}
}

// robots is the robots.txt of the site.
const robots = "User-agent: *\nDisallow: /private/\n"

// shape is of what a site consists.
type shape uint8

const (
	ofFiles shape = iota
	ofApplication
	ofBoth
)

// newSite makes a site of some pages, all of which are there from the beginning.
func newSite(folder string, r *rand.Rand, of shape, size int) (*site, error) {
	s := &site{folder: folder, pages: make(map[string]*page)}
	front := newPage(r, "/", of != ofApplication, nil)
	front.isList = true
	s.pages[front.path] = front
	switch of {
	case ofFiles:
		s.proxied = []string{"/none"}
	case ofApplication:
		s.proxied = []string{"*"}
	case ofBoth:
		s.proxied = []string{"/shop/*"}
		s.sources = []object{{"source": "files"}, {"source": "links"}, {"source": "urls", "from": []string{"/shop/list.txt"}}}
	}
	if of != ofFiles {
		list := newPage(r, "/shop/", false, front)
		list.isList = true
		s.pages[list.path] = list
	}
	for i := range size {
		s.add(r, fmt.Sprintf("first-%d", i))
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	for _, p := range s.pages {
		if err := s.write(p); err != nil {
			return nil, err
		}
	}
	if front.isFile {
		return s, os.WriteFile(filepath.Join(folder, "robots.txt"), []byte(robots), 0o600)
	}
	return s, nil
}

// add adds a page with a name, as a file or of the application.
func (s *site) add(r *rand.Rand, name string) *page {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.pages["/shop/"]
	var p *page
	switch {
	case list == nil:
		p = newPage(r, "/guide/"+name+".html", true, nil)
	case s.pages["/"].isFile && r.IntN(2) == 0:
		p = newPage(r, "/guide/"+name+".html", true, nil)
	case r.IntN(2) == 0 && !s.pages["/"].isFile:
		p = newPage(r, "/shop/"+name, false, s.pages["/"])
	default:
		p = newPage(r, "/shop/"+name, false, list)
	}
	p.template = s.pages["/"].template
	s.pages[p.path] = p
	return p
}

// all returns all pages that there ever were, in order.
func (s *site) all() []*page {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Collect(maps.Values(s.pages))
	slices.SortFunc(all, func(x, y *page) int { return strings.Compare(x.path, y.path) })
	return all
}

// some returns pages that are no lists and meet a condition, in order.
func (s *site) some(is func(p *page) bool) []*page {
	return slices.DeleteFunc(s.all(), func(p *page) bool { return p.isList || !is(p) })
}
