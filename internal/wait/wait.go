// Package wait bounds waiting: for channels, and for functions that nothing can cancel.
package wait

import (
	"context"
	"sync/atomic"
	"time"
)

// Haste divides the time that slow responses and sources have. Only tests change it, which would wait for minutes.
var Haste time.Duration = 1

// Patience returns how long to wait for what is slow, which has d for users.
func Patience(d time.Duration) time.Duration { return d / Haste }

// IsDone reports whether a channel is closed.
func IsDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Within waits for a value up to patience. ok is false if none came. Without patience, it is a value that is there.
func Within[T any](patience time.Duration, values <-chan T) (value T, ok bool) {
	if patience <= 0 { // a timer would be due at once, and select would choose either
		select {
		case value = <-values:
			return value, true
		default:
			return value, false
		}
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case value = <-values:
		return value, true
	case <-timer.C:
		return value, false
	}
}

// OrLeave runs f in another goroutine and waits for it, once ctx has ended only for grace. False:
// f was abandoned, and may go on.
func OrLeave(ctx context.Context, grace time.Duration, f func()) bool {
	return Workers(nil).OrLeave(ctx, grace, new(atomic.Int32), f)
}

// Workers are goroutines that run functions for [Workers.OrLeave], so that not each call grows
// the stack of a new one. If all are busy, a new one is started.
type Workers chan func()

// NewWorkers starts n goroutines, which end with ctx.
func NewWorkers(ctx context.Context, n int) Workers {
	w := make(Workers)
	for range n {
		go func() {
			for {
				select {
				case f := <-w:
					f()
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return w
}

// OrLeave is as the function [OrLeave]. While an abandoned f goes on, abandoned counts it.
func (w Workers) OrLeave(ctx context.Context, grace time.Duration, abandoned *atomic.Int32, f func()) bool {
	done := make(chan struct{})
	job := func() {
		defer close(done)
		f()
	}
	select {
	case w <- job:
	default:
		go job() // all are busy, perhaps with what was abandoned
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	// A function that obeys its context is about to return.
	if _, ok := Within(grace, done); ok {
		return true
	}
	abandoned.Add(1)
	go func() {
		<-done
		abandoned.Add(-1)
	}()
	return false
}
