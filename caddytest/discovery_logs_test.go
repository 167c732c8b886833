package caddytest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// logging is discovering with an access log that Caddy rolls as often as it can, and with
// sites of other names that are logged into it.
func logging(sources string) string {
	const log = `
	log {
		output file {dir}/access.log {
			roll_size 1MiB
			roll_keep 100
		}
		format json
	}
`
	return strings.Replace(discovering(sources), harness.Local+" {\n", harness.Local+" {"+log, 1) + `
http://other.localhost:{port} {` + log + `
	reverse_proxy {app}
}
http://:{port} {` + log + `
	respond "<!doctype html><title>anything</title>" 200 {
		close
	}
	header Content-Type text/html
}
`
}

// What a visitor does in the tests of logs and of traffic, and which pages are listed for
// it: those that a listed page links to, of those that were visited.
var (
	visited = []string{
		"/", "/about", "/articles", "/articles/1", "/articles/7", "/articles/2;jsessionid=99FF", "/articles?page=3", "/articles/24",
		"/calendar/2026/11", "/calendar/2026/12", "/calendar/2027/01", "/calendar/2031/01",
		"/news?utm_source=letter", "/shop?colour=red&size=m", "/wiki/", "/wiki/unwritten", "/wiki/invented",
		"/drafts/meta", "/drafts/header", "/drafts/behind", "/print/1", "/internal/report", "/greeting", "/old-news", "/data", "/feed", "/account", "/members/",
		"/share/d41d8cd98f00b204", "/orders/7", "/orders/8",
	}
	visitedListed = []string{
		"/", "/about", "/articles", "/articles/1", "/articles/2", "/articles/7",
		"/calendar/2026/11", "/calendar/2026/12", "/calendar/2027/01", "/greeting", "/news", "/shop", "/wiki/",
	}
	// neverVisited begin what nobody's visit makes to be asked for.
	neverVisited = []string{
		"/share", "/orders", "/articles/24", "/articles/3", "/calendar/2031", "/wiki/invented", "/wiki/start", "/drafts/header", "/drafts/behind",
		"/internal", "/old-news", "/data", "/feed", "/members", "/vault", "/tags", "/login", "/logout", "/shop/", "/api",
	}
)

// others are visits that do not count, to pages that are linked to.
func (s *server) otherVisits() {
	s.T.Helper()
	signedIn := "Authorization: Basic Z3VhcmQ6a2V5"
	for _, path := range []string{"/vault/", "/members/", "/tags/ash"} {
		s.Get(harness.Local+path, browser, signedIn)
	}
	s.Get(harness.Local+"/account", browser, "Cookie: session=1")
	s.Do(http.MethodPost, harness.Local+"/tags/elm", browser)
	s.Do(http.MethodOptions, harness.Local+"/tags/elm", browser)
	for _, agent := range []string{
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "curl/8.5.0", "facebookexternalhit/1.1",
		"Mozilla/5.0 (compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)", "Go-http-client/1.1",
	} {
		s.Get(harness.Local+"/tags/yew", "User-Agent: "+agent)
	}
}

// scan is a scanner's traffic.
func (s *server) scan(n int) {
	s.T.Helper()
	uris := []string{
		"/.env", "/.git/config", "/wp-login.php", "/wp-admin/setup.php", "/%00", "/a%00b", "/a%0Ab", "/a%0D%0ASet-Cookie:x=1", "/<script>alert(1)</script>", "/%3C/loc%3E%3Cloc%3Ehttp://evil.example/",
		"/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/wiki/..;/internal", "/wiki//etc", "//evil.example/x", "/wiki/%C0%AE", "/wiki/%FF%FE", "/wiki/\\..\\x",
		"/wiki/]]>", "/wiki/&amp;", "/wiki/\"'", "/wiki/" + strings.Repeat("a", 3000), "/?q=<a>", "/articles?page=<a>", "http://evil.example/wiki/absolute", "/tags/fir/../../x",
	}
	for i := range n {
		uris = append(uris, fmt.Sprintf("/wiki/scan-%d", i), fmt.Sprintf("/share/guess-%d", i), fmt.Sprintf("/scan/%d.php?id=1'--", i))
	}
	hosts := []string{s.Expand("localhost:{port}"), s.Expand("other.localhost:{port}"), "evil.example", "evil.example\" \"", "<b>"}
	for i, uri := range uris {
		host := hosts[0]
		if i%10 == 9 {
			host = hosts[i/10%len(hosts)]
		}
		s.rawVisit(uri, host)
	}
}

// rawVisit sends a browser's request line and Host header as they stand.
func (s *server) rawVisit(uri, host string) {
	s.T.Helper()
	s.Raw("GET " + uri + " HTTP/1.1\r\nHost: " + host + "\r\n" + browser + "\r\nConnection: close\r\n\r\n")
}

// TestDiscoverLog lists what is linked to and was visited, by the server's own log.
func TestDiscoverLog(t *testing.T) {
	s, app := startProxy(t, logging("access_log {dir}/access.log"), nil)
	s.browse("203.0.113.9", visited...)
	s.otherVisits()
	s.wantPages(visitedListed...)
	s.scan(1000)
	// Visits to other sites are none to this one.
	for _, path := range []string{"/tags/oak", "/greeting"} {
		s.rawVisit(path, s.Expand("other.localhost:{port}"))
		s.rawVisit(path, "unheard-of.example")
	}
	s.browse("203.0.113.9", "/tags/fir")
	want := append(slices.Clone(visitedListed), "/tags/fir")
	slices.Sort(want)
	s.wantPages(want...) // so all of the others were read, too
	s.stay(want...)
	never := slices.DeleteFunc(slices.Clone(neverVisited), func(prefix string) bool { return prefix == "/tags" })
	app.neverAsked(t, append(never, "/tags/oak", "/tags/ash", "/tags/elm", "/tags/yew", "/wiki/scan", "/scan", "/.env", "/wp-", "/a%", "/%", "/..", "/<")...)
}

// TestDiscoverUnlinked is that pages to which nothing links are listed once somebody had
// them, if they are named.
func TestDiscoverUnlinked(t *testing.T) {
	s := prepare(t, nil)
	app := startApplication(t)
	at := time.Now().Add(-5 * time.Hour)
	log := s.visitAt(at, "203.0.113.1", "/orders/1") + s.visitAt(at, "203.0.113.1", "/orders/8?for=you") +
		s.visitAt(at, "203.0.113.1", "/share/open") + s.visitAt(at, "203.0.113.1", "/wiki/nothing") +
		s.visitAt(at.AddDate(0, 0, -40), "203.0.113.1", "/orders/9") // too long ago
	harness.Must(t, os.WriteFile(filepath.Join(s.Dir, "before.log"), []byte(log), 0o644))
	s.Load(app.in(logging("access_log {dir}/access.log {dir}/before.log")))
	s.wantPages("/")
	s.Logged(harness.LogRead, `"visits":`)
	s.stay("/")
	app.neverAsked(t, "/orders", "/share", "/wiki")
	s.Load(app.in(logging("access_log {dir}/access.log {dir}/before.log {\n unlinked /orders/* /wiki/*\n }")))
	s.wantPages("/", "/orders/1", "/orders/8")
	s.browse("192.0.2.99", "/orders/5")
	want := []string{"/", "/orders/1", "/orders/5", "/orders/8"}
	s.wantPages(want...)
	s.stay(want...)
	app.neverAsked(t, "/orders/8?", "/orders/9", "/share")
}

// TestDiscoverForeignLog: of a log in a format that is not read, a warning says what it looks like.
func TestDiscoverForeignLog(t *testing.T) {
	s := prepare(t, map[string]string{"access.log": `{"time_iso8601":"2024-05-07T00:00:16+00:00","remote_addr":"192.0.2.1","status":"200","request_method":"GET","request_uri":"/a"}` + "\n"})
	s.Load("http://localhost:{port} {\n\tsitemap {\n\t\taccess_log {dir}/access.log\n\t}\n\trespond ok\n}")
	s.Logged("no line of an access log shows a visit", "{dir}/access.log", "its lines look like those of JSON of nginx, which cannot be read: see https://", "docs/discovery.md#access-logs-and-traffic")
}

// TestDiscoverRolled is a log that Caddy rolls while it is written, over a restart and a
// reload: each visit is seen.
func TestDiscoverRolled(t *testing.T) {
	caddyfile := logging("access_log {dir}/access.log")
	s, app := startProxy(t, caddyfile, nil)
	// Caddy rolls a log at 1 MiB or more.
	padding := "X-Padding: " + strings.Repeat("0123456789abcdef", 1000)
	visit := func(from, to int) error {
		var last error
		for range 10 {
			for n := from; n < to; n++ {
				// A server that ends takes connections with it that nobody has read from.
				for range 5 {
					if _, last = s.Try(http.MethodGet, fmt.Sprintf("%s/articles/%d", harness.Local, n), browser, padding); last == nil {
						break
					}
				}
			}
		}
		return last
	}
	mustVisit := func(from, to int) {
		t.Helper()
		if err := visit(from, to); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"/", "/articles", "/articles/1"}
	for _, tag := range tags {
		want = append(want, "/tags/"+tag)
	}
	for n := 2; n <= taggedArticles; n++ {
		want = append(want, fmt.Sprintf("/articles/%d", n))
	}
	slices.Sort(want)
	upTo := func(n int) []string {
		return slices.DeleteFunc(slices.Clone(want), func(path string) bool {
			var m int
			_, err := fmt.Sscanf(path, "/articles/%d", &m)
			return err == nil && m >= n
		})
	}
	s.browse("203.0.113.9", append([]string{"/articles"}, tagLinks()...)...)
	mustVisit(1, 9)
	s.wantPages(upTo(9)...)

	// What comes while it does not run is read.
	s.Stop()
	var meanwhile strings.Builder
	for n := 9; n < 12; n++ {
		meanwhile.WriteString(s.visitAt(time.Now(), "203.0.113.9", fmt.Sprintf("/articles/%d", n)))
	}
	// Not into the log itself, which Caddy holds open for as long as the process lives.
	rolled := "access-" + time.Now().UTC().Format("2006-01-02T15-04-05.000") + "-size.log"
	harness.Must(t, os.WriteFile(filepath.Join(s.Dir, rolled), []byte(meanwhile.String()), 0o644))
	s.Begin(app.in(caddyfile))
	s.wantPages(upTo(12)...)

	// A reload changes nothing, even while the log is rolled.
	done := make(chan error, 1)
	go func() { done <- visit(12, 18) }()
	for range 3 {
		s.Reload(app.in(caddyfile))
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.wantPages(upTo(18)...)
	s.Reload(app.in(caddyfile))
	mustVisit(18, taggedArticles+1)
	s.wantPages(want...)
	s.stay(want...)
	var packed []string
	s.Eventually(func() bool {
		packed, _ = filepath.Glob(filepath.Join(s.Dir, "access*.gz"))
		return len(packed) >= 2
	}, func() string { return fmt.Sprintf("%q were rolled and compressed: this test is of no use", packed) })
}
