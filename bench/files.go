package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// files are the directives of a site of files, with ours or none.
func files(root, directive string) []string {
	return []string{fmt.Sprintf("root * \"%s\"", filepath.ToSlash(root)), directive, "file_server"}
}

// startRows measure a site that is listed by name alone.
func (b *bench) startRows(ctx context.Context) []*row {
	of := number(b.files) + " files, `crawl off`: "
	start := &row{what: of + "start to the first 200, over `find -type f -printf`", show: duration, reach: atMost(1)}
	refresh := &row{what: of + "processor time of a refresh in which nothing changed, over that `find`", show: duration, reach: atMost(1.2)}
	root := b.tree(b.files)
	for range b.runs {
		find(ctx, root) // it warms the cache
		s := b.serve("start", files(root, "sitemap {\nrefresh 24h\ncrawl off\n}"))
		took := must(s.first(ctx, s.sitemap()))
		if len(start.ours) == 0 {
			s.verify(ctx, b.files)
		}
		check(s.settle(ctx))
		uses, _, err := s.refresh(ctx)
		check(err)
		s.stop()
		found := find(ctx, root)
		start.add(took, found.wall)
		refresh.add(uses, found.processor)
		b.say("  start: %s, refresh %s, find %s (%s)", duration(took), duration(uses), duration(found.wall), load())
	}
	return []*row{start, refresh}
}

// crawlRows measure a site of small files by default, from the first start on.
func (b *bench) crawlRows(ctx context.Context) []*row {
	of := number(b.files) + " files: "
	first := &row{what: of + "start to the first 200", show: duration, reach: atMost(2)}
	all := &row{what: of + "start to all listed", show: duration, reach: atMost(90)}
	refresh := &row{what: of + "processor time of a refresh in which nothing changed, over `find`", show: duration, reach: atMost(1.2)}
	heap := &row{what: of + "live heap above an idle Caddy, a page", show: byteCount, reach: atMost(40)}
	peak := &row{what: of + "peak memory above an idle Caddy, a page", show: byteCount, reach: atMost(256)}
	disk := &row{what: of + "state on disk, documents included, a page", show: byteCount, reach: atMost(62)}
	restart := &row{what: of + "start after `kill -9` to the first 200", show: duration, reach: atMost(0.1)}
	root := b.tree(b.files)
	idle := b.serve("idle", files(root, ""))
	must(idle.first(ctx, idle.base()+pagePath(0)))
	idleHeap, idlePeak, err := idle.memory(ctx)
	check(err)
	for range b.runs {
		warm(ctx, root)
		s := b.serve("crawl", files(root, "sitemap"))
		took := must(s.first(ctx, s.sitemap()))
		complete := must(s.listed(ctx, b.files))
		check(s.settle(ctx))
		s.verify(ctx, b.files)
		unchanged, _, err := s.refresh(ctx)
		check(err)
		found := find(ctx, root)
		live, most, err := s.memory(ctx)
		check(err)
		size := must(s.stored())
		s.kill()
		s = b.start("crawl", s.addr, site(s.addr, files(root, "sitemap")...))
		again := must(s.first(ctx, s.sitemap()))
		s.verify(ctx, b.files)
		s.stop()
		n := float64(b.files)
		first.add(took)
		all.add(complete)
		refresh.add(unchanged, found.processor)
		heap.add((live - idleHeap) / n)
		peak.add((most - idlePeak) / n)
		disk.add(size / n)
		restart.add(again)
		b.say("  crawl: first %s, all %s, peak %s (%s)", duration(took), duration(complete), mebibytes(most), load())
	}
	return []*row{first, all, refresh, heap, peak, disk, restart}
}

// warm reads all files of a tree, so that they come from the cache.
func warm(ctx context.Context, root string) {
	check(exec.CommandContext(ctx, "find", root, "-type", "f", "-exec", "cat", "{}", "+").Run())
}

// used is the seconds that a program took.
type used struct{ wall, processor float64 }

// find lists a tree's files with their times, to nobody.
func find(ctx context.Context, root string) used {
	cmd := exec.CommandContext(ctx, "find", root, "-type", "f", "-printf", `%p %T@\n`)
	begun := time.Now()
	check(cmd.Run())
	wall := time.Since(begun)
	return used{wall.Seconds(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
}
