package caddytest

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/klauspost/compress/zstd"

	sitemap "github.com/seed3295b519/caddy-sitemap"
	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

func init() {
	caddy.RegisterModule(given{})
}

// given is a source that yields what the test says under its name: see give.
type given struct {
	Name string `json:"name"`
}

type yieldPages func(ctx context.Context, yield func(sitemap.Page) error) error

// givenPages are the yieldPages of the running test, by name.
var givenPages sync.Map

// give makes a source for a Caddyfile: "source given <name>".
func give(t *testing.T, name string, pages yieldPages) {
	givenPages.Store(name, pages)
	t.Cleanup(func() { givenPages.Delete(name) })
}

func (given) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.sitemap.sources.given", New: func() caddy.Module { return new(given) }}
}

func (g *given) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&g.Name) {
		return d.ArgErr()
	}
	return nil
}

func (g *given) Pages(ctx context.Context, _ *sitemap.Refresh, yield func(sitemap.Page) error) error {
	pages, ok := givenPages.Load(g.Name)
	if !ok {
		return fmt.Errorf("no pages are given for %s", g.Name)
	}
	return pages.(yieldPages)(ctx, yield)
}

// paged yields pages named by number, in order.
func paged(n int) yieldPages {
	return func(_ context.Context, yield func(sitemap.Page) error) error {
		for i := range n {
			if err := yield(sitemap.Page{Path: fmt.Sprintf("/p/%07d.html", i)}); err != nil {
				return err
			}
		}
		return nil
	}
}

// theIndex and theShard are the names of a sitemap of several shards and of its first.
const (
	theIndex = "/sitemap.xml"
	theShard = "/sitemap-000000000000.xml"
)

// serving is a site with an index, and one shard at least, that are long enough for
// encode to compress them.
func serving(t *testing.T) *server {
	give(t, "serving", paged(2000))
	s := start(t, `
http://localhost:{port} {
	encode zstd gzip
	root * {dir}/site
	sitemap {
		shard_urls 100
		refresh 2h
		source given serving
		crawl off
	}
	file_server
}`, map[string]string{"site/index.html": "home"})
	s.Locs(s.Expand("http://localhost:{port}" + theShard))
	return s
}

// forms are the ways to ask for a document, and what names the way in its answer.
var forms = []struct {
	name, extension, accept string
	contentType, encoding   string
	vary                    bool
}{
	{"identity", ".xml", "identity", "application/xml; charset=utf-8", "", true},
	{"none", ".xml", "", "application/xml; charset=utf-8", "", true},
	{"gzip", ".xml", "gzip", "application/xml; charset=utf-8", "gzip", true},
	{"browser", ".xml", "gzip, deflate, br, zstd", "application/xml; charset=utf-8", "gzip", true},
	{"zstd", ".xml", "zstd", "application/xml; charset=utf-8", "zstd", true}, // by encode
	{"br", ".xml", "br", "application/xml; charset=utf-8", "", true},
	{"all", ".xml", "*", "application/xml; charset=utf-8", "gzip", true},
	{"no gzip", ".xml", "gzip;q=0, br", "application/xml; charset=utf-8", "", true},
	{"file", ".xml.gz", "", "application/gzip", "", false},
	{"file to gzip", ".xml.gz", "gzip, zstd", "application/gzip", "", false},
	{"file to identity", ".xml.gz", "identity", "application/gzip", "", false},
	{"text", ".txt", "", "text/plain; charset=utf-8", "", true}, // Vary by encode
	{"text as gzip", ".txt", "gzip", "text/plain; charset=utf-8", "gzip", true},
	{"text as zstd", ".txt", "zstd", "text/plain; charset=utf-8", "zstd", true},
}

// decoded is a response's body without its encoding, or that of the file it is.
func decoded(t *testing.T, r harness.Response) string {
	t.Helper()
	switch r.Header.Get("Content-Encoding") {
	case "gzip":
		return harness.Gunzip(t, r.Text)
	case "zstd":
		z, err := zstd.NewReader(strings.NewReader(r.Text))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return string(plain)
	}
	if r.Header.Get("Content-Type") == "application/gzip" {
		return harness.Gunzip(t, r.Text)
	}
	return r.Text
}

// accepting are headers with an Accept-Encoding, if there is one.
func accepting(accept string, headers ...string) []string {
	if accept == "" {
		return headers
	}
	return append(headers, "Accept-Encoding: "+accept)
}

func TestServingForms(t *testing.T) {
	s := serving(t)
	plain := map[string]string{
		theIndex: s.Get("http://localhost:{port}" + theIndex).Text,
		theShard: s.Get("http://localhost:{port}" + theShard).Text,
	}
	if !strings.Contains(plain[theIndex], "<sitemapindex") || !strings.Contains(plain[theShard], "<urlset") {
		t.Fatalf("got %.200q and %.200q", plain[theIndex], plain[theShard])
	}
	locs := strings.Join(s.Locs("http://localhost:{port}"+theShard), "\n") + "\n"
	etags := make(map[string]string)
	for _, document := range []string{theIndex, theShard} {
		for _, form := range forms {
			t.Run(document+" "+form.name, func(t *testing.T) {
				url := "http://localhost:{port}" + strings.TrimSuffix(document, ".xml") + form.extension
				r := s.Get(url, accepting(form.accept)...)
				if form.extension == ".txt" && document == theIndex {
					if r.StatusCode != http.StatusNotFound {
						t.Errorf("got status %d, want 404", r.StatusCode)
					}
					return
				}
				want := plain[document]
				if form.extension == ".txt" {
					want = locs
				}
				if r.StatusCode != http.StatusOK || decoded(t, r) != want {
					t.Errorf("got status %d, %.200q", r.StatusCode, decoded(t, r))
				}
				for name, want := range map[string]string{
					"Content-Type": form.contentType, "Content-Encoding": form.encoding, "X-Robots-Tag": "noindex",
				} {
					if got := strings.Join(r.Header[name], "; "); got != want {
						t.Errorf("%s: got %q, want %q", name, got, want)
					}
				}
				if got := strings.Join(r.Header["Vary"], ", "); got != map[bool]string{true: "Accept-Encoding"}[form.vary] {
					t.Errorf("Vary: got %q", got)
				}
				if control := r.Header.Get("Cache-Control"); control != "max-age=3600" {
					t.Errorf("Cache-Control: got %q", control)
				}
				modified, err := http.ParseTime(r.Header.Get("Last-Modified"))
				if err != nil || time.Since(modified) > time.Hour || time.Since(modified) < -time.Second {
					t.Errorf("Last-Modified: got %q", r.Header.Get("Last-Modified"))
				}
				etag := r.Header.Get("Etag")
				if !regexp.MustCompile(`^"[a-z0-9.]{8,}(-zstd|-gzip)?"$`).MatchString(etag) {
					t.Errorf("ETag: got %s", etag)
				}
				// Each encoding of each form has its own.
				key := document + form.extension + form.encoding
				if other, ok := etags[key]; ok && other != etag {
					t.Errorf("ETag: got %s and %s", other, etag)
				}
				for other, of := range etags {
					if of == etag && other != key {
						t.Errorf("%s and %s have the ETag %s", key, other, etag)
					}
				}
				etags[key] = etag
				s.wantHead(t, url, r, accepting(form.accept)...)
				for condition, status := range map[string]int{etag: 304, "W/" + etag: 304, "*": 304, `"other"`: 200, strings.TrimSuffix(etag, `"`) + `x"`: 200} {
					again := s.Get(url, accepting(form.accept, "If-None-Match: "+condition)...)
					if again.StatusCode != status || status == 304 && (again.Text != "" || again.Header.Get("Etag") == "" || r.Header.Get("Vary") != "" && again.Header.Get("Vary") == "") {
						t.Errorf("If-None-Match: %s: got status %d, headers %v, want %d", condition, again.StatusCode, again.Header, status)
					}
				}
			})
		}
	}
}

// wantHead wants HEAD to have the headers of the GET that was answered with r.
func (s *server) wantHead(t *testing.T, url string, r harness.Response, headers ...string) {
	t.Helper()
	head := s.Do(http.MethodHead, url, headers...)
	if head.StatusCode != r.StatusCode || head.Text != "" {
		t.Errorf("HEAD: got status %d and %d bytes, want %d and none", head.StatusCode, len(head.Text), r.StatusCode)
	}
	ignored := []string{"Date"}
	if etag := r.Header.Get("Etag"); strings.HasSuffix(etag, `-zstd"`) || strings.HasSuffix(etag, `-gzip"`) {
		ignored = append(ignored, "Content-Length") // encode knows it of what it has written
	}
	if r.Header.Get("Content-Length") == "0" {
		ignored = append(ignored, "Content-Length") // net/http leaves it away
	}
	for _, name := range ignored {
		r.Header.Del(name)
		head.Header.Del(name)
	}
	if got, want := fmt.Sprint(head.Header), fmt.Sprint(r.Header); got != want {
		t.Errorf("HEAD: got %s, GET has %s", got, want)
	}
}

// TestServingRangeOfEncoded says that what encode compresses is right even so: all
// of it, or a range of the plain bytes.
func TestServingRangeOfEncoded(t *testing.T) {
	s := serving(t)
	for _, path := range []string{theShard, "/sitemap-000000000000.txt"} {
		plain := s.Get("http://localhost:{port}" + path).Text
		r := s.Get("http://localhost:{port}"+path, "Accept-Encoding: zstd", "Range: bytes=3-8")
		switch {
		case r.StatusCode == http.StatusPartialContent && r.Header.Get("Content-Encoding") == "" && r.Text == plain[3:9]:
		case r.StatusCode == http.StatusOK && decoded(t, r) == plain:
		default:
			t.Errorf("%s: got status %d, headers %v, %d bytes", path, r.StatusCode, r.Header, len(r.Text))
		}
	}
}

// TestServingBehind serves from behind other handlers.
func TestServingBehind(t *testing.T) {
	application := harness.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "the application's %s", r.URL.Path)
	})
	for _, test := range []struct {
		name, directives string
		home             string // answer to /
		other            int    // status of what does not exist
	}{
		{"encode", "encode", "<p>home", 404},
		{"encode with a match", "encode gzip zstd {\n\t\tmatch header Content-Type *xml*\n\t\tminimum_length 1\n\t}", "<p>home", 404},
		{"templates", "templates", "<p>home", 404},
		{"templates of XML", "templates {\n\t\tmime application/xml text/plain application/gzip\n\t}", "<p>home", 404},
		{"SPA", "try_files {path} /index.html", "<p>home", 200},
		{"SPA in encode", "encode\n\ttry_files {path} {path}/ /index.html", "<p>home", 200},
		{"rewrite of all", "rewrite * /index.html", "<p>home", 200},
		{"reverse_proxy", "reverse_proxy " + application, "the application's /", 200},
		{"handle_errors", "handle_errors {\n\t\trespond \"<html>it is {err.status_code}</html>\" 404\n\t}", "<p>home", 404},
	} {
		t.Run(test.name, func(t *testing.T) {
			give(t, "behind", paged(100))
			s := start(t, `
http://localhost:{port} {
	root * {dir}/site
	sitemap {
		source given behind
		crawl off
	}
	file_server
	`+test.directives+`
}`, map[string]string{"site/index.html": "<p>home"})
			want := s.Get("http://localhost:{port}/sitemap.xml")
			if n := len(s.Locs("http://localhost:{port}/sitemap.xml")); n != 100 {
				t.Errorf("%d pages are listed", n)
			}
			for _, accept := range []string{"identity", "gzip", "gzip, br, zstd", "zstd", "br"} {
				r := s.Get("http://localhost:{port}/sitemap.xml", "Accept-Encoding: "+accept)
				if r.StatusCode != http.StatusOK || decoded(t, r) != want.Text || r.Header.Get("Content-Type") != "application/xml; charset=utf-8" {
					t.Errorf("%s: got status %d, headers %v, %.100q", accept, r.StatusCode, r.Header, r.Text)
				}
				again := s.Get("http://localhost:{port}/sitemap.xml", "Accept-Encoding: "+accept, "If-None-Match: "+r.Header.Get("Etag"))
				if again.StatusCode != http.StatusNotModified {
					t.Errorf("%s: got status %d, want 304", accept, again.StatusCode)
				}
			}
			if r := s.Get("http://localhost:{port}/sitemap.xml.gz"); r.StatusCode != http.StatusOK || harness.Gunzip(t, r.Text) != want.Text {
				t.Errorf("the file: got status %d, headers %v", r.StatusCode, r.Header)
			}
			if r := s.Get("http://localhost:{port}/sitemap.txt"); r.StatusCode != http.StatusOK || strings.Count(r.Text, "\n") != 100 {
				t.Errorf("the text: got status %d, %q", r.StatusCode, r.Text)
			}
			if r := s.Do(http.MethodPost, "http://localhost:{port}/sitemap.xml"); test.name != "handle_errors" && r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("POST: got status %d, headers %v", r.StatusCode, r.Header)
			}
			if r := s.Get("http://localhost:{port}/"); r.Text != test.home {
				t.Errorf("the home page is %q", r.Text)
			}
			if r := s.Get("http://localhost:{port}/nothing"); r.StatusCode != test.other {
				t.Errorf("what does not exist answers %d", r.StatusCode)
			}
			if r := s.Get("http://localhost:{port}/robots.txt"); r.StatusCode != http.StatusOK || !strings.HasSuffix(r.Text, s.Expand("Sitemap: http://localhost:{port}/sitemap.xml\n")) {
				t.Errorf("robots.txt: got status %d, %q", r.StatusCode, r.Text)
			}
		})
	}
}

// TestServingBehindLogin: a login guards the sitemap as it guards pages, and lets in who has
// the password, which is "hiccup".
func TestServingBehindLogin(t *testing.T) {
	const login, wrong = "Authorization: Basic Qm9iOmhpY2N1cA==", "Authorization: Basic Qm9iOnh4eA=="
	for guarded, statuses := range map[string]map[string]int{ // by the credentials that are sent
		"path /inside/* /sitemap*": {"": 401},
		"header Authorization *":   {"": 200, login: 200, wrong: 401},
	} {
		t.Run(guarded, func(t *testing.T) {
			give(t, "login", paged(3))
			s := start(t, `http://localhost:{port} {
				@guarded `+guarded+`
				basic_auth @guarded {
					Bob $2a$04$lPjZVTDt/nNLXbxRqZZCq.nIFv0pS2YKeuixykmT1z70zuqGtgRRe
				}
				sitemap {
					source given login
				}
				`+aPage+`
			}`, nil)
			for header, status := range statuses {
				var headers []string
				if header != "" {
					headers = []string{header}
				}
				r := s.Get("http://localhost:{port}/sitemap.xml", headers...)
				if r.StatusCode != status || status == 200 && (strings.Count(r.Text, "<loc>") != 3 || strings.Contains(r.Header.Get("Cache-Control"), "public")) {
					t.Errorf("%s: got status %d, headers %v, %.200q", header, r.StatusCode, r.Header, r.Text)
				}
			}
		})
	}
}

// TestServingNoPages says that a site without pages has no documents.
func TestServingNoPages(t *testing.T) {
	s := start(t, `
http://localhost:{port} {
	root * {dir}/site
	sitemap
	file_server
}
http://localhost:{tls} {
	root * {dir}/omitted
	sitemap {
		exclude *
	}
	file_server
}`, map[string]string{
		"site/data.json":     "{}",
		"omitted/index.html": "home", "omitted/a.html": "a", "omitted/404.html": "no page",
	})
	for _, path := range []string{"/sitemap.xml", "/sitemap.xml.gz", "/sitemap.txt", theShard, "/robots.txt"} {
		if r := s.Get("http://localhost:{port}" + path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got status %d, %q", path, r.StatusCode, r.Text)
		}
	}
	s.Logged("no page to list", "http://localhost:{port}", "not included: 1")
	s.Logged("no page to list", "http://localhost:{tls}", "error page: 1", "excluded: 2")
}

// TestServingNeverWaitsAgain has a source that hangs from its second refresh on.
func TestServingNeverWaitsAgain(t *testing.T) {
	hanging := make(chan struct{})
	var calls int // refreshes of a site do not overlap
	give(t, "hanging", func(ctx context.Context, yield func(sitemap.Page) error) error {
		if calls++; calls > 1 {
			if calls == 2 {
				close(hanging)
			}
			<-ctx.Done()
			return ctx.Err()
		}
		return yield(sitemap.Page{Path: "/first"})
	})
	s := start(t, `
http://localhost:{port} {
	sitemap {
		source given hanging
		refresh 1s
	}
	`+aPage+`
}`, nil)
	s.WantLocs("http://localhost:{port}/sitemap.xml", "http://localhost:{port}/first")
	<-hanging
	s.WantLocs("http://localhost:{port}/sitemap.xml", "http://localhost:{port}/first")
	if control := s.Get("http://localhost:{port}/sitemap.xml").Header.Get("Cache-Control"); control != "max-age=0" {
		t.Errorf("while a refresh runs: got %q", control)
	}
}

// TestServingSlowClient reads a large document slowly, while a refresh replaces it.
func TestServingSlowClient(t *testing.T) {
	var mu sync.Mutex
	n := 40_000
	give(t, "changing", func(ctx context.Context, yield func(sitemap.Page) error) error {
		mu.Lock()
		defer mu.Unlock()
		return paged(n)(ctx, yield)
	})
	s := start(t, `
http://localhost:{port} {
	sitemap {
		source given changing
		crawl off
		refresh 1s
	}
}`, nil)
	whole := s.Get("http://localhost:{port}/sitemap.xml")
	for _, accept := range []string{"identity", "gzip"} {
		conn, err := net.Dial("tcp", s.Expand("127.0.0.1:{port}"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET /sitemap.xml HTTP/1.0\r\nHost: localhost:%s\r\nAccept-Encoding: %s\r\n\r\n", s.Port, accept)
		first := make([]byte, 100)
		if _, err := io.ReadFull(conn, first); err != nil {
			t.Fatal(err)
		}
		before := s.Get("http://localhost:{port}/sitemap.xml").Header.Get("Etag")
		mu.Lock()
		n++
		mu.Unlock()
		s.Eventually(func() bool { return s.Get("http://localhost:{port}/sitemap.xml").Header.Get("Etag") != before }, func() string { return "nothing changes" })
		rest, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := bytes.Cut(append(first, rest...), []byte("\r\n\r\n"))
		if accept == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if want := len(whole.Text) + (n-40_001)*len(s.Expand("<url><loc>http://localhost:{port}/p/0000000.html</loc></url>\n")); len(body) != want {
			t.Errorf("%s: got %d bytes, want %d", accept, len(body), want)
		}
	}
}
