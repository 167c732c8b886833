package sitemap

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/seed3295b519/caddy-sitemap/internal/terminal"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:      "sitemap",
		Usage:     "<command>",
		Short:     "Shows, explains, builds and checks sitemaps",
		Long:      "Shows and explains the sitemaps of a running server, builds sitemaps into a folder,\nand checks any sitemap.",
		CobraFunc: addSitemapCommands,
	})
}

// Exit statuses of the commands.
const (
	exitErrors = 1 // errors were found
	exitFailed = 2 // invalid usage, or something could not be checked
)

// addSitemapCommands adds the commands of "caddy sitemap".
func addSitemapCommands(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(fail)
	cmd.SuggestionsMinimumDistance = 2
	cmd.PersistentFlags().BoolP("quiet", "q", false, "Print errors only")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		// cobra gives help to the root command alone.
		if args[0] == "help" {
			about, rest, err := cmd.Find(args[1:])
			if err == nil && len(rest) == 0 {
				return about.Help()
			}
			args = args[min(1, len(rest)):]
		}
		hint := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = fmt.Sprintf("; did you mean '%s'?", near[0])
		}
		return fail(cmd, fmt.Errorf("unrecognized command '%s'%s", args[0], hint))
	}
	cmd.AddCommand(append(adminCommands(), buildCommand(), checkCommand())...)
}

// fail says what keeps a command from being run.
func fail(cmd *cobra.Command, err error) error { return exit(cmd, exitFailed, err) }

// exit has Caddy exit with a status other than 0, and says why unless that has been said.
func exit(cmd *cobra.Command, status int, err error) error {
	if err != nil {
		cmd.PrintErrln("Error:", terminal.Clean(err.Error()))
	}
	cmd.SilenceErrors = true
	// Caddy exits with this status for any error that names no other.
	if status == exitErrors {
		return cmp.Or(err, errors.New("errors were found"))
	}
	return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return status, nil })(cmd, nil)
}
