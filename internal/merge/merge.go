// Package merge merges the pages of several inputs into one stream of candidates, sorted by path, each path once.
package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Input is one source of pages.
type Input struct {
	Name   string // for errors
	Sorted bool   // pages come in the order of page.Compare; if not, all are held in memory

	// Pages calls yield for each page, from one goroutine at a time, until yield returns an error, which it
	// then returns. It ends soon after ctx is cancelled.
	Pages func(ctx context.Context, yield func(page.Page) error) error
}

// Options filter and bound a [Stream].
type Options struct {
	// Filter returns why a page is left out, a few words by which it is counted; "": it is kept. It is called once
	// for each path, after merging.
	Filter func(p *page.Page) (reason string)

	// MaxPages is the most pages of the stream, and the most held of each unsorted input. Others count as OverMax.
	MaxPages int

	// Patience is how long an input may yield nothing before it fails with ErrTimeout.
	Patience time.Duration
}

const (
	batchLen = 512                    // pages of an input that are taken at a time; twice as many wait at most
	pause    = 100 * time.Millisecond // after which fewer are taken
)

// OverMax is the reason in [Result.LeftOut] of pages beyond [Options.MaxPages].
const OverMax = "over max_urls"

// ErrTimeout is the error of an input that is too slow.
var ErrTimeout = errors.New("timed out waiting for a page")

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
	Counts  []int          // pages of each input, including those left out
}

// Stream yields the pages of all inputs in the order of [page.Compare], those of equal paths merged by
// [page.Page.Merge]: earlier ones win. It is not safe for concurrent use.
type Stream struct {
	ctx     context.Context // of the inputs
	cancel  context.CancelFunc
	o       Options
	inputs  []*input
	running sync.WaitGroup
	timer   *time.Timer
	ahead   page.Page // the next page, to which equal ones may follow
	page    page.Page // a field, so that Filter's argument need not be allocated
	passed  int
	leftOut map[string]int
}

// input is an input that runs, and what the stream has read of it.
type input struct {
	Input
	cancel context.CancelCauseFunc
	ready  chan struct{} // there is a batch, or the end
	room   chan struct{} // pages were taken

	mu     sync.Mutex
	pages  []page.Page // yielded, and not taken
	isOver bool        // no more are yielded
	err    error       // once it is over

	// Used by the stream alone.
	taken    []page.Page // the last batch, or all pages that are to be sorted
	held     []page.Page // those that are to be merged
	since    time.Time   // when there were pages last
	count    int         // of all pages
	hasEnded bool
	failed   error
}

// Start runs each input in a goroutine of its own, as one may hang where nothing can cancel it, such as on a network
// drive. [Stream.Close] must be called.
func Start(ctx context.Context, inputs []Input, o Options) *Stream {
	s := &Stream{o: o, timer: time.NewTimer(0), leftOut: make(map[string]int)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	for _, of := range inputs {
		in := &input{Input: of, ready: make(chan struct{}, 1), room: make(chan struct{}, 1), since: time.Now()}
		var running context.Context
		running, in.cancel = context.WithCancelCause(s.ctx)
		s.inputs = append(s.inputs, in)
		s.running.Go(func() { in.run(running) })
	}
	return s
}

// run reads the input.
func (in *input) run(ctx context.Context) {
	var err error
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, debug.Stack()}
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		in.isOver = true
		in.err = err
		signal(in.ready)
	}()
	err = in.Pages(ctx, func(p page.Page) error { return in.put(ctx, p) })
}

// put adds a page. The error is why the input has to end.
func (in *input) put(ctx context.Context, p page.Page) error {
	in.mu.Lock()
	in.pages = append(in.pages, p)
	n := len(in.pages)
	in.mu.Unlock()
	if n == batchLen {
		signal(in.ready)
	}
	if n < 2*batchLen {
		return nil
	}
	select {
	case <-in.room:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Next returns the next page; false: there are no more. An error is ctx's, after which Next may be called again, or
// that of the context given to Start, or Close was called. The pages of an input that failed count up to then.
func (s *Stream) Next(ctx context.Context) (page.Page, bool, error) {
	for {
		var err error
		s.page, err = s.next(ctx)
		if err != nil || s.page.Path == "" {
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

// next returns the next page of all inputs, once the one that follows is known. One without a path: there are no more.
func (s *Stream) next(ctx context.Context) (p page.Page, err error) {
	for p.Path == "" {
		first, err := s.first(ctx)
		if err != nil {
			return p, err
		}
		if first == nil {
			p = s.ahead
			s.ahead = page.Page{}
			return p, nil
		}
		following := first.held[0]
		first.held = first.held[1:]
		if following.Path == s.ahead.Path {
			s.ahead.Merge(following)
			continue
		}
		p = s.ahead
		s.ahead = following
	}
	return p, nil
}

// first returns the earliest of the inputs whose page comes first: its hints win. Only once the next page of each is
// known, it is known which of them that is. nil: all have ended.
func (s *Stream) first(ctx context.Context) (first *input, err error) {
	for _, in := range s.inputs {
		if err := s.fill(ctx, in); err != nil {
			return nil, err
		}
		if len(in.held) == 0 {
			continue
		}
		if first == nil || in.held[0].Path < first.held[0].Path {
			first = in
		}
	}
	return first, nil
}

// fill reads further pages of an input if none is held, and all of one that is not sorted.
func (s *Stream) fill(ctx context.Context, in *input) error {
	for !in.hasEnded && (!in.Sorted || len(in.held) == 0) {
		if err := s.await(ctx, in); err != nil {
			return err
		}
		s.take(in)
	}
	return nil
}

// await waits for pages of an input: less than a batch only after a pause, as handing over costs more than a page.
func (s *Stream) await(ctx context.Context, in *input) error {
	s.timer.Reset(pause)
	select {
	case <-in.ready:
	case <-s.timer.C:
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return cmp.Or(ctx.Err(), s.ctx.Err())
}

// take takes the pages that an input has, and notes whether they are the last.
func (s *Stream) take(in *input) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.Sorted {
		in.taken = in.taken[:0]
	}
	n := len(in.pages)
	fitting := min(n, s.o.MaxPages-len(in.taken))
	in.taken = append(in.taken, in.pages[:fitting]...)
	if fitting < n {
		s.leftOut[OverMax] += n - fitting
	}
	in.count += n
	in.pages = in.pages[:0]
	signal(in.room)
	if n > 0 {
		in.since = time.Now()
	}
	switch {
	case in.isOver && s.ctx.Err() == nil: // else, it may have ended because it was canceled
		in.hasEnded = true
		in.failed = in.err
	case n == 0 && time.Since(in.since) >= s.o.Patience:
		in.hasEnded = true
		in.failed = ErrTimeout
		in.cancel(ErrTimeout)
	}
	if in.hasEnded && !in.Sorted {
		slices.SortStableFunc(in.taken, page.Compare)
	}
	in.held = in.taken
}

// Complete reports whether no input has failed so far.
func (s *Stream) Complete() bool { return len(s.Result().Failed) == 0 }

// Result returns the result so far. Once Next has returned false, it is final.
func (s *Stream) Result() Result {
	r := Result{LeftOut: maps.Clone(s.leftOut)}
	for i, in := range s.inputs {
		if in.failed != nil {
			r.Failed = append(r.Failed, InputError{i, in.Name, in.failed})
		}
		r.Counts = append(r.Counts, in.count)
	}
	return r
}

// Close cancels the inputs' contexts, and gives them a second to end, so that none that ends runs beside those of the
// configuration that follows. It may be called twice.
func (s *Stream) Close() {
	s.cancel()
	wait.OrLeave(s.ctx, time.Second, s.running.Wait)
}
