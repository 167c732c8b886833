package main

import (
	"context"
	"errors"
	"fmt"
)

// sortedRows have a server list the pages of a sorted source in bounded memory.
func (b *bench) sortedRows(ctx context.Context) ([]*row, error) {
	first := &row{what: number(b.pages) + " pages of a sorted source, `crawl off`, GOMEMLIMIT=1GiB: start to the first 200", show: duration}
	peak := &row{what: "peak memory of it", show: mebibytes, reach: atMost(1 << 30)}
	binary, err := b.build(ctx, "bench/synthetic")
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	for run := range b.runs {
		s, err := b.start(binary, "sorted", addr, site(addr, fmt.Sprintf("sitemap {\ncrawl off\nmax_urls %d\nsource synthetic %d\n}", b.pages, b.pages)), "GOMEMLIMIT=1GiB")
		if err != nil {
			return nil, err
		}
		took, err := s.first(ctx, s.sitemap())
		_, most, err2 := s.memory(ctx)
		if run == 0 && err == nil {
			err = s.verify(ctx, b.pages)
		}
		s.stop()
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		first.add(took)
		peak.add(most)
		b.say("  sorted: %s, %s (%s)", duration(took), mebibytes(most), load())
	}
	return []*row{first, peak}, nil
}
