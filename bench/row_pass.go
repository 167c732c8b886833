package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
)

var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark\w+/?(\S*?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op\b.*\s(\d+) allocs/op`)

// passRows has go test measure how long a request that is not for the handler takes
// through it. Of several kinds of requests the slowest counts.
func (b *bench) passRows(ctx context.Context) ([]row, error) {
	kinds, err := b.benchmark(ctx, "BenchmarkNotOurs")
	if err != nil {
		return nil, err
	}
	slowest := slices.MaxFunc(kinds, func(x, y kind) int { return cmp.Compare(median(x.times), median(y.times)) })
	took, allocated := median(slowest.times), 0
	for _, k := range kinds {
		allocated = max(allocated, k.allocated)
	}
	what := "a request that is not ours, through the handler"
	if len(kinds) > 1 {
		what += fmt.Sprintf(" (the slowest of %d kinds: %s)", len(kinds), slowest.name)
	}
	return []row{{
		what:    what,
		ours:    fmt.Sprintf("%.0f ns, %d allocations", took, allocated),
		reach:   "≤ 200 ns, 0 allocations",
		reached: yes(took <= 200 && allocated == 0),
	}}, nil
}

// kind is one sort of request, the nanoseconds that one takes by each run, and the most
// allocations that it makes.
type kind struct {
	name      string
	times     []float64
	allocated int
}

// benchmark has go test run a benchmark of the module's, for kinds of requests.
func (b *bench) benchmark(ctx context.Context, name string) ([]kind, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^"+name+"$", "-benchmem", "-count", strconv.Itoa(b.runs), module)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("running the benchmark: %w\n%s", err, out)
	}
	var kinds []kind
	for _, found := range benchmarkLine.FindAllSubmatch(out, -1) {
		name := string(found[1])
		took, err := strconv.ParseFloat(string(found[2]), 64)
		n, err2 := strconv.Atoi(string(found[3]))
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if at < 0 {
			at = len(kinds)
			kinds = append(kinds, kind{name: name})
		}
		kinds[at].times = append(kinds[at].times, took)
		kinds[at].allocated = max(kinds[at].allocated, n)
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("there is no %s with -benchmem in\n%s", name, out)
	}
	return kinds, nil
}
