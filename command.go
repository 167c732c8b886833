package sitemap

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:      "sitemap",
		Usage:     "<command>",
		Short:     "Builds the sitemaps of sites",
		CobraFunc: addSitemapCommands,
	})
}

func addSitemapCommands(cmd *cobra.Command) {
	cmd.AddCommand(buildCommand())
}
