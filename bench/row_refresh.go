package main

import (
	"context"
	"errors"
	"os"
	"time"
)

// refreshRows compares the processor time of refreshes in which nothing changed: of a
// server that has read and asked for every page, of one that lists them by name alone,
// and of find, which runs in the pauses between refreshes. What a Caddy without the
// directive uses in the same time is taken off.
func (b *bench) refreshRows(ctx context.Context) ([]row, error) {
	what := number(b.files) + " files: processor time of a refresh in which nothing changed, over "
	const (
		known, knownBound   = "the same with `crawl off`", 1.3
		byName, byNameBound = "that of `find`, both with `crawl off`", 1.2
	)
	why := noFind(ctx)
	if _, err := processorTime(os.Getpid()); errors.Is(err, errNotHere) {
		why = err.Error()
	}
	if why != "" {
		return []row{skipped(what+known, "≤ 1.3", why), skipped(what+byName, "≤ 1.2", why)}, nil
	}
	root, err := b.tree(ctx, b.files)
	if err != nil {
		return nil, err
	}
	pause, err := b.pause(ctx, root, b.files)
	if err != nil {
		return nil, err
	}
	ours, err := b.pair(ctx, "refresh", root, b.files, pause)
	if err != nil {
		return nil, err
	}
	defer ours.stop()
	b.say("  waiting until all pages were asked for")
	if err := ours.settle(ctx, b.files); err != nil {
		return nil, err
	}
	off, err := b.pair(ctx, "refresh-by-name", root, b.files, pause, "crawl off")
	if err != nil {
		return nil, err
	}
	defer off.stop()
	if err := off.settle(ctx, 0); err != nil {
		return nil, err
	}
	for _, p := range []*pair{ours, off} {
		if _, err := p.perRefresh(ctx); err != nil {
			return nil, err
		}
	}
	m, err := alternate(ctx, b, b.runs, func() (time.Duration, error) {
		return ours.perRefresh(ctx)
	}, func() (time.Duration, error) {
		return off.perRefresh(ctx)
	}, func() (time.Duration, error) {
		took, err := find(ctx, root)
		return took.processor, err
	})
	if err != nil {
		return nil, err
	}
	overFind := oneOver(what+"that of `find`", m, 0, 2, 0)
	overFind.reach, overFind.reached = "", ""
	return []row{
		oneOver(what+known, m, 0, 1, knownBound),
		overFind,
		oneOver("the same, over "+byName, m, 1, 2, byNameBound),
	}, nil
}
