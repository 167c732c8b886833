package sitemap

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

// Snapshots outlive a reload: the pool's one value is there for as long as any
// configuration with a sitemap is, and keeps what the configuration that came last has
// taken over of the one before.
var snapshots = caddy.NewUsagePool()

const snapshotsKey = "snapshots"

// held is a snapshot that generations of configurations hand on. It is data
// alone: no server, context, logger or module.
type held struct {
	snapshot atomic.Pointer[Snapshot]
	names    atomic.Pointer[Snapshot] // where there is no snapshot: one of retired names alone
	recalled atomic.Pointer[string]   // the settings of a snapshot that is from before a restart
	report   atomic.Pointer[report]   // of the last refresh; nil: there was none since the start

	mu           sync.Mutex // held by whoever refreshes; guards what follows
	begun        time.Time  // the last refresh that ended; zero: none
	took         time.Duration
	doubted      doubt // of the last refresh; "": none
	doubtedPages int   // that it found
	without      []int // the sources that could not be read for the snapshot
	inherited    *Snapshot
}

// inherit serves a site's snapshot on while there is none of its pages as they lie
// now, or as the settings now have it. Its names stay known. One from before a restart
// that has these settings is its own.
func (h *held) inherit(previous *held, settings string) {
	if previous == nil || !h.mu.TryLock() {
		return
	}
	defer h.mu.Unlock()
	if !h.begun.IsZero() || h.snapshot.Load() != nil {
		return
	}
	if last := previous.snapshot.Load(); last != nil {
		h.snapshot.Store(last)
		if of := previous.recalled.Load(); of == nil || *of != settings {
			h.inherited = last
		}
		return
	}
	h.names.Store(previous.names.Load())
}

// last is what the next snapshot follows, if only in its names.
func (h *held) last() *Snapshot {
	if snapshot := h.snapshot.Load(); snapshot != nil {
		return snapshot
	}
	return h.names.Load()
}

// store makes a snapshot the one that is served; nil: there is no page. Under mu.
func (h *held) store(snapshot *Snapshot, now time.Time) {
	if last := h.last(); snapshot == nil && last != nil {
		names := new(Snapshot)
		names.retire(last, now)
		h.names.Store(names)
	}
	h.snapshot.Store(snapshot)
}

// store maps what shapes a snapshot to the snapshot.
type store struct {
	mu          sync.Mutex
	entries     map[string]*storeEntry
	shelves     map[string]*storedShelf
	disks       map[string]*state.Fallback // by folder
	generations map[*generation]struct{}
	notes       int     // that were taken
	departed    readers // of the sites of visitors that are no more
}

type storeEntry struct {
	held *held
	uses map[*generation]int
	note note
}

// note is which site an entry is for, for the configuration after this one to find.
type note struct {
	at       address
	handler  string // its identity; "": the site has given the entry up
	settings string // their digest
	number   int    // later ones are higher
}

// storedShelf is a shelf and who uses it.
type storedShelf struct {
	shelf *shelf
	uses  map[*generation]struct{}
}

// shelf returns the shelf of a key, made by a function if it is new, for a generation
// to use until it leaves.
func (s *store) shelf(g *generation, key string, make func() *shelf) *shelf {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := s.shelves[key]
	if stored == nil {
		stored = &storedShelf{shelf: make(), uses: map[*generation]struct{}{}}
		s.shelves[key] = stored
	}
	stored.uses[g] = struct{}{}
	return stored.shelf
}

// leaveShelf ends a generation's use of a shelf of a visitors' site that is no more.
func (s *store) leaveShelf(g *generation, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := s.shelves[key]
	if stored == nil {
		return
	}
	if delete(stored.uses, g); len(stored.uses) == 0 {
		delete(s.shelves, key)
	}
	s.depart(stored.shelf)
}

// depart keeps what a visitors' site has counted that is no more. Under mu.
func (s *store) depart(sh *shelf) {
	if sh.visitors {
		s.departed.add(&sh.readers, losing)
	}
}

// disk is what keeps values below a folder.
func (s *store) disk(folder string) *state.Fallback {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disks[folder] == nil {
		s.disks[folder] = state.NewFallback(&certmagic.FileStorage{Path: folder})
	}
	return s.disks[folder]
}

// generation is one configuration's share of the store.
type generation struct{ settled bool }

func newStore() *store {
	return &store{entries: make(map[string]*storeEntry), shelves: make(map[string]*storedShelf),
		disks: make(map[string]*state.Fallback), generations: make(map[*generation]struct{})}
}

// Destruct lets the store be a value of a [caddy.UsagePool].
func (s *store) Destruct() error { return nil }

// join adds a generation.
func (s *store) join() *generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := new(generation)
	s.generations[g] = struct{}{}
	return g
}

// acquire returns what is held under the key, for a generation to use until it
// releases it.
func (s *store) acquire(g *generation, key string) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e == nil {
		e = &storeEntry{held: new(held), uses: make(map[*generation]int)}
		s.entries[key] = e
	}
	e.uses[g]++
	return e.held
}

// remember notes which site an entry is for.
func (s *store) remember(key string, n note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[key]; e != nil {
		s.notes++
		e.note, e.note.number = n, s.notes
	}
}

// remembered are the keys of the sites that a handler of this identity had: of
// several, that of the same settings, else the latest.
func (s *store) remembered(handler, settings string) map[address]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make(map[address]string)
	best := make(map[address]note)
	for key, e := range s.entries {
		if n := e.note; n.handler == handler {
			if other, taken := best[n.at]; !taken || n.comesBefore(other, settings) {
				keys[n.at], best[n.at] = key, n
			}
		}
	}
	return keys
}

func (n note) comesBefore(other note, settings string) bool {
	if same := n.settings == settings; same != (other.settings == settings) {
		return same
	}
	return n.number > other.number
}

// release ends one use. What nobody uses goes.
func (s *store) release(g *generation, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e == nil || e.uses[g] == 0 {
		return
	}
	if e.uses[g]--; e.uses[g] == 0 {
		delete(e.uses, g)
	}
	if len(e.uses) == 0 {
		e.note.handler = ""
	}
	s.sweep()
}

// settle says that a generation has adopted what it will.
func (s *store) settle(g *generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.settled = true
	s.sweep()
}

// leave ends all uses of a generation.
func (s *store) leave(g *generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.generations, g)
	for _, e := range s.entries {
		delete(e.uses, g)
	}
	for key, stored := range s.shelves {
		if delete(stored.uses, g); len(stored.uses) == 0 {
			delete(s.shelves, key)
			s.depart(stored.shelf)
		}
	}
	s.sweep()
}

// sweep drops what nobody uses, unless a generation may still adopt it.
func (s *store) sweep() {
	for g := range s.generations {
		if !g.settled {
			return
		}
	}
	for key, e := range s.entries {
		if len(e.uses) == 0 {
			delete(s.entries, key)
		}
	}
}
