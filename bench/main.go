// Command bench measures caddy-sitemap side by side with others and prints a table
// of ratios. It makes what it needs below one work folder, which a later run uses
// again:
//
//	go run ./bench [-files 1000000] [-small 100000] [-pages 10000000] [-inserts 1000] [-log 1000] [-runs 5] [-only start,rate]
//
// Timings never make it fail; something that cannot be run, or a wrong result, does.
// What is not installed, or cannot be measured on this system, is named as skipped.
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
	"time"
)

type options struct {
	files   int
	small   int
	pages   int
	inserts int
	log     int
	runs    int
	seconds float64
	only    string
	dir     string
	install bool
	schema  string
}

// family is one or more rows of the table that are measured together.
type family struct {
	name string
	run  func(*bench, context.Context) ([]row, error)
}

var families = []family{
	{"start", (*bench).startRows},
	{"generator", (*bench).generatorRows},
	{"build", (*bench).buildRows},
	{"reading", (*bench).readingRows},
	{"pages", (*bench).pagesRows},
	{"refresh", (*bench).refreshRows},
	{"deployment", (*bench).deploymentRows},
	{"known", (*bench).knownRows},
	{"memory", (*bench).memoryRows},
	{"large", (*bench).largeRows},
	{"inserts", (*bench).insertRows},
	{"rate", (*bench).rateRows},
	{"pass", (*bench).passRows},
	{"logs", (*bench).logRows},
	{"combined", (*bench).combinedRows},
	{"traffic", (*bench).trafficRows},
	{"readers", (*bench).readersRows},
	{"proxied", (*bench).proxiedRows},
	{"links", (*bench).linksRows},
	{"check", (*bench).checkRows},
}

func main() {
	var o options
	flag.IntVar(&o.files, "files", 1_000_000, "files of the large tree")
	flag.IntVar(&o.small, "small", 100_000, "files of the small tree, for the generator")
	flag.IntVar(&o.pages, "pages", 10_000_000, "pages of the synthetic source")
	flag.IntVar(&o.inserts, "inserts", 1000, "single pages added to as many pages as the large tree has")
	flag.IntVar(&o.log, "log", 1000, "megabytes of each access log")
	flag.IntVar(&o.runs, "runs", 5, "runs that a median is taken of")
	flag.Float64Var(&o.seconds, "seconds", 5, "length of a run that counts requests")
	flag.StringVar(&o.only, "only", "", "the rows to measure, separated by commas: "+strings.Join(familyNames(), ", "))
	flag.StringVar(&o.dir, "dir", filepath.Join(os.TempDir(), "caddy-sitemap-bench"), "the work folder")
	flag.BoolVar(&o.install, "install", false, "install static-sitemap-cli below the work folder with npm, if it is not there")
	flag.StringVar(&o.schema, "schema", "", "the XML schema of sitemaps, for xmllint")
	flag.Parse()
	if err := check(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	// Whoever interrupts a run wants its servers to end, too.
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func familyNames() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

func check(o options) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument '%s'", flag.Arg(0))
	}
	if min(o.files, o.small, o.pages, o.inserts, o.log, o.runs) < 1 || o.seconds <= 0 {
		return errors.New("sizes and counts are at least 1")
	}
	for _, name := range wanted(o) {
		if !slices.Contains(familyNames(), name) {
			return fmt.Errorf("-only: there is no '%s'; there are %s", name, strings.Join(familyNames(), ", "))
		}
	}
	return nil
}

func wanted(o options) []string {
	if o.only == "" {
		return familyNames()
	}
	return strings.Split(o.only, ",")
}

func run(ctx context.Context, o options) error {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	b := &bench{options: o, work: dir}
	if err := os.MkdirAll(b.work, 0o755); err != nil {
		return err
	}
	var rows []row
	var failed []error
	for _, f := range families {
		if !slices.Contains(wanted(o), f.name) {
			continue
		}
		b.say("%s … (%s)", f.name, load())
		begun := time.Now()
		measured, err := f.run(b, ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rows = append(rows, measured...)
		if err != nil {
			b.say("%s failed: %v", f.name, err)
			failed = append(failed, fmt.Errorf("%s: %w", f.name, err))
			continue
		}
		b.say("%s took %s", f.name, seconds(time.Since(begun)))
	}
	if len(rows) > 0 {
		fmt.Printf("%s/%s, %d cores, %s; medians of %d runs, of the ratios, too, after one warm-up; warm cache\n\n%s",
			runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), o.runs, table(rows))
	}
	return errors.Join(failed...)
}

// bench is one run of the program.
type bench struct {
	options
	work string
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (b *bench) path(elements ...string) string {
	return filepath.Join(append([]string{b.work}, elements...)...)
}
