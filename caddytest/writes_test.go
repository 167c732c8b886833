package caddytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// editor is an application of which pages are saved by requests to /admin, without a form: its query says what.
type editor struct {
	mu       sync.Mutex
	edits    map[string]int // of each page, by path
	hidden   map[string]bool
	named    []string            // in its sitemap
	links    map[string][]string // of pages, by path
	status   int                 // of what /admin responds
	location string
	requests []string // for pages, in order
}

const editorPages = 15

func newEditor() *editor {
	a := &editor{
		edits:  map[string]int{"/": 0, "/category": 0},
		hidden: make(map[string]bool),
		links:  make(map[string][]string),
		status: http.StatusOK,
	}
	a.links["/"] = []string{"/category"}
	for i := range editorPages {
		path := fmt.Sprintf("/posts/%d", i)
		a.edits[path] = 0
		a.links["/"] = append(a.links["/"], path)
	}
	return a
}

func (a *editor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path := r.URL.Path
	if path == "/admin" {
		a.save(r)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", a.location)
		w.WriteHeader(a.status)
		return
	}
	if path == "/sitemap.xml" {
		fmt.Fprint(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
		for _, path := range a.named {
			fmt.Fprintf(w, "<url><loc>http://%s%s</loc></url>", r.Host, path)
		}
		fmt.Fprint(w, "</urlset>")
		return
	}
	a.requests = append(a.requests, path)
	edits, exists := a.edits[path]
	if !exists || a.hidden[path] {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><title>%s</title><main><h1>%[1]s</h1>", path)
	for i := range 5 + edits {
		fmt.Fprintf(w, "<p>Paragraph %d of %s, in words of its own.</p>", i, path)
	}
	fmt.Fprint(w, "</main><ul>")
	for _, to := range a.links[path] {
		fmt.Fprintf(w, "<li><a href=%q>%[1]s</a></li>", to)
	}
}

// save does what a request says.
func (a *editor) save(r *http.Request) {
	q := r.URL.Query()
	for _, path := range q["edit"] {
		a.edits[path]++
	}
	if from := q.Get("from"); from != "" {
		a.links[from] = append(a.links[from], q["edit"]...)
	}
	a.named = append(a.named, q["name"]...)
	if path := q.Get("hide"); path != "" {
		a.hidden[path] = true
		for from := range a.links {
			a.links[from] = slices.DeleteFunc(a.links[from], func(to string) bool { return to == path })
		}
	}
	if q.Has("redesign") {
		for path := range a.edits {
			a.edits[path] += 1 + len(path)%3
		}
	}
}

// respond has /admin respond with a status and a Location.
func (a *editor) respond(status int, location string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status = status
	a.location = location
}

func (a *editor) requested() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// A day is between two refreshes: what shows sooner shows by a write.
const editorSite = `
` + harness.Local + ` {
	sitemap {
		refresh 24h
		crawl {
			rate 50/s
			<writes>
		}
	}
	reverse_proxy {app}
}`

const session = "Cookie: session=1"

func startEditor(t *testing.T, writes string) (*server, *editor) {
	t.Helper()
	a := newEditor()
	s := prepareWithAdmin(t, nil)
	s.LoadApp(strings.Replace(editorSite, "<writes>", writes, 1), a.ServeHTTP)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, slices.Sorted(maps.Keys(a.edits)))...)
	return s, a
}

// TestWrites: what somebody who is signed in has saved shows soon: a page that is new, edited, removed, or that only a page links to
// which is not the front page.
func TestWrites(t *testing.T) {
	s, a := startEditor(t, "")
	type dates = map[string]string
	isListed := func(path string) func(dates) bool {
		return func(d dates) bool {
			_, isListed := d[path]
			return isListed
		}
	}
	isDated := func(path string) func(dates) bool { return func(d dates) bool { return d[path] != "" } }
	tests := []struct {
		name, query, method string
		headers             []string
		shows               func(dates) bool
	}{
		{"a post", "edit=/posts/new&from=/", http.MethodPost, []string{session}, isListed("/posts/new")},
		{"a correction", "edit=/posts/3", http.MethodPut, []string{"Authorization: Bearer x"}, isDated("/posts/3")},
		{"a removal", "hide=/posts/4", http.MethodDelete, []string{session}, func(d dates) bool { return !isListed("/posts/4")(d) }},
		{"a product", "edit=/products/1&from=/category", http.MethodPatch, []string{session}, isListed("/products/1")},
		{"a page that only the site's own sitemap names", "edit=/pages/1&name=/pages/1", http.MethodPost, []string{session}, isListed("/pages/1")},
		{"by another method", "edit=/posts/5", http.MethodPost, []string{session, "X-HTTP-Method-Override: PUT"}, isDated("/posts/5")},
	}
	begun := len(a.requested())
	for _, test := range tests {
		s.Do(test.method, harness.Local+"/admin?"+test.query, test.headers...)
	}
	for _, test := range tests {
		s.Eventually(func() bool { return test.shows(s.Dates(harness.Local)) }, func() string {
			return fmt.Sprintf("%s does not show: %v\n%s", test.name, s.Dates(harness.Local), s.SitemapLog())
		})
	}
	// The front page comes first, and what it links to that is new.
	order := a.requested()[begun:]
	if i := slices.Index(order, "/posts/new"); i > 4 || !slices.Contains(order[:i], "/") {
		t.Errorf("the requests are %q", order)
	}
	edited := []string{"/", "/category", "/posts/3", "/posts/5"}
	for path, date := range s.Dates(harness.Local) {
		if date != "" && !slices.Contains(edited, path) {
			t.Errorf("%s has the date %s", path, date)
		}
	}
}

// TestWriteAmidCrawl: what is saved while many pages are still to be fetched does not wait for them, nor after a reload.
func TestWriteAmidCrawl(t *testing.T) {
	const pages = 600
	a := newEditor()
	for i := range pages {
		path := fmt.Sprintf("/old/%d", i)
		a.edits[path] = 0
		a.links["/"] = append(a.links["/"], path)
	}
	s := prepareWithAdmin(t, nil)
	site := strings.Replace(editorSite, "<writes>", "", 1)
	s.LoadApp(site, a.ServeHTTP)
	s.Eventually(func() bool { return len(a.requested()) > 30 }, s.SitemapLog)
	s.Do(http.MethodPost, harness.Local+"/admin?edit=/posts/new&from=/", session)
	s.Eventually(func() bool { return slices.Contains(a.requested(), "/posts/new") }, s.SitemapLog)
	if n := len(a.requested()); n >= pages {
		t.Errorf("it is found after %d requests", n)
	}
}

// TestWriteAfterReload: a reload forgets no write, and none after it.
func TestWriteAfterReload(t *testing.T) {
	a := newEditor()
	app := harness.Backend(t, a.ServeHTTP)
	s := prepareWithAdmin(t, nil)
	site := strings.NewReplacer("<writes>", "", "{app}", app).Replace(editorSite)
	s.Load(site)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, slices.Sorted(maps.Keys(a.edits)))...)
	for _, path := range []string{"/posts/first", "/posts/second"} {
		s.Do(http.MethodPost, harness.Local+"/admin?from=/&edit="+path, session)
		s.Reload(site)
		s.Eventually(func() bool { return slices.Contains(a.requested(), path) }, s.SitemapLog)
	}
}

// TestNoWrites: nothing else has the site looked at, and a path is not requested because it is named.
func TestNoWrites(t *testing.T) {
	s, a := startEditor(t, "")
	before := len(a.requested())
	for _, test := range []struct {
		method  string
		status  int
		headers []string
	}{
		{http.MethodPost, http.StatusOK, nil},                                              // nobody is signed in
		{http.MethodGet, http.StatusOK, []string{session}},                                 // it reads
		{http.MethodPost, http.StatusUnprocessableEntity, []string{session}},               // it fails
		{http.MethodPost, http.StatusOK, []string{session, "X-HTTP-Method-Override: GET"}}, // it reads
	} {
		a.respond(test.status, "")
		s.Do(test.method, harness.Local+"/admin?edit=/posts/1", test.headers...)
	}
	s.Passed(lookPatience)
	if more := a.requested()[before:]; len(more) > 0 {
		t.Errorf("%q was requested", more)
	}
	a.respond(http.StatusFound, "/secret")
	s.Do(http.MethodPost, harness.Local+"/secret-too", session)
	s.Do(http.MethodPost, harness.Local+"/admin?edit=/posts/1", session)
	s.Eventually(func() bool { return s.Dates(harness.Local)["/posts/1"] != "" }, s.SitemapLog)
	isSecret := func(path string) bool { return strings.HasPrefix(path, "/secret") }
	if n := len(slices.DeleteFunc(a.requested(), func(path string) bool { return !isSecret(path) })); n != 1 {
		t.Errorf("paths that a write named were requested: %q", a.requested())
	}
}

// TestWritesOff: the setting is obeyed.
func TestWritesOff(t *testing.T) {
	s, a := startEditor(t, "writes off")
	before := len(a.requested())
	s.Do(http.MethodPost, harness.Local+"/admin?edit=/posts/1", session)
	s.Passed(lookPatience)
	if more := a.requested()[before:]; len(more) > 0 {
		t.Errorf("%q was requested", more)
	}
}

// TestWriteRedesigns: another template, which somebody has chosen, dates no page at any moment, and pages that are saved one after the
// other have their dates.
func TestWriteRedesigns(t *testing.T) {
	s, _ := startEditor(t, "")
	s.Do(http.MethodPost, harness.Local+"/admin?redesign", session)
	var wrong failures
	sampled(t, func() {
		for path, date := range s.Dates(harness.Local) {
			if date != "" {
				wrong.add("%s has the date %s", path, date)
			}
		}
	})
	s.Eventually(func() bool { return s.looksOf().Looks == 1 }, s.SitemapLog)
	s.Passed(3 * lookPatience)
	wrong.report(t)
}

// lookPatience is longer than it takes until a look begins.
const lookPatience = 2500 * time.Millisecond

// looksOf returns what the status counts of writes.
func (s *server) looksOf() (counts struct{ Writes, Looks, Changes int }) {
	var status struct {
		Sites []struct {
			Writes struct{ Writes, Looks, Changes int }
		}
	}
	r := s.Get("http://127.0.0.1:{admin}/sitemap/sites")
	harness.Must(s.T, json.Unmarshal([]byte(r.Text), &status))
	return status.Sites[0].Writes
}
