package model

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
)

// running is the world of the run under way, in which the modules below are. With them, nothing waits for a socket or the
// kernel, which would stop the clock.
var running atomic.Pointer[world]

type (
	disk        struct{} // the folder of the site, which nothing watches
	application struct{} // a transport to it
	storage     struct { // which processes share; its locks are not files, as those go by real times
		certmagic.FileStorage
		*world
	}
)

func init() {
	caddy.RegisterModule(disk{})
	caddy.RegisterModule(application{})
	caddy.RegisterModule(new(storage))
}

func (disk) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.fs.model", New: func() caddy.Module { return new(disk) }}
}

func (disk) Open(name string) (fs.File, error) {
	w := running.Load()
	kind, _ := w.now("disk")
	err := w.call(context.Background(), "disk")
	if kind == "gone" || kind == "half gone" && strings.Contains(name, "guide") {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.DirFS(w.folder).Open(name)
}

func (application) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.transport.model", New: func() caddy.Module { return new(application) }}
}

func (application) RoundTrip(r *http.Request) (*http.Response, error) {
	w := running.Load()
	if r.Method == http.MethodGet {
		w.judgeRequest(r.URL.Path)
	}
	if err := w.call(r.Context(), "application"); err != nil {
		return nil, err
	}
	recorder := httptest.NewRecorder()
	if !w.refuse(recorder, r.URL.Path) {
		w.serve(recorder, r)
	}
	return recorder.Result(), nil
}

func (*storage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.storage.model", New: func() caddy.Module { return new(storage) }}
}

func (*storage) CertMagicStorage() (certmagic.Storage, error) {
	w := running.Load()
	return &storage{certmagic.FileStorage{Path: w.shared}, w}, nil
}

func (s *storage) Store(ctx context.Context, key string, value []byte) error {
	if err := s.call(ctx, "storage"); err != nil {
		return err
	}
	return s.FileStorage.Store(ctx, key, value)
}

func (s *storage) Load(ctx context.Context, key string) ([]byte, error) {
	if err := s.call(ctx, "storage"); err != nil {
		return nil, err
	}
	return s.FileStorage.Load(ctx, key)
}

// Lock does not panic: that this ends the process is not held against it, as locks will go.
func (s *storage) Lock(ctx context.Context, _ string) error {
	if kind, _ := s.now("storage"); kind == "panicking" {
		return errOnPurpose
	}
	if err := s.call(ctx, "storage"); err != nil {
		return err
	}
	return await(ctx, s.unlocked)
}

func (s *storage) Unlock(context.Context, string) error {
	select {
	case s.unlocked <- struct{}{}:
	default:
	}
	return nil
}

// announced has the URLs that were announced. The engine and the proxy live outside of the bubble: while a request is under
// way, the clock stands still.
var announced = make(chan string, 1_000_000)

func startEngine() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var notice struct {
			URLs []string `json:"urlList"`
		}
		if err := json.NewDecoder(r.Body).Decode(&notice); err != nil {
			panic(err)
		}
		for _, url := range notice.URLs {
			announced <- url
		}
	}))
}
