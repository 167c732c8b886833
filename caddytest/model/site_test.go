package model

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// condition is what whoever requests a page gets.
type condition string

const (
	good    condition = "good"
	hidden  condition = "hidden"  // a meta tag says noindex
	copied  condition = "copied"  // the canonical is another page
	missing condition = "missing" // 404; a file does not exist
	moved   condition = "moved"   // a redirect
	refused condition = "refused" // 401
)

// page is a page of the site: what it is now, and what has truly become of it.
type page struct {
	path     string
	isFile   bool
	isHub    bool  // the front page, or a page of links: it stays
	from     *page // which links to it; nil: none does, as its file is found
	is       condition
	text     []string // the title, and paragraphs
	template int      // which one it was rendered with last

	changes []time.Time // of its text, its publication first
	written []time.Time // when it was rendered anew so that this may be its date
	since   time.Time   // since when it is good, or is not
	news    []time.Time // of it that were not announced yet, as far as is known
	told    time.Time   // when something of it was announced last
}

func (p *page) lastChange() time.Time { return p.changes[len(p.changes)-1] }

// words are random ones.
func words(r *rand.Rand) string {
	var all [12]string
	for i := range all {
		all[i] = fmt.Sprintf("w%05x", r.IntN(1<<20))
	}
	return strings.Join(all[:], " ")
}

// robots is the robots.txt of the site. An application has a sitemap of its own, or returns 404 for that.
const robots = "User-agent: *\nDisallow: /private/\nSitemap: " + origin + "/shop/sitemap.xml\n"

// newSite makes a site of some pages: of files, of an application, or of both.
func (w *world) newSite(r *rand.Rand, size int) {
	front := &page{path: "/", isFile: w.of != ofApplication, isHub: true}
	w.add(r, front)
	if w.of != ofFiles {
		w.add(r, &page{path: "/shop/", isHub: true, from: front})
		w.check(w.save(front))
	}
	for range size {
		w.publish(r)
	}
	if w.of != ofApplication {
		w.check(os.WriteFile(filepath.Join(w.folder, "robots.txt"), []byte(robots), 0o600))
	}
}

// publish adds a page, as a file or of the application.
func (w *world) publish(r *rand.Rand) {
	w.names++
	front, shop := w.pages["/"], w.pages["/shop/"]
	p := &page{path: fmt.Sprintf("/shop/page-%d", w.names), from: shop}
	if shop == nil || front.isFile && r.IntN(2) == 0 {
		p = &page{path: fmt.Sprintf("/guide/page-%d.html", w.names), isFile: true}
	} else if !front.isFile && r.IntN(2) == 0 {
		p.from = front
	}
	w.add(r, p)
}

// add adds a page with a text of its own.
func (w *world) add(r *rand.Rand, p *page) {
	w.edit(p, func() {
		p.is = good
		for range 5 {
			p.text = append(p.text, words(r))
		}
		w.pages[p.path] = p
		p.template = w.pages["/"].template
	})
}

// edit changes a page, notes what has truly become of it, and saves it.
func (w *world) edit(p *page, change func()) {
	before := *p
	before.text = slices.Clone(p.text)
	now := time.Now()
	w.mu.Lock()
	change()
	// If a file is written again before its last change was seen, its time is all that tells of that.
	isWritten := p.isFile && p.is != missing && len(p.changes) > 0
	if isWritten && min(time.Since(p.lastChange()), w.calm()) <= 2*w.interval()+margin {
		p.written = append(p.written, now)
	}
	isOther := !slices.Equal(before.text, p.text)
	if isOther {
		p.changes = append(p.changes, now)
	}
	isTurned := isGood(&before) != isGood(p)
	if isTurned {
		p.since = now
	}
	if isOther || isTurned {
		p.news = append(p.news, now)
		w.note("%s is %s, with another text: %t", p.path, p.is, isOther)
	}
	w.mu.Unlock()
	w.check(w.save(p))
}

// save writes the file of a page.
func (w *world) save(p *page) error {
	if !p.isFile {
		return nil
	}
	name := filepath.Join(w.folder, filepath.FromSlash(p.path))
	if strings.HasSuffix(p.path, "/") {
		name = filepath.Join(name, "index.html")
	}
	if p.is == missing {
		return os.RemoveAll(name)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	saved := w.folder + ".saved" // nobody sees it with the real time
	if err := os.WriteFile(saved, []byte(w.render(p)), 0o600); err != nil {
		return err
	}
	if err := os.Chtimes(saved, time.Now(), time.Now()); err != nil {
		return err
	}
	return os.Rename(saved, name)
}

// render returns the HTML of a page. Nothing marks what is the template's.
func (w *world) render(p *page) string {
	head := map[condition]string{
		hidden: `<meta name="robots" content="noindex">`,
		copied: `<link rel="canonical" href="/">`,
	}[p.is]
	nav := ""
	if p.isHub {
		nav = `<a href="/private/area">private</a>`
		for _, other := range w.linked(p) {
			nav += fmt.Sprintf(`<a href="%s">a page</a> `, other.path)
		}
	}
	return fmt.Sprintf("<!doctype html><html lang=en><head><title>%s</title>%s</head><body><nav>%s</nav>"+
		"<div>Template %d of the site says so</div><h1>%[1]s</h1><p>%s</p></body></html>",
		p.text[0], head, nav, p.template, strings.Join(p.text[1:], "</p><p>"))
}

// all returns the pages that meet a condition, of all that there ever were, in order.
func (w *world) all(is func(p *page) bool) []*page {
	return slices.DeleteFunc(slices.SortedFunc(maps.Values(w.pages), func(x, y *page) int {
		return strings.Compare(x.path, y.path)
	}), func(p *page) bool { return !is(p) })
}

// linked returns the pages to which a page links: those that it lists, unless they are removed.
func (w *world) linked(p *page) []*page {
	return w.all(func(other *page) bool { return other.from == p && other.is != missing })
}

// serve is the application.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch r.URL.Path {
	case "/robots.txt":
		rw.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(rw, robots)
		return
	case "/shop/list.txt":
		for _, other := range w.linked(w.pages["/shop/"]) {
			fmt.Fprintln(rw, origin+other.path)
		}
		return
	}
	if w.declares && r.URL.Path == "/shop/sitemap.xml" {
		fmt.Fprint(rw, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
		for _, p := range w.linked(w.pages["/shop/"]) {
			fmt.Fprintf(rw, "<url><loc>%s</loc><lastmod>%s</lastmod></url>", origin+p.path, p.lastChange().UTC().Format(time.RFC3339))
		}
		fmt.Fprint(rw, "</urlset>")
		return
	}
	if r.Method == http.MethodPost {
		rw.Header().Set("Content-Type", "application/json")
		return
	}
	p := w.pages[r.URL.Path]
	if p == nil || p.isFile {
		http.NotFound(rw, r)
		return
	}
	switch p.is {
	case missing:
		http.NotFound(rw, r)
	case moved:
		http.Redirect(rw, r, "/", http.StatusMovedPermanently)
	case refused:
		rw.WriteHeader(http.StatusUnauthorized)
	default:
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(rw, w.render(p))
	}
}
