package discover

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func TestClean(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"/", "/"},
		{"/a/b.html", "/a/b.html"},
		{"/a/", "/a/"},
		{"/a?b=c", "/a"},
		{"/a#b", "/a"},
		{"/a#b?page=1", "/a"},
		{"/a?", "/a"},
		{"/a.b/c.", "/a.b/c."},
		{"/a?page=/.b", "/a?page=/.b"},
		{"/%41%7e", "/A~"},
		{"/a%c3%a9", "/a%C3%A9"},
		{"/é", "/%C3%A9"},
		{"/a b", "/a%20b"},
		{"/100%25", "/100%25"},
		{"/a%3Fb%23c", "/a%3Fb%23c"},

		{"/a;jsessionid=0A1B", "/a"},
		{"/a;JSESSIONID=0A1B.node!1?x=y", "/a"},
		{"/a;j%73essionid=1", "/a"},
		{"/a;v=1;sid=2/b;PHPSESSID=3;w", "/a;v=1/b;w"},
		{"/;sid=1", "/"},
		{"/a;jsess;sid=1ionid=2", "/a;jsess"},
		{"/a;side=1", "/a;side=1"},
		{"/a;sid", "/a;sid"},
		{"/a%3Bsid=1", "/a"},

		{"/a?page=2", "/a?page=2"},
		{"/a?page=2#x", "/a?page=2"},
		{"/a?tag=x&page=2", "/a?page=2&tag=x"},
		{"/a?page=2&page=3", "/a?page=2"},
		{"/a?page=&tag=x&y=z", "/a?tag=x"},
		{"/a?page", "/a"},
		{"/a?Page=2", "/a"},
		{"/a?p%61ge=%32%c3%a9", "/a?page=2%C3%A9"},
		{"/a?tag=a=b?c/d//e/../f", "/a?tag=a=b?c/d//e/../f"},
		{"/a?f[x]=1", "/a?f%5Bx%5D=1"},
		{"/a?f%5bx%5d=1", "/a?f%5Bx%5D=1"},
		{"/a?utm_source=x&page=2", "/a?page=2"},
		{"/a?x=%zz&page=2", "/a?page=2"},
		{"/a?page=" + strings.Repeat("x", 200), "/a?page=" + strings.Repeat("x", 200)},
		{"/" + strings.Repeat("x", 1999), "/" + strings.Repeat("x", 1999)},
		{"/" + strings.Repeat("x", 1999) + "?" + strings.Repeat("x", 9999), "/" + strings.Repeat("x", 1999)},

		{"", ""},
		{"*", ""},
		{"a", ""},
		{"https://example.com/", ""},
		{"//example.com/", ""},
		{"/a//b", ""},
		{"/a//", ""},
		{"/a//?page=1", ""},
		{"/.env", ""},
		{"/%2eenv", ""},
		{"/a/.git/config", ""},
		{"/a/%2Egit/config?page=1", ""},
		{"/.well-known/x", ""},
		{"/a/...", ""},
		{"/.;x", ""},
		{"/.", ""},
		{"/..", ""},
		{"/../a", ""},
		{"/a/./b", ""},
		{"/a/%2e%2E/b", ""},
		{"/a/..;x=y/b", ""},
		{"/..;sid=1/b", ""},
		{"/a/;sid=1/b", ""},
		{"/a%2fb", ""},
		{"/a%5cb", ""},
		{`/a\b`, ""},
		{"/a%00", ""},
		{"/a%0A", ""},
		{"/a\n", ""},
		{"/a\x7f", ""},
		{"/a%7F", ""},
		{"/%", ""},
		{"/%4", ""},
		{"/%zz", ""},
		{"/%e9", ""},
		{"/\xff", ""},
		{"/%C3?page=1", ""},
		{"/a?page=%zz", ""},
		{"/a?page=%00", ""},
		{"/a?page=%ff", ""},
		{"/a?page=" + strings.Repeat("x", 201), ""},
		{"/" + strings.Repeat("x", 2000), ""},
		{"/" + strings.Repeat("%41", 9999), ""},
	} {
		c := Cleaner{Query: []string{"page", "utm_source", "tag", "f[x]"}}
		got, ok := c.Clean(test.in)
		if got != test.want || ok != (test.want != "") {
			t.Errorf("%q: got %q, %t, want %q", test.in, got, ok, test.want)
		}
	}
}

func TestCleanAllocations(t *testing.T) {
	for _, query := range [][]string{nil, {"page", "tag"}} {
		c := Cleaner{Query: query}
		for _, uri := range []string{"/", "/articles/2026/a-page.html", "/a#b", "/a/%C3%A9;v=1", "/a?page=2&tag=x"} {
			if n := testing.AllocsPerRun(10, func() { c.Clean(uri) }); n != 0 {
				t.Errorf("%q with %q costs %v allocations", uri, query, n)
			}
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{
		"/", "/a/../b?c#d", "/%2e%2e/%41%e9", "//a//..//b", "/a;sid=1;x=y/b", "/a?page=2&tag=%c3%a9", "/?f%5Bx%5D=+&&page", "/a?page=%2", "/é '\"<>[]\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		for _, c := range []Cleaner{{}, {Query: []string{"page", "gclid", "f[x]", "a+b&c=%", "é"}}} {
			got, ok := c.Clean(uri)
			if !ok {
				if got != "" {
					t.Errorf("%q is refused with %q", uri, got)
				}
				continue
			}
			if again, ok := c.Clean(got); again != got || !ok {
				t.Fatalf("%q gives %q, and that %q, %t", uri, got, again, ok)
			}
			if canonical, err := page.Canonical(got); canonical != got || err != nil {
				t.Fatalf("%q gives %q, whose canonical form is %q, %v", uri, got, canonical, err)
			}
			path, query, _ := strings.Cut(got, "?")
			plain := page.Unescape(path)
			if len(got) > MaxPath || isClean(got) == IsAsset(got) || !utf8.ValidString(plain) || strings.ContainsAny(plain, "\\\x7f") || strings.Contains(path, "//") ||
				strings.Count(plain, "/") != strings.Count(path, "/") || strings.ContainsFunc(plain+unescape(query), func(r rune) bool { return r < ' ' }) {
				t.Fatalf("%q gives %q", uri, got)
			}
			for segment := range strings.SplitSeq(plain, "/") {
				if strings.HasPrefix(segment, ".") {
					t.Fatalf("%q gives %q", uri, got)
				}
			}
			if len(c.Query) == 0 && query != "" || strings.Contains(query, "gclid=") {
				t.Fatalf("%q gives %q", uri, got)
			}
		}
	})
}

func TestIsTracking(t *testing.T) {
	for _, name := range []string{"utm_source", "UTM_X", "utm_a_very_long_one_of_them", "gclid", "fbclid", "msclkid", "mc_cid", "mc_eid", "_ga", "yclid", "igshid", "ref_src", "GCLID", "_branch_match_id", "hsCtaTracking"} {
		if !IsTracking(name) {
			t.Errorf("%s is none", name)
		}
	}
	for _, name := range []string{"", "page", "q", "utm", "ref", "id", "s", "a_very_long_parameter_of_a_site"} {
		if IsTracking(name) {
			t.Errorf("%s is one", name)
		}
	}
}

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"/":                          "/",
		"/calendar/2026/11":          "/calendar/#/#",
		"/a1b22?page=333&tag=x4":     "/a#b#?page=#&tag=x#",
		"/%C3%A9%20x/9%E2":           "/%C3%A9%20x/#%E2",
		"/a%2":                       "/a%#",
		"/" + strings.Repeat("1", 9): "/#",
	} {
		if got := Fold(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func BenchmarkClean(b *testing.B) {
	for name, uri := range map[string]string{
		"plain": "/articles/2026/some-ordinary-page-of-a-site.html?utm_source=x",
		"query": "/articles/2026/some-ordinary-page-of-a-site.html?page=2",
		"dirty": "/articles/2026/%41n-ordinary-page;jsessionid=0123456789ABCDEF?a=b&page=2",
	} {
		b.Run(name, func(b *testing.B) {
			c := Cleaner{}
			if name != "plain" {
				c.Query = []string{"page"}
			}
			b.ReportAllocs()
			for b.Loop() {
				c.Clean(uri)
			}
		})
	}
}
