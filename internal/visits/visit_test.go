package visits

import (
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
)

func TestResult(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Visit)
		want   string
	}{
		{"a visit", func(*Visit) {}, Counts},
		{"nobody known", func(v *Visit) { v.UserAgent, v.ContentType = "", "" }, Counts},
		{"an asset", func(v *Visit) { v.URI, v.ContentType = "/a.b.CSS?v=3", "" }, asset},
		{"no answer", func(v *Visit) { v.Status = 0 }, wrongStatus},
		{"a user", func(v *Visit) { v.User = true }, signedIn},
		{"noindex", func(v *Visit) { v.RobotsTag = "nofollow,NoIndex" }, noIndex},
		{"a robot", func(v *Visit) {
			v.UserAgent = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
		}, robot},
		{"no User-Agent", func(v *Visit) { v.UserAgent = "-" }, robot},
		{"a long robot", func(v *Visit) { v.UserAgent = "bot" + strings.Repeat("x", 9999) }, robot},
		{"our own", func(v *Visit) {
			v.UserAgent = "caddy-sitemap (+https://github.com/seed3295b519/caddy-sitemap; bot)"
		}, robot},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := Visit{
				Time: 1764000000, Method: "GET", Host: "example.com", URI: "/a", Status: 200,
				UserAgent: chrome, ContentType: "text/html; charset=utf-8",
			}
			test.change(&v)
			if got := v.result(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestNoPagePath: what is no path of a page does not count, of whichever kind.
func TestNoPagePath(t *testing.T) {
	for uri, want := range map[string]string{
		"/a":           "/a",
		"/a%2Fb":       "/a%2Fb",
		"/wiki/.NET":   "/wiki/.NET",
		"/../x":        "",
		"/x/./y":       "",
		"/%2e%2E/x":    "",
		"/.git":        "",
		"/%2egit/HEAD": "",
		"/a//b":        "",
		"/a%2F%2e./b":  "",
		"/%zz":         "",
		"x":            "",
		"*":            "",
	} {
		f := origin.NewCleaner(nil)
		got, result := (&Visit{Method: "GET", URI: uri, Status: 200, ContentType: "text/html"}).Judge(f)
		if got != want || (result == Counts) != (want != "") || want == "" && result != oddPath {
			t.Errorf("%s: got %q, %q, want %q", uri, got, result, want)
		}
	}
}

// TestSignal: after which visits a page is to be fetched.
func TestSignal(t *testing.T) {
	const (
		bot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
		own = "caddy-sitemap (+https://github.com/seed3295b519/caddy-sitemap; bot)"
	)
	for _, test := range []struct {
		name  string
		visit Visit
		want  string // the page; "": none
	}{
		{"gone", Visit{Status: 404}, "/a"},
		{"refused", Visit{Status: 403}, "/a"},
		{"refused, in a log without User-Agents", Visit{Status: 403, UserAgent: "none"}, "/a"},
		{"a robot is refused", Visit{Status: 403, UserAgent: bot}, ""},
		{"a user finds nothing", Visit{Status: 404, User: true}, ""},
		{"this module", Visit{Status: 404, UserAgent: own}, ""},
		{"no response", Visit{}, ""},

		{"moved", Visit{Status: 301, Location: "/b"}, "/a"},
		{"to another scheme", Visit{Status: 301, Location: "https://named.example/a"}, ""},
		{"to another scheme, with a campaign", Visit{URI: "/a?utm_source=x", Status: 301, Location: "https://named.example/a?utm_source=x"}, ""},
		{"to another spelling", Visit{URI: "/a%3Bb", Status: 301, Location: "https://named.example/a;b"}, "/a%3Bb"},
		{"moved to nobody knows where", Visit{Status: 301}, ""},

		{"a campaign", Visit{URI: "/a?utm_source=x&page=2#b", Status: 404}, "/a?page=2"},
		{"another query", Visit{URI: "/?author=1", Status: 301, Location: "/author/root/"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := origin.NewCleaner([]string{"page"})
			v := test.visit
			if v.Method == "" {
				v.Method = "GET"
			}
			if v.URI == "" {
				v.URI = "/a"
			}
			switch v.UserAgent {
			case "":
				v.UserAgent = chrome
			case "none":
				v.UserAgent = ""
			}
			path, result := v.Judge(f)
			if path != test.want || result == Counts {
				t.Errorf("got %q, %q, want %q", path, result, test.want)
			}
		})
	}
}
