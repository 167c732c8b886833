package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// oneCore has a server compute on one core.
const oneCore = "GOMAXPROCS=1"

// seldom keeps refreshes apart that are asked for.
const seldom = "sitemap {\nrefresh 24h\n}"

// files are the directives of a site of files, with ours or none.
func files(root, directive string) []string {
	return []string{fmt.Sprintf("root * \"%s\"", filepath.ToSlash(root)), directive, "file_server"}
}

// nameRows measure a site that is listed by name alone.
func (b *bench) nameRows(ctx context.Context) ([]*row, error) {
	of := number(b.files) + " files, `crawl off`: "
	start := &row{what: of + "start to the first 200, over `find -type f -printf`", show: duration, reach: atMost(1)}
	refresh := &row{what: of + "processor time of a refresh in which nothing changed, over that `find`", show: duration, reach: atMost(1.2)}
	rows := []*row{start, refresh}
	root, err := b.tree("tree", b.files, small)
	if err != nil {
		return nil, err
	}
	for range b.runs {
		if _, err := find(ctx, root); err != nil { // it warms the cache
			return nil, err
		}
		s, err := b.serve("names", files(root, "sitemap {\nrefresh 24h\ncrawl off\n}"))
		if err != nil {
			return nil, err
		}
		took, err := s.first(ctx, s.sitemap())
		if err == nil && len(start.ours) == 0 {
			err = s.verify(ctx, b.files)
		}
		if err == nil {
			err = s.settle(ctx)
		}
		uses, _, err2 := s.refresh(ctx)
		s.stop()
		found, err3 := find(ctx, root)
		if err := errors.Join(err, err2, err3); err != nil {
			return nil, err
		}
		start.add(took, found.wall)
		refresh.add(uses, found.processor)
		b.say("  names: %s, refresh %s, find %s (%s)", duration(took), duration(uses), duration(found.wall), load())
	}
	return rows, nil
}

// crawlRows measure a site of small files by default, from the first start on.
func (b *bench) crawlRows(ctx context.Context) ([]*row, error) {
	of := number(b.files) + " files: "
	first := &row{what: of + "start to the first 200", show: duration, reach: atMost(2)}
	all := &row{what: of + "start to all listed", show: duration, reach: atMost(90)}
	uses := &row{what: of + "processor time of it, a page", show: duration, reach: atMost(120e-6)}
	refresh := &row{what: of + "processor time of a refresh in which nothing changed, over `find`", show: duration, reach: atMost(1.2)}
	heap := &row{what: of + "live heap above an idle Caddy, a page", show: byteCount, reach: atMost(64)}
	peak := &row{what: of + "peak memory above an idle Caddy, a page", show: byteCount, reach: atMost(256)}
	disk := &row{what: of + "state on disk, documents included, a page", show: byteCount, reach: atMost(45)}
	restart := &row{what: of + "start after `kill -9` to the first 200", show: duration, reach: atMost(2)}
	rows := []*row{first, all, uses, refresh, heap, peak, disk, restart}
	root, err := b.tree("tree", b.files, small)
	if err != nil {
		return nil, err
	}
	idle, err := b.serve("idle", files(root, ""))
	if err != nil {
		return nil, err
	}
	defer idle.stop()
	if _, err := idle.first(ctx, idle.base()+pagePath(0)); err != nil {
		return nil, err
	}
	idleHeap, idlePeak, err := idle.memory(ctx)
	if err != nil {
		return nil, err
	}
	for range b.runs {
		if err := warm(ctx, root); err != nil {
			return nil, err
		}
		s, err := b.serve("crawl", files(root, "sitemap"))
		if err != nil {
			return nil, err
		}
		defer func() { s.stop() }()
		took, err := s.first(ctx, s.sitemap())
		complete, err2 := s.listed(ctx, b.files)
		used, err3 := s.processor()
		if err := errors.Join(err, err2, err3, s.settle(ctx), s.verify(ctx, b.files)); err != nil {
			return nil, err
		}
		unchanged, _, err := s.refresh(ctx)
		found, err2 := find(ctx, root)
		live, most, err3 := s.memory(ctx)
		size, err4 := s.stored()
		if err := errors.Join(err, err2, err3, err4); err != nil {
			return nil, err
		}
		s.kill()
		if s, err = b.start("crawl", s.addr, site(s.addr, files(root, "sitemap")...)); err != nil {
			return nil, err
		}
		again, err := s.first(ctx, s.sitemap())
		if err := errors.Join(err, s.verify(ctx, b.files)); err != nil {
			return nil, err
		}
		s.stop()
		n := float64(b.files)
		first.add(took)
		all.add(complete)
		uses.add(used / n)
		refresh.add(unchanged, found.processor)
		heap.add((live - idleHeap) / n)
		peak.add((most - idlePeak) / n)
		disk.add(size / n)
		restart.add(again)
		b.say("  crawl: first %s, all %s, peak %s (%s)", duration(took), duration(complete), mebibytes(most), load())
	}
	return rows, nil
}

// smallRows measure the first crawl of a site of middle size.
func (b *bench) smallRows(ctx context.Context) ([]*row, error) {
	r := &row{what: number(b.small) + " files: start to all listed", show: duration, reach: atMost(25)}
	root, err := b.tree("tree", b.small, small)
	if err != nil {
		return nil, err
	}
	return []*row{r}, b.listings(ctx, r, "small", b.small, root, files(root, "sitemap"))
}

// listings measure how long it takes from the start until all pages are listed; root is
// that of their files, if they are files.
func (b *bench) listings(ctx context.Context, r *row, name string, pages int, root string, directives []string) error {
	for range b.runs {
		if err := warm(ctx, root); err != nil {
			return err
		}
		s, err := b.serve(name, directives)
		if err != nil {
			return err
		}
		took, err := s.listed(ctx, pages)
		s.stop()
		if err != nil {
			return err
		}
		r.add(took)
		b.say("  %s: %s (%s)", name, duration(took), load())
	}
	return nil
}

// manualRows measure how fast pages of a usual size are fetched and parsed.
func (b *bench) manualRows(ctx context.Context) ([]*row, error) {
	what := number(b.manuals) + " manual pages of 20 to 50 KB, one core: fetched, parsed and listed a second of processor time"
	r := &row{what: what, show: megabytes, reach: atLeast(80)}
	root, err := b.tree("manuals", b.manuals, manual)
	if err != nil {
		return nil, err
	}
	size := 0
	for i := range b.manuals {
		size += len(manual(i))
	}
	for range b.runs {
		if err := warm(ctx, root); err != nil {
			return nil, err
		}
		var uses [2]float64
		for i, directive := range []string{"sitemap", ""} {
			s, err := b.serve("manuals", files(root, directive), oneCore)
			if err != nil {
				return nil, err
			}
			if directive != "" {
				_, err = s.listed(ctx, b.manuals)
			} else {
				_, err = s.first(ctx, s.base()+pagePath(0))
			}
			var err2 error
			uses[i], err2 = s.processor()
			s.stop()
			if err := errors.Join(err, err2); err != nil {
				return nil, err
			}
		}
		r.add(float64(size) / 1e6 / (uses[0] - uses[1]))
		b.say("  manuals: %s of %d MB, without us %s (%s)", duration(uses[0]), size/1e6, duration(uses[1]), load())
	}
	return []*row{r}, nil
}

// warm reads all files of a tree, so that they come from the cache.
func warm(ctx context.Context, root string) error {
	if root == "" {
		return nil
	}
	return exec.CommandContext(ctx, "find", root, "-type", "f", "-exec", "cat", "{}", "+").Run()
}

// used is the seconds that a program took.
type used struct{ wall, processor float64 }

// find lists a tree's files with their times, to nobody.
func find(ctx context.Context, root string) (used, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "find", root, "-type", "f", "-printf", `%p %T@\n`)
	cmd.Stderr = &stderr
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		return used{}, fmt.Errorf("running find: %w\n%s", err, stderr.Bytes())
	}
	wall := time.Since(begun)
	return used{wall.Seconds(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}, nil
}
