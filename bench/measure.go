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
type medians[T time.Duration | float64] struct {
	each   []T
	ratios []float64
	values [][]T // of each by run
}

// ratio is the median of the ratios of one to another in one run.
func (m medians[T]) ratio(of, to int) float64 {
	var ratios []float64
	for run, value := range m.values[of] {
		ratios = append(ratios, float64(value)/float64(m.values[to][run]))
	}
	return median(ratios)
}

// alternate measures each in turn, runs times after one warm-up of all. A load on the
// machine that comes and goes shows in all of a run, and so less in its ratios.
func alternate[T time.Duration | float64](ctx context.Context, b *bench, runs int, each ...func() (T, error)) (medians[T], error) {
	var none medians[T]
	values := make([][]T, len(each))
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
			}
		}
		b.say("  %s %v (%s)", ordinal(run), line, load())
	}
	m := medians[T]{values: values}
	for i := range each {
		m.each = append(m.each, median(values[i]))
	}
	for i := range each {
		m.ratios = append(m.ratios, m.ratio(0, i))
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
