package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/text/encoding/unicode"
)

// look checks a document, and returns its findings as "line severity code".
func look(t *testing.T, body string) string {
	t.Helper()
	findings, _ := checked(t, Options{Stdin: strings.NewReader(body)}, "-")
	return strings.ReplaceAll(strings.Join(findings, "|"), "-:", "")
}

// checked checks targets, and returns the findings as "file:line severity code".
func checked(t *testing.T, o Options, targets ...string) ([]string, Summary) {
	t.Helper()
	var findings []string
	o.Report = func(f Finding) {
		findings = append(findings, fmt.Sprintf("%s:%d %s %s", f.File, f.Line, f.Severity, f.Code))
		if f.Message == "" || f.Line < 0 {
			t.Errorf("got %+v", f)
		}
	}
	s := Check(t.Context(), o, targets...)
	return findings, s
}

const (
	open09  = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:video="http://www.google.com/schemas/sitemap-video/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml">` + "\n"
	onePage = `<url><loc>http://a.example/</loc></url>`
)

// set is a urlset whose content begins in line 2.
func set(content string) string { return open09 + content + "\n</urlset>" }

// in is a set with a page that has more than its loc.
func in(more string) string { return set("<url><loc>http://a.example/</loc>" + more + "</url>") }

// at is a set with a page of one loc.
func at(loc string) string { return set("<url><loc>" + loc + "</loc></url>") }

// twice is a set with a page by the given loc, in any charset, and by that of http://a.example/ü in ASCII.
func twice(loc string) string {
	return set("<url><loc>" + loc + "</loc></url><url><loc>http://a.example/%C3%BC</loc></url>")
}

// newsSet is a set of pages that are news if they have more than their loc.
func newsSet(entries string) string {
	return `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">` + "\n" + entries + "\n</urlset>"
}

// newsAt is an entry of news that was published on a date.
func newsAt(path, date string) string {
	return `<url><loc>http://a.example/` + path + `</loc>` + newsOf("The Example Times", "en", date, "title") + `</url>`
}

func newsOf(name, language, date, title string) string {
	return `<news:news><news:publication><news:name>` + name + `</news:name><news:language>` + language +
		`</news:language></news:publication><news:publication_date>` + date + `</news:publication_date><news:title>` + title + `</news:title></news:news>`
}

// TestNews checks news sitemaps.
func TestNews(t *testing.T) {
	now := time.Now().UTC()
	ago := func(d time.Duration) string { return now.Add(-d).Format(time.RFC3339) }
	daysAgo := func(n int) string { return now.AddDate(0, 0, -n).Format(time.DateOnly) }
	page := func(news string) string { return newsSet(`<url><loc>http://a.example/</loc>` + news + `</url>`) }
	many := func(n int) string {
		var entries strings.Builder
		for i := range n {
			entries.WriteString(newsAt(fmt.Sprint(i), ago(time.Duration(i)*time.Second)) + "\n")
		}
		return newsSet(entries.String())
	}
	for name, test := range map[string]struct{ body, want string }{
		"now":                {newsSet(newsAt("", ago(0))), ""},
		"nearly old":         {newsSet(newsAt("", ago(47*time.Hour))), ""},
		"old":                {newsSet(newsAt("", ago(49*time.Hour))), "2 warning news-old"},
		"today":              {newsSet(newsAt("", daysAgo(0))), ""},
		"two days ago":       {newsSet(newsAt("", daysAgo(2))), ""},
		"five days ago":      {newsSet(newsAt("", daysAgo(5))), "2 warning news-old"},
		"soon":               {newsSet(newsAt("", ago(-50*time.Minute))), ""},
		"later":              {newsSet(newsAt("", ago(-3*time.Hour))), "2 warning news-future"},
		"in two days":        {newsSet(newsAt("", daysAgo(-3))), "2 warning news-future"},
		"without seconds":    {newsSet(newsAt("", now.Format("2006-01-02T15:04")+"+00:00")), ""},
		"without a zone":     {newsSet(newsAt("", now.Format("2006-01-02T15:04:05"))), "2 error news-date"},
		"no date":            {newsSet(newsAt("", "in May")), "2 error news-date"},
		"no news":            {page(""), ""},
		"a language of zh":   {page(newsOf("n", "zh-cn", ago(0), "t")), ""},
		"a language":         {page(newsOf("n", "de-AT", ago(0), "t")), "2 error news-language"},
		"in capitals":        {page(newsOf("n", "EN", ago(0), "t")), "2 error news-language"},
		"without a name":     {page(newsOf(" ", "en", ago(0), "t")), "2 error missing-element"},
		"without a language": {page(newsOf("n", "", ago(0), "t")), "2 error missing-element"},
		"without a date":     {page(newsOf("n", "en", "", "t")), "2 error missing-element"},
		"without a title":    {page(newsOf("n", "en", ago(0), "")), "2 error missing-element"},
		"empty":              {page("<news:news/>"), "2 error missing-element"},
		"twice":              {page(newsOf("n", "en", ago(0), "t") + newsOf("n", "en", ago(0), "t")), "2 error repeated-element"},
		"a page twice":       {newsSet(newsAt("", ago(0)) + newsAt("", ago(0))), "2 warning duplicate"},
		"1,000":              {many(1000), ""},
		"1,001":              {many(1001), "1002 error too-many-news"},
	} {
		if got := look(t, test.body); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func indexOf(locs ...string) string {
	return "<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>\n<sitemap><loc>" + strings.Join(locs, "</loc></sitemap>\n<sitemap><loc>") + "</loc></sitemap></sitemapindex>"
}

func utf16(body string) string {
	encoded, _ := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(body)
	return encoded
}

func zipped(body string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, body)
	_ = w.Close()
	return b.String()
}

// dated is a set of pages with such lastmods.
func dated(dates ...string) string {
	var b strings.Builder
	for i, date := range dates {
		fmt.Fprintf(&b, "<url><loc>http://a.example/%d</loc><lastmod>%s</lastmod></url>\n", i, date)
	}
	return set(b.String())
}

var documents = []struct{ name, body, want string }{
	{"one page", set(onePage), ""},
	{"declaration", `<?xml version="1.0" encoding="utf-8" standalone='yes' ?>` + set(onePage), ""},
	{"stylesheet of our own", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<?xml-stylesheet type=\"text/css\" href=\"sitemap.css\"?>\n" + set(onePage+"\n<url/>"), "5 error missing-element"},
	{"style sheet, comments, CDATA, references", `<?xml-stylesheet href="a.xsl"?><!-- a -->` + set("<!-- b --><url><loc>http://a.example/<![CDATA[a&b]]>&amp;c&#x41;</loc></url>") + "<!-- c -->", ""},
	{"prefix", `<s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9"><s:url><s:loc>http://a.example/</s:loc></s:url></s:urlset>`, ""},
	{"all elements", in("<lastmod>2024-05-01</lastmod><changefreq>daily</changefreq><priority>0.5</priority>"), ""},
	{"CRLF", strings.ReplaceAll(set("\n\n"+onePage+"\n<url/>"), "\n", "\r\n"), "5 error missing-element"},
	{"nothing", "", "0 error empty"},
	{"no element", "<!-- -->", "1 error not-well-formed"},
	{"ampersand", at("http://a.example/?a&b"), "2 error not-well-formed"},
	{"Latin-1", at("http://a.example/\xE4"), "2 error not-well-formed"},
	{"text after the root", set(onePage) + "a", "3 error not-well-formed"},
	{"late declaration", " <?xml version='1.0'?>" + set(onePage), "1 error not-well-formed"},
	{"HTML", "<!DOCTYPE html>\n<title>404</title>", "0 error html"},
	{"namespace with https", `<urlset xmlns="https://www.sitemaps.org/schemas/sitemap/0.9">` + onePage + "</urlset>", "1 error namespace"},
	{"no page", set(""), "3 error missing-element"},
	{"empty page", set("<url/>"), "2 error missing-element"},
	{"two locs", in("<loc>http://a.example/b</loc>"), "2 error repeated-element"},
	{"unknown element", in("<title>a</title>"), "2 error unknown-element"},
	{"capitals", set("<url><Loc>http://a.example/</Loc></url>"), "2 error missing-element|2 error unknown-element"},
	{"empty loc", at(""), "2 error missing-element"},
	{"relative", at("/about/index.html"), "2 error loc-not-absolute"},
	{"white space inside", at("http://a.example/a b"), "2 error loc-character"},
	{"unescaped", at("http://a.example/{a}"), "2 error loc-character"},
	{"not ASCII", at("http://a.example/ä"), "2 warning loc-not-ascii"},
	{"host not ASCII", at("http://ä.example/"), "2 warning loc-not-ascii"},
	{"bad triplet", at("http://a.example/%zz"), "2 error loc-percent"},
	{"fragment", at("http://a.example/#a"), "2 warning loc-fragment"},
	{"user", at("http://me@a.example/"), "2 error loc-user-info"},
	{"port too high", at("http://a.example:65536/"), "2 error loc-host"},
	{"2,048 characters", at("http://a.example/" + strings.Repeat("a", 2031)), "2 error loc-too-long"},
	{"no zone", in("<lastmod>2024-05-01T10:20:30</lastmod>"), "2 warning lastmod-zone"},
	{"future", in("<lastmod>2999-11-21T14:00:00Z</lastmod>"), "2 warning lastmod-future"},
	{"Daily", in("<changefreq>Daily</changefreq>"), "2 error changefreq"},
	{"priority 1.1", in("<priority>1.1</priority>"), "2 error priority"},
	{"all the same", dated("2024-05-01", "2024-05-01", "2024-05-01", "2024-05-01"), "0 warning lastmod-all-the-same"},
	{"not all the same", dated("2024-05-01", "2024-05-01", "2024-05-01", "2024-05-02"), ""},
	{"image with a path", in("<image:image><image:loc>/i.png</image:loc></image:image>"), "2 error extension-url"},
	{"image with a title", in("<image:image><image:loc>http://a.example/i</image:loc><image:title>a</image:title></image:image>"), ""},
	{"1,001 images", in(strings.Repeat("<image:image><image:loc>http://a.example/i</image:loc></image:image>", 1001)), "2 error too-many-images"},
	{"alternate", in(`<xhtml:link rel="alternate" hreflang="de-AT" href="http://b.example/"/>`), ""},
	{"alternate without rel", in(`<xhtml:link hreflang="de" href="http://b.example/"/>`), "2 error alternate"},
	{"alternate for no country", in(`<xhtml:link rel="alternate" hreflang="en-UK" href="http://b.example/"/>`), "2 error attribute-value"},
	{"alternate with underscore", in(`<xhtml:link rel="alternate" hreflang="de_AT" href="http://b.example/"/>`), "2 error attribute-value"},
	{"alternate with a path", in(`<xhtml:link rel="alternate" hreflang="de" href="/de/"/>`), "2 error alternate"},
	{"a billion laughs", `<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol1 "&lol;&lol;&lol;">]>` + at("&lol1;"), "2 error not-well-formed"},
	{"another encoding", `<?xml version="1.0" encoding="ISO-8859-1"?>` + set(onePage), "1 error encoding"},
	{"another encoding in use", `<?xml version="1.0" encoding="windows-1252"?>` + twice("http://a.example/\xfc"), "1 error encoding|2 warning loc-not-ascii|2 warning duplicate"},
	{"an unknown encoding", `<?xml version="1.0" encoding="x-none"?>` + set(onePage), "1 error encoding"},
	{"UTF-8 declared as UTF-16", `<?xml version="1.0" encoding="utf-16"?>` + twice("http://a.example/ü"), "1 error encoding|2 warning loc-not-ascii|2 warning duplicate"},
	{"a byte order mark against the declaration", "\uFEFF" + `<?xml version="1.0" encoding="ISO-8859-1"?>` + twice("http://a.example/ü"), "1 error encoding|2 warning loc-not-ascii|2 warning duplicate"},
	{"UTF-16", utf16(`<?xml version="1.0" encoding="UTF-16"?>` + in("<priority>2</priority>")), "0 error encoding|2 error priority"},
	{"list in UTF-16", utf16("http://a.example/\nhttp://a.example/"), "0 error encoding|2 warning duplicate"},
	{"prefix that is not declared", in("<news:news/>"), "2 error not-well-formed"},
	{"video", in("<video:video><video:title/></video:video>"), ""},
	{"in the future", dated(time.Now().Add(50*time.Minute).Format(time.RFC3339), time.Now().Add(3*time.Hour).Format(time.RFC3339)), "3 warning lastmod-future"},
	{"0.84", strings.Replace(set(onePage), "http://www.sitemaps.org/schemas/sitemap/0.9", "http://www.google.com/schemas/sitemap/0.84", 1), ""},
	{"index", indexOf("http://a.example/1.xml", "http://b.example/1.xml", "http://a.example/1.xml"), "3 error loc-outside-scope|4 warning duplicate|2 warning document-missing|3 warning document-missing|4 warning document-missing"},
	{"gzip", zipped(set(onePage)), ""},
	{"gzip cut short", zipped(set(onePage))[:60], "1 error document-unread"},
	{"gzip's header only", zipped("")[:5], "0 error document-unread"},
	{"compressed twice", zipped(zipped(set(onePage))), "0 error root"},
	{"UTF-16 cut short", "\xFF\xFE<\x00", "0 error encoding|1 error not-well-formed"},
	{"list", "\uFEFF\nhttp://a.example/\r\nhttp://a.example/b\n\nhttp://a.example/b\nhttp://b.example/", "5 warning duplicate|6 error loc-outside-scope"},
	{"list with more", "http://a.example/\nhttp://a.example/ 2024-05-01\nabout\n", "2 error loc-character|3 error loc-not-absolute"},
	{"RSS", "<rss version='2.0'/>", ""},
	{"compressed Atom", zipped("<?xml version='1.0'?>\n<a:feed xmlns:a='http://www.w3.org/2005/Atom'><a:id/>&"), ""},
	{"a feed of an unknown kind", "<feed/>", "1 error root"},
}

func TestDocument(t *testing.T) {
	for _, test := range documents {
		t.Run(test.name, func(t *testing.T) {
			if got := look(t, test.body); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestMessages is that the rest of a document is not passed over in silence, and that a host is told its Punycode.
func TestMessages(t *testing.T) {
	for body, want := range map[string]string{
		set("<url><loc>http://a.example/?a&b</loc></url>" + onePage): "; the rest was not read",
		at("http://ä.example/"):                                      "write http://xn--4ca.example",
		zipped(set(onePage))[:60]:                                    "the compressed data ends too early: the document is incomplete",
		zipped("")[:5]:                                               "the compressed data ends too early: the document is incomplete",
		utf16(set(onePage)):                                          "is in UTF-16; a sitemap must be UTF-8",
		`<?xml version="1.0" encoding="x-none"?>` + set(onePage):     "the encoding is declared as x-none; a sitemap must be UTF-8",
	} {
		var last Finding
		if Check(t.Context(), Options{Stdin: strings.NewReader(body), Report: func(f Finding) { last = f }}, "-"); !strings.HasSuffix(last.Message, want) {
			t.Errorf("got %+v, want %q", last, want)
		}
	}
}

func TestScope(t *testing.T) {
	for _, test := range []struct {
		base string
		ok   bool
		loc  string
	}{
		{"https://a.example/", true, "https://a.example"},
		{"https://a.example:443/", true, "https://A.example/a"},
		{"https://a.example/docs/", true, "https://a.example/docs/a"},
		{"https://a.example/docs/", false, "https://a.example/docs"},
		{"https://a.example/docs/", false, "https://a.example/docs-old/a"},
		{"https://a.example/", false, "http://a.example/"},
		{"https://a.example/", false, "https://www.a.example/"},
		{"https://a.example/", false, "https://a.example:8443/"},
	} {
		findings, _ := checked(t, Options{BaseURL: test.base, Stdin: strings.NewReader(at(test.loc))}, "-")
		if ok := len(findings) == 0; ok != test.ok || !ok && findings[0] != "-:2 error loc-outside-scope" {
			t.Errorf("%s in %s: got %q, want %t", test.loc, test.base, findings, test.ok)
		}
	}
}

func TestDuplicates(t *testing.T) {
	for _, test := range []struct {
		same bool
		a, b string
	}{
		{true, "https://a.example/a", "HTTPS://A.Example:443/a"},
		{false, "https://a.example/a", "https://a.example/A"},
		{true, "https://a.example/%41%7e?%2D=1", "https://a.example/A~?-=1"},
		{true, "https://a.example/%c3%a4", "https://a.example/ä"},
		{false, "https://a.example/a%2Fb", "https://a.example/a/b"},
		{false, "https://a.example/%2561", "https://a.example/%61"},
		{true, "https://a.example/a#c", "https://a.example/a#b"},
		{true, "https://a.example", "https://a.example/"},
		{true, "https://bücher.example/", "https://xn--bcher-kva.example/"},
	} {
		for _, list := range []string{test.a + "\n" + test.b, test.b + "\n" + test.a} {
			_, s := checked(t, Options{Stdin: strings.NewReader(list)}, "-")
			if got := s.Codes["duplicate"] == 1; got != test.same {
				t.Errorf("%q: got %v, want %v", list, got, test.same)
			}
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// repeated is head, and then unit without an end, or until so many bytes.
func repeated(head, unit string, bytes int) io.Reader {
	left := []byte(head)
	return readerFunc(func(p []byte) (int, error) {
		if len(left) == 0 && bytes <= 0 {
			return 0, io.EOF
		} else if len(left) == 0 {
			left = []byte(unit)
		}
		n := copy(p, left)
		left, bytes = left[n:], bytes-n
		return n, nil
	})
}

// counting counts the bytes that are read.
type counting struct {
	r    io.Reader
	read int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.read += n
	return n, err
}

// TestBounds reads documents that are too much: no more of them is read than has to be.
func TestBounds(t *testing.T) {
	for _, test := range []struct{ name, head, unit, want string }{
		{"comment", "<!--", "aaaaaaaaaaaaaaaa", "too-large"},
		{"tag", "<a b='", "aaaaaaaaaaaaaaaa", "too-large"},
		{"loc", open09 + "<url><loc>", "aaaaaaaa", "too-large"},
		{"depth", open09, "<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa>", "too-large"},
		{"line", "http://a.example/", "aaaaaaaa", "too-large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &counting{r: repeated(test.head, strings.Repeat(test.unit, 100), 1<<30)}
			_, s := checked(t, Options{Stdin: r}, "-")
			if s.Codes[test.want] != 1 || r.read > 2*maxEntry {
				t.Errorf("got %v after %d bytes, want %s", s.Codes, r.read, test.want)
			}
		})
	}
	if testing.Short() {
		t.Skip("reads 128 MiB")
	}
	// Comments take less time to read than as many bytes of pages.
	pages := strings.Repeat("<url><loc>http://a.example/</loc></url>\n", maxEntries+1)
	comment := "<!--" + strings.Repeat("a", 1<<20) + "-->"
	r := &counting{r: repeated(open09+pages, comment, 1<<30)}
	_, s := checked(t, Options{Stdin: r}, "-")
	if s.Codes["too-large"] != 1 || s.Codes["too-long"] != 1 || s.Codes["too-many-entries"] != 1 || r.read > maxRead+maxEntry {
		t.Errorf("pages: got %v after %d bytes", s.Codes, r.read)
	}
}

// TestSeenIsBounded is that pages are compared with as many others as are remembered.
func TestSeenIsBounded(t *testing.T) {
	var list bytes.Buffer
	for i := range maxSeen + 2 {
		fmt.Fprintf(&list, "http://a.example/%d\n", i)
	}
	list.WriteString("http://a.example/1\nhttp://a.example/" + fmt.Sprint(maxSeen+1) + "\n")
	_, s := checked(t, Options{Stdin: &list}, "-")
	if s.Codes["duplicates-unknown"] != 1 || s.Codes["duplicate"] != 1 {
		t.Errorf("got %v", s.Codes)
	}
}

// TestManyFindings is that 20 of a code are reported, and that there are more.
func TestManyFindings(t *testing.T) {
	body := set(strings.Repeat("<url/>\n", 1206))
	findings, s := checked(t, Options{Stdin: strings.NewReader(body)}, "-")
	if len(findings) != maxPerCode+1 || findings[maxPerCode] != "-:0 error missing-element" || s.Errors != 1206 || s.Codes["missing-element"] != 1206 {
		t.Errorf("got %q, %+v", findings, s)
	}
	if findings, _ := checked(t, Options{Stdin: strings.NewReader(body), All: true}, "-"); len(findings) != 1206 {
		t.Errorf("got %d of all findings", len(findings))
	}
}

// TestReadErrors is that a reader's failure is no error of the document.
func TestReadErrors(t *testing.T) {
	for _, body := range []string{"", set(onePage), zipped(set(onePage))[:30], "http://a.example/\n"} {
		findings, s := checked(t, Options{Stdin: io.MultiReader(strings.NewReader(body), iotest.ErrReader(errors.New("broken")))}, "-")
		if len(findings) != 1 || !strings.HasSuffix(findings[0], "error document-unread") || s.Unchecked != 1 {
			t.Errorf("got %q, %+v after %d bytes", findings, s, len(body))
		}
	}
}

func FuzzDocument(f *testing.F) {
	for _, d := range documents {
		if len(d.body) < 3000 {
			f.Add(d.body)
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		_, s := checked(t, Options{Stdin: strings.NewReader(body), BaseURL: "https://a.example/docs/"}, "-")
		if s.URLs+s.Feeds == 0 && s.Errors+s.Warnings == 0 {
			t.Error("nothing is listed, and nothing is wrong")
		}
	})
}
