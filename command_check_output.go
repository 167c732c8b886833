package sitemap

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Bounds on what is found and not written yet.
const (
	maxHeld    = 64 << 10 // bytes
	maxHeldAge = time.Second / 2
)

// checkOutput writes lines. Where many come, it writes them together, each within
// maxHeldAge: so much is lost where the command is ended from outside.
type checkOutput struct {
	w      io.Writer
	failed func(error) // is told once that nobody can be told any more

	mu     sync.Mutex
	held   []byte
	last   time.Time   // when something was written
	timer  *time.Timer // nil: nothing is held
	broken bool
}

func (o *checkOutput) line(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken {
		return
	}
	o.held = append(append(o.held, text...), '\n')
	switch {
	case len(o.held) >= maxHeld || time.Since(o.last) >= maxHeldAge:
		o.write()
	case o.timer == nil:
		o.timer = time.AfterFunc(maxHeldAge, o.flush)
	}
}

// flush writes what is held.
func (o *checkOutput) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write()
}

// write is flush for who has the lock.
func (o *checkOutput) write() {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
	if len(o.held) == 0 {
		return
	}
	_, err := o.w.Write(o.held)
	o.held, o.last = o.held[:0], time.Now()
	if err != nil {
		o.broken = true
		o.failed(fmt.Errorf("writing what was found: %w", err))
	}
}
