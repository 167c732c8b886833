package store

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// ErrHung says that a call of a storage did not return in time, or was not begun because others did not.
var ErrHung = errors.New("the storage does not respond")

const (
	patience = 10 * time.Second // with a call
	maxCalls = 32               // under way at a time
	maxHung  = maxCalls / 2     // of which so many last longer than patience
)

// Limit bounds the calls of all storages of a kind in the process: each call that a lost network disk does not answer
// takes a thread. There are two kinds, the disks of this machine and the storages that others use, too, so that
// neither takes the slots of the other.
type Limit struct {
	slots wait.Slots
	hung  atomic.Int32 // calls that have lasted longer than patience
}

// NewLimit returns a Limit.
func NewLimit() *Limit { return &Limit{slots: wait.NewSlots(maxCalls)} }

var disks = NewLimit()

// Calls bounds the calls of one owner of a storage. It is safe for concurrent use.
type Calls struct {
	limit *Limit
	mu    sync.Mutex
	turns map[string]chan struct{} // of calls under way; closed once they have returned
}

// NewCalls returns the Calls of an owner.
func NewCalls(limit *Limit) *Calls {
	return &Calls{limit: limit, turns: make(map[string]chan struct{})}
}

// Call calls a storage, for ten seconds at most. A call that does not return by then, or by the end of ctx, is
// abandoned, but keeps its slot and its turn until it returns. Calls with the same turn wait for each other; "": for no
// other. The error matches ErrHung, or is the cause of ctx's end, or the call's own.
func Call[T any](
	ctx context.Context,
	c *Calls,
	turn string,
	call func(context.Context) (T, error),
) (result T, err error) {
	// With half of the slots gone, waiting for another one would only hold up the caller as well.
	if c.limit.hung.Load() >= maxHung {
		return result, ErrHung
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrHung)
	defer cancel()
	end, ok := c.begin(ctx, turn)
	if !ok {
		return result, context.Cause(ctx)
	}
	var value T
	var failed error
	isDone := wait.OrLeave(ctx, 0, func() {
		defer end()
		value, failed = safely(ctx, call)
	})
	if !isDone {
		return result, context.Cause(ctx) // value is still the call's
	}
	// What ended the call says more than the error that the storage made of it.
	wasEnded := failed != nil && ctx.Err() != nil
	if wasEnded {
		return result, context.Cause(ctx)
	}
	return value, failed
}

// safely calls a storage. That may be any module, whose panic must not end the process.
func safely[T any](ctx context.Context, call func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the storage panicked: %v", v)
		}
	}()
	return call(ctx)
}

// begin waits for the turn and a slot. end gives them back; false: ctx ended before.
func (c *Calls) begin(ctx context.Context, turn string) (end func(), ok bool) {
	endTurn, ok := c.take(ctx, turn)
	if !ok {
		return nil, false
	}
	if !c.limit.slots.Take(ctx) {
		endTurn()
		return nil, false
	}
	// What is abandoned because its caller was canceled has not hung yet.
	late := time.AfterFunc(patience, func() { c.limit.hung.Add(1) })
	return func() {
		if !late.Stop() {
			c.limit.hung.Add(-1) // it was counted
		}
		c.limit.slots.Release()
		endTurn()
	}, true
}

// take waits for the turn. end gives it back; false: ctx ended before.
func (c *Calls) take(ctx context.Context, turn string) (end func(), ok bool) {
	if turn == "" {
		return func() {}, true
	}
	for {
		c.mu.Lock()
		before, isTaken := c.turns[turn]
		if !isTaken {
			own := make(chan struct{})
			c.turns[turn] = own
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				delete(c.turns, turn)
				c.mu.Unlock()
				close(own)
			}, true
		}
		c.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// selfBounded is a Storage each of whose calls returns by itself, soon after its context has ended at the latest.
type selfBounded interface{ IsBounded() }

// Bounded returns a storage of one owner as one whose calls end: see [Call]. While a write is under way, also an
// abandoned one, no other begins: else what is older could overwrite what is newer.
func Bounded(s Storage) Storage {
	if _, ok := s.(selfBounded); ok {
		return s
	}
	return &bounded{s, NewCalls(disks)}
}

// BoundedApart is Bounded for a storage that other machines use, too: if it hangs, the disks of this one have slots.
func BoundedApart(s Storage) Storage { return &bounded{s, NewCalls(NewLimit())} }

type bounded struct {
	storage Storage
	calls   *Calls
}

// Turns of a bounded storage. One hung object takes one slot, however often it is read.
const (
	writeTurn = "write"
	loadTurn  = "load "
	listTurn  = "list "
)

// IsBounded says that the storage needs no bounds.
func (b *bounded) IsBounded() {}

func (b *bounded) Store(ctx context.Context, key string, value []byte) error {
	return b.write(ctx, func(ctx context.Context) error { return b.storage.Store(ctx, key, value) })
}

func (b *bounded) Delete(ctx context.Context, key string) error {
	return b.write(ctx, func(ctx context.Context) error { return b.storage.Delete(ctx, key) })
}

func (b *bounded) write(ctx context.Context, write func(context.Context) error) error {
	_, err := Call(ctx, b.calls, writeTurn, func(ctx context.Context) (any, error) {
		return nil, write(ctx)
	})
	return err
}

func (b *bounded) Load(ctx context.Context, key string) ([]byte, error) {
	return Call(ctx, b.calls, loadTurn+key, func(ctx context.Context) ([]byte, error) {
		return b.storage.Load(ctx, key)
	})
}

func (b *bounded) List(ctx context.Context, folder string, recursive bool) ([]string, error) {
	return Call(ctx, b.calls, listTurn+path.Clean(folder), func(ctx context.Context) ([]string, error) {
		return b.storage.List(ctx, folder, recursive)
	})
}
