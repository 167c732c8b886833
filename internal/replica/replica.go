// Package replica makes the local stores of several processes replicas of one. One process at a time leads: it refreshes
// the site, and pushes what its local store has to a storage that all reach. The others pull it into theirs.
//
// Nothing locks. The value current says who leads, and what is the newest. The leader writes it again at each poll: where
// it stays the same, the leader is gone, and another one claims the lead. Whoever reads another one's later claim follows.
// So two may lead for a moment: the earlier one's changes are lost as a whole, and learnt again.
package replica

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Version is that of what is stored, a part of the prefix in [Options]: processes of other versions share nothing.
const Version = 4

const (
	deadPolls     = 4                      // of the leader, without a sign of its life, until another one leads
	lackingPolls  = 5 * deadPolls          // the same, until one leads that cannot load what is the newest
	resignedPolls = 2 * deadPolls          // until a leader that resigned leads again, if nobody else does
	settleFor     = 2 * time.Second        // from a claim to the poll that finds out whether another one has claimed, too
	wakeAfter     = 100 * time.Millisecond // several who wake a process have one poll
)

// ErrFollows says that another process leads.
var ErrFollows = errors.New("another process refreshes the site")

// Options are the options of [New].
type Options struct {
	Prefix  string        // of its keys in the shared storage
	Local   store.Storage // of this process alone
	Records string        // prefix of a [store.Store] in Local
	Value   string        // key of a value in Local that goes along with the records
	Name    string        // of this machine, for operators

	// Hold returns once nobody else writes to Local until release is called.
	Hold func(ctx context.Context) (release func(), err error)
}

// Node is this process's part in one site. It is safe for concurrent use.
type Node struct {
	Options
	ID string // random, in each process another one

	configured atomic.Pointer[configuration]
	leadsUntil atomic.Pointer[time.Time] // nil: it does not lead
	isReached  atomic.Bool               // current was read or written
	wake       chan struct{}             // of size 1

	mu      sync.Mutex
	status  Status
	pushing time.Time // when the first push was since what came before was settled

	turn     wait.Slots // one, of who calls the storages; it guards the rest
	seen     current    // the greatest that was read or written
	seenAt   time.Time  // when it was first seen
	wroteAt  time.Time  // when this node wrote it last
	claimed  bool       // this node has claimed the lead, and nobody has contested that since
	resigned time.Time  // when it did last; zero: it never has
	garbage  garbage
}

// configuration is what a reload may replace.
type configuration struct {
	shared store.Storage
	poll   time.Duration
}

// Status is what there is to show of a node.
type Status struct {
	Leads  bool      `json:"leads"`
	Leader string    `json:"leader,omitempty"` // name of its machine, and the first digits of its ID; "": nobody leads
	Since  time.Time `json:"since,omitzero"`   // when this process first knew that
	Seen   time.Time `json:"seen_at,omitzero"` // the last sign of life of the leader
	Pushed time.Time `json:"pushed_at,omitzero"`
	Pulled time.Time `json:"pulled_at,omitzero"`
	Error  string    `json:"error,omitempty"`   // of the last poll
	NoList bool      `json:"no_list,omitempty"` // the storage lists nothing, so what nobody needs any more stays
}

// New returns a Node. It does nothing by itself: see [Node.Step]. [Node.Configure] is to be called before.
func New(o Options) *Node {
	o.Local = store.Bounded(o.Local)
	return &Node{
		Options: o,
		ID:      fmt.Sprintf("%016x", rand.Uint64()),
		wake:    make(chan struct{}, 1),
		turn:    wait.NewSlots(1),
		seenAt:  time.Now(),
		garbage: garbage{dropped: make(map[string]time.Time)},
	}
}

// Configure sets the storage that all reach, and the time between two polls.
func (n *Node) Configure(shared store.Storage, poll time.Duration) {
	n.configured.Store(&configuration{shared, poll})
}

func (n *Node) shared() store.Storage { return n.configured.Load().shared }
func (n *Node) poll() time.Duration   { return n.configured.Load().poll }

// Leads reports whether this process is to refresh the site. One that could not write for long does not lead.
func (n *Node) Leads() bool {
	until := n.leadsUntil.Load()
	return until != nil && time.Now().Before(*until)
}

// LeadsSince reports whether this process leads for so long.
func (n *Node) LeadsSince(age time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.Leads() && time.Since(n.status.Since) >= age
}

// settlePolls is in how many polls the others have what was pushed.
const settlePolls = 2.5

// IsSettled reports whether the others have what was pushed, or most of it where something is pushed all the time.
func (n *Node) IsSettled() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	polls := func(since time.Time) float64 { return float64(time.Since(since)) / float64(n.poll()) }
	return polls(n.status.Pushed) >= settlePolls || polls(n.pushing) >= 4*settlePolls
}

// notePush notes that something was pushed.
func (n *Node) notePush() {
	isSettled := n.IsSettled()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.status.Pushed = time.Now()
	if isSettled {
		n.pushing = n.status.Pushed
	}
}

// IsReached reports whether the storage has told who leads, or that nobody does.
func (n *Node) IsReached() bool { return n.isReached.Load() }

// Status returns the state of the node.
func (n *Node) Status() Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.status
	s.Leads = n.Leads()
	return s
}

func (n *Node) note(change func(*Status)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.status)
}

// Wait waits until [Node.Step] is to be called again. False: ctx has ended.
func (n *Node) Wait(ctx context.Context) bool {
	poll := n.poll()
	pause := poll*4/5 + rand.N(poll*2/5)
	select {
	case <-n.wake:
		_, _ = wait.Within(wakeAfter, ctx.Done())
	case <-time.After(pause):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Wake has Wait return soon.
func (n *Node) Wake() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Step is to be called at each poll. isChanged: the local store has another generation than before, by another process.
func (n *Node) Step(ctx context.Context) (isChanged bool, err error) {
	if !n.turn.Take(ctx) {
		return false, ctx.Err()
	}
	defer n.turn.Release()
	isChanged, err = n.step(ctx)
	n.note(func(s *Status) {
		s.Error = ""
		if err != nil {
			s.Error = err.Error()
		}
	})
	return isChanged, err
}

func (n *Node) step(ctx context.Context) (isChanged bool, err error) {
	c, err := n.read(ctx)
	if err != nil {
		return false, err
	}
	if c.compare(n.seen) > 0 {
		wasLeading := n.leadsUntil.Load() != nil
		n.follow(c)
		// A refresh that is under way may still store something, which the next step pulls over.
		if wasLeading {
			n.Wake()
			return false, nil
		}
	}
	if n.claimed {
		return n.lead(ctx, c)
	}
	quiet := time.Since(n.seenAt) // before a pull, which may take long
	isChanged, err = n.pullNewer(ctx)
	if n.mayClaim(quiet, err == nil) {
		err = n.claim(ctx)
	}
	return isChanged, err
}

// mayClaim reports whether nobody leads any more, after a time without a sign of the leader. The polls are the leader's. A process
// that lacks something leads only where nobody else has come for long: it would have all go back.
func (n *Node) mayClaim(quiet time.Duration, hasAll bool) bool {
	poll := max(n.seen.Poll, time.Second)
	// Another one may be able to do what this one was not.
	gaveUp := !n.resigned.IsZero() && time.Since(n.resigned) <= resignedPolls*poll
	switch {
	case n.seen.Term == 0:
		return true
	case !hasAll:
		return quiet > lackingPolls*poll
	case n.seen.Resigned:
		return !gaveUp
	}
	return quiet > deadPolls*poll
}

// follow goes on from what another process has written.
func (n *Node) follow(c current) {
	isOther := c.Node != n.seen.Node || c.Resigned != n.seen.Resigned
	n.seen = c
	n.seenAt = time.Now()
	n.claimed = false
	n.leadsUntil.Store(nil)
	n.note(func(s *Status) { s.Seen = n.seenAt })
	if isOther {
		n.noteLeader()
	}
}

// noteLeader notes who leads for operators.
func (n *Node) noteLeader() {
	leader := ""
	if n.seen.Term > 0 && !n.seen.Resigned {
		leader = fmt.Sprintf("%s %.4s", n.seen.Name, n.seen.Node)
	}
	n.note(func(s *Status) {
		s.Leader = leader
		s.Since = time.Now()
	})
}

// Claim has this process lead, whoever does now, once the next Step has found that no other one has claimed that meanwhile.
// isChanged is as of Step.
func (n *Node) Claim(ctx context.Context) (isChanged bool, err error) {
	if !n.turn.Take(ctx) {
		return false, ctx.Err()
	}
	defer n.turn.Release()
	if n.Leads() {
		return false, nil
	}
	c, err := n.read(ctx)
	if err != nil {
		return false, err
	}
	if c.compare(n.seen) > 0 {
		n.follow(c)
	}
	isChanged, err = n.pullNewer(ctx)
	if err != nil {
		return isChanged, err
	}
	return isChanged, n.claim(ctx)
}

// claim says that this process leads from now on. Those that claim at the same time find out at the next poll.
func (n *Node) claim(ctx context.Context) error {
	manifest, err := n.manifest(ctx)
	if err != nil {
		return err
	}
	next := n.seen // which names what the storage has
	next.Term++
	next.Node = n.ID
	next.Name = n.Name
	next.Resigned = false
	n.leadsUntil.Store(nil)
	n.garbage = garbage{dropped: make(map[string]time.Time)} // what it knew when it led before may be named again
	if manifest != nil && hashOf(manifest) == next.Manifest {
		n.garbage.stored = named(manifest, next.Value)
	}
	err = n.write(ctx, next)
	if err != nil {
		return err
	}
	n.claimed = true
	time.AfterFunc(settleFor, n.Wake)
	return nil
}

// lead says that the leader lives. c is what the storage has: something earlier, or nothing, if it has lost that. isChanged:
// the local store had lost all, or has something that could not be pushed before, and so is not served yet.
func (n *Node) lead(ctx context.Context, c current) (isChanged bool, err error) {
	manifest, err := n.manifest(ctx)
	if err != nil {
		return false, err
	}
	isLost := manifest == nil && n.seen.Manifest != "" && n.leadsUntil.Load() != nil
	if isLost {
		return n.pullNewer(ctx)
	}
	value, err := n.local(ctx, n.Value)
	if err != nil {
		return false, err
	}
	if n.leadsUntil.Load() == nil {
		n.leadsUntil.Store(new(time.Time)) // see write
		n.noteLeader()
	}
	hasAll, err := n.hasAll(ctx, c)
	if err != nil {
		return false, err
	}
	isPushed := hashOf(manifest) == n.seen.Manifest && hashOf(value) == n.seen.Value
	if !hasAll || !isPushed {
		isNew := hashOf(manifest) != n.seen.Manifest
		err = n.push(ctx)
		return isNew && err == nil, err // a refresh could not push it, and so did not serve it
	}
	err = n.write(ctx, n.seen)
	if err == nil {
		n.collect(ctx)
	}
	return false, err
}

// hasAll reports whether the storage still has what was pushed. c is what it has of current.
func (n *Node) hasAll(ctx context.Context, c current) (bool, error) {
	// It may have lost something just before current was written again, or amid a push: any object may tell.
	looks := n.seen.Manifest != "" && n.seen.Beat%deadPolls == 0
	if c.Term > 0 && looks {
		_, err := n.shared().Load(ctx, n.partKey(n.anyStored(), 0))
		if errors.Is(err, fs.ErrNotExist) {
			n.garbage.stored = nil
		} else if err != nil {
			return false, err
		}
	}
	if c.Term == 0 {
		n.garbage.stored = nil
	}
	return n.garbage.stored != nil, nil
}

// anyStored returns the name of an object that the storage is to have: of several, any of them by chance.
func (n *Node) anyStored() string {
	for name := range n.garbage.stored { // in no order
		return name
	}
	return n.seen.Manifest
}

// Resign lets another process lead, as before this one stops, or where it cannot refresh the site.
func (n *Node) Resign(ctx context.Context) error {
	if !n.turn.Take(ctx) {
		return ctx.Err()
	}
	defer n.turn.Release()
	if !n.claimed {
		return nil
	}
	n.leadsUntil.Store(nil)
	n.claimed = false
	n.resigned = time.Now()
	next := n.seen
	next.Resigned = true
	err := n.write(ctx, next)
	n.noteLeader()
	return err
}

// manifest returns that of the local store; nil: there is none.
func (n *Node) manifest(ctx context.Context) ([]byte, error) {
	data, err := n.local(ctx, path.Join(n.Records, store.ManifestName))
	if !store.IsManifest(data) {
		return nil, err // a damaged one is none
	}
	return data, err
}

// local loads a value of the local storage; nil: there is none.
func (n *Node) local(ctx context.Context, key string) ([]byte, error) {
	data, err := n.Local.Load(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// hashOf returns the name of an object; "": there is none.
func hashOf(data []byte) string {
	if data == nil {
		return ""
	}
	return store.Hash(data)
}
