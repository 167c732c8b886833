package sitemap

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
)

// readOwn reads the own sitemaps of a site in a refresh at a time, and returns the paths that they name.
func (b *bench) readOwn(s *site, probed probeResult, at time.Time) (string, error) {
	b.Helper()
	r, err := newRefresh(s, probed, at)
	if err != nil {
		b.Fatal(err)
	}
	return b.ownPages(r)
}

// ownPages returns the paths that the own sitemaps name in a refresh.
func (b *bench) ownPages(r *Refresh) (string, error) {
	// A reading may be under way that looks at it.
	if !b.handler.isDefault {
		b.handler.isDefault = true
	}
	r.lookAtOwn(b.Context())
	var paths []string
	err := r.ownSitemaps(func(p page.Page) error {
		paths = append(paths, p.Path)
		return nil
	})
	slices.Sort(paths)
	return strings.Join(paths, " "), err
}

// indexOf is a sitemap index of documents at paths.
func indexOf(paths ...string) string {
	const before, after = "<sitemap><loc>http://named.example", "</loc></sitemap>"
	return "<sitemapindex>" + before + strings.Join(paths, after+before) + after + "</sitemapindex>"
}

// upstream marks a response as that of an upstream.
func upstream(r *http.Request) {
	r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Set(upstreamPlaceholder, "192.0.2.7:80")
}

// TestOwnSitemapsAreBounded: an application's own sitemaps name hardly more pages than max_urls, and the rest is not read.
func TestOwnSitemapsAreBounded(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.MaxURLs = 5 })
	requests := make(map[string]int)
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		requests[r.URL.Path]++
		if r.URL.Path == "/sitemap.xml" {
			const doc = "<sitemap><loc>http://named.example"
			fmt.Fprint(w, "<sitemapindex>", doc, "/1.txt</loc></sitemap>", doc, "/2.txt</loc></sitemap>", doc, "/3.txt</loc></sitemap></sitemapindex>")
			return nil
		}
		for i := range 4 {
			fmt.Fprintf(w, "%s/%d\n", strings.TrimSuffix(r.URL.Path, ".txt"), i)
		}
		return nil
	}
	got, err := b.readOwn(b.site("named.example"), probeResult{}, b.clock)
	if want := "/1/0 /1/1 /1/2 /1/3 /2/0 /2/1"; got != want || err != nil || requests["/3.txt"] != 0 {
		t.Errorf("got %s, %v, requests %v, want %s", got, err, requests, want)
	}
}

// TestOwnSitemapsStay: what a document said stays while it fails, however it does.
func TestOwnSitemapsStay(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter) error{
		"an error":      func(w http.ResponseWriter) error { w.WriteHeader(http.StatusBadGateway); return nil },
		"no response":   func(http.ResponseWriter) error { panic("broken") },
		"unasked":       func(w http.ResponseWriter) error { w.WriteHeader(http.StatusNotModified); return nil },
		"a broken file": func(w http.ResponseWriter) error { fmt.Fprint(w, "<urlset><url><loc>/c</loc></ur"); return nil },
	} {
		b := newBench(t, func(h *Handler) { h.isDefault = true })
		b.lists("/", "/a", "/b", "/c")
		b.names("/")
		listed := b.pages
		failing := false
		own := indexOf("/own.xml")
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			switch {
			case r.URL.Path == "/sitemap.xml":
				fmt.Fprint(w, own)
			case r.URL.Path != "/own.xml":
				return listed(w, r)
			case failing:
				return fail(w)
			default:
				fmt.Fprint(w, "<urlset><url><loc>http://named.example/a</loc></url><url><loc>http://named.example/b</loc></url></urlset>")
			}
			return nil
		}
		s := b.site("named.example")
		s.state.own.Store(nil)
		b.wantPages(s, 3)
		failing = true
		for range 3 {
			b.clock = b.clock.Add(ownInterval)
			b.wantPages(s, 3)
		}
		if own := s.state.own.Load(); own.err == nil || len(own.pages) > 0 {
			t.Errorf("%s: got %d pages, %v", name, len(own.pages), own.err)
		}
		failing = false
		b.clock = b.clock.Add(ownInterval)
		b.wantPages(s, 3)
		if own := s.state.own.Load(); own.err != nil || len(own.pages) != 2 {
			t.Errorf("%s, and then none: got %d pages, %v", name, len(own.pages), own.err)
		}
	}
}

// TestOwnSitemapsClock: what the site's own sitemaps say is read again after the clock was set back.
func TestOwnSitemapsClock(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.isDefault = true })
	doc := "/a"
	b.pages = func(w http.ResponseWriter, _ *http.Request) error {
		_, err := fmt.Fprintln(w, doc)
		return err
	}
	s := b.site("named.example")
	for _, test := range []struct {
		doc   string
		after time.Duration
	}{{"/a", 0}, {"/b", -time.Hour}} {
		doc = test.doc
		if got, err := b.readOwn(s, probeResult{}, b.clock.Add(test.after)); got != test.doc || err != nil {
			t.Errorf("after %s: got %q, %v", test.after, got, err)
		}
	}
}

// TestOwnSitemapsEnough: once there are as many pages as are listed, no other document is requested.
func TestOwnSitemapsEnough(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.isDefault = true; h.MaxURLs = 2 })
	var requested []string
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		requested = append(requested, r.URL.Path)
		_, err := fmt.Fprint(w, "/a\n/b\n/c\n")
		return err
	}
	p := probeResult{}
	p.robots.sitemaps = []string{"http://named.example/1.txt", "http://named.example/2.txt"}
	_, err := b.readOwn(b.site("named.example"), p, b.clock)
	if len(requested) != 1 || err != nil {
		t.Errorf("%q was requested: %v", requested, err)
	}
}

// TestOwnSitemapsWithoutRobots: while robots.txt cannot be fetched, the sitemaps that it named before stay. A process that
// does not know them says so, and lists nothing less; a new site has nothing to lose.
func TestOwnSitemapsWithoutRobots(t *testing.T) {
	b := newBench(t, nil)
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		upstream(r)
		if r.URL.Path != "/named.txt" {
			w.WriteHeader(http.StatusNotFound)
			return nil
		}
		fmt.Fprint(w, "/a\n")
		return nil
	}
	s := b.site("named.example")
	open := probeResult{robots: robotsRules{sitemaps: []string{"http://named.example/named.txt"}}}
	closed := probeResult{robots: robotsRules{closed: true, status: http.StatusBadGateway}}
	const unknown = "they are not read yet"
	for _, step := range []struct {
		name   string
		probed probeResult
		want   string
		err    string
	}{
		{"a new site", closed, "", ""},
		{"it fails still", closed, "", ""},
		{"it is there", open, "/a", ""},
		{"it fails", closed, "/a", ""},
		{"it fails again", closed, "/a", ""},
		{"another process", closed, "", unknown},
		{"it fails there again", closed, "", unknown},
		{"it is back", open, "/a", ""},
		{"it names none", probeResult{}, "", ""},
		{"it fails then", closed, "", ""},
	} {
		if step.name == "another process" {
			s.state.own.Store(nil)
			s.serve(new(document.Set))
		}
		got, err := b.readOwn(s, step.probed, b.clock)
		isAsWanted := got == step.want && (err == nil) == (step.err == "") && strings.Contains(fmt.Sprint(err), step.err)
		if !isAsWanted {
			t.Errorf("%s: got %q, %v, want %q, %q", step.name, got, err, step.want, step.err)
		}
	}
}

// TestOwnSitemapsPace: the documents of an application are requested at the limiter's pace, beside the refreshes, each once in
// ten minutes, and where one fails, a tenth of the time. No refresh waits for them for long, and all of them come at once.
func TestOwnSitemapsPace(t *testing.T) {
	const children = 30
	for name, test := range map[string]struct {
		status   int
		want     int // pages
		requests int // for each document in 50 minutes
	}{
		"all are there": {http.StatusOK, children, 5},
		"one fails":     {http.StatusInternalServerError, children - 1, 20},
	} {
		inBubble(t, func(t *testing.T, b *bench) {
			b.handler.limiter = crawl.NewLimiter(2, 1)
			var at []time.Time
			requests := make(map[string]int)
			b.pages = func(w http.ResponseWriter, r *http.Request) error {
				upstream(r)
				at = append(at, time.Now())
				requests[r.URL.Path]++
				switch {
				case r.URL.Path == "/sitemap.xml":
					fmt.Fprint(w, indexOf(numbered(children)...))
				case r.URL.Path == "/page-000007" && test.status != http.StatusOK:
					w.WriteHeader(test.status)
				default:
					fmt.Fprint(w, r.URL.Path+"\n")
				}
				return nil
			}
			s := b.site("named.example")
			probed := probeResult{made: true}
			begun := time.Now()
			got, err := b.readOwn(s, probed, begun)
			if got != "" || err != nil || time.Since(begun) > firstPatience {
				t.Errorf("%s: while nothing is known: got %q, %v after %s", name, got, err, time.Since(begun))
			}
			s.setReady()
			time.Sleep(time.Minute)
			for range 50 { // minutes
				begun := time.Now()
				got, err := b.readOwn(s, probed, begun)
				hasFailed := err != nil && strings.Contains(err.Error(), "/page-000007: status 500")
				if n := len(strings.Fields(got)); n != test.want || (err != nil) != (test.status != http.StatusOK) || hasFailed != (err != nil) {
					t.Fatalf("%s: got %d pages, %v", name, n, err)
				}
				if time.Since(begun) > firstPatience {
					t.Errorf("%s: a refresh has waited for %s", name, time.Since(begun))
				}
				time.Sleep(time.Minute)
			}
			synctest.Wait()
			for i := range at[2:] { // it takes one response to know that an upstream responds
				if pause := at[i+2].Sub(at[i+1]); pause < 499*time.Millisecond {
					t.Errorf("%s: request %d came %s after the one before", name, i+2, pause)
				}
			}
			for path, n := range requests {
				if n < test.requests-3 || n > test.requests+1 {
					t.Errorf("%s: %s was requested %d times, want %d", name, path, n, test.requests)
				}
			}
		})
	}
}

// TestOwnSitemapsUnread: after a restart, pages that documents named before are not gone while these are not read. Of a site of
// which nothing was listed yet, nothing is missing, also once its front page is listed. A reload goes on with what was read.
func TestOwnSitemapsUnread(t *testing.T) {
	for isRestart, unread := range map[bool]string{true: "they are not read yet", false: ""} {
		inBubble(t, func(t *testing.T, b *bench) {
			b.handler.limiter = crawl.NewLimiter(1.0/3600, 1)
			b.handler.limiter.AwaitTurn(t.Context(), schedule.Fresh) // another site has the first turn
			b.pages = func(w http.ResponseWriter, r *http.Request) error {
				upstream(r)
				if r.URL.Path == "/sitemap.xml" {
					fmt.Fprint(w, indexOf("/1.txt"))
					return nil
				}
				fmt.Fprint(w, "/a\n")
				return nil
			}
			s := b.site("named.example")
			if isRestart {
				s.serve(snapshotOf(t, 10, "/a"))
			}
			for _, step := range []string{"at first", "the front page is listed"} {
				got, err := b.readOwn(s, probeResult{}, time.Now())
				if got != "" || (err == nil) != (unread == "") || err != nil && err.Error() != unread {
					t.Errorf("%s: got %q, %v, want %q", step, got, err, unread)
				}
				s.serve(snapshotOf(t, 10, "/a"))
			}
			time.Sleep(2 * time.Hour)
			for _, step := range []string{"later", "a reload"} {
				if got, err := b.readOwn(s, probeResult{}, time.Now()); got != "/a" || err != nil {
					t.Errorf("%s: got %s, %v", step, got, err)
				}
				s.endOwnReading() // the configuration after has a site of its own, with the same state
			}
		})
	}
}

// TestOwnSitemapsElsewhere: a sitemap that has URLs of another host says so.
func TestOwnSitemapsElsewhere(t *testing.T) {
	const warning = "some lines of the site's own sitemap" + refusedLines
	for name, test := range map[string]struct {
		content string
		warns   bool
		urls    int
	}{
		"pages":            {"<urlset><url><loc>https://www.example/a</loc></url><url><loc>https://www.example/b</loc></url></urlset>", true, 2},
		"documents":        {"<sitemapindex><sitemap><loc>https://www.example/1.xml</loc></sitemap></sitemapindex>", true, 1},
		"a list":           {"https://www.example/a\n", true, 1},
		"some":             {"<urlset><url><loc>https://www.example/a</loc></url><url><loc>http://named.example/b</loc></url></urlset>", true, 1},
		"nothing":          {"<urlset></urlset>", false, 0},
		"no sitemap, text": {"nothing here\n", false, 0},
	} {
		b := newBench(t, nil)
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			if r.URL.Path != "/sitemap.xml" {
				return caddyhttp.Error(http.StatusNotFound, nil)
			}
			w.Header().Set("Content-Type", "text/xml")
			fmt.Fprint(w, test.content)
			return nil
		}
		if _, err := b.readOwn(b.site("named.example"), probeResult{}, b.clock); err != nil {
			t.Fatal(err)
		}
		lines := b.logs.FilterMessage(warning)
		if got := lines.Len() == 1; got != test.warns {
			t.Errorf("%s: it warns: %t, want %t", name, got, test.warns)
		}
		if test.warns && lines.FilterField(zap.Int("count", test.urls)).Len() != 1 {
			t.Errorf("%s: got %v, want %d", name, lines.All(), test.urls)
		}
	}
}

// TestOwnSitemapsRedirect: an application may redirect the usual path to its own sitemap. A chain without end is an error.
func TestOwnSitemapsRedirect(t *testing.T) {
	const tooMany = "it redirects more than 5 times"
	for name, test := range map[string]struct {
		to        map[string]string
		want, err string
	}{
		"to another path": {map[string]string{"/sitemap.xml": "/own.xml"}, "/a", ""},
		"to a URL":        {map[string]string{"/sitemap.xml": "http://named.example/own.xml"}, "/a", ""},
		"five":            {map[string]string{"/sitemap.xml": "/1", "/1": "/2", "/2": "/3", "/3": "/4", "/4": "/own.xml"}, "/a", ""},
		"six":             {map[string]string{"/sitemap.xml": "/1", "/1": "/2", "/2": "/3", "/3": "/4", "/4": "/5", "/5": "/own.xml"}, "", tooMany},
		"a circle":        {map[string]string{"/sitemap.xml": "/1", "/1": "/sitemap.xml"}, "", tooMany},
		"nowhere":         {map[string]string{"/sitemap.xml": ""}, "", ""},
		"another host":    {map[string]string{"/sitemap.xml": "https://www.example/own.xml"}, "", ""},
	} {
		b := newBench(t, nil)
		s := b.site("named.example")
		s.serve(listing(1)) // so that it waits for the reading
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			if to, ok := test.to[r.URL.Path]; ok {
				w.Header().Set("Location", to)
				w.WriteHeader(http.StatusFound)
				return nil
			}
			fmt.Fprint(w, "<urlset><url><loc>http://named.example/a</loc></url></urlset>")
			return nil
		}
		got, err := b.readOwn(s, probeResult{}, b.clock)
		hasFailed := err != nil && strings.Contains(err.Error(), cmp.Or(test.err, "none"))
		if got != test.want || (err != nil) != (test.err != "") || hasFailed != (err != nil) {
			t.Errorf("%s: got %q, %v, want %q, %q", name, got, err, test.want, test.err)
		}
	}
}

// TestOwnSitemapsOfDisk: a robots.txt has the site's documents read, and no files.
func TestOwnSitemapsOfDisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(file, []byte("/secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, nil)
	b.pages = func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(http.StatusNotFound, nil) }
	probed := probeResult{robots: robotsRules{sitemaps: []string{file, "file://" + file}}}
	if got, err := b.readOwn(b.site("named.example"), probed, b.clock); got != "" || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestOwnSitemapLoop: indexes that name each other are read once.
func TestOwnSitemapLoop(t *testing.T) {
	b := newBench(t, nil)
	requests := make(map[string]int)
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		requests[r.URL.Path]++
		if r.URL.Path == "/a.txt" {
			fmt.Fprint(w, "/a\n")
			return nil
		}
		fmt.Fprint(w, indexOf("/sitemap.xml", "/2.xml", "/a.txt"))
		return nil
	}
	got, err := b.readOwn(b.site("named.example"), probeResult{}, b.clock)
	if want := map[string]int{"/sitemap.xml": 1, "/2.xml": 1, "/a.txt": 1}; got != "/a" || err != nil || !maps.Equal(requests, want) {
		t.Errorf("got %s, %v with requests %v", got, err, requests)
	}
}

// TestOwnSitemapsStopped: a refresh that ends while a document is requested takes nothing away.
func TestOwnSitemapsStopped(t *testing.T) {
	b := newBench(t, nil)
	b.pages = func(w http.ResponseWriter, _ *http.Request) error {
		fmt.Fprint(w, "/a\n/b\n")
		return nil
	}
	s := b.site("named.example")
	r, err := newRefresh(s, probeResult{}, b.clock)
	if err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("stopped")
	b.handler.isDefault = true
	r.lookAtOwn(t.Context())
	if err := r.ownSitemaps(func(page.Page) error { return stopped }); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
	if got, err := b.readOwn(s, probeResult{}, b.clock); got != "/a /b" || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestOwnSitemapsMissing: where there were none, it is no failure that what may be there by now cannot be read.
func TestOwnSitemapsMissing(t *testing.T) {
	b := newBench(t, nil)
	status := http.StatusNotFound
	b.pages = func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(status)
		return nil
	}
	s := b.site("named.example")
	s.serve(listing(1))
	for _, status = range []int{http.StatusNotFound, http.StatusServiceUnavailable, http.StatusServiceUnavailable} {
		if got, err := b.readOwn(s, probeResult{}, b.clock); got != "" || err != nil {
			t.Errorf("%d: got %s, %v", status, got, err)
		}
	}
}

// TestHiddenSitemap: a sitemap of the site's own that ours hides and no source reads is named, with what to write.
func TestHiddenSitemap(t *testing.T) {
	const warning = "the site has a sitemap of its own, which this one hides and no source reads: to merge its pages and dates, write the line into the block of sitemap"
	const two = "<urlset><url><loc>http://named.example/x</loc></url><url><loc>http://named.example/y</loc></url></urlset>"
	ours, err := snapshotOf(t, 10, "/a").Index.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	built, err := io.ReadAll(ours)
	if err != nil {
		t.Fatal(err)
	}
	builtNews := strings.ReplaceAll(string(built), "https://example.com", "http://named.example")
	builtNews = strings.Replace(builtNews, `">`+document.Mark, `" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">`+document.Mark, 1)
	alike := strings.Replace(builtNews, document.Mark, "", 1) // by a script that lays it out as we do
	for name, test := range map[string]struct {
		site    map[string]string // content by path; "->": a redirect
		news    bool
		sources []input
		want    string // hidden, and the line
	}{
		"a sitemap":                {site: map[string]string{"/sitemap.xml": two}, want: "http://named.example/sitemap.xml urls /sitemap.xml"},
		"an index":                 {site: map[string]string{"/sitemap.xml": indexOf("/1.xml", "/2.xml"), "/1.xml": two}, want: "http://named.example/sitemap.xml urls /sitemap.xml"},
		"compressed alone":         {site: map[string]string{"/sitemap.xml.gz": two}, want: "http://named.example/sitemap.xml.gz urls /sitemap.xml.gz"},
		"a redirect to one":        {site: map[string]string{"/sitemap.xml": "->/wp-sitemap.xml", "/wp-sitemap.xml": two}, want: "http://named.example/wp-sitemap.xml urls /wp-sitemap.xml"},
		"that of a section":        {site: map[string]string{"/sitemap-blog.xml": two}, want: "http://named.example/sitemap-blog.xml urls /sitemap-blog.xml"},
		"of no section":            {site: map[string]string{"/sitemap-news.xml": two}},
		"that of news":             {site: map[string]string{"/sitemap-news.xml": two}, news: true, want: "http://named.example/sitemap-news.xml urls /sitemap-news.xml"},
		"of news, of a build":      {site: map[string]string{"/sitemap-news.xml": builtNews}, news: true},
		"of a section, read":       {site: map[string]string{"/sitemap-blog.xml": two}, sources: []input{&SourceURLs{From: []string{"/sitemap-blog.xml"}}}},
		"of a section, of a build": {site: map[string]string{"/sitemap-blog.xml": string(built)}},
		"none":                     {site: map[string]string{}},
		"an empty one":             {site: map[string]string{"/sitemap.xml": "<urlset></urlset>"}},
		"that of a build":          {site: map[string]string{"/sitemap.xml": string(built)}},
		"one that looks like it":   {site: map[string]string{"/sitemap.xml": alike}, want: "http://named.example/sitemap.xml urls /sitemap.xml"},
		"a redirect to nothing":    {site: map[string]string{"/sitemap.xml": "->/wp-sitemap.xml"}},
		"one that is read":         {site: map[string]string{"/sitemap.xml": two}, sources: []input{&SourceURLs{From: []string{"/sitemap.xml"}}}},
		"one that is read there":   {site: map[string]string{"/sitemap.xml": two}, sources: []input{&SourceURLs{From: []string{"/srv/www/sitemap.xml"}}}},
		"another one is read":      {site: map[string]string{"/sitemap.xml": two}, sources: []input{&SourceURLs{From: []string{"/more.txt"}}}},
		"lines are read":           {site: map[string]string{"/sitemap.xml": two}, sources: []input{&SourceURLs{URLs: []string{"/more"}}}, want: "http://named.example/sitemap.xml urls /sitemap.xml"},
	} {
		b := newBench(t, func(h *Handler) {
			h.Sections = given("blog /blog/*")
			if test.news {
				h.News = &News{Publication: "The Example Times"}
			}
		})
		b.handler.sources = append(b.handler.sources, test.sources...)
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			if r.URL.Path == "/2.xml" {
				t.Errorf("%s: %s is requested although a page is known", name, r.URL.Path)
			}
			content, ok := test.site[r.URL.Path]
			to, isRedirect := strings.CutPrefix(content, "->")
			switch {
			case !ok:
				return caddyhttp.Error(http.StatusNotFound, nil)
			case isRedirect:
				w.Header().Set("Location", to)
				w.WriteHeader(http.StatusMovedPermanently)
			default:
				fmt.Fprint(w, content)
			}
			return nil
		}
		s := b.site("named.example")
		s.serve(snapshotOf(t, 10, "/a"))
		s.state.own.Store(nil)
		r, err := newRefresh(s, probeResult{}, b.clock)
		if err != nil {
			t.Fatal(err)
		}
		r.lookAtOwn(t.Context())
		got := ""
		for _, line := range b.logs.FilterMessage(warning).All() {
			fields := line.ContextMap()
			got = fmt.Sprint(fields["hidden"], " ", fields["line"])
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestDefaultReadsOwn: where no source is written, the sitemap that a generator has left in the root is read as a list, and
// is said to name its pages, also those that another source names.
func TestDefaultReadsOwn(t *testing.T) {
	for _, isDefault := range []bool{true, false} {
		b := newBench(t, func(h *Handler) { h.isDefault = isDefault })
		b.lists("/", "/a", "/b")
		b.names("/", "/a")
		answer := b.pages
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			if r.URL.Path == "/sitemap.xml" {
				fmt.Fprint(w, "<urlset><url><loc>http://named.example/a</loc></url><url><loc>http://named.example/b</loc></url><url><loc>http://named.example/gone</loc></url></urlset>")
				return nil
			}
			return answer(w, r)
		}
		s := b.site("named.example")
		want := 2
		named := 1
		if isDefault {
			want = 3
			named = 2
		}
		b.wantPages(s, want)
		if n := len(s.published().report.Sources); n != want-1 {
			t.Errorf("without a source %t: got sources %+v", isDefault, s.published().report.Sources)
		}
		if got := b.explained("http://named.example/a").NamedBy; len(got) != named {
			t.Errorf("without a source %t: /a is named by %q", isDefault, got)
		}
	}
}

// TestOwnSitemapsDemanded: a refresh that an operator requests reads the own sitemaps again.
func TestOwnSitemapsDemanded(t *testing.T) {
	b := newBench(t, nil)
	list := "http://named.example/a"
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		upstream(r)
		fmt.Fprint(w, list)
		return nil
	}
	s := b.site("named.example")
	read := func(demanded bool) string {
		r, err := newRefresh(s, probeResult{}, b.clock.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		r.demanded = demanded
		paths, err := b.ownPages(r)
		if err != nil {
			t.Fatal(err)
		}
		return paths
	}
	s.setReady()
	if got := read(false); got != "/a" {
		t.Fatalf("got %q, want /a", got)
	}
	list += "\nhttp://named.example/b"
	if got := read(false); got != "/a" {
		t.Errorf("a minute later: got %q, want what was read", got)
	}
	if got := read(true); got != "/a /b" {
		t.Errorf("demanded: got %q, want /a /b", got)
	}
}

// TestOwnSitemapsDemandedAmid: an operator who requests a refresh while they are read sees what they say since.
func TestOwnSitemapsDemandedAmid(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		content := "/old\n"
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			said := content
			time.Sleep(firstPatience)
			_, err := io.WriteString(w, said)
			return err
		}
		s := b.site("named.example")
		s.setReady()
		b.readOwn(s, probeResult{}, time.Now())
		synctest.Wait()
		content = "/new\n"
		r, err := newRefresh(s, probeResult{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		r.demanded = true
		if got, err := b.ownPages(r); got != "/new" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// TestOwnSitemapsSoon: the next refresh follows soon after a reading for which the one before has not waited.
func TestOwnSitemapsSoon(t *testing.T) {
	for took, want := range map[time.Duration]bool{0: false, 10 * time.Second: true} {
		inBubble(t, func(t *testing.T, b *bench) {
			b.handler.isDefault = true
			b.pages = func(w http.ResponseWriter, r *http.Request) error {
				if r.URL.Path == "/sitemap.xml" {
					time.Sleep(took)
					fmt.Fprint(w, "/a\n")
				}
				return nil
			}
			s := b.site("named.example")
			s.run()
			s.state.isChanged.Store(false)
			synctest.Wait()
			time.Sleep(took)
			if got := s.state.isChanged.Load(); got != want {
				t.Errorf("it takes %s: another refresh follows: %t", took, got)
			}
		})
	}
}

// TestOwnSitemapsOften: those of an application are requested every ten minutes, those of files in each refresh, all without
// conditions, as an application may return 304 whatever has changed.
func TestOwnSitemapsOften(t *testing.T) {
	for isUpstream, want := range map[bool]int{true: 6, false: 60} {
		inBubble(t, func(t *testing.T, b *bench) {
			requests := 0
			b.pages = func(w http.ResponseWriter, r *http.Request) error {
				if isUpstream {
					upstream(r)
				}
				requests++
				w.Header().Set("Etag", `"always"`)
				if r.Header.Get("If-None-Match") != "" {
					w.WriteHeader(http.StatusNotModified)
					return nil
				}
				fmt.Fprint(w, "/a\n")
				return nil
			}
			s := b.site("named.example")
			s.setReady()
			for range 60 { // minutes
				got, err := b.readOwn(s, probeResult{}, time.Now())
				if got != "/a" || err != nil {
					t.Fatalf("an application %t: got %q, %v", isUpstream, got, err)
				}
				time.Sleep(time.Minute)
			}
			if requests != want {
				t.Errorf("an application %t: got %d requests, want %d", isUpstream, requests, want)
			}
		})
	}
}

// TestOwnSitemapsShare: the longer it takes to read the sitemaps of an application, the less often that is done.
func TestOwnSitemapsShare(t *testing.T) {
	failed := errors.New("failed")
	for _, test := range []struct {
		made bool
		err  error
		took time.Duration
		want time.Duration
	}{
		{false, nil, time.Second, 10 * time.Second},
		{false, failed, time.Second, 10 * time.Second},
		{true, nil, time.Minute, ownInterval},
		{true, nil, 2 * time.Minute, 20 * time.Minute},
		{true, failed, time.Second, ownRetry},
		{true, failed, time.Minute, 10 * time.Minute},
	} {
		o := ownList{isMade: test.made, err: test.err}
		if got := o.pauseAfter(test.took); got != test.want {
			t.Errorf("%+v: got %s", test, got)
		}
	}
}

// TestOwnSitemapTells: what the application's sitemap says of a page that is listed, by another date or by no entry any
// more, is believed once the page was fetched, which is soon, also where its own interval is long.
func TestOwnSitemapTells(t *testing.T) {
	const entry = "<url><loc>http://named.example%s</loc><lastmod>%s</lastmod></url>"
	for name, change := range map[string]func(dates map[string]string, gone map[string]bool){
		"removed":             func(dates map[string]string, gone map[string]bool) { delete(dates, "/b"); gone["/b"] = true },
		"removed, and listed": func(dates map[string]string, gone map[string]bool) { dates["/b"] = "1999-12-31"; gone["/b"] = true },
	} {
		inBubble(t, func(t *testing.T, b *bench) {
			b.handler.limiter = crawl.NewLimiter(2, 1)
			b.handler.discovery = &discovery{depth: 100, expire: 90 * 24 * time.Hour, maxPaths: 100, urls: origin.NewCleaner(nil)}
			pages := []string{"/", "/a", "/b", "/c", "/d", "/e"} // a fifth of fewer is held back
			dates := make(map[string]string)
			for _, path := range pages {
				dates[path] = "1999-01-01"
			}
			gone := make(map[string]bool)
			b.names()
			b.pages = func(w http.ResponseWriter, r *http.Request) error {
				upstream(r)
				if r.URL.Path == "/sitemap.xml" {
					w.Header().Set("Content-Type", "text/xml")
					fmt.Fprint(w, "<urlset>")
					for _, path := range slices.Sorted(maps.Keys(dates)) {
						fmt.Fprintf(w, entry, path, dates[path])
					}
					fmt.Fprint(w, "</urlset>")
					return nil
				}
				if !slices.Contains(pages, r.URL.Path) || gone[r.URL.Path] {
					w.WriteHeader(http.StatusNotFound)
					return nil
				}
				w.Header().Set("Content-Type", contentHTML)
				fmt.Fprintf(w, "<!doctype html><title>%s</title><p>%[1]s<a href=%s>x</a>", r.URL.Path, strings.Join(pages, ">x</a><a href="))
				return nil
			}
			s := b.site("named.example")
			minutes := func(until func() bool, most int) int {
				for n := range most {
					if until() {
						return n
					}
					time.Sleep(time.Minute)
					s.run()
				}
				return most
			}
			listsAll := func() bool { return pagesOf(s.published().snapshot) == len(pages) }
			if minutes(listsAll, 5) == 5 {
				t.Fatalf("%s: not all pages are listed at first", name)
			}
			minutes(func() bool { return false }, 180)
			change(dates, gone)
			if n := minutes(func() bool { return !listsAll() }, 60); n > 11 {
				t.Errorf("%s: it was noticed after %d minutes", name, n)
			}
		})
	}
}
