package main

import (
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// blog is an application: a front page that shows what is new and leads to lists, which have pages of twenty,
// and posts. It changes while it runs.
type blog struct {
	clock clock

	mu       sync.Mutex
	lists    [][]string       // paths of posts by list, the newest first
	front    []string         // posts that the front page shows, the newest first
	posts    map[string]*post // by path
	facets   int              // each list page leads to so many views of itself, and these to others
	tells    string           // the origin of the URLs of its own sitemap; "": it has none
	requests []asked          // by the module
}

// asked is a request.
type asked struct {
	path string
	at   time.Time
}

// post is a page of an application.
type post struct {
	title    string
	links    []string
	edits    int
	status   int    // 0: 200
	target   string // of a redirect
	head     string // besides the title
	existed  bool   // when the application began
	modified []time.Time
}

const (
	frontPosts = 10
	listPosts  = 20
)

// newBlog returns one with so many lists, posts and facets.
func newBlog(c clock, lists, posts, facets int) *blog {
	a := &blog{
		clock: c, facets: facets,
		lists: make([][]string, lists), posts: make(map[string]*post),
	}
	for i := range posts {
		path := a.publish(fmt.Sprintf("post-%d", i), i%lists, i%7 == 0)
		p := a.posts[path]
		p.existed = true
		p.modified[0] = p.modified[0].Add(-time.Duration(1+i) * time.Hour)
	}
	return a
}

// publish adds a post to a list, and to the front page; with a list below 0, to neither.
func (a *blog) publish(name string, list int, onFront bool) (path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path = "/posts/" + name + "/"
	a.posts[path] = &post{title: name, modified: []time.Time{a.clock.now()}}
	if list >= 0 {
		a.lists[list] = slices.Insert(a.lists[list], 0, path)
	}
	if onFront {
		a.front = slices.Insert(a.front, 0, path)
		a.front = a.front[:min(len(a.front), frontPosts)]
	}
	return path
}

// change changes a post, and returns when.
func (a *blog) change(path string, how func(*post)) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.posts[path]
	how(p)
	now := a.clock.now()
	p.modified = append(p.modified, now)
	return now
}

// withdraw takes a post from its list and from the front page.
func (a *blog) withdraw(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	isIt := func(p string) bool { return p == path }
	for i := range a.lists {
		a.lists[i] = slices.DeleteFunc(a.lists[i], isIt)
	}
	a.front = slices.DeleteFunc(a.front, isIt)
}

// What can become of a post.
func edited(p *post)     { p.edits++ }
func missing(p *post)    { p.status = http.StatusNotFound }
func removed(p *post)    { p.status = http.StatusGone }
func forbidden(p *post)  { p.status = http.StatusForbidden }
func redirected(p *post) { p.status = http.StatusMovedPermanently; p.target = "/lists/0/" }
func refreshed(p *post)  { p.head = `<meta http-equiv="refresh" content="0; url=/lists/1/">` }
func hidden(p *post)     { p.head = `<meta name="robots" content="noindex">` }

func (a *blog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if strings.Contains(r.UserAgent(), "caddy-sitemap") {
		a.requests = append(a.requests, asked{r.URL.Path, a.clock.now()})
	}
	var list, page int
	p := a.posts[r.URL.Path]
	switch {
	case r.URL.Path == "/":
		a.write(w, &post{title: "Front page"}, a.front)
	case p != nil && p.status != 0:
		if p.target != "" {
			w.Header().Set("Location", p.target)
		}
		http.Error(w, http.StatusText(p.status), p.status)
	case p != nil:
		a.write(w, p, p.links)
	case r.URL.Path == "/sitemap.xml" && a.tells != "":
		a.tell(w)
	case scan(r.URL.Path, "/lists/%d/", &list) && list < len(a.lists):
		a.list(w, r, list, 0)
	case scan(r.URL.Path, "/lists/%d/page/%d/", &list, &page) && list < len(a.lists):
		a.list(w, r, list, page)
	default:
		http.NotFound(w, r)
	}
}

// scan reads the numbers of a path that has no more than them.
func scan(path, format string, numbers ...any) bool {
	_, err := fmt.Sscanf(path+"$", format+"$", numbers...)
	return err == nil
}

func (a *blog) list(w http.ResponseWriter, r *http.Request, list, page int) {
	posts := a.lists[list]
	begin := min(page*listPosts, len(posts))
	end := min(begin+listPosts, len(posts))
	links := slices.Clone(posts[begin:end])
	if end < len(posts) {
		links = append(links, fmt.Sprintf("/lists/%d/page/%d/", list, page+1))
	}
	// Each view leads to those by one more value.
	for i := range a.facets {
		query := r.URL.Query()
		query.Set(fmt.Sprintf("facet%d", i%4), fmt.Sprint(i/4))
		links = append(links, r.URL.Path+"?"+query.Encode())
	}
	a.write(w, &post{title: fmt.Sprintf("List %d, page %d %s", list, page, r.URL.RawQuery)}, links)
}

// write writes a page of about 4 KB with the navigation that all have.
func (a *blog) write(w http.ResponseWriter, p *post, links []string) {
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><html lang=en><head><title>%s</title>%s</head><body><nav><a href=/>Home</a>",
		html.EscapeString(p.title), p.head)
	for i := range a.lists {
		fmt.Fprintf(&b, "<a href=/lists/%d/>List %d</a>", i, i)
	}
	fmt.Fprintf(&b, "</nav><main><h1>%s</h1>", html.EscapeString(p.title))
	for i := range 20 + p.edits {
		fmt.Fprintf(&b, "<p>Paragraph %d of %s: the quick brown fox jumps over the lazy dog once again, in a text of its own.</p>", i,
			html.EscapeString(p.title))
	}
	for _, link := range links {
		fmt.Fprintf(&b, `<a href="%s">%s</a> `, html.EscapeString(link), html.EscapeString(link))
	}
	b.WriteString("</main></body></html>")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, b.String())
}

// tell writes the application's own sitemap.
func (a *blog) tell(w http.ResponseWriter) {
	var b strings.Builder
	b.WriteString(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
	for path, p := range a.posts {
		if p.status == 0 && p.head == "" {
			date := p.modified[len(p.modified)-1].UTC().Format(time.RFC3339)
			fmt.Fprintf(&b, "<url><loc>%s%s</loc><lastmod>%s</lastmod></url>", a.tells, path, date)
		}
	}
	b.WriteString(`</urlset>`)
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, b.String())
}

// load returns how many requests an hour the module made from a time until another, on average and at most.
func (a *blog) load(from, to time.Time) (mean, most float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	byHour := make(map[int]int)
	for _, r := range a.requests {
		if r.at.After(from) && r.at.Before(to) {
			byHour[int(r.at.Sub(from)/time.Hour)]++
			mean++
		}
	}
	for _, n := range byHour {
		most = max(most, float64(n))
	}
	return mean / to.Sub(from).Hours(), most
}

// often names the paths that were requested more than once an hour, and how often an hour.
func (a *blog) often(from, to time.Time) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	byPath := make(map[string]float64)
	for _, r := range a.requests {
		if r.at.After(from) && r.at.Before(to) {
			byPath[r.path] += 1 / to.Sub(from).Hours()
		}
	}
	var said []string
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		if byPath[path] > 1 {
			said = append(said, fmt.Sprintf("%s %.1f", path, byPath[path]))
		}
	}
	return strings.Join(said, ", ")
}
