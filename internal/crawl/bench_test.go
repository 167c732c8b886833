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

// benchmark crawls the same candidates again and again; due: as if for the first time.
func benchmark(b *testing.B, due bool) {
	all := make([]page.Page, benchPages)
	for i := range all {
		all[i] = page.Page{Path: fmt.Sprintf("/folder%03d/page%06d.html", i/200, i), Version: 1, LastMod: 1}
	}
	c, gen := New(Options{Fetcher: trivial{}}), empty(b)
	crawl := func() Result {
		result, err := c.Start(&list{pages: all}, plain).Update(b.Context(), gen, Budget{Until: time.Now().Add(time.Hour)})
		if err != nil || !result.Done {
			b.Fatalf("got %+v and %v", result, err)
		}
		return result
	}
	if !due {
		gen = crawl().Generation
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := crawl().Fetched; due != (got == benchPages) {
			b.Fatalf("%d pages were fetched", got)
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

func BenchmarkNothingDue(b *testing.B) { benchmark(b, false) }
func BenchmarkAllDue(b *testing.B)     { benchmark(b, true) }
