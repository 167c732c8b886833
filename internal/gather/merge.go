package gather

import (
	"context"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// cursor is a sorted source of pages that the merge pulls from.
type cursor struct {
	input  int // its index among the inputs
	order  int // in which cursors were added
	batch  []page.Page
	refill func() []page.Page // empty: there are no more
}

// before reports whether c's next page comes before d's: by path, and where paths
// are equal, in the order in which they merge.
func (c *cursor) before(d *cursor) bool {
	a, b := c.batch[0].Path, d.batch[0].Path
	if a != b {
		return a < b
	}
	if c.input != d.input {
		return c.input < d.input
	}
	return c.order < d.order
}

// merger yields the pages of its cursors, and those that are emitted between them,
// in order.
type merger struct {
	ctx    context.Context
	yield  func(page.Page) error
	halted error // yield's or ctx's error; nothing is yielded after it

	heap  []*cursor // a binary heap by before; none is empty
	added int

	page  page.Page // waits for others of its path
	count uint
}

// add adds a cursor. Of an input's cursors, the one added first wins.
func (m *merger) add(c *cursor) {
	c.order = m.added
	m.added++
	if c.batch = c.refill(); len(c.batch) == 0 {
		return
	}
	m.heap = append(m.heap, c)
	for i := len(m.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !m.heap[i].before(m.heap[parent]) {
			break
		}
		m.heap[i], m.heap[parent] = m.heap[parent], m.heap[i]
		i = parent
	}
}

// pop takes the first page of all cursors.
func (m *merger) pop() page.Page {
	c := m.heap[0]
	p := c.batch[0]
	if c.batch = c.batch[1:]; len(c.batch) == 0 {
		if c.batch = c.refill(); len(c.batch) == 0 {
			last := len(m.heap) - 1
			m.heap[0], m.heap[last] = m.heap[last], nil
			m.heap = m.heap[:last]
		}
	}
	h := m.heap
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			return p
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// drain emits what comes before the page at path of an input. It reports whether
// the merge goes on.
func (m *merger) drain(path string, input int) bool {
	for len(m.heap) > 0 {
		first := m.heap[0]
		if next := first.batch[0].Path; next > path || next == path && first.input > input {
			return m.halted == nil
		}
		if m.emit(m.pop()) != nil {
			return false
		}
	}
	return m.halted == nil
}

// emit takes the next page in order.
func (m *merger) emit(p page.Page) error {
	if p.Path == m.page.Path {
		m.page.Merge(p)
		return m.halted
	}
	return m.emitNew(p)
}

// emitNew is emit for a path that is not that of the page before.
func (m *merger) emitNew(p page.Page) error {
	previous := m.page
	m.page = p
	if previous.Path == "" {
		return m.halted
	}
	return m.pass(previous)
}

func (m *merger) pass(p page.Page) error {
	if m.halted != nil {
		return m.halted
	}
	if m.count++; m.count%1024 == 0 {
		if err := m.ctx.Err(); err != nil {
			return m.halt(err)
		}
	}
	if err := m.yield(p); err != nil {
		return m.halt(err)
	}
	return nil
}

func (m *merger) halt(err error) error {
	if m.halted == nil {
		m.halted = err
	}
	return m.halted
}

// finish emits all that is left.
func (m *merger) finish() error {
	for m.halted == nil && len(m.heap) > 0 {
		if err := m.emit(m.pop()); err != nil {
			return err
		}
	}
	if m.halted == nil && m.page.Path != "" {
		return m.pass(m.page)
	}
	return m.halted
}
