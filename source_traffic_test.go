package sitemap

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
)

// visiting is an App with one handler, whose visits are looked at by the test.
type visiting struct {
	testing.TB
	app     *App
	handler *Handler
	logs    *observer.ObservedLogs
	clock   time.Time
}

func newVisiting(t testing.TB, sources ...Source) *visiting {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	v := &visiting{TB: t, logs: logs, clock: time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)}
	h := &Handler{logger: zap.New(core), sources: sources, server: new(caddyhttp.Server), listener: listener{scheme: "http"}, mounts: mounts{{}}, onDemandTurn: crawl.NewSlots(1)}
	for _, source := range sources {
		h.sourceNames = append(h.sourceNames, caddy.GetModuleName(source))
	}
	var err error
	if h.settings, err = h.compile(caddy.NewReplacer()); err != nil {
		t.Fatal(err)
	}
	if h.discovery, err = h.discovers(); err != nil {
		t.Fatal(err)
	}
	v.handler = h
	v.app = &App{
		number: math.MaxUint64, // whatever configurations other tests have started
		logger: h.logger, now: func() time.Time { return v.clock }, handlers: []*Handler{h}, sites: make(map[siteID]*site),
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
	s := newSite(v.app, newIdentity(v.handler, id, prefix, false))
	s.setReady()
	v.app.sites[id] = s
	return s
}

// visited are the paths that a refresh of a site is given.
func (v *visiting) visited(s *site) []string {
	v.Helper()
	var paths []string
	err := new(SourceTraffic).Pages(v.Context(), newRefresh(s, probeResult{}, v.clock), func(p Page) error {
		if !p.Visited {
			v.Errorf("%s is not marked as visited", p.Path)
		}
		paths = append(paths, p.Path)
		return nil
	})
	if err != nil || !slices.IsSorted(paths) {
		v.Errorf("got %q, %v", paths, err)
	}
	return paths
}

func (v *visiting) want(s *site, want ...string) {
	v.Helper()
	if got := v.visited(s); !slices.Equal(got, want) {
		v.Errorf("%s: got %q, want %q", s.url(), got, want)
	}
}

// messages are how often each message was logged.
func (v *visiting) messages() map[string]int {
	messages := make(map[string]int)
	for _, entry := range v.logs.All() {
		messages[entry.Message]++
	}
	return messages
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
			v.handler.watches = true
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
