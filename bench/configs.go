package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// caddyfile is a whole Caddyfile: the folder of the sitemaps' state, its global options
// beyond those that keep Caddy from writing outside of the work folder, and its sites.
func caddyfile(state, global string, sites ...string) string {
	if !strings.Contains(global, "admin ") {
		global = "admin off\n" + global
	}
	return "{\n" + global + "\npersist_config off\nsitemap {\nstate " + quote(state) + "\n}\n}\n" + strings.Join(sites, "")
}

// directive is ours with so many seconds from one refresh to the next, and other
// settings of it, each on a line.
func directive(seconds int, settings ...string) string {
	return fmt.Sprintf("sitemap {\nrefresh %ds\n%s\n}", seconds, strings.Join(settings, "\n"))
}

// seldom is more seconds from one refresh to the next than any row is measured for.
const seldom = 24 * 60 * 60

// fileSite is the Caddyfile of a site of files, with our directive or without.
func fileSite(addr, root, directive string) string {
	return fmt.Sprintf("http://%s {\nbind 127.0.0.1\nroot * %s\n%s\nfile_server\n}\n", addr, quote(root), directive)
}

// refreshLog has everything that the handler logs written to a file of JSON lines.
func refreshLog(name string) string {
	return fmt.Sprintf("log bench {\noutput file %s\nformat json\nlevel DEBUG\ninclude http.handlers.sitemap\n}", quote(name))
}

func quote(name string) string { return `"` + filepath.ToSlash(name) + `"` }
