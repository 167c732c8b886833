package sitemap

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// counted has the bench count the requests for pages, by path.
func (b *bench) counted() map[string]int {
	requests := make(map[string]int)
	answer := b.pages
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		requests[r.URL.Path]++
		return answer(w, r)
	}
	return requests
}

// post is a request to refresh sites, with a query. What is refreshed runs here.
func (b *bench) post(query url.Values) (all sitesStatus, err error) {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/sitemap/refresh", nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var v any
		v, err = sites(r, b.app, query)
		if err == nil {
			all = v.(sitesStatus)
		}
	}()
	for isDone := false; !isDone; {
		select {
		case <-done:
			isDone = true
		default:
			runtime.Gosched()
		}
		for _, s := range b.app.allSites() {
			if s.schedule.IsRequested() {
				s.run()
			}
		}
	}
	return all, err
}

// TestRefetch: an operator has pages fetched again that are not due, all or some.
func TestRefetch(t *testing.T) {
	const site = "http://named.example"
	for name, test := range map[string]struct {
		query  url.Values
		crawl  Crawl
		want   string // pages that are fetched
		err    string
		status int
	}{
		"no refetch":              {query: url.Values{"site": {site}}, want: ""}, // the alias, too, would request its front page
		"all":                     {query: url.Values{"fetch": {"all"}}, want: "/ /a /b /sub/c"},
		"all of a site":           {query: url.Values{"fetch": {"all"}, "site": {site}}, want: "/ /a /b /sub/c"},
		"one page":                {query: url.Values{"fetch": {site + "/a"}}, want: "/a"},
		"two pages":               {query: url.Values{"fetch": {site + "/b", site + "/a"}, "site": {site + "/sitemap.xml"}}, want: "/a /b"},
		"the same page twice":     {query: url.Values{"fetch": {site + "/b", site + "/b?utm_source=x"}}, want: "/b"},
		"the front page":          {query: url.Values{"fetch": {site}}, want: "/"},
		"at an alias":             {query: url.Values{"fetch": {"http://www.named.example/a"}}, want: "/a"},
		"as a file":               {query: url.Values{"fetch": {site + "/index.html", site + "/sub/c.html"}}, want: "/ /sub/c"},
		"one that is not known":   {query: url.Values{"fetch": {site + "/a", site + "/new"}}, want: "/a"},
		"another host":            {query: url.Values{"fetch": {site + "/a", "http://other.example/a"}}, err: "fetch=http://other.example/a: no sitemap covers this URL; sites: ", status: 404},
		"no URL":                  {query: url.Values{"fetch": {"/a"}}, err: "fetch=/a: not the URL of a page", status: 400},
		"nothing":                 {query: url.Values{"fetch": {""}}, err: "fetch=: not the URL of a page", status: 400},
		"all and one":             {query: url.Values{"fetch": {site + "/a", "all"}}, err: "fetch=all: it names all pages", status: 400},
		"a page of another site":  {query: url.Values{"fetch": {site + "/a"}, "site": {"http://named.example/docs"}}, err: "no site has a URL with 'http://named.example/docs'", status: 404},
		"where nothing is":        {crawl: Crawl{Off: true}, query: url.Values{"fetch": {"all"}}, err: "fetch=all: crawl is off, so no page is fetched", status: 400},
		"a page where nothing is": {crawl: Crawl{Off: true}, query: url.Values{"fetch": {site + "/a"}}, err: "/a: crawl is off, so no page is fetched", status: 400},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(h *Handler) { h.Crawl = &test.crawl })
			b.lists("/", "/a", "/b", "/sub/c", "/blocked")
			answer := b.pages
			b.pages = func(w http.ResponseWriter, r *http.Request) error {
				if r.URL.Path != robotsPath {
					return answer(w, r)
				}
				_, err := io.WriteString(w, "User-agent: *\nDisallow: /blocked")
				return err
			}
			requests := b.counted()
			s := b.site("named.example")
			b.refresh(s)
			b.site("www.named.example").main.Store(s)
			b.clock = b.clock.Add(5 * time.Minute)
			b.refresh(s)
			clear(requests)
			b.clock = b.clock.Add(time.Minute)
			all, err := b.post(test.query)
			if test.err != "" {
				refused, _ := errors.AsType[caddy.APIError](err)
				if refused.HTTPStatus != test.status || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %+v, want %d, %s", err, test.status, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			// The probe has requested the front page once.
			requests["/"] -= 1
			var got []string
			for _, path := range []string{"/", "/a", "/b", "/sub/c"} {
				if requests[path] > 0 {
					got = append(got, path)
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			shown := 1
			if test.query.Get("fetch") == "all" && test.query["site"] == nil {
				shown = 2 // with the alias
			}
			if len(all.Sites) != shown {
				t.Errorf("%d sites are shown, want %d", len(all.Sites), shown)
			}
			i := slices.IndexFunc(all.Sites, func(st siteStatus) bool { return st.Site == site })
			if i < 0 {
				t.Fatalf("the site is not shown: %+v", all)
			}
			due := all.Sites[i].PagesDue
			if test.query["fetch"] == nil {
				if due != nil {
					t.Errorf("without a refetch, %d pages are due", *due)
				}
				return
			}
			if due == nil || *due != 0 {
				t.Errorf("got %+v, want no page that is due", all.Sites[i])
			}
			clear(requests)
			b.refresh(s)
			if requests["/a"]+requests["/b"] != 0 {
				t.Errorf("the next refresh fetches them again: %v", requests)
			}
		})
	}
}

// TestRefetchLeft: what an upstream's rate leaves no time for is fetched in the refreshes that follow.
func TestRefetchLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.handler.limiter = crawl.NewLimiter(2, 1)
		b.lists(numbered(50)...)
		answer := b.pages
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			upstream(r)
			return answer(w, r)
		}
		requests := b.counted()
		s := b.site("named.example")
		for range 3 {
			time.Sleep(time.Minute)
			s.run()
		}
		time.Sleep(10 * time.Minute)
		s.run()
		clear(requests)
		s.state.addRefetch(refetch{all: true})
		s.schedule.Request(time.Now())
		s.run()
		due := *s.pagesDue(t.Context())
		if due == 0 || due >= 50 {
			t.Errorf("%d pages are due after %d requests", due, len(requests))
		}
		for range 5 {
			time.Sleep(time.Minute)
			s.run()
		}
		for _, path := range numbered(50) {
			if requests[path] != 1 {
				t.Errorf("%s was fetched %d times", path, requests[path])
			}
		}
		if due := *s.pagesDue(t.Context()); due != 0 {
			t.Errorf("%d pages are due at the end", due)
		}
	})
}

// TestRefetchStays: what an operator wants is not lost with a refresh that comes to nothing.
func TestRefetchStays(t *testing.T) {
	for name, fail := range map[string]func(b *bench, s *site) outcome.Result{
		"no time": func(_ *bench, s *site) outcome.Result {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return s.refresh(ctx, true).Result
		},
		"superseded": func(b *bench, s *site) outcome.Result {
			defer b.supersede()()
			return s.refresh(b.Context(), true).Result
		},
		"canceled meanwhile": func(b *bench, s *site) outcome.Result {
			ctx, cancel := context.WithCancel(b.Context())
			pages := b.pages
			b.pages = func(w http.ResponseWriter, r *http.Request) error {
				cancel()
				return pages(w, r)
			}
			defer func() { b.pages = pages }()
			return s.refresh(ctx, true).Result
		},
		"the site refuses strangers": func(b *bench, s *site) outcome.Result {
			pages := b.pages
			b.pages = func(http.ResponseWriter, *http.Request) error {
				return caddyhttp.Error(http.StatusUnauthorized, nil)
			}
			defer func() { b.pages = pages }()
			return s.refresh(b.Context(), true).Result
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.lists("/", "/a")
			s := b.site("named.example")
			b.wantPages(s, 2)
			b.refresh(s)
			s.state.addRefetch(refetch{paths: []string{"/a"}})
			result := fail(b, s)
			if result == outcome.Published || result == outcome.Unchanged {
				t.Fatalf("the refresh is %s", result)
			}
			if due := *s.pagesDue(t.Context()); due != 1 {
				t.Errorf("%d pages are due, want the one that is wanted", due)
			}
			// The next configuration has the same state.
			next := newBench(t, nil)
			next.lists("/", "/a")
			requests := next.counted()
			again := next.site("named.example")
			next.clock = b.clock
			next.refresh(again)
			if requests["/a"] != 1 {
				t.Errorf("it was fetched %d times", requests["/a"])
			}
			if due := *again.pagesDue(t.Context()); due != 0 {
				t.Errorf("%d pages are due", due)
			}
		})
	}
}

// TestRefetchMeanwhile: what is wanted while a crawl is under way is fetched by the next one.
func TestRefetchMeanwhile(t *testing.T) {
	b := newBench(t, nil)
	b.lists("/", "/a", "/b")
	requests := b.counted()
	s := b.site("named.example")
	b.wantPages(s, 3)
	b.refresh(s)
	clear(requests)
	answer := b.pages
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Path == "/a" && requests["/a"] == 0 {
			s.state.addRefetch(refetch{paths: []string{"/b"}})
		}
		return answer(w, r)
	}
	s.state.addRefetch(refetch{paths: []string{"/a"}})
	b.refresh(s)
	if requests["/a"] != 1 || requests["/b"] != 0 {
		t.Errorf("at first: got %v", requests)
	}
	b.refresh(s)
	if requests["/b"] != 1 {
		t.Errorf("then: got %v", requests)
	}
}

// TestRefetches: refetches add up, and what comes while a crawl begins with others stays.
func TestRefetches(t *testing.T) {
	var st siteState
	s := &site{state: &st}
	st.addRefetch(refetch{paths: []string{"/b", "/a"}})
	st.addRefetch(refetch{paths: []string{"/a", "/c"}})
	if got := st.refetch.Load(); got.all || strings.Join(got.paths, " ") != "/a /b /c" {
		t.Errorf("got %+v", got)
	}
	r := &refreshing{refetch: st.refetch.Load()}
	s.beginRefetch(r)
	if st.refetch.Load() == nil {
		t.Error("a refetch is granted without a crawl")
	}
	st.addRefetch(refetch{all: true})
	if got := st.refetch.Load(); !got.all || len(got.paths) != 3 {
		t.Errorf("got %+v", got)
	}
	st.addRefetch(refetch{paths: numbered(maxRefetched + 5)})
	if got := st.refetch.Load(); len(got.paths) != maxRefetched {
		t.Errorf("got %d paths", len(got.paths))
	}
}

// TestFleetRefetch: the process that is asked fetches the pages, although another one leads, and the other does not come in between.
func TestFleetRefetch(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		b1, first := sharing(t, shared)
		b1.lists("/a", "/b")
		_, end1 := runs(b1, first)
		defer end1()
		time.Sleep(time.Minute)
		b2, second := sharing(t, shared)
		b2.lists("/a", "/b")
		requests := b2.counted()
		_, end2 := runs(b2, second)
		defer end2()
		time.Sleep(time.Minute)
		if requests["/a"] != 0 {
			t.Fatal("it does not follow")
		}
		second.state.addRefetch(refetch{all: true})
		err := second.refreshNow(t.Context())
		if err != nil || requests["/a"] != 1 || requests["/b"] != 1 || !second.node.Leads() {
			t.Errorf("got %v, requests %v", err, requests)
		}
	})
}

// TestRefetchConfirms: pages whose text has changed are due again a minute later, and then no more.
func TestRefetchConfirms(t *testing.T) {
	b := newBench(t, nil)
	b.lists("/a", "/b", "/c")
	s := b.site("named.example")
	b.wantPages(s, 3)
	b.refresh(s)
	found := b.pages
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		err := found(w, r)
		if r.URL.Path == "/a" || r.URL.Path == "/b" {
			_, _ = io.WriteString(w, "<p>It is corrected.")
		}
		return err
	}
	s.state.addRefetch(refetch{all: true})
	want := func(when string, want int) {
		t.Helper()
		if due := *s.pagesDue(t.Context()); due != want {
			t.Errorf("%s: %d pages are due, want %d", when, due, want)
		}
	}
	want("before", 3)
	b.refresh(s)
	want("after", 0)
	b.clock = b.clock.Add(time.Minute)
	want("a minute later", 2)
	b.refresh(s)
	want("when they were confirmed", 0)
}
