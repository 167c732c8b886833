package record

import (
	"bytes"
	"cmp"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"
)

// leastOf returns how many records a chunk of a site of so many records has at least, unless what follows is the end. After these, it
// goes on for three times as many on average: paths decide, so that a page that comes or goes changes one chunk.
// A change of one page writes a chunk, and a manifest with a line for each chunk: of 200,000 pages, 80 KB and 45 KB. Chunks of a
// larger site are larger, as the manifest has more of them. A site that grows is cut anew where it changes.
func leastOf(records int) int {
	switch {
	case records <= 1<<18:
		return 1 << 8
	case records <= 1<<20:
		return 1 << 9
	}
	return 1 << 10
}

// Writer makes the next generation from ranges of paths, in order and without gaps: each is either kept (Keep) or
// replaced (Put). It is not safe for concurrent use.
type Writer struct {
	base *Generation
	size int // records of the generation before, or of this one so far if they are more
	put  int // records so far
	next manifest
	err  error

	at   int    // the chunk that must come next; -1: any, after a Put
	last string // the last path so far: of a record, or the first of a range

	// The chunk that is being filled; nil: none.
	open    *Chunk
	records []Record
	raw     bytes.Buffer // the records as CBOR
	hashes  []byte       // of the records: see hashesSize
	due     func([]Record) int64
}

// Writer returns a Writer of the generation that follows g.
func (g *Generation) Writer() *Writer {
	w := &Writer{base: g, size: g.Len(), next: *g.state.Load()}
	w.next.Chunks = nil
	w.next.lost = false // whoever writes has seen that chunks are empty
	return w
}

// SetSettings sets two digests of the caller's. By default, they are those of the generation before.
func (w *Writer) SetSettings(settings, routes uint64) {
	w.next.Settings = settings
	w.next.Routes = routes
}

// Keep takes over chunk i of the generation before.
func (w *Writer) Keep(i int) {
	c := w.base.Chunks()[i]
	w.startRange(c.First)
	w.flush()
	w.next.Chunks = append(w.next.Chunks, c)
	w.at = i + 1
}

// Put replaces the records of the range from first up to the first path of the next range. They are sorted by path;
// the slice stays the caller's. The records of adjacent Puts are one sequence, which is cut into chunks anew.
// digest returns the digest of the candidates from path first up to next, where "" is the end of the range; those
// of adjacent parts must add up, with wraparound. due returns when the first of a chunk's records is due. A nil
// function always returns 0.
func (w *Writer) Put(
	first string,
	records []Record,
	digest func(first, next string) uint64,
	due func([]Record) int64,
) {
	w.startRange(first)
	w.at = -1
	w.due = due
	if digest == nil {
		digest = func(string, string) uint64 { return 0 }
	}
	// Adjacent Puts share a chunk: pieces in which candidates came must not decide where chunks end.
	isNext := len(records) > 0 && w.isFull(records[0].Path)
	if w.open == nil || isNext {
		w.startChunk(first)
	}
	for i := range records {
		r := &records[i]
		isTwice := i > 0 && r.Path == w.last // the first may be that with which the range begins
		if r.Path < w.last || isTwice {
			w.fail(r.Path)
		}
		if i > 0 && w.isFull(r.Path) {
			w.open.Digest += digest(first, r.Path)
			first = r.Path
			w.startChunk(first)
		}
		w.last = r.Path
		w.records = append(w.records, *r)
		w.put++
		w.size = max(w.size, w.put)
		_ = encoding.MarshalToBuffer(r, &w.raw) // of strings and numbers: there are no errors
		w.hashes = appendHashes(w.hashes, r)
	}
	w.open.Digest += digest(first, "")
}

// Generation returns the next generation. The error is that ranges, or records, were not in order.
func (w *Writer) Generation() (*Generation, error) {
	if w.at >= 0 && w.at < len(w.base.Chunks()) {
		w.fail("the end")
	}
	w.flush()
	if w.err != nil {
		return nil, w.err
	}
	return w.base.store.generation(w.next), nil
}

// startRange checks that a range can begin at first: after what was put, or where what was kept ends.
func (w *Writer) startRange(first string) {
	isNext := first > w.last
	if w.at >= 0 {
		chunks := w.base.Chunks()
		isNext = w.at < len(chunks) && first == chunks[w.at].First
	}
	if !isNext {
		w.fail(first)
	}
	w.last = first
}

func (w *Writer) fail(path string) { w.err = cmp.Or(w.err, fmt.Errorf("out of order: at %q", path)) }

// isFull reports whether the open chunk ends before path.
func (w *Writer) isFull(path string) bool {
	n := len(w.records)
	if n >= maxChunkRecords || w.raw.Len() >= maxChunkBytes {
		return true
	}
	least := leastOf(w.size)
	return n >= least && xxhash.Sum64String(path) < math.MaxUint64/uint64(3*least)
}

func (w *Writer) startChunk(first string) {
	w.flush()
	w.next.Chunks = append(w.next.Chunks, Chunk{First: first})
	w.open = &w.next.Chunks[len(w.next.Chunks)-1]
}

// flush ends the open chunk, if there is one.
func (w *Writer) flush() {
	if w.open == nil {
		return
	}
	n := len(w.records)
	if n > 0 { // an empty range has a chunk, but no object
		w.open.Count = n
		w.open.Object = newObject(encodeChunk(n, w.raw.Bytes(), w.hashes))
	}
	if w.due != nil {
		w.open.Due = w.due(w.records)
	}
	for i := range w.records {
		w.open.add(&w.records[i])
		w.open.Moved = max(w.open.Moved, int64(w.records[i].Moved))
	}
	w.open = nil
	w.records = w.records[:0]
	w.raw.Reset()
	w.hashes = w.hashes[:0]
}
