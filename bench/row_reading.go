package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
)

// readingRows compares the first refresh that has read every page with a grep that
// does. A large site is listed by name before that; the second report ends it.
func (b *bench) readingRows(ctx context.Context) ([]row, error) {
	what := number(b.files) + " files of 500 bytes: start to the end of the first refresh that read every page, over `grep -rlI noindex`"
	if why := noGrep(); why != "" {
		return []row{skipped(what, "≤ 4.0", why)}, nil
	}
	root, err := b.tree(ctx, b.files)
	if err != nil {
		return nil, err
	}
	fewest := b.files
	m, err := alternate(ctx, b, b.runs, func() (time.Duration, error) {
		pair, err := b.pair(ctx, "reading", root, b.files, seldom)
		if err != nil {
			return 0, err
		}
		defer pair.stop()
		reports, err := pair.log.first(ctx, b.reportsUntilRead(b.files))
		if err != nil {
			return 0, err
		}
		uses, err := pair.processorTime()
		if err != nil && !errors.Is(err, errNotHere) {
			return 0, err
		}
		listed, err := pair.checkDates(ctx)
		b.say("  %s pages are listed, all with dates; processor time %v", number(listed), uses)
		fewest = min(fewest, listed)
		return reports[len(reports)-1].at().Sub(pair.ours.begun), err
	}, func() (time.Duration, error) {
		return grep(ctx, root)
	})
	if err != nil {
		return nil, err
	}
	r := over(what, m, 4)
	if fewest < b.files {
		r.ours += fmt.Sprintf(", only %s listed by then", number(fewest))
	}
	return []row{r}, nil
}

// askedFirst is how many pages a site has at most that is not listed by name before
// its pages are read.
const askedFirst = 10_000

func (b *bench) reportsUntilRead(pages int) int {
	if pages > askedFirst {
		return 2
	}
	return 1
}

// noGrep says why there is no grep to compare with; "": there is one.
func noGrep() string {
	if exec.Command("grep", "-rlI", "x", ".").Run() != nil {
		return "grep is not installed, or has no -I"
	}
	return ""
}

// grep reads all files of a tree, none of which has what it looks for.
func grep(ctx context.Context, root string) (time.Duration, error) {
	begun := time.Now()
	out, err := exec.CommandContext(ctx, "grep", "-rlI", "noindex", root).Output()
	took := time.Since(begun)
	var status *exec.ExitError
	if errors.As(err, &status) && status.ExitCode() == 1 && len(out) == 0 {
		return took, nil
	}
	return 0, fmt.Errorf("running grep: it was to find nothing, and to say so: %w", err)
}

// manualPages is so many pages of 20 to 50 KB that a site of them is listed by name
// first, and reading them is timed by itself.
const (
	manualPages  = 12_000
	readingBound = 120
)

// pagesRows measures how many megabytes of pages of a usual size are read a second: by
// a server, from the end of the first refresh to that of the second, and by our reader
// alone, as many of it at a time as there are cores.
func (b *bench) pagesRows(ctx context.Context) ([]row, error) {
	what := number(manualPages) + " manual pages of 20 to 50 KB: MB a second in the refresh that reads them"
	root, err := b.treeOf(ctx, manuals, manualPages)
	if err != nil {
		return nil, err
	}
	total := 0
	for i := range manualPages {
		total += len(manual(i))
	}
	megabytes := float64(total) / 1e6
	each := []func() (float64, error){func() (float64, error) {
		pair, err := b.pair(ctx, "pages", root, manualPages, seldom)
		if err != nil {
			return 0, err
		}
		defer pair.stop()
		reports, err := pair.log.first(ctx, 2)
		if err != nil {
			return 0, err
		}
		return megabytes / reports[1].at().Sub(reports[0].at()).Seconds(), nil
	}}
	if noGrep() == "" {
		what += ", beside `grep -rlI noindex`"
		each = append(each, func() (float64, error) {
			took, err := grep(ctx, root)
			return megabytes / took.Seconds(), err
		})
	}
	m, err := alternate(ctx, b, b.runs, each...)
	if err != nil {
		return nil, err
	}
	r := row{what: what, ours: rate(m.each[0]), reach: fmt.Sprintf("≥ %d MB/s", readingBound), reached: yes(m.each[0] >= readingBound)}
	if len(each) > 1 {
		r.other, r.ratio = rate(m.each[1]), fmt.Sprintf("%.2f", m.ratios[1])
	}
	alone, err := b.readerAlone(ctx)
	return []row{r, alone}, err
}

func rate(megabytes float64) string { return fmt.Sprintf("%.0f MB/s", megabytes) }

// readerAlone has as many readers as there are cores read such pages from memory.
func (b *bench) readerAlone(ctx context.Context) (row, error) {
	var pages [][]byte
	for i := range 200 {
		pages = append(pages, manual(i))
	}
	var rates []float64
	for range b.runs {
		var total atomic.Int64
		var group sync.WaitGroup
		begun := time.Now()
		until := begun.Add(time.Duration(b.seconds * float64(time.Second)))
		for range runtime.NumCPU() {
			group.Go(func() {
				reader := htmlmeta.NewParser(htmlmeta.Options{})
				for i := 0; time.Now().Before(until) && ctx.Err() == nil; i = (i + 1) % len(pages) {
					reader.Parse(pages[i], htmlmeta.Page{Base: insertBase, Path: pagePath(i), Now: begun})
					total.Add(int64(len(pages[i])))
				}
			})
		}
		group.Wait()
		rates = append(rates, float64(total.Load())/1e6/time.Since(begun).Seconds())
	}
	return row{
		what: "the same pages from memory, by our reader alone on all cores",
		ours: rate(median(rates)), reach: fmt.Sprintf("≥ %d MB/s", readingBound), reached: yes(median(rates) >= readingBound),
	}, ctx.Err()
}
