// Package wait waits for what may never come.
package wait

import (
	"context"
	"sync/atomic"
	"time"
)

// IsDone reports whether a channel is closed.
func IsDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Within waits for a value, up to a time; false: none came.
func Within[T any](patience time.Duration, values <-chan T) (value T, ok bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case value = <-values:
		return value, true
	case <-timer.C:
		return value, false
	}
}

// OrLeave runs f and waits for it, but only for the grace once ctx has ended. False: f was
// abandoned, as nothing can end it.
func OrLeave(ctx context.Context, grace time.Duration, f func()) bool {
	return Workers(nil).OrLeave(ctx, grace, new(atomic.Int32), f)
}

// Workers run functions in goroutines that are there already: a new one each would have to
// grow its stack anew. Where all are busy, a new one does.
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

// OrLeave is the function [OrLeave]. As long as an abandoned f goes on, it counts in abandoned.
func (w Workers) OrLeave(ctx context.Context, grace time.Duration, abandoned *atomic.Int32, f func()) bool {
	done := make(chan struct{})
	job := func() {
		defer close(done)
		f()
	}
	select {
	case w <- job:
	default:
		go job()
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
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
