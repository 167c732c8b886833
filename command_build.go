package sitemap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"
)

// buildFlags are what is given to the build command.
type buildFlags struct {
	buildConfig
	buildOutput
	quiet bool
	json  bool
}

func buildCommand() *cobra.Command {
	var f buildFlags
	cmd := &cobra.Command{
		Use:   "build --root <folder> --base-url <url> [--out <folder>] [--config <file>] [--gzip]",
		Short: "Writes a site's sitemap into a folder, without a server",
		Long: `
Writes what the sitemap handler would serve (the index, the shards and robots.txt), for
static hosting and CI. The site is a folder that a file server serves at a URL, or each
site of a configuration that has the handler. Nothing listens. All pages are fetched in
memory, as an anonymous visitor, before they are listed, unless --crawl is off.

The files are written into --out, by default the root itself. With several sites, each
gets its own folder there, such as example.com or localhost_8080/docs. Each file is
written under a temporary name and then renamed, shards first, then the index, then
robots.txt; unchanged files are left alone. Shards that are no longer needed are removed.
A file that no build wrote is replaced only with --force. robots.txt is the site's own
with the Sitemap line; it is never removed.

A build with no pages, or with less than half of the pages of the last one, writes nothing
and fails; --force writes the latter. The exit status is 0, 1 if the build failed, or 2
for invalid usage: flags that are unknown or do not go together, or a --root that is not a
folder.

Nothing is remembered from one build to the next, unless --state names a folder for it:
then lastmod says since when the text of a page is unchanged, and unchanged pages are not
fetched again. The state of the configuration is not used, as a running server may have
it. Pages that only visitors showed, in access logs or traffic, are not known to a build.`,
		Example: "  $ caddy sitemap build --root public --base-url https://example.com",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("crawl") && f.config != "" {
				f.crawl = ""
			}
			if err := f.checkAll(args); err != nil {
				return fail(cmd, errors.Join(err, f.refuse(cmd.OutOrStdout(), err)))
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // who interrupts it again means it
			return f.run(ctx, cmd.OutOrStdout(), os.Stderr)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.root, "root", "", "The site's folder; with --config, it replaces the one root there")
	flags.StringVar(&f.baseURL, "base-url", "", "The URL at which the folder is served, such as https://example.com/docs")
	flags.StringVarP(&f.out, "out", "o", "", "Where the files are written (default: the root)")
	flags.StringVarP(&f.config, "config", "c", "", "A configuration whose sites are built")
	flags.StringVarP(&f.adapter, "adapter", "a", "", "The config adapter for it")
	flags.StringVar(&f.crawl, "crawl", "on", "Whether pages are fetched: on or off")
	flags.StringVar(&f.state, "state", "", "A folder that keeps what is known of the pages for the next build (default: off)")
	flags.BoolVar(&f.gzip, "gzip", false, "Write each document a second time as .xml.gz; robots.txt and the index name the .xml")
	flags.BoolVar(&f.robots, "robots", true, "Write robots.txt with the Sitemap line")
	flags.BoolVar(&f.force, "force", false, "Replace files that no build wrote, and write less than half of the pages of the last build")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "Print errors only")
	flags.BoolVar(&f.json, "json", false, "Print the summary as one JSON object")
	return cmd
}

// checkAll refuses invalid usage before anything is done.
func (f *buildFlags) checkAll(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected '%s': the site's folder is named by --root", args[0])
	}
	return f.check()
}

// refuse prints why there is no build, where JSON is wanted.
func (f *buildFlags) refuse(stdout io.Writer, err error) error {
	if !f.json {
		return nil
	}
	summary := newBuildSummary(nil, 0, err)
	return summary.printJSON(stdout)
}

// run builds, and prints what came of it.
func (f *buildFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	begun := time.Now()
	built, err := f.build(ctx, stderr)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted: the files stay as they were")
	}
	summary := newBuildSummary(built, time.Since(begun), err)
	switch {
	case f.json:
		return errors.Join(err, summary.printJSON(stdout))
	case f.quiet:
	case errors.Is(err, errNoPages), errors.Is(err, errFewer):
		summary.printLeftOut(stderr)
	case err != nil && !slices.ContainsFunc(built, func(b *builtSite) bool { return b.begun }):
	default:
		err = errors.Join(err, summary.print(stdout))
	}
	return err
}

// build is run without the summary. What it returns is closed.
func (f *buildFlags) build(ctx context.Context, stderr io.Writer) (built []*builtSite, err error) {
	level := "WARN"
	if f.quiet {
		level = "ERROR"
	}
	if err := quieten(level); err != nil {
		return nil, err
	}
	config, err := f.load(level)
	if err != nil {
		return nil, err
	}
	// Caddy ends what this makes with the process.
	caddyCtx, err := caddy.ProvisionContext(config)
	if err != nil {
		return nil, err
	}
	a, err := appOf(caddyCtx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Stop(), a.Cleanup()) }()
	b := newBuilding()
	if !f.quiet {
		defer showProgress(stderr, b)()
	}
	sites, err := buildSites(ctx, a, b)
	if err != nil {
		return nil, err
	}
	if built, err = f.open(sites); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll(built)) }()
	return built, f.buildAll(ctx, b, built)
}

// buildAll builds all sites before it writes any.
func (f *buildFlags) buildAll(ctx context.Context, b *building, built []*builtSite) error {
	for _, s := range built {
		if err := s.run(ctx, f.force); err != nil {
			return err
		}
	}
	b.now("writing")
	for _, s := range built {
		if err := s.stage(ctx, &f.buildOutput); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, s := range built {
		if err := s.finish(); err != nil {
			return fmt.Errorf("writing into %s: %w", s.out, err)
		}
	}
	return nil
}

// quieten makes Caddy's own log say on the standard error what is of a level, or worse.
func quieten(level string) error {
	encoded, err := json.Marshal(object{"admin": object{"disabled": true}, "logging": quietLogs(level)})
	if err != nil {
		return err
	}
	var config *caddy.Config
	if err := caddy.StrictUnmarshalJSON(encoded, &config); err != nil {
		return err
	}
	return caddy.Validate(config)
}

// buildSummary is what a build came to, as --json prints it.
type buildSummary struct {
	Error    string      `json:"error,omitempty"`
	Sites    []siteBuilt `json:"sites"`
	Duration float64     `json:"duration"` // seconds
}

// siteBuilt is what became of one site.
type siteBuilt struct {
	Sitemap   string              `json:"sitemap"`
	Out       string              `json:"out"`
	Pages     int                 `json:"pages"`
	Fetched   int                 `json:"fetched"` // pages, whether they are listed or not
	Shards    int                 `json:"shards"`
	Bytes     int64               `json:"bytes"` // of all files
	LeftOut   map[string]int      `json:"left_out,omitempty"`
	Examples  map[string][]string `json:"examples,omitempty"` // of what was left out
	Written   []string            `json:"written"`
	Unchanged []string            `json:"unchanged"`
	Removed   []string            `json:"removed"`
	Kept      []string            `json:"kept"` // no longer needed, but changed by somebody else
	Notes     []string            `json:"notes,omitempty"`

	begun bool
}

func newBuildSummary(built []*builtSite, took time.Duration, err error) buildSummary {
	summary := buildSummary{Sites: []siteBuilt{}, Duration: took.Seconds()}
	if err != nil {
		summary.Error = err.Error()
	}
	for _, b := range built {
		summary.Sites = append(summary.Sites, b.summary())
	}
	return summary
}

func (b *builtSite) summary() siteBuilt {
	s := siteBuilt{
		Sitemap: b.sitemapURL(), Out: b.out, Fetched: b.fetched, Bytes: b.result.Bytes,
		Written: list(b.result.Written), Unchanged: list(b.result.Unchanged), Removed: list(b.result.Removed), Kept: list(b.result.Kept),
		begun: b.begun,
	}
	if snapshot := b.documents(); snapshot != nil {
		s.Pages, s.Shards = snapshot.Pages, max(len(snapshot.Shards), 1)
	}
	if last := b.last.Load(); last != nil {
		s.LeftOut, s.Examples = last.leftOut, last.examples
	}
	if b.robots.note != "" {
		s.Notes = append(s.Notes, b.robots.note)
	}
	if b.robots.was != nil && slices.Contains(b.result.Written, robotsName) {
		s.Notes = append(s.Notes, "robots.txt is the site's own with one line more: Sitemap: "+b.sitemapURL())
	}
	for _, source := range b.handler.sources {
		switch source.(type) {
		case *SourceAccessLog, *SourceTraffic:
			s.Notes = append(s.Notes, "pages that only visitors showed are not known to a build")
		}
	}
	s.Notes = slices.Compact(s.Notes)
	return s
}

// list is what JSON has as an empty list where there is nothing.
func list(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

func (s *buildSummary) printJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return unprinted(encoder.Encode(s))
}

func unprinted(err error) error {
	if err != nil {
		return fmt.Errorf("printing the summary: %w", err)
	}
	return nil
}

// print prints the summary at once, so that one that cannot be is an error.
func (s *buildSummary) print(stdout io.Writer) error {
	w := new(bytes.Buffer)
	for _, site := range s.Sites {
		if !site.begun {
			continue
		}
		say(w, "%s\n  %s in %s, %s; %s fetched", site.Sitemap, count(site.Pages, "page"), count(site.Shards, "shard"), size(site.Bytes), count(site.Fetched, "page"))
		site.printLeftOut(w)
		say(w, "  written into %s: %d, unchanged: %d, removed: %d%s", site.Out, len(site.Written), len(site.Unchanged), len(site.Removed), few(site.Removed))
		if len(site.Kept) > 0 {
			say(w, "  no longer needed, but changed by somebody else, so kept: %d%s", len(site.Kept), few(site.Kept))
		}
		for _, note := range site.Notes {
			say(w, "  note: %s", note)
		}
	}
	done := "built"
	if s.Error != "" {
		done = "failed, with some files written,"
	}
	say(w, "%s in %.2f s", done, s.Duration)
	_, err := w.WriteTo(stdout)
	return unprinted(err)
}

// printLeftOut says why there may be too few pages.
func (s *buildSummary) printLeftOut(w io.Writer) {
	for _, site := range s.Sites {
		if len(site.LeftOut) > 0 {
			say(w, "%s", site.Sitemap)
			site.printLeftOut(w)
		}
	}
}

func (s *siteBuilt) printLeftOut(w io.Writer) {
	for _, reason := range slices.Sorted(maps.Keys(s.LeftOut)) {
		say(w, "  left out, %s: %d%s", reason, s.LeftOut[reason], few(s.Examples[reason]))
	}
}

// fewNames is how many names a line has.
const fewNames = 3

// few are the first of some names, for a line.
func few(names []string) string {
	if len(names) == 0 {
		return ""
	}
	more := ""
	if len(names) > fewNames {
		names, more = names[:fewNames], " …"
	}
	return " (" + strings.Join(names, " ") + more + ")"
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func size(bytes int64) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// say prints a line. Where that fails, nobody is there to be told.
func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}
