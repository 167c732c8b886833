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
	stopping bool        // no more pages are taken
	ended    bool        // pages are sorted, and err is the input's
	err      error

	// Used by the stream alone.
	batch  []page.Page // what was taken last, to be filled again
	held   []page.Page // the rest of it
	done   bool        // it was the last of all
	failed error       // err, once done
	seen   int         // count, when it was last found to have changed
	since  time.Time   // and when that was
}

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
	n := len(q.pages)
	switch {
	case q.ctx.Err() != nil:
		return context.Cause(q.ctx)
	case q.stopping:
		return errEnded
	case p.Path == "":
		return ErrNoPath
	case !q.Sorted && n == q.max:
		q.over++
	case !q.Sorted:
		p.Path = strings.Clone(p.Path) // it may be part of a far larger string, such as a line of a log
		q.pages = append(q.pages, p)
	case n > 0 && p.Path == q.pages[n-1].Path:
		q.pages[n-1].Merge(p)
	case n > 0 && p.Path < q.pages[n-1].Path:
		return fmt.Errorf("%w: '%s' after '%s'", ErrOrder, p.Path, q.pages[n-1].Path)
	default:
		q.pages = append(q.pages, p)
		if n == batchLen { // a batch, and the last page, which stays
			signal(q.ready)
		}
	}
	q.count++
	return nil
}

// end lets the stream take all that is left. Only the first call counts.
func (q *queue) end(err error) {
	q.mu.Lock()
	if q.stopping {
		q.mu.Unlock()
		return
	}
	q.stopping = true
	pages := q.pages // which nobody else changes from here on
	q.mu.Unlock()
	if !q.Sorted && q.ctx.Err() == nil && !slices.IsSortedFunc(pages, page.Compare) {
		slices.SortStableFunc(pages, page.Compare) // not under the lock: the stream obeys its context meanwhile
	}
	q.mu.Lock()
	q.ended = true
	q.err = err
	q.mu.Unlock()
	signal(q.ready)
	q.cancel(err)
}

// take hands over what there is, if that is enough or the input has ended. It reports whether not to wait.
func (q *queue) take(least int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.seen != q.count || q.stopping {
		q.seen = q.count
		q.since = time.Now()
	}
	if q.ended {
		q.held = q.pages
		q.pages = nil
		q.batch = nil
		q.done = true
		q.failed = q.err
		return true
	}
	last := len(q.pages) - 1
	if !q.Sorted || last < least || q.stopping { // in which case end hands over all that is left
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
