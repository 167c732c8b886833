package urllist

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const (
	base     = "https://example.com"
	day2024  = 1704067200 // 2024-01-01T00:00:00Z
	daily    = page.ChangeFreq(4 - 1)
	priority = page.Priority(81)
)

func TestParseLine(t *testing.T) {
	for _, test := range []struct {
		in   string
		want page.Page
	}{
		{"/", page.Page{Path: "/"}},
		{base + "?a=b#c", page.Page{Path: "/?a=b"}},
		{base + "//a", page.Page{Path: "//a"}},
		{"HTTPS://Example.COM:443/A", page.Page{Path: "/A"}},
		{"/a lastmod=2024-01-01", page.Page{Path: "/a", LastMod: day2024, LastModDay: true}},
		{"/a\tlastmod=2024-01-01T01:02Z  changefreq=daily priority=0.8", page.Page{Path: "/a", LastMod: day2024 + 3720, ChangeFreq: daily, Priority: priority}},
		{"/a priority=0", page.Page{Path: "/a", Priority: 1}},

		{"/a # a comment lastmod=x", page.Page{Path: "/a"}},
		{"/a #\xff\x00", page.Page{Path: "/a"}},
		{"/a#100% #c", page.Page{Path: "/a"}},

		{"/über/../ä%c3%a4", page.Page{Path: "/%C3%A4%C3%A4"}},
		{"/?lastmod=2024-01-01", page.Page{Path: "/?lastmod=2024-01-01"}},
		{"/" + strings.Repeat("a", page.MaxLoc-len(base)-1), page.Page{Path: "/" + strings.Repeat("a", page.MaxLoc-len(base)-1)}},
	} {
		got, err := ParseLine(test.in, base)
		if err != nil || got != test.want {
			t.Errorf("%q: got %+v, %v, want %+v", test.in, got, err, test.want)
		}
	}
	if got, err := ParseLine("http://other.example/a", ""); err != nil || got.Path != "/a" {
		t.Errorf("of any site: got %+v, %v", got, err)
	}
}

func TestParseLineErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":       "the line is blank",
		"  # /a": "the line is blank",
		"/a\xff": "not text in UTF-8",
		"/a\x00": "not text in UTF-8",

		"/a /b":                 "/b: only lastmod=, changefreq= or priority= may follow the URL of a line, in which %20 stands for a space",
		"/my page.html":         "page.html: only",
		"/a foo=bar":            "foo: only",
		"/a lastmod=":           "lastmod: '': a date must be 2006-01-02,",
		"/a lastmod=1980-12-31": "from 1981 on",
		"/a changefreq=often":   "'often' is not a change frequency: use one of always",
		"/a priority=high":      "'high'",

		"a":                       "a URL must begin with a slash, https:// or http://",
		"//example.com/":          "a URL must begin with a slash",
		"https://me@example.com/": "user name",
		"/100%":                   "a percent sign must be followed by",
		"http://example.com:8080": "it is on http://example.com:8080, not on https://example.com",
		base + ":8443/":           "it is on https://example.com:8443, not on",
		"/" + strings.Repeat("a", page.MaxLoc-len(base)): "the URL has 2048 bytes, more than the 2047 that a sitemap may list",
	} {
		if got, err := ParseLine(in, base); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50q: got %+v, %v, want %q", in, got, err, want)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	for _, s := range []string{
		"/a lastmod=2024-01-01T00:00:00+02:00 changefreq=daily priority=0.8 # comment", "https://Example.com:443/ä b?c=d#e", "//x", "/%zz", "/a\x00", "https://[::1]:1/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseLine(s, base)
		if err != nil {
			if !utf8.ValidString(err.Error()) {
				t.Errorf("got error %q", err)
			}
			return
		}
		if p.LastModDay && p.LastMod%(24*3600) != 0 || p.LastMod < 0 {
			t.Errorf("got lastmod %d, day %t", p.LastMod, p.LastModDay)
		}
		if c, err := page.Normal(p.Path); err != nil || c != p.Path {
			t.Errorf("%q gives %q, whose normal form is %q, %v", s, p.Path, c, err)
		}
		if again, err := ParseLine(base+p.Path, base); err != nil || again.Path != p.Path {
			t.Errorf("%q gives %q, and that %q, %v", s, p.Path, again.Path, err)
		}
	})
}
