package sitemap

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

// explained is what the admin endpoint says of a URL.
func (b *bench) explained(of string) *explanation {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/", nil)
	answer, err := explain(r, b.app, url.Values{"url": {of}})
	if err != nil {
		b.Fatal(err)
	}
	return answer.(*explanation)
}

// TestExplainUnlisted: what is said of a page that is not listed names its own cause, and what helps.
func TestExplainUnlisted(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.sources = []input{new(SourceTraffic)} })
	b.handler.sources = append(b.handler.sources, &SourceFiles{Root: t.TempDir()})
	b.names("/")
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		path := r.URL.Path
		if path == "/robots.txt" || path == "/500.html" || path == "/none" {
			return caddyhttp.Error(http.StatusNotFound, nil)
		}
		w.Header().Set("Content-Type", contentHTML)
		_, err := io.WriteString(w, "<!doctype html><title>x</title><p>"+path+`<a href="/linked">one</a>`)
		return err
	}
	s := b.site("named.example")
	b.refresh(s)
	const (
		generally = "With 'links', a link to it is enough, from a page within 'depth'"
		otherPath = "Serve it at another path, or name it in 'urls'"
		inURLs    = "Name its path in 'urls' if it is a page."
	)
	for path, want := range map[string]struct{ reason, meaning, remedy string }{
		"/robots.txt":                          {"no page", "for crawlers", ""},
		"/404.html":                            {"error page", "leave out files with such names", inURLs},
		"/docs/50x.html":                       {"error page", "leave out files with such names", inURLs},
		"/google0123456789abcdef.html":         {"ownership file", "leave out files with such names", inURLs},
		"/500.html":                            {"no source names it", "no source named it", "Serve it first."},
		"/folder/":                             {"no source names it", "no source named it", generally},
		"/.hidden.html":                        {"dotfile", "leaves out files with such names", "Rename it if it is a page."},
		"/.git/x.html":                         {"dotfile", "leaves out files with such names", "Rename it if it is a page."},
		"/linked":                              {"not visited", "no visitor has requested it", "or add the source 'links'"},
		"/other":                               {"no source names it", "no source named it", generally},
		"/a%2Fb":                               {"no source names it", "no source named it", generally},
		"/a//b":                                {"no source names it", "Links and visits do not count", otherPath},
		"/a%5Cb":                               {"no source names it", "Links and visits do not count", otherPath},
		"/" + strings.Repeat("a/", 1000) + "b": {"no source names it", "Links and visits do not count", otherPath},
		"/none":                                {"no source names it", "no source named it", "Serve it first."},
	} {
		x := b.explained(s.origin + path)
		isRight := x.Reason == want.reason && strings.Contains(x.Meaning, want.meaning) && strings.Contains(x.Remedy, want.remedy)
		if want.remedy == "" {
			isRight = isRight && x.Remedy == ""
		}
		if !isRight {
			t.Errorf("%.40s: got %q, %q, %q, want %q", path, x.Reason, x.Meaning, x.Remedy, want)
		}
	}
}

// TestCovering: of a site and the one below its prefix, the one counts that lists the page, else the one below, unless it
// is blocked.
func TestCovering(t *testing.T) {
	b := newBench(t, nil)
	sites := make(map[string]*site)
	for prefix, paths := range map[string][]string{"": {"/docs/a"}, "/docs": {"/docs/a", "/docs/b"}} {
		s, err := b.app.site(siteID{b.handler, address{scheme: "https", host: "example.com", prefix: prefix}})
		if err != nil {
			t.Fatal(err)
		}
		s.serve(snapshotOf(t, 10, paths...))
		sites[prefix] = s
	}
	for _, test := range []struct{ path, blocked, want string }{
		{"/", "", ""},
		{"/docs/a", "", ""},
		{"/docs/b", "", "/docs"},
		{"/docs/b", "no", "/docs"},
		{"/docs/c", "", "/docs"},
		{"/docs/c", "no", ""},
	} {
		sites["/docs"].probed.Store(&probeResult{blocked: test.blocked})
		of, path, err := b.app.covering("https://example.com" + test.path)
		if of != sites[test.want] || path != test.path || err != nil {
			t.Errorf("%+v: got %s of %+v, %v", test, path, of.id, err)
		}
	}
}

// TestExplainOn: a path is explained on a site that is named.
func TestExplainOn(t *testing.T) {
	b := newBench(t, nil)
	b.lists("/a")
	for _, host := range []string{"00.example", "01.example", "alias.other"} {
		b.refresh(b.site(host))
	}
	b.site("alias.other").main.Store(b.site("00.example"))
	for _, test := range []struct {
		site, path string
		want       string // the URL that is explained
		status     int
		err        string
	}{
		{"http://00.example", "/a", "http://00.example/a", 0, ""},
		{"http://alias.other", "/a", "http://00.example/a", 0, ""},
		{"01", "/a b", "http://01.example/a%20b", 0, ""},
		{"none", "/a", "", 404, "no site has a URL with 'none'"},
		{"example", "/a", "", 400, "'example' is part of the URLs of several sites"},
		{"http://00.example", "a", "", 400, "'a' is not a path such as /page, which it must be with a site"},
		{"http://00.example", "http://00.example/a", "", 400, "is not a path such as /page"},
		{"", "http://none.example/a", "", 404, "no sitemap covers this URL"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		query := url.Values{"url": {test.path}}
		if test.site != "" {
			query.Set("site", test.site)
		}
		answer, err := explain(r, b.app, query)
		refused, _ := errors.AsType[caddy.APIError](err)
		if refused.HTTPStatus != test.status || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s on %s: got %v, want %d, %s", test.path, test.site, err, test.status, test.err)
		}
		x, isExplained := answer.(*explanation)
		if test.want != "" && (!isExplained || x.URL != test.want) {
			t.Errorf("%s on %s: got %+v, want %s", test.path, test.site, answer, test.want)
		}
	}
}

// TestExplainCleanURL: a page is explained by its clean URL only if that is known: with clean URLs off, there is
// no page at it.
func TestExplainCleanURL(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.Exclude = []string{"/drafts/*"} })
	b.lists("/known")
	s := b.site("named.example")
	b.refresh(s)
	blocked := b.site("blocked.example")
	blocked.probed.Store(&probeResult{blocked: "front page not found"})
	for _, test := range []struct {
		of                 *site
		path, form, reason string
	}{
		{s, "/known.html", "/known", "indexable"},
		{s, "/drafts/x.html", "/drafts/x.html", "excluded"},
		{s, "/drafts/x.html?utm_source=a", "/drafts/x.html", "excluded"},
		{s, "/drafts/index.html", "/drafts/", "excluded"},
		{s, "/logout.html", "/logout.html", reasonUnnamed},
		{blocked, "/page.html", "/page.html", "front page not found"},
	} {
		x, err := test.of.explain(t.Context(), test.path)
		if err != nil {
			t.Fatal(err)
		}
		if x.URL != test.of.origin+test.form || x.Reason != test.reason {
			t.Errorf("%s: got %s, %q, want %s, %q", test.path, x.URL, x.Reason, test.form, test.reason)
		}
	}
}

// TestReadPublished: what another publication has superseded while it was read is read again, up to three times.
func TestReadPublished(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	superseded := fmt.Errorf("a chunk: %w", record.ErrSuperseded)
	failed := errors.New("the disk failed")
	for name, test := range map[string]struct {
		errs []error // of one call after the other; then it succeeds
		want int     // calls
		err  error
	}{
		"at once":      {nil, 1, nil},
		"failed":       {[]error{failed}, 1, failed},
		"once":         {[]error{superseded}, 2, nil},
		"then failed":  {[]error{superseded, failed}, 2, failed},
		"again":        {[]error{superseded, superseded}, 3, nil},
		"all the time": {[]error{superseded, superseded, superseded}, 3, superseded},
	} {
		calls := 0
		err := s.readPublished(func(served *publication) error {
			if served != s.published() {
				t.Errorf("%s: call %d is for another publication", name, calls)
			}
			s.serve(listing(1)) // another one, which the next call is to have
			calls++
			if calls > len(test.errs) {
				return nil
			}
			return test.errs[calls-1]
		})
		if calls != test.want || err != test.err {
			t.Errorf("%s: got %d calls, %v, want %d, %v", name, calls, err, test.want, test.err)
		}
	}
}

// TestExplainNoName: a file whose name is nothing but an ending is no other spelling of its folder.
func TestExplainNoName(t *testing.T) {
	b := newBench(t, nil)
	b.lists("/", "/docs/")
	s := b.site("named.example")
	b.refresh(s)
	for path, want := range map[string]string{
		"/.html":           "/.html " + reasonUnnamed,
		"/docs/.html":      "/docs/.html " + reasonUnnamed,
		"/index.html":      "/ indexable",
		"/docs/index.html": "/docs/ indexable",
	} {
		x, err := s.explain(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(x.URL, s.origin) + " " + x.Reason; got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestExplainLLMs: an llms.txt that a source names is a document of ours, unless the option is off or the site has its own.
func TestExplainLLMs(t *testing.T) {
	const ours = "a document of the sitemap"
	for name, test := range map[string]struct {
		isOn, hasOwn bool
		want, now    string // the reason, and why it is not fetched now
	}{
		"off":                 {false, false, "not found", ""},
		"off, the site's own": {false, true, "indexable", ""},
		"on":                  {true, false, ours, "not fetched: " + ours},
		"on, the site's own":  {true, true, "indexable", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(h *Handler) { h.LLMs = test.isOn })
			b.lists("/", "/llms.txt")
			listed := b.pages
			b.pages = func(w http.ResponseWriter, r *http.Request) error {
				if r.URL.Path != "/llms.txt" {
					return listed(w, r)
				}
				if !test.hasOwn {
					return caddyhttp.Error(http.StatusNotFound, nil)
				}
				w.Header().Set("Content-Type", "text/plain")
				_, err := io.WriteString(w, "# Its own")
				return err
			}
			s := b.site("named.example")
			b.refresh(s)
			_ = b.handler.ServeHTTP(httptest.NewRecorder(), b.request(http.MethodGet, "/llms.txt", nil), b.pages)
			x := b.explained(s.origin + "/llms.txt")
			if x.Reason != test.want || x.Now[0].Error != test.now {
				t.Errorf("got %q, %+v, want %q, %q", x.Reason, x.Now, test.want, test.now)
			}
		})
	}
}

// TestExplainQuery: what is left out of a query is named, as the page is explained without it.
func TestExplainQuery(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.sources = []input{&SourceTraffic{Discovery: Discovery{Query: []string{"id"}}}} })
	b.lists("/product", "/item?id=7")
	s := b.site("named.example")
	b.refresh(s)
	for path, want := range map[string]string{
		"/product":                 "[]",
		"/product?id=7":            "[]",
		"/product?sort=a&utm_id=1": "[sort utm_id]",
		"/item?id=7&sort=a":        "[sort]",
		"/none?sort=a":             "[]",
	} {
		x, err := s.explainNow(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(x.QueryDropped); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestUnfetchedByRobots: a rule of robots.txt and an error of it are told apart.
func TestUnfetchedByRobots(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	for want, robots := range map[string]robotsRules{
		"": {},
		"robots.txt returns an error, so no page is fetched": {closed: true, status: 503},
		"robots.txt does not respond, so no page is fetched": {closed: true},
		"robots.txt disallows it":                            {rules: robotstxt.ReadRules([]byte("User-agent: *\nDisallow: /a"), "caddy-sitemap")},
	} {
		s.probed.Store(&probeResult{robots: robots})
		if got := s.unfetched(new(explanation), "/a"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestUnfetched: why a refresh does not fetch a page. What visitors alone know and what looks like an action is fetched where
// a source names it.
func TestUnfetched(t *testing.T) {
	visited := explanation{Visited: batch}
	for name, test := range map[string]struct {
		crawl Crawl
		x     explanation
		path  string
		want  string
	}{
		"crawl off":             {Crawl{Off: true}, explanation{}, "/a", "crawl is off"},
		"excluded":              {Crawl{}, explanation{Listed: true}, "/private/a", "excluded"},
		"a document":            {Crawl{}, explanation{}, "/sitemap.xml", reasonDocument},
		"only visited":          {Crawl{}, visited, "/a", "what only visitors know may be private"},
		"visited and fetched":   {Crawl{}, explanation{Visited: batch, Fetched: batch}, "/a", ""},
		"visited and linked":    {Crawl{}, explanation{Visited: batch, Linked: batch}, "/a", ""},
		"an action":             {Crawl{}, explanation{}, "/logout", "it looks like an action, 'logout'"},
		"an action, listed":     {Crawl{}, explanation{Listed: true}, "/logout", ""},
		"an action, named":      {Crawl{}, explanation{NamedBy: []string{"urls"}}, "/logout", ""},
		"a word of the setting": {Crawl{Disallow: []string{"secret"}}, explanation{}, "/secret", "'crawl disallow' has 'secret'"},
	} {
		b := newBench(t, func(h *Handler) {
			h.Crawl = &test.crawl
			h.Exclude = []string{"/private/*"}
		})
		s := b.site("named.example")
		if got := s.unfetched(&test.x, test.path); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestAddOther: the page that stands for another one has a URL, and of another host the setting that helps.
func TestAddOther(t *testing.T) {
	s := newBench(t, nil).site("named.example")
	for _, test := range []struct {
		found         indexing.Explanation
		other, remedy string
	}{
		{indexing.Explanation{}, "", ""},
		{indexing.Explanation{Other: "/b"}, "http://named.example/b", ""},
		{indexing.Explanation{Other: "https://b.example/b"}, "https://b.example/b", ""},
		{indexing.Explanation{Other: "https://b.example/b", Status: indexing.CanonicalForeign}, "https://b.example/b", "base_url https://b.example"},
	} {
		x := new(explanation)
		s.addOther(x, &test.found)
		if x.Other != test.other || !strings.Contains(x.Remedy, test.remedy) || (x.Remedy == "") != (test.remedy == "") {
			t.Errorf("%+v: got %q, %q", test.found, x.Other, x.Remedy)
		}
	}
}

// TestAddRecord: what a record says of a page.
func TestAddRecord(t *testing.T) {
	s := newBench(t, nil).site("named.example")
	dated := record.Selected{Listed: true, LastMod: 86400}
	day := dated
	day.Day = true
	const named = record.Named | 1<<16
	for name, test := range map[string]struct {
		rec     record.Record
		lastMod string
		namedBy int
	}{
		"a date":               {record.Record{Selected: dated, Flags: named}, "1970-01-02T00:00:00Z", 1},
		"a day":                {record.Record{Selected: day, Flags: named}, "1970-01-02", 1},
		"not named any more":   {record.Record{Absent: 1, Flags: named}, "", 0},
		"never named, no date": {record.Record{}, "", 0},
	} {
		x := &explanation{Listed: true}
		s.addRecord(x, &indexing.Explanation{Record: &test.rec})
		if x.LastMod != test.lastMod || len(x.NamedBy) != test.namedBy {
			t.Errorf("%s: got %q, named by %q", name, x.LastMod, x.NamedBy)
		}
	}
}

// TestClosedRobots: the remedy for a robots.txt that cannot be fetched goes by whether there is a status.
func TestClosedRobots(t *testing.T) {
	for status, want := range map[int]string{
		0:   "cannot fetch robots.txt, so no page is fetched: it does not respond; look at its upstream or disk",
		503: "cannot fetch robots.txt, so no page is fetched: let it return 200 or 404",
	} {
		b := newBench(t, nil)
		s := b.site("named.example")
		s.probed.Store(&probeResult{robots: robotsRules{closed: true, status: status}})
		s.logProbed(new(report.Refresh), new(report.Report))
		var got []string
		for _, line := range b.logs.FilterLevelExact(zapcore.WarnLevel).All() {
			got = append(got, line.Message)
		}
		if fmt.Sprint(got) != fmt.Sprint([]string{want}) {
			t.Errorf("status %d: got %q, want %q", status, got, want)
		}
	}
}

// TestExplainLastMod: of a listed page, the date that the document has, to the day or the second as there, or none, and the rule. Of one
// that is not listed, neither.
func TestExplainLastMod(t *testing.T) {
	b := newBench(t, nil)
	b.lists("/dated", "/day", "/undated", "/noindex")
	found := b.pages
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		const declared = `<!doctype html><meta property="article:modified_time" content="%s">`
		switch r.URL.Path {
		case "/dated":
			_, _ = fmt.Fprintf(w, declared, "2025-05-01T10:20:30Z")
		case "/day":
			_, _ = fmt.Fprintf(w, declared, "2025-05-01")
		case "/noindex":
			w.Header().Set("X-Robots-Tag", "noindex")
		}
		return found(w, r)
	}
	s := b.site("named.example")
	b.wantPages(s, 3)
	b.refresh(s)
	w := httptest.NewRecorder()
	if err := b.handler.ServeHTTP(w, b.request(http.MethodGet, "http://named.example/sitemap.xml", nil), nil); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][2]string{
		"/dated":   {"2025-05-01T10:20:30Z", "declared by the page"},
		"/day":     {"2025-05-01", "declared by the page"},
		"/undated": {"", "nothing says when it changed"},
		"/noindex": {"", ""},
	} {
		x, err := s.explain(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{x.LastMod, x.LastModBy}; got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
		entry := "<loc>http://named.example" + path + "</loc>"
		if x.LastMod != "" {
			entry += "<lastmod>" + x.LastMod + "</lastmod>"
		}
		if isListed := strings.Contains(w.Body.String(), entry+"</url>"); isListed != x.Listed {
			t.Errorf("%s: the document is %s, want %s (%t)", path, w.Body, entry, x.Listed)
		}
	}
}

// TestReasons: why a page is not listed. What holds for the whole site comes first.
func TestReasons(t *testing.T) {
	b := newBench(t, func(h *Handler) {
		h.Exclude = []string{"/private/*"}
		h.sources = []input{new(SourceTraffic)}
	})
	s := b.site("named.example")
	reloaded := newBench(t, nil).site("named.example") // without the source
	now := time.Unix(1e9, 0)
	good := outcome.Outcome{Result: outcome.Unchanged}
	for _, test := range []struct {
		name   string
		site   *site // nil: s
		path   string
		x      explanation // what is known of the page
		word   string      // of 'crawl disallow'
		probed probeResult
		last   outcome.Outcome
		want   string // the reason
		part   string // of what it means
		rule   string
	}{
		{name: "the site is blocked", path: "/a", probed: probeResult{blocked: "blocked"}, last: good, want: "blocked"},
		{
			name: "and the status says so", path: "/private/a", probed: probeResult{blocked: "blocked", status: 503}, last: good,
			want: "blocked", part: "returns status 503",
		},
		{name: "a document", path: "/sitemap.xml", last: good, want: "a document of the sitemap"},
		{name: "excluded", path: "/private/a", last: good, want: indexing.Excluded.String(), rule: "/private/*"},
		{name: "excluded, whatever its record says", path: "/private/a", x: explanation{Reason: "known"}, last: good, want: indexing.Excluded.String(), rule: "/private/*"},
		{name: "its record says why", path: "/a", x: explanation{Reason: "known"}, want: "known"},
		{name: "no refresh yet", path: "/a", want: "no refresh has succeeded yet, or the last one failed"},
		{
			name: "the last refresh failed", path: "/a", last: outcome.Fail(errors.New("the disk is full")),
			want: "no refresh has succeeded yet, or the last one failed", part: "the disk is full",
		},
		{name: "it was fetched", path: "/a", x: explanation{Fetched: now}, last: good, want: "waits for the next refresh"},
		{name: "it was fetched, and looks like an action", path: "/a", x: explanation{Fetched: now}, word: "delete", last: good, want: "waits for the next refresh"},
		{name: "an action", path: "/delete", word: "delete", last: good, want: indexing.Disallowed.String()},
		{name: "an action that was visited", path: "/delete", x: explanation{Visited: now}, word: "delete", last: good, want: indexing.Disallowed.String()},
		{name: "robots.txt", path: "/robots.txt", last: good, want: "no page"},
		{name: "visited only", path: "/a", x: explanation{Visited: now}, last: good, want: indexing.NoLinks.String()},
		{name: "visited before a reload", site: reloaded, path: "/a", x: explanation{Visited: now}, last: good, want: reasonUnnamed},
		{name: "unknown", path: "/a", last: good, want: reasonUnnamed},
	} {
		x := test.x
		cmp.Or(test.site, s).decideReason(&x, test.path, test.word, &test.probed, test.last)
		if x.Reason != test.want || !strings.Contains(x.Meaning, test.part) || x.Rule != test.rule {
			t.Errorf("%s: got %q, %q, %q, want %q, %q, %q", test.name, x.Reason, x.Meaning, x.Rule, test.want, test.part, test.rule)
		}
	}
}
