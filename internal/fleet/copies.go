package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const (
	copyPatience = 2 * time.Second // with a call: the storage of the fleet may take no longer
	copyPause    = 5 * time.Minute // without copies, once their disk has not responded
)

var errNoCopies = errors.New("the local copies do not respond")

// copies are a node's own copies of what the storage has. If their disk hangs, the node goes on without them.
type copies struct {
	storage store.Storage
	now     func() time.Time

	mu   sync.Mutex
	hung time.Time // when a call did not return; zero: none did
}

func newCopies(storage store.Storage, now func() time.Time) *copies {
	return &copies{storage: store.Bounded(storage), now: now}
}

// use calls the storage of the copies, unless it has just hung.
func (c *copies) use(ctx context.Context, call func(context.Context, store.Storage) error) error {
	c.mu.Lock()
	isPaused := !c.hung.IsZero() && c.now().Sub(c.hung).Abs() < copyPause
	c.mu.Unlock()
	if isPaused {
		return errNoCopies
	}
	ctx, cancel := context.WithTimeoutCause(ctx, copyPatience, store.ErrHung)
	defer cancel()
	err := call(ctx, c.storage)
	if errors.Is(err, store.ErrHung) {
		c.mu.Lock()
		c.hung = c.now()
		c.mu.Unlock()
	}
	return err
}

func (c *copies) load(ctx context.Context, key string) (data []byte, err error) {
	err = c.use(ctx, func(ctx context.Context, s store.Storage) (err error) {
		data, err = s.Load(ctx, key)
		return err
	})
	return data, err
}

// object returns the copy of an object; nil: there is no good one.
func (c *copies) object(ctx context.Context, name string) []byte {
	data, err := c.load(ctx, path.Join(folder, name))
	if err != nil || store.Hash(data) != name {
		return nil
	}
	return data
}

// store stores a copy. What cannot be stored is loaded from the fleet's storage again.
func (c *copies) store(ctx context.Context, key string, value []byte) {
	_ = c.use(ctx, func(ctx context.Context, s store.Storage) error { return s.Store(ctx, key, value) })
}

// current returns the generation that the node went on from last; zero: it is not known.
func (c *copies) current(ctx context.Context) current {
	data, err := c.load(ctx, currentKey)
	if err != nil {
		return current{}
	}
	return decodeCurrent(data)
}

// setCurrent stores which generation the node goes on from.
func (c *copies) setCurrent(ctx context.Context, adopted current) {
	c.store(ctx, currentKey, encodeCurrent(adopted))
}

// keep deletes the copies of all other objects. What it cannot delete is left to the next time.
func (c *copies) keep(ctx context.Context, names map[string]bool) {
	var keys []string
	_ = c.use(ctx, func(ctx context.Context, s store.Storage) (err error) {
		keys, err = s.List(ctx, folder, false)
		return err
	})
	for _, key := range keys {
		name := path.Base(key)
		if names[name] {
			continue
		}
		err := c.use(ctx, func(ctx context.Context, s store.Storage) error {
			return s.Delete(ctx, path.Join(folder, name))
		})
		if err != nil {
			return
		}
	}
}

// placeKey is the key of a random value that tells the processes in one state folder from those in others.
const placeKey = "place"

// place returns what is the same for all processes that have these copies, one after the other; "": that cannot be
// told.
func (c *copies) place(ctx context.Context) string {
	data, err := c.load(ctx, placeKey)
	isUnread := err != nil && !errors.Is(err, fs.ErrNotExist)
	if isUnread {
		return ""
	}
	// There is none yet, or it is damaged.
	if !hashPattern.Match(data) {
		data = []byte(fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()))
		c.store(ctx, placeKey, data)
	}
	return string(data)
}

// lastCopy is the generation that was copied last, as a [store.Storage] that a store can be opened from: for when the
// fleet's storage is another one since, or has lost everything. An object without a copy counts as lost.
type lastCopy struct{ copies *copies }

// Store implements [store.Storage]. It does nothing: the generation stays as it is.
func (l lastCopy) Store(context.Context, string, []byte) error { return nil }

// Load implements [store.Storage]: it loads the manifest of the generation, or an object.
func (l lastCopy) Load(ctx context.Context, key string) ([]byte, error) {
	name := path.Base(key)
	if name == manifestName {
		name = l.copies.current(ctx).Manifest
	}
	data := l.copies.object(ctx, name)
	if data == nil {
		return nil, fs.ErrNotExist // a copy that is damaged is none
	}
	return data, nil
}

// Delete implements [store.Storage]. It does nothing.
func (l lastCopy) Delete(context.Context, string) error { return nil }

// List implements [store.Storage]. It lists nothing.
func (l lastCopy) List(context.Context, string, bool) ([]string, error) { return nil, nil }
