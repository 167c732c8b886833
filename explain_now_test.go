package sitemap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
)

// leadingPages is a site whose pages are named by where they lead.
type leadingPages struct{}

func (leadingPages) Fetch(_ context.Context, r crawl.Request) (*crawl.Response, error) {
	kind, n, _ := strings.Cut(strings.TrimPrefix(r.Path, "/"), "-")
	header := http.Header{"Content-Type": {"text/html"}}
	switch kind {
	case "silent":
		return nil, errors.New("no response")
	case "unhandled":
		return &crawl.Response{Status: 404, Unhandled: true}, nil
	case "redirect":
		return &crawl.Response{Status: 302, Header: http.Header{"Location": {n}}}, nil
	case "endless":
		header.Set("Refresh", "0; url="+r.Path+"x")
	}
	return &crawl.Response{Status: 200, Header: header, Body: []byte(`<title>x</title><link rel="canonical" href="` + n + `">`)}, nil
}

func TestChain(t *testing.T) {
	site := chain{
		origin:   "http://a.example",
		fetcher:  leadingPages{},
		isListed: func(path string) bool { return path == "/page" },
		refuse: func(path string) string {
			if path == "/secret" {
				return "it is secret"
			}
			return ""
		},
	}
	for path, want := range map[string]string{
		"/page":                      "/page 200 true   ",
		"/silent":                    "/silent 0 false   no response",
		"/unhandled":                 "/unhandled 0 false   no route handles the request: a visitor gets an empty response, unless a matcher keeps out only the address 192.0.2.1 of this module",
		"/redirect-page":             "/redirect-page 302 false redirect http://a.example/page |/page 200 true   ",
		"/redirect-":                 "/redirect- 302 false   ", // without a Location
		"/redirect-secret":           "/redirect-secret 302 false redirect http://a.example/secret |/secret 0 false   not fetched: it is secret",
		"/canonical-page":            "/canonical-page 200 false canonical http://a.example/page |/page 200 true   ",
		"/redirect-//b.example/page": "/redirect-//b.example/page 302 false redirect http://b.example/page ",
	} {
		var got []string
		for _, r := range site.from(t.Context(), path) {
			got = append(got, fmt.Sprint(strings.TrimPrefix(r.URL, site.origin), " ", r.Status, " ", r.Listed, " ", r.Leads, " ", r.To, " ", r.Error))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got := site.from(t.Context(), "/endless-"); len(got) != 10 {
		t.Errorf("got %d pages, want 10", len(got))
	}
}
