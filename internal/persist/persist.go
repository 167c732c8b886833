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

	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	leasePatience    = 3 * time.Second // with the refresh that has the records
	openPatience     = time.Second
	documentPatience = 10 * time.Millisecond // more, with each document: some have 250 KB
	commitPatience   = time.Second           // before a commit goes on beside the refreshes that follow
)

var errHung = errors.New("the storage does not respond")

// Site lends the records of a site.
type Site struct{ current atomic.Pointer[Records] }

// NewSite returns a Site whose keys begin with a prefix of a storage. A nil storage: in memory.
func NewSite(storage store.Storage, prefix string) *Site {
	if storage == nil {
		storage = store.NewMemory()
	} else {
		storage = limited{storage}
	}
	s := new(Site)
	s.current.Store(newRecords(storage, prefix))
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
		switch {
		case taken && s.current.Load() == r:
			return r, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !taken && s.current.CompareAndSwap(r, newRecords(r.storage, r.prefix)):
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
	store   *store.Store // nil: not opened yet

	ctx     context.Context // of commits
	cancel  context.CancelFunc
	commits wait.Slots // one at a time
}

func newRecords(storage store.Storage, prefix string) *Records {
	memory, _ := store.Open(context.Background(), store.NewMemory(), store.Options{}) // which cannot fail
	r := &Records{Generation: memory.Last(), lease: wait.NewSlots(1), storage: storage, prefix: prefix, commits: wait.NewSlots(1)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Release gives the records back.
func (r *Records) Release() { r.lease.Release() }

// kept is the JSON that is stored with records and documents.
type kept struct {
	Snapshot json.RawMessage `json:"snapshot,omitempty"` // without its documents
	Meta     any             `json:"meta"`
}

// Open opens the storage, unless it is open: it decodes the meta of the last [Records.Write] into meta, and returns
// the snapshot that was published then; nil: none. If it fails, the site goes on in memory, and nothing is written
// until a later Open has succeeded. With an error that matches [store.ErrDamaged] it has succeeded, without what is
// damaged; damaged is called for each such object.
func (r *Records) Open(ctx context.Context, meta any, damaged func(key string, err error)) (*publish.Snapshot, error) {
	if r.store != nil {
		return nil, nil
	}
	opening, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	opened, err := store.Open(opening, r.storage, store.Options{Prefix: r.prefix, Damaged: damaged})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", r.prefix, err)
	}
	last := opened.Last()
	opening, cancel = context.WithTimeout(ctx, openPatience+time.Duration(len(last.Documents()))*documentPatience)
	defer cancel()
	if n := r.Generation.Len(); n > 0 { // the site has begun in memory, so no request waits
		if opening = ctx; n > 2*last.Len() { // else the storage knows more, if not the latest
			last, r.Unsaved = opened.Adopt(r.Generation), true
		}
	}
	snapshot, err := published(opening, last, meta)
	if err == nil || errors.Is(err, store.ErrDamaged) { // else the rest cannot be read either: better nothing than half of it
		r.store, r.Generation = opened, last
	}
	return snapshot, err
}

// published returns the snapshot that was stored with a generation; nil: none.
func published(ctx context.Context, g *store.Generation, meta any) (*publish.Snapshot, error) {
	k := kept{Meta: meta}
	if len(g.Meta()) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(g.Meta(), &k); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	if len(k.Snapshot) == 0 {
		return nil, nil
	}
	return publish.Restore(ctx, k.Snapshot, g)
}

// Write adds the published snapshot, which may be nil, and the JSON of meta to the records, and commits them.
func (r *Records) Write(snapshot *publish.Snapshot, meta any) (err error) {
	k, documents := kept{Meta: meta}, []store.StoredDocument(nil)
	if snapshot != nil {
		if k.Snapshot, documents, err = snapshot.Documents(r.Generation); err != nil {
			return err
		}
	}
	encoded, err := json.Marshal(k)
	if err != nil {
		return err
	}
	r.Generation = r.Generation.WithDocuments(encoded, documents)
	return r.Commit()
}

// Commit writes the newest generation, if the storage is open. After a second it goes on beside the refreshes that
// follow, which write nothing before it has ended: for them, the storage does not respond.
func (r *Records) Commit() error {
	if r.store == nil {
		return nil
	}
	r.Unsaved = true
	waiting, cancel := context.WithTimeoutCause(r.ctx, commitPatience, errHung)
	defer cancel()
	generation, done := r.Generation, make(chan error, 1)
	if !r.commits.Take(waiting) {
		return context.Cause(waiting)
	}
	go func() {
		defer r.commits.Release()
		done <- r.store.Commit(r.ctx, generation)
	}()
	select {
	case err := <-done:
		r.Unsaved = err != nil
		return err
	case <-waiting.Done():
		return r.ctx.Err() // else there is much to write
	}
}

// limited bounds the reads under way: each one that a lost network disk does not answer takes a thread.
type limited struct{ store.Storage }

// reads are the slots for those of all sites.
var reads = wait.NewSlots(64)

// Load implements [store.Storage].
func (l limited) Load(ctx context.Context, key string) ([]byte, error) {
	if !reads.Take(ctx) {
		return nil, ctx.Err()
	}
	defer reads.Release()
	return l.Storage.Load(ctx, key)
}
