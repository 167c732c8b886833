package caddytest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// host and origin are how search engines know the site.
const host, origin = "www.sitemap-test.org", "https://www.sitemap-test.org"

// engine is a search engine that enforces the rules of the protocols, and reports each rule that a request breaks.
type engine struct {
	*httptest.Server
	s *announcer

	origin   string // of the site
	internal string // prefix by which a proxy replaces /docs; "": none does

	mu       sync.Mutex
	respond  http.HandlerFunc // instead of accepting what keeps the rules; nil: it accepts
	accepted []string         // "indexnow /path" or "ping URL", in order
	last     map[string]time.Time
	requests int
}

// announcer is a running Caddy that announces what changes to an engine.
type announcer struct {
	*harness.Server
	engine *engine
}

// prepareAnnouncer makes a site of some pages, and an engine.
func prepareAnnouncer(t *testing.T, names ...string) *announcer {
	t.Helper()
	s := &announcer{Server: harness.Prepare(t, nil)}
	s.OpenAdmin()
	for _, name := range names {
		s.page(name, "2026-01-01")
	}
	e := &engine{s: s, origin: origin, last: make(map[string]time.Time)}
	e.Server, s.engine = httptest.NewServer(e), e
	t.Cleanup(e.Close)
	t.Cleanup(e.CloseClientConnections)
	return s
}

// page writes a page that declares a date.
func (s *announcer) page(name, date string) {
	s.WriteRaw("site/"+name, harness.Whole(fmt.Sprintf(`<meta property="article:modified_time" content="%s">`, date), name+" as of "+date))
}

// announcedSite is refreshed only when a test says so, as nothing watches its file system: one refresh more would confirm added
// pages, or see half of what is being written.
const announcedSite = `{
	metrics
	filesystem site test_hooked {dir}/site
	sitemap {
		state {dir}/state
	}
}
http://:{port} {
	root * .
	fs site
	route {
		<before>
		sitemap {
			base_url <origin>
			refresh 1h
			<options>
		}
		file_server
	}
}`

// caddyfile is a site with options of the sitemap, in which {engine} is the engine, and with handlers before it.
func (s *announcer) caddyfile(options string, before ...string) string {
	site := strings.NewReplacer("<before>", strings.Join(before, "\n"), "<origin>", origin, "<options>", options).Replace(announcedSite)
	return strings.ReplaceAll(site, "{engine}", s.engine.URL)
}

// crawled runs a site until its first crawl has ended.
func (s *announcer) crawled(options string, before ...string) {
	s.T.Helper()
	s.Load(s.caddyfile(options, before...))
	s.Refreshes(1)
}

// breaks reports a rule that a request breaks.
func (e *engine) breaks(ok bool, rule string, args ...any) {
	if !ok {
		e.s.T.Errorf("a request breaks a rule: "+rule, args...)
	}
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	e.mu.Lock()
	e.requests++
	e.breaks(err == nil && strings.Contains(r.UserAgent(), "caddy-sitemap"), "the body ends early: %v, or the user agent is %q", err, r.UserAgent())
	var urls []string
	status, least := 404, 5*time.Minute
	switch r.URL.Path {
	case "/indexnow":
		least = 10 * time.Minute
		urls, status = e.submitted(r, body), 202
	case "/ping":
		least, status, urls = time.Hour, 200, []string{"ping " + r.URL.Query().Get("sitemap")}
		e.breaks(r.Method == "GET" && len(body) == 0 && urls[0] == "ping "+e.origin+"/sitemap.xml", "%s %s", r.Method, r.URL)
	case "/hub":
		form, err := url.ParseQuery(string(body))
		e.breaks(r.Method == "POST" && r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" && err == nil &&
			len(form) == 2 && form.Get("hub.mode") == "publish" && form.Get("hub.url") == origin+"/sitemap.atom", "%s of the form %s", r.Method, body)
		urls, status = []string{"hub " + form.Get("hub.url")}, 204
	}
	respond := e.respond
	if respond == nil {
		for _, u := range urls {
			if last, again := e.last[u]; again {
				e.breaks(time.Since(last) >= least, "%s again after %s", u, time.Since(last))
			}
			e.last[u] = time.Now()
			e.accepted = append(e.accepted, u)
		}
	}
	e.mu.Unlock()
	if respond == nil {
		respond = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	respond(w, r)
}

// submitted checks a request of IndexNow, for which it fetches the key file, and returns its URLs.
func (e *engine) submitted(r *http.Request, body []byte) (urls []string) {
	var s struct {
		Host, Key, KeyLocation string
		URLList                []string
	}
	err := json.Unmarshal(body, &s)
	e.breaks(r.Method == "POST" && r.Header.Get("Content-Type") == "application/json; charset=utf-8" && err == nil, "%s of %s: %v", r.Method, r.Header.Get("Content-Type"), err)
	path, ours := strings.CutPrefix(s.KeyLocation, e.origin)
	e.breaks(ours && strings.HasSuffix(e.origin, "://"+s.Host) && len(s.URLList) > 0 && len(s.URLList) <= 10_000, "host %s, key at %s, %d URLs", s.Host, s.KeyLocation, len(s.URLList))
	if e.internal != "" {
		path = e.internal + strings.TrimPrefix(path, "/docs")
	}
	k, err := e.s.Try(http.MethodGet, harness.Local+path, "Host: "+s.Host)
	e.breaks(err == nil && k.StatusCode == 200 && k.Text == s.Key && strings.HasPrefix(k.Header.Get("Content-Type"), "text/plain"), "key file %s: %v, %+v", path, err, k)
	for _, u := range s.URLList {
		path, ours := strings.CutPrefix(u, e.origin)
		e.breaks(ours && strings.HasPrefix(path, "/"), "%s is not on %s", u, e.origin)
		urls = append(urls, "indexnow "+path)
	}
	slices.Sort(urls)
	e.breaks(len(slices.Compact(slices.Clone(urls))) == len(urls), "a URL is there twice: %q", urls)
	return urls
}

// set says how the engine responds from now on; nil: as the rules say.
func (e *engine) set(respond http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.respond = respond
}

// wants waits until just this was accepted.
func (e *engine) wants(want ...string) {
	e.s.T.Helper()
	var got []string
	e.s.Eventually(func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		got = slices.Clone(e.accepted)
		return slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
	}, func() string { return fmt.Sprintf("accepted is %q, want %q\n%s", got, want, e.s.SitemapLog()) })
}

// received is how many requests there were.
func (e *engine) received() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.requests
}

// announced is the status of the target of a protocol.
type announced struct {
	Reason            string
	Waiting, Accepted int
	Last, Next        time.Time
}

// announced returns the status of the site's targets.
func (s *announcer) announced() []announced {
	s.T.Helper()
	r := s.Get("http://localhost:{admin}/sitemap/sites")
	var all struct {
		Sites []struct{ Announced []announced }
	}
	if err := json.Unmarshal([]byte(r.Text), &all); err != nil || len(all.Sites) == 0 {
		s.T.Fatalf("status %d, %v: %s", r.StatusCode, err, r.Text)
	}
	return all.Sites[0].Announced
}

// target waits until the first target is as it is to be.
func (s *announcer) target(is func(announced) bool) (a announced) {
	s.T.Helper()
	s.Eventually(func() bool {
		all := s.announced()
		if len(all) > 0 {
			a = all[0]
		}
		return len(all) > 0 && is(a)
	}, func() string { return fmt.Sprintf("%+v\n%s", a, s.SitemapLog()) })
	return a
}
