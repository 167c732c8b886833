package sitemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/seed3295b519/caddy-sitemap/internal/terminal"
)

// adminCommands are those that ask a running server.
func adminCommands() []*cobra.Command {
	return []*cobra.Command{
		adminCommand(http.MethodGet, "/sitemap/sites", ", or if a site has a problem", &cobra.Command{
			Use:   "status [--site URL]",
			Short: "Shows the sitemaps of the running server",
			Long: `
Shows for each site what its sitemap lists and since when, what its sources name,
what is left out and why, and the last refresh. Sites with a problem come first. Of
more than 20 sites, only these are shown, unless --site names one.`,
		}),
		adminCommand(http.MethodPost, "/sitemap/refresh", ", or if a site has a problem", &cobra.Command{
			Use:   "refresh [--site URL] [--fetch [URL...]]",
			Short: "Refreshes the sitemaps of the running server now",
			Long: `
Refreshes the sitemaps, publishes changes that were held back, and shows the status.
Only pages that are due are fetched.

With --fetch, all pages of the site, or of all sites, are fetched again; with URLs,
these pages. Upstreams get these requests at the rate of 'crawl', so the command may
end before all are fetched: 'pages due' says how many are due now. A changed text
counts once another fetch, a minute later, confirms it.`,
		}),
		adminCommand(http.MethodGet, "/sitemap/explain", "", &cobra.Command{
			Use:   "explain URL | --site URL PATH",
			Short: "Explains why the running server lists a page, or why not",
			Long: `
Shows whether a page is listed and in which document, or why it is not and what to
do. The page is fetched once, as an anonymous visitor. With --site, a path of
that site is enough.`,
		}),
	}
}

// maxQuery is how many bytes of a query the admin API takes, about: Caddy allows it 64 KiB of headers.
const maxQuery = 60_000

// adminCommand adds to a command its flags, and the request that it makes to the admin API. failsIf says what else
// than an error has it fail.
func adminCommand(method, path, failsIf string, cmd *cobra.Command) *cobra.Command {
	cmd.Long += `

The server is reached through its admin API, at localhost:2019 by default.

Exit status: 0 on success, 2 if the usage is invalid, 1 if the server cannot be
reached or returns an error` + failsIf + "."
	var ask adminQuestion
	ask.explains = strings.HasSuffix(path, "/explain")
	ask.refreshes = method == http.MethodPost
	var address, config, adapter string
	flags := cmd.Flags()
	flags.StringVar(&ask.site, "site", "", "The URL of one site, or of its sitemap, or a part of it (default: all sites)")
	if ask.refreshes {
		flags.BoolVar(&ask.fetches, "fetch", false, "Fetch all pages again, or those of the URLs that are given as arguments")
	}
	flags.StringVarP(&config, "config", "c", "", "Configuration file to use to parse the admin address, if --address is not used")
	flags.StringVarP(&adapter, "adapter", "a", "", "Name of config adapter to apply (when --config is used)")
	flags.StringVar(&address, "address", "", "The address to use to reach the admin API endpoint, if not the default")
	asJSON := flags.Bool("json", false, "Print the response of the admin API as it is")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		query, err := ask.query(args)
		if err != nil {
			return fail(cmd, err)
		}
		at, err := caddycmd.DetermineAdminAPIAddress(address, nil, config, adapter)
		if err != nil {
			return exit(cmd, exitErrors, fmt.Errorf("finding the admin address: %w", err))
		}
		all, err := requestAdmin(cmd, ask.show(cmd, *asJSON), at, method, path+"?"+query)
		if err == nil {
			err = all.trouble()
		}
		if err != nil {
			return exit(cmd, exitErrors, fmt.Errorf("%s: %w", at, err))
		}
		return nil
	}
	return cmd
}

// adminQuestion is what a command asks a running server.
type adminQuestion struct {
	site      string // URL or a part of one; "": all
	explains  bool   // a page
	refreshes bool
	fetches   bool // pages again
}

// query returns the question with the arguments of the command, as the query of a request. An error is one of usage.
func (q *adminQuestion) query(args []string) (string, error) {
	query := url.Values{}
	switch {
	case q.explains && len(args) != 1:
		return "", errors.New("exactly one argument is required: the URL of a page, or its path with --site")
	case q.explains:
		query.Set("url", args[0])
	case q.fetches && len(args) == 0:
		query.Set(repeatable, fetchAll)
	case q.fetches:
		query[repeatable] = args
	case q.refreshes && len(args) > 0:
		return "", fmt.Errorf("unexpected argument '%s': use --site for one site, or --fetch to fetch pages again", args[0])
	case len(args) > 0:
		return "", fmt.Errorf("unexpected argument '%s': use --site for one site", args[0])
	}
	if q.site != "" {
		query.Set("site", q.site)
	}
	encoded := query.Encode()
	if len(encoded) > maxQuery {
		return "", fmt.Errorf("%d URLs are too long for one request: use several commands, or --fetch without a URL", len(args))
	}
	return encoded, nil
}

// show says how the response is printed.
func (q *adminQuestion) show(cmd *cobra.Command, asJSON bool) shown {
	isQuiet, _ := cmd.Flags().GetBool("quiet")
	switch {
	case isQuiet:
		return showNothing
	case asJSON:
		return showJSON
	case q.site == "":
		return showProblems
	}
	return showAll
}

// shown says how the response of the admin API is printed.
type shown uint8

const (
	showAll      shown = iota
	showProblems       // of many sites, those that have one
	showJSON           // as it is
	showNothing
)

// requestAdmin makes a request to the admin API of a running server, prints the response, and returns the sites that
// it has; an explanation has none.
func requestAdmin(cmd *cobra.Command, show shown, address, method, uri string) (all sitesStatus, err error) {
	resp, err := caddycmd.AdminAPIRequest(address, method, uri, nil, nil)
	if err != nil {
		return all, adminError(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(body, &all)
	}
	if err != nil {
		return all, fmt.Errorf("reading the response: %w", err)
	}
	switch {
	case show == showNothing:
		return all, nil
	case show == showJSON:
		_, err = cmd.OutOrStdout().Write(body)
		return all, err
	case all.Sites == nil:
		return all, terminal.PrintJSON(cmd.OutOrStdout(), body)
	}
	return all, printSites(cmd.OutOrStdout(), show, all, body)
}

// maxShown is how many sites are shown where nobody asked for some of them.
const maxShown = 20

// printSites prints a response that has sites: of several, with a summary.
func printSites(w io.Writer, show shown, all sitesStatus, body []byte) error {
	var raw struct { // with all that the server says of a site
		Sites []json.RawMessage `json:"sites"`
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return err
	}
	if len(raw.Sites) > 1 {
		_, _ = fmt.Fprintln(w, all.Summary)
	}
	hidden := 0
	if show == showProblems && len(raw.Sites) > maxShown {
		n := min(all.Summary.Problems, maxShown)
		hidden = len(raw.Sites) - n
		raw.Sites = raw.Sites[:n]
	}
	if len(raw.Sites) > 0 {
		encoded, err := json.Marshal(raw)
		if err == nil {
			err = terminal.PrintJSON(w, encoded)
		}
		if err != nil {
			return err
		}
	}
	if hidden > 0 {
		_, _ = fmt.Fprintf(w, "not shown: %d sites; --site shows one, and --json shows all\n", hidden)
	}
	return nil
}

// adminError is the error of a request to the admin API, in the API's own words where it responded.
func adminError(err error) error {
	text := strings.TrimSpace(err.Error())
	var refused struct{ Error string }
	_, body, isObject := strings.Cut(text, ": {")
	if isObject && json.Unmarshal([]byte("{"+body), &refused) == nil && refused.Error != "" {
		return errors.New(refused.Error)
	}
	// net/http responds so where there is no such route.
	if strings.HasSuffix(text, "HTTP 404: 404 page not found") {
		return errors.New("this Caddy has no sitemap module (HTTP 404): " +
			"run one that was built with it, or name another --address")
	}
	if strings.HasPrefix(text, "performing request: ") { // as Caddy says where nothing responds
		text += "; if the admin API is elsewhere, add --address, or --config"
	}
	return errors.New(text)
}
