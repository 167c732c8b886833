package caddytest

import (
	"fmt"
	"net"
	"net/http"
	"net/http/fcgi"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// plain is a site without a source, whose pages may be requested quickly.
const plain = "sitemap {\nrefresh 1s\ncrawl {\nrate 500/s\n}\n}\n"

// blog is an application with a sitemap of its own, to which it redirects the usual path, as WordPress does.
func blog(origin string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/", "/hello-world/", "/about/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, `<!doctype html><title>%s</title><p>%s <a href="/hello-world/">hello</a>`, r.URL.Path, r.URL.Path)
		case "/robots.txt":
			fmt.Fprint(w, "User-agent: *\nDisallow: /wp-admin/\n")
		case "/sitemap.xml":
			http.Redirect(w, r, "/wp-sitemap.xml", http.StatusMovedPermanently)
		case "/wp-sitemap.xml":
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, "<sitemapindex><sitemap><loc>"+origin+"/wp-sitemap-pages-1.xml</loc></sitemap></sitemapindex>")
		case "/wp-sitemap-pages-1.xml":
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, "<urlset><url><loc>"+origin+"/about/</loc><lastmod>2024-05-06</lastmod></url></urlset>")
		default:
			http.NotFound(w, r)
		}
	}
}

// TestDiscoverByDefault: a plain sitemap is enough for an application behind php_fastcgi: its links are followed, and its
// own sitemap is read. A file beside it that nothing links to is not listed, and status says which sources there are.
func TestDiscoverByDefault(t *testing.T) {
	s := prepare(t, map[string]string{"root/index.php": "<?php", "root/readme.html": harness.HTML("readme")})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() { _ = fcgi.Serve(listener, blog(s.Expand(harness.Local))) }()
	s.Load(harness.Local + " {\nroot {dir}/root\n" + plain + "php_fastcgi " + listener.Addr().String() + "\nfile_server\n}")
	s.WantDates(harness.Local, map[string]string{"/": "", "/about/": "2024-05-06", "/hello-world/": ""})
	s.Logged("no source is written, and no file is the front page", `"level":"info"`)
	status := s.Refreshes(1)
	for _, source := range []string{`"source":"links"`, `"source":"own sitemaps"`} {
		if !strings.Contains(status, source) {
			t.Errorf("status has no %s: %s", source, status)
		}
	}
	if lines := s.LogLines(`"level":"warn"`, "http.handlers.sitemap"); len(lines) > 0 {
		t.Errorf("the log warns: %s", lines)
	}
}

// TestDiscoverGenerator: a sitemap that a generator has left in the root of a site of files is read as a list.
func TestDiscoverGenerator(t *testing.T) {
	origin := harness.Local
	const entry = "<url><loc>%s%s</loc><lastmod>%s</lastmod></url>"
	s := prepare(t, nil)
	s.Put("root/index.html", harness.HTML("front"), harness.DayOf(1))
	s.Put("root/a.html", harness.HTML("a"), harness.DayOf(1))
	s.Put("root/b.html", harness.HTML("b"), harness.DayOf(2))
	s.WriteRaw("root/sitemap.xml", s.Expand("<sitemapindex><sitemap><loc>"+origin+"/en/sitemap.xml</loc></sitemap></sitemapindex>"))
	s.WriteRaw("root/en/sitemap.xml", s.Expand("<urlset>"+
		fmt.Sprintf(entry+entry+entry, origin, "/", "2024-03-01", origin, "/a.html", "2024-03-02", origin, "/gone.html", "2024-03-03")+"</urlset>"))
	s.Load(origin + " {\nroot {dir}/root\nsitemap {\nrefresh 1s\n}\nfile_server\n}")
	s.WantDates(origin, map[string]string{"/": "2024-03-01", "/a.html": "2024-03-02", "/b.html": harness.Stamp(harness.DayOf(2))})
}

// TestDiscoverBuildTimes: a generator that writes the time of the build at each page says nothing of the pages. Where the
// operator names its sitemap, its dates count.
func TestDiscoverBuildTimes(t *testing.T) {
	origin := harness.Local
	built := "2024-03-01T12:00:00Z"
	for sources, want := range map[string]string{"": "", "files\nurls {dir}/root/sitemap.xml\n": built} {
		t.Run(fmt.Sprintf("operator %t", want != ""), func(t *testing.T) {
			s := prepare(t, nil)
			list := "<urlset>"
			dates := make(map[string]string)
			for _, path := range []string{"/a.html", "/b.html", "/c.html"} {
				s.Put("root"+path, harness.HTML(path), harness.DayOf(1)) // by the same build
				list += "<url><loc>" + origin + path + "</loc><lastmod>" + built + "</lastmod></url>"
				dates[path] = want
			}
			s.WriteRaw("root/sitemap.xml", s.Expand(list+"</urlset>"))
			s.Load(origin + " {\nroot {dir}/root\nsitemap {\nrefresh 1s\n" + sources + "}\nfile_server\n}")
			s.WantDates(origin, dates)
		})
	}
}
