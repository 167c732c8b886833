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

// File is one value on a storage that may hang. A call returns an error a second after its ctx has ended, and later calls
// wait for what goes on: else what is older could overwrite what is newer.
type File struct {
	storage store.Storage // nil: nothing is kept
	key     string
	turn    wait.Slots // for one call at a time
	saved   uint64     // digest of what is stored; of who has the turn
}

// NewFile returns the file of a key.
func NewFile(storage store.Storage, key string) *File {
	return &File{storage: storage, key: key, turn: wait.NewSlots(1)}
}

// Load calls use with what is stored, before another call begins. The error is [fs.ErrNotExist] if nothing is.
func (f *File) Load(ctx context.Context, use func(data []byte)) error {
	if f.storage == nil {
		return fs.ErrNotExist
	}
	return f.call(ctx, func() error {
		data, err := f.storage.Load(ctx, f.key)
		if f.saved = xxhash.Sum64(data); err == nil {
			use(data)
		}
		return err
	})
}

// Save stores what encode returns, unless that is stored, or there is an error.
func (f *File) Save(ctx context.Context, encode func() ([]byte, error)) error {
	if f.storage == nil {
		return nil
	}
	return f.call(ctx, func() error {
		data, err := encode()
		digest := xxhash.Sum64(data)
		if err != nil || digest == f.saved {
			return err
		}
		err = f.storage.Store(ctx, f.key, data)
		if err == nil {
			f.saved = digest
		}
		return err
	})
}

// SetAside stores damaged data under another key.
func (f *File) SetAside(ctx context.Context, data []byte) (key string, err error) {
	key = f.key + ".damaged"
	return key, f.call(ctx, func() error { return f.storage.Store(ctx, key, data) })
}

// call waits for its turn and for a function.
func (f *File) call(ctx context.Context, function func() error) error {
	if !f.turn.Take(ctx) {
		return ctx.Err()
	}
	result := make(chan error, 1)
	if !wait.OrLeave(ctx, fileGrace, func() {
		defer f.turn.Release()
		result <- function()
	}) {
		return ctx.Err()
	}
	return <-result
}
