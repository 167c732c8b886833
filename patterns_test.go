package sitemap

import (
	"strings"
	"testing"
)

// How patterns match is Caddy's; that paths reach its matcher as in requests is tested.
func TestPathPatterns(t *testing.T) {
	for _, test := range []struct {
		patterns      []string
		match, others string
	}{
		{nil, "", "/ /a"},
		{[]string{"/x", "*"}, "/ /a/b?c", ""},
		{[]string{"/a", "/b*", "*.php", "*/admin/*"}, "/a /A /a?b=c /b/c /x.PHP /x/admin/y", "/ /a/ /x?y.php /admin"},
		{[]string{"/a b", "/É"}, "/a%20b /%C3%A9", "/a%2520b /a+b /e"},
		{[]string{"/a%2Fb", "/bands/%*", "/50%25"}, "/a%2Fb /bands/AC%2FDC /50%25", "/a/b /bands /50"},
		{[]string{"/a/b"}, "/a/b /a%2Fb /a//b", "/a"},
	} {
		patterns, err := compilePatterns("exclude", test.patterns)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range strings.Fields(test.match) {
			if !patterns.Match(path) {
				t.Errorf("%q: %s does not match", test.patterns, path)
			}
		}
		for _, path := range strings.Fields(test.others) {
			if patterns.Match(path) {
				t.Errorf("%q: %s matches", test.patterns, path)
			}
		}
	}
	for _, bad := range []string{"", "a/*", "/[", "/%20[", "/{env.NONE}/*", "/{x}"} {
		if _, err := compilePatterns("exclude", []string{"/ok", bad}); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}

func TestDisallowed(t *testing.T) {
	for _, test := range []struct {
		words         []string
		match, others string
	}{
		{defaultDisallow, "/docs/logout.php /users/sign_out /add-to-cart/5 /log-out /users/sign-out /LogOut /a/logout;x /log%6Fut /signOut /cart?x /a/delete/b /Add",
			"/ /address /additional /logouts /xlogout /api/v1 /admin /author/admin/ /a?b=/logout /cartography /logo/ut"},
		{[]string{"Café", "sign-out", "/private/*", "*.cgi"}, "/caf%C3%A9 /CAF%C3%89/ /signout /sign_out.html /private/a /x.cgi", "/cafe /private /logout"},
		{[]string{}, "", "/logout"},
	} {
		d, err := compileDisallow(test.words)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range strings.Fields(test.match) {
			if d.Match(path) == "" {
				t.Errorf("%q: %s does not match", test.words, path)
			}
		}
		for _, path := range strings.Fields(test.others) {
			if word := d.Match(path); word != "" {
				t.Errorf("%q: %s matches %s", test.words, path, word)
			}
		}
	}
	for _, word := range []string{"", "-", "x/*", "/[a", "{x}"} {
		if _, err := compileDisallow([]string{word}); err == nil {
			t.Errorf("%q is no error", word)
		}
	}
}

func BenchmarkPathPatterns(b *testing.B) {
	patterns, err := compilePatterns("exclude", []string{"/private/*", "*.php", "/a/*/c", "*draft*"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		patterns.Match("/articles/2026/some-ordinary-page-of-a-site.html")
	}
}
