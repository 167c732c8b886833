package sitemap

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"github.com/seed3295b519/caddy-sitemap/internal/lint"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
)

// checkFlags are what a user may set for a check.
type checkFlags struct {
	lint.Options
	json, quiet, fetch bool
	rate, proxy        string
}

func checkCommand() *cobra.Command {
	f := checkFlags{Options: lint.Options{UserAgent: fetchUserAgent}}
	cmd := &cobra.Command{
		Use:   "check FILE|DIR|URL...",
		Short: "Reports what is wrong with sitemaps",
		Long: `
Reports what is wrong with sitemaps of any origin: one finding a line on standard
output, and a summary on standard error. FILE is a sitemap or a robots.txt, - is
standard input, and URL is that of a sitemap, a robots.txt or a site. In a DIR,
robots.txt and everything with "sitemap" in its name is checked. With --fetch, a
sample of the pages must return 200 without a redirect, and be indexable.

Exit status: 0 where nothing is wrong or there are warnings only, 1 where there are
errors, 2 where something could not be checked.`,
		Example: `  caddy sitemap check https://example.com
  caddy sitemap check --base-url https://example.com public/
  caddy sitemap check --fetch --sample 20 --json https://example.com/sitemap.xml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.parse(args); err != nil {
				return fail(cmd, err)
			}
			return f.run(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "one JSON object a line: the findings, then the summary")
	flags.BoolVar(&f.quiet, "quiet", false, "errors only: no warnings, no summary")
	flags.BoolVar(&f.All, "all", false, "all findings, not 20 of a code and document")
	flags.BoolVar(&f.fetch, "fetch", false, "fetch a sample of the pages that are listed")
	flags.IntVar(&f.Sample, "sample", 100, "how many pages --fetch fetches")
	flags.StringVar(&f.rate, "rate", "2/s", "how many pages --fetch fetches, at most, such as 2/s")
	flags.StringVar(&f.BaseURL, "base-url", "", "URL that FILE's folder, or DIR, is served at: its pages must be there")
	flags.DurationVar(&f.Timeout, "timeout", fetchTimeout, "how long one request may take, with the whole response")
	flags.StringVar(&f.proxy, "proxy", "", "URL of a proxy for all requests; those of the environment are not used")
	return cmd
}

// parse checks the flags.
func (f *checkFlags) parse(args []string) (err error) {
	if f.Rate, err = option.ParseRate(f.rate); err != nil {
		return fmt.Errorf("--rate '%s': %w", f.rate, err)
	}
	switch {
	case len(args) == 0:
		return errors.New("nothing to check: name a file, a folder, a URL, or - for standard input")
	case f.Sample < 1:
		return fmt.Errorf("--sample %d: it is at least 1", f.Sample)
	case !f.fetch:
		f.Sample = 0
	}
	if f.proxy != "" {
		if f.Proxy, err = url.Parse(f.proxy); err != nil || f.Proxy.Host == "" {
			return fmt.Errorf("--proxy '%s': a URL is wanted, such as http://localhost:3128", f.proxy)
		}
	}
	if f.BaseURL != "" {
		base, folder, err := origin.ParseBase(f.BaseURL)
		if err != nil {
			return fmt.Errorf("--base-url '%s': %w", f.BaseURL, err)
		}
		f.BaseURL = base + folder + "/"
	}
	return nil
}

// run checks what was named.
func (f *checkFlags) run(cmd *cobra.Command, args []string) error {
	var unwritten error
	write := func(line string) {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), printable(line))
		unwritten = cmp.Or(unwritten, err)
	}
	writeJSON := func(v any) {
		text, _ := json.Marshal(v) // strings and numbers
		write(string(text))
	}
	f.Stdin = cmd.InOrStdin()
	f.Report = func(found lint.Finding) {
		line := ": " + string(found.Severity) + ": " + found.Code + ": " + found.Message
		if found.Line > 0 {
			line = ":" + strconv.Itoa(found.Line) + line
		}
		if found.URL != "" && found.URL != found.File {
			line += ": " + found.URL
		}
		switch {
		case f.quiet && found.Severity != lint.Error:
		case f.json:
			writeJSON(found)
		default:
			write(found.File + line)
		}
	}
	gc := debug.SetGCPercent(150) // encoding/xml leaves much to collect
	s := lint.Check(cmd.Context(), f.Options, args...)
	debug.SetGCPercent(gc)
	switch {
	case f.quiet:
	case f.json:
		writeJSON(map[string]lint.Summary{"summary": s})
	default:
		cmd.PrintErrf("documents: %d, pages: %d, fetched: %d, errors: %d, warnings: %d\n", s.Documents, s.URLs, s.Fetched, s.Errors, s.Warnings)
	}
	switch err := errors.Join(cmd.Context().Err(), unwritten); {
	case err != nil:
		return fail(cmd, err)
	case s.Unchecked > 0:
		return exit(cmd, exitFailed)
	case s.Errors > 0:
		return exit(cmd, exitErrors)
	}
	return nil
}

// printable escapes control characters, line ends and marks of writing direction as JSON does, so that text of
// strangers cannot control a terminal. JSON stays the same JSON.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
