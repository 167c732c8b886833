package caddytest

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func init() {
	caddy.RegisterModule(memoryFS{})
}

// memoryFS is a file system that is none of the operating system's.
type memoryFS struct{ fstest.MapFS }

func (memoryFS) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.fs.memory", New: func() caddy.Module { return new(memoryFS) }}
}

func (m *memoryFS) Provision(caddy.Context) error {
	m.MapFS = fstest.MapFS{}
	for _, name := range []string{"index.html", "www/index.html", "www/about.html", "www/.git/x.html", "other/other.html"} {
		m.MapFS[name] = &fstest.MapFile{Data: []byte(html("in memory: " + name))}
	}
	return nil
}

func (*memoryFS) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	return nil
}

// html is a page of that title.
func html(title string) string { return "<!doctype html><title>" + title + "</title>" }

// wantHonest is the first promise, from outside: every listed URL answers 200.
func (s *server) wantHonest(url string, headers ...string) {
	s.t.Helper()
	for _, loc := range s.locs(url, headers...) {
		if r := s.get(loc, headers...); r.StatusCode != http.StatusOK {
			s.t.Errorf("%s is listed and answers %d", loc, r.StatusCode)
		}
	}
}

// wantNone waits until the first refresh has ended, and wants no sitemap and no
// line in robots.txt: the request went on to the next handler.
func (s *server) wantNone(origin string, headers ...string) {
	s.t.Helper()
	if r := s.get(origin+"/sitemap.xml", headers...); r.StatusCode == http.StatusOK && strings.Contains(r.body, "<urlset") {
		s.t.Errorf("%s has a sitemap: %s", s.expand(origin), r.body)
	}
	if r := s.get(origin+"/robots.txt", headers...); strings.Contains(r.body, "Sitemap:") {
		s.t.Errorf("%s has a line in robots.txt: %s", s.expand(origin), r.body)
	}
}

// twoRoots are the files of most tests here.
var twoRoots = map[string]string{
	"a/index.html":        html("a"),
	"a/one.html":          html("one"),
	"a/docs/index.html":   html("docs"),
	"a/docs/guide.html":   html("guide"),
	"b/index.html":        html("b"),
	"b/two.html":          html("two"),
	"b/docs/install.html": html("install"),
}

// The pages of the two roots, at the front of a site.
var (
	pagesOfA = []string{"/", "/docs/", "/docs/guide.html", "/one.html"}
	pagesOfB = []string{"/", "/docs/install.html", "/two.html"}
)

func below(origin string, paths []string) []string {
	var urls []string
	for _, path := range paths {
		urls = append(urls, origin+path)
	}
	return urls
}

// TestSites is one configuration after the other in which the site's root, host,
// port and folder must be found.
func TestSites(t *testing.T) {
	const origin = "http://localhost:{port}"
	docs := []string{"/docs/", "/docs/guide.html"}
	for name, test := range map[string]struct {
		caddyfile string
		want      map[string][]string // by the URL of the sitemap
		robots    map[string]string   // the line, by the URL of robots.txt
	}{
		"any order": {
			caddyfile: origin + ` {
				file_server
				sitemap
				root * {dir}/a
			}`,
			want:   map[string][]string{origin + "/sitemap.xml": below(origin, pagesOfA)},
			robots: map[string]string{origin + "/robots.txt": "Sitemap: " + origin + "/sitemap.xml"},
		},
		"several sites": {
			caddyfile: `
			http://a.example:{port} {
				root {dir}/a
				sitemap
				file_server
			}
			http://b.example:{port} {
				root * {dir}/b
				file_server
				sitemap
			}
			http://c.example:{more} {
				root {dir}/b
				sitemap
				file_server
			}`,
			want: map[string][]string{
				"http://a.example:{port}/sitemap.xml": below("http://a.example:{port}", pagesOfA),
				"http://b.example:{port}/sitemap.xml": below("http://b.example:{port}", pagesOfB),
				"http://c.example:{more}/sitemap.xml": below("http://c.example:{more}", pagesOfB),
			},
			robots: map[string]string{
				"http://a.example:{port}/robots.txt": "Sitemap: http://a.example:{port}/sitemap.xml",
				"http://b.example:{port}/robots.txt": "Sitemap: http://b.example:{port}/sitemap.xml",
				"http://c.example:{more}/robots.txt": "Sitemap: http://c.example:{more}/sitemap.xml",
			},
		},
		"several hosts of one block": {
			caddyfile: `http://a.example:{port}, http://b.example:{more} {
				root {dir}/{labels.1}
				sitemap
				file_server
			}`,
			want: map[string][]string{
				"http://a.example:{port}/sitemap.xml": below("http://a.example:{port}", pagesOfA),
				"http://b.example:{more}/sitemap.xml": below("http://b.example:{more}", pagesOfB),
			},
		},
		"root inside handle": {
			caddyfile: origin + ` {
				sitemap
				handle {
					root {dir}/a
					file_server
				}
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below(origin, pagesOfA)},
		},
		"a request for the sitemap that is aborted behind the handler": {
			caddyfile: origin + ` {
				route {
					sitemap
					abort /sitemap.xml
					file_server {
						root {dir}/a
					}
				}
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below(origin, pagesOfA)},
		},
		"everything inside handle": {
			caddyfile: origin + ` {
				handle {
					root {dir}/a
					sitemap
					file_server
				}
			}`,
			want:   map[string][]string{origin + "/sitemap.xml": below(origin, pagesOfA)},
			robots: map[string]string{origin + "/robots.txt": "Sitemap: " + origin + "/sitemap.xml"},
		},
		"one of several handles": {
			caddyfile: origin + ` {
				handle /api/* {
					respond "api"
				}
				handle {
					root {dir}/a
					sitemap
					file_server
				}
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below(origin, pagesOfA)},
		},
		"root of the file server": {
			caddyfile: origin + ` {
				sitemap
				file_server {
					root {dir}/a
				}
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below(origin, pagesOfA)},
		},
		"root of the file server inside handle, behind a matcher": {
			caddyfile: origin + ` {
				sitemap
				@pages not path /sitemap.xml
				handle @pages {
					file_server {
						root {dir}/a
					}
				}
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below(origin, pagesOfA)},
		},
		"root of the source": {
			caddyfile: origin + ` {
				root {dir}/b
				sitemap {
					ask off
					files {dir}/a
				}
				file_server
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below(origin, pagesOfA)},
		},
		"root that differs from the file server's": {
			caddyfile: origin + ` {
				root {dir}/b
				sitemap
				file_server {
					root {dir}/a
				}
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below(origin, pagesOfA)},
		},
		"root by placeholder of the host": {
			caddyfile: `http://a:{port}, http://b:{port} {
				root {dir}/{host}
				sitemap
				file_server
			}`,
			want: map[string][]string{
				"http://a:{port}/sitemap.xml": below("http://a:{port}", pagesOfA),
				"http://b:{port}/sitemap.xml": below("http://b:{port}", pagesOfB),
			},
			robots: map[string]string{"http://b:{port}/robots.txt": "Sitemap: http://b:{port}/sitemap.xml"},
		},
		"root by placeholder in a source": {
			caddyfile: `http://a:{port}, http://b:{port} {
				root {dir}/{host}
				sitemap {
					files {dir}/{http.request.host}
				}
				file_server
			}`,
			want: map[string][]string{
				"http://a:{port}/sitemap.xml": below("http://a:{port}", pagesOfA),
				"http://b:{port}/sitemap.xml": below("http://b:{port}", pagesOfB),
			},
		},
		"wildcard": {
			caddyfile: `http://*.example:{port} {
				root {dir}/{labels.1}
				sitemap
				file_server
			}`,
			want: map[string][]string{
				"http://a.example:{port}/sitemap.xml": below("http://a.example:{port}", pagesOfA),
				"http://b.example:{port}/sitemap.xml": below("http://b.example:{port}", pagesOfB),
			},
			robots: map[string]string{"http://a.example:{port}/robots.txt": "Sitemap: http://a.example:{port}/sitemap.xml"},
		},
		"wildcard with host matchers inside": {
			caddyfile: `http://*.example:{port} {
				@a host first.example
				handle @a {
					root {dir}/a
					sitemap
					file_server
				}
				@b host second.example
				handle @b {
					root {dir}/b
					sitemap
					file_server
				}
				handle {
					root {dir}/a/docs
					sitemap
					file_server
				}
			}`,
			want: map[string][]string{
				"http://first.example:{port}/sitemap.xml":  below("http://first.example:{port}", pagesOfA),
				"http://second.example:{port}/sitemap.xml": below("http://second.example:{port}", pagesOfB),
				"http://third.example:{port}/sitemap.xml":  below("http://third.example:{port}", []string{"/", "/guide.html"}),
			},
		},
		"wildcard with host matchers behind": {
			caddyfile: `http://*.example:{port} {
				sitemap
				@a host first.example
				handle @a {
					root {dir}/a
					file_server
				}
				handle /x/* {
					respond "x"
				}
				@b host second.example
				handle @b {
					root {dir}/b
					file_server
				}
			}`,
			want: map[string][]string{
				"http://first.example:{port}/sitemap.xml":  below("http://first.example:{port}", pagesOfA),
				"http://second.example:{port}/sitemap.xml": below("http://second.example:{port}", pagesOfB),
			},
		},
		"a file server behind a proxy": {
			caddyfile: origin + ` {
				root {dir}/a
				sitemap {
					refresh 1s
				}
				reverse_proxy localhost:{more} {
					transport http {
						keepalive off # a connection dialed for what was cancelled stays otherwise
					}
				}
			}
			http://localhost:{more} {
				root {dir}/a
				file_server
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below(origin, pagesOfA)},
		},
		"one root in several handles": {
			caddyfile: origin + ` {
				sitemap
				handle /docs/* {
					root {dir}/a
					file_server
				}
				handle {
					root {dir}/a
					file_server
				}
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below(origin, pagesOfA)},
		},
		"catch-all": {
			caddyfile: `http://:{port} {
				root {dir}/a
				sitemap
				file_server
			}`,
			want: map[string][]string{
				"http://localhost:{port}/sitemap.xml":   below("http://localhost:{port}", pagesOfA),
				"http://127.0.0.1:{port}/sitemap.xml":   below("http://127.0.0.1:{port}", pagesOfA),
				"http://any.example:{port}/sitemap.xml": below("http://any.example:{port}", pagesOfA),
				"http://[::1]:{port}/sitemap.xml":       below("http://[::1]:{port}", pagesOfA),
			},
			robots: map[string]string{
				"http://any.example:{port}/robots.txt":   "Sitemap: http://any.example:{port}/sitemap.xml",
				"http://other.example:{port}/robots.txt": "Sitemap: http://other.example:{port}/sitemap.xml",
			},
		},
		"named file system": {
			caddyfile: `{
				filesystem mem memory
			}
			` + origin + ` {
				fs mem
				root www
				sitemap
				file_server
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below(origin, []string{"/", "/about.html"})},
		},
		"named file system of the file server": {
			caddyfile: `{
				filesystem mem memory
			}
			` + origin + ` {
				sitemap
				file_server {
					fs mem
					root www
				}
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below(origin, []string{"/", "/about.html"})},
		},
		"named file system without a root": {
			caddyfile: `{
				filesystem mem memory
			}
			` + origin + ` {
				fs mem
				sitemap
				file_server
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below(origin, []string{"/", "/other/other.html", "/www/", "/www/about.html"})},
		},
		"handle_path": {
			caddyfile: origin + ` {
				handle_path /docs/* {
					root {dir}/a
					sitemap
					file_server
				}
			}`,
			want: map[string][]string{origin + "/docs/sitemap.xml": below(origin+"/docs", pagesOfA)},
		},
		"handle_path inside handle_path": {
			caddyfile: origin + ` {
				handle_path /x/* {
					handle_path /y/* {
						root {dir}/a
						sitemap
						file_server
					}
				}
			}`,
			want: map[string][]string{origin + "/x/y/sitemap.xml": below(origin+"/x/y", pagesOfA)},
		},
		"handle_path of a name that URLs escape": {
			caddyfile: origin + ` {
				handle_path "/my docs/*" {
					root {dir}/b
					sitemap
					file_server
				}
			}`,
			want: map[string][]string{origin + "/my%20docs/sitemap.xml": below(origin+"/my%20docs", pagesOfB)},
		},
		"a handle_path beside the site": {
			caddyfile: origin + ` {
				handle_path /other/* {
					root {dir}/b
					sitemap
					file_server
				}
				handle {
					root {dir}/a
					sitemap
					file_server
				}
			}`,
			want: map[string][]string{
				origin + "/sitemap.xml":       below(origin, pagesOfA),
				origin + "/other/sitemap.xml": below(origin+"/other", pagesOfB),
			},
			robots: map[string]string{origin + "/robots.txt": "Sitemap: " + origin + "/sitemap.xml"},
		},
		"route": {
			caddyfile: origin + ` {
				route {
					root {dir}/a
					sitemap
					file_server
				}
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below(origin, pagesOfA)},
		},
		"invoke": {
			caddyfile: `
			&(site) {
				route {
					sitemap
					file_server
				}
			}
			http://a.example:{port} {
				root {dir}/a
				invoke site
			}
			http://b.example:{port} {
				root {dir}/b
				invoke site
			}`,
			want: map[string][]string{
				"http://a.example:{port}/sitemap.xml": below("http://a.example:{port}", pagesOfA),
				"http://b.example:{port}/sitemap.xml": below("http://b.example:{port}", pagesOfB),
			},
		},
		"invoke inside handle_path": {
			caddyfile: `
			&(site) {
				route {
					root {dir}/b
					sitemap
					file_server
				}
			}
			` + origin + ` {
				handle_path /v2/* {
					invoke site
				}
				handle {
					invoke site
				}
			}`,
			want: map[string][]string{
				origin + "/sitemap.xml":    below(origin, pagesOfB),
				origin + "/v2/sitemap.xml": below(origin+"/v2", pagesOfB),
			},
		},
		"https on an odd port": {
			caddyfile: `https://localhost:{tls} {
				root {dir}/a
				sitemap
				file_server
			}`,
			want:   map[string][]string{"https://localhost:{tls}/sitemap.xml": below("https://localhost:{tls}", pagesOfA)},
			robots: map[string]string{"https://localhost:{tls}/robots.txt": "Sitemap: https://localhost:{tls}/sitemap.xml"},
		},
		"base_url": {
			caddyfile: `http://:{port} {
				root {dir}/a
				sitemap {
					base_url https://example.com
				}
				file_server
			}`,
			want: map[string][]string{
				"http://localhost:{port}/sitemap.xml":    below("https://example.com", pagesOfA),
				"http://evil.example:{port}/sitemap.xml": below("https://example.com", pagesOfA),
			},
			robots: map[string]string{"http://evil.example:{port}/robots.txt": "Sitemap: https://example.com/sitemap.xml"},
		},
		"base_url with a host matcher of another name": {
			caddyfile: `http://inside.lan:{port} {
				root {dir}/a
				sitemap {
					base_url https://example.com
				}
				file_server
			}`,
			want:   map[string][]string{"http://inside.lan:{port}/sitemap.xml": below("https://example.com", pagesOfA)},
			robots: map[string]string{"http://inside.lan:{port}/robots.txt": "Sitemap: https://example.com/sitemap.xml"},
		},
		"base_url with a host pattern of another name": {
			caddyfile: `http://*.inside.lan:{port} {
				root {dir}/a
				sitemap {
					base_url https://example.com
				}
				file_server
			}`,
			want: map[string][]string{"http://any.inside.lan:{port}/sitemap.xml": below("https://example.com", pagesOfA)},
		},
		"base_url with a port": {
			caddyfile: origin + ` {
				root {dir}/a
				sitemap {
					base_url https://example.com:8443
				}
				file_server
			}`,
			want: map[string][]string{origin + "/sitemap.xml": below("https://example.com:8443", pagesOfA)},
		},
		"base_url with a folder": {
			caddyfile: origin + ` {
				root {dir}/a
				sitemap {
					base_url https://example.com/docs
				}
				file_server
			}`,
			want:   map[string][]string{origin + "/docs/sitemap.xml": below("https://example.com", docs)},
			robots: map[string]string{origin + "/robots.txt": "Sitemap: https://example.com/docs/sitemap.xml"},
		},
		"base_url with a folder, and a path in it": {
			caddyfile: origin + ` {
				root {dir}/a
				sitemap {
					base_url https://example.com/docs
					path /docs/map.xml
				}
				file_server
			}`,
			want: map[string][]string{origin + "/docs/map.xml": below("https://example.com", docs)},
		},
		"base_url inside handle_path": {
			caddyfile: origin + ` {
				handle_path /docs/* {
					root {dir}/a
					sitemap {
						base_url https://example.com
					}
					file_server
				}
			}`,
			want: map[string][]string{origin + "/docs/sitemap.xml": below("https://example.com/docs", pagesOfA)},
		},
		"base_url with a folder inside handle_path": {
			caddyfile: origin + ` {
				handle_path /docs/* {
					root {dir}/a
					sitemap {
						base_url https://example.com/docs
					}
					file_server
				}
			}`,
			want: map[string][]string{origin + "/docs/sitemap.xml": below("https://example.com/docs", pagesOfA)},
		},
		"base_url with a folder that a proxy calls otherwise, inside handle_path": {
			caddyfile: origin + ` {
				handle_path /docs/* {
					root {dir}/a
					sitemap {
						base_url https://example.com/handbook
					}
					file_server
				}
			}`,
			want: map[string][]string{origin + "/docs/sitemap.xml": below("https://example.com/handbook", pagesOfA)},
		},
		"path in a folder": {
			caddyfile: origin + ` {
				root {dir}/a
				sitemap {
					path /docs/pages.xml
				}
				file_server
			}`,
			want:   map[string][]string{origin + "/docs/pages.xml": below(origin, docs)},
			robots: map[string]string{origin + "/robots.txt": "Sitemap: " + origin + "/docs/pages.xml"},
		},
		"try_files led the request elsewhere": {
			caddyfile: origin + ` {
				root {dir}/a
				try_files {path} /index.html
				sitemap
				file_server
			}`,
			want:   map[string][]string{origin + "/sitemap.xml": below(origin, pagesOfA)},
			robots: map[string]string{origin + "/robots.txt": "Sitemap: " + origin + "/sitemap.xml"},
		},
		"try_files inside handle_path": {
			caddyfile: origin + ` {
				handle_path /docs/* {
					root {dir}/a
					try_files {path} /index.html
					sitemap
					file_server
				}
			}`,
			want: map[string][]string{origin + "/docs/sitemap.xml": below(origin+"/docs", pagesOfA)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, test.caddyfile, twoRoots)
			for url, want := range test.want {
				s.wantLocs(url, want...)
				if !strings.Contains(test.caddyfile, "base_url") && name != "root of the source" {
					s.wantHonest(url)
				}
			}
			for url, want := range test.robots {
				if r := s.get(url); !strings.Contains(r.body, s.expand(want)+"\n") {
					t.Errorf("%s: got %q, want the line %q", s.expand(url), r.body, s.expand(want))
				}
			}
		})
	}
}

// TestSitesJSON is a configuration that no Caddyfile was made into.
func TestSitesJSON(t *testing.T) {
	s := prepare(t, twoRoots)
	err := s.loadJSON(`{"apps": {"http": {"servers": {
		"one": {
			"listen": [":{port}"], "automatic_https": {"disable": true},
			"routes": [
				{
					"match": [{"host": ["a.example"]}],
					"handle": [{"handler": "subroute", "routes": [
						{"handle": [{"handler": "vars", "root": "{dir}/a"}]},
						{"handle": [{"handler": "sitemap"}]},
						{"handle": [{"handler": "file_server"}]}
					]}],
					"terminal": true
				},
				{"handle": [{"handler": "sitemap"}, {"handler": "file_server", "root": "{dir}/b"}]}
			]
		},
		"two": {
			"listen": ["127.0.0.1:{more}"], "automatic_https": {"disable": true},
			"routes": [{"handle": [
				{"handler": "sitemap", "ask": {"off": true}, "sources": [{"source": "files", "root": "{dir}/a"}, {"source": "urls", "urls": ["/more"]}]}
			]}]
		}
	}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	s.wantLocs("http://a.example:{port}/sitemap.xml", below("http://a.example:{port}", pagesOfA)...)
	s.wantLocs("http://other.example:{port}/sitemap.xml", below("http://other.example:{port}", pagesOfB)...)
	s.wantLocs("http://127.0.0.1:{more}/sitemap.xml", below("http://127.0.0.1:{more}", []string{"/", "/docs/", "/docs/guide.html", "/more", "/one.html"})...)
}

// rawStatus sends a request as it stands and returns the status line's number.
func (s *server) rawStatus(request string) string {
	s.t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+s.port)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte(request)); err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	_, status, _ := strings.Cut(line, " ")
	status, _, _ = strings.Cut(status, " ")
	return status
}

// TestSitesHostHeaders is what a catch-all makes of the visitors' word.
func TestSitesHostHeaders(t *testing.T) {
	s := start(t, `http://:{port} {
		root {dir}/a
		sitemap
		file_server
	}`, twoRoots)
	for _, host := range []string{"", "a..b", ".", "-a.example", "a-.example", "a.example:1:2", "[::1", "[fe80::1%25eth0]", "a/b", "a b", "a@b", "<b>", strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 127) + "abc"} {
		if got := s.rawStatus("GET /sitemap.xml HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"); got != "400" {
			t.Errorf("Host %q: status %s, want 400", host, got)
		}
	}
	if got := s.rawStatus("GET /sitemap.xml HTTP/1.0\r\n\r\n"); got != "400" {
		t.Errorf("no Host: status %s, want 400", got)
	}
	if got := s.rawStatus("GET /sitemap.xml HTTP/1.1\r\nHost: " + strings.Repeat("a", 5000) + "\r\n\r\n"); got != "400" {
		t.Errorf("a long Host: status %s, want 400", got)
	}
	// Everything else is served on, and has no line of ours.
	if got := s.rawStatus("GET / HTTP/1.1\r\nHost: a..b\r\nConnection: close\r\n\r\n"); got != "200" {
		t.Errorf("a page with an invalid Host: status %s, want 200", got)
	}
	if r := s.get("http://localhost:{port}/robots.txt", "Host: a..b"); r.StatusCode != http.StatusNotFound {
		t.Errorf("robots.txt with an invalid Host: status %d, want the file server's 404", r.StatusCode)
	}
	for host, want := range map[string]string{
		"shop.example:{port}":   "http://shop.example:{port}",
		"SHOP.Example.:{port}":  "http://shop.example:{port}",
		"shop.example":          "http://shop.example:{port}", // what a visitor says of the port is no matter
		"shop.example:99":       "http://shop.example:{port}",
		"some_name.example":     "http://some_name.example:{port}",
		"xn--bcher-kva.example": "http://xn--bcher-kva.example:{port}",
		"192.0.2.7":             "http://192.0.2.7:{port}",
		"[2001:DB8:0::1]":       "http://[2001:db8::1]:{port}",
	} {
		got := s.locs("http://localhost:{port}/sitemap.xml", "Host: "+s.expand(host))
		if want := strings.Split(s.expand(strings.Join(below(want, pagesOfA), " ")), " "); !slices.Equal(got, want) {
			t.Errorf("Host %s: got %q, want %q", host, got, want)
		}
	}
}

// TestSitesManyHosts is a flood of Host headers beside a site that is named.
func TestSitesManyHosts(t *testing.T) {
	s := start(t, `
	http://:{port} {
		root {dir}/b
		sitemap
		file_server
	}
	http://named.example:{port} {
		root {dir}/a
		sitemap
		file_server
	}`, twoRoots)
	const hosts, bound = 1100, 1000
	statusOf := func(i int) int {
		return s.get("http://localhost:{port}/sitemap.xml", fmt.Sprintf("Host: h%d.example", i)).StatusCode
	}
	var served, refused atomic.Int64
	var group sync.WaitGroup
	next := make(chan int)
	for range 8 {
		group.Go(func() {
			for i := range next {
				switch status := statusOf(i); status {
				case http.StatusOK:
					served.Add(1)
				case http.StatusServiceUnavailable:
					refused.Add(1)
				default:
					t.Errorf("host %d: status %d", i, status)
				}
				if i%100 == 0 {
					if r := s.get("http://named.example:{port}/sitemap.xml"); r.StatusCode != http.StatusOK {
						t.Errorf("the named site after %d hosts: status %d", i, r.StatusCode)
					}
				}
			}
		})
	}
	for i := range hosts {
		next <- i
	}
	close(next)
	group.Wait()
	if served.Load() != bound || refused.Load() != hosts-bound {
		t.Errorf("%d hosts are served and %d refused, want %d and %d", served.Load(), refused.Load(), bound, hosts-bound)
	}
	// Those that are in stay in, and a new one gets no more than its pages.
	if status := statusOf(0); status != http.StatusOK {
		t.Errorf("the first host: status %d, want 200", status)
	}
	if r := s.get("http://localhost:{port}/sitemap.xml", "Host: one-more.example"); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("one more host: status %d, Retry-After %q, want 503 and when", r.StatusCode, r.Header.Get("Retry-After"))
	}
	if r := s.get("http://localhost:{port}/two.html", "Host: one-more.example"); r.StatusCode != http.StatusOK {
		t.Errorf("a page of one more host: status %d, want 200", r.StatusCode)
	}
	if r := s.get("http://localhost:{port}/robots.txt", "Host: one-more.example"); r.StatusCode != http.StatusNotFound {
		t.Errorf("robots.txt of one more host: status %d, want the file server's 404", r.StatusCode)
	}
	s.wantLocs("http://named.example:{port}/sitemap.xml", below("http://named.example:{port}", pagesOfA)...)
	if lines := s.logLines("too many sites are known by their visitors' Host headers", `"level":"warn"`); len(lines) == 0 || len(lines) > 5 {
		t.Errorf("%d log lines say that there are too many sites, want a few", len(lines))
	}
}

// TestSitesManyNames is more hosts in a configuration than are looked up at the
// start.
func TestSitesManyNames(t *testing.T) {
	var addresses []string
	for i := range 120 {
		addresses = append(addresses, fmt.Sprintf("http://h%d.example:{port}", i))
	}
	s := start(t, strings.Join(addresses, ", ")+` {
		root {dir}/b
		sitemap
		file_server
	}`, twoRoots)
	for _, address := range addresses {
		s.wantLocs(address+"/sitemap.xml", below(address, pagesOfB)...)
	}
	s.logged("many hosts are named")
}

// TestSitesBehindProxy is a proxy in front that says who was asked, and how.
func TestSitesBehindProxy(t *testing.T) {
	const proto, host = "X-Forwarded-Proto: https", "X-Forwarded-Host: shop.example"
	for name, test := range map[string]struct {
		trusted string
		address string
		headers []string
		want    string
	}{
		"both":                {"127.0.0.0/8", "http://:{port}", []string{proto, host}, "https://shop.example"},
		"scheme alone":        {"127.0.0.0/8", "http://:{port}", []string{proto, "Host: shop.example"}, "https://shop.example"},
		"host alone":          {"127.0.0.0/8", "http://:{port}", []string{host}, "http://shop.example"},
		"host with a port":    {"127.0.0.0/8", "http://:{port}", []string{proto, host + ":8443"}, "https://shop.example:8443"},
		"the scheme's port":   {"127.0.0.0/8", "http://:{port}", []string{proto, host + ":443"}, "https://shop.example"},
		"several proxies":     {"127.0.0.0/8", "http://:{port}", []string{proto + ", http", host + ", inside.lan"}, "https://shop.example"},
		"no scheme":           {"127.0.0.0/8", "http://:{port}", []string{"X-Forwarded-Proto: gopher", host}, "http://shop.example"},
		"nothing said":        {"127.0.0.0/8", "http://:{port}", nil, "http://localhost:{port}"},
		"another name inside": {"127.0.0.0/8", "http://localhost:{port}", []string{proto, host}, "https://shop.example"},
		"a pattern inside":    {"127.0.0.0/8", "http://*.lan:{port}", []string{proto, host, "Host: inside.lan"}, "https://shop.example"},
		"not trusted":         {"192.0.2.0/24", "http://:{port}", []string{proto, host}, "http://localhost:{port}"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, `{
				servers {
					trusted_proxies static `+test.trusted+`
				}
			}
			`+test.address+` {
				root {dir}/a
				sitemap
				file_server
			}`, twoRoots)
			want := strings.Split(s.expand(strings.Join(below(test.want, pagesOfA), " ")), " ")
			if got := s.locs("http://localhost:{port}/sitemap.xml", test.headers...); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			line := s.expand("Sitemap: " + test.want + "/sitemap.xml")
			if r := s.get("http://localhost:{port}/robots.txt", test.headers...); !strings.Contains(r.body, line) {
				t.Errorf("robots.txt is %q, want %q in it", r.body, line)
			}
		})
	}
	t.Run("no host", func(t *testing.T) {
		s := start(t, `{
			servers {
				trusted_proxies static 127.0.0.0/8
			}
		}
		http://:{port} {
			root {dir}/a
			sitemap
			file_server
		}`, twoRoots)
		if r := s.get("http://localhost:{port}/sitemap.xml", "X-Forwarded-Host: a..b"); r.StatusCode != http.StatusBadRequest {
			t.Errorf("status %d, want 400", r.StatusCode)
		}
	})
}

// TestSitesThatAreOne is several addresses of one block of which one is the site's.
func TestSitesThatAreOne(t *testing.T) {
	canonical := func(url string) map[string]string {
		return map[string]string{"site/index.html": `<!doctype html><title>home</title><link rel="canonical" href="` + url + `">`}
	}
	for name, test := range map[string]struct {
		addresses string
		files     map[string]string
		option    string
		want      string
		others    []string
	}{
		"apex": {
			addresses: "http://shop.example:{port}, http://www.shop.example:{port}",
			files:     map[string]string{"site/index.html": html("home")},
			want:      "http://shop.example:{port}",
			others:    []string{"http://www.shop.example:{port}"},
		},
		"the canonical one": {
			addresses: "http://shop.example:{port}, http://www.shop.example:{port}",
			files:     canonical("http://WWW.Shop.example:{port}/"),
			want:      "http://www.shop.example:{port}",
			others:    []string{"http://shop.example:{port}"},
		},
		"the canonical one, the apex": {
			addresses: "http://www.shop.example:{port}, http://shop.example:{port}",
			files:     canonical("http://shop.example:{port}/"),
			want:      "http://shop.example:{port}",
			others:    []string{"http://www.shop.example:{port}"},
		},
		"a canonical one elsewhere": {
			addresses: "http://shop.example:{port}, http://www.shop.example:{port}",
			files:     canonical("https://elsewhere.example/"),
			option:    "canonical ignore",
			want:      "http://shop.example:{port}",
			others:    []string{"http://www.shop.example:{port}"},
		},
		"https": {
			addresses: "http://localhost:{port}, https://localhost:{tls}",
			files:     map[string]string{"site/index.html": html("home")},
			want:      "https://localhost:{tls}",
			others:    []string{"http://localhost:{port}"},
		},
		"https and apex": {
			addresses: "http://www.shop.example:{port}, https://www.shop.example:{tls}, http://shop.example:{port}, https://shop.example:{tls}",
			files:     map[string]string{"site/index.html": html("home")},
			want:      "https://shop.example:{tls}",
			others:    []string{"http://shop.example:{port}", "http://www.shop.example:{port}", "https://www.shop.example:{tls}"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			for file, content := range test.files {
				s.write(map[string]string{file: s.expand(content)})
			}
			if err := s.load(test.addresses + ` {
				root {dir}/site
				sitemap {
					` + test.option + `
				}
				file_server
			}`); err != nil {
				t.Fatal(err)
			}
			s.wantLocs(test.want+"/sitemap.xml", test.want+"/")
			line := "Sitemap: " + s.expand(test.want) + "/sitemap.xml\n"
			if r := s.get(test.want + "/robots.txt"); !strings.Contains(r.body, line) {
				t.Errorf("robots.txt is %q, want %q in it", r.body, line)
			}
			for _, other := range test.others {
				for _, document := range []string{"/sitemap.xml", "/sitemap.xml.gz", "/sitemap.txt"} {
					r := s.get(other + document)
					if want := s.expand(test.want) + document; r.StatusCode != http.StatusPermanentRedirect || r.Header.Get("Location") != want {
						t.Errorf("%s: status %d to %q, want 308 to %q", s.expand(other)+document, r.StatusCode, r.Header.Get("Location"), want)
					}
				}
				if r := s.get(other + "/robots.txt"); !strings.Contains(r.body, line) {
					t.Errorf("%s/robots.txt is %q, want %q in it", s.expand(other), r.body, line)
				}
			}
		})
	}
}

// TestSitesThatAreOneBehindProxy is an apex and its www. whose https ends at a proxy.
func TestSitesThatAreOneBehindProxy(t *testing.T) {
	const block = `http://shop.example.com:{port}, http://www.shop.example.com:{port} {
		root {dir}/a
		sitemap
		file_server
	}`
	const trusting = `{
		servers {
			trusted_proxies static 127.0.0.0/8
		}
	}
	`
	const direct, https, warning = "http://www.shop.example.com:{port}/sitemap.xml", "X-Forwarded-Proto: https", "lists http URLs"
	s := start(t, trusting+block, twoRoots)
	s.eventually(func() bool { return s.get(direct).StatusCode == http.StatusPermanentRedirect }, s.sitemapLog)
	for _, document := range []string{"/sitemap.xml", "/sitemap.txt"} {
		r := s.get("http://localhost:{port}"+document, https, "Host: www.shop.example.com")
		if want := "https://shop.example.com" + document; r.StatusCode != http.StatusPermanentRedirect || r.Header.Get("Location") != want {
			t.Errorf("%s: status %d to %q, want 308 to %q", document, r.StatusCode, r.Header.Get("Location"), want)
		}
	}
	if got, want := s.locs("http://localhost:{port}/sitemap.xml", https, "Host: shop.example.com"), below("https://shop.example.com", pagesOfA); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, host := range []string{"shop.example.com", "www.shop.example.com"} {
		if r := s.get("http://localhost:{port}/robots.txt", https, "Host: "+host); !strings.Contains(r.body, "Sitemap: https://shop.example.com/sitemap.xml\n") {
			t.Errorf("%s: robots.txt is %q", host, r.body)
		}
	}
	if lines := s.logLines(warning); len(lines) != 0 {
		t.Errorf("with trusted_proxies the log says: %s", lines[0])
	}
	s.reload(block)
	s.logged(warning, "trusted_proxies")
}

// TestSitesApart is an apex and a www that are two sites.
func TestSitesApart(t *testing.T) {
	s := start(t, `
	http://shop.example:{port} {
		root {dir}/a
		sitemap
		file_server
	}
	http://www.shop.example:{port} {
		root {dir}/b
		sitemap
		file_server
	}`, twoRoots)
	s.wantLocs("http://shop.example:{port}/sitemap.xml", below("http://shop.example:{port}", pagesOfA)...)
	s.wantLocs("http://www.shop.example:{port}/sitemap.xml", below("http://www.shop.example:{port}", pagesOfB)...)
}

// TestSitesOfNoOther: what a visitor writes before the sitemap's name makes no site.
func TestSitesOfNoOther(t *testing.T) {
	s := start(t, `http://localhost:{port} {
		rewrite /old/sitemap.xml /sitemap.xml
		@any path_regexp any ^/any-(.+)/sitemap.xml$
		rewrite @any /sitemap.xml
		uri /x/* strip_prefix /x
		handle_path /docs/* {
			root {dir}/b
			sitemap
			file_server
		}
		handle {
			root {dir}/a
			sitemap
			file_server
		}
	}`, twoRoots)
	const origin = "http://localhost:{port}"
	front := []string{"/", "/docs/", "/one.html"} // what answers for /docs/guide.html has no such file
	for path, want := range map[string][]string{
		"/sitemap.xml":           below(origin, front),
		"/old/sitemap.xml":       below(origin, front),
		"/any-one/sitemap.xml":   below(origin, front),
		"/any-other/sitemap.xml": below(origin, front),
		"/x/sitemap.xml":         below(origin, front),
		"/docs/sitemap.xml":      below(origin+"/docs", pagesOfB),
		"/DOCS/sitemap.xml":      below(origin+"/docs", pagesOfB),
		"//docs/sitemap.xml":     below(origin+"/docs", pagesOfB),
		"//docs///sitemap.xml":   below(origin+"/docs", pagesOfB),
	} {
		s.wantLocs(origin+path, want...)
	}
	if lines := s.logLines("sitemap refreshed"); len(lines) != 2 {
		t.Errorf("%d sites were refreshed, want 2:\n%s", len(lines), strings.Join(lines, ""))
	}
}
