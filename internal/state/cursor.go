package state

import "context"

// Cursor goes through the records of a book.
type Cursor struct {
	ctx  context.Context
	book *Book
	next int // piece
	now  *loaded
	at   int
}

// Cursor returns a cursor before the first record.
func (b *Book) Cursor(ctx context.Context) *Cursor { return &Cursor{ctx: ctx, book: b} }

// Next returns the next record in order of path, without details; nil at the end.
// It is the caller's, to be changed and kept; but as long as any record of a piece
// is held, the memory of all of them is.
//
// An error wraps ErrUnusable or ErrStale, or is ctx's. After ErrUnusable, Next goes
// on behind the piece that cannot be read.
func (c *Cursor) Next() (*Record, error) {
	for c.now == nil || c.at == len(c.now.records) {
		c.now, c.at = nil, 0
		if c.next == len(c.book.pieces) {
			return nil, nil
		}
		if err := c.ctx.Err(); err != nil {
			return nil, err
		}
		c.next++
		var err error
		if c.now, err = c.book.load(c.ctx, c.book.pieces[c.next-1]); err != nil {
			return nil, err
		}
	}
	c.at++
	return &c.now.records[c.at-1], nil
}

// Close frees what the cursor holds.
func (c *Cursor) Close() { c.now, c.next, c.at = nil, len(c.book.pieces), 0 }
