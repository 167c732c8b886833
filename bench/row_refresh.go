package main

import (
	"context"
	"errors"
	"os"
	"time"
)

// refreshRows compares the processor time of a refresh in which nothing changed with
// that of find, which runs in the pauses between refreshes. What a Caddy without the
// directive uses in the same time is taken off.
func (b *bench) refreshRows(ctx context.Context) ([]row, error) {
	const reach = "≤ 1.2"
	what := number(b.files) + " files: processor time of a refresh in which nothing changed, over that of `find`"
	if why := noFind(ctx); why != "" {
		return []row{skipped(what, reach, why)}, nil
	}
	if _, err := processorTime(os.Getpid()); errors.Is(err, errNotHere) {
		return []row{skipped(what, reach, err.Error())}, nil
	}
	root, err := b.tree(ctx, b.files)
	if err != nil {
		return nil, err
	}
	pair, err := b.pair(ctx, root, b.files)
	if err != nil {
		return nil, err
	}
	defer pair.stop()
	if _, err := pair.refreshed(ctx); err != nil {
		return nil, err
	}
	before, err := pair.processorTime()
	if err != nil {
		return nil, err
	}
	m, err := alternate(ctx, b, b.runs, func() (time.Duration, error) {
		refreshes, err := pair.refreshed(ctx)
		if err != nil {
			return 0, err
		}
		now, err := pair.processorTime()
		took := (now - before) / time.Duration(refreshes)
		before = now
		return took, err
	}, func() (time.Duration, error) {
		took, err := find(ctx, root)
		return took.processor, err
	})
	if err != nil {
		return nil, err
	}
	return []row{over(what, m, 1.2)}, nil
}
