package state

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// chain is what a book that is not committed owes its values to.
type chain struct {
	base   *Book               // the last that is committed
	stored map[digest]struct{} // since then
}

// add lets a draft find what is stored already, and leave it alone when it is aborted.
func (c *chain) add(d *Draft) {
	if c == nil {
		return
	}
	c.base.refs(func(r ref) { d.old[r.name] = struct{}{} })
	maps.Copy(d.old, c.stored)
}

// Finish ends the draft with a book that is not committed: it can be read, and
// further drafts be made of it, before it is committed or discarded. The error is
// as that of Draft.Commit.
func (d *Draft) Finish() (*Book, error) {
	err := d.end()
	d.group.Wait()
	if err == nil {
		err = d.failed()
	}
	if err != nil {
		d.Abort()
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	next := &Book{place: d.book.place, chain: &chain{base: d.book, stored: d.stored}}
	if before := d.book.chain; before != nil {
		next.chain.base = before.base
		maps.Copy(next.chain.stored, before.stored)
	}
	next.meta, next.pieces = d.meta, d.pieces
	for _, doc := range d.documents {
		next.documents = append(next.documents, doc)
	}
	slices.SortFunc(next.documents, func(a, b *document) int { return strings.Compare(a.name, b.name) })
	next.count()
	return next, nil
}

// Commit makes a book that Finish returned the one that stands, and returns it; one
// that is committed is returned as it is. What is said of Draft.Commit holds here.
func (b *Book) Commit(ctx context.Context) (*Book, error) {
	if b.chain == nil {
		return b, nil
	}
	base := b.chain.base
	d := base.Draft(ctx, 1)
	d.stored = maps.Clone(b.chain.stored)
	if r, ok := base.storage.(interface{ Retry(context.Context) error }); ok {
		_ = r.Retry(ctx) // it keeps the error
	}
	if base.same(&b.manifest) {
		d.Abort()
		return base, nil
	}
	next := &Book{place: b.place, manifest: b.manifest}
	next.count()
	if err := d.writeManifest(ctx, next); err != nil {
		d.Abort()
		return nil, err
	}
	d.over = true
	base.gone.Store(true)
	d.clean(ctx, next)
	return next, nil
}

// Discard deletes what is stored for a book that is not committed, and is not to be.
func (b *Book) Discard(ctx context.Context) {
	if b.chain == nil {
		return
	}
	d := b.chain.base.Draft(ctx, 1)
	d.stored = maps.Clone(b.chain.stored)
	d.Abort()
}

// After returns the records of the first piece that has any behind a path, without
// those up to it; none: there are no more. The error is as that of Piece.
func (b *Book) After(ctx context.Context, path string) ([]Record, error) {
	for i := max(b.holding(path), 0); i < len(b.pieces); i++ {
		records, err := b.Piece(ctx, i)
		if err != nil {
			return nil, err
		}
		at, found := slices.BinarySearchFunc(records, path, func(r Record, path string) int {
			return strings.Compare(r.Page.Path, path)
		})
		if found {
			at++
		}
		if at < len(records) {
			return records[at:], nil
		}
	}
	return nil, nil
}

// RecordsWithDetails is Records with the details of each record, nil where it has
// none.
func (b *Book) RecordsWithDetails(ctx context.Context, yield func(*Record) error) error {
	for _, p := range b.pieces {
		l, err := b.load(ctx, p)
		if err != nil {
			return err
		}
		next := 0
		upTo := func(n int) error {
			for ; next < n; next++ {
				if err := yield(&l.records[next]); err != nil {
					return err
				}
			}
			return nil
		}
		err = b.eachDetails(ctx, l, func(i int, d *Details) error {
			if err := upTo(i); err != nil {
				return err
			}
			l.records[i].Details = d
			return upTo(i + 1)
		})
		if err == nil {
			err = upTo(len(l.records))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
