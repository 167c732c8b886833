package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

const pagesOfSite = 5

// siteRows measure the memory of a server of many small sites, each of which has a block, a folder and a
// directive of its own, once all their pages are listed.
func (b *bench) siteRows(ctx context.Context) []*row {
	what := fmt.Sprintf("%s sites of %d files: live heap", number(b.sites), pagesOfSite)
	r := &row{what: what, show: mebibytes, reach: atMost(60e6)}
	for range b.runs {
		heap := b.heapOfSites(ctx)
		r.add(heap)
		b.say("  sites: %s (%s)", mebibytes(heap), load())
	}
	return []*row{r}
}

func (b *bench) heapOfSites(ctx context.Context) float64 {
	const name = "sites"
	check(os.RemoveAll(b.path(name)))
	addr := freeAddr()
	_, port, _ := net.SplitHostPort(addr)
	var hosts []string
	var config strings.Builder
	for i := range b.sites {
		host := fmt.Sprintf("site-%d.localhost:%s", i, port)
		hosts = append(hosts, host)
		config.WriteString(site(host, files(b.smallRoot(name, i), "sitemap")...))
	}
	s := b.start(name, addr, config.String())
	defer s.stop()
	for _, host := range hosts {
		check(s.until(ctx, "sitemap of "+host, func() (bool, error) { return s.listsAll(ctx, host) }))
	}
	heap, _, err := s.memory(ctx)
	check(err)
	return heap
}

// smallRoot makes the folder of a small site, and returns it.
func (b *bench) smallRoot(name string, site int) string {
	root := b.path(fmt.Sprintf("%s/roots/%d", name, site))
	check(os.MkdirAll(root, 0o755))
	for j := range pagesOfSite {
		page := site*pagesOfSite + j
		text := fmt.Sprintf("<!doctype html><title>Page %d</title><p>Page %d of a small site", page, page)
		check(writePage(filepath.Join(root, fmt.Sprintf("page-%d.html", j)), page, []byte(text)))
	}
	return root
}

// listsAll reports whether the sitemap of a small site lists all of its pages.
func (s *server) listsAll(ctx context.Context, host string) (bool, error) {
	// The hosts have no address.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.sitemap(), nil)
	if err != nil {
		return false, err
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, nil // it has not started yet
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return bytes.Count(body, []byte("<loc>")) == pagesOfSite, err
}
