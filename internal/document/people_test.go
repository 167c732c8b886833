package document

import (
	"fmt"
	"math/rand/v2"
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
	l := readAll(t, filesOf(t, slices.Values(hostilePages()), beside))
	for path, title := range hostile {
		if got, ok := l.labels[beside.Base+path]; !ok || path != "/" && got != title[1] {
			t.Errorf("%q: got %q, want %q", path, got, title[1])
		}
	}
}

// outline is what a document shows: its heading, those of its sections, and its rows.
func outline(root *html.Node) (lines []string) {
	for n := range root.Descendants() {
		isLine := n.Type == html.ElementNode && (n.Data == "h1" || n.Data == "h2" || n.Data == "li" && n.Parent.Data == "ul")
		if isLine {
			lines = append(lines, strings.TrimSpace(textIn(n)))
		}
	}
	return lines
}

// TestPeople: pages are shown below their sections or first folders, as a person sorts them, without the name of the site, and
// the page that introduces a group is its heading.
func TestPeople(t *testing.T) {
	for name, test := range map[string]struct {
		titles map[string]string // by path
		lang   string            // of the front page
		want   []string
	}{
		"a manual": {
			map[string]string{"/": "Start", "/10": "Part 10", "/2": "Part 2", "/1": "part 1"}, "",
			[]string{"Start", "part 1 /1 2023-11-15", "Part 2 /2 2023-11-17", "Part 10 /10 2023-11-16", "Start / 2023-11-14"},
		},
		"groups": {
			map[string]string{
				"/": "Home", "/blog/": "Our blog", "/blog/a": "A", "/blog/b": "B", "/blog/c": "C", "/docs": "The manual", "/docs/a": "D",
				"/docs/b": "E", "/docs/c": "F", "/docs/d": "G", "/x/a": "Alone",
			}, "",
			[]string{
				"Home", "Pages 2", "Alone /x/a 2023-11-24", "Home / 2023-11-14",
				"Our blog 4", "A /blog/a 2023-11-16", "B /blog/b 2023-11-17", "C /blog/c 2023-11-18",
				"The manual 5", "D /docs/a 2023-11-20", "E /docs/b 2023-11-21", "F /docs/c 2023-11-22", "G /docs/d 2023-11-23",
			},
		},
		"the name of the site": {
			map[string]string{"/": "Start — Site", "/a": "A — Site", "/b": "B — Site", "/c": "C — Site", "/d": "D | Other"}, "",
			[]string{"Start", "A /a 2023-11-15", "B /b 2023-11-16", "C /c 2023-11-17", "D | Other /d 2023-11-18", "Start / 2023-11-14"},
		},
		"German": {
			map[string]string{"/": "Zuhause", "/a": "Zwei", "/b": "Äpfel", "/c": "Birnen"}, "de",
			[]string{"Zuhause", "Äpfel /b 2023-11-16", "Birnen /c 2023-11-17", "Zuhause / 2023-11-14", "Zwei /a 2023-11-15"},
		},
		"no titles": {
			map[string]string{"/": "", "/a%20b": "", "/10": "", "/9": ""}, "",
			[]string{"example.com", "/ 2023-11-14", "/9 2023-11-16", "/10 2023-11-15", "/a b 2023-11-17"},
		},
	} {
		pages := titled(test.titles)
		pages[0].Extensions.Lang = test.lang
		got := outline(parse(filesOf(t, slices.Values(pages), beside)[HTML].Body()))
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q\nwant %q", name, got, test.want)
		}
	}
}

// TestPeopleIndexes: of two pages that may introduce a group, wherever they are, always the same one does.
func TestPeopleIndexes(t *testing.T) {
	o := beside
	o.SectionOf = func(path string) string {
		return map[string]string{"/news": "a", "/news/": "b"}[path]
	}
	paths := []string{"/", "/news", "/news/", "/news/1", "/news/2", "/news/3", "/news/4"}
	in := func(section string, n int) {
		for i := range n {
			paths = append(paths, fmt.Sprintf("/%s/%d", section, i))
		}
	}
	in("a", 5)
	in("b", 5)
	slices.Sort(paths)
	first := filesOf(t, slices.Values(pagesOf(paths...)), o)[HTML].ETag
	for range 20 {
		if got := filesOf(t, slices.Values(pagesOf(paths...)), o)[HTML].ETag; got != first {
			t.Fatal("the same pages make another document")
		}
	}
}

// TestPeopleOfSections: a section is a group, wherever its pages are.
func TestPeopleOfSections(t *testing.T) {
	o := beside
	o.SectionOf = func(path string) string { return map[bool]string{true: "news"}[path != "/"] }
	pages := slices.Values(pagesOf("/", "/a/1", "/a/2", "/b/1", "/b/2"))
	got := outline(parse(filesOf(t, pages, o)[HTML].Body()))
	want := []string{"example.com", "Pages 1", "/", "News 4", "/a/1", "/a/2", "/b/1", "/b/2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPeopleOfManyPages: a larger site has a first document with its groups, and others with at most a thousand pages, which
// lead to each other.
func TestPeopleOfManyPages(t *testing.T) {
	for name, test := range map[string]struct {
		pages             int
		path              func(i int) string
		groups, documents int // documents: at most
	}{
		"one document":        {2000, func(i int) string { return fmt.Sprintf("/%d/%04d", i/500, i) }, 4, 1},
		"one folder":          {2001, func(i int) string { return fmt.Sprintf("/%04d", i) }, 0, 5},
		"folders":             {5000, func(i int) string { return fmt.Sprintf("/%02d/%04d", i/100, i) }, 0, 51},
		"one page a folder":   {5000, func(i int) string { return fmt.Sprintf("/%04d/", i) }, 0, 12},
		"small ones and none": {6000, func(i int) string { return fmt.Sprintf("/%04d/%05d", max(i-5000, 0)/10, i) }, 1, 116},
	} {
		documents := filesOf(t, numberedPages(test.pages, test.path), beside)
		l := readAll(t, documents)
		headings := len(elements(l.seen[HTML], "h2"))
		if len(l.labels) != test.pages || headings != test.groups || len(l.seen) > test.documents {
			t.Errorf("%s: got %d pages below %d headings in %d documents, want %d, %d, %d",
				name, len(l.labels), headings, len(l.seen), test.pages, test.groups, test.documents)
		}
	}
}

// TestPeopleStay: one page more changes the first document, its own and the ones beside it.
func TestPeopleStay(t *testing.T) {
	pages := slices.Collect(numberedPages(20_000, func(i int) string { return fmt.Sprintf("/%d/%05d", i/10_000, i) }))
	before := filesOf(t, slices.Values(pages), beside)
	for _, at := range []int{2000, 20_000} {
		changed := 0
		added := newPage(pages[at-1].Path+"-", 0, "The page with the number 5000 and a half")
		for name, d := range filesOf(t, slices.Values(slices.Insert(slices.Clone(pages), at, added)), beside) {
			if was := before[name]; was.Document == nil || was.ETag != d.ETag {
				changed++
			}
		}
		if changed < 2 || changed > 6 {
			t.Errorf("a page after %d: %d of %d documents change", at, changed, len(before))
		}
	}
}

// TestPeopleBound: beyond a million pages, further ones are counted.
func TestPeopleBound(t *testing.T) {
	b := newBuilder(nil, options(beside))
	l := newPeople(b)
	for range maxPeople + 2 {
		l.add(listed{Page: page.Page{Path: "/"}})
		l.groups[""].entries = l.groups[""].entries[:1]
	}
	l.finish()
	_ = b.workers.Wait()
	i := slices.IndexFunc(b.made.Others, func(d *Document) bool { return d.Name == HTML })
	first := read(t, b.made.Others[i].Open)
	if want := ": 1000002<"; !strings.Contains(first, want) {
		t.Errorf("got %s, want %s", first, want)
	}
}

// TestPeopleLook: the operator's title and stylesheet count, and the front page says the language and direction.
func TestPeopleLook(t *testing.T) {
	for lang, want := range map[string][]string{
		"":        {`lang="en" dir="ltr"`, ">Home<", "Sitemap – "},
		"de":      {`lang="de" dir="ltr"`, ">Startseite<", "Übersicht – "},
		"ar":      {`lang="ar" dir="rtl"`, ">الرئيسية<"},
		"he":      {`lang="he" dir="rtl"`, ">Home<"},
		"unknown": {`lang="unknown" dir="ltr"`, ">Home<"},
	} {
		o := beside
		o.People = &People{Title: "Our <name>", CSS: "/look.css?a=1&b=2"}
		front := newPage("/", 1, "Front")
		front.Extensions.Lang = lang
		body := string(filesOf(t, slices.Values([]page.Page{front}), o)[HTML].Body())
		want = append(want, "<h1><bdi>Our &lt;name&gt;</bdi></h1>", `<link rel="stylesheet" href="/look.css?a=1&amp;b=2">`,
			`href="./sitemap-html.css"`, `src="./sitemap-html.js"`)
		for _, part := range want {
			if !strings.Contains(body, part) {
				t.Errorf("%s: got\n%s\nwithout %s", lang, body, part)
			}
		}
	}
}

// TestWords: each language has all words.
func TestWords(t *testing.T) {
	for lang, in := range wordsBy {
		for _, word := range []string{in.Sitemap, in.Home, in.Pages, in.Filter, in.None, in.Feed} {
			if word == "" {
				t.Errorf("%s: a word is missing: %+v", lang, in)
			}
		}
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
		documents := filesOf(t, slices.Values(pages), beside)
		l := readAll(t, documents)
		for _, p := range pages {
			if _, isThere := l.labels[beside.Base+p.Path]; !isThere {
				t.Fatalf("%q is missing", p.Path)
			}
		}
		if feed, ok := documents[".atom"]; ok {
			checkFeed(t, feed)
		}
	})
}
