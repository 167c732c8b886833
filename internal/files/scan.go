package files

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// folder is a folder from when it is found until it is emitted.
type folder struct {
	parent *folder
	at     int  // its entry in the parent
	linked bool // it, or a folder above it, is a link

	// Filled in by a reader, and read once done.
	place
	id      fileID
	entries []entry
	why     string // it is passed over
	err     error

	// Under scan.mu.
	done bool
	next int       // entry of the first sub-folder that no reader has taken
	url  string    // of that one
	subs []*folder // taken by readers, and not reached by the emitter
}

func (f *folder) size() int { return len(f.entries) * int(unsafe.Sizeof(entry{})) }

// scan is one run of Scan. Folders are read ahead in the order in which they are emitted.
type scan struct {
	ctx      context.Context
	rules    *rules
	now      int64
	root     root
	realRoot string // root.disk without links; "": not known
	limit    int    // bytes of entries that may be read ahead
	watch    *pass  // nil: nothing is watched

	readers []*reader // the emitter's first
	pages   int
	seen    map[fileID]bool // files yielded and folders entered through links, and the root

	group   sync.WaitGroup
	stopped atomic.Bool

	mu      sync.Mutex
	changed sync.Cond // queue or ahead has changed, or a folder is done
	queue   []*folder // with sub-folders that no reader has taken; the last one's next is emitted first
	ahead   int       // bytes of entries that the emitter has not reached
}

func newScan(ctx context.Context, o Options) (*scan, error) {
	s := &scan{
		ctx:   ctx,
		now:   o.Now.Unix(),
		limit: maxReadAhead,
		seen:  make(map[fileID]bool),
	}
	s.changed.L = &s.mu
	var err error
	s.root, err = rootOf(&o)
	if err != nil {
		return s, err
	}
	s.rules = newRules(o, s.root.abs)
	s.watch = o.Watcher.begin(&o, s.watchable())
	return s, nil
}

// addReader makes a reader for one goroutine.
func (s *scan) addReader() *reader {
	r := &reader{s: s, h: s.root.newHandle(), leftOut: make(map[string]int)}
	s.readers = append(s.readers, r)
	return r
}

// watchable returns the root as the operating system may watch it; "": it is not read as such.
func (s *scan) watchable() string {
	isLinux := runtime.GOOS == "linux" // others say themselves that they do not watch
	if isLinux && s.root.path != s.root.disk {
		return ""
	}
	return s.root.disk
}

// pathOf returns a folder's path as it is shown.
func (s *scan) pathOf(f *folder) string {
	if s.root.disk != "" {
		return filepath.Join(s.root.disk, f.rel)
	}
	return join(s.root.path, f.rel)
}

// ended reports whether the scan is over.
func (s *scan) ended() bool { return s.stopped.Load() || s.ctx.Err() != nil }

// run yields all pages, with the help of other goroutines.
func (s *scan) run(others int, yield func(page.Page) error) error {
	if err := s.resolveRoot(); err != nil {
		return err
	}
	r := s.addReader()
	root := &folder{place: s.rules.root()}
	r.read(root) // before the others begin: its error is that of the scan
	if root.err != nil {
		return s.failed(root.err)
	}
	if s.rules.all {
		r.leaveOut(hidden, root, "")
		return nil
	}
	s.seen[root.id] = true
	s.offer(root)
	defer s.stop()
	for range others {
		r := s.addReader()
		s.group.Go(func() { s.readAhead(r) })
	}
	return s.emit(root, yield)
}

// resolveRoot finds out where the root is, if a link leads to it. A root that does not exist is found out when it is read.
func (s *scan) resolveRoot() error {
	if s.root.disk == "" {
		return nil
	}
	real, err := filepath.EvalSymlinks(s.root.disk)
	if err != nil {
		return nil
	}
	if err := CheckRoot(real); err != nil {
		return err
	}
	s.realRoot = real
	return nil
}

// stop ends the other goroutines and waits for them.
func (s *scan) stop() {
	s.stopped.Store(true)
	s.mu.Lock()
	s.changed.Broadcast()
	s.mu.Unlock()
	s.group.Wait()
}

// stats returns the counts, once the other goroutines are stopped.
func (s *scan) stats() Stats {
	st := Stats{Pages: s.pages, LeftOut: make(map[string]int)}
	for _, r := range s.readers {
		st.Folders += r.folders
		st.Unreadable = append(st.Unreadable, r.unreadable...)
		for why, n := range r.leftOut {
			st.LeftOut[why] += n
		}
	}
	// Each reader has a few.
	slices.Sort(st.Unreadable)
	st.Unreadable = st.Unreadable[:min(len(st.Unreadable), maxUnreadable)]
	return st
}

// failed returns the error of a scan that ends with err.
func (s *scan) failed(err error) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	if errors.Is(err, syscall.ENOTDIR) {
		err = ErrNotFolder
	}
	return fmt.Errorf("scanning %s: %w", s.pathOf(new(folder)), err)
}

// emit yields the pages of f and all folders below it.
func (s *scan) emit(f *folder, yield func(page.Page) error) error {
	for i := range f.entries {
		if i&1023 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		e := &f.entries[i]
		if e.isFolder {
			sub, err := s.reach(f)
			if err != nil {
				return err
			}
			if sub == nil {
				continue
			}
			if err := s.emit(sub, yield); err != nil {
				return err
			}
			continue
		}
		if err := s.emitPage(f, e, yield); err != nil {
			return err
		}
	}
	return s.ctx.Err()
}

// emitPage yields the page of an entry of f, unless it was yielded by another path.
func (s *scan) emitPage(f *folder, e *entry, yield func(page.Page) error) error {
	if e.id != nil {
		if s.seen[*e.id] {
			s.readers[0].leaveOut(duplicate, f, e.name)
			return nil
		}
		s.seen[*e.id] = true
	}
	s.pages++
	if e.leaves {
		s.refuseLink(f, e.name)
	}
	path := f.place.url + e.key
	s.watch.yielded(path, e.version)
	return yield(page.Page{Path: path, FileTime: int64(e.time), Version: e.version})
}

// reach waits for the next sub-folder of p, and meanwhile reads it or others. It returns nil for one that is left out.
func (s *scan) reach(p *folder) (*folder, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	f := s.await(p)
	if f.err != nil {
		if endsScan(f.err) || s.ctx.Err() != nil {
			return nil, s.failed(f.err)
		}
		f.why = reasonOf(f.err)
	}
	if f.linked && f.why == listed && s.seen[f.id] {
		f.why = duplicate
	}
	if f.why != listed {
		s.readers[0].leaveOut(f.why, f, "")
		return nil, nil
	}
	if f.linked {
		s.refuseLink(f, "")
		s.seen[f.id] = true
		s.mu.Lock()
		s.offer(f) // only now is it sure that its sub-folders are wanted
		s.mu.Unlock()
	}
	return f, nil
}

// await returns the next sub-folder of p, once it is read.
func (s *scan) await(p *folder) *folder {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(p.subs) == 0 || !p.subs[0].done {
		// If no reader has taken it, it is the last of the queue, and must be read whatever was read ahead.
		isUntaken := len(p.subs) == 0
		if !s.assist(s.readers[0], isUntaken) {
			s.changed.Wait()
		}
	}
	f := p.subs[0]
	p.subs[0] = nil // what was emitted is let go: of a million pages, it would be 75 MiB
	p.subs = p.subs[1:]
	s.ahead -= f.size()
	s.changed.Broadcast()
	return f
}

// refuseLink notes that the entry of f with a name, or f itself, is a link, or reached through one, to where not all is
// watched.
func (s *scan) refuseLink(f *folder, name string) {
	if s.watch.isOff() {
		return
	}
	path := join(s.pathOf(f), name)
	s.watch.refuse(fmt.Sprintf("%s is reached through a symbolic link that leads elsewhere", path))
}

// offer queues f if it has sub-folders that no reader has taken. Under mu.
func (s *scan) offer(f *folder) {
	for f.next < len(f.entries) && !f.entries[f.next].isFolder {
		f.next++
	}
	if f.next == len(f.entries) {
		return
	}
	f.url = f.place.url + f.entries[f.next].key
	lastFirst := func(a, b *folder) int { return strings.Compare(b.url, a.url) }
	at, _ := slices.BinarySearchFunc(s.queue, f, lastFirst)
	s.queue = slices.Insert(s.queue, at, f)
	s.changed.Broadcast()
}

// assist reads the next folder, if there is one and the limit allows it, or it must be
// read. It is called with mu locked, and unlocks it meanwhile.
func (s *scan) assist(r *reader, must bool) bool {
	last := len(s.queue) - 1
	if last < 0 || s.ahead >= s.limit && !must {
		return false
	}
	p := s.queue[last]
	s.queue = slices.Delete(s.queue, last, last+1)
	f := &folder{
		parent: p,
		at:     p.next,
		linked: p.linked || p.entries[p.next].isLink,
	}
	p.subs = append(p.subs, f)
	p.next++
	s.offer(p)

	s.mu.Unlock()
	r.read(f)
	s.mu.Lock()
	f.done = true
	s.ahead += f.size()
	// Whether those below a link are wanted depends on what was emitted before: see reach.
	if !f.linked && f.err == nil {
		s.offer(f)
	}
	s.changed.Broadcast()
	return true
}

// readAhead reads folders in another goroutine.
func (s *scan) readAhead(r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended() {
		if !s.assist(r, false) {
			s.changed.Wait()
		}
	}
}
