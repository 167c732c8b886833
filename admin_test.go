package sitemap

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func TestParsePageURL(t *testing.T) {
	for raw, want := range map[string]pageURL{
		"http://a.example":                   {"http", "a.example", "", "/"},
		"http://A.example.:80/./%7e/x?b=c#d": {"http", "a.example", "", "/~/x?b=c"},
		"https://[::1]:8443/a%20b":           {"https", "[::1]", "8443", "/a%20b"},
	} {
		if got, err := parsePageURL(raw); err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", raw, got, err, want)
		}
	}
	for raw, want := range map[string]string{
		"":                          "must be absolute",
		"/a.html":                   "must be absolute",
		"a.example/b":               "must be absolute",
		"//a.example/a.html":        "must be absolute",
		"javascript:alert(1)":       "must be absolute",
		"file:///etc/passwd":        "must be absolute",
		"http:///a":                 "must be absolute",
		"http:a":                    "must be absolute",
		"http://u:p@a.example/":     "a user name",
		"http://a.example/\x00":     "control character",
		"http://a.example/\r\nX: y": "control character",
		"http://a.example/%zz":      "escape",
		"http://a.example/?a=%zz":   "hexadecimal",
		"http://a.example:x/":       "port",
		"http://a.example:99999/":   "host or port is invalid",
		"http://a example/":         "host",
		"http://<script>/":          "host",
		"http://a.example/" + strings.Repeat("a", 1<<20): "more than 65536 bytes",
	} {
		_, err := parsePageURL(raw)
		if !errors.Is(err, errNotURL) || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 || strings.ContainsAny(err.Error(), "\x00\r\n<") {
			t.Errorf("%.50q: got %.400v, want %q", raw, err, want)
		}
	}
}

// FuzzParsePageURL: the path of a URL is that of a page, or there is a short error.
func FuzzParsePageURL(f *testing.F) {
	for _, raw := range []string{"http://example.com/a?b#c", "https://[::1]:8443/%7e/../x", "//a/b", "http://a:b@c/", "http://bücher.example/ü\x00", "http://a?%zz"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := parsePageURL(raw)
		if err != nil {
			if !errors.Is(err, errNotURL) || len(err.Error()) > 1000 || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q: got %v", raw, err)
			}
			return
		}
		if again, err := page.Canonical(u.path); err != nil || again != u.path {
			t.Errorf("%q: got %q, which is %q, %v", raw, u.path, again, err)
		}
		if host, ok := origin.CleanHost(u.host); !ok || host != u.host {
			t.Errorf("%q: got %q", raw, u.host)
		}
	})
}
