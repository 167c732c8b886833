package wait

import "context"

// Slots is a counting semaphore, such as for how many goroutines compute at a time; nil: there is no bound.
type Slots chan struct{}

// NewSlots returns n slots.
func NewSlots(n int) Slots { return make(Slots, n) }

// Take waits for a slot; false: ctx ended before.
func (s Slots) Take(ctx context.Context) bool {
	// Where there is a slot as well, select would choose either.
	if ctx.Err() != nil {
		return false
	}
	if s == nil {
		return true
	}
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Release gives the slot back.
func (s Slots) Release() {
	if s != nil {
		<-s
	}
}
