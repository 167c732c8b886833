package sitemap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
)

// sink is the least that a response is written to.
type sink struct{ header http.Header }

func (s sink) Header() http.Header       { return s.header }
func (sink) WriteHeader(int)             {}
func (sink) Write(p []byte) (int, error) { return len(p), nil }

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"

// newWatching is a visiting handler that sees requests, without anybody who takes the
// visits.
func newWatching(t testing.TB) *visiting {
	v := newVisiting(t, &SourceTraffic{})
	v.handler.watches = true
	return v
}

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

// TestNoteVisit: which requests show visits, and what is noted of them.
func TestNoteVisit(t *testing.T) {
	signIn := func(r *http.Request) *http.Request {
		r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Set("http.auth.user.id", "bob")
		return r
	}
	rewritten := func(r *http.Request) *http.Request {
		r.URL.Path, r.RequestURI = "/index.php", "/index.php?p=a"
		return r
	}
	elsewhere := func(r *http.Request) *http.Request { r.Host = "other.example"; return r }
	own := func(p *probe) func(r *http.Request) *http.Request {
		return func(r *http.Request) *http.Request {
			r.RemoteAddr = anonymousAddr
			return r.WithContext(context.WithValue(r.Context(), probeCtxKey{}, p))
		}
	}
	plain := func(r *http.Request) *http.Request { return r }
	at := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC).Unix()
	seen := func(change func(*accesslog.Visit)) *accesslog.Visit {
		v := &accesslog.Visit{Time: at, Method: "GET", URI: "/a?x=1", Status: 200, ContentType: contentHTML, UserAgent: "-"}
		change(v)
		return v
	}
	for name, test := range map[string]struct {
		method string
		header http.Header
		change func(*http.Request) *http.Request
		next   caddyhttp.HandlerFunc
		want   *accesslog.Visit // nil: nothing is noted
	}{
		"a page":               {"GET", nil, plain, respond(200, "Content-Type", contentHTML), seen(func(*accesslog.Visit) {})},
		"HEAD":                 {"HEAD", nil, plain, respond(200, "Content-Type", contentHTML), seen(func(v *accesslog.Visit) { v.Method = "HEAD" })},
		"not modified":         {"GET", nil, plain, respond(304, "Etag", `"a"`), seen(func(v *accesslog.Visit) { v.ContentType = "" })},
		"no type":              {"GET", nil, plain, respond(200), seen(func(v *accesslog.Visit) { v.ContentType = "" })},
		"XHTML":                {"GET", nil, plain, respond(200, "Content-Type", "application/xhtml+xml"), seen(func(v *accesslog.Visit) { v.ContentType = "application/xhtml+xml" })},
		"a type in upper case": {"GET", nil, plain, respond(200, "Content-Type", "TEXT/HTML"), seen(func(v *accesslog.Visit) { v.ContentType = "TEXT/HTML" })},
		"headers in lines": {"GET", nil, plain, respond(200, "Content-Type", contentHTML, "X-Robots-Tag", "bing: none", "X-Robots-Tag", "noindex"),
			seen(func(v *accesslog.Visit) { v.RobotsTag = "bing: none, noindex" })},
		"a browser": {"GET", http.Header{"User-Agent": {browser}, "Cookie": {"a=b"}}, plain, respond(200, "Content-Type", contentHTML),
			seen(func(v *accesslog.Visit) { v.UserAgent = browser })},
		"credentials": {"GET", http.Header{"Authorization": {"Bearer x"}}, plain, respond(200, "Content-Type", contentHTML), seen(func(v *accesslog.Visit) { v.User = true })},
		"signed in":   {"GET", nil, signIn, respond(200, "Content-Type", contentHTML), seen(func(v *accesslog.Visit) { v.User = true })},
		"rewritten":   {"GET", nil, rewritten, respond(200, "Content-Type", contentHTML), seen(func(*accesslog.Visit) {})},
		"no WriteHeader": {"GET", nil, plain, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", contentHTML)
			_, err := io.WriteString(w, "x")
			return err
		}, seen(func(*accesslog.Visit) {})},

		"POST":        {"POST", nil, plain, respond(200, "Content-Type", contentHTML), nil},
		"an asset":    {"GET", nil, plain, respond(200, "Content-Type", "text/css"), nil},
		"JSON":        {"GET", nil, plain, respond(200, "Content-Type", "application/json"), nil},
		"not found":   {"GET", nil, plain, respond(404, "Content-Type", contentHTML), nil},
		"part":        {"GET", nil, plain, respond(206, "Content-Type", contentHTML), nil},
		"a redirect":  {"GET", nil, plain, respond(301, "Location", "/b"), nil},
		"no response": {"GET", nil, plain, func(http.ResponseWriter, *http.Request) error { return nil }, nil},
		"an error": {"GET", nil, plain, func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(200)
			return errors.New("broken")
		}, nil},
		"an unknown host":      {"GET", nil, elsewhere, respond(200, "Content-Type", contentHTML), nil},
		"our own":              {"GET", nil, own(nil), respond(200, "Content-Type", contentHTML), nil},
		"our own with a probe": {"GET", nil, own(new(probe)), respond(200, "Content-Type", contentHTML), nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWatching(t)
			s := b.site("named.example", "")
			r := test.change(b.request(test.method, "/a?x=1", test.header))
			_ = b.handler.ServeHTTP(httptest.NewRecorder(), r, test.next)
			if n := len(b.app.visits); test.want == nil || n != 1 {
				if test.want != nil || n != 0 {
					t.Errorf("%d visits are noted, want %v", n, test.want)
				}
				if len(b.app.sites) != 1 {
					t.Errorf("there are %d sites, want 1", len(b.app.sites))
				}
				return
			}
			got := <-b.app.visits
			if got.site != s || got.Visit != *test.want {
				t.Errorf("got %+v, want %+v", got.Visit, *test.want)
			}
		})
	}
}

// TestNoteVisitBeforeStart: Caddy may serve before it is known where handlers are mounted.
func TestNoteVisitBeforeStart(t *testing.T) {
	b := newWatching(t)
	b.site("named.example", "")
	b.app.started = make(chan struct{})
	if err := b.handler.ServeHTTP(httptest.NewRecorder(), b.request("GET", "/a", nil), respond(200, "Content-Type", contentHTML)); err != nil || len(b.app.visits) != 0 {
		t.Errorf("got %d visits, %v", len(b.app.visits), err)
	}
}

// TestFullQueue: a request does not wait for its visit to be looked at, and what is dropped
// is counted, and logged.
func TestFullQueue(t *testing.T) {
	b := newWatching(t)
	b.app.visits = make(chan visit, 2)
	b.site("named.example", "")
	for range 5 {
		if err := b.handler.ServeHTTP(httptest.NewRecorder(), b.request("GET", "/a", nil), respond(200, "Content-Type", contentHTML)); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.app.droppedVisits.Load(); got != 3 || len(b.app.visits) != 2 {
		t.Errorf("%d visits wait, %d were dropped, want 2 and 3", len(b.app.visits), got)
	}
	taker := visitTaker{app: b.app}
	taker.logDropped()
	taker.logDropped()
	b.app.droppedVisits.Add(4)
	taker.logDropped()
	lines := b.logs.FilterMessage("visits came faster than they could be looked at, and were dropped").All()
	if len(lines) != 2 || lines[0].ContextMap()["visits"] != uint64(3) || lines[1].ContextMap()["visits"] != uint64(4) {
		t.Errorf("got %v", lines)
	}
}

// TestTakeVisits: visits are looked at as they come, after a while of none, and those that
// wait when the App ends.
func TestTakeVisits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatching(t)
		s := b.site("named.example", "")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); (&visitTaker{app: b.app}).run(ctx) }()
		visits := func(n, want int) {
			t.Helper()
			paths, _ := s.state.visited.count()
			for i := range n {
				r := b.request("GET", fmt.Sprintf("/%d/%d", paths, i), http.Header{"User-Agent": {browser}})
				if err := b.handler.ServeHTTP(httptest.NewRecorder(), r, respond(200, "Content-Type", contentHTML)); err != nil {
					t.Error(err)
				}
			}
			if want == 61 {
				cancel()
				<-done
			}
			time.Sleep(time.Hour)
			if got, _ := s.state.visited.count(); got != want {
				t.Errorf("after %d visits: got %d paths, want %d", n, got, want)
			}
		}
		for want := range 4 {
			visits(1, want+1)
		}
		visits(50, 54)
		visits(7, 61)
	})
}

// TestVisitsThatCount: which visits count, and for which path.
func TestVisitsThatCount(t *testing.T) {
	good := accesslog.Visit{Method: "GET", Status: 200, ContentType: contentHTML, UserAgent: browser}
	for uri, test := range map[string]struct {
		change func(*accesslog.Visit)
		path   string // "": it does not count
	}{
		"/a":                       {func(*accesslog.Visit) {}, "/a"},
		"/b?page=2&utm_source=x":   {func(*accesslog.Visit) {}, "/b?page=2"},
		"/c;jsessionid=1":          {func(*accesslog.Visit) {}, "/c"},
		"/user":                    {func(v *accesslog.Visit) { v.User = true }, ""},
		"/noindex":                 {func(v *accesslog.Visit) { v.RobotsTag = "noindex" }, ""},
		"/robot":                   {func(v *accesslog.Visit) { v.UserAgent = "Googlebot/2.1" }, ""},
		"/d.css":                   {func(v *accesslog.Visit) { v.ContentType = "" }, ""},
		"/d//e":                    {func(*accesslog.Visit) {}, ""},
		"http://other.example/abs": {func(*accesslog.Visit) {}, ""},
	} {
		t.Run(uri, func(t *testing.T) {
			b := newVisiting(t, &SourceTraffic{Discovery{Query: []string{"page"}}})
			v := visit{b.site("named.example", ""), good}
			v.URI, v.Time = uri, b.clock.Unix()
			test.change(&v.Visit)
			taker := visitTaker{app: b.app}
			taker.take(&v)
			var want []string
			if test.path != "" {
				want = []string{test.path}
			}
			b.want(v.site, want...)
		})
	}
}

// TestWatchedStatus: the status is that of the response, however it begins, and all of it
// reaches the client.
func TestWatchedStatus(t *testing.T) {
	for name, test := range map[string]struct {
		write  func(w http.ResponseWriter)
		noted  int
		status int // that the client gets
		body   string
	}{
		"nothing":             {func(http.ResponseWriter) {}, 0, 200, ""},
		"WriteHeader":         {func(w http.ResponseWriter) { w.WriteHeader(404) }, 404, 404, ""},
		"WriteHeader twice":   {func(w http.ResponseWriter) { w.WriteHeader(203); w.WriteHeader(500) }, 203, 203, ""},
		"Write":               {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "x") }, 200, 200, "x"},
		"Write of nothing":    {func(w http.ResponseWriter) { _, _ = w.Write(nil) }, 200, 200, ""},
		"Write after":         {func(w http.ResponseWriter) { w.WriteHeader(404); _, _ = io.WriteString(w, "x") }, 404, 404, "x"},
		"WriteHeader after":   {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "x"); w.WriteHeader(404) }, 200, 200, "x"},
		"ReadFrom":            {func(w http.ResponseWriter) { _, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("x")) }, 200, 200, "x"},
		"Flush":               {func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, 200, 200, ""},
		"ResponseController":  {func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }, 200, 200, ""},
		"hints":               {func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(404) }, 404, 404, ""},
		"hints, then a body":  {func(w http.ResponseWriter) { w.WriteHeader(103); _, _ = io.WriteString(w, "x") }, 200, 200, "x"},
		"hints, then nothing": {func(w http.ResponseWriter) { w.WriteHeader(103) }, 0, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var watched *statusRecorder
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				watched = &statusRecorder{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w}}
				test.write(watched)
			}))
			// net/http logs the second status.
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			defer server.Close()
			resp, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != test.status || string(body) != test.body || watched.status != test.noted {
				t.Errorf("got status %d, noted as %d, %q, %v, want %d, %d, %q", resp.StatusCode, watched.status, body, err, test.status, test.noted, test.body)
			}
		})
	}
}

// TestWatchedFlush: what is flushed reaches the client while the response goes on.
func TestWatchedFlush(t *testing.T) {
	for name, flush := range map[string]func(http.ResponseWriter) error{
		"assertion":  func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil },
		"controller": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			read := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				watched := &statusRecorder{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w}}
				_, _ = io.WriteString(watched, "first")
				if err := flush(watched); err != nil {
					t.Error(err)
				}
				<-read
				_, _ = io.WriteString(watched, "second")
			}))
			defer server.Close()
			resp, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			first := make([]byte, 5)
			_, err = io.ReadFull(resp.Body, first)
			close(read)
			rest, _ := io.ReadAll(resp.Body)
			if err != nil || string(first)+string(rest) != "firstsecond" {
				t.Errorf("got %q and %q, %v", first, rest, err)
			}
		})
	}
}

// TestWatchedHijack: a handler may take the connection over, however it asks for it.
func TestWatchedHijack(t *testing.T) {
	for name, hijack := range map[string]func(http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error){
		"assertion": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) { return w.(http.Hijacker).Hijack() },
		"controller": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var watched *statusRecorder
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				watched = &statusRecorder{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w}}
				conn, _, err := hijack(watched)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: test\r\n\r\nhello")
				conn.Close()
			}))
			defer server.Close()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: test\r\n\r\n")
			got, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 101 ") || !strings.HasSuffix(string(got), "hello") || watched.status != 0 {
				t.Errorf("got %q, %v, noted as %d", got, err, watched.status)
			}
		})
	}
}

// TestWatchedUpgrade: what switches protocols is no page.
func TestWatchedUpgrade(t *testing.T) {
	w := &statusRecorder{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: sink{make(http.Header)}}}
	w.WriteHeader(http.StatusSwitchingProtocols)
	_, _ = w.Write([]byte("frames"))
	if w.status != http.StatusSwitchingProtocols {
		t.Errorf("noted as %d", w.status)
	}
}

// pusher notes what is pushed.
type pusher struct {
	http.ResponseWriter
	pushed []string
}

func (p *pusher) Push(target string, _ *http.PushOptions) error {
	p.pushed = append(p.pushed, target)
	return nil
}

func TestWatchedPush(t *testing.T) {
	p := &pusher{ResponseWriter: sink{make(http.Header)}}
	var w http.ResponseWriter = &statusRecorder{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: p}}
	if err := w.(http.Pusher).Push("/a.css", nil); err != nil || len(p.pushed) != 1 {
		t.Errorf("got %q, %v", p.pushed, err)
	}
	w = &statusRecorder{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: sink{make(http.Header)}}}
	if err := w.(http.Pusher).Push("/a.css", nil); err == nil {
		t.Error("what cannot push says that it did")
	}
}

// fileSpy notes whether a file is handed to net/http's own response, which lets the
// kernel send it.
type fileSpy struct {
	http.ResponseWriter
	file bool
}

func (s *fileSpy) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if ok {
		_, s.file = limited.R.(*os.File)
	}
	return s.ResponseWriter.(io.ReaderFrom).ReadFrom(r)
}

func TestWatchedFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.html")
	want := strings.Repeat("a page\n", 100_000)
	if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	var spy *fileSpy
	var watched *statusRecorder
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		spy = &fileSpy{ResponseWriter: w}
		watched = &statusRecorder{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: spy}}
		http.ServeFile(watched, r, name)
	}))
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || string(got) != want || !spy.file || watched.status != 200 {
		t.Errorf("got %d bytes, %v, noted as %d, as a file: %t", len(got), err, watched.status, spy.file)
	}
}

// TestWatchAllocates: a visit costs its request one allocation, whatever site it is to.
func TestWatchAllocates(t *testing.T) {
	for _, host := range []string{"named.example", "named.example:80", "NAMED.example"} {
		b := newWatching(t)
		b.site("named.example", "")
		r := b.request("GET", "/a", http.Header{"User-Agent": {browser}})
		r.Host = host
		w, contentType := sink{make(http.Header)}, []string{contentHTML}
		next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
			w.Header()["Content-Type"] = contentType
			w.WriteHeader(http.StatusOK)
			return nil
		})
		if got := testing.AllocsPerRun(100, func() { _ = b.handler.ServeHTTP(w, r, next) }); got > 1 || len(b.app.visits) == 0 {
			t.Errorf("%s: got %v allocations, %d visits, want 1", host, got, len(b.app.visits))
		}
	}
}

// BenchmarkWatch is what traffic adds to a request for a path that is known: compare off and
// on. The clock stands still while visits are looked at that would otherwise be dropped,
// which is cheaper.
func BenchmarkWatch(b *testing.B) {
	body := make([]byte, 4096)
	for name, on := range map[string]bool{"off": false, "on": true} {
		b.Run(name, func(b *testing.B) {
			v := newWatching(b)
			v.handler.watches = on
			v.site("named.example", "")
			go (&visitTaker{app: v.app}).run(v.app.running)
			defer v.app.cancel()
			contentType, etag := []string{contentHTML}, []string{`"abcdef"`}
			w := sink{make(http.Header)}
			next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
				header := w.Header()
				header["Content-Type"], header["Etag"] = contentType, etag
				w.WriteHeader(http.StatusOK)
				_, err := w.Write(body)
				return err
			})
			r := v.request("GET", "/docs/guide/install.html", http.Header{"User-Agent": {browser}})
			b.ReportAllocs()
			for n := 1; b.Loop(); n++ {
				if err := v.handler.ServeHTTP(w, r, next); err != nil {
					b.Fatal(err)
				}
				if n%(maxVisits/2) == 0 {
					b.StopTimer()
					for len(v.app.visits) > 0 {
						time.Sleep(time.Millisecond)
					}
					b.StartTimer()
				}
			}
			if dropped := v.app.droppedVisits.Load(); dropped > 0 {
				b.Errorf("%d visits were dropped", dropped)
			}
		})
	}
}
