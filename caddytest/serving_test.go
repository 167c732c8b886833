package caddytest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
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
				s.wantConditions(t, url, r, accepting(form.accept)...)
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

// wantConditions asks again with what the client got, in r.
func (s *server) wantConditions(t *testing.T, url string, r harness.Response, headers ...string) {
	t.Helper()
	etag, modified := r.Header.Get("Etag"), r.Header.Get("Last-Modified")
	for _, test := range []struct {
		condition string
		status    int
	}{
		{"If-None-Match: " + etag, 304},
		{"If-None-Match: W/" + etag, 304},
		{`If-None-Match: "other", ` + etag, 304},
		{"If-None-Match: *", 304},
		{`If-None-Match: "other"`, 200},
		{"If-Modified-Since: " + modified, 304},
		{"If-Modified-Since: Sun, 01 Jan 2023 00:00:00 GMT", 200},
		{"If-Match: *", 200},
		{`If-Match: "other"`, 412},
		{"If-Unmodified-Since: " + modified, 200},
		{"If-Unmodified-Since: Sun, 01 Jan 2023 00:00:00 GMT", 412},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			again := s.Do(method, url, append(slices.Clone(headers), test.condition)...)
			if again.StatusCode != test.status {
				t.Errorf("%s, %s: got status %d, want %d", method, test.condition, again.StatusCode, test.status)
			}
			if again.StatusCode != http.StatusNotModified {
				continue
			}
			if again.Text != "" || again.Header.Get("Cache-Control") != r.Header.Get("Cache-Control") || again.Header.Get("Etag") == "" {
				t.Errorf("%s, %s: got body %q, headers %v", method, test.condition, again.Text, again.Header)
			}
			if r.Header.Get("Vary") != "" && again.Header.Get("Vary") == "" {
				t.Errorf("%s, %s: got no Vary", method, test.condition)
			}
		}
	}
	// An ETag holds for its encoding alone; a weak comparison would tell no other's.
	if again := s.Get(url, append(slices.Clone(headers), "If-None-Match: "+strings.TrimSuffix(etag, `"`)+`x"`)...); again.StatusCode != http.StatusOK {
		t.Errorf("with another ETag: got status %d", again.StatusCode)
	}
}

// TestServingOtherEncodingsETag says that a cache which holds one encoding does not
// take it for another.
func TestServingOtherEncodingsETag(t *testing.T) {
	s := serving(t)
	url := "http://localhost:{port}" + theShard
	plain, zipped := s.Get(url).Header.Get("Etag"), s.Get(url, "Accept-Encoding: gzip").Header.Get("Etag")
	for _, test := range []struct{ accept, etag string }{{"gzip", plain}, {"identity", zipped}, {"zstd", zipped}} {
		if r := s.Get(url, "Accept-Encoding: "+test.accept, "If-None-Match: "+test.etag); r.StatusCode != http.StatusOK {
			t.Errorf("%s with %s: got status %d", test.accept, test.etag, r.StatusCode)
		}
	}
}

func TestServingMethods(t *testing.T) {
	s := serving(t)
	for _, path := range []string{"/sitemap.xml", "/sitemap.xml.gz", theShard, "/sitemap-000000000000.txt", "/sitemap-000000000000.xml.gz"} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
			r := s.Do(method, "http://localhost:{port}"+path)
			if r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: got status %d, Allow %q", method, path, r.StatusCode, r.Header.Get("Allow"))
			}
		}
	}
	// What is none of our documents is for the next handler to refuse.
	for _, path := range []string{"/sitemap.txt", "/sitemap-111111111111.xml", "/index.html"} {
		if r := s.Do("POST", "http://localhost:{port}"+path); strings.Contains(r.Header.Get("X-Robots-Tag"), "noindex") || r.Header.Get("Allow") != "GET, HEAD" && r.StatusCode == 405 {
			t.Errorf("POST %s: got status %d, headers %v", path, r.StatusCode, r.Header)
		}
		if r := s.Get("http://localhost:{port}" + path); path != "/index.html" && r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got status %d", path, r.StatusCode)
		}
	}
}

func TestServingRanges(t *testing.T) {
	s := serving(t)
	for _, form := range forms {
		if form.encoding == "zstd" || form.extension == ".txt" && form.encoding == "gzip" {
			continue // encode cannot take a range of what it encodes: see below
		}
		t.Run(form.name, func(t *testing.T) {
			url := "http://localhost:{port}/sitemap-000000000000" + form.extension
			get := func(headers ...string) harness.Response { return s.Get(url, accepting(form.accept, headers...)...) }
			whole := get()
			body, etag := whole.Text, whole.Header.Get("Etag")
			size := len(body)
			// A small document does without the header that says so.
			if size > 2048 && whole.Header.Get("Accept-Ranges") != "bytes" || whole.ContentLength != int64(size) {
				t.Errorf("got Accept-Ranges %q, length %d of %d", whole.Header.Get("Accept-Ranges"), whole.ContentLength, size)
			}
			for _, test := range []struct {
				header   string
				from, to int
			}{
				{"bytes=0-0", 0, 1},
				{"bytes=10-99", 10, 100},
				{"bytes=100-", 100, size},
				{"bytes=-7", size - 7, size},
				{"bytes=5-9999999", 5, size},
				{"bytes=-9999999", 0, size},
			} {
				r := get("Range: " + test.header)
				want := fmt.Sprintf("bytes %d-%d/%d", test.from, test.to-1, size)
				if r.StatusCode != http.StatusPartialContent || r.Text != body[test.from:test.to] || r.Header.Get("Content-Range") != want {
					t.Errorf("%s: got status %d, range %q, %d bytes, want %q", test.header, r.StatusCode, r.Header.Get("Content-Range"), len(r.Text), want)
				}
				if r.Header.Get("Etag") != etag || r.Header.Get("Content-Encoding") != form.encoding || r.Header.Get("Content-Type") != form.contentType {
					t.Errorf("%s: got headers %v", test.header, r.Header)
				}
				s.wantHead(t, url, r, accepting(form.accept, "Range: "+test.header)...)
			}
			for _, beyond := range []string{fmt.Sprintf("bytes=%d-", size), "bytes=9999999-99999999"} {
				r := get("Range: " + beyond)
				if want := fmt.Sprintf("bytes */%d", size); r.StatusCode != http.StatusRequestedRangeNotSatisfiable || r.Header.Get("Content-Range") != want {
					t.Errorf("%s: got status %d, range %q, want %q", beyond, r.StatusCode, r.Header.Get("Content-Range"), want)
				}
			}
			for _, test := range []struct {
				condition string
				status    int
			}{
				{etag, 206}, {`"other"`, 200}, {"W/" + etag, 200}, {whole.Header.Get("Last-Modified"), 206}, {"Sun, 01 Jan 2023 00:00:00 GMT", 200},
			} {
				r := get("Range: bytes=0-9", "If-Range: "+test.condition)
				if r.StatusCode != test.status || test.status == 200 && r.Text != body {
					t.Errorf("If-Range %s: got status %d, %d bytes, want status %d", test.condition, r.StatusCode, len(r.Text), test.status)
				}
			}
			if r := get("Range: bytes=0-9", "If-None-Match: "+etag); r.StatusCode != http.StatusNotModified {
				t.Errorf("If-None-Match: got status %d", r.StatusCode)
			}
			s.wantSeveral(t, get("Range: bytes=0-3, 8-9"), body)
			if r := get("Range: bytes=0-,0-,0-,0-"); r.StatusCode != http.StatusOK || r.Text != body {
				t.Errorf("four times all: got status %d, %d bytes", r.StatusCode, len(r.Text))
			}
		})
	}
}

// wantSeveral wants both ranges, or all of it: a server may ignore several ranges.
func (s *server) wantSeveral(t *testing.T, r harness.Response, body string) {
	t.Helper()
	if r.StatusCode == http.StatusOK && r.Text == body {
		return
	}
	kind, boundary, _ := strings.Cut(r.Header.Get("Content-Type"), "; boundary=")
	if r.StatusCode != http.StatusPartialContent || kind != "multipart/byteranges" {
		t.Errorf("several ranges: got status %d, headers %v", r.StatusCode, r.Header)
		return
	}
	parts := multipart.NewReader(strings.NewReader(r.Text), boundary)
	for _, want := range []string{body[:4], body[8:10]} {
		part, err := parts.NextPart()
		if err != nil {
			t.Error(err)
			return
		}
		if got, err := io.ReadAll(part); err != nil || string(got) != want {
			t.Errorf("several ranges: got %q, %v, want %q", got, err, want)
		}
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

// TestServingUsersHeaders says that what the user's own header directives say stays.
func TestServingUsersHeaders(t *testing.T) {
	for _, test := range []struct {
		name, directives string
		want             map[string]string
	}{
		{"before", "header Vary Origin\n\theader Cache-Control \"private, max-age=5\"\n\theader X-Own yes",
			map[string]string{"Vary": "Origin, Accept-Encoding", "Cache-Control": "private, max-age=5", "X-Own": "yes"}},
		{"Vary already", "header Vary \"Origin, accept-encoding\"",
			map[string]string{"Vary": "Origin, accept-encoding"}},
		{"deferred", "header >Cache-Control no-store\n\theader -X-Robots-Tag",
			map[string]string{"Vary": "Accept-Encoding", "Cache-Control": "no-store", "X-Robots-Tag": ""}},
		{"added", "header +Cache-Control no-transform",
			map[string]string{"Cache-Control": "no-transform"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, `
http://localhost:{port} {
	root * {dir}/site
	`+test.directives+`
	sitemap
	file_server
}`, map[string]string{"site/index.html": "home"})
			for _, accept := range []string{"identity", "gzip"} {
				r := s.Get("http://localhost:{port}/sitemap.xml", "Accept-Encoding: "+accept)
				if r.StatusCode != http.StatusOK {
					t.Errorf("got status %d", r.StatusCode)
				}
				for name, want := range test.want {
					if got := strings.Join(r.Header[http.CanonicalHeaderKey(name)], ", "); got != want {
						t.Errorf("%s: got %q, want %q", name, got, want)
					}
				}
			}
		})
	}
}

func TestServingCacheControl(t *testing.T) {
	for _, test := range []struct {
		refresh  string
		min, max int
	}{{"5m", 240, 300}, {"59m", 3400, 3540}, {"3h", 3600, 3600}} {
		t.Run(test.refresh, func(t *testing.T) {
			s := start(t, `
http://localhost:{port} {
	root * {dir}/site
	sitemap {
		refresh `+test.refresh+`
	}
	file_server
}`, map[string]string{"site/index.html": "home"})
			s.Locs("http://localhost:{port}/sitemap.xml")
			control := s.Get("http://localhost:{port}/sitemap.xml").Header.Get("Cache-Control")
			age, err := strconv.Atoi(strings.TrimPrefix(control, "max-age="))
			if err != nil || age < test.min || age > test.max {
				t.Errorf("got %q", control)
			}
		})
	}
}

// TestServingEntities says how a URL is written in each form.
func TestServingEntities(t *testing.T) {
	give(t, "entities", func(_ context.Context, yield func(sitemap.Page) error) error {
		return yield(sitemap.Page{Path: "/it's%20&c/%FC?a=1&b='2'"})
	})
	s := start(t, `
http://localhost:{port} {
	sitemap {
		source given entities
	}
	`+aPage+`
}`, nil)
	const want = "/it&apos;s%20&amp;c/%FC?a=1&amp;b=&apos;2&apos;</loc>"
	if r := s.Get("http://localhost:{port}/sitemap.xml"); !strings.Contains(r.Text, want) {
		t.Errorf("got %s, want in it %s", r.Text, want)
	}
	want2 := s.Expand("http://localhost:{port}/it's%20&c/%FC?a=1&b='2'\n")
	if r := s.Get("http://localhost:{port}/sitemap.txt"); r.Text != want2 {
		t.Errorf("got %q, want %q", r.Text, want2)
	}
	s.WantLocs("http://localhost:{port}/sitemap.xml", strings.TrimSpace(want2))
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
		{"header", "header X-A b\n\theader -Server", "<p>home", 404},
		{"handle_errors", "handle_errors {\n\t\trespond \"<html>it is {err.status_code}</html>\" 404\n\t}", "<p>home", 404},
		{"respond", "respond /other 204", "<p>home", 404},
		{"redir", "redir /old /new", "<p>home", 404},
		{"request_body", "request_body {\n\t\tmax_size 1KB\n\t}", "<p>home", 404},
		{"push of nothing", "log", "<p>home", 404},
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

// TestServingBehindLogin says that a login guards the sitemap as it guards the pages.
func TestServingBehindLogin(t *testing.T) {
	// The password is "hiccup".
	const login = "Authorization: Basic Qm9iOmhpY2N1cA=="
	s := start(t, `
http://localhost:{port} {
	root * {dir}/site
	@inside path /inside/* /sitemap*
	basic_auth @inside {
		Bob $2a$04$lPjZVTDt/nNLXbxRqZZCq.nIFv0pS2YKeuixykmT1z70zuqGtgRRe
	}
	sitemap
	file_server
}`, map[string]string{"site/index.html": "home", "site/inside/index.html": "inside"})
	if r := s.Get("http://localhost:{port}/sitemap.xml"); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a password: got status %d", r.StatusCode)
	}
	for _, path := range []string{"/inside/", "/"} {
		if r := s.Get("http://localhost:{port}"+path, login); r.StatusCode != http.StatusOK {
			t.Errorf("%s: got status %d", path, r.StatusCode)
		}
	}
}

// TestServingBehindLoginWithCredentials serves to who has the password of a site
// that lets strangers read.
func TestServingBehindLoginWithCredentials(t *testing.T) {
	give(t, "login", paged(3))
	s := start(t, `
http://localhost:{port} {
	@password header Authorization *
	basic_auth @password {
		Bob $2a$04$lPjZVTDt/nNLXbxRqZZCq.nIFv0pS2YKeuixykmT1z70zuqGtgRRe
	}
	sitemap {
		source given login
	}
	`+aPage+`
}`, nil)
	r := s.Get("http://localhost:{port}/sitemap.xml", "Authorization: Basic Qm9iOmhpY2N1cA==")
	if r.StatusCode != http.StatusOK || strings.Count(r.Text, "<loc>") != 3 || strings.Contains(r.Header.Get("Cache-Control"), "public") {
		t.Errorf("got status %d, headers %v, %.200q", r.StatusCode, r.Header, r.Text)
	}
	if r := s.Get("http://localhost:{port}/sitemap.xml", "Authorization: Basic Qm9iOnh4eA=="); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("with a wrong password: got status %d", r.StatusCode)
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
http://localhost:{more} {
	root * {dir}/own
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
		"site/data.json": "{}", "own/sitemap.xml": "<own/>", "own/robots.txt": "User-agent: *\n",
		"omitted/index.html": "home", "omitted/a.html": "a", "omitted/404.html": "no page",
	})
	for _, path := range []string{"/sitemap.xml", "/sitemap.xml.gz", "/sitemap.txt", theShard, "/robots.txt"} {
		if r := s.Get("http://localhost:{port}" + path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got status %d, %q", path, r.StatusCode, r.Text)
		}
	}
	s.Logged("no page to list", "http://localhost:{port}", "not included: 1")
	s.Logged("no page to list", "http://localhost:{tls}", "error page: 1", "excluded: 2")
	if r := s.Get("http://localhost:{more}/sitemap.xml"); r.Text != "<own/>" {
		t.Errorf("the site's own sitemap is %q", r.Text)
	}
	if r := s.Get("http://localhost:{more}/robots.txt"); r.Text != "User-agent: *\n" {
		t.Errorf("the site's own robots.txt is %q", r.Text)
	}
	if r := s.Do(http.MethodPost, "http://localhost:{more}/sitemap.xml"); r.StatusCode != 405 || r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: got status %d of file_server, headers %v", r.StatusCode, r.Header)
	}
}

// TestServingFirstWait has a source that takes its time.
func TestServingFirstWait(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	give(t, "slow", func(ctx context.Context, yield func(sitemap.Page) error) error {
		once.Do(func() { close(begun) })
		select {
		case <-release:
		case <-ctx.Done():
			return ctx.Err()
		}
		return yield(sitemap.Page{Path: "/late"})
	})
	s := start(t, `
http://localhost:{port} {
	log
	sitemap {
		source given slow
		crawl off
		refresh 1s
	}
	respond "User-agent: *"
}`, nil)
	<-begun

	// What is not ours does not wait.
	if r := s.Get("http://localhost:{port}/other"); r.StatusCode != http.StatusOK {
		t.Errorf("another page: got status %d", r.StatusCode)
	}
	// Nothing is kept for who goes away: the handler returns, and Caddy logs that.
	conn, err := net.Dial("tcp", s.Expand("127.0.0.1:{port}"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /sitemap.xml?gone HTTP/1.1\r\nHost: localhost:%s\r\n\r\n", s.Port)
	conn.Close()
	s.Logged("handled request", "/sitemap.xml?gone")

	answers := make(chan harness.Response)
	paths := []string{"/sitemap.xml", "/sitemap.txt", "/sitemap.xml.gz", "/robots.txt"}
	for _, path := range paths {
		go func() {
			r, _ := s.Try(http.MethodGet, "http://localhost:{port}"+path)
			answers <- r
		}()
	}
	select {
	case r := <-answers:
		t.Errorf("%s was answered before the first refresh ended: %d", r.Request.URL, r.StatusCode)
	default:
	}
	close(release)
	for range paths {
		r := <-answers
		if r.Response == nil || r.StatusCode != http.StatusOK {
			t.Fatalf("got %+v", r)
		}
		if path := r.Request.URL.Path; path == "/robots.txt" && !strings.Contains(r.Text, "Sitemap: ") {
			t.Errorf("robots.txt is %q", r.Text)
		}
	}
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

// TestServingProtocols asks by each protocol that Caddy serves over TCP.
func TestServingProtocols(t *testing.T) {
	give(t, "protocols", paged(5000))
	s := start(t, `
{
	servers {
		protocols h1 h2 h2c
	}
}
https://localhost:{tls}, http://localhost:{port} {
	encode
	sitemap {
		source given protocols
		crawl off
	}
}`, nil)
	h2c := &http.Transport{Protocols: new(http.Protocols)}
	h2c.Protocols.SetUnencryptedHTTP2(true)
	defer h2c.CloseIdleConnections()
	h1 := &http.Transport{
		Protocols:          new(http.Protocols),
		DisableKeepAlives:  true,
		DisableCompression: true,
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
	}
	h1.Protocols.SetHTTP1(true)
	for _, test := range []struct {
		name, url string
		transport http.RoundTripper
		protocol  string
	}{
		{"h1", "https://localhost:{tls}", h1, "HTTP/1.1"},
		{"h2", "https://localhost:{tls}", harness.Client.Transport, "HTTP/2.0"},
	} {
		for _, path := range []string{"/sitemap.xml", "/sitemap.xml.gz", "/sitemap.txt"} {
			for _, header := range []string{"Accept-Encoding: gzip", "Accept-Encoding: identity", "Range: bytes=1-5", "If-None-Match: *"} {
				name, value, _ := strings.Cut(header, ": ")
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					request, err := http.NewRequest(method, s.Expand(test.url+path), nil)
					if err != nil {
						t.Fatal(err)
					}
					request.Header.Set(name, value)
					resp, err := test.transport.RoundTrip(request)
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					want := map[string]int{"Range": 206, "If-None-Match": 304}[name]
					if want == 0 {
						want = 200
					}
					if err != nil || resp.Proto != test.protocol || resp.StatusCode != want || (len(body) > 0) != (method == http.MethodGet && want != 304) {
						t.Errorf("%s by %s, %s with %s: got status %d by %s, %d bytes, %v", path, test.name, method, header, resp.StatusCode, resp.Proto, len(body), err)
					}
				}
			}
		}
	}
	// The http site's documents are those of the https one, whatever the protocol.
	request, err := http.NewRequest(http.MethodGet, s.Expand("http://localhost:{port}/sitemap.xml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h2c.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if want := s.Expand("https://localhost:{tls}/sitemap.xml"); resp.Proto != "HTTP/2.0" || resp.StatusCode != http.StatusPermanentRedirect || resp.Header.Get("Location") != want {
		t.Errorf("h2c: got status %d by %s, Location %q, want %q", resp.StatusCode, resp.Proto, resp.Header.Get("Location"), want)
	}
}

// TestServingCurl asks as people do.
func TestServingCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatalf("curl, which the tests run, is not installed: %v", err)
	}
	s := serving(t)
	plain := s.Get("http://localhost:{port}" + theShard).Text
	run := func(args ...string) string {
		t.Helper()
		for i := range args {
			args[i] = s.Expand(args[i])
		}
		out, err := exec.Command(curl, append([]string{"--silent", "--show-error", "--fail", "--max-time", "20"}, args...)...).Output()
		if err != nil {
			t.Errorf("curl %q: %v", args, err)
		}
		return string(out)
	}
	url := "http://127.0.0.1:{port}" + theShard
	host := []string{"--header", "Host: localhost:{port}"}
	with := func(args ...string) []string { return append(slices.Clone(host), args...) }
	for _, args := range [][]string{{url}, {"--compressed", url}, {"--http1.0", url}} {
		if got := run(with(args...)...); got != plain {
			t.Errorf("curl %q: got %d bytes, want %d", args, len(got), len(plain))
		}
	}
	if got := run(with("--compressed", strings.TrimSuffix(url, ".xml")+".xml.gz")...); harness.Gunzip(t, got) != plain {
		t.Error("curl --compressed changes the file")
	}
	if got := run(with("--range", "5-9", url)...); got != plain[5:10] {
		t.Errorf("curl --range: got %q", got)
	}
	head := run(with("--head", "--compressed", url)...)
	if !strings.Contains(strings.ToLower(head), "content-encoding: gzip\r\n") {
		t.Errorf("curl --head: got %q", head)
	}
	dir := t.TempDir()
	saved := dir + "/etag"
	if run(with("--compressed", "--etag-save", saved, url)...) != plain {
		t.Error("curl --etag-save: got something else")
	}
	if got := run(with("--compressed", "--etag-compare", saved, "--write-out", "%{http_code}", url)...); got != "304" {
		t.Errorf("curl --etag-compare: got %q", got)
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
