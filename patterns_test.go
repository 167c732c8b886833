package sitemap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/option"
)

// TestUnusedPatterns: a pattern that matches no path of a complete refresh is a warning, once, with what to write.
func TestUnusedPatterns(t *testing.T) {
	const (
		drafts  = "exclude '/drafts' matches no page, and there are some below it: write '/drafts/*'"
		slash   = "exclude '/drafts/' matches no page, and there are some below it: write '/drafts/*'"
		index   = "exclude '/drafts/index.html' matches no page: an index file counts as its folder, '/drafts/'"
		unused  = "exclude '/gone/*' matches no page: correct or remove it"
		rule    = "rule '/drafts' matches no page, and there are some below it: write '/drafts/*'"
		news    = "news '/drafts' matches no page, and there are some below it: write '/drafts/*'"
		refused = "crawl disallow '/drafts/' matches no page, and there are some below it: write '/drafts/*'"
	)
	type sources = []input
	links := sources{new(SourceLinks)}
	for name, test := range map[string]struct {
		exclude  []string
		rules    []string // all in one rule
		news     []string
		disallow []string
		sources  sources // that discover
		lists    string
		want     []string
	}{
		"a folder":                        {exclude: []string{"/drafts"}, lists: "/ /drafts/a", want: []string{drafts}},
		"a folder with a slash":           {exclude: []string{"/drafts/"}, lists: "/ /drafts/a", want: []string{slash}},
		"in other letters":                {exclude: []string{"/drafts"}, lists: "/ /Drafts/a", want: []string{drafts}},
		"nothing":                         {exclude: []string{"/gone/*", "/a"}, lists: "/ /a", want: []string{unused}},
		"several":                         {exclude: []string{"/drafts", "/gone/*", "/drafts/"}, lists: "/ /drafts/a", want: []string{drafts, slash, unused}},
		"a page with pages below it":      {exclude: []string{"/drafts"}, lists: "/ /drafts /drafts/a"},
		"a folder's page":                 {exclude: []string{"/drafts/"}, lists: "/ /drafts/ /drafts/a"},
		"one pattern within another":      {exclude: []string{"/drafts/*", "/drafts/a"}, lists: "/ /drafts/a"},
		"an index file":                   {exclude: []string{"/drafts/index.html"}, lists: "/ /drafts/", want: []string{index}},
		"a beginning of a name":           {exclude: []string{"/drafts/*", "/draft"}, lists: "/ /drafts/a", want: []string{"exclude '/draft' matches no page: correct or remove it"}},
		"a rule":                          {rules: []string{"/drafts", "/gone/*"}, lists: "/ /drafts/a", want: []string{rule}},
		"a rule that matches":             {rules: []string{"/drafts/*"}, lists: "/ /drafts/a"},
		"news":                            {news: []string{"/drafts", "/gone/*"}, lists: "/ /drafts/a", want: []string{news}},
		"news that match":                 {news: []string{"/drafts/*"}, lists: "/ /drafts/a"},
		"what links name":                 {exclude: []string{"/drafts", "/gone/*"}, sources: links, lists: "/ /drafts/a", want: []string{drafts}},
		"what links name, not to request": {disallow: []string{"/drafts/", "/gone/*"}, sources: links, lists: "/ /drafts/a", want: []string{refused}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(h *Handler) {
				h.Exclude, h.sources = test.exclude, test.sources
				if test.rules != nil {
					h.Rules = []Rule{{Match: test.rules, ChangeFreq: "daily"}}
				}
				if test.news != nil {
					h.News = &News{Publication: "The Example Times", Match: test.news}
				}
				if test.disallow != nil {
					h.Crawl = &Crawl{Disallow: test.disallow}
				}
			})
			paths := strings.Fields(test.lists)
			b.lists(paths...)
			if test.sources != nil { // the front page links to the others
				b.names("/")
				answer := b.pages
				b.pages = func(w http.ResponseWriter, r *http.Request) error {
					err := answer(w, r)
					for _, path := range paths {
						_, _ = fmt.Fprintf(w, `<a href="%s">`, path)
					}
					return err
				}
			}
			s := b.site("named.example")
			for range 3 {
				b.refresh(s)
			}
			var got []string
			for _, line := range b.logs.FilterMessageSnippet("matches no page").All() {
				got = append(got, line.Message)
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("the log warns %q, want %q", got, test.want)
			}
			if warnings := s.published().report.Warnings; !slices.Equal(warnings, test.want) {
				t.Errorf("the status warns %q, want %q", warnings, test.want)
			}
		})
	}
}

// TestUnusedPatternsOfSites: a pattern may be meant for another site of the handler, and a source that fails hides pages;
// what operators ask about is no page.
func TestUnusedPatternsOfSites(t *testing.T) {
	exclude := func(h *Handler) { h.Exclude = []string{"/gone/*"} }
	b := newBench(t, exclude)
	b.lists("/")
	first, second := b.site("named.example"), b.site("other.example")
	b.refresh(first)
	b.refresh(second)
	if got := b.logs.FilterMessageSnippet("matches no page").Len(); got != 0 {
		t.Errorf("two sites: got %d warnings, want none", got)
	}
	b = newBench(t, exclude)
	b.lists("/")
	asked := b.site("named.example")
	b.explained(asked.origin + "/gone/a")
	b.refresh(asked)
	if got := b.logs.FilterMessageSnippet("matches no page").Len(); got != 1 {
		t.Errorf("of what an operator asked: got %d warnings, want one", got)
	}
	b = newBench(t, exclude)
	b.source = func(context.Context, *Refresh, func(Page) error) error { return errors.New("unreadable") }
	b.refresh(b.site("named.example"))
	if got := b.logs.FilterMessageSnippet("matches no page").Len(); got != 0 {
		t.Errorf("a source that fails: got %d warnings, want none", got)
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
