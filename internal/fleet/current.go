package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	version    = 1
	currentKey = "current"
	maxCurrent = 4 << 10 // bytes
)

// current is the value that says which generation is the newest.
type current struct {
	Version    int           `json:"version"`
	Generation uint64        `json:"generation"`
	Node       string        `json:"node"`     // ID
	Manifest   string        `json:"manifest"` // object
	At         time.Time     `json:"at"`       // when the refresh began; later ones begin a second later at least
	Wrote      time.Time     `json:"wrote"`    // by the node's clock
	Interval   time.Duration `json:"interval"` // until the next refresh, in nanoseconds
	Ledger     uint64        `json:"ledger"`   // for which the ledger was written that the node knows; 0: it knows of none
}

func encodeCurrent(c current) []byte {
	data, _ := json.Marshal(c) // which has no field that fails
	return data
}

// decodeCurrent returns zero for what this version cannot have written.
func decodeCurrent(data []byte) (c current) {
	err := json.Unmarshal(data[:min(len(data), maxCurrent)], &c)
	if err != nil || !c.isValid() {
		return current{}
	}
	return c
}

func (c current) isValid() bool {
	if c.Version != version || c.Interval <= 0 {
		return false
	}
	isGeneration := c.Generation > 0 && c.Generation < 1<<53 // as JSON numbers are exact: RFC 8259, section 6
	return isGeneration && hashPattern.MatchString(c.Node) && hashPattern.MatchString(c.Manifest)
}

// compare orders generations: a node loads only a newer one.
func (c current) compare(d current) int {
	return cmp.Or(cmp.Compare(c.Generation, d.Generation), strings.Compare(c.Node, d.Node))
}

// readCurrent reads current; zero: there is none, or a malformed one, which is the same.
func (n *Node) readCurrent(ctx context.Context) (c current, err error) {
	data, err := n.read(ctx, currentKey)
	if err != nil {
		return c, err
	}
	n.wasRead.Store(true)
	c = decodeCurrent(data)
	n.see(c)
	return c, nil
}

// see remembers the newest.
func (n *Node) see(c current) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.Now()
	isNewer := c.compare(n.seen) > 0 && c.Generation > n.lost
	if !isNewer {
		return
	}
	ahead := c.Wrote.Sub(now)
	if n.seen.Generation > 0 || ahead > 0 { // else it may have been written long ago
		n.status.Ahead = 0
		if ahead.Abs() > reportAhead {
			n.status.Ahead = ahead.Round(time.Second).Seconds()
		}
	}
	if c.Manifest != n.seen.Manifest {
		n.changedAt = now
		n.joining() // a refresh that waits for the lock is not needed any more
	}
	if c.Node != n.ID {
		n.forgive()
	}
	n.seen = c
	n.seenAt = now
}

// newest returns the newest that was seen. A fresh one may not be visible to all yet.
func (n *Node) newest() (c current, isFresh bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen, n.Now().Sub(n.seenAt) < settleFor
}

// lose says that the storage has lost the newest, or some of it: this node begins anew, which adopts what its store has
// in memory, and the next commit stores all again.
func (n *Node) lose(newest current) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen.compare(newest) != 0 || newest.Generation == 0 {
		return
	}
	n.lost = newest.Generation
	n.have = currentKey // which no manifest is: there is something newer, and it is nothing
	n.seen = current{At: newest.At}
}

// Newer reports whether a generation was committed that this node has not adopted, or its own was lost.
func (n *Node) Newer() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen.Manifest != n.have
}

// Poll reads current: see [Node.Newer]. It writes again what this node has just committed, if a node that did not know
// of it has overwritten it.
func (n *Node) Poll(ctx context.Context) error {
	c, err := n.readCurrent(ctx)
	seen, isFresh := n.newest()
	if err == nil && c.Generation > 0 && seen.Node == n.ID && c.compare(seen) < 0 && isFresh {
		err = n.writeCurrent(ctx, seen)
	}
	return err
}

// Wait waits until [Node.Poll] is to be called again. False: ctx has ended.
func (n *Node) Wait(ctx context.Context) bool {
	poll := n.poll
	if seen, _ := n.newest(); seen.Generation == 0 {
		poll = firstPoll
	}
	select {
	case <-n.wake:
		_, _ = wait.Within(time.Second, ctx.Done())
	case <-time.After(poll*4/5 + rand.N(poll*2/5)):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Wake makes Wait return a second later.
func (n *Node) Wake() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// LookUpAfter is how long after a request for what only a newer generation may have the storage says at last whether there is
// one: some storages show what was stored seconds late, as NFS does.
const LookUpAfter = 2 * time.Second

// LookUp has the storage polled for such a request, a second later and LookUpAfter that. Only requests within a second share
// these two polls: there are no more of them in the time of one that is due anyway, however many names strangers make up. False:
// nothing will tell.
func (n *Node) LookUp() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if now.Sub(n.lookedUp) >= n.poll {
		n.lookedUp = now
		n.Wake()
		time.AfterFunc(LookUpAfter, n.Wake)
	}
	return now.Sub(n.lookedUp) < time.Second
}

// Settled reports whether this node has committed the newest generation, and all that can read the storage have loaded
// it: two polls have passed.
func (n *Node) Settled() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen.Node == n.ID && n.failed(callLoad) == nil && n.Now().Sub(n.changedAt) >= n.poll*12/5
}

// Due returns when this node is to refresh the site. The interval, at most Most, counts from when it first saw the
// newest generation. The node that refreshed last, which has copies of most of it, comes before others, but after those
// that are to be first.
func (n *Node) Due(first bool) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	due := n.seenAt.Add(min(n.seen.Interval, time.Duration(n.Most.Load())))
	isWriter := n.seen.Node == n.ID || n.seen.Node == ""
	if isWriter {
		return due
	}
	if first { // others see a generation a poll later
		return due.Add(-n.poll * 6 / 5)
	}
	return due.Add(n.poll)
}

// Begin begins a refresh. It returns the time for all dates: now, or a second after the refresh before, if that was by
// a clock that is ahead.
func (n *Node) Begin() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.begun = n.Now()
	least := n.seen.At.Add(time.Second)
	if least.After(n.begun) && least.Sub(n.begun) < maxAhead {
		n.begun = least
	}
	return n.begun
}

// Plan says how long after the next commit the site is due again.
func (n *Node) Plan(next time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next = next
}

// Touch commits that a refresh has changed nothing since the last generation. Errors are as of [Node.Store].
func (n *Node) Touch(ctx context.Context) error {
	return n.commit(ctx, "", nil)
}

// commit makes a manifest, which names some objects, that of the next generation; "": the same again.
func (n *Node) commit(ctx context.Context, manifest string, named map[string]bool) error {
	before, next, err := n.prepare(ctx, manifest, named)
	if err != nil {
		return err
	}
	if manifest != "" {
		err = n.storeNew(ctx, named)
		if err != nil {
			return err
		}
	}
	// Otherwise, nothing was stored since current was read.
	writesLedger := next.Ledger == next.Generation
	if writesLedger {
		err = n.checkCurrent(ctx, before, next)
		if err != nil {
			return err
		}
	}
	if manifest != "" {
		n.know(manifest, named)
	}
	err = n.writeCurrent(ctx, next)
	if err != nil {
		return err
	}
	// All may have been lost before current was written, so that the storage has nothing else now. The first
	// ledger of all may only not be visible yet.
	isLost := before.Ledger > 0 && n.hasLostLedger(ctx, next)
	n.see(next)
	if isLost {
		n.lose(next)
		return ErrLost
	}
	n.Wake()              // to read it back
	if ctx.Err() == nil { // else it counts as failed, and is loaded as that of another node
		n.adopt(ctx, next)
	}
	return ctx.Err()
}

// checkCurrent reads current again, as what was stored since may have taken long. As there is no compare-and-swap, this
// only makes it rare that two commits overwrite each other, or that one follows what the storage has just lost.
func (n *Node) checkCurrent(ctx context.Context, before, next current) error {
	c, err := n.readCurrent(ctx)
	if err != nil {
		return err
	}
	seen, _ := n.newest()
	if seen.compare(next) >= 0 || n.Newer() {
		return ErrLost
	}
	if c.Generation == 0 && before.Generation > 0 {
		n.lose(seen)
		return ErrLost
	}
	return nil
}

// prepare reads what the storage has, and prepares the ledger for a commit. It returns both generations: the one in the
// storage and the one to be committed.
func (n *Node) prepare(ctx context.Context, manifest string, named map[string]bool) (c, next current, err error) {
	c, err = n.readCurrent(ctx)
	if err != nil {
		return c, next, err
	}
	seen, isFresh := n.newest()
	// The storage has an older generation than was seen: the newest is not visible yet, or lost.
	if c.compare(seen) < 0 {
		if isFresh && c.Generation > 0 {
			return c, next, errEarly
		}
		n.lose(seen)
	}
	// Whoever has committed it may have been killed before it noticed.
	isTakenOver := manifest == "" && c.Node != n.ID
	if isTakenOver && n.hasLostLedger(ctx, c) {
		n.lose(c)
	}
	next, ok := n.following(c, manifest)
	if !ok {
		return c, next, ErrLost
	}
	err = n.writeLedger(ctx, c, next, named)
	if manifest == "" { // without the ledger, only what was observed is lost
		err = nil
	}
	next.Ledger = n.ledgerGeneration()
	return c, next, err
}

// following returns the generation to be committed after c, which the storage has. False: there is another one than
// this node goes on from.
func (n *Node) following(c current, manifest string) (next current, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	manifest = cmp.Or(manifest, n.have)
	if n.seen.Manifest != n.have || manifest == "" {
		return current{}, false
	}
	// A number that was attempted is not used again: a write that was abandoned may still be done.
	n.attempted = max(n.attempted, n.seen.Generation, n.lost, c.Generation) + 1
	at := n.seen.At
	if n.begun.After(at) {
		at = n.begun.UTC().Round(0)
	}
	return current{
		Version:    version,
		Generation: n.attempted,
		Node:       n.ID,
		Manifest:   manifest,
		At:         at,
		Wrote:      n.Now().UTC().Round(0),
		Interval:   max(n.next, time.Second),
	}, true
}

func (n *Node) writeCurrent(ctx context.Context, c current) error {
	return n.write(ctx, currentKey, encodeCurrent(c))
}
