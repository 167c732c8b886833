package main

import (
	"context"
	"fmt"
	"time"
)

// startRows compares the time from starting the server to the first 200 of
// /sitemap.xml with that of find.
func (b *bench) startRows(ctx context.Context) ([]row, error) {
	what := number(b.files) + " files: start to the first 200 of `/sitemap.xml`, over `find -type f -printf` to the null device"
	if why := noFind(ctx); why != "" {
		return []row{skipped(what, "≤ 1.0", why)}, nil
	}
	root, err := b.tree(ctx, b.files)
	if err != nil {
		return nil, err
	}
	start, err := b.starter(ctx, root, b.files)
	if err != nil {
		return nil, err
	}
	m, err := alternate(ctx, b, b.runs, start, func() (time.Duration, error) {
		took, err := find(ctx, root)
		return took.wall, err
	})
	if err != nil {
		return nil, err
	}
	return []row{over(what, m, 1.0)}, nil
}

// starter returns what starts a server for the tree, waits for its sitemap and stops
// it. The first time, it looks through all of the sitemap.
func (b *bench) starter(ctx context.Context, root string, pages int) (func() (time.Duration, error), error) {
	binary, err := b.caddy(ctx)
	if err != nil {
		return nil, err
	}
	verified := false
	return func() (time.Duration, error) {
		addr, err := freeAddr()
		if err != nil {
			return 0, err
		}
		state, err := b.emptyState("start")
		if err != nil {
			return 0, err
		}
		s, err := b.launch(binary, "start.caddyfile", caddyfile(state, "", fileSite(addr, root, "sitemap")))
		if err != nil {
			return 0, err
		}
		defer s.stop()
		took, err := s.first(ctx, "http://"+addr+"/sitemap.xml")
		if err != nil || verified {
			return took, err
		}
		shards, err := verify(ctx, "http://"+addr, pages)
		if err != nil {
			return 0, fmt.Errorf("wrong sitemap: %w", err)
		}
		b.say("  all %s pages are there; shards: %d", number(pages), shards)
		verified = true
		return took, nil
	}, nil
}
