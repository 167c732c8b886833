package gather

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// maxRuns is how many runs of an input are merged at a time: what merging holds
// of each is bounded, and so is their sum.
const maxRuns = 256

// spill holds sorted runs of one input in a file: one behind the other, so that
// many runs take one descriptor.
type spill struct {
	dir     string
	file    *os.File
	removed bool
	out     *bufio.Writer
	size    int64
	runs    []run // the earliest first
}

// run is a part of the file. What is merged of runs is of the next higher level.
type run struct {
	offset, size int64
	level        int
}

// write appends what next gives as a run.
func (s *spill) write(ctx context.Context, next func() []page.Page) error {
	if err := s.writeRun(ctx, next, 0); err != nil {
		return fmt.Errorf("spilling pages: %w", err)
	}
	// Runs are merged by level, so that a page is written anew only as often as
	// there are levels.
	for {
		n := len(s.runs)
		if n < maxRuns || s.runs[n-maxRuns].level != s.runs[n-1].level {
			return nil
		}
		if err := s.merge(ctx, n-maxRuns); err != nil {
			return err
		}
	}
}

// reduce merges runs until there are at most maxRuns.
func (s *spill) reduce(ctx context.Context) error {
	for len(s.runs) > maxRuns {
		// The last ones are the shortest.
		if err := s.merge(ctx, max(len(s.runs)-maxRuns, 0)); err != nil {
			return err
		}
	}
	return nil
}

// merge makes one run of all from the index first on. Where it fails, they stay as
// they were.
func (s *spill) merge(ctx context.Context, first int) error {
	var failure error
	m := merger{ctx: ctx}
	for _, r := range s.runs[first:] {
		m.add(&cursor{refill: s.reader(r, func(err error) {
			if failure == nil {
				failure = err
			}
		})})
	}
	var w batch
	next := func() []page.Page {
		w.reset()
		for len(w.pages) < blockPages && len(m.heap) > 0 && failure == nil {
			p := m.pop()
			for len(m.heap) > 0 && m.heap[0].batch[0].Path == p.Path {
				p.Merge(m.pop())
			}
			w.pages = append(w.pages, p)
		}
		return w.pages
	}
	old := s.runs[first:]
	level := old[0].level + 1
	if err := s.writeRun(ctx, next, level); err != nil {
		return fmt.Errorf("merging spilled pages: %w", err)
	}
	merged := s.runs[len(s.runs)-1]
	if failure != nil {
		s.runs = s.runs[:len(s.runs)-1]
		return failure
	}
	s.runs = append(s.runs[:first], merged)
	return nil
}

func (s *spill) writeRun(ctx context.Context, next func() []page.Page, level int) error {
	if err := s.open(); err != nil {
		return err
	}
	to := io.NewOffsetWriter(s.file, s.size)
	if s.out == nil {
		s.out = bufio.NewWriterSize(to, 64<<10)
	}
	out := s.out
	out.Reset(to)
	var w runWriter
	var size int64
	for batch := next(); len(batch) > 0; batch = next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		for len(batch) > 0 {
			var block []byte
			block, batch = w.block(batch)
			size += int64(len(block))
			if _, err := out.Write(block); err != nil {
				return s.truncate(err)
			}
		}
	}
	if err := out.Flush(); err != nil {
		return s.truncate(err)
	}
	s.runs = append(s.runs, run{s.size, size, level})
	s.size += size
	return nil
}

// truncate gives back what a run that could not be written has taken: on a full
// disk, others wait for it.
func (s *spill) truncate(err error) error {
	_ = s.file.Truncate(s.size)
	return err
}

func (s *spill) open() error {
	if s.file != nil {
		return nil
	}
	f, err := os.CreateTemp(s.dir, "caddy-sitemap-*.run")
	if err != nil {
		return err
	}
	// An unlinked file cannot be left behind, whatever ends the process. Windows
	// does not unlink what is open.
	s.file, s.removed = f, os.Remove(f.Name()) == nil
	return nil
}

func (s *spill) close() {
	if s.file == nil {
		return
	}
	s.file.Close()
	if !s.removed {
		_ = os.Remove(s.file.Name())
	}
	s.file = nil
}

// readers give the runs' pages, batch after batch.
func (s *spill) readers(fail func(error)) []func() []page.Page {
	var readers []func() []page.Page
	for _, r := range s.runs {
		readers = append(readers, s.reader(r, fail))
	}
	return readers
}

// reader gives a run's pages. Where it cannot be read to its end, fail is told,
// once.
func (s *spill) reader(r run, fail func(error)) func() []page.Page {
	reader := newRunReader(io.NewSectionReader(s.file, r.offset, r.size), r.size)
	return func() []page.Page {
		pages, err := reader.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				fail(fmt.Errorf("reading spilled pages: %w", err))
			}
			return nil
		}
		return pages
	}
}

// A run is a series of blocks, each with the length of what follows in four bytes,
// the least significant first, and records: by path, each path as how many bytes it
// shares with the one before it in the block, how many others follow, and these;
// then a byte of flags, and what they say is there. Numbers are as in
// [binary.AppendUvarint], versions four bytes, the least significant first. A block is what a reader holds.
const (
	blockPages = 128
	blockBytes = 8 << 10
	headBytes  = 4
)

const (
	hasDay = 1 << iota
	hasLastMod
	hasChangeFreq
	hasPriority
	hasVersion
	isDiscovered
	allFlags = 1<<iota - 1
)

var errCorrupt = errors.New("the file does not hold what was written")

type runWriter struct{ buf []byte }

// block encodes the next pages, one at least; rest are those that go into others.
// The block is valid until the next call.
func (w *runWriter) block(pages []page.Page) (block []byte, rest []page.Page) {
	b := append(w.buf[:0], make([]byte, headBytes)...)
	previous := ""
	n := 0
	for n < len(pages) && n < blockPages && len(b) < blockBytes {
		p := &pages[n]
		n++
		shared := 0
		for shared < len(previous) && shared < len(p.Path) && previous[shared] == p.Path[shared] {
			shared++
		}
		b = binary.AppendUvarint(b, uint64(shared))
		b = binary.AppendUvarint(b, uint64(len(p.Path)-shared))
		b = append(b, p.Path[shared:]...)
		previous = p.Path
		b = appendFacts(b, p)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-headBytes))
	w.buf = b
	return b, pages[n:]
}

func appendFacts(b []byte, p *page.Page) []byte {
	at := len(b)
	b = append(b, 0)
	if p.LastModDay {
		b[at] |= hasDay
	}
	if p.LastMod != 0 {
		b[at] |= hasLastMod
		b = binary.AppendVarint(b, p.LastMod)
	}
	if p.ChangeFreq != 0 {
		b[at] |= hasChangeFreq
		b = append(b, byte(p.ChangeFreq))
	}
	if p.Priority != 0 {
		b[at] |= hasPriority
		b = append(b, byte(p.Priority))
	}
	if p.Version != 0 {
		b[at] |= hasVersion
		b = binary.LittleEndian.AppendUint32(b, p.Version)
	}
	if p.Discovered {
		b[at] |= isDiscovered
	}
	return b
}

type runReader struct {
	r     *bufio.Reader
	left  int64 // bytes of the run
	block []byte
	path  []byte
	batch batch
}

// newRunReader reads a run of size bytes.
func newRunReader(r io.Reader, size int64) *runReader {
	return &runReader{r: bufio.NewReaderSize(r, blockBytes), left: size}
}

// next is the next block's pages, valid until the next call; io.EOF at the end.
func (r *runReader) next() ([]page.Page, error) {
	if r.left == 0 {
		return nil, io.EOF
	}
	var head [headBytes]byte
	if err := r.read(head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if n == 0 || n > r.left {
		return nil, errCorrupt
	}
	if int64(cap(r.block)) < n {
		r.block = make([]byte, n)
	}
	r.block = r.block[:n]
	if err := r.read(r.block); err != nil {
		return nil, err
	}
	return r.decode()
}

func (r *runReader) read(b []byte) error {
	if int64(len(b)) > r.left {
		return errCorrupt
	}
	r.left -= int64(len(b))
	_, err := io.ReadFull(r.r, b)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *runReader) decode() ([]page.Page, error) {
	d := decoder{rest: r.block, ok: true}
	r.batch.reset()
	for first := true; len(d.rest) > 0; first = false {
		limit := len(r.path)
		if first {
			limit = 0
		}
		shared := d.uvarint(limit)
		added := d.bytes(d.uvarint(len(d.rest)))
		// Paths ascend, and a record shares all that it can.
		if !d.ok || bytes.Compare(added, r.path[shared:]) <= 0 || !first && shared < len(r.path) && r.path[shared] == added[0] {
			return nil, errCorrupt
		}
		r.path = append(r.path[:shared], added...)
		p := d.facts()
		if !d.ok {
			return nil, errCorrupt
		}
		r.batch.add(r.path, p)
	}
	return r.batch.finish(), nil
}

// decoder takes the parts of records; ok is false once one is not there.
type decoder struct {
	rest []byte
	ok   bool
}

// uvarint takes a number of at most limit.
func (d *decoder) uvarint(limit int) int {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > uint64(limit) {
		d.ok = false
		return 0
	}
	d.rest = d.rest[n:]
	return int(v)
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.rest) {
		d.ok = false
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	b := d.bytes(1)
	if !d.ok {
		return 0
	}
	return b[0]
}

func (d *decoder) facts() (p page.Page) {
	flags := d.byte()
	if flags&^allFlags != 0 {
		d.ok = false
	}
	p.LastModDay = flags&hasDay != 0
	p.Discovered = flags&isDiscovered != 0
	if flags&hasLastMod != 0 {
		v, n := binary.Varint(d.rest)
		d.bytes(max(n, 0))
		d.ok = d.ok && n > 0
		p.LastMod = v
	}
	if flags&hasChangeFreq != 0 {
		p.ChangeFreq = page.ChangeFreq(d.byte())
	}
	if flags&hasPriority != 0 {
		p.Priority = page.Priority(d.byte())
	}
	if flags&hasVersion != 0 {
		if b := d.bytes(4); d.ok {
			p.Version = binary.LittleEndian.Uint32(b)
		}
	}
	return p
}
