package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// ErrHung says that a call of a storage did not return in time, or was not begun because another one did not.
var ErrHung = errors.New("the storage does not respond")

const patience = 10 * time.Second // with a call

// selfBounded is a Storage each of whose calls returns by itself, soon after its context has ended at the latest.
type selfBounded interface{ IsBounded() }

// Bounded returns a storage as one whose calls end: after ten seconds, or with their context. One goes on at a time, also
// after its caller has left: so nothing that is older overwrites what is newer.
// While a call hangs, others fail at once. Errors match ErrHung, or are the cause of the context's end, or the storage's.
func Bounded(s Storage) Storage { return BoundedBy(nil, s) }

// BoundedBy is Bounded for one of several owners of a disk, which share slots for their calls; nil: there is no other.
func BoundedBy(shared wait.Slots, s Storage) Storage {
	if _, ok := s.(selfBounded); ok {
		return s
	}
	return &bounded{storage: s, worker: wait.NewSlots(1), shared: shared}
}

type bounded struct {
	storage Storage
	worker  wait.Slots // one
	shared  wait.Slots
	hangs   atomic.Bool // the call that goes on has lasted longer than patience
}

// IsBounded says that the storage needs no bounds.
func (b *bounded) IsBounded() {}

func (b *bounded) call(ctx context.Context, call func(context.Context) error) error {
	if b.hangs.Load() {
		return ErrHung
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrHung)
	defer cancel()
	if !b.worker.Take(ctx) {
		return context.Cause(ctx)
	}
	if !b.shared.Take(ctx) {
		b.worker.Release()
		return context.Cause(ctx)
	}
	late := time.AfterFunc(patience, func() { b.hangs.Store(true) })
	var err error
	isDone := wait.OrLeave(ctx, 0, func() {
		defer func() {
			late.Stop()
			b.hangs.Store(false)
			b.shared.Release()
			b.worker.Release()
		}()
		err = safely(ctx, call)
	})
	if !isDone {
		return context.Cause(ctx) // err is still the call's
	}
	// What ended the call says more than the error that the storage made of it.
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// safely calls a storage. That may be any module, whose panic must not end the process.
func safely(ctx context.Context, call func(context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the storage panicked: %v", v)
		}
	}()
	return call(ctx)
}

func (b *bounded) Store(ctx context.Context, key string, value []byte) error {
	return b.call(ctx, func(ctx context.Context) error { return b.storage.Store(ctx, key, value) })
}

func (b *bounded) Delete(ctx context.Context, key string) error {
	return b.call(ctx, func(ctx context.Context) error { return b.storage.Delete(ctx, key) })
}

func (b *bounded) Load(ctx context.Context, key string) ([]byte, error) {
	return result(b, ctx, func(ctx context.Context) ([]byte, error) { return b.storage.Load(ctx, key) })
}

func (b *bounded) List(ctx context.Context, folder string, recursive bool) ([]string, error) {
	return result(b, ctx, func(ctx context.Context) ([]string, error) { return b.storage.List(ctx, folder, recursive) })
}

// result makes a call that has a result.
func result[T any](b *bounded, ctx context.Context, call func(context.Context) (T, error)) (got T, err error) {
	var value T
	err = b.call(ctx, func(ctx context.Context) (err error) {
		value, err = call(ctx)
		return err
	})
	if err != nil {
		return got, err // value may still be the call's
	}
	return value, nil
}
