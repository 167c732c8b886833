package sitemap

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/lint"
)

const (
	defaultSample = 100
	maxSample     = 100_000
)

// checkFlags are what a user may set for a check.
type checkFlags struct {
	json, quiet, all bool
	fetch, offline   bool
	sample           int
	base, rate       string
	timeout          time.Duration

	pause time.Duration // between two requests for pages, of the rate
}

func checkCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check FILE|DIR|URL...",
		Short: "Says what is wrong with sitemaps",
		Long: `
Checks sitemaps of any origin, and says what is wrong with them: one finding a
line, with file and line, on standard output, and a summary on standard error.

FILE is a sitemap (.xml, .xml.gz or .txt) or a robots.txt, and -
is standard input. Of a DIR all sitemaps and robots.txt in it are checked. URL is
that of a sitemap, of a robots.txt, or of a site: then its robots.txt says where
its sitemaps are, else it is /sitemap.xml. What an index lists is checked as well:
children of an index at a URL are fetched, those of a file are looked up in its
folder.

With --fetch, pages are asked for, too: each must answer 200 without a redirect,
ask neither not to be indexed nor for another page to be listed in its stead, and
be HTML where it says so. Those asked for are drawn by lot, the same ones each
time. The User-Agent has "bot" in it, robots.txt is heeded, and so is Retry-After.

Exit status: 0 where nothing is wrong or there are warnings alone, 1 where there
are errors, 2 where something could not be checked (no such file, a flag that
makes no sense).`,
		Example: `  caddy sitemap check https://example.com
  caddy sitemap check --base-url https://example.com public/
  caddy sitemap check --fetch --sample 20 --json https://example.com/sitemap.xml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.parse(args); err != nil {
				return fail(cmd, err)
			}
			return exit(cmd, runCheck(cmd, f, args))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "one JSON object a line: the findings, and then the summary")
	flags.BoolVar(&f.quiet, "quiet", false, "errors alone: no warnings, no summary")
	flags.BoolVar(&f.all, "all", false, "all findings, not 20 of a kind in a document and how many more there are")
	flags.BoolVar(&f.fetch, "fetch", false, "ask for the pages that are listed")
	flags.BoolVar(&f.offline, "offline", false, "never use the network")
	flags.IntVar(&f.sample, "sample", defaultSample, "how many pages --fetch asks for, at most 100000")
	flags.StringVar(&f.rate, "rate", "2/s", "how many pages --fetch asks for, at most, a second (2/s) or a minute (30/m)")
	flags.StringVar(&f.base, "base-url", "", "URL that FILE's folder, or DIR, is served at: its pages must lie there")
	flags.DurationVar(&f.timeout, "timeout", fetchTimeout, "how long one request may take, with the whole answer")
	return cmd
}

// parse checks the flags.
func (f *checkFlags) parse(args []string) error {
	rate, err := parseRate(f.rate)
	if err != nil {
		return fmt.Errorf("--rate '%s': %w", f.rate, err)
	}
	switch {
	case len(args) == 0:
		return errors.New("nothing to check: name a file, a folder, a URL, or - for standard input")
	case rate < minCrawlRate || rate > maxCrawlRate:
		return fmt.Errorf("--rate '%s': it is at least one an hour and at most %d/s", f.rate, maxCrawlRate)
	case f.sample < 1 || f.sample > maxSample:
		return fmt.Errorf("--sample %d: it is 1 to %d", f.sample, maxSample)
	case f.timeout <= 0:
		return fmt.Errorf("--timeout %v: it is more than nothing", f.timeout)
	case f.offline && f.fetch:
		return errors.New("--offline and --fetch exclude each other")
	}
	f.pause = time.Duration(float64(time.Second) / rate)
	if f.base == "" {
		return nil
	}
	base, err := url.Parse(f.base)
	if err != nil || !isWebURL(f.base) || base.RawQuery != "" || base.Fragment != "" || base.User != nil {
		return fmt.Errorf("--base-url '%s': a URL of http or https is wanted, with neither query nor fragment", f.base)
	}
	f.base = strings.TrimSuffix(base.String(), "/") + "/"
	return nil
}

// checking is one run of the command.
type checking struct {
	ctx     context.Context
	cmd     *cobra.Command
	flags   checkFlags
	web     *web
	checker *lint.Checker
	report  *checkReport
	sample  *pageSample
	done    map[string]bool // documents that were checked, by URL or file
	failed  bool            // something could not be checked
	asked   int             // pages
	pace    checkPace
	html    *htmlmeta.Parser
}

// runCheck checks what was named, and returns the exit status.
func runCheck(cmd *cobra.Command, f checkFlags, args []string) int {
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // what Caddy's modules hold is most of the heap

	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	k := &checking{
		ctx: ctx, cmd: cmd, flags: f, web: newWeb(f.timeout), done: make(map[string]bool),
		report: &checkReport{out: bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10), json: f.json, quiet: f.quiet, stop: cancel},
		sample: newPageSample(f.sample),
		pace:   checkPace{pause: f.pause, sleep: sleep, now: time.Now},
	}
	k.web.offline = f.offline
	defer k.web.close()
	o := lint.Options{Report: k.report.finding}
	if f.all {
		o.MaxPerCode = math.MaxInt
	}
	if f.fetch {
		o.Page = k.sample.add
	}
	k.checker = lint.New(o)
	if f.base != "" {
		k.web.trust(f.base)
	}
	for _, arg := range args {
		k.target(arg)
	}
	k.askPages()
	k.report.summary(cmd.ErrOrStderr(), checkSummary{k.checker.Summary(), k.asked})
	return k.status()
}

func (k *checking) status() int {
	switch err := context.Cause(k.ctx); {
	case err != nil:
		k.cmd.PrintErrln("Error:", err)
		return exitFailed
	case k.failed:
		return exitFailed
	case k.report.errors > 0:
		return exitErrors
	}
	return 0
}

// cannot says what cannot be checked.
func (k *checking) cannot(err error) {
	if k.ctx.Err() != nil {
		return // which is said at the end
	}
	k.failed = true
	k.report.flush() // what was found before
	k.cmd.PrintErrln("Error:", printable(err.Error()))
}

// add reports what was found around documents.
func (k *checking) add(f lint.Finding, format string, args ...any) {
	if k.ctx.Err() != nil {
		return // it was not the other side's fault
	}
	f.Message = fmt.Sprintf(format, args...)
	k.checker.Add(f)
	k.report.flush()
}

// checkReport puts findings into words as they come.
type checkReport struct {
	out         *bufio.Writer // flushed after each document and request
	json, quiet bool
	errors      int
	stop        context.CancelCauseFunc // where a finding cannot be put into words
}

func (r *checkReport) line(text string) { _, _ = r.out.WriteString(text + "\n") } // flush tells

// flush stops the check where what was found cannot be written.
func (r *checkReport) flush() {
	if err := r.out.Flush(); err != nil {
		r.stop(fmt.Errorf("writing what was found: %w", err))
	}
}

func (r *checkReport) finding(f lint.Finding) {
	if f.Severity == lint.Error {
		r.errors++
	} else if r.quiet {
		return
	}
	if r.json {
		r.object(f)
		return
	}
	at := f.File
	if f.Line > 0 {
		at += ":" + strconv.Itoa(f.Line)
	}
	line := fmt.Sprintf("%s: %v: %s: %s", at, f.Severity, f.Code, f.Message)
	if f.URL != "" && f.URL != f.File {
		line += ": " + f.URL
	}
	r.line(printable(line))
}

// checkSummary is what is said last.
type checkSummary struct {
	lint.Summary
	Asked int `json:"asked"` // pages that were asked for
}

// summary writes what is said last, behind all that was found.
func (r *checkReport) summary(stderr io.Writer, s checkSummary) {
	if r.json && !r.quiet {
		r.object(map[string]checkSummary{"summary": s})
	}
	r.flush()
	if r.json || r.quiet {
		return
	}
	text := fmt.Sprintf("checked %s with %s", plural(s.Documents, "document"), plural(s.URLs, "page"))
	if s.Asked > 0 {
		text += fmt.Sprintf(", asked for %d", s.Asked)
	}
	_, _ = fmt.Fprintf(stderr, "%s: %s, %s\n", text, plural(s.Errors, "error"), plural(s.Warnings, "warning"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func (r *checkReport) object(v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		r.stop(err)
		return
	}
	r.line(printable(strings.TrimSuffix(b.String(), "\n")))
}

// sleep waits; the error is ctx's.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
