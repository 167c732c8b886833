//go:build unix

package lint

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// namedPipe is a new named pipe.
func namedPipe(t *testing.T) string {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "sitemap.xml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	return pipe
}

// TestNamedPipe is that a pipe is read once a program writes into it, and that a check ends if none does.
func TestNamedPipe(t *testing.T) {
	var got []string
	o := Options{Timeout: time.Minute, Report: func(f Finding) { got = append(got, f.Message) }}
	pipe := namedPipe(t)
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, []byte(at("http://a.example/")), 0) }()
	if s := Check(t.Context(), o, pipe); len(got) != 0 || s.URLs != 1 {
		t.Errorf("somebody writes: got %q, %+v", got, s)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}

	pipe = namedPipe(t)
	o.Timeout = time.Millisecond
	s := Check(t.Context(), o, pipe)
	if len(got) != 1 || got[0] != "is a named pipe into which no program has written for 1ms" || s.Unchecked != 1 {
		t.Errorf("nobody writes: got %q, %+v", got, s)
	}
	// This lets go of what still waits for a writer.
	if w, err := os.OpenFile(pipe, os.O_WRONLY, 0); err != nil {
		t.Error(err)
	} else {
		w.Close()
	}
}
