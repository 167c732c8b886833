package caddytest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// shop is an application whose front page links to some pages, which tests take away.
type shop struct {
	mu    sync.Mutex
	pages []string
	gone  map[string]bool
}

func (a *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	isPage := r.URL.Path == "/" || slices.Contains(a.pages, r.URL.Path)
	if !isPage || a.gone[r.URL.Path] {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, "<!doctype html><title>%s</title><p>%[1]s", r.URL.Path)
	if r.URL.Path == "/" {
		for _, path := range a.pages {
			fmt.Fprintf(w, "<a href=%s>x</a>", path)
		}
	}
}

func (a *shop) remove(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone[path] = true
}

// shopSite is its site, with a source of visits.
const shopSite = `
http://localhost:{port} {
	log {
		output file {dir}/access.log
	}
	sitemap {
		crawl {
			rate 100/s
		}
		links
		<visits>
	}
	reverse_proxy {app}
}`

func startShop(t *testing.T, n int, visits string) (*server, *shop) {
	t.Helper()
	a := &shop{gone: make(map[string]bool)}
	for i := range n {
		a.pages = append(a.pages, fmt.Sprintf("/chairs/%02d", i))
	}
	s := prepareWithAdmin(t, nil)
	s.LoadApp(strings.Replace(shopSite, "<visits>", visits, 1), a.ServeHTTP)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, append([]string{"/"}, a.pages...))...)
	return s, a
}

// TestCommandRefetch: a page that was removed is not listed any more once an operator has it fetched, or all.
func TestCommandRefetch(t *testing.T) {
	s, app := startShop(t, 12, "")
	const sitemap = harness.Local + "/sitemap.xml"
	app.remove("/chairs/00")
	app.remove("/chairs/01")
	s.command("refresh").want(t, 0, nil, nil, `pages +13\n`)
	s.command("refresh", "--fetch", harness.Local+"/chairs/00", harness.Local+"/new").want(t, 0, nil, nil, `pages due +0\n`)
	s.WantLocs(sitemap, harness.Below(harness.Local, append([]string{"/"}, app.pages[1:]...))...)
	s.command("refresh", "--fetch", "--site", harness.Local).want(t, 0, nil, nil, `pages +11\n`, `pages due +0\n`)
	s.WantLocs(sitemap, harness.Below(harness.Local, append([]string{"/"}, app.pages[2:]...))...)

	s.command("refresh", "--fetch", "http://nobody.example/").want(t, 1, nil, []string{"fetch=http://nobody.example/: no sitemap covers this URL"})
	s.command("status", "--fetch").want(t, 2, nil, []string{"--fetch"})
}

// TestSignalOfVisitor: a page that a visitor found gone is not listed any more after the next refresh, whichever source
// sees visitors.
func TestSignalOfVisitor(t *testing.T) {
	for name, visits := range map[string]string{"traffic": "traffic", "access_log": "access_log {dir}/access.log"} {
		t.Run(name, func(t *testing.T) {
			s, app := startShop(t, 6, visits)
			app.remove("/chairs/05")
			s.command("refresh").want(t, 0, nil, nil, `pages +7\n`)
			s.Get(harness.Local+"/chairs/05", "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0")
			s.Eventually(func() bool { // a log is read every two seconds
				return s.refresh().Pages == 6
			}, s.SitemapLog)
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, append([]string{"/"}, app.pages[:5]...))...)
		})
	}
}
