package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// folder is one on the way from being found to being emitted.
type folder struct {
	parent *folder
	at     uint32 // the entry in the parent's listing
	link   bool   // it is a link itself
	linked bool   // it, or a folder above it, is

	place     place
	id        fileID
	real      string // if linked: its path without a link, "" if that is not known
	realPlace *place // if linked: where its pages are listed by their real paths; nil: nowhere

	// Filled in by a reader, and read once done.
	l   *listing
	why reason
	err error

	// Under scan.mu.
	done        bool
	next        int     // the first of l.folders that nobody has taken
	first, last *folder // those that workers have taken, and the emitter not reached
	sibling     *folder
	before      *folder // in the queue
	after       *folder
	queued      bool
}

// locate fills in what follows from the parent and the name.
func (f *folder) locate(r *rules) {
	p := f.parent
	e := &p.l.entries[f.at]
	name, key := p.l.name(e), p.l.keyOf(e)
	escaped := key[:len(key)-1]
	f.place = r.child(&p.place, name, escaped)
	if !f.linked || f.link {
		return
	}
	if p.real != "" {
		f.real = p.real + "/" + name
	}
	if p.realPlace != nil && r.folder(p.realPlace, name, escaped) == listed {
		c := r.child(p.realPlace, name, escaped)
		f.realPlace = &c
	}
}

// scan is one run of Scan. Folders are read ahead in the order in which they
// are emitted: the queue holds, in that order, those that are being read and
// those that have sub-folders which nobody has taken.
type scan struct {
	ctx      context.Context
	rules    *rules
	tree     tree
	now      int64
	rootPath string // as opened
	realRoot string // without a link, with slashes; "" if that is not known
	others   int    // goroutines besides the emitter
	limit    int    // bytes that may be read ahead

	own   *reader // the emitter's
	total tally
	paths pathWriter
	times map[fileID]uint8 // folders entered through links
	blind int              // those of them whose identity is not known

	// Files yielded, of those reached through links. There may be millions.
	inodes    map[inode]struct{}
	realPaths map[string]struct{}

	group   sync.WaitGroup
	stopped atomic.Bool

	mu         sync.Mutex
	work       sync.Cond // there is something for workers
	ready      sync.Cond // there is something for the emitter
	head, tail *folder   // the queue
	ahead      int       // bytes of listings that the emitter has not reached
	full       bool      // ahead has come to its limit, and not yet fallen well below
	jobs       []*job
	spare      []*listing

	placesMu sync.Mutex
	places   map[string]*place // by path below the real root
}

func newScan(ctx context.Context, o Options) (*scan, error) {
	r, err := newRules(o)
	if err != nil {
		return nil, err
	}
	s := &scan{ctx: ctx, rules: r, now: o.Now.Unix(), others: max(o.Workers-1, 0), limit: maxReadAhead}
	if o.Now.IsZero() {
		s.now = time.Now().Unix()
	}
	switch {
	case o.FS != nil:
		s.tree, s.rootPath = fsTree{fsys: o.FS}, path.Clean(o.Root)
	case o.Root == "":
		return nil, fmt.Errorf("scanning: no root: %w", fs.ErrNotExist)
	default:
		if s.tree, s.rootPath, err = newOSTree(o.Root); err != nil {
			return nil, fmt.Errorf("scanning %s: %w", o.Root, err)
		}
	}
	s.work.L, s.ready.L = &s.mu, &s.mu
	s.times = make(map[fileID]uint8)
	s.inodes, s.realPaths = make(map[inode]struct{}), make(map[string]struct{})
	return s, nil
}

// ended reports whether there is no use in going on.
func (s *scan) ended() bool { return s.stopped.Load() || s.ctx.Err() != nil }

// stop ends the workers and waits for them.
func (s *scan) stop() {
	s.stopped.Store(true)
	s.mu.Lock()
	s.work.Broadcast()
	s.mu.Unlock()
	s.group.Wait()
}

// begin finds out where the root is.
func (s *scan) begin() error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.own = newReader(s, s.tree.handle())
	if real, err := s.tree.real(s.rootPath); err == nil {
		s.realRoot = real
	}
	return nil
}

// run yields all pages.
func (s *scan) run(yield func(page.Page) error) error {
	if err := s.begin(); err != nil {
		return err
	}
	for range s.others {
		r := newReader(s, s.tree.handle())
		s.group.Go(func() { s.readAhead(r) })
	}
	root := &folder{place: s.rules.root()}
	s.own.read(root)
	if root.err != nil {
		return s.rootError(root.err)
	}
	if s.rules.all {
		s.total.leftOut[hidden]++
		return nil
	}
	s.mu.Lock()
	root.done = true
	s.enqueue(root, nil)
	s.work.Broadcast()
	s.mu.Unlock()
	return s.emit(root, yield)
}

func (s *scan) rootError(err error) error {
	switch {
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case errors.Is(err, syscall.ENOTDIR):
		err = ErrNotFolder
	}
	return fmt.Errorf("scanning %s: %w", s.rootPath, err)
}

// cursor is how far the emitter has come in a folder.
type cursor struct {
	f       *folder
	entry   int
	folders int
}

// emit yields the pages of root and all folders below it.
func (s *scan) emit(root *folder, yield func(page.Page) error) error {
	stack := []cursor{{f: root}}
	s.total.add(&root.l.tally)
	for len(stack) > 0 {
		c := &stack[len(stack)-1]
		l := c.f.l
		var sub *folder
		for ; c.entry < len(l.entries); c.entry++ {
			e := &l.entries[c.entry]
			if e.flags&isFolder != 0 {
				f, err := s.reach(c)
				if err != nil {
					return err
				}
				c.folders++
				if f != nil {
					sub = f
					c.entry++
					break
				}
				continue
			}
			if c.entry&1023 == 0 {
				if err := s.ctx.Err(); err != nil {
					return err
				}
			}
			if e.id != 0 && s.yielded(l.ids[e.id-1]) {
				s.total.leftOut[duplicate]++
				continue
			}
			s.total.pages++
			if err := yield(page.Page{Path: s.paths.join(c.f.place.url, l.keyOf(e)), LastMod: int64(e.time), Version: e.version}); err != nil {
				return err
			}
		}
		if sub != nil {
			stack = append(stack, cursor{f: sub})
			continue
		}
		s.release(c.f)
		stack = stack[:len(stack)-1]
	}
	return s.ctx.Err()
}

// inode is a fileID without a path.
type inode struct{ dev, ino uint64 }

// yielded reports whether it was called for that file before.
func (s *scan) yielded(id fileID) bool {
	if id.path != "" {
		n := len(s.realPaths)
		s.realPaths[id.path] = struct{}{}
		return len(s.realPaths) == n
	}
	n := len(s.inodes)
	s.inodes[inode{id.dev, id.ino}] = struct{}{}
	return len(s.inodes) == n
}

// reach waits for the sub-folder at c, and reads it or others while it waits.
// It returns nil for one that is passed over.
func (s *scan) reach(c *cursor) (*folder, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	p := c.f
	s.mu.Lock()
	var f *folder
	if p.next == c.folders {
		f = s.take(p)
		s.mu.Unlock()
		s.own.read(f)
		s.mu.Lock()
		s.finish(f)
		if f.queued {
			s.work.Broadcast()
		}
	} else {
		f = p.first
		p.first = f.sibling
		f.sibling = nil
		for !f.done {
			if s.assist(s.own) {
				continue
			}
			s.ready.Wait()
		}
	}
	s.ahead -= f.l.memory()
	if s.full && s.ahead < s.limit/4*3 {
		s.full = false
		s.work.Broadcast()
	}
	s.mu.Unlock()

	if f.err != nil && (endsScan(f.err) || s.ctx.Err() != nil) {
		return nil, s.rootError(f.err)
	}
	if f.err != nil {
		f.why = reasonOf(f.err)
		if f.why == unreadable {
			s.total.keep(join(s.rootPath, f.place.rel))
		}
	}
	if f.why == listed && f.linked {
		f.why = s.enteredOften(f)
	}
	if f.why != listed {
		s.total.leftOut[f.why]++
		s.release(f)
		return nil, nil
	}
	s.total.add(&f.l.tally)
	if f.linked && len(f.l.folders) > 0 {
		// Only now is it sure that its sub-folders are wanted. They are the next
		// of all.
		s.mu.Lock()
		s.enqueue(f, s.head)
		s.work.Broadcast()
		s.mu.Unlock()
	}
	return f, nil
}

// enteredOften counts how often links led to a folder: n folders with links to
// each other have n! paths.
func (s *scan) enteredOften(f *folder) reason {
	if f.id == (fileID{}) {
		if s.blind++; s.blind > maxUnknown {
			return linkedOften
		}
		return listed
	}
	if s.times[f.id] >= maxEntered {
		return linkedOften
	}
	s.times[f.id]++
	return listed
}

// take makes the next sub-folder of p one that is being read. Under mu.
func (s *scan) take(p *folder) *folder {
	at := p.l.folders[p.next]
	p.next++
	f := &folder{parent: p, at: at, link: p.l.entries[at].flags&isLink != 0}
	f.linked = f.link || p.linked
	s.enqueue(f, p)
	if p.next == len(p.l.folders) {
		s.dequeue(p)
	}
	return f
}

// finish takes back a folder that has been read. Under mu.
func (s *scan) finish(f *folder) {
	f.done = true
	s.ahead += f.l.memory()
	if f.linked || f.err != nil || f.why != listed || len(f.l.folders) == 0 {
		s.dequeue(f)
	}
}

// enqueue puts f before another folder of the queue, nil for the end. Under mu.
func (s *scan) enqueue(f, before *folder) {
	if f.done && len(f.l.folders) == 0 {
		return
	}
	f.queued = true
	f.after = before
	if before == nil {
		f.before, s.tail = s.tail, f
	} else {
		f.before, before.before = before.before, f
	}
	if f.before == nil {
		s.head = f
	} else {
		f.before.after = f
	}
}

func (s *scan) dequeue(f *folder) {
	if !f.queued {
		return
	}
	if f.before == nil {
		s.head = f.after
	} else {
		f.before.after = f.after
	}
	if f.after == nil {
		s.tail = f.before
	} else {
		f.after.before = f.before
	}
	f.before, f.after, f.queued = nil, nil, false
}

// assist does one piece of a worker's work, if there is one. It is called with
// mu locked, and unlocks it meanwhile.
func (s *scan) assist(r *reader) bool {
	for _, j := range s.jobs {
		if !j.left() {
			continue
		}
		j.helpers.Add(1)
		s.mu.Unlock()
		h := s.tree.handle()
		h.share(j.h)
		j.help(r, h)
		h.close()
		j.helpers.Done()
		s.mu.Lock()
		return true
	}
	if s.full = s.full || s.ahead >= s.limit; s.full {
		return false
	}
	for p := s.head; p != nil; p = p.after {
		if !p.done {
			continue
		}
		f := s.take(p)
		if p.last == nil || p.first == nil {
			p.first = f
		} else {
			p.last.sibling = f
		}
		p.last = f
		s.mu.Unlock()
		r.read(f)
		s.mu.Lock()
		s.finish(f)
		s.ready.Signal()
		if f.queued {
			s.work.Broadcast()
		}
		return true
	}
	return false
}

// readAhead is what a worker does.
func (s *scan) readAhead(r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended() {
		if !s.assist(r) {
			s.work.Wait()
		}
	}
}

// Listings of folders are used again, unless they are large.
const maxSpare = 256 << 10

func (s *scan) newListing() *listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.spare); n > 0 {
		l := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return l
	}
	return new(listing)
}

// release gives up what the emitter has done with.
func (s *scan) release(f *folder) {
	l := f.l
	f.l = nil
	if l.memory() > maxSpare {
		return
	}
	l.reset()
	s.mu.Lock()
	s.spare = append(s.spare, l)
	s.mu.Unlock()
}

// pathWriter puts the paths of many pages into few strings.
type pathWriter struct{ buf []byte }

const pathChunk = 32 << 10

func (w *pathWriter) join(folder, key string) string {
	n := len(folder) + len(key)
	if cap(w.buf)-len(w.buf) < n {
		w.buf = make([]byte, 0, max(pathChunk, n))
	}
	at := len(w.buf)
	w.buf = append(append(w.buf, folder...), key...)
	// These bytes are not written again.
	return unsafe.String(&w.buf[at], n)
}
