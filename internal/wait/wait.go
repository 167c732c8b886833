// Package wait waits for what may never come.
package wait

import (
	"context"
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
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		_, ok := Within(grace, done)
		return ok
	}
}
