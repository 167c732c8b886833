package sitemap

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// TestDueOf: a page is fetched at the next refresh at the earliest, and the front page of an application at each.
func TestDueOf(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	next := b.clock.Add(30 * time.Second)
	s.schedule.At(next)
	later := b.clock.Add(time.Hour)
	const fetched, never = 1, 0
	for name, test := range map[string]struct {
		rec record.Record
		at  time.Time
		by  string
	}{
		"later":                   {record.Record{Path: "/a", Fetched: fetched, Due: later.Unix()}, later, "interval"},
		"at once":                 {record.Record{Path: "/a", Fetched: fetched, Cause: record.ByVisitor}, next, "visitor"},
		"long since":              {record.Record{Path: "/a", Fetched: fetched, Due: 2, Cause: record.ByHub}, next, "links to new pages"},
		"never fetched":           {record.Record{Path: "/a", Fetched: never}, time.Time{}, ""},
		"not named any more":      {record.Record{Path: "/a", Fetched: fetched, Absent: 3, Due: later.Unix()}, time.Time{}, ""},
		"blocked":                 {record.Record{Path: "/a", Fetched: fetched, Flags: record.Blocked, Due: later.Unix()}, time.Time{}, ""},
		"disallowed":              {record.Record{Path: "/a", Fetched: fetched, Flags: record.Disallowed, Due: later.Unix()}, time.Time{}, ""},
		"the front page":          {record.Record{Path: "/", Fetched: fetched, Flags: record.Made, Due: later.Unix()}, next, "refresh"},
		"the front page, at once": {record.Record{Path: "/", Fetched: fetched, Flags: record.Made, Cause: record.ByOperator}, next, "operator"},
		"a file as front page":    {record.Record{Path: "/", Fetched: fetched, Due: later.Unix()}, later, "interval"},
	} {
		if at, by := s.dueOf(&test.rec); !at.Equal(test.at) || by != test.by {
			t.Errorf("%s: got %s, %q, want %s, %q", name, at, by, test.at, test.by)
		}
	}
	s.probed.Store(&probeResult{entrance: entrance{path: "/blog/"}})
	for path, want := range map[string]string{"/": "interval", "/blog/": "refresh"} {
		_, by := s.dueOf(&record.Record{Path: path, Fetched: fetched, Flags: record.Made, Due: later.Unix()})
		if by != want {
			t.Errorf("where the front page redirects, %s is due by %s, want %s", path, by, want)
		}
	}
}

// TestCausesDocs: the documentation explains everything by which a page is due, and why it may have no date.
func TestCausesDocs(t *testing.T) {
	text, err := os.ReadFile("docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for cause := record.Cause(0); cause.String() != "unknown"; cause++ {
		if !strings.Contains(string(text), "\n| "+cause.String()+" | ") {
			t.Errorf("docs/cli.md does not explain %q", cause)
		}
	}
	source, err := os.ReadFile("internal/indexing/rule.go")
	if err != nil {
		t.Fatal(err)
	}
	rules := regexp.MustCompile(`(?m)^\t\w+ += "(.+)"$`).FindAllStringSubmatch(string(source), -1)
	for _, rule := range rules {
		if !strings.Contains(string(text), "\n| "+rule[1]+" | ") {
			t.Errorf("docs/cli.md does not explain %q", rule[1])
		}
	}
	if len(rules) < 10 {
		t.Errorf("found %d rules", len(rules))
	}
}

// TestExplainDue: it is said by what a page is due, from which page it was found, and when the pages are read again that
// would link to one that nothing names.
func TestExplainDue(t *testing.T) {
	b := newBench(t, nil)
	b.handler.discovery = &discovery{depth: 100, expire: 24 * time.Hour, maxPaths: 100, urls: origin.NewCleaner(nil)}
	links := map[string]string{"/": "/shop/", "/shop/": "/shop/chairs", "/shop/chairs": "/shop/chairs/one", "/shop/chairs/one": "/gone/"}
	for _, path := range []string{"/new", "/shop/chairs/two", "/shop/chairs/a/b/c", "/none/one", "/gone/one", "/late"} {
		links[path] = "/"
	}
	b.names()
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		link, isPage := links[r.URL.Path]
		if !isPage {
			return caddyhttp.Error(http.StatusNotFound, nil)
		}
		upstream(r)
		w.Header().Set("Content-Type", contentHTML)
		_, err := fmt.Fprintf(w, "<!doctype html><title>%s</title><p>%[1]s<a href=%s>x</a>", r.URL.Path, link)
		return err
	}
	s := b.site("named.example")
	b.wantPages(s, 4)
	b.refresh(s)
	answer := b.pages
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Path != "/shop/" {
			return answer(w, r)
		}
		upstream(r)
		w.Header().Set("Content-Type", contentHTML)
		_, err := io.WriteString(w, "<!doctype html><title>shop</title><p>shop<a href=/shop/chairs>x</a><a href=/late>x</a>")
		return err
	}
	s.state.addRefetch(refetch{paths: []string{"/shop/"}})
	b.refresh(s)
	b.refresh(s)
	for path, test := range map[string]struct {
		dueBy, foundAt string
		again          string // paths, nearest first
	}{
		"/shop/chairs":       {dueBy: "interval", foundAt: "/shop/", again: "/shop/"},
		"/":                  {dueBy: "refresh"},
		"/late":              {dueBy: "interval", foundAt: "/shop/", again: "/shop/"},
		"/new":               {again: "/"},
		"/shop/chairs/two":   {again: "/shop/chairs /"},
		"/shop/chairs/a/b/c": {again: "/shop/chairs /"},
		"/none/one":          {again: "/"},
		"/gone/one":          {again: "/"}, // the folder is known, but no page
		"/shop/other":        {},           // it is not served
	} {
		x := b.explained(s.origin + path)
		var again []string
		for _, page := range x.ReadAgain {
			again = append(again, strings.TrimPrefix(page.URL, s.origin))
			if page.Due.IsZero() || page.By == "" {
				t.Errorf("%s: got %+v", path, page)
			}
		}
		isRight := x.DueBy == test.dueBy && strings.TrimPrefix(x.FoundAt, s.origin) == test.foundAt && strings.Join(again, " ") == test.again
		if !isRight || (x.DueBy != "") == x.Due.IsZero() {
			t.Errorf("%s: got due %s by %q, found at %q, read again %q", path, x.Due, x.DueBy, x.FoundAt, again)
		}
	}
	b.handler.discovery = nil
	if x := b.explained(s.origin + "/new"); x.ReadAgain != nil {
		t.Errorf("where links are not followed: got %+v", x)
	}
}

// TestExplainOwn: of a page that nothing names, it is said when the application's own sitemap is read again.
func TestExplainOwn(t *testing.T) {
	b := newBench(t, nil)
	b.lists("/")
	s := b.site("named.example")
	b.wantPages(s, 1)
	s.handler.isDefault = true
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		upstream(r)
		w.Header().Set("Content-Type", contentHTML)
		_, err := io.WriteString(w, "<!doctype html><title>x</title><p>text")
		return err
	}
	at := b.clock.Add(time.Hour)
	s.state.own.Store(&ownList{
		isMade: true,
		due:    at.Add(time.Minute),
		pages:  make([]page.Page, 1),
		from:   "http://named.example/wp-sitemap.xml",
	})
	x := b.explained(s.origin + "/new")
	want := rereading{URL: "http://named.example/wp-sitemap.xml", Due: at.Add(time.Minute), By: "interval"}
	if n := len(x.ReadAgain); n == 0 || !x.ReadAgain[n-1].Due.Equal(want.Due) || x.ReadAgain[n-1].URL != want.URL || x.ReadAgain[n-1].By != want.By {
		t.Errorf("got %+v, want %+v last", x.ReadAgain, want)
	}
	if x := b.explained(s.origin + "/"); x.ReadAgain != nil {
		t.Errorf("of a listed page: got %+v", x.ReadAgain)
	}
	s.state.own.Store(&ownList{pages: make([]page.Page, 1), from: "http://named.example/sitemap.xml"})
	if x := b.explained(s.origin + "/new"); len(x.ReadAgain) != 0 {
		t.Errorf("of a file: got %+v", x.ReadAgain)
	}
}

// TestExplainGone: of a listed page that is none any more, it is said how it is fetched again. What fails is no such page.
func TestExplainGone(t *testing.T) {
	b := newBench(t, nil)
	b.lists("/", "/a")
	s := b.site("named.example")
	b.wantPages(s, 2)
	for status, want := range map[int]bool{200: false, 301: true, 404: true, 503: false} {
		b.pages = func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(status)
			return nil
		}
		x := b.explained(s.origin + "/a")
		if is := strings.Contains(x.Remedy, "--fetch"); !x.Listed || is != want {
			t.Errorf("%d: listed: %t, %q", status, x.Listed, x.Remedy)
		}
	}
}
