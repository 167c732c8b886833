package sitemap

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/fileserver"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

// TestLocate: the root is the site's own where its file server uses it, else that of the
// only file server; never one of several. Placeholders are replaced as a file server does.
func TestLocate(t *testing.T) {
	serving := func(root string) fileServer { return fileServer{FileServer: new(fileserver.FileServer), root: root} }
	elsewhere := serving("/srv/c")
	elsewhere.at.hosts = []string{"c.example"}
	hiding := fileServer{FileServer: &fileserver.FileServer{Hide: []string{"{http.request.host}.bak"}, IndexNames: []string{"{http.request.host}.html"}}, root: siteRoot}
	const several, none = "several file roots (/srv/a, /srv/b)", "no file root"
	for name, test := range map[string]struct {
		before, behind string // roots that are set there
		servers        []fileServer
		want           string // root, file system, what is hidden and the index, or how it begins why there is none
	}{
		"a root alone":                 {"/srv/a", "", nil, "/srv/a  [] []"},
		"a root behind":                {"", "/srv/b", nil, "/srv/b  [] []"},
		"before and behind":            {"/srv/a", "/srv/b", nil, "/srv/a  [] []"},
		"a root and its server":        {"/srv/a", "", []fileServer{serving(siteRoot)}, "/srv/a  [] []"},
		"a root of a directive behind": {"", "/srv/a", []fileServer{serving("/srv/a")}, "/srv/a  [] []"},
		"a server of its own root":     {"", "", []fileServer{serving("/srv/{http.request.host}")}, "/srv/named.example  [] []"},
		"both, of different roots":     {"/srv/a", "", []fileServer{serving("/srv/b")}, "/srv/b  [] []"},
		"one of several is the site's": {"/srv/a", "", []fileServer{serving("/srv/b"), serving("/srv/a")}, "/srv/a  [] []"},
		"several, none is known":       {"", "", []fileServer{serving("/srv/a"), serving("/srv/b")}, several},
		"several roots behind":         {"", "/srv/a", []fileServer{serving(siteRoot), serving("/srv/b")}, several},
		"nothing":                      {"", "", nil, none},
		"a server without a root":      {"", "", []fileServer{serving("{none}")}, none},
		"a server of another host":     {"", "", []fileServer{elsewhere}, none},
		"another file system":          {"", "", []fileServer{{FileServer: &fileserver.FileServer{FileSystem: "own"}, root: siteRoot}}, ". own [] []"},
		"the default file system":      {"", "", []fileServer{{FileServer: &fileserver.FileServer{FileSystem: defaultFileSystem}, root: siteRoot}}, none},
		"names":                        {"/srv/a", "", []fileServer{serving("/srv/b"), hiding}, "/srv/a  [named.example.bak] [named.example.html]"},
	} {
		b := newBench(t, func(h *Handler) { h.mounts = mounts{{servers: test.servers}} })
		b.handler.wantsRoot = true
		set := func(r *http.Request, root string) {
			if root != "" {
				caddyhttp.SetVar(r.Context(), "root", root)
			}
		}
		b.app.fetchers[b.handler.server].routes = caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			set(r, test.before)
			return b.handler.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
				set(r, test.behind)
				return nil
			}))
		})
		p, _, err := b.site("named.example").fetcher.probe(t.Context(), probeResult{}, probeMode{})
		got := fmt.Sprintf("%s %s %s %s", p.root, p.fs, p.hide, p.index)
		if p.root == "" {
			got = p.noRoot
		}
		if err != nil || !strings.HasPrefix(filepath.ToSlash(got), test.want) || p.root != "" && p.unserved != (test.servers == nil) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, test.want)
		}
	}
}

// answering is a handler that answers some paths with a status, a type and a body.
type answer struct {
	status int
	header string // "Name: value"
	body   string
}

func answering(answers map[string]answer) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		a, known := answers[r.URL.Path]
		if !known {
			return caddyhttp.Error(http.StatusNotFound, nil)
		}
		if name, value, ok := strings.Cut(a.header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(a.status)
		_, err := io.WriteString(w, a.body)
		return err
	}
}

// TestProbe: what a site's routes say of it.
func TestProbe(t *testing.T) {
	const html, text = "Content-Type: text/html", "Content-Type: text/plain"
	canonical := func(url string) string { return `<!doctype html><link rel="canonical" href="` + url + `">` }
	for name, test := range map[string]struct {
		answers map[string]answer
		want    func(*probeResult) bool
	}{
		"nothing but the sitemap": {nil, func(p *probeResult) bool {
			return p.blocked == "" && p.canonicalHost == ""
		}},
		"a closed front page":     {map[string]answer{"/": {401, html, ""}}, func(p *probeResult) bool { return p.status == 401 && p.blocked == reasonRefused }},
		"a forbidden front page":  {map[string]answer{"/": {403, html, ""}}, func(p *probeResult) bool { return p.status == 403 && p.blocked == reasonRefused }},
		"a broken front page":     {map[string]answer{"/": {500, html, ""}}, func(p *probeResult) bool { return p.blocked == "" }},
		"a canonical":             {map[string]answer{"/": {200, html, canonical("https://WWW.named.example:8443/")}}, func(p *probeResult) bool { return p.canonicalHost == "www.named.example" }},
		"a canonical in a header": {map[string]answer{"/": {200, "Link: <https://www.named.example/>; rel=canonical", "<!doctype html>"}}, func(p *probeResult) bool { return p.canonicalHost == "www.named.example" }},
		"a canonical of an error": {map[string]answer{"/": {404, html, canonical("https://www.named.example/")}}, func(p *probeResult) bool { return p.canonicalHost == "" }},
		"a canonical in text":     {map[string]answer{"/": {200, text, canonical("https://www.named.example/")}}, func(p *probeResult) bool { return p.canonicalHost == "" }},

		"no robots.txt": {nil, func(p *probeResult) bool { return p.robots.rules.String() == "" && !p.robots.closed }},
		"rules": {map[string]answer{"/robots.txt": {200, text, "User-agent: *\nDisallow: /x\nSitemap: http://a.example/b.xml\n"}}, func(p *probeResult) bool {
			return !p.robots.rules.Allows("/x/a") && p.robots.rules.Allows("/y") && slices.Equal(p.robots.sitemaps, []string{"http://a.example/b.xml"})
		}},
		"rules for Googlebot":  {map[string]answer{"/robots.txt": {200, text, "User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nDisallow: /x\n"}}, func(p *probeResult) bool { return !p.robots.rules.Allows("/x/a") && p.robots.rules.Allows("/y") }},
		"a page for it":        {map[string]answer{"/robots.txt": {200, html, "<!doctype html>User-agent: *\nDisallow: /\n"}}, func(p *probeResult) bool { return p.robots.rules.String() == "" && !p.robots.closed }},
		"a forbidden one":      {map[string]answer{"/robots.txt": {403, text, "User-agent: *\nDisallow: /\n"}}, func(p *probeResult) bool { return p.robots.rules.String() == "" && !p.robots.closed }},
		"a broken one":         {map[string]answer{"/robots.txt": {503, text, ""}}, func(p *probeResult) bool { return p.robots.closed && p.blocked == "" }},
		"one that is too busy": {map[string]answer{"/robots.txt": {429, text, ""}}, func(p *probeResult) bool { return p.robots.closed }},
		"one behind a redirect": {map[string]answer{"/robots.txt": {301, "Location: /static/robots.txt", ""}, "/static/robots.txt": {200, text, "User-agent: *\nDisallow: /x\nSitemap: /b.xml\n"}}, func(p *probeResult) bool {
			return !p.robots.rules.Allows("/x/a") && p.robots.from == "http://named.example/static/robots.txt" && !p.robots.foreign && slices.Equal(p.robots.sitemaps, []string{"/b.xml"})
		}},
		"one behind an absolute redirect": {map[string]answer{"/robots.txt": {302, "Location: http://Named.example:80/r?v=1", ""}, "/r": {200, text, "User-agent: *\nDisallow: /x\n"}}, func(p *probeResult) bool {
			return !p.robots.rules.Allows("/x/a") && p.robots.from == "http://named.example/r?v=1"
		}},
		"one behind five redirects": {redirected(5, "User-agent: *\nDisallow: /x\n"), func(p *probeResult) bool { return !p.robots.rules.Allows("/x/a") && !p.robots.closed }},
		"one behind six redirects":  {redirected(6, "User-agent: *\nDisallow: /x\n"), func(p *probeResult) bool { return p.robots.rules.String() == "" && !p.robots.closed }},
		"a relative redirect after another": {map[string]answer{"/robots.txt": {301, "Location: /a/b", ""}, "/a/b": {307, "Location: c", ""}, "/a/c": {200, text, "User-agent: *\nDisallow: /x\n"}}, func(p *probeResult) bool {
			return !p.robots.rules.Allows("/x/a") && p.robots.from == "http://named.example/a/c"
		}},
		"a redirect to itself": {map[string]answer{"/robots.txt": {301, "Location: /robots.txt", ""}}, func(p *probeResult) bool { return p.robots.rules.String() == "" && !p.robots.closed }},
		"a redirect to a broken one": {map[string]answer{"/robots.txt": {301, "Location: /static/robots.txt", ""}, "/static/robots.txt": {503, text, ""}}, func(p *probeResult) bool {
			return p.robots.closed && p.robots.status == 503
		}},
		"a redirect to none":          {map[string]answer{"/robots.txt": {301, "Location: /static/robots.txt", ""}}, func(p *probeResult) bool { return p.robots.rules.String() == "" && !p.robots.closed }},
		"a redirect to a page":        {map[string]answer{"/robots.txt": {301, "Location: /", ""}, "/": {200, html, "<!doctype html>User-agent: *\nDisallow: /\n"}}, func(p *probeResult) bool { return p.robots.rules.String() == "" && !p.robots.closed }},
		"a redirect without a target": {map[string]answer{"/robots.txt": {301, text, "User-agent: *\nDisallow: /\n"}}, func(p *probeResult) bool { return p.robots.rules.String() == "" && p.robots.from == "" }},
		"a redirect to another host": {map[string]answer{"/robots.txt": {301, "Location: https://static.example/robots.txt", ""}, "/robots.txt/": {200, text, "User-agent: *\nDisallow: /\n"}}, func(p *probeResult) bool {
			return p.robots.rules.String() == "" && !p.robots.closed && p.robots.foreign && p.robots.from == "https://static.example/robots.txt"
		}},
		"a redirect to another port": {map[string]answer{"/robots.txt": {301, "Location: http://named.example:81/static/robots.txt", ""}, "/static/robots.txt": {200, text, "User-agent: *\nDisallow: /\n"}}, func(p *probeResult) bool {
			return p.robots.rules.String() == "" && p.robots.foreign
		}},
		"a long one, cut off": {map[string]answer{"/robots.txt": {200, text, "User-agent: *\n" + strings.Repeat("Disallow: /abcdefgh\n", robotstxt.MaxBody/20+1)}}, func(p *probeResult) bool { return !p.robots.rules.Allows("/abcdefgh") && p.robots.rules.Allows("/abc") }},
	} {
		b := newBench(t, nil)
		b.pages = answering(test.answers)
		s := b.site("named.example")
		got, _, err := s.fetcher.probe(t.Context(), probeResult{}, probeMode{})
		if err != nil || !test.want(&got) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		s.drop() // with a pause that a response has asked for
	}
}

// redirected is a robots.txt behind a number of redirects.
func redirected(times int, body string) map[string]answer {
	path := robotsPath
	answers := make(map[string]answer)
	for i := range times {
		next := fmt.Sprintf("/robots-%d.txt", i)
		answers[path] = answer{http.StatusFound, "Location: " + next, ""}
		path = next
	}
	answers[path] = answer{http.StatusOK, "Content-Type: text/plain", body}
	return answers
}

// TestRobotsOfBaseURL: a robots.txt behind a redirect is found by the URL that visitors know, and by that of the server.
func TestRobotsOfBaseURL(t *testing.T) {
	for _, location := range []string{"/b/rules", "https://shop.example/b/rules", "http://inside.example/docs/rules"} {
		b := newBench(t, func(h *Handler) {
			h.BaseURL = "https://shop.example/b"
			h.mounts = mounts{{hosts: []string{"inside.example"}, prefix: "/docs"}}
		})
		b.pages = answering(map[string]answer{
			"/robots.txt": {http.StatusMovedPermanently, "Location: " + location, ""},
			"/docs/rules": {http.StatusOK, "Content-Type: text/plain", "User-agent: *\nDisallow: /b/x\n"},
		})
		got := b.site("").fetcher.fetchRobots(t.Context())
		if got.rules.Allows("/b/x") || got.foreign {
			t.Errorf("%s: got %+v", location, got)
		}
	}
}

// TestRobotsElsewhere: the log says where robots.txt has to be, or to have the Sitemap line, if it is redirected; explain,
// where a rule comes from.
func TestRobotsElsewhere(t *testing.T) {
	const line = "User-agent: *\nDisallow: /x\n"
	sitemap := "Sitemap: http://named.example/sitemap.xml\n"
	for name, test := range map[string]struct {
		location, body string
		foreign, lacks int    // log lines
		from           string // in explain
	}{
		"on the site":           {"/static/robots.txt", line, 0, 1, "http://named.example/static/robots.txt"},
		"on the site, complete": {"/static/robots.txt", line + sitemap, 0, 0, "http://named.example/static/robots.txt"},
		"on another host":       {"http://static.example/robots.txt", line, 1, 1, ""},
	} {
		b := newBench(t, nil)
		b.names("/", "/x")
		b.pages = answering(map[string]answer{
			"/":                  {http.StatusOK, "Content-Type: text/html", "<!doctype html><title>home</title>"},
			"/robots.txt":        {http.StatusMovedPermanently, "Location: " + test.location, ""},
			"/static/robots.txt": {http.StatusOK, "Content-Type: text/plain", test.body},
		})
		s := b.site("named.example")
		b.wantPages(s, 1)
		foreign := b.logged("robots.txt redirects to another host, where its rules cannot be read, so all is allowed: serve it here")
		lacks := b.logged("requests for /robots.txt do not reach the sitemap handler, or are redirected: add this line to the file")
		if foreign != test.foreign || lacks != test.lacks {
			t.Errorf("%s: %d and %d lines say so, want %d and %d", name, foreign, lacks, test.foreign, test.lacks)
		}
		x, err := s.explain(t.Context(), "/x")
		if err != nil || x.RobotsTxt != test.from {
			t.Errorf("%s: the rule comes from %q, %v, want %q", name, x.RobotsTxt, err, test.from)
		}
		if x, err = s.explain(t.Context(), "/"); err != nil || x.RobotsTxt != "" {
			t.Errorf("%s: a page without a rule has one of %q, %v", name, x.RobotsTxt, err)
		}
	}
}

// TestCheckSetup: what an owner should know of a site that is listed, as visitors may know it by another scheme, and requests
// for robots.txt may go elsewhere.
func TestCheckSetup(t *testing.T) {
	off := false
	robotsElsewhere := probeResult{robots: robotsRules{unseen: true}}
	for name, test := range map[string]struct {
		host      string
		configure func(*Handler)
		probed    probeResult
		want      string // beginning of the only line; "": there is none
	}{
		"a public host":                    {"shop.com", nil, probeResult{}, "the sitemap of a public host lists http URLs"},
		"a host that visitors named":       {"visited.shop.com", nil, probeResult{}, "the sitemap of a public host lists http URLs"},
		"a host of a network":              {"shop", nil, probeResult{}, ""},
		"a host of a domain of networks":   {"wiki.corp", nil, probeResult{}, ""},
		"a host of this machine":           {"shop.localhost", nil, probeResult{}, ""},
		"with base_url":                    {"", func(h *Handler) { h.BaseURL = "https://shop.com" }, probeResult{}, ""},
		"of a server that trusts a proxy":  {"shop.com", func(h *Handler) { h.server.TrustedProxiesUnix = true }, probeResult{}, ""},
		"of a server that speaks https":    {"shop.com", func(h *Handler) { h.listener.scheme = "https" }, probeResult{}, ""},
		"refused":                          {"shop.com", nil, probeResult{blocked: reasonRefused}, ""},
		"robots.txt elsewhere":             {"shop.localhost", nil, robotsElsewhere, "requests for /robots.txt do not reach the sitemap handler, or are redirected: add this line"},
		"robots.txt elsewhere, and no use": {"shop.localhost", func(h *Handler) { h.RobotsTxt = &off }, robotsElsewhere, ""},
	} {
		b := newBench(t, func(h *Handler) {
			h.mounts = mounts{{hosts: []string{"shop.com"}}, {}}
			if test.configure != nil {
				test.configure(h)
			}
		})
		s := b.site(test.host)
		s.probed.Store(&test.probed)
		for range 2 {
			s.checkSetup()
		}
		var got []string
		for _, line := range b.logs.All() {
			got = append(got, line.Message)
		}
		isAsWanted := len(got) == 0
		if test.want != "" {
			isAsWanted = len(got) == 1 && strings.HasPrefix(got[0], test.want)
		}
		if !isAsWanted {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestProbeReaches: whether requests for the sitemap come to its handler, and what they
// get where they do not.
func TestProbeReaches(t *testing.T) {
	b := newBench(t, nil)
	h, s := b.handler, b.site("named.example")
	other := newBench(t, nil).handler
	through := func(first, then caddyhttp.MiddlewareHandler) caddyhttp.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) error {
			next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error { return then.ServeHTTP(w, r, b.pages) })
			return first.ServeHTTP(w, r, next)
		}
	}
	for name, test := range map[string]struct {
		routes  caddyhttp.HandlerFunc
		blocked string
		status  int
		err     error
	}{
		"its own":               {through(h, h), "", 0, nil},
		"another handler first": {through(other, h), reasonShadowed, 0, nil},
		"none":                  {b.pages, fmt.Sprintf(reasonUnreached, 404), 404, nil},
		"a login":               {status(http.StatusUnauthorized), reasonRefused, 401, nil},
		"a teapot":              {status(http.StatusTeapot), fmt.Sprintf(reasonUnreached, 418), 418, nil},
		"an aborted connection": {func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }, reasonRefused, 403, nil},
		"aborted behind the sitemap": {func(w http.ResponseWriter, r *http.Request) error {
			return h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }))
		}, reasonRefused, 403, nil},
	} {
		b.app.fetchers[h.server].routes = test.routes
		got, _, err := s.fetcher.probe(t.Context(), probeResult{}, probeMode{})
		if !errors.Is(err, test.err) || err == nil && (got.blocked != test.blocked || got.status != test.status) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// brokenFS is a file system of another module that opens nothing.
type brokenFS struct{ err error }

func (b brokenFS) Open(name string) (fs.File, error) {
	if b.err == nil {
		panic("it is broken")
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: b.err}
}

// TestUnreadableRoot: a refusal is explained by permissions only if the root cannot be opened for want of them.
func TestUnreadableRoot(t *testing.T) {
	b := newBench(t, nil)
	f := &b.site("named.example").fetcher
	for name, fsys := range map[string]fs.FS{
		"refuses": brokenFS{fs.ErrPermission},
		"lacks":   brokenFS{fs.ErrNotExist},
		"panics":  brokenFS{},
		"good":    fstest.MapFS{"srv/a.html": {}},
	} {
		b.handler.ctx.FileSystems().Register(name, fsys)
	}
	for name, test := range map[string]struct {
		at   siteFiles
		want string
	}{
		"permission denied":   {siteFiles{fs: "refuses", root: "srv"}, "cannot read srv of file system 'refuses': permission denied" + asUser()},
		"no root":             {siteFiles{fs: "refuses"}, ""},
		"it does not exist":   {siteFiles{fs: "lacks", root: "srv"}, ""},
		"it panics":           {siteFiles{fs: "panics", root: "srv"}, ""},
		"it can be read":      {siteFiles{fs: "good", root: "srv"}, ""},
		"no such file system": {siteFiles{fs: "none", root: "srv"}, ""},
		"on this machine":     {siteFiles{root: t.TempDir()}, ""},
	} {
		if got := f.unreadable(t.Context(), &test.at); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestEmptyLine: a site without pages is one line, unless its pages are yet to be fetched, or another line has the reason.
func TestEmptyLine(t *testing.T) {
	const none = "no page to list, so there is no sitemap"
	failed := merge.Result{Failed: []merge.InputError{{Name: "files"}}}
	for name, test := range map[string]struct {
		refresh report.Refresh
		last    report.Report
		blocked string
		want    string // the line
	}{
		"no page":                  {report.Refresh{}, report.Report{Result: outcome.Empty}, "", "warn " + none},
		"pages":                    {report.Refresh{}, report.Report{Result: outcome.Unchanged}, "", ""},
		"early":                    {report.Refresh{}, report.Report{Result: outcome.Empty, Pending: 1}, "", ""},
		"a reason":                 {report.Refresh{}, report.Report{Result: outcome.Empty, Reason: "gone"}, "", "warn gone"},
		"a reason, early":          {report.Refresh{}, report.Report{Result: outcome.Empty, Reason: "gone", Pending: 1}, "", "warn gone"},
		"a warning":                {report.Refresh{Warnings: []string{"no root"}}, report.Report{Result: outcome.Empty}, "", ""},
		"a warning of lines":       {report.Refresh{Warnings: []string{"some lines of a list" + refusedLines}}, report.Report{Result: outcome.Empty}, "", "warn " + none},
		"a warning, and a reason":  {report.Refresh{Warnings: []string{"no root"}}, report.Report{Result: outcome.Empty, Reason: "gone"}, "", "warn gone"},
		"a source failed":          {report.Refresh{Merged: failed}, report.Report{Result: outcome.Empty}, "", ""},
		"a login":                  {report.Refresh{}, report.Report{Result: outcome.Empty, Reason: reasonRefused}, reasonRefused, "info " + reasonRefused},
		"no front page":            {report.Refresh{}, report.Report{Result: outcome.Empty, Reason: reasonAbsent}, reasonAbsent, "info " + reasonAbsent},
		"blocked for other reason": {report.Refresh{}, report.Report{Result: outcome.Empty, Reason: "blocked"}, "blocked", "warn blocked"},
	} {
		b := newBench(t, nil)
		b.site("named.example").logEmpty(&test.refresh, &test.last, &probeResult{blocked: test.blocked})
		var got []string
		for _, line := range b.logs.All() {
			got = append(got, line.Level.String()+" "+line.Message)
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestMadeUpHost: of a host that only visitors named, nothing is listed before its front
// page answers, nor once the site says that there is no such host.
func TestMadeUpHost(t *testing.T) {
	b := newBench(t, nil)
	b.lists("/a")
	named, made := b.site("named.example"), b.site("made-up.example")
	if b.refresh(named) == nil || b.refresh(made) != nil {
		t.Errorf("got %d pages of the named site, %d of the other", pagesOf(named.published().snapshot), pagesOf(made.published().snapshot))
	}
	made.setReady()
	if _, err := made.snapshot(t.Context()); err != nil {
		t.Errorf("a request for the sitemap does not go on to the site: %v", err)
	}
	if r := made.published().report; r.Reason != reasonAbsent || b.logged(reasonAbsent) != 1 {
		t.Errorf("got reason %q, logs %v", r.Reason, b.logs.All())
	}
	b.lists("/", "/a")
	if b.refresh(made) == nil {
		t.Error("nothing is listed although the front page answers")
	}
	b.pages = status(http.StatusNotFound)
	b.wantPages(made, 0)
}

// TestSilentFrontPage: nothing is crawled of a host that only visitors named while its front page
// does not respond.
func TestSilentFrontPage(t *testing.T) {
	b := newBench(t, nil)
	b.lists("/", "/a")
	answer, fetched := b.pages, 0
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		switch r.URL.Path {
		case "/":
			panic("broken")
		case "/a":
			fetched++
		}
		return answer(w, r)
	}
	silent := b.site("visited.example")
	b.wantPages(silent, 0)
	if fetched != 0 {
		t.Errorf("%d pages were fetched", fetched)
	}
	silent.setReady()
	if _, err := silent.snapshot(t.Context()); !errors.Is(err, errNotReady) {
		t.Errorf("a request for the sitemap goes on to what does not respond: %v", err)
	}
	b.wantPages(b.site("named.example"), 1)
}

// TestByLinks: where no source is written, the front page decides whether pages are found by links.
func TestByLinks(t *testing.T) {
	const html = "text/html; charset=utf-8"
	withIndex, without := t.TempDir(), t.TempDir()
	for _, name := range []string{filepath.Join(withIndex, "index.html"), filepath.Join(without, "readme.html"), filepath.Join(without, "index.php")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	response := func(status int, contentType string, made bool) *crawl.Response {
		return &crawl.Response{Status: status, Header: http.Header{"Content-Type": {contentType}}, Made: made}
	}
	const links, files, before = "links", "files", "before"
	for name, test := range map[string]struct {
		front *crawl.Response
		at    siteFiles
		want  string
	}{
		"an application":             {response(200, html, true), siteFiles{unserved: true}, links},
		"beside files":               {response(200, html, true), siteFiles{root: without}, links},
		"a redirect of it":           {response(302, "", true), siteFiles{root: without}, links},
		"a file":                     {response(200, html, false), siteFiles{root: withIndex}, files},
		"a redirect":                 {response(302, "", false), siteFiles{root: without}, files},
		"a file, once admitted":      {response(200, html, true), siteFiles{root: withIndex}, files},
		"another index file":         {response(200, html, true), siteFiles{root: without, index: []string{"readme.html"}}, files},
		"a file that is not served":  {response(200, html, true), siteFiles{root: withIndex, unserved: true}, links},
		"an index file not in use":   {response(200, html, true), siteFiles{root: withIndex, index: []string{}}, links},
		"data of an application":     {response(200, "application/json", true), siteFiles{unserved: true}, before},
		"an error of an application": {response(502, html, true), siteFiles{unserved: true}, before},
		"not found in it":            {response(404, html, true), siteFiles{unserved: true}, before},
		"too many requests":          {response(429, html, true), siteFiles{unserved: true}, before},
		"an error":                   {response(500, html, false), siteFiles{root: withIndex}, before},
		"no response":                {nil, siteFiles{root: without}, before},
	} {
		for _, was := range []bool{false, true} {
			for _, written := range []bool{false, true} {
				b := newBench(t, func(h *Handler) { h.isDefault = !written })
				f := &b.site("named.example").fetcher
				want := (test.want == links || test.want == before && was) && !written
				if got := f.byLinks(t.Context(), test.front, &test.at, was); got != want {
					t.Errorf("%s, before %t, sources written %t: got %t, want %t", name, was, written, got, want)
				}
			}
		}
	}
}

// TestByLinksStays: a site is what it was while its upstream is down, also in a process that begins then, and its pages
// stay.
func TestByLinksStays(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.isDefault = true })
	isDown := false
	isRefused := false
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		upstream(r)
		if isDown {
			return caddyhttp.Error(http.StatusBadGateway, nil)
		}
		if isRefused {
			return caddyhttp.Error(http.StatusUnauthorized, nil)
		}
		switch r.URL.Path {
		case "/", "/a":
			w.Header().Set("Content-Type", contentHTML)
			fmt.Fprintf(w, `<!doctype html><title>%s</title><p>%s <a href="/a">a</a>`, r.URL.Path, r.URL.Path)
		default:
			return caddyhttp.Error(http.StatusNotFound, nil)
		}
		return nil
	}
	b.names("/readme.html") // which files would list
	b.app.folder = t.TempDir()
	s := b.site("named.example")
	b.wantPages(s, 2)
	wantLinks := func(when string) {
		t.Helper()
		if sources := s.published().report.Sources; len(sources) == 0 || sources[0].Source != "links" || s.discovery() != b.handler.byLinks {
			t.Errorf("%s: got sources %+v", when, sources)
		}
	}
	wantLinks("at first")
	isDown = true
	b.wantPages(s, 2)
	wantLinks("while it is down")
	restart := func() {
		b.app.mu.Lock()
		b.app.remove(s)
		b.app.mu.Unlock()
		s = b.site("named.example")
	}
	restart()
	b.wantPages(s, 2)
	wantLinks("in another process")
	isDown = false
	b.wantPages(s, 2)
	wantLinks("when it is back")
	isRefused = true
	if b.refresh(s) != nil {
		t.Error("pages are listed that are refused")
	}
	isDown = true
	restart()
	b.refresh(s)
	wantLinks("in another process, after pages were refused")
	const line = "no source is written, and no file is the front page: pages are found as by 'links'; write 'files' to list files instead"
	if n := b.logged(line); n != 3 { // in each process
		t.Errorf("the log says so %d times", n)
	}
}

// TestUpstreamIsAskedSometimes: of ten probes in a row, one asks an upstream for the sitemap's path and robots.txt, and each for
// the front page. A fresh one asks for all.
func TestUpstreamIsAskedSometimes(t *testing.T) {
	b := newBench(t, nil)
	b.handler.wantsRoot = true
	asked := make(map[string]int)
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		upstream(r)
		asked[r.URL.Path]++
		w.Header().Set("Content-Type", contentHTML)
		return nil
	}
	f := &b.site("named.example").fetcher
	var before probeResult
	probe := func(fresh bool) {
		got, _, err := f.probe(t.Context(), before, probeMode{isFresh: fresh})
		if err != nil {
			t.Fatal(err)
		}
		before = got
		b.clock = b.clock.Add(time.Minute)
	}
	for range 20 {
		probe(false)
	}
	if asked["/"] != 20 || asked["/robots.txt"] != 2 || asked["/sitemap.xml"] != 2 {
		t.Errorf("got %v", asked)
	}
	clear(asked)
	probe(true)
	if asked["/"] != 1 || asked["/robots.txt"] != 1 || asked["/sitemap.xml"] != 1 {
		t.Errorf("fresh: got %v", asked)
	}
}
