// Command synthetic is Caddy with its standard modules, caddy-sitemap and a source
// that makes pages up.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

func main() {
	caddycmd.Main()
}
