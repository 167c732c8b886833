package sitemap

import (
	"bytes"
	"context"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// commandRun is what came of a command.
type commandRun struct {
	stdout, stderr string
	status         int
}

// runCommand runs "caddy sitemap" with arguments, as Caddy does.
func runCommand(ctx context.Context, stdin io.Reader, args ...string) commandRun {
	var stdout, stderr bytes.Buffer
	status := runCommandInto(ctx, stdin, &stdout, &stderr, args...)
	return commandRun{stdout.String(), stderr.String(), status}
}

func runCommandInto(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args ...string) int {
	root := &cobra.Command{Use: "caddy", SilenceUsage: true}
	cmd := &cobra.Command{Use: "sitemap"}
	addSitemapCommands(cmd)
	root.AddCommand(cmd)
	root.SetArgs(append([]string{"sitemap"}, args...))
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if e := reflect.Indirect(reflect.ValueOf(err)); e.Kind() == reflect.Struct && e.FieldByName("ExitCode").IsValid() {
		return int(e.FieldByName("ExitCode").Int()) // what Caddy's Main exits with
	}
	return 1
}

func TestCommandUsage(t *testing.T) {
	for name, test := range map[string]struct {
		args           string
		stdout, stderr string // parts
		status         int
	}{
		"nothing":      {"", "check       Reports what is wrong with sitemaps", "", 0},
		"help":         {"check --help", "caddy sitemap check FILE|DIR|URL... [flags]", "", 0},
		"help of one":  {"help explain", "caddy sitemap explain URL | --site URL PATH [flags]", "", 0},
		"no such help": {"help chek", "", "Error: unrecognized command 'chek'; did you mean 'check'?\n", 2},
		"misspelt":     {"chek", "", "Error: unrecognized command 'chek'; did you mean 'check'?\n", 2},
		"unknown":      {"xyzzy a", "", "Error: unrecognized command 'xyzzy'\n", 2},
		"unknown flag": {"check --nosuch x", "", "Error: unknown flag: --nosuch\n", 2},
		"flag above":   {"--nosuch check", "", "Error: unknown flag: --nosuch\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := runCommand(t.Context(), nil, strings.Fields(test.args)...)
			if !strings.Contains(r.stdout, test.stdout) || r.status != test.status || test.stderr != r.stderr {
				t.Errorf("got %+v, want %+v", r, test)
			}
		})
	}
}
