package caddytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// sharedIn is a site that is shared in the storage of an option, with a state folder or without. Caddy's own storage is
// {dir}/caddys.
func sharedIn(storage, state string) string {
	caddyfile := stateIn(state, "")
	return strings.Replace(caddyfile, "{\n sitemap {\n", "{\n storage file_system {dir}/caddys\n sitemap {\n"+storage+"\n", 1)
}

// TestOwnStorage: a site may be in a storage of its own, apart from Caddy's. It goes on there with what is known of it, also
// after a reload that changes the storage.
func TestOwnStorage(t *testing.T) {
	for name, test := range map[string]struct{ before, state string }{
		"from the start":           {"", "{dir}/state"},
		"after Caddy's, no state":  {"storage caddy", "off"},
		"after the state folder":   {"storage local", "{dir}/state"},
		"after a folder, no state": {"storage local", "off"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := countFetches(t)
			s := prepare(t, nil)
			s.writeDated(20, pageNumbered)
			own := sharedIn("storage file_system {\n root {dir}/own\n }", test.state)
			if test.before == "" {
				s.Load(own)
				s.Crawled()
			} else {
				s.Load(sharedIn(test.before, test.state))
				s.Crawled()
				bodies := s.served()
				asked.since()
				s.Load(own)
				s.wantServed(bodies, "a reload with another storage")
				s.Eventually(func() bool { return s.hasCurrent("own") }, s.SitemapLog)
				s.Quietly(1)
				s.wantServed(bodies, "a refresh with another storage")
				isKept := test.before != "storage local" || test.state != "off" // else only the documents outlive it
				if pages := asked.since(); isKept && len(pages) > 0 {
					t.Errorf("with another storage, asked for %v", pages)
				}
			}
			s.Eventually(func() bool { return s.hasCurrent("own") }, s.SitemapLog)
			if test.before != "storage caddy" && s.hasCurrent("caddys") {
				t.Error("Caddy's storage has the site")
			}
			entries, err := os.ReadDir(filepath.Join(s.Dir, "own"))
			harness.Must(t, err)
			for _, e := range entries {
				if e.Name() != "sitemap" && e.Name() != "locks" {
					t.Errorf("the storage of the sitemap has %s", e.Name())
				}
			}
			if warnings := s.LogLines(`"level":"warn"`, "sitemap"); len(warnings) > 0 {
				t.Errorf("the log warns %s", warnings)
			}
			bodies := s.bodies()
			asked.since()
			s.Restart(own)
			s.Crawled()
			if pages := asked.since(); len(pages) > 0 {
				t.Errorf("after a restart, asked for %v", pages)
			}
			for url, body := range s.bodies() {
				if body != bodies[url] {
					t.Errorf("after a restart, %s is\n%s\nit was\n%s", url, body, bodies[url])
				}
			}
		})
	}
}

// hasCurrent reports whether a site is shared in a folder.
func (s *server) hasCurrent(folder string) bool {
	found, _ := filepath.Glob(filepath.Join(s.Dir, folder, "sitemap", "*", "current"))
	return len(found) > 0
}

// TestStorageOfThisMachine: that a storage is only this machine's is a warning.
func TestStorageOfThisMachine(t *testing.T) {
	s := start(t, "{\n sitemap {\n storage caddy\n }\n}\n"+everySecond, map[string]string{"site/index.html": "home"})
	s.Logged(`"level":"warn"`, "the sitemap is not shared", "set the global option 'storage'")
}
