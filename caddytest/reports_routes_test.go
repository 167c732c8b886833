package caddytest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// smallSite are the files of a site, and more roots beside it.
var smallSite = map[string]string{
	"site/index.html": "the front page", "site/about.html": "about us", "site/blog/index.html": "the blog",
	"static/robots.txt": "User-agent: *\n", "static/stray.html": "nobody serves this",
	"manual/index.html": "the manual", "manual/install.html": "how to install", "manual/docs/index.html": "the docs", "manual/docs/guide.html": "a guide",
	"pictures/pictures/cat.jpg": "no page", "down/index.html": "we are back soon", "down/maintenance.html": "closed",
	"home/home.html": "welcome home", "home/contact.html": "write to us", "home/pages/start.html": "this is where it starts",
	"home/en/index.html": "in English", "other/index.html": "another site", "other/other.html": "of another site",
}

// pagesOfSmallSite are the pages of the root site.
var pagesOfSmallSite = []string{"/", "/about.html", "/blog/"}

// wantReached checks that the site at the usual address lists these pages, all of which visitors get.
func (s *server) wantReached(paths ...string) {
	s.T.Helper()
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, paths)...)
	s.wantHonest(harness.Local + "/sitemap.xml")
	if lines := s.LogLines("several file roots"); len(lines) > 0 {
		s.T.Errorf("the log says: %s", lines[0])
	}
}

// TestReportedRoots: of several roots, the pages are in the one that serves the front page, and in those that serve a
// folder of the site.
func TestReportedRoots(t *testing.T) {
	const site = "\nhandle {\n root * {dir}/site\n file_server\n}\n"
	block := func(inside string) string { return harness.Local + " {\n" + inside + "\n}\n" }
	for name, test := range map[string]struct {
		caddyfile string
		want      []string // nil: those of the root site
	}{
		"one for robots.txt": {caddyfile: block("sitemap\nhandle /robots.txt {\n root * {dir}/static\n file_server\n}" + site)},
		"for certificates and pictures": {caddyfile: block("sitemap\nhandle /.well-known/* {\n root * {dir}/static\n file_server\n}\n" +
			"handle /pictures/* {\n root * {dir}/pictures\n file_server\n}\n@icon path *.ico\nhandle @icon {\n root * {dir}/static\n file_server\n}" + site)},
		"for maintenance": {caddyfile: block("sitemap\n@down file {\n root {dir}/down\n try_files maintenance.flag\n}\n" +
			"handle @down {\n root * {dir}/down\n rewrite * /maintenance.html\n file_server {\n status 503\n }\n}" + site)},
		"for maintenance, the other way about": {caddyfile: block("sitemap\n@up not file {\n root {dir}/down\n try_files maintenance.flag\n}\n" +
			"handle @up {\n root * {dir}/site\n file_server\n}\nhandle {\n root * {dir}/down\n rewrite * /maintenance.html\n file_server\n}")},
		"of routes without handle": {caddyfile: block("route {\n sitemap\n file_server /robots.txt {\n  root {dir}/static\n }\n" +
			" file_server {\n  root {dir}/site\n }\n file_server {\n  root {dir}/other\n }\n}")},
		"by the method and an expression": {caddyfile: block("sitemap\n@post method POST\nhandle @post {\n root * {dir}/static\n file_server\n}\n" +
			"@guess expression `{http.request.uri.path}.startsWith(\"/static\")`\nhandle @guess {\n root * {dir}/static\n file_server\n}" + site)},
		"of a wildcard": {caddyfile: "http://*:{port} {\n root * {dir}/other\n file_server\n}\n" + block("sitemap"+site)},
		"of a catch-all with folders": {caddyfile: "http://:{port} {\n handle /docs/* {\n  root * {dir}/manual\n  file_server\n }\n handle {\n  root * {dir}/other\n  file_server\n }\n}\n" +
			block("sitemap"+site)},
		"of another site": {caddyfile: "http://other.example:{port} {\n root * {dir}/other\n file_server\n}\n" + block("sitemap"+site)},
		"of the front page alone": {caddyfile: block("sitemap\nhandle / {\n root * {dir}/other\n file_server\n}\nhandle {\n root * {dir}/home\n file_server\n}"),
			want: []string{"/", "/contact.html", "/en/", "/home.html", "/pages/start.html"}},
		"behind an application": {caddyfile: block("sitemap {\n files\n}\nhandle / {\n respond hello\n}\nhandle /robots.txt {\n root * {dir}/static\n file_server\n}\n" +
			"handle {\n root * {dir}/home\n file_server\n}"), want: []string{"/contact.html", "/en/", "/home.html", "/pages/start.html"}},
		"a manual in handle_path": {
			caddyfile: block("sitemap\nhandle_path /docs/* {\n root * {dir}/manual\n file_server\n}" + site),
			want:      []string{"/", "/about.html", "/blog/", "/docs/", "/docs/docs/", "/docs/docs/guide.html", "/docs/install.html"},
		},
		"a manual in handle": {
			caddyfile: block("sitemap\nhandle /docs/* {\n root * {dir}/manual\n file_server\n}" + site),
			want:      []string{"/", "/about.html", "/blog/", "/docs/", "/docs/guide.html"},
		},
		"a manual that a root directive names": {
			caddyfile: block("sitemap\nroot * {dir}/site\nroot /docs/* {dir}/manual\nfile_server"),
			want:      []string{"/", "/about.html", "/blog/", "/docs/", "/docs/guide.html"},
		},
		"folders alone": {
			caddyfile: block("root * {dir}/manual\nsitemap\nredir / /en/\nhandle_path /en/* {\n file_server\n}\nhandle /docs/* {\n file_server\n}"),
			want:      []string{"/docs/", "/docs/guide.html", "/en/", "/en/docs/", "/en/docs/guide.html", "/en/install.html"},
		},
		"a folder for each language": {
			caddyfile: block("root * {dir}/site\nsitemap\n@front path /\nredir @front /de/ 302\nhandle_path /de/* {\n file_server\n}\nhandle_path /fr/* {\n root * {dir}/manual\n file_server\n}"),
			want:      []string{"/de/", "/de/about.html", "/de/blog/", "/fr/", "/fr/docs/", "/fr/docs/guide.html", "/fr/install.html"},
		},
		"a folder with an index of its own": {
			caddyfile: block("sitemap\nhandle_path /docs/* {\n root * {dir}/home\n file_server {\n  index home.html\n }\n}" + site),
			want:      []string{"/", "/about.html", "/blog/", "/docs/", "/docs/contact.html", "/docs/en/index.html", "/docs/pages/start.html"},
		},
		"a folder whose front page has another name": {
			caddyfile: block("sitemap\nhandle_path /docs/* {\n root * {dir}/home\n rewrite / /home.html\n file_server\n}" + site),
			want:      []string{"/", "/about.html", "/blog/", "/docs/", "/docs/contact.html", "/docs/en/", "/docs/pages/start.html"},
		},
		"a folder of another name": {
			caddyfile: block("sitemap\nhandle_path /guide/* {\n root * {dir}/manual\n rewrite * /docs{uri}\n file_server\n}" + site),
			want:      []string{"/", "/about.html", "/blog/", "/guide/", "/guide/guide.html"},
		},
		"one named as a source is read once": {
			caddyfile: block("sitemap {\n files {dir}/site\n files {dir}/manual {\n  at /docs\n  exclude /docs/docs/*\n }\n}\nhandle_path /docs/* {\n root * {dir}/manual\n file_server\n}" + site),
			want:      []string{"/", "/about.html", "/blog/", "/docs/", "/docs/install.html"},
		},
		"the options of files hold for all": {
			caddyfile: block("sitemap {\n files {\n  exclude /docs/docs/* /about.html\n }\n}\nhandle_path /docs/* {\n root * {dir}/manual\n file_server\n}" + site),
			want:      []string{"/", "/blog/", "/docs/", "/docs/install.html"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, test.caddyfile, smallSite)
			if test.want == nil {
				test.want = pagesOfSmallSite
			}
			s.wantReached(test.want...)
		})
	}
}

// TestReportedFronts: the front page is listed by its own URL, whatever file the routes show there.
func TestReportedFronts(t *testing.T) {
	for name, test := range map[string]struct {
		routes string
		want   []string
	}{
		"a file of another name":          {"root * {dir}/home\nsitemap\nrewrite / /home.html\nfile_server", []string{"/", "/contact.html", "/en/", "/pages/start.html"}},
		"in a folder, behind the sitemap": {"root * {dir}/home\nsitemap\nhandle / {\n rewrite * /pages/start.html\n file_server\n}\nhandle {\n file_server\n}", []string{"/", "/contact.html", "/en/", "/home.html"}},
		"without endings":                 {"root * {dir}/home\nsitemap\nrewrite / /home\ntry_files {path} {path}.html\nfile_server", []string{"/", "/contact", "/en/", "/pages/start"}},
		"an index of a folder":            {"root * {dir}/home\nsitemap\nrewrite / /en/\nfile_server", []string{"/", "/contact.html", "/home.html", "/pages/start.html"}},
		"of a folder with an index":       {"root * {dir}/site\nsitemap\nrewrite / /about.html\nfile_server", []string{"/", "/blog/"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, harness.Local+" {\n"+test.routes+"\n}", smallSite)
			s.wantReached(test.want...)
		})
	}
}

// linked is an application of two pages.
func linked(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/moved":
		http.Redirect(w, r, "/prices", http.StatusFound)
	case "/", "/prices":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><title>%s</title><p>page %s <a href="/prices">prices</a>`, r.URL.Path, r.URL.Path)
	default:
		http.NotFound(w, r)
	}
}

// TestReportedLeftovers: an application whose files lie beside an index.html that it does not show is one.
func TestReportedLeftovers(t *testing.T) {
	const dist = "root * {dir}/dist\n"
	app := harness.Backend(t, linked)
	proxy := "reverse_proxy " + app
	for name, routes := range map[string]string{
		"a folder of its own":         "handle /assets/* {\n" + dist + "file_server\n}\nhandle {\n" + proxy + "\n}",
		"by endings":                  dist + "@assets path *.css *.html\nhandle @assets {\nfile_server\n}\nhandle {\n" + proxy + "\n}",
		"by a header":                 dist + "@old header X-Old *\nroute {\nfile_server @old\n" + proxy + "\n}",
		"by paths of the application": dist + "route {\n@front path / /prices\nreverse_proxy @front " + app + "\nfile_server\n}",
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, harness.Local+" {\n"+plain+routes+"\n}", map[string]string{
				"dist/index.html": "what a build has left here", "dist/old.html": "old", "dist/assets/app.css": "no page",
			})
			s.wantReached("/", "/prices")
		})
	}
}

// TestReportedLeftoverRedirect is such an application whose front page redirects.
func TestReportedLeftoverRedirect(t *testing.T) {
	app := harness.Backend(t, linked)
	s := start(t, harness.Local+" {\n"+plain+"handle /assets/* {\nroot * {dir}/dist\nfile_server\n}\nhandle {\nrewrite / /moved\nreverse_proxy "+app+"\n}\n}",
		map[string]string{"dist/index.html": "what a build has left here"})
	s.wantReached("/prices")
}

// TestReportedGuard: a site of files behind an upstream that only says who may enter stays one of files.
func TestReportedGuard(t *testing.T) {
	guard := harness.Backend(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	s := start(t, harness.Local+" {\nforward_auth "+guard+" {\nuri /check\n}\nroot * {dir}/site\n"+plain+"encode gzip\nfile_server\n}", smallSite)
	s.wantReached(pagesOfSmallSite...)
}

// folders are the files of a site of seven pages.
var folders = map[string]string{
	"site/index.html": "the front page", "site/about/index.html": "about us", "site/blog/index.html": "the blog", "site/blog/first/index.html": "first post",
	"site/blog/second/index.html": "second post", "site/team/index.html": "the team", "site/prices/index.html": "prices",
}

// TestReportedRedirects: where the routes redirect the URL of a file to another one, the page is listed by that.
func TestReportedRedirects(t *testing.T) {
	for name, test := range map[string]struct {
		routes string
		want   []string
	}{
		"without the slash": {"@s path_regexp dir (.+)/$\nredir @s {re.dir.1} permanent\ntry_files {path} {path}.html {path}/index.html",
			[]string{"/", "/about", "/blog", "/blog/first", "/blog/second", "/prices", "/team"}},
		"folders that have moved": {"redir /blog/* /news{uri} 308\nhandle /news/* {\nuri strip_prefix /news\nfile_server\n}",
			[]string{"/", "/about/", "/news/blog/", "/news/blog/first/", "/news/blog/second/", "/prices/", "/team/"}},
		"in two steps":              {"redir /blog/ /journal\nredir /journal /news\nrewrite /news /blog/", []string{"/", "/about/", "/blog/first/", "/blog/second/", "/news", "/prices/", "/team/"}},
		"without end":               {"@more path_regexp more ^/(blog|blog1+)/$\nredir @more /{re.more.1}1/", []string{"/", "/about/", "/blog/first/", "/blog/second/", "/prices/", "/team/"}},
		"to another host, or round": {"redir /blog/* https://other.example{uri}\nredir /team/ /team\nredir /team /team/", []string{"/", "/about/", "/prices/"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, harness.Local+" {\nroot * {dir}/site\nsitemap {\nrefresh 1s\n}\n"+test.routes+"\nfile_server\n}", folders)
			s.wantReached(test.want...)
		})
	}
}

// TestReportedRedirectChanges: a change of the file shows at the page to which its URL redirects.
func TestReportedRedirectChanges(t *testing.T) {
	s := start(t, harness.Local+" {\nroot * {dir}/site\nsitemap {\nrefresh 1s\n}\nredir /blog/ /blog\ntry_files {path} {path}/index.html\nfile_server\n}", folders)
	rest := []string{"/blog/first/", "/blog/second/", "/prices/", "/team/"}
	s.wantReached(append([]string{"/", "/about/", "/blog"}, rest...)...)
	s.Write(map[string]string{"site/blog/index.html": harness.Whole(`<meta name="robots" content="noindex">`, "not any more")})
	s.wantReached(append([]string{"/", "/about/"}, rest...)...)
}

// TestReportedPorts: a port that the first visitor has made up is that visitor's alone.
func TestReportedPorts(t *testing.T) {
	s := start(t, "http://:{port} {\n root * {dir}/site\n sitemap\n file_server\n}", smallSite)
	const at = "http://127.0.0.1:{port}"
	for _, test := range []struct{ first, then, want string }{
		{"shop.test:1234", "shop.test:{port}", "http://shop.test:{port}"},
		{"www.blog.test:8443", "www.blog.test", "http://www.blog.test"},
	} {
		for _, document := range []string{"/robots.txt", "/sitemap.xml"} {
			s.Get(at+document, "Host: "+test.first)
		}
		for host, want := range map[string]string{test.then: test.want, test.first: "http://" + test.first} {
			s.wantLocsOf(at+"/sitemap.xml", host, harness.Below(want, pagesOfSmallSite))
			line := s.Expand("Sitemap: " + want + "/sitemap.xml\n")
			if r := s.Get(at+"/robots.txt", "Host: "+s.Expand(host)); !strings.Contains(r.Text, line) {
				t.Errorf("%s after %s: robots.txt is %q, want %q", s.Expand(host), test.first, r.Text, line)
			}
		}
	}
}

// wantLocsOf is WantLocs for a Host header.
func (s *server) wantLocsOf(url, host string, want []string) {
	s.T.Helper()
	var got []string
	s.Eventually(func() bool {
		var err error
		got, err = s.TryLocs(url, "Host: "+s.Expand(host))
		return err == nil && strings.Join(got, " ") == s.Expand(strings.Join(want, " "))
	}, func() string { return fmt.Sprintf("for %s: got %q, want %q", s.Expand(host), got, want) })
}
