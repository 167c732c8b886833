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
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/discover"
)

// sink is the least that a response is written to.
type sink struct{ header http.Header }

func (s sink) Header() http.Header       { return s.header }
func (sink) WriteHeader(int)             {}
func (sink) Write(p []byte) (int, error) { return len(p), nil }

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"

// watching is a bench whose handler sees what visitors had, without anybody who takes
// it.
func watching(t *testing.T, h *Handler, queue int) *bench {
	t.Helper()
	b := newBench(t, h)
	b.handler.watches = true
	b.handler.discovery = &discovery{from: discover.FromTraffic, expire: defaultExpire, maxPaths: defaultMaxPaths}
	b.app.visits = make(chan visit, queue)
	close(b.app.started)
	return b
}

// visit is a request for a page of named.example, as Caddy hands it to its handlers.
func (b *bench) visit(method, target string, header http.Header) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "named.example"
	r.RemoteAddr = "198.51.100.7:40000"
	for name, values := range header {
		r.Header[name] = values
	}
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), b.handler.server)
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

// TestNoteVisit: what visits come to be looked at, and what is told of them.
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
	asked := func(p *probe) func(r *http.Request) *http.Request {
		return func(r *http.Request) *http.Request {
			r.RemoteAddr = strangerAddr
			return r.WithContext(context.WithValue(r.Context(), probeCtxKey{}, p))
		}
	}
	plain := func(r *http.Request) *http.Request { return r }
	at := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC).Unix()
	seen := func(change func(*accesslog.Visit)) *accesslog.Visit {
		v := &accesslog.Visit{Time: at, Method: "GET", URI: "/a?x=1", Client: "198.51.100.7", Status: 200, ContentType: contentHTML, UserAgent: "-"}
		change(v)
		return v
	}
	for name, test := range map[string]struct {
		method string
		header http.Header
		change func(*http.Request) *http.Request
		next   caddyhttp.HandlerFunc
		want   *accesslog.Visit // nil: nothing is told
	}{
		"a page":               {"GET", nil, plain, respond(200, "Content-Type", contentHTML), seen(func(*accesslog.Visit) {})},
		"HEAD":                 {"HEAD", nil, plain, respond(200, "Content-Type", contentHTML), seen(func(v *accesslog.Visit) { v.Method = "HEAD" })},
		"not modified":         {"GET", nil, plain, respond(304, "Etag", `"a"`), seen(func(v *accesslog.Visit) { v.ContentType, v.ETag = "", `"a"` })},
		"no type":              {"GET", nil, plain, respond(200), seen(func(v *accesslog.Visit) { v.ContentType = "" })},
		"XHTML":                {"GET", nil, plain, respond(200, "Content-Type", "application/xhtml+xml"), seen(func(v *accesslog.Visit) { v.ContentType = "application/xhtml+xml" })},
		"a type in upper case": {"GET", nil, plain, respond(200, "Content-Type", "TEXT/HTML"), seen(func(v *accesslog.Visit) { v.ContentType = "TEXT/HTML" })},
		"validators": {"GET", nil, plain, respond(200, "Content-Type", contentHTML, "Etag", `"a"`, "Last-Modified", "today"),
			seen(func(v *accesslog.Visit) { v.ETag, v.LastModified = `"a"`, "today" })},
		"headers in lines": {"GET", nil, plain, respond(200, "Content-Type", contentHTML, "Cache-Control", "max-age=1", "Cache-Control", "private", "X-Robots-Tag", "bing: none", "X-Robots-Tag", "noindex"),
			seen(func(v *accesslog.Visit) { v.CacheControl, v.RobotsTag = "max-age=1, private", "bing: none, noindex" })},
		"a browser": {"GET", http.Header{"User-Agent": {browser}, "Cookie": {"a=b"}}, plain, respond(200, "Content-Type", contentHTML),
			seen(func(v *accesslog.Visit) { v.UserAgent, v.Cookie = browser, true })},
		"credentials": {"GET", http.Header{"Authorization": {"Bearer x"}}, plain, respond(200, "Content-Type", contentHTML), seen(func(v *accesslog.Visit) { v.User = true })},
		"signed in":   {"GET", nil, signIn, respond(200, "Content-Type", contentHTML), seen(func(v *accesslog.Visit) { v.User = true })},
		"rewritten":   {"GET", nil, rewritten, respond(200, "Content-Type", contentHTML), seen(func(*accesslog.Visit) {})},
		"no WriteHeader": {"GET", nil, plain, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", contentHTML)
			_, err := io.WriteString(w, "x")
			return err
		}, seen(func(*accesslog.Visit) {})},

		"POST":                {"POST", nil, plain, respond(200, "Content-Type", contentHTML), nil},
		"an asset":            {"GET", nil, plain, respond(200, "Content-Type", "text/css"), nil},
		"JSON":                {"GET", nil, plain, respond(200, "Content-Type", "application/json"), nil},
		"not found":           {"GET", nil, plain, respond(404, "Content-Type", contentHTML), nil},
		"part":                {"GET", nil, plain, respond(206, "Content-Type", contentHTML), nil},
		"a redirect":          {"GET", nil, plain, respond(301, "Location", "/b"), nil},
		"nothing is answered": {"GET", nil, plain, func(http.ResponseWriter, *http.Request) error { return nil }, nil},
		"an error": {"GET", nil, plain, func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(200)
			return errors.New("broken")
		}, nil},
		"an unknown host":    {"GET", nil, elsewhere, respond(200, "Content-Type", contentHTML), nil},
		"an ask":             {"GET", nil, asked(nil), respond(200, "Content-Type", contentHTML), nil},
		"an ask for a probe": {"GET", nil, asked(new(probe)), respond(200, "Content-Type", contentHTML), nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := watching(t, &Handler{}, 2)
			s := b.site("named.example")
			r := test.change(b.visit(test.method, "/a?x=1", test.header))
			_ = b.handler.ServeHTTP(httptest.NewRecorder(), r, test.next)
			if n := len(b.app.visits); test.want == nil || n != 1 {
				if test.want != nil || n != 0 {
					t.Errorf("%d visits are told, want %v", n, test.want)
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

// TestNoteVisitBeforeStart: Caddy may serve before it is known where handlers sit.
func TestNoteVisitBeforeStart(t *testing.T) {
	b := watching(t, &Handler{}, 1)
	b.site("named.example")
	b.app.started = make(chan struct{})
	if err := b.handler.ServeHTTP(httptest.NewRecorder(), b.visit("GET", "/a", nil), respond(200, "Content-Type", contentHTML)); err != nil || len(b.app.visits) != 0 {
		t.Errorf("got %d visits, %v", len(b.app.visits), err)
	}
}

// TestFullQueue: a request does not wait for its visit to be looked at, and what is
// dropped is counted, and said.
func TestFullQueue(t *testing.T) {
	b := watching(t, &Handler{}, 2)
	b.site("named.example")
	for range 5 {
		if err := b.handler.ServeHTTP(httptest.NewRecorder(), b.visit("GET", "/a", nil), respond(200, "Content-Type", contentHTML)); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.app.droppedVisits.Load(); got != 3 || len(b.app.visits) != 2 {
		t.Errorf("%d visits wait, %d were dropped, want 2 and 3", len(b.app.visits), got)
	}
	tally := tally{app: b.app}
	const message = "visits came faster than they could be looked at, and were dropped"
	tally.say()
	tally.say()
	b.app.droppedVisits.Add(4)
	tally.say()
	lines := b.logs.FilterMessage(message).All()
	if len(lines) != 2 || lines[0].ContextMap()["visits"] != uint64(3) || lines[1].ContextMap()["visits"] != uint64(4) {
		t.Errorf("got %v", lines)
	}
}

// TestTakeVisits: visits are looked at as they come, after a while of none, and those
// that wait when the app ends.
func TestTakeVisits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := watching(t, &Handler{}, 100)
		s := b.site("named.example")
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); b.app.takeVisits(ctx) }()
		paths := func() int { return s.paths(ctx).Stats().FromTraffic }
		visit := func(n int) {
			for i := range n {
				r := b.visit("GET", fmt.Sprintf("/%d/%d", paths(), i), http.Header{"User-Agent": {browser}})
				if err := b.handler.ServeHTTP(httptest.NewRecorder(), r, respond(200, "Content-Type", contentHTML)); err != nil {
					t.Error(err)
				}
			}
		}
		for want := range 4 {
			visit(1)
			time.Sleep(time.Hour)
			if got := paths(); got != want+1 {
				t.Errorf("after %d visits: got %d paths", want+1, got)
			}
		}
		visit(50)
		time.Sleep(time.Second)
		if got := paths(); got != 54 {
			t.Errorf("after many visits at a time: got %d paths, want 54", got)
		}
		visit(7)
		cancel()
		<-done
		if got := paths(); got != 61 {
			t.Errorf("at the end: got %d paths, want 61", got)
		}
	})
}

// TestTally: which visits count, and for which path.
func TestTally(t *testing.T) {
	b := watching(t, &Handler{}, 1)
	b.handler.discovery.query = []string{"page"}
	s := b.site("named.example")
	tally := tally{app: b.app}
	good := accesslog.Visit{Time: b.clock.now().Unix(), Method: "GET", URI: "/a", Status: 200, ContentType: contentHTML, UserAgent: browser, Client: "198.51.100.7"}
	for _, test := range []struct {
		change func(*accesslog.Visit)
		path   string // "": it does not count
	}{
		{func(*accesslog.Visit) {}, "/a"},
		{func(v *accesslog.Visit) { v.URI = "/b?page=2&utm_source=x" }, "/b?page=2"},
		{func(v *accesslog.Visit) { v.URI = "/c;jsessionid=1" }, "/c"},
		{func(v *accesslog.Visit) { v.URI, v.User = "/d", true }, ""},
		{func(v *accesslog.Visit) { v.URI, v.CacheControl = "/d", "private" }, ""},
		{func(v *accesslog.Visit) { v.URI, v.RobotsTag = "/d", "noindex" }, ""},
		{func(v *accesslog.Visit) { v.URI, v.UserAgent = "/d", "Googlebot/2.1" }, ""},
		{func(v *accesslog.Visit) { v.URI, v.ContentType = "/d.css", "" }, ""},
		{func(v *accesslog.Visit) { v.URI = "/d/../e" }, ""},
		{func(v *accesslog.Visit) { v.URI = "http://other.example/e" }, ""},
	} {
		before := s.paths(t.Context()).Stats().Paths
		v := visit{site: s, Visit: good}
		test.change(&v.Visit)
		v.ETag = `"` + v.URI + `"`
		tally.take(t.Context(), &v)
		got := s.paths(t.Context()).Stats().Paths - before
		if shown, _ := s.paths(t.Context()).Shown(test.path); (got == 1) != (test.path != "") || (shown != 0) != (test.path != "") {
			t.Errorf("%s: got %d paths, %q shown: %t", v.URI, got, test.path, shown != 0)
		}
	}
}

// TestVisitOfTwin: a visit to a site for which another one stands is to that one's page.
func TestVisitOfTwin(t *testing.T) {
	b := watching(t, &Handler{}, 1)
	main, twin := b.site("named.example"), b.site("www.named.example")
	twin.main.Store(main)
	twin.visited(t.Context(), discover.FromTraffic, "/a", &accesslog.Visit{Time: 1})
	if got := main.paths(t.Context()).Stats().Paths; got != 1 || twin.catalog.Load() != nil {
		t.Errorf("got %d paths of the main site, %v of its twin", got, twin.catalog.Load())
	}
}

// TestWatchedStatus: the status is that of the answer, however it begins, and all
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
			var watched *watchedWriter
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				watched = &watchedWriter{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w}}
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

// TestWatchedFlush: what is flushed reaches the client while the answer goes on.
func TestWatchedFlush(t *testing.T) {
	for name, flush := range map[string]func(http.ResponseWriter) error{
		"assertion":  func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil },
		"controller": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			read := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				watched := &watchedWriter{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w}}
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
			var watched *watchedWriter
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				watched = &watchedWriter{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w}}
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
	w := &watchedWriter{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: sink{make(http.Header)}}}
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
	var w http.ResponseWriter = &watchedWriter{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: p}}
	if err := w.(http.Pusher).Push("/a.css", nil); err != nil || len(p.pushed) != 1 {
		t.Errorf("got %q, %v", p.pushed, err)
	}
	w = &watchedWriter{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: sink{make(http.Header)}}}
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
	var watched *watchedWriter
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		spy = &fileSpy{ResponseWriter: w}
		watched = &watchedWriter{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: spy}}
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

func TestFolderOf(t *testing.T) {
	both := seats{{folder: ""}, {folder: "/docs"}, {folder: "/docs/old"}, {folder: "/my%20docs"}}
	for _, test := range []struct {
		seats seats
		path  string // as it is decoded
		want  string
	}{
		{nil, "/a", ""},
		{both, "/", ""},
		{both, "/a", ""},
		{both, "/docs", ""},
		{both, "/docs/", "/docs"},
		{both, "/docs/a", "/docs"},
		{both, "/docsmore/a", ""},
		{both, "/docs/old", "/docs"},
		{both, "/docs/old/a", "/docs/old"},
		{both, "/my docs/a", "/my%20docs"},
		{both, "/a/docs/b", ""},
		{seats{{folder: "/docs"}}, "/a", ""},
	} {
		if got := test.seats.folderOf(test.path); got != test.want {
			t.Errorf("%s: got %q, want %q", test.path, got, test.want)
		}
	}
}

// TestWatchAllocates: a visit costs its request one allocation, whatever site it is to.
func TestWatchAllocates(t *testing.T) {
	for _, host := range []string{"named.example", "named.example:80", "NAMED.example", "visited.example", "visited.example:8080"} {
		b := watching(t, &Handler{}, maxVisits)
		b.site("named.example")
		b.site("visited.example")
		r := b.visit("GET", "/a", http.Header{"User-Agent": {browser}})
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

// BenchmarkWatch is what traffic adds to a request for a path that is known: compare
// off and on. The clock stands still while visits are looked at that would otherwise
// be dropped, which is cheaper.
func BenchmarkWatch(b *testing.B) {
	body := make([]byte, 4096)
	for _, test := range []struct{ name, sources string }{{"off", "links"}, {"on", "traffic"}} {
		b.Run(test.name, func(b *testing.B) {
			u := hush(b, "http://example.com {\n\tsitemap {\n\t\t"+test.sources+"\n\t}\n}")
			contentType, etag := []string{"text/html; charset=utf-8"}, []string{`"abcdef"`}
			w := sink{make(http.Header)}
			next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
				header := w.Header()
				header["Content-Type"], header["Etag"] = contentType, etag
				w.WriteHeader(http.StatusOK)
				_, err := w.Write(body)
				return err
			})
			r := u.request(httptest.NewRecorder(), "http://example.com/docs/guide/install.html")
			r.Header.Set("User-Agent", browser)
			b.ReportAllocs()
			for n := 1; b.Loop(); n++ {
				if err := u.handler.ServeHTTP(w, r, next); err != nil {
					b.Fatal(err)
				}
				if n%(maxVisits/2) == 0 {
					b.StopTimer()
					for len(u.app.visits) > 0 {
						runtime.Gosched()
					}
					b.StartTimer()
				}
			}
			if dropped := u.app.droppedVisits.Load(); dropped > 0 {
				b.Errorf("%d visits were dropped", dropped)
			}
		})
	}
}
