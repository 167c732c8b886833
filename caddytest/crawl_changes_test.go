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
		s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(leftOut, name) }))...)
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
	s.Load(static("", ""))
	s.WantDates(harness.Local, want)
	away := maps.Clone(want)
	for _, name := range []string{"/2.html", "/3.html"} {
		harness.Must(t, os.Remove(filepath.Join(s.Dir, "site", name)))
		delete(away, name)
	}
	s.WantDates(harness.Local, away)
	s.Put("site/2.html", "page 2", harness.DayOf(1000))
	at := time.Now()
	s.Put("site/3.html", "another page 3", at)
	want["/3.html"] = harness.Stamp(at)
	s.WantDates(harness.Local, want)
	s.Quietly(1)
	s.WantDates(harness.Local, want)
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
	s.Load(caddyfile)
	s.WantDates(harness.Local, listed)
	// While robots.txt fails, nothing is fetched: what is known stays, restarts included.
	var changed time.Time
	change := func() {
		t.Helper()
		changed = time.Now()
		s.Put("site/a.html", "text a, changed", changed)
		s.Quietly(1)
		s.WantDates(harness.Local, listed)
	}
	respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	s.Refreshes(1) // else the tenth refresh would notice
	s.Logged("cannot fetch robots.txt")
	change()
	s.Restart(caddyfile)
	s.WantDates(harness.Local, listed)
	change()
	s.Quietly(1)
	s.WantDates(harness.Local, listed)
	s.Restart(caddyfile) // once more, with what was kept while it failed
	change()
	respond(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "User-agent: *\nDisallow:\n") })
	listed["/a.html"] = harness.Stamp(changed)
	listed["/hidden.html"] = harness.Stamp(harness.DayOf(20))
	s.WantDates(harness.Local, listed)
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
	line := s.Logged(`"level":"info"`, harness.Refreshed, `"left_out":{"noindex":1,"redirect":1}`)
	if want := `"examples":{"noindex":["/draft.html"],"redirect":["/moved.html"]}`; !strings.Contains(line, want) {
		t.Errorf("got %s, want %s", line, want)
	}
	s.Quietly(1)
	s.Write(map[string]string{"site/later.html": harness.Whole(noindex, "a later draft")})
	line = s.Logged(`"level":"info"`, `"msg":"sitemap refreshed, other pages are left out"`, `"noindex":2`)
	if want := `"examples":{"noindex":["/draft.html","/later.html"],"redirect":["/moved.html"]}`; !strings.Contains(line, want) {
		t.Errorf("got %s, want %s", line, want)
	}
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/")
	s.Quietly(2)
	if lines := s.LogLines(`"level":"info"`, `"noindex":2`); len(lines) != 1 {
		t.Errorf("the log says it %d times", len(lines))
	}
}
