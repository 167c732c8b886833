package sitemap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

// tree writes files below a new folder; a content that begins with "->" is a link.
func tree(t *testing.T, contents map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		full := filepath.Join(root, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(full), 0o755)
		if target, isLink := strings.CutPrefix(contents[name], "->"); isLink {
			err = errors.Join(err, os.Symlink(target, full))
		} else {
			err = errors.Join(err, os.WriteFile(full, []byte(contents[name]), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// whole is an HTML page with something in its head.
func whole(title, head, body string) string {
	return "<!doctype html><title>" + title + "</title>" + head + "<p>" + title + body
}

// check asks for a page until it is explained as it is wanted, since refreshes come in
// the background.
func (u unheard) check(t *testing.T, url, reason string, contains ...string) *Explanation {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		x, err := u.app.explain(t.Context(), url)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		got := show(x)
		lacks := slices.DeleteFunc(slices.Clone(contains), func(want string) bool { return strings.Contains(got, want) })
		if x.Reason == reason && x.Listed == (reason == "") && x.Explanation != "" && len(lacks) == 0 {
			return x
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: got %s, want the reason %q, and %q in it", url, got, reason, lacks)
			return x
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// show is an explanation as JSON that people can read.
func show(x *Explanation) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(x); err != nil {
		return err.Error()
	}
	return b.String()
}

const explainedHead = `{
	sitemap {
		state off
	}
}
`

// TestExplainFiles: every reason that a site of files can give.
func TestExplainFiles(t *testing.T) {
	root := tree(t, map[string]string{
		"index.html":       whole("home", "", `<a href="/linked.html">x</a>`),
		"linked.html":      whole("linked", "", ""),
		"old.html":         whole("old", "", ""),
		"gone.html":        whole("gone", "", ""),
		"private.html":     whole("private", "", ""),
		"broken.html":      whole("broken", "", ""),
		"plain.html":       whole("plain", "", ""),
		"silent.html":      whole("silent", "", ""),
		"part.html":        "<p>part",
		"noindex.html":     whole("noindex", `<meta name="robots" content="noindex">`, ""),
		"tagged.html":      whole("tagged", "", ""),
		"refreshes.html":   whole("refreshes", `<meta http-equiv="refresh" content="0; url=/">`, ""),
		"away.html":        whole("away", `<link rel="canonical" href="https://other.example/">`, ""),
		"here.html":        whole("here", `<link rel="canonical" href="/linked.html">`, ""),
		"twin.html":        whole("twin", "", ""),
		"twin/index.html":  whole("twin", "", ""),
		"robots.txt":       "User-agent: *\nDisallow: /forbidden\n",
		"forbidden.html":   whole("forbidden", "", ""),
		"admin/users.html": whole("users", "", ""),
		"omitted/a.html":   whole("omitted", "", ""),
		"late.html":        whole("late", "", ""),

		"text.txt":                    "x",
		"drafts/a.html":               "x",
		"draft.html":                  "x",
		"secret.html":                 "x",
		".dot.html":                   "x",
		".git/a.html":                 "x",
		"_part.html":                  "x",
		"_parts/deep/a.html":          "x",
		"node_modules/a.html":         "x",
		"404.html":                    "x",
		"google0123456789abcdef.html": "x",
		"empty.html":                  "",
		"dangling.html":               "->nowhere",
		"copy.html":                   "->linked.html",
		"loop":                        "->.",
		"a b@c.html":                  whole("odd", "", ""),
	})
	u := hush(t, explainedHead+`http://named.example {
		root * `+root+`
		redir /old.html /linked.html
		error /gone.html 404
		error /private.html 401
		error /broken.html 500
		abort /silent.html
		header /plain.html >Content-Type text/plain
		header /tagged.html X-Robots-Tag noindex
		sitemap {
			omit /omitted/* /print/*
			files {
				exclude /drafts/* /draft.html
			}
		}
		file_server {
			hide secret.html
		}
	}`)
	const base = "http://named.example"
	for _, test := range []struct {
		path, reason string
		contains     []string
	}{
		{"/", "", []string{`"document":"http://named.example/sitemap.xml"`, `"verified":true`, `"asked_at":"20`, `"answer":{"status":200,"content_type":"text/html; charset=utf-8"}`}},
		{"", "", nil},
		{"/linked.html", "", []string{`"linked":true`}},
		{"/linked.html#part", "", []string{"names a place in a page"}},
		{"/./%6Cinked.html", "", []string{"as sitemaps write it"}},
		{"/a%20b@c.html", "", nil},
		{"/old.html", "redirects", []string{`"status":302`, `"location":"/linked.html"`}},
		{"/gone.html", "not found", []string{`"status":404`}},
		{"/private.html", "refused to strangers", []string{`"status":401`}},
		{"/broken.html", "answers with an error", []string{`"status":500`}},
		{"/plain.html", "not HTML", []string{`"content_type":"text/plain"`}},
		{"/silent.html", "waits for its own answer", []string{"gave no answer", `"error":"the connection was aborted"`}},
		{"/part.html", "no whole document", nil},
		{"/noindex.html", "noindex", []string{`"noindex":true`}},
		{"/tagged.html", "noindex", []string{`"noindex":true`}},
		{"/refreshes.html", "refreshes to another page", nil},
		{"/away.html", "canonical on another site", []string{"base_url"}},
		{"/here.html", "canonical is another page", []string{`"canonical":"http://named.example/linked.html"`, "in its stead: http://named.example/linked.html."}},
		{"/twin/", "duplicate", []string{"which stays: http://named.example/twin.html."}},
		{"/forbidden.html", "forbidden by robots.txt", []string{"Disallow: /forbidden", "not asked for now"}},
		{"/admin/users.html", "never asked for", []string{"ask never", "not asked for now"}},
		{"/omitted/a.html", "omitted", []string{"matches it: /omitted/*."}},
		{"/sitemap.xml", "a document of the sitemap", nil},
		{"/sitemap-0123456789ab.xml", "a document of the sitemap", nil},
		{"/" + strings.Repeat("a", 2047), "URL too long", []string{"2068 bytes"}},

		{"/text.txt", "not included", []string{"include"}},
		{"/drafts/a.html", "excluded", []string{"The folder /drafts/", "The pattern is /drafts/*."}},
		{"/draft.html", "excluded", []string{"The pattern is /draft.html."}},
		{"/secret.html", "hidden", nil},
		{"/.dot.html", "dotfile", nil},
		{"/.git/a.html", "dotfile", []string{"The folder /.git/"}},
		{"/_part.html", "underscore name", nil},
		{"/_parts/deep/a.html", "underscore name", []string{"The folder /_parts/"}},
		{"/_parts/", "underscore name", []string{"Its folder, /_parts/"}},
		{"/node_modules/a.html", "dependency folder", nil},
		{"/404.html", "error page", nil},
		{"/google0123456789abcdef.html", "ownership file", nil},
		{"/empty.html", "empty", nil},
		{"/dangling.html", "dangling link", nil},
		{"/copy.html", "link to a listed page", nil},
		{"/loop/linked.html", "link loop", []string{"The folder /loop/"}},
		{"/nowhere.html", "no source names it", []string{"There is no such file under " + filepath.ToSlash(root), `"source":"files"`, `"status":404`}},
		{"/LATE.html", "no source names it", []string{"/late.html, which differs in case"}},
		{"/index.html", "listed by another path", []string{"listed as http://named.example/."}},
		{"/linked", "listed by another path", []string{"listed as http://named.example/linked.html."}},
		{"/linked.html?a=1", "listed by another path", []string{"listed as http://named.example/linked.html."}},
		{"/noindex", "noindex", []string{"goes by the path /noindex.html, and is not listed"}},
	} {
		u.check(t, base+test.path, test.reason, test.contains...)
	}
	// What differs between what is remembered and what is there now.
	t.Run("now", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(root, "new.html"), []byte(whole("new", "", "")), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(root, "late.html")); err != nil {
			t.Fatal(err)
		}
		u.check(t, base+"/new.html", "waits for the next refresh", `"status":200`)
		u.check(t, base+"/late.html", "", "But it answers 404 now ('not found'): the sitemap drops it")
		if err := os.WriteFile(filepath.Join(root, "part.html"), []byte(whole("part", "", "")), 0o644); err != nil {
			t.Fatal(err)
		}
		u.check(t, base+"/part.html", "no whole document", "its file is read again at the next refresh")
	})
}

// TestExplainSites: what is true of a whole site, and which site a URL is of.
func TestExplainSites(t *testing.T) {
	root := tree(t, map[string]string{
		"index.html":  whole("home", "", ""),
		"a.html":      whole("a", "", ""),
		"docs/b.html": whole("b", "", ""),
		"list.txt":    "/listed lastmod=2026-01-02 changefreq=weekly priority=0.7\nnonsense\n",
	})
	u := hush(t, explainedHead+`
	(files) {
		root * `+root+`
	}
	http://refused.example {
		import files
		error / 403
		sitemap
		file_server
	}
	http://unreached.example {
		import files
		route {
			respond /sitemap.xml "mine"
			sitemap {
				omit /a.html
			}
			file_server
		}
	}
	http://twice.example {
		import files
		route {
			sitemap
			sitemap {
				omit /docs/*
				path /sitemap.xml
			}
			sitemap {
				path /docs/sitemap.xml
			}
			file_server
		}
	}
	http://small.example {
		import files
		sitemap {
			max_urls 1
		}
		file_server
	}
	http://off.example {
		import files
		sitemap {
			ask off
			lastmod mtime
			files
			urls `+filepath.Join(root, "list.txt")+`
		}
		file_server
	}
	http://orphans.example {
		import files
		sitemap {
			orphans omit
		}
		file_server
	}
	http://lost.example {
		import files
		sitemap {
			urls /a.html /missing.txt
			urls {
				/a.html
			}
		}
		file_server
	}
	http://rootless.example {
		sitemap {
			files
			urls {
				/a.html
			}
		}
		respond 200
	}
	http://example.org, http://www.example.org {
		import files
		sitemap
		file_server
	}
	http://in.example {
		handle_path /manual/* {
			import files
			sitemap
			file_server
		}
		respond 404
	}
	http://based.example {
		import files
		sitemap {
			base_url https://public.example/shop
		}
		file_server
	}`)
	for _, test := range []struct {
		url, reason string
		contains    []string
	}{
		{"http://refused.example/a.html", siteRefuses, []string{"answers 403 to a stranger"}},
		{"http://unreached.example/a.html", siteUnreached, []string{"status 200", "would not be listed anyway: omitted"}},
		{"http://twice.example/a.html", "", []string{"of the sitemap http://twice.example/docs/sitemap.xml: outside the sitemap's folder", "of the sitemap http://twice.example/sitemap.xml: the sitemap's handler is not reached"}},
		{"http://twice.example/docs/b.html", "", []string{`"document":"http://twice.example/docs/sitemap.xml"`, "of the sitemap http://twice.example/sitemap.xml: listed"}},
		{"http://small.example/docs/b.html", "over max_urls", []string{"as it may, 1,"}},
		{"http://off.example/a.html", "", []string{"by its name alone", `"lastmod":"20`, "ask is off"}},
		{"http://off.example/listed", "", []string{`"lastmod":"2026-01-02"`, `"changefreq":"weekly"`, `"priority":"0.7"`}},
		{"http://off.example/unlisted", "no source names it", []string{"none of its lines names the page; 1 of them are no URLs of the site", `{"source":"files","says":"there is no such file under`}},
		{"http://orphans.example/a.html", "nothing links to it", []string{"orphans omit"}},
		{"http://lost.example/x.html", "no source names it", []string{"cannot be read", "missing.txt"}},
		{"http://rootless.example/x.html", "no source names it", []string{"no file root"}},
		{"http://www.example.org/a.html", "", []string{"the sitemap of http://example.org stands for that of http://www.example.org", `"url":"http://example.org/a.html"`}},
		{"http://in.example/manual/a.html", "", []string{`"document":"http://in.example/manual/sitemap.xml"`}},
		{"http://in.example/a.html", "outside the sitemap's folder", []string{"what lies below http://in.example/manual/ alone"}},
		{"https://public.example/a.html", "outside the sitemap's folder", []string{"https://public.example/shop/"}},
		{"http://based.example/a.html", "outside the sitemap's folder", nil},
	} {
		u.check(t, test.url, test.reason, test.contains...)
	}
	for url, want := range map[string]string{
		"":                              "an absolute one is wanted",
		"/a.html":                       "an absolute one is wanted",
		"a.example/b":                   "an absolute one is wanted",
		"//small.example/a.html":        "an absolute one is wanted",
		"javascript:alert(1)":           "an absolute one is wanted",
		"file:///etc/passwd":            "an absolute one is wanted",
		"http:///a":                     "an absolute one is wanted",
		"http:a":                        "an absolute one is wanted",
		"http://u:p@small.example/":     "a user name",
		"http://small.example/\x00":     "control character",
		"http://small.example/\r\nX: y": "control character",
		"http://small.example/%zz":      "escape",
		"http://small.example/?a=%zz":   "hexadecimal",
		"http://small.example:x/":       "port",
		"http://small.example:99999/":   "host is none",
		"http://small example/":         "host",
		"http://<script>/":              "host",
		"http://" + strings.Repeat("a", 1<<20) + "/":         "more than 65536 bytes",
		"http://small.example/" + strings.Repeat("a", 1<<20): "more than 65536 bytes",
	} {
		_, err := u.app.explain(t.Context(), url)
		if !errors.Is(err, errNotURL) || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 || strings.ContainsAny(err.Error(), "\x00\r\n<") {
			t.Errorf("%.50q: got %.400v, want %q", url, err, want)
		}
	}
	for _, url := range []string{"http://other.example/", "https://small.example/", "http://small.example:8080/", "https://public.example:8443/shop/"} {
		_, err := u.app.explain(t.Context(), url)
		if !errors.Is(err, errNoSite) || !strings.Contains(err.Error(), "there are 12 sites, such as http://") {
			t.Errorf("%s: got %v", url, err)
		}
	}
	if x := u.check(t, "http://small.example:80", ""); x.Path != "/" {
		t.Errorf("got %q", x.Path)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := u.app.explain(ctx, "http://small.example/a.html"); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: got %v", err)
	}
}

// TestExplainDiscovered: what visitors and links showed.
func TestExplainDiscovered(t *testing.T) {
	root := tree(t, map[string]string{
		"index.html": whole("home", "", `<a href="/app/1">x</a><a href="/app/soft">y</a><a href="/app/lost">z</a>`),
	})
	u := hush(t, explainedHead+`http://named.example {
		root * `+root+`
		header /app/* Content-Type text/html
		handle /app/1 {
			respond "<!doctype html><title>1</title><a href='/app/2'>2</a>"
		}
		handle /app/2 {
			respond "<!doctype html><title>2</title><a href='/app/3'>3</a>"
		}
		handle /app/lost {
			error 404
		}
		handle /app/* {
			respond "<!doctype html><title>nothing</title>nothing here"
		}
		handle {
			sitemap {
				files
				links {
					depth 2
					query page
				}
				traffic {
					unlinked /app/reports/*
				}
			}
			file_server
		}
	}`)
	const base = "http://named.example"
	u.check(t, base+"/app/1", "", `"discovered":true`, `"linked":true`)
	u.check(t, base+"/app/2", "")
	s := u.app.sitesFor(&askedURL{scheme: "http", host: "named.example", path: "/"})[0]
	s.visit(u.app.now(), 1, "/app/token", "/app/reports/1")
	for _, test := range []struct {
		path, reason string
		contains     []string
	}{
		{"/app/soft", "soft 404", []string{"a page that cannot exist"}},
		{"/app/lost", "not found", nil},
		{"/app/3", tooManyLinks, []string{"3 links away", "'links' follows 2"}},
		{"/app/unknown", "nothing links to it", []string{`"source":"traffic","says":"no visit to it counted"`}},
		{"/app/token", "nothing links to it", []string{"may be somebody's own", "not asked for now"}},
		{"/app/reports/1", fewVisitors, []string{"wants 3 different visitors"}},
		{"/app/1?utm_source=x", "listed by another path", []string{"listed as http://named.example/app/1."}},
		{"/app/style.css", "not HTML", []string{"an asset"}},
		{"/app//x", "malformed path", nil},
	} {
		u.check(t, base+test.path, test.reason, test.contains...)
	}
}

// TestExplainDoubt: a page that nothing keeps out but a refresh that is not believed,
// or that failed.
func TestExplainDoubt(t *testing.T) {
	b := newBench(t, &Handler{})
	close(b.app.started)
	b.source = lists("/a", "/b", "/c")
	s := b.site("named.example")
	seen := s.sight
	s.seen.Store(&seen)
	explain := func(path string) *Explanation {
		t.Helper()
		x, err := b.app.explain(t.Context(), "http://named.example"+path)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	if x := explain("/a"); x.Reason != notRefreshed {
		t.Errorf("before the first refresh: got %s", show(x))
	}
	b.refresh(s)
	if x := explain("/a"); !x.Listed || x.Verified {
		t.Errorf("listed: got %s", show(x))
	}
	if x := explain("/d"); x.Reason != unknownPage || !strings.Contains(show(x), "another module's") {
		t.Errorf("a guest's: got %s", show(x))
	}
	// The list has it now, and the refresh that has seen it does not count.
	b.handler.sources = []Source{b, &SourceURLs{URLs: []string{"/d"}}}
	b.handler.sourceNames = []string{"bench", "urls"}
	if x := explain("/d"); x.Reason != nextRefresh {
		t.Errorf("new: got %s", show(x))
	}
	b.source = func(context.Context, *Refresh, func(Page) error) error { return errors.New("lost\x1b[31m<b>") }
	b.refresh(s)
	if x := explain("/d"); x.Reason != notBelieved || !strings.Contains(x.Explanation, "less than half") {
		t.Errorf("not believed: got %s", show(x))
	} else if strings.Contains(show(x), "\x1b") || !strings.Contains(show(x), "source 1 (bench) could not be read") {
		t.Errorf("the source's error: got %s", show(x))
	}
	s.sight.root, s.sight.fs = "/", "no such file system"
	b.refresh(s)
	if x := explain("/d"); x.Reason != lastFailed {
		t.Errorf("failed: got %s", show(x))
	}
	s.failed(t.Context(), b.app.now(), errStuck)
	if x := explain("/d"); x.Reason != lastFailed || !strings.Contains(x.Explanation, "goes on although") {
		t.Errorf("not looked at: got %s", show(x))
	}
	b.app.httpPort = 8080
	if x, err := b.app.explain(t.Context(), "http://named.example:8080/a"); err != nil || !x.Listed {
		t.Errorf("a port that URLs leave out: got %v", err)
	}
	for _, other := range counted("%d.example", 20) {
		b.site(other)
	}
	if _, err := b.app.explain(t.Context(), "http://none.example"); !errors.Is(err, errNoSite) || strings.Count(err.Error(), "http://") != maxNamedSites {
		t.Errorf("many sites: got %v", err)
	}
	clear(b.app.sites)
	if _, err := b.app.explain(t.Context(), "http://none.example"); !errors.Is(err, errNoSite) || !strings.Contains(err.Error(), "no site so far") {
		t.Errorf("no site: got %v", err)
	}
}

// TestExplainNow: what is remembered of a page beside what it answers now.
func TestExplainNow(t *testing.T) {
	const good = "<!doctype html><title>x</title><p>x"
	type reply struct {
		status   int
		header   string // name: value
		body     string
		panicked any
	}
	ok := reply{status: 200, body: good}
	silent := reply{panicked: http.ErrAbortHandler}
	for name, test := range map[string]struct {
		robots      string
		before, now reply
		later       time.Duration // between them
		reason      string
		contains    []string
	}{
		"as before":           {"", ok, ok, 0, "", []string{`answered with 200."`}},
		"not found":           {"", ok, reply{status: 404}, 0, "", []string{"it answers 404 now ('not found'): the sitemap drops it"}},
		"an error":            {"", ok, reply{status: 503}, 0, "", []string{"it answers 503 now, which says nothing of a page that was good"}},
		"refused for a while": {"", ok, reply{status: 403}, 0, "", []string{"it answers 403 now, which says nothing"}},
		"refused":             {"", ok, reply{status: 401}, 0, "", []string{"('refused to strangers')"}},
		"no answer":           {"", ok, silent, 0, "", []string{`"error":"the connection was aborted"`}},
		"noindex":             {"", ok, reply{status: 200, header: "X-Robots-Tag: noindex", body: good}, 0, "", []string{`"noindex":true`, "('noindex')"}},
		"a canonical":         {"", ok, reply{status: 200, header: `Link: </b>; rel="canonical"`, body: good}, 0, "", []string{"names another page as its canonical now"}},
		"a redirect":          {"", ok, reply{status: 301, header: "Location: /b\x1b[1m<script>"}, 0, "", []string{`"location":"/b\u001b[1m<script>"`}},
		"a picture":           {"", ok, reply{status: 200, header: "Content-Type: image/png", body: good}, 0, "", []string{"('not HTML')"}},
		"compressed":          {"", ok, reply{status: 200, header: "Content-Encoding: br", body: "\x00"}, 0, "", []string{`"status":200`}},
		"back":                {"", reply{status: 404}, ok, 0, "not found", []string{"nothing in that speaks against it: it is listed once it has been asked for again, which is due at 20"}},
		"back, and due":       {"", reply{status: 404}, ok, 3 * time.Hour, "not found", []string{"which is due now."}},
		"bad as before":       {"", reply{status: 404}, reply{status: 410}, 0, "not found", []string{`take away what names it."`}},
		"bad otherwise":       {"", reply{status: 404}, reply{status: 301, header: "Location: /b"}, 0, "not found", []string{"Besides, it answers 301 now ('redirects')."}},
		"silent":              {"", silent, ok, 0, "waits for its own answer", []string{"gave no answer", "asked for again at 20"}},
		"forbidden since":     {"User-agent: *\nDisallow: /a", ok, ok, 0, "", []string{"robots.txt says otherwise now", "robots.txt forbids it", "Disallow: /a"}},
		"robots.txt fails":    {"error", ok, ok, 0, "", []string{"robots.txt answers with an error, so nothing is asked for"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, &Handler{Ask: new(Ask)})
			close(b.app.started)
			b.source = lists("/a", "/other")
			answers, robots := test.before, ""
			b.app.askers[b.handler.server] = asking(func(w http.ResponseWriter, r *http.Request) error {
				answer := answers
				switch {
				case r.URL.Path == robotsPath && robots == "error":
					answer = reply{status: 500}
				case r.URL.Path == robotsPath:
					answer = reply{status: 200, header: "Content-Type: text/plain", body: robots}
				case r.URL.Path != "/a":
					answer = ok
				}
				if answer.panicked != nil {
					panic(answer.panicked)
				}
				w.Header().Set("Content-Type", "text/html")
				if name, value, given := strings.Cut(answer.header, ": "); given {
					w.Header().Set(name, value)
				}
				w.WriteHeader(answer.status)
				_, err := io.WriteString(w, answer.body)
				return err
			})
			s := b.site("named.example")
			seen := s.sight
			s.seen.Store(&seen)
			b.clock.Store(time.Now().UnixNano()) // asks have deadlines
			b.refresh(s)
			b.app.group.Wait() // for asking in the background
			answers, robots = test.now, test.robots
			b.clock.advance(test.later)
			before, book, changed, rules := b.logs.Len(), s.shelf.book.Load(), s.shelf.changed.Load(), s.shelf.rules.Load()
			x, err := b.app.explain(t.Context(), "http://named.example/a")
			if err != nil {
				t.Fatal(err)
			}
			if x.Reason != test.reason || x.Listed != (test.reason == "") {
				t.Errorf("got %s", show(x))
			}
			for _, want := range test.contains {
				if !strings.Contains(show(x), want) {
					t.Errorf("got %s, want %q in it", show(x), want)
				}
			}
			if b.logs.Len() != before || s.shelf.book.Load() != book || s.shelf.changed.Load() != changed || s.shelf.rules.Load() != rules || s.absences.byPath != nil {
				t.Error("explaining a page has changed something")
			}
		})
	}
}

// TestExplainRests: an upstream that rests is not asked now.
func TestExplainRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &Handler{Ask: new(Ask)})
		b.app.now = time.Now
		asked := 0
		b.app.askers[b.handler.server] = asking(func(_ http.ResponseWriter, r *http.Request) error {
			if r.URL.Path != robotsPath {
				asked++
			}
			return nil
		})
		s := b.site("named.example")
		s.proxied.Store(true)
		for _, test := range []struct {
			rest time.Duration
			want int
		}{{0, 1}, {longestTurn - time.Second, 2}, {time.Minute, 2}} {
			e, err := s.explain(t.Context(), "/a")
			if err != nil {
				t.Fatal(err)
			}
			s.pace.next = time.Now().Add(test.rest)
			if err := e.askNow(); err != nil {
				t.Fatal(err)
			}
			if rests := strings.Contains(show(e.x), errResting.Error()); asked != test.want || rests == (e.x.Answer != nil) {
				t.Errorf("at rest for %s: asked %d times, want %d: %s", test.rest, asked, test.want, show(e.x))
			}
		}
	})
}

// TestExplainWhileRefreshed: pages are explained while the site is looked at, refreshed
// and asked for.
func TestExplainWhileRefreshed(t *testing.T) {
	root := tree(t, map[string]string{"index.html": whole("home", "", ""), "a.html": whole("a", "", ""), "b.html": "<p>part"})
	u := hush(t, explainedHead+`http://named.example {
		root * `+root+`
		sitemap {
			files
			links
		}
		file_server
	}`)
	u.check(t, "http://named.example/a.html", "")
	s := u.app.sitesFor(&askedURL{scheme: "http", host: "named.example", path: "/"})[0]
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; i < 40 && t.Context().Err() == nil; {
			if !s.busy.CompareAndSwap(false, true) {
				continue
			}
			content := whole(fmt.Sprint(i), "", "") // another text each time
			if err := os.WriteFile(filepath.Join(root, "c.html"), []byte(content), 0o644); err != nil {
				t.Error(err)
			}
			s.hastened.Store(i%2 == 0) // else the site is looked at
			s.refresh(t.Context())
			s.busy.Store(false)
			i++
		}
	}()
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		default:
		}
		path := [...]string{"/a.html", "/b.html", "/c.html", "/none.html", "/index.html"}[n%5]
		if _, err := u.app.explain(t.Context(), "http://named.example"+path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// FuzzParseAsked: whatever is asked about, its path is a page's, or the error is short
// and says so.
func FuzzParseAsked(f *testing.F) {
	for _, url := range []string{
		"http://example.com/a?b#c", "https://[::1]:8443/%7e/../x", "javascript:alert(1)", "//a/b", "http://a:b@c/", "http://bücher.example/ü\x00", "http://a?%zz",
	} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		asked, err := parseAsked(url)
		if err != nil {
			if !errors.Is(err, errNotURL) || len(err.Error()) > 1000 || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q: got %v", url, err)
			}
			return
		}
		if again, err := page.Canonical(asked.path); err != nil || again != asked.path {
			t.Errorf("%q: got %q, which is %q, %v", url, asked.path, again, err)
		}
		if host, ok := cleanHost(asked.host); !ok || host != asked.host {
			t.Errorf("%q: got %q", url, asked.host)
		}
	})
}

// TestExplainStale: what is remembered is read again where another book took its place,
// so often and no more.
func TestExplainStale(t *testing.T) {
	b := newBench(t, &Handler{})
	s := b.site("named.example")
	e := &explainer{ctx: t.Context(), site: s}
	if err := e.fresh(func(*state.Book) error { return errors.New("there is no book") }); err != nil {
		t.Errorf("no book: got %v", err)
	}
	book, err := state.Open(t.Context(), state.NewMemory(), "x")
	if err != nil {
		t.Fatal(err)
	}
	s.shelf.book.Store(book)
	for stale, want := range map[int]bool{0: true, 1: true, maxStale - 1: true, maxStale: false} {
		n := 0
		err := e.fresh(func(*state.Book) error {
			if n++; n <= stale {
				return fmt.Errorf("reading: %w", state.ErrStale)
			}
			return nil
		})
		if (err == nil) != want || n > maxStale {
			t.Errorf("stale %d times: got %v after %d", stale, err, n)
		}
	}
	if err := e.fresh(func(*state.Book) error { return state.ErrUnusable }); !errors.Is(err, state.ErrUnusable) {
		t.Errorf("unusable: got %v", err)
	}
}

// TestExplainSuspect: what the last ask said, and is not believed yet.
func TestExplainSuspect(t *testing.T) {
	e := &explainer{x: new(Explanation), record: &state.Record{Suspect: uint8(verdict.Gone)}}
	if e.noteSuspicion(); len(e.x.Notes) != 1 || !strings.Contains(e.x.Notes[0], "'not found'") {
		t.Errorf("got %q", e.x.Notes)
	}
}

// TestExplainWords: there are words for each reason that a verdict or a scan gives.
func TestExplainWords(t *testing.T) {
	e := &explainer{site: &site{base: "http://named.example"}, path: "/a", rules: new(crawlRules)}
	rules := readCrawlRules([]byte("User-agent: *\nDisallow: /a\n"))
	e.rules = &rules
	for reason := verdict.Redirects; reason.String() != ""; reason++ {
		for _, r := range []state.Record{{}, {Asked: 1}, {Flags: verdict.FlagDiscovered}} {
			if got := e.words(&judgement{record: r, reason: reason}); !strings.HasSuffix(got, ".") {
				t.Errorf("%s: got %q", reason, got)
			}
		}
	}
	if got := e.words(&judgement{reason: verdict.Good}); got != "" {
		t.Errorf("good: got %q", got)
	}
	for _, reason := range []string{
		files.NotIncluded, files.Excluded, files.Hidden, files.Dotfile, files.UnderscoreName, files.DependencyFolder, files.ErrorPage,
		files.OwnershipFile, files.Empty, files.NotRegular, files.Unreadable, files.Vanished, files.Dangling, files.LinkLoop,
		files.LinkedOften, files.Duplicate, files.NameTooLong, files.NameRefused, files.TooDeep,
	} {
		l := &lookout{want: "/a/b.html", path: "/a/b.html"}
		l.leftOut("/other.html", files.Empty)
		l.leftOut("/a/", files.Hidden)
		l.leftOut("/a/b.html", reason)
		l.leftOut("/", files.Hidden)
		if f := l.finding(); f.reason != reason || !strings.HasPrefix(f.explained, "Its file, /a/b.html, ") || fileWords[reason] == "" {
			t.Errorf("%s: got %+v", reason, f)
		}
	}
}
