package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/caddytest/sitemaps"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// found is what a sitemap and all its shards say.
type found struct{ pages, dated, shards int }

// verify looks through the sitemap of a site: there must be so many pages. It returns
// how many shards there are.
func verify(ctx context.Context, base string, pages int) (int, error) {
	f, err := survey(ctx, base)
	if err == nil && f.pages != pages {
		err = fmt.Errorf("the sitemap lists %d pages of %d", f.pages, pages)
	}
	return f.shards, err
}

// survey fetches the sitemap of a site and all its shards, reads them strictly and
// within the protocol's bounds, and counts. No two pages must be the same.
func survey(ctx context.Context, base string) (found, error) {
	shards, one, err := readIndex(ctx, base)
	if err != nil {
		return found{}, err
	}
	read := make([]entries, len(shards))
	errs := make([]error, len(shards))
	slots := make(chan struct{}, runtime.NumCPU())
	var group sync.WaitGroup
	for i, shard := range shards {
		slots <- struct{}{}
		group.Go(func() {
			read[i], errs[i] = readShard(ctx, base, shard)
			<-slots
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return found{}, err
	}
	var locs []uint64
	f := found{shards: max(len(shards), 1)}
	for _, e := range append(read, one) {
		locs = append(locs, e.locs...)
		f.dated += e.dated
	}
	f.pages = len(locs)
	slices.Sort(locs)
	if distinct := len(slices.Compact(locs)); distinct != f.pages {
		return found{}, fmt.Errorf("%d of %d pages are listed twice", f.pages-distinct, f.pages)
	}
	return f, nil
}

// entries are the hashes of the pages of a document, and how many of them have a date.
type entries struct {
	locs  []uint64
	dated int
}

// readIndex returns the shards or, where the sitemap is the only document, its pages.
func readIndex(ctx context.Context, base string) (shards []string, one entries, err error) {
	body, err := fetch(ctx, base+"/sitemap.xml")
	if err != nil {
		return nil, one, err
	}
	d, err := sitemaps.Parse(body)
	if err != nil {
		return nil, one, err
	}
	for _, c := range d.Children {
		if !strings.HasPrefix(c.Loc, base+"/") {
			return nil, one, fmt.Errorf("the index lists '%s'", c.Loc)
		}
		shards = append(shards, c.Loc)
	}
	one, err = collect(base, d.Pages)
	return shards, one, err
}

func readShard(ctx context.Context, base, shard string) (e entries, err error) {
	body, err := fetch(ctx, shard)
	if err != nil {
		return e, err
	}
	d, err := sitemaps.Parse(body)
	if err == nil && len(d.Pages) == 0 {
		err = errors.New("it is no urlset with pages")
	}
	if err == nil {
		e, err = collect(base, d.Pages)
	}
	if err != nil {
		return e, fmt.Errorf("reading %s: %w", shard, err)
	}
	return e, nil
}

// collect hashes the pages read: of ten million, two are taken for the same by
// chance once in 400,000 times.
func collect(base string, pages []sitemaps.Entry) (e entries, err error) {
	for _, u := range pages {
		if !strings.HasPrefix(u.Loc, base+"/") || len(u.Loc) > page.MaxLoc {
			return e, fmt.Errorf("'%s' is no page of the site", u.Loc)
		}
		e.locs = append(e.locs, xxhash.Sum64String(u.Loc))
		if u.LastMod != "" {
			e.dated++
		}
	}
	return e, nil
}
