// Package fleet makes one site of the processes that share a storage: whichever is due refreshes it, and the others
// load what it has committed. It works with any storage of Caddy: values of up to 256 KiB, no compare-and-swap, and
// locks that may be lost, which costs a refresh but never mixes two generations.
//
// Below the prefix of a site are the value current, which says which generation is the newest, and objects, which never
// change. A commit stores objects, a manifest that names them, which is an object, too, and then current.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const (
	patience    = 10 * time.Second // with the release of a lock
	maxPoll     = 15 * time.Second
	firstPoll   = time.Second   // while nothing is committed yet
	settleFor   = time.Minute   // after which calls that others had begun have ended, and their effects are visible
	maxAhead    = 2 * time.Hour // of another node's clock, for times by it to be used
	reportAhead = 5 * time.Minute
	day         = 24 * time.Hour
)

// StuckFor is how long after a refresh was due the lock is broken, unless the one before took long. Only tests of what
// follows set less.
var StuckFor = time.Minute

// Errors match these, besides those of the storage and of contexts.
var (
	ErrLost = errors.New("another node has committed a generation")
	ErrBusy = errors.New("another node refreshes the site, or has just done so")

	errEarly = errors.New("a committed object is missing or not visible yet")
)

// Shared is the part of certmagic's Storage that is used. If it is a certmagic.LockLeaseRenewer, leases are renewed.
type Shared interface {
	store.Storage
	Lock(ctx context.Context, name string) error
	Unlock(ctx context.Context, name string) error
}

// Options are the options of [New].
type Options struct {
	Storage  func() Shared // the instance to be used now: a reload may replace it, but a lock is released where it was granted
	Prefix   string        // of all keys; nodes with other settings that shape what is stored have another one
	Interval time.Duration // between refreshes, as configured
	Local    store.Storage // of this node alone: copies of what current names; nil: in memory
	Value    bool          // the manifest is a value of any size without objects; what is loaded is adopted
	Now      func() time.Time
}

// Node is this process's part in one site. As a [store.Storage], it has the objects and the manifest of one
// [store.Store], whose commits are those of the fleet. It is safe for concurrent use.
type Node struct {
	Options
	ID   string       // random, in each process another one
	Most atomic.Int64 // nanoseconds between refreshes, whatever current says

	calls  *store.Calls
	copies *copies
	lock   *siteLock
	wake   chan struct{} // of size 1
	poll   time.Duration // between two reads of current, on average

	mu        sync.Mutex
	seen      current            // the newest that was read or written
	seenAt    time.Time          // when it was first seen
	changedAt time.Time          // when its manifest was
	loaded    current            // whose manifest was loaded last
	uncopied  map[string][]byte  // objects that were stored, but not copied yet
	have      string             // manifest that this node goes on from; "": none
	attempted uint64             // the last generation that it tried to commit, or knows of
	lost      uint64             // the last that the storage has lost: neither it nor older ones are loaded
	next      time.Duration      // see Plan
	begun     time.Time          // see Begin
	lookedUp  time.Time          // when LookUp last had the storage polled
	joining   context.CancelFunc // ends waiting for the lock
	status    Status
	failures  []failure       // one of a kind, the last one last
	names     map[string]bool // what the manifest namedBy names, of the last that was adopted; nil: not known
	namedBy   string
	book      book

	wasRead atomic.Bool // current was read, or the storage said that there is none
}

// New returns a Node. It does nothing by itself: see [Node.Wait].
func New(o Options) *Node {
	if o.Local == nil {
		o.Local = store.NewMemory()
	}
	n := &Node{
		Options:  o,
		ID:       fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()),
		calls:    store.NewCalls(storages),
		copies:   newCopies(o.Local, o.Now),
		wake:     make(chan struct{}, 1),
		poll:     min(max(o.Interval/4, time.Second), maxPoll),
		seenAt:   o.Now(),
		uncopied: make(map[string][]byte),
		book:     book{deleted: make(map[string]entry)},
		joining:  func() {},
	}
	n.lock = newSiteLock(n)
	n.Most.Store(int64(day))
	return n
}

var storages = store.NewLimit()

// IsBounded says that the Node, as a [store.Storage], needs no bounds: its calls have them.
func (n *Node) IsBounded() {}

// callKind is a kind of calls of the storage.
type callKind string

const (
	callLoad   callKind = "load"
	callStore  callKind = "store"
	callDelete callKind = "delete"
	callList   callKind = "list"
	callLock   callKind = "lock"
	callUnlock callKind = "unlock"
	callStuck  callKind = "stuck" // of Lock, and not returned
)

// failure is why the last call of a kind failed.
type failure struct {
	kind callKind
	err  error
}

// do calls the storage: see [store.Call]. That something does not exist is no error: the value is zero.
func do[T any](
	ctx context.Context,
	n *Node,
	kind callKind,
	turn string,
	call func(context.Context, Shared) (T, error),
) (T, error) {
	value, err := store.Call(ctx, n.calls, turn, func(ctx context.Context) (T, error) {
		return call(ctx, n.Storage())
	})
	if err != nil {
		var zero T
		value = zero
		err = unlessMissing(err)
	}
	if err == nil || ctx.Err() == nil { // else the call may have been fine
		n.note(kind, err)
	}
	return value, err
}

// unlessMissing returns nil if an error says that a value does not exist.
func unlessMissing(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A Redis that was stopped removes its socket. Taken for an empty storage, all would be stored again after its
	// return.
	_, isNetwork := errors.AsType[*net.OpError](err)
	if isNetwork {
		return errors.New(err.Error())
	}
	return nil
}

// note notes how a call of the storage has ended. A failure is shown until a call of that kind has succeeded.
func (n *Node) note(kind callKind, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failures = slices.DeleteFunc(n.failures, func(f failure) bool { return f.kind == kind })
	if err == nil {
		return
	}
	n.failures = append(n.failures, failure{kind, err})
	n.status.Errors++
}

// forgive forgets what failed here, as another node has just locked and stored. Under mu.
func (n *Node) forgive() {
	n.failures = slices.DeleteFunc(n.failures, func(f failure) bool { return f.kind != callLoad && f.kind != callStuck })
}

// failed returns why the last call of a kind failed; nil: it did not. Under mu.
func (n *Node) failed(kind callKind) error {
	for _, f := range n.failures {
		if f.kind == kind {
			return f.err
		}
	}
	return nil
}

// responds reports whether the storage could be read last.
func (n *Node) responds() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failed(callLoad) == nil
}

// Stuck returns an error if a call of Lock does not return, so that the site is refreshed without the lock.
func (n *Node) Stuck() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failed(callStuck)
}

// read returns a value; nil: there is none.
func (n *Node) read(ctx context.Context, key string) ([]byte, error) {
	turn := ""
	if path.Dir(key) == folder {
		turn = key // so that a part that hangs takes one slot, however often it is read
	}
	return do(ctx, n, callLoad, turn, func(ctx context.Context, s Shared) ([]byte, error) {
		return s.Load(ctx, path.Join(n.Prefix, key))
	})
}

// write stores a value, or deletes it if it is nil.
func (n *Node) write(ctx context.Context, key string, value []byte) error {
	kind := callStore
	if value == nil {
		kind = callDelete
	}
	_, err := do(ctx, n, kind, "", func(ctx context.Context, s Shared) (any, error) {
		if value == nil {
			return nil, store.Delete(ctx, s, path.Join(n.Prefix, key))
		}
		// What does not exist is an error here, as where the folder of all is gone: a commit must not name what is not
		// stored.
		err := s.Store(ctx, path.Join(n.Prefix, key), value)
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New(err.Error())
		}
		return nil, err
	})
	return err
}

// Acquire takes the site's lock, and reads current again. The error matches ErrBusy if another node has the lock for
// longer than 30 seconds, or commits meanwhile. release must be called, or ctx end: a refresh that hangs does not keep
// the lock. The lock only saves work: once the site is long overdue, it is broken, as some storages keep those of dead
// processes, and Acquire succeeds whether it is granted or not.
func (n *Node) Acquire(ctx context.Context) (release func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, LockPatience)
	defer cancel()
	n.mu.Lock()
	n.joining = cancel
	n.mu.Unlock()
	shared := n.Storage()
	refresh, err := n.lock.ask(waiting, shared)
	if ctx.Err() != nil {
		err = ctx.Err()
	}

	// Not while another refresh of this process has the lock.
	mayBreak := refresh > 0 && ctx.Err() == nil
	if err != nil && mayBreak && n.isOverdue() {
		n.lock.goWithout(ctx, refresh, shared)
		err = nil
	}

	// Another node may have committed while this one waited.
	end := func() { n.lock.end(refresh) }
	if err == nil {
		_, err = n.readCurrent(ctx)
	}
	if err != nil {
		end()
		return nil, err
	}
	stop := context.AfterFunc(ctx, end)
	return func() {
		stop()
		end()
		n.lock.awaitRelease()
	}, nil
}

// isOverdue reports whether the site should have been refreshed so long ago that the lock is not waited for. A node
// that has it needs as long as the last time, give or take.
func (n *Node) isOverdue() bool {
	// Broken sooner, a lock disturbs live refreshes: with 200,000 pages on two busy cores, some take longer. Then two
	// nodes refresh the site at once, and the one whose commit is lost serves old dates until it has ended.
	seen, _ := n.newest()
	took := min(max(seen.Wrote.Sub(seen.At), 0), day)
	return n.Now().Sub(n.Due(false)) >= StuckFor+2*took
}

// Status is what operators see of a node.
type Status struct {
	Node       string  `json:"node"`                          // ID
	Key        string  `json:"key"`                           // prefix of all keys: nodes with other settings have another one
	Generation uint64  `json:"generation"`                    // the newest that was seen; 0: none
	Writer     string  `json:"writer,omitempty"`              // ID of the node that committed it
	Age        float64 `json:"age_seconds"`                   // since it was first seen
	Ahead      float64 `json:"clock_ahead_seconds,omitempty"` // of the writer's clock, give or take a poll; 0: less than five minutes
	Errors     int     `json:"errors"`                        // calls of the storage that failed
	Error      string  `json:"error,omitempty"`               // of the call that failed last, until one of its kind succeeds
}

// Status returns the state of the node.
func (n *Node) Status() Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.status
	s.Node = n.ID
	s.Key = n.Prefix
	s.Generation = n.seen.Generation
	s.Writer = n.seen.Node
	s.Age = n.Now().Sub(n.seenAt).Round(time.Second).Seconds()
	if last := len(n.failures) - 1; last >= 0 {
		s.Error = n.failures[last].err.Error()
	}
	return s
}
