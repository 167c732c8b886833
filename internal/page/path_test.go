package page

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

func TestEscape(t *testing.T) {
	for _, test := range [][2]string{
		{"", ""},
		{"/", "/"},
		{"/a-b._~!$&'()*+,;=:@", "/a-b._~!$&'()*+,;=:@"},
		{"/a b", "/a%20b"},
		{"/100%", "/100%25"},
		{"/%41", "/%2541"},
		{"/a?b#c", "/a%3Fb%23c"},
		{"/[x]{y}|\\^`\"<>", "/%5Bx%5D%7By%7D%7C%5C%5E%60%22%3C%3E"},
		{"/é", "/%C3%A9"},
		{"/caf\xe9", "/caf%E9"},
		{"/\x00\n\x7f", "/%00%0A%7F"},
	} {
		in, want := test[0], test[1]
		if got := Escape(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if got := Unescape(want); got != in {
			t.Errorf("%q: decoded: got %q, want %q", want, got, in)
		}
	}
	plain := "/a/plain/path.html"
	if n := testing.AllocsPerRun(10, func() { Escape(plain); Unescape(plain) }); n != 0 {
		t.Errorf("a plain path costs %v allocations", n)
	}
}

func TestNormal(t *testing.T) {
	for _, test := range []struct {
		in, want string
		err      error
	}{
		{"/", "/", nil},
		{"/a/b.html", "/a/b.html", nil},
		{"/a%2fb", "/a%2Fb", nil},
		{"/%7Euser/%41%2D", "/~user/A-", nil},
		{"/a%3db.html", "/a%3Db.html", nil},
		{"/!$&'()*+,;=:@", "/!$&'()*+,;=:@", nil},
		{"/%21%24%26%27%28%29%2a%2B%2C%3B%3d%3A%40", "/%21%24%26%27%28%29%2A%2B%2C%3B%3D%3A%40", nil},
		{"/%2f%3f%23%25%20%5b%5d", "/%2F%3F%23%25%20%5B%5D", nil},
		{"/C%2b%2B%20guide", "/C%2B%2B%20guide", nil},
		{"/C++ guide", "/C++%20guide", nil},
		{"/a%3Db?c%3Dd%2F%40", "/a%3Db?c%3Dd%2F%40", nil},
		{"/a%2f%2E%2e%2fb", "/a%2F..%2Fb", nil},
		{"/a b", "/a%20b", nil},
		{"/é", "/%C3%A9", nil},
		{"/%e9", "/%E9", nil},
		{"/%25", "/%25", nil},
		{"/%2541", "/%2541", nil},
		{"/a'b&c", "/a'b&c", nil},
		{"/[a]", "/%5Ba%5D", nil},
		{"/a#b", "/a", nil},
		{"/a?b#c?d", "/a?b", nil},
		{"/a#b?c", "/a", nil},
		{"/a?", "/a", nil},
		{"/a?#b", "/a", nil},
		{"/?a=b&c=d/e?f", "/?a=b&c=d/e?f", nil},
		{"/?a=%3d%26%7e+b c", "/?a=%3D%26~+b%20c", nil},
		{"/?../x", "/?../x", nil},
		{"//", "//", nil},
		{"//a//b", "//a//b", nil},
		{"/./a/./b/.", "/a/b/", nil},
		{"/a/../b", "/b", nil},
		{"/a/b/..", "/a/", nil},
		{"/..", "/", nil},
		{"/../../a", "/a", nil},
		{"/a/%2e%2E/b", "/b", nil},
		{"/a//../b", "/a/b", nil},
		{"/a/.../..b/.c", "/a/.../..b/.c", nil},
		{"", "", ErrRelative},
		{"a", "", ErrRelative},
		{"?a", "", ErrRelative},
		{"https://example.com/", "", ErrRelative},
		{"/%", "", ErrEscape},
		{"/%4", "", ErrEscape},
		{"/%zz", "", ErrEscape},
		{"/a?%", "", ErrEscape},
		{"/a#%", "/a", nil},
	} {
		got, err := Normal(test.in)
		if got != test.want || err != test.err {
			t.Errorf("%q: got %q, %v, want %q, %v", test.in, got, err, test.want, test.err)
		}
	}
}

func TestBare(t *testing.T) {
	for _, test := range [][2]string{
		{"/", "/"},
		{"/a,b", "/a,b"},
		{"/a%2Cb.html", "/a,b.html"},
		{"/%21%24%26%27%28%29%2A%2B%2C%3B%3D%3A%40", "/!$&'()*+,;=:@"},
		{"/C%2B%2B%20guide", "/C++%20guide"},
		{"/a%2Fb", "/a/b"},
		{"/a%2Fb%2F", "/a/b/"},
		{"/%3F%23%25%5B%5D%C3%A9%E9", "/%3F%23%25%5B%5D%C3%A9%E9"},
		{"/a%252Cb", "/a%252Cb"},
		{"/a%2Cb?c%2Cd", "/a,b?c%2Cd"},
		{"/a?c%2Cd", "/a?c%2Cd"},
		{"/a%2F..%2Fb%2C", "/a%2F..%2Fb%2C"},
		{"/a%2F.", "/a%2F."},
	} {
		in, want := test[0], test[1]
		if got := Bare(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if again := Bare(want); again != want {
			t.Errorf("%q: its bare form %q becomes %q", in, want, again)
		}
	}
	plain := "/a/plain,path/%C3%A9%20.html?a=%2C"
	if n := testing.AllocsPerRun(10, func() { Bare(plain) }); n != 0 {
		t.Errorf("a plain path costs %v allocations", n)
	}
}

func TestFolder(t *testing.T) {
	for in, want := range map[string]string{
		"/": "/", "/a": "/", "/a/": "/a/", "/a/b.html": "/a/", "/a?b/c": "/", "/a/?b/c": "/a/", "": "",
	} {
		if got := Folder(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// FuzzNormal holds what Normal gives against RFC 3986, word by word where it
// gives an algorithm, and against net/url.
func FuzzNormal(f *testing.F) {
	for _, seed := range []string{
		"/", "/a/../b?c#d", "/%2e%2e/%41%e9", "//a//..//b", "/a/./", "/.", "/..", "/a?%7e?", "/%zz", "a", "/é '\"<>[]\x00", "/a%2F../b", "/a%2c,%3b;%2F..%2f?%2c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		got, err := Normal(ref)
		if same, sameErr := AppendNormal(nil, []byte(ref)); string(same) != got || sameErr != err {
			t.Errorf("%q: bytes: got %q, %v, want %q, %v", ref, same, sameErr, got, err)
		}
		if err != nil {
			if got != "" || !errors.Is(err, ErrRelative) && !errors.Is(err, ErrEscape) {
				t.Fatalf("got %q, %v", got, err)
			}
			return
		}
		if again, err := Normal(got); again != got || err != nil {
			t.Fatalf("%q is not normal: %q, %v", got, again, err)
		}
		path, query, _ := strings.Cut(got, "?")
		if got[0] != '/' || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../") {
			t.Fatalf("got %q", got)
		}
		for i := 0; i < len(got); i++ {
			switch c := got[i]; {
			case inPath[c] || c == '?':
			case c == '%' && strings.ToUpper(got[i:i+3]) == got[i:i+3] && !unreserved[unhex(got[i+1])<<4|unhex(got[i+2])]:
			default:
				t.Fatalf("%q has %q", got, c)
			}
		}

		before, _, _ := strings.Cut(ref, "#")
		wantPath, wantQuery, _ := strings.Cut(before, "?")
		wantPath = rfcDotSegments(rfcEscapes(wantPath))
		if path != wantPath {
			t.Fatalf("got path %q, want %q", path, wantPath)
		}
		if mustUnescape(t, query) != mustUnescape(t, wantQuery) {
			t.Fatalf("got query %q, want %q", query, wantQuery)
		}
		// "//host" is a host to net/url.
		if u, err := url.Parse("https://example.com" + got); err != nil || u.EscapedPath() != path || u.RawQuery != query {
			t.Fatalf("net/url reads %q as %+v, %v", got, u, err)
		}
		bare := Bare(got)
		if same, err := Normal(bare); same != bare || err != nil {
			t.Fatalf("the bare form of %q, %q, is not normal: %q, %v", got, bare, same, err)
		}
		if Bare(bare) != bare || Unescape(bare) != Unescape(got) {
			t.Fatalf("the bare form of %q is %q", got, bare)
		}
		if raw := Unescape(bare); !hasDotSegments(raw) && Escape(raw)+strings.TrimPrefix(got, path) != bare {
			t.Fatalf("the bare form of %q is %q, and the file's %q", got, bare, Escape(raw))
		}
		if folder := Folder(got); !strings.HasPrefix(got, folder) || !strings.HasSuffix(folder, "/") {
			t.Fatalf("Folder(%q) is %q", got, folder)
		}
	})
}

// rfcEscapes are case and percent-encoding normalization of a path, RFC 3986, sections 6.2.2.1 and 6.2.2.2, after what
// section 3.3 does not allow was encoded.
func rfcEscapes(path string) string {
	const pchar = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@/%"
	var encoded strings.Builder
	for _, c := range []byte(path) {
		if strings.IndexByte(pchar, c) >= 0 {
			encoded.WriteByte(c)
			continue
		}
		fmt.Fprintf(&encoded, "%%%02X", c)
	}
	return regexp.MustCompile("%..").ReplaceAllStringFunc(encoded.String(), func(escape string) string {
		c, _ := url.PathUnescape(escape)
		if regexp.MustCompile(`^[A-Za-z0-9._~-]$`).MatchString(c) {
			return c
		}
		return strings.ToUpper(escape)
	})
}

func hasDotSegments(raw string) bool {
	return strings.Contains(raw+"/", "/./") || strings.Contains(raw+"/", "/../")
}

func mustUnescape(t *testing.T, s string) string {
	u, err := url.PathUnescape(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// rfcDotSegments is remove_dot_segments of RFC 3986, section 5.2.4, as it stands
// there, for a path that begins with a slash.
func rfcDotSegments(in string) string {
	out := ""
	for in != "" {
		switch {
		case strings.HasPrefix(in, "/./"):
			in = in[2:]
		case in == "/.":
			in = "/"
		case strings.HasPrefix(in, "/../"), in == "/..":
			in = "/" + strings.TrimPrefix(in[3:], "/")
			out = out[:max(0, strings.LastIndexByte(out, '/'))]
		default:
			next := strings.IndexByte(in[1:], '/') + 1
			if next == 0 {
				next = len(in)
			}
			out += in[:next]
			in = in[next:]
		}
	}
	return out
}

func TestIsClean(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/a/": true, "/a/b.html": true, "/a%20b": true, "/a..b": true, "/.well-known/a": true,
		"/a?b=c": false, "/a#b": false, "//": false, "//a": false, "/a//b": false, "/a//": false, "/./a": false, "/a/.": false, "/a/../b": false,
		"/a/%2e%2e/b": false, "/%2E/a": false, "/a%2F%2Fb": false,
	} {
		if got := IsClean(path); got != want {
			t.Errorf("%s: got %t", path, got)
		}
	}
}

func TestCheckPattern(t *testing.T) {
	for pattern, want := range map[string]string{
		"/a": "", "/a/*": "", "*.pdf": "", "*": "", "/a,b": "", "/100%*": "",
		"":       "path pattern '' matches nothing: it must begin with '/' or '*'",
		"a/*":    "path pattern 'a/*' matches nothing: it must begin with '/' or '*'",
		"/a,":    "path pattern '/a,': a space separates patterns, not a comma",
		"/a,/b":  "path pattern '/a,/b': a space separates patterns, not a comma",
		"/a,*.b": "path pattern '/a,*.b': a space separates patterns, not a comma",
		"/[a":    "path pattern '/[a': syntax error in pattern",
	} {
		got := ""
		if err := CheckPattern(pattern); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", pattern, got, want)
		}
	}
}
