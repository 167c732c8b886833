package caddytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	sitemap "github.com/seed3295b519/caddy-sitemap"
	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

func init() {
	caddy.RegisterModule(new(gated))
}

// gated is a source that names a page, unless the gate is closed.
type gated struct{}

func (*gated) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.sitemap.sources.gated", New: func() caddy.Module { return new(gated) }}
}

func (*gated) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	return nil
}

// Provision fails where the gate is broken.
func (*gated) Provision(caddy.Context) error { return gate.broken }

func (*gated) Pages(_ context.Context, _ *sitemap.Refresh, yield func(sitemap.Page) error) error {
	if err := gate.closed.Load(); err != nil {
		return *err
	}
	return yield(sitemap.Page{Path: "/"})
}

// gate is what all gated sources pass.
var gate struct {
	closed atomic.Pointer[error]
	broken error // of those that are to come
}

// refuse makes sources fail; nil: it does not.
func refuse(err error) {
	gate.closed.Store(nil)
	if err != nil {
		gate.closed.Store(&err)
	}
}

// api is the address of the admin endpoint.
const api = "http://localhost:{admin}"

// prepareWithAdmin is prepare of a server that has an admin endpoint.
func prepareWithAdmin(t *testing.T, files map[string]string) *server {
	t.Helper()
	refuse(nil)
	s := &server{harness.Prepare(t, files)}
	s.OpenAdmin()
	return s
}

// startWithAdmin is start of a server that has an admin endpoint.
func startWithAdmin(t *testing.T, caddyfile string, files map[string]string) *server {
	t.Helper()
	s := prepareWithAdmin(t, files)
	s.Load(caddyfile)
	return s
}

// startOne is startWithAdmin with one site, whose first refresh has ended.
func startOne(t *testing.T, caddyfile string) *server {
	t.Helper()
	s := startWithAdmin(t, caddyfile, harness.TwoRoots)
	pages := harness.PagesOfA
	if caddyfile == gatedSite {
		pages = []string{"/"}
	}
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, pages)...)
	return s
}

// status is what these tests want of the API's answer on a site.
type status struct {
	Site        string
	NamedBy     string `json:"named_by"`
	Pages       int
	Since       time.Time
	Refreshing  *struct{ Stage string }
	LastRefresh *struct {
		Result, Reason string
		Pending        int
		Sources        []struct {
			Source string
			Pages  int
		}
	} `json:"last_refresh"`
}

// statuses asks for the sites by some method, and wants 200.
func (s *server) statuses(method, path string) []status {
	s.T.Helper()
	r := s.Do(method, api+path)
	var all struct{ Sites []status }
	if err := json.Unmarshal([]byte(r.Text), &all); err != nil || r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "application/json" {
		s.T.Fatalf("%s %s: status %d, %q: %v: %s", method, path, r.StatusCode, r.Header.Get("Content-Type"), err, r.Text)
	}
	return all.Sites
}

// refresh refreshes all sites, and returns the status of the first.
func (s *server) refresh() status {
	s.T.Helper()
	return s.statuses(http.MethodPost, "/sitemap/refresh")[0]
}

// wantError wants an answer that is an error of the API with some words.
func (s *server) wantError(method, path string, status int, words ...string) {
	s.T.Helper()
	r := s.Do(method, api+path)
	var said struct{ Error string }
	if err := json.Unmarshal([]byte(r.Text), &said); err != nil || r.StatusCode != status {
		s.T.Errorf("%s %s: got status %d, %q (%v), want %d", method, path, r.StatusCode, r.Text, err, status)
	}
	wantWords(s.T, method+" "+path, said.Error, s.expanded(words)...)
}

func (s *server) expanded(words []string) (all []string) {
	for _, word := range words {
		all = append(all, s.Expand(word))
	}
	return all
}

const oneSite = `
http://localhost:{port} {
	root * {dir}/a
	sitemap
	file_server
}`

const twoSites = oneSite + `
http://127.0.0.1:{port} {
	root * {dir}/b
	sitemap
	file_server
}`

const gatedSite = `
http://localhost:{port} {
	sitemap {
		gated
	}
	respond "<!doctype html><title>home</title>" 200 {
		close
	}
	header Content-Type text/html
}`

func TestAdminSites(t *testing.T) {
	s := startOne(t, twoSites)
	s.WantLocs("http://127.0.0.1:{port}/sitemap.xml", harness.Below("http://127.0.0.1:{port}", harness.PagesOfB)...)

	var all []status
	s.Eventually(func() bool { // the first publication comes before the end of the first refresh
		all = s.statuses(http.MethodGet, "/sitemap/sites")
		return !slices.ContainsFunc(all, func(st status) bool { return st.LastRefresh == nil })
	}, s.SitemapLog)
	if len(all) != 2 || all[0].Site != s.Expand("http://127.0.0.1:{port}") || all[1].Site != s.Expand(harness.Local) {
		t.Fatalf("got sites %+v", all)
	}
	b, a := all[0], all[1]
	if sources := a.LastRefresh.Sources; b.Pages != len(harness.PagesOfB) || a.Pages != len(harness.PagesOfA) ||
		a.NamedBy != "configuration" || a.Since.IsZero() || len(sources) != 1 || sources[0].Source != "files" || sources[0].Pages != a.Pages {
		t.Errorf("got %+v\nand %+v", b, a)
	}
	for _, name := range []string{harness.Local, harness.Local + "/", harness.Local + "/sitemap.xml"} {
		one := s.statuses(http.MethodGet, "/sitemap/sites?site="+url.QueryEscape(s.Expand(name)))
		if len(one) != 1 || one[0].Site != s.Expand(harness.Local) {
			t.Errorf("%s: got %+v", name, one)
		}
	}
	for route, allowed := range map[string]string{"POST /sitemap/sites": "GET, HEAD", "POST /sitemap/explain": "GET, HEAD", "GET /sitemap/refresh": "POST"} {
		method, path, _ := strings.Cut(route, " ")
		if r := s.Do(method, api+path); r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != allowed {
			t.Errorf("%s: got status %d, Allow %q", route, r.StatusCode, r.Header.Get("Allow"))
		}
	}
	const nobody = "?site=http%3A%2F%2Fnobody.example"
	s.wantError(http.MethodGet, "/sitemap/sites"+nobody, http.StatusNotFound, harness.Local, "http://127.0.0.1:{port}")
	s.wantError(http.MethodGet, "/sitemap/explain?url=%2Fone.html", http.StatusBadRequest)
}

// TestExplain asks about each kind of page of a site. A wanted text is in the JSON; one that
// begins with ! is not.
func TestExplain(t *testing.T) {
	link := func(to string) string { return `<a href="` + to + `">there</a>` }
	s := startWithAdmin(t, harness.Local+` {
	root * {dir}
	sitemap {
		files {
			exclude /drafts/*
		}
		links
		traffic {
			unlinked /seen
		}
		urls {
			/gone
			/short
			/hop1
			/listed?id=1
			/private.html
		}
		exclude /secret/*
		extensions alternates
	}
	redir /hop1 /hop2
	redir /hop2 /hop3
	redir /hop3 /page.html
	rewrite /listed /page.html
	rewrite /short /page.html
	rewrite /seen* /page.html
	header /listed Content-Language en
	file_server
}`, map[string]string{
		"index.html":      harness.Whole("", link("/page.html")+link("/users/log-out")+link("/missing")),
		"page.html":       harness.Whole("", "a page"),
		"it's.html":       harness.HTML("an apostrophe"),
		"docs/index.html": harness.HTML("docs"),
		"canonical.html":  harness.Whole(`<link rel="canonical" href="/page.html">`, "canonical"),
		"foreign.html":    harness.Whole(`<link rel="canonical" href="https://www.example.com/foreign.html">`, "foreign"),
		"chained.html":    harness.Whole(`<link rel="canonical" href="/hop2">`, "chained"),
		"refresh.html":    harness.Whole(`<meta http-equiv="refresh" content="0; url=/page.html">`, "refresh"),
		"private.html":    harness.Whole(`<meta name="robots" content="noindex">`, "private"),
		"blocked.html":    harness.HTML("blocked"),
		"secret/a.html":   harness.HTML("secret"),
		"robots.txt":      "User-agent: *\nDisallow: /blocked\n",
		"a.txt":           "no document",
		"drafts/a.html":   harness.HTML("a draft"),
		"en.html": harness.Whole(`<link rel="alternate" hreflang="en" href="/en.html"><link rel="alternate" hreflang="de" href="/gone">`+
			`<link rel="alternate" hreflang="en-UK" href="https://shop.example/">`, "english"),
	})
	s.refresh()
	for _, path := range []string{"/seen", "/seen-twice"} {
		s.Get(harness.Local+path, browser)
	}
	chain := []string{`"leads":"redirect","to":"{l}/hop3"}`, `"leads":"redirect","to":"{l}/page.html"}`, `{"url":"{l}/page.html","status":200,"content_type":"text/html; charset=utf-8","listed":true}`}
	for path, want := range map[string][]string{
		"/page.html":      {`"listed":true,"document":"{l}/sitemap.xml"`, `"reason":"indexable"`, `"linked_at"`, `"status":200`, `"due_by":"`},
		"/it's.html":      {`"listed":true`, `"status":200`},
		"/sitemap.xml":    {`"reason":"a document of the sitemap"`, "It is a document of the sitemap.", `!"remedy"`, `!"status"`},
		"/docs":           {`"reason":"leads to a listed page"`, `"other":"{l}/docs/"`, `"listed":true}`},
		"/hop1":           append(chain, `"reason":"redirect"`, `"other":"{l}/hop2"`, `"named_by":["urls"]`),
		"/canonical.html": {`"reason":"canonical is another page"`, `"other":"{l}/page.html"`, `"leads":"canonical","to":"{l}/page.html"`, `"named_by":["files"]`},
		"/foreign.html":   {`"reason":"canonical on another site"`, `'base_url https://www.example.com'`, `"other":"https://www.example.com/foreign.html"`},
		"/chained.html":   append(chain, `"leads":"canonical","to":"{l}/hop2"`),
		"/refresh.html":   {`"reason":"refresh"`, `"other":"{l}/page.html"`, `"leads":"refresh","to":"{l}/page.html"`},
		"/private.html":   {`"reason":"noindex"`, `"noindex":true`, `"named_by":["files","urls"]`},
		"/gone":           {`"reason":"not found"`, `"named_by":["urls"]`, `"status":404`, `"linked_at"`},
		"/missing":        {`"reason":"not found"`, `"linked_at"`, `!"named_by"`},
		"/users/log-out":  {`"reason":"disallowed"`, `"rule":"logout"`, "not fetched: it looks like an action, 'logout'", `with 'files' or 'links' written beside it`},
		"/never/delete":   {`"reason":"disallowed"`, `"rule":"delete"`},
		"/blocked.html":   {`"reason":"blocked by robots.txt"`, `"rule":"Disallow: /blocked"`, `"named_by":["files"]`, "not fetched: robots.txt"},
		"/secret/a.html":  {`"reason":"excluded"`, `"rule":"/secret/*"`},
		"/seen":           {`"reason":"waits for the next refresh"`, `"visited_at"`},
		"/seen-twice":     {`"reason":"no incoming links"`, `"visited_at"`, `"read_again":[{"url":"{l}/","due_at":"`},
		"/drafts/a.html":  {`"reason":"excluded"`, `"rule":"/drafts/*"`},
		"/en.html": {`"listed":true`, `"alternates_left_out":[{"hreflang":"de","url":"{l}/gone","reason":"it is not listed, its canonical is another page, or it does not link back"},` +
			`{"hreflang":"en-UK","url":"https://shop.example/","reason":"its hreflang is not x-default`},
		"/a.txt": {`"reason":"no source names it"`, `'include' of 'files'`, `with 'files' or 'links' written beside it`, `"status":200`, `"read_again":[{"url":"{l}/","due_at":"`},
	} {
		r := s.Get(api + "/sitemap/explain?url=" + url.QueryEscape(s.Expand(harness.Local)+path))
		for _, word := range want {
			word, isAbsent := strings.CutPrefix(word, "!")
			if word = s.Expand(strings.ReplaceAll(word, "{l}", harness.Local)); strings.Contains(r.Text, word) == isAbsent {
				t.Errorf("%s: got status %d, %s, want %s (absent: %t)", path, r.StatusCode, r.Text, word, isAbsent)
			}
		}
	}
}

// TestExplainFetchesNothing: neither with crawl off, nor of what only visitors know.
func TestExplainFetchesNothing(t *testing.T) {
	off := strings.Replace(oneSite, "sitemap\n", "sitemap {\n\t\tcrawl off\n\t}\n", 1)
	s := startWithAdmin(t, off+strings.Replace(twoSites[len(oneSite):], "sitemap\n", "sitemap {\n\t\ttraffic\n\t}\n", 1), harness.TwoRoots)
	s.refresh()
	const visited = "http://127.0.0.1:{port}/visited.html"
	s.Write(map[string]string{"b/visited.html": harness.HTML("visited")})
	s.Get(visited, "Accept: text/html", browser)
	for at, want := range map[string]string{harness.Local + "/one.html": "not fetched: crawl is off", harness.Local + "/cart.html": `"reason":"no source names it"`, visited: "not fetched: what only visitors know may be private"} {
		var said string
		s.Eventually(func() bool {
			said = s.Get(api + "/sitemap/explain?url=" + url.QueryEscape(s.Expand(at))).Text
			return strings.Contains(said, want)
		}, func() string { return at + ": " + said })
	}
}

// TestAdminAfterFailedLoad has an admin endpoint that belongs to a configuration which
// did not come to run: it speaks of the one that does.
func TestAdminAfterFailedLoad(t *testing.T) {
	s := startOne(t, oneSite)
	gate.broken = errors.New("not ready")
	defer func() { gate.broken = nil }()
	if err := s.TryLoad(gatedSite); err == nil {
		t.Fatal("a module that cannot be provisioned was")
	}
	if all := s.statuses(http.MethodGet, "/sitemap/sites"); len(all) != 1 || all[0].Pages != len(harness.PagesOfA) {
		t.Errorf("got %+v", all)
	}
	if st := s.refresh(); st.LastRefresh == nil {
		t.Errorf("refreshing: got %+v", st)
	}
}

// TestAdminSiteNeverSeen has a site that cannot even be looked at: its refreshes fail, and
// say why.
func TestAdminSiteNeverSeen(t *testing.T) {
	s := startWithAdmin(t, "http://localhost:{port} {\n\troute {\n\t\trespond /sitemap.xml 502\n\t\tsitemap\n\t}\n}", nil)
	if last := s.refresh().LastRefresh; last == nil || last.Result != "failed" || !strings.Contains(last.Reason, "/sitemap.xml") {
		t.Errorf("got %+v", last)
	}
	s.command("refresh").want(t, 1, []string{"failed", "/sitemap.xml"}, []string{": the last refresh failed: "})
}

// TestAdminWhileReloading asks all the time while configurations come and go.
func TestAdminWhileReloading(t *testing.T) {
	s := startOne(t, oneSite)
	ctx, end := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, route := range []string{"GET /sitemap/sites", "POST /sitemap/refresh", "GET /metrics", "GET /sitemap/explain?url=" + url.QueryEscape(s.Expand(harness.Local+"/one.html"))} {
		method, path, _ := strings.Cut(route, " ")
		group.Go(func() {
			for ctx.Err() == nil {
				// An endpoint that ends may take a connection with it; and a site that ends,
				// a refresh.
				r, err := s.Try(method, api+path)
				if err == nil && r.StatusCode != http.StatusOK && r.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("%s: got status %d: %s", route, r.StatusCode, r.Text)
				}
			}
		})
	}
	for i := range 12 {
		s.Reload("{\n\tsitemap {\n\t\tstate off\n\t}\n}\n" + strings.Replace(oneSite, "sitemap\n", fmt.Sprintf("sitemap {\n\t\trefresh %dm\n\t}\n", i+1), 1))
	}
	end()
	group.Wait()
	s.Eventually(func() bool {
		all := s.statuses(http.MethodGet, "/sitemap/sites")
		return len(all) == 1 && all[0].Pages == len(harness.PagesOfA)
	}, s.SitemapLog)
}
