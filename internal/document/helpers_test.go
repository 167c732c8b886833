package document

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const base = "https://example.com"

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 890, time.UTC)

// beside has all documents of any site.
var beside = Options{Beside: Beside{
	People: new(People), Feed: true, Hubs: []string{"https://hub.example.net/?a=1&b=2"}, Stylesheet: true, LLMs: true,
}}

func options(o Options) Options {
	if o.Now.IsZero() {
		o.Now = testTime
	}
	o.Base = base
	if o.Sitemap == "" {
		o.Sitemap = base + "/sitemap"
	}
	return o
}

func build(t testing.TB, pages []page.Page, previous *Set, o Options) *Set {
	t.Helper()
	s, err := Build(t.Context(), sequence(pages, nil), previous, options(o))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sequence yields pages, and an error at the end if there is one.
func sequence(pages []page.Page, err error) iter.Seq2[page.Page, error] {
	return func(yield func(page.Page, error) bool) {
		for _, p := range pages {
			if !yield(p, nil) {
				return
			}
		}
		if err != nil {
			yield(page.Page{}, err)
		}
	}
}

func pagesOf(paths ...string) (pages []page.Page) {
	for _, path := range paths {
		pages = append(pages, page.Page{Path: path})
	}
	return pages
}

// numbered are n pages whose paths sort as they are numbered.
func numbered(n int) []page.Page { return numberedBy(n, "/p/%07d.html") }

// numberedBy are pages of a path with their numbers, a second apart.
func numberedBy(n int, path string) []page.Page {
	pages := make([]page.Page, n)
	for i := range pages {
		pages[i] = page.Page{Path: fmt.Sprintf(path, i), LastMod: 1_700_000_000 + int64(i)}
	}
	return pages
}

func titled(path string, lastMod int64, title string) page.Page {
	return page.Page{Path: path, LastMod: lastMod, Extensions: &page.Extensions{Title: title}}
}

// allTitled are pages of paths and their titles, a day apart, in order.
func allTitled(titles map[string]string) (pages []page.Page) {
	for path, title := range titles {
		pages = append(pages, titled(path, 0, title))
	}
	slices.SortFunc(pages, page.Compare)
	for i := range pages {
		pages[i].LastMod = 1_700_000_000 + int64(i)*86400
	}
	return pages
}

func read(t testing.TB, open func() (io.ReadCloser, error)) string {
	t.Helper()
	r, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// bodyOf is what a document of pages is. Caddy's templates, which may be around the handler, find nothing to execute in it.
func bodyOf(t testing.TB, name string, o Options, pages ...page.Page) string {
	t.Helper()
	d := build(t, pages, nil, o).Find(name)
	if d == nil {
		t.Fatalf("there is no %s", name)
	}
	body := read(t, d.Open)
	if strings.Contains(body, "{{") {
		t.Errorf("templates would execute %s", body)
	}
	return body
}

// hostile are titles as a page may have them, by path, with what is shown.
var hostile = map[string][2]string{
	"/":                        {"", "/"},
	"//evil.example/a":         {"a protocol-relative URL", "a protocol-relative URL"},
	"/a'b\"c":                  {`" onmouseover="alert(1)`, `" onmouseover="alert(1)`},
	"/a(b)?c='(d)'&e=%3Cf%3E":  {"", "/a(b)?c='(d)'&e=%3Cf%3E"},
	"/bidi":                    {"\u202egpj.exe", "gpj.exe"},
	"/comment":                 {"<!-- --> ]]> <![CDATA[ &lt; &#0; &", "<!-- --> ]]> <![CDATA[ &lt; &#0; &"},
	"/control":                 {"a\x00\x08\x0b\x1b[31m\x7f\u0085b", "a [31m b"},
	"/emoji":                   {"👩‍👩‍👧‍👦 🇩🇪", "👩‍👩‍👧‍👦 🇩🇪"},
	"/hebrew":                  {"שלום עולם (1)", "שלום עולם (1)"},
	"/javascript:alert(1)":     {"javascript:alert(1)", "javascript:alert(1)"},
	"/long":                    {strings.Repeat("<b>+&", 2000), strings.Repeat("<b>+&", 40)[:199] + "…"},
	"/script":                  {"</title><script>alert(1)</script>", "</title><script>alert(1)</script>"},
	"/template":                {"{{{.Host}} ${1} `", "{{{.Host}} ${1} `"},
	"/%3Cscript%3E/%E2%80%AE/": {"", "/<script>//"},
	"/z":                       {"\xff\xfe", "\uFFFD\uFFFD"},
}

func hostilePages() []page.Page {
	titles := make(map[string]string)
	for path, title := range hostile {
		titles[path] = title[0]
	}
	pages := allTitled(titles)
	for _, p := range pages {
		p.Extensions.Description = p.Extensions.Title
	}
	return pages
}

func parse(body string) *html.Node {
	root, _ := html.Parse(bytes.NewReader([]byte(body))) // its errors are those of the reader
	return root
}

// elements are those of a kind below n.
func elements(n *html.Node, kind string) (found []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == kind {
			found = append(found, d)
		}
	}
	return found
}

func textIn(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
