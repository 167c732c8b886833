package caddytest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// web is an application, by its responses to URIs: an HTML document, or what begins
// with the status or the headers of the response, a line each, before an empty line. {n} is
// how often the module has fetched it, and in a header, {now} is the time.
type web struct {
	mu        sync.Mutex
	responses map[string]string
	fetched   map[string]int // requests of the module, by URI
}

func newWeb(responses map[string]string) *web {
	return &web{responses: responses, fetched: make(map[string]int)}
}

func (a *web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	if strings.HasPrefix(r.UserAgent(), "caddy-sitemap ") {
		a.fetched[r.RequestURI]++
	}
	response, ok := a.responses[r.RequestURI]
	n := a.fetched[r.RequestURI]
	a.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	status := http.StatusOK
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if head, body, ok := strings.Cut(response, "\n\n"); ok {
		for line := range strings.Lines(head) {
			name, value, isHeader := strings.Cut(strings.TrimSpace(line), ": ")
			if isHeader {
				w.Header().Set(name, strings.ReplaceAll(value, "{now}", time.Now().UTC().Format(http.TimeFormat)))
			} else {
				_, _ = fmt.Sscan(line, &status)
			}
		}
		response = body
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(strings.ReplaceAll(response, "{n}", strconv.Itoa(n))))
}

// respond changes the response to a URI.
func (a *web) respond(uri, response string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.responses[uri] = response
}

// requests are those of the module so far.
func (a *web) requests() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.fetched)
}

// linking is a document with links, whose text says what it is.
func linking(text string, links ...string) string {
	var b strings.Builder
	b.WriteString("<!doctype html><title>x</title><p>" + text)
	for _, link := range links {
		fmt.Fprintf(&b, ` <a href="%s">link</a>`, link)
	}
	return b.String()
}

// naming is a document that names its canonical.
func naming(canonical, document string) string {
	return strings.Replace(document, "<title>", `<link rel="canonical" href="`+canonical+`"><title>`, 1)
}

func redirecting(to string) string { return "302\nLocation: " + to + "\n\n" }

// behind is a site before an application, with sources of pages.
func behind(sources string) string {
	return harness.Local + " {\n sitemap {\n refresh 1s\n crawl {\n rate 1000/s\n concurrency 8\n }\n" + sources + "\n }\n reverse_proxy {app}\n}"
}

// browser is what a visitor's browser says that it is.
const browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0"

// TestWhatApplicationsHave: what applications were found to have, and is listed though
// nothing but links or visits name it.
func TestWhatApplicationsHave(t *testing.T) {
	chain := map[string]string{"/10": linking("the end", "/a", "/10"), "/a": linking("a")}
	for i := range 10 {
		chain[strings.TrimSuffix(fmt.Sprint("/", i), "0")] = redirecting(fmt.Sprint("/", i+1))
	}
	type responses = map[string]string
	for name, test := range map[string]struct {
		sources   string
		responses responses
		visits    []string // by browsers, again and again
		want      []string
		left      map[string]int // nil: whatever
		never     []string       // is not requested
	}{
		"ten redirects, and visits": {sources: "traffic", responses: chain, visits: []string{"/a"}, want: []string{"/10", "/a"}},
		"words that are never requested": {
			sources: "links",
			responses: responses{"/": linking("home", "/docs/logout.php", "/users/sign_out", "/add-to-cart/5", "/log-out", "/logoff", "/signout", "/basket", "/add", "/remove/1",
				"/api/things", "/author/admin/", "/address", "/additional", "/admin", "/a?do=logout"),
				"/api/things": linking("things"), "/author/admin/": linking("the author"), "/address": linking("address"), "/additional": linking("more"),
				"/admin": "401\n\n", "/a": linking("a")},
			want:  []string{"/", "/a", "/additional", "/address", "/api/things", "/author/admin/"},
			left:  map[string]int{"disallowed": 9, "refused": 1},
			never: []string{"/docs/logout.php", "/users/sign_out", "/add-to-cart/5", "/log-out", "/logoff", "/signout", "/basket", "/add", "/remove/1"},
		},
		"words of the operator": {
			sources:   "links\ncrawl {\n disallow recipe\n}",
			responses: responses{"/": linking("home", "/a-recipe-for-bread", "/verify"), "/verify": linking("verify")},
			want:      []string{"/", "/verify"},
			left:      map[string]int{"disallowed": 1},
			never:     []string{"/a-recipe-for-bread"},
		},
		"the first page of a list": {
			sources:   "links {\n query page\n }",
			responses: responses{"/": linking("home", "/list?page=1", "/list?utm_source=x&page=2", "/list?sort=old&page=2#first", "/list"), "/list": linking("the list"), "/list?page=1": linking("the list"), "/list?page=2": linking("the second page", "/deep"), "/deep": linking("deep")},
			want:      []string{"/", "/deep", "/list", "/list?page=2"},
			never:     []string{"/list?utm_source=x&page=2", "/list?sort=old&page=2"},
		},
		"a body in an encoding that was not accepted": {
			sources:   "links",
			responses: responses{"/": linking("home", "/br", "/zstd"), "/br": "Content-Encoding: br\n\n\x0b\x02\x80abc\x03", "/zstd": "Content-Encoding: zstd\n\n\x28\xb5\x2f\xfd"},
			want:      []string{"/"},
			left:      map[string]int{"unreadable encoding": 2},
		},
		"what is no document": {
			sources: "links",
			responses: responses{"/": linking("home", "/title", "/body", "/head", "/html", "/part", "/noindex", "/refresh"),
				"/title": "<title>a</title>one", "/body": "<body>two", "/head": "<head>three", "/html": "<html>four", "/part": "<p>five",
				"/noindex": "<meta name=robots content=noindex><p>six", "/refresh": `<meta http-equiv=refresh content="0; url=/title">seven`},
			want: []string{"/", "/body", "/head", "/html", "/title"},
			left: map[string]int{"no document": 1, "noindex": 1, "refresh": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			app := newWeb(test.responses)
			s := prepare(t, nil)
			s.LoadApp(behind(test.sources), app.ServeHTTP)
			want := harness.Below(s.Expand(harness.Local), test.want)
			var got []string
			var err error
			s.Eventually(func() bool {
				for _, path := range test.visits {
					s.Get(harness.Local+path, browser)
				}
				got, err = s.TryLocs(harness.Local + "/sitemap.xml")
				return err == nil && slices.Equal(got, want)
			}, func() string { return fmt.Sprintf("got %q (%v), want %q\n%s", got, err, want, s.SitemapLog()) })
			if test.left != nil {
				s.WantLeftOut(test.left)
			}
			if test.never != nil {
				s.Quietly(1)
				s.WantLocs(harness.Local+"/sitemap.xml", want...)
			}
			fetched := app.requests()
			for _, path := range test.never {
				if fetched[path] > 0 {
					t.Errorf("%s was requested", path)
				}
			}
			if lines := s.LogLines(`"level":"warn"`, "http.handlers.sitemap"); len(lines) > 0 && !strings.Contains(name, "words that") {
				t.Errorf("the log warns: %s", lines)
			}
		})
	}
}
