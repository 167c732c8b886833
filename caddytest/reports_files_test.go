package caddytest

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/caddytest/sitemaps"
)

// inSite is one site at {dir}/site with directives around its sitemap.
func inSite(before, after string) string {
	return harness.Local + " {\n root {dir}/site\n " + before + "\n " + after + "\n}"
}

// siteFiles are files below {dir}/site: each is a page with a text of its own, and a file in two folders is two pages.
func siteFiles(names ...string) map[string]string {
	files := make(map[string]string)
	for _, name := range names {
		files["site/"+name] = harness.Whole("", "the text of "+name)
	}
	return files
}

// TestFallbackIsNoSample: the file that is served for all paths that do not exist says nothing about clean URLs.
func TestFallbackIsNoSample(t *testing.T) {
	for name, test := range map[string]struct {
		fallback string
		files    []string
		want     []string
	}{
		"SvelteKit": {
			"200.html",
			[]string{"index.html", "200.html", "about.html", "blog.html", "blog/first.html"},
			[]string{"/", "/about", "/blog", "/blog/first"},
		},
		"by another name, and no other folder": {
			"app.html",
			[]string{"index.html", "app.html", "contact.html", "shop.html"},
			[]string{"/", "/contact", "/shop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := "try_files {path} {path}.html /" + test.fallback + "\n file_server"
			s := start(t, inSite("sitemap", server), siteFiles(test.files...))
			s.wantPages(test.want...)
		})
	}
}

// TestErrorPages: a file that is shown in place of a page that does not exist or fails is no page.
func TestErrorPages(t *testing.T) {
	own := func(paths ...string) string {
		var b strings.Builder
		b.WriteString(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
		for _, path := range paths {
			fmt.Fprintf(&b, "<url><loc>http://localhost:PORT%s</loc></url>", path)
		}
		return b.String() + "</urlset>"
	}
	for name, test := range map[string]struct {
		source, server string
		files          []string
		own            string // the site's own sitemap
		want           []string
	}{
		"by name": {
			server: "file_server",
			files: []string{
				"index.html", "404.html", "404/index.html", "de/index.html", "de/404/index.html", "pt-BR/500/index.html", "200.html",
				"offline.html", "offline/index.html",
				"shows/404/index.html", "shows/200.html", "404/history.html", "2004/index.html",
			},
			want: []string{"/", "/2004/", "/404/history.html", "/de/", "/shows/200.html", "/shows/404/"},
		},
		"by name, with a pattern that names it": {
			source: "files {\n include /404/index.html\n}",
			server: "file_server",
			files:  []string{"index.html", "404/index.html", "500/index.html"},
			want:   []string{"/", "/404/"},
		},
		"in an own sitemap": {
			server: "try_files {path} {path}.html\n file_server",
			files:  []string{"index.html", "404.html", "offline.html", "a.html", "fr/404/index.html"},
			own:    own("/", "/404", "/404.html", "/offline", "/a", "/fr/404/"),
			want:   []string{"/", "/a"},
		},
		"named by urls": {
			source: "files\n urls {\n /404/\n /offline.html\n}",
			server: "file_server",
			files:  []string{"index.html", "404/index.html", "offline.html"},
			want:   []string{"/", "/404/", "/offline.html"},
		},
		"the end of try_files": {
			source: "crawl off",
			server: "try_files {path} /shell.html\n file_server",
			files:  []string{"index.html", "shell.html", "a.html"},
			want:   []string{"/", "/a.html"},
		},
		"served by handle_errors": {
			server: "file_server\n handle_errors {\n rewrite * /sorry.html\n file_server\n}",
			files:  []string{"index.html", "sorry.html", "a.html"},
			own:    own("/", "/sorry.html"),
			want:   []string{"/", "/a.html"},
		},
		"served by handle_errors below a path": {
			source: "crawl off",
			server: "handle_path /docs/* {\n file_server\n}\n file_server\n handle_errors 5xx {\n rewrite * /oops.html\n file_server\n}",
			files:  []string{"index.html", "oops.html", "oops/more.html"},
			want:   []string{"/", "/oops/more.html"},
		},
		"an application in the front page": {
			server: "try_files {path} /index.html\n file_server\n handle_errors {\n rewrite * /index.html\n file_server\n}",
			files:  []string{"index.html", "a.html", "s1/index.html", "s2/index.html", "s3/index.html"},
			want:   []string{"/", "/a.html"}, // try_files serves the front page for a folder
		},
		"folders that are served": {
			server: "try_files {path} {path}/ /index.html\n file_server",
			files:  []string{"index.html", "s1/index.html", "s2/index.html"},
			want:   []string{"/", "/s1/", "/s2/"},
		},
		"by text": {
			server: "@none not file\n rewrite @none /apps/shell/fallback.html\n file_server",
			files:  []string{"index.html", "a.html", "apps/shell/fallback.html"},
			want:   []string{"/", "/a.html"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, siteFiles(test.files...))
			if test.own != "" {
				port := strings.TrimPrefix(s.Expand(harness.Local), "http://localhost:")
				s.WriteRaw("site/sitemap.xml", strings.ReplaceAll(test.own, "PORT", port))
			}
			s.Load(inSite("sitemap {\n "+test.source+"\n}", test.server))
			s.wantPages(test.want...)
		})
	}
}

// TestRobotsDisallowSitemap: crawlers do not read a sitemap that robots.txt disallows, which the log, the status and an
// explanation say.
func TestRobotsDisallowSitemap(t *testing.T) {
	const warning = "robots.txt disallows"
	for rule, disallows := range map[string]bool{
		"/sitemap.xml":                   true,
		"/*.xml$":                        true,
		"/sitemap-":                      true, // the documents that the index names
		"/sitemap.html":                  false,
		"/sitemap\nAllow: /sitemap*.xml": false,
	} {
		t.Run(rule, func(t *testing.T) {
			files := siteFiles("index.html", "a.html", "b.html")
			files["site/robots.txt"] = "User-agent: *\nDisallow: " + rule + "\n"
			s := startWithAdmin(t, inSite("sitemap {\n shard_urls 2\n}", "file_server"), files)
			s.wantPages("/", "/a.html", "/b.html")
			s.Refreshes(1)
			status := s.Get(api + "/sitemap/sites")
			explained := s.Get(api + "/sitemap/explain?url=" + harness.Local + "/a.html")
			if !disallows {
				if lines := s.LogLines(warning); len(lines) > 0 {
					t.Errorf("logged %s", lines)
				}
				return
			}
			s.Logged(`"level":"warn"`, warning, "/sitemap")
			wantWords(t, "the status", status.Text, warning)
			wantWords(t, "the explanation", explained.Text, warning)
		})
	}
}

// TestRobotsMisspelled: crawlers obey common misspellings in a robots.txt.
func TestRobotsMisspelled(t *testing.T) {
	files := siteFiles("index.html")
	var rules strings.Builder
	rules.WriteString("useragent: *\n")
	for i, name := range []string{"Dissallow", "dissalow", "DISALOW", "diasllow", "Disallaw"} {
		maps.Copy(files, siteFiles(fmt.Sprintf("%d/index.html", i)))
		fmt.Fprintf(&rules, "%s: /%d/\n", name, i)
	}
	maps.Copy(files, siteFiles("blank/index.html", "else/index.html", "else/in.html"))
	rules.WriteString("Disalow /blank/\nDisallows: /else/\n")
	s := prepare(t, files)
	s.WriteRaw("site/pages.xml", s.Expand(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://localhost:{port}/plain.txt</loc></url></urlset>`))
	s.WriteRaw("site/plain.txt", "text")
	s.WriteRaw("site/robots.txt", rules.String()+s.Expand("Site-map: http://localhost:{port}/pages.xml\nSite-map: http://localhost:{port}/sitemap.xml\n"))
	s.Load(inSite("sitemap", "file_server"))
	s.wantPages("/", "/else/", "/else/in.html", "/plain.txt")
	// Not all crawlers know the misspelling.
	wantWords(t, "robots.txt", s.robots().Text, s.Expand("\nSitemap: http://localhost:{port}/sitemap.xml\n"))
}

// TestFeedOfPublicationDates: articles whose only date is that of their publication are in the feed.
func TestFeedOfPublicationDates(t *testing.T) {
	for name, test := range map[string]struct{ head, want string }{
		"Open Graph": {`<meta property="article:published_time" content="2024-05-02T10:00:00Z">`, "2024-05-02T10:00:00Z"},
		"a day":      {`<script type="application/ld+json">{"@type":"BlogPosting","datePublished":"2023-04-05"}</script>`, "2023-04-05T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			posts := map[string]string{
				"/":       harness.Whole("", `<a href="/first">first</a> <a href="/other">other</a>`),
				"/first":  harness.Whole(test.head, "the first post"),
				"/other":  harness.Whole("", "no post"),
				"/robots": "",
			}
			blog := harness.Backend(t, func(w http.ResponseWriter, r *http.Request) {
				text := posts[r.URL.Path]
				if text == "" {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte(text))
			})
			s := start(t, harness.Local+" {\n sitemap {\n feed\n crawl {\n rate 200/s\n }\n }\n reverse_proxy "+blog+"\n}", nil)
			s.wantPages("/", "/first", "/other")
			feed := s.Get(harness.Local + "/sitemap.atom")
			wantWords(t, "the feed", feed.Text, "<updated>"+test.want+"</updated>", "/first</id>")
			if strings.Contains(feed.Text, "/other") {
				t.Errorf("a page without a date is in the feed: %s", feed.Text)
			}
			if date := s.Dates(harness.Local)["/first"]; date != "" {
				t.Errorf("the date of publication is a lastmod: %s", date)
			}
		})
	}
}

// TestDeclaredAnew: a date that a file declares anew counts, although nothing else of the file has changed, and the
// time of the file does not come back. Alike new dates of several files are a build's.
func TestDeclaredAnew(t *testing.T) {
	declares := map[string]func(date string) string{
		"JSON-LD": func(date string) string {
			return `<script type="application/ld+json">{"@type":"Article","dateModified":"` + date + `"}</script>`
		},
		"meta": func(date string) string { return `<meta property="article:modified_time" content="` + date + `">` },
	}
	for name, head := range declares {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			put := func(name, date string, day int) {
				s.Put("site/"+name, harness.Whole(head(date), "the text of "+name), harness.DayOf(day))
			}
			want := map[string]string{"/a.html": "2025-03-03", "/b.html": "2024-02-02", "/c.html": "2023-01-01T10:00:00Z"}
			put("a.html", "2025-03-03", 10)
			put("b.html", "2024-02-02", 40)
			put("c.html", "2023-01-01T10:00:00Z", 70)
			s.Load(inSite("sitemap {\n refresh 1s\n}", "file_server"))
			s.WantDates(harness.Local, want)

			put("a.html", "2026-06-01", 100)
			want["/a.html"] = "2026-06-01"
			s.WantDates(harness.Local, want)
			put("a.html", "2026-06-11", 130)
			put("c.html", "2023-06-06", 140)
			want["/a.html"] = "2026-06-11"
			want["/c.html"] = "2023-06-06"
			s.WantDates(harness.Local, want)
			s.Refreshes(2)
			s.WantDates(harness.Local, want)
		})
	}
}

// TestBuildTwice: a second build in place keeps the dates of the sitemap that the first one has replaced, but for files
// that have changed since.
func TestBuildTwice(t *testing.T) {
	for name, args := range map[string][]string{
		"fetched": nil,
		"by name": {"--crawl=false", "--gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			generated := `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
			want := make(map[string]string)
			for i := range 5 {
				path := fmt.Sprintf("/%d.html", i)
				s.Put("www"+path, page("text "+path), harness.DayOf(300)) // as a deployment does
				want[path] = fmt.Sprintf("2021-02-%02d", i+1)
				generated += "<url><loc>" + example + path + "</loc><lastmod>" + want[path] + "</lastmod></url>"
			}
			s.WriteRaw("www/sitemap.xml", generated+"</urlset>")
			for range 3 {
				build(t, s.Dir, append(append([]string{"--force"}, alone...), args...)...)
				got := make(map[string]string)
				for _, entry := range entriesOf(t, s.Dir, "www/sitemap.xml") {
					got[strings.TrimPrefix(entry.Loc, example)] = entry.LastMod
				}
				if !maps.Equal(got, want) {
					t.Fatalf("got %v, want %v", got, want)
				}
			}
			// What a file says anew is not hidden, and what is gone is not listed.
			s.Put("www/0.html", page("another text"), time.Now().Add(time.Minute).Truncate(time.Second))
			s.remove("www/1.html")
			build(t, s.Dir, append(append([]string{"--force"}, alone...), args...)...)
			entries := entriesOf(t, s.Dir, "www/sitemap.xml")
			if len(entries) != 4 || entries[0].LastMod == want["/0.html"] || entries[1].LastMod != want["/2.html"] {
				t.Errorf("after a change, got %v", entries)
			}
		})
	}
}

// entriesOf are the entries of a small sitemap in a folder.
func entriesOf(t *testing.T, dir, name string) []sitemaps.Entry {
	t.Helper()
	d, err := sitemaps.Read(read(t, dir, name))
	harness.Must(t, err)
	return d.Pages
}
