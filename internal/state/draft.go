package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Errors of a draft.
var (
	ErrOrder    = errors.New("records are out of order")
	ErrTooLarge = errors.New("too large to be kept")
)

const (
	maxMeta         = 16 << 20
	maxDocumentMeta = 1 << 20

	// maxGiven bounds the details that are held until a piece is complete.
	maxGiven = 4 << 20
)

// Draft is the next generation of a book in the making. Keep, Add and Commit are
// one goroutine's; documents may be put by any.
type Draft struct {
	ctx  context.Context
	book *Book

	slots chan struct{} // nil: write in the caller's goroutine
	group sync.WaitGroup

	mu        sync.Mutex // guards what follows
	err       error
	pieces    []*piece
	documents map[string]*document
	stored    map[digest]struct{} // by this draft
	over      bool                // committed or aborted

	meta []byte
	old  map[digest]struct{} // what the book refers to

	// What is open is either run, the first next records of a piece that was kept
	// so far, or open, records in memory.
	run  *loaded
	next int
	open *openPiece
	last string // path before what is open
}

// Draft begins the next generation. It starts with the book's meta, and without
// its records and documents. workers is how many goroutines encode changed pieces
// and store them; up to 1: the caller does. ctx is for all that is stored before
// Commit.
func (b *Book) Draft(ctx context.Context, workers int) *Draft {
	d := &Draft{
		ctx: ctx, book: b, meta: b.meta, open: &openPiece{},
		documents: make(map[string]*document), stored: make(map[digest]struct{}), old: make(map[digest]struct{}),
	}
	b.refs(func(r ref) { d.old[r.name] = struct{}{} })
	if workers > 1 {
		d.slots = make(chan struct{}, workers)
	}
	return d
}

// SetMeta replaces the caller's own part of the book, of 16 MiB at most.
func (d *Draft) SetMeta(meta []byte) error {
	if len(meta) > maxMeta {
		return fmt.Errorf("meta of %d bytes: %w", len(meta), ErrTooLarge)
	}
	d.meta = slices.Clone(meta)
	return nil
}

// Keep takes a record of the book, unchanged, or a copy of it. A piece of which all records are
// kept, with nothing in between, is carried over as it is. Records come in order
// of path, those of Add among them, else the error is ErrOrder. Any other error is
// that of something that could not be stored or read, and comes again.
func (d *Draft) Keep(r *Record) error {
	same := r.isKept()
	if same && d.run == r.of && d.next == int(r.at) {
		d.next++
		return nil
	}
	return d.place(r, same)
}

// isKept reports whether a record is still what the book gave. Changed in place it
// seems so; a changed copy does not.
func (r *Record) isKept() bool {
	if r.of == nil {
		return false
	}
	kept := &r.of.records[r.at]
	return r == kept || *r == *kept
}

// Add takes a record that is new or changed. Details that are nil are those that
// the book has for the path; others, even if they are empty, replace these. The
// record is copied, its details and strings are not. The errors are those of Keep,
// and ErrTooLarge for a path that is longer than MaxPath or empty.
func (d *Draft) Add(r *Record) error {
	if len(r.Page.Path) > MaxPath || r.Page.Path == "" {
		return fmt.Errorf("a path of %d bytes: %w", len(r.Page.Path), ErrTooLarge)
	}
	return d.place(r, false)
}

func (d *Draft) place(r *Record, keep bool) error {
	if err := d.failed(); err != nil {
		return err
	}
	if last, any := d.lastPath(); any && r.Page.Path <= last {
		return fmt.Errorf("'%s' after '%s': %w", r.Page.Path, last, ErrOrder)
	}
	if err := d.separate(r.Page.Path); err != nil {
		return err
	}
	if d.run != nil {
		if err := d.melt(); err != nil {
			return err
		}
	}
	if keep && r.at == 0 && len(d.open.records) == 0 && d.book.has(r.of) {
		d.run, d.next = r.of, 1
		return nil
	}
	return d.open.add(d, r)
}

// has reports whether a piece in memory is one of the book's.
func (b *Book) has(l *loaded) bool {
	if l == nil {
		return false
	}
	i := b.holding(l.piece.first)
	return i >= 0 && b.pieces[i] == l.piece
}

func (d *Draft) lastPath() (path string, any bool) {
	switch n := len(d.open.records); {
	case d.run != nil && d.run.records != nil:
		return d.run.records[d.next-1].Page.Path, true
	case d.run != nil:
		return d.run.piece.first, true
	case n > 0:
		return d.open.records[n-1].Page.Path, true
	}
	return d.last, d.last != ""
}

// separate ends what is open where a path begins a piece.
func (d *Draft) separate(path string) error {
	records, bytes := len(d.open.records), d.open.bytes
	if d.run != nil {
		records, bytes = d.next, d.run.piece.bytes
		if d.next < d.run.piece.count {
			bytes = 0
			for i := range d.run.records[:d.next] {
				bytes += d.run.records[i].size()
			}
		}
	}
	if !begins(path, records, bytes) {
		return nil
	}
	return d.end()
}

// end makes a piece of what is open.
func (d *Draft) end() error {
	d.last, _ = d.lastPath()
	if d.run != nil {
		if d.next == d.run.piece.count {
			d.mu.Lock()
			d.pieces = append(d.pieces, d.run.piece)
			d.mu.Unlock()
			d.run = nil
			return nil
		}
		if err := d.melt(); err != nil {
			return err
		}
	}
	if len(d.open.records) == 0 {
		return nil
	}
	o := d.open
	d.open = &openPiece{}
	return d.work(o)
}

// melt turns the run into records in memory.
func (d *Draft) melt() error {
	l := d.run
	if l.records == nil {
		var err error
		if l, err = d.book.load(d.ctx, l.piece); err != nil {
			d.fail(err)
			return err
		}
	}
	d.run = nil
	for i := range l.records[:d.next] {
		if err := d.open.add(d, &l.records[i]); err != nil {
			return err
		}
	}
	return nil
}

// carry takes a whole piece over, which need not be in memory. A false means that
// it might be cut otherwise.
func (d *Draft) carry(p *piece) (bool, error) {
	if err := d.separate(p.first); err != nil {
		return false, err
	}
	if d.run != nil || len(d.open.records) > 0 {
		return false, nil
	}
	d.run, d.next = &loaded{piece: p}, p.count
	return true, nil
}

// work encodes and stores a piece, side by side with others where there are workers.
func (d *Draft) work(o *openPiece) error {
	d.mu.Lock()
	i := len(d.pieces)
	d.pieces = append(d.pieces, nil)
	d.mu.Unlock()
	if d.slots == nil {
		d.finish(i, o)
		return d.failed()
	}
	d.slots <- struct{}{}
	d.group.Go(func() {
		d.finish(i, o)
		<-d.slots
	})
	return nil
}

func (d *Draft) finish(i int, o *openPiece) {
	p, err := o.write(d)
	if err != nil {
		d.fail(err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pieces[i] = p
}

func (d *Draft) failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

func (d *Draft) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
	}
}

// store stores what the book does not refer to already.
func (d *Draft) store(data []byte) (blob, error) {
	return d.book.store(d.ctx, data, func(n digest) bool {
		if _, there := d.old[n]; there {
			_, bad := d.book.damaged.Load(n)
			return !bad
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		_, there := d.stored[n]
		d.stored[n] = struct{}{}
		return there
	})
}

// KeepDocument carries the book's document of a name over, if its sum is sum. A
// false means that it has to be put.
func (d *Draft) KeepDocument(name string, sum uint64) bool {
	have := d.book.document(name)
	if have == nil || have.sum != sum || !d.book.readable(have.data) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.documents[name] = have
	return true
}

// KeepDocuments carries all of the book's documents over.
func (d *Draft) KeepDocuments() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, have := range d.book.documents {
		d.documents[have.name] = have
	}
}

// PutDocument stores a document; sum tells its versions apart. The caller's
// goroutine stores it, and several may do so at a time.
func (d *Draft) PutDocument(name string, sum uint64, meta, data []byte) error {
	if len(name) > MaxPath || len(meta) > maxDocumentMeta {
		return fmt.Errorf("the name or meta of '%.40s': %w", name, ErrTooLarge)
	}
	// It is stored even where the book has it: what it has may be damaged.
	b, err := d.storeAgain(d.ctx, data)
	if err != nil {
		d.fail(err)
		return err
	}
	put := &document{name: name, sum: sum, meta: slices.Clone(meta), data: b}
	if have := d.book.document(name); have != nil && have.equal(put) {
		put = have
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.documents[name] = put
	return nil
}

// storeAgain stores even what the book refers to already.
func (d *Draft) storeAgain(ctx context.Context, data []byte) (blob, error) {
	return d.book.store(ctx, data, func(n digest) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.stored[n] = struct{}{}
		return false
	})
}

// document is the book's of a name. Nil: none.
func (b *Book) document(name string) *document {
	i, found := slices.BinarySearchFunc(b.documents, name, func(have *document, name string) int {
		return strings.Compare(have.name, name)
	})
	if !found {
		return nil
	}
	return b.documents[i]
}

func (d *document) equal(o *document) bool {
	return d.name == o.name && d.sum == o.sum && bytes.Equal(d.meta, o.meta) && slices.Equal(d.data, o.data)
}

// Commit ends the draft and commits what it comes to: Finish and [Book.Commit]. After
// an error, what the draft stored is deleted, and the book stands as before.
func (d *Draft) Commit(ctx context.Context) (*Book, error) {
	b, err := d.Finish()
	if err != nil {
		d.Abort()
		return nil, err
	}
	next, err := b.Commit(ctx)
	if err != nil {
		b.Discard(ctx)
		return nil, err
	}
	return next, nil
}

// Finish ends the draft and stores what is left, but not the manifest: the new book
// can be read, and drafts be made of it, before it is committed or discarded. Where
// nothing changed, it is the old one.
//
// The error wraps ErrUnusable where details that were to be kept cannot be read (see
// Fresh); else it is the storage's or the context's.
func (d *Draft) Finish() (*Book, error) {
	err := d.end()
	d.group.Wait()
	if err == nil {
		err = d.failed()
	}
	if err != nil {
		return nil, err
	}
	old := d.book
	next := old.successor()
	next.meta, next.pieces = d.meta, d.pieces
	for _, doc := range d.documents {
		next.documents = append(next.documents, doc)
	}
	slices.SortFunc(next.documents, func(a, b *document) int { return strings.Compare(a.name, b.name) })
	if old.same(&next.manifest) {
		d.Abort()
		return old, nil
	}
	next.count()
	d.over = true
	return next, nil
}

// same reports whether a manifest is the book's own.
func (b *Book) same(m *manifest) bool {
	return bytes.Equal(b.meta, m.meta) && slices.Equal(b.pieces, m.pieces) && slices.Equal(b.documents, m.documents)
}

// Abort ends a draft that is not to be finished and deletes what it has stored.
// After Finish and Commit it does nothing.
func (d *Draft) Abort() {
	d.group.Wait()
	if d.over {
		return
	}
	d.over = true
	d.fail(errors.New("the draft was aborted"))
	d.run, d.open = nil, &openPiece{}
	d.book.dropLoose(context.WithoutCancel(d.ctx), d.book)
}

// Update makes a generation in which change was called for the record of each of
// the paths, which are in order, and only what it changed is another. A record
// comes without details; those that change sets replace what there are. Paths that
// have no record are passed over. The error is that of Commit, or of reading.
func (b *Book) Update(ctx context.Context, paths []string, change func(*Record) (changed bool)) (*Book, error) {
	d := b.Draft(ctx, 1)
	defer d.Abort()
	d.KeepDocuments()
	for i, p := range b.pieces {
		for len(paths) > 0 && paths[0] < p.first {
			paths = paths[1:]
		}
		touched := len(paths) > 0 && (i+1 == len(b.pieces) || paths[0] < b.pieces[i+1].first)
		if !touched {
			carried, err := d.carry(p)
			if err != nil {
				return nil, err
			}
			if carried {
				continue
			}
		}
		l, err := b.load(ctx, p)
		if err != nil {
			return nil, err
		}
		for k := range l.records {
			r := &l.records[k]
			for len(paths) > 0 && paths[0] < r.Page.Path {
				paths = paths[1:]
			}
			put := d.Keep
			if len(paths) > 0 && paths[0] == r.Page.Path && change(r) {
				put = d.Add
			}
			if err := put(r); err != nil {
				return nil, err
			}
		}
	}
	return d.Commit(ctx)
}
