package document

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

var update = flag.Bool("update", false, "write the golden files")

// noon is when the tests look at the news.
var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func newsOptions(now time.Time) Options {
	o := beside
	o.People = nil
	o.Feed = false
	o.News = &NewsOf{Publication: "The Example Times"}
	o.Now = now
	return o
}

// articleAt makes a page that was published so long before noon.
func articleAt(path string, age time.Duration) page.Page {
	return page.Page{Path: path, Extensions: &page.Extensions{Published: noon.Add(-age).Unix(), Headline: "About " + path, Lang: "en"}}
}

// ofDay makes a page that was published on a day, so many days before that of noon.
func ofDay(path string, daysAgo int) page.Page {
	p := articleAt(path, time.Duration(daysAgo)*24*time.Hour+12*time.Hour)
	p.Extensions.PublishedDay = true
	return p
}

// newsSet is a news sitemap as its readers parse it.
type newsSet struct {
	XMLName xml.Name `xml:"http://www.sitemaps.org/schemas/sitemap/0.9 urlset"`
	URLs    []struct {
		Loc  string `xml:"loc"`
		News *struct {
			Name  string `xml:"publication>name"`
			Lang  string `xml:"publication>language"`
			Date  string `xml:"publication_date"`
			Title string `xml:"title"`
		} `xml:"http://www.google.com/schemas/sitemap-news/0.9 news"`
	} `xml:"url"`
}

// String returns each entry on a line: its path, and what makes it news.
func (s newsSet) String() string {
	var lines []string
	for _, u := range s.URLs {
		line := strings.TrimPrefix(u.Loc, beside.Base)
		if n := u.News; n != nil {
			line += fmt.Sprintf(" %s, %s, %s, %s", n.Name, n.Lang, n.Date, n.Title)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// newsOf builds the news sitemap of pages in any order; "": there is none.
func newsOf(t testing.TB, o Options, pages ...page.Page) (entries string, news *News, d file) {
	t.Helper()
	slices.SortFunc(pages, page.Compare)
	made := setOf(t, slices.Values(pages), o)
	if made == nil {
		return "", nil, d
	}
	d.Document = made.Find(NewsSitemap)
	if d.Document == nil {
		return "", made.News, d
	}
	d.body = []byte(read(t, d.Open))
	var set newsSet
	if err := xml.Unmarshal(d.body, &set); err != nil {
		t.Fatal(err)
	}
	return set.String(), made.News, d
}

// TestNewsTimes: an article is news for 48 hours from when it was published.
func TestNewsTimes(t *testing.T) {
	const future = newsFuture
	for _, test := range []struct {
		name string
		page page.Page
		want string // date; "": it is no news
		left string // the reason, if it is counted
	}{
		{"now", articleAt("/a", 0), "2026-11-26T12:00:00Z", ""},
		{"two days ago, nearly", articleAt("/a", 48*time.Hour-time.Second), "2026-11-24T12:00:01Z", ""},
		{"two days ago", articleAt("/a", 48*time.Hour), "", ""},
		{"years ago", articleAt("/a", 1<<20*time.Hour), "", ""},
		{"in five minutes, by another clock", articleAt("/a", -5*time.Minute), "2026-11-26T12:05:00Z", ""},
		{"later", articleAt("/a", -5*time.Minute-time.Second), "", future},
		{"tomorrow", articleAt("/a", -24*time.Hour), "", future},

		{"today", ofDay("/a", 0), "2026-11-26", ""},
		{"yesterday", ofDay("/a", 1), "2026-11-25", ""},
		{"the day before yesterday", ofDay("/a", 2), "", ""},
		{"tomorrow, which has begun in the east", ofDay("/a", -1), "2026-11-27", ""},
		{"the day after tomorrow", ofDay("/a", -2), "", future},

		{"never", page.Page{Path: "/a"}, "", ""},
		{"never, with a title", newPage("/a", 1, "title"), "", ""},
	} {
		got, news, _ := newsOf(t, newsOptions(noon), test.page)
		want := ""
		if test.want != "" {
			want = "/a The Example Times, en, " + test.want + ", About /a"
		}
		if test.want == "" && test.left == "" && got == "/a" {
			got = "" // as a mere page
		}
		counted := map[string]int{}
		if test.left != "" {
			counted[test.left] = 1
		}
		if got != want || !reflect.DeepEqual(news.LeftOut, counted) {
			t.Errorf("%s: got %q, left out %v, want %q, %v", test.name, got, news.LeftOut, want, counted)
		}
	}
}

// TestNewsWithoutArticles: while no article is news, the newest older one is a mere page. Before any was published, there is
// no document.
func TestNewsWithoutArticles(t *testing.T) {
	for _, test := range []struct {
		name  string
		pages []page.Page
		want  string
	}{
		{"no page", nil, ""},
		{"no article", []page.Page{newPage("/a", 1, "title")}, ""},
		{"one to come", []page.Page{articleAt("/a", -time.Hour)}, ""},
		{"an old one", []page.Page{articleAt("/a", 48*time.Hour)}, "/a"},
		{"old ones", []page.Page{articleAt("/a", 60*time.Hour), articleAt("/b", 49*time.Hour), articleAt("/c", 49*time.Hour), articleAt("/d", 50*time.Hour)}, "/b"},
		{"an old one without a title", []page.Page{{Path: "/a", Extensions: &page.Extensions{Published: 1}}}, "/a"},
		{"an old one, and one to come", []page.Page{articleAt("/a", 48*time.Hour), articleAt("/b", -time.Hour)}, "/a"},
		{"an old one and a new one", []page.Page{articleAt("/a", 48*time.Hour), articleAt("/b", 0)},
			"/b The Example Times, en, 2026-11-26T12:00:00Z, About /b"},
	} {
		got, _, d := newsOf(t, newsOptions(noon), test.pages...)
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		if hasDocument := d.Document != nil; hasDocument != (test.want != "") || hasDocument && d.Type != "" {
			t.Errorf("%s: got %+v", test.name, d)
		}
	}
}

// TestNewsMost: of more than 1,000 articles, the newest are listed, those of the same time in order of their paths, in
// whichever order they come.
func TestNewsMost(t *testing.T) {
	for name, age := range map[string]func(i int) time.Duration{
		"the newest first":  func(i int) time.Duration { return time.Duration(i) * time.Second },
		"the newest last":   func(i int) time.Duration { return time.Duration(5000-i) * time.Second },
		"scattered":         func(i int) time.Duration { return time.Duration(i*7919%3001) * time.Second },
		"all at once":       func(int) time.Duration { return time.Hour },
		"every second time": func(i int) time.Duration { return time.Duration(i/2) * time.Second },
	} {
		var pages []page.Page
		for i := range 3500 {
			pages = append(pages, articleAt(fmt.Sprintf("/%05d", i), age(i)))
		}
		got, news, d := newsOf(t, newsOptions(noon), slices.Clone(pages)...)
		slices.SortStableFunc(pages, func(a, b page.Page) int { return int(b.Extensions.Published - a.Extensions.Published) })
		articles := strings.Split(got, "\n")
		for i, p := range pages[:1000] {
			if path, _, _ := strings.Cut(articles[i], " "); path != p.Path {
				t.Fatalf("%s: article %d is %s, want %s", name, i, path, p.Path)
			}
		}
		if news.Pages != 1000 || len(articles) != 1000 {
			t.Errorf("%s: got %d articles, %d are said", name, len(articles), news.Pages)
		}
		if news.LeftOut[newsOverBound] != 2500 {
			t.Errorf("%s: left out %v, %v", name, news.LeftOut, news.Examples)
		}
		if n := len(d.Body()); n > 1<<20 {
			t.Errorf("%s: got %d bytes", name, n)
		}
	}
}

// TestNewsUntil: until a time, equal pages make an equal document, and another one then.
func TestNewsUntil(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		var pages []page.Page
		for j := range random.IntN(6) {
			path := fmt.Sprintf("/%d", j)
			p := articleAt(path, time.Duration(random.IntN(96*60)-24*60)*time.Minute)
			if random.IntN(2) == 0 {
				p = ofDay(path, random.IntN(6)-2)
			}
			pages = append(pages, p)
		}
		_, news, d := newsOf(t, newsOptions(noon), pages...)
		if news == nil || news.Until.IsZero() {
			continue
		}
		for _, at := range []time.Time{news.Until.Add(-time.Second), news.Until} {
			_, _, other := newsOf(t, newsOptions(at), pages...)
			isSame := d.Document == nil && other.Document == nil || d.Document != nil && other.Document != nil && d.ETag == other.ETag
			if isSame != at.Before(news.Until) || news.IsCurrent(noon, at) != isSame {
				t.Fatalf("%d: until %s: at %s the same: %t", i, news.Until, at, isSame)
			}
		}
		if news.IsCurrent(noon, noon.Add(-time.Second)) {
			t.Error("current although the clock was set back")
		}
	}
}

// TestNewsMatch: only pages that match may be news, and what says nothing of a date is counted only where patterns say that
// it should.
func TestNewsMatch(t *testing.T) {
	undated := func(path string) page.Page { return newPage(path, 1, "title") }
	pages := []page.Page{
		articleAt("/news/a", time.Hour), articleAt("/b", time.Hour), undated("/c"), undated("/news/1"), undated("/news/2"), undated("/news/3"), undated("/news/4"),
	}
	o := newsOptions(noon)
	o.News.Match = func(path string) bool { return strings.HasPrefix(path, "/news/") }
	got, news, _ := newsOf(t, o, pages...)
	if !strings.HasPrefix(got, "/news/a ") || news.Pages != 1 || news.LeftOut[newsUndated] != 4 ||
		!slices.Equal(news.Examples[newsUndated], []string{"/news/1", "/news/2", "/news/3"}) {
		t.Errorf("got %+v", news)
	}
	_, news, _ = newsOf(t, newsOptions(noon), pages...)
	if news.Pages != 2 || len(news.LeftOut) != 0 {
		t.Errorf("without patterns: got %+v", news)
	}
	if _, news, _ := newsOf(t, beside, pages...); news != nil {
		t.Errorf("without the option: got %+v", news)
	}
}

// TestNewsTitles: a title is the headline, or else that of the page, without the names of the site.
func TestNewsTitles(t *testing.T) {
	front := newPage("/", 0, "Example – home")
	for _, test := range []struct{ headline, title, want string }{
		{"A headline", "A title", "A headline"},
		{"A headline | The Example Times", "A title", "A headline"},
		{"", "A title - The Example Times", "A title"},
		{"", "A title :: Example – home", "A title"},
		{"", "A title — example.com", "A title"},
		{" \u202e ", "A title", "A title"},
		{"", "Example – home", "Example – home"},
		{"", "", ""},
		{"\x00", "\x01", ""},
	} {
		p := articleAt("/a", time.Hour)
		p.Extensions.Headline = test.headline
		p.Extensions.Title = test.title
		want := "/a The Example Times, en, 2026-11-26T11:00:00Z, " + test.want
		counted := 0
		if test.want == "" {
			want = ""
			counted = 1
		}
		got, news, _ := newsOf(t, newsOptions(noon), front, p)
		if got != want || news.LeftOut[newsUntitled] != counted {
			t.Errorf("%+v: got %q, %v", test, got, news.LeftOut)
		}
	}
}

// TestNewsLanguages: the language is that of the page, or else of the front page.
func TestNewsLanguages(t *testing.T) {
	for _, test := range []struct{ lang, front, want string }{
		{"de", "en", "de"}, {"pt-BR", "", "pt"}, {"EN-gb", "", "en"}, {"es-419", "", "es"}, {"sr-Latn-RS", "", "sr"},
		{"deu", "", "de"}, {"gsw", "", "gsw"}, {"iw", "", "he"},
		{"zh", "", "zh-cn"}, {"zh-CN", "", "zh-cn"}, {"zh-Hans", "", "zh-cn"}, {"zh-SG", "", "zh-cn"}, {"cmn", "", "zh-cn"},
		{"zh-TW", "", "zh-tw"}, {"zh-hant", "", "zh-tw"}, {"zh-HK", "", "zh-tw"}, {"zh-MO", "", "zh-tw"}, {"zh-Hans-TW", "", "zh-cn"},
		{"", "fr-CA", "fr"}, {"mul", "fr", "fr"}, {"und", "zxx", ""}, {"xx-yy-zz", "", ""}, {"", "", ""},
	} {
		front := newPage("/", 0, "home")
		front.Extensions.Lang = test.front
		p := articleAt("/a", time.Hour)
		p.Extensions.Lang = test.lang
		got, news, _ := newsOf(t, newsOptions(noon), front, p)
		want, counted := "", 1
		if test.want != "" {
			want, counted = "/a The Example Times, "+test.want+", 2026-11-26T11:00:00Z, About /a", 0
		}
		if got != want || news.LeftOut[newsNoLang] != counted {
			t.Errorf("%q, front page %q: got %q, %v", test.lang, test.front, got, news.LeftOut)
		}
	}
}

// TestHostileNews: whatever titles say, a news sitemap is well-formed, and valid by Google's schema: see .ci/schemas.
func TestHostileNews(t *testing.T) {
	o := newsOptions(noon)
	o.News.Publication = "\u202eThe {{example}} & <b>\"Times\"</b>\x00"
	o.Stylesheet = true
	var pages []page.Page
	for path, title := range hostile {
		if !strings.HasPrefix(path, "//") {
			pages = append(pages, articleAt(path, time.Hour))
			pages[len(pages)-1].Extensions.Headline = title[0]
		}
	}
	got, _, d := newsOf(t, o, pages...)
	for _, p := range pages {
		if title := hostile[p.Path]; title[0] != "" && !strings.Contains(got+"\n", ", 2026-11-26T11:00:00Z, "+title[1]+"\n") {
			t.Errorf("%s: not in\n%s", p.Path, got)
		}
	}
	body := d.Body()
	if bytes.Contains(body, []byte("{{")) {
		t.Error("Caddy's templates, around the handler, would execute a text")
	}
	if want := []byte(`<?xml-stylesheet type="text/css" href="sitemap.css"?>`); !bytes.Contains(body, want) {
		t.Errorf("got no %s", want)
	}
	// The patterns of the schema.
	for _, language := range regexp.MustCompile(`<news:language>(.*?)</`).FindAllSubmatch(body, -1) {
		if !regexp.MustCompile(`^(zh-cn|zh-tw|([a-z]{2,3}))$`).Match(language[1]) {
			t.Errorf("got the language %s", language[1])
		}
	}
	const file = "testdata/news.xml"
	if *update {
		if err := os.WriteFile(file, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(body, want) {
		t.Errorf("%v: got\n%s", err, body)
	}
}

// TestSameNews: equal articles make an equal document, and others make another one.
func TestSameNews(t *testing.T) {
	pages := []page.Page{articleAt("/a", time.Hour), articleAt("/b", 2*time.Hour)}
	_, _, want := newsOf(t, newsOptions(noon), pages...)
	for name, change := range map[string]func(o *Options, p *page.Page){
		"nothing":     func(*Options, *page.Page) {},
		"later":       func(o *Options, _ *page.Page) { o.Now = noon.Add(time.Hour) },
		"lastmod":     func(_ *Options, p *page.Page) { p.LastMod = 5 },
		"title":       func(_ *Options, p *page.Page) { p.Extensions.Headline = "other" },
		"date":        func(_ *Options, p *page.Page) { p.Extensions.Published++ },
		"language":    func(_ *Options, p *page.Page) { p.Extensions.Lang = "de" },
		"publication": func(o *Options, _ *page.Page) { o.News.Publication = "other" },
		"stylesheet":  func(o *Options, _ *page.Page) { o.Stylesheet = true },
	} {
		o := newsOptions(noon)
		e := *pages[0].Extensions
		p := page.Page{Path: "/a", Extensions: &e}
		change(&o, &p)
		_, _, got := newsOf(t, o, p, pages[1])
		wantSame := name == "nothing" || name == "later" || name == "lastmod"
		if isSame := got.ETag == want.ETag && bytes.Equal(got.Body(), want.Body()); isSame != wantSame {
			t.Errorf("%s: the same: %t", name, isSame)
		}
	}
}
