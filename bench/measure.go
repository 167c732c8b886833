package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

var errNotHere = errors.New("this system does not tell")

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// medians is what alternate measured: of each, and of the ratios of the first to each
// in one run.
type medians[T any] struct {
	each   []T
	ratios []float64
}

// alternate measures each in turn, runs times after one warm-up of all. A load on the
// machine that comes and goes shows in all of a run, and so less in its ratios.
func alternate[T time.Duration | float64](ctx context.Context, b *bench, runs int, each ...func() (T, error)) (medians[T], error) {
	var none medians[T]
	values, ratios := make([][]T, len(each)), make([][]float64, len(each))
	for run := range runs + 1 {
		line := make([]T, len(each))
		for i, measure := range each {
			var err error
			if line[i], err = measure(); err != nil {
				return none, err
			}
			if ctx.Err() != nil {
				return none, ctx.Err()
			}
			if run > 0 {
				values[i] = append(values[i], line[i])
				ratios[i] = append(ratios[i], float64(line[0])/float64(line[i]))
			}
		}
		b.say("  %s %v (%s)", ordinal(run), line, load())
	}
	var m medians[T]
	for i := range each {
		m.each, m.ratios = append(m.each, median(values[i])), append(m.ratios, median(ratios[i]))
	}
	return m, nil
}

func ordinal(run int) string {
	if run == 0 {
		return "warm-up"
	}
	return fmt.Sprintf("run %d", run)
}

// sleep waits unless the context ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
