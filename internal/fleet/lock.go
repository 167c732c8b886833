package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	lockRetry = time.Second      // until it is asked for again where the storage does not wait itself
	leaseFor  = 15 * time.Second // of a lock that has to be renewed

	// askFor is how long a call of Lock may take before its context is canceled. There are storages that ignore their
	// context, and try again at once when a request fails because of it: canceled, they never return and take a core
	// each.
	askFor = 15 * time.Minute

	// maxLockCalls is how many calls of Lock may be out at a time, of all sites of the process. Those that nobody waits
	// for any more count, too, as nothing ends them.
	maxLockCalls = 64
)

// LockPatience is how long a refresh waits for the lock. Only tests of what follows set less.
var LockPatience = 30 * time.Second

var (
	lockSlots = wait.NewSlots(maxLockCalls)

	errManyCalls = fmt.Errorf("%d calls of Lock have not returned: %w", maxLockCalls, ErrBusy)
)

// lockState is what becomes of a site's lock in this process.
type lockState uint8

const (
	lockFree      lockState = iota // no call of Lock is out, and no refresh has the lock
	lockAsking                     // a call is out, and a refresh waits for it
	lockLate                       // a call is out, and no refresh waits for it any more
	lockBroken                     // a call is out, and a refresh goes on without the lock
	lockGranted                    // a refresh has the lock
	lockReleasing                  // the lock is being released
)

// lockEvent is what changes the state.
type lockEvent uint8

const (
	lockWanted   lockEvent = iota // a refresh wants the lock: it begins a call, or waits for the one that is out
	lockGotIt                     // the call has returned: the lock is ours
	lockFailed                    // the call has returned an error: the lock may be ours even so
	lockRefused                   // the call has returned, and the lock is not ours
	lockGivenUp                   // the refresh does not wait any longer: the call goes on
	lockForced                    // the refresh goes on without the lock, as the site is overdue
	lockEnded                     // the refresh has ended
	lockReleased                  // the storage has released the lock, or does not do so
)

// lockChanges are the events that change a state; others leave it as it is.
var lockChanges = map[lockState]map[lockEvent]lockState{
	lockFree: {
		lockWanted: lockAsking,
	},
	lockAsking: {
		lockGotIt:   lockGranted,
		lockFailed:  lockReleasing,
		lockRefused: lockFree,
		lockGivenUp: lockLate,
	},
	lockLate: {
		lockWanted:  lockAsking,
		lockForced:  lockBroken,
		lockGotIt:   lockReleasing, // nobody waits for it
		lockFailed:  lockReleasing,
		lockRefused: lockFree,
	},
	lockBroken: {
		lockGotIt:   lockGranted, // now that it is broken, say: the rest of the refresh has it
		lockFailed:  lockReleasing,
		lockRefused: lockFree,
		lockEnded:   lockLate,
	},
	lockGranted: {
		lockEnded: lockReleasing,
	},
	lockReleasing: {
		lockReleased: lockFree,
	},
}

// after returns the state after an event.
func (s lockState) after(e lockEvent) lockState {
	next, isChanged := lockChanges[s][e]
	if isChanged {
		return next
	}
	return s
}

// isFor reports whether a refresh may want the lock: no other one of this process has it or waits for it.
func (s lockState) isFor() bool { return s == lockFree || s == lockLate }

// siteLock is the lock of a site, as one process has it. A call of Lock outlives the refresh that wanted the lock:
// nothing but its own deadline cancels it. If it is granted late, the next refresh has it, if one waits, or it is
// released at once. At most one call is out.
type siteLock struct {
	name string
	node *Node

	mu      sync.Mutex
	state   lockState
	changed chan struct{} // closed at the next change of the state
	refresh uint64        // number of the refresh that has wanted the lock last
	call    *lockCall     // the last one; nil: there was none
}

// lockCall is a call of Lock.
type lockCall struct {
	shared Shared // which also releases what it has granted
	begun  time.Time
	cancel context.CancelFunc // of its context, which lasts until the lock is released: some storages hold locks no longer
	err    error              // that it has returned
	isOver bool               // it has returned
	isSaid bool               // that it does not return
}

func newSiteLock(n *Node) *siteLock {
	return &siteLock{
		name:    "sitemap_" + store.Hash([]byte(n.Prefix)),
		node:    n,
		changed: make(chan struct{}),
	}
}

// on changes the state. Under mu.
func (l *siteLock) on(e lockEvent) lockState {
	l.state = l.state.after(e)
	close(l.changed)
	l.changed = make(chan struct{})
	return l.state
}

// watch returns the state, and a channel that is closed once it may be another one.
func (l *siteLock) watch() (lockState, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.changed
}

// ask waits until the lock is granted. refresh is for goWithout and end; 0: another refresh of this process has the
// lock. The error matches ErrBusy if ctx has ended before, which is no error of the storage.
func (l *siteLock) ask(ctx context.Context, shared Shared) (refresh uint64, err error) {
	for {
		call, refresh, changed := l.want(ctx, shared)
		if call != nil {
			return refresh, l.await(ctx, call)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ErrBusy
		}
	}
}

// want begins a call, or takes over the one that is out; nil: another refresh has the lock until changed is closed.
func (l *siteLock) want(ctx context.Context, shared Shared) (call *lockCall, refresh uint64, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.state.isFor() {
		return nil, 0, l.changed
	}
	if l.state == lockFree {
		l.call = &lockCall{shared: shared, begun: time.Now()}
		go l.run(ctx, l.call)
	}
	l.on(lockWanted)
	l.refresh++
	return l.call, l.refresh, nil
}

// await waits for a call until ctx ends. Then it goes on without the refresh.
func (l *siteLock) await(ctx context.Context, call *lockCall) error {
	for {
		isOver, changed := l.result(call)
		if isOver {
			return call.err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if l.giveUp(call) {
				return ErrBusy
			}
			return call.err
		}
	}
}

// result reports whether a call has returned, and else returns a channel that is closed once it may have.
func (l *siteLock) result(call *lockCall) (isOver bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return call.isOver, l.changed
}

// giveUp says that the refresh no longer waits for a call. False: the call has returned meanwhile.
func (l *siteLock) giveUp(call *lockCall) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if call.isOver {
		return false
	}
	l.on(lockGivenUp)
	return true
}

// goWithout breaks the lock, which some storages keep of processes that are gone, and lets a refresh go on without it.
// If the call is granted meanwhile, the refresh has the lock all the same.
func (l *siteLock) goWithout(ctx context.Context, refresh uint64, shared Shared) {
	l.mu.Lock()
	if l.refresh != refresh {
		l.mu.Unlock()
		return
	}
	isOut := l.on(lockForced) == lockBroken
	call := l.call
	l.mu.Unlock()

	// That it was not ours is no failure, and that the storage fails shows in the next call.
	_ = l.unlock(ctx, shared)
	if isOut { // the lock that is broken may be what it waits for
		time.AfterFunc(patience, func() { l.say(call) })
	}
}

// say notes that a call does not return.
func (l *siteLock) say(call *lockCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if call.isOver || call.isSaid {
		return
	}
	call.isSaid = true
	err := fmt.Errorf("the call of Lock at %s has not returned: refreshes go on without the lock",
		call.begun.UTC().Format(time.RFC3339))
	l.node.note(callStuck, err)
}

// end says that a refresh has ended.
func (l *siteLock) end(refresh uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refresh != refresh { // another one has the lock, or waits for it
		return
	}
	if l.state == lockGranted {
		l.call.cancel()
	}
	l.on(lockEnded)
}

// awaitRelease waits until the lock is released, for ten seconds at most.
func (l *siteLock) awaitRelease() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		state, changed := l.watch()
		if state != lockReleasing {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// run makes a call, keeps what it has granted, and releases it. asked is the context of the refresh that began it.
func (l *siteLock) run(asked context.Context, call *lockCall) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(asked))
	defer cancel()
	l.mu.Lock()
	call.cancel = cancel
	l.mu.Unlock()
	err := ErrBusy
	if lockSlots.Take(asked) {
		err = l.lock(ctx, cancel, call)
		lockSlots.Release()
	} else if len(lockSlots) == cap(lockSlots) {
		err = errManyCalls
	}
	state := l.returned(call, eventOf(ctx, err), err)

	// Whoever has asked may be gone: the state says whether a refresh has the lock now.
	for state == lockGranted {
		l.renew(ctx, call)
		var changed <-chan struct{}
		state, changed = l.watch()
		if state == lockGranted {
			_, _ = wait.Within(leaseFor/3, changed)
			state, _ = l.watch()
		}
	}
	if state == lockReleasing {
		l.release(ctx, call)
	}
}

// eventOf returns what the result of a call means.
func eventOf(ctx context.Context, err error) lockEvent {
	if err == nil {
		return lockGotIt
	}
	isOthers := isContention(err) || errors.Is(err, ErrBusy)
	if isOthers || ctx.Err() != nil {
		return lockRefused
	}
	return lockFailed
}

// lock calls Lock. Some storages do not wait for a lock that another one has: then they are asked again, for as long as
// a refresh waits.
func (l *siteLock) lock(ctx context.Context, cancel context.CancelFunc, call *lockCall) error {
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			_, isEnded := wait.Within(askFor, ended)
			if isEnded {
				return
			}
			if l.node.responds() { // else not the call is at fault, but the storage
				cancel()
				return
			}
		}
	}()
	for {
		err := call.shared.Lock(ctx, l.name)
		if !isContention(err) {
			return err
		}
		_, _ = wait.Within(lockRetry, ctx.Done())
		if state, _ := l.watch(); state != lockAsking {
			return err
		}
	}
}

// returned notes that a call has returned.
func (l *siteLock) returned(call *lockCall, e lockEvent, err error) lockState {
	if e == lockRefused && err != errManyCalls {
		err = ErrBusy
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	call.isOver = true
	call.err = err
	l.node.note(callStuck, nil)
	if err == ErrBusy { // which is no failure
		l.node.note(callLock, nil)
	} else {
		l.node.note(callLock, err)
	}
	return l.on(e)
}

// renew renews the lease of a lock that has one: else another node may take it.
func (l *siteLock) renew(ctx context.Context, call *lockCall) {
	renewer, isLease := call.shared.(interface {
		RenewLockLease(ctx context.Context, name string, lease time.Duration) error
	})
	if !isLease {
		return
	}
	_, _ = store.Call(ctx, l.node.calls, l.name, func(ctx context.Context) (any, error) {
		return nil, renewer.RenewLockLease(ctx, l.name, leaseFor)
	})
}

// release releases a lock that was granted, or may have been.
func (l *siteLock) release(ctx context.Context, call *lockCall) {
	// One that stays would hold up all nodes until it is overdue.
	for range 3 {
		err := l.unlock(ctx, call.shared)
		if isContention(err) {
			err = nil // it was lost, which others see first
		}
		l.node.note(callUnlock, err)
		if err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on(lockReleased)
}

// unlock releases the lock once a renewal that is under way has ended: some storages would write the lock again.
func (l *siteLock) unlock(ctx context.Context, shared Shared) error {
	_, err := store.Call(context.WithoutCancel(ctx), l.node.calls, l.name, func(ctx context.Context) (any, error) {
		return nil, shared.Unlock(ctx, l.name)
	})
	return unlessMissing(err)
}

// contentions are parts of errors by which storages that do not wait for a lock say that another one has it, or that it
// is not ours any more.
var contentions = []string{
	"is locked", "already locked", "locked by", "lock exists", "lock already exists", "already held", "held by",
	"not held", "not obtained", "duplicate key", "key exists", "wrong last sequence",
}

// isContention reports whether an error of Lock or Unlock says who has the lock, and not that the storage fails.
func isContention(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc(contentions, func(part string) bool { return strings.Contains(text, part) })
}
