package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var today = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// look checks a document, and returns its findings as "line severity code".
func look(t *testing.T, name, at, body string) (Result, []string) {
	t.Helper()
	var got []string
	c := New(Options{Now: func() time.Time { return today }, Report: func(f Finding) {
		got = append(got, fmt.Sprintf("%d %s %s", f.Line, f.Severity, f.Code))
	}})
	result, err := c.Document(name, at, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return result, got
}

const (
	open09  = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:video="http://www.google.com/schemas/sitemap-video/1.1" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9" xmlns:mobile="http://www.google.com/schemas/sitemap-mobile/1.0" xmlns:xhtml="http://www.w3.org/1999/xhtml" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:other="urn:other">` + "\n"
	open084 = `<urlset xmlns="http://www.google.com/schemas/sitemap/0.84">` + "\n"
	index09 = `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
	onePage = `<url><loc>http://a.example/</loc></url>`
)

// set is a urlset of 0.9 whose content begins in line 2.
func set(content string) string { return open09 + content + "\n</urlset>" }

// in is a set with a page that has more than its loc.
func in(more string) string { return set("<url><loc>http://a.example/</loc>" + more + "</url>") }

// at is a set with a page of one loc.
func at(loc string) string { return set("<url><loc>" + loc + "</loc></url>") }

func set084(content string) string { return open084 + content + "\n</urlset>" }

func in084(more string) string {
	return set084("<url><loc>http://a.example/</loc>" + more + "</url>")
}

func index9(content string) string { return index09 + content + "\n</sitemapindex>" }

// schemaCodes are the findings that a schema processor has, too.
var schemaCodes = []string{
	"not-well-formed", "not-utf-8", "empty", "namespace", "root", "html",
	"missing-element", "repeated-element", "element-order", "unknown-element", "unexpected-text",
	"unknown-attribute", "missing-attribute", "attribute-value", "extension-value",
	"changefreq", "priority", "loc-too-short", "loc-percent",
}

// What valid says was found with xmllint --schema, by the schemas of 0.9 with its
// extensions, of its index, and of 0.84.
var documents = []struct {
	name  string
	body  string
	valid bool
	want  string // findings
}{
	{"one page", set(onePage), true, ""},
	{"declaration", `<?xml version="1.0" encoding="utf-8" standalone='yes' ?>` + set(onePage), true, ""},
	{"byte order mark", "\uFEFF" + `<?xml version="1.0"?>` + set(onePage), true, ""},
	{"style sheet, comments, CDATA, references", `<?xml-stylesheet href="a.xsl"?><!-- a -->` + set("<!-- b --><url><loc>http://a.example/<![CDATA[a&b]]>&amp;c&#x41;</loc></url>") + "<!-- c -->", true, ""},
	{"prefix", `<s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9"><s:url><s:loc>http://a.example/</s:loc></s:url></s:urlset>`, true, ""},
	{"prefix inside", `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><s:url xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9"><s:loc>http://a.example/</s:loc></s:url></urlset>`, true, ""},
	{"prefix rebound", set(`<url xmlns:image="http://www.sitemaps.org/schemas/sitemap/0.9"><image:loc>http://a.example/</image:loc></url>`), true, ""},
	{"all elements", in("<lastmod>2024-05-01</lastmod><changefreq>daily</changefreq><priority>0.5</priority>"), true, ""},
	{"schema location", `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:x="http://www.w3.org/2001/XMLSchema-instance" x:schemaLocation="a b">` + onePage + "</urlset>", true, ""},
	{"CRLF", strings.ReplaceAll(set("\n\n"+onePage+"\n<url/>"), "\n", "\r\n"), false, "5 error missing-element"},

	{"nothing", "", false, "0 error empty"},
	{"white space", " \n ", false, "2 error not-well-formed"},
	{"no element", "<!-- -->", false, "1 error not-well-formed"},
	{"cut short", open09 + "<url>\n<loc>http://a", false, "3 error not-well-formed"},
	{"cut in a tag", open09 + "<url><lo", false, "2 error not-well-formed"},
	{"wrong end tag", set("<url>\n</loc>"), false, "3 error not-well-formed"},
	{"ampersand", at("http://a.example/?a&b"), false, "2 error not-well-formed"},
	{"entity", at("http://a.example/&nbsp;"), false, "2 error not-well-formed"},
	{"NUL", at("http://a.example/\x00"), false, "2 error not-well-formed"},
	{"reference to NUL", at("http://a.example/&#0;"), false, "2 error not-well-formed"},
	{"brackets in text", at("http://a.example/]]>"), false, "2 error not-well-formed"},
	{"Latin-1", at("http://a.example/\xE4"), false, "2 error not-utf-8"},
	{"two roots", set(onePage) + "<a/>", false, "3 error not-well-formed"},
	{"text after the root", set(onePage) + "a", false, "3 error not-well-formed"},
	{"late declaration", " <?xml version='1.0'?>" + set(onePage), false, "1 error not-well-formed"},
	{"attribute twice", `<urlset a="" a="">` + onePage + `</urlset>`, false, "1 error not-well-formed"},
	{"attribute twice by namespace", `<urlset xmlns:a="urn:a" xmlns:b="urn:a" a:x="" b:x="">` + onePage + `</urlset>`, false, "1 error not-well-formed"},
	{"prefix of nothing", `<a:urlset>` + onePage + `</a:urlset>`, false, "1 error not-well-formed"},
	{"text", "hello", false, "1 error root"},
	{"JSON", `{"a": 1}`, false, "1 error root"},
	{"HTML", "<!DOCTYPE html>\n<title>404</title>", false, "1 error html"},
	{"HTML without type", "\n<HTML>\n<title>404</title></HTML>", false, "1 error html"},
	{"XHTML", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>`, false, "1 error html"},
	{"another root", "<a/>", false, "1 error root"},
	{"url as root", `<url xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><loc>http://a.example/</loc></url>`, false, "1 error root"},
	{"no namespace", "<urlset>" + onePage + "</urlset>", false, "1 error namespace"},
	{"namespace with https", `<urlset xmlns="https://www.sitemaps.org/schemas/sitemap/0.9">` + onePage + "</urlset>", false, "1 error namespace"},
	{"root of many lines", "<urlset\n a=''\n xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>" + onePage + "</urlset>", false, "1 error unknown-attribute"},

	{"no page", set(""), false, "1 error missing-element"},
	{"empty page", set("<url/>"), false, "2 error missing-element"},
	{"page without loc", set("<url><lastmod>2024-05-01</lastmod></url>"), false, "2 error missing-element"},
	{"two locs", in("<loc>http://a.example/b</loc>"), false, "2 error repeated-element"},
	{"two lastmods", in("<lastmod>2024-05-01</lastmod><lastmod>2024-05-02</lastmod>"), false, "2 error repeated-element"},
	{"two locs apart", in("<lastmod>2024-05-01</lastmod><loc>http://a.example/b</loc>"), false, "2 error repeated-element"},
	{"order", in("<priority>0.5</priority><lastmod>2024-05-01</lastmod>"), false, "2 error element-order"},
	{"loc last", set("<url><lastmod>2024-05-01</lastmod><loc>http://a.example/</loc></url>"), false, "2 error element-order"},
	{"unknown element", in("<title>a</title>"), false, "2 error unknown-element"},
	{"capitals", set("<url><Loc>http://a.example/</Loc></url>"), false, "2 error unknown-element|2 error missing-element"},
	{"element of the index", set("<sitemap><loc>http://a.example/</loc></sitemap>"), false, "2 error unknown-element|1 error missing-element"},
	{"element without namespace", in(`<a xmlns=""/>`), false, "2 error unknown-element"},
	{"element in loc", at("http://a.example/<b/>"), false, "2 error unknown-element"},
	{"unknown attribute", set(`<url id="1"><loc>http://a.example/</loc></url>`), false, "2 error unknown-attribute"},
	{"attribute of another namespace", set(`<url xml:lang="de"><loc>http://a.example/</loc></url>`), false, "2 error unknown-attribute"},
	{"text in urlset", set("\na" + onePage), false, "3 error unexpected-text"},
	{"text in url", set("<url>a<loc>http://a.example/</loc></url>"), false, "2 error unexpected-text"},

	{"empty loc", at(""), false, "2 error loc-empty"},
	{"relative", at("/about/index.html"), true, "2 error loc-not-absolute"},
	{"no scheme", at("www.a.example/about"), true, "2 error loc-not-absolute"},
	{"ftp", at("ftp://a.example/"), true, "2 error loc-not-absolute"},
	{"white space around", at("\n http://a.example/ \n"), true, "3 warning loc-space-around"},
	{"white space inside", at("http://a.example/a b"), true, "2 error loc-space"},
	{"unescaped", at("http://a.example/{a}"), true, "2 error loc-character"},
	{"brackets", at("http://a.example/[a]"), false, "2 error loc-character"},
	{"not ASCII", at("http://a.example/ä"), true, "2 warning loc-not-ascii"},
	{"host not ASCII", at("http://ä.example/"), true, "2 warning loc-not-ascii"},
	{"lower-case triplet", at("http://a.example/%c3%a4"), true, ""},
	{"bad triplet", at("http://a.example/%zz"), false, "2 error loc-percent"},
	{"cut triplet", at("http://a.example/%4"), false, "2 error loc-percent"},
	{"fragment", at("http://a.example/#a"), true, "2 warning loc-fragment"},
	{"two fragments", at("http://a.example/#a#b"), false, "2 error loc-character"},
	{"user", at("http://me@a.example/"), true, "2 error loc-user-info"},
	{"at sign in the path", at("http://a.example/@me:1"), true, ""},
	{"no host", at("http:///a/b/c/d"), true, "2 error loc-host"},
	{"port", at("http://a.example:8080/"), true, ""},
	{"no port", at("http://a.example:/"), false, "2 error loc-host"},
	{"bad port", at("http://a.example:80x/"), false, "2 error loc-host"},
	{"port too high", at("http://a.example:65536/"), true, "2 error loc-host"},
	{"IPv6", at("http://[2001:db8::1]:80/a"), true, ""},
	{"capitals in the origin", at("HTTP://A.Example/a"), true, ""},
	{"2,047 characters", at("http://a.example/" + strings.Repeat("a", 2030)), true, ""},
	{"2,048 characters", at("http://a.example/" + strings.Repeat("a", 2031)), true, "2 error loc-too-long"},
	{"2,049 characters", at("http://a.example/" + strings.Repeat("a", 2032)), false, "2 error loc-too-long"},
	{"11 characters", at("http://a.b/"), false, "2 error loc-too-short"},
	{"12 characters", at("http://a.bc/"), true, ""},
	{"another host", set(onePage + "\n<url><loc>http://b.example/</loc></url>"), true, "3 error loc-outside-scope"},
	{"another scheme", set(onePage + "\n<url><loc>https://a.example/</loc></url>"), true, "3 error loc-outside-scope"},
	{"another port", set(onePage + "\n<url><loc>http://a.example:81/</loc></url>"), true, "3 error loc-outside-scope"},
	{"the same origin in other words", set(onePage + "\n<url><loc>http://A.example:80/a</loc></url>"), true, ""},
	{"twice", set(onePage + "\n" + onePage), true, "3 warning duplicate"},

	{"lastmod empty", in("<lastmod/>"), false, "2 error lastmod"},
	{"year", in("<lastmod>2024</lastmod>"), false, "2 error lastmod"},
	{"month", in("<lastmod>2024-05</lastmod>"), false, "2 error lastmod"},
	{"no seconds", in("<lastmod>2024-05-01T10:20Z</lastmod>"), false, "2 error lastmod"},
	{"seconds", in("<lastmod>2024-05-01T10:20:30+02:00</lastmod>"), true, ""},
	{"fraction", in("<lastmod>2024-05-01T10:20:30.123456789Z</lastmod>"), true, ""},
	{"empty fraction", in("<lastmod>2024-05-01T10:20:30.Z</lastmod>"), false, "2 error lastmod"},
	{"no zone", in("<lastmod>2024-05-01T10:20:30</lastmod>"), true, "2 warning lastmod-zone"},
	{"day with zone", in("<lastmod>2024-05-01Z</lastmod>"), true, "2 warning lastmod-zone"},
	{"space for T", in("<lastmod>2024-05-01 10:20:30</lastmod>"), false, "2 error lastmod"},
	{"lastmod with space", in("<lastmod> 2024-05-01\n</lastmod>"), true, ""},
	{"February 30", in("<lastmod>2024-02-30</lastmod>"), false, "2 error lastmod"},
	{"February 29", in("<lastmod>2024-02-29</lastmod>"), true, ""},
	{"February 29 of no leap year", in("<lastmod>2100-02-29</lastmod>"), false, "2 error lastmod"},
	{"month 13", in("<lastmod>2024-13-01</lastmod>"), false, "2 error lastmod"},
	{"year 0", in("<lastmod>0000-01-01</lastmod>"), false, "2 error lastmod"},
	{"leap second", in("<lastmod>2024-05-01T23:59:60Z</lastmod>"), false, "2 error lastmod"},
	{"hour 24", in("<lastmod>2024-05-01T24:00:00Z</lastmod>"), true, "2 error lastmod"},
	{"zone of 14 hours", in("<lastmod>2024-05-01T10:20:30-14:00</lastmod>"), true, ""},
	{"zone of more", in("<lastmod>2024-05-01T10:20:30+14:01</lastmod>"), false, "2 error lastmod"},
	{"future", in("<lastmod>2026-11-21T14:00:00Z</lastmod>"), true, "2 warning lastmod-future"},
	{"future in another zone", in("<lastmod>2026-11-21T14:00:00+02:00</lastmod>"), true, ""},
	{"tomorrow", in("<lastmod>2026-11-22</lastmod>"), true, ""},
	{"the day after", in("<lastmod>2026-11-23</lastmod>"), true, "2 warning lastmod-future"},
	{"Daily", in("<changefreq>Daily</changefreq>"), false, "2 error changefreq"},
	{"daily with space", in("<changefreq> daily</changefreq>"), false, "2 error changefreq"},
	{"no changefreq", in("<changefreq/>"), false, "2 error changefreq"},
	{"never", in("<changefreq>never</changefreq>"), true, ""},
	{"priority 1", in("<priority> +1. </priority>"), true, ""},
	{"priority -0", in("<priority>-.0</priority>"), true, ""},
	{"priority 1.1", in("<priority>1.1</priority>"), false, "2 error priority"},
	{"priority -0.1", in("<priority>-0.1</priority>"), false, "2 error priority"},
	{"priority 1e-1", in("<priority>1e-1</priority>"), false, "2 error priority"},
	{"priority of a point", in("<priority>.</priority>"), false, "2 error priority"},
	{"priority with a comma", in("<priority>0,5</priority>"), false, "2 error priority"},
	{"no priority", in("<priority/>"), false, "2 error priority"},
	{"priority of many zeros", in("<priority>" + strings.Repeat("0", 25) + ".5</priority>"), true, ""},

	{"all the same", set(strings.Repeat("<url><loc>http://a.example/</loc><lastmod>2024-05-01</lastmod></url>", 3) + "<url><loc>http://a.example/2</loc><lastmod>2024-05-01</lastmod></url>"), true, "2 warning duplicate|2 warning duplicate|0 warning lastmod-all-the-same"},
	{"not all the same", set(in4("2024-05-01", "2024-05-01", "2024-05-01", "2024-05-02")), true, ""},

	{"image", in("<image:image><image:loc>http://b.example/i</image:loc></image:image>"), true, ""},
	{"image without loc", in("<image:image/>"), false, "2 error missing-element"},
	{"image with a path", in("<image:image><image:loc>/i.png</image:loc></image:image>"), true, "2 error extension-url"},
	{"image with a title", in("<image:image><image:loc>http://a.example/i</image:loc><image:title>a</image:title></image:image>"), true, "2 warning obsolete-element"},
	{"image with a title first", in("<image:image><image:title>a</image:title><image:loc>http://a.example/i</image:loc></image:image>"), false, "2 warning obsolete-element|2 error element-order"},
	{"image with more", in("<image:image><image:loc>http://a.example/i</image:loc><image:size/></image:image>"), false, "2 error unknown-element"},
	{"image:loc alone", in("<image:loc>http://a.example/i</image:loc>"), false, "2 error unknown-element"},
	{"image before", set("<image:image><image:loc>http://a.example/i</image:loc></image:image>" + onePage), true, ""},
	{"image after", set(onePage + "<image:image><image:loc>http://a.example/i</image:loc></image:image>"), false, "2 error element-order"},
	{"image before priority", in("<image:image><image:loc>http://a.example/i</image:loc></image:image><priority>1</priority>"), false, "2 error element-order"},
	{"1,001 images", in(strings.Repeat("<image:image><image:loc>http://a.example/i</image:loc></image:image>", 1001)), true, "2 error too-many-images"},
	{"mobile", in("<mobile:mobile/>"), true, ""},
	{"alternate", in(`<xhtml:link rel="alternate" hreflang="de-AT" href="http://b.example/"/>`), true, ""},
	{"alternate for all", in(`<xhtml:link rel="alternate" hreflang="x-default" href="http://b.example/"/>`), true, ""},
	{"alternate with text", in(`<xhtml:link rel="alternate" hreflang="de" href="http://b.example/">a</xhtml:link>`), false, "2 error unexpected-text"},
	{"alternate without rel", in(`<xhtml:link hreflang="de" href="http://b.example/"/>`), true, "2 error alternate"},
	{"alternate without language", in(`<xhtml:link rel="alternate" href="http://b.example/"/>`), true, "2 error alternate"},
	{"alternate with underscore", in(`<xhtml:link rel="alternate" hreflang="de_AT" href="http://b.example/"/>`), false, "2 error attribute-value"},
	{"alternate with a path", in(`<xhtml:link rel="alternate" hreflang="de" href="/de/"/>`), true, "2 error alternate"},
	{"other namespace", in(`<other:a b=""><other:c/>text</other:a>`), false, "2 warning unknown-extension"},

	{"index", index9("<sitemap><loc>http://a.example/1.xml</loc><lastmod>2024-05-01</lastmod></sitemap>"), true, ""},
	{"empty index", index9(""), false, "1 error missing-element"},
	{"index with priority", index9("<sitemap><loc>http://a.example/1.xml</loc><priority>1</priority></sitemap>"), false, "2 error unknown-element"},
	{"index of pages", index9(onePage), false, "2 error unknown-element|1 error missing-element"},
	{"index of other hosts", index9("<sitemap><loc>http://a.example/1.xml</loc></sitemap>\n<sitemap><loc>http://b.example/1.xml</loc></sitemap>"), true, "3 error loc-outside-scope"},
	{"index of one twice", index9("<sitemap><loc>http://a.example/1.xml</loc></sitemap>\n<sitemap><loc>http://a.example/1.xml</loc></sitemap>"), true, "3 warning duplicate"},

	{"0.84", in084("<lastmod>2024-05-01</lastmod>"), true, ""},
	{"0.84, any order", set084("<url><priority>1</priority><lastmod>2024-05-01</lastmod><loc>http://a.example/</loc></url>"), true, ""},
	{"0.84, twice apart", set084("<url><loc>http://a.example/</loc><priority>1</priority><loc>http://a.example/</loc></url>"), false, "2 error repeated-element|2 warning duplicate"},
	{"0.84, no seconds", in084("<lastmod>2024-05-01T10:20Z</lastmod>"), true, ""},
	{"0.84, month", in084("<lastmod>2024-05</lastmod>"), false, "2 error lastmod"},
	{"0.84, 25 characters", in084("<lastmod>2024-05-01T10:20:30+02:00</lastmod>"), true, ""},
	{"0.84, 26 characters", in084("<lastmod>2024-05-01T10:20:30.12345Z</lastmod>"), false, "2 error lastmod"},
	{"0.84, no date", in084("<lastmod>01/05/2024</lastmod>"), true, "2 error lastmod"},
	{"0.84, extension", in084(`<a xmlns="urn:a"/>`), false, "2 error unknown-element"},
	{"0.84, capital", in084("<changefreq>Daily</changefreq>"), false, "2 error changefreq"},
	{"0.84, no loc", set084("<url/>"), false, "2 error missing-element"},

	{"document type", `<!DOCTYPE urlset>` + set(onePage), true, "1 error doctype"},
	{"another encoding", `<?xml version="1.0" encoding="ISO-8859-1"?>` + set(onePage), true, "1 error encoding"},
}

// in4 is pages with such lastmods.
func in4(dates ...string) string {
	var b strings.Builder
	for i, date := range dates {
		fmt.Fprintf(&b, "<url><loc>http://a.example/%d</loc><lastmod>%s</lastmod></url>\n", i, date)
	}
	return b.String()
}

func TestDocument(t *testing.T) {
	for _, test := range documents {
		t.Run(test.name, func(t *testing.T) {
			_, findings := look(t, "sitemap.xml", "", test.body)
			if got := strings.Join(findings, "|"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			refused := false
			for _, f := range findings {
				code := f[strings.LastIndexByte(f, ' ')+1:]
				if test.valid && slices.Contains(schemaCodes, code) {
					t.Errorf("%s, but the schema allows it", f)
				}
				refused = refused || strings.Contains(f, "error") || code == "unknown-extension"
			}
			if !test.valid && !refused {
				t.Error("the schema does not allow it")
			}
		})
	}
}
