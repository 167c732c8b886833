package main

import (
	"context"
	"fmt"
	"slices"
)

// trafficRows has go test measure what it adds to a request for a known path that its
// visit is noted.
func (b *bench) trafficRows(ctx context.Context) ([]row, error) {
	d, err := b.difference(ctx, "BenchmarkWatch", "on", "off")
	if err != nil {
		return nil, err
	}
	return []row{{
		what:    "`traffic`: what it adds to a request for a page that is known",
		ours:    d.String(),
		other:   fmt.Sprintf("%.0f ns without it", d.without),
		reach:   "≤ 500 ns, ≤ 1 allocation",
		reached: yes(d.time <= 500 && d.allocated <= 1),
	}}, nil
}

// difference is what something adds to an operation.
type difference struct {
	time      float64 // nanoseconds
	without   float64 // of the operation
	allocated int
}

func (d difference) String() string {
	return fmt.Sprintf("%.0f ns, allocations: %d", d.time, d.allocated)
}

// difference has go test run a benchmark, and compares two of its kinds.
func (b *bench) difference(ctx context.Context, benchmark, with, without string) (difference, error) {
	kinds, err := b.benchmark(ctx, benchmark)
	if err != nil {
		return difference{}, err
	}
	on := slices.IndexFunc(kinds, func(k kind) bool { return k.name == with })
	off := slices.IndexFunc(kinds, func(k kind) bool { return k.name == without })
	if on < 0 || off < 0 {
		return difference{}, fmt.Errorf("there is no %s/%s or %s", benchmark, with, without)
	}
	d := difference{without: median(kinds[off].times), allocated: kinds[on].allocated - kinds[off].allocated}
	d.time = median(kinds[on].times) - d.without
	return d, nil
}
