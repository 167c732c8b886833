package webpage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

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
	return titled(titles)
}

func TestHostileTitles(t *testing.T) {
	l := read(t, build(t, slices.Values(hostilePages()), options))
	if len(l.pages) != len(hostile) {
		t.Errorf("got %d pages, want %d", len(l.pages), len(hostile))
	}
	for path, title := range hostile {
		if got, ok := l.titles[options.Base+path]; !ok || got != title[1] {
			t.Errorf("%q: got %q, want %q", path, got, title[1])
		}
	}
}

func TestDocumentsHTML(t *testing.T) {
	root := parse(build(t, slices.Values(titled(map[string]string{
		"/": "Home", "/about/": "About", "/docs/": "", "/docs/a": "A", "/docs/b": "B", "/docs/c": "C", "/docs/d": "D", "/two/a": "E", "/two/b": "F",
	})), options)[".html"].Body())
	var got []string
	for _, section := range elements(root, "section") {
		got = append(got, text(elements(section, "h2")[0]))
		for _, row := range elements(section, "li") {
			got = append(got, text(row))
		}
	}
	// A folder of less than four pages has no heading, nor is a folder's own page below it.
	want := []string{
		"/", "Home / 2023-11-14", "About /about/ 2023-11-15", "/docs/ 2023-11-16", "E /two/a 2023-11-21", "F /two/b 2023-11-22",
		"/docs/", "A /docs/a 2023-11-17", "B /docs/b 2023-11-18", "C /docs/c 2023-11-19", "D /docs/d 2023-11-20",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got, want := text(elements(root, "title")[0]), "Sitemap of example.com"; got != want {
		t.Errorf("got title %q, want %q", got, want)
	}
	if link := elements(root, "link")[0]; attribute(link, "href") != options.Sitemap+".atom" {
		t.Errorf("got feed %q", attribute(link, "href"))
	}
	// The filter is of no use without scripts, so it is hidden until the script shows it.
	if search := elements(root, "search")[0]; !strings.Contains(fmt.Sprint(search.Attr), "hidden") || attribute(elements(search, "label")[0], "for") != attribute(elements(search, "input")[0], "id") {
		t.Errorf("got %v", search.Attr)
	}
}

// The shapes of sites: how many documents they take, at most, and how many links away a page is.
var shapes = []struct {
	name             string
	pages            int
	path             func(i int) string
	documents, depth int
}{
	{"small", 500, func(i int) string { return fmt.Sprintf("/%02d/%03d", i/10, i) }, 1, 0},
	{"one large folder beside small ones", 3000, func(i int) string { return fmt.Sprintf("/%c/%05d", "aabcccccccccc"[i/250], i) }, 10, 2},
	{"equal folders", 8000, func(i int) string { return fmt.Sprintf("/%02d/%06d", i/400, i) }, 21, 1},
	{"tiny folders", 8000, func(i int) string { return fmt.Sprintf("/%06d/%06d", i/2, i) }, 16, 1},
	{"folders in folders", 8000, func(i int) string { return fmt.Sprintf("/%d/%02d/%03d/%06d", i/4000, i/400, i/40, i) }, 21, 2},
	{"one page a folder", 8000, func(i int) string { return fmt.Sprintf("/%04d/%04d/%06d/", i/1000, i/30, i) }, 30, 2},
	{"a deep folder", 2000, func(i int) string { return fmt.Sprintf("%s/%06d", strings.Repeat("/a", 900), i) }, 90, 2},
	{"depths of all kinds", 4000, func(i int) string { return fmt.Sprintf("/%04d%s/%06d", i, strings.Repeat("/b", i%60), i) }, 30, 1},
	{"long paths to be escaped", 500, func(i int) string { return fmt.Sprintf("/%06d%s", i, strings.Repeat("'", 2030)) }, 60, 2},
	{"a folder of folders beside a page", 5000, func(i int) string { return fmt.Sprintf("/en/v1/%05d", i) }, 20, 2},
	{"one folder", 20_000, func(i int) string { return fmt.Sprintf("/%07d", i) }, 40, 2},
}

func TestShapes(t *testing.T) {
	o := options
	o.Feed = false
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			documents := build(t, numbered(shape.pages, shape.path), o)
			l := read(t, documents)
			if len(l.pages) != shape.pages || len(documents) > shape.documents || l.depth > shape.depth {
				t.Errorf("got %d pages in %d documents, %d links away, want %d, %d, %d", len(l.pages), len(documents), l.depth, shape.pages, shape.documents, shape.depth)
			}
			slices.Sort(l.pages)
			for i, url := range l.pages {
				if want := options.Base + shape.path(i); url != want {
					t.Fatalf("got %s, want %s", url, want)
				}
			}
		})
	}
}

// TestEscapedTexts: texts that are several times as long in HTML make no document too long.
func TestEscapedTexts(t *testing.T) {
	for _, text := range []string{"+", "{{", "&", "'"} {
		var pages []page.Page
		for i := range 500 {
			pages = append(pages, newPage(fmt.Sprintf("/%06d", i), 0, strings.Repeat(text, maxTitle/len(text))))
		}
		l := read(t, build(t, slices.Values(pages), options))
		if len(l.pages) != len(pages) {
			t.Errorf("%q: got %d pages, want %d", text, len(l.pages), len(pages))
		}
	}
}

// TestMillion: no document is too long for a million pages in one folder. It writes one in ten.
func TestMillion(t *testing.T) {
	n, o := 1_000_000, options
	if o.Feed = false; testing.Short() {
		n = 50_000
	}
	longest, i, last := 0, 0, ""
	each(numbered(n, func(i int) string { return fmt.Sprintf("/%07d", i) }), o, func(d Document) {
		if i++; i%10 == 1 || d.Name == ".html" {
			last = string(d.Body())
			longest = max(longest, len(last))
		}
	})
	if want := fmt.Sprintf("<p>%d pages</p>", n); longest > maxSize || !strings.Contains(last, want) {
		t.Errorf("up to %d bytes, without %s", longest, want)
	}
}

// TestStays: one page more changes its document, those around it, and one or two beside it.
func TestStays(t *testing.T) {
	for _, shape := range shapes {
		pages := slices.Collect(numbered(shape.pages, shape.path))
		before := build(t, slices.Values(pages), options)
		for _, at := range []int{shape.pages / 3, shape.pages} {
			changed, added := 0, newPage(pages[at-1].Path+"-", 0, "New")
			for name, d := range build(t, slices.Values(slices.Insert(slices.Clone(pages), at, added)), options) {
				if before[name].ETag != d.ETag {
					changed++
				}
			}
			if changed == 0 || changed > 6 {
				t.Errorf("%s, a page added after %d: %d of %d documents change", shape.name, at, changed, len(before))
			}
		}
	}
}

// TestPrefix: where a site is in a folder, that is the first one.
func TestPrefix(t *testing.T) {
	o := options
	o.Sitemap = options.Base + "/shop/sitemap"
	documents := build(t, numbered(10, func(i int) string { return fmt.Sprintf("/shop/%d", i) }), o)
	root := parse(documents[".html"].Body())
	if got := elements(root, "h2"); len(got) != 1 || text(got[0]) != "/shop/" {
		t.Errorf("got %d headings", len(got))
	}
}

// shuffled is a title of random characters of all kinds.
func shuffled(r *rand.Rand) string {
	kinds := []string{"<b>", "&amp;", `"`, "'", "+", "\x00", "\u202e", "ש", "👩‍👧", "\xff", " ", "</script>", "{{.}}", "a"}
	var b strings.Builder
	for range r.IntN(40) {
		b.WriteString(kinds[r.IntN(len(kinds))])
	}
	return b.String()
}

func FuzzBuilder(f *testing.F) {
	for path, title := range hostile {
		f.Add(path, title[0], uint16(1), uint64(1))
	}
	f.Add("/a/b/c/", "x", uint16(2000), uint64(7))
	f.Fuzz(func(t *testing.T, path, title string, n uint16, seed uint64) {
		r, seen := rand.New(rand.NewPCG(seed, 0)), make(map[string]bool)
		var pages []page.Page
		for i := range n%3000 + 1 {
			p, err := page.Canonical("/" + strings.Repeat(path, r.IntN(3)) + fmt.Sprintf("/%d", i%7) + path)
			if err != nil || len(p) > page.MaxLoc || seen[p] {
				continue
			}
			seen[p] = true
			added := newPage(p, r.Int64N(1<<40), title+shuffled(r))
			added.Extensions.Description = shuffled(r) + title
			pages = append(pages, added)
		}
		if len(pages) == 0 {
			return
		}
		slices.SortFunc(pages, page.Compare)
		documents := build(t, slices.Values(pages), options)
		l := read(t, documents)
		slices.Sort(l.pages)
		for i, p := range pages {
			if i >= len(l.pages) || l.pages[i] != options.Base+p.Path {
				t.Fatalf("%q is missing", p.Path)
			}
		}
		if feed, ok := documents[".atom"]; ok {
			checkFeed(t, feed)
		}
	})
}
