package document

import (
	"encoding/xml"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// noon is when the tests look at the news.
var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func newsOptions() Options {
	return Options{Now: noon, Beside: Beside{News: &NewsOf{Publication: "The Example Times"}}}
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
		line := strings.TrimPrefix(u.Loc, base)
		if n := u.News; n != nil {
			line += fmt.Sprintf(" %s, %s, %s, %s", n.Name, n.Lang, n.Date, n.Title)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// newsOf is the news sitemap of pages; "": there is none.
func newsOf(t testing.TB, o Options, pages ...page.Page) (entries string, news *News) {
	t.Helper()
	s := build(t, pages, nil, o)
	if s == nil {
		return "", new(News)
	}
	d := s.Find(NewsSitemap)
	if d == nil {
		return "", s.News
	}
	var set newsSet
	if err := xml.Unmarshal([]byte(read(t, d.Open)), &set); err != nil || d.Type != "" {
		t.Fatal(err, d.Type)
	}
	return set.String(), s.News
}

// TestNewsTimes: an article is news for 48 hours from when it was published.
func TestNewsTimes(t *testing.T) {
	for _, test := range []struct {
		name string
		page page.Page
		want string // date; "": it is no news
		left string // the reason, if it is counted
	}{
		{"now", articleAt("/a", 0), "2026-11-26T12:00:00Z", ""},
		{"two days ago, nearly", articleAt("/a", 48*time.Hour-time.Second), "2026-11-24T12:00:01Z", ""},
		{"two days ago", articleAt("/a", 48*time.Hour), "", ""},
		{"in five minutes, by another clock", articleAt("/a", -5*time.Minute), "2026-11-26T12:05:00Z", ""},
		{"later", articleAt("/a", -5*time.Minute-time.Second), "", newsFuture},

		{"today", ofDay("/a", 0), "2026-11-26", ""},
		{"yesterday", ofDay("/a", 1), "2026-11-25", ""},
		{"the day before yesterday", ofDay("/a", 2), "", ""},
		{"tomorrow, which has begun in the east", ofDay("/a", -1), "2026-11-27", ""},
		{"the day after tomorrow", ofDay("/a", -2), "", newsFuture},

		{"never, with a title", titled("/a", 1, "title"), "", ""},
	} {
		got, news := newsOf(t, newsOptions(), test.page)
		want := ""
		if test.want != "" {
			want = "/a The Example Times, en, " + test.want + ", About /a"
		}
		if test.want == "" && test.left == "" && got == "/a" {
			got = "" // as a mere page
		}
		counted := make(map[string]int)
		if test.left != "" {
			counted[test.left] = 1
		}
		if got != want || !maps.Equal(news.LeftOut, counted) {
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
		{"one to come", []page.Page{articleAt("/a", -time.Hour)}, ""},
		{"old ones", []page.Page{articleAt("/a", 60*time.Hour), articleAt("/b", 49*time.Hour), articleAt("/c", 49*time.Hour), articleAt("/d", 50*time.Hour)}, "/b"},
		{"an old one, and one to come", []page.Page{articleAt("/a", 48*time.Hour), articleAt("/b", -time.Hour)}, "/a"},
		{"an old one and a new one", []page.Page{articleAt("/a", 48*time.Hour), articleAt("/b", 0)},
			"/b The Example Times, en, 2026-11-26T12:00:00Z, About /b"},
	} {
		if got, _ := newsOf(t, newsOptions(), test.pages...); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestNewsMost: of more than 1,000 articles, the newest are listed, those of the same time in order of their paths.
func TestNewsMost(t *testing.T) {
	var pages []page.Page
	for i := range 3500 {
		pages = append(pages, articleAt(fmt.Sprintf("/%05d", i), time.Duration(i*7919%1001)*time.Second))
	}
	got, news := newsOf(t, newsOptions(), pages...)
	slices.SortStableFunc(pages, func(a, b page.Page) int { return int(b.Extensions.Published - a.Extensions.Published) })
	articles := strings.Split(got, "\n")
	if news.Pages != 1000 || len(articles) != 1000 || news.LeftOut[newsOverBound] != 2500 {
		t.Fatalf("got %d articles, %d are said, left out %v", len(articles), news.Pages, news.LeftOut)
	}
	for i, article := range articles {
		if path, _, _ := strings.Cut(article, " "); path != pages[i].Path {
			t.Fatalf("article %d is %s, want %s", i, path, pages[i].Path)
		}
	}
}

// TestNewsUntil: until a time, equal pages make an equal document, and another one then. Only the news sitemap changes.
func TestNewsUntil(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		pages := pagesOf("/")
		for j := range random.IntN(6) {
			path := fmt.Sprintf("/%d", j)
			p := articleAt(path, time.Duration(random.IntN(96*60)-24*60)*time.Minute)
			if random.IntN(2) == 0 {
				p = ofDay(path, random.IntN(6)-2)
			}
			pages = append(pages, p)
		}
		o := newsOptions()
		before := build(t, pages, nil, o)
		until := before.News.Until
		if until.IsZero() {
			continue
		}
		for _, at := range []time.Time{until.Add(-time.Second), until} {
			o.Now = at
			after := build(t, pages, before, o)
			isSame := before.Equal(after)
			if isSame != at.Before(until) || before.News.IsCurrent(noon, at) != isSame || before.XMLDigest() != after.XMLDigest() {
				t.Fatalf("until %s: at %s the same: %t", until, at, isSame)
			}
		}
		if before.News.IsCurrent(noon, noon.Add(-time.Second)) {
			t.Error("current although the clock was set back")
		}
	}
}

// TestNewsMatch: only pages that match may be news, and what says nothing of a date is counted only where patterns say that
// it should.
func TestNewsMatch(t *testing.T) {
	pages := []page.Page{articleAt("/b", time.Hour), titled("/c", 1, "title")}
	for i := range 4 {
		pages = append(pages, titled(fmt.Sprint("/news/", i), 1, "title"))
	}
	pages = append(pages, articleAt("/news/a", time.Hour))
	o := newsOptions()
	o.News.Match = func(path string) bool { return strings.HasPrefix(path, "/news/") }
	got, news := newsOf(t, o, pages...)
	if !strings.HasPrefix(got, "/news/a ") || news.Pages != 1 || news.LeftOut[newsUndated] != 4 ||
		!slices.Equal(news.Examples[newsUndated], []string{"/news/0", "/news/1", "/news/2"}) {
		t.Errorf("got %+v", news)
	}
	if _, news := newsOf(t, newsOptions(), pages...); news.Pages != 2 || len(news.LeftOut) != 0 {
		t.Errorf("without patterns: got %+v", news)
	}
}

// TestNewsTitles: a title is the headline, or else that of the page, without the names of the site.
func TestNewsTitles(t *testing.T) {
	for _, test := range []struct{ headline, title, want string }{
		{"A headline | The Example Times", "A title", "A headline"},
		{"", "A title :: Example – home", "A title"},
		{" \u202e ", "A title", "A title"},
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
		got, news := newsOf(t, newsOptions(), titled("/", 0, "Example – home"), p)
		if got != want || news.LeftOut[newsUntitled] != counted {
			t.Errorf("%+v: got %q, %v", test, got, news.LeftOut)
		}
	}
}

// TestNewsLanguages: the language is that of the page, or else of the front page.
func TestNewsLanguages(t *testing.T) {
	const tests = "de:en:de pt-BR::pt EN-gb::en es-419::es sr-Latn-RS::sr deu::de gsw::gsw iw::he zh::zh-cn zh-CN::zh-cn zh-Hans::zh-cn zh-SG::zh-cn cmn::zh-cn " +
		"zh-TW::zh-tw zh-hant::zh-tw zh-HK::zh-tw zh-MO::zh-tw zh-Hans-TW::zh-cn :fr-CA:fr mul:fr:fr und:zxx: xx-yy-zz:: ::"
	for _, test := range strings.Fields(tests) {
		words := strings.Split(test, ":")
		front := titled("/", 0, "home")
		front.Extensions.Lang = words[1]
		p := articleAt("/a", time.Hour)
		p.Extensions.Lang = words[0]
		got, news := newsOf(t, newsOptions(), front, p)
		want, counted := "", 1
		if words[2] != "" {
			want, counted = "/a The Example Times, "+words[2]+", 2026-11-26T11:00:00Z, About /a", 0
		}
		if got != want || news.LeftOut[newsNoLang] != counted {
			t.Errorf("%s: got %q, %v", test, got, news.LeftOut)
		}
	}
}

// TestHostileNews: whatever titles say, a news sitemap is well-formed, and valid by Google's schema: see .ci/schemas.
func TestHostileNews(t *testing.T) {
	o := newsOptions()
	o.News.Publication = "\u202eThe {{example}} & <b>\"Times\"</b>\x00"
	o.Stylesheet = true
	var pages []page.Page
	for path, title := range hostile {
		if !strings.HasPrefix(path, "//") {
			pages = append(pages, articleAt(path, time.Hour))
			pages[len(pages)-1].Extensions.Headline = title[0]
		}
	}
	slices.SortFunc(pages, page.Compare)
	body := bodyOf(t, NewsSitemap, o, pages...)
	const file = "testdata/news.xml"
	if *update {
		if err := os.WriteFile(file, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || body != string(want) {
		t.Errorf("%v: got\n%s", err, body)
	}
}
