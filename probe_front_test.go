package sitemap

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
)

// redirecting is an application: the target of each redirect by its path, or one of these. Redirects of own are Caddy's.
type redirecting struct {
	at  map[string]string
	own string // path
}

const (
	aPage   = "page"
	isGone  = "gone"
	isDown  = "down"
	aRobots = "robots.txt"
)

func (app *redirecting) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path != app.own {
		upstream(r)
	}
	target := app.at[r.URL.Path]
	switch target {
	case "":
		return caddyhttp.Error(http.StatusNotFound, nil)
	case isGone:
		return caddyhttp.Error(http.StatusGone, nil)
	case isDown:
		return caddyhttp.Error(http.StatusBadGateway, nil)
	case aRobots:
		_, err := io.WriteString(w, "User-agent: *\nDisallow: /private")
		return err
	case aPage:
		w.Header().Set("Content-Type", contentHTML)
		_, err := fmt.Fprintf(w, "<!doctype html><title>%[1]s</title><p>%[1]s", r.URL.Path)
		return err
	}
	w.Header().Set("Location", target)
	w.WriteHeader(http.StatusFound)
	return nil
}

// TestFrontRedirects: where an upstream redirects the front page, each probe requests the page to which it leads, too. The crawl
// is given what was requested.
func TestFrontRedirects(t *testing.T) {
	blog := map[string]string{"/": "/blog/", "/blog/": aPage}
	for name, test := range map[string]struct {
		app  redirecting
		want string // what eleven probes request, a minute apart, and of what the last one gives the crawl the response
	}{
		"no":                     {redirecting{at: map[string]string{"/": aPage}}, "/ 11, last /"},
		"to a page":              {redirecting{at: blog}, "/ 11 /blog/ 10, last /blog/"},
		"by Caddy":               {redirecting{at: blog, own: "/"}, "/ 11 /blog/ 10, last /blog/"},
		"to a URL":               {redirecting{at: map[string]string{"/": "http://named.example/blog/", "/blog/": aPage}}, "/ 11 /blog/ 10, last /blog/"},
		"twice":                  {redirecting{at: map[string]string{"/": "/en", "/en": "/en/", "/en/": aPage}}, "/ 11 /en 10 /en/ 9, last /en/"},
		"to itself":              {redirecting{at: map[string]string{"/": "/"}}, "/ 11, last /"},
		"in a circle":            {redirecting{at: map[string]string{"/": "/a", "/a": "/"}}, "/ 11 /a 5, last /"},
		"to another host":        {redirecting{at: map[string]string{"/": "http://other.example/a", "/a": aPage}}, "/ 11, last /"},
		"with a query":           {redirecting{at: map[string]string{"/": "/a?lang=en", "/a": aPage}}, "/ 11, last /"},
		"to what is gone":        {redirecting{at: map[string]string{"/": "/a", "/a": isGone}}, "/ 11 /a 5, last /"},
		"to what robots forbids": {redirecting{at: map[string]string{"/": "/private", "/private": aPage, robotsPath: aRobots}}, "/ 11, last /"},
		"to an action":           {redirecting{at: map[string]string{"/": "/logout", "/logout": aPage}}, "/ 11, last /"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newFrontVisits(t, &test.app)
			for range 11 {
				v.probe(false)
			}
			if got := v.seen(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// frontVisits are probes of a site, a minute apart.
type frontVisits struct {
	*bench
	app      *redirecting
	requests map[string]int
	before   probeResult
	last     frontPage // that the last probe has given the crawl
}

func newFrontVisits(t *testing.T, app *redirecting) *frontVisits {
	b := newBench(t, func(h *Handler) { h.isDefault = true })
	b.pages = func(w http.ResponseWriter, r *http.Request) error { return app.ServeHTTP(w, r) }
	return &frontVisits{bench: b, app: app, requests: b.counted()}
}

func (v *frontVisits) probe(isFresh bool) {
	v.Helper()
	got, front, err := v.site("named.example").fetcher.probe(v.Context(), v.before, probeMode{isFresh: isFresh})
	if err != nil {
		v.Fatal(err)
	}
	v.before = got
	v.last = front
	v.clock = v.clock.Add(time.Minute)
}

// seen returns what was requested since it was last called, but for robots.txt and the sitemap, and of what the crawl has the
// response.
func (v *frontVisits) seen() string {
	var all []string
	for path, n := range v.requests {
		if path != robotsPath && path != "/sitemap.xml" && path != "/sitemap.css" {
			all = append(all, fmt.Sprint(path, " ", n))
		}
	}
	slices.Sort(all)
	clear(v.requests)
	path := v.last.path
	if v.last.response == nil {
		path = "none"
	}
	return strings.Join(all, " ") + ", last " + path
}

// TestFrontRedirectChanges: what an upstream does with the front page is known by the next probe.
func TestFrontRedirectChanges(t *testing.T) {
	for name, test := range map[string]struct {
		changes map[string]string
		isFresh bool
		probes  int
		want    string
	}{
		"nothing":                     {nil, false, 8, "/ 8 /blog/ 8, last /blog/"},
		"another page":                {map[string]string{"/": "/news/", "/news/": aPage}, false, 1, "/ 1, last /"},
		"... which is requested then": {map[string]string{"/": "/news/", "/news/": aPage}, false, 2, "/ 2 /news/ 1, last /news/"},
		"the page moves":              {map[string]string{"/": "/news/", "/news/": aPage, "/blog/": "/news/"}, false, 3, "/ 3 /news/ 2, last /news/"},
		"the page is gone":            {map[string]string{"/": aPage, "/blog/": isGone}, false, 1, "/ 1, last /"},
		"a front page":                {map[string]string{"/": aPage}, false, 1, "/ 1, last /"},
		"refreshed by an operator":    {nil, true, 1, "/ 1 /blog/ 1, last /blog/"},
		"... and another page":        {map[string]string{"/": "/news/", "/news/": aPage}, true, 1, "/ 1, last /"},
	} {
		t.Run(name, func(t *testing.T) {
			app := &redirecting{at: map[string]string{"/": "/blog/", "/blog/": aPage}}
			v := newFrontVisits(t, app)
			v.probe(false)
			v.probe(false)
			v.seen()
			for path, target := range test.changes {
				app.at[path] = target
			}
			for range test.probes {
				v.probe(test.isFresh)
			}
			if got := v.seen(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := v.before; got.blocked != "" || !got.made || !got.byLinks {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestFrontRedirectsOn: where the page to which the front page redirects leads to another one from now on, that is known by the
// next probe, too, also if the page to which it led before is still one.
func TestFrontRedirectsOn(t *testing.T) {
	app := &redirecting{at: map[string]string{"/": "/latest", "/latest": "/issues/1", "/issues/1": aPage, "/issues/2": aPage}}
	v := newFrontVisits(t, app)
	for range 3 {
		v.probe(false)
	}
	app.at["/latest"] = "/issues/2"
	v.seen()
	for range 9 {
		v.probe(false)
	}
	if got := v.seen(); got != "/ 9 /issues/2 8 /latest 9, last /issues/2" {
		t.Errorf("got %s", got)
	}
}

// TestFrontRedirectsClosed: while robots.txt cannot be fetched, no page but the front page is.
func TestFrontRedirectsClosed(t *testing.T) {
	app := &redirecting{at: map[string]string{"/": "/blog/", "/blog/": aPage, robotsPath: isDown}}
	v := newFrontVisits(t, app)
	for range 3 {
		v.probe(false)
	}
	if got := v.seen(); got != "/ 3, last /" {
		t.Errorf("got %s", got)
	}
}

// TestFrontRedirectsInMotion: a page that is newly linked from where the front page redirects to is listed at the next refresh.
// That takes two requests a minute, and one each ten minutes for robots.txt and the sitemap.
func TestFrontRedirectsInMotion(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		b := newBench(t, func(h *Handler) { h.isDefault = true })
		b.app.now = time.Now
		b.handler.limiter = crawl.NewLimiter(2, 1)
		pages := map[string]string{"/blog/": ""}
		var posts []string
		for i := range 50 {
			posts = append(posts, fmt.Sprint("/posts/", i))
			pages[posts[i]] = "text"
			pages["/blog/"] += fmt.Sprintf("<a href=%s>post</a> ", posts[i])
		}
		requests := 0
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			upstream(r)
			requests++
			text, isPage := pages[r.URL.Path]
			switch {
			case r.URL.Path == "/":
				w.Header().Set("Location", "/blog/")
				w.WriteHeader(http.StatusMovedPermanently)
				return nil
			case !isPage:
				return caddyhttp.Error(http.StatusNotFound, nil)
			}
			w.Header().Set("Content-Type", contentHTML)
			_, err := fmt.Fprintf(w, "<!doctype html><title>%[1]s</title><p>%[1]s %[2]s", r.URL.Path, text)
			return err
		}
		s := b.site("named.example")
		refresh := func(minutes int) {
			for range minutes {
				time.Sleep(time.Minute)
				s.run()
			}
		}
		refresh(120)
		requests = 0
		const hours = 6
		refresh(hours * 60)
		const rest = 6                        // for the other pages
		if requests > hours*(2*60+3*6+rest) { // robots.txt, the own sitemap and the stylesheet come every ten minutes
			t.Errorf("%d requests in %d hours", requests, hours)
		}
		for i := range 5 {
			path := fmt.Sprint("/new/", i)
			pages[path] = "text"
			pages["/blog/"] += fmt.Sprintf("<a href=%s>new</a> ", path)
			begun := time.Now()
			for !s.isListed(path) && time.Since(begun) < time.Hour {
				refresh(1)
			}
			if took := time.Since(begun); took > 90*time.Second {
				t.Errorf("%s is listed after %s", path, took)
			}
			refresh(7)
		}
	})
}
