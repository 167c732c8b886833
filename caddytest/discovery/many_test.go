package discovery

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// platform is an application with a site for each of its tenants. Other hosts get a 404, or a default page.
type platform struct {
	hasDefault bool

	mu       sync.Mutex
	requests map[string][]string // of this module: paths by host
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	p.mu.Lock()
	if strings.HasPrefix(r.UserAgent(), "caddy-sitemap ") {
		p.requests[host] = append(p.requests[host], r.URL.Path)
	}
	p.mu.Unlock()
	isTenant := strings.HasPrefix(host, "tenant")
	isPage := r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/p")
	if !isPage || !isTenant && !p.hasDefault {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(w, "<!doctype html><title>"+host+r.URL.Path+"</title><p>"+host+r.URL.Path)
	for i := range 8 {
		_, _ = fmt.Fprintf(w, `<a href="/p%d">%d</a>`, i, i)
	}
}

func (p *platform) requestsOf(host string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[host]
}

// TestMadeUpHosts: while visitors make up hosts, those that exist have a sitemap at once, all of their pages soon, and a named
// one is not put off. A host without a front page costs the application one request, however it is spelled.
func TestMadeUpHosts(t *testing.T) {
	const burst = 60
	for name, hasDefault := range map[string]bool{"404": false, "a default page": true} {
		t.Run(name, func(t *testing.T) {
			app := &platform{hasDefault: hasDefault, requests: make(map[string][]string)}
			s := prepare(t, nil)
			s.LoadApp("http://tenant-named.example:{port}, http://*.example:{port} {\nsitemap {\ncrawl {\nrate 100/s\n}\n}\nreverse_proxy {app}\n}", app.ServeHTTP)
			ask := func(host string) int {
				r, err := s.Try(http.MethodGet, "http://"+host+":{port}/sitemap.xml")
				if err != nil {
					t.Errorf("%s: %v", host, err)
				}
				return r.StatusCode
			}
			var asking sync.WaitGroup
			for i := range burst {
				asking.Go(func() { ask(fmt.Sprintf("Made-UP-%d.example", i)) })
			}
			if status := ask("tenant-new.example"); status != http.StatusOK {
				t.Errorf("a new tenant's first sitemap: status %d", status)
			}
			asking.Wait()
			for i := range burst {
				ask(fmt.Sprintf("made-up-%d.EXAMPLE.", i)) // which costs nothing
			}
			const origin = "http://tenant-%s.example:{port}"
			for _, tenant := range []string{"named", "new"} {
				at := fmt.Sprintf(origin, tenant)
				s.WantLocs(at+"/sitemap.xml", harness.Below(at, []string{"/", "/p0", "/p1", "/p2", "/p3", "/p4", "/p5", "/p6", "/p7"})...)
			}
			for i := range burst {
				host := fmt.Sprintf("made-up-%d.example", i)
				got := app.requestsOf(host)
				got = append(got, app.requestsOf(strings.Replace(host, "made-up", "Made-UP", 1))...)
				if !hasDefault && (len(got) != 1 || got[0] != "/") {
					t.Errorf("%s: got requests %v, want one for the front page", host, got)
				}
			}
		})
	}
}

// TestManyNamedSites: all sites that a configuration names are listed without a request for their sitemaps, and a reload in
// which nothing has changed fetches nothing.
func TestManyNamedSites(t *testing.T) {
	const sites = 250
	files := make(map[string]string)
	var config strings.Builder
	for i := range sites {
		files[fmt.Sprintf("%d/index.html", i)] = harness.HTML(fmt.Sprintf("home of site %d", i))
		files[fmt.Sprintf("%d/about.html", i)] = harness.HTML(fmt.Sprintf("about site %d", i))
		fmt.Fprintf(&config, "http://site-%d.example:{port} {\nroot {dir}/%d\nsitemap\nfile_server\n}\n", i, i)
	}
	s := prepare(t, files)
	s.OpenAdmin()
	s.Load(config.String())
	listed := func() int {
		return strings.Count(s.Get("http://localhost:{admin}/sitemap/sites").Text, `"pages":2,`)
	}
	s.Eventually(func() bool { return listed() >= sites }, func() string {
		return fmt.Sprintf("%d of %d sites are listed", listed(), sites)
	})
	if lines := s.LogLines("files are not watched"); len(lines) > 0 {
		t.Errorf("the log says for each site that it is not watched: %q", lines[0])
	}
	if lines := s.LogLines("more roots than can be watched"); len(lines) > 1 {
		t.Errorf("the log says so %d times", len(lines))
	}
	s.Crawled()
	s.Reload(config.String())
	s.WantLocs("http://site-0.example:{port}/sitemap.xml", harness.Below("http://site-0.example:{port}", []string{"/", "/about.html"})...)
	if metrics := s.Get("http://localhost:{admin}/metrics").Text; strings.Contains(metrics, "caddy_sitemap_fetches_total{") {
		t.Error("the reload fetches pages")
	}
	if got := listed(); got < sites {
		t.Errorf("after it, %d sites are listed", got)
	}
}
