package crawl

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

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// static is a site of files that is refreshed each second, with what comes before the
// sitemap and what options the sitemap has.
func static(before, options string) string {
	return harness.Local + " {\n" + before + "\nroot * {dir}/site\nsitemap {\nrefresh 1s\n" + options + "\n}\nfile_server\n}"
}

// TestRoutesThatChange: what a configuration responds to otherwise than the one before it
// is fetched again at once, however long ago it was fetched.
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
		s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(leftOut, name) }))...)
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("it took %s", took)
		}
	}
	check("/private/a.html", "/private/b.html", "/p05.html", "/p07.html")
	s.Quietly(1)
	s.Reload(open)
	check("/p01.html", "/p03.html", "/p04.html")
	s.Quietly(1)
	check("/p01.html", "/p03.html", "/p04.html")
	s.Restart(guarded)
	check("/private/a.html", "/private/b.html", "/p05.html", "/p07.html")
}

// TestPageAwayForAMoment: a page that comes back with the same text keeps its date,
// whenever its file was made; one that comes back with another one does not.
func TestPageAwayForAMoment(t *testing.T) {
	s := prepare(t, nil)
	want := make(map[string]string)
	for i := range 6 {
		s.Put(fmt.Sprintf("site/%d.html", i), fmt.Sprintf("page %d", i), harness.DayOf(100*i))
		want[fmt.Sprintf("/%d.html", i)] = harness.Stamp(harness.DayOf(100 * i))
	}
	if err := s.Load(static("", "")); err != nil {
		t.Fatal(err)
	}
	s.WantDates(harness.Local, want)
	away := maps.Clone(want)
	for _, name := range []string{"/2.html", "/3.html"} {
		if err := os.Remove(filepath.Join(s.Dir, "site", name)); err != nil {
			t.Fatal(err)
		}
		delete(away, name)
	}
	s.WantDates(harness.Local, away)
	s.Put("site/2.html", "page 2", harness.DayOf(1000))
	s.Put("site/3.html", "another page 3", harness.DayOf(1001))
	want["/3.html"] = harness.Stamp(harness.DayOf(1001))
	s.WantDates(harness.Local, want)
	s.Quietly(1)
	s.WantDates(harness.Local, want)
}

// untyped is a handler that leaves it to net/http to find out the Content-Type.
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
		text = harness.HTML(text)
	}
	_, err := w.Write([]byte(text))
	return err
}

// TestPageWithoutType is HTML that neither its name nor its handler says to be HTML: it
// is what a client is told.
func TestPageWithoutType(t *testing.T) {
	s := start(t, static("test_untyped", "files {\n include *\n }"), map[string]string{
		"site/index.html": harness.HTML("home"),
		"site/about":      harness.HTML("about"),
		"site/plain":      "about",
		"site/file":       harness.HTML("a file"), // file_server keeps net/http from finding out
	})
	for path, want := range map[string]string{"/about": "text/html; charset=utf-8", "/plain": "text/plain; charset=utf-8", "/file": ""} {
		if r := s.Get(harness.Local + path); r.Header.Get("Content-Type") != want {
			t.Fatalf("%s has the type %q, want %q", path, r.Header.Get("Content-Type"), want)
		}
	}
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, []string{"/", "/about"})...)
	s.WantLeftOut(map[string]int{"not HTML": 2})
}

// TestRobotsStaysForbidden: what robots.txt forbade stays forbidden while nobody can tell
// whether it still does.
func TestRobotsStaysForbidden(t *testing.T) {
	var robots atomic.Pointer[http.HandlerFunc]
	respond := func(f http.HandlerFunc) { robots.Store(&f) }
	app := harness.Backend(t, func(w http.ResponseWriter, r *http.Request) { (*robots.Load())(w, r) })
	respond(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "User-agent: *\nDisallow: /hidden.html\n") })
	s := prepare(t, nil)
	listed := map[string]string{"/": harness.Stamp(harness.DayOf(0)), "/a.html": harness.Stamp(harness.DayOf(10))}
	s.Put("site/index.html", harness.HTML("home"), harness.DayOf(0))
	s.Put("site/a.html", "text a", harness.DayOf(10))
	s.Put("site/hidden.html", "hidden", harness.DayOf(20))
	caddyfile := static("reverse_proxy /robots.txt "+app, "")
	if err := s.Load(caddyfile); err != nil {
		t.Fatal(err)
	}
	s.WantDates(harness.Local, listed)
	// While robots.txt fails, nothing is fetched: what is known stays, restarts included.
	change := func() {
		t.Helper()
		s.Put("site/a.html", "text a, changed", harness.DayOf(100))
		s.Quietly(1)
		s.WantDates(harness.Local, listed)
	}
	respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	s.Logged("robots.txt cannot be fetched, or returns an error")
	change()
	s.Restart(caddyfile)
	s.WantDates(harness.Local, listed)
	change()
	s.Quietly(1)
	s.WantDates(harness.Local, listed)
	s.Restart(caddyfile) // once more, with what was kept while it failed
	change()
	respond(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "User-agent: *\nDisallow:\n") })
	listed["/a.html"] = harness.Stamp(harness.DayOf(100))
	listed["/hidden.html"] = harness.Stamp(harness.DayOf(20))
	s.WantDates(harness.Local, listed)
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
			s.Put(fmt.Sprintf("%s/%d.html", name, i), fmt.Sprintf("page %d of %s", i, name), harness.DayOf(100*i+10*j))
			want[name][fmt.Sprintf("%s/%d.html", base, i)] = harness.Stamp(harness.DayOf(100*i + 10*j))
		}
	}
	if err := s.Load(caddyfile); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		for name, dates := range want {
			s.WantDates(originOf(name), dates)
		}
	}
	check()
	if folders, err := os.ReadDir(filepath.Join(s.Dir, "state", "sites")); err != nil || len(folders) != 2 {
		t.Errorf("the state is in %v (%v)", folders, err)
	}
	touch := func(when time.Time) {
		t.Helper()
		for i := range 4 {
			for _, name := range []string{"one", "two"} {
				s.Put(fmt.Sprintf("%s/%d.html", name, i), fmt.Sprintf("page %d of %s", i, name), when.Add(time.Duration(i)*30*24*time.Hour))
			}
		}
	}
	touch(harness.DayOf(1000))
	s.Quietly(2)
	check()
	touch(harness.DayOf(2000))
	s.Reload(caddyfile)
	s.Quietly(2)
	check()
	s.Stop()
	touch(harness.DayOf(3000))
	s.Begin(caddyfile)
	check()
	s.Quietly(2)
	check()
	if folders, err := os.ReadDir(filepath.Join(s.Dir, "state", "sites")); err != nil || len(folders) != 2 {
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
		want = append(want, harness.Local+name)
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
	s.LoadApp(static("reverse_proxy /app/* {app}", "files\nurls {dir}/list"), func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ended:
		case <-time.After(25 * time.Second):
		}
	})
	t.Cleanup(func() { close(ended) })
	for i := range want {
		want[i] = s.Expand(want[i])
	}
	got, err := s.TryLocs(harness.Local + "/sitemap.xml")
	took := time.Since(begun)
	if err != nil || took > 10*time.Second {
		t.Fatalf("it took %s: %v\n%s", took, err, s.SitemapLog())
	}
	for _, url := range want {
		if !slices.Contains(got, url) {
			t.Errorf("%s is not listed\n%s", url, s.SitemapLog())
		}
	}
}

// TestLogOfLeftOut is what the log says of pages that are left out, though no
// document may have changed.
func TestLogOfLeftOut(t *testing.T) {
	const noindex = `<meta name="robots" content="noindex">`
	s := start(t, static("redir /moved.html /", ""), map[string]string{
		"site/index.html": harness.HTML("home"),
		"site/moved.html": harness.HTML("moved"),
		"site/draft.html": harness.Whole(noindex, "a draft"),
	})
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/")
	line := s.Logged(`"level":"info"`, `"msg":"sitemap refreshed"`, `"left_out":{"noindex":1,"redirect":1}`)
	if want := `"examples":{"noindex":["/draft.html"],"redirect":["/moved.html"]}`; !strings.Contains(line, want) {
		t.Errorf("got %s, want %s", line, want)
	}
	s.Quietly(1)
	s.Write(map[string]string{"site/later.html": harness.Whole(noindex, "a later draft")})
	line = s.Logged(`"level":"info"`, `"msg":"sitemap refreshed, nothing changed"`, `"noindex":2`)
	if want := `"examples":{"noindex":["/draft.html","/later.html"],"redirect":["/moved.html"]}`; !strings.Contains(line, want) {
		t.Errorf("got %s, want %s", line, want)
	}
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/")
	s.Quietly(2)
	if lines := s.LogLines(`"level":"info"`, "nothing changed", `"noindex":2`); len(lines) != 1 {
		t.Errorf("the log says it %d times", len(lines))
	}
}
