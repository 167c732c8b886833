package sitemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// adminCommand is a command that asks a running server.
type adminCommand struct {
	*cobra.Command
	address, config, adapter string
	json                     bool
}

// newAdminCommand adds to a command what all of them have, and what it does.
func newAdminCommand(cmd *cobra.Command, run func(c *adminCommand, args []string) error) *cobra.Command {
	c := &adminCommand{Command: cmd}
	c.Long += `

The server is reached through its admin API, at localhost:2019 unless --address or
--config say otherwise. The exit status is 0, 1 if the server cannot be reached or returns
an error, or a refresh failed or is held back, or 2 for invalid usage.`
	flags := c.Flags()
	flags.StringVarP(&c.config, "config", "c", "", "Configuration file to use to parse the admin address, if --address is not used")
	flags.StringVarP(&c.adapter, "adapter", "a", "", "Name of config adapter to apply (when --config is used)")
	flags.StringVar(&c.address, "address", "", "The address to use to reach the admin API endpoint, if not the default")
	flags.BoolVar(&c.json, "json", false, "Print the response of the admin API as it is")
	c.RunE = func(_ *cobra.Command, args []string) error { return run(c, args) }
	return cmd
}

func statusCommand() *cobra.Command {
	return sitesCommand(http.MethodGet, "/sitemap/sites", &cobra.Command{
		Use:   "status [--site URL]",
		Short: "Shows the sitemaps of the running server",
		Long: `
Shows for each site what its sitemap lists and since when, what its sources name, what is
left out and why, the last refresh, and who last requested its documents.`,
		Example: `  caddy sitemap status --site https://example.com --json`,
	})
}

func refreshCommand() *cobra.Command {
	return sitesCommand(http.MethodPost, "/sitemap/refresh", &cobra.Command{
		Use:     "refresh [--site URL]",
		Short:   "Refreshes the sitemaps of the running server now",
		Long:    "Refreshes the sitemaps, waits until that is done, and shows their status.",
		Example: `  caddy sitemap refresh --site https://example.com`,
	})
}

// sitesCommand makes a command about all sites, or about one.
func sitesCommand(method, path string, cmd *cobra.Command) *cobra.Command {
	site := cmd.Flags().String("site", "", "URL of the site, or of its sitemap (default: all sites)")
	return newAdminCommand(cmd, func(c *adminCommand, args []string) error {
		if len(args) > 0 {
			return fail(c.Command, fmt.Errorf("unexpected argument '%s': use --site for one site", args[0]))
		}
		query := url.Values{}
		if *site != "" {
			query.Set("site", *site)
		}
		var all sitesStatus
		if err := c.run(method, path, query, &all); err != nil {
			return err
		}
		for _, st := range all.Sites {
			if last := st.LastRefresh; method == http.MethodPost && last != nil && (last.Result == refreshFailed || last.Result == refreshHeldBack) {
				return c.fail(errors.New("a refresh failed or is held back; pages that were listed stay listed"))
			}
		}
		return nil
	})
}

func explainCommand() *cobra.Command {
	return newAdminCommand(&cobra.Command{
		Use:   "explain URL",
		Short: "Explains why the running server lists a page, or why not",
		Long: `
Shows whether a page is in the sitemap, and in which document; if it is not, why, and what
to do. The page is fetched once more, as an anonymous visitor.`,
		Example: `  caddy sitemap explain https://example.com/about`,
	}, func(c *adminCommand, args []string) error {
		if len(args) != 1 {
			return fail(c.Command, errors.New("exactly one argument is required: the URL of a page"))
		}
		return c.run(http.MethodGet, "/sitemap/explain", url.Values{"url": args}, new(explanation))
	})
}

// run makes a request to the admin API of the running server, and prints the response.
func (c *adminCommand) run(method, path string, query url.Values, response any) error {
	address, err := caddycmd.DetermineAdminAPIAddress(c.address, nil, c.config, c.adapter)
	if err != nil {
		return c.fail(fmt.Errorf("finding the admin address: %w", err))
	}
	resp, err := caddycmd.AdminAPIRequest(address, method, path+"?"+query.Encode(), nil, nil)
	if err != nil {
		var refused struct{ Error string }
		if _, body, ok := strings.Cut(err.Error(), ": {"); ok && json.Unmarshal([]byte("{"+body), &refused) == nil && refused.Error != "" {
			err = errors.New(refused.Error)
		}
		return c.fail(fmt.Errorf("%s: %w", address, err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(body, response)
	}
	if err != nil {
		return c.fail(fmt.Errorf("%s: reading the response: %w", address, err))
	}
	if c.json {
		_, err = c.OutOrStdout().Write(body)
		return err
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	printFields(w, "", reflect.ValueOf(response).Elem())
	return w.Flush()
}

// fail prints an error of the server, or of reaching it.
func (c *adminCommand) fail(err error) error {
	c.PrintErrln("Error:", printable(err.Error()))
	return exit(c.Command, exitErrors)
}

// printFields prints the fields of a struct under their names in JSON, in columns; what is
// omitted there is omitted here.
func printFields(w io.Writer, indent string, of reflect.Value) {
	for i := range of.NumField() {
		name, option, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
		name = indent + strings.ReplaceAll(name, "_", " ")
		switch field := of.Field(i); {
		case option != "" && field.IsZero():
		case field.Type() == reflect.TypeFor[[]siteStatus]():
			for j := range field.Len() {
				printFields(w, indent, field.Index(j))
				_, _ = fmt.Fprintln(w)
			}
		case field.Kind() == reflect.Pointer:
			_, _ = fmt.Fprintln(w, name)
			printFields(w, indent+"  ", field.Elem())
		default:
			for _, text := range textsOf(field) { // strangers may have written it
				_, _ = fmt.Fprintf(w, "%s\t%s\n", name, printable(text))
				name = indent
			}
		}
	}
}

// textsOf are the elements of a value as text.
func textsOf(v reflect.Value) (texts []string) {
	at, isTime := v.Interface().(time.Time)
	switch {
	case isTime:
		when := time.Since(at).Round(time.Second).String() + " ago"
		if soon, ok := strings.CutPrefix(when, "-"); ok {
			when = "in " + strings.TrimSuffix(soon, " ago")
		}
		texts = append(texts, at.Format(time.DateTime)+" UTC ("+when+")")
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			texts = append(texts, strings.Join(textsOf(v.Index(i)), ", "))
		}
	case v.Kind() == reflect.Map:
		for key, value := range v.Seq2() {
			texts = append(texts, fmt.Sprintf("%s: %s", key, strings.Join(textsOf(value), " ")))
		}
		slices.Sort(texts)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if option == "" || !v.Field(i).IsZero() {
				texts = append(texts, name+" "+strings.Join(textsOf(v.Field(i)), ", "))
			}
		}
	default:
		texts = append(texts, fmt.Sprint(v))
	}
	return texts
}
