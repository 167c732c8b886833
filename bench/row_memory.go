package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// memoryRows measures, a page, the heap that lives on after a collection and the most
// memory that was ever resident, once all pages were read and asked for and a refresh
// has changed nothing; and the same of a server that lists them by name alone. What a
// Caddy without the directive has is taken off.
func (b *bench) memoryRows(ctx context.Context) ([]row, error) {
	root, err := b.tree(ctx, b.files)
	if err != nil {
		return nil, err
	}
	_, err = peakMemory(os.Getpid())
	peakTold := !errors.Is(err, errNotHere)
	pause, err := b.pause(ctx, root, b.files)
	if err != nil {
		return nil, err
	}
	rows, err := b.memoryOf(ctx, root, pause, peakTold)
	if err != nil {
		return nil, err
	}
	byName, err := b.memoryOf(ctx, root, pause, peakTold, "crawl off")
	return append(rows, byName...), err
}

// memoryOf measures it for a server with these settings.
func (b *bench) memoryOf(ctx context.Context, root string, pause int, peakTold bool, settings ...string) ([]row, error) {
	var heaps, idleHeaps, peaks, idlePeaks []int64
	for range b.runs {
		m, err := b.memory(ctx, root, pause, peakTold, settings...)
		if err != nil {
			return nil, err
		}
		heaps, idleHeaps = append(heaps, m.heap), append(idleHeaps, m.idleHeap)
		peaks, idlePeaks = append(peaks, m.peak), append(idlePeaks, m.idlePeak)
		b.say("  heap %s beside %s, peak %s beside %s", mebibytes(m.heap), mebibytes(m.idleHeap), mebibytes(m.peak), mebibytes(m.idlePeak))
	}
	const heapBound, peakBound = 64, 256
	heap := "live heap after a collection, above a Caddy without the directive, a page"
	peak := "peak resident memory above it, a page"
	for _, s := range settings {
		heap, peak = heap+", with `"+s+"`", peak+", with `"+s+"`"
	}
	rows := []row{b.perPage(heap, median(heaps), median(idleHeaps), heapBound)}
	if !peakTold {
		return append(rows, skipped(peak, bytesReach(peakBound), errNotHere.Error())), nil
	}
	return append(rows, b.perPage(peak, median(peaks), median(idlePeaks), peakBound)), nil
}

func (b *bench) perPage(what string, ours, idle int64, bound float64) row {
	each := float64(ours-idle) / float64(b.files)
	return row{what, mebibytes(ours), mebibytes(idle), fmt.Sprintf("%.1f bytes", each), bytesReach(bound), yes(each <= bound)}
}

func bytesReach(bound float64) string { return fmt.Sprintf("≤ %.0f bytes", bound) }

type memory struct{ heap, idleHeap, peak, idlePeak int64 }

func (b *bench) memory(ctx context.Context, root string, pause int, peakTold bool, settings ...string) (memory, error) {
	var m memory
	pair, err := b.pair(ctx, "memory", root, b.files, pause, settings...)
	if err != nil {
		return m, err
	}
	defer pair.stop()
	verified := b.files
	if len(settings) > 0 {
		verified = 0
	}
	if err := pair.settle(ctx, verified); err != nil {
		return m, err
	}
	if peakTold {
		if m.peak, err = peakMemory(pair.ours.pid()); err != nil {
			return m, err
		}
		if m.idlePeak, err = peakMemory(pair.idle.pid()); err != nil {
			return m, err
		}
	}
	if m.heap, err = liveHeap(ctx, pair.oursAdmin); err != nil {
		return m, err
	}
	m.idleHeap, err = liveHeap(ctx, pair.idleAdmin)
	return m, err
}

// liveHeap asks an admin endpoint for the heap after a collection: after two, since
// what lies in a pool survives the first one.
func liveHeap(ctx context.Context, admin string) (int64, error) {
	var profile []byte
	for range 2 {
		var err error
		if profile, err = fetch(ctx, "http://"+admin+"/debug/pprof/heap?gc=1&debug=1"); err != nil {
			return 0, err
		}
	}
	for line := range strings.Lines(string(profile)) {
		if value, ok := strings.CutPrefix(line, "# HeapAlloc = "); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, errors.New("the heap profile has no HeapAlloc")
}
