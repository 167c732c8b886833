package model

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
)

func init() {
	caddy.RegisterModule(new(disk))
	caddy.RegisterModule(new(transport))
	caddy.RegisterModule(new(storage))
	caddy.RegisterModule(new(logWriter))
}

// running is the model of the run under way, which the modules below ask.
var running atomic.Pointer[model]

// errOnPurpose is why whatever the model breaks fails.
var errOnPurpose = errors.New("it fails on purpose")

// disk is the folder of the site as a file system, which nothing watches: what reads the kernel's events would stop the clock.
type disk struct{}

func (*disk) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.fs.model", New: func() caddy.Module { return new(disk) }}
}

func (*disk) Open(name string) (fs.File, error) {
	m := running.Load()
	if err := m.faults.disk(name); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.DirFS(m.folder).Open(name)
}

// transport is the way to the application, which is a handler in memory.
type transport struct{}

func (*transport) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.transport.model", New: func() caddy.Module { return new(transport) }}
}

func (*transport) RoundTrip(r *http.Request) (*http.Response, error) {
	m := running.Load()
	m.oracle.requested(r.URL.Path)
	w := httptest.NewRecorder()
	isDone, err := m.faults.upstream(w, r)
	if err != nil {
		return nil, err
	}
	if !isDone {
		m.site.ServeHTTP(w, r)
	}
	return w.Result(), nil
}

// logWriter keeps the end of what Caddy logs, to be printed with a problem.
type logWriter struct{}

func (*logWriter) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.logging.writers.model", New: func() caddy.Module { return new(logWriter) }}
}

func (*logWriter) String() string                      { return "model" }
func (*logWriter) WriterKey() string                   { return "model" }
func (*logWriter) OpenWriter() (io.WriteCloser, error) { return new(logWriter), nil }
func (*logWriter) Close() error                        { return nil }

func (*logWriter) Write(line []byte) (int, error) {
	running.Load().log.add(string(line))
	return len(line), nil
}

// logTail is the end of a log.
type logTail struct {
	mu    sync.Mutex
	lines []string
}

func (l *logTail) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) >= 4000 {
		l.lines = append(l.lines[:0], l.lines[2000:]...)
	}
	l.lines = append(l.lines, line)
}
