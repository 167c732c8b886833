package discovery

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestDiscoverTraffic lists what is linked to and was visited, without a log.
func TestDiscoverTraffic(t *testing.T) {
	s, app := startProxy(t, discovering("traffic"), nil)
	s.wantPages("/")
	s.browse("203.0.113.9", visited...)
	s.otherVisits()
	s.wantPages(visitedListed...)
	s.scan(1000)
	s.Do(http.MethodHead, harness.Local+"/tags/fir", browser)
	s.browse("203.0.113.9", "/tags/oak")
	if r := s.Get(harness.Local+"/articles/10", browser, `If-None-Match: "article-10"`); r.StatusCode != http.StatusNotModified {
		t.Errorf("status %d, want 304", r.StatusCode)
	}
	want := append(slices.Clone(visitedListed), "/articles/10", "/tags/fir", "/tags/oak")
	slices.Sort(want)
	s.wantPages(want...)
	s.stay(want...)
	never := slices.DeleteFunc(slices.Clone(neverVisited), func(prefix string) bool { return prefix == "/tags" })
	app.neverAsked(t, append(never, "/tags/ash", "/tags/elm", "/tags/yew", "/wiki/scan", "/scan", "/.env", "/wp-", "/%")...)
}

// TestDiscoverOwnAsks is that the module's own requests are no visits.
func TestDiscoverOwnAsks(t *testing.T) {
	s, app := startProxy(t, discovering("traffic\n links {\n depth 1\n}"), nil)
	s.Eventually(func() bool { return len(s.Locs(harness.Local+"/sitemap.xml")) > 10 }, s.SitemapLog)
	s.browse("203.0.113.9", "/about")
	s.Refreshes(2)
	if err := s.Load(app.in(discovering("traffic"))); err != nil {
		t.Fatal(err)
	}
	// What a page named as its canonical stays known until it expires.
	s.wantPages("/", "/about", "/articles/1")
	s.stay("/", "/about", "/articles/1")
}

// TestDiscoverHosts is that a visit to one site of a handler is none to another.
func TestDiscoverHosts(t *testing.T) {
	for name, sources := range map[string]string{"traffic": "traffic", "log": "access_log {dir}/access.log"} {
		t.Run(name, func(t *testing.T) {
			const log = "log {\n output file {dir}/access.log\n format json\n }\n"
			s, app := startProxy(t, strings.Replace(discovering(sources), harness.Local+" {\n", "http://a.localhost:{port}, http://b.localhost:{port} {\n"+log, 1), nil)
			const a, b = "http://a.localhost:{port}", "http://b.localhost:{port}"
			s.WantLocs(a+"/sitemap.xml", a+"/")
			s.WantLocs(b+"/sitemap.xml", b+"/")
			s.Get(a+"/about", browser)
			s.Get(b+"/news", browser)
			s.Get(b+"/articles", browser)
			s.WantLocs(a+"/sitemap.xml", a+"/", a+"/about")
			s.WantLocs(b+"/sitemap.xml", b+"/", b+"/articles", b+"/news")
			s.Refreshes(4)
			s.WantLocs(a+"/sitemap.xml", a+"/", a+"/about")
			s.WantLocs(b+"/sitemap.xml", b+"/", b+"/articles", b+"/news")
			if got := app.asks("/news"); got != 1 {
				t.Errorf("/news was asked for %d times", got)
			}
		})
	}
}

// passing is a site behind whose traffic source all kinds of answers pass.
func passing(t *testing.T) (*server, *application) {
	t.Helper()
	s := prepare(t, nil)
	app := startApplication(t)
	front := app.pages["/"]
	front.links = append(slices.Clone(front.links), "/stream/pieces", "/stream/events", "/stream/trailer", "/stream/hints", "/stream/socket", "/big.html")
	app.pages["/"] = front
	caddyfile := strings.Replace(discovering("traffic"), "reverse_proxy {app}", `handle /big.html {
		root {dir}/site
		file_server
	}
	reverse_proxy {app} {
		flush_interval -1
	}`, 1)
	if err := s.Load(app.in(caddyfile)); err != nil {
		t.Fatal(err)
	}
	s.wantPages("/")
	return s, app
}

// request begins a request by a browser, whose body is to be read yet.
func (s *server) request(url string) *http.Response {
	s.T.Helper()
	return s.send(http.NewRequest(http.MethodGet, s.Expand(url), nil))
}

func (s *server) send(r *http.Request, err error) *http.Response {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
	name, agent, _ := strings.Cut(browser, ": ")
	r.Header.Set(name, agent)
	resp, err := harness.Client.Do(r)
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { resp.Body.Close() })
	return resp
}

// TestTrafficFlush is that what is flushed arrives, and a page of that kind counts.
func TestTrafficFlush(t *testing.T) {
	s, app := passing(t)
	for path, pieces := range map[string][]string{
		"/stream/events": {"data: 0\n\n", "data: 1\n\n", "data: 2\n\n"},
		"/stream/pieces": {"<!doctype html><title>pieces</title>", "<p>one", "<p>two"},
	} {
		body := s.request(harness.Local + path).Body
		for _, want := range pieces {
			got := make([]byte, len(want))
			if _, err := io.ReadFull(body, got); err != nil || string(got) != want {
				t.Fatalf("%s: got %q (%v), want %q", path, got, err, want)
			}
			app.proceed <- struct{}{} // only now does the application go on
		}
		if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
			t.Errorf("%s: then got %q (%v)", path, rest, err)
		}
	}
	s.wantPages("/", "/stream/pieces")
}

// TestTrafficUpgrade is that a connection may change to another protocol.
func TestTrafficUpgrade(t *testing.T) {
	s, app := passing(t)
	conn, err := net.Dial("tcp", "127.0.0.1:"+s.Port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(harness.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, s.Expand("GET /stream/socket HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n"+browser+"\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != "echo" {
		t.Fatalf("got %v (%v), want 101", resp, err)
	}
	for i := range 3 {
		want := fmt.Sprintf("message %d\n", i)
		if _, err := io.WriteString(conn, want); err != nil {
			t.Fatal(err)
		}
		if got, err := reader.ReadString('\n'); err != nil || got != want {
			t.Fatalf("got %q (%v), want %q", got, err, want)
		}
	}
	conn.Close()
	s.browse("203.0.113.9", "/news")
	s.wantPages("/", "/news")
	s.stay("/", "/news")
	app.neverAsked(t, "/stream")
}

// TestTrafficTrailersAndHints is what comes before and after a page.
func TestTrafficTrailersAndHints(t *testing.T) {
	s, _ := passing(t)
	resp := s.request(harness.Local + "/stream/trailer")
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Trailer.Get("X-Sum") != "42" {
		t.Errorf("got the trailer %v (%v), want an X-Sum of 42", resp.Trailer, err)
	}
	var hints []int
	var link string
	r, err := http.NewRequest(http.MethodGet, s.Expand(harness.Local+"/stream/hints"), nil)
	if err != nil {
		t.Fatal(err)
	}
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
		hints, link = append(hints, code), header.Get("Link")
		return nil
	}}
	resp = s.send(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)), nil)
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("After an early hint.")) {
		t.Errorf("got status %d, %q (%v)", resp.StatusCode, body, err)
	}
	if !slices.Equal(hints, []int{http.StatusEarlyHints}) || link != "</Style.css>; rel=preload" {
		t.Errorf("got hints %v with Link %q", hints, link)
	}
	s.wantPages("/", "/stream/hints", "/stream/trailer")
}

// TestTrafficFiles is a large file, all of it and a part.
func TestTrafficFiles(t *testing.T) {
	s, _ := passing(t)
	want := "<!doctype html><title>big</title><p>" + strings.Repeat("0123456789abcdef", 1<<20)
	s.Write(map[string]string{"site/big.html": want})
	r := s.Get(harness.Local+"/big.html", browser, "Range: bytes=1000000-1000099")
	if r.StatusCode != http.StatusPartialContent || r.Text != want[1000000:1000100] {
		t.Errorf("a range: got status %d and %d bytes", r.StatusCode, len(r.Text))
	}
	if r := s.Do(http.MethodHead, harness.Local+"/big.html"); r.ContentLength != int64(len(want)) {
		t.Errorf("HEAD: got a length of %d, want %d", r.ContentLength, len(want))
	}
	r = s.Get(harness.Local+"/big.html", browser)
	if r.Text != want || r.ContentLength != int64(len(want)) {
		t.Errorf("got %d bytes with a length of %d, want %d", len(r.Text), r.ContentLength, len(want))
	}
	s.wantPages("/", "/big.html")
}

// TestTrafficPush is HTTP/2's push.
func TestTrafficPush(t *testing.T) {
	caddyfile := strings.Replace(discovering("traffic"), harness.Local+" {\n", "https://localhost:{tls} {\n route {\n", 1)
	caddyfile = strings.Replace(caddyfile, "reverse_proxy", "push / /Style.css\n\treverse_proxy", 1) + "\n}"
	s, _ := startProxy(t, caddyfile, nil)
	s.WantLocs("https://localhost:{tls}/sitemap.xml", "https://localhost:{tls}/")
	conn, err := tls.Dial("tcp", "127.0.0.1:"+s.TLS, &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(harness.Patience)); err != nil {
		t.Fatal(err)
	}
	pushed, bodies, err := pushedBy(conn, s.Expand("localhost:{tls}"), "/")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(pushed, []string{"/Style.css"}) {
		t.Errorf("pushed %q, want /Style.css", pushed)
	}
	if len(bodies) != 2 || !strings.Contains(bodies[1], "Welcome to the joinery.") || bodies[2] != "p { color: green }" {
		t.Errorf("got %v", bodies)
	}
	s.Get("https://localhost:{tls}/news", browser)
	s.WantLocs("https://localhost:{tls}/sitemap.xml", "https://localhost:{tls}/", "https://localhost:{tls}/news")
}

// pushedBy requests a page over HTTP/2, and returns the paths that are pushed with it, and
// all bodies by stream.
func pushedBy(conn net.Conn, host, path string) (pushed []string, bodies map[uint32]string, err error) {
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, nil, err
	}
	framer := http2.NewFramer(conn, conn)
	var headers bytes.Buffer
	encoder := hpack.NewEncoder(&headers)
	name, agent, _ := strings.Cut(browser, ": ")
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", host}, {":path", path}, {strings.ToLower(name), agent}} {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			return nil, nil, err
		}
	}
	err = errors.Join(framer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 1}),
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers.Bytes(), EndStream: true, EndHeaders: true}))
	decoder := hpack.NewDecoder(4096, nil)
	bodies = make(map[uint32]string)
	for open := 1; err == nil && open > 0; {
		var frame http2.Frame
		if frame, err = framer.ReadFrame(); err != nil {
			break
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				err = framer.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			if _, err = decoder.DecodeFull(f.HeaderBlockFragment()); f.StreamEnded() {
				open--
			}
		case *http2.PushPromiseFrame:
			open++
			var fields []hpack.HeaderField
			fields, err = decoder.DecodeFull(f.HeaderBlockFragment())
			for _, field := range fields {
				if field.Name == ":path" {
					pushed = append(pushed, field.Value)
				}
			}
		case *http2.DataFrame:
			bodies[f.StreamID] += string(f.Data())
			if f.StreamEnded() {
				open--
			}
		case *http2.RSTStreamFrame:
			return pushed, bodies, fmt.Errorf("stream %d was reset: %v", f.StreamID, f.ErrCode)
		}
	}
	return pushed, bodies, err
}

// TestTrafficAmongHandlers is visits where other handlers have a say in what is answered.
func TestTrafficAmongHandlers(t *testing.T) {
	caddyfile := strings.Replace(discovering("traffic"), "reverse_proxy {app}", `encode gzip zstd
	basic_auth /tags/* {
		user $2a$04$aPZhuYXBWNJlPRSWPfCZFegvKwmNlOEz6SpV1vpOSgLLGWPTqRZhW
	}
	header /news X-Robots-Tag noindex
	header /shop >Cache-Control private
	rewrite /nice /articles/3
	error /wiki/* 404
	handle_errors {
		header Content-Type text/html
		respond "<!doctype html><title>sorry</title>" 200
	}
	respond /plain "no page"
	redir /away /about
	reverse_proxy {app}`, 1)
	s := prepare(t, nil)
	app := startApplication(t)
	front := app.pages["/"]
	front.links = append(slices.Clone(front.links), "/nice", "/plain", "/away", "/long")
	app.pages["/"] = front
	app.pages["/long"] = appPage{text: strings.Repeat("A long story. ", 100), header: []string{`Etag: "long"`}}
	if err := s.Load(app.in(caddyfile)); err != nil {
		t.Fatal(err)
	}
	s.wantPages("/")
	for _, path := range []string{"/nice", "/plain", "/away", "/news", "/shop", "/wiki/", "/tags/oak"} {
		s.Get(harness.Local+path, browser, "Authorization: Basic dXNlcjpwYXNz")
		s.Get(harness.Local+path, browser)
	}
	s.browse("203.0.113.9", "/about")
	r := s.Get(harness.Local+"/long", browser, "Accept-Encoding: gzip")
	if r.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(harness.Gunzip(t, r.Text), "A long story.") {
		t.Errorf("got %v, want it compressed", r.Header)
	}
	tag := r.Header.Get("Etag")
	if r := s.Get(harness.Local+"/long", browser, "Accept-Encoding: gzip", "If-None-Match: "+tag); tag == "" || r.StatusCode != http.StatusNotModified {
		t.Errorf("status %d for the ETag %q", r.StatusCode, tag)
	}
	s.wantPages("/", "/about", "/long", "/nice", "/shop")
	s.stay("/", "/about", "/long", "/nice", "/shop")
	app.neverAsked(t, "/tags", "/wiki")
}
