// Package merge makes one sorted stream of candidates from many inputs, in which each
// path comes once.
package merge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Input is one source of pages.
type Input struct {
	// Name is what errors call the input.
	Name string

	// Sorted says that pages come in the order of [page.Compare]. Equal paths may follow
	// one another.
	Sorted bool

	// Pages calls yield for each page, from one goroutine at a time, until yield returns an
	// error, which it then returns. It ends soon after ctx is cancelled.
	Pages func(ctx context.Context, yield func(page.Page) error) error
}

// Options are what a [Stream] leaves out, and when.
type Options struct {
	// Filter returns why a page is left out, a few words that [Result.LeftOut] counts it
	// under; "": it is kept. Each path is filtered once, after it was merged. nil: all
	// pages are kept.
	Filter func(p *page.Page) (reason string)

	// MaxPages bounds the pages of the stream, and those that are held of each unsorted
	// input; the others are counted under [OverMax]. 0: no bound.
	MaxPages int

	// Patience is how long an input may yield nothing before it is left out with
	// [ErrTimeout]. 0: for ever.
	Patience time.Duration
}

// OverMax is the reason under which pages beyond [Options.MaxPages] are counted.
const OverMax = "over max_urls"

// Errors of inputs.
var (
	ErrOrder   = errors.New("pages are out of order")
	ErrNoPath  = errors.New("a page has no path")
	ErrTimeout = errors.New("timed out waiting for a page")
)

// InputError is an input's error.
type InputError struct {
	Input int    // its index
	Name  string // its name
	Err   error
}

func (e InputError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e InputError) Unwrap() error { return e.Err }

// PanicError is the error of an input that panicked.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // of its goroutine
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns Value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Result is what a stream found besides its pages.
type Result struct {
	Failed  []InputError   // in the order of inputs
	LeftOut map[string]int // pages by reason; never nil
	Counts  []int          // pages that each input has yielded, duplicates and pages left out among them
}

// Stream yields the pages of all inputs in the order of [page.Compare]. Pages of equal
// paths are merged by [page.Page.Merge], where earlier inputs win, and within an input its
// earlier pages. A Stream is not safe for concurrent use.
type Stream struct {
	ctx    context.Context // of the inputs
	cancel context.CancelFunc
	o      Options
	queues []*queue
	timer  *time.Timer

	lead    *queue    // the one with the first page; nil: to be determined
	rival   string    // the lowest path of the other queues; "": they have none
	page    page.Page // a field, so that Filter's argument costs no allocation
	passed  int
	leftOut map[string]int
}

// Start runs each input in its own goroutine until ctx ends, or [Stream.Close] is called.
func Start(ctx context.Context, inputs []Input, o Options) *Stream {
	s := &Stream{o: o, leftOut: make(map[string]int), timer: time.NewTimer(0)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	for _, in := range inputs {
		q := newQueue(s.ctx, in, o.MaxPages)
		s.queues = append(s.queues, q)
		go q.run(in)
	}
	return s
}

// Next returns the next page; false: there are no more. The error is that of ctx, or of
// the context that the stream was started with, which Close ends. The stream goes on where
// it was after an error of ctx. An input's error is none of the stream's: what it yielded
// until then counts, and the others go on.
func (s *Stream) Next(ctx context.Context) (page.Page, bool, error) {
	for {
		ok, err := s.next(ctx)
		if !ok || err != nil {
			return page.Page{}, false, err
		}
		reason := s.filter(&s.page)
		if reason == "" {
			s.passed++
			return s.page, true, nil
		}
		s.leftOut[reason]++
	}
}

func (s *Stream) filter(p *page.Page) (reason string) {
	if s.o.Filter != nil {
		reason = s.o.Filter(p)
	}
	if reason == "" && s.o.MaxPages > 0 && s.passed >= s.o.MaxPages {
		return OverMax
	}
	return reason
}

// next makes s.page the next page of all queues.
func (s *Stream) next(ctx context.Context) (bool, error) {
	if err := s.err(ctx); err != nil {
		return false, err
	}
	if q := s.lead; q == nil || len(q.held) == 0 || s.rival != "" && q.held[0].Path >= s.rival {
		if err := s.findLead(ctx); err != nil || s.lead == nil {
			return false, err
		}
	}
	s.page = s.lead.pop()
	if s.page.Path == s.rival {
		for _, q := range s.queues {
			if len(q.held) > 0 && q.held[0].Path == s.rival {
				s.page.Merge(q.pop())
			}
		}
		s.lead = nil
	}
	return true, nil
}

// findLead waits until each input has a page, or has ended. Of several with the same path,
// the first leads.
func (s *Stream) findLead(ctx context.Context) error {
	s.lead, s.rival = nil, ""
	var lead *queue
	for _, q := range s.queues {
		if len(q.held) == 0 {
			if err := s.refill(ctx, q); err != nil {
				return err
			}
		}
		switch {
		case len(q.held) == 0:
		case lead == nil:
			lead = q
		case q.held[0].Path < lead.held[0].Path:
			lead, s.rival = q, lead.held[0].Path
		case s.rival == "" || q.held[0].Path < s.rival:
			s.rival = q.held[0].Path
		}
	}
	s.lead = lead
	return nil
}

// refill waits until the input has pages, has ended, or is out of patience. It takes fewer
// pages than a batch only after a pause, since handing over costs more than a page.
func (s *Stream) refill(ctx context.Context, q *queue) error {
	const pause = 100 * time.Millisecond
	for least := batchLen; !q.take(least); {
		wait := pause
		if s.o.Patience > 0 {
			left := s.o.Patience - time.Since(q.since)
			if left <= 0 {
				q.end(ErrTimeout)
				continue
			}
			wait = min(wait, left)
		}
		s.timer.Reset(wait)
		least = batchLen
		select {
		case <-q.ready:
		case <-s.timer.C:
			least = 1
		case <-ctx.Done():
		case <-s.ctx.Done():
		}
		if err := s.err(ctx); err != nil {
			return err
		}
	}
	// Once the stream's own context has ended, what an input says does not count.
	return s.ctx.Err()
}

func (s *Stream) err(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.ctx.Err()
}

// Complete reports whether no input has failed so far.
func (s *Stream) Complete() bool {
	for _, q := range s.queues {
		if q.failed != nil {
			return false
		}
	}
	return true
}

// Result is what was found so far; after the end of the stream, all of it.
func (s *Stream) Result() Result {
	r := Result{LeftOut: maps.Clone(s.leftOut)}
	for i, q := range s.queues {
		if q.failed != nil {
			r.Failed = append(r.Failed, InputError{i, q.name, q.failed})
		}
		count, over := q.counts()
		r.Counts = append(r.Counts, count)
		if over > 0 {
			r.LeftOut[OverMax] += over
		}
	}
	return r
}

// Close cancels the inputs' contexts. It does not wait for their goroutines. It may be
// called twice.
func (s *Stream) Close() {
	s.cancel()
	s.timer.Stop()
}
