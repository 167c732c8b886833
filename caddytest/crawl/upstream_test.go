package crawl

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// password is the one of a login that no one here knows.
const password = "$2a$04$aPZhuYXBWNJlPRSWPfCZFegvKwmNlOEz6SpV1vpOSgLLGWPTqRZhW"

// twoFolders are the files of the tests of a folder that is served otherwise than the
// rest of its site.
var twoFolders = map[string]string{
	"site/index.html":               harness.HTML("home"),
	"site/about.html":               harness.HTML("about"),
	"site/private/index.html":       harness.HTML("secret plans"),
	"site/private/plan-a.html":      harness.HTML("plan a"),
	"site/private/plan-b.html":      harness.HTML("plan b"),
	"site/private/deep/plan-c.html": harness.HTML("plan c"),
	"site/public/index.html":        harness.HTML("public"),
	"site/public/news.html":         harness.HTML("news"),
	"site/public/private/one.html":  harness.HTML("one"),
}

// TestPagesThatVisitorsGet is which pages are listed where not all of them are
// served from their files.
func TestPagesThatVisitorsGet(t *testing.T) {
	const origin = "http://localhost:{port}"
	open := []string{"/", "/about.html", "/public/", "/public/news.html", "/public/private/one.html"}
	for name, test := range map[string]struct {
		caddyfile string
		files     map[string]string // besides twoFolders
		want      []string
		left      string // words of why others are left out
	}{
		"basic_auth of a folder":   {caddyfile: "basic_auth /private/* {\n user " + password + "\n }\n root {dir}/site\n sitemap\n file_server", want: open, left: "refused: 4"},
		"a folder that redirects":  {caddyfile: "root {dir}/site\nredir /private/* /public/\nsitemap\nfile_server", want: open, left: "redirect: 4"},
		"a folder that is aborted": {caddyfile: "root {dir}/site\nabort /private/*\nsitemap\nfile_server", want: open, left: "server error: 4"},
		"a folder for visitors from inside": {
			caddyfile: "root {dir}/site\n@outside {\n path /private/*\n not remote_ip 127.0.0.1 ::1 private_ranges\n}\nrespond @outside 403\nsitemap\nfile_server",
			want:      open, left: "refused: 4",
		},
		"a folder for visitors with a cookie": {caddyfile: "root {dir}/site\n@unknown {\n path /private/*\n not header Cookie *\n}\nredir @unknown /about.html 307\nsitemap\nfile_server", want: open, left: "redirect: 4"},
		"one public folder": {
			caddyfile: "root {dir}/site\n@outside {\n not path / /public/* /sitemap.xml /robots.txt\n}\nrespond @outside 401\nsitemap\nfile_server",
			want:      []string{"/", "/public/", "/public/news.html", "/public/private/one.html"}, left: "refused: 5",
		},
		"templates": {
			caddyfile: "root {dir}/site\nsitemap\ntemplates\nfile_server",
			files: map[string]string{
				"site/_robots.html":      `<meta name="robots" content="noindex">`,
				"site/made.html":         "<!doctype html><head><title>made</title>{{include \"_robots.html\"}}</head>text",
				"site/told.html":         "<!doctype html><head><title>told</title>{{if false}}<meta name=\"robots\" content=\"noindex\">{{end}}</head>text",
				"site/canonical.html":    "<!doctype html><head><title>x</title>{{if false}}<link rel=\"canonical\" href=\"https://elsewhere.example/\">{{end}}</head>text",
				"site/fragment.html":     "{{if false}}x{{else}}<!doctype html><title>a whole one</title>{{end}}",
				"site/no-whole-one.html": "{{if false}}<!doctype html><title>a whole one</title>{{else}}a part{{end}}",
				"site/broken.html":       "<!doctype html><title>broken</title>{{include \"missing.html\"}}",
			},
			want: []string{"/", "/about.html", "/canonical.html", "/fragment.html", "/private/", "/private/deep/plan-c.html", "/private/plan-a.html", "/private/plan-b.html", "/public/", "/public/news.html", "/public/private/one.html", "/told.html"},
			left: "noindex: 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(twoFolders)
			maps.Copy(files, test.files)
			s := start(t, origin+" {\n"+test.caddyfile+"\n}", files)
			s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, test.want)...)
			s.Logged("sitemap refreshed", test.left)
			if !slices.Contains(test.want, "/private/") {
				for _, document := range []string{"/sitemap.xml", "/sitemap.txt", "/robots.txt"} {
					if r := s.Get(origin + document); strings.Contains(r.Text, "/private/plan") || strings.Contains(r.Text, "/private/deep") {
						t.Errorf("%s names pages of the folder: %s", document, r.Text)
					}
				}
			}
		})
	}
}

// upstream is an application that serves a folder, and counts what is fetched.
type upstream struct {
	root string

	mu       sync.Mutex
	respond  http.HandlerFunc // in the place of files; nil: files
	fetches  []fetched
	underway int
	most     int
}

type fetched struct {
	path string
	at   time.Time
}

// isPage reports whether a request is a fetch of a page: the front page is probed with each
// refresh, and no page here.
func isPage(r *http.Request) bool {
	path := r.URL.Path
	return path != "/" && path != "/robots.txt" && !strings.HasPrefix(path, "/sitemap") && strings.HasPrefix(r.UserAgent(), "caddy-sitemap ")
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	if isPage(r) {
		u.fetches = append(u.fetches, fetched{r.URL.Path, time.Now()})
		u.underway++
		u.most = max(u.most, u.underway)
		defer func() {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.underway--
		}()
	}
	respond := u.respond
	u.mu.Unlock()
	if respond == nil || r.URL.Path == "/robots.txt" {
		http.FileServer(http.Dir(u.root)).ServeHTTP(w, r)
		return
	}
	respond(w, r)
}

// become has the upstream respond so from now on, but for robots.txt; nil: with the files.
// What was fetched before is forgotten.
func (u *upstream) become(respond http.HandlerFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.respond, u.fetches, u.most = respond, nil, u.underway
}

// fetched are the pages that were fetched, in order of their paths, each once.
func (u *upstream) fetched() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var paths []string
	for _, a := range u.fetches {
		paths = append(paths, a.path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// startProxied runs a site whose pages, those below {dir}/site, an upstream serves.
func startProxied(t *testing.T, options string, files map[string]string) (*server, *upstream) {
	t.Helper()
	s := prepare(t, files)
	u := &upstream{root: filepath.Join(s.Dir, "site")}
	s.LoadApp(`http://localhost:{port} {
		sitemap {
			refresh 1s
			files {dir}/site {
				clean_urls off
			}
			`+options+`
		}
		reverse_proxy {app}
	}`, u.ServeHTTP)
	return s, u
}

// numbered are n files of one folder, and their URLs.
func numbered(n int) (files map[string]string, urls []string) {
	files = make(map[string]string)
	for i := range n {
		name := fmt.Sprintf("/pages/%02d.html", i)
		files["site"+name] = "<!doctype html><title>page</title><main>the text of page " + name + "</main>"
		urls = append(urls, "http://localhost:{port}"+name)
	}
	return files, urls
}

// TestUpstreamPace is how often an upstream gets a request.
func TestUpstreamPace(t *testing.T) {
	const unpaced = 3 // fetches, until it is known that an upstream responds
	for _, test := range []struct {
		name, options string
		pages         int
		least         time.Duration // between two fetches
		atMost        int           // under way
		longest       time.Duration // from the first to the last
	}{
		{"by default", "", 8, 500 * time.Millisecond, 1, 10 * time.Second},
		{"rate", "crawl {\n rate 50/s\n}", 40, 20 * time.Millisecond, 1, 5 * time.Second},
		{"concurrency", "crawl {\n rate 5/s\n concurrency 3\n}", 12, 200 * time.Millisecond, 3, 8 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			files, urls := numbered(test.pages)
			s := prepare(t, files)
			u := &upstream{root: filepath.Join(s.Dir, "site")}
			s.LoadApp(`http://localhost:{port} {
				sitemap {
					refresh 1s
					`+test.options+`
					urls {
						`+strings.Join(urls, "\n")+`
					}
				}
				reverse_proxy {app}
			}`, u.ServeHTTP)
			s.WantLocs("http://localhost:{port}/sitemap.xml", urls...)
			s.Eventually(func() bool { return len(u.fetched()) == test.pages }, func() string {
				return fmt.Sprintf("fetched %q\n%s", u.fetched(), s.SitemapLog())
			})
			s.Refreshes(1)
			u.mu.Lock()
			defer u.mu.Unlock()
			if u.most > max(test.atMost, unpaced-1) {
				t.Errorf("%d requests at a time, want %d", u.most, test.atMost)
			}
			// What keeps them apart is the time at which they begin: the upstream sees
			// what is left of it after their way. It tells on average.
			for i := unpaced; i < len(u.fetches); i++ {
				if apart := u.fetches[i].at.Sub(u.fetches[i-1].at); apart < test.least/2 {
					t.Errorf("request %d, for %s, comes %s after the one before, want %s", i+1, u.fetches[i].path, apart, test.least)
				}
			}
			if took, least := u.fetches[len(u.fetches)-1].at.Sub(u.fetches[unpaced-1].at), time.Duration(test.pages-unpaced)*test.least*9/10; took < least || took > test.longest {
				t.Errorf("fetching took %s, want from %s to %s", took, least, test.longest)
			}
			if len(u.fetches) != test.pages {
				t.Errorf("%d requests for %d pages: %v", len(u.fetches), test.pages, u.fetches)
			}
		})
	}
}

// TestUpstreamThatFails is responses that say nothing of a page: one that was good stays.
func TestUpstreamThatFails(t *testing.T) {
	for name, respond := range map[string]http.HandlerFunc{
		"503": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Robots-Tag", "noindex")
			w.WriteHeader(503)
			_, _ = w.Write([]byte(`<meta name="robots" content="noindex">`))
		},
		"429 for long": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(429)
		},
		"broken off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = w.Write([]byte("<"))
		},
		"no response in time": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(2 * harness.Patience):
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "no response in time" && testing.Short() {
				return // it takes as long as a fetch may
			}
			files, urls := numbered(6)
			s, u := startProxied(t, "crawl {\n rate 100/s\n}", files)
			s.WantLocs("http://localhost:{port}/sitemap.xml", urls...)
			s.Eventually(func() bool { return len(u.fetched()) == 6 }, s.SitemapLog)
			s.Refreshes(1)
			was := s.Get("http://localhost:{port}/sitemap.xml")
			u.become(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					return // else no visitor may see any of it
				}
				respond(w, r)
			})
			// What has changed is fetched again.
			s.Write(map[string]string{"site/pages/03.html": "<!doctype html><title>page</title><main>another text</main>"})
			s.Eventually(func() bool { return len(u.fetched()) > 0 }, s.SitemapLog)
			s.Refreshes(2)
			s.WantLocs("http://localhost:{port}/sitemap.xml", urls...)
			if got := u.fetched(); !slices.Equal(got, []string{"/pages/03.html"}) {
				t.Errorf("fetched %q, want the page that changed alone", got)
			}
			is := s.Get("http://localhost:{port}/sitemap.xml")
			if others(was.Text) != others(is.Text) {
				t.Errorf("other pages changed, too:\n%s\n%s", was.Text, is.Text)
			}
		})
	}
}

// others is a sitemap without the page that changes in TestUpstreamThatFails.
func others(body string) string {
	before, rest, _ := strings.Cut(body, "<url><loc>http://localhost:")
	parts := []string{before}
	for _, part := range strings.Split(rest, "<url>") {
		if !strings.Contains(part, "/03.html") {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "<url>")
}

// touch has all files below {dir}/site changed, their text not.
func (s *server) touch(files map[string]string) {
	s.T.Helper()
	now := time.Now()
	for name := range files {
		if err := os.Chtimes(filepath.Join(s.Dir, filepath.FromSlash(name)), now, now); err != nil {
			s.T.Fatal(err)
		}
	}
}

// TestUpstreamMaintenance is an upstream that responds to everything alike for a while.
func TestUpstreamMaintenance(t *testing.T) {
	const n = 12
	for name, respond := range map[string]http.HandlerFunc{
		"200": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<!doctype html><title>Maintenance</title><main>We will be back soon.</main>"))
		},
		"302": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/maintenance", http.StatusFound) },
		"503": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
	} {
		t.Run(name, func(t *testing.T) {
			files, urls := numbered(n)
			s, u := startProxied(t, "crawl {\n rate 200/s\n}", files)
			s.WantLocs("http://localhost:{port}/sitemap.xml", urls...)
			s.Eventually(func() bool { return len(u.fetched()) == n }, s.SitemapLog)
			s.Refreshes(1)
			was := s.Get("http://localhost:{port}/sitemap.xml").Text
			changes := len(s.LogLines(`"msg":"sitemap refreshed"`))
			u.become(respond)
			s.touch(files)
			want := n
			if name == "503" {
				want = 1 // then it is left alone
			}
			s.Eventually(func() bool { return len(u.fetched()) == want }, func() string {
				return fmt.Sprintf("fetched %q\n%s", u.fetched(), s.SitemapLog())
			})
			if name == "200" || name == "503" {
				s.Refreshes(2) // it may last
			} else {
				u.become(nil) // before it is fetched a second time
				s.Logged("sitemap change held back until later refreshes confirm it")
			}
			if is := s.Get("http://localhost:{port}/sitemap.xml").Text; is != was {
				t.Errorf("the sitemap has become\n%s, want\n%s\n%s", is, was, s.SitemapLog())
			}
			u.become(nil)
			s.Refreshes(4)
			if is := s.Get("http://localhost:{port}/sitemap.xml").Text; is != was {
				t.Errorf("afterwards the sitemap has become\n%s, want\n%s\n%s", is, was, s.SitemapLog())
			}
			if got := len(s.LogLines(`"msg":"sitemap refreshed"`)); got != changes {
				t.Errorf("the sitemap changed in between:\n%s", s.SitemapLog())
			}
		})
	}
}

// TestUpstreamThatComesLater is one that is not there yet when the server starts.
func TestUpstreamThatComesLater(t *testing.T) {
	files, urls := numbered(5)
	s := prepare(t, files)
	const caddyfile = `http://localhost:{port} {
		sitemap {
			refresh 1s
			files {dir}/site
		}
		reverse_proxy 127.0.0.1:{more}
	}`
	if err := s.Load(caddyfile); err != nil {
		t.Fatal(err)
	}
	if r := s.Get("http://localhost:{port}/sitemap.xml"); r.StatusCode != http.StatusBadGateway {
		t.Errorf("before: status %d, want 502", r.StatusCode)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+s.More)
	if err != nil {
		t.Fatal(err)
	}
	app := &http.Server{Handler: &upstream{root: filepath.Join(s.Dir, "site")}}
	go func() { _ = app.Serve(l) }()
	t.Cleanup(func() { _ = app.Close() })
	s.Eventually(func() bool {
		return s.Get("http://localhost:{port}/sitemap.xml").StatusCode == http.StatusOK
	}, s.SitemapLog)
	s.WantLocs("http://localhost:{port}/sitemap.xml", urls...)
}

// TestRobotsForbids is that what robots.txt keeps crawlers from is neither fetched nor
// listed.
func TestRobotsForbids(t *testing.T) {
	const origin = "http://localhost:{port}"
	all := []string{"/", "/about.html", "/private/", "/private/deep/plan-c.html", "/private/plan-a.html", "/private/plan-b.html", "/public/", "/public/news.html", "/public/private/one.html"}
	for name, test := range map[string]struct {
		robots string
		want   []string
	}{
		"a folder, but for a page": {"User-agent: *\nDisallow: /private/\nAllow: /private/plan-b\n", []string{"/", "/about.html", "/private/plan-b.html", "/public/", "/public/news.html", "/public/private/one.html"}},
		"Googlebot's own rules":    {"User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nDisallow: /public/\n", []string{"/", "/about.html", "/private/", "/private/deep/plan-c.html", "/private/plan-a.html", "/private/plan-b.html"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(twoFolders)
			files["site/robots.txt"] = test.robots
			s, u := startProxied(t, "crawl {\n rate 100/s\n}", files)
			s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, test.want)...)
			s.Refreshes(1)
			if got, want := u.fetched(), test.want[1:]; !slices.Equal(got, want) {
				t.Errorf("fetched %q, want %q", got, want)
			}
			// Another robots.txt is heeded with the next refresh.
			s.Write(map[string]string{"site/robots.txt": "User-agent: *\nDisallow: /about\n"})
			var rest []string
			for _, path := range all {
				if path != "/about.html" {
					rest = append(rest, path)
				}
			}
			s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, rest)...)
			s.Eventually(func() bool {
				got := u.fetched()
				return slices.Equal(slices.DeleteFunc(got, func(path string) bool { return path == "/about.html" }), rest[1:])
			}, func() string { return fmt.Sprintf("fetched %q\n%s", u.fetched(), s.SitemapLog()) })
		})
	}
}

// TestDisallow is links that are never followed, since a request might do something.
func TestDisallow(t *testing.T) {
	pages := []string{
		"/about.html", "/logout/", "/user/LogOut/", "/account/delete/now.html", "/shop/cart/", "/checkout/",
		"/api/v1.html", "/news/confirm/x.html", "/unsubscribe/x.html", "/verify/x.html", "/signout/x.html",
		"/apiary.html", "/how-to-delete.html", "/deleted/x.html", "/safe/a.html", "/safe/b.html",
	}
	files := make(map[string]string)
	front := ""
	for _, page := range pages {
		name := page
		if strings.HasSuffix(name, "/") {
			name += "index.html"
		}
		files["site"+name] = "<!doctype html><title>page</title>the text of " + page
		front += "<a href=" + page + ">" + page + "</a> "
	}
	files["site/index.html"] = "<!doctype html><title>home</title>" + front
	for _, test := range []struct {
		name, option string
		fetched      []string
	}{
		{"words and patterns", "disallow /safe/* logout", []string{
			"/about.html", "/account/delete/now.html", "/api/v1.html", "/apiary.html", "/checkout/", "/deleted/x.html", "/how-to-delete.html",
			"/news/confirm/x.html", "/shop/cart/", "/signout/x.html", "/unsubscribe/x.html", "/verify/x.html",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := prepare(t, files)
			u := &upstream{root: filepath.Join(s.Dir, "site")}
			s.LoadApp("http://localhost:{port} {\n sitemap {\n refresh 1s\n links\n crawl {\n rate 100/s\n "+test.option+"\n}\n}\n reverse_proxy {app}\n}", u.ServeHTTP)
			s.WantLocs("http://localhost:{port}/sitemap.xml", harness.Below("http://localhost:{port}", append([]string{"/"}, test.fetched...))...)
			s.Refreshes(2)
			for _, path := range u.fetched() {
				if slices.Contains(pages, path) && !slices.Contains(test.fetched, path) {
					t.Errorf("%s was fetched", path)
				}
			}
		})
	}
}
