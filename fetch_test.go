package sitemap

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/goleak"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// fetching is a fetcher of a server that is one handler.
func fetching(t testing.TB, handler func(http.ResponseWriter, *http.Request) error) *serverFetcher {
	t.Helper()
	return &serverFetcher{server: new(caddyhttp.Server), routes: caddyhttp.HandlerFunc(handler)}
}

var home = request{Request: crawl.Request{Path: "/", Limit: 100}, origin: "http://example.com", abandoned: new(atomic.Int32)}

// wholly hides that a reader has other methods.
type wholly struct{ io.Reader }

// sending copies a body, in one of the two ways in which handlers do so.
func sending(body string, readFrom bool, header ...string) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		var to io.Writer = w
		if !readFrom {
			to = struct{ io.Writer }{w}
		}
		_, err := io.Copy(to, wholly{strings.NewReader(body)})
		return err
	}
}

// TestFetch: what becomes of what a handler does.
func TestFetch(t *testing.T) {
	type want struct {
		status    int
		body      string
		truncated bool
		unhandled bool
		proxied   bool
		err       string // "": none
	}
	hundred := strings.Repeat("x", 100)
	for name, test := range map[string]struct {
		handler caddyhttp.HandlerFunc
		want    want
	}{
		"nothing": {func(http.ResponseWriter, *http.Request) error { return nil }, want{status: 200}},
		"the end of the routes": {func(_ http.ResponseWriter, r *http.Request) error {
			caddyhttp.SetVar(r.Context(), "unhandled", true)
			return nil
		}, want{status: 404, unhandled: true}},
		"a response at the end of the routes": {func(w http.ResponseWriter, r *http.Request) error {
			caddyhttp.SetVar(r.Context(), "unhandled", true)
			w.WriteHeader(http.StatusNoContent)
			return nil
		}, want{status: 204}},
		"a body": {sending("hello", false), want{status: 200, body: "hello"}},
		"an upstream": {func(w http.ResponseWriter, r *http.Request) error {
			upstream(r)
			return nil
		}, want{status: 200, proxied: true}},
		"statuses": {func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusTeapot)
			w.WriteHeader(http.StatusOK)
			return nil
		}, want{status: 418}},
		"an error of Caddy's": {func(http.ResponseWriter, *http.Request) error {
			return caddyhttp.Error(http.StatusForbidden, errors.New("no"))
		}, want{status: 403}},
		"an error of another kind": {func(http.ResponseWriter, *http.Request) error { return errors.New("no") }, want{status: 500}},
		"an error after the response": {func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, "some")
			return caddyhttp.Error(http.StatusBadGateway, errors.New("no"))
		}, want{status: 200, body: "some"}},
		"a body of just the limit":           {sending(hundred, false), want{status: 200, body: hundred}},
		"a body of just the limit, read":     {sending(hundred, true), want{status: 200, body: hundred}},
		"a body past the limit":              {sending(hundred+"y", false), want{status: 200, body: hundred, truncated: true}},
		"a body past the limit, read":        {sending(hundred+"y", true), want{status: 200, body: hundred, truncated: true}},
		"read with its length":               {sending(hundred, true, "Content-Length", "100"), want{status: 200, body: hundred}},
		"read, longer than it said":          {sending(hundred, true, "Content-Length", "3"), want{status: 200, body: hundred}},
		"read, with a length past the limit": {sending(hundred+hundred, true, "Content-Length", "200"), want{status: 200, body: hundred, truncated: true}},
		"without end": {func(w http.ResponseWriter, r *http.Request) error {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, strings.Repeat("x", 30))
			}
			return r.Context().Err()
		}, want{status: 200, body: hundred, truncated: true}},
		"past the limit, aborted then": {func(w http.ResponseWriter, _ *http.Request) error {
			if _, err := io.WriteString(w, hundred+"y"); err != nil {
				panic(http.ErrAbortHandler)
			}
			return nil
		}, want{status: 200, body: hundred, truncated: true}},
		"abort": {func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }, want{status: 403}},
		"abort halfway": {func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, "some")
			panic(http.ErrAbortHandler)
		}, want{err: errAborted.Error()}},
		"a panic": {func(http.ResponseWriter, *http.Request) error { panic("oops") }, want{err: "panic: oops"}},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			f := fetching(t, test.handler)
			res, err := f.fetch(t.Context(), home)
			var got want
			if err != nil {
				got.err = err.Error()
			} else {
				got = want{res.Status, string(res.Body), res.Truncated, res.Unhandled, res.Proxied, ""}
			}
			if got != test.want || (res != nil) != (err == nil) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestFetchRequest: a request looks as that of an anonymous visitor, and is complete.
func TestFetchRequest(t *testing.T) {
	var r *http.Request
	f := fetching(t, func(_ http.ResponseWriter, got *http.Request) error {
		r = got
		return nil
	})
	for name, test := range map[string]struct{ origin, path, host, serverName string }{
		"http":        {"http://example.com", "/a%20b?x=1", "example.com", ""},
		"odd port":    {"http://example.com:8080", "/", "example.com:8080", ""},
		"https":       {"https://example.com", "/", "example.com", "example.com"},
		"https, port": {"https://example.com:8443", "/a%2Fb", "example.com:8443", "example.com"},
		"IPv6":        {"https://[2001:db8::1]:8443", "/", "[2001:db8::1]:8443", "2001:db8::1"},
		"Latin-1":     {"http://example.com", "/caf%E9", "example.com", ""},
		"two slashes": {"http://example.com", "//x/y", "example.com", ""},
	} {
		q := home
		q.origin, q.Path, q.Header = test.origin, test.path, http.Header{"If-None-Match": {`"a"`}}
		if _, err := f.fetch(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if r.Method != http.MethodGet || r.Host != test.host || r.URL.RequestURI() != test.path || r.RequestURI != test.path || r.Body == nil {
			t.Errorf("%s: got %s %s %s (%s)", name, r.Method, r.Host, r.URL.RequestURI(), r.RequestURI)
		}
		if addr, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || addr.Addr() != netip.MustParseAddr("192.0.2.1") {
			t.Errorf("%s: it comes from %s", name, r.RemoteAddr)
		}
		if got := r.UserAgent(); !strings.Contains(got, "bot") || !strings.Contains(got, "caddy-sitemap") {
			t.Errorf("%s: the User-Agent is %q", name, got)
		}
		if got := r.Header.Get("Accept"); !strings.HasPrefix(got, "text/html,") || !strings.HasSuffix(got, ",*/*;q=0.8") {
			t.Errorf("%s: it accepts %q", name, got)
		}
		if r.Header.Get("If-None-Match") != `"a"` {
			t.Errorf("%s: got %v without the given header", name, r.Header)
		}
		for _, header := range []string{"Cookie", "Authorization", "Accept-Encoding", "Range", "X-Forwarded-For"} {
			if r.Header.Get(header) != "" {
				t.Errorf("%s: it has %s: %s", name, header, r.Header.Get(header))
			}
		}
		if skip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.LogSkipVar).(bool); !skip {
			t.Errorf("%s: it would be logged", name)
		}
		switch https := test.serverName != ""; {
		case (r.TLS != nil) != https, r.ProtoAtLeast(2, 0) != https:
			t.Errorf("%s: TLS is %+v, the protocol %s", name, r.TLS, r.Proto)
		case https && (!r.TLS.HandshakeComplete || r.TLS.NegotiatedProtocol != "h2" || strings.Trim(r.TLS.ServerName, "[]") != test.serverName):
			t.Errorf("%s: TLS is %+v", name, r.TLS)
		}
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		want := "198.51.100.1:80"
		if test.serverName != "" {
			want = "198.51.100.1:443"
		}
		if local == nil || local.String() != want {
			t.Errorf("%s: it goes to %v, want %s", name, local, want)
		}
	}
	f.port = 9080
	if _, err := f.fetch(t.Context(), home); err != nil {
		t.Fatal(err)
	}
	if local := r.Context().Value(http.LocalAddrContextKey).(net.Addr); local.String() != "198.51.100.1:9080" {
		t.Errorf("at another port, it goes to %s", local)
	}
	if _, err := f.fetch(t.Context(), request{Request: crawl.Request{Path: "/%zz"}, abandoned: new(atomic.Int32)}); err == nil {
		t.Error("a path that is none was requested")
	}
}

// TestFetchEnds: a handler that waits ends after a while, and at once with the context.
func TestFetchEnds(t *testing.T) {
	waits := func(_ http.ResponseWriter, r *http.Request) error {
		<-r.Context().Done()
		return caddyhttp.Error(http.StatusBadGateway, r.Context().Err())
	}
	aborts := func(w http.ResponseWriter, r *http.Request) error {
		_, _ = io.WriteString(w, "some")
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	for _, test := range []struct {
		handler caddyhttp.HandlerFunc
		after   time.Duration // until the context is canceled; 0: never
		want    time.Duration
		err     error
	}{
		{waits, 0, fetchTimeout, context.DeadlineExceeded},
		{waits, time.Second, time.Second, context.Canceled},
		{aborts, 0, fetchTimeout, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := fetching(t, test.handler)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.after > 0 {
				time.AfterFunc(test.after, cancel)
			}
			begun := time.Now()
			if res, err := f.fetch(ctx, home); !errors.Is(err, test.err) || time.Since(begun) != test.want {
				t.Errorf("got %+v, %v after %s, want %v after %s", res, err, time.Since(begun), test.err, test.want)
			}
		})
	}
}

// TestFetchAbandoned: a handler that ignores its context keeps nobody waiting. Once too
// many have, it is asked for nothing more until one comes back.
func TestFetchAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		release := make(chan struct{})
		f := fetching(t, func(http.ResponseWriter, *http.Request) error {
			calls.Add(1)
			<-release
			return nil
		})
		var abandoned atomic.Int32
		q := home
		q.abandoned = &abandoned
		for range maxAbandoned {
			begun := time.Now()
			if _, err := f.fetch(t.Context(), q); !errors.Is(err, errAbandoned) || time.Since(begun) != fetchTimeout+fetchGrace {
				t.Fatalf("got %v after %s", err, time.Since(begun))
			}
		}
		begun := time.Now()
		if _, err := f.fetch(t.Context(), q); !errors.Is(err, errAbandoned) || time.Since(begun) != 0 || calls.Load() != maxAbandoned {
			t.Errorf("got %v after %s, %d calls", err, time.Since(begun), calls.Load())
		}
		release <- struct{}{}
		synctest.Wait()
		if n := abandoned.Load(); n != maxAbandoned-1 {
			t.Errorf("%d are abandoned once one came back, want %d", n, maxAbandoned-1)
		}
		close(release)
		synctest.Wait()
		if res, err := f.fetch(t.Context(), q); err != nil || res.Status != 200 || abandoned.Load() != 0 {
			t.Errorf("once all came back: got %+v, %v, %d abandoned", res, err, abandoned.Load())
		}
	})
}

// TestSiteFetch: the crawl's requests go to the prefix as the server knows it.
func TestSiteFetch(t *testing.T) {
	b := newBench(t, func(h *Handler) {
		h.BaseURL = "https://shop.example/b"
		h.mounts = mounts{{hosts: []string{"inside.example"}, prefix: "/docs"}}
	})
	s := b.site("")
	var got string
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		got = r.Host + r.URL.RequestURI() + r.Header.Get("If-None-Match")
		_, err := io.Copy(w, bytes.NewReader(make([]byte, 10)))
		return err
	}
	for path, want := range map[string]string{"/b/a?x=1": "inside.example/docs/a?x=1e", "/b/": "inside.example/docs/e", "/bc": "inside.example/bce"} {
		res, err := s.fetcher.Fetch(t.Context(), crawl.Request{Path: path, Header: http.Header{"If-None-Match": {"e"}}, Limit: 5})
		if err != nil || got != want || len(res.Body) != 5 || !res.Truncated {
			t.Errorf("%s: got %s, %+v, %v, want %s", path, got, res, err, want)
		}
	}
}

// TestAccept: an application that gives HTML only where Accept names it gives HTML for pages, and what it gives to
// other clients for lists and robots.txt.
func TestAccept(t *testing.T) {
	b := newBench(t, nil)
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		accept := r.Header.Get("Accept")
		contentType := "text/plain"
		body := "/listed\n"
		switch {
		case strings.Contains(accept, "text/html"):
			contentType = contentHTML
			body = "<!doctype html><title>" + r.URL.Path + "</title><p>" + r.URL.Path
		case r.URL.Path == robotsPath:
			body = "User-agent: *\nDisallow: /private\n"
		case r.URL.Path != "/list":
			return caddyhttp.Error(http.StatusNotAcceptable, nil)
		}
		w.Header().Set("Content-Type", contentType)
		_, err := io.WriteString(w, body)
		return err
	}
	b.source = func(ctx context.Context, r *Refresh, yield func(Page) error) error {
		if err := yield(Page{Path: "/private"}); err != nil {
			return err
		}
		list := &SourceURLs{From: []string{"/list"}}
		return list.pages(ctx, r, func(p page.Page) error { return yield(Page{Path: p.Path}) })
	}
	b.wantPages(b.site("visited.example"), 1)
	last := b.site("visited.example").published().report
	if last.LeftOut["blocked by robots.txt"] != 1 || last.Sources[0].Pages != 2 {
		t.Errorf("got %+v", last)
	}
}

// TestRateLimitOfProbes: an upstream that asks for a long pause holds up the probes of a
// host that only visitors named no longer than a fetch may take.
func TestRateLimitOfProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.handler.limiter = crawl.NewLimiter(1.0/3600, 1)
		for host, want := range map[string][]time.Duration{"visited.example": {0, fetchTimeout}, "named.example": {0, 0}, "files.example": {0, 0}} {
			s := b.site(host)
			s.probed.Store(&probeResult{made: host != "files.example"})
			for _, want := range want {
				begun := time.Now()
				if s.paceProbe(t.Context(), s.rank()); time.Since(begun) != want {
					t.Errorf("%s: took %s, want %s", host, time.Since(begun), want)
				}
			}
		}
		_ = b.app.Stop()
	})
}

// TestHostOfBaseURL: requests have the Host that a proxy in front passes on, without the port of Caddy's listener.
func TestHostOfBaseURL(t *testing.T) {
	for base, want := range map[string]string{"": "named.example:8080", "https://shop.example": "shop.example", "https://shop.example:8443": "shop.example:8443"} {
		b := newBench(t, func(h *Handler) { h.BaseURL = base })
		b.handler.listener.port = "8080"
		hosts := make(map[string]bool)
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			hosts[r.Host] = true
			return nil
		}
		s := b.site("named.example:8080")
		for _, path := range []string{"/", "/a"} {
			if _, err := s.fetcher.Fetch(t.Context(), crawl.Request{Path: path}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.fetcher.get(t.Context(), crawl.Request{Path: path, Limit: 100}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if len(hosts) != 1 || !hosts[want] {
			t.Errorf("%s: got %v, want %s", base, hosts, want)
		}
	}
}
