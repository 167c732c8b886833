package caddytest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

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

// give makes a source for a Caddyfile: "given <name>".
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

// decoded is a response's body without its encoding, or that of the file it is.
func decoded(t *testing.T, r harness.Response) string {
	t.Helper()
	switch r.Header.Get("Content-Encoding") {
	case "gzip":
		return harness.Gunzip(t, r.Text)
	case "zstd":
		z, err := zstd.NewReader(strings.NewReader(r.Text))
		harness.Must(t, err)
		defer z.Close()
		plain, err := io.ReadAll(z)
		harness.Must(t, err)
		return string(plain)
	}
	if r.Header.Get("Content-Type") == "application/gzip" {
		return harness.Gunzip(t, r.Text)
	}
	return r.Text
}

// wantHead wants HEAD to have the headers of the GET that was answered with r.
func (s *server) wantHead(t *testing.T, url string, r harness.Response, headers ...string) {
	t.Helper()
	head := s.Do(http.MethodHead, url, headers...)
	if head.StatusCode != r.StatusCode || head.Text != "" {
		t.Errorf("HEAD: got status %d and %d bytes, want %d and none", head.StatusCode, len(head.Text), r.StatusCode)
	}
	ignored := []string{"Date"}
	// encode knows the length of what it has written, and net/http leaves 0 away.
	if etag := r.Header.Get("Etag"); strings.HasSuffix(etag, `-zstd"`) || strings.HasSuffix(etag, `-gzip"`) || r.Header.Get("Content-Length") == "0" {
		ignored = append(ignored, "Content-Length")
	}
	for _, header := range []http.Header{r.Header, head.Header} {
		for _, name := range ignored {
			header.Del(name)
		}
		// The age counts down to the next refresh.
		if age, ok := strings.CutPrefix(header.Get("Cache-Control"), "max-age="); ok {
			header.Set("Cache-Control", "max-age="+strings.TrimLeft(age, "0123456789"))
		}
	}
	if got, want := fmt.Sprint(head.Header), fmt.Sprint(r.Header); got != want {
		t.Errorf("HEAD: got %s, GET has %s", got, want)
	}
}

// TestServingBehind serves from behind other handlers.
func TestServingBehind(t *testing.T) {
	for _, test := range []struct {
		name, directives string
		home             string // answer to /
		other            int    // status of what does not exist
	}{
		{"encode", "encode", "<p>home", 404},
		{"templates of XML", "templates {\n\t\tmime application/xml text/plain application/gzip\n\t}", "<p>home", 404},
		{"SPA in encode", "encode\n\ttry_files {path} {path}/ /index.html", "<p>home", 200},
		{"handle_errors", "handle_errors {\n\t\trespond \"<html>it is {err.status_code}</html>\" 404\n\t}", "<p>home", 404},
	} {
		t.Run(test.name, func(t *testing.T) {
			give(t, "behind", paged(100))
			s := start(t, `
http://localhost:{port} {
	root * {dir}/site
	sitemap {
		given behind
		crawl off
	}
	file_server
	`+test.directives+`
}`, map[string]string{"site/index.html": "<p>home"})
			want := s.Get("http://localhost:{port}/sitemap.xml")
			if n := len(s.Locs("http://localhost:{port}/sitemap.xml")); n != 100 {
				t.Errorf("%d pages are listed", n)
			}
			for _, accept := range []string{"identity", "gzip", "gzip, br, zstd", "zstd", "br", "identity, gzip;q=0.2"} {
				r := s.Get("http://localhost:{port}/sitemap.xml", "Accept-Encoding: "+accept)
				if r.StatusCode != http.StatusOK || decoded(t, r) != want.Text || r.Header.Get("Content-Type") != "application/xml; charset=utf-8" {
					t.Errorf("%s: got status %d, headers %v, %.100q", accept, r.StatusCode, r.Header, r.Text)
				}
				again := s.Get("http://localhost:{port}/sitemap.xml", "Accept-Encoding: "+accept, "If-None-Match: "+r.Header.Get("Etag"))
				if again.StatusCode != http.StatusNotModified {
					t.Errorf("%s: got status %d, want 304", accept, again.StatusCode)
				}
				s.wantHead(t, "http://localhost:{port}/sitemap.xml", r, "Accept-Encoding: "+accept)
				if strings.HasPrefix(test.name, "encode") && strings.Join(r.Header["Vary"], ", ") != "Accept-Encoding" || accept == "zstd" && test.name == "encode" && r.Header.Get("Content-Encoding") != "zstd" {
					t.Errorf("%s: got the headers %v", accept, r.Header)
				}
			}
			// A range is one of the plain bytes, or is not granted.
			r := s.Get("http://localhost:{port}/sitemap.xml", "Accept-Encoding: zstd", "Range: bytes=3-8")
			if r.StatusCode == http.StatusPartialContent {
				if r.Header.Get("Content-Encoding") != "" || r.Text != want.Text[3:9] {
					t.Errorf("a range: got headers %v, %q", r.Header, r.Text)
				}
			} else if r.StatusCode != http.StatusOK || decoded(t, r) != want.Text {
				t.Errorf("a range: got status %d, %d bytes", r.StatusCode, len(r.Text))
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
					given login
				}
				`+aPage+`
			}`, nil)
			for header, status := range statuses {
				var headers []string
				if header != "" {
					headers = []string{header}
				}
				s.Crawled()
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
	for _, path := range []string{"/sitemap.xml", "/sitemap.xml.gz", "/sitemap.txt", "/sitemap-000000000000.xml", "/robots.txt"} {
		if r := s.Get("http://localhost:{port}" + path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got status %d, %q", path, r.StatusCode, r.Text)
		}
	}
	s.Logged(harness.NoPage, "http://localhost:{port}", `"not included":1`)
	s.Logged(harness.NoPage, "http://localhost:{tls}", `"error page":1`, `"excluded":2`)
}
