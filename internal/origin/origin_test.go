package origin

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func TestCleanHost(t *testing.T) {
	label := strings.Repeat("a", 63)
	for _, test := range []struct{ in, want string }{
		{"example.com", "example.com"},
		{"EXAMPLE.com", "example.com"},
		{"example.com.", "example.com"},
		{"example.com:8080", "example.com"},
		{"example.com.:8080", "example.com"},
		{"localhost", "localhost"},
		{"a_b.example", "a_b.example"},
		{"1.2.3", "1.2.3"},
		{"192.0.2.1", "192.0.2.1"},
		{"192.0.2.1:80", "192.0.2.1"},
		{"192.0.2.1.", "192.0.2.1"},
		{"192.0.2.01", "192.0.2.01"},
		{"[2001:db8::1]", "[2001:db8::1]"},
		{"[2001:DB8:0:0::1]:443", "[2001:db8::1]"},
		{"2001:db8::1", "[2001:db8::1]"},
		{"[example.com]", ""},
		{"[example.com]:443", ""},
		{"[192.0.2.1]", ""},
		{"bücher.example", "xn--bcher-kva.example"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example"},
		{label + ".example", label + ".example"},
		{strings.Repeat("a.", 126) + "a", strings.Repeat("a.", 126) + "a"},
		{label + "a.example", ""},
		{strings.Repeat("a.", 127) + "a", ""},
		{"", ""},
		{".", ""},
		{"..", ""},
		{"a..b", ""},
		{".a", ""},
		{"-a.example", ""},
		{"a-.example", ""},
		{"a.-b", ""},
		{"*.example.com", ""},
		{"{host}", ""},
		{"a b", ""},
		{"a/b", ""},
		{"a\nb", ""},
		{"a\x00b", ""},
		{"a@b", ""},
		{"<b>", ""},
		{"a:b:c", ""},
		{"[::1", ""},
		{"::1]", ""},
		{"[]", ""},
		{"[fe80::1%eth0]", ""},
		{"caf\xe9.example", ""},
		{strings.Repeat("ü", 100_000) + ".example", ""},
	} {
		got, ok := CleanHost(test.in)
		if got != test.want || ok != (test.want != "") {
			t.Errorf("%q: got %q, %t, want %q", test.in, got, ok, test.want)
		}
		if again, ok := CleanHost(got); got != "" && (!ok || again != got) {
			t.Errorf("%q: cleaned twice it is %q, want %q", test.in, again, got)
		}
	}
}

func TestOf(t *testing.T) {
	for _, test := range []struct{ scheme, port, want string }{
		{"http", "", "http://h"},
		{"http", "80", "http://h"},
		{"http", "443", "http://h:443"},
		{"http", "8080", "http://h:8080"},
		{"https", "443", "https://h"},
		{"https", "80", "https://h:80"},
		{"https", "8443", "https://h:8443"},
	} {
		if got := Of(test.scheme, "h", test.port); got != test.want {
			t.Errorf("%s, port %q: got %q, want %q", test.scheme, test.port, got, test.want)
		}
	}
}

func TestParseURL(t *testing.T) {
	for _, test := range []struct {
		in           string
		origin, path string
		err          error
	}{
		{"https://example.com", "https://example.com", "/", nil},
		{"https://example.com?a=b", "https://example.com", "/?a=b", nil},
		{"https://example.com#a", "https://example.com", "/", nil},
		{"HTTPS://Example.COM:443/A", "https://example.com", "/A", nil},
		{"https://example.com:/a", "https://example.com", "/a", nil},
		{"https://example.com.//a", "https://example.com", "//a", nil},
		{"http://example.com:080/a/../ä?%7e", "http://example.com", "/%C3%A4?~", nil},
		{"http://example.com:443/", "http://example.com:443", "/", nil},
		{"https://[::0:1]:08443/a", "https://[::1]:8443", "/a", nil},
		{"https://München.example/a", "https://xn--mnchen-3ya.example", "/a", nil},
		{"/a", "", "", ErrNotAbsolute},
		{"//example.com/", "", "", ErrNotAbsolute},
		{"mailto:a@example.com", "", "", ErrNotAbsolute},
		{"ftp://example.com/", "", "", ErrNotAbsolute},
		{"https://me@example.com/", "", "", ErrUserInfo},
		{`https://example.com\@evil.example/`, "", "", ErrUserInfo},
		{"https://example.com/\n", "", "", ErrControl},
		{"https:///a", "", "", ErrHost},
		{"https://:443/a", "", "", ErrHost},
		{`https://example.com\evil.example/`, "", "", ErrHost},
		{"https://a\u202e.example/", "", "", ErrHost},
		{"https://example.com:http/", "", "", ErrPort},
		{"https://example.com:0/", "", "", ErrPort},
		{"https://example.com:65536/", "", "", ErrPort},
		{"https://example.com/100%", "", "", page.ErrEscape},
	} {
		u, err := ParseURL(test.in)
		if !errors.Is(err, test.err) || err == nil && u.Origin() != test.origin || u.Path != test.path {
			t.Errorf("%s: got %s, %s, %v, want %s, %s, %v", test.in, u.Origin(), u.Path, err, test.origin, test.path, test.err)
		}
	}
}

func FuzzCleanHost(f *testing.F) {
	for _, host := range []string{"example.com:80", "[::1]", "bücher.example", "a..b", "\x00"} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		clean, ok := CleanHost(host)
		if !ok {
			return
		}
		if again, ok := CleanHost(clean); !ok || again != clean {
			t.Errorf("%q is cleaned to %q, and that to %q", host, clean, again)
		}
		if len(clean) > 255 || strings.ContainsAny(clean, "/\\@ <>\"'&?#%") || strings.ToLower(clean) != clean {
			t.Errorf("%q is cleaned to %q", host, clean)
		}
	})
}

func TestOverlap(t *testing.T) {
	for test, want := range map[[2]string]bool{
		{"A.Example", "a.example"}: true, {"*.example", "a.example"}: true, {"*.*.example", "a.b.example"}: true, {"*", "localhost"}: true, {"{env.HOST}", "a.example"}: true,
		{"::1", "[::1]"}: true, {"[2001:db8::1]", "2001:DB8::1"}: true, {"shop.test.", "shop.test"}: true, {"shop.test", "shop.test."}: true, {"*.test.", "shop.test"}: true,
		{"::1", "[::2]"}: false, {"shop.test.", "test"}: false, {".", "test"}: false,
		{"*.example", "a.b.example"}: false, {"*.example", "example"}: false, {"*", "a.example"}: false, {"b.example", "a.example"}: false,
	} {
		if got := Overlap([]string{test[0]}, []string{test[1]}); got != want {
			t.Errorf("%s: got %t, want %t", test, got, want)
		}
	}
}

// TestIntersect: no list stands for all hosts, and an empty one for none.
func TestIntersect(t *testing.T) {
	none := []string{}
	for name, test := range map[string]struct{ outer, inner, want []string }{
		"all and all":        {nil, nil, nil},
		"all and some":       {nil, []string{"a.example"}, []string{"a.example"}},
		"some and all":       {[]string{"a.example"}, nil, []string{"a.example"}},
		"all and none":       {nil, none, none},
		"none and all":       {none, nil, none},
		"some and none":      {[]string{"a.example"}, none, none},
		"a pattern":          {[]string{"*.example"}, []string{"a.example", "b.test"}, []string{"a.example"}},
		"nothing they share": {[]string{"a.example"}, []string{"b.example"}, none},
	} {
		got := Intersect(test.outer, test.inner)
		if (got == nil) != (test.want == nil) || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %#v, want %#v", name, got, test.want)
		}
		isSome := test.want == nil || len(test.want) > 0
		if Overlap(test.outer, test.inner) != isSome {
			t.Errorf("%s: they overlap: %t", name, !isSome)
		}
	}
}

func TestIsPublic(t *testing.T) {
	for origin, want := range map[string]bool{
		"https://example.com": true, "https://www.example.co.uk:8443": true, "https://xn--bcher-kva.example.org": true, "http://local.example.com": true,
		"http://localhost": false, "http://a.localhost:80": false, "http://printer": false, "http://nas.local": false, "https://wiki.corp.internal": false,
		"https://a.test": false, "https://a.home.arpa": false, "http://127.0.0.1": false, "http://[::1]:8080": false, "http://192.168.1.1": false, "": false,
	} {
		if IsPublic(origin) != want {
			t.Errorf("%s is public: %t", origin, !want)
		}
	}
}

func TestParseBase(t *testing.T) {
	for base, want := range map[string]string{
		"https://example.com":                      "https://example.com",
		"https://example.com/":                     "https://example.com",
		"HTTPS://Example.com:443/docs/":            "https://example.com /docs",
		"https://example.com/v1.2":                 "https://example.com /v1.2",
		"https://example.com/index.php":            "https://example.com /index.php",
		"https://example.com/xml":                  "https://example.com /xml",
		"https://example.com/sitemap.xml":          "sitemap.xml is a document, not a folder: use https://example.com",
		"https://example.com:8443/docs/Map.XML.gz": "Map.XML.gz is a document, not a folder: use https://example.com:8443/docs",
		"https://example.com/a/sitemap.txt/":       "sitemap.txt is a document, not a folder: use https://example.com/a",
		"https://example.com/a/b/index.html":       "index.html is a document, not a folder: use https://example.com/a/b",
		"https://example.com/?a":                   "only scheme, host, port and folder are allowed",
		"example.com":                              ErrNotAbsolute.Error(),
	} {
		origin, folder, err := ParseBase(base)
		got := strings.TrimSpace(origin + " " + folder)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", base, got, want)
		}
	}
}
