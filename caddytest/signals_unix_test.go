//go:build unix

package caddytest

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
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
			entered := make(chan struct{}, 1)
			slow := harness.Backend(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, page(r.URL.Path))
				if r.URL.Path == "/a.html" {
					entered <- struct{}{}
					<-r.Context().Done()
				}
			})
			cmd := command(dir, "sitemap", "build", "--config", "Caddyfile", "--out", "out", "--force")
			cmd.Env = append(cmd.Env, "SLOW="+slow)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			harness.Must(t, cmd.Start())
			<-entered
			harness.Must(t, cmd.Process.Signal(signal))
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

// TestCheckInterrupt is that Ctrl-C ends a check as it ends any command, at once, and
// that what was found until then was said.
func TestCheckInterrupt(t *testing.T) {
	// A shell ignores interrupts of its background jobs. What this process catches, its children do not ignore.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt)
	defer signal.Stop(caught)
	asked := make(chan struct{}, 1)
	at := "http://" + harness.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/hangs.xml" {
			http.NotFound(w, r)
			return
		}
		asked <- struct{}{}
		<-r.Context().Done()
	})
	cmd := command(t.TempDir(), "sitemap", "check", "--timeout", "1h", at+"/gone.xml", at+"/hangs.xml")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	harness.Must(t, cmd.Start())
	<-asked
	harness.Must(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait() // which is what its state says, too
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("got %v", cmd.ProcessState)
	}
	if want := at + "/gone.xml: error: document-status: returns status 404\n"; !strings.HasSuffix(stdout.String(), want) {
		t.Errorf("got %q, want %q", stdout.String(), want)
	}
}
