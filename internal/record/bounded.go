package record

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

// Bounded returns a storage as one whose calls end: after ten seconds, or with their context. One goes on at a time, also
// after its caller has left: so nothing that is older overwrites what is newer.
// While a call hangs, others fail at once. Errors match ErrHung, or are the cause of the context's end, or the storage's.
func Bounded(s Storage) Storage { return BoundedBy(nil, s) }

// BoundedBy is Bounded for one of several owners of a disk, which share slots for their calls; nil: there is no other.
func BoundedBy(shared wait.Slots, s Storage) Storage {
	if b, isBounded := s.(*bounded); isBounded {
		return b
	}
	return &bounded{storage: s, worker: wait.NewSlots(1), shared: shared}
}

type bounded struct {
	storage Storage
	worker  wait.Slots // one
	shared  wait.Slots
	begun   atomic.Pointer[time.Time] // the call that goes on; nil: none does
}

func (b *bounded) call(ctx context.Context, run func(context.Context) error) error {
	begun := b.begun.Load()
	if begun != nil && time.Since(*begun) >= patience {
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
	b.begun.Store(new(time.Now()))
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			// A storage may be any module, whose panic must not end the process.
			if v := recover(); v != nil {
				err = fmt.Errorf("the storage panicked: %v", v)
			}
			b.begun.Store(nil)
			b.shared.Release()
			b.worker.Release()
			done <- err
		}()
		err = run(ctx)
	}()
	select {
	case err := <-done:
		// What ended the call says more than the error that the storage made of it.
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *bounded) Store(ctx context.Context, key string, value []byte) error {
	return b.call(ctx, func(ctx context.Context) error { return b.storage.Store(ctx, key, value) })
}

func (b *bounded) Delete(ctx context.Context, key string) error {
	return b.call(ctx, func(ctx context.Context) error { return b.storage.Delete(ctx, key) })
}

func (b *bounded) Load(ctx context.Context, key string) ([]byte, error) {
	var data []byte
	err := b.call(ctx, func(ctx context.Context) (err error) {
		data, err = b.storage.Load(ctx, key)
		return err
	})
	if err != nil {
		return nil, err // data may still be the call's
	}
	return data, nil
}

func (b *bounded) List(ctx context.Context, folder string, recursive bool) ([]string, error) {
	var keys []string
	err := b.call(ctx, func(ctx context.Context) (err error) {
		keys, err = b.storage.List(ctx, folder, recursive)
		return err
	})
	if err != nil {
		return nil, err // keys may still be the call's
	}
	return keys, nil
}
