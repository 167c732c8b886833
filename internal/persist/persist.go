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
	sharedPatience   = 30 * time.Second      // the same, with a storage of others, too, and then the commit is canceled
	documentPatience = 10 * time.Millisecond // more, with each document: some have 250 KB
)

// Shared is a storage where other processes commit generations of the site, too.
type Shared interface {
	store.Storage

	// Newer reports whether there is another generation than that which was adopted or committed.
	Newer() bool

	// Adopt adopts what was loaded; if some of it is damaged, it is to be committed anew.
	Adopt(ctx context.Context, isDamaged bool)

	// Inherited returns what the site begins with if there is nothing; nil: with nothing.
	Inherited(ctx context.Context) *store.Generation

	// Begin begins a refresh, and returns the time for all dates.
	Begin() time.Time

	// Join is as [Records.Join]. release, if it is not nil, is to be called when the refresh has ended.
	Join(ctx context.Context, standing func() Standing, load func()) (role Role, release func(), err error)

	// Commit commits what write writes. isServed: it may be served here, also if nothing was ever committed.
	Commit(ctx context.Context, c Commit, write func() error) (isServed bool, err error)
}

// Role is what a process does for a site that others may share.
type Role uint8

// The roles. One process is a fleet of one, and always the writer.
const (
	Writer   Role = iota // it refreshes the site, and commits
	Follower             // it serves what others have committed, and loads what is new
	Later                // it would refresh the site, but another one does so now, or the storage fails
)

// Standing is what the role of a process depends on.
type Standing struct {
	Demanded  bool // an operator wants a refresh now
	Serves    bool // it has something to serve
	HoldsBack bool // the last refresh held pages back, and another process may find them
	Visited   int  // paths that its visitors have requested, and signals of theirs
}

// Commit is what others need to know of what is committed.
type Commit struct {
	IsSame  bool          // nothing has changed since the last commit
	Next    time.Duration // until the next refresh
	Cost    time.Duration // of this one
	Visited int           // as in Standing
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
	leave   func() // ends what Join began; nil: nothing
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
func (r *Records) Release() {
	if r.leave != nil {
		r.leave()
		r.leave = nil
	}
	r.lease.Release()
}

// Join finds out what the process is to do for the site. load is called where the records may have to be loaded: see
// [Records.Open]. An error is that of the storage, while another process may refresh the site.
func (r *Records) Join(ctx context.Context, standing func() Standing, load func()) (role Role, err error) {
	load()
	if r.shared == nil {
		return Writer, nil
	}
	role, r.leave, err = r.shared.Join(ctx, standing, load)
	return role, err
}

// Begin returns the time for all dates of a refresh that begins now: that of the process, unless another one's clock is
// ahead.
func (r *Records) Begin(now time.Time) time.Time {
	if r.shared == nil {
		return now
	}
	return r.shared.Begin()
}

// IsShared reports whether other processes serve what is committed.
func (r *Records) IsShared() bool { return r.shared != nil }

// Share commits a snapshot for other processes, as [Records.Write] does. isServed reports whether this one may serve
// it.
func (r *Records) Share(
	ctx context.Context,
	snapshot *document.Set,
	meta any,
	c Commit,
) (isServed bool, err error) {
	c.IsSame = c.IsSame && !r.Unsaved
	return r.shared.Commit(ctx, c, func() error { return r.Write(snapshot, meta) })
}

// kept is the JSON that is stored with records and documents.
type kept struct {
	Snapshot json.RawMessage `json:"snapshot,omitempty"` // without its documents
	Meta     any             `json:"meta"`
}

// Open opens the storage, unless it is open: it decodes the meta of the last [Records.Write] into meta, and returns the
// snapshot that was published then; nil: none. Documents that previous has, which may be nil, are not loaded again. If
// it fails, the site goes on in memory, and nothing is written until a later Open has succeeded. With an error that
// matches [store.ErrDamaged] it has succeeded, without what is damaged; damaged is called for each such object. A
// storage that is [Shared] is opened again once another process has committed; if that fails, all stays as it was.
func (r *Records) Open(
	ctx context.Context,
	meta any,
	previous *document.Set,
	damaged func(key string, err error),
) (*document.Set, error) {
	isOutdated := r.shared != nil && r.shared.Newer()
	if r.store != nil && !isOutdated {
		return nil, nil
	}
	opening, cancel := context.WithTimeout(ctx, r.patience)
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
		reading, cancel = context.WithTimeout(ctx, r.patience+documents*documentPatience)
		defer cancel()
	}
	last, isInherited, err := r.startingGeneration(reading, opened)
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
	// What was inherited, or is left without what is damaged, is not in this storage yet.
	r.Unsaved = isInherited || isDamaged
	if r.shared != nil {
		r.shared.Adopt(ctx, isDamaged)
	}
	return snapshot, err
}

// startingGeneration returns the generation with which the site goes on: what the store has, or else an earlier one,
// which is not committed there.
func (r *Records) startingGeneration(
	ctx context.Context,
	opened *store.Store,
) (g *store.Generation, isInherited bool, err error) {
	last := opened.Last()
	if r.shared != nil && len(last.Meta()) > 0 { // others have committed it
		return last, false, nil
	}
	// What was learnt in memory while the storage could not be read may be little: it does not replace what is stored,
	// with its dates, unless that is less than half.
	var earlier *store.Generation
	inMemory := r.Generation.Len()
	if inMemory > 2*last.Len() {
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

// Write adds the published snapshot, which may be nil, and the JSON of meta to the records, and commits them.
func (r *Records) Write(snapshot *document.Set, meta any) (err error) {
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
	// With ten million pages, there may be 400 MB to write: a commit goes on for as long as that takes. One to a storage of
	// others ends with the patience.
	ctx := r.ctx
	if r.shared != nil {
		ctx = waiting
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
		done <- opened.Commit(ctx, generation)
	}()
	select {
	case err := <-done:
		r.Unsaved = err != nil
		return err
	case <-waiting.Done():
		return context.Cause(ctx) // nil: there is much to write
	}
}
