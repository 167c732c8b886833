package caddytest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// directives are sites as the documentation of Caddy's directives has them, each with `sitemap` put in, and the pages that
// a visitor reaches.
var directives = map[string]struct{ site, pages string }{
	"abort":        {"root {dir}/files\nabort /blog/*\nsitemap\nfile_server", "/ /about.html"},
	"basic-auth":   {"root {dir}/files\nbasic_auth /blog/* {\nann " + bcrypted + "\n}\nsitemap\nfile_server", "/ /about.html"},
	"error":        {"root {dir}/files\nerror /blog* 403\nsitemap\nfile_server\nhandle_errors {\nrewrite /about.html\nfile_server\n}", "/"},
	"file-server":  {"sitemap\nfile_server {\nroot {dir}/files\nhide about.html\n}", "/ /blog/ /blog/first.html"},
	"forward-auth": {"root {dir}/files\nforward_auth {app} {\nuri /may\n}\nsitemap\nfile_server", "/ /about.html"},
	"header":       {"root {dir}/files\nheader /blog/* X-Robots-Tag noindex\nheader >Cache-Control max-age=5\nsitemap\nfile_server", "/ /about.html"},
	"invoke":       {"invoke files", "/ /about.html /blog/ /blog/first.html"},
	"map": {"root {dir}/files\nmap {path} {to} {\n/about.html /blog/\ndefault \"\"\n}\n" +
		"@moved not vars {to} \"\"\nredir @moved {to} 301\nsitemap\nfile_server", "/ /blog/ /blog/first.html"},
	"method":         {"root {dir}/files\n@writes not method GET HEAD\nrespond @writes 405\nsitemap\nfile_server", "/ /about.html /blog/ /blog/first.html"},
	"respond":        {"root {dir}/files\nrespond /blog/* \"Access denied\" 403 {\nclose\n}\nrespond /health OK\nsitemap\nfile_server", "/ /about.html"},
	"reverse-proxy":  {"root {dir}/files\nsitemap\nhandle /api/* {\nreverse_proxy {app}\n}\nhandle {\nfile_server\n}", "/ /about.html /blog/ /blog/first.html"},
	"rewrite":        {"root {dir}/files\nsitemap\n@page file {path}.html\nrewrite @page {path}.html\nfile_server", "/ /about /blog/ /blog/first"},
	"templates":      {"root {dir}/templates\nsitemap\ntemplates\nfile_server", "/"},
	"rewrite-host":   {"root {dir}/hosts\nsitemap\nrewrite * /{host}{uri}\nfile_server", "/ /two.html"},
	"rewrite-folder": {"root {dir}\nsitemap\nrewrite * /files{uri}\ntry_files {path} {path}.html\nfile_server", "/ /about /blog/ /blog/first"},
	"strangers":      {"root {dir}/files\n@known remote_ip 127.0.0.1\nsitemap\nhandle / {\nfile_server\n}\nfile_server @known", "/"},
	"vars":           {"vars folder files\nroot {dir}/{vars.folder}\nsitemap\nfile_server", "/ /about.html /blog/ /blog/first.html"},

	// pages of an application
	"copy-response": {"sitemap\nreverse_proxy {app} {\n@missing status 404\nhandle_response @missing {\ncopy_response 200\n}\n}", "/ /about"},
	"intercept": {"root {dir}/files\nsitemap\nintercept {\n@missing status 404\nhandle_response @missing {\n" +
		"rewrite /about.html\nfile_server\n}\n}\nreverse_proxy {app}", "/ /about"},
	"redir": {"sitemap\n@bare path_regexp bare ^/old/(.+)$\nredir @bare /{re.bare.1}\nuri query -utm_source\nreverse_proxy {app}", "/ /about"},
}

// bcrypted is a password.
const bcrypted = "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG"

// proxied has two pages and an old URL, and admits everybody to what is not below /blog/.
func proxied(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/", "/about":
		fmt.Fprintf(w, "<!doctype html><title>%s</title><p>This is %s. <a href=/about>about</a> <a href=/old/about>old</a> <a href=/gone>gone</a>", r.URL, r.URL)
	case "/may":
		if strings.HasPrefix(r.Header.Get("X-Forwarded-Uri"), "/blog/") {
			http.Error(w, "who are you?", http.StatusUnauthorized)
		}
	default:
		http.NotFound(w, r)
	}
}

// TestReportsDirectives: with each directive, what is listed is what a visitor reaches.
func TestReportsDirectives(t *testing.T) {
	s := prepareWithAdmin(t, map[string]string{
		"files/index.html":                   "Welcome to all",
		"files/about.html":                   "This is about us",
		"files/blog/index.html":              "All posts of the blog",
		"files/blog/first.html":              "The first post of the blog",
		"hosts/rewrite-host.test/index.html": "The site of this host",
		"hosts/rewrite-host.test/two.html":   "Two of this host",
		"hosts/other.test/index.html":        "The site of another host",
		"templates/index.html":               `<!doctype html><title>T</title>{{include "/part.html"}}`,
		"templates/part.html":                "<p>a part of a page",
		"templates/gone.html":                `<!doctype html><title>gone</title>{{httpError 404}}`,
	})
	var caddyfile strings.Builder
	caddyfile.WriteString("&(files) {\nroute {\nroot {dir}/files\nsitemap\nfile_server\n}\n}\n")
	for name, d := range directives {
		site := strings.Replace(d.site, "sitemap\n", plain, 1)
		fmt.Fprintf(&caddyfile, "http://%s.test:{port} {\n%s\n}\n", name, site)
	}
	s.LoadApp(caddyfile.String(), proxied)
	for name, d := range directives {
		origin := "http://" + name + ".test:{port}"
		s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, strings.Fields(d.pages))...)
		for _, path := range strings.Fields(d.pages) {
			s.WantStatus(origin+path, http.StatusOK)
		}
	}
	for page, want := range map[string]string{
		"http://reverse-proxy.test:{port}/api/list": "Links to it do not count without the source 'links'.",
		"http://strangers.test:{port}/about.html":   "unless a matcher keeps out only the address 192.0.2.1",
	} {
		explained := s.Get("http://localhost:{admin}/sitemap/explain?url=" + url.QueryEscape(s.Expand(page)))
		if !strings.Contains(explained.Text, want) {
			t.Errorf("%s: %s", page, explained.Text)
		}
	}
}
