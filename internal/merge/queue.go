package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// The stream takes batchLen pages at a time of a sorted input, which runs ahead of it by
// up to queueLen pages.
const (
	batchLen = 512
	queueLen = 1024
)

var (
	errGoexit = errors.New("the input ended its goroutine")
	errEnded  = errors.New("the input has ended")
	errFull   = errors.New("the queue is full")
)

// queue takes pages in an input's goroutine and hands them over, sorted and each path
// once, to the stream's.
type queue struct {
	name   string
	sorted bool
	max    int // pages that are held of an unsorted input; 0: no bound
	ctx    context.Context
	cancel context.CancelCauseFunc
	ready  chan struct{} // there is a batch, or the input has ended
	room   chan struct{} // pages were taken

	mu       sync.Mutex
	pages    []page.Page // of a sorted input that has not ended, the last stays: equal ones may follow
	compact  bool        // removing duplicates from pages makes no more room
	count    int         // pages yielded
	over     int         // pages over max
	stopping bool        // no more pages are taken
	ended    bool        // pages are complete and sorted
	err      error       // the input's; valid once ended

	// Used in the stream's goroutine only.
	batch  []page.Page // taken last, to be filled again
	held   []page.Page // the rest of batch
	done   bool        // all pages were taken
	failed error       // err, once done
	seen   int         // count, when it was looked at last
	since  time.Time   // when it was last found to have changed
}

func newQueue(ctx context.Context, in Input, max int) *queue {
	q := &queue{
		name: in.Name, sorted: in.Sorted, max: max, since: time.Now(),
		ready: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	q.ctx, q.cancel = context.WithCancelCause(ctx)
	return q
}

// run runs the input in the goroutine that calls it.
func (q *queue) run(in Input) {
	err := errGoexit
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, debug.Stack()}
		}
		q.end(err)
	}()
	err = in.Pages(q.ctx, q.put)
}

// put takes a page. The error is why the input is to end.
func (q *queue) put(p page.Page) error {
	for {
		switch err := q.add(p); err {
		case nil:
			return nil
		case errFull:
			select {
			case <-q.room:
			case <-q.ctx.Done():
			}
		default:
			q.end(err)
			return err
		}
	}
}

func (q *queue) add(p page.Page) error {
	if q.ctx.Err() != nil {
		return context.Cause(q.ctx)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch n := len(q.pages); {
	case q.stopping:
		return errEnded
	case p.Path == "":
		return ErrNoPath
	case !q.sorted:
		q.collect(p)
	case n == 0 || p.Path > q.pages[n-1].Path:
		if n >= queueLen {
			return errFull
		}
		if q.pages = append(q.pages, p); n == batchLen {
			signal(q.ready)
		}
	case p.Path == q.pages[n-1].Path:
		q.pages[n-1].Merge(p)
	default:
		return fmt.Errorf("%w: '%s' after '%s'", ErrOrder, p.Path, q.pages[n-1].Path)
	}
	q.count++
	return nil
}

// collect adds a page of an unsorted input.
func (q *queue) collect(p page.Page) {
	if q.max > 0 && len(q.pages) >= q.max {
		if !q.compact {
			q.pages = sortPages(q.pages)
			q.compact = len(q.pages) > q.max-q.max/8
		}
		if len(q.pages) >= q.max {
			q.over++
			return
		}
	}
	// The path may be part of a far larger string, such as a line of a log.
	p.Path = strings.Clone(p.Path)
	q.pages = append(q.pages, p)
}

// end lets the stream take all that is left. Only the first call counts.
func (q *queue) end(err error) {
	q.mu.Lock()
	stopping, pages := q.stopping, q.pages
	q.stopping = true
	q.mu.Unlock()
	if stopping {
		return
	}
	if !q.sorted && q.ctx.Err() == nil {
		pages = sortPages(pages) // without the lock, since the stream watches its context
	}
	q.mu.Lock()
	q.pages, q.ended, q.err = pages, true, err
	q.mu.Unlock()
	signal(q.ready)
	q.cancel(err)
}

// take hands over the pages there are, if they are at least so many or the input has ended.
// It reports whether there is nothing to wait for.
func (q *queue) take(least int) bool {
	if q.done {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.seen != q.count || q.stopping {
		q.seen, q.since = q.count, time.Now()
	}
	if q.ended {
		q.held, q.pages, q.batch = q.pages, nil, nil
		q.done, q.failed = true, q.err
		return true
	}
	last := len(q.pages) - 1
	if !q.sorted || last < least {
		return false
	}
	spare := append(q.batch[:0], q.pages[last])
	q.batch, q.held, q.pages = q.pages, q.pages[:last], spare
	signal(q.room)
	return true
}

// pop removes the first page held.
func (q *queue) pop() page.Page {
	p := q.held[0]
	q.held = q.held[1:]
	return p
}

func (q *queue) counts() (count, over int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count, q.over
}

// sortPages sorts pages in place and merges those of equal paths, where earlier ones win.
func sortPages(pages []page.Page) []page.Page {
	if !slices.IsSortedFunc(pages, page.Compare) {
		permute(pages, order(pages))
	}
	merged := pages[:0]
	for _, p := range pages {
		if n := len(merged); n > 0 && merged[n-1].Path == p.Path {
			merged[n-1].Merge(p)
			continue
		}
		merged = append(merged, p)
	}
	clear(pages[len(merged):])
	return merged
}

// order is the order of pages by path, those of equal paths as they came. Sorting indices
// takes a fraction of the time that a stable sort of pages does.
func order(pages []page.Page) []uint32 {
	order := make([]uint32, len(pages))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		if c := strings.Compare(pages[a].Path, pages[b].Path); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	return order
}

// permute moves the page at order[i] to i, for all i. It uses order up.
func permute(pages []page.Page, order []uint32) {
	for start := range order {
		first, at := pages[start], start
		for next := int(order[at]); next != start; next = int(order[at]) {
			pages[at], order[at] = pages[next], uint32(at)
			at = next
		}
		pages[at], order[at] = first, uint32(at)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
