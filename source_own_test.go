package sitemap

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
	"github.com/seed3295b519/caddy-sitemap/internal/visits"
)

// readOwn reads the own sitemaps of a site in a refresh at a time, and returns the paths that they name.
func (b *bench) readOwn(s *site, probed probeResult, at time.Time) (string, error) {
	b.Helper()
	r, err := newRefresh(s, probed, at)
	if err != nil {
		b.Fatal(err)
	}
	var paths []string
	err = r.ownSitemaps(b.Context(), func(p page.Page) error {
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

// limit has the requests of a site go out at a rate from now on.
func (b *bench) limit(s *site, rate float64) {
	b.handler.limiter = crawl.NewLimiter(rate, 1)
	s.crawler = crawl.New(crawl.Options{Limiter: b.handler.limiter, Rank: s.rank, Now: b.app.now})
	s.fetcher.crawler = s.crawler
}

// TestOwnSitemapsStay: what a document said stays while it fails, however it does.
func TestOwnSitemapsStay(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter) error{
		"an error":      func(w http.ResponseWriter) error { w.WriteHeader(http.StatusBadGateway); return nil },
		"no response":   func(http.ResponseWriter) error { panic("broken") },
		"a broken file": func(w http.ResponseWriter) error { fmt.Fprint(w, "<urlset><url><loc>/c</loc></ur"); return nil },
	} {
		b := newBench(t, nil)
		failing := false
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			upstream(r)
			if failing {
				return fail(w)
			}
			fmt.Fprint(w, "<urlset><url><loc>http://named.example/a</loc></url></urlset>")
			return nil
		}
		s := b.site("named.example")
		if got, err := b.readOwn(s, probeResult{}, b.clock); got != "/a" || err != nil {
			t.Fatalf("%s: got %s, %v", name, got, err)
		}
		failing = true
		if got, err := b.readOwn(s, probeResult{}, b.clock.Add(ownInterval)); got != "/a" || err == nil {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
		failing = false
		if got, err := b.readOwn(s, probeResult{}, b.clock.Add(ownInterval+ownRetry)); got != "/a" || err != nil {
			t.Errorf("%s, and then none: got %s, %v", name, got, err)
		}
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
	const unknown = "robots.txt, which may name more of them, cannot be fetched"
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
			s.own.Store(nil)
			s.serve(new(publish.Snapshot))
		}
		got, err := b.readOwn(s, step.probed, b.clock)
		isAsWanted := got == step.want && (err == nil) == (step.err == "") && strings.Contains(fmt.Sprint(err), step.err)
		if !isAsWanted {
			t.Errorf("%s: got %q, %v, want %q, %q", step.name, got, err, step.want, step.err)
		}
	}
}

// TestOwnSitemapsPace: the documents of an application are requested at the limiter's pace, over as many refreshes as
// that takes, and one that fails alone is requested again, later and later.
func TestOwnSitemapsPace(t *testing.T) {
	const children = 30
	inBubble(t, func(t *testing.T, b *bench) {
		b.handler.limiter = crawl.NewLimiter(2, 1)
		var at []time.Time
		requests := make(map[string][]time.Time)
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			upstream(r)
			at = append(at, time.Now())
			requests[r.URL.Path] = append(requests[r.URL.Path], time.Now())
			switch r.URL.Path {
			case "/sitemap.xml":
				fmt.Fprint(w, indexOf(numbered(children)...))
			case "/page-000007":
				w.WriteHeader(http.StatusInternalServerError)
			default:
				fmt.Fprint(w, r.URL.Path+"\n")
			}
			return nil
		}
		s := b.site("named.example")
		probed := probeResult{made: true}
		if _, err := b.readOwn(s, probed, time.Now()); err != nil {
			t.Errorf("while nothing is known yet, documents that are not read are no error: got %v", err)
		}
		if n := len(at); n < 2 || n > 6 {
			t.Errorf("%d documents were requested while clients wait", n)
		}
		s.setReady()
		for range 50 { // minutes
			got, err := b.readOwn(s, probed, time.Now())
			if n := len(strings.Fields(got)); n != children-1 || err == nil || !strings.Contains(err.Error(), "/page-000007: status 500") {
				t.Fatalf("got %d pages, %v", n, err)
			}
			time.Sleep(time.Minute)
		}
		for i := range at[1:] {
			if pause := at[i+1].Sub(at[i]); pause < 499*time.Millisecond {
				t.Errorf("request %d came %s after the one before", i+1, pause)
			}
		}
		for path, at := range requests {
			want := 1
			if path == "/page-000007" {
				want = 6 // after 1, 2, 4, 8, 16 minutes
			}
			if len(at) != want {
				t.Errorf("%s was requested %d times, want %d", path, len(at), want)
			}
		}
	})
}

// TestOwnSitemapsPaceBesideFiles: where a file is the front page, so that the first request to an upstream is that for its
// index, those for the documents of the index have its pace, also after each has failed.
func TestOwnSitemapsPaceBesideFiles(t *testing.T) {
	const children = 10
	inBubble(t, func(t *testing.T, b *bench) {
		b.handler.limiter = crawl.NewLimiter(2, 1)
		var at []time.Time
		isDown := true
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			upstream(r)
			at = append(at, time.Now())
			switch {
			case r.URL.Path == "/sitemap.xml":
				fmt.Fprint(w, indexOf(numbered(children)...))
			case isDown:
				w.WriteHeader(http.StatusInternalServerError)
			default:
				fmt.Fprint(w, r.URL.Path+"\n")
			}
			return nil
		}
		s := b.site("named.example")
		s.setReady()
		for range 5 { // minutes
			_, _ = b.readOwn(s, probeResult{}, time.Now())
			time.Sleep(time.Minute)
			isDown = false
		}
		if len(at) != 1+2*children {
			t.Errorf("got %d requests", len(at))
		}
		for i := range at[min(len(at), 2):] { // it takes one response to know that an upstream responds
			if pause := at[i+2].Sub(at[i+1]); pause < 499*time.Millisecond {
				t.Errorf("request %d came %s after the one before", i+2, pause)
			}
		}
	})
}

// TestOwnSitemapsRenamed: pages are not gone while an application names its documents otherwise and these are not read
// yet, also in the process that has read the first ones.
func TestOwnSitemapsRenamed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.handler.limiter = crawl.NewLimiter(1, 1)
		version := 1
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			upstream(r)
			if r.URL.Path == "/sitemap.xml" {
				fmt.Fprint(w, indexOf(fmt.Sprintf("/%d.txt", version)))
				return nil
			}
			fmt.Fprint(w, "/a\n")
			return nil
		}
		s := b.site("named.example")
		probed := probeResult{made: true}
		s.setReady()
		if got, err := b.readOwn(s, probed, time.Now()); got != "/a" || err != nil {
			t.Fatalf("at first: got %s, %v", got, err)
		}
		version = 2
		b.limit(s, 1.0/3600)
		time.Sleep(ownInterval)
		if got, err := b.readOwn(s, probed, time.Now()); got != "" || err == nil || err.Error() != "1 of 2 documents are not read yet" {
			t.Errorf("renamed: got %s, %v", got, err)
		}
	})
}

// TestOwnSitemapsUnread: after a restart, pages that documents named before are not gone while these are not read.
func TestOwnSitemapsUnread(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.handler.limiter = crawl.NewLimiter(1.0/3600, 1)
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
		s.serve(snapshotOf(t, 10, "/a"))
		probed := probeResult{made: true}
		_, err := b.readOwn(s, probed, time.Now())
		if err == nil || err.Error() != "1 of 2 documents are not read yet" {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Hour)
		if got, err := b.readOwn(s, probed, time.Now()); got != "/a" || err != nil {
			t.Errorf("an hour later: got %s, %v", got, err)
		}
	})
}

// TestOwnSitemapsUnreadAfterReload: after a reload, no page is missing because of documents that named none before.
func TestOwnSitemapsUnreadAfterReload(t *testing.T) {
	const unread = "1 of 1 documents are not read yet"
	for name, test := range map[string]struct {
		firstLook bool
		content   string
		want      string
	}{
		"unread":  {firstLook: true, content: "/a\n", want: fmt.Sprint(nil)},
		"missing": {want: fmt.Sprint(nil)},
		"read":    {content: "/a\n", want: unread},
	} {
		inBubble(t, func(t *testing.T, b *bench) {
			b.handler.limiter = crawl.NewLimiter(1.0/600, 1)
			b.pages = func(w http.ResponseWriter, r *http.Request) error {
				upstream(r)
				if test.content == "" {
					return caddyhttp.Error(http.StatusNotFound, nil)
				}
				fmt.Fprint(w, test.content)
				return nil
			}
			s := b.site(name + ".example")
			s.firstLook = test.firstLook
			probed := probeResult{made: true}
			if _, err := b.readOwn(s, probed, time.Now()); err != nil {
				t.Fatalf("%s: at first: got %v", name, err)
			}
			s.firstLook = false
			s.serve(snapshotOf(t, 1, "/a"))
			if !test.firstLook { // the next refresh
				if _, err := b.readOwn(s, probed, time.Now()); err != nil {
					t.Fatalf("%s: then: got %v", name, err)
				}
			}
			b.limit(s, 1.0/3600)
			b.handler.limiter.AwaitTurn(t.Context(), schedule.Fresh) // another site has the turn of this hour
			s.own.Store(nil)                                         // the configuration after has a site of its own, with the same state
			if _, err := b.readOwn(s, probed, time.Now()); fmt.Sprint(err) != test.want {
				t.Errorf("%s before: got %v, want %s", name, err, test.want)
			}
		})
	}
}

// TestOwnSitemapsElsewhere: a sitemap that has URLs of another host says so.
func TestOwnSitemapsElsewhere(t *testing.T) {
	const warning = ownElsewhere
	for name, test := range map[string]struct {
		content string
		warns   bool
		urls    int64
	}{
		"pages":            {"<urlset><url><loc>https://www.example/a</loc></url><url><loc>https://www.example/b</loc></url></urlset>", true, 2},
		"documents":        {"<sitemapindex><sitemap><loc>https://www.example/1.xml</loc></sitemap></sitemapindex>", true, 1},
		"a list":           {"https://www.example/a\n", true, 1},
		"some":             {"<urlset><url><loc>https://www.example/a</loc></url><url><loc>http://named.example/b</loc></url></urlset>", false, 0},
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
		if want := zap.Int64("urls", test.urls); test.warns && lines.FilterField(zap.Int("urls", int(test.urls))).Len() != 1 {
			t.Errorf("%s: got %v, want %v", name, lines.All(), want)
		}
	}
}

// TestOwnSitemapsRedirect: an application may redirect the usual path to its own sitemap. A chain without end is left.
func TestOwnSitemapsRedirect(t *testing.T) {
	for path, test := range map[string]struct {
		to   map[string]string
		want string
		most int // requests
	}{
		"to another path": {map[string]string{"/sitemap.xml": "/own.xml"}, "/a", 2},
		"to a URL":        {map[string]string{"/sitemap.xml": "http://named.example/own.xml"}, "/a", 2},
		"five":            {map[string]string{"/sitemap.xml": "/1", "/1": "/2", "/2": "/3", "/3": "/4", "/4": "/own.xml"}, "/a", 6},
		"six":             {map[string]string{"/sitemap.xml": "/1", "/1": "/2", "/2": "/3", "/3": "/4", "/4": "/5", "/5": "/own.xml"}, "", 6},
		"a loop":          {map[string]string{"/sitemap.xml": "/1", "/1": "/sitemap.xml"}, "", 2},
		"nowhere":         {map[string]string{"/sitemap.xml": ""}, "", 1},
		"another host":    {map[string]string{"/sitemap.xml": "https://www.example/own.xml"}, "", 1},
	} {
		b := newBench(t, nil)
		requests := 0
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			requests++
			if to, ok := test.to[r.URL.Path]; ok {
				w.Header().Set("Location", to)
				w.WriteHeader(http.StatusFound)
				return nil
			}
			fmt.Fprint(w, "<urlset><url><loc>http://named.example/a</loc></url></urlset>")
			return nil
		}
		if got, err := b.readOwn(b.site("named.example"), probeResult{}, b.clock); got != test.want || err != nil || requests > test.most {
			t.Errorf("%s: got %s, %v with %d requests, want %s with %d", path, got, err, requests, test.want, test.most)
		}
	}
}

// TestOwnSitemapLinks: indexes of indexes are read, and redirects are followed, but none without end.
func TestOwnSitemapLinks(t *testing.T) {
	for _, test := range []struct {
		redirects bool // the document does
		from      ownLink
		want      []ownLink
	}{
		{false, ownLink{depth: 1, redirects: 5}, []ownLink{{url: "/a", depth: 2}}},
		{false, ownLink{depth: 2}, nil},
		{true, ownLink{depth: 2, redirects: 4}, []ownLink{{url: "/a", depth: 2, redirects: 5}}},
		{true, ownLink{redirects: 5}, nil},
	} {
		doc := ownDocument{children: []string{"/a"}, redirect: test.redirects}
		if got := doc.links(test.from); !slices.Equal(got, test.want) {
			t.Errorf("%+v: got %+v, want %+v", test.from, got, test.want)
		}
	}
}

// TestOwnSitemapOfFile: a file is looked at in each refresh, and read when it has changed.
func TestOwnSitemapOfFile(t *testing.T) {
	b := newBench(t, nil)
	etag, full := `"1"`, 0
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Etag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
		full++
		fmt.Fprintf(w, "<urlset><url><loc>http://named.example/%d</loc></url></urlset>", full)
		return nil
	}
	s := b.site("named.example")
	for i, want := range []string{"/1", "/1", "/2", "/2"} {
		if i == 2 {
			etag = `"2"`
		}
		if got, err := b.readOwn(s, probeResult{}, b.clock); got != want || err != nil {
			t.Errorf("read %d: got %s, %v, want %s", i, got, err, want)
		}
	}
	if full != 2 {
		t.Errorf("the file was read %d times", full)
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
	if err := r.ownSitemaps(t.Context(), func(page.Page) error { return stopped }); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
	if got, err := b.readOwn(s, probeResult{}, b.clock); got != "/a /b" || err != nil {
		t.Errorf("got %s, %v", got, err)
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
	var news strings.Builder
	if _, err := (sitemapxml.Encoder{Base: "http://named.example"}).News(&news, "The Example Times", []sitemapxml.Article{{Path: "/a"}}); err != nil {
		t.Fatal(err)
	}
	builtNews := news.String()
	alike := strings.Replace(string(built), sitemapxml.Mark, "", 1) // by a script that lays it out as we do
	for name, test := range map[string]struct {
		site    map[string]string // content by path; "->": a redirect
		news    bool
		sources []input
		want    string // hidden, its URLs and documents, and the line
	}{
		"a sitemap":                {site: map[string]string{"/sitemap.xml": two}, want: "http://named.example/sitemap.xml 2 0 urls /sitemap.xml"},
		"an index":                 {site: map[string]string{"/sitemap.xml": indexOf("/1.xml"), "/1.xml": two}, want: "http://named.example/sitemap.xml 0 1 urls /sitemap.xml"},
		"compressed alone":         {site: map[string]string{"/sitemap.xml.gz": two}, want: "http://named.example/sitemap.xml.gz 2 0 urls /sitemap.xml.gz"},
		"a redirect to one":        {site: map[string]string{"/sitemap.xml": "->/wp-sitemap.xml", "/wp-sitemap.xml": two}, want: "http://named.example/wp-sitemap.xml 2 0 urls /wp-sitemap.xml"},
		"that of a section":        {site: map[string]string{"/sitemap-blog.xml": two}, want: "http://named.example/sitemap-blog.xml 2 0 urls /sitemap-blog.xml"},
		"of no section":            {site: map[string]string{"/sitemap-news.xml": two}},
		"that of news":             {site: map[string]string{"/sitemap-news.xml": two}, news: true, want: "http://named.example/sitemap-news.xml 2 0 urls /sitemap-news.xml"},
		"of news, of a build":      {site: map[string]string{"/sitemap-news.xml": builtNews}, news: true},
		"of a section, read":       {site: map[string]string{"/sitemap-blog.xml": two}, sources: []input{&SourceURLs{From: []string{"/sitemap-blog.xml"}}}},
		"of a section, of a build": {site: map[string]string{"/sitemap-blog.xml": string(built)}},
		"none":                     {site: map[string]string{}},
		"an empty one":             {site: map[string]string{"/sitemap.xml": "<urlset></urlset>"}},
		"that of a build":          {site: map[string]string{"/sitemap.xml": string(built)}},
		"one that looks like it":   {site: map[string]string{"/sitemap.xml": alike}, want: "http://named.example/sitemap.xml 1 0 urls /sitemap.xml"},
		"a redirect to nothing":    {site: map[string]string{"/sitemap.xml": "->/wp-sitemap.xml"}},
		"one that is read":         {site: map[string]string{"/sitemap.xml": two}, sources: []input{&SourceURLs{From: []string{"/sitemap.xml"}}}},
		"one that is read there":   {site: map[string]string{"/sitemap.xml": two}, sources: []input{&SourceURLs{From: []string{"/srv/www/sitemap.xml"}}}},
		"another one is read":      {site: map[string]string{"/sitemap.xml": two}, sources: []input{&SourceURLs{From: []string{"/more.txt"}}}, want: "http://named.example/sitemap.xml 2 0 urls /sitemap.xml"},
	} {
		b := newBench(t, func(h *Handler) {
			h.Sections = given("blog /blog/*")
			if test.news {
				h.News = &News{Publication: "The Example Times"}
			}
		})
		b.handler.sources = append(b.handler.sources, test.sources...)
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
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
		r, err := newRefresh(s, probeResult{}, b.clock)
		if err != nil {
			t.Fatal(err)
		}
		r.warnOfHidden(t.Context())
		got := ""
		for _, line := range b.logs.FilterMessage(warning).All() {
			fields := line.ContextMap()
			got = fmt.Sprint(fields["hidden"], " ", fields["urls"], " ", fields["documents"], " ", fields["line"])
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestDefaultReadsOwn: where no source is written, the sitemap that a generator has left in the root is read as a list.
func TestDefaultReadsOwn(t *testing.T) {
	for _, isDefault := range []bool{true, false} {
		b := newBench(t, func(h *Handler) { h.isDefault = isDefault })
		b.lists("/", "/a", "/b")
		b.names("/", "/a")
		answer := b.pages
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			if r.URL.Path == "/sitemap.xml" {
				fmt.Fprint(w, "<urlset><url><loc>http://named.example/b</loc><lastmod>2024-03-01</lastmod></url><url><loc>http://named.example/gone</loc></url></urlset>")
				return nil
			}
			return answer(w, r)
		}
		s := b.site("named.example")
		want := 2
		if isDefault {
			want = 3
		}
		b.wantPages(s, want)
		if n := len(s.published().report.Sources); n != want-1 {
			t.Errorf("without a source %t: got sources %+v", isDefault, s.published().report.Sources)
		}
	}
}

// TestOwnSitemapsDemanded: a refresh that an operator requests reads the own sitemaps again, in full.
func TestOwnSitemapsDemanded(t *testing.T) {
	b := newBench(t, nil)
	list := "http://named.example/a"
	conditions := 0
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		upstream(r)
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") != "" {
			conditions++
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
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
		var paths []string
		err = r.ownSitemaps(t.Context(), func(p page.Page) error {
			paths = append(paths, p.Path)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(paths, " ")
	}
	s.setReady()
	if got := read(false); got != "/a" {
		t.Fatalf("got %q, want /a", got)
	}
	list += "\nhttp://named.example/b"
	if got := read(false); got != "/a" {
		t.Errorf("a minute later: got %q, want what was read", got)
	}
	if got := read(true); got != "/a /b" || conditions > 0 {
		t.Errorf("demanded: got %q with %d conditional requests, want /a /b", got, conditions)
	}
}

// TestOwnSitemapsSoon: the next refresh follows soon while documents wait for their turns.
func TestOwnSitemapsSoon(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	b.wantPages(s, 1)
	s.own.Store(&ownSet{unread: 1})
	if due := due(s.prospects(new(report.Refresh), b.clock)); due.Sub(b.clock) != soon {
		t.Errorf("it is due in %s", due.Sub(b.clock))
	}
}

// TestOwnSitemapsSooner: a document of an application is read every ten minutes for a day after its content has changed,
// else once an hour. With validators, most of these requests are conditional.
func TestOwnSitemapsSooner(t *testing.T) {
	if testing.Short() {
		t.Skip("18 days of refreshes")
	}
	const entry = "<url><loc>http://named.example/%s</loc><lastmod>%s</lastmod></url>"
	list := func(entries ...string) string { return "<urlset>" + strings.Join(entries, "") + "</urlset>" }
	a := fmt.Sprintf(entry, "a", "1999-01-01")
	b2 := fmt.Sprintf(entry, "b", "1999-01-02")
	for name, test := range map[string]struct {
		content func(hour, request int) string // "": status 404
		etag    bool                           // of the content
		none    bool                           // 304 for any request that is conditional
		want    int                            // requests in two days, one at the beginning
		full    int                            // of them, those that got the content; 0: all
		changes int                            // of the pages, as they were read
	}{
		"nothing changes": {
			content: func(int, int) string { return list(a, b2) },
			want:    1 + 24*6 + 23,
		},
		"nothing is there": {
			content: func(int, int) string { return "" },
			want:    48,
		},
		"it comes after ten hours": {
			content: func(hour, _ int) string { return map[bool]string{true: list(a)}[hour >= 10] },
			want:    10 + 1 + 24*6 + 13, changes: 1,
		},
		"a comment with the time": {
			content: func(_, n int) string { return list(a, fmt.Sprintf("<!-- %d -->", n), b2) },
			etag:    true,
			want:    1 + 24*6 + 23,
		},
		"another order": {
			content: func(_, n int) string {
				if n%2 == 0 {
					return list(a, b2)
				}
				return list(b2, a)
			},
			want: 1 + 24*6 + 23,
		},
		"a date once a day": {
			content: func(hour, _ int) string {
				return list(a, fmt.Sprintf(entry, "b", fmt.Sprintf("1999-02-%02d", 1+hour/24)))
			},
			want: 48 * 6, changes: 1,
		},
		"a page is gone": {
			content: func(hour, _ int) string { return list(a, map[bool]string{true: b2}[hour < 12]) },
			want:    1 + 36*6 + 11, changes: 1,
		},
		"validators": {
			content: func(int, int) string { return list(a, b2) },
			etag:    true,
			want:    1 + 24*6 + 23, full: 24 + 1 + 23,
		},
		"304 whatever has changed": {
			content: func(hour, _ int) string { return list(fmt.Sprintf(entry, fmt.Sprint(hour/24), "1999-01-01")) },
			etag:    true, none: true,
			want: 48 * 6, full: 48, changes: 1,
		},
	} {
		inBubble(t, func(t *testing.T, b *bench) {
			b.handler.isDefault = true
			began := time.Now()
			requests, full := 0, 0
			b.pages = func(w http.ResponseWriter, r *http.Request) error {
				upstream(r)
				hour := int(time.Since(began) / time.Hour)
				content := test.content(hour, requests)
				etag := fmt.Sprintf("%q", fmt.Sprint(len(content), content[max(0, len(content)-200):]))
				requests++
				if test.etag {
					w.Header().Set("Etag", etag)
				}
				condition := r.Header.Get("If-None-Match")
				if condition != "" && (condition == etag || test.none) {
					w.WriteHeader(http.StatusNotModified)
					return nil
				}
				full++
				if content == "" {
					w.WriteHeader(http.StatusNotFound)
					return nil
				}
				w.Header().Set("Content-Type", "text/xml")
				fmt.Fprint(w, content)
				return nil
			}
			s := b.site("named.example")
			s.setReady()
			changes := 0
			last := "?"
			for range 48 * 60 { // minutes
				r, err := newRefresh(s, probeResult{made: true}, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				var pages []page.Page
				err = r.ownSitemaps(t.Context(), func(p page.Page) error {
					pages = append(pages, p)
					return nil
				})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got := fmt.Sprint(pages)
				if last != "?" && got != last {
					changes++
				}
				last = got
				time.Sleep(time.Minute)
			}
			if requests != test.want || full != cmp.Or(test.full, test.want) || changes != test.changes {
				t.Errorf("%s: got %d requests, %d of them full, and %d changes, want %d, %d and %d",
					name, requests, full, changes, test.want, cmp.Or(test.full, test.want), test.changes)
			}
		})
	}
}

// TestOwnSitemapsShare: the more documents an application has, on all sites of the handler, the less often one is read.
func TestOwnSitemapsShare(t *testing.T) {
	for _, test := range []struct {
		documents int // of each of two sites
		isDefault bool
		want      time.Duration
	}{
		{0, true, ownSoon},
		{60, true, ownSoon},
		{120, true, 20 * time.Minute},
		{1000, true, ownInterval},
		{1000, false, ownInterval},
		{0, false, ownInterval}, // nothing is merged
	} {
		b := newBench(t, func(h *Handler) { h.isDefault = test.isDefault })
		for _, host := range []string{"named.example", "other.example"} {
			own := &ownSet{made: true, documents: make(map[string]*ownDocument)}
			for i := range test.documents {
				own.documents[fmt.Sprint(i)] = new(ownDocument)
			}
			b.site(host).own.Store(own)
		}
		if got := b.site("named.example").ownSoon(); got != test.want {
			t.Errorf("%d documents: got %s, want %s", test.documents, got, test.want)
		}
	}
}

// TestOwnSitemapsUnasked: a 304 without a condition is an error, and what was read before stays.
func TestOwnSitemapsUnasked(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		requests := 0
		status := http.StatusNotModified
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			upstream(r)
			requests++
			w.Header().Set("Etag", `"always"`)
			w.WriteHeader(status)
			fmt.Fprint(w, "/a\n")
			return nil
		}
		s := b.site("named.example")
		s.setReady()
		const want = "status 304, although the request had no validators"
		for range 30 { // minutes
			got, err := b.readOwn(s, probeResult{}, time.Now())
			if got != "" || err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("got %s, %v", got, err)
			}
			time.Sleep(time.Minute)
		}
		if requests > 6 {
			t.Errorf("got %d requests in half an hour", requests)
		}
		status = http.StatusOK
		time.Sleep(time.Hour)
		if got, err := b.readOwn(s, probeResult{}, time.Now()); got != "/a" || err != nil {
			t.Errorf("got %s, %v", got, err)
		}
		status = http.StatusNotModified
		time.Sleep(time.Hour)
		if got, err := b.readOwn(s, probeResult{}, time.Now()); got != "/a" || err == nil {
			t.Errorf("an hour later: got %s, %v", got, err)
		}
	})
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
			b.handler.discovery = &discovery{links: true, depth: 100, expire: 90 * 24 * time.Hour, maxPaths: 100, filter: visits.NewFilter(nil)}
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
