package caddytest

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
		m.MapFS[name] = &fstest.MapFile{Data: []byte("in memory: " + name)}
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
				{"handler": "sitemap", "sources": [{"source": "files", "root": "{dir}/a"}, {"source": "urls", "urls": ["/more"]}]}
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
			files:     canonical("https://WWW.Shop.example/"),
			want:      "http://www.shop.example:{port}",
			others:    []string{"http://shop.example:{port}"},
		},
		"the canonical one, the apex": {
			addresses: "http://www.shop.example:{port}, http://shop.example:{port}",
			files:     canonical("https://shop.example/"),
			want:      "http://shop.example:{port}",
			others:    []string{"http://www.shop.example:{port}"},
		},
		"a canonical one elsewhere": {
			addresses: "http://shop.example:{port}, http://www.shop.example:{port}",
			files:     canonical("https://elsewhere.example/"),
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
			s := start(t, test.addresses+` {
				root {dir}/site
				sitemap
				file_server
			}`, test.files)
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

// loadApp loads a Caddyfile in which {app} is the address of an application, which
// ends before the server does.
func (s *server) loadApp(caddyfile string, handler http.HandlerFunc) {
	s.t.Helper()
	app := httptest.NewServer(handler)
	s.t.Cleanup(func() {
		app.CloseClientConnections()
		app.Close()
	})
	if err := s.load(strings.ReplaceAll(caddyfile, "{app}", app.Listener.Addr().String())); err != nil {
		s.t.Fatal(err)
	}
}

// TestSitesNotPublic is what a stranger may not see.
func TestSitesNotPublic(t *testing.T) {
	const password = "$2a$04$aPZhuYXBWNJlPRSWPfCZFegvKwmNlOEz6SpV1vpOSgLLGWPTqRZhW"
	for name, test := range map[string]struct {
		caddyfile string
		log       string
	}{
		"basic_auth": {`
			basic_auth {
				user ` + password + `
			}
			root {dir}/a
			sitemap
			file_server`, "the site refuses strangers"},
		"basic_auth inside handle, beside the handler": {`
			root {dir}/a
			sitemap
			basic_auth / {
				user ` + password + `
			}
			file_server`, "the site refuses strangers"},
		"403": {`
			root {dir}/a
			sitemap
			respond / 403
			file_server`, "the site refuses strangers"},
		"remote_ip": {`
			@inside remote_ip 127.0.0.1 private_ranges
			handle @inside {
				root {dir}/a
				sitemap
				file_server
			}
			respond 403`, "the site refuses strangers"},
		"remote_ip, else nothing": {`
			@inside remote_ip 127.0.0.1 private_ranges
			handle @inside {
				root {dir}/a
				sitemap
				file_server
			}
			respond 404`, "requests for the sitemap do not reach its handler"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, "http://localhost:{port} {\n"+test.caddyfile+"\n}", twoRoots)
			s.logged(test.log)
			s.wantNone("http://localhost:{port}", "Authorization: Basic dXNlcjpwYXNz")
			s.wantNone("http://localhost:{port}")
		})
	}
}

// TestSitesNotPublicOnce is that the log does not fill with it.
func TestSitesNotPublicOnce(t *testing.T) {
	var asked atomic.Int64
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			asked.Add(1)
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	s := prepare(t, twoRoots)
	s.loadApp(`http://localhost:{port} {
		sitemap {
			refresh 1s
			files {dir}/a
		}
		reverse_proxy {app}
	}`, app)
	s.eventually(func() bool { return asked.Load() >= 3 }, func() string { return "the site is not looked at again" })
	if lines := s.logLines("the site refuses strangers", `"level":"info"`, `"status":401`); len(lines) != 1 {
		t.Errorf("%d log lines say so, want one", len(lines))
	}
}

// TestSitesPartlyPublic is a site of which a part alone wants a password.
func TestSitesPartlyPublic(t *testing.T) {
	s := start(t, `http://localhost:{port} {
		basic_auth /docs/* {
			user $2a$04$aPZhuYXBWNJlPRSWPfCZFegvKwmNlOEz6SpV1vpOSgLLGWPTqRZhW
		}
		root {dir}/a
		sitemap {
			omit /docs/*
		}
		file_server
	}`, twoRoots)
	s.wantLocs("http://localhost:{port}/sitemap.xml", "http://localhost:{port}/", "http://localhost:{port}/one.html")
}

// TestSitesOwnSitemap is that nothing is taken away from a site.
func TestSitesOwnSitemap(t *testing.T) {
	const own = `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://app.example/own</loc></url></urlset>`
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/sitemap.xml":
			_, _ = w.Write([]byte(own))
		case "/robots.txt":
			_, _ = w.Write([]byte("User-agent: *\n"))
		default:
			_, _ = w.Write([]byte("the application"))
		}
	})
	for name, test := range map[string]struct{ caddyfile, log string }{
		"of an application": {`
			sitemap
			reverse_proxy {app}`, "no file root"},
		"of an application, beside a root without pages": {`
			root {dir}/empty
			sitemap
			reverse_proxy {app}`, "no page to list"},
		"in the root": {`
			root {dir}/own
			sitemap
			file_server`, "no page to list"},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, map[string]string{
				"empty/":          "",
				"own/sitemap.xml": own,
				"own/robots.txt":  "User-agent: *\n",
			})
			s.loadApp("http://localhost:{port} {\n"+test.caddyfile+"\n}", app)
			s.logged(test.log)
			if r := s.get("http://localhost:{port}/sitemap.xml"); r.body != own {
				t.Errorf("the sitemap is %q, want the site's own", r.body)
			}
			if r := s.get("http://localhost:{port}/robots.txt"); r.body != "User-agent: *\n" {
				t.Errorf("robots.txt is %q, want the site's own", r.body)
			}
			if r := s.get("http://localhost:{port}/sitemap-000000000000.xml"); r.StatusCode == http.StatusOK && strings.Contains(r.body, "<urlset") {
				t.Errorf("a shard's name is answered with %q", r.body)
			}
		})
	}
}

// TestSitesBeyondOurNames is that only exact document names are ours.
func TestSitesBeyondOurNames(t *testing.T) {
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("app " + r.URL.Path)) })
	s := prepare(t, twoRoots)
	s.loadApp(`http://localhost:{port} {
		sitemap {
			files {dir}/a
		}
		reverse_proxy {app}
	}`, app)
	s.wantLocs("http://localhost:{port}/sitemap.xml", below("http://localhost:{port}", pagesOfA)...)
	for _, path := range []string{"/sitemap-1.xml", "/sitemap-000000000000.xml", "/sitemap.xml.br", "/sitemap.XML", "/x/sitemap.xml", "/sitemap-news.xml", "/sitemap.xml/"} {
		if r := s.get("http://localhost:{port}" + path); r.body != "app "+path {
			t.Errorf("%s: %q, want the application's answer", path, r.body)
		}
	}
}

// TestSitesBrokenUpstream is asking what aborts, breaks off, hangs or never ends.
func TestSitesBrokenUpstream(t *testing.T) {
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			return
		}
		switch r.URL.Path {
		case "/partial":
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("/from-a-list-that-broke-off\n"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/dropped":
			panic(http.ErrAbortHandler)
		default:
			// Without an end, but for those that hang up.
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}
	})
	s := prepare(t, twoRoots)
	s.loadApp(`http://localhost:{port} {
		sitemap {
			files {dir}/a
			urls /aborted /partial /dropped /refused /gone /endless
		}
		abort /aborted
		respond /gone 410
		reverse_proxy /refused 127.0.0.1:1
		reverse_proxy {app}
	}`, app)
	s.eventually(func() bool {
		locs, err := s.tryLocs("http://localhost:{port}/sitemap.xml")
		return err == nil && slices.Contains(locs, s.expand("http://localhost:{port}/one.html"))
	}, func() string {
		return fmt.Sprint("no sitemap: ", s.get("http://localhost:{port}/sitemap.xml").body, "\n", s.sitemapLog())
	})
	line := s.logged("gathering pages failed")
	for _, list := range []string{"/aborted", "/partial", "/dropped", "/refused", "status 410", "/endless has more than"} {
		if !strings.Contains(line, list) {
			t.Errorf("the log line says nothing of %s: %s", list, line)
		}
	}
	if locs := s.locs("http://localhost:{port}/sitemap.xml"); slices.Contains(locs, s.expand("http://localhost:{port}/from-a-list-that-broke-off")) {
		t.Errorf("%q has a page of a list that broke off", locs)
	}
}

// TestSitesStopWhileAsking is that Stop does not wait for a site that hangs.
func TestSitesStopWhileAsking(t *testing.T) {
	asked, left := make(chan struct{}, 10), make(chan struct{}, 10)
	app := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	})
	s := prepare(t, nil)
	s.loadApp(`http://localhost:{port} {
		sitemap {
			urls /list
		}
		reverse_proxy {app}
	}`, app)
	<-asked
	begun := time.Now()
	if err := s.load("http://localhost:{port} {\n\trespond ok\n}"); err != nil {
		t.Fatal(err)
	}
	<-left
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	}
}

// TestSitesAsStranger is what an application sees of an ask, and the access log does
// not.
func TestSitesAsStranger(t *testing.T) {
	var mu sync.Mutex
	var seen []*http.Request
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Clone(r.Context()))
		_, _ = w.Write([]byte("/listed\n"))
	})
	s := prepare(t, map[string]string{"x/": ""})
	s.loadApp(`https://localhost:{tls} {
		log {
			output file {dir}/access.log {
				roll_disabled
			}
			format json
		}
		sitemap {
			urls /list?all=1
		}
		reverse_proxy {app}
	}`, app)
	s.wantLocs("https://localhost:{tls}/sitemap.xml", "https://localhost:{tls}/listed")
	mu.Lock()
	defer mu.Unlock()
	lists := 0
	for _, r := range seen {
		if r.URL.RequestURI() == "/list?all=1" {
			lists++
		}
		if got := r.Header.Get("X-Forwarded-For"); got != "192.0.2.1" {
			t.Errorf("%s comes from %q, want 192.0.2.1", r.URL, got)
		}
		if got := r.Header.Get("X-Forwarded-Proto"); got != "https" {
			t.Errorf("%s comes by %q, want https", r.URL, got)
		}
		if got := r.Header.Get("X-Forwarded-Host"); got != s.expand("localhost:{tls}") {
			t.Errorf("%s comes for %q, want %q", r.URL, got, s.expand("localhost:{tls}"))
		}
		if got := r.UserAgent(); !strings.Contains(got, "bot") || !strings.Contains(got, "caddy-sitemap") {
			t.Errorf("%s comes with User-Agent %q", r.URL, got)
		}
		if r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s comes with credentials: %v", r.URL, r.Header)
		}
	}
	if lists == 0 {
		t.Errorf("the list was not asked for: %v", seen)
	}
	log, err := os.ReadFile(filepath.Join(s.dir, "access.log"))
	if err != nil || !strings.Contains(string(log), "/sitemap.xml") {
		t.Fatalf("the access log is %q (%v), want the test's own requests", log, err)
	}
	for line := range strings.Lines(string(log)) {
		if !strings.Contains(line, `"remote_ip":"127.0.0.1"`) || !strings.Contains(line, `"uri":"/sitemap.xml"`) {
			t.Errorf("the access log has %s", line)
		}
	}
}

// TestSitesWarnings is one configuration after the other whose owner should know
// something, and one line that says what.
func TestSitesWarnings(t *testing.T) {
	for name, test := range map[string]struct {
		caddyfile string
		url       string              // asked for first, unless "none"
		want      []string            // words of the warning
		never     string              // words that no line has
		locs      map[string][]string // by the URL of the sitemap
	}{
		"no root": {
			caddyfile: `http://localhost:{port} {
				sitemap
				file_server
			}`,
			want: []string{"no file root", "'root'", "'files <root>'"},
		},
		"no root on a catch-all": {
			caddyfile: `http://:{port} {
				sitemap
				file_server
			}`,
			url:  "http://localhost:{port}/sitemap.xml",
			want: []string{"no file root", "'root'", "'files <root>'"},
		},
		"root of another folder alone": {
			caddyfile: `http://localhost:{port} {
				root /x/* {dir}/a
				sitemap
				file_server
			}`,
			want: []string{"no file root"},
		},
		"several roots": {
			caddyfile: `http://localhost:{port} {
				sitemap
				file_server /a/* {
					root {dir}/a
				}
				file_server {
					root {dir}/b
				}
			}`,
			want: []string{"several file roots", "{dir}/a", "{dir}/b", "'files <root>'"},
		},
		"a root that is /": {
			caddyfile: `http://localhost:{port} {
				root /
				sitemap
				file_server
			}`,
			want: []string{"the root is /"},
		},
		"a root that is missing": {
			caddyfile: `http://localhost:{port} {
				root {dir}/missing
				sitemap
				file_server
			}`,
			want: []string{"gathering pages failed", "{dir}/missing"},
		},
		"a root that is a file": {
			caddyfile: `http://localhost:{port} {
				root {dir}/a/one.html
				sitemap
				file_server
			}`,
			want: []string{"gathering pages failed", "{dir}/a/one.html", "not a folder"},
		},
		"a root that is empty": {
			caddyfile: `http://localhost:{port} {
				root {dir}/empty
				sitemap
				file_server
			}`,
			want: []string{"no page to list", "candidates", "{dir}/empty"},
		},
		"a file system that is missing": {
			caddyfile: `http://localhost:{port} {
				root {dir}/a
				sitemap {
					files {
						fs none
					}
				}
				file_server
			}`,
			want: []string{"gathering pages failed", "there is no file system 'none'"},
		},
		"a root that a placeholder leaves empty": {
			caddyfile: `http://localhost:{port} {
				sitemap {
					files {http.vars.nothing}
				}
				file_server
			}`,
			want: []string{"gathering pages failed", "the root '{http.vars.nothing}' is empty for this site"},
		},
		"a site that cannot be asked": {
			caddyfile: `http://localhost:{port} {
				root {dir}/a
				route {
					@stranger remote_ip 192.0.2.1
					abort @stranger
					sitemap
					file_server
				}
			}`,
			want: []string{"looking at the site failed", "the connection was aborted"},
		},
		"a matcher that hides the sitemap": {
			caddyfile: `http://localhost:{port} {
				root {dir}/a
				sitemap /docs/*
				file_server
			}`,
			want: []string{"requests for the sitemap do not reach its handler", "/sitemap.xml"},
		},
		"a file server before it": {
			caddyfile: `http://localhost:{port} {
				root {dir}/a
				route {
					file_server
					sitemap
				}
			}`,
			want: []string{"requests for the sitemap do not reach its handler"},
		},
		"a matcher that hides robots.txt": {
			caddyfile: `http://localhost:{port} {
				root {dir}/a
				sitemap /sitemap*
				file_server
			}`,
			want: []string{"requests for /robots.txt do not reach", `"line":"Sitemap: http://localhost:{port}/sitemap.xml"`},
			locs: map[string][]string{"http://localhost:{port}/sitemap.xml": below("http://localhost:{port}", pagesOfA)},
		},
		"handle_path": {
			caddyfile: `http://localhost:{port} {
				handle_path /docs/* {
					root {dir}/a
					sitemap
					file_server
				}
			}`,
			want: []string{"requests for /robots.txt do not reach", `"line":"Sitemap: http://localhost:{port}/docs/sitemap.xml"`},
			locs: map[string][]string{"http://localhost:{port}/docs/sitemap.xml": below("http://localhost:{port}/docs", pagesOfA)},
		},
		"handle_path on a catch-all": {
			caddyfile: `http://:{port} {
				handle_path /docs/* {
					root {dir}/a
					sitemap
					file_server
				}
			}`,
			url:  "http://localhost:{port}/docs/sitemap.xml",
			want: []string{"requests for /robots.txt do not reach", `"line":"Sitemap: http://localhost:{port}/docs/sitemap.xml"`},
		},
		"handle_path without robots_txt": {
			caddyfile: `http://localhost:{port} {
				handle_path /docs/* {
					root {dir}/a
					sitemap {
						robots_txt off
					}
					file_server
				}
			}`,
			locs:  map[string][]string{"http://localhost:{port}/docs/sitemap.xml": below("http://localhost:{port}/docs", pagesOfA)},
			never: "robots.txt do not reach",
		},
		"a shadowed file": {
			caddyfile: `http://localhost:{port} {
				root {dir}/shadowed
				sitemap
				file_server
			}`,
			want: []string{"shadowed", "{dir}/shadowed/sitemap.xml"},
			locs: map[string][]string{"http://localhost:{port}/sitemap.xml": {"http://localhost:{port}/"}},
		},
		"a public name on plain http": {
			caddyfile: `http://shop.com:{port} {
				root {dir}/a
				sitemap
				file_server
			}`,
			want: []string{"public name", "base_url", "trusted_proxies", "http://shop.com:{port}"},
			locs: map[string][]string{"http://shop.com:{port}/sitemap.xml": below("http://shop.com:{port}", pagesOfA)},
		},
		"a public name on plain http, of a catch-all": {
			caddyfile: `http://:{port} {
				root {dir}/a
				sitemap
				file_server
			}`,
			url:  "http://shop.com:{port}/sitemap.xml",
			want: []string{"public name", "base_url", "http://shop.com:{port}"},
		},
		"a public name with base_url": {
			caddyfile: `http://shop.com:{port} {
				root {dir}/a
				sitemap {
					base_url https://shop.com
				}
				file_server
			}`,
			locs:  map[string][]string{"http://shop.com:{port}/sitemap.xml": below("https://shop.com", pagesOfA)},
			never: "public name",
		},
		"a name that is not public": {
			caddyfile: `http://localhost:{port} {
				root {dir}/a
				sitemap
				file_server
			}`,
			locs:  map[string][]string{"http://localhost:{port}/sitemap.xml": below("http://localhost:{port}", pagesOfA)},
			never: "public name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, twoRoots)
			s.write(map[string]string{"empty/": "", "shadowed/index.html": html("home"), "shadowed/sitemap.xml": "<urlset/>"})
			// A file server without a root falls back to the working directory.
			t.Chdir(filepath.Join(s.dir, "a"))
			if err := s.load(test.caddyfile); err != nil {
				t.Fatal(err)
			}
			if test.url != "" {
				s.get(test.url)
			}
			for url, want := range test.locs {
				s.wantLocs(url, want...)
			}
			if len(test.want) > 0 {
				s.logged(append(test.want, `"logger":"http.handlers.sitemap"`)...)
			}
			if lines := s.logLines(test.never, `"logger":"http.handlers.sitemap"`); test.never != "" && len(lines) > 0 {
				t.Errorf("the log has %s", lines[0])
			}
			if len(test.locs) == 0 && test.url == "" {
				s.wantNone("http://localhost:{port}")
			}
			if lines := s.logLines("a source of pages panicked"); len(lines) > 0 {
				t.Error(lines[0])
			}
		})
	}
}
