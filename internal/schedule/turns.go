package schedule

import (
	"context"
	"sync"
)

// Turns let so many jobs run at a time. The others wait in a [Line]. It is safe for concurrent use.
type Turns struct {
	mu   sync.Mutex
	line Line[chan struct{}]
	free int
	room int // for jobs of the rank Fresh: they leave half of the places to others
}

// NewTurns returns Turns for n jobs at a time, at least 2.
func NewTurns(n int) *Turns { return &Turns{free: n, room: n / 2} }

// Take waits for a turn; false: ctx ended before. Who has taken it calls Release with the same rank.
func (t *Turns) Take(ctx context.Context, of Rank) bool {
	if ctx.Err() != nil {
		return false
	}
	granted := make(chan struct{})
	t.mu.Lock()
	t.line.Add(of, granted)
	t.grant()
	t.mu.Unlock()
	select {
	case <-granted:
		return true
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	wasGranted := !t.line.Remove(of, granted) // meanwhile
	if wasGranted {
		t.giveBack(of)
	}
	return false
}

// Release gives a turn back.
func (t *Turns) Release(of Rank) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.giveBack(of)
}

func (t *Turns) giveBack(of Rank) {
	t.free++
	if of == Fresh {
		t.room++
	}
	t.grant()
}

// grant grants turns to those who wait, while there are any. Under mu.
func (t *Turns) grant() {
	for {
		next, of, ok := t.line.Next(t.may)
		if !ok {
			return
		}
		t.free--
		if of == Fresh {
			t.room--
		}
		close(next)
	}
}

// may reports whether there is a place for a job of a rank.
func (t *Turns) may(of Rank) bool { return t.free > 0 && (of != Fresh || t.room > 0) }
