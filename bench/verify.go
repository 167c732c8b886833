package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/caddytest/sitemaps"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// verify reads the sitemap of a site and all its shards strictly: there must be so many
// pages, no two of them the same.
func (s *server) verify(ctx context.Context, pages int) {
	listed := make(map[uint64]struct{}, pages) // hashes: of ten million, two are the same once in 400,000 times
	n := 0
	documents := []string{s.sitemap()}
	for i := 0; i < len(documents); i++ {
		d := document(ctx, documents[i])
		documents = append(documents, sitemaps.Locs(d.Children)...)
		for _, u := range d.Pages {
			if !strings.HasPrefix(u.Loc, s.base()+"/") || len(u.Loc) > page.MaxLoc {
				check(fmt.Errorf("'%s' is no page of the site", u.Loc))
			}
			listed[xxhash.Sum64String(u.Loc)] = struct{}{}
			n++
		}
	}
	if n != pages || len(listed) != pages {
		check(fmt.Errorf("%d pages are listed, %d of them once, not %d", n, len(listed), pages))
	}
}

// document reads a sitemap or an index.
func document(ctx context.Context, url string) sitemaps.Document {
	status, body, err := get(ctx, url)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("got status %d of %s", status, url)
	}
	check(err)
	if bytes.HasPrefix(body, []byte("\x1f\x8b")) { // as it was asked for
		body = must(io.ReadAll(must(gzip.NewReader(bytes.NewReader(body)))))
	}
	return must(sitemaps.Parse(body))
}
