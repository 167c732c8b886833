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

// nameRows measure a site that is listed by name alone.
func (b *bench) nameRows(ctx context.Context) []*row {
	of := number(b.files) + " files, `crawl off`: "
	start := &row{what: of + "start to the first 200, over `find -type f -printf`", show: duration, reach: atMost(1)}
	refresh := &row{what: of + "processor time of a refresh in which nothing changed, over that `find`", show: duration, reach: atMost(1.2)}
	root := b.tree("tree", b.files, small)
	for range b.runs {
		find(ctx, root) // it warms the cache
		s := b.serve("names", files(root, "sitemap {\nrefresh 24h\ncrawl off\n}"))
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
		b.say("  names: %s, refresh %s, find %s (%s)", duration(took), duration(uses), duration(found.wall), load())
	}
	return []*row{start, refresh}
}

// crawlRows measure a site of small files by default, from the first start on.
func (b *bench) crawlRows(ctx context.Context) []*row {
	of := number(b.files) + " files: "
	first := &row{what: of + "start to the first 200", show: duration, reach: atMost(2)}
	all := &row{what: of + "start to all listed", show: duration, reach: atMost(90)}
	uses := &row{what: of + "processor time of it, a page", show: duration, reach: atMost(120e-6)}
	refresh := &row{what: of + "processor time of a refresh in which nothing changed, over `find`", show: duration, reach: atMost(1.2)}
	edited := &row{what: of + "processor time of a refresh in which one page changed, over `find`", show: duration, reach: atMost(3)}
	heap := &row{what: of + "live heap above an idle Caddy, a page", show: byteCount, reach: atMost(64)}
	peak := &row{what: of + "peak memory above an idle Caddy, a page", show: byteCount, reach: atMost(256)}
	disk := &row{what: of + "state on disk, documents included, a page", show: byteCount, reach: atMost(50)}
	restart := &row{what: of + "start after `kill -9` to the first 200", show: duration, reach: atMost(2)}
	root := b.tree("tree", b.files, small)
	idle := b.serve("idle", files(root, ""))
	must(idle.first(ctx, idle.base()+pagePath(0)))
	idleHeap, idlePeak, err := idle.memory(ctx)
	check(err)
	for range b.runs {
		warm(ctx, root)
		s := b.serve("crawl", files(root, "sitemap"))
		took := must(s.first(ctx, s.sitemap()))
		complete := must(s.listed(ctx, b.files))
		used := must(s.processor())
		check(s.settle(ctx))
		s.verify(ctx, b.files)
		unchanged, _, err := s.refresh(ctx)
		check(err)
		found := find(ctx, root)
		check(edit(root, b.files/2))
		changed, _, err := s.refresh(ctx)
		check(err)
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
		uses.add(used / n)
		refresh.add(unchanged, found.processor)
		edited.add(changed, found.processor)
		heap.add((live - idleHeap) / n)
		peak.add((most - idlePeak) / n)
		disk.add(size / n)
		restart.add(again)
		b.say("  crawl: first %s, all %s, peak %s (%s)", duration(took), duration(complete), mebibytes(most), load())
	}
	return []*row{first, all, uses, refresh, edited, heap, peak, disk, restart}
}

// smallRows measure the first crawl of a site of middle size.
func (b *bench) smallRows(ctx context.Context) []*row {
	r := &row{what: number(b.small) + " files: start to all listed", show: duration, reach: atMost(25)}
	root := b.tree("tree", b.small, small)
	b.listings(ctx, r, "small", b.small, root, files(root, "sitemap"))
	return []*row{r}
}

// listings measure how long it takes from the start until all pages are listed; root is
// that of their files, if they are files.
func (b *bench) listings(ctx context.Context, r *row, name string, pages int, root string, directives []string) {
	for range b.runs {
		warm(ctx, root)
		s := b.serve(name, directives)
		took := must(s.listed(ctx, pages))
		s.stop()
		r.add(took)
		b.say("  %s: %s (%s)", name, duration(took), load())
	}
}

// manualRows measure how fast pages of a usual size are fetched and parsed.
func (b *bench) manualRows(ctx context.Context) []*row {
	what := number(b.manuals) + " manual pages of 20 to 50 KB, one core: fetched, parsed and listed a second of processor time"
	r := &row{what: what, show: megabytes, reach: atLeast(80)}
	root := b.tree("manuals", b.manuals, manual)
	size := 0
	for i := range b.manuals {
		size += len(manual(i))
	}
	for range b.runs {
		warm(ctx, root)
		var uses [2]float64
		for i, directive := range []string{"sitemap", ""} {
			s := b.serve("manuals", files(root, directive), "GOMAXPROCS=1")
			if directive == "" {
				must(s.first(ctx, s.base()+pagePath(0)))
			} else {
				must(s.listed(ctx, b.manuals))
			}
			uses[i] = must(s.processor())
			s.stop()
		}
		r.add(float64(size) / 1e6 / (uses[0] - uses[1]))
		b.say("  manuals: %s of %d MB, without us %s (%s)", duration(uses[0]), size/1e6, duration(uses[1]), load())
	}
	return []*row{r}
}

// warm reads all files of a tree, so that they come from the cache.
func warm(ctx context.Context, root string) {
	if root != "" {
		check(exec.CommandContext(ctx, "find", root, "-type", "f", "-exec", "cat", "{}", "+").Run())
	}
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
