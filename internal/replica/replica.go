// Package replica makes the local stores of several processes replicas of one. One process at a time leads: it refreshes
// the site, and pushes what its local store has to a storage that all reach. The others pull it into theirs.
//
// Nothing locks. The value current says who leads, and what is the newest. The leader writes it again at each poll: where
// it stays the same, the leader is gone, and another one claims the lead. Whoever reads another one's later claim follows.
// So two may lead for a moment: the earlier one's changes are lost as a whole, and learnt again.
package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
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
	Prefix  string         // of its keys in the shared storage
	Local   record.Storage // of this process alone
	Records string         // prefix of a [record.Store] in Local
	Value   string         // key of a value in Local that goes along with the records
	Name    string         // of this machine, for operators

	// Hold returns once nobody else writes to Local until release is called.
	Hold func(ctx context.Context) (release func(), err error)
}

// role is what a process does in one site. It changes with what it writes, and once it reads what another one has written.
type role int

const (
	follows role = iota
	claims       // it has written that it leads: the next poll tells whether another one has, too
	leads
)

// Node is this process's part in one site. It is safe for concurrent use.
type Node struct {
	Options
	ID string // random, in each process another one

	configured atomic.Pointer[configuration]
	wake       chan struct{} // of size 1
	wanted     atomic.Bool   // an operator waits for this process to claim the lead
	written    atomic.Value  // string: of the last write that this process has told, or heard of

	turn       wait.Slots           // one, of who calls the storages. Only its holder changes what follows
	beat       uint64               // of the last write of current
	seeWritten func()               // notes that it is done
	isUnserved bool                 // a push has failed: what it was to push may be pushed by now, and is not served
	resigned   time.Time            // when this process did last
	named      map[string]string    // objects that the storage has, and that current names, or will: with their local keys
	parts      map[string]time.Time // of objects in the storage, by key: when current named them last, or they were found
	listed     time.Time            // when they were last looked for

	mu      sync.Mutex // others read the rest
	role    role
	seen    current   // the greatest that was read or written
	seenAt  time.Time // when it was written, or first read
	pushing time.Time // when the first push was since what came before was settled
	status  Status    // without what the above tells
	err     error     // of the last poll
}

// configuration is what a reload may replace.
type configuration struct {
	shared record.Storage
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
	o.Local = record.Bounded(o.Local)
	return &Node{
		Options: o,
		ID:      fmt.Sprintf("%016x", rand.Uint64()),
		wake:    make(chan struct{}, 1),
		turn:    wait.NewSlots(1),
		named:   make(map[string]string),
		seenAt:  time.Now(),
	}
}

// Configure sets the storage that all reach, and the time between two polls.
func (n *Node) Configure(shared record.Storage, poll time.Duration) {
	n.configured.Store(&configuration{shared, poll})
}

func (n *Node) shared() record.Storage { return n.configured.Load().shared }
func (n *Node) poll() time.Duration    { return n.configured.Load().poll }

// Leads reports whether this process is to refresh the site. One that could not write for long does not lead.
func (n *Node) Leads() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leads()
}

func (n *Node) leads() bool {
	return n.role == leads && time.Since(n.seenAt) < (deadPolls-1)*n.seen.Poll
}

// MayAnnounce reports whether this process leads for so long, and the others have what was pushed.
func (n *Node) MayAnnounce(after time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leads() && time.Since(n.status.Since) >= after && n.isSettled()
}

// isSettled reports whether the others have what was pushed, or most of it where something is pushed all the time.
func (n *Node) isSettled() bool {
	settles := n.poll() * 5 / 2
	return time.Since(n.status.Pushed) >= settles || time.Since(n.pushing) >= 4*settles
}

// notePush notes that something was pushed.
func (n *Node) notePush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isSettled() {
		n.pushing = time.Now()
	}
	n.status.Pushed = time.Now()
}

// IsReached reports whether the storage has told who leads, or that nobody does.
func (n *Node) IsReached() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen.Term > 0
}

// Status returns the state of the node.
func (n *Node) Status() Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.status
	s.Leads = n.leads()
	if n.seen.Term > 0 && !n.seen.Resigned {
		s.Leader = fmt.Sprintf("%s %.4s", n.seen.Name, n.seen.Node)
		s.Seen = n.seenAt
	}
	if n.err != nil {
		s.Error = n.err.Error()
	}
	return s
}

// see notes what was read or written, and what this process does therefore.
func (n *Node) see(c current, at time.Time, becomes role) {
	n.mu.Lock()
	defer n.mu.Unlock()
	isOther := c.Node != n.seen.Node || c.Resigned != n.seen.Resigned
	if isOther {
		n.status.Since = time.Now()
	}
	n.seen = c
	n.seenAt = at
	n.role = becomes
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
	if err == nil {
		isChanged = isChanged || n.isUnserved
		n.isUnserved = false
	}
	if err == nil && n.role == leads {
		n.collect(ctx)
	}
	if err != nil && n.wanted.Load() {
		time.AfterFunc(settleFor, n.Wake) // an operator waits for less than a poll
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
	if isChanged && n.role == follows {
		n.status.Pulled = time.Now()
	}
	return isChanged, err
}

func (n *Node) step(ctx context.Context) (isChanged bool, err error) {
	c, err := n.read(ctx)
	if err != nil {
		return false, err
	}
	isOwn := c.Node == n.ID
	isNewer := c.compare(n.seen) > 0
	if isNewer && isOwn && c.Beat == n.beat {
		n.seeWritten() // the write failed, but is done
	}
	if isNewer && !isOwn {
		hasLed := n.role == leads
		n.see(c, time.Now(), follows)
		// The next step pulls, and tells of it: this one may be that of a Push, as of a refresh that is under way.
		if hasLed {
			n.Wake()
			return false, nil
		}
	}
	if n.role != follows {
		return n.lead(ctx)
	}
	quiet := time.Since(n.seenAt) // before a pull, which may take long
	isChanged, err = n.pullNewer(ctx)
	isWanted := err == nil && n.wanted.Swap(false)
	if isWanted || n.mayClaim(quiet, err == nil) {
		err = n.claim(ctx)
	}
	return isChanged, err
}

// mayClaim reports whether nobody leads any more, after a time without a sign of the leader. The polls are the leader's. A process
// that lacks something leads only where nobody else has come for long: it would have all go back.
func (n *Node) mayClaim(quiet time.Duration, hasAll bool) bool {
	poll := max(n.seen.Poll, time.Second)
	// Another one may be able to do what this one was not.
	gaveUp := time.Since(n.resigned) <= resignedPolls*poll
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

// Claim has this process lead, whoever does now, unless another one claims that at the same time.
func (n *Node) Claim(ctx context.Context) error {
	n.wanted.Store(true)
	defer n.wanted.Store(false)
	n.Wake()
	for !n.Leads() {
		_, isOver := wait.Within(wakeAfter, ctx.Done())
		if isOver {
			n.mu.Lock()
			defer n.mu.Unlock()
			return cmp.Or(n.err, ErrFollows)
		}
	}
	return nil
}

// claim says that this process leads from now on. Those that claim at the same time find out at the next poll.
func (n *Node) claim(ctx context.Context) error {
	has, err := n.local(ctx)
	if err != nil {
		return err
	}
	next := n.seen // which names what the storage has
	next.Term++
	next.Node = n.ID
	next.Name = n.Name
	next.Resigned = false
	// What it knew when it led before may have changed.
	n.parts = make(map[string]time.Time)
	n.named = make(map[string]string)
	if has.manifest == next.Manifest && has.value == next.Value {
		n.named = has.keys
	}
	err = n.write(ctx, next, claims)
	if err != nil {
		return err
	}
	time.AfterFunc(settleFor, n.Wake)
	return nil
}

// lead says that the leader lives. isChanged: the local store had lost all, or has something that could not be pushed before, and
// so is not served yet.
func (n *Node) lead(ctx context.Context) (isChanged bool, err error) {
	has, err := n.local(ctx)
	if err != nil {
		return false, err
	}
	isLost := has.manifest == "" && n.seen.Manifest != "" && n.role == leads
	if isLost {
		return n.pullNewer(ctx)
	}
	if n.seen.Beat%deadPolls == 0 {
		err = n.look(ctx)
	}
	if err != nil {
		return false, err
	}
	isNew := has.manifest != n.seen.Manifest // a refresh could not push it, and so did not serve it
	err = n.push(ctx, has)
	return isNew && err == nil, err
}

// Resign lets another process lead, as before this one stops, or where it cannot refresh the site.
func (n *Node) Resign(ctx context.Context) error {
	if !n.turn.Take(ctx) {
		return ctx.Err()
	}
	defer n.turn.Release()
	if n.role == follows {
		return nil
	}
	n.resigned = time.Now()
	n.see(n.seen, n.seenAt, follows)
	next := n.seen
	next.Resigned = true
	return n.write(ctx, next, follows)
}

// local is what the local storage has, by the names of objects.
type local struct {
	manifest, value string            // "": there is none
	keys            map[string]string // of both, and of what the manifest names
	loaded          map[string][]byte // both, by name: who saves the value amid a push has it replaced
}

func (n *Node) local(ctx context.Context) (has local, err error) {
	manifest, err := n.Local.Load(ctx, n.manifestKey())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return has, err
	}
	value, err := n.Local.Load(ctx, n.Value)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return has, err
	}
	has.keys = n.keysOf(manifest)
	has.loaded = make(map[string][]byte)
	if record.IsManifest(manifest) { // a damaged one is none
		has.manifest = record.Hash(manifest)
		has.keys[has.manifest] = n.manifestKey()
		has.loaded[has.manifest] = manifest
	}
	if value != nil {
		has.value = record.Hash(value)
		has.keys[has.value] = n.Value
		has.loaded[has.value] = value
	}
	return has, nil
}

func (n *Node) manifestKey() string { return path.Join(n.Records, record.ManifestName) }

// keysOf returns the keys of the objects that a manifest names, by their names.
func (n *Node) keysOf(manifest []byte) map[string]string {
	keys := make(map[string]string)
	for _, name := range record.ObjectsOf(manifest) {
		keys[name] = path.Join(n.Records, record.ObjectName(name))
	}
	return keys
}
