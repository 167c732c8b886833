package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"time"
)

// oneCore has a program of Go run on one core. What each takes of it is the processor
// time of its process, which others on the machine change less than the time on the
// clock.
const oneCore = "GOMAXPROCS=1"

// logRows compares how fast Caddy's JSON is read with what others read of it, and a
// whole log that is read to its end with a grep through it.
func (b *bench) logRows(ctx context.Context) ([]row, error) {
	log, reader, rivals, err := b.readers(ctx, caddyLog)
	if err != nil {
		return nil, err
	}
	what := "Caddy's JSON log of " + number(b.log) + " MB: throughput of the parser over "
	parsing, _, err := b.throughput(ctx, log, reader, rivals, []rival{
		{"json", what + "encoding/json into a struct of the same fields", 10},
		{"gjson", what + "gjson.GetMany of the same fields", 4},
		{"json-maps", what + "encoding/json into a struct with maps of headers", 0},
		{"json-least", what + "encoding/json into a struct of 6 of 15 fields, which tell which page was shown", 0},
		{"gjson-least", what + "gjson.GetMany of these 6", 0},
	})
	if err != nil {
		return nil, err
	}
	whole, err := b.wholeLog(ctx, log, reader)
	return append(parsing, whole...), err
}

// readers makes a log of a kind, and builds what reads it: ours, and what that is
// compared with.
func (b *bench) readers(ctx context.Context, kind logKind) (log, reader, rivals string, err error) {
	if log, err = b.accessLog(ctx, kind, b.log); err != nil {
		return log, "", "", err
	}
	if rivals, err = b.rivals(ctx); err != nil {
		return log, "", rivals, err
	}
	reader, err = b.build(ctx, "bench/reader", "reader")
	return log, reader, rivals, err
}

// combinedRows does it for the Combined format.
func (b *bench) combinedRows(ctx context.Context) ([]row, error) {
	log, reader, rivals, err := b.readers(ctx, combinedLog)
	if err != nil {
		return nil, err
	}
	const bound = 300
	what := "Combined log of " + number(b.log) + " MB: throughput of the parser, over regexp"
	rows, speed, err := b.throughput(ctx, log, reader, rivals, []rival{{"regexp", what, 0}})
	if err != nil {
		return nil, err
	}
	rows[0].reach, rows[0].reached = fmt.Sprintf("≥ %d MB/s", bound), yes(speed >= bound)
	return rows, nil
}

// rival is a way to read a log.
type rival struct {
	name, what string
	bound      float64 // how many times as fast the parser is to be; 0: it is not said
}

// throughput has the parser and its rivals read a log in turn, and compares the
// megabytes that each reads a second of processor time, which it returns of ours, too.
// All are to read the same.
func (b *bench) throughput(ctx context.Context, log, reader, binary string, rivals []rival) ([]row, float64, error) {
	info, err := os.Stat(log)
	if err != nil {
		return nil, 0, err
	}
	var ours parsed
	one := func(p *parsed, command ...string) (float64, error) {
		uses, out, err := b.timedCommand(ctx, command[0], command[1:]...)
		if err == nil {
			err = json.Unmarshal(out, p)
		}
		return math.Round(float64(info.Size()) / 1e6 / uses.processor.Seconds()), err
	}
	each := []func() (float64, error){func() (float64, error) { return one(&ours, reader, "parse", log) }}
	for _, r := range rivals {
		each = append(each, func() (float64, error) {
			var theirs parsed
			speed, err := one(&theirs, binary, r.name, log)
			if err == nil && (theirs.Lines != ours.Lines || theirs.Sum != ours.Sum || theirs.Headers != 0 && theirs.Headers != ours.Headers) {
				err = fmt.Errorf("%s reads %+v, and the parser %+v", r.name, theirs, ours)
			}
			return speed, err
		})
	}
	m, err := alternate(ctx, b, b.runs, each...)
	if err != nil {
		return nil, 0, err
	}
	var rows []row
	for i, r := range rivals {
		ratio := m.ratios[i+1]
		measured := row{what: r.what, ours: rate(m.each[0]), other: rate(m.each[i+1]), ratio: fmt.Sprintf("%.1f", ratio)}
		if r.bound > 0 {
			measured.reach, measured.reached = fmt.Sprintf("≥ %v", r.bound), yes(ratio >= r.bound)
		}
		rows = append(rows, measured)
	}
	return rows, m.each[0], nil
}

// parsed is what a reader says of a log: how many lines there are, and sums of what they
// say.
type parsed struct {
	Lines        int
	Sum, Headers int64
}

// wholeLog compares all that is done with a log with a grep: in a process that does
// nothing else, and in a server.
func (b *bench) wholeLog(ctx context.Context, log, reader string) ([]row, error) {
	const bound = 3.5
	what := "the same log read to the end, over `grep -c '\"status\":200'`"
	if _, _, err := b.timedCommand(ctx, "grep", "-c", `"status":200`, log); err != nil {
		return []row{skipped(what, fmt.Sprintf("≤ %v", bound), "there is no grep")}, nil
	}
	var said struct{ Lines, Visits, Paths int }
	alone := func() (time.Duration, error) {
		uses, out, err := b.timedCommand(ctx, reader, "follow", log)
		if err != nil {
			return 0, err
		}
		return uses.processor, json.Unmarshal(out, &said)
	}
	grep := func() (time.Duration, error) {
		uses, _, err := b.timedCommand(ctx, "grep", "-c", `"status":200`, log)
		return uses.processor, err
	}
	each := []func() (time.Duration, error){alone, grep}
	if _, err := processorTime(os.Getpid()); !errors.Is(err, errNotHere) {
		each = append(each, func() (time.Duration, error) { return b.logServer(ctx, log, &said.Visits) })
	}
	m, err := alternate(ctx, b, b.runs, each...)
	if err != nil {
		return nil, err
	}
	b.say("  %s lines, %s visits that count, %s paths", number(said.Lines), number(said.Visits), number(said.Paths))
	rows := []row{over(what+": parser, filter and catalog", m, bound)}
	if len(each) > 2 {
		rows = append(rows, oneOver("the same by a server, above one without the log", m, 2, 1, bound))
	}
	return rows, nil
}

// logServer starts a server on one core that reads a log, and returns the processor time
// until it has, above that of a server that need not. It is to count as many visits.
func (b *bench) logServer(ctx context.Context, log string, visits *int) (time.Duration, error) {
	without, _, err := b.logReader(ctx, os.DevNull)
	if err != nil {
		return 0, err
	}
	uses, read, err := b.logReader(ctx, log)
	if err == nil && read.Visits != *visits {
		err = fmt.Errorf("a server counts %d visits instead of %d", read.Visits, *visits)
	}
	b.say("  the server says that it took %s", seconds(time.Duration(read.Duration*float64(time.Second))))
	return uses - without, err
}

// logRead is what a server says when it has read a log.
type logRead struct {
	Message  string  `json:"msg"`
	Visits   int     `json:"visits"`
	Duration float64 `json:"duration"` // in seconds
}

// logReader starts a server on one core that reads a log, and returns what it
// has used by then.
func (b *bench) logReader(ctx context.Context, log string) (time.Duration, logRead, error) {
	s, said, err := b.logSite(ctx, "admin off", log)
	if err != nil {
		return 0, logRead{}, err
	}
	defer s.stop()
	read, err := untilRead(ctx, s, said)
	if err != nil {
		return 0, read, err
	}
	uses, err := processorTime(s.pid())
	return uses, read, err
}

// logSite starts a server on one core for a site whose pages an access log tells of, and
// says where its log lines are.
func (b *bench) logSite(ctx context.Context, global, log string) (*server, string, error) {
	binary, err := b.caddy(ctx)
	if err != nil {
		return nil, "", err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, "", err
	}
	state, err := b.emptyState("logs")
	if err != nil {
		return nil, "", err
	}
	said := b.path("logs.log")
	if err := os.Remove(said); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, "", err
	}
	site := fmt.Sprintf("http://%s {\nbind 127.0.0.1\n%s\nrespond \"<title>front page</title>\"\n}\n", addr,
		directive(seldom, "base_url https://"+loggedHost, "access_log "+quote(log)+" {\nhistory 36500d\n}"))
	s, err := b.launch(binary, "logs.caddyfile", caddyfile(state, global+"\n"+refreshLog(said), site), oneCore)
	return s, said, err
}

// untilRead waits until a server says that it has read its logs.
func untilRead(ctx context.Context, s *server, said string) (logRead, error) {
	for {
		lines, err := os.ReadFile(said)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return logRead{}, err
		}
		for line := range bytes.Lines(lines) {
			var read logRead
			if json.Unmarshal(line, &read) == nil && read.Message == "access log read" {
				return read, nil
			}
		}
		select {
		case <-s.exited:
			return logRead{}, s.died("the server ended")
		default:
		}
		if time.Since(s.begun) > longestStart {
			return logRead{}, s.died("no log was read")
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return logRead{}, err
		}
	}
}

// rivals builds what the parsers are compared with, a module of its own.
func (b *bench) rivals(ctx context.Context) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", module, err)
	}
	binary := b.path("rivals.exe")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	cmd.Dir = strings.TrimSpace(string(dir)) + "/bench/rivals"
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building bench/rivals: %w\n%s", err, out)
	}
	return binary, nil
}

// timedCommand runs a command on one core and returns what it wrote.
func (b *bench) timedCommand(ctx context.Context, name string, args ...string) (used, []byte, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), oneCore)
	cmd.Stdout = &out
	uses, err := timed(cmd)
	return uses, out.Bytes(), err
}
