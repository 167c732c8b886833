package crawl

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// validated responds 304 to conditional requests.
type validated struct {
	static
	notModified int
	always      bool // also to others
}

func (v *validated) Fetch(ctx context.Context, r Request) (*Response, error) {
	resp, err := v.static.Fetch(ctx, r)
	if resp.Header.Set("Etag", `"1"`); r.Header.Get("If-None-Match") != "" || v.always {
		resp.Status, resp.Body = http.StatusNotModified, nil
		v.notModified++
	}
	return resp, err
}

// slow takes three seconds to make a page for each request.
type slow struct{ static }

func (s *slow) Fetch(ctx context.Context, r Request) (*Response, error) {
	resp, err := s.static.Fetch(ctx, r)
	resp.Header.Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	time.Sleep(3 * time.Second)
	return resp, err
}

// TestFetchedAt: a record has the time at which the request began. Compared with the end of a slow response, the time at
// which the page was made would seem to be its date.
func TestFetchedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Own: true, Fetcher: &slow{static{pages: map[string]string{"/": "x"}}}})
		gen := crawlAll(t, c, empty(t), plain, page.Page{Path: "/"}).Generation
		if got := pathsIf(t, gen, func(rec *record.Record) bool { return rec.Fetched > rec.Modified }); got != "" {
			t.Errorf("%s was fetched after it was made", got)
		}
	})
}

// TestTexts: what documents beside the sitemap show is fetched when it is wanted, kept while the page stays, and dropped
// when it is not wanted any more.
func TestTexts(t *testing.T) {
	const body = `<html lang=de><title>One</title><meta name=description content=Two><meta property=og:title content=Four>` +
		`<link rel=alternate type=text/markdown href=/three.md><meta property=article:published_time content=2000-01-01>`
	const none, all = "  ", "One Two /three.md Four de 946684800 true"
	synctest.Test(t, func(t *testing.T) {
		site := &validated{static: static{pages: map[string]string{"/": body}}}
		c, gen := New(Options{Own: true, Fetcher: site}), empty(t)
		for i, test := range []struct {
			isWanted bool
			routes   uint64
			want     string
		}{{false, 1, none}, {true, 2, all}, {true, 2, all}, {false, 3, none}, {true, 4, all}} {
			p := with(func(p *Policy) {
				wanted := test.isWanted
				p.Extract = html.Options{Titles: wanted, Descriptions: wanted, Markdown: wanted, Articles: wanted}
				p.Routes = test.routes
				p.Expire = 90 * 365 * 24 * time.Hour
			})
			gen = crawlAll(t, c, gen, p, page.Page{Path: "/"}).Generation
			got := describe(t, gen, func(rec *record.Record) string {
				if rec.Path != "/" {
					return "" // the version in Markdown
				}
				return texts(rec)
			})
			site.order = slices.DeleteFunc(site.order, func(path string) bool { return path != "/" })
			if got != test.want || len(site.order) != i+1 || site.notModified != min(i/2, 1) {
				t.Errorf("crawl %d: got %s after %d fetches, %d not modified, want %q", i, got, len(site.order), site.notModified, test.want)
			}
			time.Sleep(30 * 24 * time.Hour)
		}
	})
}

// TestLanguageOfFrontPage: of pages that are no articles, only the front page's language is kept.
func TestLanguageOfFrontPage(t *testing.T) {
	const body = "<html lang=de><title>t</title>"
	synctest.Test(t, func(t *testing.T) {
		site := &static{pages: map[string]string{"/in/": body, "/in/a": body}}
		c := New(Options{Own: true, Fetcher: site})
		p := with(func(p *Policy) { p.Scope, p.Extract.Articles = "/in/", true })
		gen := crawlAll(t, c, empty(t), p, page.Page{Path: "/in/"}, page.Page{Path: "/in/a"}).Generation
		got := describe(t, gen, func(rec *record.Record) string {
			if rec.Article == nil {
				return rec.Path
			}
			return fmt.Sprintf("%s %+v", rec.Path, *rec.Article)
		})
		if want := "/in/ {Published:0 PublishedDay:false Headline: Lang:de} /in/a"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// headed is a site with one more header field, which its 304s may leave out.
type headed struct {
	validated
	name, value string
	brief       bool // a 304 has no such field, as those of Apache
}

func (h *headed) Fetch(ctx context.Context, r Request) (*Response, error) {
	resp, err := h.validated.Fetch(ctx, r)
	isBrief := h.brief && resp.Status == http.StatusNotModified
	if h.value != "" && !isBrief {
		resp.Header.Set(h.name, h.value)
	}
	return resp, err
}

// TestNotModifiedHeader: what the header of a 304 says of a page is seen (RFC 9111, section 3.2), and that it is not
// said any more is, too.
func TestNotModifiedHeader(t *testing.T) {
	said := func(rec *record.Record) string {
		if rec.Path != "/a" {
			return "" // the canonical, which is not there
		}
		return fmt.Sprint(rec.NoIndexTag, rec.Flags&record.NoIndex != 0, " ", rec.Canonical, rec.Target, len(rec.Alternates))
	}
	const nothing = "false false 0"
	for _, test := range []struct {
		name, body   string
		field, value string
		want         string // with the field
	}{
		{"noindex", "text", "X-Robots-Tag", "noindex", "true true 0"},
		{"noindex for Google", "text", "X-Robots-Tag", "googlebot: noindex", "true true 0"},
		{"noindex for another", "text", "X-Robots-Tag", "bingbot: noindex", nothing},
		{"a canonical", "text", "Link", `</b>; rel="canonical"`, "false false /b0"},
		{"itself as canonical", "text", "Link", `</a>; rel="canonical"`, nothing},
		{"a refresh", "text", "Refresh", "5; url=/b", "false false /b0"},
		{"alternates", "text", "Link", `</de>; rel="alternate"; hreflang="de"`, "false false 1"},
		{"a style sheet", "text", "Link", "</x.css>; rel=preload", nothing},
	} {
		for _, brief := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, ", brief ", brief), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &headed{validated: validated{static: static{pages: map[string]string{"/a": test.body}}}, name: test.field, brief: brief}
					c, gen := New(Options{Own: true, Fetcher: s}), empty(t)
					p := with(func(p *Policy) { p.Expire, p.Extract.Alternates = 90*365*24*time.Hour, true })
					crawl := func(value, want string) {
						t.Helper()
						s.value = value
						s.order, s.notModified = nil, 0
						gen = crawlAll(t, c, gen, p, page.Page{Path: "/a"}).Generation
						if got := describe(t, gen, said); got != want {
							t.Errorf("with %q: got %s, want %s", value, got, want)
						}
						time.Sleep(100 * 24 * time.Hour)
					}
					wantRequests := func(want int) {
						t.Helper()
						requests := slices.DeleteFunc(s.order, func(path string) bool { return path != "/a" })
						if len(requests) != want {
							t.Errorf("%d requests, want %d", len(requests), want)
						}
					}
					crawl("", nothing)
					crawl("", nothing)
					wantRequests(1)
					if s.notModified != 1 {
						t.Errorf("%d responses are 304, want one", s.notModified)
					}
					if test.name == "alternates" {
						p.Extract.Alternates = false // what is not listed is not looked for
						crawl(test.value, nothing)
						wantRequests(1)
						p.Extract.Alternates = true
					}
					if !brief {
						crawl(test.value, test.want)
						if test.want == nothing {
							wantRequests(1)
						} else {
							wantRequests(2)
						}
					}
					p.Routes++ // fetched in full
					crawl(test.value, test.want)
					crawl(test.value, test.want)
					wantRequests(1)
					if test.field != "Link" || strings.Contains(test.value, "canonical") { // that an alternate went away shows with the next full fetch
						crawl("", nothing)
					}
				})
			})
		}
	}
}

// TestAlwaysNotModified: a 304 to a request without conditions says nothing, also where a conditional one came before.
func TestAlwaysNotModified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &headed{validated: validated{static: static{pages: map[string]string{"/a": "text"}}}, name: "X-Robots-Tag"}
		c := New(Options{Own: true, Fetcher: s})
		p := with(func(p *Policy) { p.Expire = 90 * 365 * 24 * time.Hour })
		gen := crawlAll(t, c, empty(t), p, page.Page{Path: "/a"}).Generation
		time.Sleep(30 * 24 * time.Hour)
		s.value, s.always = "noindex", true
		gen = crawlAll(t, c, gen, p, page.Page{Path: "/a"}).Generation
		if got := pathsIf(t, gen, func(rec *record.Record) bool { return rec.Failing != 0 }); got != "/a" {
			t.Errorf("%q is failing, want /a", got)
		}
	})
}

// TestPanic: a page whose parsing panics counts as one that did not respond, and the next one is
// parsed.
func TestPanic(t *testing.T) {
	isFirst := true
	clock := func() time.Time {
		if isFirst && bytes.Contains(debug.Stack(), []byte("(*worker).parse(")) {
			isFirst = false
			panic("first")
		}
		return time.Now()
	}
	c := New(Options{Fetcher: &static{pages: map[string]string{"/a": "", "/b": ""}}, Own: true, Now: clock})
	run := c.Start(&list{pages: []page.Page{{Path: "/a"}, {Path: "/b"}}}, plain)
	result := update(t, run, empty(t), time.Minute)
	if result.Fetched != 2 || result.Panic == nil || !strings.HasPrefix(result.Panic.Error(), "parsing /a: panic: ") {
		t.Fatalf("got %+v", result)
	}
	failing := pathsIf(t, result.Generation, func(rec *record.Record) bool { return rec.Failing != 0 })
	if got, want := statuses(t, result.Generation), "/a 0 false /b 200 false"; got != want || failing != "/a" || len(c.o.Slots) != 0 {
		t.Errorf("got %s with %s failing, want %s, %d slots are taken", got, failing, want, len(c.o.Slots))
	}
}

// TestForget: a new field of a record belongs to what the last response said, which forget drops, or to what is kept below.
func TestForget(t *testing.T) {
	var want []string
	for _, kept := range []string{
		"Path Flags ModTime Version ChangeFreq Priority ListDate Listed Absent", // what sources say
		"Depth Linked Finder Credited Followed Hub Links Withheld",
		"Moved Turned",
		"Fetched Due Wait Failing Cause Muted False FalseBy",
		"Text Blocks Declared First Changed Before Found Was WasDay Streak Difference Settled Steadiness FoundBy Selected", // for dates
	} {
		want = append(want, strings.Fields(kept)...)
	}
	var rec record.Record
	fields := reflect.ValueOf(&rec).Elem()
	for i := range fields.NumField() {
		fill(fields.Field(i))
	}
	forget(&rec)
	var got []string
	for i := range fields.NumField() {
		if !fields.Field(i).IsZero() {
			got = append(got, fields.Type().Field(i).Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("after forget, there is\n%s, want\n%s", got, want)
	}
}

// fill sets a value that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Int64:
		v.SetInt(1)
	default:
		v.SetUint(1<<v.Type().Bits() - 1)
	}
}
