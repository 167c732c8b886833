package storages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"
)

func init() {
	caddy.RegisterModule(new(faulty))
}

// ErrFault is the error of calls that fail on purpose.
var ErrFault = errors.New("the storage fails on purpose")

// Fault is what goes wrong with some calls.
type Fault struct {
	Op    string        // store, load, delete, exists, list, stat, lock or unlock; "": any
	Key   string        // a part of the keys that it concerns; "": any
	Delay time.Duration // before the call
	Fail  float64       // share of the calls that fail and do nothing
	Lost  float64       // share of the calls that do what they must, and then fail
	Hang  bool          // a call does not return before the fault is taken away, whatever its context
	Stale bool          // of load and list: the result of the call before, if there was one
	Max   int           // of store: larger values fail
}

// faulty is another storage with faults, which processes read at each call from one file. All calls are logged beside it,
// in <control>.log.
//
//	storage faulty <control> <module> …
type faulty struct {
	Control string          `json:"control"` // see [SetFaults]
	Storage json.RawMessage `json:"storage" caddy:"namespace=caddy.storage inline_key=module"`

	inner certmagic.Storage
	log   *os.File
	mu    sync.Mutex
	last  map[string]any // results of load and list, by operation and key
}

// SetFaults has the storages of a control file show these faults from now on.
func SetFaults(control string, faults ...Fault) error {
	data, err := json.Marshal(faults)
	if err == nil {
		err = os.WriteFile(control+".new", data, 0o600)
	}
	if err != nil {
		return err
	}
	return os.Rename(control+".new", control)
}

// Call is a line of the log of calls.
type Call struct {
	Process int
	Op, Key string
	Size    int    `json:",omitempty"` // of the value that was stored or loaded
	Error   string `json:",omitempty"`
}

// Calls reads the log of calls.
func Calls(control string) (calls []Call, err error) {
	data, err := os.ReadFile(control + ".log")
	data = data[:bytes.LastIndexByte(data, '\n')+1] // the last line may be under way
	for line := range strings.Lines(string(data)) {
		var c Call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	return calls, err
}

func (*faulty) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.storage.faulty", New: func() caddy.Module { return new(faulty) }}
}

func (f *faulty) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	var name string
	if !d.Args(&f.Control, &name) {
		return d.ArgErr()
	}
	module, err := caddyfile.UnmarshalModule(d, "caddy.storage."+name)
	f.Storage = caddyconfig.JSONModuleObject(module, "module", name, nil)
	return err
}

func (f *faulty) Provision(ctx caddy.Context) error {
	module, err := ctx.LoadModule(f, "Storage")
	if err != nil {
		return err
	}
	if f.inner, err = module.(caddy.StorageConverter).CertMagicStorage(); err != nil {
		return err
	}
	f.last = make(map[string]any)
	f.log, err = os.OpenFile(f.Control+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return err
}

func (f *faulty) Cleanup() error { return f.log.Close() }

func (f *faulty) CertMagicStorage() (certmagic.Storage, error) { return f, nil }

// fault returns the first fault that concerns a call.
func (f *faulty) fault(op, key string) Fault {
	var faults []Fault
	if data, err := os.ReadFile(f.Control); err == nil {
		_ = json.Unmarshal(data, &faults)
	}
	for _, fault := range faults {
		if (fault.Op == "" || fault.Op == op) && strings.Contains(key, fault.Key) {
			return fault
		}
	}
	return Fault{}
}

// call makes and logs a call, which returns the size of a value.
func (f *faulty) call(op, key string, run func(Fault) (int, error)) error {
	fault := f.fault(op, key)
	for ; fault.Hang; fault = f.fault(op, key) {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(fault.Delay)
	doesFail := rand.Float64() < fault.Fail
	isLost := rand.Float64() < fault.Lost
	c := Call{Process: os.Getpid(), Op: op, Key: key}
	err := ErrFault
	if !doesFail {
		c.Size, err = run(fault)
	}
	if err == nil && isLost {
		err = ErrFault
	}
	if err != nil {
		c.Error = err.Error()
	}
	line, _ := json.Marshal(c)
	_, _ = f.log.Write(append(line, '\n'))
	return err
}

// recall returns the result of a call, or that of the one before if it is to be stale.
func recall[T any](f *faulty, key string, fault Fault, run func() (T, error)) (T, error) {
	f.mu.Lock()
	last, ok := f.last[key]
	f.mu.Unlock()
	if ok && fault.Stale {
		return last.(T), nil
	}
	result, err := run()
	if err == nil {
		f.mu.Lock()
		f.last[key] = result
		f.mu.Unlock()
	}
	return result, err
}

func (f *faulty) Store(ctx context.Context, key string, value []byte) error {
	return f.call("store", key, func(fault Fault) (int, error) {
		if fault.Max > 0 && len(value) > fault.Max {
			return len(value), fmt.Errorf("a value of %d bytes: %w", len(value), ErrFault)
		}
		return len(value), f.inner.Store(ctx, key, value)
	})
}

func (f *faulty) Load(ctx context.Context, key string) (value []byte, err error) {
	err = f.call("load", key, func(fault Fault) (int, error) {
		value, err = recall(f, "load "+key, fault, func() ([]byte, error) { return f.inner.Load(ctx, key) })
		return len(value), err
	})
	return value, err
}

func (f *faulty) Delete(ctx context.Context, key string) error {
	return f.call("delete", key, func(Fault) (int, error) { return 0, f.inner.Delete(ctx, key) })
}

func (f *faulty) Exists(ctx context.Context, key string) bool {
	return f.call("exists", key, func(Fault) (size int, err error) {
		if !f.inner.Exists(ctx, key) {
			err = fs.ErrNotExist
		}
		return 0, err
	}) == nil
}

func (f *faulty) List(ctx context.Context, folder string, recursive bool) (keys []string, err error) {
	err = f.call("list", folder, func(fault Fault) (int, error) {
		keys, err = recall(f, "list "+folder, fault, func() ([]string, error) { return f.inner.List(ctx, folder, recursive) })
		return 0, err
	})
	return keys, err
}

func (f *faulty) Stat(ctx context.Context, key string) (info certmagic.KeyInfo, err error) {
	err = f.call("stat", key, func(Fault) (int, error) {
		info, err = f.inner.Stat(ctx, key)
		return 0, err
	})
	return info, err
}

func (f *faulty) Lock(ctx context.Context, name string) error {
	return f.call("lock", name, func(Fault) (int, error) { return 0, f.inner.Lock(ctx, name) })
}

func (f *faulty) Unlock(ctx context.Context, name string) error {
	return f.call("unlock", name, func(Fault) (int, error) { return 0, f.inner.Unlock(ctx, name) })
}
