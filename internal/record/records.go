package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	leasePatience = 3 * time.Second // with the refresh that has the records
	openPatience  = time.Second     // also before a commit goes on beside the refreshes that follow
)

// Waits has a commit be waited for: see [Records.Commit].
const Waits = true

// Records are a site's records, from [Store.Acquire] until Release. They are not safe for concurrent use. A storage that fails,
// hangs or is slow delays no refresh: the site goes on in memory meanwhile.
type Records struct {
	Generation *Generation // the newest one, which may not be committed yet
	Unsaved    bool        // the last commit failed, or has not ended

	store  *Store
	isOpen bool
	lease  wait.Slots
	ctx    context.Context // of commits
	cancel context.CancelFunc
}

func (s *Store) newRecords() *Records {
	r := &Records{store: s, Generation: s.empty(), lease: wait.NewSlots(1)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Acquire waits until the records are released. A holder that does not release them within three seconds loses the
// right to commit. The error is ctx's.
func (s *Store) Acquire(ctx context.Context) (*Records, error) {
	for {
		r := s.current.Load()
		waiting, cancel := context.WithTimeout(ctx, leasePatience)
		isTaken := r.lease.Take(waiting)
		cancel()
		isCurrent := s.current.Load() == r // else they were replaced meanwhile
		if isTaken && isCurrent {
			return r, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// The holder keeps what it has, but its commits are canceled.
		if s.current.CompareAndSwap(r, s.newRecords()) { // of several who wait, one replaces them
			r.cancel()
		}
	}
}

// Release gives the records back.
func (r *Records) Release() { r.lease.Release() }

// Close cancels commits that are under way.
func (s *Store) Close() { s.current.Load().cancel() }

// Reopen has the next Open read what the storage has, which another process has written, and forget all else.
func (r *Records) Reopen() {
	r.Generation = r.store.empty()
	r.Unsaved = false
	r.isOpen = false
}

// Documents are what is stored with the records: meta is JSON.
type Documents interface {
	Documents() (meta json.RawMessage, documents []StoredDocument, err error)
}

// kept is the JSON that is stored with records and documents.
type kept struct {
	Documents json.RawMessage `json:"snapshot,omitempty"` // the meta of Documents
	Meta      any             `json:"meta"`
}

// Open opens the storage, unless it is open: it decodes the meta of the last [Records.Write] into meta, and has restore
// make the documents that were written then, if there were any. If that fails, the site goes on in memory, and nothing is
// written until a later Open has succeeded. With an error that matches [ErrDamaged] it has succeeded, without what is
// damaged; damaged is called for each such object.
func (r *Records) Open(
	ctx context.Context,
	meta any,
	damaged func(key string, err error),
	restore func(ctx context.Context, documents json.RawMessage, g *Generation) error,
) error {
	if r.isOpen {
		return nil
	}
	opening, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	err := r.store.Open(opening, damaged)
	if err != nil {
		return err
	}
	last := r.store.Last()
	// What was learnt in memory while the storage could not be read may be little: it does not replace what is stored,
	// with its dates, unless that is less than half.
	isLearnt := r.Generation.Len() > 2*last.Len()
	if isLearnt {
		last = r.Generation
	}
	k := kept{Meta: meta}
	if len(last.Meta()) > 0 {
		err = json.Unmarshal(last.Meta(), &k)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	} else if len(k.Documents) > 0 {
		err = restore(ctx, k.Documents, last) // however long: a crawl takes longer
	}
	isDamaged := errors.Is(err, ErrDamaged)
	if err != nil && !isDamaged {
		return err // the rest cannot be read either: better nothing than half of it
	}
	r.isOpen = true
	r.Generation = last
	r.Unsaved = isLearnt
	return err
}

// Write adds documents and the JSON of meta to the records, and commits them. waits: until that has ended, see [Records.Commit].
func (r *Records) Write(d Documents, meta any, waits bool) error {
	encoded, documents, err := d.Documents()
	if err != nil {
		return err
	}
	data, err := json.Marshal(kept{Documents: encoded, Meta: meta})
	if err != nil {
		return err
	}
	r.Generation = r.Generation.WithDocuments(data, documents)
	return r.Commit(waits)
}

// Commit writes the newest generation, if the storage is open. After a second it goes on beside the refreshes that
// follow, which write nothing before it has ended: for them, the storage does not respond. Or it waits for the end.
func (r *Records) Commit(waits bool) error {
	if !r.isOpen {
		return nil
	}
	r.Unsaved = true
	if waits {
		err := r.store.Commit(r.ctx, r.Generation)
		r.Unsaved = err != nil
		return err
	}
	waiting, cancel := context.WithTimeoutCause(r.ctx, openPatience, ErrHung)
	defer cancel()
	if !r.store.lock.Take(waiting) {
		return context.Cause(waiting)
	}
	generation := r.Generation // it may be another one once Commit has returned
	done := make(chan error, 1)
	go func() {
		defer r.store.lock.Release()
		done <- r.store.commit(r.ctx, generation)
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
