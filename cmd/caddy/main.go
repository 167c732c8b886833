// Command caddy is Caddy with its standard modules and caddy-sitemap.
package main

import (
	_ "time/tzdata"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/seed3295b519/caddy-sitemap"
)

func main() {
	caddycmd.Main()
}
