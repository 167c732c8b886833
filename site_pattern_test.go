package sitemap

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSitePattern is which sites a pattern names.
func TestSitePattern(t *testing.T) {
	named := func(public, internal, prefix string) *site {
		h := new(Handler)
		h.settings.path = "/sitemap.xml"
		return &site{identity: identity{handler: h, origin: public, internalOrigin: internal, prefix: prefix, docPrefix: prefix}}
	}
	sites := map[string]*site{
		"shop-1":  named("https://shop-1.example.com", "https://shop-1.example.com", ""),
		"shop-2":  named("https://shop-2.example.com:8443", "https://shop-2.example.com:8443", ""),
		"docs":    named("https://www.example.com", "https://www.example.com", "/docs"),
		"deep":    named("http://a.b.example.com", "http://a.b.example.com", ""),
		"proxied": named("https://example.org", "http://inside.lan:8080", ""),
		"ip":      named("http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080", ""),
	}
	for pattern, want := range map[string]string{
		"*":                                  "deep docs ip proxied shop-1 shop-2",
		"https://*":                          "docs proxied shop-1 shop-2",
		"*.example.com":                      "deep docs shop-1 shop-2",
		"*.EXAMPLE.com/":                     "deep docs shop-1 shop-2",
		"*.b.example.com":                    "deep",
		"shop-*":                             "shop-1 shop-2",
		"https://shop-*":                     "shop-1 shop-2",
		"http://shop-*":                      "",
		"https://shop-*.example.com":         "shop-1",
		"https://*.example.com":              "shop-1",
		"https://*.example.com/docs":         "docs",
		"https://*.example.com/*":            "docs shop-1",
		"https://*/docs/sitemap.xml":         "docs",
		"*/docs":                             "docs",
		"*:8443":                             "shop-2",
		"inside.*":                           "proxied",
		"http://inside.lan:8080*":            "proxied",
		"[2001:db8::*]":                      "ip",
		"*shop*1*com":                        "shop-1",
		"example.com*":                       "",
		"*.+":                                "",
		"\xff*":                              "",
		strings.Repeat("*", 10_000) + ".org": "proxied",
	} {
		matches := compileSitePattern(pattern)
		var got []string
		for name, s := range sites {
			if matches(s) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want || !isSitePattern(pattern) {
			t.Errorf("%.50q: got %q, want %q", pattern, got, want)
		}
	}
	for _, url := range []string{"https://example.com", "https://example.com/a?b=c", ""} {
		if isSitePattern(url) {
			t.Errorf("%q is a pattern", url)
		}
	}
}

// TestClosest: what an operator has misspelt comes first.
func TestClosest(t *testing.T) {
	var urls []string
	for i := range 500 {
		urls = append(urls, fmt.Sprintf("https://tenant-%03d.example.com/", i))
	}
	urls = append(urls, "https://shop.example.com/", "https://www.example.org/docs/")
	for wanted, want := range map[string]string{
		"https://shpo.example.com/page":   "https://shop.example.com/",
		"https://SHOP.example.con":        "https://shop.example.com/",
		"http://www.example.net/docs":     "https://www.example.org/docs/",
		"https://tenant-0421.example.com": "https://tenant-021.example.com/",
		"*.exampel.org":                   "https://www.example.org/docs/",
		"shpo*":                           "https://shop.example.com/",
		"":                                "https://tenant-000.example.com/",
	} {
		if got := closest(wanted, slices.Clone(urls)); got[0] != want || len(got) != len(urls) {
			t.Errorf("%q: got %q first, want %q", wanted, got[0], want)
		}
	}
}
