package caddytest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	sitemap "github.com/seed3295b519/caddy-sitemap"
	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

const (
	typeHTML = "text/html; charset=utf-8"
	typeFeed = "application/atom+xml; charset=utf-8"
	typeCSS  = "text/css; charset=utf-8"
)

// dated is a page that declares a date.
func dated(date string) string {
	return harness.Whole(`<meta property="article:modified_time" content="`+date+`">`, "text")
}

// TestWebPages turns each option on and off, for a site that has files of these names itself.
func TestWebPages(t *testing.T) {
	const line = `<?xml-stylesheet type="text/css" href="sitemap.css"?>`
	for _, test := range []struct {
		options string
		types   map[string]string // by extension
	}{
		{"", map[string]string{".css": typeCSS}},
		{"stylesheet on", nil}, // the site's own one stays
		{"stylesheet off", nil},
		{"feed", map[string]string{".css": typeCSS, ".atom": typeFeed}},
		{"html\nstylesheet off", map[string]string{".html": typeHTML}},
		{"html\nfeed\nstylesheet on", map[string]string{".css": typeCSS, ".atom": typeFeed, ".html": typeHTML}},
		{"html\nfeed\ncrawl off", map[string]string{".css": typeCSS, ".atom": typeFeed, ".html": typeHTML}},
	} {
		t.Run(test.options, func(t *testing.T) {
			files := map[string]string{
				"site/index.html": dated("2020-01-02"), "site/about.html": dated("2021-02-03"),
				"site/sitemap.html": harness.HTML("its own"), "site/sitemap.css": "its own", "site/sitemap.atom": "its own",
			}
			if test.types[".css"] != "" {
				delete(files, "site/sitemap.css")
			}
			s := start(t, harness.Local+" {\nroot * {dir}/site\nsitemap {\n"+test.options+"\n}\nfile_server\n}", files)
			want := []string{"/", "/about.html"}
			if test.types[".html"] == "" {
				want = append(want, "/sitemap.html")
			}
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, want)...)
			if got := s.Get(harness.Local + "/sitemap.xml").Text; strings.Contains(got, line) == strings.Contains(test.options, "stylesheet off") {
				t.Errorf("the sitemap is %s", got)
			}
			if got := s.Get(harness.Local + "/robots.txt").Text; strings.Contains(got, s.Expand("\nSitemap: http://localhost:{port}/sitemap.atom\n")) != (test.types[".atom"] != "") {
				t.Errorf("robots.txt is %q", got)
			}
			for _, extension := range []string{".html", ".atom", ".css"} {
				url, want := harness.Local+"/sitemap"+extension, test.types[extension]
				r := s.Get(url)
				switch own := strings.Contains(r.Text, "its own"); {
				case r.StatusCode != http.StatusOK, own != (want == ""):
					t.Errorf("%s: got status %d, %q", url, r.StatusCode, r.Text)
				case !own:
					s.wantBeside(url, want, r)
				}
			}
		})
	}
}

// wantBeside checks the responses for a document beside the XML. r is that for a GET.
func (s *server) wantBeside(url, contentType string, r harness.Response) {
	s.T.Helper()
	h := r.Header
	if h.Get("Content-Type") != contentType || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Robots-Tag") != "noindex" || h.Get("Vary") != "Accept-Encoding" ||
		!strings.HasPrefix(h.Get("Cache-Control"), "max-age=") || h.Get("Last-Modified") == "" || (h.Get("Content-Security-Policy") != "") != (contentType == typeHTML) {
		s.T.Errorf("%s: got %v", url, h)
	}
	const gzip = "Accept-Encoding: gzip"
	z := s.Get(url, gzip)
	if z.Header.Get("Content-Encoding") != "gzip" || harness.Gunzip(s.T, z.Text) != r.Text || z.Header.Get("Etag") == h.Get("Etag") {
		s.T.Errorf("%s: compressed, got %v", url, z.Header)
	}
	s.wantHead(s.T, url, r)
	s.wantHead(s.T, url, z, gzip)
	for _, test := range []struct {
		method, headers string
		want            int
	}{
		{"GET", "If-None-Match: " + h.Get("Etag"), 304},
		{"GET", "If-None-Match: " + z.Header.Get("Etag") + "|" + gzip, 304},
		{"GET", "If-None-Match: \"x\"", 200},
		{"GET", "If-Modified-Since: " + h.Get("Last-Modified"), 304},
		{"HEAD", "If-None-Match: " + h.Get("Etag"), 304},
		{"GET", "Range: bytes=0-9", 200},
		{"GET", "Range: bytes=0-9|" + gzip, 206},
		{"POST", gzip, 405},
	} {
		if got := s.Do(test.method, url, strings.Split(test.headers, "|")...); got.StatusCode != test.want {
			s.T.Errorf("%s %s, %s: got status %d, want %d", test.method, url, test.headers, got.StatusCode, test.want)
		}
	}
}

// links returns the targets and texts of the links in the main part of an HTML document, whose inline style and
// script are those that its policy allows.
func links(t *testing.T, r harness.Response) (urls, texts []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(r.Text))
	harness.Must(t, err)
	isMain := false
	for n := range root.Descendants() {
		switch n.Data {
		case "main":
			isMain = true
		case "style", "script":
			hash := sha256.Sum256([]byte(n.FirstChild.Data))
			want := n.Data + "-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
			if policy := r.Header.Get("Content-Security-Policy"); !strings.Contains(policy, want) {
				t.Errorf("got the policy %s, want in it %s", policy, want)
			}
		case "a":
			if !isMain {
				continue
			}
			for _, a := range n.Attr {
				urls = append(urls, a.Val)
			}
			var text strings.Builder
			for d := range n.Descendants() {
				if d.Type == html.TextNode {
					text.WriteString(d.Data)
				}
			}
			texts = append(texts, text.String())
		}
	}
	return urls, texts
}

// TestWebPagesPlaces has sites and sitemaps in folders, behind proxies and on demand.
func TestWebPagesPlaces(t *testing.T) {
	const site = "root * {dir}\nsitemap {\nfeed\nhtml\n%s\n}\nfile_server\n}"
	files := map[string]string{"index.html": dated("2020-01-02"), "docs/index.html": dated("2020-01-03"), "maps/a.html": dated("2020-01-04")}
	for name, test := range map[string]struct {
		caddyfile, options string
		requested          string // URL without an extension
		public             string // the same as visitors know it
		host               string
		pages              []string // URLs
	}{
		"a prefix": {
			"{origin} {\nhandle_path /shop/* {\n", "}", "{origin}/shop/sitemap", "{origin}/shop/sitemap", "",
			[]string{"{origin}/shop/", "{origin}/shop/docs/", "{origin}/shop/maps/a.html"},
		},
		"an odd path": {"{origin} {\n", "path \"/maps/ü&'s:(1) map%25.xml\"", "{origin}/maps/%C3%BC&'s:(1)%20map%25", "{origin}/maps/%C3%BC&'s:(1)%20map%25", "", []string{"{origin}/maps/a.html"}},
		"a path":      {"{origin} {\n", "path /maps/site.xml", "{origin}/maps/site", "{origin}/maps/site", "", []string{"{origin}/maps/a.html"}},
		"a base URL with a folder": {
			"{origin} {\n", "base_url https://example.com/docs", "{origin}/docs/sitemap", "https://example.com/docs/sitemap", "", []string{"https://example.com/docs/"},
		},
		"on demand": {":{port} {\n", "", "{origin}/sitemap", "http://visitor.example:{port}/sitemap", "visitor.example:{port}", []string{
			"http://visitor.example:{port}/", "http://visitor.example:{port}/docs/", "http://visitor.example:{port}/maps/a.html",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			expand := func(s *server, text string) string {
				return s.Expand(strings.ReplaceAll(text, "{origin}", harness.Local))
			}
			s := prepare(t, files)
			options, after := test.options, ""
			if options == "}" {
				options, after = "", "\n}"
			}
			s.Load(expand(s, test.caddyfile+fmt.Sprintf(site, options)+after))
			var headers []string
			if test.host != "" {
				headers = []string{"Host: " + s.Expand(test.host)}
			}
			requested, public := expand(s, test.requested), expand(s, test.public)
			page := s.Get(requested+".html", headers...)
			var want []string
			for _, url := range test.pages {
				want = append(want, expand(s, url))
			}
			if got, _ := links(t, page); page.StatusCode != http.StatusOK || !slices.Equal(got, want) {
				t.Errorf("got status %d, links %q, want %q\n%s", page.StatusCode, got, want, s.SitemapLog())
			}
			if feed := `<link rel="alternate" type="application/atom+xml" title="Pages that changed last" href="` + public + `.atom">`; !strings.Contains(html.UnescapeString(page.Text), feed) {
				t.Errorf("got\n%s\nwant in it %s", page.Text, feed)
			}
			var f struct {
				ID     string   `xml:"id"`
				Author string   `xml:"author>name"`
				IDs    []string `xml:"entry>id"`
			}
			slices.Reverse(want) // the latest is first
			if err := xml.Unmarshal([]byte(s.Get(requested+".atom", headers...).Text), &f); err != nil || f.ID != public+".atom" || !slices.Equal(f.IDs, want) {
				t.Errorf("got feed %+v, %v, want %q", f, err, want)
			}
			stem := public[strings.LastIndexByte(public, '/')+1:]
			if strings.Contains(stem, ":") {
				stem = "./" + stem // else it would begin with a scheme
			}
			if got := s.Get(requested+".xml", headers...).Text; !strings.Contains(html.UnescapeString(got), `href="`+stem+`.css"?>`) {
				t.Errorf("got the sitemap\n%s", got)
			}
			if r := s.Get(requested+".css", headers...); r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != typeCSS {
				t.Errorf("the stylesheet: status %d, %v", r.StatusCode, r.Header)
			}
		})
	}
}

// TestWebPagesHostile has titles and paths that try to be more than text.
func TestWebPagesHostile(t *testing.T) {
	titles := map[string]string{ // with what is shown
		"//evil.example/a": "a path", "/a'b\"c<d>": `" onmouseover="alert(1)`, "/javascript:alert(1)": "javascript:alert(1)",
		"/script": "</title><script>alert(1)</script>", "/bidi": "\u202egpj.exe", "/long": strings.Repeat("ü", 10_000), "/none": "", "/rtl": "שלום", "/template": "{{.Host}}",
	}
	shown := map[string]string{
		"//evil.example/a": "a path", "/a'b%22c%3Cd%3E": `" onmouseover="alert(1)`, "/javascript:alert(1)": "javascript:alert(1)",
		"/script": "</title><script>alert(1)</script>", "/bidi": "gpj.exe", "/long": strings.Repeat("ü", 199) + "…", "/none": "/none", "/rtl": "שלום", "/template": "{{.Host}}",
	}
	list := new(pageList)
	for path := range shown {
		list.pages = append(list.pages, sitemap.Page{Path: path})
	}
	give(t, "hostile", list.yield)
	s := prepare(t, nil)
	s.LoadApp(harness.Local+" {\nheader Content-Security-Policy \"default-src 'self'\"\nsitemap {\ngiven hostile\nhtml\nfeed\ncrawl {\nrate 1000/s\n}\n}\nreverse_proxy {app}\n}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Last-Modified", "Thu, 02 Jan 2020 00:00:00 GMT")
		if title, ok := titles[r.URL.Path]; ok {
			fmt.Fprintf(w, "<!doctype html><title>%s</title><p>text of %s", html.EscapeString(title), html.EscapeString(r.URL.Path))
			return
		}
		http.NotFound(w, r)
	})
	s.Eventually(func() bool { return len(s.Locs(harness.Local+"/sitemap.xml")) == len(shown) }, s.SitemapLog)
	got := make(map[string]string)
	urls, texts := links(t, s.Get(harness.Local+"/sitemap.html"))
	for i, url := range urls {
		got[strings.TrimPrefix(url, s.Expand(harness.Local))] = texts[i]
	}
	for path, want := range shown {
		if text, ok := got[path]; !ok || text != want {
			t.Errorf("%s: got %q, want %q", path, text, want)
		}
	}
	if len(got) != len(shown) {
		t.Errorf("got links %q", urls)
	}
}

// TestWebPagesTurnedOn: a reload adds and removes documents, and the next handler has their names before and after.
func TestWebPagesTurnedOn(t *testing.T) {
	give(t, "turned", paged(3))
	on, off := fetchedSite("turned", "feed\nhtml"), fetchedSite("turned", "stylesheet off")
	s := start(t, off, nil)
	isOurs := func(name string) bool { return strings.Contains(s.Get(harness.Local+name).Text, "caddy-sitemap") }
	for range 2 {
		if isOurs("/sitemap.html") {
			t.Error("html is off, and served")
		}
		s.Load(on)
		s.Eventually(func() bool {
			return isOurs("/sitemap.html") && strings.Count(s.Get(harness.Local+"/sitemap.html").Text, ">a page<") == 3
		}, s.SitemapLog)
		if !isOurs("/sitemap.css") || isOurs("/sitemap.atom") || strings.Contains(s.Get(harness.Local+"/sitemap.html").Text, ".atom") { // no page has a date
			t.Error("the stylesheet is missing, or there is a feed or a link to it")
		}
		if got := s.Get(harness.Local + "/robots.txt").Text; strings.Contains(got, "atom") {
			t.Errorf("robots.txt is %q", got)
		}
		s.Load(off)
		s.Eventually(func() bool { return !strings.Contains(s.Get(harness.Local+"/sitemap.xml").Text, "stylesheet") }, s.SitemapLog)
		if isOurs("/sitemap.css") {
			t.Error("the stylesheet is off, and served")
		}
	}
}
