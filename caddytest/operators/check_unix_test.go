//go:build !windows

package operators

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestCheckInterrupt is that Ctrl-C ends a check as it ends any command, at once, and
// that what was found until then was said.
func TestCheckInterrupt(t *testing.T) {
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
