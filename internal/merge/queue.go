package merge

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// batchLen is how many pages of a sorted input the stream takes at a time; twice as many wait at most.
const batchLen = 512

// queue hands pages from an input's goroutine to the stream's, sorted.
type queue struct {
	Input
	max    int // pages of an unsorted input
	ctx    context.Context
	cancel context.CancelCauseFunc
	ready  chan struct{} // there is a batch, or the input has ended
	room   chan struct{} // pages were taken

	mu       sync.Mutex
	pages    []page.Page // the last stays until the end: equal ones may follow
	count    int         // pages yielded
	over     int         // pages over max
	progress progress
	err      error // of the input, once it has ended

	// Used by the stream alone.
	batch  []page.Page // what was taken last, to be filled again
	held   []page.Page // the rest of it
	done   bool        // it was the last of all
	failed error       // err, once done
	seen   int         // count, when it was last found to have changed
	since  time.Time   // and when that was
}

// progress is how far an input has come.
type progress uint8

const (
	goesOn  progress = iota // pages are added, and taken
	isOver                  // no more pages are added, and those that are left are being sorted
	isReady                 // the stream may take all that is left
)

func (q *queue) run() {
	err := errEnded // if it calls runtime.Goexit
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, debug.Stack()}
		}
		q.end(err)
	}()
	err = q.Pages(q.ctx, q.put)
}

// put takes a page from the input. The error is why it has to end.
func (q *queue) put(p page.Page) error {
	q.mu.Lock()
	for q.Sorted && len(q.pages) == 2*batchLen && q.ctx.Err() == nil {
		q.mu.Unlock()
		select {
		case <-q.room:
		case <-q.ctx.Done():
		}
		q.mu.Lock()
	}
	err := q.add(p)
	q.mu.Unlock()
	if err != nil {
		q.end(err)
	}
	return err
}

func (q *queue) add(p page.Page) error {
	if q.ctx.Err() != nil {
		return context.Cause(q.ctx)
	}
	if q.progress != goesOn {
		return errEnded
	}
	if p.Path == "" {
		return ErrNoPath
	}
	if !q.Sorted {
		q.hold(p)
		q.count++
		return nil
	}
	err := q.append(p)
	if err != nil {
		return err
	}
	q.count++
	return nil
}

// hold adds a page of an unsorted input, of which nothing is taken before its end.
func (q *queue) hold(p page.Page) {
	if len(q.pages) == q.max {
		q.over++
		return
	}
	p.Path = strings.Clone(p.Path) // it may be part of a far larger string, such as a line of a log
	q.pages = append(q.pages, p)
}

// append adds a page of a sorted input.
func (q *queue) append(p page.Page) error {
	n := len(q.pages)
	if n > 0 && p.Path == q.pages[n-1].Path {
		q.pages[n-1].Merge(p)
		return nil
	}
	if n > 0 && p.Path < q.pages[n-1].Path {
		return fmt.Errorf("%w: '%s' after '%s'", ErrOrder, p.Path, q.pages[n-1].Path)
	}
	q.pages = append(q.pages, p)
	if n == batchLen { // a batch, and the last page, which stays
		signal(q.ready)
	}
	return nil
}

// end lets the stream take all that is left. Only the first call counts.
func (q *queue) end(err error) {
	q.mu.Lock()
	if q.progress != goesOn {
		q.mu.Unlock()
		return
	}
	q.progress = isOver
	pages := q.pages // of an unsorted input, nobody else changes them from here on
	q.mu.Unlock()
	// Not under the lock: the stream obeys its context meanwhile.
	isWanted := !q.Sorted && q.ctx.Err() == nil
	if isWanted && !slices.IsSortedFunc(pages, page.Compare) {
		slices.SortStableFunc(pages, page.Compare)
	}
	q.mu.Lock()
	q.progress = isReady
	q.err = err
	q.mu.Unlock()
	signal(q.ready)
	q.cancel(err)
}

// take hands over what there is, if that is enough or the input has ended. It reports whether not to wait.
func (q *queue) take(least int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.seen != q.count || q.progress != goesOn {
		q.seen = q.count
		q.since = time.Now()
	}
	if q.progress == isReady {
		q.held = q.pages
		q.pages = nil
		q.batch = nil
		q.done = true
		q.failed = q.err
		return true
	}
	last := len(q.pages) - 1
	if !q.Sorted || last < least {
		return false
	}
	// The input goes on in the buffer of the batch before, beginning with the page that stays.
	batch := q.pages
	q.pages = append(q.batch[:0], batch[last])
	q.batch = batch
	q.held = batch[:last]
	signal(q.room)
	return true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
