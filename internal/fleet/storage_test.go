package fleet

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

var (
	errFault = errors.New("a fault of the storage")
	errDead  = errors.New("the process was killed")
)

// faults are what a storage does to its clients.
type faults struct {
	slow  time.Duration // calls take up to so long
	fail  float64       // share of the calls that fail, done or not
	hang  float64       // share of them that take a minute
	lag   time.Duration // values and lists are up to so old
	locks float64       // share of locks that are granted although another client has them
}

// value is that of a key from a time on; nil: it is deleted.
type value struct {
	at      time.Time
	data    []byte
	current current // what it says, if the key is that of current
}

// fake is the storage of a fleet. It checks that nothing is deleted, or not there, that current names.
type fake struct {
	t      testing.TB
	mu     sync.Mutex
	faults faults
	keys   map[string][]value
	in     map[string]map[string]bool // the keys of the objects that a manifest names, by the manifest's
	locks  map[string]time.Time       // until when they are held
	calls  map[string]int             // by operation and kind of key
	lost   bool                       // something that is named was lost, which is no error
	others bool                       // keys of other sites may be deleted, too
}

func newFake(t testing.TB) *fake {
	return &fake{t: t, keys: make(map[string][]value), in: make(map[string]map[string]bool), locks: make(map[string]time.Time), calls: make(map[string]int)}
}

func (f *fake) set(faults faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
}

// at returns the value of a key at a time. Under mu.
func (f *fake) at(key string, at time.Time) []byte { return f.version(key, at).data }

// version returns what a key has at a time. Under mu.
func (f *fake) version(key string, at time.Time) value {
	versions := f.keys[key]
	for i := len(versions) - 1; i >= 0; i-- {
		if !versions[i].at.After(at) {
			return versions[i]
		}
	}
	return value{}
}

// named returns the keys of the objects that current names, without the part. Under mu.
func (f *fake) named() map[string]bool {
	return f.namedBy(f.version("site/current", time.Now()).current)
}

// namedBy returns the keys of the objects that a value of current names. Under mu.
func (f *fake) namedBy(c current) map[string]bool {
	if c.Generation == 0 {
		return nil
	}
	manifest := objectKey(c.Manifest)
	content := f.at(manifest+".0", time.Now())
	if content == nil {
		return map[string]bool{manifest: true}
	}
	// An object is named after its content: each is searched once, although each deletion asks for an hour of them.
	named := f.in[manifest]
	if named == nil {
		named = map[string]bool{manifest: true}
		for _, match := range objectPattern.FindAllSubmatch(content, -1) {
			named[objectKey(string(match[1]))] = true
		}
		f.in[manifest] = named
	}
	return named
}

// wasNamed reports whether a generation of the last hour has named an object. One that a rival has
// overwritten, which has the same time, is lost as a whole. Under mu.
func (f *fake) wasNamed(key string) bool {
	versions := f.keys["site/current"]
	hourAgo := time.Now().Add(-time.Hour)
	var later current
	isOverwritten := false
	for i := len(versions) - 1; i >= 0; i-- {
		c := versions[i].current
		if c.compare(later) != 0 { // else it was written again
			isOverwritten = later.Generation > 0 && !later.At.After(c.At)
		}
		if !isOverwritten && f.namedBy(c)[key] {
			return true
		}
		if versions[i].at.Before(hourAgo) {
			return false
		}
		later = c
	}
	return false
}

// lose loses all.
func (f *fake) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keys, f.lost = make(map[string][]value), true
}

func (f *fake) hasLost() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// objectKey is the key of an object, without the part.
func objectKey(name string) string { return "site/objects/" + name }

// change stores or deletes. Under mu.
func (f *fake) change(key string, data []byte) {
	now := time.Now()
	stored := value{at: now, data: data}
	if key == "site/current" {
		stored.current = decodeCurrent(data)
	}
	f.keys[key] = append(f.keys[key], stored)
	for i := range f.keys[key] { // what no client can see any more
		if i+1 == len(f.keys[key]) || f.keys[key][i+1].at.After(now.Add(-time.Hour)) {
			f.keys[key] = f.keys[key][i:]
			break
		}
	}
	for name := range f.named() {
		if !f.lost && f.at(name+".0", now) == nil {
			f.t.Errorf("%s: current names %s, which is not stored", key, name)
		}
	}
}

// client is the storage as one process has it.
type client struct {
	*fake
	dead bool // under mu
}

// call calls do, at some time, unless there is a fault.
func (c *client) call(ctx context.Context, op, key string, do func(seen time.Time)) error {
	c.mu.Lock()
	faults := c.faults
	kind, _, _ := strings.Cut(strings.TrimPrefix(key, "site/"), "/")
	c.calls[op+" "+kind]++
	c.mu.Unlock()
	var pause time.Duration
	if faults.slow > 0 {
		pause = rand.N(faults.slow)
	}
	if rand.Float64() < faults.hang {
		pause = time.Minute
		ctx = context.WithoutCancel(ctx)
	}
	// No timer without a pause: with the race detector, Go 1.26 crashes at times if two goroutines of a bubble select on timers
	// that are due already, as their sends have one context for both.
	_, isCanceled := wait.Within(pause, ctx.Done())
	isDone := !isCanceled || rand.IntN(2) == 0
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := time.Now()
	if faults.lag > 0 {
		seen = seen.Add(-rand.N(faults.lag))
	}
	fails := rand.Float64() < faults.fail
	if isDone && (!c.dead || rand.IntN(2) == 0 && pause > 0) && (!fails || rand.IntN(2) == 0) {
		do(seen)
	}
	switch {
	case c.dead:
		return errDead
	case fails:
		return errFault
	}
	return ctx.Err()
}

func (c *client) Store(ctx context.Context, key string, value []byte) error {
	if len(value) > 256<<10 || strings.HasSuffix(key, "/current") && len(value) >= 4<<10 {
		c.t.Errorf("%s has %d bytes", key, len(value))
	}
	return c.call(ctx, "store", key, func(time.Time) { c.change(key, value) })
}

func (c *client) Load(ctx context.Context, key string) (data []byte, err error) {
	var loaded []byte
	if err = c.call(ctx, "load", key, func(seen time.Time) { loaded = c.at(key, seen) }); err == nil && loaded == nil {
		err = fs.ErrNotExist
	}
	return loaded, err
}

func (c *client) Delete(ctx context.Context, key string) error {
	return c.call(ctx, "delete", key, func(time.Time) {
		if name, _, _ := strings.Cut(key, "."); !c.lost && c.wasNamed(name) {
			c.t.Errorf("%s is deleted, which a generation of the last hour names", key)
		}
		if c.change(key, nil); !strings.HasPrefix(key, "site/") && !c.others {
			c.t.Errorf("%s is deleted", key)
		}
	})
}

func (c *client) List(ctx context.Context, folder string, recursive bool) (keys []string, err error) {
	if recursive {
		c.t.Error("a whole tree is listed")
	}
	var listed []string
	err = c.call(ctx, "list", folder, func(seen time.Time) {
		for key := range c.keys {
			if path.Dir(key) == folder && c.at(key, seen) != nil {
				listed = append(listed, key)
			}
		}
	})
	if err == nil && len(listed) == 0 {
		err = fs.ErrNotExist
	}
	return listed, err
}

const lockFor = 30 * time.Second

func (c *client) Lock(ctx context.Context, name string) error {
	for ctx.Err() == nil {
		isTaken := false
		if err := c.call(ctx, "lock", name, func(time.Time) {
			if until := c.locks[name]; until.Before(time.Now()) || rand.Float64() < c.faults.locks {
				c.locks[name], isTaken = time.Now().Add(lockFor), true
			}
		}); err != nil || isTaken {
			return err
		}
		_, _ = wait.Within(time.Second, ctx.Done())
	}
	return ctx.Err()
}

func (c *client) Unlock(ctx context.Context, name string) error {
	return c.call(ctx, "unlock", name, func(time.Time) { delete(c.locks, name) })
}

func (c *client) RenewLockLease(ctx context.Context, name string, lease time.Duration) error {
	return c.call(ctx, "renew", name, func(time.Time) { c.locks[name] = time.Now().Add(lease) })
}
