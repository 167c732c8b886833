package page

import (
	"path"
	"testing"
)

// What Caddy's path matcher says of these was tried; see its documentation, too:
// https://caddyserver.com/docs/caddyfile/matchers#path
func TestPatterns(t *testing.T) {
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"*", "/", true},
		{"*", "/a/b?c", true},
		{"/", "/", true},
		{"/", "/a", false},
		{"/a", "/a", true},
		{"/a", "/A", true},
		{"/A", "/a", true},
		{"/a", "/a/", false},
		{"/a/", "/a/", true},
		{"/a", "/a?b=c", true},
		{"/a?b", "/a?b", false},
		{"/a b", "/a%20b", true},
		{"/é", "/%C3%A9", true},
		{"/É", "/%C3%A9", true},
		{"/a*", "/a", true},
		{"/a*", "/a/b/c", true},
		{"/a/*", "/a", false},
		{"/a/*", "/a/", true},
		{"/a/*", "/b/a/", false},
		{"*.php", "/a/b.php", true},
		{"*.php", "/a/b.PHP", true},
		{"*.php", "/a/b.php5", false},
		{"*.php", "/a/b?c.php", false},
		{"*/admin/*", "/a/admin/b", true},
		{"*/admin/*", "/admin/", true},
		{"*/admin/*", "/admin", false},
		{"**", "/a", true},
		{"/a/*/c", "/a/b/c", true},
		{"/a/*/c", "/a/b/b/c", false},
		{"/*/*", "/a/b", true},
		{"/*/*", "/a", false},
		{"/a?c", "/abc", true},
		{"/[a-c]", "/b", true},
		{"/[a-c]", "/d", false},
		{`/\*a`, "/*a", true},
		{`/\*a`, "/ba", false},
		{"/a/b", "/a//b", true},
		{"/a//b", "/a//b", true},
		{"/a//b", "/a/b", false},
		{"/a//*", "/a//b", true},
		{"/a//b", "/a//%2F../b", true}, // the slashes are not merged, the dots are followed
		{"/a//b", "/a//c%2F../b", true},
		{"/b", "/a%2F../b", true},
		{"/a/b", "/a%2Fb", true},
		{"/a%2Fb", "/a%2Fb", true},
		{"/a%2fb", "/a%2Fb", true},
		{"/a%2Fb", "/a/b", false},
		{"/a%2Fb", "/a%2Fbc", false},
		{"/a%2Fb/*", "/a%2Fb/c", true},
		{"/%2F/*", "/%2F/%C3%A9", true},
		{"/a%20b", "//a%20b", true},
		{"//a%20b", "//a%20b", true},
		{"/x//a%20b", "/x/a%20b", false},
		{"/bands/%*", "/bands/AC%2FDC", true},
		{"/bands/*%*", "/bands/AC%2FDC", true},
		{"/bands/%*/t", "/bands/AC%2FDC/t", true},
		{"/bands/%*/t", "/bands/AC%2FDC/u", false},
		{"/*%C3%A9", "/%C3%A9", true}, // not so in Caddy
		{"/%41", "/a", false},         // a canonical path has no such escape
	} {
		ps, err := CompilePatterns([]string{test.pattern})
		if err != nil {
			t.Errorf("%q: %v", test.pattern, err)
			continue
		}
		if got := ps.Match(test.path); got != test.want {
			t.Errorf("%q on %q: got %v, want %v", test.pattern, test.path, got, test.want)
		}
	}
}

func TestSeveralPatterns(t *testing.T) {
	ps, err := CompilePatterns([]string{"/a/*", "*.php", "/b%20c"})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]bool{"/a/b": true, "/x.php": true, "/b%20c": true, "/": false, "/b": false} {
		if got := ps.Match(in); got != want {
			t.Errorf("%q: got %v, want %v", in, got, want)
		}
	}
	if (Patterns)(nil).Match("/a") {
		t.Error("no patterns match something")
	}
	if n := testing.AllocsPerRun(10, func() { ps[:2].Match("/some/plain/page.html") }); n != 0 {
		t.Errorf("a plain path costs %v allocations", n)
	}
}

func TestBadPatterns(t *testing.T) {
	for _, bad := range []string{"/[", "/a[b", `/a\`, "/[]", "/a/*/[", "/%20["} {
		if _, err := CompilePatterns([]string{"/ok", bad}); err != path.ErrBadPattern {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// FuzzPatterns: whatever a user writes and a site serves, matching neither panics
// nor depends on the order of patterns.
func FuzzPatterns(f *testing.F) {
	f.Add("/a/*", "*%2F*", "/a%2Fb/c")
	f.Add("//%*", "**", "//")
	f.Add("%", "/%a", "/%25")
	f.Fuzz(func(t *testing.T, a, b, ref string) {
		p, err := Canonical(ref)
		if err != nil {
			return
		}
		one, err := CompilePatterns([]string{a})
		if err != nil {
			return
		}
		other, err := CompilePatterns([]string{b})
		if err != nil {
			return
		}
		want := one.Match(p) || other.Match(p)
		for _, both := range [][]string{{a, b}, {b, a}} {
			ps, err := CompilePatterns(both)
			if err != nil || ps.Match(p) != want {
				t.Fatalf("%q on %q: got %v, %v, want %v", both, p, !want, err, want)
			}
		}
	})
}

func BenchmarkPatterns(b *testing.B) {
	ps, err := CompilePatterns([]string{"/private/*", "*.php", "/a/*/c", "*draft*"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		ps.Match("/articles/2026/some-ordinary-page-of-a-site.html")
	}
}
