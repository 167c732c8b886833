// Package merge merges the pages of several inputs into one stream of candidates, sorted by path, each path once.
package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Input is one source of pages.
type Input struct {
	Name   string // for errors
	Sorted bool   // pages come in the order of page.Compare, perhaps with duplicates; if not, all are held in memory

	// Pages calls yield for each page, from one goroutine at a time, until yield returns an error, which it
	// then returns. It ends soon after ctx is cancelled.
	Pages func(ctx context.Context, yield func(page.Page) error) error
}

// Options filter and bound a [Stream]. Zero values do not.
type Options struct {
	// Filter returns why a page is left out, a few words by which it is counted; "": it is kept. It is called once
	// for each path, after merging.
	Filter func(p *page.Page) (reason string)

	// MaxPages is the most pages of the stream, and the most held of each unsorted input. Others count as OverMax.
	MaxPages int

	// Patience is how long an input may yield nothing before it fails with ErrTimeout.
	Patience time.Duration
}

// OverMax is the reason in [Result.LeftOut] of pages beyond [Options.MaxPages].
const OverMax = "over max_urls"

// Errors of inputs.
var (
	ErrOrder   = errors.New("pages are out of order")
	ErrNoPath  = errors.New("a page has no path")
	ErrTimeout = errors.New("timed out waiting for a page")
	errEnded   = errors.New("the input's goroutine has ended")
)

// InputError is the error of an input, with its index and name.
type InputError struct {
	Input int
	Name  string
	Err   error
}

// PanicError is a recovered panic: Value is its argument, Stack is for the log.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Result is the result of a stream besides its pages.
type Result struct {
	Failed  []InputError   // in the order of inputs
	LeftOut map[string]int // pages by reason; never nil
	Counts  []int          // pages that each input yielded, including those left out
}

// Stream yields the pages of all inputs in the order of [page.Compare], those of equal paths merged by
// [page.Page.Merge]: earlier ones win. It is not safe for concurrent use.
type Stream struct {
	ctx     context.Context // of the inputs
	cancel  context.CancelFunc
	o       Options
	queues  []*queue
	inputs  sync.WaitGroup
	timer   *time.Timer
	page    page.Page // a field, so that Filter's argument need not be allocated
	passed  int
	leftOut map[string]int
}

// Start runs each input in a goroutine of its own. [Stream.Close] must be called.
func Start(ctx context.Context, inputs []Input, o Options) *Stream {
	o.MaxPages = cmp.Or(o.MaxPages, math.MaxInt)
	o.Patience = cmp.Or(o.Patience, math.MaxInt64)
	if o.Filter == nil {
		o.Filter = func(*page.Page) string { return "" }
	}
	s := &Stream{o: o, timer: time.NewTimer(0), leftOut: make(map[string]int)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	for _, in := range inputs {
		q := &queue{
			Input: in,
			max:   o.MaxPages,
			ready: make(chan struct{}, 1),
			room:  make(chan struct{}, 1),
			since: time.Now(),
		}
		q.ctx, q.cancel = context.WithCancelCause(s.ctx)
		s.queues = append(s.queues, q)
		s.inputs.Go(q.run)
	}
	return s
}

// Next returns the next page; false: there are no more. An error is ctx's, after which Next may be called again, or
// that of the context given to Start, or Close was called. The pages of an input that failed count up to then.
func (s *Stream) Next(ctx context.Context) (page.Page, bool, error) {
	for {
		ok, err := s.next(ctx)
		if !ok || err != nil {
			return page.Page{}, false, err
		}
		reason := s.o.Filter(&s.page)
		if reason == "" && s.passed < s.o.MaxPages {
			s.passed++
			return s.page, true, nil
		}
		s.leftOut[cmp.Or(reason, OverMax)]++
	}
}

// next takes the next page of all inputs, once each has a page or has ended.
func (s *Stream) next(ctx context.Context) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	// Only once the next page of each input is known, it is known which of them comes first.
	for _, q := range s.queues {
		if len(q.held) > 0 || q.done {
			continue
		}
		if err := s.refill(ctx, q); err != nil {
			return false, err
		}
	}
	first := s.first()
	if first < 0 {
		return false, nil
	}
	q := s.queues[first]
	s.page = q.held[0]
	q.held = q.held[1:]
	// No input before the first one has the page: it would be the first.
	for _, q := range s.queues[first:] {
		for len(q.held) > 0 && q.held[0].Path == s.page.Path {
			s.page.Merge(q.held[0])
			q.held = q.held[1:]
		}
	}
	return true, nil
}

// first returns the earliest of the inputs whose page comes first: its hints win. -1: all inputs have ended.
func (s *Stream) first() int {
	first := -1
	for i, q := range s.queues {
		if len(q.held) == 0 {
			continue
		}
		if first < 0 || q.held[0].Path < s.queues[first].held[0].Path {
			first = i
		}
	}
	return first
}

// refill waits until q has pages, or its input has ended or timed out. It takes less than a batch only after a
// pause, as handing over costs more than a page.
func (s *Stream) refill(ctx context.Context, q *queue) error {
	least := batchLen
	for !q.take(least) {
		wait := min(100*time.Millisecond, s.o.Patience-time.Since(q.since))
		if wait <= 0 {
			q.end(ErrTimeout)
			continue // what it has yielded until now counts
		}
		s.timer.Reset(wait)
		least = batchLen
		select {
		case <-q.ready:
		case <-s.timer.C:
			least = 1
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
	return s.ctx.Err() // not the end of the input, which it may have caused
}

// Complete reports whether no input has failed so far.
func (s *Stream) Complete() bool { return len(s.Result().Failed) == 0 }

// Result returns the result so far. Once Next has returned false, it is final.
func (s *Stream) Result() Result {
	r := Result{LeftOut: maps.Clone(s.leftOut)}
	for i, q := range s.queues {
		if q.failed != nil {
			r.Failed = append(r.Failed, InputError{i, q.Name, q.failed})
		}
		// The input may still be running: Result is also asked for what there is so far.
		q.mu.Lock()
		r.Counts = append(r.Counts, q.count)
		if q.over > 0 {
			r.LeftOut[OverMax] += q.over
		}
		q.mu.Unlock()
	}
	return r
}

// Close cancels the inputs' contexts, and gives them a second to end. It may be called twice.
func (s *Stream) Close() {
	s.cancel()
	ended := make(chan struct{})
	go func() {
		s.inputs.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Second):
		// An input may hang where nothing can cancel it, as on a network drive. Of those that end, none runs beside
		// those of the configuration that follows.
	}
}
