// Command bench measures a running Caddy with caddy-sitemap, side by side with what it
// is compared with, and prints a table. It makes what it needs below one work folder,
// which a later run uses again:
//
//	go run ./bench [-only crawl,latency] [-runs 5] [-files 1000000] …
//
// Smaller sizes make a quick run. Timings never make it fail; something that cannot be
// run, or a wrong result, does. It needs /proc and GNU find. It is the Caddy that it
// measures, too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

const module = "github.com/seed3295b519/caddy-sitemap"

// bench is one run of the program.
type bench struct {
	files, small, manuals, linked, pages, sites, runs int
	turn                                              time.Duration
	work, docs                                        string
	days, speed, year                                 int // of virtual time

	mu      sync.Mutex
	servers []*server // of the family that is measured
}

// families are rows that are measured together.
var families = []struct {
	name    string
	measure func(*bench, context.Context) []*row
}{
	{"names", (*bench).nameRows},
	{"crawl", (*bench).crawlRows},
	{"small", (*bench).smallRows},
	{"latency", (*bench).latencyRows},
	{"manuals", (*bench).manualRows},
	{"links", (*bench).linkRows},
	{"rate", (*bench).rateRows},
	{"sorted", (*bench).sortedRows},
	{"sites", (*bench).siteRows},
	{"many", (*bench).manyRows},
	{"parts", (*bench).partRows},
	{"freshness", (*bench).freshnessRows},
	{"year", (*bench).yearRows},
	{"docs", (*bench).docRows},
	{"garbage", (*bench).garbageRows},
}

func main() {
	if len(os.Args) > 1 && slices.Contains([]string{"run", "reload", "sitemap"}, os.Args[1]) {
		caddycmd.Main()
		return
	}
	b := new(bench)
	flag.IntVar(&b.files, "files", 1_000_000, "files of the large tree, for names and crawl")
	flag.IntVar(&b.small, "small", 200_000, "files of the tree for small and latency")
	flag.IntVar(&b.manuals, "manuals", 12_000, "manual pages of 20 to 50 KB")
	flag.IntVar(&b.linked, "linked", 1000, "pages of the proxied site, for links")
	flag.IntVar(&b.pages, "pages", 10_000_000, "pages of the sorted source")
	flag.IntVar(&b.sites, "sites", 1000, "sites of one server, for sites and many")
	flag.IntVar(&b.runs, "runs", 5, "runs that a median is taken of")
	flag.IntVar(&b.days, "days", 1, "virtual days after those in which a site is learnt, for freshness; 0: only what takes minutes")
	flag.IntVar(&b.speed, "speed", 200, "virtual seconds a second, for freshness over days")
	flag.IntVar(&b.year, "year-days", 365, "days of the simulation of a year")
	flag.StringVar(&b.docs, "docs", "", "folders of documentation, for docs, separated by commas; by default, what /usr/share/doc/*/html has")
	flag.DurationVar(&b.turn, "turn", 5*time.Second, "length of a run that counts requests")
	flag.StringVar(&b.work, "dir", filepath.Join(os.TempDir(), "caddy-sitemap-bench"), "the work folder")
	only := flag.String("only", "", "the rows to measure, by default all: names,crawl,small,latency,manuals,links,rate,sorted,sites,many,parts,freshness,year,docs,garbage")
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
	if err := b.run(ctx, strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context, only []string) (err error) {
	if flag.NArg() > 0 || min(b.files, b.small, b.manuals, b.linked, b.pages, b.sites, b.runs, b.speed, b.year) < 1 || b.turn <= 0 {
		return errors.New("there are flags only, and sizes and counts are at least 1")
	}
	if b.work, err = filepath.Abs(b.work); err != nil {
		return err
	}
	if err := os.MkdirAll(b.work, 0o755); err != nil {
		return err
	}
	var all []*row
	var failed []error
	for _, f := range families {
		if only[0] != "" && !slices.Contains(only, f.name) {
			continue
		}
		begun := time.Now()
		func() {
			defer func() {
				for _, s := range b.servers {
					s.stop()
				}
				b.servers = nil
				switch v := recover().(type) {
				case nil:
				case failure:
					failed = append(failed, fmt.Errorf("%s: %w", f.name, v.error))
				default:
					panic(v)
				}
			}()
			all = append(all, f.measure(b, ctx)...)
		}()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.say("%s took %s (%s)", f.name, duration(time.Since(begun).Seconds()), load())
	}
	fmt.Printf("%s/%s, %d cores, %s; median (least–most) of the runs, of their quotients too; warm cache\n\n%s",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), table(all))
	return errors.Join(failed...)
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (b *bench) path(name string) string        { return filepath.Join(b.work, name) }

// load says how busy the machine is, for whoever reads the figures.
func load() string {
	average, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(average), " ")
	return "load " + one
}

// failure ends the rows of a family: check and must panic with it.
type failure struct{ error }

func check(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		panic(failure{err})
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}
