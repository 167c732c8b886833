// Command reader is the parts of caddy-sitemap that read access logs, each in a process
// of its own, so that it can be measured by itself. It reads a log by
//
//	reader parse LOG       the parser, line by line
//	reader follow LOG      all that a server does with a log of https://www.example.com
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: reader parse|follow LOG")
		os.Exit(2)
	}
	result, err := run(os.Args[1], os.Args[2])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reader:", err)
		os.Exit(1)
	}
}

func run(command, argument string) (any, error) {
	switch command {
	case "parse":
		return parse(argument)
	case "follow":
		return follow(argument)
	}
	return nil, fmt.Errorf("unexpected argument '%s'", command)
}

// parsed is how many lines were read, and sums by which two readers can tell whether
// they read the same: of what tells which page was shown, and of the headers.
type parsed struct {
	Lines   int   `json:"lines"`
	Sum     int64 `json:"sum"`
	Headers int64 `json:"headers"`
}

func parse(name string) (parsed, error) {
	var p parsed
	parser, err := accesslog.NewParser(accesslog.Options{})
	if err != nil {
		return p, err
	}
	f, err := os.Open(name)
	if err != nil {
		return p, err
	}
	defer f.Close()
	var v accesslog.Visit
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return p, nil
		}
		if err != nil {
			return p, fmt.Errorf("reading %s: %w", name, err)
		}
		if err := parser.Parse(line[:len(line)-1], &v); err != nil {
			return p, fmt.Errorf("%w: %s", err, line)
		}
		p.Lines++
		p.Sum += int64(v.Status+len(v.URI)+len(v.Host)+len(v.Method)) + v.Time
		p.Headers += int64(len(v.UserAgent) + len(v.ContentType) + len(v.RobotsTag))
	}
}

// followed is what became of the lines.
type followed struct {
	Lines  int64 `json:"lines"`
	Visits int   `json:"visits"`
	Paths  int   `json:"paths"`
}

// atOnce is how many bytes a server reads before it notes how far it has come.
const atOnce = 64 << 20

func follow(name string) (followed, error) {
	parser, err := accesslog.NewParser(accesslog.Options{})
	if err != nil {
		return followed{}, err
	}
	follower := accesslog.NewFollower(accesslog.FollowOptions{Patterns: []string{name}}, accesslog.Positions{})
	defer follower.Close()
	paths := make(map[string]int64)
	cleaner := page.NewCleaner(nil)
	var (
		filter accesslog.Filter
		v      accesslog.Visit
		visits int
	)
	for more := true; more; {
		more, err = follower.Poll(context.Background(), atOnce, func(line []byte) {
			if parser.Parse(line, &v) != nil || filter.Reason(&v) != 0 || v.Host != "www.example.com" {
				return
			}
			if path, ok := cleaner.Clean(v.URI); ok {
				paths[strings.Clone(path)] = v.Time
				visits++
			}
		})
		if err != nil {
			return followed{}, err
		}
	}
	return followed{follower.Stats().Lines, visits, len(paths)}, nil
}
