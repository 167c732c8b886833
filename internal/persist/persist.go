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

// Shared is a storage where other processes commit generations of the site, too.
type Shared interface {
	store.Storage
	Newer() bool                                     // there is another generation than that which was adopted or committed
	Adopt(ctx context.Context, isDamaged bool)       // what was loaded; if some is damaged, it is to be committed anew
	Inherited(ctx context.Context) *store.Generation // with which the site begins if there is nothing; nil: with nothing
}

// Site lends the records of a site.
type Site struct {
	Now func() time.Time // set before the first Acquire; nil: time.Now

	current atomic.Pointer[Records]
}

// NewSite returns a Site whose keys begin with a prefix of a storage, which may be [Shared]. A nil storage: in memory.
func NewSite(storage store.Storage, prefix string) *Site {
	if storage == nil {
		storage = store.NewMemory()
	}
	// One that is shared bounds its calls itself.
	_, isShared := storage.(Shared)
	if !isShared {
		storage = store.Bounded(storage)
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
		if taken && s.current.Load() == r {
			r.now = s.Now
			return r, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if taken { // they were replaced meanwhile
			continue
		}
		next := newRecords(r.storage, r.prefix)
		next.doubts = r.doubts
		if s.current.CompareAndSwap(r, next) {
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
	store   *store.Store     // nil: not opened yet
	doubts  *store.Doubts    // of all the stores that were opened
	now     func() time.Time // nil: time.Now

	ctx      context.Context // of commits
	cancel   context.CancelFunc
	commits  wait.Slots    // one at a time
	patience time.Duration // with the storage
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
		patience:   openPatience,
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.shared, _ = storage.(Shared)
	if r.shared != nil {
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
	opened, err := store.Open(opening, r.storage, store.Options{Prefix: r.prefix, Damaged: damaged, Now: r.now, Doubts: r.doubts})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", r.prefix, err)
	}
	// What is read from here on may take longer, as there is more of it. Once the site has begun in memory, no request
	// waits for it.
	reading := ctx
	if r.Generation.Len() == 0 {
		documents := time.Duration(len(opened.Last().Documents()))
		reading, cancel = context.WithTimeout(ctx, r.patience+documents*documentPatience)
		defer cancel()
	}
	last, isInherited, err := r.begin(reading, opened)
	if err != nil {
		return nil, fmt.Errorf("copying earlier records: %w", err)
	}
	snapshot, err := published(reading, last, meta, previous)
	isDamaged := errors.Is(err, store.ErrDamaged)
	if err != nil && !isDamaged { // the rest cannot be read either: better nothing than half of it
		return nil, err
	}
	r.store = opened
	r.Generation = last
	// What was inherited, or is left without what is damaged, is not in this storage yet.
	r.Unsaved = isInherited || isDamaged
	if r.shared != nil {
		r.shared.Adopt(ctx, isDamaged)
	}
	return snapshot, err
}

// begin returns the generation with which the site goes on: what the store has, or else an earlier one, which is not
// committed there.
func (r *Records) begin(ctx context.Context, opened *store.Store) (g *store.Generation, isInherited bool, err error) {
	last := opened.Last()
	if r.shared != nil && len(last.Meta()) > 0 { // others have committed it
		return last, false, nil
	}
	var earlier *store.Generation
	inMemory := r.Generation.Len()
	if inMemory > 2*last.Len() { // else the storage knows more, if not the latest
		earlier = r.Generation
	}
	if inMemory == 0 && r.shared != nil {
		earlier = r.shared.Inherited(ctx)
	}
	if earlier == nil {
		return last, false, nil
	}
	g, err = opened.Adopt(ctx, earlier)
	return g, true, err
}

// published returns the snapshot that was stored with a generation; nil: none.
func published(ctx context.Context, g *store.Generation, meta any, previous *publish.Snapshot) (*publish.Snapshot, error) {
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
	return publish.Restore(ctx, k.Snapshot, g, previous)
}

// Write adds the published snapshot, which may be nil, and the JSON of meta to the records, and commits them.
func (r *Records) Write(snapshot *publish.Snapshot, meta any) (err error) {
	k := kept{Meta: meta}
	var documents []store.StoredDocument
	if snapshot != nil {
		k.Snapshot, documents, err = snapshot.Documents(r.Generation)
	}
	if err != nil {
		return err
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
	waiting, cancel := context.WithTimeoutCause(r.ctx, r.patience, store.ErrHung)
	defer cancel()
	ctx := r.ctx
	if r.shared != nil {
		ctx = waiting
	}
	if !r.commits.Take(waiting) {
		return context.Cause(waiting)
	}
	generation := r.Generation
	done := make(chan error, 1)
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
