package store

import (
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"
)

// Paths decide where records are cut into chunks, so that a page that comes or goes
// changes one chunk: a chunk of at least minRecords ends before a path whose hash is below
// cutBelow. That makes 4,096 records on average.
const (
	minRecords = 1 << 10
	cutBelow   = math.MaxUint64 / (3 << 10)
)

// Writer makes the next generation from ranges of paths, given in order and without gaps:
// each is kept as it was (Keep, KeepWith) or replaced (Put).
type Writer struct {
	base  *Generation
	next  manifest
	err   error
	kept  int    // the chunk that was kept last, if nothing was put since; else -1
	last  string // the last path so far, of a record or a range's first
	empty bool   // nothing was given yet

	// The chunk that is being filled.
	open    Chunk // Digest is the sum so far
	filling bool
	summed  bool // the digest is known
	records []Record
	bytes   int
	due     func([]Record) int64
}

// Writer returns a Writer of the generation that follows g.
func (g *Generation) Writer() *Writer {
	w := &Writer{base: g, next: *g.state.Load(), kept: -1, empty: true}
	w.next.Chunks = nil
	return w
}

// SetSettings keeps two digests of the caller's with the generation. Without it, they are
// those of the generation before.
func (w *Writer) SetSettings(settings, routes uint64) {
	w.next.Settings, w.next.Routes = settings, routes
}

// Keep takes over chunk i.
func (w *Writer) Keep(i int) {
	c := w.base.Chunks()[i]
	w.KeepWith(i, c.Digest, c.Due)
}

// KeepWith takes over the records of chunk i, with another digest and due time.
func (w *Writer) KeepWith(i int, digest uint64, due int64) {
	c := w.base.Chunks()[i]
	w.begin(c.First)
	w.flush()
	c.Digest, c.Due = digest, due
	w.next.Chunks = append(w.next.Chunks, c)
	w.kept = i
}

// Put replaces the records of the range from first up to the next one that is given. They
// are sorted by path; the slice stays the caller's.
//
// The records of adjacent Puts are one sequence, which is cut into chunks anew. digest
// returns the digest of the candidates from path first up to next, "" being the end of
// the range; those of adjacent parts must add up, with wraparound. nil: not known. due
// returns when the first of a chunk's records is due; nil: at once.
func (w *Writer) Put(first string, records []Record, digest func(first, next string) uint64, due func([]Record) int64) {
	w.begin(first)
	w.kept = -1
	if !w.filling || len(records) > 0 && w.full(records[0].Path) {
		w.flush()
		w.start(first)
	}
	w.due = due
	for i := range records {
		r := &records[i]
		if r.Path < first || i > 0 && r.Path <= w.last {
			w.fail(ErrOrder, r.Path)
		}
		if i > 0 && w.full(r.Path) {
			w.sum(digest, first, r.Path)
			w.flush()
			first = r.Path
			w.start(first)
		}
		w.add(*r)
	}
	w.sum(digest, first, "")
}

// Generation returns what was made. The error matches ErrOrder or ErrTooLarge.
func (w *Writer) Generation() (*Generation, error) {
	if w.kept >= 0 && w.kept != len(w.base.Chunks())-1 || w.empty {
		w.fail(ErrOrder, "the end")
	}
	w.flush()
	if w.err != nil {
		return nil, w.err
	}
	return w.base.store.generation(w.next), nil
}

// begin checks that a range can begin at first.
func (w *Writer) begin(first string) {
	chunks := w.base.Chunks()
	if w.empty && first != "" || !w.empty && first <= w.last ||
		w.kept >= 0 && (w.kept+1 == len(chunks) || chunks[w.kept+1].First != first) {
		w.fail(ErrOrder, first)
	}
	w.empty, w.last = false, first
}

func (w *Writer) fail(err error, path string) {
	if w.err == nil {
		w.err = fmt.Errorf("%w: at %q", err, path)
	}
}

// start begins a chunk.
func (w *Writer) start(first string) {
	w.open, w.filling, w.summed = Chunk{First: first}, true, true
}

// full reports whether the open chunk ends before path.
func (w *Writer) full(path string) bool {
	n := len(w.records)
	return n >= maxChunkRecords || w.bytes >= maxChunkBytes || n >= minRecords && xxhash.Sum64String(path) < cutBelow
}

// add adds a record to the open chunk. One that is too large loses alternates and images.
func (w *Writer) add(r Record) {
	if r.size() > maxRecordBytes {
		r.Alternates, r.Images = nil, nil
	}
	w.records = append(w.records, r)
	w.bytes += r.size()
	w.last = r.Path
}

func (w *Writer) sum(digest func(first, next string) uint64, first, next string) {
	if w.summed = w.summed && digest != nil; w.summed {
		w.open.Digest += digest(first, next)
	}
}

// flush ends the open chunk, if there is one.
func (w *Writer) flush() {
	if !w.filling || w.err != nil {
		return
	}
	c := w.open
	c.Count = len(w.records)
	if !w.summed {
		c.Digest = 0
	}
	if w.due != nil {
		c.Due = w.due(w.records)
	}
	if c.Count > 0 {
		data, err := encodeChunk(w.records)
		if err != nil {
			w.fail(err, c.First)
			return
		}
		c.Object = newObject(data)
	}
	w.next.Chunks = append(w.next.Chunks, c)
	clear(w.records)
	w.records, w.bytes, w.filling = w.records[:0], 0, false
}
