package caddytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// brokenList is an application whose list fails in turn in several ways while fails is set.
type brokenList struct {
	pages *web
	fails atomic.Bool
	asked atomic.Int64 // for the list
}

func (f *brokenList) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/list.txt" {
		f.pages.ServeHTTP(w, r)
		return
	}
	switch n := f.asked.Add(1); {
	case !f.fails.Load():
		_, _ = w.Write([]byte("/one\n/two\n"))
	case n%3 == 0:
		panic(http.ErrAbortHandler)
	default:
		w.WriteHeader(http.StatusInternalServerError + int(n%3))
	}
}

// TestOutageIsLogged: an outage is told when it begins and when it ends, however requests fail meanwhile.
func TestOutageIsLogged(t *testing.T) {
	trouble := func(s *server) []string {
		var lines []string
		for _, level := range []string{"warn", "error"} {
			lines = append(lines, s.LogLines(`"level":"`+level+`"`, `"logger":"http.handlers.sitemap`)...)
		}
		return lines
	}
	wantOne := func(s *server, over string) {
		s.T.Helper()
		s.Logged(`"level":"info"`, over)
		said := make(map[string]int)
		for _, line := range append(trouble(s), s.LogLines(over)...) {
			var l struct{ Msg string }
			harness.Must(s.T, json.Unmarshal([]byte(line), &l))
			said[l.Msg]++
		}
		for message, n := range said {
			if n > 1 {
				s.T.Errorf("%q is logged %d times", message, n)
			}
		}
		if n := len(s.LogLines(harness.GatheringFails)); n != 1 {
			s.T.Errorf("%d lines say that it begins", n)
		}
	}
	t.Run("of an application's list", func(t *testing.T) {
		app := &brokenList{pages: newWeb(map[string]string{"/one": linking("one"), "/two": linking("two")})}
		s := prepare(t, nil)
		s.LoadApp(behind("urls /list.txt"), app.ServeHTTP)
		s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/one", harness.Local+"/two")
		app.fails.Store(true)
		before := app.asked.Load()
		s.Eventually(func() bool { s.Refreshes(1); return app.asked.Load() > before+6 }, s.SitemapLog)
		app.fails.Store(false)
		s.Refreshes(1)
		wantOne(s, "read again")
	})
	t.Run("of a source of its own", func(t *testing.T) {
		script := newScript(t, "/a", "/b")
		s := start(t, scriptedSites(t, 1, ""), nil)
		s.WantLocs("http://s0.localhost:{port}/sitemap.xml", "http://s0.localhost:{port}/a", "http://s0.localhost:{port}/b")
		for _, why := range []string{"no route", "refused", "no route", "timed out"} {
			script.with(func() { script.err = fmt.Errorf("the database is gone: %s", why) })
			s.Refreshes(1)
		}
		script.with(func() { script.err = nil })
		s.Refreshes(1)
		wantOne(s, "read again")
	})
}

// TestOrphansAreLoggedOnce: that pages have no incoming links is told once, however many they are.
func TestOrphansAreLoggedOnce(t *testing.T) {
	names := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint("/page", i))
		}
		return all
	}
	script := newScript(t, names(20)...)
	s := start(t, scriptedSites(t, 1, ""), nil)
	lines := func(want int) {
		t.Helper()
		if got := s.LogLines("no incoming links"); len(got) != want {
			t.Errorf("got %q, want %d lines", got, want)
		}
	}
	for _, pages := range []int{20, 30, 20} {
		script.with(func() { script.pages = names(pages) })
		s.Refreshes(1)
		s.Crawled()
		lines(1)
	}
}

// TestRefreshedSaysWhatChanged: the line of a refresh counts the pages that were added, changed and removed.
func TestRefreshedSaysWhatChanged(t *testing.T) {
	site := harness.Local + " {\n root * {dir}/site\n sitemap {\n refresh 1h\n }\n file_server\n}"
	s := start(t, site, map[string]string{"site/index.html": "home", "site/a.html": "a", "site/b.html": "b"})
	last := func() (c struct{ Added, Changed, Removed int }) {
		lines := s.LogLines(harness.Refreshed + `"`)
		harness.Must(t, json.Unmarshal([]byte(lines[len(lines)-1]), &c))
		return c
	}
	s.Crawled()
	if got := last(); got.Added != 3 || got.Changed+got.Removed != 0 {
		t.Errorf("at first: %+v", got)
	}
	s.Put("site/new.html", "new", harness.DayOf(1))
	s.Put("site/a.html", harness.Whole("", strings.Repeat("another text ", 9)), harness.DayOf(2))
	s.Put("site/b.html", harness.Whole(`<meta name="robots" content="noindex">`, "b"), harness.DayOf(3))
	s.Crawled()
	if got := last(); got.Added != 1 || got.Changed != 1 || got.Removed != 1 {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestLastModifiedMoves: a client that sends nothing but If-Modified-Since gets each new version of a document, also of two
// within a second, and where what it knows is of a clock that was ahead.
func TestLastModifiedMoves(t *testing.T) {
	s := start(t, harness.Local+" {\n root * {dir}/site\n sitemap {\n feed\n html\n }\n file_server\n}", map[string]string{"site/index.html": "home"})
	s.Crawled()
	const ahead = "Fri, 31 Dec 2100 23:59:59 GMT"
	documents := []string{"/sitemap.xml", "/sitemap.xml.gz", "/sitemap.txt", "/sitemap.html"}
	known := make(map[string]string)
	for i := range 5 {
		for _, name := range documents {
			r := s.Get(harness.Local+name, "If-Modified-Since: "+known[name])
			if r.StatusCode != http.StatusOK || r.Header.Get("Last-Modified") == known[name] {
				t.Errorf("%s, version %d, after %q: status %d, %q", name, i, known[name], r.StatusCode, r.Header.Get("Last-Modified"))
			}
			known[name] = r.Header.Get("Last-Modified")
			if r := s.Get(harness.Local+name, "If-Modified-Since: "+ahead); r.StatusCode != http.StatusOK {
				t.Errorf("%s, after %s: status %d", name, ahead, r.StatusCode)
			}
		}
		s.Write(map[string]string{fmt.Sprintf("site/%d.html", i): fmt.Sprint("page ", i)})
		s.Refreshes(1)
	}
	s.Eventually(func() bool {
		return s.Get(harness.Local+"/robots.txt", "If-Modified-Since: "+ahead).StatusCode == http.StatusOK
	}, s.SitemapLog)
}

// TestEndlessRobots: of a robots.txt that never ends, visitors get what fits, and its application is left alone then.
func TestEndlessRobots(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		status int
	}{
		"a robots.txt":  {http.MethodGet, http.StatusOK},
		"an error page": {http.MethodGet, http.StatusInternalServerError},
		"its headers":   {http.MethodHead, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			var running atomic.Int64
			line := []byte(strings.Repeat("Disallow: /private/\n", 1000))
			s := prepare(t, nil)
			s.LoadApp(behind("links"), func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/robots.txt" {
					w.Header().Set("Content-Type", "text/html")
					_, _ = w.Write([]byte(linking("home")))
					return
				}
				running.Add(1)
				defer running.Add(-1)
				w.Header().Set("Content-Type", "text/plain")
				// The module itself may read the site's.
				if !strings.Contains(r.UserAgent(), "caddy-sitemap") {
					w.WriteHeader(test.status)
				}
				_, err := w.Write([]byte("User-agent: *\n"))
				for err == nil {
					_, err = w.Write(line)
				}
			})
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/")
			r := s.Do(test.method, harness.Local+"/robots.txt")
			isWhole := len(r.Text) >= 8<<20 || test.method == http.MethodHead
			if r.StatusCode != test.status || !isWhole {
				t.Errorf("status %d, %d bytes", r.StatusCode, len(r.Text))
			}
			s.Eventually(func() bool { return running.Load() == 0 }, func() string { return "the application goes on" })
		})
	}
}

// TestHintsAsTyped: what an error says to write is valid where it says so.
func TestHintsAsTyped(t *testing.T) {
	s := prepare(t, nil)
	inSite := func(lines string) string {
		return "http://localhost:{port} {\nroot * {dir}\nsitemap {\n" + lines + "\n}\nfile_server\n}\n"
	}
	typed := regexp.MustCompile(`write the line '([^']+)' into the block of '([^']+)'( in the global options)?`)
	for _, option := range []string{"query id", "depth 3", "include *.pdf", "include_only /a/*", "changefreq daily", "priority 0.5",
		"endpoint https://example.com", "daily 5", "state off", "storage caddy", "fleet_patience 5m"} {
		_, err := s.Adapt(inSite(option))
		found := typed.FindStringSubmatch(fmt.Sprint(err))
		if found == nil {
			t.Errorf("%s: %v", option, err)
			continue
		}
		line, block, isGlobal := found[1], found[2], found[3] != ""
		corrected := inSite(block + " {\n" + line + "\n}")
		if isGlobal {
			corrected = "{\n" + block + " {\n" + line + "\n}\n}\n" + inSite("")
		}
		if _, err := s.Adapt(corrected); err != nil || !strings.HasPrefix(line, strings.Fields(option)[0]+" ") {
			t.Errorf("%s: %q typed into %q: %v", option, line, block, err)
		}
	}
	// Others say what to write without a block.
	for option, hint := range map[string]string{"root /srv": "files <folder>", "indexnow {\nkey abcdefgh\n}": "indexnow <key>"} {
		_, err := s.Adapt(inSite(option))
		corrected := strings.NewReplacer("<folder>", "{dir}", "<key>", "abcdefgh").Replace(hint)
		if !strings.Contains(fmt.Sprint(err), hint) {
			t.Errorf("%s: %v", option, err)
		}
		if _, err := s.Adapt(inSite(corrected)); err != nil {
			t.Errorf("%s: %q: %v", option, corrected, err)
		}
	}
}

// TestAdviceAsTyped: what warnings and explanations say to write is valid in the block of the site.
func TestAdviceAsTyped(t *testing.T) {
	s := prepare(t, nil)
	values := strings.NewReplacer("<folder>", "{dir}", "<root>", "{dir}", "%s", "json")
	arguments := map[string]string{"base_url": "https://example.com", "links": "", "files": ""}
	elsewhere := map[string]string{
		"state":           "{\nsitemap {\nstate {dir}/state\n}\n}\n",
		"state off":       "{\nsitemap {\nstate off\n}\n}\n",
		"trusted_proxies": "{\nservers {\ntrusted_proxies static private_ranges\n}\n}\n",
	}
	inLog := []string{"format auto"}
	advice := regexp.MustCompile(`(?:[Ss]et|[Ww]rite|[Nn]ame it with|[Rr]emove|by) '([a-z_]+(?: [^']*)?)'`)
	found := 0
	for _, line := range productStrings(t) {
		for _, match := range advice.FindAllStringSubmatch(line, -1) {
			typed := values.Replace(match[1])
			if strings.HasPrefix(typed, "caddy ") || strings.HasPrefix(typed, "root ") || typed == "client_auth" || slices.Contains(inLog, typed) {
				continue // a command, or a directive of Caddy's own
			}
			found++
			global, isGlobal := elsewhere[typed]
			option := typed + " " + arguments[typed]
			if isGlobal {
				option = ""
			}
			config := global + "http://localhost:{port} {\nroot {dir}\nsitemap {\n" + option + "\n}\nfile_server\n}\n"
			if _, err := s.Adapt(config); err != nil {
				t.Errorf("%q: %v\n%s", typed, err, line)
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d pieces of advice", found)
	}
}

// productStrings are the lines of the product's code.
func productStrings(t *testing.T) (lines []string) {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	harness.Must(t, err)
	more, err := filepath.Glob("../internal/*/*.go")
	harness.Must(t, err)
	for _, file := range append(files, more...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		data, err := os.ReadFile(file)
		harness.Must(t, err)
		lines = append(lines, strings.Split(string(data), "\n")...)
	}
	return lines
}
