package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// deploymentRows has every file of a site replaced by one with the same text, as a
// deployment does, while the site is refreshed every second, and compares all
// documents before and after.
func (b *bench) deploymentRows(ctx context.Context) ([]row, error) {
	root, err := b.treeOf(ctx, deployed, b.small)
	if err != nil {
		return nil, err
	}
	if err := eachPage(ctx, root, b.small, setModified); err != nil { // an earlier run has deployed it
		return nil, err
	}
	pair, err := b.pair(ctx, "deployment", root, b.small, 1)
	if err != nil {
		return nil, err
	}
	defer pair.stop()
	if err := pair.settle(ctx, b.small); err != nil {
		return nil, err
	}
	if _, err := pair.checkDates(ctx); err != nil {
		return nil, err
	}
	before, err := documents(ctx, pair.base)
	if err != nil {
		return nil, err
	}
	b.say("  replacing %s files", number(b.small))
	if err := eachPage(ctx, root, b.small, replace); err != nil {
		return nil, err
	}
	refreshes, changed, err := pair.untilKept(ctx)
	if err != nil {
		return nil, err
	}
	after, err := documents(ctx, pair.base)
	if err != nil {
		return nil, err
	}
	n := differing(before, after)
	b.say("  %d refreshes since it began, of which %d changed something", refreshes, changed)
	return []row{{
		what:    number(b.small) + " files replaced by the same text while they are refreshed every second",
		ours:    fmt.Sprintf("%d of %d documents changed; refreshes that changed any: %d of %d", n, len(before), changed, refreshes),
		reach:   "no date, no shard, no ETag changes",
		reached: yes(n == 0 && changed == 0),
	}}, nil
}

// untilKept waits until ours has learnt all that there is to learn of files that have
// just been replaced: what it keeps on disk has been the same for some refreshes. It
// returns how many refreshes there were, and how many changed something.
func (p *pair) untilKept(ctx context.Context) (refreshes, changed int, err error) {
	const same = 5
	begun := time.Now()
	var last time.Time
	for unwritten := 0; unwritten < same || time.Since(begun) < 2*quietFor; {
		reports, err := p.log.next(ctx)
		if err != nil {
			return 0, 0, err
		}
		for _, r := range reports {
			if refreshes++; !r.isUnchanged() {
				changed++
			}
		}
		_, written, err := stateOnDisk(p.state)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, 0, err
		}
		if unwritten++; err != nil || written.After(last) {
			last, unwritten = written, 0
		}
	}
	return refreshes, changed, nil
}

func eachPage(ctx context.Context, root string, pages int, do func(name string, i int) error) error {
	for i := range pages {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := do(filepath.Join(root, filepath.FromSlash(pagePath(i))), i); err != nil {
			return err
		}
	}
	return nil
}

// replace writes a file anew beside itself and puts it in its place.
func replace(name string, i int) error {
	fresh := name + ".new"
	if err := os.WriteFile(fresh, content(i), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, name)
}
