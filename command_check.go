package sitemap

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed3295b519/caddy-sitemap/internal/lint"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/terminal"
)

func checkCommand() *cobra.Command {
	o := lint.Options{UserAgent: fetchUserAgent, Rate: 2}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check FILE|DIR|URL...",
		Short: "Reports what is wrong with sitemaps",
		Long: `
Checks sitemaps of any origin. Findings go to standard output, one a line, and a
summary to standard error. FILE is a sitemap or a robots.txt, - is standard input,
and URL is that of a sitemap, a robots.txt or a site. In a DIR, robots.txt and all
.xml and .txt files with "sitemap" in their names are checked, plain or .gz. With
--fetch, a sample of the pages must return 200 without a redirect and be indexable.

Exit status: 0 if there are no errors, 1 if there are, 2 if something could not be
checked or the usage is invalid.`,
		Example: `  caddy sitemap check https://example.com
  caddy sitemap check --base-url https://example.com public/
  caddy sitemap check --fetch=20 --json https://example.com/sitemap.xml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			quiet, _ := cmd.Flags().GetBool("quiet")
			return check(cmd, o, asJSON, quiet, args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&asJSON, "json", false, "Print findings and summary as JSON, one object a line")
	flags.BoolVar(&o.All, "all", false, "Print all findings, not only 20 of a code in a document")
	flags.IntVar(&o.Sample, "fetch", 0, "Also fetch a sample of so many pages")
	flags.Lookup("fetch").NoOptDefVal = "100"
	const rateUsage = "At most so many pages per second for --fetch, such as `0.5/s` (default 2/s)"
	flags.Func("rate", rateUsage, func(value string) (err error) {
		o.Rate, err = option.ParseRate(value)
		return err
	})
	flags.Func("base-url", "The `URL` at which FILE's folder, or DIR, is served", func(value string) error {
		base, folder, err := origin.ParseBase(value)
		o.BaseURL = base + folder + "/"
		return err
	})
	flags.DurationVar(&o.Timeout, "timeout", fetchTimeout, "How long a request may take, with the whole response")
	const proxyUsage = "The `URL` of a proxy for all requests; those of the environment are not used"
	flags.Func("proxy", proxyUsage, func(value string) (err error) {
		o.Proxy, err = url.Parse(value)
		if err == nil && o.Proxy.Host == "" {
			err = errors.New("use a URL such as http://localhost:3128")
		}
		return err
	})
	flags.BoolVar(&o.Insecure, "insecure", false, "Accept any certificate, such as a self-signed one")
	return cmd
}

// checkSample refuses a size of the sample that cannot be meant.
func checkSample(sample int, args []string) error {
	if sample < 0 {
		return fmt.Errorf(`invalid argument "%d" for "--fetch" flag: use a number of pages, such as 20`, sample)
	}
	if sample == 0 {
		return nil
	}
	// A flag whose value may be left out takes none from the next argument.
	for _, arg := range args {
		_, notNumber := strconv.Atoi(arg)
		_, missing := os.Stat(arg)
		if notNumber == nil && missing != nil {
			return fmt.Errorf("no such file: %s; to fetch %[1]s pages, write --fetch=%[1]s", arg)
		}
	}
	return nil
}

// check checks what is named, and prints what it finds.
func check(cmd *cobra.Command, o lint.Options, asJSON, quiet bool, args []string) error {
	if len(args) == 0 {
		return fail(cmd, errors.New("nothing to check: name a file, a folder, a URL, or - for standard input"))
	}
	if err := checkSample(o.Sample, args); err != nil {
		return fail(cmd, err)
	}
	var unwritten error
	write := func(line string, object any) {
		if asJSON {
			encoded, _ := json.Marshal(object) // strings and numbers
			line = string(encoded)
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), terminal.Clean(line))
		unwritten = cmp.Or(unwritten, err)
	}
	o.Stdin = cmd.InOrStdin()
	o.Report = func(found lint.Finding) {
		if !quiet || found.Severity == lint.Error {
			write(lineOf(found), found)
		}
	}
	// encoding/xml leaves much to collect.
	debug.SetGCPercent(150)
	s := lint.Check(cmd.Context(), o, args...)
	switch {
	case quiet:
	case asJSON:
		write("", map[string]lint.Summary{"summary": s})
	default:
		feeds := ""
		if s.Feeds > 0 {
			feeds = fmt.Sprintf(", feeds (not checked): %d", s.Feeds)
		}
		cmd.PrintErrf("documents: %d%s, pages: %d, fetched: %d, errors: %d, warnings: %d\n",
			s.Documents, feeds, s.URLs, s.Fetched, s.Errors, s.Warnings)
	}
	// Of a check that was interrupted, or that nobody could read, the counts say nothing.
	if err := cmp.Or(cmd.Context().Err(), unwritten); err != nil {
		return fail(cmd, err)
	}
	if s.Unchecked > 0 {
		return exit(cmd, exitFailed, nil)
	}
	if s.Errors > 0 {
		return exit(cmd, exitErrors, nil)
	}
	return nil
}

// lineOf returns a finding as a line.
func lineOf(found lint.Finding) string {
	at := found.File
	if found.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, found.Line)
	}
	about := ""
	if found.URL != "" && found.URL != found.File {
		about = ": " + found.URL
	}
	return fmt.Sprintf("%s: %s: %s: %s%s", at, found.Severity, found.Code, found.Message, about)
}
