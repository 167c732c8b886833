package gather

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// A feed hands batchPages pages at a time over, so that channels cost little a
// page, and runs ahead of the merge by batchesAhead batches.
const (
	batchPages   = 512
	batchesAhead = 2
)

var errGoexit = errors.New("the input ended its goroutine")

// feed runs a sorted input in a goroutine.
type feed struct {
	input int
	pages Stream

	full chan []page.Page // closed at the end
	free chan []page.Page // used up, to be filled again
	held []page.Page      // the receiver's

	// Valid once full is closed.
	err   error
	panic *Panic
}

func newFeed(input int, pages Stream) *feed {
	return &feed{
		input: input,
		pages: pages,
		full:  make(chan []page.Page, batchesAhead),
		free:  make(chan []page.Page, batchesAhead+2),
		err:   errGoexit,
	}
}

func (f *feed) run(ctx context.Context) {
	defer close(f.full)
	f.panic = guard(func() { f.err = f.send(ctx) })
}

func (f *feed) send(ctx context.Context) error {
	var c checker
	batch := make([]page.Page, 0, batchPages)
	flush := func() error {
		select {
		case f.full <- batch:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case batch = <-f.free:
		default:
			batch = make([]page.Page, 0, batchPages)
		}
		return nil
	}
	err := f.pages(ctx, func(p page.Page) error {
		if err := c.check(p.Path); err != nil {
			return err
		}
		if batch = append(batch, p); len(batch) < batchPages {
			return nil
		}
		c.err = flush()
		return c.err
	})
	if c.err != nil {
		err = c.err
	}
	if len(batch) > 0 && ctx.Err() == nil {
		_ = flush() // fails only where ctx has ended, when err is of no account
	}
	return err
}

// receive is the next batch, valid until the next call; false at the end, or when
// ctx ends.
func (f *feed) receive(ctx context.Context) ([]page.Page, bool) {
	if f.held != nil {
		f.free <- f.held[:0] // has room for all that there are
		f.held = nil
	}
	select {
	case batch, ok := <-f.full:
		f.held = batch
		return batch, ok
	case <-ctx.Done():
		return nil, false
	}
}

// Panic is what [Gather] panics with when an input panicked in a goroutine.
type Panic struct {
	Name  string // the input's
	Value any    // what it panicked with
	Stack []byte // of its goroutine
}

func (p *Panic) Error() string {
	return fmt.Sprintf("%s: %v\n\n%s", p.Name, p.Value, p.Stack)
}

// Unwrap returns Value where it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

func (p *Panic) raise(name string) {
	p.Name = name
	panic(p)
}

// guard calls f and returns what it panicked with.
func guard(f func()) (p *Panic) {
	defer func() {
		if v := recover(); v != nil {
			p = &Panic{Value: v, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}
