package urllist

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const (
	day2024  = 1704067200 // 2024-01-01T00:00:00Z
	daily    = page.ChangeFreq(4 - 1)
	priority = page.Priority(81)
)

func TestParseLine(t *testing.T) {
	for _, test := range []struct {
		in   string
		want Line
	}{
		{"/", Line{URL: "/"}},
		{" \t/a\t ", Line{URL: "/a"}},
		{"https://example.com", Line{URL: "https://example.com"}},
		{"/a lastmod=2024-01-01", Line{URL: "/a", LastMod: day2024, LastModDay: true}},
		{"/a\tlastmod=2024-01-01T01:02Z  changefreq=daily priority=0.8", Line{"/a", day2024 + 3720, false, daily, priority}},
		{"/a priority=0.8 changefreq=daily lastmod=2024-01-01T00:00:00+02:00", Line{"/a", day2024 - 7200, false, daily, priority}},
		{"/a priority=0", Line{URL: "/a", Priority: 1}},
		{"/a lastmod=2024-01-01T01:02", Line{URL: "/a", LastMod: day2024 + 3720}},
		{"/a lastmod=9999-12-31", Line{URL: "/a", LastMod: 253402214400, LastModDay: true}},

		{"/a # a comment lastmod=x", Line{URL: "/a"}},
		{"/a\t#", Line{URL: "/a"}},
		{"/a #\xff\x00", Line{URL: "/a"}},
		{"/a#b", Line{URL: "/a#b"}},
		{"/a#b #c", Line{URL: "/a#b"}},
		{"/a#100%", Line{URL: "/a#100%"}},
		{"/a priority=1.0 # best", Line{URL: "/a", Priority: 101}},

		{"/my  page.html", Line{URL: "/my  page.html"}},
		{"/my page.html?a=b priority=0.8", Line{URL: "/my page.html?a=b", Priority: priority}},
		{"/a 1=2", Line{URL: "/a 1=2"}},
		{"/a =2", Line{URL: "/a =2"}},
		{"/übersicht", Line{URL: "/übersicht"}},
		{"/?lastmod=2024-01-01", Line{URL: "/?lastmod=2024-01-01"}},
	} {
		got, err := ParseLine(test.in)
		if err != nil || got != test.want {
			t.Errorf("ParseLine(%q): got %+v, %v, want %+v", test.in, got, err, test.want)
		}
	}
}

func TestParseLineErrors(t *testing.T) {
	long := strings.Repeat("x", 300)
	cut := strings.Repeat("x", 197) + "…"
	for _, test := range []struct{ in, want string }{
		{"", "the line is blank"},
		{" \t", "the line is blank"},
		{"# /a", "the line is blank"},
		{"  #", "the line is blank"},

		{"/a\xff", "the line is not UTF-8"},
		{"/a\x00", "there is a control character in it"},
		{"/a\u0085", "there is a control character in it"},
		{"/a lastmod=\x1b", "there is a control character in it"},
		{"/a\tb", "there is a control character in it"},
		{"/a\r", "there is a control character in it"},

		{"/a /b", "'/b' is a second URL: a line has one"},
		{"/a https://example.com/b", "'https://example.com/b' is a second URL: a line has one"},
		{"/a priority=0.8 b", "'b' after an option: the URL comes first"},
		{"/a foo=bar", "unknown option 'foo=': a line takes lastmod=, changefreq= and priority="},
		{"/a LastMod=2024-01-01", "unknown option 'LastMod=': a line takes lastmod=, changefreq= and priority="},
		{"/a " + long + "=", "unknown option '" + cut + "=': a line takes lastmod=, changefreq= and priority="},
		{"/a lastmod=2024-01-01 lastmod=2024-01-01", "lastmod is given twice"},
		{"/a changefreq=daily changefreq=daily", "changefreq is given twice"},
		{"/a priority=0 priority=x", "priority is given twice"},

		{"/a lastmod=", "lastmod: '': a date is 2006-01-02, 2006-01-02T15:04Z or 2006-01-02T15:04:05+07:00"},
		{"/a lastmod=2024-02-30", "lastmod: '2024-02-30': a date is 2006-01-02, 2006-01-02T15:04Z or 2006-01-02T15:04:05+07:00"},
		{"/a lastmod=2024-01", "lastmod: '2024-01': a date is 2006-01-02, 2006-01-02T15:04Z or 2006-01-02T15:04:05+07:00"},
		{"/a lastmod=" + long, "lastmod: '" + cut + "' is too long"},
		{"/a lastmod=1980-12-31T23:59:59Z", "lastmod: '1980-12-31T23:59:59Z' is before 1981"},
		{"/a changefreq=often", "changefreq: 'often' is no change frequency: use one of always, hourly, daily, weekly, monthly, yearly, never"},
		{"/a priority=high", "priority: 'high': a priority is a number from 0.0 to 1.0"},
		{"/a priority=1.1", "priority: '1.1': a priority is a number from 0.0 to 1.0"},

		{"a", "a URL begins with a slash, or with a scheme such as https://"},
		{"lastmod=2024-01-01", "a URL begins with a slash, or with a scheme such as https://"},
		{"mailto:a@example.com", "a URL begins with a slash, or with a scheme such as https://"},
		{"1s://example.com", "a URL of a site begins with https:// or http://, not 1s://"},
		{"//example.com/", "a URL that begins with two slashes is one of another host"},
		{"https://me@example.com/", "a URL with a user name or a password"},
		{`https://example.com\@evil.example/`, "a URL with a user name or a password"},
		{"https:///a", "a URL without a host"},
		{"https://:443/a", "a URL without a host"},
		{"https://example.com:http/", "'example.com:http' is no host with a port"},
		{"https://exämple .com/", "'exämple .com' is no host with a port"},
		{"https://" + strings.Repeat("ä", 1000) + "/", "'" + strings.Repeat("ä", 98) + "…' is no host with a port"},
		{"https://a\u202e.example/", "'a\u202e.example' is no domain name"},
		{"/100%", "a percent sign is followed by two hexadecimal digits"},
		{"/%4", "a percent sign is followed by two hexadecimal digits"},
		{"/?%g0", "a percent sign is followed by two hexadecimal digits"},
	} {
		got, err := ParseLine(test.in)
		if err == nil || err.Error() != test.want {
			t.Errorf("ParseLine(%q): got %+v, %v, want %q", test.in, got, err, test.want)
		}
	}
	if _, err := ParseLine(""); err != ErrBlank {
		t.Errorf("got %v, want ErrBlank itself", err)
	}
	if _, err := ParseLine("/%"); !errors.Is(err, page.ErrEscape) {
		t.Errorf("got %v, want page.ErrEscape", err)
	}
}

func TestPage(t *testing.T) {
	for _, test := range []struct{ base, url, want string }{
		{"https://example.com", "/", "/"},
		{"https://example.com", "/a#b", "/a"},
		{"https://example.com", "/my page?q=a b", "/my%20page?q=a%20b"},
		{"https://example.com", "/über/ä%c3%a4", "/%C3%BCber/%C3%A4%C3%A4"},
		{"https://example.com", "/a/../b/./c", "/b/c"},
		{"https://example.com", "/a?", "/a"},
		{"https://example.com", `/a\b`, "/a%5Cb"},
		{"https://example.com", "https://example.com", "/"},
		{"https://example.com", "https://example.com?a=b", "/?a=b"},
		{"https://example.com", "https://example.com#a", "/"},
		{"https://example.com", "HTTPS://Example.COM:443/A", "/A"},
		{"https://example.com", "https://example.com:/a", "/a"},
		{"https://example.com", "https://example.com//a", "//a"},
		{"https://example.com:443", "https://example.com/a", "/a"},
		{"http://example.com", "http://example.com:080/a", "/a"},
		{"http://example.com:8080", "http://example.com:8080/a", "/a"},
		{"https://[::1]:8443", "https://[::1]:8443/a", "/a"},
		{"https://[::1]", "https://[::1]/a", "/a"},
		{"https://xn--mnchen-3ya.example", "https://München.example/a", "/a"},
		{"https://münchen.example", "https://xn--mnchen-3ya.example/a", "/a"},
	} {
		got, err := Line{URL: test.url}.Page(test.base, time.Time{})
		if err != nil || got != (page.Page{Path: test.want}) {
			t.Errorf("%s at %s: got %+v, %v, want %q", test.url, test.base, got, err, test.want)
		}
	}
}

func TestPageErrors(t *testing.T) {
	const site = "https://example.com"
	for _, test := range []struct{ base, url, want string }{
		{site, "http://example.com/", "the scheme 'http' is not the site's, 'https'"},
		{site, "ftp://example.com/", "a URL of a site begins with https:// or http://, not ftp://"},
		{site, "https://www.example.com/", "the host 'www.example.com' is not the site's, 'example.com'"},
		{site, "https://example.com./", "the host 'example.com.' is not the site's, 'example.com'"},
		{site, `https://example.com\evil.example/`, `'example.com\evil.example' is no host with a port`},
		{site, "https://example.com:8443/", "the port '8443' is not the site's, '443'"},
		{site, "https://example.com:0/", "the port '' is not the site's, '443'"},
		{site, "https://example.com:80/", "the port '80' is not the site's, '443'"},
		{site, "https://[::1]/", "the host '::1' is not the site's, 'example.com'"},
		{site, "//example.com/", "a URL that begins with two slashes is one of another host"},
		{site, "a", "a URL begins with a slash, or with a scheme such as https://"},
		{site, "", "a URL begins with a slash, or with a scheme such as https://"},
		{site, "/a\nb", "there is a control character in it"},
		{site, "/" + strings.Repeat("a", page.MaxLoc-len(site)), "the URL has 2048 bytes, more than the 2047 that a sitemap may list"},
		{"example.com", "/", "base 'example.com': a URL begins with a slash, or with a scheme such as https://"},
		{"/a", "/", "base '/a': a scheme and a host are wanted, such as https://example.com"},
		{site + "/a", "/", "base 'https://example.com/a': a scheme and a host are wanted, such as https://example.com"},
	} {
		got, err := Line{URL: test.url}.Page(test.base, time.Time{})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s at %s: got %+v, %v, want %q", test.url, test.base, got, err, test.want)
		}
	}
	if _, err := (Line{URL: "/" + strings.Repeat("a", page.MaxLoc-len(site)-1)}).Page(site, time.Time{}); err != nil {
		t.Errorf("a URL of page.MaxLoc bytes: got %v", err)
	}
}

func TestPageFuture(t *testing.T) {
	now := time.Unix(day2024, 0)
	for _, test := range []struct {
		lastMod int64
		now     time.Time
		want    int64
	}{
		{day2024, now, day2024},
		{day2024 + 1, now, 0},
		{day2024 + 1, time.Time{}, day2024 + 1},
	} {
		l := Line{URL: "/a", LastMod: test.lastMod, LastModDay: true, ChangeFreq: daily, Priority: priority}
		got, err := l.Page("https://example.com", test.now)
		want := page.Page{Path: "/a", LastMod: test.want, LastModDay: test.want != 0, ChangeFreq: daily, Priority: priority}
		if err != nil || got != want {
			t.Errorf("lastmod %d: got %+v, %v, want %+v", test.lastMod, got, err, want)
		}
	}
}

func TestShort(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{strings.Repeat("x", 200), strings.Repeat("x", 200)},
		{strings.Repeat("x", 201), strings.Repeat("x", 197) + "…"},
		{strings.Repeat("ü", 101), strings.Repeat("ü", 98) + "…"},
		{"a\xffb", "a\uFFFDb"},
		{strings.Repeat("a\xff", 100), strings.Repeat("a\uFFFD", 49) + "a…"},
	} {
		if got := short(test.in); got != test.want || len(got) > 200 {
			t.Errorf("short(%q): got %q, want %q", test.in, got, test.want)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	for _, s := range []string{
		"/a lastmod=2024-01-01T00:00:00+02:00 changefreq=daily priority=0.8 # comment", "https://Example.com:443/ä b?c=d#e", "//x", "/%zz", "/a\x00", "https://[::1]:1/",
	} {
		f.Add(s)
	}
	const base = "https://example.com"
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLine(s)
		if err != nil {
			if l != (Line{}) {
				t.Errorf("got %+v with error %v", l, err)
			}
			if !utf8.ValidString(err.Error()) || len(err.Error()) > 3*maxShort {
				t.Errorf("error %q", err)
			}
			return
		}
		if !strings.Contains(s, l.URL) || l.URL != trim(l.URL) {
			t.Errorf("got URL %q, which is not in the line", l.URL)
		}
		if l.LastModDay && l.LastMod%(24*3600) != 0 || l.LastMod < 0 {
			t.Errorf("got lastmod %d, day %t", l.LastMod, l.LastModDay)
		}
		p, err := l.Page(base, time.Time{})
		if err != nil {
			return
		}
		if c, err := page.Canonical(p.Path); err != nil || c != p.Path {
			t.Errorf("%q gives %q, whose canonical form is %q, %v", s, p.Path, c, err)
		}
		for i := range len(p.Path) {
			if c := p.Path[i]; c <= ' ' || c >= 0x7F || c == '#' {
				t.Errorf("%q gives %q", s, p.Path)
			}
		}
		again, err := ParseLine(base + p.Path)
		if err != nil {
			t.Fatalf("%q: %v", base+p.Path, err)
		}
		q, err := again.Page(base, time.Time{})
		if err != nil || q.Path != p.Path {
			t.Errorf("%q gives %q, and that %q, %v", s, p.Path, q.Path, err)
		}
	})
}
