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

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
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
		m.MapFS[name] = &fstest.MapFile{Data: []byte(harness.HTML("in memory: " + name))}
	}
	return nil
}

func (*memoryFS) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	return nil
}

// wantHonest is the first promise, from outside: every listed URL answers 200.
func (s *server) wantHonest(url string, headers ...string) {
	s.T.Helper()
	for _, loc := range s.Locs(url, headers...) {
		if r := s.Get(loc, headers...); r.StatusCode != http.StatusOK {
			s.T.Errorf("%s is listed and answers %d", loc, r.StatusCode)
		}
	}
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
			want:   map[string][]string{origin + "/sitemap.xml": harness.Below(origin, harness.PagesOfA)},
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
				"http://a.example:{port}/sitemap.xml": harness.Below("http://a.example:{port}", harness.PagesOfA),
				"http://b.example:{port}/sitemap.xml": harness.Below("http://b.example:{port}", harness.PagesOfB),
				"http://c.example:{more}/sitemap.xml": harness.Below("http://c.example:{more}", harness.PagesOfB),
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
				"http://a.example:{port}/sitemap.xml": harness.Below("http://a.example:{port}", harness.PagesOfA),
				"http://b.example:{more}/sitemap.xml": harness.Below("http://b.example:{more}", harness.PagesOfB),
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
			want: map[string][]string{origin + "/sitemap.xml": harness.Below(origin, harness.PagesOfA)},
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
			want: map[string][]string{origin + "/sitemap.xml": harness.Below(origin, harness.PagesOfA)},
		},
		"everything inside handle": {
			caddyfile: origin + ` {
				handle {
					root {dir}/a
					sitemap
					file_server
				}
			}`,
			want:   map[string][]string{origin + "/sitemap.xml": harness.Below(origin, harness.PagesOfA)},
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
			want: map[string][]string{origin + "/sitemap.xml": harness.Below(origin, harness.PagesOfA)},
		},
		"root of the file server": {
			caddyfile: origin + ` {
				sitemap
				file_server {
					root {dir}/a
				}
			}`,
			want: map[string][]string{origin + "/sitemap.xml": harness.Below(origin, harness.PagesOfA)},
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
			want: map[string][]string{origin + "/sitemap.xml": harness.Below(origin, harness.PagesOfA)},
		},
		"root of the source": {
			caddyfile: origin + ` {
				root {dir}/b
				sitemap {
					crawl off
					files {dir}/a
				}
				file_server
			}`,
			want: map[string][]string{origin + "/sitemap.xml": harness.Below(origin, harness.PagesOfA)},
		},
		"root that differs from the file server's": {
			caddyfile: origin + ` {
				root {dir}/b
				sitemap
				file_server {
					root {dir}/a
				}
			}`,
			want: map[string][]string{origin + "/sitemap.xml": harness.Below(origin, harness.PagesOfA)},
		},
		"root by placeholder of the host": {
			caddyfile: `http://a:{port}, http://b:{port} {
				root {dir}/{host}
				sitemap
				file_server
			}`,
			want: map[string][]string{
				"http://a:{port}/sitemap.xml": harness.Below("http://a:{port}", harness.PagesOfA),
				"http://b:{port}/sitemap.xml": harness.Below("http://b:{port}", harness.PagesOfB),
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
				"http://a:{port}/sitemap.xml": harness.Below("http://a:{port}", harness.PagesOfA),
				"http://b:{port}/sitemap.xml": harness.Below("http://b:{port}", harness.PagesOfB),
			},
		},
		"wildcard": {
			caddyfile: `http://*.example:{port} {
				root {dir}/{labels.1}
				sitemap
				file_server
			}`,
			want: map[string][]string{
				"http://a.example:{port}/sitemap.xml": harness.Below("http://a.example:{port}", harness.PagesOfA),
				"http://b.example:{port}/sitemap.xml": harness.Below("http://b.example:{port}", harness.PagesOfB),
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
				"http://first.example:{port}/sitemap.xml":  harness.Below("http://first.example:{port}", harness.PagesOfA),
				"http://second.example:{port}/sitemap.xml": harness.Below("http://second.example:{port}", harness.PagesOfB),
				"http://third.example:{port}/sitemap.xml":  harness.Below("http://third.example:{port}", []string{"/", "/guide.html"}),
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
				"http://first.example:{port}/sitemap.xml":  harness.Below("http://first.example:{port}", harness.PagesOfA),
				"http://second.example:{port}/sitemap.xml": harness.Below("http://second.example:{port}", harness.PagesOfB),
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
			want: map[string][]string{origin + "/sitemap.xml": harness.Below(origin, harness.PagesOfA)},
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
			want: map[string][]string{origin + "/sitemap.xml": harness.Below(origin, harness.PagesOfA)},
		},
		"catch-all": {
			caddyfile: `http://:{port} {
				root {dir}/a
				sitemap
				file_server
			}`,
			want: map[string][]string{
				"http://localhost:{port}/sitemap.xml":   harness.Below("http://localhost:{port}", harness.PagesOfA),
				"http://127.0.0.1:{port}/sitemap.xml":   harness.Below("http://127.0.0.1:{port}", harness.PagesOfA),
				"http://any.example:{port}/sitemap.xml": harness.Below("http://any.example:{port}", harness.PagesOfA),
				"http://[::1]:{port}/sitemap.xml":       harness.Below("http://[::1]:{port}", harness.PagesOfA),
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
			want: map[string][]string{origin + "/sitemap.xml": harness.Below(origin, []string{"/", "/about.html"})},
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
			want: map[string][]string{origin + "/sitemap.xml": harness.Below(origin, []string{"/", "/about.html"})},
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
			want: map[string][]string{origin + "/sitemap.xml": harness.Below(origin, []string{"/", "/other/other.html", "/www/", "/www/about.html"})},
		},
		"handle_path": {
			caddyfile: origin + ` {
				handle_path /docs/* {
					root {dir}/a
					sitemap
					file_server
				}
			}`,
			want: map[string][]string{origin + "/docs/sitemap.xml": harness.Below(origin+"/docs", harness.PagesOfA)},
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
			want: map[string][]string{origin + "/x/y/sitemap.xml": harness.Below(origin+"/x/y", harness.PagesOfA)},
		},
		"handle_path of a name that URLs escape": {
			caddyfile: origin + ` {
				handle_path "/my docs/*" {
					root {dir}/b
					sitemap
					file_server
				}
			}`,
			want: map[string][]string{origin + "/my%20docs/sitemap.xml": harness.Below(origin+"/my%20docs", harness.PagesOfB)},
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
				origin + "/sitemap.xml":       harness.Below(origin, harness.PagesOfA),
				origin + "/other/sitemap.xml": harness.Below(origin+"/other", harness.PagesOfB),
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
			want: map[string][]string{origin + "/sitemap.xml": harness.Below(origin, harness.PagesOfA)},
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
				"http://a.example:{port}/sitemap.xml": harness.Below("http://a.example:{port}", harness.PagesOfA),
				"http://b.example:{port}/sitemap.xml": harness.Below("http://b.example:{port}", harness.PagesOfB),
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
				origin + "/sitemap.xml":    harness.Below(origin, harness.PagesOfB),
				origin + "/v2/sitemap.xml": harness.Below(origin+"/v2", harness.PagesOfB),
			},
		},
		"https on an odd port": {
			caddyfile: `https://localhost:{tls} {
				root {dir}/a
				sitemap
				file_server
			}`,
			want:   map[string][]string{"https://localhost:{tls}/sitemap.xml": harness.Below("https://localhost:{tls}", harness.PagesOfA)},
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
				"http://localhost:{port}/sitemap.xml":    harness.Below("https://example.com", harness.PagesOfA),
				"http://evil.example:{port}/sitemap.xml": harness.Below("https://example.com", harness.PagesOfA),
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
			want:   map[string][]string{"http://inside.lan:{port}/sitemap.xml": harness.Below("https://example.com", harness.PagesOfA)},
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
			want: map[string][]string{"http://any.inside.lan:{port}/sitemap.xml": harness.Below("https://example.com", harness.PagesOfA)},
		},
		"base_url with a port": {
			caddyfile: origin + ` {
				root {dir}/a
				sitemap {
					base_url https://example.com:8443
				}
				file_server
			}`,
			want: map[string][]string{origin + "/sitemap.xml": harness.Below("https://example.com:8443", harness.PagesOfA)},
		},
		"base_url with a folder": {
			caddyfile: origin + ` {
				root {dir}/a
				sitemap {
					base_url https://example.com/docs
				}
				file_server
			}`,
			want:   map[string][]string{origin + "/docs/sitemap.xml": harness.Below("https://example.com", docs)},
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
			want: map[string][]string{origin + "/docs/map.xml": harness.Below("https://example.com", docs)},
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
			want: map[string][]string{origin + "/docs/sitemap.xml": harness.Below("https://example.com/docs", harness.PagesOfA)},
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
			want: map[string][]string{origin + "/docs/sitemap.xml": harness.Below("https://example.com/docs", harness.PagesOfA)},
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
			want: map[string][]string{origin + "/docs/sitemap.xml": harness.Below("https://example.com/handbook", harness.PagesOfA)},
		},
		"path in a folder": {
			caddyfile: origin + ` {
				root {dir}/a
				sitemap {
					path /docs/pages.xml
				}
				file_server
			}`,
			want:   map[string][]string{origin + "/docs/pages.xml": harness.Below(origin, docs)},
			robots: map[string]string{origin + "/robots.txt": "Sitemap: " + origin + "/docs/pages.xml"},
		},
		"try_files led the request elsewhere": {
			caddyfile: origin + ` {
				root {dir}/a
				try_files {path} /index.html
				sitemap
				file_server
			}`,
			want:   map[string][]string{origin + "/sitemap.xml": harness.Below(origin, harness.PagesOfA)},
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
			want: map[string][]string{origin + "/docs/sitemap.xml": harness.Below(origin+"/docs", harness.PagesOfA)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, test.caddyfile, harness.TwoRoots)
			for url, want := range test.want {
				s.WantLocs(url, want...)
				if !strings.Contains(test.caddyfile, "base_url") && name != "root of the source" {
					s.wantHonest(url)
				}
			}
			for url, want := range test.robots {
				if r := s.Get(url); !strings.Contains(r.Text, s.Expand(want)+"\n") {
					t.Errorf("%s: got %q, want the line %q", s.Expand(url), r.Text, s.Expand(want))
				}
			}
		})
	}
}

// TestSitesJSON is a configuration that no Caddyfile was made into.
func TestSitesJSON(t *testing.T) {
	s := prepare(t, harness.TwoRoots)
	err := s.LoadJSON(`{"apps": {"http": {"servers": {
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
				{"handler": "sitemap", "crawl": {"off": true}, "sources": [{"source": "files", "root": "{dir}/a"}, {"source": "urls", "urls": ["/more"]}]}
			]}]
		}
	}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	s.WantLocs("http://a.example:{port}/sitemap.xml", harness.Below("http://a.example:{port}", harness.PagesOfA)...)
	s.WantLocs("http://other.example:{port}/sitemap.xml", harness.Below("http://other.example:{port}", harness.PagesOfB)...)
	s.WantLocs("http://127.0.0.1:{more}/sitemap.xml", harness.Below("http://127.0.0.1:{more}", []string{"/", "/docs/", "/docs/guide.html", "/more", "/one.html"})...)
}

// rawStatus sends a request as it stands and returns the status line's number.
func (s *server) rawStatus(request string) string {
	s.T.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+s.Port)
	if err != nil {
		s.T.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(harness.Patience))
	if _, err := conn.Write([]byte(request)); err != nil {
		s.T.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		s.T.Fatal(err)
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
	}`, harness.TwoRoots)
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
	if r := s.Get("http://localhost:{port}/robots.txt", "Host: a..b"); r.StatusCode != http.StatusNotFound {
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
		got := s.Locs("http://localhost:{port}/sitemap.xml", "Host: "+s.Expand(host))
		if want := strings.Split(s.Expand(strings.Join(harness.Below(want, harness.PagesOfA), " ")), " "); !slices.Equal(got, want) {
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
	}`, harness.TwoRoots)
	const hosts, bound = 1100, 1000
	statusOf := func(i int) int {
		return s.Get("http://localhost:{port}/sitemap.xml", fmt.Sprintf("Host: h%d.example", i)).StatusCode
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
					if r := s.Get("http://named.example:{port}/sitemap.xml"); r.StatusCode != http.StatusOK {
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
	if r := s.Get("http://localhost:{port}/sitemap.xml", "Host: one-more.example"); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("one more host: status %d, Retry-After %q, want 503 and when", r.StatusCode, r.Header.Get("Retry-After"))
	}
	if r := s.Get("http://localhost:{port}/two.html", "Host: one-more.example"); r.StatusCode != http.StatusOK {
		t.Errorf("a page of one more host: status %d, want 200", r.StatusCode)
	}
	if r := s.Get("http://localhost:{port}/robots.txt", "Host: one-more.example"); r.StatusCode != http.StatusNotFound {
		t.Errorf("robots.txt of one more host: status %d, want the file server's 404", r.StatusCode)
	}
	s.WantLocs("http://named.example:{port}/sitemap.xml", harness.Below("http://named.example:{port}", harness.PagesOfA)...)
	if lines := s.LogLines("too many sites are known by their visitors' Host headers", `"level":"warn"`); len(lines) == 0 || len(lines) > 5 {
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
	}`, harness.TwoRoots)
	for _, address := range addresses {
		s.WantLocs(address+"/sitemap.xml", harness.Below(address, harness.PagesOfB)...)
	}
	s.Logged("many hosts are named")
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
		"another name inside": {"127.0.0.0/8", "http://localhost:{port}", []string{proto, host}, "https://localhost:{port}"},
		"a pattern inside":    {"127.0.0.0/8", "http://*.lan:{port}", []string{proto, host, "Host: inside.lan"}, "https://inside.lan"},
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
			}`, harness.TwoRoots)
			want := strings.Split(s.Expand(strings.Join(harness.Below(test.want, harness.PagesOfA), " ")), " ")
			if got := s.Locs("http://localhost:{port}/sitemap.xml", test.headers...); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			line := s.Expand("Sitemap: " + test.want + "/sitemap.xml")
			if r := s.Get("http://localhost:{port}/robots.txt", test.headers...); !strings.Contains(r.Text, line) {
				t.Errorf("robots.txt is %q, want %q in it", r.Text, line)
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
		}`, harness.TwoRoots)
		if r := s.Get("http://localhost:{port}/sitemap.xml", "X-Forwarded-Host: a..b"); r.StatusCode != http.StatusBadRequest {
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
			files:     map[string]string{"site/index.html": harness.HTML("home")},
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
		"the canonical one, ignored": {
			addresses: "http://shop.example:{port}, http://www.shop.example:{port}",
			files:     canonical("http://www.shop.example:{port}/"),
			option:    "canonical ignore",
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
			files:     map[string]string{"site/index.html": harness.HTML("home")},
			want:      "https://localhost:{tls}",
			others:    []string{"http://localhost:{port}"},
		},
		"https and apex": {
			addresses: "http://www.shop.example:{port}, https://www.shop.example:{tls}, http://shop.example:{port}, https://shop.example:{tls}",
			files:     map[string]string{"site/index.html": harness.HTML("home")},
			want:      "https://shop.example:{tls}",
			others:    []string{"http://shop.example:{port}", "http://www.shop.example:{port}", "https://www.shop.example:{tls}"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			for file, content := range test.files {
				s.Write(map[string]string{file: s.Expand(content)})
			}
			if err := s.Load(test.addresses + ` {
				root {dir}/site
				sitemap {
					` + test.option + `
				}
				file_server
			}`); err != nil {
				t.Fatal(err)
			}
			s.WantLocs(test.want+"/sitemap.xml", test.want+"/")
			line := "Sitemap: " + s.Expand(test.want) + "/sitemap.xml\n"
			if r := s.Get(test.want + "/robots.txt"); !strings.Contains(r.Text, line) {
				t.Errorf("robots.txt is %q, want %q in it", r.Text, line)
			}
			for _, other := range test.others {
				for _, document := range []string{"/sitemap.xml", "/sitemap.xml.gz", "/sitemap.txt"} {
					r := s.Get(other + document)
					if want := s.Expand(test.want) + document; r.StatusCode != http.StatusPermanentRedirect || r.Header.Get("Location") != want {
						t.Errorf("%s: status %d to %q, want 308 to %q", s.Expand(other)+document, r.StatusCode, r.Header.Get("Location"), want)
					}
				}
				if r := s.Get(other + "/robots.txt"); !strings.Contains(r.Text, line) {
					t.Errorf("%s/robots.txt is %q, want %q in it", s.Expand(other), r.Text, line)
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
	s := start(t, trusting+block, harness.TwoRoots)
	s.Eventually(func() bool { return s.Get(direct).StatusCode == http.StatusPermanentRedirect }, s.SitemapLog)
	for _, document := range []string{"/sitemap.xml", "/sitemap.txt"} {
		r := s.Get("http://localhost:{port}"+document, https, "Host: www.shop.example.com")
		if want := "https://shop.example.com" + document; r.StatusCode != http.StatusPermanentRedirect || r.Header.Get("Location") != want {
			t.Errorf("%s: status %d to %q, want 308 to %q", document, r.StatusCode, r.Header.Get("Location"), want)
		}
	}
	if got, want := s.Locs("http://localhost:{port}/sitemap.xml", https, "Host: shop.example.com"), harness.Below("https://shop.example.com", harness.PagesOfA); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, host := range []string{"shop.example.com", "www.shop.example.com"} {
		if r := s.Get("http://localhost:{port}/robots.txt", https, "Host: "+host); !strings.Contains(r.Text, "Sitemap: https://shop.example.com/sitemap.xml\n") {
			t.Errorf("%s: robots.txt is %q", host, r.Text)
		}
	}
	if lines := s.LogLines(warning); len(lines) != 0 {
		t.Errorf("with trusted_proxies the log says: %s", lines[0])
	}
	s.Reload(block)
	s.Logged(warning, "trusted_proxies")
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
	}`, harness.TwoRoots)
	s.WantLocs("http://shop.example:{port}/sitemap.xml", harness.Below("http://shop.example:{port}", harness.PagesOfA)...)
	s.WantLocs("http://www.shop.example:{port}/sitemap.xml", harness.Below("http://www.shop.example:{port}", harness.PagesOfB)...)
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
	}`, harness.TwoRoots)
	const origin = "http://localhost:{port}"
	front := []string{"/", "/docs/", "/one.html"} // what answers for /docs/guide.html has no such file
	for path, want := range map[string][]string{
		"/sitemap.xml":           harness.Below(origin, front),
		"/old/sitemap.xml":       harness.Below(origin, front),
		"/any-one/sitemap.xml":   harness.Below(origin, front),
		"/any-other/sitemap.xml": harness.Below(origin, front),
		"/x/sitemap.xml":         harness.Below(origin, front),
		"/docs/sitemap.xml":      harness.Below(origin+"/docs", harness.PagesOfB),
		"/DOCS/sitemap.xml":      harness.Below(origin+"/docs", harness.PagesOfB),
		"//docs/sitemap.xml":     harness.Below(origin+"/docs", harness.PagesOfB),
		"//docs///sitemap.xml":   harness.Below(origin+"/docs", harness.PagesOfB),
	} {
		s.WantLocs(origin+path, want...)
	}
	if lines := s.LogLines("sitemap refreshed"); len(lines) != 2 {
		t.Errorf("%d sites were refreshed, want 2:\n%s", len(lines), strings.Join(lines, ""))
	}
}
