package caddytest

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

func init() {
	caddy.RegisterModule(new(counting))
	httpcaddyfile.RegisterHandlerDirective("test_count", func(httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return new(counting), nil
	})
	httpcaddyfile.RegisterDirectiveOrder("test_count", httpcaddyfile.Before, "respond")
}

// counting is a handler that counts fetches: see countFetches.
type counting struct{}

func (*counting) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_count", New: func() caddy.Module { return new(counting) }}
}

func (*counting) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	theFetches.note(r)
	return next.ServeHTTP(w, r)
}

// fetches counts fetches of pages that writeDated makes, by path; reading a file is one.
type fetches struct {
	mu    sync.Mutex
	pages map[string]int
}

// theFetches are those of the running test.
var theFetches fetches

func (f *fetches) note(r *http.Request) {
	if strings.HasPrefix(r.UserAgent(), "caddy-sitemap ") {
		f.add(r.URL.Path)
	}
}

func (f *fetches) add(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if path = strings.TrimPrefix(path, "/"); datedPath.MatchString(path) {
		f.pages[path]++
	}
}

// since is how many fetches there were since it was called last, by page.
func (f *fetches) since() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	pages := maps.Clone(f.pages)
	clear(f.pages)
	return pages
}

// countFetches counts from now on what test_count sees, and which files of pages the
// file system test_hooked opens.
func countFetches(t *testing.T) *fetches {
	theFetches.mu.Lock()
	theFetches.pages = make(map[string]int)
	theFetches.mu.Unlock()
	hook(t, func(name string) error {
		theFetches.add(name)
		return nil
	})
	return &theFetches
}

// wantNone wants no page to have been fetched since the last time.
func (f *fetches) wantNone(t *testing.T, after string) {
	t.Helper()
	if pages := f.since(); len(pages) > 0 {
		t.Errorf("after %s, pages were fetched: %v", after, pages)
	}
}

// writeDated makes n pages below {dir}/site, in folders of ten, each of its own day.
func (s *server) writeDated(n int, content func(i int) string) {
	s.T.Helper()
	for i := range n {
		s.Put(datedName(i), content(i), harness.DayOf(i))
	}
}

func datedName(i int) string { return fmt.Sprintf("site/%03d/%03d.html", i/10, i) }

var datedPath = regexp.MustCompile(`^\d{3}/\d{3}\.html$`)

// pageNumbered is a page whose text says its number, and that links to the next.
func pageNumbered(i int) string {
	return fmt.Sprintf("<!doctype html><title>page</title><p>This is page %d.<a href=%s>next</a>", i, strings.TrimPrefix(datedName(i+1), "site"))
}

// served is all of what is served: the sitemap, and its shards, with what says whether
// they changed.
func (s *server) served() map[string]string {
	s.T.Helper()
	all := make(map[string]string)
	add := func(d document) {
		all[d.url] = d.Header.Get("Etag") + " " + d.Header.Get("Last-Modified") + "\n" + d.Text
	}
	index := s.document("http://localhost:{port}/sitemap.xml")
	add(index)
	for _, child := range index.children {
		add(s.document(child.Loc))
	}
	return all
}

// wantServed wants that to be served still.
func (s *server) wantServed(want map[string]string, after string) {
	s.T.Helper()
	got := s.served()
	for url := range want {
		if got[url] != want[url] {
			s.T.Errorf("after %s, %s is\n%s\nit was\n%s", after, s.Expand(url), got[url], want[url])
		}
	}
	if len(got) != len(want) {
		s.T.Errorf("after %s there are %d documents, there were %d", after, len(got), len(want))
	}
}

const countedFiles = `{
	filesystem counted test_hooked {dir}/site
}
http://localhost:{port} {
	root * .
	fs counted
	sitemap {
		<settings>
	}
	test_count
	file_server
}`

const countedUpstream = `http://localhost:{port} {
	sitemap {
		urls {dir}/list
		crawl {
			rate 1000/s
		}
		<settings>
	}
	reverse_proxy {app}
}`

// prepareCounted makes n pages and a list of them, and an upstream that has them and
// counts fetches.
func prepareCounted(t *testing.T, n int) (s *server, fetched *fetches, app string) {
	t.Helper()
	fetched = countFetches(t)
	s = prepare(t, nil)
	s.writeDated(n, pageNumbered)
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "%s\n", strings.TrimPrefix(datedName(i), "site"))
	}
	s.Write(map[string]string{"list": list.String()})
	app = harness.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		fetched.note(r)
		http.ServeFile(w, r, filepath.Join(s.Dir, "site", r.URL.Path))
	})
	return s, fetched, app
}

func TestReloadFetchesNothing(t *testing.T) {
	const n = 30
	for kind, caddyfile := range map[string]string{"files": countedFiles, "upstream": countedUpstream} {
		t.Run(kind, func(t *testing.T) {
			s, fetched, app := prepareCounted(t, n)
			with := func(settings string) string {
				return strings.NewReplacer("{app}", app, "<settings>", settings).Replace(caddyfile)
			}
			s.Load(with(""))
			s.Crawled()
			if locs := s.Locs("http://localhost:{port}/sitemap.xml"); len(locs) != n {
				t.Fatalf("got %q\n%s", locs, s.SitemapLog())
			}
			first := s.Get("http://localhost:{port}/sitemap.xml")
			if pages := fetched.since(); len(pages) < n {
				t.Errorf("fetches are not counted: %v", pages)
			}
			for _, test := range []struct {
				settings string
				want     string // part of the sitemap
			}{
				{"", "<urlset"},
				{"refresh 2h", "<urlset"},
				{"robots_txt off", "<urlset"},
				{"rule * {\n\t\t\tpriority 0.3\n\t\t}", "<priority>0.3"},
				{"shard_urls 5", "<sitemapindex"},
				{"section first /000/*", "sitemap-first.xml<"},
				{"schema 0.84", "0.84"},
				{"lastmod off", ".html</loc></url>"},
				{"canonical ignore", "<urlset"},
				{"", "000.html</loc><lastmod>2000-01-01"},
				{"exclude /000/*", "-->\n<url><loc>http://localhost:{port}/001/010.html"},
			} {
				s.Reload(with(test.settings))
				var body string
				s.Eventually(func() bool {
					r := s.mustGet("http://localhost:{port}/sitemap.xml")
					if body = r.Text; r.StatusCode != http.StatusOK {
						t.Fatalf("%s: got status %d", test.settings, r.StatusCode)
					}
					return strings.Contains(body, s.Expand(test.want))
				}, func() string { return test.settings + ": got " + body + s.SitemapLog() })
				s.Passed(100 * time.Millisecond)
				fetched.wantNone(t, "a reload with '"+test.settings+"'")
				if r := s.Get("http://localhost:{port}/sitemap.xml"); test.settings == "" && (r.Header.Get("Etag") != first.Header.Get("Etag") || r.Text != first.Text) {
					t.Errorf("with settings as at the beginning, got the ETag %s, it was %s:\n%s", r.Header.Get("Etag"), first.Header.Get("Etag"), r.Text)
				}
			}

			const last = "exclude /000/*"
			s.Crawled()
			before := s.served()
			s.Stop()
			s.Load(with(last))
			s.wantServed(before, "a restart")
			s.Passed(500 * time.Millisecond)
			s.wantServed(before, "a restart and a refresh")
			fetched.wantNone(t, "a restart")
		})
	}
}

// TestReloadFetchesWhatItNeeds: settings that take more of a page than was taken of it so
// far have it fetched again.
func TestReloadFetchesWhatItNeeds(t *testing.T) {
	s := prepare(t, nil)
	s.writeDated(2, func(int) string {
		return "<!doctype html><title>page</title><link rel=alternate hreflang=en href=/000/000.html><link rel=alternate hreflang=fr href=/000/001.html><main>Text <img src=/a.png></main>"
	})
	s.Write(map[string]string{"site/a.png": "\x89PNG"})
	for _, test := range []struct{ settings, want, not string }{
		{"", "<urlset", "<image:loc>"},
		{"extensions images", "<image:loc>", "<xhtml:link"},
		{"", "<urlset", "<image:loc>"},
		{"extensions alternates", "<xhtml:link", "<image:loc>"},
		{"crawl off", "</loc><lastmod>2000-01-01", "<xhtml:link"},
		{"extensions alternates images", "<image:loc>", "<none"},
	} {
		s.Reload("http://localhost:{port} {\n root * {dir}/site\n sitemap {\n refresh 1s\n " + test.settings + "\n }\n file_server\n}")
		var text string
		s.Eventually(func() bool {
			text = s.mustGet("http://localhost:{port}/sitemap.xml").Text
			return strings.Contains(text, test.want) && !strings.Contains(text, test.not)
		}, func() string { return test.settings + ": got " + text + s.SitemapLog() })
	}
}

// deployedSite is refreshed only when the test asks for it, as nothing watches its file system: a refresh amid a deployment
// lists what is there.
const deployedSite = `{
	filesystem counted test_hooked {dir}/site
}
http://localhost:{port} {
	root * .
	fs counted
	sitemap {
		refresh 1h
		` + quickly + `
		shard_urls 10
	}
	test_count
	file_server
}`

// TestRedeployment rewrites every file with the same text, after a moment in which there is none.
func TestRedeployment(t *testing.T) {
	const n = 100
	// built is a page as a generator writes it: all but its text changes each time.
	built := func(i int, build string) string {
		return fmt.Sprintf("<!doctype html><html><head><title>page</title><link rel=stylesheet href=/app.%s.css></head><body><nav>menu %s</nav>\n<main>  This is page\n%d.</main><footer>built %s</footer></body></html>", build, build, i, build)
	}
	fetched := countFetches(t)
	s := prepare(t, nil)
	for i := range n {
		s.Put(datedName(i), built(i, "1"), harness.DayOf(i))
	}
	s.Load(deployedSite)
	s.Crawled()
	s.Refreshes(1)
	before := s.served()
	if len(before) < 10 {
		t.Fatalf("got %d documents", len(before))
	}
	if !strings.Contains(s.document("http://localhost:{port}/sitemap.xml").Text, "<lastmod>") {
		t.Error("there are no dates")
	}
	fetched.since()

	harness.Must(t, os.RemoveAll(filepath.Join(s.Dir, "site")))
	for i := range n {
		s.Put(datedName(i), built(i, "2"), time.Now())
	}
	// They are fetched again, since their files are others.
	again := make(map[string]int)
	s.Eventually(func() bool {
		s.Refreshes(1)
		maps.Copy(again, fetched.since())
		return len(again) == n
	}, func() string {
		return fmt.Sprintf("%d of %d pages are fetched again: %v\n%s", len(again), n, again, s.SitemapLog())
	})
	s.Quietly(2)
	s.wantServed(before, "a deployment")
	if lines := s.LogLines(`"level":"warn"`, "http.handlers.sitemap"); len(lines) > 0 {
		t.Errorf("the log warns: %s", lines)
	}

	// What is really new is seen on the very same day.
	changed := time.Now().Add(-time.Hour).UTC()
	s.Put(datedName(7), "<!doctype html><title>page</title><main>Another text.</main>", changed)
	want := "007.html</loc><lastmod>" + time.Now().UTC().Format(time.DateOnly)
	s.Eventually(func() bool {
		s.Refreshes(1)
		for _, document := range s.served() {
			if strings.Contains(document, want) {
				return true
			}
		}
		return false
	}, func() string { return fmt.Sprintf("no %s in %v\n%s", want, s.served(), s.SitemapLog()) })
}

// TestReloadGoesOn reloads while an upstream is being crawled, as slowly as it is to be:
// what was fetched so far is kept, and the rest follows.
func TestReloadGoesOn(t *testing.T) {
	const n = 30
	for name, reload := range map[string]func(s *server, caddyfile string){
		"the same settings": func(s *server, caddyfile string) { s.Reload(caddyfile) },
		"a restart": func(s *server, caddyfile string) {
			s.Stop()
			s.Reload(caddyfile)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, fetched, app := prepareCounted(t, n)
			caddyfile := strings.NewReplacer("{app}", app, "1000/s", "10/s", "<settings>", "refresh 1h").Replace(countedUpstream)
			s.Load(caddyfile)
			total := make(map[string]int)
			until := func(want int) {
				t.Helper()
				s.Eventually(func() bool {
					for path, times := range fetched.since() {
						total[path] += times
					}
					return len(total) >= want
				}, func() string { return fmt.Sprintf("%d pages were fetched: %v\n%s", len(total), total, s.SitemapLog()) })
			}
			s.Locs("http://localhost:{port}/sitemap.xml") // lists what was fetched in the first seconds
			until(n - 12)
			reload(s, caddyfile)
			s.Eventually(func() bool { // a server that ends takes connections with it that nobody has read from
				_, err := s.TryLocs("http://localhost:{port}/sitemap.xml")
				return err == nil
			}, s.SitemapLog)
			until(n)
			s.Passed(time.Second)
			until(n)
			maps.DeleteFunc(total, func(_ string, times int) bool { return times == 1 })
			if len(total) > 2 { // what was under way is fetched again
				t.Errorf("pages were fetched again: %v", total)
			}
		})
	}
}

// TestReloadWhileAPageHangs: a fetch that hangs keeps no refresh,
// reload or Stop waiting, and takes no page away.
func TestReloadWhileAPageHangs(t *testing.T) {
	s := prepare(t, nil)
	s.writeDated(3, pageNumbered)
	caddyfile := `
http://localhost:{port} {
	root * {dir}/site
	sitemap {
		refresh 1s
	}
	test_hang /000/001.html
	file_server
}`
	s.Load(caddyfile)
	const url = "http://localhost:{port}/sitemap.xml"
	want := harness.Below("http://localhost:{port}", []string{"/000/000.html", "/000/001.html", "/000/002.html"})
	s.WantLocs(url, want...)
	hangs.Store(true)
	defer hangs.Store(false)
	s.Put(datedName(1), "another text", harness.DayOf(100)) // so that it is fetched again
	s.awaitHanging()
	s.Put(datedName(3), pageNumbered(3), harness.DayOf(3))
	want = append(want, "http://localhost:{port}/000/003.html")
	s.WantLocs(url, want...)
	for i, settings := range []string{"refresh 1s", "refresh 1s\n\t\tschema 0.84"} {
		s.Reload(strings.Replace(caddyfile, "refresh 1s", settings, 1))
		if locs, err := s.fetch(s.Expand(url)); err != nil || len(locs) != len(want) {
			t.Errorf("right after reload %d: got %q, %v", i, locs, err)
		}
		s.Put(datedName(4+i), pageNumbered(4+i), harness.DayOf(4+i))
		want = append(want, "http://localhost:{port}/"+strings.TrimPrefix(datedName(4+i), "site/"))
		s.WantLocs(url, want...)
	}
	s.Put(datedName(1), "yet another text", harness.DayOf(101)) // once more
	s.awaitHanging()
	begun := time.Now() // the fetch would take ten seconds
	s.Stop()
	if took := time.Since(begun); took > 9*time.Second || hung.Load() != 0 {
		t.Errorf("Stop took %s, and %d fetches outlive it", took, hung.Load())
	}
}
