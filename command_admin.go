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

// adminFlags say where the admin API is, and how to show what it answers.
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
	flags.BoolVar(&f.json, "json", false, "the answer of the admin API as it is")
}

// adminHelp is what the commands that ask a running server have in common.
const adminHelp = `

The server is asked through its admin API, at localhost:2019 unless --address or
--config say otherwise.

Exit status: 0 where all is well, 1 where the server cannot be reached or answers
with an error%s, 2 where the command makes no sense.`

func statusCommand() *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use:   "status [--site URL]",
		Short: "Says what sitemaps the running server has",
		Long: `
Says of each site of the running server what its sitemap lists and since when, how
many pages its sources name, what was left out for which reason, what the last
refresh came to, and who fetched its documents last, as User-Agents say it.` + fmt.Sprintf(adminHelp, ""),
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
		Short: "Has the running server make its sitemaps anew, now",
		Long: `
Has the running server gather the pages of its sites anew, waits for it, and says
what came of it.` + fmt.Sprintf(adminHelp, ", or a\nrefresh failed or is not believed"),
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
		Short: "Says why the running server lists a page, or why not",
		Long: `
Says whether a page is in the sitemap of the running server, in which document, or
for which reason it is not, and what to do. The page is asked for once more, as a
refresh would ask for it.` + fmt.Sprintf(adminHelp, ""),
		Example: `  caddy sitemap explain https://example.com/about`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fail(cmd, errors.New("the URL of one page is wanted"))
			}
			answer, err := f.ask(http.MethodGet, "/sitemap/explain", url.Values{"url": args})
			return f.show(cmd, answer, err, writeExplanation)
		},
	}
	f.addTo(cmd)
	return cmd
}

// addSiteTo is addTo for a command about all sites, or about one.
func (f *adminFlags) addSiteTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.site, "site", "", "URL of the site, or of its sitemap; all sites if it is not given")
	f.addTo(cmd)
}

// ofSites runs such a command.
func (f *adminFlags) ofSites(cmd *cobra.Command, args []string, method, path string, write func(*tellTale, []byte) error) error {
	if len(args) > 0 {
		return fail(cmd, fmt.Errorf("unexpected '%s': one site is named by --site", args[0]))
	}
	var query url.Values
	if f.site != "" {
		query = url.Values{"site": {f.site}}
	}
	answer, err := f.ask(method, path, query)
	return f.show(cmd, answer, err, write)
}

// ask asks the admin API of the running server.
func (f *adminFlags) ask(method, path string, query url.Values) ([]byte, error) {
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
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", address, err)
	}
	return answer, nil
}

// refusal says in short what [caddycmd.AdminAPIRequest] wraps: an answer, or that there
// was none.
func refusal(address string, err error) error {
	answer, ok := strings.CutPrefix(err.Error(), "caddy responded with error: HTTP ")
	if !ok {
		return fmt.Errorf("no server answers at %s; is Caddy running, and is that its admin address? (%w)", address, err)
	}
	status, body, _ := strings.Cut(answer, ": ")
	var said struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(body), &said) == nil && said.Error != "" {
		return errors.New(said.Error)
	}
	if status == strconv.Itoa(http.StatusNotFound) {
		return fmt.Errorf("the server at %s has no sitemap module that can be asked: it was built without it, or with an older one", address)
	}
	return fmt.Errorf("the server at %s answers with %s: %.200s", address, status, body)
}

// show writes an answer as it is, or as text, and has Caddy exit with exitErrors where
// it is an error, or write returns one.
func (f *adminFlags) show(cmd *cobra.Command, answer []byte, err error, write func(*tellTale, []byte) error) error {
	if err != nil {
		return refuse(cmd, err)
	}
	var text bytes.Buffer
	err = write(newTellTale(&text), answer)
	if f.json {
		text.Reset()
		text.Write(answer)
	}
	if _, wrote := cmd.OutOrStdout().Write(text.Bytes()); wrote != nil {
		return refuse(cmd, wrote)
	}
	if err != nil {
		return refuse(cmd, err)
	}
	return nil
}

// refuse says what the server, or the way to it, has against a command.
func refuse(cmd *cobra.Command, err error) error {
	cmd.PrintErrln("Error:", printable(err.Error()))
	return exit(cmd, exitErrors)
}
