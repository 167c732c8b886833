package sitemap

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/fileserver"

	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

// TestLocate: the root is the site's own where its file server uses it, else that of the
// only file server; never one of several.
func TestLocate(t *testing.T) {
	serving := func(root string) fileServer { return fileServer{root: root} }
	for name, test := range map[string]struct {
		probe  probe
		root   string
		fs     string
		hide   string
		index  string
		noRoot string // how it begins
	}{
		"a root and its server":        {probe{root: "/srv/a", rooted: true, servers: []fileServer{serving("/srv/a")}}, "/srv/a", "", "[]", "[]", ""},
		"a root of a directive behind": {probe{root: "/srv/a", servers: []fileServer{serving("/srv/a")}}, "/srv/a", "", "[]", "[]", ""},
		"a root alone":                 {probe{root: "/srv/a", rooted: true}, "/srv/a", "", "[]", "[]", ""},
		"a server of its own root":     {probe{servers: []fileServer{serving("/srv/b")}}, "/srv/b", "", "[]", "[]", ""},
		"both, of different roots":     {probe{root: "/srv/a", rooted: true, servers: []fileServer{serving("/srv/b")}}, "/srv/b", "", "[]", "[]", ""},
		"one of several is the site's": {probe{root: "/srv/a", rooted: true, servers: []fileServer{serving("/srv/a"), serving("/srv/b")}}, "/srv/a", "", "[]", "[]", ""},
		"several, none is known":       {probe{servers: []fileServer{serving("/srv/a"), serving("/srv/b")}}, "", "", "[]", "[]", "several file roots (/srv/a, /srv/b)"},
		"several roots behind":         {probe{root: "/srv/a", servers: []fileServer{serving("/srv/a"), serving("/srv/b")}}, "", "", "[]", "[]", "several file roots (/srv/a, /srv/b)"},
		"nothing":                      {probe{}, "", "", "[]", "[]", "no file root"},
		"a server without a root":      {probe{servers: []fileServer{serving("")}}, "", "", "[]", "[]", "no file root"},
		"another file system": {probe{root: "a", rooted: true, fs: "site", servers: []fileServer{{root: "a", fs: "own", hide: []string{"x"}, index: []string{"home.html"}}}},
			"a", "own", "[x]", "[home.html]", ""},
		"the site's file system": {probe{root: "a", rooted: true, fs: "site"}, "a", "site", "[]", "[]", ""},
		"two servers of the root": {probe{root: "/srv/a", rooted: true, servers: []fileServer{
			{root: "/srv/a", hide: []string{"x"}}, {root: "/srv/b", hide: []string{"z"}}, {root: "/srv/a", hide: []string{"y"}, index: []string{"i"}}}},
			"/srv/a", "", "[x y]", "[i]", ""},
	} {
		var got probeResult
		got.locate(&test.probe)
		root := test.root
		if test.fs == "" {
			root = absolute(filepath.FromSlash(root))
		}
		if got.root != root || got.fs != test.fs || fmt.Sprint(got.hide) != test.hide || fmt.Sprint(got.index) != test.index || !strings.HasPrefix(got.noRoot, test.noRoot) || (got.noRoot == "") != (test.noRoot == "") {
			t.Errorf("%s: got %+v", name, got)
		}
		if test.noRoot == "" && got.unserved != (len(test.probe.servers) == 0) {
			t.Errorf("%s: unserved is %t", name, got.unserved)
		}
	}
}

// TestResolved: a file server's placeholders are replaced as it does so itself.
func TestResolved(t *testing.T) {
	repl := caddy.NewEmptyReplacer()
	repl.Set("http.vars.root", "/srv/site")
	repl.Set("name", "x")
	for name, test := range map[string]struct {
		server servedBy
		want   fileServer
	}{
		"the site's root":    {servedBy{FileServer: &fileserver.FileServer{Root: siteRoot}}, fileServer{root: "/srv/site"}},
		"a root behind":      {servedBy{FileServer: &fileserver.FileServer{Root: siteRoot}, root: "/srv/{name}"}, fileServer{root: "/srv/x"}},
		"its own root":       {servedBy{FileServer: &fileserver.FileServer{Root: "/srv/{name}"}, root: "/srv/other"}, fileServer{root: "/srv/x"}},
		"no value":           {servedBy{FileServer: &fileserver.FileServer{Root: "{none}"}}, fileServer{}},
		"a file system":      {servedBy{FileServer: &fileserver.FileServer{Root: "{none}", FileSystem: "{name}"}}, fileServer{root: ".", fs: "x"}},
		"the default system": {servedBy{FileServer: &fileserver.FileServer{Root: "{none}", FileSystem: "default"}}, fileServer{fs: "default"}},
		"names": {servedBy{FileServer: &fileserver.FileServer{Root: "/a", Hide: []string{"{name}.bak"}, IndexNames: []string{"{name}.html"}}},
			fileServer{root: "/a", hide: []string{"x.bak"}, index: []string{"x.html"}}},
	} {
		if got := test.server.resolved(repl); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
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
			return p.reached && p.refused == 0 && p.blocked() == "" && p.canonicalHost == ""
		}},
		"a closed front page":     {map[string]answer{"/": {401, html, ""}}, func(p *probeResult) bool { return p.refused == 401 && p.blocked() == reasonRefused }},
		"a forbidden front page":  {map[string]answer{"/": {403, html, ""}}, func(p *probeResult) bool { return p.refused == 403 }},
		"a broken front page":     {map[string]answer{"/": {500, html, ""}}, func(p *probeResult) bool { return p.refused == 0 }},
		"a canonical":             {map[string]answer{"/": {200, html, canonical("https://WWW.named.example:8443/")}}, func(p *probeResult) bool { return p.canonicalHost == "www.named.example" }},
		"a canonical in a header": {map[string]answer{"/": {200, "Link: <https://www.named.example/>; rel=canonical", "<!doctype html>"}}, func(p *probeResult) bool { return p.canonicalHost == "www.named.example" }},
		"a canonical of an error": {map[string]answer{"/": {404, html, canonical("https://www.named.example/")}}, func(p *probeResult) bool { return p.canonicalHost == "" }},
		"a canonical in text":     {map[string]answer{"/": {200, text, canonical("https://www.named.example/")}}, func(p *probeResult) bool { return p.canonicalHost == "" }},

		"no robots.txt": {nil, func(p *probeResult) bool { return p.robots.rules.Empty() && !p.robots.closed && p.robots.digest == 0 }},
		"rules": {map[string]answer{"/robots.txt": {200, text, "User-agent: *\nDisallow: /x\nSitemap: http://a.example/b.xml\n"}}, func(p *probeResult) bool {
			return !p.robots.rules.Allows("/x/a") && p.robots.rules.Allows("/y") && p.robots.digest != 0 && slices.Equal(p.robots.sitemaps, []string{"http://a.example/b.xml"})
		}},
		"rules for Googlebot":  {map[string]answer{"/robots.txt": {200, text, "User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nDisallow: /x\n"}}, func(p *probeResult) bool { return !p.robots.rules.Allows("/x/a") && p.robots.rules.Allows("/y") }},
		"a page for it":        {map[string]answer{"/robots.txt": {200, html, "<!doctype html>User-agent: *\nDisallow: /\n"}}, func(p *probeResult) bool { return p.robots.rules.Empty() && !p.robots.closed }},
		"a forbidden one":      {map[string]answer{"/robots.txt": {403, text, "User-agent: *\nDisallow: /\n"}}, func(p *probeResult) bool { return p.robots.rules.Empty() && !p.robots.closed }},
		"a broken one":         {map[string]answer{"/robots.txt": {503, text, ""}}, func(p *probeResult) bool { return p.robots.closed && p.blocked() == "" }},
		"one that is too busy": {map[string]answer{"/robots.txt": {429, text, ""}}, func(p *probeResult) bool { return p.robots.closed }},
		"a long one, cut off":  {map[string]answer{"/robots.txt": {200, text, "User-agent: *\n" + strings.Repeat("Disallow: /abcdefgh\n", robotstxt.MaxBody/20+1)}}, func(p *probeResult) bool { return !p.robots.rules.Allows("/abcdefgh") && p.robots.rules.Allows("/abc") }},
	} {
		b := newBench(t, nil)
		b.pages = answering(test.answers)
		got, err := b.site("named.example").fetcher.probe(t.Context())
		if err != nil || !test.want(&got) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// TestProbeReaches: whether requests for the sitemap come to its handler, and what they
// get where they do not.
func TestProbeReaches(t *testing.T) {
	b := newBench(t, nil)
	h, s := b.handler, b.site("named.example")
	other := newBench(t, func(h *Handler) { h.Exclude = []string{"/x"} }).handler
	twin := newBench(t, nil).handler
	other.settings.digest = 1
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
		same    *Handler
		err     error
	}{
		"its own":               {through(h, h), "", 0, nil, nil},
		"another handler first": {through(other, h), reasonShadowed, 0, nil, nil},
		"one of equal settings": {through(twin, h), reasonShadowed, 0, twin, nil},
		"none":                  {b.pages, reasonUnreached, 404, nil, nil},
		"a login":               {status(http.StatusUnauthorized), reasonRefused, 401, nil, nil},
		"a teapot":              {status(http.StatusTeapot), reasonUnreached, 418, nil, nil},
		"an aborted connection": {func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }, "", 0, nil, errAborted},
		"aborted behind the sitemap": {func(w http.ResponseWriter, r *http.Request) error {
			return h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }))
		}, "", 0, nil, nil},
	} {
		b.app.fetchers[h.server].routes = test.routes
		got, err := s.fetcher.probe(t.Context())
		if !errors.Is(err, test.err) || err == nil && (got.blocked() != test.blocked || got.status != test.status || got.same != test.same) {
			t.Errorf("%s: got %+v (%s), %v", name, got, got.blocked(), err)
		}
	}
}

// TestProbeRoot: the root is that which holds where the files are served.
func TestProbeRoot(t *testing.T) {
	root := func(w http.ResponseWriter, r *http.Request, root string) { caddyhttp.SetVar(r.Context(), "root", root) }
	for name, test := range map[string]struct {
		before, behind string // roots that are set there
		wants          bool   // a source takes the root
		mounts         mounts
		want           string
	}{
		"before":                {"/srv/a", "", true, mounts{{}}, "/srv/a"},
		"behind":                {"", "/srv/b", true, mounts{{}}, "/srv/b"},
		"before and behind":     {"/srv/a", "/srv/b", true, mounts{{}}, "/srv/a"},
		"of no interest":        {"", "/srv/b", false, mounts{{}}, ""},
		"of the file server":    {"", "", true, mounts{{servers: []servedBy{{FileServer: &fileserver.FileServer{Root: "/srv/{http.request.host}"}}}}}, "/srv/named.example"},
		"of the server's root":  {"/srv/a", "", true, mounts{{servers: []servedBy{{FileServer: &fileserver.FileServer{Root: siteRoot}}}}}, "/srv/a"},
		"of another host alone": {"", "", true, mounts{{servers: []servedBy{{FileServer: &fileserver.FileServer{Root: "/srv/c"}, hosts: []string{"c.example"}}}}}, ""},
	} {
		b := newBench(t, func(h *Handler) { h.mounts = test.mounts })
		b.handler.wantsRoot = test.wants
		b.app.fetchers[b.handler.server].routes = caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			root(w, r, test.before)
			return b.handler.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
				if test.behind != "" {
					root(w, r, test.behind)
				}
				return nil
			}))
		})
		got, err := b.site("named.example").fetcher.probe(t.Context())
		if err != nil || got.root != test.want {
			t.Errorf("%s: got %q (%s), %v, want %q", name, got.root, got.noRoot, err, test.want)
		}
	}
}

// TestMadeUpHost: of a host that only visitors named, nothing is listed before its front
// page answers.
func TestMadeUpHost(t *testing.T) {
	b := newBench(t, nil)
	b.lists("/a")
	named, made := b.site("named.example"), b.site("made-up.example")
	if b.refresh(named) == nil || b.refresh(made) != nil {
		t.Errorf("got %d pages of the named site, %d of the other", pagesOf(named.state.Index.Load()), pagesOf(made.state.Index.Load()))
	}
	if r := made.lastReport(); r.Reason != reasonAbsent || b.logged(reasonAbsent) != 1 {
		t.Errorf("got reason %q, logs %v", r.Reason, b.logs.All())
	}
	b.lists("/", "/a")
	if b.refresh(made) == nil {
		t.Error("nothing is listed although the front page answers")
	}
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
			panic(http.ErrAbortHandler)
		case "/a":
			fetched++
		}
		return answer(w, r)
	}
	b.wantPages(b.site("visited.example"), 0)
	if fetched != 0 {
		t.Errorf("%d pages were fetched", fetched)
	}
	b.wantPages(b.site("named.example"), 1)
}
