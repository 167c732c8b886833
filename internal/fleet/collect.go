package fleet

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	collectFor   = 5 * time.Second // at a time
	maxDeletions = 250             // objects at a time
	maxFailures  = 3               // of deletions at a time: the storage fails
	maxParts     = 1 << 10         // of an object
	listAgain    = time.Hour       // after the storage could not be listed
)

// errUnderDeletion is of a commit that needs what the storage may just lose.
var errUnderDeletion = fmt.Errorf("%w: an object that is needed again may be under deletion", ErrBusy)

// book is what a node knows of the ledger. Under the Node's mu.
type book struct {
	last    *ledger          // as it was read or written last; nil: never
	at      time.Time        // when that was
	deleted map[string]entry // what this node has deleted, unless the ledger has another entry for it now

	own   *ledger   // as this node has written it last; nil: never
	ownAt time.Time // when that was

	listed   bool      // the storage was listed, which is not noted yet
	found    []string  // objects that it had, and that were not named
	listNext time.Time // not to be listed before
}

// isSame reports whether two ledgers are the same.
func (l *ledger) isSame(other *ledger) bool {
	return l != nil && other != nil && l.Generation == other.Generation && l.Node == other.Node
}

// observed returns for how long this node knows that a ledger, which the storage has now, is there. Under mu.
func (n *Node) observed(l *ledger) (long time.Duration) {
	now := n.Now()
	isOthers := n.seen.Node != n.ID && n.seenAt.After(n.book.at) // which may not know of ledgers
	if l.isSame(n.book.last) && !isOthers {
		long = now.Sub(n.book.at)
	}
	isOfSeen := l.Generation == n.seen.Generation && l.Node == n.seen.Node
	if isOfSeen {
		long = max(long, now.Sub(n.seenAt)) // it was written before current
	}
	return max(long, 0)
}

// readLedger reads the ledger. If it is lost, the node goes on with its own.
func (n *Node) readLedger(ctx context.Context) (*ledger, error) {
	data, err := n.read(ctx, ledgerKey)
	if err != nil {
		return nil, err
	}
	l, malformed := decodeLedger(data, n.Prefix)
	n.mu.Lock()
	defer n.mu.Unlock()
	if malformed != nil && n.isRecent() {
		l = n.book.own.clone()
	} else if malformed != nil {
		l = newLedger(n.Prefix)
	}
	if !l.isSame(n.book.last) {
		n.book.last = l.clone()
		n.book.at = n.Now()
	}
	return l, nil
}

// isRecent reports whether all that this node has entered into the ledger is still there, unless another node has
// overwritten it. Under mu.
func (n *Node) isRecent() bool { return n.book.own != nil && n.Now().Sub(n.book.ownAt) < keepFor/2 }

// writeLedger writes into the ledger what a commit, which follows before, is about to store, and what it drops. named
// is what it names; nil: the same as before.
func (n *Node) writeLedger(ctx context.Context, before, commit current, named map[string]bool) error {
	isTouch := named == nil
	if isTouch && before.Node == n.ID && n.hasNoEntries() {
		return nil // without a call of the storage, as of most touches
	}
	l, err := n.readLedger(ctx)
	if err != nil {
		return err
	}
	base := n.namesOf(ctx, before.Manifest)
	if isTouch {
		named = base
	}
	a := n.enter(l, before, base, named)
	if a == postponed { // each ledger that is stored would have to be observed anew
		return errUnderDeletion
	}
	if isTouch && n.hasNoEntries() && len(l.Entries) == 0 {
		return nil
	}

	// Before anything else is stored: so what a killed process has left is known, too.
	l.Generation = commit.Generation
	l.Node = n.ID
	err = n.write(ctx, ledgerKey, l.encode())
	if err != nil {
		return err
	}
	n.noteWritten(l)
	if a != admitted {
		return errUnderDeletion
	}
	return nil
}

// noteWritten notes that the storage has a ledger of this node.
func (n *Node) noteWritten(l *ledger) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.Now()
	n.book = book{
		last:     l,
		at:       now,
		deleted:  make(map[string]entry),
		own:      l,
		ownAt:    now,
		listNext: n.book.listNext,
	}
}

// ledgerGeneration returns for which generation the ledger was written that this node knows; 0: it knows of none.
func (n *Node) ledgerGeneration() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.book.last == nil {
		return 0
	}
	return n.book.last.Generation
}

// hasLostLedger reports whether there is no ledger, though a generation says that one was written before it.
func (n *Node) hasLostLedger(ctx context.Context, c current) bool {
	if c.Ledger == 0 {
		return false
	}
	data, err := n.read(ctx, ledgerKey)
	return err == nil && data == nil
}

// hasNoEntries reports whether there is nothing in the ledger, and nothing to be entered.
func (n *Node) hasNoEntries() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.book.last != nil && len(n.book.last.Entries) == 0 && !n.book.listed
}

// enter enters all that this node knows into a ledger that it has just read.
func (n *Node) enter(l *ledger, before current, base, named map[string]bool) admission {
	n.mu.Lock()
	defer n.mu.Unlock()
	l.Clock += n.observed(l)
	// A version that does not know of ledgers has committed, or a write that hung has brought an earlier ledger back.
	isIncomplete := before.Generation > 0 && (before.Ledger == 0 || l.Generation < before.Ledger)
	if isIncomplete {
		l.restart()
	}

	// What this node knows, and the ledger may not.
	l.forget(n.book.deleted)
	if n.isRecent() && !l.isSame(n.book.own) {
		l.recall(n.book.own)
	}
	l.find(n.book.found)
	if n.book.listed {
		l.Listed = l.Clock
	}
	if base == nil && before.Generation > 0 { // what is dropped is not known
		l.Listed = min(l.Listed, l.Clock-day)
	}

	// What the commit drops and stores.
	l.drop(base, named)
	a := l.admit(n.toStore(named))

	// Last, so that nothing is condemned that the commit names.
	l.condemn()
	return a
}

// toStore returns those of some objects that this node has stored in no storage yet. Under mu.
func (n *Node) toStore(named map[string]bool) (names []string) {
	for name := range n.uncopied {
		if named[name] {
			names = append(names, name)
		}
	}
	return names
}

// Collect deletes what no generation of the last hour has named, for five seconds at most, if this node has committed
// the newest one. Once a day it lists the storage, for what no ledger knows, and stores again what is lost. What fails
// is tried again the next time.
func (n *Node) Collect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, collectFor)
	defer cancel()
	todo := n.work()
	if !todo.lists && !todo.deletes {
		return
	}
	// The lock may be lost: another node may just have stored again, and named, what is about to be deleted.
	c, err := n.readCurrent(ctx)
	if err != nil {
		return
	}
	seen, _ := n.newest()
	isNewest := c.compare(seen) == 0 && seen.Node == n.ID
	if !isNewest || n.Newer() {
		return
	}
	named := n.namesOf(ctx, c.Manifest)
	if named == nil {
		return
	}
	if todo.deletes {
		n.sweep(ctx, named)
	}
	if todo.lists {
		n.list(ctx, c.Manifest, named)
	}
}

// work is what Collect has to do.
type work struct{ deletes, lists bool }

// work says what there is to do for Collect.
func (n *Node) work() work {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.book.last
	if l == nil || n.seen.Node != n.ID {
		return work{}
	}
	return work{
		deletes: len(n.deletable(l, nil)) > 0,
		lists:   l.isListDue(n.observed(l)) && !n.book.listed && n.Now().After(n.book.listNext),
	}
}

// deletable returns what may be deleted by a ledger, and was not yet. Under mu.
func (n *Node) deletable(l *ledger, named map[string]bool) []string {
	return slices.DeleteFunc(l.deletable(named, n.observed(l)), func(name string) bool {
		return n.book.deleted[name] == l.Entries[name] // which is not the zero one
	})
}

// sweep deletes what is deletable by the ledger, which another node may have changed since.
func (n *Node) sweep(ctx context.Context, named map[string]bool) {
	data, err := n.read(ctx, ledgerKey)
	if err != nil {
		return
	}
	l, malformed := decodeLedger(data, n.Prefix)
	if malformed != nil {
		return
	}
	// Another ledger than the last one has not been observed for long enough.
	var names []string
	n.mu.Lock()
	if l.isSame(n.book.last) {
		names = n.deletable(l, named)
	}
	n.mu.Unlock()

	failures := 0
	for _, name := range names[:min(len(names), maxDeletions)] {
		err := n.deleteObject(ctx, name)
		if err == nil {
			n.mu.Lock()
			n.book.deleted[name] = l.Entries[name]
			n.mu.Unlock()
			continue
		}
		failures++
		if failures == maxFailures || ctx.Err() != nil {
			return
		}
	}
}

// deleteObject deletes the parts of an object, the last one first: as long as some is left, all before it are.
func (n *Node) deleteObject(ctx context.Context, name string) error {
	last := 0 // the first is there, or nothing is
	for last < maxParts {
		data, err := n.read(ctx, path.Join(folder, partName(name, last+1)))
		if err != nil {
			return err
		}
		if data == nil {
			break
		}
		last++
	}
	for ; last >= 0; last-- {
		err := n.write(ctx, path.Join(folder, partName(name, last)), nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// list lists the storage, for what no ledger knows: what versions before ledgers have left, and lost entries. It stores
// again what is named and not listed, unless the storage lists nothing of use.
func (n *Node) list(ctx context.Context, manifest string, named map[string]bool) {
	n.mu.Lock()
	n.book.listNext = n.Now().Add(listAgain)
	n.mu.Unlock()
	keys, err := do(ctx, n, callList, "", func(ctx context.Context, s Shared) ([]string, error) {
		return s.List(ctx, path.Join(n.Prefix, folder), false)
	})
	if err != nil {
		return
	}
	listed := make(map[string]bool)
	unnamed := make(map[string]bool)
	for _, key := range keys {
		part := path.Base(key)
		listed[part] = true
		name, _, _ := strings.Cut(part, ".")
		if partPattern.MatchString(part) && !named[name] {
			unnamed[name] = true
		}
	}
	// Some storages list a folder's own name only, or nothing.
	isUseful := listed[partName(manifest, 0)]
	if isUseful && n.restore(ctx, named, listed) != nil {
		return
	}
	err = n.write(ctx, garbageKey, nil) // of earlier versions
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.book.listed = true
	if isUseful {
		n.book.found = slices.Collect(maps.Keys(unnamed))
	}
}

// restore stores again what the storage has lost.
func (n *Node) restore(ctx context.Context, named, listed map[string]bool) error {
	for name := range named {
		data := n.copies.object(ctx, name)
		if data == nil {
			continue
		}
		err := n.storeObject(ctx, name, data, listed)
		if err != nil {
			return err
		}
	}
	return nil
}
