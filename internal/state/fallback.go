package state

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"syscall"
)

// Fallback is a Storage on disk that goes on in memory while the disk is
// read-only, full or gone.
//
// Once a Store has failed, what comes after it stays in memory, too, until Retry
// has brought all of it to the disk in order: so the disk never holds a manifest
// without what the manifest refers to.
type Fallback struct {
	disk Storage

	mu       sync.Mutex // never held while the disk is at work
	over     map[string]pending
	seq      uint64
	err      error
	retrying bool
}

// pending is what the disk lacks: a value, or the deletion of one.
type pending struct {
	value   []byte
	deleted bool
	seq     uint64
}

// NewFallback returns a Fallback for disk.
func NewFallback(disk Storage) *Fallback {
	return &Fallback{disk: disk, over: make(map[string]pending)}
}

// Err is the disk's last failure, and nil where the disk has everything.
func (f *Fallback) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Store keeps a value on disk, else in memory. Its only error is that of a context
// that has ended.
func (f *Fallback) Store(ctx context.Context, key string, value []byte) error {
	if !f.behind() {
		err := f.put(ctx, key, value)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.failed(err)
	}
	f.add(key, pending{value: slices.Clone(value)})
	return nil
}

// put stores a value on disk, in the place of a folder if one is in its way.
func (f *Fallback) put(ctx context.Context, key string, value []byte) error {
	err := f.disk.Store(ctx, key, value)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, there := f.disk.Load(ctx, key); !errors.Is(there, syscall.EISDIR) || f.disk.Delete(ctx, key) != nil {
		return err
	}
	return f.disk.Store(ctx, key, value)
}

// Load returns what Store was last given.
func (f *Fallback) Load(ctx context.Context, key string) ([]byte, error) {
	f.mu.Lock()
	p, ok := f.over[key]
	f.mu.Unlock()
	switch {
	case !ok:
		value, err := f.disk.Load(ctx, key)
		if errors.Is(err, syscall.ENOTDIR) {
			err = fs.ErrNotExist // there cannot be one below a file
		}
		return value, err
	case p.deleted:
		return nil, fs.ErrNotExist
	}
	return slices.Clone(p.value), nil
}

// Delete deletes a value. While the disk lacks others, it keeps this one, since
// what the disk does hold may still refer to it.
func (f *Fallback) Delete(ctx context.Context, key string) error {
	if !f.behind() {
		return f.disk.Delete(ctx, key)
	}
	f.add(key, pending{deleted: true})
	return nil
}

// List is that of the disk and of memory together.
func (f *Fallback) List(ctx context.Context, prefix string, recursive bool) ([]string, error) {
	keys, err := f.disk.List(ctx, prefix, recursive)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && len(f.over) == 0 {
		return nil, err
	}
	keys = slices.DeleteFunc(keys, func(key string) bool {
		_, ok := f.over[key]
		return ok
	})
	for key, p := range f.over {
		if !p.deleted && isBelow(key, prefix, recursive) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Retry brings to the disk what it lacks, until something fails. A second Retry at
// the same time does nothing. [Draft.Commit] calls it.
func (f *Fallback) Retry(ctx context.Context) error {
	f.mu.Lock()
	if f.retrying || len(f.over) == 0 {
		f.mu.Unlock()
		return nil
	}
	f.retrying = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.retrying = false
	}()
	for {
		batch := f.lacking()
		if len(batch) == 0 {
			return nil
		}
		for _, key := range batch {
			if err := f.bring(ctx, key); err != nil {
				f.failed(err)
				return err
			}
		}
	}
}

// lacking are the keys to bring: values in the order in which they were stored,
// then deletions.
func (f *Fallback) lacking() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := make([]string, 0, len(f.over))
	for key := range f.over {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		p, q := f.over[a], f.over[b]
		if p.deleted != q.deleted {
			if p.deleted {
				return 1
			}
			return -1
		}
		return cmp.Compare(p.seq, q.seq)
	})
	return keys
}

func (f *Fallback) bring(ctx context.Context, key string) error {
	f.mu.Lock()
	p, ok := f.over[key]
	f.mu.Unlock()
	if !ok {
		return nil
	}
	var err error
	if p.deleted {
		err = f.disk.Delete(ctx, key)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else {
		err = f.put(ctx, key, p.value)
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over[key].seq == p.seq {
		delete(f.over, key)
	}
	if len(f.over) == 0 {
		f.err = nil
	}
	return nil
}

func (f *Fallback) behind() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.over) > 0
}

func (f *Fallback) failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *Fallback) add(key string, p pending) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq++
	p.seq = f.seq
	f.over[key] = p
}
