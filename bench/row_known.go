package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
)

// restarts is how often a server is killed and started again in one run.
const restarts = 3

// knownRows measures how long asking for a page takes in the background, by HEAD since
// its file was read; what is then kept on disk; and how soon a server that was killed
// serves the same documents again.
func (b *bench) knownRows(ctx context.Context) ([]row, error) {
	const (
		askBound     = 40 * time.Microsecond
		diskBound    = 32
		restartBound = 2 * time.Second
	)
	asking := "asking in the background for a page of " + number(b.files) + " that were read: time on each of half the cores"
	disk := "state on disk of " + number(b.files) + " pages, documents included"
	restart := number(b.files) + " pages: start after kill -9 to the first 200 of `/sitemap.xml`"
	if _, err := processorTime(os.Getpid()); errors.Is(err, errNotHere) {
		return []row{skipped(asking, "≤ 40 µs", err.Error())}, nil
	}
	root, err := b.tree(ctx, b.files)
	if err != nil {
		return nil, err
	}
	var asks, askUses, starts []time.Duration
	var sizes []int64
	for range b.runs {
		k, err := b.known(ctx, root)
		if err != nil {
			return nil, err
		}
		asks, askUses, sizes, starts = append(asks, k.ask), append(askUses, k.askUses), append(sizes, k.size), append(starts, k.starts...)
		b.say("  %v an ask (processor time %v), %d bytes kept, restarts %v (%s)", k.ask, k.askUses, k.size, k.starts, load())
	}
	each := float64(median(sizes)) / float64(b.files)
	askRow := row{
		what: asking, ours: fmt.Sprintf("%s, processor time %s", micros(median(asks)), micros(median(askUses))),
		reach: "≤ 40 µs", reached: yes(median(asks) <= askBound),
	}
	if b.files <= askedFirst {
		askRow = skipped(asking, "≤ 40 µs", "so few pages are asked for before they are listed")
	}
	return []row{askRow, {
		what: disk, ours: mebibytes(median(sizes)), ratio: fmt.Sprintf("%.1f bytes a page", each),
		reach: bytesReach(diskBound), reached: yes(each <= diskBound),
	}, {
		what: restart, ours: seconds(median(starts)),
		reach: "≤ 2 s, the same bytes", reached: yes(median(starts) <= restartBound),
	}}, nil
}

func micros(d time.Duration) string {
	return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
}

// known is what was measured of one server.
type known struct {
	ask, askUses time.Duration // of one page
	size         int64
	starts       []time.Duration
}

func (b *bench) known(ctx context.Context, root string) (known, error) {
	var k known
	pair, err := b.pair(ctx, "known", root, b.files, seldom)
	if err != nil {
		return k, err
	}
	defer pair.stop()
	reports, err := pair.log.first(ctx, b.reportsUntilRead(b.files))
	if err != nil {
		return k, err
	}
	begun, err := pair.processorTime()
	if err != nil {
		return k, err
	}
	read := reports[len(reports)-1]
	if err := pair.ours.quiet(ctx); err != nil {
		return k, err
	}
	ended, err := pair.processorTime()
	if err != nil {
		return k, err
	}
	// The end of asking is when the last of what was learnt was written down.
	_, written, err := stateOnDisk(pair.state)
	if err != nil {
		return k, err
	}
	if asked := time.Duration(b.files - read.Verified); asked > 0 {
		k.ask = written.Sub(read.at()) * time.Duration(max(runtime.NumCPU()/2, 1)) / asked
		k.askUses = (ended - begun) / asked
	}
	before, err := documents(ctx, pair.base)
	if err != nil {
		return k, err
	}
	for range restarts {
		took, err := pair.killed(ctx)
		if err != nil {
			return k, err
		}
		k.starts = append(k.starts, took)
	}
	after, err := documents(ctx, pair.base)
	if err != nil {
		return k, err
	}
	if n := differing(before, after); n > 0 {
		return k, fmt.Errorf("after a restart %d of %d documents are not the same", n, len(before))
	}
	if reports, err = pair.log.first(ctx, 1); err != nil {
		return k, err
	}
	if reports[0].Verified != b.files || reports[0].Pages != b.files {
		return k, fmt.Errorf("not all %d pages were asked for: %+v", b.files, reports[0])
	}
	if err := pair.ours.quiet(ctx); err != nil {
		return k, err
	}
	k.size, _, err = stateOnDisk(pair.state)
	return k, err
}

// killed kills our server, starts it again with the same configuration, and returns
// how long the first 200 took.
func (p *pair) killed(ctx context.Context) (time.Duration, error) {
	if err := p.ours.cmd.Process.Kill(); err != nil {
		return 0, err
	}
	<-p.ours.exited
	ours, err := p.launch()
	if err != nil {
		return 0, err
	}
	p.ours, p.log.server = ours, ours
	return ours.first(ctx, p.base+"/sitemap.xml")
}
