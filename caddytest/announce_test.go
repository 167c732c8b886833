package caddytest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

const announcementsWait = "announcements wait: they cannot be loaded or stored"

const indexNow = "indexnow {\n endpoint {engine}/indexnow\n }"

// TestAnnounced: what is announced of a site, from its first crawl on, and where that shows.
func TestAnnounced(t *testing.T) {
	s := prepareAnnouncer(t, "index.html", "a.html", "b.html", "c.html")
	s.page("c.html", "2025-12-12") // all the same would be that of a deployment
	s.WriteRaw("site/humans-and-more.txt", "we")
	s.page("c.html", "2026-01-09") // if all had the same date, there would be no feed yet
	s.page("hidden.html", "2026-01-01")
	s.crawled(indexNow + "\nping {engine}/ping?sitemap={sitemap}&x=1\n exclude /hidden*\nfeed\nhub {engine}/hub")
	s.Refreshes(2)
	if n := s.engine.received(); n != 0 {
		t.Fatalf("%d requests for the first crawl", n)
	}
	s.page("a.html", "2026-02-02")
	s.page("new.html", "2026-02-02")
	s.Refreshes(1)
	harness.Must(t, os.Remove(filepath.Join(s.Dir, "site/b.html")))
	s.Refreshes(1)
	s.engine.wants("indexnow /a.html", "indexnow /new.html", "ping "+origin+"/sitemap.xml", "hub "+origin+"/sitemap.atom")
	s.page("a.html", "2026-02-03")
	s.Refreshes(1)
	// a.html was announced a moment ago, and b.html may be back in three minutes.
	s.target(func(a announced) bool { return a.Accepted == 2 && a.Waiting == 2 })
	for i, interval := range []time.Duration{time.Hour, 5 * time.Minute} {
		if a := s.announced()[i+1]; a.Waiting != 1 || (a.Next.Sub(a.Last)-interval).Abs() > 2*time.Second {
			t.Errorf("%+v", a)
		}
	}
	if feed := s.Get(harness.Local + "/sitemap.atom").Text; !strings.Contains(feed, `rel="hub" href="`+s.engine.URL+`/hub"`) {
		t.Errorf("the feed is %s", feed)
	}

	key := s.key()
	for _, request := range []struct {
		method, path string
		status       int
		text         string
	}{
		{http.MethodGet, "/" + key + ".txt", 200, key},
		{http.MethodHead, "/" + key + ".txt", 200, ""},
		{http.MethodPost, "/" + key + ".txt", 404, ""}, // of file_server
		{http.MethodGet, "/" + strings.Repeat("0", 32) + ".txt", 404, ""},
		{http.MethodGet, "/" + key, 404, ""},
		{http.MethodGet, "/a/" + key + ".txt", 404, ""},
		{http.MethodGet, "/humans-and-more.txt", 200, "we"},
	} {
		r := s.Do(request.method, harness.Local+request.path)
		if r.StatusCode != request.status || request.status == 200 && r.Text != request.text || (r.Header.Get("X-Robots-Tag") != "") != (request.text == key || request.method == http.MethodHead) {
			t.Errorf("%s %s: status %d, %v, %q", request.method, request.path, r.StatusCode, r.Header, r.Text)
		}
	}
	if lines := s.LogLines(`"level":"warn"`, "sitemap"); len(lines) > 0 {
		t.Errorf("the log warns: %s", lines)
	}
	metrics := s.Get("http://localhost:{admin}/metrics").Text
	for _, want := range []string{`announced_urls_total{protocol="ping",result="accepted"} 1`} {
		if !strings.Contains(metrics, "caddy_sitemap_"+want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
}

// TestAnnouncedTitle: a ping follows changes of the XML, not those of the page for people.
func TestAnnouncedTitle(t *testing.T) {
	s := prepareAnnouncer(t, "index.html", "a.html")
	s.crawled("html\nping {engine}/ping?sitemap={sitemap}")
	page, err := os.ReadFile(filepath.Join(s.Dir, "site/a.html"))
	harness.Must(t, err)
	s.WriteRaw("site/a.html", strings.Replace(string(page), "a page", "another title", 1))
	s.Refreshes(2)
	if text := s.Get(harness.Local + "/sitemap.html").Text; !strings.Contains(text, "another title") {
		t.Errorf("the page for people is %s", text)
	}
	if a := s.announced()[0]; a.Waiting > 0 || s.engine.received() > 0 {
		t.Errorf("%+v", a)
	}
	s.page("a.html", "2026-02-02")
	s.Refreshes(1)
	s.engine.wants("ping " + origin + "/sitemap.xml")
}

// TestAnnouncedPrefix: the key file lies in the site's own folder, where the server strips one prefix, and a proxy before it another.
func TestAnnouncedPrefix(t *testing.T) {
	const config = "http://:{port} {\n handle_path /internal/* {\n root * {dir}/site\n sitemap {\n base_url http://www.sitemap-test.org:{port}/docs\n refresh 1h\n" + indexNow + "\n }\n file_server\n }\n}"
	s := prepareAnnouncer(t, "index.html", "a.html")
	s.engine.origin = s.Expand("http://www.sitemap-test.org:{port}")
	s.engine.internal = "/internal"
	s.Load("{\n sitemap {\n state {dir}/state\n }\n}\n" + strings.ReplaceAll(config, "{engine}", s.engine.URL))
	s.Refreshes(2)
	s.page("a.html", "2026-02-02")
	s.Refreshes(2)
	s.engine.wants("indexnow /docs/a.html")
}

// stored returns the file of cursors, and its content.
func (s *announcer) stored() (path string, content []byte) {
	s.T.Helper()
	s.Eventually(func() bool { // a write may outlast Stop
		stacks := make([]byte, 1<<20)
		return !regexp.MustCompile(`announce\.\(\*Announcer\)\.Save|FileStorage\)\.Store\(`).Match(stacks[:runtime.Stack(stacks, true)])
	}, s.SitemapLog)
	paths, err := filepath.Glob(filepath.Join(s.Dir, "state/announcements/*.json"))
	if err != nil || len(paths) != 1 {
		s.T.Fatalf("got %q, %v", paths, err)
	}
	content, err = os.ReadFile(paths[0])
	harness.Must(s.T, err)
	return paths[0], content
}

// key is the stored key.
func (s *announcer) key() string {
	_, content := s.stored()
	return regexp.MustCompile(`"key":"(.*?)"`).FindStringSubmatch(string(content))[1]
}

// minutesPass lets so many minutes pass for what is stored, while Caddy is stopped.
func (s *announcer) minutesPass(n int) {
	path, content := s.stored()
	content = regexp.MustCompile(`"last":"[^"]*"`).ReplaceAllFunc(content, func(field []byte) []byte {
		name, value, _ := strings.Cut(strings.ReplaceAll(string(field), `"`, ""), ":")
		at, err := time.Parse(time.RFC3339Nano, value)
		harness.Must(s.T, err)
		return fmt.Appendf(nil, `"%s":"%s"`, name, at.Add(time.Duration(-n)*time.Minute).Format(time.RFC3339Nano))
	})
	harness.Must(s.T, os.WriteFile(path, content, 0o600))
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	for u, at := range s.engine.last {
		s.engine.last[u] = at.Add(time.Duration(-n) * time.Minute)
	}
}

// TestAnnouncedFailures: an engine that fails is said once, and left alone as long as it is to be. What it refuses for good is not sent
// again. Refreshes and Stop do not wait.
func TestAnnouncedFailures(t *testing.T) {
	reply := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<p>no \x1b[2J\u202e")
		}
	}
	for name, test := range map[string]struct {
		respond http.HandlerFunc
		after   time.Duration
		reason  string
	}{
		"422":                {reply(422), time.Hour, "set base_url"},
		"429 for an hour":    {reply(429), time.Hour, "status 429"},
		"nobody listens any": {nil, 10 * time.Minute, "refused"},
		"hangs":              {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepareAnnouncer(t, "index.html", "a.html", "b.html")
			s.crawled(indexNow)
			s.engine.set(test.respond)
			if test.respond == nil {
				s.engine.Close()
			}
			s.page("a.html", "2026-02-02")
			s.Refreshes(1)
			if test.reason == "" {
				s.Eventually(func() bool { return s.engine.received() == 1 }, s.SitemapLog)
				s.page("b.html", "2026-02-02")
				begun := time.Now()
				s.Refreshes(2)
				s.Stop()
				if time.Since(begun) > 20*time.Second { // the request times out after 30 s
					t.Errorf("refreshes and Stop take %s", time.Since(begun))
				}
				return
			}
			a := s.target(func(a announced) bool { return a.Reason != "" })
			if got := a.Next.Sub(a.Last); !strings.Contains(a.Reason, test.reason) || a.Waiting > 0 && got.Round(time.Minute) != test.after {
				t.Errorf("%+v", a)
			}
			isRefused := name == "422"
			if a.Waiting == 0 != isRefused {
				t.Errorf("%+v", a)
			}
			s.page("b.html", "2026-02-02")
			s.Refreshes(2)
			line := s.Logged(`"level":"warn"`, "changes were not announced", `"target":"`+s.engine.URL+`/indexnow"`, test.reason)
			if n := len(s.LogLines(`"level":"warn"`, "sitemap")); n != 1 || s.engine.received() > 1 || strings.ContainsAny(line, "\x1b\u202e") {
				t.Errorf("%d requests, %d warnings: %s", s.engine.received(), n, line)
			}
			s.engine.set(nil)
			if isRefused {
				s.Stop()
				s.minutesPass(60)
				s.Begin(s.caddyfile(indexNow))
				s.engine.wants("indexnow /b.html")
			}
		})
	}
}

// TestAnnouncedShadowed: nothing is sent while visitors do not get the key file.
func TestAnnouncedShadowed(t *testing.T) {
	s := prepareAnnouncer(t, "index.html", "a.html")
	s.crawled(indexNow, "basic_auth /*.txt {\n bob $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}")
	s.page("a.html", "2026-02-02")
	s.Refreshes(1)
	a := s.target(func(a announced) bool { return a.Reason != "" })
	if n := s.engine.received(); n != 0 || a.Waiting != 1 || !strings.Contains(a.Reason, "nothing was sent: key file "+origin+"/"+s.key()+".txt: it returns") {
		t.Errorf("%d requests, %+v", n, a)
	}
	s.Stop()
	s.minutesPass(5)
	s.Begin(s.caddyfile(indexNow))
	s.engine.wants("indexnow /a.html")
}

// TestAnnouncedKilled: the process is killed after the engine has received a batch, and before it has the response. The batch is sent again,
// ten minutes later.
func TestAnnouncedKilled(t *testing.T) {
	s := prepareAnnouncer(t, "index.html", "a.html", "b.html")
	child := func() *harness.Child {
		c := s.Child(s.caddyfile(indexNow))
		s.First(c)
		s.Refreshes(2)
		return c
	}
	c := child()
	s.engine.set(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s.page("a.html", "2026-02-02")
	s.Refreshes(1)
	s.Eventually(func() bool { return s.engine.received() == 1 }, s.SitemapLog)
	c.Kill()
	if _, content := s.stored(); !bytes.Contains(content, []byte(`"until":{"at":`)) {
		t.Fatalf("stored is %s", content)
	}
	s.engine.set(nil)
	c = child()
	s.target(func(a announced) bool { return a.Waiting == 1 })
	c.Kill()
	if n := s.engine.received(); n != 1 {
		t.Fatalf("%d requests within ten minutes", n)
	}
	for _, minutes := range []int{10, 500} { // what is killed again has perhaps not noted that it was accepted
		s.minutesPass(minutes)
		c = child()
		s.engine.wants("indexnow /a.html")
		s.target(func(a announced) bool { return a.Waiting == 0 })
		c.Kill()
	}
}

// TestAnnouncedReload: reloads and restarts lose nothing of what waits, and send nothing twice; new settings hold from then on.
func TestAnnouncedReload(t *testing.T) {
	s := prepareAnnouncer(t, "index.html", "a.html", "b.html")
	s.crawled(indexNow)
	key := s.key()
	s.page("a.html", "2026-02-02")
	s.Refreshes(1)
	s.engine.wants("indexnow /a.html")
	s.page("a.html", "2026-03-03")
	s.page("b.html", "2026-02-02")
	s.page("new.html", "2026-02-02")
	s.Refreshes(1)
	for range 3 {
		s.Reload(s.caddyfile(indexNow))
		s.Refreshes(1)
		s.target(func(a announced) bool { return a.Accepted == 3 && a.Waiting == 1 })
	}
	s.Stop()
	s.Begin(s.caddyfile(indexNow + "\nexclude /other*\nlastmod mtime"))
	s.Refreshes(1)
	s.target(func(a announced) bool { return a.Accepted == 3 && a.Waiting == 1 })
	if s.key() != key || s.Get(harness.Local+"/"+key+".txt").Text != key {
		t.Errorf("the key is %s, it was %s", s.key(), key)
	}
	s.Reload(s.caddyfile("indexnow configured-key {\n endpoint {engine}/indexnow {engine}/indexnow?second\n }"))
	s.Eventually(func() bool { return len(s.announced()) == 2 && s.key() == "configured-key" }, s.SitemapLog)
	if old, set := s.Get(harness.Local+"/"+key+".txt").StatusCode, s.Get(harness.Local+"/configured-key.txt").Text; old != 404 || set != "configured-key" {
		t.Errorf("the old key file has status %d, the other one is %q", old, set)
	}
	s.Reload(s.caddyfile(""))
	if all := s.announced(); len(all) != 0 || s.Get(harness.Local+"/configured-key.txt").StatusCode != 404 {
		t.Errorf("without indexnow: %+v", all)
	}
}

// TestAnnouncedRenamed: the pages of a site at another URL are not announced, as they have not changed. What changes then is.
func TestAnnouncedRenamed(t *testing.T) {
	s := prepareAnnouncer(t, "index.html", "a.html", "b.html", "c.html")
	s.crawled(indexNow)
	key := s.key()
	renamed := strings.Replace(origin, "://www.", "://", 1)
	s.engine.mu.Lock()
	s.engine.origin = renamed
	s.engine.mu.Unlock()
	s.Load(strings.ReplaceAll(s.caddyfile(indexNow), origin, renamed))
	s.Refreshes(3)
	s.Logged("the site had another URL", `"pages":4`)
	s.target(func(a announced) bool { return a.Accepted+a.Waiting == 0 })
	s.page("b.html", "2026-02-02")
	s.page("new.html", "2026-02-02")
	s.Refreshes(2)
	s.engine.wants("indexnow /b.html", "indexnow /new.html")
	if now := s.key(); now != key {
		t.Errorf("the key is %s, it was %s", now, key)
	}
}

// TestAnnouncedDamaged: while what is stored cannot be read, nothing is announced, so that the key is not lost. What is no JSON is
// begun anew. Each is said once.
func TestAnnouncedDamaged(t *testing.T) {
	s := prepareAnnouncer(t, "index.html", "a.html")
	s.crawled(indexNow)
	key := s.key()
	s.Stop()
	path, _ := s.stored()
	harness.Must(t, os.Rename(path, path+".aside"))
	harness.Must(t, os.Mkdir(path, 0o700))
	s.Begin(s.caddyfile(indexNow))
	s.Refreshes(1)
	s.page("a.html", "2026-02-02")
	s.Refreshes(2)
	if n := len(s.LogLines(`"level":"warn"`, announcementsWait)); n != 1 || s.engine.received() != 0 {
		t.Errorf("%d warnings, %d requests", n, s.engine.received())
	}
	harness.Must(t, os.Remove(path))
	harness.Must(t, os.Rename(path+".aside", path))
	s.page("a.html", "2026-03-03")
	s.Refreshes(2)
	s.engine.wants("indexnow /a.html")
	if s.key() != key {
		t.Errorf("the key is %s, it was %s", s.key(), key)
	}
	s.Stop()
	harness.Must(t, os.WriteFile(path, []byte("no JSON"), 0o600))
	for range 2 {
		s.Begin(s.caddyfile(indexNow))
		s.Refreshes(2)
		s.Stop()
	}
	if n := len(s.LogLines(`"level":"warn"`, announcementsWait, "begun anew")); len(s.key()) != 32 || n != 1 {
		t.Errorf("the key is %q, %d warnings\n%s", s.key(), n, s.SitemapLog())
	}
}

// TestAnnouncedAlias: nothing is announced for an alias, for hosts that only visitors name, and by IndexNow for private ones.
func TestAnnouncedAlias(t *testing.T) {
	s := prepareAnnouncer(t, "index.html", "a.html")
	const apex, local = "http://sitemap-test.org:{port}", harness.Local
	for _, test := range []struct {
		addresses, origin string
		want              int // requests: of the apex by both, of localhost by ping
	}{{apex + ", http://www.sitemap-test.org:{port}", apex, 2}, {"http://:{port}", apex, 0}, {local, local, 1}} {
		s.engine.origin = s.Expand(test.origin)
		test.want += s.engine.received()
		s.page("a.html", "2026-02-02")
		s.Load(strings.ReplaceAll(test.addresses+" {\n root * {dir}/site\n sitemap {\n refresh 1h\n"+indexNow+"\nping {engine}/ping?sitemap={sitemap}\n }\n file_server\n}", "{engine}", s.engine.URL))
		for _, name := range []string{"www.sitemap-test.org", "sitemap-test.org", "localhost"} {
			s.Get("http://" + name + ":{port}/sitemap.xml")
		}
		s.Refreshes(2)
		s.page("a.html", "2026-03-03")
		s.Refreshes(3)
		s.Eventually(func() bool { return s.engine.received() == test.want }, s.SitemapLog)
		s.Passed(300 * time.Millisecond)
		if n := s.engine.received() - test.want; n != 0 {
			t.Errorf("%s: %d requests too many", test.addresses, n)
		}
	}
	s.Logged(`"site":"http://localhost:{port}"`, "the host is not public")
}
