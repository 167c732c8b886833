package record

import (
	"context"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// File is one value on a storage that may hang: see [Bounded]. A call that its caller has left may still be done.
type File struct {
	storage Storage
	key     string
	turn    wait.Slots // for one call at a time
	saved   uint64     // digest of what is stored; 0: that is not known. Only the holder of turn uses it
}

// NewFile returns the file of a key.
func NewFile(storage Storage, key string) *File {
	return &File{storage: Bounded(storage), key: key, turn: wait.NewSlots(1)}
}

// Load returns what is stored. The error matches [io/fs.ErrNotExist] if nothing is.
func (f *File) Load(ctx context.Context) ([]byte, error) {
	if !f.turn.Take(ctx) {
		return nil, ctx.Err()
	}
	defer f.turn.Release()
	data, err := f.storage.Load(ctx, f.key)
	f.saved = xxhash.Sum64(data)
	return data, err
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
