package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// TestLockStates: which state follows which, by what has happened in turn.
func TestLockStates(t *testing.T) {
	type step struct {
		event lockEvent
		want  lockState
	}
	for name, steps := range map[string][]step{
		"a refresh has it": {
			{lockWanted, lockAsking}, {lockGotIt, lockGranted}, {lockEnded, lockReleasing},
			{lockReleased, lockFree},
		},
		"another node has it": {
			{lockWanted, lockAsking}, {lockRefused, lockFree},
		},
		"it may be ours, or not": {
			{lockWanted, lockAsking}, {lockFailed, lockReleasing}, {lockReleased, lockFree},
		},
		"granted late": {
			{lockWanted, lockAsking}, {lockGivenUp, lockLate}, {lockGotIt, lockReleasing},
			{lockReleased, lockFree},
		},
		"granted to the next": {
			{lockWanted, lockAsking}, {lockGivenUp, lockLate}, {lockWanted, lockAsking},
			{lockGotIt, lockGranted},
		},
		"fails late": {
			{lockWanted, lockAsking}, {lockGivenUp, lockLate}, {lockFailed, lockReleasing},
		},
		"refused late": {
			{lockWanted, lockAsking}, {lockGivenUp, lockLate}, {lockRefused, lockFree},
		},
		"without it": {
			{lockWanted, lockAsking}, {lockGivenUp, lockLate}, {lockForced, lockBroken},
			{lockEnded, lockLate},
		},
		"broken, and granted": {
			{lockGivenUp, lockFree}, {lockWanted, lockAsking}, {lockGivenUp, lockLate},
			{lockForced, lockBroken}, {lockGotIt, lockGranted}, {lockEnded, lockReleasing},
		},
		"broken, and refused": {
			{lockWanted, lockAsking}, {lockGivenUp, lockLate}, {lockForced, lockBroken},
			{lockRefused, lockFree}, {lockEnded, lockFree},
		},
		"broken, and fails": {
			{lockWanted, lockAsking}, {lockGivenUp, lockLate}, {lockForced, lockBroken},
			{lockFailed, lockReleasing},
		},
		"without it after an error": {
			{lockWanted, lockAsking}, {lockFailed, lockReleasing}, {lockForced, lockReleasing},
			{lockReleased, lockFree}, {lockEnded, lockFree},
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := lockFree
			for i, s := range steps {
				state = state.after(s.event)
				if state != s.want {
					t.Fatalf("step %d: got state %d, want %d", i+1, state, s.want)
				}
			}
		})
	}
	mayWant := map[lockState]bool{lockFree: true, lockLate: true}
	for state := range lockReleasing + 1 {
		if state.isFor() != mayWant[state] {
			t.Errorf("in state %d, a refresh may want the lock: %t", state, !mayWant[state])
		}
	}
}

// odd is a storage with another Lock.
type odd struct {
	*client
	lock func(ctx context.Context, name string) error
}

func (o odd) Lock(ctx context.Context, name string) error { return o.lock(ctx, name) }

// oddNode returns a node on such a storage.
func oddNode(f *fake, lock func(ctx context.Context, name string) error) *Node {
	n := node(f, nil)
	c := &client{fake: f}
	n.Storage = func() Shared { return odd{c, lock} }
	return n
}

// TestLockOutlives: a call of Lock is not canceled with the refresh that began it, but fifteen minutes later, once the
// storage responds.
func TestLockOutlives(t *testing.T) {
	for name, outage := range map[string]time.Duration{"a storage that responds": 0, "an outage": 40 * time.Minute} {
		bubble(t, name, func(t *testing.T, f *fake) {
			var canceled time.Time
			n := oddNode(f, func(ctx context.Context, _ string) error {
				<-ctx.Done()
				canceled = time.Now()
				return ctx.Err()
			})
			f.set(faults{})
			begun := time.Now()
			if outage > 0 {
				f.set(faults{fail: 1})
				_ = n.Poll(t.Context())
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(5*time.Second, cancel)
			if _, err := n.Acquire(ctx); !errors.Is(err, context.Canceled) || time.Since(begun) != 5*time.Second {
				t.Errorf("got %v after %s", err, time.Since(begun))
			}
			time.Sleep(outage)
			f.set(faults{})
			_ = n.Poll(t.Context())
			time.Sleep(askFor)
			synctest.Wait()
			want := (outage/askFor + 1) * askFor
			if got := canceled.Sub(begun); got != want {
				t.Errorf("canceled after %s, want %s", got, want)
			}
			if got := n.Status(); got.Error != "" {
				t.Errorf("it is an error: %s", got.Error)
			}
		})
	}
}

// TestLockLate: what is granted late is the next refresh's that waits for it, and else released at once.
func TestLockLate(t *testing.T) {
	for name, isWanted := range map[string]bool{"wanted": true, "not wanted": false} {
		bubble(t, name, func(t *testing.T, f *fake) {
			var calls atomic.Int32
			var shared *client
			n := oddNode(f, func(ctx context.Context, name string) error {
				calls.Add(1)
				time.Sleep(50 * time.Second)
				return shared.Lock(context.WithoutCancel(ctx), name)
			})
			shared = &client{fake: f}
			n.seenAt = time.Now().Add(time.Hour) // the site is not overdue
			isHeld := func() bool {
				f.mu.Lock()
				defer f.mu.Unlock()
				return len(f.locks) > 0
			}
			if _, err := n.Acquire(t.Context()); !errors.Is(err, ErrBusy) {
				t.Fatalf("got %v", err)
			}
			if isWanted {
				release, err := n.Acquire(t.Context())
				if err != nil || !isHeld() {
					t.Fatalf("got %v, and the lock is held: %t", err, isHeld())
				}
				time.Sleep(time.Minute)
				if !isHeld() {
					t.Error("it is not kept")
				}
				release()
			}
			time.Sleep(20*time.Second + time.Millisecond)
			synctest.Wait() // for the release to end
			if state, _ := n.lock.watch(); isHeld() || calls.Load() != 1 || state != lockFree {
				t.Errorf("held: %t, %d calls, state %d", isHeld(), calls.Load(), state)
			}
			if got := n.Status(); got.Error != "" || got.Errors != 0 {
				t.Errorf("it is an error: %+v", got)
			}
		})
	}
}

// lateRenewal is a storage that takes long to renew a lock, and does so also if the lock is not held any more.
type lateRenewal struct{ *client }

func (r lateRenewal) RenewLockLease(ctx context.Context, name string, lease time.Duration) error {
	time.Sleep(2 * time.Second)
	return r.client.RenewLockLease(context.WithoutCancel(ctx), name, lease)
}

// TestLockRenewedLate: a lock is released once a renewal under way has ended, which could take it again.
func TestLockRenewedLate(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		n := node(f, nil)
		n.Storage = func() Shared { return lateRenewal{&client{fake: f}} }
		release, err := n.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the lock is renewed from the beginning on
		release()
		time.Sleep(2 * time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.locks) > 0 {
			t.Errorf("the lock is held: %v", f.locks)
		}
	})
}

// TestLockBusy: a storage that says that another node has the lock, and does not wait for it, is asked again.
func TestLockBusy(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		begun := time.Now()
		var calls atomic.Int32
		n := oddNode(f, func(context.Context, string) error {
			calls.Add(1)
			if time.Since(begun) < 10*time.Second {
				return errors.New("key is locked: locks/sitemap")
			}
			return nil
		})
		release, err := n.Acquire(t.Context())
		if err != nil || time.Since(begun) != 10*time.Second || calls.Load() != 11 {
			t.Fatalf("got %v after %s and %d calls", err, time.Since(begun), calls.Load())
		}
		release()
		synctest.Wait()
		begun = time.Now().Add(time.Hour)
		n.seenAt = begun
		if _, err := n.Acquire(t.Context()); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Minute)
		if state, _ := n.lock.watch(); state != lockFree || calls.Load() > 11+32 {
			t.Errorf("state %d after %d calls", state, calls.Load())
		}
		if got := n.Status(); got.Error != "" || got.Errors != 0 {
			t.Errorf("it is an error: %+v", got)
		}
	})
}

func TestIsContention(t *testing.T) {
	for text, want := range map[string]bool{
		"key is locked: locks/sitemap_1":            true,
		"redislock: not obtained":                   true,
		"releasing lock: not held by this instance": true,
		`ERROR: duplicate key value violates unique constraint "locks_pkey" (SQLSTATE 23505)`: true,
		"dial tcp 10.0.0.1:6379: connect: connection refused":                                 false,
		"context deadline exceeded":                                                           false,
		"permission denied":                                                                   false,
	} {
		if got := isContention(errors.New(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	if isContention(nil) {
		t.Error("no error is one")
	}
}

// TestLockNever: while a call of Lock does not return, the site is refreshed without the lock once it is overdue, which the
// status says until the call has returned.
func TestLockNever(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		free := make(chan struct{})
		var calls atomic.Int32
		n := oddNode(f, func(context.Context, string) error {
			calls.Add(1)
			<-free
			return errors.New("too late")
		})
		begun := time.Now()
		for range 3 {
			release, err := n.Acquire(t.Context())
			for errors.Is(err, ErrBusy) {
				release, err = n.Acquire(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(patience + time.Second)
			if n.Stuck() == nil || !strings.Contains(n.Status().Error, "has not returned") {
				t.Errorf("it is not said: %+v", n.Status())
			}
			again(t, n, time.Now().String())
			release()
			if state, _ := n.lock.watch(); state != lockLate {
				t.Errorf("state %d", state)
			}
		}
		// A minute each after it was due, of which half a minute's steps pass, and a second round of the interval.
		if took := time.Since(begun); took > 7*time.Minute || calls.Load() != 1 || n.Status().Errors != 1 {
			t.Errorf("it took %s and %d calls: %+v", took, calls.Load(), n.Status())
		}
		close(free)
		time.Sleep(time.Second)
		if n.Stuck() != nil || n.Status().Error != "too late" {
			t.Errorf("it has returned: %+v", n.Status())
		}
	})
}

// TestLockCalls: the calls of Lock that are out have a bound, and the nodes of other sites go on without the lock.
func TestLockCalls(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		// With many more timers, the runtime of Go 1.26 crashes now and then if the race detector is on.
		const most = maxLockCalls / 8
		before := lockSlots
		lockSlots = wait.NewSlots(most) // of the bubble
		defer func() { lockSlots = before }()
		free := make(chan struct{})
		var out atomic.Int32
		nodes := make([]*Node, most+10)
		var all sync.WaitGroup
		for i := range nodes {
			nodes[i] = oddNode(f, func(context.Context, string) error {
				out.Add(1)
				<-free
				return nil
			})
			all.Go(func() {
				for {
					release, err := nodes[i].Acquire(t.Context())
					if err == nil {
						release()
						return
					}
				}
			})
		}
		all.Wait()
		time.Sleep(patience + time.Second)
		many := 0
		for _, n := range nodes {
			if n.Status().Error == errManyCalls.Error() {
				many++
			} else if n.Stuck() == nil {
				t.Error("a node does not say that the lock does not work")
			}
		}
		if out.Load() != most || many != 10 {
			t.Errorf("%d calls are out, and %d nodes could not call", out.Load(), many)
		}
		close(free)
		time.Sleep(time.Minute)
		for _, n := range nodes {
			if release, err := n.Acquire(t.Context()); err != nil || n.Status().Error != "" {
				t.Errorf("afterwards: %v, %+v", err, n.Status())
			} else {
				release()
			}
		}
	})
}

// TestOddLocks: nodes that start together on a storage whose Lock is odd agree, and seldom do the same work twice. No
// call is canceled that would take a core for it.
func TestOddLocks(t *testing.T) {
	for name, test := range map[string]struct {
		lock    func(c *client, free <-chan struct{}, spins *atomic.Int32) func(ctx context.Context, name string) error
		outage  bool
		isStuck bool // in the end
		most    int  // generations in an hour
	}{
		// It ignores its context, and tries again at once when a request fails.
		"spins": {func(c *client, free <-chan struct{}, spins *atomic.Int32) func(context.Context, string) error {
			return func(ctx context.Context, name string) error {
				for !wait.IsDone(free) {
					if ctx.Err() != nil {
						spins.Add(1)
					}
					err := c.Lock(ctx, name)
					if err == nil || errors.Is(err, errDead) {
						return err
					}
					// Else the time of the bubble would stand still. With many more timers, the runtime of Go 1.26 crashes
					// now and then if the race detector is on.
					time.Sleep(20 * time.Millisecond)
				}
				return errDead
			}
		}, true, false, 75},
		"never returns": {func(_ *client, free <-chan struct{}, _ *atomic.Int32) func(context.Context, string) error {
			return func(context.Context, string) error {
				<-free
				return errDead
			}
		}, false, true, 60},
		"returns late": {func(c *client, free <-chan struct{}, _ *atomic.Int32) func(context.Context, string) error {
			return func(ctx context.Context, name string) error {
				_, _ = wait.Within(askFor+5*time.Minute, free)
				return c.Lock(context.WithoutCancel(ctx), name)
			}
		}, false, true, 60},
		"says yes to two": {func(*client, <-chan struct{}, *atomic.Int32) func(context.Context, string) error {
			return func(context.Context, string) error { return nil }
		}, false, false, 75},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				free := make(chan struct{})
				var spins atomic.Int32
				w := newWorld(t, time.Minute)
				w.as = func(c *client) Shared { return odd{c, test.lock(c, free, &spins)} }
				for range 3 {
					w.start(store.NewMemory(), 0)
				}
				time.Sleep(3 * time.Minute)
				w.agree(t, "at the start")
				if test.outage {
					w.storage.set(faults{fail: 1})
					time.Sleep(45 * time.Second)
					w.storage.set(faults{})
				}
				begun := w.processes[0].Status().Generation
				for i := range 12 {
					w.mu.Lock()
					w.version = i + 1
					w.mu.Unlock()
					time.Sleep(5 * time.Minute)
					w.agree(t, fmt.Sprint("after change ", i))
				}
				if made := int(w.processes[0].Status().Generation - begun); made > test.most || made < 20 {
					t.Errorf("%d generations in an hour", made)
				}
				if spins.Load() > 0 {
					t.Errorf("a call that was canceled has spun %d times", spins.Load())
				}
				isStuck := slices.ContainsFunc(w.processes, func(p *process) bool { return p.Stuck() != nil })
				if isStuck != test.isStuck {
					t.Errorf("it is said: %t", isStuck)
				}
				close(free)
				w.stop()
				time.Sleep(time.Hour)
			})
		})
	}
}
