package caddytest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

const typeText = "text/plain; charset=utf-8"

// introduced is a page with a title and a description, and links to others.
func introduced(title, description string, links ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><title>%s</title><meta name=description content=\"%s\"><p>%[1]s", title, description)
	for _, link := range links {
		fmt.Fprintf(&b, " <a href=\"%s\">x</a>", link)
	}
	return b.String()
}

// exampleForLLMs is a site of files, two of which have a version in Markdown.
func exampleForLLMs() map[string]string {
	const markdown = "<link rel=alternate type=text/markdown href="
	files := map[string]string{
		"site/index.html":        introduced("Example [1]", "What it {{env &quot;HOME&quot;}} is", "/docs/popular.html", "/docs/"),
		"site/about.html":        introduced("About", "Us"),
		"site/docs/index.html":   markdown + "index.md>" + introduced("Docs", "", "/docs/popular.html"),
		"site/docs/index.md":     "# Docs",
		"site/docs/gone.html":    markdown + "nowhere.md>" + introduced("Gone", ""),
		"site/docs/popular.html": introduced("Popular", "First", "/"),
	}
	for i := range 8 {
		files[fmt.Sprintf("site/blog/%d.html", i)] = introduced(fmt.Sprint("Post ", i), "", "/docs/popular.html", "index.html")
	}
	return files
}

// TestLLMs: /llms.txt is served where it is on, also where Caddy's templates are around it, unless the site has its own.
func TestLLMs(t *testing.T) {
	for name, test := range map[string]struct {
		own    string // the site's own
		around string // the handler
		on     bool
		want   bool // ours is served
	}{
		"on":                 {"", "", true, true},
		"on, with templates": {"", "templates {\nmime text/plain\n}", true, true},
		"off":                {"", "", false, false},
		"its own":            {"its own", "", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			files := exampleForLLMs()
			if test.own != "" {
				files["site/llms.txt"] = test.own
			}
			option := ""
			if test.on {
				option = "llms"
			}
			s := start(t, harness.Local+" {\nroot {dir}/site\nroute {\n"+test.around+"\nsitemap {\n"+option+"\n}\nfile_server\n}\n}", files)
			s.Crawled()
			r := s.Get(harness.Local + "/llms.txt")
			switch {
			case test.want && test.around == "":
				s.wantBeside(harness.Local+"/llms.txt", typeText, r)
			case test.want:
			case test.own == "" && r.StatusCode != http.StatusNotFound, test.own != "" && r.Text != test.own:
				t.Errorf("got status %d, %q", r.StatusCode, r.Text)
			}
			if robots := s.Get(harness.Local + "/robots.txt").Text; strings.Contains(robots, "llms") {
				t.Errorf("got robots.txt %q", robots)
			}
			if got := s.Get(harness.Local + "/sitemap.xml").Text; strings.Contains(got, "llms") || strings.Contains(got, ".md") {
				t.Errorf("got sitemap %s", got)
			}
			const warning = "the site has an llms.txt of its own, which is served: remove it, or llms"
			isWarned := strings.Contains(s.SitemapLog(), warning)
			if isWarned != (test.on && !test.want) {
				t.Errorf("warned: %t\n%s", isWarned, s.SitemapLog())
			}
			if !test.want {
				return
			}
			want := s.Expand("# Example &#91;1&#93;\n\n> What it {\\{env \"HOME\"}} is\n\n<!-- caddy-sitemap -->\n\n" +
				"All pages are in the [sitemap](http://localhost:{port}/sitemap.xml).\n\n" +
				"## Pages\n\n- [Example &#91;1&#93;](http://localhost:{port}/): What it {\\{env \"HOME\"}} is\n- [About](http://localhost:{port}/about.html): Us\n\n## Blog\n\n")
			for i := range 8 {
				want += s.Expand(fmt.Sprintf("- [Post %d](http://localhost:{port}/blog/%[1]d.html)\n", i))
			}
			want += s.Expand("\n## Docs\n\n- [Docs](http://localhost:{port}/docs/index.md)\n- [Gone](http://localhost:{port}/docs/gone.html)\n" +
				"- [Popular](http://localhost:{port}/docs/popular.html): First\n")
			if r.Text != want {
				t.Errorf("got\n%s\nwant\n%s", r.Text, want)
			}
		})
	}
}

// TestLLMsPlaces: it is in the folder of the site, wherever the sitemap is.
func TestLLMsPlaces(t *testing.T) {
	const plainSite = harness.Local + " {\nSITE\n}"
	for name, test := range map[string]struct {
		config, option string
		requested      string
		public         string // URL of the folder
	}{
		"a prefix": {harness.Local + " {\nhandle_path /shop/* {\nSITE\n}\n}", "", "/shop/llms.txt", harness.Local + "/shop/"},
		"both":     {plainSite, "base_url https://example.com/docs\npath /docs/maps.xml", "/docs/llms.txt", "https://example.com/"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, strings.Replace(test.config, "SITE", "root * {dir}/site\nsitemap {\nllms\n"+test.option+"\n}\nfile_server", 1), exampleForLLMs())
			s.Crawled()
			r := s.Get(harness.Local + test.requested)
			if r.StatusCode != http.StatusOK || !strings.Contains(r.Text, s.Expand("("+test.public+"docs/popular.html): First")) {
				t.Errorf("got status %d, %s\n%s", r.StatusCode, r.Text, s.SitemapLog())
			}
		})
	}
}
