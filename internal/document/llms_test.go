package document

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	markdown "github.com/yuin/goldmark/extension"
	goldmarktext "github.com/yuin/goldmark/text"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

var llmsOptions = Options{Base: beside.Base, Sitemap: beside.Sitemap, Beside: Beside{LLMs: true}}

// llmsOf returns the document of pages.
func llmsOf(t testing.TB, pages iter.Seq[page.Page], o Options) string {
	t.Helper()
	d := filesOf(t, pages, o)[LLMs]
	if d.Type != "text/plain; charset=utf-8" || len(d.ETag) < 8 {
		t.Errorf("got %+v", d)
	}
	return string(d.Body())
}

// described is a page with all that the document shows.
func described(path string, depth uint8, title, description string) page.Page {
	return page.Page{Path: path, Extensions: &page.Extensions{Title: title, Description: description, Depth: depth}}
}

// llmsDocument is what a reader of the format understands.
type llmsDocument struct {
	title, summary string
	chapters       []llmsChapter
}

type llmsChapter struct {
	heading string
	links   []llmsLink
}

type llmsLink struct{ title, url, description string }

func (d *llmsDocument) links() (all []llmsLink) {
	for _, s := range d.chapters {
		all = append(all, s.links...)
	}
	return all
}

// parseMarkdown reads a document as Markdown, with the extensions of GitHub, and refuses all that is no part of the format.
func parseMarkdown(body string) (d llmsDocument, err error) {
	source := []byte(body)
	// Without its task lists, which take a link named "x" for a box: GitHub wants a blank after it.
	extensions := goldmark.WithExtensions(markdown.Linkify, markdown.Table, markdown.Strikethrough, markdown.Footnote)
	root := goldmark.New(extensions).Parser().Parse(goldmarktext.NewReader(source))
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		last := len(d.chapters) - 1
		switch n := n.(type) {
		case *ast.Heading:
			said, err := plainText(n, source)
			isFirst := n.Level == 1 && n.PreviousSibling() == nil
			switch {
			case err != nil:
				return d, err
			case isFirst:
				d.title = said
			case n.Level == 2:
				d.chapters = append(d.chapters, llmsChapter{heading: said})
			default:
				return d, fmt.Errorf("a heading %q", said)
			}
		case *ast.Blockquote:
			p, isParagraph := n.FirstChild().(*ast.Paragraph)
			if !isParagraph || p.NextSibling() != nil || last >= 0 {
				return d, errors.New("a quote of more than a paragraph")
			}
			if d.summary, err = plainText(p, source); err != nil {
				return d, err
			}
		case *ast.List:
			if last < 0 {
				return d, errors.New("a list above the headings")
			}
			for item := n.FirstChild(); item != nil; item = item.NextSibling() {
				link, err := parseItem(item, source)
				if err != nil {
					return d, err
				}
				d.chapters[last].links = append(d.chapters[last].links, link)
			}
		case *ast.HTMLBlock:
			if got := string(n.Lines().Value(source)); strings.TrimSpace(got) != Mark {
				return d, fmt.Errorf("HTML %q", got)
			}
		case *ast.Paragraph:
			if last >= 0 {
				return d, errors.New("a paragraph below a heading")
			}
		default:
			return d, fmt.Errorf("a block of kind %s", n.Kind())
		}
	}
	return d, nil
}

// parseItem reads a link and its description.
func parseItem(item ast.Node, source []byte) (l llmsLink, err error) {
	block := item.FirstChild()
	if item.ChildCount() != 1 || block.Kind() != ast.KindTextBlock {
		return l, errors.New("an item of more than a line")
	}
	link, isLink := block.FirstChild().(*ast.Link)
	if !isLink || link.Title != nil {
		return l, fmt.Errorf("an item without a link: %s", block.Lines().Value(source))
	}
	l.url = unescapeMarkdown(string(link.Destination))
	if l.title, err = plainText(link, source); err != nil {
		return l, err
	}
	block.RemoveChild(block, link)
	l.description, err = plainText(block, source)
	l.description = strings.TrimPrefix(l.description, ": ")
	return l, err
}

// plainText is the text of a node that has nothing else; an address that GitHub makes a link of is text, too.
func plainText(n ast.Node, source []byte) (string, error) {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			if c.HardLineBreak() || c.SoftLineBreak() {
				return "", errors.New("a text of two lines")
			}
			b.WriteString(unescapeMarkdown(string(c.Value(source))))
		case *ast.AutoLink:
			b.WriteString(unescapeMarkdown(string(c.Label(source))))
		default:
			return "", fmt.Errorf("a %s in a text", c.Kind())
		}
	}
	return b.String(), nil
}

var escaped = regexp.MustCompile("\\\\([!-/:-@[-`{-~])|&#?[0-9A-Za-z]+;")

// unescapeMarkdown is what goldmark leaves to those who render a text.
func unescapeMarkdown(text string) string {
	return escaped.ReplaceAllStringFunc(text, func(found string) string {
		if found[0] == '\\' {
			return found[1:]
		}
		return html.UnescapeString(found)
	})
}

// How the parser of llmstxt.org, which others follow, finds what it takes (llms_txt/miniparse.py).
var (
	llmsHeading = regexp.MustCompile(`(?m)^##\s*(.*?)$`)
	llmsItem    = regexp.MustCompile(`-\s*\[([^\]]+)\]\(([^)]+)\)(?::\s*(.*))?`)
	llmsStart   = regexp.MustCompile(`(?s)^#\s*([^\n]+)\n+(?:>\s*([^\n]+)\n)?\n*(.*)`)
)

// parseSimply reads a document as that parser does, which leaves texts as they are written.
func parseSimply(body string) (d llmsDocument, err error) {
	at := llmsHeading.FindAllStringSubmatchIndex(body, -1)
	start := llmsStart.FindStringSubmatch(body[:append(at, []int{len(body)})[0][0]])
	if start == nil {
		return d, errors.New("no title")
	}
	d.title, d.summary = start[1], start[2]
	for i, found := range at {
		end := len(body)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		s := llmsChapter{heading: body[found[2]:found[3]]}
		for line := range strings.SplitSeq(strings.TrimSpace(body[found[1]:end]), "\n") {
			item := llmsItem.FindStringSubmatch(line)
			if item == nil {
				return d, fmt.Errorf("it breaks off at %q", line)
			}
			s.links = append(s.links, llmsLink{item[1], item[2], item[3]})
		}
		if slices.ContainsFunc(d.chapters, func(other llmsChapter) bool { return other.heading == s.heading }) {
			return d, fmt.Errorf("two headings %q, of which it takes one", s.heading)
		}
		d.chapters = append(d.chapters, s)
	}
	return d, nil
}

// parseLLMs reads a document in both ways, and checks what holds for any.
func parseLLMs(t testing.TB, body string) llmsDocument {
	t.Helper()
	d, err := parseMarkdown(body)
	if err != nil {
		t.Fatalf("%v in\n%s", err, body)
	}
	simple, err := parseSimply(body)
	if err != nil {
		t.Fatalf("%v in\n%s", err, body)
	}
	links := d.links()
	for i, link := range simple.links() {
		link.title = unescapeMarkdown(link.title)
		link.url = unescapeMarkdown(link.url)
		link.description = unescapeMarkdown(link.description)
		if i >= len(links) || link != links[i] {
			t.Fatalf("the simple parser reads %q, another %q in\n%s", simple.links(), links, body)
		}
	}
	if len(simple.links()) != len(links) || unescapeMarkdown(simple.title) != d.title || unescapeMarkdown(simple.summary) != d.summary {
		t.Errorf("the simple parser reads %q, another %q", simple, d)
	}
	if strings.Contains(body, "{{") {
		t.Error("Caddy's templates, around the handler, would execute a text")
	}
	if len(body) > maxLLMs || len(links) > maxLinks || !utf8.ValidString(body) || !strings.Contains(body[:min(len(body), 4<<10)], Mark) {
		t.Errorf("%d bytes, %d links", len(body), len(links))
	}
	return d
}

func TestLLMs(t *testing.T) {
	markdown := described("/docs/", 2, "Documentation", "All of it")
	markdown.Extensions.Markdown = "https://example.com/docs/index.md"
	got := llmsOf(t, slices.Values([]page.Page{
		described("/", 0, "Example & Co.", "What we do_not do"),
		described("/about.html", 1, "About us", ""),
		described("/blog/", 1, "Blog", ""),
		described("/blog/a_b_c", 4, "On [brackets] and *stars*", "x < y"),
		markdown,
		described("/docs/a(1)?b=2&lt;=3", 3, "", "First"),
	}), llmsOptions)
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
	parseLLMs(t, got)
}

// TestLLMsSharedMarkdown: of several pages that name one version in Markdown, as by a template, it stands for one, and none is
// linked twice.
func TestLLMsSharedMarkdown(t *testing.T) {
	const shared = "https://example.com/shared.md"
	naming := func(path string, depth uint8, markdown string) page.Page {
		p := described(path, depth, path, "")
		p.Extensions.Markdown = markdown
		return p
	}
	got := parseLLMs(t, llmsOf(t, slices.Values([]page.Page{
		naming("/", 1, shared),
		naming("/a", 2, shared),
		naming("/b", 3, "https://example.com/b.md"),
		naming("/b.md", 4, ""), // which is listed
		naming("/c.md", 5, ""),
		naming("/d", 6, "https://example.com/c.md"),
		naming("/shared.md", 7, ""),
	}), llmsOptions))
	var urls []string
	for _, link := range got.links() {
		urls = append(urls, strings.TrimPrefix(link.url, beside.Base))
	}
	if want := []string{"/shared.md", "/a", "/b.md", "/c.md", "/d"}; !slices.Equal(urls, want) {
		t.Errorf("got %q, want %q", urls, want)
	}
}

// TestLLMsTexts: what pages say is in the document as they wrote it, whatever it would mean in Markdown.
func TestLLMsTexts(t *testing.T) {
	texts := []string{
		"[a](b) ![c](d) [e]: f [^1] [!NOTE]", "\\[a\\] \\", "`a` ``b``", "*a* **b** _c_ __d__ ***", "~~a~~ ~b~", "<b>&lt;&amp;amp; &#35; &; &x", "AT&T; AT&T",
		"# a", "## a ##", "C#", "a # b #", "#", "- a", "+ a", "1. a", "1) a", "1.a", "> a", "---", "===", "```", "~~~", "| a | b |", "a\n---\nb", "    a",
		"{{env}} {{{ a }}} {", "http://a.example/?b=c&copy;d www.example.com", "- [ ] a", "snake_case _a_b_", "</title><script>", "<!-- a -->", "<https://a.example>",
		"\u202egpj.exe", "שלום (1)", "👩‍👧‍👦", "a\x00\tb", "$a$ :b: @c", "Optional", strings.Repeat("[<_", 5000), ": a", "a: b", "\u200f", "\xff",
	}
	for _, said := range texts {
		want := clean(said)
		d := parseLLMs(t, llmsOf(t, slices.Values([]page.Page{described("/", 0, said, said), described("/a/b", 0, said, said)}), llmsOptions))
		if d.title != want || d.summary != want {
			t.Errorf("%q: got title %q, summary %q", said, d.title, d.summary)
		}
		for i, link := range d.links() {
			if want := (llmsLink{want, beside.Base + []string{"/", "/a/b"}[i], want}); link != want {
				t.Errorf("%q: got %q, want %q", said, link, want)
			}
		}
	}
	pages := hostilePages()
	d := parseLLMs(t, llmsOf(t, slices.Values(pages), llmsOptions))
	if d.title != "example.com" || d.summary != "" || len(d.links()) != len(pages) {
		t.Errorf("got %q, %q, %d links", d.title, d.summary, len(d.links()))
	}
	for _, link := range d.links() {
		path := strings.NewReplacer("%28", "(", "%29", ")").Replace(strings.TrimPrefix(link.url, beside.Base))
		if want := hostile[path][1]; link.title != want {
			t.Errorf("%s: got %q, want %q", path, link.title, want)
		}
	}
}

func FuzzLLMs(f *testing.F) {
	f.Add("A *title*", "# [a](b)", "a(b)/c?d=&lt;")
	f.Add("1. {{a}}", "<b>\\", "%5B%5D/Optional")
	f.Add("__a__ #", "```", "Optional/")
	f.Fuzz(func(t *testing.T, title, description, path string) {
		path, err := page.Normal("/" + path)
		if err != nil || path == "/" {
			return
		}
		pages := []page.Page{described("/", 0, title, description), described(path, 0, title, description)}
		d := parseLLMs(t, llmsOf(t, slices.Values(pages), llmsOptions))
		links := d.links()
		if len(links) != 2 {
			t.Fatalf("got %q", links)
		}
		if want := cmp.Or(clean(title), "example.com"); d.title != want || d.summary != clean(description) {
			t.Errorf("got %q, %q, want %q, %q", d.title, d.summary, want, clean(description))
		}
		for _, p := range pages {
			want, _ := url.PathUnescape(beside.Base + p.Path)
			i := slices.IndexFunc(links, func(l llmsLink) bool {
				got, _ := url.PathUnescape(l.url)
				return got == want
			})
			if i < 0 {
				t.Fatalf("got %q, without %q", links, p.Path)
			}
			if link := links[i]; link.title != cmp.Or(clean(title), pathLabel(p.Path)) || link.description != clean(description) {
				t.Errorf("got %q for %q", link, p.Path)
			}
		}
	})
}

func TestLLMsHeadings(t *testing.T) {
	for _, test := range []struct{ sitemap, path, want string }{
		{"/sitemap", "/", "Pages"},
		{"/sitemap", "/about", "Pages"},
		{"/sitemap", "/?a=/b/c", "Pages"},
		{"/sitemap", "/docs/", "Docs"},
		{"/sitemap", "/docs/a/b", "Docs"},
		{"/sitemap", "/getting-started/a", "Getting started"},
		{"/sitemap", "/how_to/", "How to"},
		{"/sitemap", "/de/a", "de"},
		{"/sitemap", "/en-US/a", "en-US"},
		{"/sitemap", "/v2.1/a", "v2.1"},
		{"/sitemap", "/_private/a", `\_private`},
		{"/sitemap", "/caf%C3%A9s/a", "cafés"},
		{"/sitemap", "//a", "Pages"},
		{"/shop/sitemap", "/shop/", "Pages"},
		{"/shop/sitemap", "/shop/shoes/a", "Shoes"},
	} {
		o := llmsOptions
		o.Sitemap = o.Base + test.sitemap
		got := llmsOf(t, slices.Values(pagesOf(test.path)), o)
		if !strings.Contains(got, "\n## "+test.want+"\n") {
			t.Errorf("%s: got %s, want the heading %s", test.path, got, test.want)
		}
	}
}

// TestLLMsOrder: headings come in their order, and pages of one heading by how near they are. The format has a meaning for
// the heading Optional, which is none of ours.
func TestLLMsOrder(t *testing.T) {
	deep := described("/b/deep", 3, "", "")
	near := described("/b/near", 1, "", "")
	pages := []page.Page{
		described("//odd", 1, "", ""), described("/Optional/1", 9, "", ""), described("/about", 9, "", ""), described("/a-b/1", 1, "", ""), described("/a/0", 3, "", ""), described("/a/1", 2, "", ""), deep, near,
		described("/getting-started/1", 8, "", ""), described("/getting-t/1", 9, "", ""), described("/getting_started/2", 7, "", ""), described("/optional/1", 9, "", ""), described("/z", 6, "", ""),
	}
	d := parseLLMs(t, llmsOf(t, slices.Values(pages), llmsOptions))
	var got []string
	for _, s := range d.chapters {
		got = append(got, "#"+s.heading)
		for _, link := range s.links {
			got = append(got, strings.TrimPrefix(link.url, beside.Base))
		}
	}
	want := "#Pages //odd /z /Optional/1 /about /optional/1 #Getting started /getting_started/2 /getting-started/1 #Getting t /getting-t/1 " +
		"#a /a/1 /a/0 #a-b /a-b/1 #b /b/near /b/deep"
	if strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLLMsNearest: of many pages, those that are nearest to the front page are in the document, in whatever order they come.
func TestLLMsNearest(t *testing.T) {
	for _, test := range []struct {
		name  string
		depth func(i int) int
		n     int
	}{
		{"the last ones", func(i int) int { return 3000 - i }, 3000},
		{"the first ones", func(i int) int { return i }, 3000},
		{"scattered", func(i int) int { return i * 7919 % 3001 }, 3000},
		{"all alike", func(int) int { return 1 }, 3000},
		{"as many as are held", func(i int) int { return i % 3 }, 1000},
		{"few", func(i int) int { return i }, 30},
	} {
		var pages []page.Page
		for i := range test.n {
			pages = append(pages, described(fmt.Sprintf("/folder/%05d", i), uint8(test.depth(i)*255/3001), "", ""))
		}
		want := slices.Clone(pages)
		slices.SortStableFunc(want, func(a, b page.Page) int { return cmp.Compare(a.Extensions.Depth, b.Extensions.Depth) })
		d := parseLLMs(t, llmsOf(t, slices.Values(pages), llmsOptions))
		var got, paths []string
		for _, link := range d.links() {
			got = append(got, strings.TrimPrefix(link.url, beside.Base))
		}
		for _, p := range want[:min(len(want), maxLinks)] {
			paths = append(paths, p.Path)
		}
		if !slices.Equal(got, paths) {
			t.Errorf("%s: got %q, want %q", test.name, got, paths)
		}
	}
}

// TestLLMsFolders: pages of one depth are of all folders, however many pages each has, and those of the site's own folder are
// among them. What there is no room for as a heading is below that of the rest.
func TestLLMsFolders(t *testing.T) {
	for _, test := range []struct {
		folders, each int // pages of these
		headings      int
		fewest        int // pages of a heading
		links         int
	}{
		{1, 1000, 2, 25, 500},
		{4, 1000, 5, 25, 500},
		{40, 100, 41, 12, 500},
		{49, 100, 50, 9, 500},
		{300, 2, 50, 1, 500},
		{30, 2, 31, 2, 86},
	} {
		pages := func(yield func(page.Page) bool) {
			ok := yield(page.Page{Path: "/"})
			for i := range 25 {
				ok = ok && yield(described(fmt.Sprintf("/%02d", i), 5, "", ""))
			}
			for folder := range test.folders {
				for i := range test.each {
					ok = ok && yield(described(fmt.Sprintf("/folder-%d/%05d", 10_000+folder, i), 5, "", ""))
				}
			}
		}
		d := parseLLMs(t, llmsOf(t, pages, llmsOptions))
		if len(d.links()) != test.links || d.chapters[0].links[0].url != beside.Base+"/" {
			t.Errorf("%+v: got %d links, the first is %q", test, len(d.links()), d.chapters[0].links[0])
		}
		if len(d.chapters) != test.headings || d.chapters[0].heading != restHeading {
			t.Errorf("%+v: got %d headings, the first is %q", test, len(d.chapters), d.chapters[0].heading)
		}
		for _, s := range d.chapters {
			if len(s.links) < test.fewest {
				t.Errorf("%+v: %s has %d links", test, s.heading, len(s.links))
			}
		}
	}
}

// TestLLMsSiteName: titles are without the name of the site, whether the front page has it or most titles do.
func TestLLMsSiteName(t *testing.T) {
	var pages []page.Page
	for i := range 9 {
		pages = append(pages, described(fmt.Sprintf("/a/%d", i), 1, fmt.Sprintf("Page %d | Example", i), ""))
	}
	pages[8].Extensions.Title = "Example Inc. – Page 8"
	front := described("/", 0, "Example Inc.", "")
	d := parseLLMs(t, llmsOf(t, slices.Values(append([]page.Page{front}, pages...)), llmsOptions))
	for i, link := range d.chapters[1].links {
		if want := fmt.Sprint("Page ", i); link.title != want {
			t.Errorf("got %q, want %q", link.title, want)
		}
	}
	if d.chapters[0].links[0].title != "Example Inc." {
		t.Errorf("got %+v", d.chapters[0])
	}
}

// TestLLMsOfSections: a section of the configuration is the heading of its pages, wherever they are.
func TestLLMsOfSections(t *testing.T) {
	o := llmsOptions
	o.SectionOf = func(path string) string {
		return map[string]string{"/about.html": "press-kit", "/docs/a.html": "press-kit", "/zh/": "zh", "/zh/c.html": "zh"}[path]
	}
	var pages []page.Page
	for _, path := range []string{"/", "/about.html", "/docs/", "/docs/a.html", "/docs/b.html", "/zh/", "/zh/c.html"} {
		pages = append(pages, described(path, 1, path, ""))
	}
	body := llmsOf(t, slices.Values(pages), o)
	var got []string
	for _, s := range parseLLMs(t, body).chapters {
		for _, link := range s.links {
			got = append(got, s.heading+" "+link.title)
		}
	}
	want := []string{"Pages /", "Docs /docs/", "Docs /docs/b.html", "Press kit /about.html", "Press kit /docs/a.html", "zh /zh/", "zh /zh/c.html"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLLMsHeld: what is held does not grow with the site.
func TestLLMsHeld(t *testing.T) {
	l := newLLMs(newBuilder(nil, llmsOptions))
	for i := range 30_000 {
		path := fmt.Sprintf("/%05d/", i)
		l.add(listed{Page: described(path, uint8(255-i*255/30_000), "", "")})
		if len(l.nearest.values) > maxLinks || len(l.turns) > maxTurns {
			t.Fatalf("after %d pages, %d are held", i, len(l.nearest.values))
		}
	}
	if l.nearest.add(nearPage{path: "/", depth: 254}) != nil || l.nearest.add(nearPage{path: "/"}) == nil {
		t.Error("pages are held that others outrank, or not the others")
	}
}

// TestLLMsManyFolders: pages of folders beyond those that are counted do not take the room of all others.
func TestLLMsManyFolders(t *testing.T) {
	var pages []page.Page
	for i := range maxTurns {
		pages = append(pages, described(fmt.Sprintf("/%05d/", i), 9, "", ""))
	}
	for i := range 300 {
		pages = append(pages, described(fmt.Sprintf("/top-%03d", i), 1, "", ""))
	}
	for i := range 600 {
		pages = append(pages, described(fmt.Sprintf("/x/%03d", i), 1, "", ""))
	}
	slices.SortFunc(pages, page.Compare)
	if n := strings.Count(llmsOf(t, slices.Values(pages), llmsOptions), "/top-"); n < 250 {
		t.Errorf("%d pages of no folder are linked", n)
	}
}

// TestLLMsSize: texts and paths of any length leave the document within its bounds, and shorter pages in it.
func TestLLMsSize(t *testing.T) {
	long := strings.Repeat("[", 10_000)
	pages := func(yield func(page.Page) bool) {
		for i := range 200 {
			p := described(fmt.Sprintf("/%04d/%s", i, strings.Repeat("&lt;", 450)), 9, long, long)
			if !yield(p) {
				return
			}
		}
		yield(described("/short", 9, "A", "B"))
	}
	body := llmsOf(t, pages, llmsOptions)
	d := parseLLMs(t, body)
	if len(body) < maxLLMs-10_000 || len(d.links()) < 30 {
		t.Errorf("%d bytes, %d links", len(body), len(d.links()))
	}
}

// TestLLMsStays: the same pages make the same document, also if each had a few more links, or there were others that are linked less.
func TestLLMsStays(t *testing.T) {
	var pages []page.Page
	for i := range 2000 {
		pages = append(pages, described(fmt.Sprintf("/%02d/%04d", i/100, i), uint8(4-i%5), fmt.Sprint("Page ", i), ""))
	}
	first := llmsOf(t, slices.Values(pages), llmsOptions)
	for range 3 {
		if llmsOf(t, slices.Values(pages), llmsOptions) != first {
			t.Fatal("it is not the same twice")
		}
	}
	more := slices.Clone(pages)
	for i := range 500 {
		more = append(more, described(fmt.Sprintf("/%02d/new/%04d", i/100, i), 9, "New", ""))
	}
	slices.SortFunc(more, page.Compare)
	if llmsOf(t, slices.Values(more), llmsOptions) != first {
		t.Error("pages to which nothing links change it")
	}
	pages[4] = described(pages[4].Path, 0, "Another", "")
	if changed := llmsOf(t, slices.Values(pages), llmsOptions); changed == first || !bytes.Contains([]byte(changed), []byte("[Another]")) {
		t.Error("a title does not change it")
	}
}
