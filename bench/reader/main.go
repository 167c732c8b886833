// Command reader is the parts of caddy-sitemap that read access logs, each in a process
// of its own, so that it can be measured by itself. It reads a log by
//
//	reader parse LOG       the parser, line by line
//	reader follow LOG      all that a server does with a log of https://www.example.com
//	reader paths NUMBER    no log: how many bytes of heap each of so many paths takes
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/discover"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: reader parse|follow LOG, or reader paths NUMBER")
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
	case "paths":
		n, err := strconv.Atoi(argument)
		if err != nil {
			return nil, err
		}
		return paths(n)
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
		p.Sum += int64(v.Status+len(v.URI)+len(v.Host)+len(v.Method)+len(v.Client)) + v.Time
		p.Headers += int64(len(v.UserAgent) + len(v.ContentType) + len(v.CacheControl) + len(v.RobotsTag) + len(v.ETag) + len(v.LastModified))
		if v.Cookie {
			p.Headers++
		}
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
	catalog := discover.NewCatalog()
	var (
		filter  discover.Filter
		cleaner discover.Cleaner
		v       accesslog.Visit
		visits  int
	)
	for more := true; more; {
		more, err = follower.Poll(context.Background(), atOnce, func(line []byte) {
			if parser.Parse(line, &v) != nil || filter.Reason(&v) != 0 || v.Host != "www.example.com" {
				return
			}
			if path, ok := cleaner.Clean(v.URI); ok {
				catalog.Visit(discover.FromLog, path, v.Time, v.Client, uint32(len(v.ETag)))
				visits++
			}
		})
		if err != nil {
			return followed{}, err
		}
	}
	return followed{follower.Stats().Lines, visits, catalog.Stats().Paths}, nil
}

// kept is what paths cost.
type kept struct {
	Paths  int     `json:"paths"`
	Linked int     `json:"linked"`
	Length float64 `json:"length"` // of a path, on average
	Heap   float64 `json:"heap"`   // that lives on after a collection, a path
}

// paths has a catalog know so many paths of 40 to 60 bytes, all of which visitors had,
// and a page of the site links to.
func paths(n int) (kept, error) {
	before := liveHeap()
	catalog := discover.NewCatalog()
	catalog.Configure(discover.Options{MaxPaths: max(n, discover.DefaultMaxPaths)})
	length := 0
	const day = 1_790_000_000
	for i := range n {
		path := pathOf(i)
		length += len(path)
		catalog.Visit(discover.FromLog, path, day+int64(i%86400), "192.0.2.1", uint32(i)*2654435761)
	}
	const onPage = 100
	round := catalog.Round(1, true)
	for from := 0; from < n; from += onPage {
		var links []string
		for i := from; i < min(from+onPage, n); i++ {
			links = append(links, pathOf(i))
		}
		round.Page(0, "/", links)
	}
	round.End(day + 86400)
	stats := catalog.Stats()
	k := kept{stats.Paths, stats.Linked, float64(length) / float64(n), float64(liveHeap()-before) / float64(n)}
	runtime.KeepAlive(round)
	if k.Paths != n || k.Linked != n {
		return k, errors.New("not all paths are known and linked")
	}
	runtime.KeepAlive(catalog)
	return k, nil
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

var (
	sections = []string{"news", "articles", "products", "guides", "people", "archive", "places", "opinion"}
	words    = []string{"winter", "summer", "kitchen", "garden", "music", "river", "market", "bridge", "island", "museum", "coffee", "railway", "harbour", "library", "mountain", "theatre"}
)

// pathOf is a path like that of an article, each of a pattern of its own.
func pathOf(i int) string {
	var b strings.Builder
	n := uint64(i) * 0x9E3779B97F4A7C15 >> 16
	fmt.Fprintf(&b, "/%s/%d/", sections[n%8], 2005+n>>3%20)
	for range 4 {
		n >>= 7
		b.WriteString(words[n%16] + "-")
	}
	for ; i > 0 || b.Len() < 40; i /= 26 {
		b.WriteByte('a' + byte(i%26))
	}
	return b.String()
}
