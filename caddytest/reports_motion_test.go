package caddytest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestBuildSlowApplication: a build waits for pages and lists that take longer than visitors would wait for a first sitemap,
// whatever the interval between refreshes is.
func TestBuildSlowApplication(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow", "/list.txt":
			select {
			case <-time.After(5 * time.Second):
			case <-r.Context().Done():
				return
			}
		}
		if r.URL.Path == "/list.txt" {
			_, _ = w.Write([]byte("/one\n/two\n"))
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(linking(r.URL.Path)))
	}
	for name, test := range map[string]struct {
		sources string
		want    []string
	}{
		"a page": {"urls {\n/slow\n}", []string{"/slow"}},
		"a list": {"urls /list.txt", []string{"/one", "/two"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := httptest.NewServer(http.HandlerFunc(slow))
			defer app.Close()
			dir := t.TempDir()
			caddyfile := example + " {\nsitemap {\nrefresh 1s\ncrawl {\nrate 1000/s\n}\n" + test.sources + "\n}\nreverse_proxy {app}\n}\n"
			write(t, dir, map[string]string{"Caddyfile": strings.ReplaceAll(caddyfile, "{app}", app.Listener.Addr().String())})
			ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
			defer cancel()
			cmd := command(dir, "sitemap", "build", "--config", "Caddyfile", "--out", "out")
			context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
			if r := runCommand(t, cmd); r.status != 0 {
				t.Fatalf("status %d\n%s%s", r.status, r.stdout, r.stderr)
			}
			wantLocs(t, filepath.Join(dir, "out"), example, test.want...)
		})
	}
}

// TestRefreshAmidCrawl: a refresh that is requested while another one crawls begins at once, not after what that would still
// fetch before it publishes.
func TestRefreshAmidCrawl(t *testing.T) {
	for name, method := range map[string]func(s *server){
		"by the command": func(s *server) { s.command("refresh") },
		"by the admin API": func(s *server) {
			_, _ = s.Try(http.MethodPost, "http://localhost:{admin}/sitemap/refresh?site="+harness.Local)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var links []string
			for i := range 1000 {
				links = append(links, fmt.Sprint("/page", i))
			}
			script := newScript(t, links...)
			var fetched atomic.Int64
			s := prepareWithAdmin(t, nil)
			s.LoadApp(harness.Local+" {\nsitemap {\nrefresh 1h\ncrawl {\nrate 100/s\n}\nscripted "+t.Name()+"\n}\nreverse_proxy {app}\n}",
				func(w http.ResponseWriter, r *http.Request) {
					fetched.Add(1)
					w.Header().Set("Content-Type", "text/html")
					_, _ = w.Write([]byte(linking(r.URL.Path)))
				})
			// By then, the third part of the crawl has begun, which takes four seconds, until 700 pages were fetched.
			s.Eventually(func() bool { return fetched.Load() > 320 }, s.SitemapLog)
			runs := script.total()
			go method(s)
			var after int64
			s.Eventually(func() bool { after = fetched.Load(); return script.total() > runs }, s.SitemapLog)
			if after > 600 {
				t.Errorf("%d pages were fetched until the sources were asked again", after)
			}
		})
	}
}

// TestVisitedHostRedirects: a host that visitors named is crawled after one request, also if its front page redirects.
func TestVisitedHostRedirects(t *testing.T) {
	for name, test := range map[string]struct {
		responses map[string]string
		want      []string
	}{
		"to a page":      {map[string]string{"/": redirecting("/en/"), "/en/": linking("home", "/en/a"), "/en/a": linking("a")}, []string{"/en/", "/en/a"}},
		"twice":          {map[string]string{"/": redirecting("/latest"), "/latest": redirecting("/7"), "/7": linking("seven", "/a"), "/a": linking("a")}, []string{"/7", "/a"}},
		"not, and links": {map[string]string{"/": linking("home", "/a"), "/a": linking("a")}, []string{"/", "/a"}},
		"to a file":      {map[string]string{"/": "301\nLocation: /index.php\n\n", "/index.php": linking("home")}, []string{"/index.php"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepareWithAdmin(t, nil)
			s.LoadApp("http://:{port} {\nsitemap {\ncrawl {\nrate 1000/s\n}\n}\nreverse_proxy {app}\n}", newWeb(test.responses).ServeHTTP)
			s.Get(harness.Local+"/sitemap.xml", "Host: tenant.example")
			// Asked for again, the host would be refreshed for that.
			pages := fmt.Sprintf(`"pages":%d`, len(test.want))
			var status string
			s.Eventually(func() bool {
				status = s.Get("http://localhost:{admin}/sitemap/sites").Text
				return strings.Contains(status, pages)
			}, func() string { return status + s.SitemapLog() })
			if got := s.Locs(harness.Local+"/sitemap.xml", "Host: tenant.example"); len(got) != len(test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestDuplicateChanges: a page that was a duplicate of another one stays that until both were fetched after a change,
// whichever of them shows it first.
func TestDuplicateChanges(t *testing.T) {
	for name, test := range map[string]struct{ changing, other, listed string }{
		"a list":         {"/list", "/list?page=1", "/list"},
		"its first page": {"/list?page=1", "/list", "/list"},
		"with a slash":   {"/guide/", "/guide", "/guide"},
	} {
		t.Run(name, func(t *testing.T) {
			changing, other, listed := test.changing, test.other, test.listed
			app := newWeb(map[string]string{"/": linking("home", changing, other)})
			show := func(path, text string) { app.respond(path, linking(text)) }
			show("/list?page=no", "old")
			show(changing, "old")
			show(other, "old")
			s := prepareWithAdmin(t, nil)
			// Any value that the list does not know shows the first page.
			s.LoadApp(strings.Replace(behind("links {\nquery page\n}"), "refresh 1s", "refresh 1h", 1), func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Query().Get("page"), "no-such") {
					r.RequestURI = "/list?page=no"
				}
				app.ServeHTTP(w, r)
			})
			want := func(after string, pages ...string) {
				t.Helper()
				if got := s.Locs(harness.Local + "/sitemap.xml"); len(got) != len(pages) {
					t.Errorf("%s: got %q, want %q", after, got, pages)
				}
			}
			fetch := func(path string) {
				s.command("refresh", "--fetch", harness.Local+path).want(t, 0, nil, nil, `pages due +0\n`)
			}
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, []string{"/", listed})...)
			begun := time.Now().Unix()
			s.Eventually(func() bool { return time.Now().Unix() > begun+1 }, s.SitemapLog)
			show("/list?page=no", "new")
			show(changing, "new")
			show(other, "new")
			fetch(changing)
			want("one was fetched", "/", listed)
			fetch(other)
			want("both were", "/", listed)
			for _, path := range []string{changing, other} {
				if got := s.command("explain", harness.Local+path); strings.Contains(got.stdout, "soft 404") {
					t.Errorf("%s", got.stdout)
				}
			}
			show(other, "its own")
			fetch(other)
			fetch(changing)
			want("they differ", "/", changing, other)
		})
	}
}

// TestPostLeavesList: what the application's own sitemap or a list says has changed is fetched first. A page that has left it
// keeps its date until then.
func TestPostLeavesList(t *testing.T) {
	const entry = "<url><loc>" + harness.Local + "%s</loc><lastmod>%s</lastmod></url>"
	const posts = 50
	const gone = "/p49"
	first := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	dateOfGone := first.AddDate(0, 0, 3*49).Format(time.DateOnly)
	for name, test := range map[string]struct{ list, sources string }{
		"an own sitemap": {"/wp-sitemap.xml", ""},
		"a list":         {"/posts.xml", "urls /posts.xml\nlinks"},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepareWithAdmin(t, nil)
			app := newWeb(map[string]string{"/robots.txt": "Content-Type: text/plain\n\nUser-agent: *\nDisallow:\n"})
			if test.sources == "" {
				app.respond("/robots.txt", "Content-Type: text/plain\n\nSitemap: "+s.Expand(harness.Local+test.list))
			}
			// show publishes the posts, of which the front page links to some, and of which the first eight may have changed.
			show := func(hasChanged bool, linked, listed int) {
				var links []string
				list := "Content-Type: application/xml\n\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">"
				for i := range listed {
					path := fmt.Sprintf("/p%02d", i)
					date := first.AddDate(0, 0, 3*i).Format(time.DateOnly)
					if hasChanged && i < 8 {
						date = first.AddDate(0, 9, 3*i).Format(time.DateOnly)
					}
					app.respond(path, linking(path+" of "+date))
					list += fmt.Sprintf(s.Expand(entry), path, date)
					if i < linked {
						links = append(links, path)
					}
				}
				app.respond("/", linking("home", links...))
				app.respond(test.list, list+"</urlset>")
			}
			show(false, posts, posts)
			s.LoadApp(harness.Local+" {\nsitemap {\nrefresh 1s\ncrawl {\nrate 20/s\n}\n"+test.sources+"\n}\nreverse_proxy {app}\n}", app.ServeHTTP)
			s.WantStatus(harness.Local+"/sitemap.xml", 200)
			dates := func() map[string]string { return s.Dates(harness.Local) }
			s.Eventually(func() bool { return dates()[gone] == dateOfGone }, s.SitemapLog)
			// The front page drops so many links that it takes minutes to fetch all pages that have lost one.
			show(false, 8, posts)
			s.Eventually(func() bool { return app.requests()["/p08"] > 1 }, s.SitemapLog)
			app.respond(gone, "404\n\ngone")
			show(true, 8, posts-1)
			s.Do(http.MethodPost, "http://localhost:{admin}/sitemap/refresh?site="+harness.Local)
			s.Eventually(func() bool {
				date, isListed := dates()[gone]
				if isListed && date != dateOfGone {
					t.Fatalf("the page has the date %q until it was fetched", date)
				}
				return !isListed
			}, s.SitemapLog)
		})
	}
}
