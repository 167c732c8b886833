package sitemap

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:      "sitemap",
		Usage:     "<command>",
		Short:     "Builds and checks sitemaps, and looks at those of a running server",
		Long:      "Works on sitemaps from the command line.",
		CobraFunc: addSitemapCommands,
	})
}

// Exit statuses of the commands.
const (
	exitErrors = 1 // it was run, and found errors
	exitFailed = 2 // it could not be run, or not as a whole
)

// addSitemapCommands adds what "caddy sitemap" can do.
func addSitemapCommands(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(fail)
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = fmt.Sprintf("; did you mean '%s'?", near[0])
		}
		return fail(cmd, fmt.Errorf("unrecognized command '%s'%s", args[0], hint))
	}
	cmd.AddCommand(append(adminCommands(), buildCommand(), checkCommand())...)
}

// fail says what keeps a command from being run, and has Caddy exit with exitFailed.
func fail(cmd *cobra.Command, err error) error {
	cmd.PrintErrln("Error:", err)
	return exit(cmd, exitFailed)
}

// exit has Caddy exit with a status; what is to be said has been said.
func exit(cmd *cobra.Command, status int) error {
	cmd.SilenceErrors = true
	if status == exitErrors {
		return errFound // Caddy exits with 1 for any error that names no other status
	}
	return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return status, nil })(cmd, nil)
}

var errFound = errors.New("errors were found")
