package gather

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// collector takes the pages of an input that need sorting.
type collector struct {
	ctx   context.Context // Gather's
	input int
	pages Stream
	table table
	spill spill
	err   error // the input's
}

// run collects all that the input yields. Where spilling fails, what is in memory
// still counts.
func (c *collector) run(ctx context.Context) {
	var own error
	n := 0
	c.err = errGoexit
	err := c.pages(ctx, func(p page.Page) error {
		if own != nil {
			return own
		}
		if p.Path == "" {
			own = ErrNoPath
			return own
		}
		if n++; n%1024 == 0 && ctx.Err() != nil {
			own = ctx.Err()
			return own
		}
		c.table.add(p)
		if !c.table.full() {
			return nil
		}
		c.table.sort()
		if own = c.spill.write(ctx, c.table.batches(blockPages)); own == nil {
			c.table.reset()
		}
		return own
	})
	if own != nil {
		err = own
	}
	c.err = err
	c.table.sort()
	if reduceErr := c.spill.reduce(ctx); c.err == nil {
		c.err = reduceErr
	}
}

// runs are the sorted runs of what was collected, the earliest first, each as a
// function that gives batch after batch.
func (c *collector) runs(fail func(error)) []func() []page.Page {
	c.table.sort()
	runs := c.spill.readers(fail)
	return append(runs, c.table.batches(batchPages))
}

// table holds pages compactly, and free of pointers: a page's path may be part of
// a far larger string, such as a whole line of a log, that it would keep alive.
type table struct {
	limit   int64 // bytes
	used    int64
	chunks  [][]byte
	free    [][]byte // chunks to be filled again
	records []record
	sorted  bool
}

type record struct {
	key        uint64 // eight bytes of the path, see sortFrom
	lastMod    int64
	version    uint32
	chunk      uint32
	size       uint32 // of the path, dayBit and discovered
	offset     uint16 // in the chunk
	changeFreq page.ChangeFreq
	priority   page.Priority
}

const (
	recordSize = 32
	dayBit     = 1 << 31
	discovered = 1 << 30
)

func (r *record) length() int { return int(r.size &^ (dayBit | discovered)) }

func (t *table) init(limit int64) { t.limit = limit }

func (t *table) full() bool { return t.used >= t.limit }

func (t *table) add(p page.Page) {
	last := len(t.chunks) - 1
	if last < 0 || len(t.chunks[last])+len(p.Path) > cap(t.chunks[last]) {
		t.grow(len(p.Path))
		last++
	}
	chunk := t.chunks[last]
	r := record{
		lastMod:    p.LastMod,
		version:    p.Version,
		chunk:      uint32(last),
		size:       uint32(len(p.Path)),
		offset:     uint16(len(chunk)),
		changeFreq: p.ChangeFreq,
		priority:   p.Priority,
	}
	if p.LastModDay {
		r.size |= dayBit
	}
	if p.Discovered {
		r.size |= discovered
	}
	t.records = append(t.records, r)
	t.chunks[last] = append(chunk, p.Path...)
	t.used += recordSize + int64(len(p.Path))
	t.sorted = false
}

// grow adds a chunk with room for n bytes.
func (t *table) grow(n int) {
	size := t.chunkSize()
	if last := len(t.free) - 1; last >= 0 && n <= size {
		t.chunks = append(t.chunks, t.free[last][:0])
		t.free = t.free[:last]
		return
	}
	t.chunks = append(t.chunks, make([]byte, 0, max(size, n)))
}

// chunkSize is what a chunk holds. One that is larger holds a single path.
func (t *table) chunkSize() int {
	const smallest, largest = 1 << 10, math.MaxUint16 + 1
	return int(min(max(t.limit/16, smallest), largest))
}

func (t *table) reset() {
	for _, chunk := range t.chunks {
		if cap(chunk) == t.chunkSize() {
			t.free = append(t.free, chunk)
		}
	}
	t.chunks, t.records, t.used = t.chunks[:0], t.records[:0], 0
}

func (t *table) path(r *record) []byte {
	return t.chunks[r.chunk][r.offset : int(r.offset)+r.length()]
}

// sort orders records by path, equal ones as they came.
func (t *table) sort() {
	if t.sorted || len(t.records) == 0 {
		return
	}
	t.sorted = true
	common := t.path(&t.records[0])
	ordered := true
	previous := common
	for i := range t.records {
		path := t.path(&t.records[i])
		ordered = ordered && bytes.Compare(previous, path) <= 0
		previous = path
		common = common[:commonPrefix(common, path)]
	}
	if ordered {
		return
	}
	t.sortFrom(t.records, len(common))
}

// sortFrom orders records whose paths agree in their first skip bytes. It compares
// eight bytes at a time, which it keeps in the records, because what costs is to
// fetch paths from all over the memory.
func (t *table) sortFrom(records []record, skip int) {
	const few = 12
	if len(records) <= few {
		t.sortWhole(records, skip)
		return
	}
	for i := range records {
		r := &records[i]
		var key [8]byte
		if path := t.path(r); len(path) > skip {
			copy(key[:], path[skip:])
		}
		r.key = binary.BigEndian.Uint64(key[:])
	}
	slices.SortFunc(records, func(a, b record) int { return cmp.Compare(a.key, b.key) })
	skip += 8
	for start := 0; start < len(records); {
		end, ended := start, false
		for end < len(records) && records[end].key == records[start].key {
			ended = ended || records[end].length() <= skip
			end++
		}
		if ended {
			t.sortWhole(records[start:end], skip-8)
		} else {
			t.sortFrom(records[start:end], skip)
		}
		start = end
	}
}

func (t *table) sortWhole(records []record, skip int) {
	if len(records) < 2 {
		return
	}
	slices.SortFunc(records, func(a, b record) int {
		if c := bytes.Compare(t.path(&a)[skip:], t.path(&b)[skip:]); c != 0 {
			return c
		}
		if a.chunk != b.chunk {
			return cmp.Compare(a.chunk, b.chunk)
		}
		return cmp.Compare(a.offset, b.offset)
	})
}

// batches gives the sorted pages, n at a time, equal paths merged. The paths of a
// batch share one string of their own, so that who keeps a page keeps no more
// alive. A batch is valid until the next.
func (t *table) batches(n int) func() []page.Page {
	var b batch
	rest := t.records
	return func() []page.Page {
		b.reset()
		for len(rest) > 0 && len(b.pages) < n {
			r := &rest[0]
			path := t.path(r)
			b.add(path, r.page())
			rest = rest[1:]
			for len(rest) > 0 && bytes.Equal(t.path(&rest[0]), path) {
				b.pages[len(b.pages)-1].Merge(rest[0].page())
				rest = rest[1:]
			}
		}
		return b.finish()
	}
}

// page is r's page without its path.
func (r *record) page() page.Page {
	return page.Page{
		LastMod: r.lastMod, LastModDay: r.size&dayBit != 0, ChangeFreq: r.changeFreq, Priority: r.priority,
		Version: r.version, Discovered: r.size&discovered != 0,
	}
}

// batch makes pages whose paths share a string.
type batch struct {
	pages []page.Page
	ends  []int // of paths in text
	text  []byte
}

func (b *batch) reset() { b.pages, b.ends, b.text = b.pages[:0], b.ends[:0], b.text[:0] }

func (b *batch) add(path []byte, p page.Page) {
	b.text = append(b.text, path...)
	b.ends = append(b.ends, len(b.text))
	b.pages = append(b.pages, p)
}

func (b *batch) finish() []page.Page {
	text := string(b.text)
	start := 0
	for i, end := range b.ends {
		b.pages[i].Path = text[start:end]
		start = end
	}
	return b.pages
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
