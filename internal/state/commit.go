package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Commit makes a book that Finish returned the one that stands: it stores the manifest
// and then deletes what nothing refers to any more, so that the books before may be
// gone in part. It returns the book, or the one that stood before if that says the
// same. One that is committed is returned as it is.
//
// The error wraps ErrStale where another generation was committed since the first of
// these books was opened; else it is the storage's or ctx's.
func (b *Book) Commit(ctx context.Context) (*Book, error) {
	if r, ok := b.storage.(interface{ Retry(context.Context) error }); ok {
		_ = r.Retry(ctx) // it keeps the error
	}
	if b.prev.Load() == nil {
		return b, nil
	}
	old := b.committed()
	if old.same(&b.manifest) {
		b.dropLoose(ctx, old)
		return old, nil
	}
	if err := old.check(ctx); err != nil {
		return nil, err
	}
	if err := b.writeManifest(ctx); err != nil {
		return nil, err
	}
	for p := b.prev.Load(); p != nil; p = p.prev.Load() {
		p.gone.Store(true)
	}
	b.prev.Store(nil)
	b.clean(ctx, old)
	return b, nil
}

// Discard deletes what was stored for a book that is not to be committed, and for
// those between it and the one that is.
func (b *Book) Discard(ctx context.Context) {
	if b.prev.Load() != nil {
		b.dropLoose(context.WithoutCancel(ctx), b.committed())
	}
}

func (b *Book) writeManifest(ctx context.Context) error {
	raw := b.encode()
	if len(raw) > maxManifest || len(b.pieces) > maxPieces || len(b.documents) > maxDocuments {
		return fmt.Errorf("a manifest of %d bytes: %w", len(raw), ErrTooLarge)
	}
	packed := compress(nil, raw)
	if len(packed) > maxValue-64 {
		var err error
		if b.split, err = b.store(ctx, packed, func(digest) bool { return false }); err != nil {
			return err
		}
	}
	head := headOf(packed, len(raw), b.split)
	if err := b.storage.Store(ctx, b.manifestKey(), head); err != nil {
		// It may have been stored for all that. So what it refers to stays, until
		// the next generation sweeps it up.
		b.mu.Lock()
		defer b.mu.Unlock()
		clear(b.loose)
		b.swept = false
		return fmt.Errorf("storing %s: %w", b.manifestKey(), err)
	}
	b.head = headSumOf(head)
	return nil
}

// check reports whether another generation has taken the book's place. What
// cannot be read is none.
func (b *Book) check(ctx context.Context) error {
	head, err := b.storage.Load(ctx, b.manifestKey())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !b.head.there {
			return nil
		}
		return fmt.Errorf("%w: %s is missing", ErrStale, b.manifestKey())
	case err != nil:
		return ctx.Err()
	case headSumOf(head) == b.head:
		return nil
	}
	if _, _, err := b.loadManifest(ctx, head); err != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %s is another's", ErrStale, b.manifestKey())
}

// clean deletes what the committed book before refers to, or was stored since, and
// this one does not refer to; the first time, whatever else lies there, too. What
// cannot be deleted is tried again.
func (b *Book) clean(ctx context.Context, old *Book) {
	kept := make(map[digest]struct{})
	b.allRefs(func(r ref) { kept[r.name] = struct{}{} })
	b.mu.Lock()
	drop, swept := b.loose, b.swept
	b.loose = make(map[digest]struct{})
	b.mu.Unlock()
	if !swept {
		bases := map[string]struct{}{manifestBase: {}}
		for n := range kept {
			bases[n.String()] = struct{}{}
		}
		err := b.sweep(ctx, func(base string) bool {
			_, ok := bases[base]
			return ok
		})
		b.setSwept(err == nil)
		return
	}
	old.allRefs(func(r ref) { drop[r.name] = struct{}{} })
	b.drop(ctx, drop, kept)
}

// dropLoose deletes what was stored since a manifest was, but what a book refers to,
// or the committed one.
func (b *Book) dropLoose(ctx context.Context, but *Book) {
	kept := make(map[digest]struct{})
	keep := func(r ref) { kept[r.name] = struct{}{} }
	for ; but != nil; but = but.prev.Load() {
		but.allRefs(keep)
	}
	b.mu.Lock()
	drop := make(map[digest]struct{})
	for n := range b.loose {
		if _, ok := kept[n]; !ok {
			drop[n] = struct{}{}
			delete(b.loose, n)
		}
	}
	b.mu.Unlock()
	b.drop(ctx, drop, kept)
}

func (b *Book) drop(ctx context.Context, drop, kept map[digest]struct{}) {
	for n := range drop {
		if _, ok := kept[n]; ok {
			continue
		}
		if err := b.storage.Delete(ctx, b.key(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			b.setSwept(false)
		}
	}
}

// allRefs yields the references of the manifest and those to it.
func (b *Book) allRefs(yield func(ref)) {
	b.refs(yield)
	for _, r := range b.split {
		yield(r)
	}
}
