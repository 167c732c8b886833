package files

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

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
	done bool
	next int       // the first of l.folders that nobody has taken
	url  string    // of that one
	subs []*folder // those that were taken, and the emitter has not reached
}

// sub is a folder at an entry of the listing.
func (f *folder) sub(at uint32) *folder {
	link := f.l.entries[at].flags&isLink != 0
	return &folder{parent: f, at: at, link: link, linked: link || f.linked}
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
	if p.realPlace != nil && r.folder(p.realPlace, name) == listed {
		c := r.child(p.realPlace, name, escaped)
		f.realPlace = &c
	}
}

// queue is a heap of the folders that have been read and have sub-folders which
// nobody has taken: the one whose next sub-folder is emitted first is on top.
type queue []*folder

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].url < q[j].url }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(f any)        { *q = append(*q, f.(*folder)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	f := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return f
}

// scan is one run of Scan. Folders are read ahead in the order in which they
// are emitted.
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
	times map[fileID]uint8    // folders entered through links
	blind int                 // those of them whose identity is not known
	seen  map[fileID]struct{} // files yielded, of those reached through links

	group   sync.WaitGroup
	stopped atomic.Bool
	spare   sync.Pool // of *listing

	mu    sync.Mutex
	work  sync.Cond // there is something for workers
	ready sync.Cond // there is something for the emitter
	queue queue
	ahead int // bytes of listings that the emitter has not reached

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
	s.times, s.seen = make(map[fileID]uint8), make(map[fileID]struct{})
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
	s.own = newReader(s)
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
	root := &folder{place: s.rules.root()}
	s.own.read(root)
	if root.err != nil {
		return s.rootError(root.err)
	}
	if s.rules.all {
		s.total.leftOut[hidden]++
		return nil
	}
	s.total.add(&root.l.tally)
	s.offer(root)
	for range s.others {
		r := newReader(s)
		s.group.Go(func() { s.readAhead(r) })
	}
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

// emit yields the pages of f and all folders below it.
func (s *scan) emit(f *folder, yield func(page.Page) error) error {
	for i := range f.l.entries {
		if i&1023 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		e := &f.l.entries[i]
		var err error
		switch {
		case e.flags&isFolder != 0:
			var sub *folder
			if sub, err = s.reach(f); sub != nil {
				err = s.emit(sub, yield)
			}
		case e.id != 0 && s.yielded(f.l.ids[e.id-1]):
			s.total.leftOut[duplicate]++
		default:
			s.total.pages++
			err = yield(page.Page{Path: f.place.url + f.l.keyOf(e), LastMod: int64(e.time), Version: e.version})
		}
		if err != nil {
			return err
		}
	}
	s.release(f)
	return s.ctx.Err()
}

// yielded reports whether it was called for that file before.
func (s *scan) yielded(id fileID) bool {
	n := len(s.seen)
	s.seen[id] = struct{}{}
	return len(s.seen) == n
}

// reach waits for the next sub-folder of p, and reads it or others while it waits.
// It returns nil for one that is passed over.
func (s *scan) reach(p *folder) (*folder, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	for len(p.subs) == 0 || !p.subs[0].done {
		// What nobody has taken is on top of the queue.
		if !s.assist(s.own, len(p.subs) == 0) {
			s.ready.Wait()
		}
	}
	f := p.subs[0]
	p.subs = p.subs[1:]
	s.ahead -= f.l.memory()
	s.work.Broadcast()
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
	if f.linked {
		// Only now is it sure that its sub-folders are wanted.
		s.mu.Lock()
		s.offer(f)
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

// offer has the sub-folders of f read that nobody has taken. Under mu.
func (s *scan) offer(f *folder) {
	if f.next < len(f.l.folders) {
		f.url = f.place.url + f.l.keyOf(&f.l.entries[f.l.folders[f.next]])
		heap.Push(&s.queue, f)
		s.work.Signal()
	}
}

// assist takes the next folder and reads it, if there is one and it may be read
// ahead, or must be read. It is called with mu locked, and unlocks it meanwhile.
func (s *scan) assist(r *reader, must bool) bool {
	if len(s.queue) == 0 || s.ahead >= s.limit && !must {
		return false
	}
	p := heap.Pop(&s.queue).(*folder)
	f := p.sub(p.l.folders[p.next])
	p.subs = append(p.subs, f)
	p.next++
	s.offer(p)

	s.mu.Unlock()
	r.read(f)
	s.mu.Lock()
	f.done = true
	s.ahead += f.l.memory()
	if !f.linked && f.err == nil && f.why == listed {
		s.offer(f)
	}
	s.ready.Signal()
	return true
}

// readAhead is what a worker does.
func (s *scan) readAhead(r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended() {
		if !s.assist(r, false) {
			s.work.Wait()
		}
	}
}

// Listings of folders are used again, unless they are large.
const maxSpare = 256 << 10

func (s *scan) newListing() *listing {
	if l, ok := s.spare.Get().(*listing); ok {
		return l
	}
	return new(listing)
}

// release gives up what the emitter has done with.
func (s *scan) release(f *folder) {
	if f.l.memory() <= maxSpare {
		f.l.reset()
		s.spare.Put(f.l)
	}
	f.l = nil
}
