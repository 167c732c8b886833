package record

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

// Generation is one state of a site's records and documents, which may not be committed yet. It never changes,
// except that it loses what is found damaged, and is safe for concurrent use.
type Generation struct {
	store *Store
	state atomic.Pointer[manifest]
}

func (s *Store) generation(m manifest) *Generation {
	g := &Generation{store: s}
	g.state.Store(&m)
	return g
}

// Chunks returns the chunks in order of First, at least one. They must not be modified.
func (g *Generation) Chunks() []Chunk { return g.state.Load().Chunks }

// Documents returns the documents as they were given. They must not be modified.
func (g *Generation) Documents() []StoredDocument { return g.state.Load().Documents }

// Meta is the caller's own value, as given to WithDocuments.
func (g *Generation) Meta() json.RawMessage { return g.state.Load().Meta }

// Settings returns the two digests that were given to [Writer.SetSettings].
func (g *Generation) Settings() (settings, routes uint64) {
	return g.state.Load().Settings, g.state.Load().Routes
}

// Len returns the number of records.
func (g *Generation) Len() int {
	n := 0
	for _, c := range g.Chunks() {
		n += c.Count
	}
	return n
}

// Lost reports whether records of the generation were found damaged: their pages are to be fetched again. Those that
// follow a [Writer] have not lost them any more.
func (g *Generation) Lost() bool { return g.state.Load().lost }

// Load returns the records of chunk i, in order of path. They are the caller's own. An error that matches
// ErrDamaged says that this chunk, and perhaps others, are lost. It is returned once: from then on lost chunks are
// empty, with a Digest and Due of 0, and lost documents are missing in Documents. An error that matches
// ErrSuperseded says that a later generation was committed. Any other error is the storage's or ctx's.
func (g *Generation) Load(ctx context.Context, i int) (records []Record, err error) {
	c := g.Chunks()[i]
	if c.Object == nil {
		return nil, nil
	}
	data, err := g.store.read(ctx, c.Object)
	if err != nil {
		return nil, g.dropDamaged(ctx, err)
	}
	// Their hash says that the data are those that were written, not that they are records.
	records, err = decodeChunk(data)
	if err != nil {
		return nil, g.dropDamaged(ctx, g.store.lose(c.Object, err))
	}
	return records, nil
}

// dropDamaged drops everything damaged if err is ErrDamaged. What damages one object often damages others: unless
// all are read now, each makes another refresh fail.
func (g *Generation) dropDamaged(ctx context.Context, err error) error {
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	for _, o := range g.state.Load().objects() {
		_, _ = g.store.read(ctx, o) // which marks what is damaged
	}
	m := g.state.Load().sound()
	g.state.Store(&m)
	return err
}

// Records yields all records in order of path. An error, as of [Generation.Load], is the last that is yielded.
func (g *Generation) Records(ctx context.Context) iter.Seq2[*Record, error] {
	return g.Moved(ctx, 0)
}

// Moved yields the records of those chunks in which a [Record.Moved] is at a time or later. An error, as of [Generation.Load],
// is the last that is yielded.
func (g *Generation) Moved(ctx context.Context, since int64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for i, c := range g.Chunks() {
			if c.Moved < since {
				continue
			}
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

// ChunkOf returns the index of the chunk in whose range a path is.
func (g *Generation) ChunkOf(path string) int {
	chunks := g.Chunks()
	isAfter := func(i int) bool { return chunks[i].First > path }
	return sort.Search(len(chunks), isAfter) - 1
}

// Search returns the index of a path in records, which are in order of path, or where it would be.
func Search(records []Record, path string) (at int, isThere bool) {
	return slices.BinarySearchFunc(records, path, func(r Record, path string) int {
		return strings.Compare(r.Path, path)
	})
}

// Find returns the record of a path; nil: there is none. Errors are as of [Generation.Load].
func (g *Generation) Find(ctx context.Context, path string) (*Record, error) {
	records, err := g.Load(ctx, g.ChunkOf(path))
	if err != nil {
		return nil, err
	}
	at, isThere := Search(records, path)
	if !isThere {
		return nil, nil
	}
	return &records[at], nil
}

// Document returns the bytes of document i, which must not be modified. Errors are as of [Generation.Load].
func (g *Generation) Document(ctx context.Context, i int) ([]byte, error) {
	data, err := g.store.read(ctx, g.Documents()[i].Object)
	return data, g.dropDamaged(ctx, err)
}

// WithDocuments returns a generation with the same records and other documents; some may be of this generation.
// meta is JSON or empty.
func (g *Generation) WithDocuments(meta json.RawMessage, documents []StoredDocument) *Generation {
	m := *g.state.Load()
	m.Meta = meta
	m.Documents = slices.Clone(documents)
	return g.store.generation(m)
}
