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
	leasePatience    = 3 * time.Second       // with the refresh that has the records
	openPatience     = time.Second           // also before a commit goes on beside the refreshes that follow
	sharedPatience   = 30 * time.Second      // the same, with a storage of others, too, and then the commit is canceled
	documentPatience = 10 * time.Millisecond // more, with each document: some have 250 KB
)

var errHung = errors.New("the storage does not respond")

// Shared is a storage where other processes commit generations of the site, too.
type Shared interface {
	store.Storage
	Newer() bool                                     // there is another generation than that which was adopted or committed
	Adopt(ctx context.Context, isDamaged bool)       // what was loaded; if some is damaged, it is to be committed anew
	Inherited(ctx context.Context) *store.Generation // with which the site begins if there is nothing; nil: with nothing
}

// Site lends the records of a site.
type Site struct{ current atomic.Pointer[Records] }

// NewSite returns a Site whose keys begin with a prefix of a storage, which may be [Shared]. A nil storage: in memory.
func NewSite(storage store.Storage, prefix string) *Site {
	if _, isShared := storage.(Shared); storage == nil {
		storage = store.NewMemory()
	} else if !isShared {
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
	shared  Shared // the storage, too; nil: it is this process's alone
	prefix  string
	store   *store.Store // nil: not opened yet

	ctx      context.Context // of commits
	cancel   context.CancelFunc
	commits  wait.Slots    // one at a time
	patience time.Duration // with the storage
}

func newRecords(storage store.Storage, prefix string) *Records {
	memory, _ := store.Open(context.Background(), store.NewMemory(), store.Options{}) // which cannot fail
	r := &Records{Generation: memory.Last(), lease: wait.NewSlots(1), storage: storage, prefix: prefix, commits: wait.NewSlots(1), patience: openPatience}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if r.shared, _ = storage.(Shared); r.shared != nil {
		r.patience = sharedPatience
	}
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
// the snapshot that was published then; nil: none. Documents that previous has, which may be nil, are not loaded again.
// If it fails, the site goes on in memory, and nothing is written until a later Open has succeeded. With an error that
// matches [store.ErrDamaged] it has succeeded, without what is damaged; damaged is called for each such object. A storage
// that is [Shared] is opened again once another process has committed; if that fails, all stays as it was.
func (r *Records) Open(ctx context.Context, meta any, previous *publish.Snapshot, damaged func(key string, err error)) (*publish.Snapshot, error) {
	if r.store != nil && (r.shared == nil || !r.shared.Newer()) {
		return nil, nil
	}
	opening, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	opened, err := store.Open(opening, r.storage, store.Options{Prefix: r.prefix, Damaged: damaged})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", r.prefix, err)
	}
	last, inherited := opened.Last(), (*store.Generation)(nil)
	knowsMore := r.shared != nil && len(last.Meta()) > 0
	opening, cancel = context.WithTimeout(ctx, r.patience+time.Duration(len(last.Documents()))*documentPatience)
	defer cancel()
	if n := r.Generation.Len(); n > 0 { // the site has begun in memory, so no request waits
		opening = ctx
		if n > 2*last.Len() && !knowsMore { // else the storage knows more, if not the latest
			inherited = r.Generation
		}
	} else if r.shared != nil && !knowsMore {
		inherited = r.shared.Inherited(opening)
	}
	if inherited != nil {
		if last, err = opened.Adopt(opening, inherited); err != nil {
			return nil, fmt.Errorf("copying earlier records: %w", err)
		}
	}
	snapshot, err := published(opening, last, meta, previous)
	if err == nil || errors.Is(err, store.ErrDamaged) { // else the rest cannot be read either: better nothing than half of it
		if r.store, r.Generation, r.Unsaved = opened, last, inherited != nil || err != nil; r.shared != nil {
			r.shared.Adopt(ctx, err != nil)
		}
	}
	return snapshot, err
}

// published returns the snapshot that was stored with a generation; nil: none.
func published(ctx context.Context, g *store.Generation, meta any, previous *publish.Snapshot) (*publish.Snapshot, error) {
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
	return publish.Restore(ctx, k.Snapshot, g, previous)
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
	waiting, cancel := context.WithTimeoutCause(r.ctx, r.patience, errHung)
	defer cancel()
	ctx := r.ctx
	if r.shared != nil {
		ctx = waiting
	}
	generation, done := r.Generation, make(chan error, 1)
	if !r.commits.Take(waiting) {
		return context.Cause(waiting)
	}
	go func() {
		defer r.commits.Release()
		done <- r.store.Commit(ctx, generation)
	}()
	select {
	case err := <-done:
		r.Unsaved = err != nil
		return err
	case <-waiting.Done():
		return context.Cause(ctx) // nil: there is much to write
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
