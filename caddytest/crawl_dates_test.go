package caddytest

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// many are sites of one server, by the first label of their hosts: their root is the
// link {dir}/<name>/current.
func many(settings map[string]string) string {
	var b strings.Builder
	for name, setting := range settings {
		fmt.Fprintf(&b, "%s {\n root * {dir}/%s/current\n sitemap {\n refresh 1s\n %s\n }\n file_server\n}\n", originOf(name), name, setting)
	}
	return b.String()
}

func originOf(name string) string { return "http://" + name + ".localhost:{port}" }

// deploy makes a folder of files with their times and lets a site's link lead to it.
func (s *server) deploy(site, version string, files map[string]string, when func(name string) time.Time) {
	s.T.Helper()
	for name, content := range files {
		s.Put(site+"/"+version+"/"+name, content, when(name))
	}
	link := filepath.Join(s.Dir, site, "current")
	harness.Symlink(s.T, version, link+".new")
	harness.Must(s.T, os.Rename(link+".new", link))
}

// byNumber dates files whose names are numbers days apart.
func byNumber(name string) time.Time {
	n := 0
	_, _ = fmt.Sscan(name, &n)
	return harness.DayOf(n)
}

// atOnce dates files as a deployment does.
func atOnce(string) time.Time { return harness.DayOf(300) }

func TestDatesAtFirstSight(t *testing.T) {
	plain, none, exact := make(map[string]string), make(map[string]string), make(map[string]string)
	for i := range 10 {
		name := fmt.Sprintf("%d.html", i)
		plain[name], none["/"+name], exact["/"+name] = fmt.Sprint("page ", i), "", harness.Stamp(harness.DayOf(i))
	}
	declaring, declared := maps.Clone(plain), maps.Clone(exact)
	declaring["1.html"], declared["/1.html"] = harness.Whole(`<meta property="article:modified_time" content="2020-02-03T04:05:06+02:00">`, "declares"), "2020-02-03T02:05:06Z"
	declaring["2.html"], declared["/2.html"] = harness.Whole(`<script type="application/ld+json">{"@type":"Article","url":"/2.html","dateModified":"2019-01-02"}</script>`, "declares"), "2019-01-02"
	declaring["3.html"] = harness.Whole(`<meta property="article:modified_time" content="2999-01-01">`, "declares")
	for name, test := range map[string]struct {
		settings string
		files    map[string]string
		when     func(name string) time.Time
		want     map[string]string
	}{
		"declared": {"", declaring, byNumber, declared},
		"mtime":    {"lastmod mtime", declaring, byNumber, exact},
		"off":      {"lastmod off", declaring, byNumber, none},
		"listed":   {"urls {\n/0.html lastmod=2016-01-01\n/1.html lastmod=2016-01-02\n/2.html\n}", plain, atOnce, map[string]string{"/0.html": "2016-01-01", "/1.html": "2016-01-02", "/2.html": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			s.deploy(name, "1", test.files, test.when)
			s.Load(many(map[string]string{name: test.settings}))
			s.WantDates(originOf(name), test.want)
		})
	}
}

// TestDeployments puts another version of a whole site in the place of the last.
func TestDeployments(t *testing.T) {
	const n = 10
	version := func(page func(i int) string) map[string]string {
		files := make(map[string]string)
		for i := range n {
			files[fmt.Sprintf("%d.html", i)] = page(i)
		}
		return files
	}
	framed := func(frame string) func(i int) string {
		return func(i int) string {
			return fmt.Sprintf(`<!doctype html><html><head><title>Page %d</title><link rel=stylesheet href="/app.%s.css"></head><body class="v%s"><header>%[2]s</header><nav><a href="/%[2]s">%[2]s</a></nav>
				<main><h1>Page %[1]d</h1><p>The text of page %[1]d.</main><aside>%[2]s</aside><footer>Built %[2]s</footer><script>var build = "%[2]s"</script></body></html>`, i, frame, frame)
		}
	}
	main := func(text func(i int) string) func(i int) string {
		return func(i int) string {
			return strings.Replace(framed("1")(i), fmt.Sprintf("The text of page %d.", i), text(i), 1)
		}
	}
	someNew := func(most int) func(i int) string {
		return main(func(i int) string {
			if i < most {
				return fmt.Sprintf("Another text of page %d.", i)
			}
			return fmt.Sprintf("The text of page %d.", i)
		})
	}
	type step struct {
		second func(i int) string
		moved  int // pages that have the day of the second version: all of its files have one time, which is that of a build
	}
	steps := map[string]step{
		"frame":    {framed("2"), 0},
		"one":      {someNew(1), 1},
		"most":     {someNew(n/2 + 1), 0},
		"template": {main(func(i int) string { return fmt.Sprintf("The text of page %d. Share this page!", i) }), 0},
	}
	for _, first := range []struct {
		name string
		when func(name string) time.Time
	}{{"dated", byNumber}, {"deployed", atOnce}} {
		t.Run(first.name, func(t *testing.T) {
			s := prepare(t, nil)
			settings := make(map[string]string)
			for site := range steps {
				settings[site] = ""
				s.deploy(site, "1", version(framed("1")), first.when)
			}
			s.Load(many(settings))
			before := make(map[string]map[string]string)
			tags := make(map[string]string)
			for site := range steps {
				before[site] = make(map[string]string)
				for i := range n {
					name := fmt.Sprintf("%d.html", i)
					before[site]["/"+name] = map[bool]string{true: harness.Stamp(first.when(name))}[first.name == "dated"]
				}
				s.WantDates(originOf(site), before[site])
				tags[site] = s.Get(originOf(site) + "/sitemap.xml").Header.Get("ETag")
			}
			second := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
			for site, step := range steps {
				s.deploy(site, "2", version(step.second), func(string) time.Time { return second })
			}
			for site, step := range steps {
				for i := range step.moved {
					before[site][fmt.Sprintf("/%d.html", i)] = time.Now().UTC().Format(time.DateOnly)
				}
				s.WantDates(originOf(site), before[site])
			}
			s.Refreshes(1)
			for site, step := range steps {
				s.WantDates(originOf(site), before[site])
				if tag := s.Get(originOf(site) + "/sitemap.xml").Header.Get("ETag"); (tag == tags[site]) != (step.moved == 0) {
					t.Errorf("%s: the ETag is %s, it was %s", site, tag, tags[site])
				}
			}
			s.Passed(time.Second) // changes found in one second are one deployment
			// What changes later is seen, and it alone.
			// Its time is from before the last look at the second one, so only the day is known.
			third := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
			for site := range steps {
				s.Put(site+"/2/9.html", harness.Whole("", "<main>A third text</main>"), third)
				before[site]["/9.html"] = time.Now().UTC().Format(time.DateOnly)
			}
			for site := range steps {
				s.WantDates(originOf(site), before[site])
			}
		})
	}
}

// TestDeclaredDateMoves believes a date that a file declares anew, and none of one day that nearly all files declare.
func TestDeclaredDateMoves(t *testing.T) {
	declares := func(date, text string) string {
		return harness.Whole(`<meta property="article:modified_time" content="`+date+`">`, "<main>"+text+"</main>")
	}
	s := prepare(t, nil)
	s.deploy("moves", "1", map[string]string{"0.html": declares("2020-01-01", "zero"), "1.html": declares("2020-02-01", "one"), "2.html": "two", "3.html": declares("2020-03-01", "three"), "4.html": declares("2020-04-01", "four")}, byNumber)
	s.Load(many(map[string]string{"moves": ""}))
	origin := originOf("moves")
	want := map[string]string{"/0.html": "2020-01-01", "/1.html": "2020-02-01", "/2.html": harness.Stamp(harness.DayOf(2)), "/3.html": "2020-03-01", "/4.html": "2020-04-01"}
	s.WantDates(origin, want)
	s.Put("moves/1/0.html", declares("2021-01-01", "zero"), harness.DayOf(100))
	s.Put("moves/1/1.html", declares("2021-02-01", "another one"), harness.DayOf(101))
	// What a text declares from before it was found does not say when it changed.
	want["/0.html"], want["/1.html"] = "2021-01-01", time.Now().UTC().Format(time.DateOnly)
	s.WantDates(origin, want)

	for i, name := range []string{"0.html", "1.html", "3.html", "4.html"} {
		text := []string{"zero", "another one", "three", "four"}[i]
		s.Put("moves/1/"+name, declares("2021-07-01", text), harness.DayOf(110+i))
	}
	s.RefreshedAgain(origin)
	s.WantDates(origin, want)
}

// modified is a page with a Last-Modified header, if there is one.
func modified(when, text string) string {
	if when != "" {
		when = "Last-Modified: " + when
	}
	return when + "\n\n" + harness.Whole("", "<main>"+text+"</main>")
}

// TestDatesOfApplications is pages whose dates an application tells.
func TestDatesOfApplications(t *testing.T) {
	at := func(day int) string { return harness.DayOf(day).Format(http.TimeFormat) }
	const n = 9
	app, alike := newWeb(make(map[string]string)), newWeb(make(map[string]string))
	s := prepare(t, nil)
	var list strings.Builder
	for i := range n {
		name := fmt.Sprintf("/%d.html", i)
		app.respond(name, modified(map[bool]string{false: at(i)}[i%3 == 0], "page "+name))
		alike.respond(name, modified(at(7), "page "+name))
		// The folder names the pages, the application has another text.
		s.Put("app"+name, "{{ the source of this page }}", harness.DayOf(200+i))
		fmt.Fprintln(&list, name)
	}
	app.respond("/now.html", modified("{now}", "modified just now"))
	app.respond("/future.html", modified(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), "not modified yet"))
	app.respond("/nonsense.html", modified("yesterday", "modified at some time"))
	s.Write(map[string]string{"list": list.String()})
	config := strings.NewReplacer("{app}", harness.Backend(t, app.ServeHTTP), "{alike}", harness.Backend(t, alike.ServeHTTP)).Replace(
		originOf("app") + " {\n sitemap {\n refresh 1s\n crawl {\n rate 1000/s\n}\n files {dir}/app\n urls {\n/now.html\n/future.html\n/nonsense.html\n}\n}\n reverse_proxy {app}\n}\n" +
			originOf("alike") + " {\n sitemap {\n refresh 1s\n crawl {\n rate 1000/s\n}\n urls {dir}/list\n}\n reverse_proxy {alike}\n}\n")
	s.Load(config)
	want := map[string]string{"/now.html": "", "/future.html": "", "/nonsense.html": ""}
	none := make(map[string]string)
	for i := range n {
		name := fmt.Sprintf("/%d.html", i)
		none[name], want[name] = "", harness.Stamp(harness.DayOf(i))
		if i%3 == 0 {
			want[name] = ""
		}
	}
	s.WantDates(originOf("app"), want)
	s.WantDates(originOf("alike"), none)

	// Their files change, so they are fetched again.
	touch := func() {
		for i := range n {
			s.Put(fmt.Sprintf("app/%d.html", i), fmt.Sprintf("{{ another source %s }}", time.Now()), time.Now())
		}
	}
	today := func() string { return time.Now().UTC().Format(time.DateOnly) }
	day := today()
	app.respond("/0.html", modified("", "another text, no header"))
	app.respond("/1.html", modified(at(500), "another text, a header from before"))
	app.respond("/2.html", modified(at(2), "another text, the same header"))
	app.respond("/4.html", modified(at(501), "page /4.html")) // the same text, another time
	want["/0.html"], want["/1.html"], want["/2.html"] = day, day, day
	s.Eventually(func() bool {
		touch() // a second fetch confirms what the first has found
		s.Refreshes(2)
		return maps.Equal(s.Dates(originOf("app")), want)
	}, s.SitemapLog)
	s.WantDates(originOf("app"), want)

	// A text that is always another one has no date.
	app.respond("/3.html", modified("", "visitor"+" {n}"))
	for range 3 {
		touch()
		s.Refreshes(2)
		s.WantDates(originOf("app"), want)
	}
	s.WantDates(originOf("app"), want)
	if got := slices.Sorted(maps.Keys(s.Dates(originOf("alike")))); len(got) != n {
		t.Errorf("got %q", got)
	}
}

// TestTimesOfDeployments: a time that ten files or more, and a fifth of the new ones or more,
// share within ten minutes is that of a deployment, and no page's date, also of pages that
// became known through links.
func TestTimesOfDeployments(t *testing.T) {
	const deployed, others = 12, 40
	file := func(i int) string { return fmt.Sprintf("%03d.html", i) }
	s := prepare(t, nil)
	want := make(map[string]string)
	for i := range deployed + others {
		when, path := harness.DayOf(i), "/other/"+file(i) // as it is listed
		if want[path] = harness.Stamp(when); i < deployed {
			when, want[path] = harness.DayOf(1000).Add(time.Duration(i)*50*time.Second), ""
		}
		var links []string
		for j := 1; i == 0 && j < deployed+others; j++ {
			links = append(links, file(j))
		}
		s.Put("site/"+file(i), linking(fmt.Sprint("page ", i), links...), when)
	}
	s.Load(harness.Local + " {\n root * {dir}/site\n sitemap {\n refresh 1s\nlinks\nurls {\n/other/" + file(0) + "\n}" +
		"\n }\n handle_path /other/* {\n file_server\n }\n file_server\n}")
	s.WantDates(harness.Local, want)
	s.Quietly(1)
	s.WantDates(harness.Local, want)
}
