package sitemap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// adminFlags say where the admin API is, and how to show its response.
type adminFlags struct {
	address, config, adapter string
	json                     bool
	site                     string // "": all
}

func (f *adminFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.config, "config", "c", "", "Configuration file to use to parse the admin address, if --address is not used")
	flags.StringVarP(&f.adapter, "adapter", "a", "", "Name of config adapter to apply (when --config is used)")
	flags.StringVar(&f.address, "address", "", "The address to use to reach the admin API endpoint, if not the default")
	flags.BoolVar(&f.json, "json", false, "print the response of the admin API as it is")
}

// adminHelp is what the commands for a running server have in common.
const adminHelp = `

The server is reached through its admin API, at localhost:2019 unless --address or
--config say otherwise.

Exit status: 0 on success, 1 if the server cannot be reached or returns an error%s,
2 for invalid usage.`

func statusCommand() *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use:   "status [--site URL]",
		Short: "Shows the sitemaps of the running server",
		Long: `
Shows for each site of the running server how many pages its sitemap lists and since
when, how many its sources name, which are left out and why, the outcome of the last
refresh, and who last requested its documents, by User-Agent.` + fmt.Sprintf(adminHelp, ""),
		Example: `  caddy sitemap status
  caddy sitemap status --site https://example.com --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.ofSites(cmd, args, http.MethodGet, "/sitemap/sites", writeStatuses)
		},
	}
	f.addSiteTo(cmd)
	return cmd
}

func refreshCommand() *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use:   "refresh [--site URL]",
		Short: "Refreshes the sitemaps of the running server now",
		Long: `
Refreshes the sitemaps of the running server, waits until that is done, and shows the
outcome.` + fmt.Sprintf(adminHelp, ", or if a\nrefresh failed or is held back"),
		Example: `  caddy sitemap refresh
  caddy sitemap refresh --site https://example.com`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.ofSites(cmd, args, http.MethodPost, "/sitemap/refresh", writeRefreshes)
		},
	}
	f.addSiteTo(cmd)
	return cmd
}

func explainCommand() *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use:   "explain URL",
		Short: "Explains why the running server lists a page, or why not",
		Long: `
Shows whether a page is in the sitemap of the running server, and in which document; if
it is not, why, and what to do. The page is fetched once more, as an anonymous visitor.` + fmt.Sprintf(adminHelp, ""),
		Example: `  caddy sitemap explain https://example.com/about`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fail(cmd, errors.New("exactly one argument is required: the URL of a page"))
			}
			body, err := f.request(http.MethodGet, "/sitemap/explain", url.Values{"url": args})
			return f.show(cmd, body, err, writeExplanation)
		},
	}
	f.addTo(cmd)
	return cmd
}

// addSiteTo is addTo for a command about all sites, or about one.
func (f *adminFlags) addSiteTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.site, "site", "", "URL of the site, or of its sitemap (default: all sites)")
	f.addTo(cmd)
}

// ofSites runs such a command.
func (f *adminFlags) ofSites(cmd *cobra.Command, args []string, method, path string, write func(*printer, []byte) error) error {
	if len(args) > 0 {
		return fail(cmd, fmt.Errorf("unexpected argument '%s': use --site for one site", args[0]))
	}
	var query url.Values
	if f.site != "" {
		query = url.Values{"site": {f.site}}
	}
	body, err := f.request(method, path, query)
	return f.show(cmd, body, err, write)
}

// request makes a request to the admin API of the running server.
func (f *adminFlags) request(method, path string, query url.Values) ([]byte, error) {
	address, err := caddycmd.DetermineAdminAPIAddress(f.address, nil, f.config, f.adapter)
	if err != nil {
		return nil, fmt.Errorf("finding the admin address: %w", err)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	resp, err := caddycmd.AdminAPIRequest(address, method, path, nil, nil)
	if err != nil {
		return nil, refusal(address, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the response of %s: %w", address, err)
	}
	return body, nil
}

// refusal shortens an error of [caddycmd.AdminAPIRequest]: an error response, or that there
// was none.
func refusal(address string, err error) error {
	response, ok := strings.CutPrefix(err.Error(), "caddy responded with error: HTTP ")
	if !ok {
		return fmt.Errorf("no server responds at %s; is Caddy running, and is that its admin address? (%w)", address, err)
	}
	status, body, _ := strings.Cut(response, ": ")
	var decoded struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(body), &decoded) == nil && decoded.Error != "" {
		return errors.New(decoded.Error)
	}
	if status == strconv.Itoa(http.StatusNotFound) {
		return fmt.Errorf("the server at %s has no sitemap module with an admin API: it was built without it, or with an older one", address)
	}
	return fmt.Errorf("the server at %s returns status %s: %.200s", address, status, body)
}

// show writes a response as it is, or as text. Caddy exits with exitErrors where it is an
// error, or write returns one.
func (f *adminFlags) show(cmd *cobra.Command, body []byte, err error, write func(*printer, []byte) error) error {
	if err != nil {
		return refuse(cmd, err)
	}
	var text bytes.Buffer
	err = write(newPrinter(&text), body)
	if f.json {
		text.Reset()
		text.Write(body)
	}
	if _, wrote := cmd.OutOrStdout().Write(text.Bytes()); wrote != nil {
		err = wrote
	}
	if err != nil {
		return refuse(cmd, err)
	}
	return nil
}

// refuse prints an error of the server, or of reaching it.
func refuse(cmd *cobra.Command, err error) error {
	cmd.PrintErrln("Error:", printable(err.Error()))
	return exit(cmd, exitErrors)
}
