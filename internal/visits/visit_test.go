package visits

import (
	"strings"
	"testing"
)

func TestReason(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Visit)
		want   string
	}{
		{"a visit", func(*Visit) {}, ""},
		{"HEAD", func(v *Visit) { v.Method = "HEAD" }, ""},
		{"304", func(v *Visit) { v.Status = 304 }, ""},
		{"nobody known", func(v *Visit) { v.UserAgent, v.ContentType = "", "" }, ""},
		{"no type", func(v *Visit) { v.ContentType = "-" }, ""},
		{"XHTML", func(v *Visit) { v.ContentType = "application/XHTML+xml" }, ""},
		{"an asset", func(v *Visit) { v.URI, v.ContentType = "/a.b.CSS;v=1?v=3", "" }, asset},
		{"no asset", func(v *Visit) { v.URI, v.ContentType = "/a.php?x=y.png#b.css", "" }, ""},
		{"HTML of an image", func(v *Visit) { v.URI = "/File:A.jpg" }, ""},
		{"indexed", func(v *Visit) {
			v.RobotsTag = "nofollow, max-snippet: 50, unavailable_after: 25 Jun 2030 15:00:00 PST"
		}, ""},
		{"POST", func(v *Visit) { v.Method = "POST" }, "not GET or HEAD"},
		{"get", func(v *Visit) { v.Method = "get" }, "not GET or HEAD"},
		{"206", func(v *Visit) { v.Status = 206 }, wrongStatus},
		{"404", func(v *Visit) { v.Status = 404 }, wrongStatus},
		{"no answer", func(v *Visit) { v.Status = 0 }, wrongStatus},
		{"a user", func(v *Visit) { v.User = true }, signedIn},
		{"a user's JSON", func(v *Visit) { v.User, v.ContentType = true, "application/json" }, notHTML},
		{"noindex", func(v *Visit) { v.RobotsTag = "nofollow,NoIndex" }, noIndex},
		{"noindex for Google", func(v *Visit) { v.RobotsTag = "otherbot: nofollow, googlebot: noindex" }, noIndex},
		{"JSON", func(v *Visit) { v.ContentType = "application/json" }, notHTML},
		{"a robot", func(v *Visit) {
			v.UserAgent = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
		}, Robot},
		{"no User-Agent", func(v *Visit) { v.UserAgent = "-" }, Robot},
		{"a long robot", func(v *Visit) { v.UserAgent = "bot" + strings.Repeat("x", 9999) }, Robot},
		{"our own", func(v *Visit) {
			v.UserAgent = "caddy-sitemap (+https://github.com/seed3295b519/caddy-sitemap; bot)"
		}, Robot},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := Visit{
				Time: 1764000000, Method: "GET", Host: "example.com", URI: "/a", Status: 200,
				UserAgent: chrome, ContentType: "text/html; charset=utf-8",
			}
			test.change(&v)
			if got := v.Reason(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
