package model

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// buildCase is a site that `caddy sitemap build` is to write.
type buildCase struct {
	of      shape
	pages   int
	refresh time.Duration
	slow    bool
}

var buildCases = []buildCase{
	{ofApplication, 300, time.Second, false},
	{ofApplication, 60, time.Second, true},
	{ofBoth, 100, 24 * time.Hour, true},
	{ofFiles, 1000, time.Second, false},
}

var buildNow = flag.Int("build", -1, "the case of TestBuilds that this process is for; -1: all, each in one of its own")

// TestBuilds is property 5 of a build: it ends, and lists all that there is, whatever the interval is and however slow an
// application is. Each has a process of its own: a command that has ended leaves goroutines.
func TestBuilds(t *testing.T) {
	if *buildNow >= 0 {
		inBubble(t, "a build", buildCases[*buildNow].run)
	}
	for i, c := range buildCases {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out, err := exec.CommandContext(ctx, os.Args[0], "-test.run=TestBuilds", "-build="+strconv.Itoa(i)).CombinedOutput()
			if err != nil {
				t.Errorf("(5) %v: %s", err, out)
			}
		})
	}
}

// run builds the sitemap, and ends the process.
func (c buildCase) run(t *testing.T, dir string) {
	m := newModel(t, 1, dir, c.of, c.pages)
	m.settings.refresh = c.refresh
	if c.slow {
		m.faults.set(ofUpstream, slow)
	}
	begun := time.Now()
	listed, err := m.build(dir)
	// A slow response takes five seconds, and the crawl pauses for twice as long. Probes are paced, too.
	isLate := time.Since(begun) > time.Duration(2*c.pages)*15*time.Second
	if err != nil || listed != len(m.site.pages) || isLate {
		fmt.Printf("%d pages are listed of %d after %s: %v\n", listed, len(m.site.pages), time.Since(begun), err)
		os.Exit(1)
	}
	os.Exit(0)
}

// build runs the command for the site, and returns how many pages are in the sitemap that it writes.
func (m *model) build(dir string) (listed int, err error) {
	config := filepath.Join(dir, "caddy.json")
	if err := os.WriteFile(config, m.config(m.settings), 0o600); err != nil {
		return 0, err
	}
	var cmd cobra.Command
	caddycmd.Commands()["sitemap"].CobraFunc(&cmd)
	cmd.SetArgs([]string{"build", "--config", config, "--out", filepath.Join(dir, "out"), "--quiet"})
	if err := cmd.Execute(); err != nil {
		return 0, err
	}
	body, err := os.ReadFile(filepath.Join(dir, "out", "sitemap.xml"))
	return bytes.Count(body, []byte("<loc>")), err
}
