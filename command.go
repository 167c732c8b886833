package sitemap

import (
	"errors"
	"fmt"
	"slices"

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
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return fail(cmd, unknownCommand(cmd, args[0]))
	}
	cmd.AddCommand(buildCommand(), checkCommand(), statusCommand(), refreshCommand(), explainCommand())
}

func unknownCommand(cmd *cobra.Command, name string) error {
	var known []string
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	slices.Sort(known)
	if near := nearest(name, known); near != "" {
		return fmt.Errorf("unrecognized command '%s'; did you mean '%s'?", name, near)
	}
	return fmt.Errorf("unrecognized command '%s'", name)
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
