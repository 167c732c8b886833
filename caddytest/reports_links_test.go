package caddytest

import (
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// behindTLS is the site of an application behind a proxy, which ends TLS: visitors see https://shop.test.
func behindTLS(options string) string {
	return behind("base_url https://shop.test\n" + options)
}

// TestLinksOfAnotherScheme: an application that does not know that a proxy ends TLS writes http:// into all URLs of its
// own site. They are those of the pages that visitors get by https.
func TestLinksOfAnotherScheme(t *testing.T) {
	const http = "http://shop.test"
	type responses = map[string]string
	for name, test := range map[string]struct {
		options   string
		responses responses
		want      string
	}{
		"links and canonicals": {
			responses: responses{
				"/":  naming(http+"/", linking("front", http+"/a", "HTTP://Shop.Test:80/b")),
				"/a": naming(http+"/a", linking("a")),
				"/b": naming(http+"/a", linking("b")),
			},
			want: "/ /a",
		},
		"redirects, frames, refreshes and headers": {
			responses: responses{
				"/":        redirecting(http + "/welcome"),
				"/welcome": linking("welcome", "/r", "/h") + `<iframe src="` + http + `/framed"></iframe>`,
				"/framed":  linking("framed"),
				"/r":       "Refresh: 0; url=" + http + "/there\n\n" + linking("refresh"),
				"/there":   linking("there"),
				"/h":       "Link: <" + http + `/h>; rel="canonical"` + "\n\n" + linking("h"),
			},
			want: "/framed /h /there /welcome",
		},
		"lists and sitemaps": {
			options: "links\nurls {\n" + http + "/inline\n}\nurls " + http + "/list.txt",
			responses: responses{
				"/":            linking("front"),
				"/inline":      linking("inline"),
				"/listed":      linking("listed"),
				"/old":         linking("old"),
				"/list.txt":    "Content-Type: text/plain\n\n" + http + "/listed",
				"/robots.txt":  "Content-Type: text/plain\n\nSitemap: " + http + "/index.xml",
				"/index.xml":   "Content-Type: text/xml\n\n<sitemapindex><sitemap><loc>" + http + "/part.xml</loc></sitemap></sitemapindex>",
				"/part.xml":    "Content-Type: text/xml\n\n<urlset><url><loc>" + http + "/old</loc></url></urlset>",
				"/sitemap.xml": "Content-Type: text/xml\n\n<urlset><url><loc>" + http + "/</loc></url></urlset>",
			},
			want: "/ /inline /listed /old",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			s.LoadApp(behindTLS(test.options), newWeb(test.responses).ServeHTTP)
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below("https://shop.test", strings.Fields(test.want))...)
			if lines := s.LogLines("sitemap", `"level":"warn"`); len(lines) > 0 {
				t.Errorf("the log warns: %q", lines)
			}
		})
	}
}

// TestVersionsOfAnotherScheme: versions in other languages are listed by the scheme of the site, and an image, too.
func TestVersionsOfAnotherScheme(t *testing.T) {
	versions := []string{"en", "http://shop.test/", "de", "http://shop.test/de/"}
	s := prepare(t, nil)
	s.LoadApp(behindTLS("extensions alternates images"), newWeb(map[string]string{
		"/":      speaking(`front <img src="http://shop.test/a.png">`, versions...),
		"/de/":   speaking("deutsch", versions...),
		"/a.png": "Content-Type: image/png\n\nan image",
	}).ServeHTTP)
	s.WantLocs(harness.Local+"/sitemap.xml", "https://shop.test/", "https://shop.test/de/")
	text := s.Get(harness.Local + "/sitemap.xml").Text
	for _, want := range []string{`hreflang="de" href="https://shop.test/de/"`, `hreflang="en" href="https://shop.test/"`, "<image:loc>https://shop.test/a.png<"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// TestOwnSitemapOfAnotherScheme: where the site itself has http, and its sitemap https, the warning says what to set, and
// speaks of no other host. With another port, the site is another one.
func TestOwnSitemapOfAnotherScheme(t *testing.T) {
	for name, test := range map[string]struct{ base, named string }{
		"https":        {"http://shop.test", "https://shop.test"},
		"another port": {"https://shop.test", "http://shop.test:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			s.LoadApp(behind("base_url "+test.base), newWeb(map[string]string{
				"/":            linking("front", test.named+"/a"),
				"/a":           linking("a"),
				"/sitemap.xml": "Content-Type: text/xml\n\n<urlset><url><loc>" + test.named + "/a</loc></url></urlset>",
			}).ServeHTTP)
			s.WantLocs(harness.Local+"/sitemap.xml", test.base+"/")
			s.Logged(`"level":"warn"`, "own sitemap", "base_url", test.named)
			if lines := s.LogLines("another host"); len(lines) > 0 {
				t.Errorf("the log has %q", lines)
			}
		})
	}
}

// TestLinksOfTheHead: pages that only name each other by <link>, or by a Link header, are found: versions in other
// languages, and the next and previous page of a series.
func TestLinksOfTheHead(t *testing.T) {
	linked := func(rel, text string) string { return harness.Whole("<link "+rel+">", text) }
	type responses = map[string]string
	for name, test := range map[string]struct {
		options   string
		responses responses
		want      string
	}{
		"languages": {
			responses: responses{
				"/":    speaking("front", "en", "/", "de", "/de/", "pt-BR", "/br/", "x-default", "/all/"),
				"/de/": linking("deutsch", "/de/a"), "/de/a": linking("ein a"),
				"/br/": linking("br"), "/all/": linking("all"),
			},
			want: "/ /all/ /br/ /de/ /de/a",
		},
		"a series": {
			responses: responses{
				"/":  linked(`rel="next" href="/2"`, "one"),
				"/2": linked(`rel="prefetch NEXT" href="/3"`, "two"),
				"/3": linked(`rel="next" href="/4"`, "three"),
				"/4": linked(`rel=prev href=/0`, "four"), "/0": linking("zero"),
			},
			want: "/ /0 /2 /3 /4",
		},
		"headers": {
			responses: responses{
				"/":    `Link: </de/>; rel="alternate"; hreflang="de", </2>; rel=next` + "\n\n" + linking("front"),
				"/de/": linking("deutsch"),
				"/2":   "Link: </0>; rel=\"prev\"\n\n" + linking("two"), "/0": linking("zero"),
			},
			want: "/ /0 /2 /de/",
		},
		"not links": {
			responses: responses{
				"/": harness.Whole(`<link rel="alternate" type="application/rss+xml" href="/feed"><link rel="alternate stylesheet" hreflang="de" href="/css">`+
					`<link rel="next nofollow" href="/nofollow"><link rel="alternate" media="print" href="/print">`, "front"),
				"/feed": linking("feed"), "/css": linking("css"), "/nofollow": linking("nofollow"), "/print": linking("print"),
			},
			want: "/",
		},
		"a page that follows nothing": {
			responses: responses{
				"/":    "X-Robots-Tag: nofollow\nLink: </de/>; rel=alternate; hreflang=de\n\n" + linked(`rel="next" href="/2"`, "front"),
				"/de/": linking("deutsch"), "/2": linking("two"),
			},
			want: "/",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			s.LoadApp(behind(test.options), newWeb(test.responses).ServeHTTP)
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, strings.Fields(test.want))...)
		})
	}
}
