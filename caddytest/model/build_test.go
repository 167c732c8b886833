package model

import (
	"bytes"
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
	isSlow  bool
}

var buildCases = []buildCase{
	{ofApplication, 300, time.Second, false},
	{ofApplication, 60, time.Second, true},
	{ofBoth, 100, 24 * time.Hour, true},
	{ofFiles, 1000, time.Second, false},
}

// TestBuilds is property 5 of a build: it ends, and lists all that there is, whatever the interval is and however slow an
// application is. Each has a process of its own: a command that has ended leaves goroutines.
func TestBuilds(t *testing.T) {
	for i, c := range buildCases {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			if os.Getenv("MODEL_BUILD") != "" {
				inBubble(t, c.build)
			}
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+t.Name()+"$", "-test.timeout=1m")
			child.Env = append(os.Environ(), "MODEL_BUILD=1")
			if out, err := child.CombinedOutput(); err != nil {
				t.Errorf("(5) %+v: %v: %s", c, err, out)
			}
		})
	}
}

// build writes the sitemap, and ends the process.
func (c buildCase) build(dir string) {
	w := newWorld(1, dir, c.of, c.pages)
	if c.isSlow {
		w.begin("application", "slow")
	}
	begun := time.Now()
	config := filepath.Join(dir, "caddy.json")
	w.check(os.WriteFile(config, w.config(settings{refresh: c.refresh}), 0o600))
	var cmd cobra.Command
	caddycmd.Commands()["sitemap"].CobraFunc(&cmd)
	cmd.SetArgs([]string{"build", "--config", config, "--out", filepath.Join(dir, "out"), "--quiet"})
	w.check(cmd.Execute())
	body, err := os.ReadFile(filepath.Join(dir, "out", "sitemap.xml"))
	w.check(err)
	listed := bytes.Count(body, []byte("<loc>"))
	// A slow response takes five seconds, and the crawl pauses for twice as long. Probes are paced, too.
	isLate := time.Since(begun) > time.Duration(2*c.pages)*15*time.Second
	if w.hasFailed() || listed != len(w.pages) || isLate {
		fmt.Printf("%d pages are listed of %d after %s: %v\n", listed, len(w.pages), time.Since(begun), w.problem.Load())
		os.Exit(1)
	}
	os.Exit(0)
}
