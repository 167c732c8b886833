package sitemap

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// TestDiscoverySettings is of JSON, whose settings no Caddyfile has checked.
func TestDiscoverySettings(t *testing.T) {
	const traffic, links, logs = "traffic", "links", "access_log"
	for _, test := range []struct{ source, settings, want string }{
		{links, `{"query": [], "expire": 0, "max_paths": 0, "depth": 0}`, ""},
		{traffic, `{"query": ["page", "Page", "ids[]", "a b"], "unlinked": [], "expire": "1h", "max_paths": 1}`, ""},
		{traffic, `{"max_paths": 10000000, "unlinked": ["*"]}`, ""},

		{traffic, `{"query": [""]}`, "traffic: query '': use names of parameters, such as page lang"},
		{traffic, `{"unlinked": [""]}`, "traffic: unlinked: path pattern '' matches nothing: it must begin with '/' or '*'"},
		{traffic, `{"max_paths": -1}`, "traffic: max_paths is -1: use 1 to 10000000"},
		{traffic, `{"depth": 3}`, `json: unknown field "depth"`},
		{traffic, `{"unlinked": [{"match": ["/a"]}]}`, "cannot unmarshal object into Go struct field SourceTraffic.Discovery.unlinked of type string"},

		{links, `{"depth": 250}`, ""},
		{links, `{"unlinked": ["/a"]}`, "links: unlinked does not belong here: write it into access_log or traffic, which know of visits"},

		{logs, `{}`, "access_log: no access log is named"},
		{logs, `{"files": ["/a.log", ""]}`, "access_log: an access log has an empty name"},
		{logs, `{"files": ["/{http.request.host}.log"]}`, "access_log '/{http.request.host}.log': unrecognized placeholder {http.request.host}"},
		{logs, `{"files": ["/{x}.log"]}`, "access_log '/{x}.log': unrecognized placeholder {x}"},
		{logs, `{"files": ["/a.log"], "format": "xml"}`, "access_log: format is 'xml': use one of auto, json, common, combined"},
		{logs, `{"files": ["/a.log"], "max_paths": -1}`, "access_log: max_paths is -1: use 1 to 10000000"},
		{logs, `{"files": ["/a.log"], "fields": {}}`, `json: unknown field "fields"`},
	} {
		source := map[string]discoverer{traffic: new(SourceTraffic), links: new(SourceLinks), logs: new(SourceAccessLog)}[test.source]
		d := json.NewDecoder(bytes.NewReader([]byte(test.settings)))
		d.DisallowUnknownFields()
		err := d.Decode(source)
		if err == nil {
			h := &Handler{sources: []input{source}, logger: zap.NewNop()}
			if h.discovery, err = joinDiscoveries(h.sources, h.settings.crawl.Off); err == nil {
				_, err = h.logReaders()
			}
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasSuffix(err.Error(), test.want)) {
			t.Errorf("%s %s: got %v, want %s", test.source, test.settings, err, test.want)
		}
	}
}

// TestDiscovers: what the sources of a handler say together.
func TestDiscovers(t *testing.T) {
	const day = 24 * time.Hour
	links := &SourceLinks{Depth: 3, Discovery: Discovery{Query: []string{"page", "lang"}, MaxPaths: 10}}
	traffic := &SourceTraffic{Discovery{Query: []string{"lang", "id"}, Expire: caddy.Duration(time.Hour), MaxPaths: 5, Unlinked: []string{"/t"}}}
	logs := &SourceAccessLog{Files: []string{"a"}, Discovery: Discovery{Expire: caddy.Duration(2 * time.Hour), MaxPaths: 20, Unlinked: []string{"/l"}}}
	for name, test := range map[string]struct {
		sources  []input
		off      bool
		want     *discovery // nil: none
		unlinked string     // a path that needs no link; "": there is none
		err      string
	}{
		"links":     {sources: []input{&SourceLinks{}}, want: &discovery{depth: 100, expire: 90 * day, maxPaths: 1_000_000}},
		"traffic":   {sources: []input{&SourceTraffic{}}, want: &discovery{visitors: true, expire: 90 * day, maxPaths: 1_000_000}},
		"all":       {sources: []input{links, &SourceFiles{}, traffic, logs}, want: &discovery{visitors: true, depth: 3, query: []string{"page", "lang", "id"}, expire: 90 * day, maxPaths: 20}, unlinked: "/l"},
		"logs":      {sources: []input{logs, logs}, want: &discovery{visitors: true, expire: 2 * time.Hour, maxPaths: 20}, unlinked: "/L"},
		"files":     {sources: []input{&SourceFiles{}}},
		"crawl off": {sources: []input{&SourceFiles{}, traffic}, off: true, err: "traffic lists only pages that were fetched, and crawl is off"},
	} {
		h := &Handler{sources: test.sources, settings: settings{crawl: Crawl{Off: test.off}}}
		got, err := joinDiscoveries(h.sources, h.settings.crawl.Off)
		if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err || (got == nil) != (test.want == nil) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if got == nil || test.want == nil {
			continue
		}
		if test.unlinked != "" && !got.unlinked.Match(test.unlinked) || got.unlinked.Match("/other") {
			t.Errorf("%s: %s needs a link, or /other none", name, test.unlinked)
		}
		same := *got
		same.unlinked, same.urls = nil, nil
		if !reflect.DeepEqual(&same, test.want) {
			t.Errorf("%s: got %+v, want %+v", name, same, test.want)
		}
	}
	if want := []string{"page", "lang"}; !slices.Equal(links.Query, want) {
		t.Errorf("the query of links became %q", links.Query)
	}
}

// TestMaxPaths: a site on demand remembers few paths, and what has no room is counted.
func TestMaxPaths(t *testing.T) {
	v := newVisiting(t, &SourceTraffic{Discovery{MaxPaths: 2, Expire: caddy.Duration(time.Hour)}})
	s := v.site("a.example", "")
	for _, path := range []string{"/c", "/a", "/b", "/a"} {
		s.Note(path, v.clock.Unix(), false)
	}
	v.want(s, "/a", "/c")
	v.want(s, "/a", "/c")
	if _, dropped := s.state.visited.Count(); dropped != 1 {
		t.Errorf("%d are dropped, want 1", dropped)
	}
	v.clock = v.clock.Add(30 * time.Minute)
	s.Note("/a", v.clock.Unix(), false)
	v.clock = v.clock.Add(time.Hour)
	v.want(s, "/a")
	for onDemand, most := range map[bool]int{false: 1_000_000, true: 500} {
		h := &Handler{discovery: &discovery{maxPaths: 1_000_000}}
		if got := h.discovery.most(onDemand); got != most {
			t.Errorf("on demand %t: got %d, want %d", onDemand, got, most)
		}
	}
}

// TestVisitOfAlias: a visit to an alias is one to the site that it stands for.
func TestVisitOfAlias(t *testing.T) {
	v := newVisiting(t, &SourceTraffic{})
	main, alias := v.site("a.example", ""), v.site("www.a.example", "")
	alias.main.Store(main)
	alias.Note("/a", v.clock.Unix(), false)
	v.want(main, "/a")
	v.want(alias)
}

// visiting is an App with one handler, whose visits are looked at by the test.
type visiting struct {
	testing.TB
	app     *App
	handler *Handler
	logs    *observer.ObservedLogs
	clock   time.Time
}

func newVisiting(t testing.TB, sources ...input) *visiting {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	v := &visiting{TB: t, logs: logs, clock: time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)}
	h := &Handler{logger: zap.New(core), sources: sources, server: new(caddyhttp.Server), listener: address{scheme: "http"}, mounts: mounts{{}}}
	if err := h.compile(""); err != nil {
		t.Fatal(err)
	}
	h.limiter = crawl.NewLimiter(2, 1)
	v.handler = h
	v.app = &App{
		number: math.MaxUint64, // whatever configurations other tests have started
		logger: h.logger, sampled: logonce.PerMinute(h.logger), now: func() time.Time { return v.clock }, handlers: []*Handler{h}, sites: make(map[siteID]*site), keys: make(map[string]bool),
		started: make(chan struct{}), counts: newCounts(nil),
	}
	h.app = v.app
	v.app.running, v.app.cancel = context.WithCancel(t.Context())
	t.Cleanup(func() {
		for _, s := range v.app.sites {
			s.drop()
		}
	})
	close(v.app.started)
	return v
}

// site makes a site that a request named, as ready as after its first refresh.
func (v *visiting) site(host, prefix string) *site {
	id := siteID{v.handler, address{scheme: "http", host: host, prefix: prefix}}
	s := newSite(v.app, newIdentity(id, false))
	s.setReady()
	v.app.sites[id] = s
	v.app.keys[s.state.place.key] = true
	return s
}

// want fails the test unless a refresh of a site is given these paths.
func (v *visiting) want(s *site, want ...string) {
	v.Helper()
	var paths []string
	r, _ := newRefresh(s, probeResult{}, v.clock)
	err := new(SourceTraffic).pages(v.Context(), r, func(p page.Page) error {
		if !p.Visited {
			v.Errorf("%s is not marked as visited", p.Path)
		}
		paths = append(paths, p.Path)
		return nil
	})
	if err != nil || !slices.Equal(paths, want) {
		v.Errorf("%s: got %q, %v, want %q", s.url(), paths, err, want)
	}
}

// sink is the least that a response is written to.
type sink struct{ header http.Header }

func (s sink) Header() http.Header       { return s.header }
func (sink) WriteHeader(int)             {}
func (sink) Write(p []byte) (int, error) { return len(p), nil }

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"

// request is a request for a page of named.example, as Caddy hands it to its handlers.
func (v *visiting) request(method, target string, header http.Header) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "named.example"
	r.RemoteAddr = "198.51.100.7:40000"
	for name, values := range header {
		r.Header[name] = values
	}
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), v.handler.server)
}

// respond answers with a status and headers, given as names and values.
func respond(status int, header ...string) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		for i := 0; i < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		w.WriteHeader(status)
		return nil
	}
}

const contentHTML = "text/html; charset=utf-8"

// TestWatch: which requests show visits, and to what.
func TestWatch(t *testing.T) {
	type change func(*http.Request) *http.Request
	header := func(name, value string) change {
		return func(r *http.Request) *http.Request { r.Header.Set(name, value); return r }
	}
	own := func(p *probe) change {
		return func(r *http.Request) *http.Request {
			r.RemoteAddr = anonymousAddr
			return r.WithContext(context.WithValue(r.Context(), probeCtxKey{}, p))
		}
	}
	html := respond(200, "Content-Type", contentHTML)
	for name, test := range map[string]struct {
		method string
		change change // nil: none
		next   caddyhttp.HandlerFunc
		want   bool
	}{
		"a page":            {"GET", nil, html, true},
		"HEAD":              {"HEAD", nil, html, true},
		"not modified":      {"GET", nil, respond(304, "Etag", `"a"`), true},
		"no type":           {"GET", nil, respond(200), true},
		"a hint before it":  {"GET", nil, func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(103); w.WriteHeader(200); return nil }, true},
		"a body alone":      {"GET", nil, func(w http.ResponseWriter, _ *http.Request) error { _, err := w.Write(nil); return err }, true},
		"not found":         {"GET", nil, respond(404, "Content-Type", contentHTML), false},
		"noindex in a line": {"GET", nil, respond(200, "Content-Type", contentHTML, "X-Robots-Tag", "noindex", "X-Robots-Tag", "bing: none"), false},
		"no response":       {"GET", nil, func(http.ResponseWriter, *http.Request) error { return nil }, false},
		"an error":          {"GET", nil, func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(200); return errors.New("broken") }, false},
		"credentials":       {"GET", header("Authorization", "Bearer x"), html, false},
		"a cookie":          {"GET", header("Cookie", "a=b"), html, true},
		"signed in": {"GET", func(r *http.Request) *http.Request {
			r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Set("http.auth.user.id", "bob")
			return r
		}, html, false},
		"rewritten": {"GET", func(r *http.Request) *http.Request {
			r.URL.Path, r.RequestURI = "/index.php", "/index.php?p=a"
			return r
		}, html, true},
		"no clean path": {"GET", func(r *http.Request) *http.Request {
			return r.WithContext(context.WithValue(r.Context(), caddyhttp.OriginalRequestCtxKey, *httptest.NewRequest("GET", "/a//b", nil)))
		}, html, false},
		"before the start":     {"GET", nil, html, false},
		"an unknown host":      {"GET", func(r *http.Request) *http.Request { r.Host = "other.example"; return r }, html, false},
		"our own":              {"GET", own(nil), html, false},
		"our own with a probe": {"GET", own(new(probe)), html, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVisiting(t, &SourceTraffic{Discovery{Query: []string{"x"}}})
			v.handler.recordsVisits = true
			s := v.site("named.example", "")
			r := v.request(test.method, "/a?x=1&utm_source=y", http.Header{"User-Agent": {browser}})
			if test.change != nil {
				r = test.change(r)
			}
			if name == "before the start" { // it is not known where handlers are mounted
				v.app.started = make(chan struct{})
			}
			_ = v.handler.ServeHTTP(httptest.NewRecorder(), r, test.next)
			if test.want {
				v.want(s, "/a?x=1")
			} else {
				v.want(s)
			}
			if len(v.app.sites) != 1 {
				t.Errorf("there are %d sites, want 1", len(v.app.sites))
			}
		})
	}
}

// TestSignals: a page is fetched again at the next refresh after a visitor of the site, or of an alias of it, got an error
// or a redirect, and no visit is kept for that.
func TestSignals(t *testing.T) {
	const bot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
	notFound := func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(http.StatusNotFound, nil) }
	header := func(values ...string) http.Header {
		h := http.Header{"User-Agent": {browser}}
		for i := 0; i < len(values); i += 2 {
			h.Set(values[i], values[i+1])
		}
		return h
	}
	for name, test := range map[string]struct {
		method, target, host string // "": GET /a of named.example
		header               http.Header
		next                 caddyhttp.HandlerFunc
		want                 bool
	}{
		"gone":                        {next: respond(http.StatusNotFound), want: true},
		"gone, by an error":           {next: notFound, want: true},
		"moved":                       {next: respond(http.StatusMovedPermanently, "Location", "/b"), want: true},
		"gone, at an alias":           {host: "www.named.example", next: notFound, want: true},
		"gone, with a campaign":       {target: "/a?utm_source=x", next: notFound, want: true},
		"another page":                {target: "/unknown", next: notFound},
		"another host":                {host: "unknown.example", next: notFound},
		"to https":                    {next: respond(http.StatusMovedPermanently, "Location", "https://named.example/a")},
		"a robot is refused":          {header: header("User-Agent", bot), next: respond(http.StatusForbidden)},
		"an error after the response": {next: func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(404); return errors.New("broken") }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(h *Handler) { h.recordsVisits = true })
			b.handler.discovery = &discovery{visitors: true, expire: 24 * time.Hour, maxPaths: 100, urls: origin.NewCleaner(nil)}
			b.lists("/", "/a")
			b.names("/", "/a")
			answer := b.pages
			fetched := 0
			b.pages = func(w http.ResponseWriter, r *http.Request) error {
				if r.URL.Path == "/a" {
					fetched++
				}
				return answer(w, r)
			}
			s := b.site("named.example")
			b.wantPages(s, 2)
			alias := b.site("www.named.example")
			alias.main.Store(s)
			b.clock = b.clock.Add(5 * time.Minute)
			b.refresh(s)
			fetched = 0
			requestHeader := test.header
			if requestHeader == nil {
				requestHeader = header()
			}
			r := b.request(cmp.Or(test.method, "GET"), cmp.Or(test.target, "/a"), requestHeader)
			r.Host = cmp.Or(test.host, r.Host)
			_ = b.handler.ServeHTTP(httptest.NewRecorder(), r, test.next)
			if visited := s.state.visited.Sorted(0); len(visited) > 0 && test.want {
				t.Errorf("it is kept: %q", visited)
			}
			b.clock = b.clock.Add(time.Minute)
			b.refresh(s)
			if got := fetched > 0; got != test.want {
				t.Errorf("it is fetched again: %t, want %t", got, test.want)
			}
		})
	}
}
