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

// Load returns what is stored. The error is [fs.ErrNotExist] if nothing is.
func (f *File) Load(ctx context.Context) (data []byte, err error) {
	if f.storage == nil {
		return nil, fs.ErrNotExist
	}
	result := make(chan []byte, 1)
	err = f.call(ctx, func() error {
		data, err := f.storage.Load(ctx, f.key)
		f.saved = xxhash.Sum64(data)
		result <- data
		return err
	})
	if err == nil {
		data = <-result
	}
	return data, err
}

// Save stores what encode returns, unless that is stored.
func (f *File) Save(ctx context.Context, encode func() []byte) error {
	if f.storage == nil {
		return nil
	}
	return f.call(ctx, func() error {
		data := encode()
		digest := xxhash.Sum64(data)
		if digest == f.saved {
			return nil
		}
		err := f.storage.Store(ctx, f.key, data)
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
