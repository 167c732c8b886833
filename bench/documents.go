package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/cespare/xxhash/v2"
)

// served is a document as a client gets it.
type served struct {
	etag, modified string
	sum            uint64
}

// documents fetches the sitemap of a site and all its shards.
func documents(ctx context.Context, base string) (map[string]served, error) {
	shards, _, err := readIndex(ctx, base)
	if err != nil {
		return nil, err
	}
	all := make(map[string]served)
	for _, url := range append(shards, base+"/sitemap.xml") {
		status, header, body, err := ask(ctx, url)
		if err != nil {
			return nil, err
		}
		if status != http.StatusOK || header.Get("ETag") == "" {
			return nil, fmt.Errorf("%s answers %d with the ETag '%s'", url, status, header.Get("ETag"))
		}
		all[url] = served{header.Get("ETag"), header.Get("Last-Modified"), xxhash.Sum64(body)}
	}
	return all, nil
}

// differing counts the documents that are in one of two alone, or not the same.
func differing(before, after map[string]served) int {
	n := 0
	for url, s := range before {
		if after[url] != s {
			n++
		}
	}
	for url := range after {
		if _, ok := before[url]; !ok {
			n++
		}
	}
	return n
}
