// Package persist keeps a site's records and its published snapshot on a storage, and lends the records to one
// refresh at a time. A storage that fails, hangs or is slow delays no refresh: the site goes on in memory meanwhile.
package persist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	leasePatience    = 3 * time.Second       // with the refresh that has the records
	openPatience     = time.Second           // also before a commit goes on beside the refreshes that follow
	documentPatience = 10 * time.Millisecond // more, with each document: some have 250 KB
)

// Waits has a commit be waited for: see [Records.Commit].
const Waits = true

// Site lends the records of a site.
type Site struct {
	Now func() time.Time // set before the first Acquire; nil: time.Now

	current atomic.Pointer[Records]
}

// NewSite returns a Site whose keys begin with a prefix of a storage. A nil storage: in memory.
func NewSite(storage store.Storage, prefix string) *Site {
	if storage == nil {
		storage = store.NewMemory()
	}
	s := new(Site)
	s.current.Store(newRecords(store.Bounded(storage), prefix))
	return s
}

// Acquire waits until the records are released. A holder that does not release them within three seconds loses the
// right to commit. The error is ctx's.
func (s *Site) Acquire(ctx context.Context) (*Records, error) {
	for {
		r := s.current.Load()
		waiting, cancel := context.WithTimeout(ctx, leasePatience)
		taken := r.lease.Take(waiting)
		cancel()
		isCurrent := s.current.Load() == r // else they were replaced meanwhile
		if taken && isCurrent {
			r.now = s.Now
			return r, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if taken {
			continue
		}
		// The holder keeps what it has, but its commits are canceled. What is known of the storage's objects stays
		// known.
		next := newRecords(r.storage, r.prefix)
		next.doubts = r.doubts
		if s.current.CompareAndSwap(r, next) { // of several who wait, one replaces them
			r.cancel()
		}
	}
}

// Close cancels commits that are under way.
func (s *Site) Close() { s.current.Load().cancel() }

// Records are a site's records, from [Site.Acquire] until Release. They are not safe for concurrent use.
type Records struct {
	Generation *store.Generation // the newest one, which may not be committed yet
	Unsaved    bool              // the last commit failed, or has not ended

	lease   wait.Slots
	storage store.Storage
	prefix  string
	store   *store.Store     // nil: not opened yet
	doubts  *store.Doubts    // of all the stores that were opened
	now     func() time.Time // nil: time.Now

	ctx     context.Context // of commits
	cancel  context.CancelFunc
	commits wait.Slots // one at a time
}

func newRecords(storage store.Storage, prefix string) *Records {
	memory, _ := store.Open(context.Background(), store.NewMemory(), store.Options{}) // which cannot fail
	r := &Records{
		Generation: memory.Last(),
		lease:      wait.NewSlots(1),
		storage:    storage,
		prefix:     prefix,
		doubts:     new(store.Doubts),
		commits:    wait.NewSlots(1),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Release gives the records back.
func (r *Records) Release() { r.lease.Release() }

// Reopen has the next Open read what the storage has, which another process has written, and forget all else.
func (r *Records) Reopen() {
	memory, _ := store.Open(context.Background(), store.NewMemory(), store.Options{}) // which cannot fail
	r.store = nil
	r.Generation = memory.Last()
	r.Unsaved = false
}

// kept is the JSON that is stored with records and documents.
type kept struct {
	Snapshot json.RawMessage `json:"snapshot,omitempty"` // without its documents
	Meta     any             `json:"meta"`
}

// Open opens the storage, unless it is open: it decodes the meta of the last [Records.Write] into meta, and returns the
// snapshot that was published then; nil: none. Documents that previous has, which may be nil, are not loaded again. If
// it fails, the site goes on in memory, and nothing is written until a later Open has succeeded. With an error that
// matches [store.ErrDamaged] it has succeeded, without what is damaged; damaged is called for each such object.
func (r *Records) Open(
	ctx context.Context,
	meta any,
	previous *document.Set,
	damaged func(key string, err error),
) (*document.Set, error) {
	if r.store != nil {
		return nil, nil
	}
	opening, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	opened, err := store.Open(opening, r.storage, store.Options{
		Prefix:  r.prefix,
		Damaged: damaged,
		Now:     r.now,
		Doubts:  r.doubts,
	})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", r.prefix, err)
	}
	// What is read from here on may take longer, as there is more of it. Once the site has begun in memory, no request
	// waits for it.
	reading := ctx
	if r.Generation.Len() == 0 {
		documents := time.Duration(len(opened.Last().Documents()))
		reading, cancel = context.WithTimeout(ctx, openPatience+documents*documentPatience)
		defer cancel()
	}
	last, isAdopted, err := r.startingGeneration(reading, opened)
	if err != nil {
		return nil, fmt.Errorf("copying earlier records: %w", err)
	}
	snapshot, err := published(reading, last, meta, previous)
	isDamaged := errors.Is(err, store.ErrDamaged)
	if err != nil && !isDamaged {
		return nil, err // the rest cannot be read either: better nothing than half of it
	}

	// Nothing fails from here on.
	r.store = opened
	r.Generation = last
	// What was learnt in memory, or is left without what is damaged, is not in this storage yet.
	r.Unsaved = isAdopted || isDamaged
	return snapshot, err
}

// startingGeneration returns the generation with which the site goes on: what the store has, or what was learnt in memory, which
// is not committed there.
func (r *Records) startingGeneration(ctx context.Context, opened *store.Store) (g *store.Generation, isAdopted bool, err error) {
	last := opened.Last()
	// What was learnt in memory while the storage could not be read may be little: it does not replace what is stored,
	// with its dates, unless that is less than half.
	if r.Generation.Len() <= 2*last.Len() {
		return last, false, nil
	}
	g, err = opened.Adopt(ctx, r.Generation)
	return g, true, err
}

// published returns the snapshot that was stored with a generation; nil: none.
func published(
	ctx context.Context,
	g *store.Generation,
	meta any,
	previous *document.Set,
) (*document.Set, error) {
	if len(g.Meta()) == 0 {
		return nil, nil
	}
	k := kept{Meta: meta}
	err := json.Unmarshal(g.Meta(), &k)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	if len(k.Snapshot) == 0 {
		return nil, nil
	}
	return document.Restore(ctx, k.Snapshot, g, previous)
}

// Write adds the published snapshot, which may be nil, and the JSON of meta to the records, and commits them. waits: until that
// has ended, see [Records.Commit].
func (r *Records) Write(snapshot *document.Set, meta any, waits bool) (err error) {
	k := kept{Meta: meta}
	var documents []store.StoredDocument
	if snapshot != nil {
		k.Snapshot, documents, err = snapshot.Documents()
	}
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(k)
	if err != nil {
		return err
	}
	r.Generation = r.Generation.WithDocuments(encoded, documents)
	return r.Commit(waits)
}

// Commit writes the newest generation, if the storage is open. After a second it goes on beside the refreshes that
// follow, which write nothing before it has ended: for them, the storage does not respond. Or it waits for the end.
func (r *Records) Commit(waits bool) error {
	if r.store == nil {
		return nil
	}
	r.Unsaved = true
	waiting := r.ctx
	if !waits {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeoutCause(r.ctx, openPatience, store.ErrHung)
		defer cancel()
	}
	if !r.commits.Take(waiting) {
		return context.Cause(waiting)
	}
	// Both may be others once Commit has returned.
	opened := r.store
	generation := r.Generation
	done := make(chan error, 1)
	go func() {
		defer r.commits.Release()
		done <- opened.Commit(r.ctx, generation)
	}()
	select {
	case err := <-done:
		r.Unsaved = err != nil
		return err
	case <-waiting.Done():
		// With ten million pages, there may be 400 MB to write: a commit goes on for as long as that takes.
		return context.Cause(r.ctx) // nil: there is much to write
	}
}
