package caddytest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// command is a Caddy command that is not started yet, in a folder.
func command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), commandVar+"=1", "XDG_DATA_HOME="+filepath.Join(dir, ".data"), "XDG_CONFIG_HOME="+filepath.Join(dir, ".data"))
	return cmd
}

// ran is what a command came to.
type ran struct {
	status         int
	stdout, stderr string
}

// run runs a command to its end.
func run(t *testing.T, dir string, args ...string) ran {
	t.Helper()
	return runCommand(t, command(dir, args...))
}

func runCommand(t *testing.T, cmd *exec.Cmd) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return ran{exit.ExitCode(), stdout.String(), stderr.String()}
	}
	harness.Must(t, err)
	return ran{0, stdout.String(), stderr.String()}
}

// write makes files below a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		harness.Must(t, err)
	}
}

// read is a file's content; "": there is none.
func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

func wantWords(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%s has no %q:\n%s", what, word, text)
		}
	}
}
