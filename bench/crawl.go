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
	if _, err := find(ctx, root); err != nil {
		return nil, err // it also warms the cache
	}
	for range b.runs {
		s, err := b.serve("names", files(root, "sitemap {\nrefresh 24h\ncrawl off\n}"))
		if err != nil {
			return rows, err
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
			return rows, err
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
		if _, err := find(ctx, root); err != nil { // which warms the cache
			return rows, err
		}
		err := b.crawlRun(ctx, files(root, "sitemap"), func(r crawlRun) error {
			found, err := find(ctx, root)
			first.add(r.first)
			all.add(r.all)
			uses.add(r.uses / float64(b.files))
			refresh.add(r.refresh, found.processor)
			heap.add((r.heap - idleHeap) / float64(b.files))
			peak.add((r.peak - idlePeak) / float64(b.files))
			disk.add(r.disk / float64(b.files))
			restart.add(r.restart)
			b.say("  crawl: %+v, find %+v (%s)", r, found, load())
			return err
		})
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// crawlRun is what was measured of one server: seconds and bytes.
type crawlRun struct{ first, all, uses, refresh, heap, peak, disk, restart float64 }

func (b *bench) crawlRun(ctx context.Context, directives []string, measured func(crawlRun) error) error {
	var r crawlRun
	s, err := b.serve("crawl", directives)
	if err != nil {
		return err
	}
	defer func() { s.stop() }()
	if r.first, err = s.first(ctx, s.sitemap()); err != nil {
		return err
	}
	if r.all, err = s.listed(ctx, b.files); err != nil {
		return err
	}
	if r.uses, err = s.processor(); err != nil {
		return err
	}
	if err := errors.Join(s.settle(ctx), s.verify(ctx, b.files)); err != nil {
		return err
	}
	if r.refresh, _, err = s.refresh(ctx); err != nil {
		return err
	}
	if r.heap, r.peak, err = s.memory(ctx); err != nil {
		return err
	}
	if r.disk, err = s.stored(); err != nil {
		return err
	}
	s.kill()
	if s, err = b.start(b.binary, "crawl", s.addr, site(s.addr, directives...)); err != nil {
		return err
	}
	if r.restart, err = s.first(ctx, s.sitemap()); err != nil {
		return err
	}
	return errors.Join(s.verify(ctx, b.files), measured(r))
}

// smallRows measure the first crawl of a site of middle size.
func (b *bench) smallRows(ctx context.Context) ([]*row, error) {
	r := &row{what: number(b.small) + " files: start to all listed", show: duration, reach: atMost(25)}
	root, err := b.tree("tree", b.small, small)
	if err != nil {
		return nil, err
	}
	for range b.runs {
		if _, err := find(ctx, root); err != nil { // which warms the cache
			return nil, err
		}
		s, err := b.serve("small", files(root, "sitemap"))
		if err != nil {
			return nil, err
		}
		took, err := s.listed(ctx, b.small)
		s.stop()
		if err != nil {
			return nil, err
		}
		r.add(took)
		b.say("  small: %s (%s)", duration(took), load())
	}
	return []*row{r}, nil
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
