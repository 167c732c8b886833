package store

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
)

// Chunk describes the records of one run of paths, from First up to the next chunk's
// First. The first chunk's First is "".
type Chunk struct {
	First string `json:"first"`
	Count int    `json:"count"`

	// Digest is of the candidates in the chunk's range; 0: not known.
	Digest uint64 `json:"digest,string"`

	// Due is when the first of its pages is due, in Unix seconds; 0: not known.
	Due int64 `json:"due"`

	blob *blob // nil: no records
}

// StoredDocument is one of the caller's own values that are kept with the records.
type StoredDocument struct {
	Name string          `json:"name"`
	Meta json.RawMessage `json:"meta,omitempty"`

	blob *blob
}

// NewDocument returns a document of data, which is not to be modified any more. It is
// held in memory until a Commit has written it.
func NewDocument(name string, meta json.RawMessage, data []byte) StoredDocument {
	return StoredDocument{Name: name, Meta: meta, blob: newBlob(data)}
}

// blob is an object in the storage, or one to be written there. It is shared by all
// generations that have it.
type blob struct {
	name    string
	fresh   atomic.Pointer[[]byte] // until a Commit has written it
	damaged atomic.Bool            // it was set aside
}

func newBlob(data []byte) *blob {
	b := &blob{name: nameOf(data)}
	b.fresh.Store(&data)
	return b
}

// Generation is one state of a site's records and documents. It may be newer than what
// is written. It does not change, save that damaged chunks become empty ones, and is
// safe for concurrent use.
type Generation struct {
	store            *Store
	chunks           atomic.Pointer[[]Chunk]
	settings, routes uint64
	meta             json.RawMessage
	documents        []StoredDocument
}

// Chunks returns the chunks in order of First, at least one. They are shared and must
// not be modified.
func (g *Generation) Chunks() []Chunk { return *g.chunks.Load() }

// Documents returns the documents in the order in which they were given. They are
// shared and must not be modified.
func (g *Generation) Documents() []StoredDocument { return g.documents }

// Meta is the caller's own value, as given to WithDocuments.
func (g *Generation) Meta() json.RawMessage { return g.meta }

// Settings returns the two digests that were given to [Writer.SetSettings].
func (g *Generation) Settings() (settings, routes uint64) { return g.settings, g.routes }

// Len is how many records there are.
func (g *Generation) Len() int {
	n := 0
	for _, c := range g.Chunks() {
		n += c.Count
	}
	return n
}

// Load returns the records of chunk i, in order of path. They are the caller's own.
//
// An error that matches ErrDamaged says that this and maybe other chunks are lost. It is
// returned once; from then on these chunks are empty, and their Digest and Due are 0. One
// that matches ErrSuperseded says that a later generation was committed. Any other error
// is the storage's or ctx's.
func (g *Generation) Load(ctx context.Context, i int) ([]Record, error) {
	chunks := g.Chunks()
	c, next := chunks[i], ""
	if c.blob == nil {
		return nil, nil
	}
	if i+1 < len(chunks) {
		next = chunks[i+1].First
	}
	data, err := g.store.read(ctx, c.blob)
	if err == nil {
		var records []Record
		if records, err = decodeChunk(data, c, next); err == nil {
			return records, nil
		}
		err = g.store.setAside(ctx, c.blob, data, err)
	}
	if errors.Is(err, ErrDamaged) {
		g.dropDamaged(ctx)
	}
	return nil, err
}

// dropDamaged empties all damaged chunks. What damages one often damages others, so all
// are checked: else each would make one more refresh fail.
func (g *Generation) dropDamaged(ctx context.Context) {
	chunks := slices.Clone(g.Chunks())
	for i, c := range chunks {
		if c.blob == nil {
			continue
		}
		if _, err := g.store.read(ctx, c.blob); c.blob.damaged.Load() || errors.Is(err, ErrDamaged) {
			chunks[i] = Chunk{First: c.First}
		}
	}
	g.chunks.Store(&chunks)
}

// Records yields all records in order of path. An error, as of [Generation.Load], is the
// last that is yielded.
func (g *Generation) Records(ctx context.Context) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for i := range g.Chunks() {
			records, err := g.Load(ctx, i)
			if err != nil {
				yield(nil, err)
				return
			}
			for j := range records {
				if !yield(&records[j], nil) {
					return
				}
			}
		}
	}
}

// Find returns the record of a page, nil if there is none. Errors are those of
// [Generation.Load].
func (g *Generation) Find(ctx context.Context, path string) (*Record, error) {
	chunks := g.Chunks()
	i := sort.Search(len(chunks), func(i int) bool { return chunks[i].First > path }) - 1
	records, err := g.Load(ctx, max(i, 0))
	if err != nil {
		return nil, err
	}
	at, found := slices.BinarySearchFunc(records, path, func(r Record, path string) int {
		return strings.Compare(r.Path, path)
	})
	if !found {
		return nil, nil
	}
	return &records[at], nil
}

// Document returns the bytes of document i, which must not be modified. Errors are those
// of [Generation.Load]; a damaged document stays one and is not written any more.
func (g *Generation) Document(ctx context.Context, i int) ([]byte, error) {
	return g.store.read(ctx, g.documents[i].blob)
}

// WithDocuments returns a generation with the same records and other documents, some of
// which may be this generation's own. meta must be JSON or empty.
func (g *Generation) WithDocuments(meta json.RawMessage, documents []StoredDocument) *Generation {
	next := g.derive(g.Chunks())
	next.meta, next.documents = meta, slices.Clone(documents)
	for i, d := range next.documents {
		for _, old := range g.documents {
			if old.blob.name == d.blob.name && !old.blob.damaged.Load() {
				next.documents[i].blob = old.blob
			}
		}
	}
	return next
}

// derive returns a generation that differs in its chunks.
func (g *Generation) derive(chunks []Chunk) *Generation {
	next := &Generation{store: g.store, settings: g.settings, routes: g.routes, meta: g.meta, documents: g.documents}
	next.chunks.Store(&chunks)
	return next
}

// blobs yields what must be in the storage for the generation to be whole.
func (g *Generation) blobs(yield func(*blob) bool) {
	for _, c := range g.Chunks() {
		if c.blob != nil && !c.blob.damaged.Load() && !yield(c.blob) {
			return
		}
	}
	for _, d := range g.documents {
		if !d.blob.damaged.Load() && !yield(d.blob) {
			return
		}
	}
}

// Fill returns a successor of from in which the pages of into that were fetched replace
// its own: for when the storage of from became readable only after the site had begun
// with into. No digest is known then. Documents and Meta are those of from.
func Fill(ctx context.Context, into, from *Generation) (*Generation, error) {
	newer, stop := iter.Pull2(into.Records(ctx))
	defer stop()
	older, stop := iter.Pull2(from.Records(ctx))
	defer stop()
	a, errA, okA := newer()
	b, errB, okB := older()
	w, first := from.Writer(), ""
	for batch := make([]Record, 0, minRecords); ; {
		if err := errors.Join(errA, errB); err != nil {
			return nil, err
		}
		if len(batch) == cap(batch) || !okA && !okB {
			w.Put(first, batch, nil, nil)
			batch = batch[:0]
		}
		if !okA && !okB {
			return w.Generation()
		}
		takeA, takeB := okA && (!okB || a.Path <= b.Path), okB && (!okA || b.Path <= a.Path)
		r := a
		if takeB && (!takeA || a.Fetched == 0) {
			r = b
		}
		if len(batch) == 0 && w.last != "" {
			first = r.Path
		}
		batch = append(batch, *r)
		if takeA {
			a, errA, okA = newer()
		}
		if takeB {
			b, errB, okB = older()
		}
	}
}
