package caddytest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestWhatSitesHave: what real sites and applications were found to have, and is listed.
func TestWhatSitesHave(t *testing.T) {
	const origin = "http://localhost:{port}"
	page := func(text string, links ...string) string {
		var b strings.Builder
		b.WriteString("<!doctype html><title>x</title><p>" + text)
		for _, link := range links {
			fmt.Fprintf(&b, ` <a href="%s">link</a>`, link)
		}
		return b.String()
	}
	files := func(sitemap string) string {
		return origin + " {\n root * {dir}/site\n sitemap {\n refresh 1s\n" + sitemap + "\n}\n file_server\n}"
	}
	for name, test := range map[string]struct {
		caddyfile string
		files     map[string]string
		want      []string
	}{
		"files in folders that nobody would request": {
			files(""), map[string]string{"site/api/index.html": page("api"), "site/api/logout.html": page("logout"), "site/admin/cart.html": page("cart")},
			[]string{"/admin/cart.html", "/api/", "/api/logout.html"},
		},
		"one page in two encodings": {
			files("files\nlinks"), map[string]string{"site/index.html": page("home", "a%3Db.html", "/c%2cd.html"), "site/a=b.html": page("a"), "site/c,d.html": page("c")},
			[]string{"/", "/a=b.html", "/c,d.html"},
		},
		"the home page stays where links say index.html": {
			files("files\nlinks"), map[string]string{"site/index.html": page("home", "/a.html"), "site/a.html": page("a", "/index.html")},
			[]string{"/", "/a.html"},
		},
		"names that begin with an underscore, if something links to them": {
			files(""), map[string]string{"site/index.html": page("home", "/library/__future__.html"), "site/library/__future__.html": page("future"), "site/_part.html": page("part")},
			[]string{"/", "/library/__future__.html"},
		},
		"a sitemap that a generator wrote": {
			files("urls {dir}/sitemap.xml"), map[string]string{"site/index.html": page("home"), "site/a.html": page("a"), "site/b.html": page("b"),
				"sitemap.xml": "<urlset><url><loc>" + origin + "/a.html</loc></url></urlset>"},
			[]string{"/a.html"},
		},
		"two equal sitemaps, as of a snippet that is imported twice": {
			"(map) {\n sitemap {\n refresh 1s\n }\n}\n" + origin + " {\n root * {dir}/site\n import map\n import map\n file_server\n}",
			map[string]string{"site/index.html": page("home")}, []string{"/"},
		},
		"noindex in the body": {
			files(""), map[string]string{"site/index.html": page("home"), "site/a.html": page("a") + `<meta name=robots content=noindex>`},
			[]string{"/"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			written := make(map[string]string)
			for file, content := range test.files {
				written[file] = s.Expand(content)
			}
			s.Write(written)
			if err := s.Load(test.caddyfile); err != nil {
				t.Fatal(err)
			}
			s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, test.want)...)
			s.Quietly(1)
			s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, test.want)...)
			if lines := s.LogLines(`"level":"warn"`, "http.handlers.sitemap"); len(lines) > 0 {
				t.Errorf("the log warns: %s", lines)
			}
		})
	}
}

// TestOwnSitemaps: what an application's own sitemaps name is merged, whether they are at
// the sitemap's own path or named in robots.txt.
func TestOwnSitemaps(t *testing.T) {
	s := prepare(t, nil)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write([]byte("<urlset><url><loc>" + s.Expand("http://localhost:{port}") + "/deep/b</loc></url></urlset>"))
	_ = w.Close()
	origin := s.Expand("http://localhost:{port}")
	pages := map[string]string{
		"/": "home", "/deep/a": "a", "/deep/b": "b", "/deep/c": "c",
		"/sitemap.xml": "<sitemapindex><sitemap><loc>" + origin + "/one.xml</loc></sitemap><sitemap><loc>" + origin + "/two.xml.gz</loc></sitemap></sitemapindex>",
		"/one.xml":     "<urlset><url><loc>" + origin + "/deep/a</loc><lastmod>2021-02-03</lastmod></url></urlset>",
		"/two.xml.gz":  z.String(),
		"/news.txt":    origin + "/deep/c\nhttps://other.example/d\n",
		"/robots.txt":  "User-agent: *\nDisallow:\nSitemap: " + origin + "/news.txt\n",
	}
	s.LoadApp("http://localhost:{port} {\n sitemap {\n refresh 1s\n links\n crawl {\n rate 500/s\n concurrency 4\n }\n }\n reverse_proxy {app}\n}", func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
		case r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/deep/"):
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!doctype html><title>%s</title><p>the page %[1]s", body)
		default:
			w.Header().Set("Content-Type", http.DetectContentType([]byte(body)))
			_, _ = w.Write([]byte(body))
		}
	})
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, []string{"/", "/deep/a", "/deep/b", "/deep/c"})...)
	s.Eventually(func() bool { return strings.HasPrefix(s.Dates(harness.Local)["/deep/a"], "2021-02-03") },
		func() string { return fmt.Sprint("/deep/a has no date: ", s.Dates(harness.Local)) })
	s.Logged("pages of the application's own sitemaps are merged", `"pages":3`)
}
