package store

import (
	"fmt"
	"math"
	"sort"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// Where records are cut into chunks depends on their paths, so that a page that comes or
// goes changes one chunk: a chunk of at least minRecords ends before a path whose hash is
// below cutBelow. That gives 4,096 records on average.
const (
	minRecords = 1 << 10
	cutBelow   = math.MaxUint64 / (3 << 10)
)

// Writer makes the next generation from ranges of paths, which are given in order and
// without gaps: each is kept from the generation before (Keep, KeepWith) or given anew
// (Put). Else the error of Generation matches ErrOrder.
type Writer struct {
	base             *Generation
	settings, routes uint64
	chunks           []Chunk
	err              error
	kept             int    // the chunk that was kept last, if no records were given since; else -1
	last             string // the last path so far: a record's, or a range's first

	// The chunk that is being filled.
	open       bool
	first      string
	records    []Record
	bytes      int
	digest     uint64
	undigested bool
	due        func([]Record) int64
}

// Writer returns a Writer of the generation that follows g.
func (g *Generation) Writer() *Writer {
	return &Writer{base: g, settings: g.settings, routes: g.routes, kept: -1}
}

// SetSettings keeps two digests of the caller's with the generation. Without it, they are
// those of the generation before.
func (w *Writer) SetSettings(settings, routes uint64) { w.settings, w.routes = settings, routes }

// Keep takes over chunk i.
func (w *Writer) Keep(i int) {
	c := w.base.Chunks()[i]
	w.KeepWith(i, c.Digest, c.Due)
}

// KeepWith takes over the records of chunk i with another digest and due time.
func (w *Writer) KeepWith(i int, digest uint64, due int64) {
	c := w.base.Chunks()[i]
	if !w.begins(c.First) {
		return
	}
	w.flush()
	c.Digest, c.Due = digest, due
	w.chunks = append(w.chunks, c)
	w.kept, w.last = i, c.First
}

// Put gives the records of the range from first up to the next one that is given, sorted
// by path. The Writer does not keep the slice.
//
// Adjacent ranges that are given anew become one sequence of records, which is then cut,
// so chunks may be larger or smaller than ranges. digest returns the digest of the
// candidates from path first up to next, "" being the end of this range; that of adjacent
// parts must be their sum, with wraparound. nil: not known. due returns when the first of
// a chunk's records is due; nil: at once.
func (w *Writer) Put(first string, records []Record, digest func(first, next string) uint64, due func([]Record) int64) {
	if !w.begins(first) {
		return
	}
	w.kept = -1
	if !w.open || len(records) > 0 && w.cuts(records[0].Path) {
		w.flush()
		w.open, w.first = true, first
	}
	w.due = due
	for i := range records {
		r := &records[i]
		if r.Path < first || i > 0 && r.Path <= records[i-1].Path {
			w.fail(ErrOrder, r.Path)
			return
		}
		if i > 0 && w.cuts(r.Path) {
			w.addDigest(digest, first, r.Path)
			w.flush()
			w.open, w.first, first = true, r.Path, r.Path
		}
		w.add(r)
	}
	w.addDigest(digest, first, "")
	w.last = first
	if len(records) > 0 {
		w.last = records[len(records)-1].Path
	}
}

// Generation returns what was made. The error matches ErrOrder or ErrTooLarge.
func (w *Writer) Generation() (*Generation, error) {
	w.flush()
	if w.kept >= 0 && w.kept != len(w.base.Chunks())-1 {
		w.fail(ErrOrder, "the end")
	}
	if w.err != nil {
		return nil, w.err
	}
	if len(w.chunks) == 0 {
		w.chunks = []Chunk{{}}
	}
	g := w.base.derive(w.chunks)
	g.settings, g.routes = w.settings, w.routes
	return g, nil
}

// begins checks that a range may begin at first.
func (w *Writer) begins(first string) bool {
	started := len(w.chunks) > 0 || w.open
	switch chunks := w.base.Chunks(); {
	case w.err != nil:
	case !utf8.ValidString(first), !started && first != "", started && first <= w.last,
		w.kept >= 0 && (w.kept == len(chunks)-1 || first != chunks[w.kept+1].First):
		w.fail(ErrOrder, first)
	}
	return w.err == nil
}

func (w *Writer) fail(err error, path string) {
	if w.err == nil {
		w.err = fmt.Errorf("%w: at %q", err, path)
	}
}

// cuts reports whether the open chunk ends before path.
func (w *Writer) cuts(path string) bool {
	n := len(w.records)
	return n >= maxChunkRecords || w.bytes >= maxChunkBytes || n >= minRecords && xxhash.Sum64String(path) < cutBelow
}

// add adds a record to the open chunk. One that is too large loses its links to media.
func (w *Writer) add(r *Record) {
	w.records = append(w.records, *r)
	size := r.size()
	if size > maxRecordBytes {
		r = &w.records[len(w.records)-1]
		r.Alternates, r.Images = nil, nil
		if size = r.size(); size > maxRecordBytes {
			w.fail(ErrTooLarge, r.Path)
		}
	}
	w.bytes += size
}

func (w *Writer) addDigest(digest func(first, next string) uint64, first, next string) {
	if digest == nil {
		w.undigested = true
		return
	}
	w.digest += digest(first, next)
}

// flush ends the open chunk.
func (w *Writer) flush() {
	if !w.open || w.err != nil {
		return
	}
	c := Chunk{First: w.first, Count: len(w.records)}
	if !w.undigested {
		c.Digest = w.digest
	}
	if w.due != nil {
		c.Due = w.due(w.records)
	}
	if c.Count > 0 {
		data, err := encodeChunk(w.records)
		if err != nil {
			w.err = err
			return
		}
		c.blob = w.base.blobOf(c.First, data)
	}
	w.chunks = append(w.chunks, c)
	clear(w.records)
	w.records, w.bytes, w.digest, w.undigested, w.open = w.records[:0], 0, 0, false, false
}

// blobOf returns the blob of the chunk at first if it has the same data, or a new one.
func (g *Generation) blobOf(first string, data []byte) *blob {
	b, chunks := newBlob(data), g.Chunks()
	i := sort.Search(len(chunks), func(i int) bool { return chunks[i].First >= first })
	if i < len(chunks) && chunks[i].blob != nil && chunks[i].blob.name == b.name && !chunks[i].blob.damaged.Load() {
		return chunks[i].blob
	}
	return b
}
