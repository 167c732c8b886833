package webpage

import (
	"bytes"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

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
		want := title[1]
		if title[0] == "" && path != "/" {
			want = want[1:] // below the heading of the folder
		}
		if got, ok := l.titles[options.Base+path]; !ok || got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
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
		"Pages", "Home / 2023-11-14", "About about/ 2023-11-15", "docs/ 2023-11-16", "E two/a 2023-11-21", "F two/b 2023-11-22",
		"/docs/", "A a 2023-11-17", "B b 2023-11-18", "C c 2023-11-19", "D d 2023-11-20",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got, want := text(elements(root, "title")[0]), "Sitemap of Home"; got != want {
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

// The shapes of sites: how many documents they take, at most, and how many clicks away a page is.
var shapes = []struct {
	name              string
	pages             int
	path              func(i int) string
	documents, clicks int
}{
	{"small", 500, func(i int) string { return fmt.Sprintf("/%02d/%03d", i/10, i) }, 1, 1},
	{"one large folder beside small ones", 3000, func(i int) string { return fmt.Sprintf("/%c/%05d", "aabcccccccccc"[i/250], i) }, 10, 3},
	{"equal folders", 8000, func(i int) string { return fmt.Sprintf("/%02d/%06d", i/400, i) }, 21, 2},
	{"tiny folders", 8000, func(i int) string { return fmt.Sprintf("/%06d/%06d", i/2, i) }, 22, 2},
	{"folders in folders", 8000, func(i int) string { return fmt.Sprintf("/%d/%02d/%03d/%06d", i/4000, i/400, i/40, i) }, 21, 3},
	{"one page a folder", 8000, func(i int) string { return fmt.Sprintf("/%04d/%04d/%06d/", i/1000, i/30, i) }, 10, 3},
	{"a deep folder", 2000, func(i int) string { return fmt.Sprintf("%s/%06d", strings.Repeat("/a", 900), i) }, 101, 3},
	{"depths of all kinds", 4000, func(i int) string { return fmt.Sprintf("/%04d%s/%06d", i, strings.Repeat("/b", i%60), i) }, 30, 2},
	{"long paths to be escaped", 500, func(i int) string { return fmt.Sprintf("/%06d%s", i, strings.Repeat("'", 2030)) }, 97, 3},
	{"a folder of folders beside a page", 5000, func(i int) string { return fmt.Sprintf("/en/v1/%05d", i) }, 20, 3},
	{"more folders than one list has room for", 60_000, func(i int) string { return fmt.Sprintf("/%04d/%06d", i/60, i) }, 85, 3},
	{"many folders in a folder", 15_000, func(i int) string { return fmt.Sprintf("/en/%04d/%06d", i/50, i) }, 40, 3},
	{"many folders of sizes that differ", 200_000, func(i int) string { return fmt.Sprintf("/%04d/%06d", i/1200*2+min(i%1200/400, 1), i) }, 340, 3},
	{"a divided folder among many", 20_000, func(i int) string {
		if i >= 15_000 && i < 18_000 {
			return fmt.Sprintf("/00500/%02d/%06d", i/100-150, i) // as many as fit into no document
		}
		return fmt.Sprintf("/%05d/%06d", i/30, i)
	}, 50, 3},
	{"one folder", 20_000, func(i int) string { return fmt.Sprintf("/%07d", i) }, 50, 3},
}

// isLong asks for the largest sites, too.
var isLong = os.Getenv("SITEMAP_LONG") != ""

// isLeftOut reports whether a site of so many pages takes too long.
func isLeftOut(pages int) bool {
	switch {
	case testing.Short():
		return pages > 3000
	case isLong:
		return false
	}
	return pages > 20_000
}

func TestShapes(t *testing.T) {
	o := options
	o.Feed = false
	for _, shape := range shapes {
		if isLeftOut(shape.pages) {
			continue
		}
		t.Run(shape.name, func(t *testing.T) {
			documents := build(t, numbered(shape.pages, shape.path), o)
			l := read(t, documents)
			if len(l.pages) != shape.pages || len(documents) > shape.documents || l.clicks > shape.clicks {
				t.Errorf("got %d pages in %d documents, %d clicks away, want %d, %d, %d", len(l.pages), len(documents), l.clicks, shape.pages, shape.documents, shape.clicks)
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

// outline is what a document lists: the folders of its contents, and its sections with the number of their rows.
func outline(root *html.Node) (contents, sections []string) {
	for i, section := range elements(root, "section") {
		heading := text(elements(section, "h2")[0])
		rows := elements(section, "li")
		if i == 0 && heading == "Folders" {
			for _, row := range rows {
				contents = append(contents, text(row))
			}
			continue
		}
		sections = append(sections, fmt.Sprintf("%s %d", heading, len(rows)))
	}
	return contents, sections
}

// TestFirstDocument: each folder has a row of its own before anything is cut.
func TestFirstDocument(t *testing.T) {
	post := func(year, i int) string { return fmt.Sprintf("/%d/%02d/post-%04d/", year, 1+i*12/90, i) }
	var twenty strings.Builder
	for i := range 50 {
		fmt.Fprintf(&twenty, "%s%d/ 20 pages", "|"[:min(i, 1)], 10+i)
	}
	languages := strings.Fields("ar cs da de el en es fa fr hr id it ja ko nb nl pl pt ro ru sv tr vi zh-cn zh-hk zh-tw")
	for _, test := range []struct {
		name               string
		pages              int
		path               func(i int) string
		contents, sections string
	}{
		{"a blog by years", 14 * 90, func(i int) string { return post(2010+i/90, i%90) },
			"2010/ 90 pages|2011/ 90 pages|2012/ 90 pages|2013/ 90 pages|2014/ 90 pages|2015/ 90 pages|2016/ 90 pages|" +
				"2017/ 90 pages|2018/ 90 pages|2019/ 90 pages|2020/ 90 pages|2021/ 90 pages|2022/ 90 pages|2023/ 90 pages", ""},
		{"a handbook in languages", 26 * 127, func(i int) string { return fmt.Sprintf("/%s/%04d.html", languages[i/127], i) },
			strings.Join(languages, "/ 127 pages|") + "/ 127 pages", ""},
		{"languages below a folder", 26 * 127, func(i int) string { return fmt.Sprintf("/docs/%s/%04d.html", languages[i/127], i) },
			strings.Join(languages, "/ 127 pages|") + "/ 127 pages", ""},
		{"a year with few posts", 1200, func(i int) string {
			if i < 12 {
				return post(2010, i)
			}
			return post(2011+i/600, i%600)
		}, "2010/ 12 pages|2011/ 588 pages|2012/ 600 pages", "/2010/01/ 8|/2010/02/ 4"},
		{"small folders", 500, func(i int) string { return fmt.Sprintf("/%02d/%03d", i/100, i) },
			"00/ 100 pages|01/ 100 pages|02/ 100 pages|03/ 100 pages|04/ 100 pages", "/00/ 100|/01/ 100|/02/ 100|/03/ 100|/04/ 100"},
		{"more small folders than one document has room for", 700, func(i int) string { return fmt.Sprintf("/%02d/%03d", i/100, i) },
			"00/ 100 pages|01/ 100 pages|02/ 100 pages|03/ 100 pages|04/ 100 pages|05/ 100 pages|06/ 100 pages", ""},
		{"many small folders", 1000, func(i int) string { return fmt.Sprintf("/%d/%03d", 10+i/20, i) }, twenty.String(), ""},
		{"folders beside more pages than fit", 4000, func(i int) string {
			if i < 3000 {
				return fmt.Sprintf("/%04d.html", i)
			}
			return fmt.Sprintf("/folder-%d/%04d.html", i/500, i)
		}, "folder-6/ 500 pages|folder-7/ 500 pages", "Pages 7"},
		{"a folder in a folder", 10, func(i int) string { return fmt.Sprintf("/a/b/%d", i) }, "", "/a/b/ 10"},
		{"a page", 1, func(int) string { return "/" }, "", "Pages 1"},
	} {
		documents := build(t, numbered(test.pages, test.path), options)
		contents, sections := outline(read(t, documents).seen[".html"])
		if got := strings.Join(contents, "|"); got != test.contents {
			t.Errorf("%s: got contents %q, want %q", test.name, got, test.contents)
		}
		if got := strings.Join(sections, "|"); got != test.sections {
			t.Errorf("%s: got sections %q, want %q", test.name, got, test.sections)
		}
	}
}

// TestFilter: the filter says what it searches, as there may be more pages in other documents.
func TestFilter(t *testing.T) {
	for pages, want := range map[int]string{1: "Filter this page", 2: "Filter these 2 pages", 400: "Filter these 400 pages", 1000: "Filter this page"} {
		documents := build(t, numbered(pages, func(i int) string { return fmt.Sprintf("/%d/%06d", i/500, i) }), options)
		if got := text(elements(parse(documents[".html"].Body()), "label")[0]); got != want {
			t.Errorf("%d pages: got %q, want %q", pages, got, want)
		}
	}
}

// TestDated: there is no column for dates in a document where no page has one.
func TestDated(t *testing.T) {
	for _, test := range []struct {
		dates []int64
		want  string
	}{{[]int64{0, 0, 0}, ""}, {[]int64{0, 1e9, 0}, "dated"}, {[]int64{1 << 40}, ""}} {
		var pages []page.Page
		for i, date := range test.dates {
			pages = append(pages, newPage(fmt.Sprintf("/%d", i), date, ""))
		}
		root := parse(build(t, slices.Values(pages), options)[".html"].Body())
		if got := attribute(elements(root, "main")[0], "class"); got != test.want {
			t.Errorf("%v: got %q, want %q", test.dates, got, test.want)
		}
	}
}

// TestFrontTitle: the heading is the title of the front page, without which it is the host.
func TestFrontTitle(t *testing.T) {
	long := strings.Repeat("long ", 2000)
	for _, test := range []struct{ path, title, want string }{
		{"/", "Café {{.Host}} <b>", "Café {{.Host}} <b>"},
		{"/", "", "example.com"},
		{"/", " \x00\u202e ", "example.com"},
		{"/", long, long[:199] + "…"},
		{"/a", "No front page", "example.com"},
	} {
		documents := build(t, slices.Values([]page.Page{newPage(test.path, 0, test.title)}), options)
		root := read(t, documents).seen[".html"]
		if got := text(elements(root, "h1")[0]); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 12_345: "12,345", 1_000_000: "1,000,000"} {
		if got := thousands(n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestCommonEnding(t *testing.T) {
	for _, test := range []struct{ titles, want string }{
		{"", ""},
		{"A — Site;B — Site;C — Site;D — Site", " — Site"},
		{"A | Site;B | Site;C | Site;D | Site;Site;", " | Site"},
		{"A | Guide | Site;B | Site;C | Site;D | Site", " | Site"},
		{"A - Site;B - Site;C - Site", ""},                                  // too few
		{"A - Site;B - Site;C - Site;D - Site;E;F;G;H", ""},                 // no majority
		{"A - Site;B;C - Site;D;E - Site;F;G - Site;H;J - Site", " - Site"}, // the narrowest one
		{"A-Site;B-Site;C-Site;D-Site", ""},
		{"A  Site;B  Site;C  Site;D  Site", ""},
	} {
		var rows []row
		for title := range strings.SplitSeq(test.titles, ";") {
			rows = append(rows, row{Title: title})
		}
		if got := commonEnding(rows); got != test.want {
			t.Errorf("%s: got %q, want %q", test.titles, got, test.want)
		}
	}
}

func TestCutAt(t *testing.T) {
	const half = maxRows / 2
	for _, test := range []struct {
		name     string
		sizes    []int // of the rows of each folder
		from, to int   // how many rows are the next part: only the hash decides between these
	}{
		{"after the half", []int{half, 10, half, half}, 1, 2},
		{"small folders", slices.Repeat([]int{half / 4}, 12), 4, 8},
		{"a large one after a small one", []int{half - 1000, maxRows - 2000, 10}, 1, 1},
		{"a large one first", []int{maxRows - 1000, half, 10}, 1, 1},
		{"large ones", []int{maxRows - 1000, maxRows - 1000}, 1, 1},
	} {
		var rows []row
		for i, size := range test.sizes {
			folder := fmt.Sprintf("/%02d/", i)
			rows = append(rows, row{Folder: folder, Path: folder + "a", size: size})
		}
		if got := cutAt(newFolder("/", nil), rows, maxRows); got < test.from || got > test.to {
			t.Errorf("%s: got %d rows, want %d to %d", test.name, got, test.from, test.to)
		}
	}
}

// TestParts: parts of the pages of one folder say from where to where they go, and are in a row.
func TestParts(t *testing.T) {
	const pages = 3000
	documents := build(t, numbered(pages, func(i int) string { return fmt.Sprintf("/blog/post-%04d", i) }), options)
	l := read(t, documents)
	blog := elements(l.seen[".html"], "a")[1] // after the way home
	root := l.seen[strings.TrimPrefix(attribute(blog, "href"), options.Sitemap)]
	var names []string
	next := "post-0000"
	for _, row := range elements(elements(root, "main")[0], "li") {
		link := elements(row, "a")[0]
		from, to, _ := strings.Cut(text(link), " – ")
		if from != next {
			t.Errorf("a part begins at %s, want %s", from, next)
		}
		var n int
		_, _ = fmt.Sscanf(to, "post-%d", &n)
		next = fmt.Sprintf("post-%04d", n+1)
		names = append(names, attribute(link, "href"))
	}
	if next != "post-3000" || len(names) < 5 {
		t.Errorf("%d parts end at %s", len(names), next)
	}
	for i, name := range names {
		part := l.seen[strings.TrimPrefix(name, options.Sitemap)]
		want := map[string]string{}
		if i > 0 {
			want["prev"] = names[i-1]
		}
		if i < len(names)-1 {
			want["next"] = names[i+1]
		}
		got := map[string]string{}
		for _, a := range elements(part, "a") {
			if rel := attribute(a, "rel"); rel != "" {
				got[rel] = attribute(a, "href")
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("part %d leads to %v, want %v", i, got, want)
		}
		if heading := text(elements(part, "h1")[0]); heading != "/blog/" {
			t.Errorf("part %d is that of %s", i, heading)
		}
	}
}

// linksIn finds the links of a list. For a million pages, it takes less time than a parser.
var linksIn = regexp.MustCompile(`<li><a href="([^"#]+[^"]*)"`)

// TestClicks: no page is more than three clicks away, in whatever folders a million pages are.
func TestClicks(t *testing.T) {
	if testing.Short() {
		t.Skip("180,000 pages")
	}
	pages := 60_000
	if isLong {
		pages = 300_000 // a million takes half a minute
	}
	digits := func(n, base, level int) string {
		path := ""
		for range level {
			path = fmt.Sprintf("/%02d", n%base) + path
			n /= base
		}
		return path
	}
	for _, test := range []struct {
		name  string
		pages int
		path  func(i int) string
	}{
		{"5,000 folders", pages, func(i int) string { return fmt.Sprintf("/%04d/%03d", i/60, i%60) }},
		{"folders of folders of folders", pages, func(i int) string { return digits(i/60, 18, 3) + fmt.Sprintf("/%03d", i%60) }},
		{"a folder with all", pages / 10, func(i int) string { return fmt.Sprintf("/a/%06d", i) }},
		{"a page a folder", pages / 10, func(i int) string { return fmt.Sprintf("/%06d/a", i) }},
		{"four pages a folder", pages / 10, func(i int) string { return fmt.Sprintf("/%06d/%d", i/4, i%4) }},
		{"folders of very different sizes", pages / 10, func(i int) string {
			folder := bits.Len(uint(i))
			return fmt.Sprintf("/%02d/%07d", folder, i)
		}},
		{"many pages at each depth", pages / 10, func(i int) string { // each folder is too large for its parent
			return strings.Repeat("/a", 1+i/5000) + fmt.Sprintf("/b%02d/%07d", i/50, i)
		}},
		{"pages beside each folder", pages / 10, func(i int) string {
			return strings.Repeat("/z", i/5000) + fmt.Sprintf("/%07d", i)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			links := make(map[string][]string)
			paths := make([]page.Page, test.pages)
			for i := range paths {
				paths[i] = newPage(test.path(i), 0, "")
			}
			slices.SortFunc(paths, page.Compare)
			o := options
			o.Feed = false
			longest := 0
			each(slices.Values(paths), o, func(d Document) {
				body := d.Body()
				limit := maxSize
				if d.Name == ".html" {
					limit = maxFront
				}
				if longest = max(longest, len(body)); len(body) > limit {
					t.Errorf("%s has %d bytes", d.Name, len(body))
				}
				_, list, _ := bytes.Cut(body, []byte("<main"))
				for _, link := range linksIn.FindAllSubmatch(list, -1) {
					links[d.Name] = append(links[d.Name], string(link[1]))
				}
			})
			seen, found := make(map[string]bool), 0
			next, clicks := []string{".html"}, 1
			for ; len(next) > 0; clicks++ {
				var below []string
				for _, name := range next {
					if seen[name] {
						continue
					}
					seen[name] = true
					for _, url := range links[name] {
						if document, ok := strings.CutPrefix(url, o.Sitemap); ok {
							document, _, _ = strings.Cut(document, "#")
							below = append(below, document)
						} else {
							found++
						}
					}
				}
				next = below
				if clicks == maxClicks && found != test.pages {
					t.Errorf("%d of %d pages are %d clicks away", found, test.pages, maxClicks)
				}
			}
			if found != test.pages {
				t.Errorf("found %d of %d pages", found, test.pages)
			}
			t.Logf("%d documents, the first of %d links, the longest of %d bytes", len(links), len(links[".html"]), longest)
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
	o := options
	o.Feed = false
	n := 100_000
	switch {
	case testing.Short():
		n = 30_000
	case isLong:
		n = 1_000_000
	}
	longest, i, last := 0, 0, ""
	each(numbered(n, func(i int) string { return fmt.Sprintf("/%07d", i) }), o, func(d Document) {
		if i++; i%10 == 1 || d.Name == ".html" {
			last = string(d.Body())
			longest = max(longest, len(last))
		}
	})
	if want := "<p>" + count(n, "", "pages") + "</p>"; longest > maxSize || !strings.Contains(last, want) {
		t.Errorf("up to %d bytes, without %s", longest, want)
	}
}

// TestStays: one page more changes its document, those around it, and one or two beside it.
func TestStays(t *testing.T) {
	for _, shape := range shapes {
		if isLeftOut(3 * shape.pages) { // it is built three times
			continue
		}
		pages := slices.Collect(numbered(shape.pages, shape.path))
		before := build(t, slices.Values(pages), options)
		for _, at := range []int{shape.pages / 10, shape.pages} {
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
	if got := elements(root, "h2"); len(got) != 1 || text(got[0]) != "Pages" {
		t.Errorf("got %d headings", len(got))
	}
	if home := elements(root, "a")[0]; attribute(home, "href") != options.Base+"/shop/" {
		t.Errorf("the way home leads to %v", home.Attr)
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
			p, err := page.Normal("/" + strings.Repeat(path, r.IntN(3)) + fmt.Sprintf("/%d", i%7) + path)
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

// TestShortTitle: titles lose what most of them end in, or else the name of the site.
func TestShortTitle(t *testing.T) {
	for _, test := range []struct{ title, ending, site, want string }{
		{"A — Site", " — Site", "", "A"},
		{"A — Site", " — Site", "Site", "A"},
		{"A — Site", " — Other", "Site", "A"},
		{"A | Guide | Site", "", "Site", "A | Guide"},
		{"A — Site", "", "", "A — Site"},
		{"A — Guide", "", "Site", "A — Guide"},
		{"A of the Site", "", "Site", "A of the Site"},
		{"Site", "", "Site", "Site"},
		{" — Site", " — Site", "Site", " — Site"},
	} {
		if got := shortTitle(test.title, test.ending, test.site); got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
	}
}

// TestChaptersOf: each folder has one chapter, in the order of the folders, whatever the order of the rows.
func TestChaptersOf(t *testing.T) {
	at := func(folder, name string) row { return row{Folder: folder, Path: folder + name, Pages: 1, Kind: toPage} }
	rows := []row{at("/b/", "2"), at("/", "1"), at("/b/", "1"), at("/a/", "1")}
	var got []string
	for _, s := range chaptersOf("/", rows, "") {
		for _, r := range s.Rows {
			got = append(got, s.Label+" "+r.Path)
		}
	}
	want := []string{"Pages /1", pathLabel("/a/") + " /a/1", pathLabel("/b/") + " /b/2", pathLabel("/b/") + " /b/1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if rows[0].Path != "/b/2" {
		t.Error("the rows were sorted in their place")
	}
}
