package sitemap

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

const testLine = "Sitemap: https://example.com/sitemap.xml\n"

// robotsOf responds to a request for robots.txt where the next handler does what next does.
func robotsOf(t testing.TB, r *http.Request, next caddyhttp.HandlerFunc) (res *http.Response, body string, err error) {
	t.Helper()
	b := newBench(t, func(h *Handler) { h.BaseURL = "https://example.com" })
	s := b.site("")
	s.serve(snapshotOf(t, 0, "/"))
	w := httptest.NewRecorder()
	err = b.handler.ServeHTTP(w, r, next)
	return w.Result(), w.Body.String(), err
}

func getRobots(header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/robots.txt", nil)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// writing writes a response in pieces, as handlers do.
func writing(status int, header http.Header, pieces ...string) caddyhttp.HandlerFunc {
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
	long := func(bytes int) string { return strings.Repeat("#\n", bytes/2) }
	for name, test := range map[string]struct {
		next   caddyhttp.HandlerFunc
		status int
		want   string
	}{
		"text in pieces":         {writing(200, text, rules[:5], rules[5:9], rules[9:]), 200, rules + "\n" + testLine},
		"nothing":                {func(http.ResponseWriter, *http.Request) error { return nil }, 200, made},
		"HTML that says nothing": {writing(200, nil, "<!doctype html>"), 200, made},
		"not found":              {writing(404, text, "not here"), 200, made},
		"not found, encoded":     {writing(404, http.Header{"Content-Encoding": {"gzip"}}, "\x1f\x8b"), 200, made},
		"as long as may be":      {writing(200, text, long(robotstxt.MaxBody)), 200, long(robotstxt.MaxBody) + "\n" + testLine},
		"too long":               {writing(200, text, long(robotstxt.MaxBody+2)), 200, long(robotstxt.MaxBody + 2)},
		"refused":                {writing(403, text, "stay out"), 403, "stay out"},
		"a redirect":             {writing(301, http.Header{"Location": {"/other.txt"}}), 301, ""},
		"binary":                 {writing(200, text, "a\x00"), 200, "a\x00"},
		"encoded":                {writing(200, http.Header{"Content-Encoding": {"gzip"}}, "\x1f\x8b", "\x08"), 200, "\x1f\x8b\x08"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body, err := robotsOf(t, getRobots(), test.next)
			if err != nil {
				t.Fatal(err)
			}
			if isOurs := strings.HasSuffix(body, testLine); isOurs && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
				t.Errorf("the type is %q", resp.Header.Get("Content-Type"))
			}
			if resp.StatusCode != test.status || body != test.want {
				t.Errorf("got status %d, %.100q (%d bytes), want %d, %.100q", resp.StatusCode, body, len(body), test.status, test.want)
			}
		})
	}
}

// TestRobotsRequest: the next handler is asked for the whole file, whatever the client asks for, and what is true of its file
// alone is not said of the one with the line.
func TestRobotsRequest(t *testing.T) {
	asked := []string{"Range", "If-Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "Accept-Encoding"}
	r := getRobots("X-Other: yes")
	r.Method = http.MethodHead
	for _, name := range asked {
		r.Header.Set(name, `"own"`)
	}
	own := http.Header{
		"Etag": {`"own"`}, "Last-Modified": {"Sun, 01 Jan 2023 00:00:00 GMT"}, "Accept-Ranges": {"none"},
		"Content-Disposition": {"attachment"}, "Content-Type": {"text/markdown"}, "X-Own": {"yes"},
	}
	resp, _, err := robotsOf(t, r, func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet || r.Header.Get("X-Other") != "yes" {
			t.Errorf("the next handler gets %s with %v", r.Method, r.Header)
		}
		for _, name := range asked {
			if value := r.Header.Get(name); value != "" {
				t.Errorf("the next handler gets %s %q", name, value)
			}
		}
		return writing(200, own, "User-agent: *\n")(w, r)
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range own {
		is := resp.Header.Get(name)
		isKept := name != "Etag" && name != "Last-Modified" && name != "Accept-Ranges"
		if (is == values[0]) != isKept {
			t.Errorf("got %s %q", name, is)
		}
	}
}

func TestRobotsErrors(t *testing.T) {
	aborted := errors.New("aborted")
	for name, test := range map[string]struct {
		next caddyhttp.HandlerFunc
		want error // nil: a robots.txt is made
	}{
		"404": {func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(404, aborted) }, nil},
		"410": {func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(410, aborted) }, nil},
		"403": {func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(403, aborted) }, aborted},
		"500": {func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(500, aborted) }, aborted},
		"halfway": {func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = w.Write([]byte("User-agent"))
			return caddyhttp.Error(404, aborted)
		}, aborted},
	} {
		t.Run(name, func(t *testing.T) {
			_, body, err := robotsOf(t, getRobots(), test.next)
			if !errors.Is(err, test.want) {
				t.Errorf("got error %v, want %v", err, test.want)
			}
			if strings.HasSuffix(body, testLine) != (test.want == nil) || test.want != nil && body != "" {
				t.Errorf("got %q", body)
			}
		})
	}
}

func TestRobotsMethods(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodOptions, http.MethodDelete} {
		r := getRobots()
		r.Method = method
		_, body, err := robotsOf(t, r, writing(200, nil, "User-agent: *\n"))
		if err != nil {
			t.Fatal(err)
		}
		if body != "User-agent: *\n" {
			t.Errorf("%s: got %q", method, body)
		}
	}
}

// TestRobotsTooLong: what has no end is not held in memory, and the handler is none the wiser.
func TestRobotsTooLong(t *testing.T) {
	for _, status := range []int{200, 403} {
		resp, body, err := robotsOf(t, getRobots(), writing(status, http.Header{"Content-Length": {"33554432"}}, slices.Repeat([]string{strings.Repeat("#", 1<<20)}, 32)...))
		if err != nil || resp.StatusCode != status || len(body) != maxRobots || resp.Header.Get("Content-Length") == "33554432" {
			t.Errorf("got status %d, %d bytes, %v, %v", resp.StatusCode, len(body), resp.Header, err)
		}
	}
}

// TestNamedURLs: robots.txt names the feed where there is one.
func TestNamedURLs(t *testing.T) {
	pages := func(yield func(page.Page, error) bool) { yield(page.Page{Path: "/", LastMod: batch.Unix()}, nil) }
	for _, test := range []struct{ isWanted, isBuilt, want bool }{
		{false, false, false}, {false, true, false}, {true, false, false}, {true, true, true},
	} {
		s := newBench(t, func(h *Handler) { h.Feed = test.isWanted }).site("named.example")
		o := document.Options{Now: batch}
		o.Base = s.origin
		o.Feed = test.isBuilt
		snapshot, err := document.Build(t.Context(), pages, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{s.sitemap}
		if test.want {
			want = append(want, s.feedURL())
		}
		if got := s.namedURLs(snapshot); !slices.Equal(got, want) {
			t.Errorf("%+v: got %q, want %q", test, got, want)
		}
	}
}

// TestRobotsLine: which sitemap the line names, and where there is none.
func TestRobotsLine(t *testing.T) {
	no := false
	for name, test := range map[string]struct {
		configure func(*Handler)
		host      string
		rewritten string // from, before it was robots.txt
		want      string // "": the robots.txt stays as it is
	}{
		"a named host":              {nil, "named.example", "", "Sitemap: http://named.example/sitemap.xml\n"},
		"its alias":                 {nil, "alias.example", "", "Sitemap: http://named.example/sitemap.xml\n"},
		"a host without a sitemap":  {nil, "empty.example", "", ""},
		"no host name":              {nil, "a..b", "", ""},
		"robots_txt off":            {func(h *Handler) { h.RobotsTxt = &no }, "named.example", "", ""},
		"of a stripped prefix":      {func(h *Handler) { h.mounts = append(h.mounts, &mount{prefix: "/docs"}) }, "named.example", "/docs/robots.txt", ""},
		"rewritten from a name":     {nil, "named.example", "/robots", "Sitemap: http://named.example/sitemap.xml\n"},
		"with a path of its own":    {func(h *Handler) { h.Path = "/a/map.xml" }, "named.example", "", "Sitemap: http://named.example/a/map.xml\n"},
		"a base URL with a folder":  {func(h *Handler) { h.BaseURL = "https://shop.example/b" }, "named.example", "", "Sitemap: https://shop.example/b/sitemap.xml\n"},
		"a base URL, any host":      {func(h *Handler) { h.BaseURL = "https://shop.example" }, "visited.example", "", "Sitemap: https://shop.example/sitemap.xml\n"},
		"a base URL, only a prefix": {func(h *Handler) { h.BaseURL, h.mounts = "https://shop.example", mounts{{prefix: "/docs"}} }, "a.example", "", "Sitemap: https://shop.example/docs/sitemap.xml\n"},
	} {
		b := newBench(t, test.configure)
		main := b.site("named.example")
		b.site("alias.example").main.Store(main)
		if b.handler.settings.base != "" {
			main = b.site("")
		}
		main.serve(snapshotOf(t, 0, "/"))
		for _, s := range b.app.sites {
			s.setReady()
		}
		b.site("empty.example").setReady()
		r := b.request(http.MethodGet, cmp.Or(test.rewritten, "/robots.txt"), nil)
		r.URL.Path, r.Host = "/robots.txt", test.host
		w := httptest.NewRecorder()
		if err := b.handler.ServeHTTP(w, r, writing(200, nil, "User-agent: *\n")); err != nil {
			t.Fatal(err)
		}
		want := "User-agent: *\n"
		if test.want != "" {
			want += "\n" + test.want
		}
		if got := w.Body.String(); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
