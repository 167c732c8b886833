//go:build unix

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
	"github.com/caddyserver/certmagic"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/caddytest/storages"
)

// openStorage makes the storage that an option of a Caddyfile names, as a process of its own does.
func openStorage(t *testing.T, text string) certmagic.Storage {
	t.Helper()
	d := caddyfile.NewTestDispenser(text)
	d.Next()
	module, err := caddyfile.UnmarshalModule(d, "caddy.storage."+d.Val())
	harness.Must(t, err)
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	t.Cleanup(cancel)
	if p, ok := module.(caddy.Provisioner); ok {
		harness.Must(t, p.Provision(ctx))
		t.Cleanup(func() { _ = module.(caddy.CleanerUpper).Cleanup() })
	}
	s, err := module.(caddy.StorageConverter).CertMagicStorage()
	harness.Must(t, err)
	return s
}

func TestRedis(t *testing.T) {
	server, ctx := storages.StartServer(t), t.Context()
	a, b := openStorage(t, "redis_test "+server.Socket), openStorage(t, "redis_test "+server.Socket)
	if _, err := a.Load(ctx, "x/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("loading nothing: got %v", err)
	}
	for key, value := range map[string]string{"x/y/1": "", "x/y/2": "\x00\xff\r\n", "x/3": strings.Repeat("3", 1<<20)} {
		harness.Must(t, a.Store(ctx, key, []byte(value)))
		got, err := b.Load(ctx, key)
		if info, _ := b.Stat(ctx, key); err != nil || string(got) != value || info.Size != int64(len(value)) || !b.Exists(ctx, key) {
			t.Errorf("%s: got %.20q, %v, %+v", key, got, err, info)
		}
	}
	harness.Must(t, a.Delete(ctx, "x/y/1"))
	harness.Must(t, a.Delete(ctx, "x/y/1"))
	for folder, want := range map[string][]string{"x": {"x/3", "x/y"}, "x/y": {"x/y/2"}, "y": nil} {
		if got, err := b.List(ctx, folder, false); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", folder, got, err, want)
		}
	}
	if got, err := b.List(ctx, "x", true); err != nil || !slices.Equal(got, []string{"x/3", "x/y/2"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFaultyStorage(t *testing.T) {
	control := filepath.Join(t.TempDir(), "control")
	ctx, text := t.Context(), "faulty "+control+" file_system "+t.TempDir()
	a, b := openStorage(t, text), openStorage(t, text)
	load := func() string {
		value, err := b.Load(ctx, "x/current")
		return fmt.Sprintf("%s %v", value, err)
	}
	harness.Must(t, a.Store(ctx, "x/current", []byte("1")))
	if got := load(); got != "1 <nil>" {
		t.Errorf("got %q", got)
	}
	harness.Must(t, storages.SetFaults(control, storages.Fault{Op: "store", Key: "current", Lost: 1}, storages.Fault{Op: "load", Stale: true}, storages.Fault{Op: "store", Max: 3}, storages.Fault{Op: "delete", Fail: 1}))
	for what, got := range map[string]error{
		"a store whose response is lost": a.Store(ctx, "x/current", []byte("2")),
		"a store of four bytes":          a.Store(ctx, "x/four", []byte("4444")),
		"a delete":                       a.Delete(ctx, "x/current"),
	} {
		if !errors.Is(got, storages.ErrFault) {
			t.Errorf("%s: got %v", what, got)
		}
	}
	harness.Must(t, a.Store(ctx, "x/three", []byte("333")))
	harness.Must(t, storages.SetFaults(control, storages.Fault{Op: "load", Stale: true}))
	if got := load(); got != "1 <nil>" {
		t.Errorf("a stale load: got %q", got)
	}
	harness.Must(t, storages.SetFaults(control, storages.Fault{Op: "load", Hang: true}))
	loaded := make(chan string)
	go func() { loaded <- load() }()
	select {
	case got := <-loaded:
		t.Fatalf("a load that hangs: got %q", got)
	case <-time.After(100 * time.Millisecond):
	}
	harness.Must(t, storages.SetFaults(control))
	if got := <-loaded; got != "2 <nil>" {
		t.Errorf("after it hung: got %q", got)
	}
	calls, err := storages.Calls(control)
	if err != nil || len(calls) != 8 || calls[1].Op != "load" || calls[1].Size != 1 || calls[7].Size != 1 {
		t.Errorf("got calls %+v, %v", calls, err)
	}
}
