package sitemap

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
--config say otherwise.

Exit status: 0 on success, 1 if the server cannot be reached or returns an error, or a
refresh failed or is held back, 2 for invalid usage.`
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
Shows for each site of the running server how many pages its sitemap lists and since
when, how many its sources name, which are left out and why, the result of the last
refresh, and who last requested its documents, by User-Agent.`,
		Example: `  caddy sitemap status
  caddy sitemap status --site https://example.com --json`,
	})
}

func refreshCommand() *cobra.Command {
	return sitesCommand(http.MethodPost, "/sitemap/refresh", &cobra.Command{
		Use:   "refresh [--site URL]",
		Short: "Refreshes the sitemaps of the running server now",
		Long: `
Refreshes the sitemaps of the running server, waits until that is done, and shows their
status.`,
		Example: `  caddy sitemap refresh
  caddy sitemap refresh --site https://example.com`,
	})
}

func explainCommand() *cobra.Command {
	return newAdminCommand(&cobra.Command{
		Use:   "explain URL",
		Short: "Explains why the running server lists a page, or why not",
		Long: `
Shows whether a page is in the sitemap of the running server, and in which document; if
it is not, why, and what to do. The page is fetched once more, as an anonymous visitor.`,
		Example: `  caddy sitemap explain https://example.com/about`,
	}, func(c *adminCommand, args []string) error {
		if len(args) != 1 {
			return fail(c.Command, errors.New("exactly one argument is required: the URL of a page"))
		}
		return c.run(http.MethodGet, "/sitemap/explain", url.Values{"url": args}, new(explanation))
	})
}

// sitesCommand makes a command about all sites, or about one.
func sitesCommand(method, path string, cmd *cobra.Command) *cobra.Command {
	var site string
	cmd.Flags().StringVar(&site, "site", "", "URL of the site, or of its sitemap (default: all sites)")
	return newAdminCommand(cmd, func(c *adminCommand, args []string) error {
		if len(args) > 0 {
			return fail(c.Command, fmt.Errorf("unexpected argument '%s': use --site for one site", args[0]))
		}
		query := url.Values{}
		if site != "" {
			query.Set("site", site)
		}
		var all sitesStatus
		err := c.run(method, path, query, &all)
		for _, st := range all.Sites {
			last := st.LastRefresh
			if err == nil && method == http.MethodPost && last != nil && (last.Result == refreshFailed || last.Result == refreshHeldBack) {
				err = c.fail(errors.New("a refresh failed or is held back; pages that were listed stay listed"))
			}
		}
		return err
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
	return printResponse(c.OutOrStdout(), response)
}

// fail prints an error of the server, or of reaching it.
func (c *adminCommand) fail(err error) error {
	c.PrintErrln("Error:", printable(err.Error()))
	return exit(c.Command, exitErrors)
}

// printResponse prints a response of the admin API for people, in columns.
func printResponse(out io.Writer, response any) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	printFields(w, "", reflect.ValueOf(response).Elem())
	return w.Flush()
}

// printFields prints the fields of a struct under their names in JSON; what is omitted there
// is omitted here.
func printFields(w io.Writer, indent string, of reflect.Value) {
	for i := range of.NumField() {
		name, omit := nameOf(of.Type().Field(i))
		name = indent + name
		switch field := of.Field(i); {
		case omit && field.IsZero():
		case field.Type() == reflect.TypeFor[[]siteStatus]():
			for j := range field.Len() {
				printFields(w, indent, field.Index(j))
				printLine(w, "")
			}
		case field.Kind() == reflect.Pointer:
			printLine(w, name)
			printFields(w, indent+"  ", field.Elem())
		case field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct:
			for _, row := range tableOf(field) {
				printLine(w, append([]string{name}, row...)...)
				name = indent
			}
		case field.Kind() == reflect.Map:
			keys := field.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
			for _, key := range keys {
				printLine(w, name, key.String(), textOf(field.MapIndex(key)))
				name = indent
			}
		default:
			printLine(w, name, textOf(field))
		}
	}
}

// tableOf has a row of names, one for each struct of a slice, and no column without values.
func tableOf(structs reflect.Value) [][]string {
	rows := make([][]string, 1+structs.Len())
	for i := range structs.Type().Elem().NumField() {
		name, _ := nameOf(structs.Type().Elem().Field(i))
		column, hasValue := []string{name}, false
		for j := range structs.Len() {
			field := structs.Index(j).Field(i)
			column, hasValue = append(column, cmp.Or(textOf(field), "-")), hasValue || !field.IsZero()
		}
		for j := range rows {
			if hasValue {
				rows[j] = append(rows[j], column[j])
			}
		}
	}
	return rows
}

// printLine prints cells. What strangers may have written is escaped.
func printLine(w io.Writer, cells ...string) {
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
}

func nameOf(f reflect.StructField) (name string, omit bool) {
	name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.ReplaceAll(name, "_", " "), option != ""
}

func textOf(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case time.Time:
		ago := time.Since(value).Round(time.Second)
		if ago < 0 {
			return fmt.Sprintf("%s UTC (in %s)", value.Format(time.DateTime), -ago)
		}
		return fmt.Sprintf("%s UTC (%s ago)", value.Format(time.DateTime), ago)
	case []string:
		return strings.Join(value, " ")
	case map[string]int:
		var counts []string
		for _, key := range slices.Sorted(maps.Keys(value)) {
			counts = append(counts, fmt.Sprintf("%d %s", value[key], key))
		}
		return strings.Join(counts, ", ")
	default:
		return fmt.Sprint(value)
	}
}
