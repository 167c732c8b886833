package caddytest

import (
	"encoding/xml"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

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
		{"html\nstylesheet off", map[string]string{".html": typeHTML}},
		{"html\nfeed\nstylesheet on", map[string]string{".css": typeCSS, ".atom": typeFeed, ".html": typeHTML}},
	} {
		t.Run(test.options, func(t *testing.T) {
			files := map[string]string{
				"site/index.html": dated("2020-01-02"), "site/about.html": dated("2021-02-03"),
				"site/sitemap.html": harness.HTML("its own"), "site/sitemap.css": "its own", "site/sitemap.atom": "its own",
			}
			if test.types[".css"] != "" {
				delete(files, "site/sitemap.css")
			}
			s := start(t, harness.Local+" {\nheader Content-Security-Policy \"default-src 'self'\"\nroot * {dir}/site\nsitemap {\n"+test.options+"\n}\nfile_server\n}", files)
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
					if got := r.Header.Get("Content-Security-Policy"); got != "default-src 'self'" {
						t.Errorf("%s: the site's policy became %q", url, got)
					}
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
		!strings.HasPrefix(h.Get("Cache-Control"), "max-age=") || h.Get("Last-Modified") == "" {
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
		method, header string
		want           int
	}{
		{"GET", "If-None-Match: " + z.Header.Get("Etag"), 304}, {"GET", "If-Modified-Since: " + h.Get("Last-Modified"), 304},
		{"GET", "Range: bytes=0-9", 206}, {"POST", "Accept: */*", 405},
	} {
		if got := s.Do(test.method, url, gzip, test.header); got.StatusCode != test.want {
			s.T.Errorf("%s %s, %s: got status %d, want %d", test.method, url, test.header, got.StatusCode, test.want)
		}
	}
}

// link is a link to a page in the HTML document of a small site.
var link = regexp.MustCompile(`<li><a href="([^"]*)"`)

// TestWebPagesPlaces has sites and sitemaps in folders, behind proxies and on demand.
func TestWebPagesPlaces(t *testing.T) {
	const docs, file, odd = "docs/", "maps/a.html", harness.Local + "/maps/%C3%BC&'s:(1)%20map%25"
	files := map[string]string{"index.html": dated("2020-01-02"), "docs/index.html": dated("2020-01-03"), file: dated("2020-01-04")}
	for name, test := range map[string]struct {
		config, option    string
		requested, public string   // URL of the sitemap without its extension, and the same as visitors know it
		pages             []string // below the folder of public, the latest first
	}{
		"an odd path":              {harness.Local + " {\nSITE\n}", "path \"/maps/ü&'s:(1) map%25.xml\"", odd, odd, []string{"a.html"}},
		"a base URL with a folder": {harness.Local + " {\nSITE\n}", "base_url https://example.com/docs", harness.Local + "/docs/sitemap", "https://example.com/docs/sitemap", []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, strings.Replace(test.config, "SITE", "root * {dir}\nsitemap {\nfeed\nhtml\n"+test.option+"\n}\nfile_server", 1), files)
			public := s.Expand(test.public)
			folder, stem := public[:strings.LastIndexByte(public, '/')+1], public[strings.LastIndexByte(public, '/')+1:]
			want := harness.Below(folder, test.pages)
			s.Get(test.requested + ".html") // which makes the site on demand
			s.Crawled()
			page := s.Get(test.requested + ".html")
			var got []string
			_, list, _ := strings.Cut(page.Text, "<main")
			for _, match := range link.FindAllStringSubmatch(html.UnescapeString(list), -1) {
				got = append(got, match[1])
			}
			slices.Reverse(got)
			if page.StatusCode != http.StatusOK || !slices.Equal(got, want) {
				t.Errorf("got status %d, links %q, want %q\n%s", page.StatusCode, got, want, s.SitemapLog())
			}
			if home := `<a href="` + folder + `">Home</a>`; !strings.Contains(html.UnescapeString(page.Text), home) {
				t.Errorf("got\n%s\nwant in it %s", page.Text, home)
			}
			if feed := `<link rel="alternate" type="application/atom+xml" title="Changed last" href="` + public + `.atom">`; !strings.Contains(html.UnescapeString(page.Text), feed) {
				t.Errorf("got\n%s\nwant in it %s", page.Text, feed)
			}
			var f struct {
				ID  string   `xml:"id"`
				IDs []string `xml:"entry>id"`
			}
			if err := xml.Unmarshal([]byte(s.Get(test.requested+".atom").Text), &f); err != nil || f.ID != public+".atom" || !slices.Equal(f.IDs, want) {
				t.Errorf("got feed %+v, %v, want %q", f, err, want)
			}
			if strings.Contains(stem, ":") {
				stem = "./" + stem // else it would begin with a scheme
			}
			if got := s.Get(test.requested + ".xml").Text; !strings.Contains(html.UnescapeString(got), `href="`+stem+`.css"?>`) {
				t.Errorf("got the sitemap\n%s", got)
			}
			if r := s.Get(test.requested + ".css"); r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != typeCSS {
				t.Errorf("the stylesheet: status %d, %v", r.StatusCode, r.Header)
			}
		})
	}
}

// TestFeedTexts: what pages declare is in the feed as they wrote it, also where Caddy's templates are around it.
func TestFeedTexts(t *testing.T) {
	declares := func(date string) string { return `<meta property="article:modified_time" content="` + date + `">` }
	files := map[string]string{
		"index.html": `<!doctype html><title>A &lt;b> &amp; {{env "HOME"}}</title><meta name=description content="Home">` + declares("2020-01-05"),
		"a.html":     `<!doctype html><title>שלום</title><meta name=description content="{{env &quot;HOME&quot;}} <b>👩‍👧</b>">` + declares("2020-01-04"),
		"b.html":     `<!doctype html><title>B</title><meta property=og:description content="` + strings.Repeat("é", 10_000) + `">` + declares("2020-01-03"),
		"c.html":     `<!doctype html><title>C</title>` + declares("2020-01-02"),
	}
	s := start(t, harness.Local+` {
		root {dir}
		route {
			templates {
				mime application/atom+xml
			}
			sitemap {
				feed
			}
			file_server
		}
	}`, files)
	type entry struct {
		Title   string `xml:"title"`
		Summary string `xml:"summary"`
	}
	var f struct {
		entry
		Entries []entry `xml:"entry"`
	}
	feed := s.Get(harness.Local + "/sitemap.atom")
	if err := xml.Unmarshal([]byte(feed.Text), &f); err != nil {
		t.Fatalf("status %d, %v in\n%s", feed.StatusCode, err, feed.Text)
	}
	const code = `{{env "HOME"}}`
	home := entry{"A <b> & " + code, "Home"}
	want := []entry{home, {"שלום", code + " <b>👩‍👧</b>"}, {"B", strings.Repeat("é", 199) + "…"}, {"C", ""}}
	if f.Title != home.Title || f.Summary != "" || !slices.Equal(f.Entries, want) {
		t.Errorf("got title %q, entries %q, want %q, %q", f.Title, f.Entries, home.Title, want)
	}
}

// TestWebPagesTurnedOn: a reload adds and removes documents, and the next handler has their names before and after.
func TestWebPagesTurnedOn(t *testing.T) {
	give(t, "turned", paged(3))
	on, off := fetchedSite("turned", "feed\nhtml\nllms"), fetchedSite("turned", "stylesheet off")
	s := start(t, off, nil)
	isOurs := func(name string) bool { return strings.Contains(s.Get(harness.Local+name).Text, "caddy-sitemap") }
	for range 2 {
		if isOurs("/sitemap.html") || isOurs("/llms.txt") {
			t.Error("html and llms are off, and served")
		}
		s.Load(on)
		s.Eventually(func() bool {
			return isOurs("/sitemap.html") && isOurs("/llms.txt") && strings.Count(s.Get(harness.Local+"/sitemap.html").Text, ">a page<") == 3
		}, s.SitemapLog)
		if !isOurs("/sitemap.css") || isOurs("/sitemap.atom") || strings.Contains(s.Get(harness.Local+"/sitemap.html").Text+s.Get(harness.Local+"/robots.txt").Text, ".atom") {
			t.Error("the stylesheet is missing, or there is a feed of pages without dates, or a link to it")
		}
		s.Logged(`"level":"warn"`, "there is no feed yet")
		s.Load(off)
		s.Eventually(func() bool { return !strings.Contains(s.Get(harness.Local+"/sitemap.xml").Text, "stylesheet") }, s.SitemapLog)
		if isOurs("/sitemap.css") {
			t.Error("the stylesheet is off, and served")
		}
	}
}
