package files

import (
	"context"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
)

// pass is what a scan under way does for a Watcher. A nil one does nothing.
type pass struct {
	w      *Watcher
	n      notifier // nil: there is none
	scope  string
	root   string
	rootID fileID // before it was watched
	counts func(event) bool
	most   int64 // folders that the process may watch

	// What takes the place of another instance's is counted with that. So only what is more is taken of the budget, until the
	// pass has come to its end.
	spare   atomic.Int64 // folders of the instance that is replaced; below 0: how many more there are
	taken   atomic.Int64
	hasRoot bool // it is taken as one of the roots of the process

	folders atomic.Int64
	refused atomic.Pointer[string] // why not all is watched; nil: all is
	devices sync.Map               // fileID.dev of file systems that tell of all changes
	digest  uint64                 // of the pages yielded so far
}

// ReasonFull is the Reason of a root that is one too many.
const ReasonFull = "the process watches as many roots as it may already"

const (
	reasonUntold  = "a scan found a change that no event told of"
	reasonVirtual = "it is not read through the operating system's own file system"
)

// begin returns a pass for a scan of the folder at a path, "" for one that is not the operating system's; nil: it is not to
// be watched.
func (w *Watcher) begin(o *Options, root string) *pass {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isClosed {
		return nil
	}
	// A root where a change went untold once is not trusted any more.
	if slices.Contains(w.untold, root) {
		w.root = root
		w.replace(nil, Mistrusted, reasonUntold)
		return nil
	}
	if w.root == root && time.Now().Before(w.retry) {
		return nil
	}
	w.root = root
	p := &pass{w: w, root: root, scope: scopeOf(o), counts: counting(o, &w.names)}
	if root == "" {
		p.refuse(reasonVirtual)
		return p
	}
	// What is replaced has its share already. Counted anew, of twenty roots that were scanned at once the fourteenth was told
	// that there were 32 already.
	if w.in != nil {
		p.spare.Store(w.in.folders)
	} else {
		p.hasRoot = take(&w.budget.roots, w.budget.maxRoots)
		if !p.hasRoot {
			p.refuse(ReasonFull)
			return p
		}
	}
	var err error
	p.n, err = w.notify()
	if err != nil {
		p.refuse(err.Error())
		return p
	}
	p.most = min(w.budget.maxWatches, p.n.most())
	return p
}

// refuse notes why not all is watched. The first reason counts.
func (p *pass) refuse(reason string) {
	if p != nil {
		p.refused.CompareAndSwap(nil, &reason)
	}
}

// isOff reports whether nothing more needs to be watched.
func (p *pass) isOff() bool { return p == nil || p.refused.Load() != nil }

// add watches a folder that is to be read. The error counts only if it can be read.
func (p *pass) add(path string, isRoot, follow bool) error {
	if p.isOff() {
		return nil
	}
	if isRoot {
		p.rootID = idOf(path) // before: if it is replaced meanwhile, the next look at it tells
	}
	isMore := p.spare.Add(-1) < 0
	if isMore && !take(&p.w.budget.watches, p.most) {
		p.refuse(fmt.Sprintf("there are more folders than the %d that the process may watch", p.most))
		return nil
	}
	if isMore {
		p.taken.Add(1)
	}
	err := p.n.add(path, follow)
	if err == nil {
		p.folders.Add(1)
		return nil
	}
	if isMore {
		p.taken.Add(-1)
		p.w.budget.watches.Add(-1)
	}
	p.spare.Add(1)
	return err
}

// opened checks that what can be read is watched, and that its file system tells of all changes. device is that of the
// folder above.
func (p *pass) opened(path string, id fileID, device uint64, err error) {
	if p.isOff() {
		return
	}
	if err != nil {
		p.refuse(fmt.Sprintf("cannot watch %s: %s", path, err))
		return
	}
	if id.dev == device {
		return // it is on the file system of the folder above, which was looked at
	}
	if _, isKnown := p.devices.LoadOrStore(id.dev, true); isKnown {
		return
	}
	if name := p.n.foreign(path); name != "" {
		p.refuse(fmt.Sprintf("the file system of %s is %s, which does not tell of all changes", path, name))
	}
}

// yielded adds a page to the digest.
func (p *pass) yielded(key string, version uint32) {
	if p == nil {
		return
	}
	// As in versionOf. The digest so far is part of both factors, so the order of the pages counts.
	page := p.digest ^ xxhash.Sum64String(key)
	state := uint64(version) ^ bits.RotateLeft64(p.digest, 32)
	p.digest = fold(page^0xA0761D6478BD642F, state^0xE7037ED1A0B428DB)
}

// end makes what the pass watches take the place of what the scan before does, if the scan has come to its end and all is
// watched.
func (p *pass) end(ctx context.Context, err error) {
	if p == nil {
		return
	}
	w := p.w
	w.mu.Lock()
	before := w.in
	w.mu.Unlock()
	isMistrusted := err == nil && !p.isOff() && p.contradicts(ctx, before)
	isAbsent := err != nil && p.n != nil && idOf(p.root) == fileID{}

	w.mu.Lock()
	defer w.mu.Unlock()
	p.giveBack()
	w.retry = time.Time{}
	switch {
	case isAbsent && !w.isClosed:
		// Once there is a folder again, it is read at once.
		p.n.close()
		p.n = newBlind()
		p.folders.Store(0)
		w.replace(p.instance(), Unwatched, "")
		return
	case err != nil || w.isClosed:
		w.replace(nil, Unwatched, "")
	case isMistrusted:
		w.untold = append(w.untold, p.root)
		w.replace(nil, Mistrusted, reasonUntold)
	case p.isOff():
		w.retry = time.Now().Add(w.pace.retry)
		w.replace(nil, Incomplete, *p.refused.Load())
	default:
		w.replace(p.instance(), Whole, "")
		return
	}
	if p.n != nil {
		p.n.close()
	}
}

// contradicts reports whether the scan has found another state of the pages than the one before, although nothing was told.
func (p *pass) contradicts(ctx context.Context, before *instance) bool {
	if before == nil || before.scope != p.scope || before.digest == p.digest {
		return false
	}
	isSameRoot := before.rootID == p.rootID
	return isSameRoot && before.isUntold(ctx, p.w.pace.late)
}

func (p *pass) instance() *instance {
	return &instance{
		notifier: p.n,
		scope:    p.scope,
		root:     p.root,
		rootID:   p.rootID,
		folders:  p.folders.Load(),
		digest:   p.digest,
		counts:   p.counts,
	}
}

// giveBack gives back what the pass has taken: instances are counted by [Watcher.replace].
func (p *pass) giveBack() {
	p.w.budget.watches.Add(-p.taken.Load())
	if p.hasRoot {
		p.w.budget.roots.Add(-1)
	}
}

// scopeOf returns what decides, besides the files, which pages a scan yields.
func scopeOf(o *Options) string {
	return fmt.Sprintf("%q", []any{
		o.Root, o.At, o.Include, o.Exclude, o.Hide, o.IndexNames(), o.CleanURLs, o.KeepBesideFolders,
	})
}

// blind is the notifier of a root that does not exist.
type blind struct{ closed chan struct{} }

func newBlind() blind { return blind{make(chan struct{})} }

func (blind) most() int64            { return 0 }
func (blind) add(string, bool) error { return nil }
func (blind) foreign(string) string  { return "" }
func (blind) interrupt()             {}
func (blind) drain(func(event))      {}
func (b blind) close()               { close(b.closed) }
func (b blind) await(ctx context.Context, until time.Time) (isOver bool, err error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-ctx.Done():
		return true, nil
	case <-b.closed:
		return true, os.ErrClosed
	}
}
