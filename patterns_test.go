package sitemap

import (
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/option"
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
		{[]string{"/a,b", "/c%2Cd"}, "/a,b /a%2Cb /a%2cb /c%2Cd", "/a%252Cb /c;d"},
	} {
		patterns := compilePatterns(new(option.Checker), "exclude", test.patterns)
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
		var c option.Checker
		if compilePatterns(&c, "exclude", []string{"/ok", bad}); c.Err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}
