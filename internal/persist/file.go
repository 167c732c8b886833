package persist

import (
	"context"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// File is one value on a storage that may hang: see [store.Bounded]. A call that its caller has left may still be done.
type File struct {
	storage store.Storage
	key     string
	turn    wait.Slots // for one call at a time
	saved   uint64     // digest of what is stored; 0: that is not known. Only the holder of turn uses it
}

// NewFile returns the file of a key.
func NewFile(storage store.Storage, key string) *File {
	return &File{storage: store.Bounded(storage), key: key, turn: wait.NewSlots(1)}
}

// Load calls use with what is stored, before another call begins. The error is [io/fs.ErrNotExist] if nothing is.
func (f *File) Load(ctx context.Context, use func(data []byte)) error {
	if !f.turn.Take(ctx) {
		return ctx.Err()
	}
	defer f.turn.Release()
	data, err := f.storage.Load(ctx, f.key)
	if err != nil {
		return err
	}
	f.saved = xxhash.Sum64(data)
	use(data)
	return nil
}

// Save stores what encode returns, unless that is stored, or there is an error.
func (f *File) Save(ctx context.Context, encode func() ([]byte, error)) error {
	if !f.turn.Take(ctx) {
		return ctx.Err()
	}
	defer f.turn.Release()
	data, err := encode()
	if err != nil {
		return err
	}
	digest := xxhash.Sum64(data)
	if digest == f.saved {
		return nil
	}
	f.saved = 0
	err = f.storage.Store(ctx, f.key, data)
	if err == nil {
		f.saved = digest
	}
	return err
}
