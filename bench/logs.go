package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// logRows have go test measure what a server does in nanoseconds for each request, and each line of a log.
func (b *bench) logRows(ctx context.Context) []*row {
	pass := &row{what: "a request that is not ours, through the handler", show: duration, reach: atMost(200e-9)}
	parse := &row{what: "a line of Caddy's access log parsed, over encoding/json", show: duration, reach: atMost(1.0 / 3)}
	for range b.runs {
		took := must(benchmark(ctx, module, "Pass"))
		pass.add(took["Pass"])
		took = must(benchmark(ctx, module+"/internal/visits", "ParseJSON|EncodingJSON"))
		parse.add(took["ParseJSON"], took["EncodingJSON"])
	}
	return []*row{pass, parse}
}

var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark(\w+)\S*\s+\d+\s+([\d.]+) ns/op`)

// benchmark returns the seconds of an operation of each of a package's benchmarks.
func benchmark(ctx context.Context, pkg, names string) (map[string]float64, error) {
	out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark("+names+")$", pkg).CombinedOutput()
	took := make(map[string]float64)
	for _, line := range benchmarkLine.FindAllStringSubmatch(string(out), -1) {
		nanoseconds, _ := strconv.ParseFloat(line[2], 64)
		took[line[1]] = nanoseconds / 1e9
	}
	if err != nil || len(took) == 0 {
		return nil, fmt.Errorf("running the benchmarks %s of %s: %w\n%s", names, pkg, err, out)
	}
	return took, nil
}
