package visits

import (
	"fmt"
	"testing"
)

// TestSignal: after which visits a page is to be fetched.
func TestSignal(t *testing.T) {
	const (
		bot     = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
		own     = "caddy-sitemap (+https://github.com/seed3295b519/caddy-sitemap; bot)"
		minutes = 60
	)
	for _, test := range []struct {
		name  string
		visit Visit
		want  string // the page; "": none
	}{
		{"gone", Visit{Status: 404}, "/a"},
		{"gone for good", Visit{Status: 410}, "/a"},
		{"gone for a robot", Visit{Status: 404, UserAgent: bot}, "/a"},
		{"gone for a client without a name", Visit{Status: 404, UserAgent: "-"}, "/a"},
		{"refused", Visit{Status: 403}, "/a"},
		{"a login", Visit{Status: 401}, "/a"},
		{"refused, in a log without User-Agents", Visit{Status: 403, UserAgent: "none"}, "/a"},
		{"a robot is refused", Visit{Status: 403, UserAgent: bot}, ""},
		{"a robot has no login", Visit{Status: 401, UserAgent: bot}, ""},
		{"a user is refused", Visit{Status: 403, User: true}, ""},
		{"a user finds nothing", Visit{Status: 404, User: true}, ""},
		{"this module", Visit{Status: 404, UserAgent: own}, ""},
		{"HEAD", Visit{Method: "HEAD", Status: 404}, "/a"},
		{"POST", Visit{Method: "POST", Status: 404}, ""},
		{"a page", Visit{Status: 200}, ""},
		{"not modified", Visit{Status: 304}, ""},
		{"a broken upstream", Visit{Status: 502}, ""},
		{"too many requests", Visit{Status: 429}, ""},
		{"no response", Visit{}, ""},

		{"moved", Visit{Status: 301, Location: "/b"}, "/a"},
		{"moved for good", Visit{Status: 308, Location: "https://www.example/b"}, "/a"},
		{"moved away", Visit{Status: 301, Location: "//other.example/b"}, "/a"},
		{"moved to another query", Visit{Status: 301, Location: "/a?id=7"}, "/a"},
		{"moved beside it", Visit{Status: 301, Location: "b"}, "/a"},
		{"with a slash", Visit{Status: 308, Location: "/a/"}, "/a"},
		{"to another scheme", Visit{Status: 301, Location: "https://named.example/a"}, ""},
		{"to another host", Visit{Status: 308, Location: "//www.named.example/a"}, ""},
		{"to itself", Visit{Status: 301, Location: "/a"}, ""},
		{"to another scheme, with a campaign", Visit{URI: "/a?utm_source=x", Status: 301, Location: "https://named.example/a?utm_source=x"}, ""},
		{"in another spelling", Visit{URI: "/a%3Bb", Status: 301, Location: "https://named.example/a;b"}, ""},
		{"moved to nobody knows where", Visit{Status: 301}, ""},
		{"moved to a login", Visit{Status: 302, Location: "/login"}, "/a"},
		{"moved for a while", Visit{Status: 307, Location: "/b"}, "/a"},
		{"moved after a form", Visit{Status: 303, Location: "/b"}, "/a"},
		{"a choice", Visit{Status: 300, Location: "/b"}, ""},

		{"a query that tells pages apart", Visit{URI: "/a?page=2", Status: 404}, "/a?page=2"},
		{"a campaign", Visit{URI: "/a?utm_source=x&page=2#b", Status: 404}, "/a?page=2"},
		{"another query", Visit{URI: "/?author=1", Status: 301, Location: "/author/root/"}, ""},
		{"dot segments", Visit{URI: "/x/../a", Status: 404}, ""},
		{"an empty segment", Visit{URI: "/x//a", Status: 404}, ""},
		{"a bad escape", Visit{URI: "/a%zz", Status: 404}, ""},
		{"a hidden file", Visit{URI: "/.env", Status: 403}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := NewFilter([]string{"page"})
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
			path, ok := f.Signal(&v, 100*minutes)
			if path != test.want || ok != (test.want != "") {
				t.Errorf("got %q, %t, want %q", path, ok, test.want)
			}
			if _, again := f.Signal(&v, 109*minutes); again {
				t.Error("it is a signal again within ten minutes")
			}
			if _, later := f.Signal(&v, 110*minutes); later != ok {
				t.Errorf("ten minutes later: got %t, want %t", later, ok)
			}
		})
	}
}

// TestSignalsCostNothing: any number of visitors who request what is gone are passed over without an allocation.
func TestSignalsCostNothing(t *testing.T) {
	f := NewFilter(nil)
	var gone []Visit
	for i := range 100 {
		gone = append(gone, Visit{Method: "GET", URI: fmt.Sprintf("/gone/%d", i), Host: "named.example", Status: 404, UserAgent: chrome})
	}
	n := 0
	each := func() {
		for i := range gone {
			_, ok := f.Signal(&gone[i], 0)
			n += map[bool]int{true: 1}[ok]
		}
	}
	each()
	if n < 90 { // some may have taken the place of others
		t.Errorf("got %d signals of %d", n, len(gone))
	}
	if allocs := testing.AllocsPerRun(100, each); allocs > 20 {
		t.Errorf("%v allocations for %d visits", allocs, len(gone))
	}
}
