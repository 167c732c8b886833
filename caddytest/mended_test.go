package caddytest

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// static is a site of files that is refreshed each second, with what comes before the
// sitemap and what options the sitemap has.
func static(before, options string) string {
	return local + " {\n" + before + "\nroot * {dir}/site\nsitemap {\nrefresh 1s\n" + options + "\n}\nfile_server\n}"
}

// TestRoutesThatChange: what a configuration answers otherwise than the one before it
// did is asked for again, at once, however long ago it was asked for.
func TestRoutesThatChange(t *testing.T) {
	files := map[string]string{"site/private/a.html": "private a", "site/private/b.html": "private b"}
	var all []string
	for i := range 24 {
		name := fmt.Sprintf("/p%02d.html", i)
		files["site"+name] = "the text of page " + name
		all = append(all, name)
	}
	all = append(all, "/private/a.html", "/private/b.html")
	const login = " {\n user " + password + "\n}\n"
	guarded := static("basic_auth /private/*"+login+"respond /p05.html 404\nhandle /p07.html {\n respond 404\n}", "")
	open := static("redir /p01.html /p02.html 301\nerror /p03.html 410\nbasic_auth /p04.html"+login+"handle /p07.html {\n root * {dir}/site\n file_server\n}", "")
	s := start(t, guarded, files)
	check := func(leftOut ...string) {
		t.Helper()
		begun := time.Now()
		s.wantLocs(local+"/sitemap.xml", below(local, slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(leftOut, name) }))...)
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("it took %s", took)
		}
	}
	check("/private/a.html", "/private/b.html", "/p05.html", "/p07.html")
	s.quietly(1)
	s.reload(open)
	check("/p01.html", "/p03.html", "/p04.html")
	s.quietly(1)
	check("/p01.html", "/p03.html", "/p04.html")
	s.restart(guarded)
	check("/private/a.html", "/private/b.html", "/p05.html", "/p07.html")
}

// TestPageAwayForAMoment: a page that comes back with the same text keeps its date,
// whenever its file was made; one that comes back with another one does not.
func TestPageAwayForAMoment(t *testing.T) {
	s := prepare(t, nil)
	want := make(map[string]string)
	for i := range 6 {
		s.put(fmt.Sprintf("site/%d.html", i), fmt.Sprintf("page %d", i), dayOf(100*i))
		want[fmt.Sprintf("/%d.html", i)] = stamp(dayOf(100 * i))
	}
	if err := s.load(static("", "")); err != nil {
		t.Fatal(err)
	}
	s.wantDates(local, want)
	away := maps.Clone(want)
	for _, name := range []string{"/2.html", "/3.html"} {
		if err := os.Remove(filepath.Join(s.dir, "site", name)); err != nil {
			t.Fatal(err)
		}
		delete(away, name)
	}
	s.wantDates(local, away)
	s.put("site/2.html", "page 2", dayOf(1000))
	s.put("site/3.html", "another page 3", dayOf(1001))
	want["/3.html"] = stamp(dayOf(1001))
	s.wantDates(local, want)
	s.quietly(1)
	s.wantDates(local, want)
}

// untyped is a handler that leaves it to net/http to find out what it answers with.
func init() {
	caddy.RegisterModule(new(untyped))
	httpcaddyfile.RegisterHandlerDirective("test_untyped", func(httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return new(untyped), nil
	})
	httpcaddyfile.RegisterDirectiveOrder("test_untyped", httpcaddyfile.Before, "respond")
}

type untyped struct{}

func (*untyped) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_untyped", New: func() caddy.Module { return new(untyped) }}
}

func (*untyped) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.URL.Path != "/about" && r.URL.Path != "/plain" {
		return next.ServeHTTP(w, r)
	}
	text := "about"
	if r.URL.Path == "/about" {
		text = html(text)
	}
	_, err := w.Write([]byte(text))
	return err
}

// TestPageWithoutType is HTML that neither its name nor its handler says to be HTML: it
// is what a client is told.
func TestPageWithoutType(t *testing.T) {
	s := start(t, static("test_untyped", "files {\n include *\n }"), map[string]string{
		"site/index.html": html("home"),
		"site/about":      html("about"),
		"site/plain":      "about",
		"site/file":       html("a file"), // file_server keeps net/http from finding out
	})
	for path, want := range map[string]string{"/about": "text/html; charset=utf-8", "/plain": "text/plain; charset=utf-8", "/file": ""} {
		if r := s.get(local + path); r.Header.Get("Content-Type") != want {
			t.Fatalf("%s has the type %q, want %q", path, r.Header.Get("Content-Type"), want)
		}
	}
	s.wantLocs(local+"/sitemap.xml", below(local, []string{"/", "/about"})...)
	s.wantLeftOut(map[string]int{"not HTML": 2})
}

// TestRobotsStaysForbidden: what robots.txt forbade stays forbidden while nobody can tell
// whether it still does.
func TestRobotsStaysForbidden(t *testing.T) {
	var answer atomic.Pointer[http.HandlerFunc]
	say := func(f http.HandlerFunc) { answer.Store(&f) }
	app := backend(t, func(w http.ResponseWriter, r *http.Request) { (*answer.Load())(w, r) })
	say(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "User-agent: *\nDisallow: /hidden.html\n") })
	s := prepare(t, nil)
	listed := map[string]string{"/": stamp(dayOf(0)), "/a.html": stamp(dayOf(10))}
	s.put("site/index.html", html("home"), dayOf(0))
	s.put("site/a.html", "text a", dayOf(10))
	s.put("site/hidden.html", "hidden", dayOf(20))
	caddyfile := static("reverse_proxy /robots.txt "+app, "")
	if err := s.load(caddyfile); err != nil {
		t.Fatal(err)
	}
	s.wantDates(local, listed)
	changes := 0
	change := func() {
		t.Helper()
		changes++
		s.put("site/a.html", fmt.Sprintf("text a, changed %d times", changes), dayOf(100*changes))
		listed["/a.html"] = stamp(dayOf(100 * changes))
		s.wantDates(local, listed)
	}
	say(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	s.logged("robots.txt answers with an error")
	change()
	s.restart(caddyfile)
	s.wantDates(local, listed)
	change()
	s.quietly(1)
	s.wantDates(local, listed)
	s.restart(caddyfile) // once more, with what was kept while it failed
	change()
	say(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "User-agent: *\nDisallow:\n") })
	listed["/hidden.html"] = stamp(dayOf(20))
	s.wantDates(local, listed)
}

// TestSameBaseURL is two sites that are to say that they are the same one.
func TestSameBaseURL(t *testing.T) {
	const base = "https://example.com"
	caddyfile := "{\n sitemap {\n state {dir}/state\n }\n}\n"
	for _, name := range []string{"one", "two"} {
		caddyfile += "http://" + name + ".localhost:{port} {\n root * {dir}/" + name + "\n sitemap {\n refresh 1s\n base_url " + base + "\n }\n file_server\n}\n"
	}
	s := prepare(t, nil)
	want := map[string]map[string]string{"one": {}, "two": {}}
	for i := range 4 {
		for j, name := range []string{"one", "two"} {
			// The same paths, with other texts and dates.
			s.put(fmt.Sprintf("%s/%d.html", name, i), fmt.Sprintf("page %d of %s", i, name), dayOf(100*i+10*j))
			want[name][fmt.Sprintf("%s/%d.html", base, i)] = stamp(dayOf(100*i + 10*j))
		}
	}
	if err := s.load(caddyfile); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		for name, dates := range want {
			s.wantDates(originOf(name), dates)
		}
	}
	check()
	if folders, err := os.ReadDir(filepath.Join(s.dir, "state")); err != nil || len(folders) != 2 {
		t.Errorf("the state is in %v (%v)", folders, err)
	}
	touch := func(when time.Time) {
		t.Helper()
		for i := range 4 {
			for _, name := range []string{"one", "two"} {
				s.put(fmt.Sprintf("%s/%d.html", name, i), fmt.Sprintf("page %d of %s", i, name), when.Add(time.Duration(i)*30*24*time.Hour))
			}
		}
	}
	touch(dayOf(1000))
	s.quietly(2)
	check()
	touch(dayOf(2000))
	s.reload(caddyfile)
	s.quietly(2)
	check()
	s.stop()
	touch(dayOf(3000))
	s.begin(caddyfile)
	check()
	s.quietly(2)
	check()
	if folders, err := os.ReadDir(filepath.Join(s.dir, "state")); err != nil || len(folders) != 2 {
		t.Errorf("the state is in %v (%v)", folders, err)
	}
}

// TestUpstreamThatHangs: pages that keep everybody waiting do not keep the others from
// being listed.
func TestUpstreamThatHangs(t *testing.T) {
	files, want := make(map[string]string), []string(nil)
	for i := range 30 {
		name := fmt.Sprintf("/pages/%d/%02d.html", i/10, i)
		files["site"+name] = "the text of page " + name
		want = append(want, local+name)
	}
	var list strings.Builder
	list.WriteString("/app/\n/app/news/first\n")
	for i := range 20 {
		fmt.Fprintf(&list, "/app/%d\n", i)
	}
	files["list"] = list.String()
	s := prepare(t, files)
	ended := make(chan struct{})
	begun := time.Now()
	s.loadApp(static("reverse_proxy /app/* {app}", "files\nurls {dir}/list"), func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ended:
		case <-time.After(25 * time.Second):
		}
	})
	t.Cleanup(func() { close(ended) })
	for i := range want {
		want[i] = s.expand(want[i])
	}
	got, err := s.tryLocs(local + "/sitemap.xml")
	took := time.Since(begun)
	if err != nil || took > 10*time.Second {
		t.Fatalf("it took %s: %v\n%s", took, err, s.sitemapLog())
	}
	for _, url := range want {
		if !slices.Contains(got, url) {
			t.Errorf("%s is not listed\n%s", url, s.sitemapLog())
		}
	}
}

// TestProxiedFilesPace is an upstream that has the files of pages, and is asked as
// gently as any other.
func TestProxiedFilesPace(t *testing.T) {
	s := prepare(t, nil)
	for i := range 40 {
		s.put(fmt.Sprintf("site/%d/%02d.html", i/4, i), fmt.Sprintf("page %d", i), dayOf(i))
	}
	u := &upstream{root: filepath.Join(s.dir, "site")}
	s.loadApp(local+` {
		root * {dir}/site
		sitemap {
			refresh 1s
			files {dir}/site {
				clean_urls off
			}
		}
		reverse_proxy {app}
	}`, u.ServeHTTP)
	begun := time.Now()
	s.passed(3 * time.Second)
	u.mu.Lock()
	asks, took := slices.Clone(u.asks), time.Since(begun)
	u.mu.Unlock()
	if most := 3 + 2*int(took.Seconds()+1); len(asks) > most || len(asks) < 4 {
		t.Errorf("%d asks in %s, want 4 to %d", len(asks), took, most)
	}
}

// TestNeverAskedFor is pages that nobody asks for: nothing is known of those that are
// files, and the others are somebody's wish.
func TestNeverAskedFor(t *testing.T) {
	s := start(t, static("", "files\nurls {\n /admin/tour\n /cart/\n}"), map[string]string{
		"site/index.html":       html("home"),
		"site/about.html":       html("about"),
		"site/admin/index.html": html("admin"),
		"site/admin/users.html": html("users"),
		"site/docs/API/v1.html": html("reference"),
		"site/docs/api.html":    html("about the API"),
	})
	s.wantLocs(local+"/sitemap.xml", below(local, []string{"/", "/about.html", "/admin/tour", "/cart/", "/docs/api.html"})...)
	s.wantLeftOut(map[string]int{"never asked for": 3})
}

// TestLogOfLeftOut is what the log says of pages that are left out, though no
// document may have changed.
func TestLogOfLeftOut(t *testing.T) {
	const noindex = `<meta name="robots" content="noindex">`
	s := start(t, static("redir /moved.html /", ""), map[string]string{
		"site/index.html": html("home"),
		"site/moved.html": html("moved"),
		"site/draft.html": whole(noindex, "a draft"),
	})
	s.wantLocs(local+"/sitemap.xml", local+"/")
	line := s.logged(`"level":"info"`, `"msg":"sitemap refreshed"`, `"left_out":["noindex: 1","redirects: 1"]`)
	if want := `"examples":["noindex: /draft.html","redirects: /moved.html"]`; !strings.Contains(line, want) {
		t.Errorf("got %s, want %s", line, want)
	}
	s.quietly(1)
	s.write(map[string]string{"site/later.html": whole(noindex, "a later draft")})
	line = s.logged(`"level":"info"`, `"msg":"sitemap refreshed, nothing changed"`, "noindex: 2")
	if want := `"examples":["noindex: /draft.html /later.html","redirects: /moved.html"]`; !strings.Contains(line, want) {
		t.Errorf("got %s, want %s", line, want)
	}
	s.wantLocs(local+"/sitemap.xml", local+"/")
	s.quietly(2)
	if lines := s.logLines(`"level":"info"`, "nothing changed", "noindex: 2"); len(lines) != 1 {
		t.Errorf("the log says it %d times", len(lines))
	}
}
