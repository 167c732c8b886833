package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

// verify fetches the sitemap of a site and all its shards, reads them strictly and
// within the protocol's bounds, and counts: there must be so many pages, no two of
// them the same. It returns how many shards there are.
func verify(ctx context.Context, base string, pages int) (int, error) {
	shards, locs, err := readIndex(ctx, base)
	if err != nil {
		return 0, err
	}
	read := make([][]uint64, len(shards))
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
		return 0, err
	}
	all := slices.Concat(append(read, locs)...)
	listed := len(all)
	slices.Sort(all)
	if distinct := len(slices.Compact(all)); distinct != listed {
		return 0, fmt.Errorf("%d of %d pages are listed twice", listed-distinct, listed)
	}
	if listed != pages {
		return 0, fmt.Errorf("the sitemap lists %d pages of %d", listed, pages)
	}
	return max(len(shards), 1), nil
}

// readIndex returns the shards or, where the sitemap is the only document, the
// hashes of its pages.
func readIndex(ctx context.Context, base string) (shards []string, locs []uint64, err error) {
	body, err := fetch(ctx, base+"/sitemap.xml")
	if err != nil {
		return nil, nil, err
	}
	_, err = sitemapxml.Read(bytes.NewReader(body), sitemapxml.Limits{}, collect(base, &locs), func(c sitemapxml.Child) error {
		if !strings.HasPrefix(c.Loc, base+"/") {
			return fmt.Errorf("the index lists '%s'", c.Loc)
		}
		shards = append(shards, c.Loc)
		return nil
	})
	return shards, locs, err
}

func readShard(ctx context.Context, base, shard string) ([]uint64, error) {
	body, err := fetch(ctx, shard)
	if err != nil {
		return nil, err
	}
	var locs []uint64
	info, err := sitemapxml.Read(bytes.NewReader(body), sitemapxml.Limits{}, collect(base, &locs), nil)
	if err == nil && (info.Kind != sitemapxml.KindURLSet || info.Count == 0) {
		err = errors.New("it is no urlset with pages")
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", shard, err)
	}
	return locs, nil
}

// collect hashes the pages read: of ten million, two are taken for the same by
// chance once in 400,000 times.
func collect(base string, locs *[]uint64) func(sitemapxml.URL) error {
	return func(u sitemapxml.URL) error {
		if !strings.HasPrefix(u.Loc, base+"/") || len(u.Loc) > page.MaxLoc {
			return fmt.Errorf("line %d: '%s' is no page of the site", u.Line, u.Loc)
		}
		*locs = append(*locs, xxhash.Sum64String(u.Loc))
		return nil
	}
}
