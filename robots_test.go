package sitemap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

const testLine = "Sitemap: https://example.com/sitemap.xml\n"

// robotsOf answers a request for robots.txt where the next handler does what next
// does.
func robotsOf(t testing.TB, r *http.Request, next caddyhttp.HandlerFunc) (*http.Response, error) {
	t.Helper()
	h, s := waiting()
	s.held.Store(new(held))
	s.held.Load().snapshot.Store(snapshotOf(t, "/"))
	s.markReady()
	w := httptest.NewRecorder()
	err := h.ServeHTTP(w, r, next)
	return w.Result(), err
}

func getRobots(header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/robots.txt", nil)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// answering writes a response in pieces, as handlers do.
func answering(status int, header http.Header, pieces ...string) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		for name, values := range header {
			w.Header()[name] = values
		}
		if status != 0 {
			w.WriteHeader(status)
		}
		for _, piece := range pieces {
			if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
				return fmt.Errorf("wrote %d bytes: %w", n, err)
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestRobotsWriter(t *testing.T) {
	const rules, made = "User-agent: *\nDisallow: /x\n", "User-agent: *\nDisallow:\n\n" + testLine
	text := http.Header{"Content-Type": {"text/plain"}}
	long := strings.Repeat("#", robotstxt.MaxBody)
	for _, test := range []struct {
		name   string
		next   caddyhttp.HandlerFunc
		status int
		want   string
	}{
		{"text", answering(200, text, rules), 200, rules + "\n" + testLine},
		{"text in pieces", answering(200, text, rules[:5], rules[5:9], rules[9:]), 200, rules + "\n" + testLine},
		{"no WriteHeader", answering(0, text, rules), 200, rules + "\n" + testLine},
		{"no Content-Type", answering(0, nil, rules), 200, rules + "\n" + testLine},
		{"identity", answering(200, http.Header{"Content-Encoding": {"identity"}}, rules), 200, rules + "\n" + testLine},
		{"two statuses", func(w http.ResponseWriter, r *http.Request) error {
			w.WriteHeader(http.StatusOK)
			return answering(500, text, rules)(w, r)
		}, 200, rules + "\n" + testLine},
		{"nothing", answering(0, nil), 200, made},
		{"empty", answering(200, text), 200, made},
		{"404", answering(404, http.Header{"Content-Type": {"text/html"}, "Content-Encoding": {"br"}, "Content-Length": {"5"}}, "<html>"), 200, made},
		{"410", answering(410, nil), 200, made},
		{"HTML", answering(200, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, "<!doctype html>"), 200, made},
		{"HTML that says nothing", answering(200, nil, "<!doctype html>"), 200, made},
		{"half a megabyte", answering(200, text, long[:100], long[100:]), 200, testLine + "\n" + long},
		{"more than half a megabyte", answering(200, text, long[:100], long[100:], "x"), 200, long + "x"},
		{"in one piece", answering(200, text, long+"x"), 200, long + "x"},
		{"JSON", answering(200, http.Header{"Content-Type": {"application/json"}}, "{}"), 200, "{}"},
		{"image", answering(200, http.Header{"Content-Type": {"image/png"}}, "\x89PNG\x00"), 200, "\x89PNG\x00"},
		{"binary", answering(200, text, "a\x00"), 200, "a\x00"},
		{"encoded", answering(200, http.Header{"Content-Encoding": {"gzip"}}, "\x1f\x8b", "\x08"), 200, "\x1f\x8b\x08"},
		{"there", answering(200, text, rules, testLine), 200, rules + testLine},
		{"401", answering(401, text, rules), 401, rules},
		{"403", answering(403, text, rules), 403, rules},
		{"429", answering(429, text, rules), 429, rules},
		{"500", answering(500, text, rules, rules), 500, rules + rules},
		{"503", answering(503, nil), 503, ""},
		{"redirect", answering(301, http.Header{"Location": {"/r"}}), 301, ""},
		{"204", answering(204, nil), 204, ""},
		{"203", answering(203, text, rules), 203, rules},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, err := robotsOf(t, getRobots(), test.next)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(read(t, resp.Body)); resp.StatusCode != test.status || got != test.want {
				t.Errorf("got status %d, %.100q (%d bytes), want %d, %.100q", resp.StatusCode, got, len(got), test.status, test.want)
			}
		})
	}
}

func TestRobotsErrors(t *testing.T) {
	aborted := errors.New("aborted")
	for _, test := range []struct {
		name string
		next caddyhttp.HandlerFunc
		want error // nil: a robots.txt is made
	}{
		{"404", func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(404, aborted) }, nil},
		{"410", func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(410, aborted) }, nil},
		{"wrapped 404", func(http.ResponseWriter, *http.Request) error { return fmt.Errorf("a: %w", caddyhttp.Error(404, nil)) }, nil},
		{"403", func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(403, aborted) }, aborted},
		{"500", func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(500, aborted) }, aborted},
		{"plain", func(http.ResponseWriter, *http.Request) error { return aborted }, aborted},
		{"halfway", func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = w.Write([]byte("User-agent"))
			return caddyhttp.Error(404, aborted)
		}, aborted},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, err := robotsOf(t, getRobots(), test.next)
			if !errors.Is(err, test.want) {
				t.Errorf("got error %v, want %v", err, test.want)
			}
			if got := string(read(t, resp.Body)); strings.HasSuffix(got, testLine) != (test.want == nil) || test.want != nil && got != "" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestRobotsHeaders(t *testing.T) {
	site := http.Header{
		"Content-Type": {"text/plain; charset=ascii"}, "Etag": {`"site"`}, "Last-Modified": {"Sun, 01 Jan 2023 00:00:00 GMT"},
		"Content-Length": {"14"}, "Accept-Ranges": {"none"}, "Cache-Control": {"max-age=5"}, "Set-Cookie": {"a=b"},
	}
	resp, err := robotsOf(t, getRobots(), answering(200, site.Clone(), "User-agent: *\n"))
	if err != nil {
		t.Fatal(err)
	}
	body := read(t, resp.Body)
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=ascii", "Last-Modified": "", "Content-Length": fmt.Sprint(len(body)),
		"Accept-Ranges": "bytes", "Cache-Control": "max-age=5", "Set-Cookie": "a=b",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if etag := resp.Header.Get("Etag"); etag == `"site"` || len(etag) < 4 || strings.Contains(etag, "-") {
		t.Errorf("got the ETag %s", etag)
	}
	again, err := robotsOf(t, getRobots("If-None-Match: "+resp.Header.Get("Etag")), answering(200, site.Clone(), "User-agent: *\n"))
	if err != nil || again.StatusCode != http.StatusNotModified {
		t.Errorf("got status %d, error %v, want 304", again.StatusCode, err)
	}
	other, err := robotsOf(t, getRobots("If-None-Match: "+resp.Header.Get("Etag")), answering(200, site.Clone(), "User-agent: a\n"))
	if err != nil || other.StatusCode != http.StatusOK {
		t.Errorf("of another content: got status %d, error %v, want 200", other.StatusCode, err)
	}
}

// TestRobotsUnchanged says that what stays as it is keeps its headers, and that the
// client's conditions, which the next handler did not see, are met all the same.
func TestRobotsUnchanged(t *testing.T) {
	const modified = "Sun, 01 Jan 2023 00:00:00 GMT"
	header := http.Header{"Content-Type": {"text/plain"}, "Etag": {`"site"`}, "Last-Modified": {modified}, "Accept-Ranges": {"bytes"}}
	for _, test := range []struct {
		header string
		status int
		body   string
	}{
		{"X-Nothing: x", 200, testLine},
		{`If-None-Match: "site"`, 304, ""},
		{`If-None-Match: "other"`, 200, testLine},
		{"If-Modified-Since: " + modified, 304, ""},
		{"If-Modified-Since: Sat, 01 Jan 2022 00:00:00 GMT", 200, testLine},
		{`If-Match: "other"`, 412, ""},
		{"Range: bytes=0-6", 206, testLine[:7]},
		{"Range: bytes=9999-", 416, "invalid range: failed to overlap\n"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r := getRobots(test.header)
			r.Method = method
			resp, err := robotsOf(t, r, func(w http.ResponseWriter, nr *http.Request) error {
				if nr.Method != http.MethodGet || hasCondition(nr.Header) || nr.Header.Get("X-Nothing") != r.Header.Get("X-Nothing") {
					t.Errorf("the next handler gets %s with %v", nr.Method, nr.Header)
				}
				return answering(200, header, testLine)(w, nr)
			})
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != test.status || test.status < 400 && resp.Header.Get("Etag") != `"site"` {
				t.Errorf("%s with %s: got status %d, headers %v, want %d", method, test.header, resp.StatusCode, resp.Header, test.status)
			}
			if got := string(read(t, resp.Body)); method == http.MethodGet && got != test.body {
				t.Errorf("%s: got %q, want %q", test.header, got, test.body)
			}
		}
	}
}

// TestRobotsTooLong says that a robots.txt that is too long, or encoded all the same,
// is the next handler's own business, conditions and range and all.
func TestRobotsTooLong(t *testing.T) {
	long := strings.Repeat("#", robotstxt.MaxBody) + "\n"
	modified := time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)
	serving := func(header http.Header, body string) caddyhttp.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) error {
			maps.Copy(w.Header(), header)
			w.Header().Set("Etag", `"site"`)
			if w.Header().Get("Content-Encoding") != "" && r.Header.Get("Accept-Encoding") == "" {
				w.Header().Set("X-Unasked", "yes")
			}
			http.ServeContent(w, r, "robots.txt", modified, strings.NewReader(body))
			return nil
		}
	}
	aborting := func(w http.ResponseWriter, r *http.Request) error {
		buffer := httptest.NewRecorder()
		_ = serving(nil, long)(buffer, r)
		maps.Copy(w.Header(), buffer.Header())
		w.WriteHeader(buffer.Code)
		// As reverse_proxy does where its client is gone.
		if _, err := io.Copy(w, buffer.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
		return nil
	}
	failing := func(w http.ResponseWriter, r *http.Request) error {
		_ = serving(nil, long)(w, r)
		if _, err := w.Write(nil); r.Method == http.MethodGet && !hasCondition(r.Header) {
			return err
		}
		return nil
	}
	gzipped := serving(http.Header{"Content-Encoding": {"gzip"}}, long)
	for _, next := range []struct {
		name string
		do   caddyhttp.HandlerFunc
	}{{"long", serving(nil, long)}, {"aborting", aborting}, {"failing", failing}, {"encoded", gzipped}} {
		for _, test := range []struct {
			method, header string
			status, length int
		}{
			{"GET", "X-Nothing: x", 200, len(long)},
			{"GET", `If-None-Match: "site"`, 304, 0},
			{"GET", `If-None-Match: "other"`, 200, len(long)},
			{"GET", "If-Modified-Since: " + modified.Format(http.TimeFormat), 304, 0},
			{"GET", `If-Match: "other"`, 412, 0},
			{"GET", "Range: bytes=0-6", 206, 7},
			{"HEAD", "X-Nothing: x", 200, -1},
			{"HEAD", `If-None-Match: "site"`, 304, -1},
		} {
			r := getRobots(test.header, "Accept-Encoding: gzip")
			r.Method = test.method
			var last *http.Request
			resp, err := robotsOf(t, r, func(w http.ResponseWriter, nr *http.Request) error {
				last = nr
				return next.do(w, nr)
			})
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != test.status || resp.Header.Get("Etag") != `"site"` {
				t.Errorf("%s, %s with %s: got status %d, headers %v, want %d", next.name, test.method, test.header, resp.StatusCode, resp.Header, test.status)
			}
			if again := test.header != "X-Nothing: x" || test.method == "HEAD"; again && (last != r || resp.Header.Get("X-Unasked") != "") {
				t.Errorf("%s, %s with %s: the next handler did not get the request as it came: %v", next.name, test.method, test.header, resp.Header)
			}
			if got := len(read(t, resp.Body)); test.length >= 0 && got != test.length {
				t.Errorf("%s, %s with %s: got %d bytes, want %d", next.name, test.method, test.header, got, test.length)
			}
		}
	}
}

// TestRobotsPanics: what the next handler throws for reasons of its own goes on.
func TestRobotsPanics(t *testing.T) {
	defer func() {
		if v := recover(); v != "a panic" {
			t.Errorf("got %v", v)
		}
	}()
	_, _ = robotsOf(t, getRobots("Range: bytes=0-6"), func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = io.WriteString(w, strings.Repeat("#", robotstxt.MaxBody+1))
		panic("a panic")
	})
}

func TestRobotsMethods(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodOptions, http.MethodDelete} {
		r := getRobots()
		r.Method = method
		resp, err := robotsOf(t, r, answering(200, nil, "User-agent: *\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, resp.Body); !bytes.Equal(got, []byte("User-agent: *\n")) {
			t.Errorf("%s: got %q", method, got)
		}
	}
}
