package state

import (
	"errors"
	"slices"
)

// openPiece is a piece in the making.
type openPiece struct {
	records []Record
	bytes   int // as begins counts them

	given   int // bytes of details that are held
	any     bool
	written int // records whose details are written
	writer  *detailsWriter
	kept    *keptDetails
	details []blob
}

func (o *openPiece) add(d *Draft, r *Record) error {
	if o.records == nil {
		o.records = make([]Record, 0, softRecord)
	}
	o.records = append(o.records, *r)
	r = &o.records[len(o.records)-1]
	r.of = nil
	if len(r.Canonical) > MaxPath {
		r.Canonical = ""
	}
	if len(r.ETag) > MaxHeader {
		r.ETag = ""
	}
	if len(r.Modified) > MaxHeader {
		r.Modified = ""
	}
	o.bytes += r.size()
	if r.Details == nil {
		return nil
	}
	o.any = true
	if o.given += r.Details.size(); o.given < maxGiven {
		return nil
	}
	if err := o.writeDetails(d); err != nil {
		d.fail(err)
		return err
	}
	return nil
}

// size is about what details take in memory.
func (d *Details) size() int {
	n := 16*(len(d.Links)+len(d.Images)) + 32*len(d.Alternates)
	for _, s := range d.Links {
		n += len(s)
	}
	for _, a := range d.Alternates {
		n += len(a.Lang) + len(a.URL)
	}
	for _, s := range d.Images {
		n += len(s)
	}
	return n
}

// write stores the piece.
func (o *openPiece) write(d *Draft) (*piece, error) {
	first := o.records[0].Page.Path
	p := &piece{first: string([]byte(first)), count: len(o.records), bytes: o.bytes}
	var err error
	if p.records, err = d.store(encodePiece(o.records)); err != nil {
		return nil, err
	}
	if p.details, err = o.finishDetails(d); err != nil {
		return nil, err
	}
	// The same piece as before, as after a change that was undone, stays the same.
	if i := d.book.holding(p.first); i >= 0 && d.book.pieces[i].equal(p) {
		return d.book.pieces[i], nil
	}
	return p, nil
}

func (p *piece) equal(q *piece) bool {
	return p.first == q.first && p.count == q.count && slices.Equal(p.records, q.records) &&
		slices.EqualFunc(p.details, q.details, slices.Equal[blob])
}

func (o *openPiece) finishDetails(d *Draft) ([]blob, error) {
	if !o.any {
		if details, same, err := o.sameDetails(d); err != nil || same {
			return details, err
		}
	}
	if err := o.writeDetails(d); err != nil {
		return nil, err
	}
	return o.details, o.writer.flush()
}

// sameDetails are the book's, if it has any for the records and the records are
// the same ones: nothing has to be read then but their paths.
func (o *openPiece) sameDetails(d *Draft) (details []blob, same bool, err error) {
	from := max(d.book.holding(o.records[0].Page.Path), 0)
	to := d.book.holding(o.records[len(o.records)-1].Page.Path)
	any := false
	for i := from; i <= to; i++ {
		any = any || len(d.book.pieces[i].details) > 0
	}
	if !any {
		return nil, true, nil
	}
	p := d.book.pieces[from]
	if from != to || p.count != len(o.records) || p.first != o.records[0].Page.Path {
		return nil, false, nil
	}
	l, err := d.book.load(d.ctx, p)
	if err != nil {
		return nil, false, lost(err)
	}
	for i := range l.records {
		if l.records[i].Page.Path != o.records[i].Page.Path {
			return nil, false, nil
		}
	}
	return p.details, true, nil
}

// writeDetails writes the details of the records so far: those given, and those
// that the book has for the others.
func (o *openPiece) writeDetails(d *Draft) error {
	if o.writer == nil {
		o.writer = newDetailsWriter(func(group []byte) error {
			b, err := d.store(group)
			o.details = append(o.details, b)
			return err
		})
		o.kept = &keptDetails{draft: d, at: -1}
	}
	for ; o.written < len(o.records); o.written++ {
		r := &o.records[o.written]
		details := r.Details
		if details == nil {
			var err error
			if details, err = o.kept.of(r.Page.Path); err != nil {
				return err
			}
		}
		if details != nil {
			if err := o.writer.add(o.written, r.Page.Path, details); err != nil {
				return err
			}
		}
		r.Details = nil
	}
	o.given = 0
	return nil
}

// keptDetails looks details up in a book, by paths in order.
type keptDetails struct {
	draft   *Draft
	at      int // piece
	l       *loaded
	group   int // the next
	entries []entry
}

func (k *keptDetails) of(path string) (*Details, error) {
	b := k.draft.book
	i := b.holding(path)
	if i < 0 || len(b.pieces[i].details) == 0 {
		return nil, nil
	}
	if k.l == nil || k.at != i {
		if k.at == i {
			return nil, nil
		}
		*k = keptDetails{draft: k.draft, at: i}
		var err error
		if k.l, err = b.load(k.draft.ctx, b.pieces[i]); err != nil {
			return nil, lost(err)
		}
	}
	for {
		for len(k.entries) == 0 {
			if k.group == len(k.l.piece.details) {
				return nil, nil
			}
			var err error
			if k.entries, err = b.group(k.draft.ctx, k.l, k.group); err != nil {
				return nil, err
			}
			k.group++
		}
		e := &k.entries[0]
		switch have := k.l.records[e.record].Page.Path; {
		case have > path:
			return nil, nil
		case have == path:
			return &e.details, nil
		}
		k.entries = k.entries[1:]
	}
}

// lost passes over that the records of a piece cannot be read: with them, their
// details are gone, and whoever read the records was told.
func lost(err error) error {
	if errors.Is(err, ErrUnusable) {
		return nil
	}
	return err
}

// ManifestKey is the key of a site's manifest, which every commit that changes
// something stores anew.
func ManifestKey(prefix string) string { return newPlace(nil, prefix).manifestKey() }
