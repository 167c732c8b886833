package crawl

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// trivial is a Fetcher that has the same page everywhere.
type trivial struct{}

func (f trivial) Fetch(_ context.Context, r Request) (*Response, error) {
	return &Response{Status: 200, Header: htmlHeader, Body: htmlBody}, nil
}

var (
	htmlHeader = http.Header{"Content-Type": {"text/html"}}
	htmlBody   = []byte(`<!DOCTYPE html><title>t</title><p>text <a href="/b">b</a>`)
)

const benchPages = 100_000

func benchCandidates() *list {
	l := &list{pages: make([]page.Page, benchPages)}
	for i := range l.pages {
		l.pages[i] = page.Page{Path: fmt.Sprintf("/folder%03d/page%06d.html", i/200, i), Version: 1, LastMod: 1}
	}
	return l
}

// benchmark crawls the same candidates with each crawl made by start.
func benchmark(b *testing.B, gen *store.Generation, due bool) {
	all := benchCandidates().pages
	c := New(Options{Fetcher: trivial{}})
	p := Policy{Base: base, Scope: "/", Front: "/"}
	var last *store.Generation
	if !due {
		result, err := c.Start(&list{pages: all}, p).Update(b.Context(), gen, Budget{Until: time.Now().Add(time.Hour)})
		if err != nil {
			b.Fatal(err)
		}
		last = result.Generation
	} else {
		last = gen
	}
	b.ReportAllocs()
	for b.Loop() {
		result, err := c.Start(&list{pages: all}, p).Update(b.Context(), last, Budget{Until: time.Now().Add(time.Hour)})
		if err != nil || !result.Done || due != (result.Fetched == benchPages) {
			b.Fatalf("got %+v and %v", result, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchPages, "ns/page")
}

func empty(tb testing.TB) *store.Generation {
	s, err := store.Open(tb.Context(), store.NewMemory(), store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return s.Last()
}

func BenchmarkNothingDue(b *testing.B) { benchmark(b, empty(b), false) }
func BenchmarkAllDue(b *testing.B)     { benchmark(b, empty(b), true) }
