package persist

import (
	"context"
	"io/fs"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const fileGrace = time.Second // after Stop, say: a write that is abandoned may overwrite that of the next process

// File is one value on a storage that may hang. A call returns an error a second after its ctx has ended, or once the
// storage does not respond. What is written waits for what goes on: see [store.Bounded].
type File struct {
	storage store.Storage // nil: nothing is kept
	key     string
	turn    wait.Slots // for one call at a time
	saved   uint64     // digest of what is stored. Only the holder of turn uses saved and unsure
	unsure  bool       // the last write failed: it may have been done, or be yet
}

// NewFile returns the file of a key.
func NewFile(storage store.Storage, key string) *File {
	if storage != nil {
		storage = store.Bounded(storage)
	}
	return &File{storage: storage, key: key, turn: wait.NewSlots(1)}
}

// Load calls use with what is stored, before another call begins. The error is [fs.ErrNotExist] if nothing is.
func (f *File) Load(ctx context.Context, use func(data []byte)) error {
	if f.storage == nil {
		return fs.ErrNotExist
	}
	return f.call(ctx, func(ctx context.Context) error {
		data, err := f.storage.Load(ctx, f.key)
		if err != nil {
			return err
		}
		f.saved = xxhash.Sum64(data)
		use(data)
		return nil
	})
}

// Save stores what encode returns, unless that is stored, or there is an error.
func (f *File) Save(ctx context.Context, encode func() ([]byte, error)) error {
	if f.storage == nil {
		return nil
	}
	return f.call(ctx, func(ctx context.Context) error {
		data, err := encode()
		if err != nil {
			return err
		}
		digest := xxhash.Sum64(data)
		if digest == f.saved && !f.unsure {
			return nil
		}
		f.unsure = true
		err = f.storage.Store(ctx, f.key, data)
		if err != nil {
			return err
		}
		f.unsure = false
		f.saved = digest
		return nil
	})
}

func (f *File) call(ctx context.Context, function func(context.Context) error) error {
	if !f.turn.Take(ctx) {
		return ctx.Err()
	}
	defer f.turn.Release()
	// A write that has begun is given time to end.
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		_, _ = wait.Within(fileGrace, later.Done())
		cancel(ctx.Err())
	})
	defer stop()
	return function(later)
}
