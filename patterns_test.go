package sitemap

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/option"
)

// TestUnmatchedOfSites: a rule may be meant for another site of the handler, and a source that fails hides pages.
func TestUnmatchedOfSites(t *testing.T) {
	rule := func(h *Handler) { h.Rules = []Rule{{Match: []string{"/gone/*"}, ChangeFreq: "daily"}} }
	const message = "rule matches no page"
	b := newBench(t, rule)
	b.lists("/")
	first, second := b.site("named.example"), b.site("other.example")
	b.refresh(first)
	b.refresh(second)
	if got := b.logged(message); got != 0 {
		t.Errorf("two sites: got %d lines, want none", got)
	}
	b = newBench(t, rule)
	s := b.site("named.example")
	b.source = func(_ context.Context, _ *Refresh, yield func(Page) error) error {
		return cmp.Or(yield(Page{Path: "/"}), errors.New("unreadable"))
	}
	b.refresh(s)
	if got := b.logged(message); got != 0 {
		t.Errorf("a source that fails: got %d lines, want none", got)
	}
	b.lists("/", "/a")
	b.refresh(s)
	b.lists("/", "/a", "/b")
	b.refresh(s)
	if got := b.logged(message); got != 1 {
		t.Errorf("got %d lines, want one", got)
	}
}

// How patterns match is Caddy's; that paths reach its matcher as in requests is tested.
func TestPathPatterns(t *testing.T) {
	for _, test := range []struct {
		patterns      []string
		match, others string
	}{
		{nil, "", "/ /a"},
		{[]string{"/x", "*"}, "/ /a/b?c", ""},
		{[]string{"/a", "/b*", "*.php", "*/admin/*"}, "/a /A /a?b=c /b/c /x.PHP /x/admin/y", "/ /a/ /x?y.php /admin"},
		{[]string{"/a b", "/É"}, "/a%20b /%C3%A9", "/a%2520b /a+b /e"},
		{[]string{"/a%2Fb", "/bands/%*", "/50%25"}, "/a%2Fb /bands/AC%2FDC /50%25", "/a/b /bands /50"},
		{[]string{"/a/b"}, "/a/b /a%2Fb /a//b", "/a"},
		{[]string{"/a,b", "/c%2Cd"}, "/a,b /a%2Cb /a%2cb /c%2Cd", "/a%252Cb /c;d"},
	} {
		patterns := compilePatterns(new(option.Checker), "exclude", test.patterns)
		for _, path := range strings.Fields(test.match) {
			if !patterns.Match(path) {
				t.Errorf("%q: %s does not match", test.patterns, path)
			}
		}
		for _, path := range strings.Fields(test.others) {
			if patterns.Match(path) {
				t.Errorf("%q: %s matches", test.patterns, path)
			}
		}
	}
	for _, bad := range []string{"", "a/*", "/[", "/%20[", "/{env.NONE}/*", "/{x}"} {
		var c option.Checker
		if compilePatterns(&c, "exclude", []string{"/ok", bad}); c.Err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}
