package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// clock is one of so many virtual seconds a second. The applications that are measured go by it, and the Caddy in front
// of them.
type clock struct {
	epoch time.Time // when both times were the same
	speed int64
}

// now returns the virtual time.
func (c clock) now() time.Time {
	return c.epoch.Add(time.Since(c.epoch) * time.Duration(c.speed))
}

// until waits for a virtual time.
func (c clock) until(ctx context.Context, at time.Time) {
	select {
	case <-time.After(at.Sub(c.now()) / time.Duration(c.speed)):
	case <-ctx.Done():
		panic(failure{ctx.Err()})
	}
}

// env has a fast Caddy go by this clock.
func (c clock) env() []string {
	return []string{fmt.Sprintf("BENCH_EPOCH=%d", c.epoch.UnixNano()), fmt.Sprintf("BENCH_SPEED=%d", c.speed)}
}

// fastClock is what a fast Caddy has besides in Go's package time. Deadlines of connections and time.Sleep stay real.
const fastClock = `package time

import "syscall"

var clockSpeed = clockSetting("BENCH_SPEED", 1)
var clockEpoch = clockSetting("BENCH_EPOCH", 0)
var clockNano = runtimeNano()

func clockSetting(name string, otherwise int64) int64 {
	value, _ := syscall.Getenv(name)
	n, err := atoi(value)
	if err != nil {
		return otherwise
	}
	return int64(n)
}

func fastNano() int64 { return clockNano + (runtimeNano()-clockNano)*clockSpeed }

func fastNow() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = runtimeNow()
	at := clockEpoch + (sec*1e9+int64(nsec)-clockEpoch)*clockSpeed
	return at / 1e9, int32(at % 1e9), clockNano + (mono-clockNano)*clockSpeed
}
`

// fastEdits are what changes in Go's own files: readings of the clock are multiplied, and what timers wait is divided.
var fastEdits = map[string][]string{
	"time.go": {
		"subMono(runtimeNano()-startNano", "subMono(fastNano()-startNano",
		"t.ext, runtimeNano()-startNano", "t.ext, fastNano()-startNano",
		"= runtimeNano() - 1", "= clockNano - 1",
		"mono := runtimeNow()", "mono := fastNow()",
	},
	"sleep.go": {"runtimeNano() + int64(d)", "runtimeNano() + int64(d)/clockSpeed"},
	"tick.go":  {"when(d), int64(d)", "when(d), max(int64(d)/clockSpeed, 1)"},
}

// fast builds this program with a package time that goes by a [clock], and returns its path. Nothing else differs: what
// is measured does not know of it.
func (b *bench) fast(ctx context.Context) string {
	dir := b.path("fast")
	check(os.MkdirAll(dir, 0o755))
	from := filepath.Join(strings.TrimSpace(run(ctx, "go", "env", "GOROOT")), "src", "time")
	replace := map[string]string{filepath.Join(from, "fast.go"): filepath.Join(dir, "fast.go.txt")}
	check(os.WriteFile(filepath.Join(dir, "fast.go.txt"), []byte(fastClock), 0o644))
	for name, edits := range fastEdits {
		text := string(must(os.ReadFile(filepath.Join(from, name))))
		for i := 0; i < len(edits); i += 2 {
			if !strings.Contains(text, edits[i]) {
				check(fmt.Errorf("%s of this Go has no %q", name, edits[i]))
			}
		}
		edited := strings.NewReplacer(edits...).Replace(text)
		replace[filepath.Join(from, name)] = filepath.Join(dir, name+".txt")
		check(os.WriteFile(filepath.Join(dir, name+".txt"), []byte(edited), 0o644))
	}
	overlay := filepath.Join(dir, "overlay.json")
	check(os.WriteFile(overlay, must(json.Marshal(map[string]any{"Replace": replace})), 0o644))
	binary := filepath.Join(dir, "caddy")
	run(ctx, "go", "build", "-overlay", overlay, "-o", binary, module+"/bench")
	return binary
}

// run runs a command, and returns what it wrote.
func run(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		check(fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out))
	}
	return string(out)
}
