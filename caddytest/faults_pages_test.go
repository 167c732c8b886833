package caddytest

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// onApp is an application that is crawled fast.
const onApp = harness.Local + ` {
	sitemap {
		refresh 1s
		links {
			max_paths 20000
		}
		crawl {
			rate 1000/s
			concurrency 8
		}
	}
	reverse_proxy {app}
}`

// TestBadPages: pages without an end, or with very much before it, cost a bounded time and
// memory, and keep nothing else out.
func TestBadPages(t *testing.T) {
	var taken atomic.Int64 // bytes of what is too large
	count := func(w io.Writer) io.Writer {
		return writerFunc(func(b []byte) (int, error) {
			n, err := w.Write(b)
			taken.Add(int64(n))
			return n, err
		})
	}
	s := prepare(t, nil)
	s.LoadApp(onApp, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		begin := func(links ...string) {
			_, _ = io.WriteString(w, harness.HTML(r.URL.Path))
			for _, link := range links {
				fmt.Fprintf(w, "<a href=%q>link</a>", link)
			}
		}
		switch r.URL.Path {
		case "/":
			begin("/endless", "/slow", "/huge", "/good")
		case "/good":
			begin()
		case "/endless": // as fast as it can
			begin()
			filler := []byte(strings.Repeat("<p>and so on ", 1000))
			for w := count(w); r.Context().Err() == nil; {
				if _, err := w.Write(filler); err != nil {
					return
				}
			}
		case "/slow": // a byte at a time
			begin()
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("."))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		case "/huge":
			w.Header().Set("Content-Length", strconv.Itoa(1<<30))
			begin()
			filler := make([]byte, 1<<20)
			for w := count(w); r.Context().Err() == nil; {
				if _, err := w.Write(filler); err != nil {
					return
				}
			}
		default:
			http.NotFound(w, r)
		}
	})
	has := func(paths ...string) func() bool {
		return func() bool {
			for _, path := range paths {
				if !s.lists(harness.Local, path) {
					return false
				}
			}
			return true
		}
	}
	s.Eventually(has("/", "/good"), s.SitemapLog)
	s.Eventually(has("/endless", "/huge"), s.SitemapLog) // as much of them as is read says that they are pages
	if s.lists(harness.Local, "/slow") {
		t.Error("a page that never came to its end is listed")
	}
	if n := taken.Load(); n > 256<<20 {
		t.Errorf("%d MiB of pages without an end were read", n>>20)
	}
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestManyPagesBehindOne: a link graph of very many pages takes no more than max_paths.
func TestManyPagesBehindOne(t *testing.T) {
	const all, maxPaths = 40_000, 20_000
	s := prepare(t, nil)
	s.LoadApp(onApp, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		out := bufio.NewWriter(w)
		defer func() { _ = out.Flush() }()
		_, _ = out.WriteString(harness.HTML(r.URL.Path))
		if r.URL.Path == "/" {
			for i := range all {
				fmt.Fprintf(out, "<a href=/%s>x</a>", letters(i))
			}
		}
	})
	s.Eventually(func() bool { return len(s.RefreshLines()) > 0 }, s.SitemapLog)
	line := s.Logged(harness.Refreshed, "over max_paths")
	n := 0
	s.Eventually(func() bool {
		n = len(s.Locs(harness.Local + "/sitemap.xml"))
		return n >= 100
	}, func() string { return fmt.Sprintf("%d pages are listed: %s", n, line) })
	if n > maxPaths+1 {
		t.Errorf("%d pages are listed: %s", n, line)
	}
	promptly(t, "Stop", s.Stop)
}

// letters are a name for a number that has no digits, by which pages are taken for alike.
func letters(n int) string {
	name := []byte{'x'}
	for ; n > 0; n /= 26 {
		name = append(name, byte('a'+n%26))
	}
	return string(name)
}
