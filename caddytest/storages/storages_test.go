//go:build unix

package storages

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
)

// open makes the storage that an option of a Caddyfile names, as a process of its own does.
func open(t *testing.T, text string) certmagic.Storage {
	t.Helper()
	d := caddyfile.NewTestDispenser(text)
	d.Next()
	module, err := caddyfile.UnmarshalModule(d, "caddy.storage."+d.Val())
	must(t, err)
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	t.Cleanup(cancel)
	if p, ok := module.(caddy.Provisioner); ok {
		must(t, p.Provision(ctx))
		t.Cleanup(func() { _ = module.(caddy.CleanerUpper).Cleanup() })
	}
	s, err := module.(caddy.StorageConverter).CertMagicStorage()
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRedis(t *testing.T) {
	server, ctx := StartServer(t), t.Context()
	a, b := open(t, "redis_test "+server.Socket), open(t, "redis_test "+server.Socket)
	if _, err := a.Load(ctx, "x/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("loading nothing: got %v", err)
	}
	for key, value := range map[string]string{"x/y/1": "", "x/y/2": "\x00\xff\r\n", "x/3": strings.Repeat("3", 1<<20)} {
		must(t, a.Store(ctx, key, []byte(value)))
		got, err := b.Load(ctx, key)
		if info, _ := b.Stat(ctx, key); err != nil || string(got) != value || info.Size != int64(len(value)) || !b.Exists(ctx, key) {
			t.Errorf("%s: got %.20q, %v, %+v", key, got, err, info)
		}
	}
	must(t, a.Delete(ctx, "x/y/1"))
	must(t, a.Delete(ctx, "x/y/1"))
	for folder, want := range map[string][]string{"x": {"x/3", "x/y"}, "x/y": {"x/y/2"}, "y": nil} {
		if got, err := b.List(ctx, folder, false); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", folder, got, err, want)
		}
	}
	if got, err := b.List(ctx, "x", true); err != nil || !slices.Equal(got, []string{"x/3", "x/y/2"}) {
		t.Errorf("got %q, %v", got, err)
	}
	// A lock is kept as long as it is renewed, then it is another's.
	lock := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return b.Lock(ctx, "lock")
	}
	renew := func(s certmagic.Storage, lease time.Duration) error {
		return s.(certmagic.LockLeaseRenewer).RenewLockLease(ctx, "lock", lease)
	}
	must(t, a.Lock(ctx, "lock"))
	must(t, renew(a, time.Minute))
	if err := lock(time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("two have the lock: %v", err)
	}
	must(t, renew(a, 100*time.Millisecond))
	must(t, lock(time.Minute))
	must(t, renew(b, time.Minute))
	if err := renew(a, time.Minute); err == nil {
		t.Error("a lost lock was renewed")
	}
	must(t, a.Unlock(ctx, "lock"))
	must(t, renew(b, time.Minute))
	must(t, b.Unlock(ctx, "lock"))
	must(t, lock(time.Minute))
}

func TestFaults(t *testing.T) {
	control := filepath.Join(t.TempDir(), "control")
	ctx, text := t.Context(), "faulty "+control+" file_system "+t.TempDir()
	a, b := open(t, text), open(t, text)
	load := func() string {
		value, err := b.Load(ctx, "x/current")
		return fmt.Sprintf("%s %v", value, err)
	}
	must(t, a.Store(ctx, "x/current", []byte("1")))
	if got := load(); got != "1 <nil>" {
		t.Errorf("got %q", got)
	}
	must(t, SetFaults(control, Fault{Op: "store", Key: "current", Lost: 1}, Fault{Op: "load", Stale: true}, Fault{Op: "store", Max: 3}, Fault{Op: "lock", Free: true}, Fault{Op: "delete", Fail: 1}))
	for what, got := range map[string]error{
		"a store whose response is lost": a.Store(ctx, "x/current", []byte("2")),
		"a store of four bytes":          a.Store(ctx, "x/four", []byte("4444")),
		"a delete":                       a.Delete(ctx, "x/current"),
	} {
		if !errors.Is(got, ErrFault) {
			t.Errorf("%s: got %v", what, got)
		}
	}
	must(t, a.Store(ctx, "x/three", []byte("333")))
	must(t, a.Lock(ctx, "lock"))
	must(t, b.Lock(ctx, "lock"))
	must(t, SetFaults(control, Fault{Op: "load", Stale: true}))
	must(t, a.Lock(ctx, "lock"))
	must(t, a.Unlock(ctx, "lock"))
	if got := load(); got != "1 <nil>" {
		t.Errorf("a stale load: got %q", got)
	}
	must(t, SetFaults(control, Fault{Op: "load", Hang: true}))
	loaded := make(chan string)
	go func() { loaded <- load() }()
	select {
	case got := <-loaded:
		t.Errorf("a load that hangs: got %q", got)
	case <-time.After(100 * time.Millisecond):
	}
	must(t, SetFaults(control))
	if got := <-loaded; got != "2 <nil>" {
		t.Errorf("after it hung: got %q", got)
	}
	calls, err := Calls(control)
	if err != nil || len(calls) != 12 || calls[1].Op != "load" || calls[1].Size != 1 || calls[11].Size != 1 {
		t.Errorf("got calls %+v, %v", calls, err)
	}
}
