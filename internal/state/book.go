package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

var (
	// ErrUnusable is wrapped where what is stored cannot be read: unreadable,
	// truncated, damaged, foreign or of another version.
	ErrUnusable = errors.New("the state is unusable")

	// ErrStale is wrapped where another generation has taken a book's place.
	ErrStale = errors.New("the state has changed since")
)

// Book is one generation of a site's state. What it says never changes. It is safe
// for concurrent use, and can be read until a later generation is committed; then
// reading may fail with ErrStale. One goroutine at a time makes the next generation.
type Book struct {
	place
	manifest
	split   blob // the manifest's own values
	records int

	head headSum              // of the manifest as it is stored, if it is
	prev atomic.Pointer[Book] // nil: this one is committed
	gone atomic.Bool
}

// headSum tells manifests' values apart.
type headSum struct {
	sum   uint64
	there bool
}

func headSumOf(head []byte) headSum { return headSum{xxhash.Sum64(head), true} }

// Open reads what is kept under prefix/state. Where nothing is, the book is empty.
// Where what is there cannot be used, the book is empty, too, and the error wraps
// ErrUnusable; the first commit takes the place of what is there. Any other error
// is that of ctx, without a book. Open only reads.
func Open(ctx context.Context, st Storage, prefix string) (*Book, error) {
	b := &Book{place: newPlace(st, prefix)}
	head, err := st.Load(ctx, b.manifestKey())
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return b, nil
	case err != nil:
		return b.Fresh(), fmt.Errorf("%w: loading %s: %w", ErrUnusable, b.manifestKey(), err)
	}
	b.head = headSumOf(head)
	m, split, err := b.loadManifest(ctx, head)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return b.Fresh(), err
	}
	b.manifest, b.split = *m, split
	b.count()
	return b, nil
}

func (b *Book) count() {
	for _, p := range b.pieces {
		b.records += p.count
	}
}

// Fresh is an empty book in the place of b, for when a part of b turned out to be
// unusable: it takes b's place when it, or what was made of it, is committed.
func (b *Book) Fresh() *Book { return b.successor() }

// successor is an empty book that is not committed.
func (b *Book) successor() *Book {
	next := &Book{place: b.place}
	next.prev.Store(b)
	return next
}

// committed is the book whose manifest is stored.
func (b *Book) committed() *Book {
	for prev := b.prev.Load(); prev != nil; prev = b.prev.Load() {
		b = prev
	}
	return b
}

// Empty reports whether there is nothing in the book.
func (b *Book) Empty() bool {
	return len(b.pieces) == 0 && len(b.documents) == 0 && len(b.meta) == 0
}

// Len is how many records there are.
func (b *Book) Len() int { return b.records }

// Bytes is what the book takes in its storage, without the manifest.
func (b *Book) Bytes() int64 {
	var n int64
	b.refs(func(r ref) { n += int64(r.size) })
	return n
}

// Meta is what SetMeta was given. It is not to be changed.
func (b *Book) Meta() []byte { return b.meta }

// Pieces is how many pieces the records lie in.
func (b *Book) Pieces() int { return len(b.pieces) }

// Piece returns the records of piece i, in order of path, without details. They
// belong to the caller. An error wraps ErrUnusable or ErrStale, or is ctx's.
func (b *Book) Piece(ctx context.Context, i int) ([]Record, error) {
	l, err := b.load(ctx, b.pieces[i])
	if err != nil {
		return nil, err
	}
	return l.records, nil
}

// loaded is a piece in memory.
type loaded struct {
	piece   *piece
	records []Record // nil: not read
}

func (b *Book) load(ctx context.Context, p *piece) (*loaded, error) {
	data, err := b.place.load(ctx, p.records)
	if err != nil {
		return nil, b.stale(err)
	}
	records, err := decodePiece(data)
	if err == nil && (len(records) != p.count || records[0].Page.Path != p.first) {
		err = errFormat
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the piece of %s is %w", ErrUnusable, p.first, err)
	}
	l := &loaded{piece: p, records: records}
	for i := range records {
		records[i].of = l
	}
	return l, nil
}

// stale says so where a value is missing because another generation needs it no more.
func (b *Book) stale(err error) error {
	if (b.gone.Load() || b.committed().gone.Load()) && errors.Is(err, ErrUnusable) {
		return fmt.Errorf("%w: %s", ErrStale, err.Error())
	}
	return err
}

// holding is the number of the piece that holds a path, or would; -1: none.
func (b *Book) holding(path string) int {
	return sort.Search(len(b.pieces), func(i int) bool { return b.pieces[i].first > path }) - 1
}

// After returns the records behind a path in the piece that holds the next of them,
// as Piece does; none at the end.
func (b *Book) After(ctx context.Context, path string) ([]Record, error) {
	for i := max(b.holding(path), 0); i < len(b.pieces); i++ {
		records, err := b.Piece(ctx, i)
		if err != nil {
			return nil, err
		}
		from := sort.Search(len(records), func(i int) bool { return records[i].Page.Path > path })
		if from < len(records) {
			return records[from:], nil
		}
	}
	return nil, nil
}

// Find returns the record of a path with its details, which are nil where it has
// none. It belongs to the caller.
func (b *Book) Find(ctx context.Context, path string) (*Record, bool, error) {
	i := b.holding(path)
	if i < 0 {
		return nil, false, nil
	}
	l, err := b.load(ctx, b.pieces[i])
	if err != nil {
		return nil, false, err
	}
	at, found := slices.BinarySearchFunc(l.records, path, func(r Record, path string) int {
		return strings.Compare(r.Page.Path, path)
	})
	if !found {
		return nil, false, nil
	}
	r := l.records[at]
	r.of = nil
	err = b.eachDetails(ctx, l, func(i int, d *Details) error {
		switch {
		case i < at:
			return nil
		case i == at:
			r.Details = d.clone()
		}
		return errStop
	})
	if err != nil && err != errStop {
		return nil, false, err
	}
	return &r, true, nil
}

var errStop = errors.New("stop")

// Records yields all records, in order of path, without details. A record is valid
// during the call. An error is yield's, or wraps ErrUnusable or ErrStale, or is ctx's.
func (b *Book) Records(ctx context.Context, yield func(*Record) error) error {
	for _, p := range b.pieces {
		l, err := b.load(ctx, p)
		if err != nil {
			return err
		}
		for i := range l.records {
			if err := yield(&l.records[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// RecordsWithDetails is Records with the details of those that have any.
func (b *Book) RecordsWithDetails(ctx context.Context, yield func(*Record) error) error {
	for _, p := range b.pieces {
		l, err := b.load(ctx, p)
		if err != nil {
			return err
		}
		next := 0
		upTo := func(end int) error {
			for ; next < end; next++ {
				if err := yield(&l.records[next]); err != nil {
					return err
				}
			}
			return nil
		}
		err = b.eachDetails(ctx, l, func(i int, d *Details) error {
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

// Details yields the details of all records that have any, in order of path. They
// are valid during the call. The error is as that of Records.
func (b *Book) Details(ctx context.Context, yield func(path string, d *Details) error) error {
	for _, p := range b.pieces {
		if len(p.details) == 0 {
			continue
		}
		l, err := b.load(ctx, p)
		if err != nil {
			return err
		}
		err = b.eachDetails(ctx, l, func(i int, d *Details) error {
			return yield(l.records[i].Page.Path, d)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachDetails yields the details of a piece's records, one group in memory at a time.
func (b *Book) eachDetails(ctx context.Context, l *loaded, yield func(i int, d *Details) error) error {
	last := -1
	for n := range l.piece.details {
		entries, err := b.group(ctx, l, n)
		if err != nil {
			return err
		}
		if entries[0].record <= last {
			return fmt.Errorf("%w: details of %s are %w", ErrUnusable, l.piece.first, errFormat)
		}
		last = entries[len(entries)-1].record
		for i := range entries {
			if err := yield(entries[i].record, &entries[i].details); err != nil {
				return err
			}
		}
	}
	return nil
}

// group reads group n of the details of a piece.
func (b *Book) group(ctx context.Context, l *loaded, n int) ([]entry, error) {
	data, err := b.place.load(ctx, l.piece.details[n])
	if err != nil {
		return nil, b.stale(err)
	}
	entries, sum, err := decodeDetails(data)
	if err == nil && entries[len(entries)-1].record >= len(l.records) {
		err = errFormat
	}
	if err == nil {
		paths := xxhash.New()
		for _, e := range entries {
			hashPath(paths, l.records[e.record].Page.Path)
		}
		if paths.Sum64() != sum {
			err = errDamaged
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: details of %s are %w", ErrUnusable, l.piece.first, err)
	}
	return entries, nil
}

// Document is a finished document of the site.
type Document struct {
	Name string
	Sum  uint64 // the caller's, that tells versions apart
	Meta []byte // not to be changed
	Data []byte
}

// Documents returns all documents, by name. The error is as that of Records.
func (b *Book) Documents(ctx context.Context) ([]Document, error) {
	all := make([]Document, 0, len(b.documents))
	for _, d := range b.documents {
		data, err := b.place.load(ctx, d.data)
		if err != nil {
			return nil, b.stale(err)
		}
		all = append(all, Document{Name: d.name, Sum: d.sum, Meta: d.meta, Data: data})
	}
	return all, nil
}

// Erase deletes all that is kept under prefix/state, the manifest first.
func Erase(ctx context.Context, st Storage, prefix string) error {
	p := newPlace(st, prefix)
	if err := st.Delete(ctx, p.manifestKey()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting %s: %w", p.manifestKey(), err)
	}
	err := p.sweep(ctx, func(string) bool { return false })
	if err == nil {
		// Where folders are real, an empty one is left. Elsewhere there is none.
		_ = st.Delete(ctx, p.folder)
	}
	return err
}

// sweep deletes what lies in the folder and is not kept: values that nothing refers
// to any more, and what a Storage left behind that was killed.
func (p place) sweep(ctx context.Context, keep func(base string) bool) error {
	keys, err := p.storage.List(ctx, p.folder, false)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("listing %s: %w", p.folder, err)
	}
	var failed error
	for _, key := range keys {
		// A Storage may take the folder for the beginning of a name.
		if !isBelow(key, p.folder, false) || keep(path.Base(key)) {
			continue
		}
		if err := p.storage.Delete(ctx, key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = fmt.Errorf("deleting %s: %w", key, err)
		}
	}
	return failed
}
