package sitemap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCheckFetch is a page of each kind: what is said of it, in the order of the
// document.
func TestCheckFetch(t *testing.T) {
	const rate = "1000/s"
	pages := []struct {
		path   string
		answer http.HandlerFunc
		want   string // behind the URL
	}{
		{"/good", sendsPage(`<link rel="canonical" href="{s}/good">`), ""},
		{"/relative", sendsPage(`<link rel="canonical" href="/relative">`), ""},
		{"/manual.pdf", sends("%PDF", "Content-Type", "application/pdf"), ""},
		{"/a%20b?c=d&amp;e", nil, "error: page-status: has a page that answers 404: {p}"},
		{"/gone", answers(410), "error: page-status: has a page that answers 410: {p}"},
		{"/moved", redirects(301, "/good"), "error: page-redirect: has a page that is redirected (301) to {s}/good: {p}"},
		{"/login", redirects(302, "{s}/good"), "error: page-redirect: has a page that is redirected (302) to {s}/good: {p}"},
		{"/failing", answers(500), "error: page-status: has a page that answers 500: {p}"},
		{"/meta", sendsPage(`<meta name="robots" content="noindex">`), "error: page-noindex: has a page that asks not to be indexed: {p}"},
		{"/header", sendsPage("", "X-Robots-Tag", "noindex"), "error: page-noindex: has a page that asks not to be indexed: {p}"},
		{"/noindex.pdf", sends("%PDF", "Content-Type", "application/pdf", "X-Robots-Tag", "none"), "error: page-noindex: has a page that asks not to be indexed: {p}"},
		{"/other", sendsPage(`<link rel="canonical" href="/good">`), "error: page-canonical: has a page that names {s}/good as its canonical: {p}"},
		{"/away", sendsPage(`<link rel="canonical" href="https://example.com/away">`), "error: page-canonical: has a page that names https://example.com/away as its canonical: {p}"},
		{"/linked", sendsPage("", "Link", `</good>; rel="canonical"`), "error: page-canonical: has a page that names {s}/good as its canonical: {p}"},
		{"/on", sendsPage(`<meta http-equiv="refresh" content="0; url=/good">`), "error: page-refresh: has a page that leads readers on to {s}/good: {p}"},
		{"/json", sends(`{"a": 1}`, "Content-Type", "text/html"), "warning: page-not-html: has a page that is sent as HTML, and is no whole document of it: {p}"},
		{"/secret", sendsPage(""), "warning: page-disallowed: has a page that robots.txt keeps from Googlebot: {p}"},
		{"/ours", func(http.ResponseWriter, *http.Request) { t.Error("robots.txt was not heeded") }, ""},
		{"/slow", hangs(""), "error: page-unreachable: has a page that cannot be had: no whole answer within 500ms: {p}"},
		{"/slower", hangs("<!doctype html>"), ""},
		{"/moment", busyOnce(1, sendsPage("")), ""},
	}
	site := map[string]http.HandlerFunc{"/robots.txt": sends("User-agent: Googlebot\nDisallow: /secret\n\nUser-agent: caddy-sitemap\nDisallow: /ours\n\nUser-agent: *\nDisallow: /\n", "Content-Type", "text/plain")}
	s := newCheckSite(t, site)
	var locs, want []string
	for i, p := range pages {
		site[strings.ReplaceAll(p.path, "&amp;", "&")] = p.answer
		loc := s.URL + p.path
		locs = append(locs, loc)
		if p.want != "" {
			want = append(want, fmt.Sprintf("{s}/sitemap.xml:%d: %s", i+3, strings.ReplaceAll(p.want, "{p}", strings.ReplaceAll(loc, "&amp;", "&"))))
		}
	}
	site["/sitemap.xml"] = sendsXML(urlsetOf(locs...))
	r := s.check(t, "--fetch", "--rate", rate, "--timeout", "500ms", "{s}/sitemap.xml")
	if expected := s.expand(strings.Join(want, "\n") + "\n"); r.stdout != expected || r.status != 1 {
		t.Errorf("got %d\n%s%s, want\n%s", r.status, r.stdout, r.stderr, expected)
	}
	if !strings.Contains(r.stderr, "asked for 20:") {
		t.Errorf("got %q", r.stderr)
	}
	if r := s.check(t, "{s}/sitemap.xml"); r.stdout != "" || r.status != 0 {
		t.Errorf("without --fetch: got %+v", r)
	}
}

// TestCheckFetchBusy is a server that wants to be left alone for longer than anyone
// waits: it is.
func TestCheckFetchBusy(t *testing.T) {
	for name, test := range map[string]struct {
		site map[string]http.HandlerFunc
		want string
		code int
	}{
		"page": {map[string]http.HandlerFunc{"/1": sendsPage(""), "/2": answers(429, "Retry-After", "3600")},
			"{s}/sitemap.xml:4: error: page-status: has a page that answers 429 with Retry-After: 3600: {s}/2\n{s}: warning: pages-unasked: has 2 pages not asked for: {s}/2 answers 429 with Retry-After: 3600\n", 1},
		"robots.txt":          {map[string]http.HandlerFunc{"/robots.txt": answers(500)}, "{s}: warning: pages-unasked: has 4 pages not asked for: its robots.txt answers 500\n", 0},
		"hanging robots.txt":  {map[string]http.HandlerFunc{"/robots.txt": hangs("")}, "{s}: warning: pages-unasked: has 4 pages not asked for: its robots.txt cannot be had: no whole answer within 300ms\n", 0},
		"stopping robots.txt": {map[string]http.HandlerFunc{"/robots.txt": hangs("User-agent: *\n")}, "{s}: warning: pages-unasked: has 4 pages not asked for: its robots.txt cannot be read: no whole answer within 300ms\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCheckSite(t, test.site)
			test.site["/sitemap.xml"] = sendsXML(urlsetOf("{s}/1", "{s}/2", "{s}/3", "{s}/4"))
			r := s.check(t, "--fetch", "--rate", "1000/s", "--timeout", "300ms", "{s}/sitemap.xml")
			if r.stdout != s.expand(test.want) || r.status != test.code {
				t.Errorf("got %+v, want %q", r, s.expand(test.want))
			}
		})
	}
}

// TestCheckFetchAsBot is how pages are asked for.
func TestCheckFetchAsBot(t *testing.T) {
	var agents []string
	s := newCheckSite(t, map[string]http.HandlerFunc{"/1": func(w http.ResponseWriter, r *http.Request) {
		agents = append(agents, r.Method+" "+r.UserAgent())
		sendsPage("")(w, r)
	}})
	s.answers["/sitemap.xml"] = sendsXML(urlsetOf("{s}/1"))
	if r := s.check(t, "--fetch", "{s}/sitemap.xml"); r.status != 0 {
		t.Errorf("got %+v", r)
	}
	if len(agents) != 1 || !strings.HasPrefix(agents[0], "GET "+checkerToken) || !strings.Contains(agents[0], "bot") {
		t.Errorf("got %q", agents)
	}
}

// TestCheckSample is that a sample has the size that was asked for, and is the same
// the next time.
func TestCheckSample(t *testing.T) {
	asked := make(map[string]int)
	s := newCheckSite(t, nil)
	var locs []string
	for i := range 200 {
		path := fmt.Sprintf("/%d", i)
		locs = append(locs, s.URL+path)
		s.answers = map[string]http.HandlerFunc{}
		_ = path
	}
	for _, loc := range locs {
		path := strings.TrimPrefix(loc, s.URL)
		s.answers[path] = func(w http.ResponseWriter, r *http.Request) {
			asked[path]++
			sendsPage("")(w, r)
		}
	}
	s.answers["/sitemap.xml"] = sendsXML(urlsetOf(locs...))
	for range 2 {
		if r := s.check(t, "--fetch", "--sample", "7", "--rate", "1000/s", "{s}/sitemap.xml"); r.status != 0 || !strings.Contains(r.stderr, "200 pages, asked for 7:") {
			t.Errorf("got %+v", r)
		}
	}
	if len(asked) != 7 || slices.ContainsFunc(slices.Collect(maps.Values(asked)), func(n int) bool { return n != 2 }) {
		t.Errorf("asked for %v", asked)
	}
}

// TestPageSample is that each page is as likely as any other.
func TestPageSample(t *testing.T) {
	const pages, size, rounds = 50, 10, 2000
	drawn := make([]int, pages)
	lots := newPageSample(size).lots
	for range rounds {
		s := newPageSample(size)
		s.lots = lots
		for i := range pages {
			s.add(string(rune(i)), i)
		}
		last := -1
		for _, p := range s.inOrder() {
			if p.from.line <= last || p.loc[0] != byte(p.from.line) {
				t.Fatalf("got %v", s.pages)
			}
			last = p.from.line
			drawn[last]++
		}
		if len(s.pages) != size {
			t.Fatalf("got %d pages, want %d", len(s.pages), size)
		}
	}
	mean := float64(rounds*size) / pages
	for i, n := range drawn {
		if math.Abs(float64(n)-mean) > 6*math.Sqrt(mean) {
			t.Errorf("page %d was drawn %d times, others %v", i, n, mean)
		}
	}
}

// TestCheckPace is that requests keep their distance, with a clock of its own.
func TestCheckPace(t *testing.T) {
	now := time.Unix(1000, 0)
	var slept []time.Duration
	p := checkPace{pause: time.Second, now: func() time.Time { return now }, sleep: func(_ context.Context, d time.Duration) error {
		slept = append(slept, max(d, 0))
		now = now.Add(max(d, 0))
		return nil
	}}
	for _, answered := range []time.Duration{0, 300 * time.Millisecond, 2 * time.Second, 0} {
		now = now.Add(answered)
		if err := p.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if want := []time.Duration{0, 700 * time.Millisecond, 0, time.Second}; !slices.Equal(slept, want) {
		t.Errorf("got %v, want %v", slept, want)
	}
}

// TestCheckPolite is how long a server is left alone that says so.
func TestCheckPolite(t *testing.T) {
	errStop := errors.New("stop")
	for header, want := range map[string]time.Duration{"": checkRest, "7": 7 * time.Second, "30": maxCheckWait, "soon": checkRest} {
		s := newCheckSite(t, map[string]http.HandlerFunc{"/": answers(503, "Retry-After", header)})
		var slept time.Duration
		w := newWeb(time.Minute)
		w.trust(s.URL)
		k := &checking{ctx: t.Context(), web: w, pace: checkPace{now: time.Now, sleep: func(_ context.Context, d time.Duration) error {
			slept = d
			return errStop
		}}}
		if _, err := k.polite(s.URL+"/", 0); err != errStop || slept != want {
			t.Errorf("%q: got %v, %v, want %v", header, slept, err, want)
		}
		w.close()
	}
	if err := sleep(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if sleep(ended, time.Hour) != context.Canceled || sleep(ended, 0) != context.Canceled {
		t.Error("sleep does not heed its context")
	}
}
