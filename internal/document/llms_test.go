package document

import (
	"bytes"
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	markdown "github.com/yuin/goldmark/extension"
	renderer "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// described is a page with all that the document shows.
func described(path string, depth uint8, title, description string) page.Page {
	return page.Page{Path: path, Extensions: &page.Extensions{Title: title, Description: description, Depth: depth}}
}

// llmsDocument is what a reader of the format understands.
type llmsDocument struct {
	title, summary string
	links          []llmsLink
}

type llmsLink struct{ heading, title, url, description string }

// outline is each heading and the paths below it.
func (d llmsDocument) outline() string {
	var lines []string
	last := ""
	for _, link := range d.links {
		if link.heading != last {
			lines = append(lines, "#"+link.heading)
			last = link.heading
		}
		lines = append(lines, strings.TrimPrefix(link.url, base))
	}
	return strings.Join(lines, " ")
}

// parseMarkdown reads a document as Markdown, with extensions of GitHub, and refuses all that is no part of the format.
func parseMarkdown(t testing.TB, body string) (d llmsDocument) {
	t.Helper()
	var rendered bytes.Buffer
	// Without its task lists, which take a link named "x" for a box: GitHub wants a blank after it.
	reader := goldmark.New(goldmark.WithRendererOptions(renderer.WithUnsafe()),
		goldmark.WithExtensions(markdown.Table, markdown.Strikethrough, markdown.Footnote))
	if err := reader.Convert([]byte(body), &rendered); err != nil {
		t.Fatal(err)
	}
	heading := ""
	for n := range parse(rendered.String()).Descendants() {
		if n.Type == html.CommentNode && "<!--"+n.Data+"-->" != Mark {
			t.Errorf("a comment %q", n.Data)
		}
		if n.Type != html.ElementNode {
			continue
		}
		switch said := textIn(n); n.Data {
		case "html", "head", "body", "p", "a", "ul":
		case "h1":
			d.title = said
		case "blockquote":
			d.summary = strings.TrimSpace(said)
		case "h2":
			heading = said
		case "li":
			link := elements(n, "a")[0]
			title := textIn(link)
			description := strings.TrimPrefix(strings.TrimPrefix(said, title), ": ")
			d.links = append(d.links, llmsLink{heading, title, attribute(link, "href"), description})
		default:
			t.Fatalf("an element %s in\n%s", n.Data, body)
		}
	}
	return d
}

// llmsOf is what a reader understands of the document of pages, with what holds for any. Parsers of the format find a link by its
// brackets.
func llmsOf(t testing.TB, o Options, pages ...page.Page) llmsDocument {
	t.Helper()
	body := bodyOf(t, LLMs, o, pages...)
	d := parseMarkdown(t, body)
	items := regexp.MustCompile(`(?m)^-\s*\[([^\]]+)\]\(([^)]+)\)(?::\s*(.*))?$`).FindAllString(body, -1)
	if len(items) != len(d.links) || len(body) > maxLLMs || len(d.links) > maxLinks || !utf8.ValidString(body) || !strings.Contains(body[:min(len(body), MaxBeginning)], Mark) {
		t.Errorf("%d bytes, %d links", len(body), len(d.links))
	}
	return d
}

func TestLLMs(t *testing.T) {
	documentation := described("/docs/", 2, "Documentation", "All of it")
	documentation.Extensions.Markdown = "https://example.com/docs/index.md"
	got := bodyOf(t, LLMs, beside,
		described("/", 0, "Example & Co.", "What we do_not do"),
		described("/about.html", 1, "About us", ""),
		described("/blog/", 1, "Blog", ""),
		described("/blog/a_b_c", 4, "On [brackets] and *stars*", "x < y"),
		documentation,
		described("/docs/a(1)?b=2&lt;=3", 3, "", "First"),
	)
	want := `# Example & Co.

> What we do_not do

<!-- caddy-sitemap -->

All pages are in the [sitemap](https://example.com/sitemap.xml).

## Pages

- [Example & Co.](https://example.com/): What we do_not do
- [About us](https://example.com/about.html)

## Blog

- [Blog](https://example.com/blog/)
- [On &#91;brackets&#93; and \*stars\*](https://example.com/blog/a_b_c): x &lt; y

## Docs

- [Documentation](https://example.com/docs/index.md): All of it
- [/docs/a(1)?b=2&amp;lt;=3](https://example.com/docs/a%281%29?b=2&amp;lt;=3): First
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLLMsSharedMarkdown: of several pages that name one version in Markdown, as by a template, it stands for one, and none is
// linked twice.
func TestLLMsSharedMarkdown(t *testing.T) {
	var pages []page.Page
	for i, line := range strings.Split("/ /shared.md,/a /shared.md,/b /b.md,/b.md ,/c.md ,/d /c.md,/shared.md ", ",") {
		path, version, _ := strings.Cut(line, " ")
		p := described(path, uint8(i), path, "")
		if version != "" {
			p.Extensions.Markdown = base + version
		}
		pages = append(pages, p)
	}
	got := llmsOf(t, beside, pages...)
	if want := "#Pages /shared.md /a /b.md /c.md /d"; got.outline() != want {
		t.Errorf("got %s, want %s", got.outline(), want)
	}
}

// TestLLMsTexts: what pages say is in the document as they wrote it, whatever it would mean in Markdown.
func TestLLMsTexts(t *testing.T) {
	texts := []string{
		"[a](b) ![c](d) [e]: f [^1] [!NOTE]", "\\[a\\] \\", "`a` ``b``", "*a* **b** _c_ __d__ ***", "~~a~~ ~b~", "<b>&lt;&amp;amp; &#35; &; &x", "AT&T; AT&T",
		"# a", "## a ##", "C#", "a # b #", "#", "- a", "+ a", "1. a", "1) a", "1.a", "> a", "---", "===", "```", "~~~", "| a | b |", "a\n---\nb", "    a",
		"{{env}} {{{ a }}} {", "http://a.example/?b=c&copy;d www.example.com", "- [ ] a", "snake_case _a_b_", "</title><script>", "<!-- a -->", "<https://a.example>",
		"\u202egpj.exe", "שלום (1)", "a\x00\tb", "$a$ :b: @c", "Optional", strings.Repeat("[<_", 5000), ": a", "a: b", "\u200f", "\xff",
	}
	for _, said := range texts {
		want := clean(said)
		d := llmsOf(t, beside, described("/", 0, said, said), described("/a/b", 0, said, said))
		if d.title != want || d.summary != want {
			t.Errorf("%q: got title %q, summary %q", said, d.title, d.summary)
		}
		for i, link := range d.links {
			if want := (llmsLink{[]string{"Pages", "a"}[i], want, base + []string{"/", "/a/b"}[i], want}); link != want {
				t.Errorf("%q: got %q, want %q", said, link, want)
			}
		}
	}
}

// FuzzLLMs: a page is in the document as it says itself, whatever it says.
func FuzzLLMs(f *testing.F) {
	f.Add("A *title*", "# [a](b)", "a(b)/c?d=&lt;")
	f.Add("1. {{a}}", "<b>\\", "%5B%5D/Optional")
	f.Add("__a__ #", "```", "Optional/")
	f.Fuzz(func(t *testing.T, title, description, path string) {
		path, err := page.Normal("/" + path)
		if err != nil {
			return
		}
		d := llmsOf(t, beside, described(path, 0, title, description))
		got := d.links[0]
		wantURL, _ := url.PathUnescape(base + path)
		gotURL, _ := url.PathUnescape(got.url)
		if gotURL != wantURL || got.title != cmp.Or(clean(title), pathLabel(path)) || got.description != clean(description) {
			t.Errorf("got %+v", got)
		}
	})
}

// TestLLMsOrder: headings come in their order, and pages of one heading by how near they are. The format has a meaning for
// the heading Optional, which is none of ours.
func TestLLMsOrder(t *testing.T) {
	for _, test := range []struct{ sitemap, pages, want string }{
		{"/sitemap", "/b/deep:3 /b/near:1 //odd:1 /Optional/1:9 /optional/1:9 /about:9 /?a=/b/c:1 /z:6 /pages/1:3",
			"#Pages //odd /?a=/b/c /pages/1 /z /Optional/1 /about /optional/1 #b /b/near /b/deep"},
		{"/sitemap", "/getting-started/1:8 /getting_started/2:7 /getting-t/1:9 /a-b/1:1 /a/0:3 /de/:1 /en-US/a:1 /v2.1/a:1 /_private/a:1 /caf%C3%A9s/a:1",
			"#Getting started /getting_started/2 /getting-started/1 #Getting t /getting-t/1 #_private /_private/a #a /a/0 #a-b /a-b/1 #cafés /caf%C3%A9s/a #de /de/ #en-US /en-US/a #v2.1 /v2.1/a"},
		{"/shop/sitemap", "/shop/:1 /shop/shoes/a:2", "#Pages /shop/ #Shoes /shop/shoes/a"},
		{"/sitemap", "/:1 /docs/:1 /docs/in-kit:1 /in-kit:1", "#Pages / #Docs /docs/ #Press kit /docs/in-kit /in-kit"},
	} {
		o := beside
		o.Sitemap = base + test.sitemap
		o.SectionOf = func(path string) string { return map[bool]string{true: "press-kit"}[strings.HasSuffix(path, "in-kit")] }
		var pages []page.Page
		for _, line := range strings.Fields(test.pages) {
			path, depth, _ := strings.Cut(line, ":")
			pages = append(pages, described(path, depth[0]-'0', "", ""))
		}
		slices.SortFunc(pages, page.Compare)
		d := llmsOf(t, o, pages...)
		if got := d.outline(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

// TestLLMsFolders: pages of one depth are of all folders, however many pages each has, and those of the site's own folder are
// among them. What there is no room for as a heading is below that of the rest. What is held does not grow with the site.
func TestLLMsFolders(t *testing.T) {
	for _, test := range []struct {
		folders, each int // pages of these
		headings      int
		fewest        int // pages of a heading
		links         int
	}{
		{1, 1000, 2, 25, 500},
		{40, 100, 41, 12, 500},
		{49, 100, 50, 9, 500},
		{maxTurns + 5, 2, 50, 1, 500},
		{30, 2, 31, 2, 86},
	} {
		pages := []page.Page{described("/", 0, "", "")}
		for i := range 25 {
			pages = append(pages, described(fmt.Sprintf("/%02d", i), 5, "", ""))
		}
		for folder := range test.folders {
			for i := range test.each {
				pages = append(pages, described(fmt.Sprintf("/folder-%d/%05d", 10_000+folder, i), 5, "", ""))
			}
		}
		headings := make(map[string]int)
		d := llmsOf(t, beside, pages...)
		for _, link := range d.links {
			headings[link.heading]++
		}
		if len(d.links) != test.links || len(headings) != test.headings || d.links[0].heading != restHeading {
			t.Errorf("%+v: got %d links below %d headings", test, len(d.links), len(headings))
		}
		for heading, n := range headings {
			if n < test.fewest {
				t.Errorf("%+v: %s has %d links", test, heading, n)
			}
		}
	}
}

// TestLLMsManyFolders: pages of folders beyond those that are counted do not take the room of others.
func TestLLMsManyFolders(t *testing.T) {
	var pages []page.Page
	add := func(n int, path string, depth uint8) {
		for i := range n {
			pages = append(pages, described(fmt.Sprintf(path, i), depth, "", ""))
		}
	}
	add(600, "/a/%03d", 1)
	add(maxTurns, "/b%05d/", 9)
	add(600, "/x/%03d", 1)
	if got := llmsOf(t, beside, pages...).outline(); strings.Contains(got, "/x/") {
		t.Errorf("got %s", got)
	}
}

// TestLLMsSiteName: titles are without the name of the site, whether the front page has it or most titles do.
func TestLLMsSiteName(t *testing.T) {
	pages := []page.Page{described("/", 0, "Example Inc.", "")}
	for i := range 8 {
		pages = append(pages, described(fmt.Sprintf("/a/%d", i), 1, "Page | Example", ""))
	}
	pages = append(pages, described("/a/8", 1, "Example Inc. – Page", ""))
	for i, link := range llmsOf(t, beside, pages...).links {
		if isFront := i == 0; (link.title == "Example Inc.") != isFront || (link.title == "Page") == isFront {
			t.Errorf("got %q", link.title)
		}
	}
}

// TestLLMsSize: texts and paths of any length leave the document within its bounds, and shorter pages in it.
func TestLLMsSize(t *testing.T) {
	long := strings.Repeat("[", 10_000)
	var pages []page.Page
	for i := range 200 {
		pages = append(pages, described(fmt.Sprintf("/%04d/%s", i, strings.Repeat("&lt;", 450)), 9, long, long))
	}
	pages = append(pages, described("/short", 9, "A", "B"))
	d := llmsOf(t, beside, pages...)
	if d.links[0].url != base+"/short" || len(d.links) < 30 {
		t.Errorf("got %d links, the first is %s", len(d.links), d.links[0].url)
	}
}
