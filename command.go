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

// fail says what keeps a command from being run.
func fail(cmd *cobra.Command, err error) error { return exit(cmd, exitFailed, err) }

// exit has Caddy exit with a status other than 0, and says why unless that has been said.
func exit(cmd *cobra.Command, status int, err error) error {
	if err != nil {
		cmd.PrintErrln("Error:", terminal.Clean(err.Error()))
	}
	cmd.SilenceErrors = true
	if status == exitErrors { // with which Caddy exits for any error that names no other
		return cmp.Or(err, errors.New("errors were found"))
	}
	return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return status, nil })(cmd, nil)
}
