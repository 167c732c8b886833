//go:build unix

package operators

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestBuildInterrupted: a build that is told to end leaves everything as it was.
func TestBuildInterrupted(t *testing.T) {
	for name, signal := range map[string]os.Signal{"by the user": os.Interrupt, "by the system": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, pages(10))
			out := filepath.Join(dir, "out")
			build(t, dir, append(alone, "--out", "out")...)
			before := sums(t, out)
			write(t, dir, map[string]string{"Caddyfile": "http://example.com {\n\tsitemap {\n\t\turls {\n\t\t\t/a.html\n\t\t}\n\t}\n\treverse_proxy {env.SLOW}\n}\n"})
			entered, leave := make(chan struct{}, 1), make(chan struct{})
			t.Cleanup(func() { close(leave) })
			cmd := command(dir, "sitemap", "build", "--config", "Caddyfile", "--out", "out", "--force")
			cmd.Env = append(cmd.Env, "SLOW="+slow(t, entered, leave))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-entered
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(stderr.String(), "interrupted: the files stay as they were") {
				t.Errorf("got %v, %s", err, stderr.String())
			}
			if got := sums(t, out); !maps.Equal(got, before) {
				t.Errorf("got %v, want %v", got, before)
			}
			build(t, dir, append(alone, "--out", "out")...)
		})
	}
}

// TestBuildUnwritable: a folder that must not be written into is found out before any work.
func TestBuildUnwritable(t *testing.T) {
	dir := openToAll(t)
	write(t, dir, map[string]string{"www/index.html": page("front")})
	build(t, dir, append(alone, "--out", "out")...)
	out := filepath.Join(dir, "out")
	before := sums(t, out)
	if err := os.Chmod(out, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(out, 0o755) })
	write(t, dir, map[string]string{"www/new.html": page("new")})
	for into, words := range map[string][]string{
		"out":       {"opening the output folder", "writing into out", "permission denied"},
		"out/below": {"opening the output folder", "below", "permission denied"},
	} {
		r := runCommand(t, asNobody(t, dir, append([]string{"sitemap", "build", "--out", into}, alone...)...))
		if r.status != 1 {
			t.Errorf("%s: got %+v", into, r)
		}
		wantWords(t, "the error", r.stderr, words...)
	}
	if got := sums(t, out); !maps.Equal(got, before) {
		t.Errorf("got %v, want %v", got, before)
	}
}

// openToAll is a temporary folder that everybody may look into.
func openToAll(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// nobody is a user who has no files.
const nobody = 65534

// asNobody is command as a user whom permissions bind: the test's own, unless that is root.
func asNobody(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(dir, args...)
	if os.Geteuid() != 0 {
		return cmd
	}
	program, err := os.ReadFile(os.Args[0])
	if err == nil {
		cmd.Path = filepath.Join(dir, "program")
		err = os.WriteFile(cmd.Path, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}
