package sitemap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// validate provisions a configuration with one sitemap handler.
func validate(t *testing.T, handler string) error {
	t.Helper()
	return validateApps(t, `"http": {"servers": {"srv0": {"listen": [":0"], "routes": [{"handle": [`+handler+`]}]}}}`)
}

func validateApps(t *testing.T, apps string) error {
	t.Helper()
	var cfg caddy.Config
	if err := caddy.StrictUnmarshalJSON([]byte(`{"apps": {`+apps+`}}`), &cfg); err != nil {
		t.Fatal(err)
	}
	return caddy.Validate(quiet(t, &cfg))
}

// TestSettings: JSON is checked, too, since no Caddyfile has checked it. What a Caddyfile can say,
// caddytest/adapt holds.
func TestSettings(t *testing.T) {
	t.Setenv("SITEMAP_BASE", "https://example.com")
	t.Setenv("SITEMAP_NONE", "")
	for _, test := range []struct {
		settings string
		want     string // how the error ends; "": there is none
	}{
		{``, ""},
		{`"sources": null`, ""},
		{`"sources": []`, ""},
		{`"base_url": "https://example.com:8443"`, ""},
		{`"base_url": "https://example.com:08443"`, ""},
		{`"base_url": "{env.SITEMAP_NONE}"`, "base_url: evaluated placeholder {env.SITEMAP_NONE} is empty"},
		{`"base_url": "https://{http.request.host}/docs"`, "base_url: unrecognized placeholder {http.request.host}"},
		{`"path": "/.xml"`, "path '/.xml': the name of a sitemap must end in .xml"},
		{`"max_urls": 1000000000`, ""},
		{`"max_urls": -1`, "max_urls is -1: use 1 to 1000000000"},
		{`"shard_urls": 1, "max_urls": 50001`, "max_urls is 50001: an index of 50000 shards of 1 pages holds no more than 50000"},
		{`"rules": [{"changefreq": "daily"}]`, "a rule needs at least one path pattern"},
		{`"rules": [{"match": ["/a"]}]`, "the rule for /a sets nothing: give it a changefreq or a priority"},
		{`"path": "/{env.SITEMAP_NONE}.xml"`, "use a clean path such as /sitemap.xml"},
		{`"path": "/a%2F%2Fsitemap.xml"`, "use a clean path such as /sitemap.xml"},
		{`"exclude": ["/{a,b}.html"]`, "exclude: path pattern '/{a,b}.html': placeholders are not replaced"},
		{`"rules": [{"match": ["/{http.vars.x}/*"], "changefreq": "daily"}]`, "rule: path pattern '/{http.vars.x}/*': placeholders are not replaced"},
		{`"sources": [{"source": "files", "at": "/x/"}, {"source": "files", "at": "/"}, {"source": "files", "at": "/a..b"}]`, ""},
		{`"sources": [{"source": "files", "root": "/"}]`, "the root is /, which holds more than a site: use a folder in it"},
		{`"sources": [{"source": "files", "root": "//srv/../"}]`, "the root is /, which holds more than a site: use a folder in it"},
		{`"sources": [{"source": "files", "root": "/", "fs": "default"}]`, "the root is /, which holds more than a site: use a folder in it"},
		{`"sources": [{"source": "files", "root": "/", "fs": "assets"}]`, ""},
		{`"sources": [{"source": "files", "root": "."}]`, ""},
		{`"sources": [{"source": "urls", "urls": ["https://any.example/"]}]`, ""},
		{`"base_url": "https://example.com", "sources": [{"source": "urls", "urls": ["/", "https://other.example/ priority=1"]}]`, "urls: line 2: 'https://other.example/ priority=1': it is on https://other.example, not on https://example.com"},
		{`"base_url": "{env.SITEMAP_BASE}", "sources": [{"source": "urls", "urls": ["https://other.example/"]}]`, "urls: line 1: 'https://other.example/': it is on https://other.example, not on https://example.com"},
		{`"crawl": {}`, ""},
		{`"crawl": {"off": true}`, ""},
		{`"crawl": {"rate": 0.5, "concurrency": 100, "disallow": ["logout", "/private/*"]}`, ""},
		{`"crawl": {"disallow": []}`, ""},
		{`"crawl": {"disallow": [""]}`, "crawl disallow '' is not a word: it needs a letter or a digit"},
		{`"crawl": {"rate": -1}`, "crawl rate is -1/s: use at least one an hour and at most 1000/s"},
		{`"crawl": {"rate": 1e-300}`, "crawl rate is 1e-300/s: use at least one an hour and at most 1000/s"},
		{`"crawl": {"concurrency": -1}`, "crawl concurrency is -1: use 1 to 100"},
		{`"lastmod": "auto"`, ""},
		{`"extensions": ["images", "alternates"]`, ""},
		{`"extensions": []`, ""},
		{`"crawl": {"off": true}, "lastmod": "mtime", "canonical": "ignore", "orphans": "list"`, ""},
		{`"base_url": "https://example.com/docs", "sources": [{"source": "urls", "urls": ["/", "https://Example.com:443/docs/a"]}]`, ""},
	} {
		settings := `{"handler": "sitemap"}`
		if test.settings != "" {
			settings = `{"handler": "sitemap", ` + test.settings + `}`
		}
		err := validate(t, settings)
		if test.want == "" && err != nil {
			t.Errorf("%s: got %v", test.settings, err)
		}
		if test.want != "" && (err == nil || !strings.HasSuffix(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %s", test.settings, err, test.want)
		}
	}
}

// TestHandlerMemory: a handler is small, as a configuration may have one for each of thousands of sites.
func TestHandlerMemory(t *testing.T) {
	const handlers = 100
	allocated := func(handlers int) uint64 {
		var routes []string
		for i := range handlers {
			routes = append(routes, fmt.Sprintf(`{"match": [{"host": ["%d.example"]}], "handle": [{"handler": "sitemap"}]}`, i))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := validateApps(t, `"http": {"servers": {"srv0": {"listen": [":0"], "routes": [`+strings.Join(routes, ",")+`]}}}`)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	one, all := allocated(1), allocated(1+handlers)
	const most = 128 << 10 // several times what Caddy takes to load it
	if each := (int64(all) - int64(one)) / handlers; each > most {
		t.Errorf("loading a handler allocates %d bytes, want at most %d", each, most)
	} else {
		t.Logf("loading a handler allocates %d bytes", each)
	}
}

// TestUnusedPatterns: a pattern that matches no path of a complete refresh is a warning, once, with what to write.
func TestUnusedPatterns(t *testing.T) {
	const (
		drafts  = "exclude '/drafts' matches no page, and there are some below it: write '/drafts/*'"
		slash   = "exclude '/drafts/' matches no page, and there are some below it: write '/drafts/*'"
		unused  = "exclude '/gone/*' matches no page: correct or remove it"
		rule    = "rule '/drafts' matches no page, and there are some below it: write '/drafts/*'"
		refused = "crawl disallow '/drafts/' matches no page, and there are some below it: write '/drafts/*'"
	)
	type sources = []input
	links := sources{new(SourceLinks)}
	for name, test := range map[string]struct {
		exclude  []string
		rules    []string // all in one rule
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
		"a beginning of a name":           {exclude: []string{"/drafts/*", "/draft"}, lists: "/ /drafts/a", want: []string{"exclude '/draft' matches no page: correct or remove it"}},
		"a rule":                          {rules: []string{"/drafts", "/gone/*"}, lists: "/ /drafts/a", want: []string{rule}},
		"a rule that matches":             {rules: []string{"/drafts/*"}, lists: "/ /drafts/a"},
		"what links name":                 {exclude: []string{"/drafts", "/gone/*"}, sources: links, lists: "/ /drafts/a", want: []string{drafts}},
		"what links name, not to request": {disallow: []string{"/drafts/", "/gone/*"}, sources: links, lists: "/ /drafts/a", want: []string{refused}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(h *Handler) {
				h.Exclude, h.sources = test.exclude, test.sources
				if test.rules != nil {
					h.Rules = []Rule{{Match: test.rules, ChangeFreq: "daily"}}
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
			if warnings := s.lastReport().Warnings; !slices.Equal(warnings, test.want) {
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
	if _, err := explain(httptest.NewRequest(http.MethodGet, "/", nil), b.app, asked.origin+"/gone/a"); err != nil {
		t.Fatal(err)
	}
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

// TestHint: the first rule that matches counts, and only where the source says nothing.
func TestHint(t *testing.T) {
	half, full := 0.5, 1.0
	b := newBench(t, func(h *Handler) {
		h.Rules = []Rule{{Match: []string{"/news/*"}, ChangeFreq: "hourly"}, {Match: []string{"/n*", "/b"}, ChangeFreq: "daily", Priority: &half}}
	})
	own, err := page.PriorityOf(full)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/news/a": "hourly ", "/new": "daily 0.5", "/b": "daily 0.5", "/c": " "} {
		p := page.Page{Path: path}
		b.handler.settings.hint(&p)
		if got := p.ChangeFreq.String() + " " + p.Priority.String(); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	p := page.Page{Path: "/b", Priority: own}
	if b.handler.settings.hint(&p); p.Priority != own {
		t.Errorf("got the priority %s, the source's is %s", p.Priority, own)
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
