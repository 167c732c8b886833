package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// trafficRows has go test measure what it adds to a request for a known path that its
// visit is noted.
func (b *bench) trafficRows(ctx context.Context) ([]row, error) {
	kinds, err := b.benchmark(ctx, "BenchmarkWatch")
	if err != nil {
		return nil, err
	}
	on := slices.IndexFunc(kinds, func(k kind) bool { return k.name == "on" })
	off := slices.IndexFunc(kinds, func(k kind) bool { return k.name == "off" })
	if on < 0 || off < 0 {
		return nil, errors.New("there is no BenchmarkWatch/on or off")
	}
	with, without := median(kinds[on].times), median(kinds[off].times)
	allocated := kinds[on].allocated - kinds[off].allocated
	return []row{{
		what:    "`traffic`: what it adds to a request for a page that is known",
		ours:    fmt.Sprintf("%.0f ns, allocations: %d", with-without, allocated),
		other:   fmt.Sprintf("%.0f ns without it", without),
		reach:   "≤ 500 ns, ≤ 1 allocation",
		reached: yes(with-without <= 500 && allocated <= 1),
	}}, nil
}
