package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestRobots(t *testing.T) {
	long := strings.Repeat("# "+strings.Repeat("a", 98)+"\n", 5121)
	for _, test := range []struct {
		name string
		body string
		urls string
		want string
	}{
		{"one line", "User-agent: *\nDisallow:\n\nSitemap: https://a.example/sitemap.xml\n", "https://a.example/sitemap.xml", ""},
		{"any case, any line end", "\uFEFFsitemap:https://a.example/1.xml # one\r\rSITEMAP : https://a.example/2.xml\r\nUser-agent: *", "https://a.example/1.xml https://a.example/2.xml", ""},
		{"none", "User-agent: *\nDisallow:\n# Sitemap: https://a.example/sitemap.xml", "", "0 warning robots-no-sitemap"},
		{"empty", "", "", "0 warning robots-no-sitemap"},
		{"a path", "Sitemap: /sitemap.xml", "", "1 error robots-url"},
		{"nothing", "\nSitemap:", "", "2 error robots-url"},
		{"two on a line", "Sitemap: https://a.example/1.xml https://a.example/2.xml", "", "1 error robots-url"},
		{"joined to a rule", "User-agent: *\nDisallow: /adminSitemap: https://a.example/1.xml", "", "2 error robots-glued|0 warning robots-no-sitemap"},
		{"joined to another", "Sitemap: https://a.example/1.xmlSitemap: https://a.example/2.xml", "", "1 error robots-glued"},
		{"a rule about one", "User-agent: *\nDisallow: /sitemap:1\nSitemap: https://a.example/1.xml", "https://a.example/1.xml", ""},
		{"without a colon", "User-agent: *\nDisallow:\nsiteMap \thttps://a.example/1.xml # one", "", "3 warning robots-no-colon|0 warning robots-no-sitemap"},
		{"a path without a colon", "Sitemap /1.xml\nSitemap: https://a.example/2.xml", "https://a.example/2.xml", "1 warning robots-no-colon"},
		{"words without a colon", "Sitemap of https://a.example/\nsitemaps https://a.example/\nsitemap\nSitemap: https://a.example/2.xml", "https://a.example/2.xml", ""},
		{"between agents", "User-agent: a\n\nSitemap: https://a.example/1.xml\nUser-agent: b\nDisallow:", "https://a.example/1.xml", "3 warning robots-between-agents"},
		{"after rules", "User-agent: a\nDisallow:\nSitemap: https://a.example/1.xml\nUser-agent: b\nDisallow:", "https://a.example/1.xml", ""},
		{"twice", "Sitemap: https://a.example/1.xml\nSitemap: https://a.example/1.xml", "https://a.example/1.xml", "2 warning duplicate"},
		{"not ASCII", "Sitemap: https://a.example/ä.xml", "https://a.example/ä.xml", "1 warning loc-not-ascii"},
		{"Latin-1", "# \xE4\nSitemap: https://a.example/1.xml", "https://a.example/1.xml", "1 error not-utf-8"},
		{"UTF-16", "\xFF\xFES\x00", "", "1 error encoding"},
		{"HTML", "<!doctype html><title>404</title>", "", "1 error html"},
		{"beyond 500 KiB", long + "Sitemap: https://a.example/1.xml", "https://a.example/1.xml", "5122 error robots-beyond|0 warning robots-too-long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			c := New(Options{Report: func(f Finding) {
				got = append(got, fmt.Sprintf("%d %s %s", f.Line, f.Severity, f.Code))
			}})
			urls, err := c.Robots("robots.txt", "", strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(got, "|"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if got := strings.Join(urls, " "); got != test.urls {
				t.Errorf("got the URLs %q, want %q", got, test.urls)
			}
		})
	}
}

func TestRobotsPlace(t *testing.T) {
	for at, want := range map[string]int{"https://a.example/robots.txt": 0, "https://a.example/docs/robots.txt": 1, "": 0} {
		c := New(Options{})
		if _, err := c.Robots("robots.txt", at, strings.NewReader("Sitemap: https://a.example/1.xml")); err != nil {
			t.Fatal(err)
		}
		if got := c.Summary().Codes["robots-place"]; got != want {
			t.Errorf("at %q: got %d findings, want %d", at, got, want)
		}
	}
}

func FuzzRobots(f *testing.F) {
	f.Add("User-agent: *\rDisallow: /aSitemap: http://a.example/\r\nSitemap: http://a.example/#\n")
	f.Fuzz(func(t *testing.T, body string) {
		c := New(Options{})
		urls, err := c.Robots("robots.txt", "", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i, url := range urls {
			if !strings.Contains(body, url) || slices.Contains(urls[:i], url) {
				t.Errorf("got %q", urls)
			}
		}
	})
}
