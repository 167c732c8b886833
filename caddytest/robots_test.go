package caddytest

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

const (
	// robotsLine is what the site of these tests adds.
	robotsLine = "Sitemap: http://localhost:{port}/sitemap.xml\n"

	// robotsMade is the robots.txt of a site that has none.
	robotsMade = "User-agent: *\nDisallow:\n\n" + robotsLine
)

// robotsSite is a site with one page and these directives behind the sitemap.
func robotsSite(directives string) string {
	return `
http://localhost:{port} {
	root * {dir}/site
	sitemap {
		crawl off
		urls {
			/
		}
	}
	` + directives + `
}`
}

func (s *server) robots(headers ...string) harness.Response {
	s.T.Helper()
	return s.Get("http://localhost:{port}/robots.txt", headers...)
}

// wantRobots wants robots.txt to be text, in which words are replaced.
func (s *server) wantRobots(want string) {
	s.T.Helper()
	want = s.Expand(want)
	if r := s.robots(); r.StatusCode != http.StatusOK || r.Text != want {
		s.T.Errorf("got status %d, %d bytes, %.300q, want %d bytes, %.300q", r.StatusCode, len(r.Text), r.Text, len(want), want)
	}
}

// TestRobotsMade has sites without a robots.txt, each in its way.
func TestRobotsMade(t *testing.T) {
	for _, test := range []struct{ name, directives string }{
		{"SPA", "try_files {path} /index.html\n\tfile_server"},
		{"handle_errors", "file_server\n\thandle_errors {\n\t\theader Content-Type text/html\n\t\trespond \"<html>{err.status_code}</html>\"\n\t}"},
		{"in encode", "encode\n\tfile_server"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, robotsSite(test.directives), map[string]string{"site/index.html": "<!doctype html><title>app</title>"})
			s.wantRobots(robotsMade)
			r := s.robots()
			for name, want := range map[string]string{"Content-Type": "text/plain; charset=utf-8", "Content-Encoding": "", "Last-Modified": ""} {
				if got := r.Header.Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			if etag := r.Header.Get("Etag"); etag == "" || etag == `"page"` {
				t.Errorf("got the ETag %q", etag)
			}
			s.wantRobotsAsked(t)
		})
	}
}

// wantRobotsAsked asks for robots.txt in all the ways that a client may.
func (s *server) wantRobotsAsked(t *testing.T) {
	t.Helper()
	const url = "http://localhost:{port}/robots.txt"
	for _, accept := range []string{"identity", "gzip", "gzip, br, zstd"} {
		with := func(headers ...string) []string { return append(headers, "Accept-Encoding: "+accept) }
		r := s.Get(url, with()...)
		s.wantHead(t, url, r, with()...)
		again := s.Get(url, with("If-None-Match: "+r.Header.Get("Etag"))...)
		if again.StatusCode != http.StatusNotModified || again.Text != "" {
			t.Errorf("%s: asked again: got status %d", accept, again.StatusCode)
		}
		if other := s.Get(url, with(`If-None-Match: "other"`)...); other.StatusCode != http.StatusOK || other.Text != r.Text {
			t.Errorf("%s: with another ETag: got status %d", accept, other.StatusCode)
		}
	}
	plain := s.robots()
	if r := s.robots("Range: bytes=5-9"); r.StatusCode != http.StatusPartialContent || r.Text != plain.Text[5:10] {
		t.Errorf("a range: got status %d, %q", r.StatusCode, r.Text)
	}
	if r := s.robots("Range: bytes=-1"); r.StatusCode != http.StatusPartialContent || r.Text != plain.Text[len(plain.Text)-1:] {
		t.Errorf("the last byte: got status %d, %q", r.StatusCode, r.Text)
	}
	if r := s.robots(fmt.Sprintf("Range: bytes=%d-", len(plain.Text))); r.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("beyond the end: got status %d", r.StatusCode)
	}
	if r := s.robots("Range: bytes=0-3", `If-Range: "other"`); r.StatusCode != http.StatusOK || r.Text != plain.Text {
		t.Errorf("a range of another one: got status %d, %q", r.StatusCode, r.Text)
	}
}

// TestRobotsFile has a file of the site, which encode compresses as it does without the line.
func TestRobotsFile(t *testing.T) {
	rules := "User-agent: *\n" + strings.Repeat("Disallow: /secret\n", 100)
	s := start(t, robotsSite("encode\n\tfile_server"), map[string]string{"site/robots.txt": rules})
	want := rules + "\n" + s.Expand(robotsLine)
	s.wantRobots(want)
	own := s.Get("http://localhost:{port}/robots.txt?", "Host: 127.0.0.1:{port}")
	r := s.robots()
	if r.Header.Get("Last-Modified") != "" || r.Header.Get("Etag") == own.Header.Get("Etag") || r.ContentLength != int64(len(r.Text)) {
		t.Errorf("got headers %v", r.Header)
	}
	if r.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("got the type %q", r.Header.Get("Content-Type"))
	}
	for _, encoding := range []string{"gzip", "zstd"} {
		r := s.robots("Accept-Encoding: " + encoding)
		if r.Header.Get("Content-Encoding") != encoding || decoded(t, r) != want {
			t.Errorf("got headers %v, %d bytes", r.Header, len(r.Text))
		}
		if got := strings.Join(r.Header["Vary"], ", "); got != "Accept-Encoding" {
			t.Errorf("got Vary %q", got)
		}
	}
	s.wantRobotsAsked(t)
	s.wantFile(t, "site/robots.txt", rules)
}

// wantFile says that a file on disk was left alone.
func (s *server) wantFile(t *testing.T, name, want string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(s.Dir, filepath.FromSlash(name)))
	if err != nil || string(got) != want {
		t.Errorf("the file %s has become %.100q (%v)", name, got, err)
	}
}

// TestRobotsUnchanged has what passes as it is, with its own headers.
func TestRobotsUnchanged(t *testing.T) {
	there := "User-agent: *\n\n" + robotsLine
	for _, test := range []struct {
		name, directives, file string
		status                 int
		want                   string
	}{
		{"there", "file_server", there, 200, there},
		{"an upstream that is away", "reverse_proxy 127.0.0.1:{more}", "", 502, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := prepare(t, nil)
			if test.file != "" {
				s.Write(map[string]string{"site/robots.txt": s.Expand(test.file)})
			}
			s.Load(robotsSite(test.directives))
			s.Locs("http://localhost:{port}/sitemap.xml")
			r := s.robots()
			if want := s.Expand(test.want); r.StatusCode != test.status || r.Text != want {
				t.Errorf("got status %d, %.100q, want %d, %.100q", r.StatusCode, r.Text, test.status, want)
			}
			if test.file != "" {
				s.wantFile(t, "site/robots.txt", s.Expand(test.file))
				s.wantRobotsAsked(t)
				if again := s.robots("If-Modified-Since: " + r.Header.Get("Last-Modified")); again.StatusCode != http.StatusNotModified {
					t.Errorf("asked again: got status %d", again.StatusCode)
				}
			}
			s.wantHead(t, "http://localhost:{port}/robots.txt", r)
		})
	}
}

// TestRobotsOfOthers has a robots.txt that is no file.
func TestRobotsOfOthers(t *testing.T) {
	const rules = "User-agent: *\nDisallow: /x\n"
	application := harness.Backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Etag", `"upstream"`)
		w.Header().Set("Last-Modified", "Sun, 01 Jan 2023 00:00:00 GMT")
		w.Header().Set("Content-Type", "text/plain; charset=us-ascii")
		w.Header().Set("Content-Encoding", "gzip") // for which Caddy's own transport asks
		z := gzip.NewWriter(w)
		fmt.Fprint(z, rules)
		z.Close()
	})
	for _, test := range []struct{ name, directives, contentType string }{
		{"reverse_proxy in encode", "encode\n\treverse_proxy " + application, "text/plain; charset=us-ascii"},
		{"templates", "templates\n\tfile_server", "text/plain; charset=utf-8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, robotsSite(test.directives), map[string]string{"site/robots.txt": "User-agent: {{`*`}}\nDisallow: /x\n"})
			s.wantRobots(rules + "\n" + robotsLine)
			r := s.robots()
			if got := r.Header.Get("Content-Type"); got != test.contentType {
				t.Errorf("got the type %q, want %q", got, test.contentType)
			}
			s.wantRobotsAsked(t)
			if r := s.robots("If-Modified-Since: Sun, 01 Jan 2023 00:00:00 GMT"); r.StatusCode != http.StatusOK {
				t.Errorf("conditions on the site's own file: got status %d", r.StatusCode)
			}
		})
	}
}

// TestRobotsTwoSitemaps says that both of two handlers in one site are named.
func TestRobotsTwoSitemaps(t *testing.T) {
	s := start(t, `
http://localhost:{port} {
	root * {dir}/site
	sitemap {
		exclude /docs/*
	}
	sitemap {
		path /docs/map.xml
	}
	file_server
}`, map[string]string{"site/index.html": "home", "site/docs/index.html": "docs"})
	s.WantLocs("http://localhost:{port}/sitemap.xml", "http://localhost:{port}/")
	s.WantLocs("http://localhost:{port}/docs/map.xml", "http://localhost:{port}/docs/")
	s.wantRobots("User-agent: *\nDisallow:\n\nSitemap: http://localhost:{port}/docs/map.xml\n\n" + robotsLine)
	s.wantRobotsAsked(t)
}
