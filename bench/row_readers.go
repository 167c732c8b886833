package main

import (
	"context"
	"fmt"
)

// readersRows has go test measure what it adds to a crawler's fetch of the sitemap that
// it is counted.
func (b *bench) readersRows(ctx context.Context) ([]row, error) {
	d, err := b.difference(ctx, "BenchmarkRead", "counted", "uncounted")
	if err != nil {
		return nil, err
	}
	return []row{{
		what:    "a crawler's fetch counted, over not counted",
		ours:    d.String(),
		other:   fmt.Sprintf("%.0f ns not counted", d.without),
		reach:   "≤ 1 µs, no allocation",
		reached: yes(d.time <= 1000 && d.allocated <= 0),
	}}, nil
}
