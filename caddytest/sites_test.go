package caddytest

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

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
	// The site of a root with options, by "import a" and "import b".
	const options = "{\n filesystem mem memory\n}\n(a) {\n root {dir}/a\n sitemap {\n {block}\n }\n file_server\n}\n(b) {\n root {dir}/b\n sitemap {\n {block}\n }\n file_server\n}\n"
	type lists = map[string]string
	pages := map[string][]string{"a": harness.PagesOfA, "b": harness.PagesOfB, "docs": {"/docs/", "/docs/guide.html"}}
	for name, test := range map[string]struct {
		caddyfile string
		want      lists // origin and pages, by the URL of the sitemap; nil: that of a at {origin}
		robots    lists // the sitemap that is named, by the URL of robots.txt
	}{
		"root inside handle": {caddyfile: "{origin} {\n sitemap\n handle {\n root {dir}/a\n file_server\n }\n}"},
		"root of the file server inside handle, behind a matcher": {caddyfile: "{origin} {\n sitemap\n @pages not path /sitemap.xml\n handle @pages {\n file_server {\n root {dir}/a\n }\n }\n}"},
		"several sites": {
			"http://a.example:{port} {\n import a\n}\nhttp://b.example:{port} {\n root * {dir}/b\n file_server\n sitemap\n}\nhttp://c.example:{more} {\n import b\n}",
			lists{"http://a.example:{port}/sitemap.xml": "http://a.example:{port} a", "http://b.example:{port}/sitemap.xml": "http://b.example:{port} b", "http://c.example:{more}/sitemap.xml": "http://c.example:{more} b"},
			lists{"http://a.example:{port}/robots.txt": "http://a.example:{port}/sitemap.xml", "http://b.example:{port}/robots.txt": "http://b.example:{port}/sitemap.xml", "http://c.example:{more}/robots.txt": "http://c.example:{more}/sitemap.xml"},
		},
		"wildcard": {
			"http://*.example:{port} {\n root {dir}/{labels.1}\n sitemap\n file_server\n}",
			lists{"http://a.example:{port}/sitemap.xml": "http://a.example:{port} a", "http://b.example:{port}/sitemap.xml": "http://b.example:{port} b"},
			lists{"http://a.example:{port}/robots.txt": "http://a.example:{port}/sitemap.xml"},
		},
		"wildcard with host matchers inside": {
			caddyfile: "http://*.example:{port} {\n @a host first.example\n handle @a {\n import a\n }\n @b host second.example\n handle @b {\n import b\n }\n handle {\n root {dir}/a/docs\n sitemap\n file_server\n }\n}",
			want:      lists{"http://first.example:{port}/sitemap.xml": "http://first.example:{port} a", "http://second.example:{port}/sitemap.xml": "http://second.example:{port} b", "http://third.example:{port}/sitemap.xml": "http://third.example:{port} / /guide.html"},
		},
		"catch-all": {
			"http://:{port} {\n import a\n}",
			lists{"{origin}/sitemap.xml": "{origin} a", "http://127.0.0.1:{port}/sitemap.xml": "http://127.0.0.1:{port} a", "http://any.example:{port}/sitemap.xml": "http://any.example:{port} a", "http://[::1]:{port}/sitemap.xml": "http://[::1]:{port} a"},
			lists{"http://any.example:{port}/robots.txt": "http://any.example:{port}/sitemap.xml", "http://other.example:{port}/robots.txt": "http://other.example:{port}/sitemap.xml"},
		},
		"named file system": {caddyfile: "{origin} {\n fs mem\n root www\n sitemap\n file_server\n}", want: lists{"{origin}/sitemap.xml": "{origin} / /about.html"}},
		"handle_path inside handle_path, of a name that URLs escape": {
			caddyfile: "{origin} {\n handle_path /x/* {\n handle_path \"/my docs/*\" {\n import b\n }\n }\n}",
			want:      lists{"{origin}/x/my%20docs/sitemap.xml": "{origin}/x/my%20docs b"},
		},
		"a handle_path beside the site": {
			"{origin} {\n handle_path /other/* {\n import b\n }\n handle {\n import a\n }\n}",
			lists{"{origin}/sitemap.xml": "{origin} a", "{origin}/other/sitemap.xml": "{origin}/other b"},
			lists{"{origin}/robots.txt": "{origin}/sitemap.xml"},
		},
		"https on an odd port": {
			"https://localhost:{tls} {\n import a\n}",
			lists{"https://localhost:{tls}/sitemap.xml": "https://localhost:{tls} a"},
			lists{"https://localhost:{tls}/robots.txt": "https://localhost:{tls}/sitemap.xml"},
		},
		"base_url": {
			"http://:{port} {\n import a {\n base_url https://example.com\n }\n}",
			lists{"{origin}/sitemap.xml": "https://example.com a", "http://evil.example:{port}/sitemap.xml": "https://example.com a"},
			lists{"http://evil.example:{port}/robots.txt": "https://example.com/sitemap.xml"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			local := func(text string) string { return strings.ReplaceAll(text, "{origin}", harness.Local) }
			s := start(t, options+local(test.caddyfile), harness.TwoRoots)
			if test.want == nil {
				test.want, test.robots = lists{"{origin}/sitemap.xml": "{origin} a"}, lists{"{origin}/robots.txt": "{origin}/sitemap.xml"}
			}
			for url, want := range test.want {
				base, listed, _ := strings.Cut(local(want), " ")
				paths, ok := pages[listed]
				if !ok {
					paths = strings.Fields(listed)
				}
				s.WantLocs(local(url), harness.Below(base, paths)...)
				if !strings.Contains(test.caddyfile, "base_url") {
					s.wantHonest(local(url))
				}
			}
			for url, want := range test.robots {
				if r := s.Get(local(url)); !strings.Contains(r.Text, s.Expand("Sitemap: "+local(want)+"\n")) {
					t.Errorf("%s: got %q, want a line for %s", url, r.Text, want)
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
	harness.Must(t, err)
	s.WantLocs("http://a.example:{port}/sitemap.xml", harness.Below("http://a.example:{port}", harness.PagesOfA)...)
	s.WantLocs("http://other.example:{port}/sitemap.xml", harness.Below("http://other.example:{port}", harness.PagesOfB)...)
	s.WantLocs("http://127.0.0.1:{more}/sitemap.xml", harness.Below("http://127.0.0.1:{more}", []string{"/", "/docs/", "/docs/guide.html", "/more", "/one.html"})...)
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
		"the canonical one": {
			addresses: "http://shop.example:{port}, http://www.shop.example:{port}",
			files:     canonical("http://WWW.Shop.example:{port}/"), want: "http://www.shop.example:{port}", others: []string{"http://shop.example:{port}"},
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
			s.Load(test.addresses + ` {
				root {dir}/site
				sitemap {
					llms
				}
				file_server
			}`)
			s.WantLocs(test.want+"/sitemap.xml", test.want+"/")
			line := "Sitemap: " + s.Expand(test.want) + "/sitemap.xml\n"
			if r := s.Get(test.want + "/robots.txt"); !strings.Contains(r.Text, line) {
				t.Errorf("robots.txt is %q, want %q in it", r.Text, line)
			}
			for _, other := range test.others {
				for _, document := range []string{"/sitemap.xml", "/sitemap.xml.gz", "/sitemap.txt", "/sitemap.css", "/llms.txt"} {
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
	s.Locs("http://localhost:{port}/sitemap.xml", https, "Host: shop.example.com")
	s.Crawled()
	if got, want := s.Locs("http://localhost:{port}/sitemap.xml", https, "Host: shop.example.com"), harness.Below("https://shop.example.com", harness.PagesOfA); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, document := range []string{"/sitemap.xml", "/sitemap.txt"} {
		r := s.Get("http://localhost:{port}"+document, https, "Host: www.shop.example.com")
		if want := "https://shop.example.com" + document; r.StatusCode != http.StatusPermanentRedirect || r.Header.Get("Location") != want {
			t.Errorf("%s: status %d to %q, want 308 to %q", document, r.StatusCode, r.Header.Get("Location"), want)
		}
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
	if status := s.Refreshes(1); strings.Count(status, `"sitemap":`) != 2 {
		t.Errorf("want 2 sites: %s", status)
	}
}
