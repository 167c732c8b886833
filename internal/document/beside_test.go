package document

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

var beside = Options{
	Base:    base,
	Sitemap: base + "/sitemap",
	Beside:  Beside{People: new(People), Feed: true, Hubs: []string{"https://hub.example.net/?a=1&b=2"}},
}

func newPage(path string, lastMod int64, title string) page.Page {
	return page.Page{Path: path, LastMod: lastMod, Extensions: &page.Extensions{Title: title}}
}

// titled makes pages of paths and their titles, a day apart, in order.
func titled(titles map[string]string) (pages []page.Page) {
	for path, title := range titles {
		pages = append(pages, newPage(path, 0, title))
	}
	slices.SortFunc(pages, page.Compare)
	for i := range pages {
		pages[i].LastMod = 1700000000 + int64(i)*86400
	}
	return pages
}

// numbered makes n pages, whose paths sort by their numbers.
func numberedPages(n int, path func(i int) string) iter.Seq[page.Page] {
	return func(yield func(page.Page) bool) {
		for i := range n {
			if !yield(newPage(path(i), 1700000000+int64(i)*60, fmt.Sprintf("The page with the number %d", i))) {
				return
			}
		}
	}
}

// file is a document beside the XML of the pages.
type file struct {
	*Document
	body []byte
}

func (f file) Body() []byte { return f.body }

// setOf returns the set of documents of pages.
func setOf(t testing.TB, pages iter.Seq[page.Page], o Options) *Set {
	t.Helper()
	withErrors := func(yield func(page.Page, error) bool) {
		for p := range pages {
			if !yield(p, nil) {
				return
			}
		}
	}
	s, err := Build(t.Context(), withErrors, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// filesOf returns the documents beside the XML, by name.
func filesOf(t testing.TB, pages iter.Seq[page.Page], o Options) map[string]file {
	t.Helper()
	files := make(map[string]file)
	s := setOf(t, pages, o)
	if s == nil {
		return files
	}
	for _, d := range s.Others {
		if _, ok := files[d.Name]; ok {
			t.Fatalf("two documents are %s", d.Name)
		}
		if !d.Index {
			files[d.Name] = file{d, []byte(read(t, d.Open))}
		}
	}
	return files
}

func parse(body []byte) *html.Node {
	root, _ := html.Parse(bytes.NewReader(body)) // its errors are those of the reader
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

// listing is what a reader finds who starts at the first document and follows its links to others.
type listing struct {
	labels map[string]string     // of pages, by URL
	seen   map[string]*html.Node // documents, by name
}

// read follows the links to other documents, and checks what holds for any of them.
func readAll(t testing.TB, documents map[string]file) *listing {
	t.Helper()
	l := &listing{labels: make(map[string]string), seen: make(map[string]*html.Node)}
	for next := []string{HTML}; len(next) > 0; next = next[1:] {
		d, ok := documents[next[0]]
		if !ok {
			t.Fatalf("there is no %s", next[0])
		}
		body := d.Body()
		root := parse(body)
		l.seen[d.Name] = root
		checkDocument(t, d, body, root)
		rows := 0
		for _, a := range elements(elements(root, "main")[0], "a") {
			url := attribute(a, "href")
			if name := strings.TrimPrefix(url, beside.Sitemap); documents[name].Document != nil {
				if l.seen[name] == nil && !slices.Contains(next, name) {
					next = append(next, name)
				}
				continue
			}
			rows++
			if _, isThere := l.labels[url]; isThere {
				t.Errorf("%s is listed twice", url)
			}
			l.labels[url] = textIn(a)
		}
		if rows > maxSingle {
			t.Errorf("%s has %d rows", d.Name, rows)
		}
	}
	for name := range documents {
		if strings.HasSuffix(name, HTML) && l.seen[name] == nil {
			t.Errorf("nothing links to %s", name)
		}
	}
	return l
}

// checkDocument checks what holds for any HTML document.
func checkDocument(t testing.TB, d file, body []byte, root *html.Node) {
	t.Helper()
	if d.Type != "text/html; charset=utf-8" || len(d.ETag) < 8 {
		t.Errorf("got type %q, ETag %q", d.Type, d.ETag)
	}
	if bytes.Contains(body, []byte("{{")) {
		t.Error("Caddy's templates, around the handler, would execute a text")
	}
	for n := range root.Descendants() {
		switch {
		case n.Type == html.TextNode:
			if !utf8.ValidString(n.Data) || strings.ContainsAny(n.Data, "\x00\x1b\u202e") {
				t.Errorf("text %q", n.Data)
			}
			continue
		case n.Type != html.ElementNode:
			continue
		}
		switch n.Data {
		case "html", "head", "meta", "title", "body", "header", "nav", "ol", "ul", "li", "a", "h1", "h2", "p", "search", "label",
			"input", "output", "main", "section", "bdi", "span", "time", "link":
		case "script":
			if n.FirstChild != nil {
				t.Error("a script is inline")
			}
		default:
			t.Errorf("an element %s", n.Data)
		}
		for _, a := range n.Attr {
			isURL := a.Key == "href" || a.Key == "src"
			isForeign := isURL && !strings.HasPrefix(a.Val, beside.Base+"/") && !strings.HasPrefix(a.Val, "./sitemap-html.")
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") || isForeign {
				t.Errorf("%s has %s=%q", n.Data, a.Key, a.Val)
			}
		}
		if length := utf8.RuneCountInString(textIn(n)); n.Data == "bdi" && length > 2*maxTitle+3 { // from and to
			t.Errorf("a text of %d characters", length)
		}
	}
}

func TestClean(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "A title", "A title"},
		{"white space", "\n A\t\u2028title \u00a0\r\n", "A title"},
		{"controls", "a\x00b\x1b[31mc\u0085d\x7f\u009b", "ab[31mc d"},
		{"not UTF-8", "a\xff\xc3b", "a\uFFFD\uFFFDb"},
		{"no characters of XML", "a\uFFFEb\uFFFFc\U0001FFFFd", "abcd"},
		{"overrides of direction", "\u202eabc\u202c\u2066d\u2069", "abcd"},
		{"right to left, with a mark", "שלום\u200f!", "שלום\u200f!"},
		{"emoji of several characters", "👩‍👩‍👧 🏴󠁧󠁢󠁥󠁮󠁧󠁿", "👩‍👩‍👧 🏴󠁧󠁢󠁥󠁮󠁧󠁿"},
		{"as long as may be", strings.Repeat("ü", maxTitle), strings.Repeat("ü", maxTitle)},
		{"longer", strings.Repeat("ü", 10_000), strings.Repeat("ü", maxTitle-1) + "…"},
		{"longer, cut at a blank", strings.Repeat("a", maxTitle-2) + " bcd", strings.Repeat("a", maxTitle-2) + "…"},
		{"nothing", " \x00\n", ""},
	} {
		if got := clean(tt.in); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestOptions(t *testing.T) {
	dated, undated, far := []page.Page{{Path: "/", LastMod: -1}}, []page.Page{{Path: "/"}}, []page.Page{{Path: "/", LastMod: 1 << 40}}
	for _, tt := range []struct {
		name   string
		pages  []page.Page
		beside Beside
		want   string
	}{
		{"all", dated, Beside{People: new(People), Feed: true, Stylesheet: true}, "-html.css -html.js .atom .css .html"},
		{"only HTML", dated, Beside{People: new(People)}, "-html.css -html.js .html"},
		{"only the feed", dated, Beside{Feed: true}, ".atom"},
		{"only the stylesheet", dated, Beside{Stylesheet: true}, ".css"},
		{"nothing", dated, Beside{}, ""},
		{"no pages", nil, Beside{People: new(People), Feed: true}, ""},
		{"no dates", undated, Beside{People: new(People), Feed: true}, "-html.css -html.js .html"},
		{"no date of four digits", far, Beside{People: new(People), Feed: true}, "-html.css -html.js .html"},
	} {
		o := beside
		o.Beside = tt.beside
		got := slices.Sorted(maps.Keys(filesOf(t, slices.Values(tt.pages), o)))
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestETags(t *testing.T) {
	pages := slices.Collect(numberedPages(3000, func(i int) string { return fmt.Sprintf("/%d/%05d", i/100, i) }))
	first := filesOf(t, slices.Values(pages), beside)
	for name, again := range filesOf(t, slices.Values(pages), beside) {
		if d := first[name]; d.ETag != again.ETag || !bytes.Equal(d.Body(), again.Body()) {
			t.Errorf("%s is not the same twice", name)
		}
	}
	changes := map[string]func(pages []page.Page, o *Options){
		"a title": func(pages []page.Page, _ *Options) { pages[77] = newPage(pages[77].Path, pages[77].LastMod, "Another") },
		"a description": func(pages []page.Page, _ *Options) {
			p := newPage(pages[2900].Path, pages[2900].LastMod, pages[2900].Extensions.Title) // which is in the feed
			p.Extensions.Description = "New"
			pages[2900] = p
		},
		"a date": func(pages []page.Page, _ *Options) { pages[77].LastMod += 86400 },
		"a path": func(pages []page.Page, _ *Options) { pages[77].Path += "a" },
		"a hub":  func(_ []page.Page, o *Options) { o.Hubs = nil },
		"a host": func(_ []page.Page, o *Options) { o.Base = "https://example.org" },
	}
	for name, change := range changes {
		o, pages := beside, slices.Clone(pages)
		change(pages, &o)
		same, changed := 0, 0
		for _, d := range filesOf(t, slices.Values(pages), o) {
			old, ok := first[d.Name]
			switch {
			case !ok:
			case (d.ETag == old.ETag) != bytes.Equal(d.Body(), old.Body()):
				t.Errorf("%s: %s: the bodies do not say what the ETags do", name, d.Name)
			case d.ETag == old.ETag:
				same++
			default:
				changed++
			}
		}
		if changed == 0 || name != "a host" && same < changed {
			t.Errorf("%s: %d documents stay, %d change", name, same, changed)
		}
	}
}
