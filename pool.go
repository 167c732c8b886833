package sitemap

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// Snapshots outlive a reload: the pool's one value holds them for as long as any
// configuration with a sitemap is there.
var snapshots = caddy.NewUsagePool()

const snapshotsKey = "snapshots"

// held is a snapshot that generations of configurations hand on. It is data
// alone: no server, context, logger or module.
type held struct {
	snapshot atomic.Pointer[Snapshot]

	mu           sync.Mutex // held by whoever refreshes; guards what follows
	begun        time.Time  // the last refresh that ended; zero: none
	took         time.Duration
	doubted      doubt // of the last refresh; "": none
	doubtedPages int   // that it found
	without      []int // the sources that could not be read for the snapshot
	inherited    *Snapshot
}

// inherit serves a site's snapshot on while there is none of its pages as they lie
// now.
func (h *held) inherit(previous *Snapshot) {
	if previous == nil || !h.mu.TryLock() {
		return
	}
	defer h.mu.Unlock()
	if h.begun.IsZero() && h.snapshot.CompareAndSwap(nil, previous) {
		h.inherited = previous
	}
}

// store maps what shapes a snapshot to the snapshot.
type store struct {
	mu          sync.Mutex
	entries     map[string]*storeEntry
	generations map[*generation]struct{}
}

type storeEntry struct {
	held *held
	uses map[*generation]int

	at      address // of the site that it is for
	handler string  // its identity; "": the site has given it up
}

// generation is one configuration's share of the store.
type generation struct{ settled bool }

func newStore() *store {
	return &store{entries: make(map[string]*storeEntry), generations: make(map[*generation]struct{})}
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

// remember notes which site of a handler a key is for.
func (s *store) remember(key, handler string, at address) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[key]; e != nil {
		e.at, e.handler = at, handler
	}
}

// remembered are the keys of the sites that a handler of this identity had.
func (s *store) remembered(handler string) map[address]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make(map[address]string)
	for key, e := range s.entries {
		if e.handler == handler {
			keys[e.at] = key
		}
	}
	return keys
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
		e.handler = ""
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
