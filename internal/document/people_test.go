package document

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// listing is what a reader finds who starts at the first document and follows its links to others.
type listing struct {
	labels map[string]string     // of pages, by URL
	seen   map[string]*html.Node // documents, by name
}

// readAll follows the links to other documents, and checks what holds for any of them.
func readAll(t testing.TB, s *Set) *listing {
	t.Helper()
	l := &listing{labels: make(map[string]string), seen: make(map[string]*html.Node)}
	for next := []string{HTML}; len(next) > 0; next = next[1:] {
		d := s.Find(next[0])
		if d == nil || d.Type != "text/html; charset=utf-8" {
			t.Fatalf("%s is %+v", next[0], d)
		}
		body := read(t, d.Open)
		if strings.Contains(body, "{{") {
			t.Errorf("templates would execute %s", body)
		}
		root := parse(body)
		l.seen[d.Name] = root
		checkDocument(t, root)
		rows := 0
		for _, a := range elements(elements(root, "main")[0], "a") {
			url := attribute(a, "href")
			if name := strings.TrimPrefix(url, base+"/sitemap"); s.Find(name) != nil {
				next = append(next, name)
				continue
			}
			rows++
			if _, isThere := l.labels[url]; isThere {
				t.Errorf("%s is listed twice", url)
			}
			l.labels[url] = textIn(a)
		}
		if rows > maxSingle || d.Name != HTML && rows > maxPart {
			t.Errorf("%s has %d rows", d.Name, rows)
		}
	}
	for _, d := range s.Others {
		if strings.HasSuffix(d.Name, HTML) && l.seen[d.Name] == nil {
			t.Errorf("nothing links to %s", d.Name)
		}
	}
	return l
}

// checkDocument checks what holds for any HTML document.
func checkDocument(t testing.TB, root *html.Node) {
	t.Helper()
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
		const allowed = " html head meta title body header nav ol ul li a h1 h2 p search label input output main section bdi span time link script "
		isEmpty := n.Data != "script" || n.FirstChild == nil
		if !strings.Contains(allowed, " "+n.Data+" ") || !isEmpty {
			t.Errorf("an element %s with %q", n.Data, textIn(n))
		}
		for _, a := range n.Attr {
			isURL := a.Key == "href" || a.Key == "src"
			isForeign := isURL && !strings.HasPrefix(a.Val, base+"/") && !strings.HasPrefix(a.Val, "./sitemap-html.")
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") || isForeign {
				t.Errorf("%s has %s=%q", n.Data, a.Key, a.Val)
			}
		}
		if length := utf8.RuneCountInString(textIn(n)); n.Data == "bdi" && length > 2*maxTitle+3 { // from and to
			t.Errorf("a text of %d characters", length)
		}
	}
}

func TestHostileTitles(t *testing.T) {
	l := readAll(t, build(t, hostilePages(), nil, beside))
	for path, title := range hostile {
		if got, ok := l.labels[base+path]; !ok || path != "/" && got != title[1] {
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
				"/": "Home", "/blog/": "Our blog", "/blog/a": "A", "/blog/b": "B", "/blog/c": "C", "/docs": "The manual", "/docs/": "Contents", "/docs/a": "D",
				"/docs/b": "E", "/docs/c": "F", "/docs/d": "G", "/x/a": "Alone",
			}, "",
			[]string{
				"Home", "Pages 2", "Alone /x/a 2023-11-25", "Home / 2023-11-14",
				"Our blog 4", "A /blog/a 2023-11-16", "B /blog/b 2023-11-17", "C /blog/c 2023-11-18",
				"The manual 6", "Contents /docs/ 2023-11-20", "D /docs/a 2023-11-21", "E /docs/b 2023-11-22", "F /docs/c 2023-11-23", "G /docs/d 2023-11-24",
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
		pages := allTitled(test.titles)
		pages[0].Extensions.Lang = test.lang
		got := outline(parse(bodyOf(t, HTML, beside, pages...)))
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q\nwant %q", name, got, test.want)
		}
	}
}

// TestPeopleOfSections: a section is a group, wherever its pages are.
func TestPeopleOfSections(t *testing.T) {
	o := beside
	o.SectionOf = func(path string) string { return map[bool]string{true: "news"}[path != "/"] }
	got := outline(parse(bodyOf(t, HTML, o, pagesOf("/", "/a/1", "/a/2", "/b/1", "/b/2")...)))
	want := []string{"example.com", "Pages 1", "/", "News 4", "/a/1", "/a/2", "/b/1", "/b/2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// All pages of the section introduce others.
	o.SectionOf = func(path string) string { return map[bool]string{true: "news"}[len(path) == 2] }
	pages := pagesOf("/a", "/b", "/c", "/d")
	for _, p := range slices.Clone(pages) {
		pages = append(pages, numberedBy(600, p.Path+"/%d")...)
	}
	pages = append(pages, page.Page{Path: "/news"})
	slices.SortFunc(pages, page.Compare)
	if l := readAll(t, build(t, pages, nil, o)); len(l.labels) != len(pages)-4 { // which are above the pages of others
		t.Errorf("%d of %d pages are listed", len(l.labels), len(pages))
	}
}

// TestPeopleOfManyPages: a larger site has a first document with its groups, and others with at most a thousand pages. One page
// more changes the first document and its own.
func TestPeopleOfManyPages(t *testing.T) {
	for name, test := range map[string]struct {
		pages, each       int // pages of a folder
		groups, documents int // documents: at most
	}{
		"one document":      {1999, 500, 4, 1},
		"one folder":        {2001, 3000, 0, 7},
		"two folders":       {9000, 4500, 2, 23},
		"folders":           {5000, 100, 0, 51},
		"one page a folder": {5000, 1, 0, 12},
		"small folders":     {6000, 3, 0, 16},
	} {
		var pages []page.Page
		for i := range test.pages {
			path := fmt.Sprintf("/%04d/%05d", i/test.each, i)
			pages = append(pages, titled(path, 1_700_000_000, fmt.Sprint("Page ", i)))
		}
		before := build(t, pages, nil, beside)
		l := readAll(t, before)
		headings := len(elements(l.seen[HTML], "h2"))
		if len(l.labels) != test.pages || headings != test.groups || len(l.seen) > test.documents {
			t.Errorf("%s: got %d pages below %d headings in %d documents, want %d, %d, %d",
				name, len(l.labels), headings, len(l.seen), test.pages, test.groups, test.documents)
		}
		at := len(pages) / 3
		added := titled(pages[at-1].Path+"-", 1_700_000_000, fmt.Sprintf("Page %d and a half", at))
		n := 0
		for _, name := range changed(before, build(t, slices.Insert(pages, at, added), before, beside)) {
			if strings.HasSuffix(name, HTML) {
				n++
			}
		}
		if n > 2 {
			t.Errorf("%s: one page more changes %d documents", name, n)
		}
	}
}

// TestPeopleBound: of more than a million pages, a million are shown.
func TestPeopleBound(t *testing.T) {
	l := &people{groups: make(map[string]*group), count: maxPeople - 1}
	for range 3 {
		l.add(listed{Page: page.Page{Path: "/"}})
	}
	if n := len(l.groups[""].entries); n != 1 || l.count != maxPeople+2 {
		t.Errorf("%d pages are held, %d counted", n, l.count)
	}
}

// TestPeopleLook: the operator's title and stylesheet count, and the front page says the language and direction.
func TestPeopleLook(t *testing.T) {
	for lang, want := range map[string][]string{
		"":   {`lang="en" dir="ltr"`, ">Home<", "Sitemap – "},
		"de": {`lang="de" dir="ltr"`, ">Startseite<", "Übersicht – "},
		"ar": {`lang="ar" dir="rtl"`, ">الرئيسية<"},
		"he": {`lang="he" dir="rtl"`, ">Home<"},
	} {
		o := beside
		o.People = &People{Title: "Our <name>", CSS: "/look.css?a=1&b=2"}
		front := titled("/", 1, "Front")
		front.Extensions.Lang = lang
		body := bodyOf(t, HTML, o, front)
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
		for _, word := range reflect.ValueOf(in).Fields() {
			if word.String() == "" {
				t.Errorf("%s: a word is missing: %+v", lang, in)
			}
		}
	}
}
