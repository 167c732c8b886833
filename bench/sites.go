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
// directive of its own.
func (b *bench) siteRows(ctx context.Context) []*row {
	what := fmt.Sprintf("%s sites of %d files: live heap", number(b.sites), pagesOfSite)
	ours := &row{what: what, show: mebibytes, reach: atMost(60e6)}
	without := &row{what: what + " without the directive", show: mebibytes}
	for range b.runs {
		ours.add(b.heapOfSites(ctx, "sitemap"))
		without.add(b.heapOfSites(ctx, ""))
		b.say("  sites: so far %s, without the directive %s (%s)", mebibytes(median(ours.ours)), mebibytes(median(without.ours)), load())
	}
	return []*row{ours, without}
}

// heapOfSites returns the bytes of the live heap of a server of the sites, once all their pages are listed.
func (b *bench) heapOfSites(ctx context.Context, directive string) float64 {
	const name = "sites"
	addr, port := b.fresh(name)
	var hosts []string
	var config strings.Builder
	for i := range b.sites {
		host := fmt.Sprintf("site-%d.localhost:%s", i, port)
		hosts = append(hosts, host)
		config.WriteString(site(host, files(b.smallRoot(name, i), directive)...))
	}
	s := b.start(name, addr, config.String())
	defer s.stop()
	for _, host := range hosts {
		check(s.until(ctx, "sitemap of "+host, func() (bool, error) {
			return s.answers(ctx, host, directive != "")
		}))
	}
	heap, _, err := s.memory(ctx)
	check(err)
	return heap
}

// fresh forgets what an earlier server of that name has left, and returns an address for another one, and its port.
func (b *bench) fresh(name string) (addr, port string) {
	check(os.RemoveAll(b.path(name)))
	addr = freeAddr()
	_, port, err := net.SplitHostPort(addr)
	check(err)
	return addr, port
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

// answers reports whether a site answers, and if it has a sitemap, whether that lists all of its pages.
func (s *server) answers(ctx context.Context, host string, hasSitemap bool) (bool, error) {
	path := "/page-0.html"
	if hasSitemap {
		path = "/sitemap.xml"
	}
	// The hosts have no address.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base()+path, nil)
	if err != nil {
		return false, err
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, nil // it has not started yet
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return false, err
	}
	return !hasSitemap || bytes.Count(body, []byte("<loc>")) == pagesOfSite, nil
}
