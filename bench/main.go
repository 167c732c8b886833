// Command bench measures a running Caddy with caddy-sitemap, side by side with what it
// is compared with, and prints a table. It makes what it needs below one work folder,
// which a later run uses again:
//
//	go run ./bench [-only crawl,serving] [-runs 5] [-files 1000000] …
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
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/seed3295b519/caddy-sitemap"
)

const module = "github.com/seed3295b519/caddy-sitemap"

// bench is one run of the program.
type bench struct {
	files int // of the large tree
	sites int // of one server
	runs  int // that a median is taken of
	turn  time.Duration
	work  string

	servers []*server // of the family that is measured
}

// family is rows that are measured together.
type family struct {
	name    string
	measure func(*bench, context.Context) []*row
}

var families = []family{
	{"start", (*bench).startRows},
	{"crawl", (*bench).crawlRows},
	{"serving", (*bench).servingRows},
	{"logs", (*bench).logRows},
	{"sites", (*bench).siteRows},
	{"freshness", (*bench).freshnessRows},
}

func main() {
	isCaddy := len(os.Args) > 1 && slices.Contains([]string{"run", "sitemap"}, os.Args[1])
	if isCaddy {
		caddycmd.Main()
		return
	}
	b := new(bench)
	flag.IntVar(&b.files, "files", 1_000_000, "files of the large tree, for start and crawl")
	flag.IntVar(&b.sites, "sites", 1000, "sites of one server, for sites")
	flag.IntVar(&b.runs, "runs", 5, "runs that a median is taken of")
	flag.DurationVar(&b.turn, "turn", 5*time.Second, "length of a run that counts requests")
	flag.StringVar(&b.work, "dir", filepath.Join(os.TempDir(), "caddy-sitemap-bench"), "the work folder")
	only := flag.String("only", "start,crawl,serving,logs,sites,freshness", "the rows to measure")
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
	if err := b.run(ctx, strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context, only []string) (err error) {
	if flag.NArg() > 0 || min(b.files, b.sites, b.runs) < 1 || b.turn <= 0 {
		return errors.New("there are flags only, and sizes and counts are at least 1")
	}
	b.work, err = filepath.Abs(b.work)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.work, 0o755); err != nil {
		return err
	}
	var all []*row
	var failed []error
	for _, f := range families {
		if !slices.Contains(only, f.name) {
			continue
		}
		begun := time.Now()
		rows, err := b.measure(ctx, f)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", f.name, err))
		}
		all = append(all, rows...)
		b.say("%s took %s (%s)", f.name, duration(time.Since(begun).Seconds()), load())
	}
	fmt.Printf("%s/%s, %d cores, %s; median (least–most) of the runs, of their quotients too; warm cache\n\n%s",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), table(all))
	return errors.Join(failed...)
}

// measure returns the rows of a family, and ends its servers. A check that fails ends it.
func (b *bench) measure(ctx context.Context, f family) (rows []*row, err error) {
	defer func() {
		for _, s := range b.servers {
			s.stop()
		}
		b.servers = nil
	}()
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		failed, isCheck := v.(failure)
		if !isCheck {
			panic(v)
		}
		err = failed
	}()
	return f.measure(b, ctx), nil
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
